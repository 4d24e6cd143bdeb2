"""Kernel functions of item features by name: linear, Gaussian, polynomial, or a given kernel matrix."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.linalg
import scipy.sparse

from rankbench.core.contract import Floats, Int32s, Ints
from rankbench.core.errors import UserError
from rankbench.core.streams import stream
from rankbench.features.matrix import Features, Matrix, SparseFeatures, features_of

KernelName = Literal["linear", "gaussian", "polynomial", "precomputed"]
_WIDE, _SAMPLE, _SPARSE = 32, 101, 0.05  # `_moved`: fewest columns, sampled rows, largest share of other values
_ROUNDING = 1e-10  # negative eigenvalues up to this size, relative to the largest entry, are rounding errors


@dataclass(frozen=True)
class ItemKernel:
    """A kernel: x . x', exp(-|x - x'|^2 / (2 width^2)), (1 + x . x' / width^2)^degree, or a given matrix.

    With `precomputed`, the item features are the kernel matrix: a row and a column for every item.
    """

    name: KernelName
    width: float = 1.0
    degree: int = 2

    def points(self, matrix: Matrix) -> tuple[Matrix, Int32s]:
        """The distinct feature rows (moved in a way that keeps the kernel), and each item's row among them."""
        features = features_of(matrix)
        if self.name == "precomputed":
            return matrix, np.arange(features.shape[0], dtype=np.int32)
        found, rows = _distinct(_moved(features) if self.name == "gaussian" else features)
        return found.matrix, rows

    def gram(self, matrix: Matrix, threads: int) -> Floats:
        """The kernel matrix of all items in `matrix`."""
        return self._gram(features_of(matrix), threads)

    def gram_of(self, matrix: Matrix, items: Ints, threads: int) -> Floats:
        """The kernel matrix of the given items (row numbers of `matrix`)."""
        if self.name == "precomputed":
            return features_of(matrix[items][:, items]).dense()
        return self._gram(features_of(matrix).rows(items), threads)

    def between(self, matrix: Matrix, rows: Ints, columns: Ints) -> Floats:
        """The kernel of the items `rows` with the items `columns`; each value's bits depend on its two items alone."""
        if self.name == "precomputed":
            return features_of(matrix[rows][:, columns]).dense()
        features = features_of(matrix)
        left, right = features.rows(rows), features.rows(columns)
        products = left.products_with(right)
        if self.name == "gaussian":
            distances = np.maximum(0.0, left.squared_lengths()[:, None] + right.squared_lengths() - 2.0 * products)
            distances *= -0.5 / (self.width * self.width)
            values: Floats = np.exp(distances, out=distances)
            return values
        return self._powered(products)

    def check(self, given: Matrix | None, solver: str) -> None:
        """Refuse a precomputed kernel matrix that is not square, not symmetric or not positive semidefinite."""
        if self.name != "precomputed":
            return
        features = features_of(given)
        if features.shape[0] != features.shape[1]:
            raise UserError(
                f"{solver}: kernel=precomputed needs items x items, not {features.shape}: see kernel=linear"
            )
        matrix = features.dense()
        scale = float(np.abs(matrix).max(initial=0.0))
        if (asymmetry := float(np.abs(matrix - matrix.T).max(initial=0.0))) > _ROUNDING * scale:
            raise UserError(f"{solver}: the kernel matrix differs from its transpose by {asymmetry:.3g}: symmetrise it")
        if (least := _least_eigenvalue(matrix, _ROUNDING * scale * len(matrix))) is not None:
            raise UserError(
                f"{solver}: the kernel is not positive semidefinite: its smallest eigenvalue is {least:.3g}; "
                f"add {-least:.3g} to its diagonal, or use another kernel"
            )

    def _gram(self, features: Features, threads: int) -> Floats:
        if self.name == "precomputed":
            return features.dense()
        if self.name == "gaussian":
            return _moved(features).gaussian(self.width, threads)
        return self._powered(features.gram(threads))

    def _powered(self, products: Floats) -> Floats:
        """The kernel of these inner products, linear or polynomial, in place."""
        if self.name == "polynomial":
            products /= self.width * self.width
            products += 1.0
            base = products.copy()
            with np.errstate(over="ignore", invalid="ignore"):
                for _ in range(self.degree - 1):
                    products *= base
                finite = np.isfinite(products.sum())
            if not finite:
                raise UserError("the polynomial kernel overflows: scale the features, raise width or lower degree")
        return products


def _moved(features: Features) -> Features:
    """The features as a sparse matrix, minus each column's most frequent value, if few values differ from it.

    Distances between items stay the same. Ratings by reference reviewers are such features: the items that a
    reviewer did not rate all get the same value.
    """
    if isinstance(features, SparseFeatures) or features.shape[1] < _WIDE or features.shape[0] < _SAMPLE:
        return features
    values = features.matrix
    common = np.median(values[:: len(values) // _SAMPLE], axis=0)
    other = values != common
    if np.count_nonzero(other) > _SPARSE * values.size:
        return features
    rows, columns = np.divmod(np.flatnonzero(other), values.shape[1])
    starts = np.searchsorted(rows, np.arange(len(values) + 1))
    moved = scipy.sparse.csr_array((values[rows, columns] - common[columns], columns, starts), values.shape)
    return SparseFeatures(moved)


def _distinct(features: Features) -> tuple[Features, Int32s]:
    """The distinct rows in order of appearance, and the number of each original row among them.

    Rows are grouped by their product with a random vector and then compared in full; if two different rows happen
    to have the same product, all rows are kept.
    """
    n, probe = features.shape[0], stream(0, "distinct").standard_normal(features.shape[1])
    _, first, which = np.unique(features.projections(probe), return_index=True, return_inverse=True)
    order = np.argsort(first)
    found, rows = features.rows(first[order]), np.argsort(order)[which].astype(np.int32)
    if len(first) == n or not features.equals(found.rows(rows)):
        return features, np.arange(n, dtype=np.int32)
    return found, rows


def _least_eigenvalue(matrix: Floats, rounding: float) -> float | None:
    """The smallest eigenvalue if it is negative beyond rounding, else None; a cheap Cholesky is tried first."""
    if len(matrix) == 0 or not matrix.any():
        return None
    try:
        scipy.linalg.cholesky(matrix + rounding * np.eye(len(matrix)), overwrite_a=True, check_finite=False)
        return None
    except np.linalg.LinAlgError:
        least = float(scipy.linalg.eigvalsh(matrix, subset_by_index=[0, 0])[0])
        return least if least < -rounding else None
