"""Kernels between items, by name: linear, Gaussian, polynomial, or a matrix that is given."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.sparse

from rankbench.contract import Floats, Ints
from rankbench.errors import UserError
from rankbench.kernels import gram as gram_kernel
from rankbench.kernels import scoring as scoring_kernel
from rankbench.streams import stream

KernelName = Literal["linear", "gaussian", "polynomial", "precomputed"]
_WIDE, _SAMPLE, _SPARSE = 32, 101, 0.05  # columns, rows to guess from, and share of other values to move features for
_ROUNDING = 1e-10  # an eigenvalue so far below zero, against the largest entry, is rounding


@dataclass(frozen=True)
class ItemKernel:
    """K(x, x'): x . x', exp(-|x - x'|^2 / (2 width^2)), (1 + x . x' / width^2)^degree, or the features themselves.

    Precomputed, the item features are the kernel matrix: a row and a column for every item.
    """

    name: KernelName
    width: float = 1.0
    degree: int = 2

    def points(self, features: Any) -> tuple[Any, Ints]:
        """Features of those items that differ, which give the same kernel, and of each item which of these it is."""
        if self.name == "precomputed":
            return features, np.arange(features.shape[0], dtype=np.int32)
        return _distinct(_moved(features) if self.name == "gaussian" else features)

    def gram(self, features: Any, threads: int) -> Floats:
        """K between all these items."""
        if self.name == "precomputed":
            return dense(features)
        if self.name == "gaussian":
            return _gaussian(_moved(features), self.width, threads)
        return self._powered(_products(features, threads))

    def gram_of(self, features: Any, items: Ints, threads: int) -> Floats:
        """K between the items of these rows."""
        if self.name == "precomputed":
            return dense(features[items][:, items])
        return self.gram(features[items], threads)

    def between(self, features: Any, rows: Ints, columns: Ints) -> Floats:
        """K of the items of these rows with those of these columns; a value's bits depend on its two items alone."""
        if self.name == "precomputed":
            return dense(features[rows][:, columns])
        left, right = features[rows], features[columns]
        products = _products_of(left, right)
        if self.name == "gaussian":
            distances = np.maximum(0.0, _squares(left)[:, None] + _squares(right) - 2.0 * products)
            distances *= -0.5 / (self.width * self.width)
            values: Floats = np.exp(distances, out=distances)
            return values
        return self._powered(products)

    def check(self, features: Any, solver: str) -> None:
        """An error unless features given as a kernel matrix are one: square, symmetric, no eigenvalue below 0."""
        if self.name != "precomputed":
            return
        if features.shape[0] != features.shape[1]:
            raise UserError(
                f"{solver}: kernel=precomputed needs items x items, not {features.shape}: see kernel=linear"
            )
        matrix = dense(features)
        scale = float(np.abs(matrix).max(initial=0.0))
        if (asymmetry := float(np.abs(matrix - matrix.T).max(initial=0.0))) > _ROUNDING * scale:
            raise UserError(f"{solver}: the kernel matrix differs from its transpose by {asymmetry:.3g}: symmetrise it")
        if (least := _least_eigenvalue(matrix, _ROUNDING * scale * len(matrix))) is not None:
            raise UserError(
                f"{solver}: the kernel is not positive semidefinite: its smallest eigenvalue is {least:.3g}; "
                f"add {-least:.3g} to its diagonal, or use another kernel"
            )

    def _powered(self, products: Floats) -> Floats:
        """The products as they are, or through the polynomial, in place."""
        if self.name == "polynomial":
            products /= self.width * self.width
            products += 1.0
            base = products.copy()
            for _ in range(self.degree - 1):
                products *= base
        return products


def dense(matrix: Any) -> Floats:
    """The matrix as a plain contiguous array."""
    return np.ascontiguousarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix)


def _moved(features: Any) -> Any:
    """The features less the value that most items have, sparse, where that leaves little; distances stay what they are.

    So it is with the ratings of other reviewers, whose holes are all filled with one value each.
    """
    if scipy.sparse.issparse(features) or features.shape[1] < _WIDE or len(features) < _SAMPLE:
        return features
    common = np.median(features[:: len(features) // _SAMPLE], axis=0)
    other = features != common
    if np.count_nonzero(other) > _SPARSE * features.size:
        return features
    rows, columns = np.divmod(np.flatnonzero(other), features.shape[1])
    starts = np.searchsorted(rows, np.arange(len(features) + 1))
    return scipy.sparse.csr_array((features[rows, columns] - common[columns], columns, starts), features.shape)


def _distinct(features: Any) -> tuple[Any, Ints]:
    """The rows that differ, in the order in which they appear, and of each row which of these it is.

    Rows are told apart by their products with a random vector, and then compared: if chance has it that two
    that differ have the same product, all rows are left as they are.
    """
    n, probe = features.shape[0], stream(0, "distinct").standard_normal(features.shape[1])
    marks = features @ probe if scipy.sparse.issparse(features) else np.einsum("ij,j->i", features, probe)
    _, first, which = np.unique(marks, return_index=True, return_inverse=True)
    order = np.argsort(first)
    found, rows = features[first[order]], np.argsort(order)[which].astype(np.int32)
    if len(first) == n or _differ(features, found[rows]):
        return features, np.arange(n, dtype=np.int32)
    return found, rows


def _differ(left: Any, right: Any) -> bool:
    """Whether any value differs."""
    return bool((left != right).nnz if scipy.sparse.issparse(left) else not np.array_equal(left, right))


def _gaussian(features: Any, width: float, threads: int) -> Floats:
    if scipy.sparse.issparse(features):
        return gram_kernel.sparse_gaussian(*_compressed(features), *_compressed(features.T), width, threads)
    products = gram_kernel.linear(features, threads, whole=False)
    gram_kernel.gaussian(products, width, threads)
    return products


def _compressed(features: Any) -> tuple[Ints, Ints, Floats]:
    """Where each row begins, its columns and its values, no column twice."""
    matrix = scipy.sparse.csr_array(features)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.float64)


def _products(features: Any, threads: int) -> Floats:
    """X X^T, dense."""
    if scipy.sparse.issparse(features):
        return dense(features @ features.T)
    return gram_kernel.linear(features, threads)


def _products_of(left: Any, right: Any) -> Floats:
    """The inner products of all rows of both, each summed in order."""
    if scipy.sparse.issparse(left):
        return dense(left @ right.T)
    out = np.empty((len(left), len(right)))
    scoring_kernel.products(left, np.arange(len(left), dtype=np.int32), right, out, 1)
    return out


def _squares(features: Any) -> Floats:
    """Each row's squared length."""
    if scipy.sparse.issparse(features):
        return np.asarray(features.multiply(features).sum(axis=1)).ravel()
    squares: Floats = np.einsum("ij,ij->i", features, features)
    return squares


def _least_eigenvalue(matrix: Floats, rounding: float) -> float | None:
    """The smallest eigenvalue, if it is negative beyond rounding; a Cholesky factor settles the rest cheaply."""
    if len(matrix) == 0 or not matrix.any():
        return None
    try:
        scipy.linalg.cholesky(matrix + rounding * np.eye(len(matrix)), overwrite_a=True, check_finite=False)
        return None
    except np.linalg.LinAlgError:
        least = float(scipy.linalg.eigvalsh(matrix, subset_by_index=[0, 0])[0])
        return least if least < -rounding else None
