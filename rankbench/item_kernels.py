"""Kernels between items, by name: linear, Gaussian, polynomial, or a matrix that is given."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.sparse

from rankbench.contract import Floats, Ints
from rankbench.errors import UserError
from rankbench.kernels import gram as gram_kernel
from rankbench.kernels import scoring as scoring_kernel

KernelName = Literal["linear", "gaussian", "polynomial", "precomputed"]
FITS = 8192  # items whose kernel matrix is kept whole: half a gigabyte
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

    def gram(self, features: Any, threads: int) -> Floats:
        """K between all these items."""
        if self.name == "precomputed":
            return dense(features)
        if self.name == "gaussian":
            features = _moved(features)
        products = _products(features, threads, whole=self.name != "gaussian")
        if self.name == "gaussian":
            gram_kernel.gaussian(products, self.width, threads)
        return self._powered(products)

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


@dataclass(frozen=True, eq=False)
class Shared:
    """Some users, the kernel matrix of the items that they rated (or of all), and each rating's row of it."""

    users: Ints
    gram: Floats
    items: Ints


def shared(
    kernel: ItemKernel, features: Any, indptr: Ints, items: Ints, users: Ints, threads: int, fits: int = FITS
) -> Iterator[Shared]:
    """The users with a kernel matrix that serves them: one over all items if it fits, else one for a group at a time.

    A group takes users in order as long as their items together fit; a single user who rated more than
    that has one of their own.
    """
    if features.shape[0] <= fits:
        yield Shared(users, kernel.gram(features, threads), items)
        return
    for group in _groups(indptr, items, users, features.shape[0], fits):
        rows = np.concatenate([np.arange(indptr[user], indptr[user + 1]) for user in group])
        rated = np.unique(items[rows])
        placed = np.zeros(len(items), np.int32)
        placed[rows] = np.searchsorted(rated, items[rows])
        yield Shared(group, kernel.gram_of(features, rated, threads), placed)


def dense(matrix: Any) -> Floats:
    """The matrix as a plain contiguous array."""
    return np.ascontiguousarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix)


def _groups(indptr: Ints, items: Ints, users: Ints, n_items: int, fits: int) -> Iterator[Ints]:
    """Runs of users whose items together are at most so many, or a single user."""
    seen, count, start = np.zeros(n_items, bool), 0, 0
    for place, user in enumerate(users):
        own = items[indptr[user] : indptr[user + 1]]
        new = int((~seen[own]).sum())
        if count + new > fits and place > start:
            yield users[start:place]
            seen[:], start, count, new = False, place, 0, len(own)
        seen[own] = True
        count += new
    if start < len(users):
        yield users[start:]


def _moved(features: Any) -> Any:
    """The features less the value that most items have, sparse, where that leaves little; distances stay what they are.

    So it is with the ratings of other reviewers, whose holes are all filled with one value each.
    """
    if scipy.sparse.issparse(features) or features.shape[1] < _WIDE or len(features) < _SAMPLE:
        return features
    common = np.median(features[:: len(features) // _SAMPLE], axis=0)
    if np.count_nonzero(features != common) > _SPARSE * features.size:
        return features
    return scipy.sparse.csr_array(features - common)


def _products(features: Any, threads: int, whole: bool) -> Floats:
    """X X^T, dense; not whole, up to the diagonal at least."""
    if scipy.sparse.issparse(features):
        return dense(features @ features.T)
    products: Floats = gram_kernel.linear(features, threads, whole)
    return products


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
