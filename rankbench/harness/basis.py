"""Basic ranking functions in words: the features that each column of U weighs most, for and against."""

from typing import Any

import numpy as np

from rankbench.contract import Model
from rankbench.data.views import Labels
from rankbench.models import FeatureFactors

COLUMNS, SHOWN = 20, 25


def leading_features(model: Model, names: Labels) -> list[dict[str, Any]] | None:
    """For each of the first columns of U its most positive and most negative features, strongest first.

    None where a model has no such functions, or its features no names. A column and the weights of the users
    on it may change sign together: it is shown with the sign that the mean user gives it.
    """
    if not isinstance(model, FeatureFactors) or names is None:
        return None
    found = []
    for column in range(min(COLUMNS, model.basis.shape[1])):
        sign = -1.0 if model.users[:, column].mean() < 0 else 1.0
        weights = sign * model.basis[:, column]
        order = np.argsort(-weights, kind="stable")
        positive, negative = (places[:SHOWN] for places in (order[weights[order] > 0], order[::-1]))
        negative = negative[weights[negative] < 0]
        found.append({"positive": _named(names, weights, positive), "negative": _named(names, weights, negative)})
    return found


def _named(names: Any, weights: Any, places: Any) -> list[list[Any]]:
    return [[str(names[place]), float(weights[place])] for place in places]
