"""Basic ranking functions in words: the features that each column of U weighs most, for and against."""

import numpy as np

from rankbench.contract import Model
from rankbench.data.views import Labels
from rankbench.harness.records import RankingFunction, Weight
from rankbench.models import FeatureFactors

COLUMNS, SHOWN = 20, 25


def leading_functions(model: Model, names: Labels) -> tuple[RankingFunction, ...]:
    """For each of the first columns of U its most positive and most negative features, strongest first."""
    if not isinstance(model, FeatureFactors) or names is None:
        return ()
    found = []
    for column in range(min(COLUMNS, model.basis.shape[1])):
        sign = -1.0 if model.users[:, column].mean() < 0 else 1.0
        weights = sign * model.basis[:, column]
        order = np.argsort(-weights, kind="stable")
        positive, negative = (places[:SHOWN] for places in (order[weights[order] > 0], order[::-1]))
        negative = negative[weights[negative] < 0]
        sides = (tuple(Weight(str(names[i]), float(weights[i])) for i in side) for side in (positive, negative))
        found.append(RankingFunction(*sides))
    return tuple(found)
