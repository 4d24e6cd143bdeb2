"""SVRank: regression on differences of ratings with an eps-insensitive loss, per user (Cortes et al. 2007)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import ClassVar, Literal

import numpy as np

from rankbench.core.contract import Determinism, Flags, Floats, Int32s, Model, Step
from rankbench.data.views import Ratings
from rankbench.features.item_kernels import ItemKernel, KernelName
from rankbench.features.matrix import features_of
from rankbench.kernels.solvers import svrank as kernel
from rankbench.methods.kernel_matrices import KernelMatrices, Shared
from rankbench.methods.residuals import FeatureSpace, FunctionSpace, KernelSpace, ResidualProblem, SmoothedPoint, level
from rankbench.models import UserWeights
from rankbench.names import Checked, checked_threads
from rankbench.names.ranges import Degree, Margin, PositiveTolerance, Weight, Width

_ROUNDS = 5  # rounds of coordinate ascent on the pair dual in a step
_PATIENCE = 5  # steps on the pair dual before users who have not converged change to residuals
_PAIRS = 150  # most ratings of a user for which the pair dual is tried first
_COLUMNS = 1000  # most features for which Newton's system is solved by Cholesky


@dataclass(frozen=True)
class SVRank(Checked):
    """A function of item features per user, fitted to the differences of the user's ratings; errors up to eps are free.

    min_w |w|^2 + C/m^2 sum_ij max(|(h(x_j) - h(x_i)) - (y_j - y_i)| - eps, 0) per user, h(x) = w . phi(x).
    The sum has every unordered pair twice, so with c = 2C/m^2 the dual over i < j is max over
    |b_ij| <= c of -1/4 |sum b_ij (phi_j - phi_i)|^2 + sum b_ij (y_j - y_i) - eps sum |b_ij|, w = 1/2 sum b_ij
    (phi_j - phi_i). (The paper prints the quadratic term with a plus and twice as large, eps times the signed sum,
    and C as the bound.) `form` says how it is solved: `pairs` by coordinate ascent on that dual, `residuals`
    by Newton's method on the m residuals, at a cost that does not grow with the number of pairs; auto takes pairs for
    users with at most 150 ratings, and changes to residuals if they converge slowly. Both stop, user by user,
    when the duality gap is at most `tolerance` times the primal value; residuals also stop when rounding errors keep
    the gap from falling, as for C or features so large that the primal value is lost in rounding, and keep the best
    function that they met. Scores are defined up to a constant per user, chosen so that they have the mean of the
    user's ratings. Users with fewer than two ratings have no order to learn from, and score NaN.
    """

    C: Weight = 1.0
    eps: Margin = 0.1
    kernel: KernelName = "linear"
    width: Width = 1.0
    degree: Degree = 2
    form: Literal["auto", "pairs", "residuals"] = "auto"
    tolerance: PositiveTolerance = 1e-5
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = True
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 3  # the best point is kept, and no step is taken that does not help

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """A model after each step of some rounds, or one level of smoothing, until every user has converged."""
        threads = checked_threads(threads)
        run = _Run.of(self, train, threads)
        over_few = _over_pairs if self.form == "pairs" else _over_pairs_for_a_while
        works = [over_few(run, run.users[run.few]), _over_residuals(run, run.users[~run.few])]
        step = Step(run.model(), lambda: float(run.found.primal.sum()), lambda: float(run.found.gap.sum()))
        while works:
            works = [work for work in works if next(work)]
            yield step


@dataclass(frozen=True, eq=False)
class _Found:
    """The model's arrays, and each user's primal value and duality gap, which are changed in place."""

    coefficients: Floats  # one per rating
    weights: Floats | None  # one row per user, for a linear kernel
    offsets: Floats
    primal: Floats
    gap: Floats

    @cached_property
    def functions(self) -> kernel.Functions:
        """The arrays except the weights, as the kernel takes them."""
        return kernel.Functions(coefficients=self.coefficients, offsets=self.offsets, primal=self.primal, gap=self.gap)


@dataclass(frozen=True, eq=False)
class _Run:
    """The state of a fit."""

    solver: SVRank
    matrices: KernelMatrices
    train: Ratings
    threads: int
    users: Int32s  # the users with an order to learn from
    few: Flags  # for each of these users, whether it has few pairs
    found: _Found

    @classmethod
    def of(cls, solver: SVRank, train: Ratings, threads: int) -> "_Run":
        """The state before the first step."""
        between = ItemKernel(solver.kernel, solver.width, solver.degree)
        between.check(train.item_features, "SVRank")
        counts, linear = np.diff(train.indptr), solver.kernel == "linear"
        users = np.flatnonzero(counts >= 2).astype(np.int32)
        few = counts[users] <= {"auto": _PAIRS, "pairs": np.inf, "residuals": 0}[solver.form]
        weights = np.full((train.n_users, features_of(train.item_features).shape[1]), np.nan) if linear else None
        offsets = np.full(train.n_users, np.nan)
        primal, gap = np.zeros((2, train.n_users))
        primal[users] = gap[users] = np.inf  # before the first step
        return cls(
            solver=solver,
            matrices=KernelMatrices(between, train, threads),
            train=train,
            threads=threads,
            users=users,
            few=few,
            found=_Found(np.zeros(len(train)), weights, offsets, primal, gap),
        )

    def model(self) -> Model:
        """The model with these arrays, which later steps change in place."""
        found = self.found
        if found.weights is not None:
            return UserWeights(self.train.item_features, found.weights, found.offsets)
        return self.matrices.expansion(found.coefficients, found.offsets)

    def not_done(self, users: Int32s) -> Int32s:
        """The users among these who have not converged."""
        return users[self.found.gap[users] > self.solver.tolerance * self.found.primal[users]]


def _over_pairs(run: _Run, users: Int32s) -> Iterator[bool]:
    """Coordinate ascent on the pair dual, some rounds for each user per step; yields whether users remain."""
    solver, train = run.solver, run.train
    counts = np.diff(train.indptr)[users].astype(np.int64)
    sizes = counts * (counts - 1) // 2
    starts = np.zeros(train.n_users, np.int64)
    starts[users] = np.cumsum(sizes) - sizes
    duals = kernel.PairDuals(starts=starts, values=np.zeros(sizes.sum()))
    problem = kernel.PairProblem(C=solver.C, eps=solver.eps, tolerance=solver.tolerance, rounds=_ROUNDS)
    while len(users):
        for part in run.matrices.parts(users):
            kernel.pair_rounds(
                problem=problem,
                gram=part.gram,
                ratings=part.ratings,
                users=part.users,
                duals=duals,
                functions=run.found.functions,
                threads=run.threads,
            )
        np.maximum(run.found.gap, 0.0, out=run.found.gap)  # rounding errors could leave less than nothing
        if run.found.weights is not None:
            run.found.weights[users] = run.matrices.weights(run.found.coefficients, users)
        users = run.not_done(users)
        yield len(users) > 0
    yield False


def _over_pairs_for_a_while(run: _Run, users: Int32s) -> Iterator[bool]:
    """Coordinate ascent on the pair dual for some steps, then Newton's method for users who have not converged."""
    yield from islice(_over_pairs(run, users), _PATIENCE)
    yield from _over_residuals(run, run.not_done(users))


def _over_residuals(run: _Run, users: Int32s) -> Iterator[bool]:
    """Newton's method on the residuals, a level of smoothing for each user per step; yields whether users remain."""
    points: dict[int, SmoothedPoint] = {}

    def advance(job: tuple[int, Shared | None]) -> None:
        """Solve one user's next level of smoothing."""
        user, part = job
        points[user] = _levelled(run, user, part, points.get(user))

    with ThreadPoolExecutor(run.threads) as pool:
        while len(users):
            parts = [None] if run.found.weights is not None else run.matrices.parts(users)
            for part in parts:
                list(pool.map(advance, [(user, part) for user in (users if part is None else part.users).tolist()]))
            going = [user for user in users.tolist() if not points[user].ended(run.solver.tolerance)]
            users = run.not_done(np.array(going, np.int32))
            yield len(users) > 0
    yield False


def _levelled(run: _Run, user: int, part: Shared | None, start: SmoothedPoint | None) -> SmoothedPoint:
    """The solution of one user's next level of smoothing, written into the model's arrays if it is the best."""
    rows = slice(run.train.indptr[user], run.train.indptr[user + 1])
    y = run.train.values[rows]
    problem = ResidualProblem(y, 2.0 * run.solver.C / len(y) ** 2, run.solver.eps)
    if part is None:
        own = features_of(run.train.item_features).rows(run.train.items[rows]).dense()
        means = own.mean(axis=0)
        own = own - means
        direct = own.shape[1] <= _COLUMNS
        space: FunctionSpace = FeatureSpace(own) if direct else KernelSpace.of_features(own)
    else:
        space, means = _kernel_space(part.gram, part.rows[rows])
    point = level(space, problem, start or SmoothedPoint.start(space, problem), run.solver.tolerance)
    into, known = run.found, run.found.primal[user]
    bound = max(point.primal - point.gap, known - into.gap[user] if known < np.inf else -np.inf)
    if point.primal < known:
        known = into.primal[user] = point.primal
        found = point.x
        if into.weights is None:
            into.coefficients[rows] = found
        else:
            found = into.weights[user] = found if direct else found @ own
        into.offsets[user] = y.mean() - found @ means
    into.gap[user] = max(0.0, known - bound)
    return point


def _kernel_space(gram: Floats, items: Int32s) -> tuple[FunctionSpace, Floats]:
    """The space of the centred kernel matrix of these items, and its column means before centring."""
    own = gram[np.ix_(items, items)]
    means = own.mean(axis=0)
    own += means.mean() - means - means[:, None]
    return KernelSpace.of_matrix(own), means
