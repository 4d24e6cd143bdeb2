"""Item features, dense or sparse, with the products that solvers and item kernels take of them.

Views and models hold plain arrays (`Matrix`). `features_of` wraps a matrix in one of two classes with the same
methods, so that callers need not distinguish dense from sparse.
"""

from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
import scipy.sparse

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Floats, Int32s, Int64s, Ints
from rankbench.features.single import as_doubles
from rankbench.kernels.models import gram as gram_kernel
from rankbench.kernels.models import scoring as scoring_kernel
from rankbench.kernels.shared.rows import SparseRows

Matrix: TypeAlias = Floats | scipy.sparse.csr_array  # a row per item


@dataclass(frozen=True, eq=False)
class _Products:
    """What dense and sparse features have in common."""

    matrix: Any

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of items and features."""
        n_items, n_features = self.matrix.shape
        return int(n_items), int(n_features)

    @property
    def stored(self) -> Any:
        """All stored values as a vector."""
        ...

    @property
    def square_sum(self) -> float:
        """The sum of the squares of all values."""
        return float(np.vdot(self.stored, self.stored))

    def times(self, other: Floats) -> Floats:
        """X times a vector, or a matrix with a row per feature."""
        return np.ascontiguousarray(self.matrix @ other)

    def transposed_times(self, other: Floats) -> Floats:
        """X^T times a vector, or a matrix with a row per item."""
        return np.asarray(self.matrix.T @ other)

    def rows(self, items: Ints) -> Self:
        """The features of these items."""
        return type(self)(self.matrix[items])

    def squared(self) -> Self:
        """The square of every value."""
        return type(self)(self.matrix**2)


@dataclass(frozen=True, eq=False)
class DenseFeatures(_Products):
    """Item features in a plain array, a row per item."""

    matrix: Floats

    @property
    def stored(self) -> Floats:
        """All stored values as a vector."""
        return self.matrix.ravel()

    def combined(self, weights: scipy.sparse.csr_array) -> Floats:
        """The product of a sparse matrix, with a column per item, and X."""
        return np.ascontiguousarray(weights @ self.matrix)

    def at(self, items: Ints, columns: Ints) -> Floats:
        """The value of one feature for each of these items."""
        return self.matrix[items, columns]

    def dense(self) -> Floats:
        """X as a plain contiguous array."""
        return np.ascontiguousarray(self.matrix)

    def projections(self, vector: Floats) -> Floats:
        """Each row's product with a vector; the bits do not depend on the row's position."""
        products: Floats = np.einsum("ij,j->i", self.matrix, vector)
        return products

    def squared_lengths(self) -> Floats:
        """Each row's squared Euclidean norm."""
        squares: Floats = np.einsum("ij,ij->i", self.matrix, self.matrix)
        return squares

    def products_with(self, other: "Features") -> Floats:
        """The inner products of all rows with all rows of `other`, summed in the order of the features."""
        right = other.dense()
        out, chosen = np.empty((len(self.matrix), len(right))), np.arange(len(self.matrix), dtype=np.int32)
        scoring_kernel.products(rows=self.matrix, chosen=chosen, columns=right, out=out, threads=1)
        return out

    @one_blas_thread()
    def gram(self, threads: int) -> Floats:
        """The Gram matrix X X^T."""
        return gram_kernel.linear(features=self.matrix, threads=threads)

    @one_blas_thread()
    def gaussian(self, width: float, threads: int) -> Floats:
        """The Gaussian kernel matrix exp(-|x - x'|^2 / (2 width^2)) of all rows x and x'."""
        products = gram_kernel.linear(features=self.matrix, threads=threads, whole=False)
        gram_kernel.gaussian(products=products, width=width, threads=threads)
        return products

    def equals(self, other: "Features") -> bool:
        """Whether `other` is equal, entry by entry."""
        return np.array_equal(self.matrix, other.dense())


@dataclass(frozen=True, eq=False)
class SparseFeatures(_Products):
    """Item features in compressed sparse rows, a row per item."""

    matrix: scipy.sparse.csr_array

    @property
    def stored(self) -> Floats:
        """All stored values as a vector."""
        return np.asarray(self.matrix.data)

    def combined(self, weights: scipy.sparse.csr_array) -> Floats:
        """The product of a sparse matrix, with a column per item, and X."""
        return np.ascontiguousarray((weights @ self.matrix).toarray())

    def at(self, items: Ints, columns: Ints) -> Floats:
        """The value of one feature for each of these items."""
        return np.asarray(self.matrix[items, columns]).ravel()

    def dense(self) -> Floats:
        """X as a plain contiguous array."""
        return np.ascontiguousarray(self.matrix.toarray())

    def projections(self, vector: Floats) -> Floats:
        """Each row's product with a vector; the bits do not depend on the row's position."""
        return np.asarray(self.matrix @ vector)

    def squared_lengths(self) -> Floats:
        """Each row's squared Euclidean norm."""
        return np.asarray(self.matrix.multiply(self.matrix).sum(axis=1)).ravel()

    def products_with(self, other: "Features") -> Floats:
        """The inner products of all rows with all rows of `other`, summed in the order of the features."""
        return np.ascontiguousarray((self.matrix @ scipy.sparse.csr_array(other.matrix).T).toarray())

    def gram(self, threads: int) -> Floats:
        """The Gram matrix X X^T."""
        return self.products_with(self)

    def gaussian(self, width: float, threads: int) -> Floats:
        """The Gaussian kernel matrix exp(-|x - x'|^2 / (2 width^2)) of all rows x and x'."""
        rows, columns = (
            SparseRows(indptr=indptr, columns=ids, values=values)
            for indptr, ids, values in (self.compressed(), self.compressed_columns())
        )
        return gram_kernel.sparse_gaussian(rows=rows, columns=columns, width=width, threads=threads)

    def equals(self, other: "Features") -> bool:
        """Whether `other` is equal, entry by entry."""
        return not (self.matrix != scipy.sparse.csr_array(other.matrix)).nnz

    def compressed(self) -> tuple[Int64s, Int32s, Floats]:
        """The CSR arrays for the kernels: row pointers, ascending columns and values."""
        return _compressed(self.matrix)

    def compressed_columns(self) -> tuple[Int64s, Int32s, Floats]:
        """The CSC arrays for the kernels: column pointers, ascending rows and values."""
        return _compressed(self.matrix.T)


Features: TypeAlias = DenseFeatures | SparseFeatures


def features_of(matrix: Matrix | None) -> Features:
    """The wrapper of a dense or sparse feature matrix, in double precision; a TypeError if there is none."""
    if matrix is None:
        raise TypeError("there are no item features: a solver that uses them must declare needs_features")
    matrix = as_doubles(matrix)
    if not scipy.sparse.issparse(matrix):
        return DenseFeatures(matrix)
    return SparseFeatures(matrix if isinstance(matrix, scipy.sparse.csr_array) else scipy.sparse.csr_array(matrix))


def canonical(matrix: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """The matrix with ascending columns in each row and each of them once; it is copied if it was not so."""
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _compressed(matrix: scipy.sparse.csr_array) -> tuple[Int64s, Int32s, Floats]:
    rows = canonical(scipy.sparse.csr_array(matrix))
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float64)
