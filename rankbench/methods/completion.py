"""Matrix completion under the nuclear norm, without ever forming a dense users x items matrix.

The problem is min over X of lam |X|_* + f(X_obs), where X_obs are the observed entries of X and f is convex with a
1-Lipschitz gradient. The method is accelerated proximal gradient descent. X is kept as the factors of its
singular value decomposition. A step soft-thresholds the singular values (keeps those above lam, less lam) of

    M = Y + P*(pull),   Y = X + beta (X - X_previous),   pull = -f'(Y_obs),

which is sparse plus low-rank; its leading singular vectors come from a subspace iteration with a warm start:
it begins at those of the last step.
"""

# Roof of descend by entries, an entry: 72 bytes; 6 flops; 1 lines.
# Roof of descend by rows, a user or an item: 64 * width bytes; 8 * width flops; width * (8 * rank + 12 * width) blas.

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from rankbench.core.contract import Flags, Floats, Step
from rankbench.data.by_item import users_of
from rankbench.methods.entries import Entries, Sparse
from rankbench.methods.low_rank import ProductSVD
from rankbench.models import Factors

_SPARE = 10  # singular vectors sought beyond the rank of the last step
_FIRST_PASSES = 3  # iterations of the subspace iteration from a random start
_BETWEEN_CHECKS = 10  # steps between two checks whether the descent has converged
_GLANCE = 20  # iterations of Lanczos' method before an evaluation of the gap
_SLACK = 1e-9  # more than the rounding error of that lower bound
_ROUNDING = 1e-12  # more than that of a singular value of a dense matrix, relative to the largest
_EASED = 0.5  # the factor between two penalties of a continuation
_STEPS_EACH = 10  # steps at each of them
_SMALL = 32  # users or items up to which S^T S is formed in any case
_LARGE = 2000  # users and items above which it is not, as its eigenvalues cost the cube of their number
_DENSE_FLOPS = 40_000  # flops of dense products in the time that Lanczos' method takes per entry
_BLOCK_BYTES = 1 << 24  # of a dense block of S


class Pull(NamedTuple):
    """The loss f at x with its negative gradient w, and what a duality gap needs to know of w."""

    values: Floats  # w
    loss: float  # f(x)
    support: float  # the least <w, v> over the points v of the set, where f is zero

    @property
    def square(self) -> float:
        """The squared norm of w."""
        return float(self.values @ self.values)


class Target(Protocol):
    """A loss of the observed entries: half the squared distance from a convex set."""

    def pull(self, x: Floats) -> Floats:
        """The nearest point of the set, minus x."""
        ...

    def measure(self, x: Floats) -> Pull:
        """The same with the loss and what a duality gap needs."""
        ...


@dataclass(frozen=True, eq=False)
class LowRankMatrix:
    """A low-rank matrix as its singular value decomposition, users diag(values) items^T."""

    users: Floats
    values: Floats
    items: Floats

    @classmethod
    def zero(cls, n_users: int, n_items: int) -> "LowRankMatrix":
        """The matrix of zeros, whose rank is 0."""
        return cls(np.zeros((n_users, 0)), np.zeros(0), np.zeros((n_items, 0)))

    @classmethod
    def product(cls, users: Floats, items: Floats) -> "LowRankMatrix":
        """The matrix users items^T, as its singular value decomposition without the values that vanish."""
        found = ProductSVD.of(users, items)
        kept = found.values > found.values.max(initial=0.0) * 1e-14
        return cls(found.left[:, kept], found.values[kept], np.ascontiguousarray(found.right[:, kept]))

    @property
    def rank(self) -> int:
        """How many singular values there are."""
        return len(self.values)

    @cached_property
    def scaled(self) -> Floats:
        """The users' singular vectors times their values, whose products with the items' are the entries of X."""
        return self.users * self.values

    def times(self, dense: Floats) -> Floats:
        """X dense."""
        return self.users @ (self.values[:, None] * (self.items.T @ dense))

    def transposed_times(self, dense: Floats) -> Floats:
        """X^T dense."""
        return self.items @ (self.values[:, None] * (self.users.T @ dense))

    def at(self, entries: Entries) -> Floats:
        """The entries of X at these places."""
        return entries.inner_products(self.scaled, self.items)

    def factors(self, lam: float) -> Factors:
        """The model that scores by the matrix; a matrix of rank 0 becomes one column of zeros.

        With lam |X|_*, a user costs lam/2 sum_k u_k^2 / s_k if X = U V^T, V has orthonormal columns, and s_k is the
        k-th singular value: |X|_* is the least (|A|^2 + |B|^2) / 2 over all A B^T = X, and A has the columns
        u_k / sqrt(s_k) there.
        """
        if self.rank == 0:
            return Factors(np.zeros((len(self.users), 1)), np.zeros((len(self.items), 1)), np.ones(1))
        return Factors(self.users * self.values, self.items, lam / self.values)

    def inner(self, other: "LowRankMatrix") -> float:
        """The inner product <X, other>, the sum over all entries of their products."""
        users = self.scaled.T @ other.scaled
        return float((users * (self.items.T @ other.items)).sum())


@dataclass(frozen=True, eq=False)
class Descent:
    """A point of the descent: X and its observed entries."""

    matrix: LowRankMatrix
    values: Floats

    @classmethod
    def zero(cls, observed: Entries) -> "Descent":
        """X = 0, where a descent begins without a warm start."""
        return cls(LowRankMatrix.zero(*observed.shape), np.zeros(len(observed)))

    @classmethod
    def at(cls, matrix: LowRankMatrix, observed: Entries) -> "Descent":
        """A point from which a descent goes on."""
        return cls(matrix, matrix.at(observed)) if matrix.rank else cls.zero(observed)


def descend(
    observed: Entries,
    target: Target,
    lam: float,
    rng: np.random.Generator,
    most: int | None = None,
    start: Descent | None = None,
) -> Iterator[Descent]:
    """The points of an accelerated proximal gradient descent, without end; `start` is a warm start.

    The momentum is reset where it points uphill, <Y - X_new, X_new - X> > 0 (O'Donoghue and Candes
    2015). `most` is an upper bound on the rank.
    """
    now = start or Descent.zero(observed)
    before, between, momentum = now, 0.0, 1.0  # between the last two points: their inner product
    widest = min(observed.shape) if most is None else min(*observed.shape, most)
    basis = _widened(now.matrix.items, now.matrix.rank + _SPARE, widest, rng)
    passes = 1 if now.matrix.rank else _FIRST_PASSES
    while True:
        # theta_(k+1) = (1 + sqrt(1 + 4 theta_k^2)) / 2 and beta = (theta_k - 1) / theta_(k+1)
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        beta = (momentum - 1) / faster
        y = now.values - before.values
        y *= beta
        y += now.values
        moved = Moved(observed.holding(target.pull(y)), now.matrix, before.matrix, beta, between)
        matrix, basis, saturated = _shrunk(moved, basis, lam, passes)
        between = matrix.inner(now.matrix)
        momentum = 1.0 if moved.uphill(matrix, between) > 0 else faster
        before, now = now, Descent(matrix, matrix.at(observed))
        yield now
        basis = _widened(basis, 2 * basis.shape[1] if saturated else matrix.rank + _SPARE, widest, rng)
        passes = 1


@dataclass(frozen=True, eq=False)
class Completion:
    """The problem of matrix completion: min over X of lam |X|_* + f(X_obs)."""

    observed: Entries
    target: Target
    most: int | None = None  # an upper bound on the rank
    tolerance: float = 1e-5  # the duality gap, relative to the objective, at which a descent has converged

    def descent(self, lam: float, rng: np.random.Generator, start: Descent | None = None) -> Iterator[Descent]:
        """The points of a descent until it has converged."""
        points = descend(self.observed, self.target, lam, rng, self.most, start)
        for number, point in enumerate(points, start=1):
            yield point
            if number % _BETWEEN_CHECKS == 0 and self.converged(lam, point):
                return

    def continuation(self, lam: float, rng: np.random.Generator) -> Iterator[Descent]:
        """The points of a descent from X = 0 that takes some steps at each of a few larger penalties first.

        At a larger penalty the rank is smaller, so that these steps are cheap; and fewer steps at the small penalty
        are left, where each costs most.
        """
        end, larger = Descent.zero(self.observed), _EASED * self.largest
        while larger > lam:
            for point in islice(descend(self.observed, self.target, larger, rng, self.most, end), _STEPS_EACH):
                yield point
            end, larger = point, _EASED * larger
        yield from self.descent(lam, rng, end)

    def points(
        self, lam: float, rng: np.random.Generator, start: Descent | None = None, *, continued: bool = False
    ) -> Iterator[Descent]:
        """What a solver shows: the start, X = 0 if none is given, and the points of its descent if there is any entry.

        With `continued` the descent from X = 0 goes by way of larger penalties.
        """
        yield start or Descent.zero(self.observed)
        if len(self.observed):
            yield from self.continuation(lam, rng) if continued else self.descent(lam, rng, start)

    def step(self, lam: float, point: Descent, model: Factors) -> Step:
        """The step of a solver at a point, with the model that it makes of it."""
        return Step(model, lambda: self.objective(lam, point), lambda: self.gap(lam, point))

    @cached_property
    def at_zero(self) -> Pull:
        """What the loss says of X = 0."""
        return self.target.measure(np.zeros(len(self.observed)))

    @cached_property
    def largest(self) -> float:
        """The smallest lam at which X = 0 is optimal."""
        return norm(self.observed.holding(self.at_zero.values))

    def penalty(self, lam: float, share: float | None) -> float:
        """The penalty that these settings of a solver mean: lam, or this share of the largest useful penalty."""
        return lam if share is None else share * self.largest

    def model(self, lam: float, point: Descent) -> Factors:
        """The model that scores by X, with zeros and no rounding errors where the optimum is known to be zero."""
        found, (users, items) = point.matrix.factors(lam), self.pulled
        if users.all() and items.all():
            return found
        kept = np.where(users[:, None], found.users, 0.0), np.where(items[:, None], found.items, 0.0)
        return Factors(*kept, penalties=found.penalties)

    @cached_property
    def pulled(self) -> tuple[Flags, Flags]:
        """The users and the items that the loss pulls away from X = 0; X is 0 for all others at the optimum.

        f is a sum over users. Where a user's part is least at zero, setting their row of X to zero raises neither that
        part nor the nuclear norm; nor does setting an item's column to zero if only such users have entries in it.
        """
        pull = self.at_zero.values
        owners, (n_users, n_items) = users_of(self.observed.indptr), self.observed.shape
        users = np.bincount(owners, pull != 0, n_users) > 0
        return users, np.bincount(self.observed.items, users[owners], n_items) > 0

    def objective(self, lam: float, point: Descent) -> float:
        """The objective, lam |X|_* + f(X_obs)."""
        return lam * float(point.matrix.values.sum()) + self.target.measure(point.values).loss

    def gap(self, lam: float, point: Descent) -> float:
        """The duality gap, an upper bound on how far the objective is above the optimum.

        With f the half squared distance from a convex set C, the dual is max over w of inf_{v in C} <w, v> -
        |w|^2 / 2 such that no singular value of P*(w) exceeds lam. The pull is w at the optimum; elsewhere
        the best feasible multiple of it is taken. A gap costs as much as several steps, and is kept as long as its
        point.
        """
        known = self._gaps.setdefault(point, {})
        if lam not in known:
            known[lam] = self._computed_gap(lam, point)
        return known[lam]

    @cached_property
    def _gaps(self) -> "WeakKeyDictionary[Descent, dict[float, float]]":
        """The gaps that are known, by the point and by lam."""
        return WeakKeyDictionary()

    def _computed_gap(self, lam: float, point: Descent) -> float:
        if point.matrix.rank == 0:
            return _gap(lam, point, self.at_zero, self.largest) if self.at_zero.square else self.at_zero.loss
        pull = self.target.measure(point.values)
        if pull.square == 0.0:
            return lam * float(point.matrix.values.sum()) + pull.loss
        largest = norm(self.observed.holding(pull.values), near=point.matrix.items)
        return _gap(lam, point, pull, largest)

    def converged(self, lam: float, point: Descent) -> bool:
        """Whether the gap is at most the tolerance, relative to the objective.

        The gap grows with the largest singular value of P*(pull), so a lower bound on that value shows that the gap
        is above the tolerance. Lanczos' method gives one for the price of a few columns of a step's products; the
        gap itself costs several steps, and is computed only where the lower bounds do not decide.
        """
        pull = self.target.measure(point.values)
        allowed = self.tolerance * (lam * float(point.matrix.values.sum()) + pull.loss)
        if pull.square > 0.0:
            if _gap(lam, point, pull, lam) > allowed:
                return False
            if _gap(lam, point, pull, _glance(self.observed.holding(pull.values))) > allowed:
                return False
        return self.gap(lam, point) <= allowed


def _gap(lam: float, point: Descent, pull: Pull, largest: float) -> float:
    """The duality gap if the largest singular value of P*(pull) is this one."""
    objective = lam * float(point.matrix.values.sum()) + pull.loss
    scale = max(min(lam / largest, pull.support / pull.square), 0.0)
    return objective - (scale * pull.support - scale**2 / 2 * pull.square)


@dataclass(frozen=True, eq=False)
class Moved:
    """The matrix M = (1 + beta) now - beta before + sparse, known by its products."""

    sparse: Sparse
    now: LowRankMatrix
    before: LowRankMatrix
    beta: float
    between: float  # <now, before>, of which only a momentum beta > 0 makes use

    def times(self, dense: Floats) -> Floats:
        """M dense."""
        out = self.sparse.times(dense)
        out += (1 + self.beta) * self.now.times(dense)
        if self.beta:
            out -= self.beta * self.before.times(dense)
        return out

    def transposed_times(self, dense: Floats) -> Floats:
        """M^T dense."""
        out = self.sparse.transposed_times(dense)
        out += (1 + self.beta) * self.now.transposed_times(dense)
        if self.beta:
            out -= self.beta * self.before.transposed_times(dense)
        return out

    def uphill(self, new: LowRankMatrix, new_now: float) -> float:
        """<Y - X_new, X_new - X>, positive where the momentum points uphill; `new_now` is <X_new, X>."""
        # Y is M without its sparse part
        square, old = float(new.values @ new.values), float(self.now.values @ self.now.values)
        uphill = (2 + self.beta) * new_now - square - (1 + self.beta) * old
        if self.beta:
            uphill -= self.beta * (new.inner(self.before) - self.between)
        return uphill


def norm(sparse: Sparse, near: Floats | None = None) -> float:
    """An upper bound on the largest singular value, above it by little, so that a duality gap may rely on it.

    Where users or items are few, S^T S (or S S^T) is formed and its largest eigenvalue computed. Elsewhere it is
    bounded: `near` spans about the same space as the leading singular vectors. (At an optimum many of these belong to
    equal values, so no single one is well defined.) With H = S^T S, H_11 its part inside a basis
    and H_22 outside, its largest eigenvalue is at most that of the two by two matrix of |H_11|, |H_12|
    and |H_22|; the last comes from ARPACK, with its tolerance added.
    """
    if not sparse.values.any():
        return 0.0
    if _squares_are_cheap(sparse):
        return float(np.sqrt(_largest(_squared(sparse))) * (1 + _ROUNDING))
    n_items = sparse.shape[1]
    near = np.zeros((n_items, 0)) if near is None else near
    basis = _widened(near, near.shape[1] + _SPARE, min(sparse.shape), np.random.default_rng(0))
    for _ in range(_FIRST_PASSES):
        basis = _orthonormal(sparse.transposed_times(sparse.times(basis)))
    basis = basis @ np.linalg.eigh(_square(sparse.times(basis)))[1][:, -max(near.shape[1], 1) :]
    image = sparse.transposed_times(sparse.times(basis))
    across = image - basis @ (basis.T @ image)
    inside, coupling = _largest(basis.T @ image), np.sqrt(max(_largest(_square(across)), 0.0))
    outside = _outside(sparse, basis, 1e-3)
    if outside > 0.99 * inside:
        outside = min(outside, _outside(sparse, basis, 1e-5))
    return float(np.sqrt((inside + outside) / 2 + np.hypot((inside - outside) / 2, coupling)))


def _glance(sparse: Sparse) -> float:
    """A lower bound on the largest singular value, by a few iterations of Lanczos' method on S^T S."""
    n_items = sparse.shape[1]
    basis = np.zeros((n_items, min(_GLANCE, n_items)))
    image = np.random.default_rng(0).standard_normal((n_items, 1))
    for made in range(basis.shape[1]):
        image -= basis @ (basis.T @ image)
        left = np.linalg.norm(image)
        image -= basis @ (basis.T @ image)  # removes what rounding left
        size = np.linalg.norm(image)
        if size <= left / 2:  # all of it is rounding: the basis spans everything that S^T S can reach
            break
        basis[:, made : made + 1] = image / size
        image = sparse.transposed_times(sparse.times(basis[:, made : made + 1]))
    return float(np.linalg.norm(sparse.times(basis), 2)) * (1 - _SLACK)


def _outside(sparse: Sparse, basis: Floats, tolerance: float) -> float:
    """An upper bound on the largest eigenvalue of S^T S outside a basis."""

    def square(v: Floats) -> Floats:
        """S^T S v with the basis projected out before and after."""
        v = v.reshape(-1, 1)
        v = sparse.transposed_times(sparse.times(v - basis @ (basis.T @ v)))
        return (v - basis @ (basis.T @ v)).ravel()

    n = len(basis)
    operator = scipy.sparse.linalg.LinearOperator((n, n), matvec=square, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n)
    try:
        found = scipy.sparse.linalg.eigsh(
            operator, 1, v0=start, ncv=min(n, 40), maxiter=50, tol=tolerance, return_eigenvectors=False
        )
    except scipy.sparse.linalg.ArpackNoConvergence:
        return float(sparse.values @ sparse.values)  # the square of the Frobenius norm is never less
    return float(found[0]) * (1 + tolerance)


def _squares_are_cheap(sparse: Sparse) -> bool:
    """Whether forming S^T S or S S^T, whichever is smaller, takes less time than bounding its largest eigenvalue."""
    few, many = sorted(sparse.shape)
    return few <= _SMALL or (few <= _LARGE and few * few * many <= _DENSE_FLOPS * len(sparse.values))


def _squared(sparse: Sparse) -> Floats:
    """S^T S or S S^T, whichever is smaller, summed over blocks of rows of the longer side."""
    tall = sparse.matrix() if sparse.shape[0] >= sparse.shape[1] else sparse.matrix().T.tocsr()
    many, few = tall.shape
    rows, total = max(1, _BLOCK_BYTES // (8 * few)), np.zeros((few, few))
    for first in range(0, many, rows):
        total += _square(tall[first : first + rows].toarray())
    return total


def _shrunk(matrix: Moved, basis: Floats, lam: float, passes: int) -> tuple[LowRankMatrix, Floats, bool]:
    """The matrix with its singular values soft-thresholded by lam, the next basis, and whether it must grow."""
    for _ in range(passes):
        q = _orthonormal(matrix.times(basis))
        basis, values, turn = _decomposed(matrix.transposed_times(q))
    kept = int(np.count_nonzero(values > lam))
    found = LowRankMatrix(q @ turn[:, :kept], values[:kept] - lam, np.ascontiguousarray(basis[:, :kept]))
    return found, basis, kept == basis.shape[1] < min(len(q), len(basis))


def _decomposed(tall: Floats) -> tuple[Floats, Floats, Floats]:
    """The singular value decomposition of a tall matrix, largest value first, without the values that vanish."""
    q, r = scipy.linalg.qr(tall, mode="economic", overwrite_a=True, check_finite=False)
    left, values, right = np.linalg.svd(r)
    kept = max(int(np.count_nonzero(values > values[0] * 1e-14)), 1)
    return q @ left[:, :kept], values[:kept], right[:kept].T


def _square(tall: Floats) -> Floats:
    return np.asarray(tall.T @ tall)


def _largest(square: Floats) -> float:
    """The largest eigenvalue of a symmetric matrix."""
    last = len(square) - 1
    return float(scipy.linalg.eigvalsh(square, subset_by_index=(last, last), check_finite=False)[0])


def _orthonormal(tall: Floats) -> Floats:
    q: Floats = scipy.linalg.qr(tall, mode="economic", overwrite_a=True, check_finite=False)[0]
    return q


def _widened(basis: Floats, width: int, widest: int, rng: np.random.Generator) -> Floats:
    """The leading columns of a basis, followed by random columns up to the width."""
    width = min(width, widest)
    if width <= basis.shape[1]:
        return basis[:, :width]
    return np.hstack([basis, rng.standard_normal((len(basis), width - basis.shape[1]))])
