"""Item features, dense or sparse, with the products that solvers and item kernels take of them.

Views and models hold plain arrays (`Matrix`); whoever computes with one wraps it by `features_of` and need not ask
again which of both it is.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse

from rankbench.contract import Floats, Int32s, Int64s, Ints
from rankbench.kernels.models import gram as gram_kernel
from rankbench.kernels.models import scoring as scoring_kernel
from rankbench.kernels.shared.rows import SparseRows

Matrix: TypeAlias = Floats | scipy.sparse.csr_array  # a row per item


@dataclass(frozen=True, eq=False)
class DenseFeatures:
    """Item features in a plain array, a row per item."""

    matrix: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """How many items and features there are."""
        return len(self.matrix), self.matrix.shape[1]

    @property
    def stored(self) -> Floats:
        """All values that are stored, as a vector."""
        return self.matrix.ravel()

    def times(self, other: Floats) -> Floats:
        """X times a vector, or a matrix with a row per feature."""
        return np.ascontiguousarray(self.matrix @ other)

    def transposed_times(self, other: Floats) -> Floats:
        """X^T times a vector, or a matrix with a row per item."""
        return np.asarray(self.matrix.T @ other)

    def combined(self, weights: scipy.sparse.csr_array) -> Floats:
        """The rows of a sparse matrix with a column per item, times X."""
        return np.ascontiguousarray(weights @ self.matrix)

    def rows(self, items: Ints) -> "DenseFeatures":
        """The features of these items."""
        return DenseFeatures(self.matrix[items])

    def at(self, items: Ints, columns: Ints) -> Floats:
        """The value of one feature for each of these items."""
        return self.matrix[items, columns]

    def squared(self) -> "DenseFeatures":
        """The square of every value."""
        return DenseFeatures(self.matrix**2)

    def dense(self) -> Floats:
        """X as a plain contiguous array."""
        return np.ascontiguousarray(self.matrix)

    def projections(self, vector: Floats) -> Floats:
        """Each row's product with a vector; its bits depend on the row alone, not on where the row stands."""
        products: Floats = np.einsum("ij,j->i", self.matrix, vector)
        return products

    def squared_lengths(self) -> Floats:
        """Each row's product with itself."""
        squares: Floats = np.einsum("ij,ij->i", self.matrix, self.matrix)
        return squares

    def products_with(self, other: "Features") -> Floats:
        """The inner product of each row with each row of others, summed in the order of the features."""
        right = other.dense()
        out, chosen = np.empty((len(self.matrix), len(right))), np.arange(len(self.matrix), dtype=np.int32)
        scoring_kernel.products(rows=self.matrix, chosen=chosen, columns=right, out=out, threads=1)
        return out

    def gram(self, threads: int) -> Floats:
        """X X^T."""
        return gram_kernel.linear(features=self.matrix, threads=threads)

    def gaussian(self, width: float, threads: int) -> Floats:
        """exp(-|x - x'|^2 / (2 width^2)) for all rows x and x'."""
        products = gram_kernel.linear(features=self.matrix, threads=threads, whole=False)
        gram_kernel.gaussian(products=products, width=width, threads=threads)
        return products

    def equals(self, other: "Features") -> bool:
        """Whether others have the same values, each in its place."""
        return np.array_equal(self.matrix, other.dense())


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """Item features in compressed sparse rows, a row per item."""

    matrix: scipy.sparse.csr_array

    @property
    def shape(self) -> tuple[int, int]:
        """How many items and features there are."""
        n_items, n_features = self.matrix.shape
        return int(n_items), int(n_features)

    @property
    def stored(self) -> Floats:
        """All values that are stored, as a vector."""
        return np.asarray(self.matrix.data)

    def times(self, other: Floats) -> Floats:
        """X times a vector, or a matrix with a row per feature."""
        return np.ascontiguousarray(self.matrix @ other)

    def transposed_times(self, other: Floats) -> Floats:
        """X^T times a vector, or a matrix with a row per item."""
        return np.asarray(self.matrix.T @ other)

    def combined(self, weights: scipy.sparse.csr_array) -> Floats:
        """The rows of a sparse matrix with a column per item, times X."""
        return np.ascontiguousarray((weights @ self.matrix).toarray())

    def rows(self, items: Ints) -> "SparseFeatures":
        """The features of these items."""
        return SparseFeatures(self.matrix[items])

    def at(self, items: Ints, columns: Ints) -> Floats:
        """The value of one feature for each of these items."""
        return np.asarray(self.matrix[items, columns]).ravel()

    def squared(self) -> "SparseFeatures":
        """The square of every value."""
        return SparseFeatures(self.matrix**2)

    def dense(self) -> Floats:
        """X as a plain contiguous array."""
        return np.ascontiguousarray(self.matrix.toarray())

    def projections(self, vector: Floats) -> Floats:
        """Each row's product with a vector; its bits depend on the row alone, not on where the row stands."""
        return np.asarray(self.matrix @ vector)

    def squared_lengths(self) -> Floats:
        """Each row's product with itself."""
        return np.asarray(self.matrix.multiply(self.matrix).sum(axis=1)).ravel()

    def products_with(self, other: "Features") -> Floats:
        """The inner product of each row with each row of others, summed in the order of the features."""
        return np.ascontiguousarray((self.matrix @ scipy.sparse.csr_array(other.matrix).T).toarray())

    def gram(self, threads: int) -> Floats:
        """X X^T."""
        return self.products_with(self)

    def gaussian(self, width: float, threads: int) -> Floats:
        """exp(-|x - x'|^2 / (2 width^2)) for all rows x and x'."""
        rows, columns = (
            SparseRows(indptr=indptr, columns=ids, values=values)
            for indptr, ids, values in (self.compressed(), self.compressed_columns())
        )
        return gram_kernel.sparse_gaussian(rows=rows, columns=columns, width=width, threads=threads)

    def equals(self, other: "Features") -> bool:
        """Whether others have the same values, each in its place."""
        return not (self.matrix != scipy.sparse.csr_array(other.matrix)).nnz

    def compressed(self) -> tuple[Int64s, Int32s, Floats]:
        """Where each row begins, its columns in ascending order and their values, for the kernels."""
        return _compressed(self.matrix)

    def compressed_columns(self) -> tuple[Int64s, Int32s, Floats]:
        """Where each column begins, its rows in ascending order and their values, for the kernels."""
        return _compressed(self.matrix.T)


Features: TypeAlias = DenseFeatures | SparseFeatures


def features_of(matrix: Matrix | None) -> Features:
    """The features that a plain or sparse array holds; whoever asks has made sure that there are some."""
    if matrix is None:
        raise TypeError("no item features: a solver that needs none must not ask for them")
    if not scipy.sparse.issparse(matrix):
        return DenseFeatures(matrix)
    return SparseFeatures(matrix if isinstance(matrix, scipy.sparse.csr_array) else scipy.sparse.csr_array(matrix))


def _compressed(matrix: scipy.sparse.csr_array) -> tuple[Int64s, Int32s, Floats]:
    rows = scipy.sparse.csr_array(matrix)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float64)
