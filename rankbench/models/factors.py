"""Models with a vector for each user and each item."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from rankbench.arrays import soundness
from rankbench.core.brief import brief, brief_html
from rankbench.core.contract import Floats, Ints
from rankbench.features.single import is_single
from rankbench.models.asking import (
    checked_ids,
    checked_pairs,
    checked_users,
    products_of_pairs,
    products_with_all,
)
from rankbench.names import checked_threads

_BESIDE = {"scores": False}  # of a field that a model does not score by
_ROWS = 1 << 12  # of 32 bits that become doubles at a time


@dataclass(frozen=True, eq=False)
class Factors:
    """A vector per user and per item: score = u . v.

    `penalties` are for a solver that fits further users: 1/2 sum_k penalties[k] u_k^2 is what their vectors cost.
    """

    users: Floats
    items: Floats
    penalties: Floats | None = field(default=None, metadata=_BESIDE)  # where training set them

    __repr__ = brief
    _repr_html_ = brief_html

    def score(self, users: Ints, items: Ints) -> Floats:
        """u_user . v_item for each pair; NaN if the user's or the item's vector is NaN."""
        users, items = checked_pairs(users, items, len(self.users), len(self.items))
        return products_of_pairs(self.users, users, self.items, items)

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the inner products of the users' vectors with all items' vectors."""
        users, threads = checked_users(users, len(self.users), threads)
        return products_with_all(self.users, users, self.items, threads)

    def validate(self) -> None:
        """Raise an error unless the vectors of users and items have the same length."""
        _, rank = soundness.numbers("users", self.users, None, None)
        soundness.numbers("items", self.items, None, rank)
        if self.penalties is not None:
            soundness.numbers("penalties", self.penalties, rank)


@dataclass(frozen=True, eq=False)
class BlendedFactors:
    """A weighted mean of many low-rank models, as two products: score = u . v / (a . b).

    The rows of `users` and `items` hold all models' factors side by side, each times its weight for that user
    or item; the weights themselves are the rows of `user_weights` and `item_weights`. The last two fields are for a
    solver that fits further users.
    """

    users: Floats
    items: Floats
    user_weights: Floats
    item_weights: Floats
    item_priors: Floats | None = field(default=None, metadata=_BESIDE)  # their weighted sum places a user
    anchors: Floats | None = field(default=None, metadata=_BESIDE)  # the places that the models are local to

    __repr__ = brief
    _repr_html_ = brief_html

    def score(self, users: Ints, items: Ints) -> Floats:
        """u . v / (a . b) for each pair; NaN if the user's or the item's vector is NaN."""
        users, items = checked_pairs(users, items, len(self.users), len(self.items))
        products = products_of_pairs(self.users, users, self.items, items)
        products /= products_of_pairs(self.user_weights, users, self.item_weights, items)
        return products

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the inner products u . v, divided by the weights a . b."""
        users, threads = checked_users(users, len(self.users), threads)
        products = products_with_all(self.users, users, self.items, threads)
        products /= products_with_all(self.user_weights, users, self.item_weights, threads)
        return products

    def validate(self) -> None:
        """Raise an error unless users and items have vectors of the same length, and weights of the same length."""
        n_users, rank = soundness.numbers("users", self.users, None, None)
        n_items, _ = soundness.numbers("items", self.items, None, rank)
        _, models = soundness.numbers("user_weights", self.user_weights, n_users, None)
        soundness.numbers("item_weights", self.item_weights, n_items, models)
        if self.item_priors is not None and self.anchors is not None:
            _, length = soundness.numbers("item_priors", self.item_priors, n_items, None)
            soundness.numbers("anchors", self.anchors, models - 1, length)


@dataclass(frozen=True, eq=False)
class FeatureFactors:
    """A few linear functions of item features, weighted by each user: score = v_user . U^T x_item."""

    users: Floats  # V
    basis: Floats  # U, one column per function
    features: Any  # X, dense or CSR, one row per item, rated in training or not

    __repr__ = brief
    _repr_html_ = brief_html

    def score(self, users: Ints, items: Ints) -> Floats:
        """v_user . U^T x_item for each pair; items with the same features tie exactly."""
        users, items = checked_pairs(users, items, len(self.users), self.features.shape[0])  # check ids first
        return Factors(self.users, self.items(np.arange(self.features.shape[0]))).score(users, items)

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the scores of all items for these users."""
        users, threads = checked_users(users, len(self.users), threads)
        return products_with_all(self.users, users, self.items(np.arange(self.features.shape[0]), threads), threads)

    def items(self, items: Ints, threads: int = 1) -> Floats:
        """items x functions: the value x_item^T U of each function, summed in the order of the features."""
        items, threads = checked_ids("item", items, self.features.shape[0]), checked_threads(threads)
        if scipy.sparse.issparse(self.features):
            return np.asarray(self.features[items] @ np.ascontiguousarray(self.basis))
        basis = np.ascontiguousarray(self.basis.T)
        if not is_single(self.features):
            return products_with_all(self.features, items, basis, threads)
        found = np.empty((len(items), len(basis)))
        for first in range(0, len(items), _ROWS):
            block = self.features[items[first : first + _ROWS]].astype(np.float64)
            found[first : first + _ROWS] = products_with_all(block, np.arange(len(block)), basis, threads)
        return found

    def ranking_functions(self) -> tuple[Floats, Floats]:
        """U, and the mean over users of the weight of each column."""
        return self.basis, self.users.mean(axis=0)

    def validate(self) -> None:
        """Raise an error unless features, functions and users' weights have matching sizes."""
        _, columns = soundness.features("features", self.features)
        _, rank = soundness.numbers("basis", self.basis, columns, None)
        soundness.numbers("users", self.users, None, rank)
