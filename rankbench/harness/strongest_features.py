"""Basic ranking functions in words: the features that each of them weighs most, for and against."""

import numpy as np

from rankbench.contract import Floats, Ints, Model, RankingFunctions
from rankbench.data.views import Labels
from rankbench.harness.records import RankingFunction, Weight

COLUMNS, SHOWN = 20, 25


def leading_functions(model: Model, names: Labels) -> tuple[RankingFunction, ...]:
    """The strongest features of each of a model's first ranking functions.

    None of them where a model has no such functions, or its features no names. A function and the weights of the users
    on it may change sign together: it is shown with the sign that the mean user gives it.
    """
    if not isinstance(model, RankingFunctions) or names is None:
        return ()
    functions, mean_user = model.ranking_functions()
    signs = np.where(mean_user < 0, -1.0, 1.0)
    return tuple(_strongest(weights, names) for weights in (signs * functions).T[:COLUMNS])


def _strongest(weights: Floats, names: Labels) -> RankingFunction:
    """One function, whose weights are those of the features of these names."""
    order = np.argsort(-weights, kind="stable")
    positive, negative = order[weights[order] > 0], order[::-1][weights[order[::-1]] < 0]
    return RankingFunction(*(_named(names, weights, chosen[:SHOWN]) for chosen in (positive, negative)))


def _named(names: Labels, weights: Floats, chosen: Ints) -> tuple[Weight, ...]:
    return tuple(Weight(str(names[column]), float(weights[column])) for column in chosen)
