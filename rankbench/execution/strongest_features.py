"""The strongest features of basic ranking functions: those with the largest positive and negative weights."""

import numpy as np

from rankbench.core.contract import Floats, Ints, Model, RankingFunctions
from rankbench.data.views.layout import Labels
from rankbench.records.results import RankingFunction, Weight

COLUMNS, SHOWN = 20, 25


def leading_functions(model: Model, names: Labels) -> tuple[RankingFunction, ...]:
    """The strongest features of each of a model's first ranking functions; empty if it has none, or no feature names.

    The sign of a function is arbitrary, since a function and the users' weights on it may change sign together. It is
    shown with the sign of its mean weight over users.
    """
    if not isinstance(model, RankingFunctions) or names is None:
        return ()
    functions, mean_user = model.ranking_functions()
    signs = np.where(mean_user < 0, -1.0, 1.0)
    return tuple(_strongest(weights, names) for weights in (signs * functions).T[:COLUMNS])


def _strongest(weights: Floats, names: Labels) -> RankingFunction:
    """The strongest features of one function, given the weight and the name of each feature."""
    order = np.argsort(-weights, kind="stable")
    positive, negative = order[weights[order] > 0], order[::-1][weights[order[::-1]] < 0]
    return RankingFunction(*(_named(names, weights, chosen[:SHOWN]) for chosen in (positive, negative)))


def _named(names: Labels, weights: Floats, chosen: Ints) -> tuple[Weight, ...]:
    return tuple(Weight(str(names[column]), float(weights[column])) for column in chosen)
