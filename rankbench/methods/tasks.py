"""Preparation of training data for solvers: users who have an order to learn, centred ratings, checked features."""

from typing import Any, Literal, TypeVar

import numpy as np

from rankbench.arrays.mapped import Pile
from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.data.views import Ratings, View
from rankbench.data.views.layout import blocks
from rankbench.features.matrix import Features, Matrix, features_of
from rankbench.features.single import SingleFeatures, is_single

Centre = Literal["user", "none"]
AnyFeatures = TypeVar("AnyFeatures", Features, SingleFeatures)


def ordered(train: Ratings) -> Ratings:
    """The ratings of users whose ratings are not all equal; the others' rows are left out."""
    kept = train.has_order
    if kept.all():
        return train
    return train.where(np.repeat(kept, np.diff(train.indptr)))


def targets(train: Ratings, centre: Centre) -> Floats:
    """The ratings, minus each user's mean with centre=user (a constant per user does not change the order)."""
    if centre == "none" or not len(train):
        return train.values
    centred = Pile(np.float64)
    for users, rows in blocks(train.indptr):
        counts, values = np.diff(train.indptr[users.start : users.stop + 1]), train.values[rows]
        own = np.repeat(np.arange(len(counts)), counts)
        means = np.bincount(own, values, len(counts)) / np.maximum(counts, 1)
        centred.add(values - means[own])
    return centred.array()


def given_features(train: View, solver: str) -> Matrix:
    """The item features of a view, for a solver with features=given; raises an error if there are none."""
    if train.item_features is None:
        problem = "features=given, but the data has none: give item features, or features=none"
        raise UserError(problem, subject=solver)
    return train.item_features


def checked_features(matrix: Matrix | None) -> Features:
    """The item features of a view, in double precision; raises an error if all are zero."""
    return _checked(features_of(matrix))


def features_as_stored(matrix: Matrix | None) -> Features | SingleFeatures:
    """The same for solvers that take features of 32 bits as they are."""
    given: Any = matrix
    return _checked(SingleFeatures(given)) if is_single(given) else checked_features(matrix)


def _checked(features: AnyFeatures) -> AnyFeatures:
    if features.shape[0] and not np.any(features.stored):
        raise UserError("item features are all zero: no function of them ranks anything")
    return features
