"""MPRank: magnitude-preserving ranking in closed form, one function of item features per user (Cortes et al. 2007)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import scipy.sparse

from rankbench.contract import Determinism, Floats, Ints, Step
from rankbench.data.views import Ratings
from rankbench.errors import UserError
from rankbench.kernels import gram as gram_kernel
from rankbench.kernels import mprank as kernel
from rankbench.models import KernelScores, UserWeights
from rankbench.specs import Limits, check


@dataclass(frozen=True)
class MPRank:
    """A function of item features per user that preserves differences of ratings, in closed form.

    min_w |w|^2 + C/m^2 sum_ij ((h(x_j) - h(x_i)) - (y_j - y_i))^2 per user, h(x) = w . phi(x). The pair
    sum is 2m sum_i r_i^2 - 2 (sum_i r_i)^2 of the residuals r = h - y, which is 2m times their centred
    sum of squares; so the problem is ridge regression on centred features and targets with
    alpha=m/(2C), and has the primal w = (X_c X_c^T + alpha I)^-1 X_c y_c and, by the push-through
    identity, the dual w = X_c (X_c^T X_c + alpha I)^-1 y_c. (Eq. 28 prints the primal's matrix in the
    dual.) `form` says which is solved: auto takes the smaller system for each user; the Gaussian kernel
    exp(-|x-x'|^2/(2 width^2)) has the dual only. Scores are defined up to a constant per user, chosen
    so that they have the mean of the user's ratings. Users with fewer than two ratings have no order to
    learn from, and score NaN.
    """

    C: Annotated[float, Limits(above=0)] = 1.0
    kernel: Literal["linear", "gaussian"] = "linear"
    width: Annotated[float, Limits(above=0)] = 1.0
    form: Literal["auto", "primal", "dual"] = "auto"
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1

    def __post_init__(self) -> None:
        check(self)
        if self.kernel == "gaussian" and self.form == "primal":
            raise UserError("MPRank: form=primal needs kernel=linear (a Gaussian kernel has the dual only)")

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The one model there is."""
        users = np.flatnonzero(np.diff(train.indptr) >= 2).astype(np.int32)
        if self.kernel == "gaussian":
            gram = _products(train.item_features, threads)
            gram_kernel.gaussian(gram, self.width, threads)
            yield Step(KernelScores(gram, train.indptr, train.items, *self._dual(gram, train, users, threads)))
        else:
            yield Step(UserWeights(train.item_features, *self._linear(train, users, threads)))

    def _linear(self, train: Ratings, users: Ints, threads: int) -> tuple[Floats, Floats]:
        """Weights and offsets, each user's from the smaller of the two systems."""
        n_features = train.item_features.shape[1]
        by_primal = self._takes_primal(n_features, np.diff(train.indptr)[users])
        weights, offsets = self._primal(train, users[by_primal], threads)
        if not by_primal.all():
            gram = _products(train.item_features, threads)
            coefficients, dual_offsets = self._dual(gram, train, users[~by_primal], threads)
            expansion = scipy.sparse.csr_array(
                (coefficients, train.items, train.indptr), (train.n_users, train.n_items)
            )
            dual_weights = expansion @ train.item_features
            weights[users[~by_primal]] = _dense(dual_weights)[users[~by_primal]]
            offsets[users[~by_primal]] = dual_offsets[users[~by_primal]]
        return weights, offsets

    def _takes_primal(self, n_features: int, ratings: Ints) -> np.ndarray[Any, np.dtype[np.bool_]]:
        if self.form == "auto":
            return n_features <= ratings
        return np.full(len(ratings), self.form == "primal")

    def _primal(self, train: Ratings, users: Ints, threads: int) -> tuple[Floats, Floats]:
        weights = np.full((train.n_users, train.item_features.shape[1]), np.nan)
        offsets = np.full(train.n_users, np.nan)
        if len(users):
            rows = (train.indptr, train.items, train.values)
            _succeed(kernel.primal(_dense(train.item_features), *rows, users, self.C, weights, offsets, threads))
        return weights, offsets

    def _dual(self, gram: Floats, train: Ratings, users: Ints, threads: int) -> tuple[Floats, Floats]:
        coefficients = np.zeros(len(train))
        offsets = np.full(train.n_users, np.nan)
        if len(users):
            rows = (train.indptr, train.items, train.values)
            _succeed(kernel.dual(gram, *rows, users, self.C, coefficients, offsets, threads))
        return coefficients, offsets


def _products(features: Any, threads: int) -> Floats:
    """X X^T, dense."""
    if scipy.sparse.issparse(features):
        return _dense(features @ features.T)
    products: Floats = gram_kernel.linear(features, threads)
    return products


def _dense(matrix: Any) -> Floats:
    return np.ascontiguousarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix)


def _succeed(failed: int) -> None:
    if failed >= 0:
        raise UserError(f"MPRank: the system of user {failed} is not positive definite: scale the features or lower C")
