"""What solvers of weights between items share: the users' rows as they enter the weights, and the model."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.sparse

from rankbench.core.contract import Floats, Int32s, Model
from rankbench.data.by_item import by_columns, counted
from rankbench.data.views import Ratings
from rankbench.kernels.shared.rows import SparseRows
from rankbench.kernels.solvers import item_knn as kernel
from rankbench.methods.folding import check_items, own
from rankbench.methods.tasks import targets
from rankbench.models import ItemWeights

Values = Literal[
    "binary", "ratings", "centred"
]  # what a rating counts: 1, its value, or its value less the user's mean


@dataclass(frozen=True, eq=False)
class Interactions:
    """The ratings as they enter weights between items, with the items that have a rating numbered from 0."""

    ratings: Ratings  # with the numbers in place of the items, one at least, so that weights are never empty
    columns: Int32s  # each item's number; 0 for an item without a rating
    known: Int32s  # the items with a rating, ascending

    @classmethod
    def of(cls, train: Ratings, values: Values, least: float | None) -> "Interactions":
        """The ratings of at least `least`, each with its value as said by `values`."""
        known = np.flatnonzero(counted(train.items, train.n_items)).astype(np.int32)
        columns = np.zeros(train.n_items, np.int32)
        columns[known] = np.arange(len(known), dtype=np.int32)
        return cls(_numbered(train, columns, max(1, len(known)), values, least), columns, known)

    def model(self, weights: object) -> ItemWeights:
        """The model with these weights, dense or CSR, between the items that have a rating."""
        offsets = np.full(len(self.columns), np.nan)
        offsets[self.known] = 0.0
        rows = self.ratings
        return ItemWeights(rows.indptr, rows.items, rows.values, weights, self.columns, offsets)

    def gram(self, threads: int) -> Floats:
        """X^T X, items x items, of the users' rows X."""
        products = np.empty((self.ratings.n_items, self.ratings.n_items))
        kernel.gram(users=self.ratings.rows, items=_by_item(self.ratings), out=products, threads=threads)
        return products

    def sparse_gram(self) -> scipy.sparse.csc_array:
        """X^T X by columns, only the entries of items that share a user."""
        rows = self.ratings
        matrix = scipy.sparse.csr_array((rows.values, rows.items, rows.indptr), (rows.n_users, rows.n_items))
        return matrix.T @ matrix

    def norms(self) -> Floats:
        """The Euclidean norm of each item's column."""
        squares = np.bincount(self.ratings.items, self.ratings.values**2, self.ratings.n_items)
        return np.sqrt(squares)


def nearest_items(rows: Ratings, norms: Floats, shrink: float, neighbours: int, threads: int) -> scipy.sparse.csr_array:
    """In row i the `neighbours` items j of the highest x_i . x_j / (norm_i norm_j + shrink) above 0, and these numbers.

    x_i is the column of item i. Of equal numbers those of the items that are first in the catalogue are kept.
    """
    size = rows.n_items
    room = min(neighbours, max(0, size - 1))
    nearest, similarities = np.empty((size, room), np.int32), np.empty((size, room))
    kernel.neighbours(
        users=rows.rows,
        items=_by_item(rows),
        norms=norms,
        shrink=shrink,
        out=nearest,
        similarities=similarities,
        threads=threads,
    )
    items, places = np.nonzero(nearest >= 0)
    entries = similarities[items, places], (items, nearest[items, places])
    weights = scipy.sparse.csr_array(entries, (size, size))
    weights.sum_duplicates()
    return weights


def _by_item(rows: Ratings) -> SparseRows:
    """The transpose of the users' rows."""
    return by_columns(rows.indptr, rows.items, rows.values, rows.n_items)


def with_users(model: Model, ratings: Ratings, values: Values, least: float | None) -> ItemWeights:
    """The model of the users of these ratings alone, with the weights as they are."""
    fitted = own(model, ItemWeights)
    check_items(ratings, len(fitted.columns))
    known = ratings.where(~np.isnan(fitted.offsets[ratings.items]))
    rows = _numbered(known, fitted.columns, fitted.weights.shape[0], values, least)
    return replace(fitted, indptr=rows.indptr, rated=rows.items, values=rows.values)


def _numbered(train: Ratings, columns: Int32s, size: int, values: Values, least: float | None) -> Ratings:
    """The ratings of at least `least` as they enter the weights: of `size` items, each by its number in `columns`."""
    kept = train.at_least(least)
    entries = np.ones(len(kept)) if values == "binary" else targets(kept, "user" if values == "centred" else "none")
    bare = replace(kept, item_ids=None, item_features=None, folds=None)
    return replace(bare, items=columns[kept.items], values=entries, n_items=size)
