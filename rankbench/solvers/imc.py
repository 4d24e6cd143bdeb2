"""Inductive matrix completion: least squares on ratings by a low-rank function of features (Jain and Dhillon 2013)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, cg

from rankbench.core.contract import Determinism, Floats, Model, Step
from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.features.matrix import Features
from rankbench.kernels.methods import als as kernel
from rankbench.kernels.shared.rows import SparseRows
from rankbench.methods.entries import Entries, Sparse
from rankbench.methods.factors import zero_rows
from rankbench.methods.folding import check_items, own
from rankbench.methods.penalties import squared_norm
from rankbench.methods.tasks import checked_features, ordered, targets
from rankbench.models import FeatureFactors
from rankbench.names import Checked, checked_threads
from rankbench.names.ranges import Count, Rank, Weight

_POWERS = 3  # iterations of the subspace iteration on X^T R^T, at the start
_ROUNDING = 1e-10  # of the largest number of the triangle of a QR decomposition: less is none
_SOLVED = 1e-10  # residual, relative to the right-hand side, at which conjugate gradients end


@dataclass(frozen=True)
class IMC(Checked):
    """A low-rank linear function of item features per user, fitted to the ratings by least squares.

    min over U (d x k), V (users x k) of sum over ratings of (y_ij - x_j . U v_i)^2 + lam (|U|^2 + |V|^2),
    by alternating least squares: every v_i is a ridge regression on U^T x, solved by Cholesky; U solves one
    linear system of d x k unknowns by at most `inner` conjugate gradient iterations from a warm start, so
    the objective never rises. A product with the system is X^T M + lam D, where row j of M is
    sum_i (v_i . D^T x_j) v_i over the users who rated j. As in the paper, U starts as about the first left
    singular vectors of X^T R^T. `centre=user` fits the ratings less each user's mean. `centre=fitted` fits a
    constant for each user without a penalty: it starts at the mean, and each half step is followed by the best
    constants, so the objective never rises; scores leave them out, since they change no order. Users without two
    different ratings contribute nothing and have v = 0: all items score zero. A rank above the number of
    features is lowered to that number, because U V^T has no higher rank.
    """

    rank: Rank = 10
    lam: Weight = 1.0
    inner: Count = 10
    centre: Literal["user", "none", "fitted"] = "user"
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 3  # directions that the ratings do not give start at random

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The start with users' vectors 0, then a model after each half step: users, basis, users, ..."""
        threads = checked_threads(threads)
        features = checked_features(train.item_features)
        if self.rank > features.shape[1]:
            yield from replace(self, rank=features.shape[1]).steps(train, rng, threads)
            return
        kept = ordered(train)
        entries = Entries.of(kept.indptr, kept.items, train.n_items, threads)
        rated = entries.holding(targets(kept, "none" if self.centre == "none" else "user"))
        basis, users = _start(rng, features, rated.matrix(), self.rank)
        penalties = np.full(users.shape[1], self.lam)

        def objective() -> float:
            errors = np.zeros(train.n_users)
            if len(kept):
                vectors = features.times(basis)
                kernel.squared_errors(rows=rated.rows, left=users, vectors=vectors, out=errors, threads=threads)
            return float(errors.sum() + self.lam * squared_norm(basis, users))

        while True:
            yield self._step(features, basis, users, objective)
            if not len(kept):
                return
            vectors = features.times(basis)
            _fit_users(rated.rows, vectors, penalties, users, threads)
            rated = self._recentred(kept, rated, vectors, users)
            yield self._step(features, basis, users, objective)
            self._improve(basis, users, features, rated)
            rated = self._recentred(kept, rated, features.times(basis), users)

    def fold_in(self, model: Model, ratings: Ratings, threads: int = 1) -> FeatureFactors:
        """The model of these users, each with the exact half step; with centre=fitted after the best constant."""
        known, kept = own(model, FeatureFactors), ordered(ratings)
        check_items(ratings, known.features.shape[0])
        vectors, penalties = known.items(kept.items, threads), np.full(known.basis.shape[1], self.lam)
        if self.centre == "fitted":
            vectors, penalties = np.column_stack([vectors, np.ones(len(kept))]), np.append(penalties, 0.0)
        values = targets(kept, "none" if self.centre == "none" else "user")
        rows = SparseRows(indptr=kept.indptr, columns=np.arange(len(kept), dtype=np.int32), values=values)
        users = np.zeros((ratings.n_users, len(penalties)))
        _fit_users(rows, vectors, penalties, users, checked_threads(threads))
        return replace(known, users=np.ascontiguousarray(users[:, : known.basis.shape[1]]))

    def _recentred(self, kept: Ratings, rated: Sparse, vectors: Floats, users: Floats) -> Sparse:
        """The ratings less the users' best constants for this fit, with centre=fitted; else as they are."""
        if self.centre != "fitted":
            return rated
        fitted = rated.entries.inner_products(users, vectors)
        constants = replace(kept, values=kept.values - fitted)
        return rated.entries.holding(targets(constants, "user") + fitted)

    def _improve(self, basis: Floats, users: Floats, features: Features, rated: Sparse) -> None:
        """Come nearer to the best basis U given V, by SciPy's conjugate gradients from the one given, in place."""
        entries, sums = rated.entries, np.empty((features.shape[0], basis.shape[1]))

        def times(flat: Floats) -> Floats:
            """The product X^T M + lam D of the system with a direction D."""
            left = features.times(flat.reshape(basis.shape))
            kernel.gram_times(rows=entries.by_item_places, vectors=users, left=left, out=sums, threads=entries.threads)
            return features.transposed_times(sums).ravel() + self.lam * flat

        operator = LinearOperator((basis.size, basis.size), times, dtype=np.float64)
        known = features.transposed_times(rated.transposed_times(users)).ravel()
        solution, _ = cg(operator, known, x0=basis.ravel(), rtol=_SOLVED, maxiter=self.inner)
        basis[:] = solution.reshape(basis.shape)

    def _step(self, features: Features, basis: Floats, users: Floats, objective: Callable[[], float]) -> Step:
        return Step(FeatureFactors(users[:, : self.rank], basis[:, : self.rank], features.matrix), objective)


def _fit_users(rows: SparseRows, vectors: Floats, penalties: Floats, users: Floats, threads: int) -> None:
    """Solve every user's ridge regression, in place."""
    failed = kernel.ridge(
        rows=rows, vectors=vectors, penalties=kernel.Ridge(each=penalties), out=users, threads=threads
    )
    if failed >= 0:
        raise UserError(f"IMC: the system of user {failed} has no finite solution: scale the features or raise lam")


def _start(
    rng: np.random.Generator, features: Features, rated: scipy.sparse.csr_array, rank: int
) -> tuple[Floats, Floats]:
    """The approximate leading singular vectors of X^T R^T, and zeros for users, padded for the kernels.

    By subspace iteration from a random block (Halko, Martinsson and Tropp 2011). The matrix has no more singular
    vectors than there are users: columns beyond these start at zero and stay there, which costs no fit. If it has
    fewer, as where few users have an order or few items are rated, the rest start at random, and not as rounding has
    it.
    """
    basis, users = (zero_rows(size, rank) for size in (features.shape[1], rated.shape[0]))
    found = min(rank, rated.shape[0])
    block = rng.standard_normal((rated.shape[0], rank))[:, :found]
    for _ in range(_POWERS):
        basis[:, :found], upper = np.linalg.qr(features.transposed_times(rated.T @ block))
        block, _ = np.linalg.qr(rated @ features.times(basis[:, :found]))
    missing = np.flatnonzero(np.abs(np.diag(upper)) <= _ROUNDING * np.abs(upper).max(initial=0.0))
    if len(missing):
        basis[:, missing] = rng.standard_normal((len(basis), len(missing)))
        basis[:, :found], _ = np.linalg.qr(basis[:, :found])
    return basis, users
