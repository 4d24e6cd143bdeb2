"""MPRank: magnitude-preserving ranking in closed form, one function of item features per user (Cortes et al. 2007)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Determinism, Flags, Floats, Int32s, Ints, Model, Step
from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.features.item_kernels import ItemKernel, KernelName
from rankbench.features.matrix import features_of
from rankbench.kernels.solvers import mprank as kernel
from rankbench.methods.folding import with_features
from rankbench.methods.kernel_matrices import KernelMatrices
from rankbench.models import UserWeights
from rankbench.names import Checked, checked_threads
from rankbench.names.ranges import Degree, Weight, Width

_GRID = 2.0 ** np.arange(-6, 7)  # the multiples of C to choose from


@dataclass(frozen=True)
class MPRank(Checked):
    """A function of item features per user, fitted to the differences of the user's ratings by least squares.

    min_w |w|^2 + C/m^2 sum_ij ((h(x_j) - h(x_i)) - (y_j - y_i))^2 per user, h(x) = w . phi(x). The pair
    sum is 2m sum_i r_i^2 - 2 (sum_i r_i)^2 of the residuals r = h - y, which is 2m times their centred
    sum of squares; so the problem is ridge regression on centred features and targets with
    alpha=m/(2C), and has the primal w = (X_c X_c^T + alpha I)^-1 X_c y_c and, by the push-through
    identity, the dual w = X_c (X_c^T X_c + alpha I)^-1 y_c. (Eq. 28 prints the primal's matrix in the
    dual.) `form` chooses the system: auto takes the smaller one for each user. The linear
    kernel has both forms, all other kernels only the dual: exp(-|x-x'|^2/(2 width^2)), (1 + x.x'/width^2)^degree, and
    precomputed, where the item features are the kernel matrix itself. With `choose`, the C of each user, or
    one for all users, is the one of C 2^-6, ..., C 2^6 with the least leave-one-out error, see `left_out`.
    Scores are defined up to a constant per user, chosen so that they have the mean of the user's ratings.
    Users with fewer than two ratings have no order to learn from, and score NaN.
    """

    C: Weight = 1.0
    kernel: KernelName = "linear"
    width: Width = 1.0
    degree: Degree = 2
    form: Literal["auto", "primal", "dual"] = "auto"
    choose: Literal["nothing", "C-per-user", "C-for-all"] = "nothing"
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 5  # coefficients of the dual sum to 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel != "linear" and self.form == "primal":
            raise UserError(
                f"form=primal needs kernel=linear (kernel={self.kernel} has only the dual form)", subject="MPRank"
            )

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The only model, in closed form."""
        threads = checked_threads(threads)
        run = _Run.of(self, train, threads)
        C = np.full(train.n_users, self.C)
        if self.choose != "nothing" and len(run.users):
            grid = np.asarray(self.C * _GRID, np.float64)
            C[run.users] = grid[_least(run.left_out(grid)[run.users], self.choose)]
        yield Step(run.linear(C) if self.kernel == "linear" else run.matrices.expansion(*run.dual(C)))

    def fold_in(self, model: Model, ratings: Ratings, threads: int = 1) -> Model:
        """The model of these users, who are trained alone as all users are; with a linear kernel."""
        if self.kernel != "linear" or self.choose == "C-for-all":
            problem = "fold_in needs kernel=linear, and choose=nothing or C-per-user: models do not hold more"
            raise UserError(problem, subject="MPRank")
        return next(self.steps(with_features(model, ratings), np.random.default_rng(0), threads)).model


def left_out(solver: MPRank, train: Ratings, C: Floats, threads: int = 1) -> Floats:
    """The mean squared leave-one-out error of each user at each C, users x C; NaN with fewer than two ratings.

    One eigendecomposition for each user serves all C. The ridge m/(2C) stays the same when a rating is left out,
    as in ridge regression.
    """
    C = np.atleast_1d(np.asarray(C, np.float64))
    if not (C > 0).all():
        raise UserError(f"C={C[~(C > 0)][0]} is out of range: must be above 0", subject="MPRank")
    return _Run.of(solver, train, checked_threads(threads)).left_out(C)


def _least(errors: Floats, choose: str) -> Ints:
    """The index of the C with the least error, per user or over all users; of equal ones the smallest."""
    if choose == "C-for-all":
        return np.full(len(errors), errors.mean(axis=0).argmin())
    best: Ints = errors.argmin(axis=1)
    return best


@dataclass(frozen=True, eq=False)
class _Run:
    """The users with an order to learn, and the form of each user's system."""

    train: Ratings
    matrices: KernelMatrices
    threads: int
    users: Int32s
    by_primal: Flags  # for each of these users, whether the primal system is solved

    @classmethod
    def of(cls, solver: MPRank, train: Ratings, threads: int) -> "_Run":
        """The users and forms that the settings choose."""
        between = ItemKernel(solver.kernel, solver.width, solver.degree)
        between.check(train.item_features, "MPRank")
        counts = np.diff(train.indptr)
        users = np.flatnonzero(counts >= 2).astype(np.int32)
        by_primal = np.full(len(users), solver.form == "primal")
        if solver.form == "auto" and solver.kernel == "linear":
            by_primal = features_of(train.item_features).shape[1] <= counts[users]
        return cls(train, KernelMatrices(between, train, threads), threads, users, by_primal)

    @one_blas_thread()
    def linear(self, C: Floats) -> Model:
        """The model of a linear kernel: weights and offsets, from the primal or the dual of each user."""
        features, users = features_of(self.train.item_features), self.users[self.by_primal]
        weights = np.full((self.train.n_users, features.shape[1]), np.nan)
        offsets = np.full(self.train.n_users, np.nan)
        if len(users):
            failed = kernel.primal(
                features=features.dense(),
                ratings=self.train.rows,
                users=users,
                C=C,
                weights=weights,
                offsets=offsets,
                threads=self.threads,
            )
            _succeed(failed)
        if not self.by_primal.all():
            users = self.users[~self.by_primal]
            coefficients, dual_offsets = self.dual(C)
            weights[users] = self.matrices.weights(coefficients, users)
            offsets[users] = dual_offsets[users]
        return UserWeights(features.matrix, _rounded(weights), offsets)

    @one_blas_thread()
    def left_out(self, C: Floats) -> Floats:
        """The leave-one-out errors, users x C."""
        errors = np.full((self.train.n_users, len(C)), np.nan)
        users = self.users[self.by_primal]
        given: dict[str, Any] = {"C": C, "errors": errors, "threads": self.threads}
        if len(users) and len(C):
            features = features_of(self.train.item_features).dense()
            _succeed(kernel.path(matrix=features, ratings=self.train.rows, users=users, primal=True, **given))
        for part in self.matrices.parts(self.users[~self.by_primal]) if len(C) else ():
            _succeed(kernel.path(matrix=part.gram, ratings=part.ratings, users=part.users, primal=False, **given))
        return errors

    @one_blas_thread()
    def dual(self, C: Floats) -> tuple[Floats, Floats]:
        """Coefficients by rating and offsets by user, for the users solved by the dual."""
        coefficients = np.zeros(len(self.train))
        offsets = np.full(self.train.n_users, np.nan)
        for part in self.matrices.parts(self.users[~self.by_primal]):
            failed = kernel.dual(
                gram=part.gram,
                ratings=part.ratings,
                users=part.users,
                C=C,
                coefficients=coefficients,
                offsets=offsets,
                threads=self.threads,
            )
            _succeed(failed)
        return coefficients, offsets


def _rounded(weights: Floats) -> Floats:
    """The weights, rounded to 2^-40 of the largest of each user.

    Features that all items of a user have alike have no weight then, and such that count alike have the same one, as
    without rounding errors. Otherwise these would order items whose scores tie, in another way on each processor.
    """
    largest = np.abs(weights).max(axis=1, initial=0.0, keepdims=True)
    unit = np.ldexp(1.0, np.maximum(np.frexp(largest)[1] - 40, -1022))
    return np.asarray(np.rint(weights / unit) * unit)


def _succeed(failed: int) -> None:
    """Raise an error that names the user whose system a kernel could not solve, if there is one."""
    if failed >= 0:
        problem = f"the system of user {failed} is not positive definite: scale the features or lower C"
        raise UserError(problem, subject="MPRank")
