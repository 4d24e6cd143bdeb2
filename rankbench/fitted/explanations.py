"""Why a model scores an item so for a user: the parts of the score, which add up to it.

Of weights between items the parts are the user's own items, each with its weight: exactly what the model adds. A linear
function of features has a part for each feature. A vector u of a factor model is written as a sum of the vectors of
the user's items, u = sum_j c_j v_j + r with the smallest c: each item adds c_j v_j . v, and r . v is the rest.
Solvers with a penalty on u and a loss of u . v_j end with r = 0, since their optimum is such a sum.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from rankbench.core.contract import Floats, Ints
from rankbench.core.errors import UserError
from rankbench.models import Factors, FeatureFactors, ItemScores, ItemWeights, Stumps, UserWeights

EVERYONE, USER, REST = "the item itself, for every user", "the user's own level, for every item", "the rest"


@dataclass(frozen=True, eq=False)
class Parts:
    """What adds up to a score: so much by each of these items or features, and so much by what is named."""

    kind: str  # what the numbers are of: item or feature
    numbers: Ints
    values: Floats
    others: Mapping[str, float]

    def strongest(self, k: int) -> "Parts":
        """The k that add most; those that add nothing, or take away, are with the others."""
        best = np.argsort(-self.values, kind="stable")[:k]
        best = best[self.values[best] > 0]
        left = {f"all other {self.kind}s": float(self.values.sum() - self.values[best].sum())}
        others = {name: value for name, value in {**self.others, **left}.items() if value}
        return Parts(self.kind, self.numbers[best], self.values[best], others)


Explaining = Callable[[int], Parts]  # the parts of an item's score


def explaining(model: Any, user: int, own: Ints) -> Explaining:
    """A function that gives the parts of an item's score for this user, who has these items of the training part."""
    if type(model) not in _WAYS:
        known = ", ".join(kind.__name__ for kind in _WAYS)
        raise UserError(f"the scores of a {type(model).__name__} do not fall into parts", remedy=f"those of {known} do")
    found: Explaining = _WAYS[type(model)](model, user, own)
    return found


def _of_weights(model: ItemWeights, user: int, own: Ints) -> Explaining:
    """The items that the user rated, each with its value times its weight."""
    mine = slice(model.indptr[user], model.indptr[user + 1])
    rated, values = model.rated[mine], model.values[mine]
    known = np.flatnonzero(~np.isnan(model.offsets))[::-1]  # an item without a score has a row of another
    items = np.full(model.weights.shape[0], -1)
    items[model.columns[known]] = known  # the first item of each row

    def parts(item: int) -> Parts:
        column = model.weights[rated][:, [model.columns[item]]]
        weights = column.toarray() if scipy.sparse.issparse(column) else column
        return Parts("item", items[rated], values * weights.ravel(), {EVERYONE: float(model.offsets[item])})

    return parts


def _of_factors(model: Factors, user: int, own: Ints) -> Explaining:
    """The items that the user has, by the smallest sum of their vectors that is nearest to the user's."""
    of_items = _constant(model.users)
    of_users = _constant(model.items) & ~of_items
    free = ~(of_items | of_users)
    known = own[np.isfinite(model.items[own]).all(axis=1)]
    vectors, wanted = model.items[known][:, free], model.users[user, free]
    shares = np.linalg.lstsq(vectors.T, wanted)[0] if len(known) else np.zeros(0)
    rest = wanted - shares @ vectors

    def parts(item: int) -> Parts:
        vector = model.items[item]
        others = {
            EVERYONE: float(model.users[user, of_items] @ vector[of_items]),
            USER: float(model.users[user, of_users] @ vector[of_users]),
            REST: float(rest @ vector[free]),
        }
        return Parts("item", known, shares * (vectors @ vector[free]), others)

    return parts


def _constant(vectors: Floats) -> Any:
    """The columns that are the same in all vectors, as those that biases have."""
    known = vectors[np.isfinite(vectors).all(axis=1)]
    return (known == known[:1]).all(axis=0) if len(known) > 1 else np.zeros(vectors.shape[1], np.bool_)


def _dense_row(features: Any, item: int) -> Floats:
    """The features of an item, all of them."""
    row = features[[item]]
    values: Floats = row.toarray().ravel() if scipy.sparse.issparse(row) else np.ravel(row)
    return values


def _of_linear(weights: Floats, features: Any, offset: float) -> Explaining:
    """The item's features, each times its weight."""

    def parts(item: int) -> Parts:
        values = _dense_row(features, item)
        used = np.flatnonzero(values)
        return Parts("feature", used, values[used] * weights[used], {USER: offset} if offset else {})

    return parts


def _of_user_weights(model: UserWeights, user: int, own: Ints) -> Explaining:
    return _of_linear(model.weights[user], model.features, float(model.offsets[user]))


def _of_feature_factors(model: FeatureFactors, user: int, own: Ints) -> Explaining:
    return _of_linear(model.basis @ model.users[user], model.features, 0.0)


def _of_stumps(model: Stumps, user: int, own: Ints) -> Explaining:
    """The features on which the user has thresholds that the item passes."""
    row = model.rows[user]

    def parts(item: int) -> Parts:
        values = _dense_row(model.item_features, item)
        passed = values[model.features[row]] > model.cuts[row]
        sums = np.bincount(model.features[row][passed], model.weights[row][passed], len(values))
        used = np.unique(model.features[row][passed])
        return Parts("feature", used, sums[used], {USER: float(model.offsets[row])})

    return parts


def _of_item_scores(model: ItemScores, user: int, own: Ints) -> Explaining:
    """Nothing but the item itself: every user has the same scores."""
    none: Ints = np.zeros(0, np.int64)
    return lambda item: Parts("item", none, np.zeros(0), {EVERYONE: float(model.scores[item])})


_WAYS: dict[type, Any] = {
    ItemWeights: _of_weights,
    Factors: _of_factors,
    UserWeights: _of_user_weights,
    FeatureFactors: _of_feature_factors,
    Stumps: _of_stumps,
    ItemScores: _of_item_scores,
}
