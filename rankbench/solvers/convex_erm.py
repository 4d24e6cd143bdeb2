"""Convex empirical risk minimisation: a score matrix under a bound on its nuclear norm (Park et al. 2015)."""

# Roof of _decomposed, a user or an item: 64 * width bytes; 8 * width flops; 8 * rank * width + 11 * width ** 2 blas.

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse.linalg

from rankbench.core.contract import Determinism, Floats, Model, Step
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, View
from rankbench.methods.descent import Function, descend
from rankbench.methods.entries import ComparedEntries, known_rows
from rankbench.methods.folding import alone, penalised
from rankbench.methods.losses import CODES, SmoothLoss
from rankbench.methods.low_rank import ProductSVD
from rankbench.methods.warm_starts import factors_of
from rankbench.models import Factors
from rankbench.names import Checked, Limits, checked_threads
from rankbench.names.ranges import Weight

_SPARE = 4  # singular vectors sought beyond the rank of X
_POWERS = 2  # iterations of a subspace iteration, from a warm start
_VANISHED = 1e-13  # singular values below this share of the radius count as 0
_STALLED = 1e-14  # relative decreases of the objective below this count as none
_ROUNDING = 1e-15  # relative change of the objective that may be a rounding error
_PATIENCE = 10  # steps without a decrease until the end: the gap may still fall
_ON_THE_SPHERE = 1e-9  # relative distance from the bound on the nuclear norm that counts as on it
_EASED = 0.9  # the factor by which the curvature shrinks after an accepted step
_TRIALS = 60  # curvatures tried for a step, at most
_FEW = 40  # users or items up to which singular values come from a dense matrix
_EXACT = 1e-11  # relative error allowed for in a singular value; Lanczos gets its root, as it works with squares


@dataclass(frozen=True)
class ConvexERM(Checked):
    """A score matrix of minimal loss among those of bounded nuclear norm, with a duality gap.

    min_X sum L(X_ij - X_ik) over comparisons (i, j over k), s.t. |X|_* <= sqrt(lam d1 d2), with d1 users
    and d2 items that are in some comparison: so `lam` is a bound on the size of the scores squared times
    the rank, and *more* of it regularises *less*. `L` is the logistic loss of the Bradley-Terry-Luce
    model (Corollary 1), the 1-Lipschitz smooth hinge (1/2 - m below 0, (1 - m)^2 / 2 up to 1, then 0) or
    the squared hinge, which is not Lipschitz, so that the theorem does not speak of it.

    X = U diag(s) V^T is kept as factors, and no users x items matrix is ever formed: the gradient G is
    sparse. A step is a projected gradient step, X <- P(X - G / curvature) by a truncated singular value
    decomposition of low rank plus sparse, started from the last one's vectors, and then `corrections`
    steps of L-BFGS on the factors at that rank. The first finds the rank and converges to the optimum over
    all matrices, the second makes it fast: with |X|_* = min (|A|^2 + |B|^2) / 2 over A B^T = X, the ball
    becomes |A|^2 + |B|^2 <= 2 radius. The gap <G, X> + radius sigma_1(G) is that of Frank and Wolfe and,
    by Fenchel's equality, the duality gap: the dual of the slopes is -sum L*(-a) - radius sigma_1(G).
    """

    lam: Weight = 1.0
    loss: SmoothLoss = "logistic"
    corrections: Annotated[int, Limits(low=0, high=1000)] = 10
    learns_from: ClassVar = Comparisons
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    path: ClassVar = MappingProxyType({"lam": "rises"})
    title: ClassVar = "Convex ERM"
    version: ClassVar = 1

    def steps(self, train: Comparisons, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """X = 0, then a model after each step, until the objective stops decreasing."""
        threads = checked_threads(threads)
        problem = _Problem(self, ComparedEntries.of(train, threads), rng)
        yield from self._descent(problem, problem.at(*problem.nothing()))

    def steps_from(
        self, model: Model, train: Comparisons, rng: np.random.Generator, threads: int = 1
    ) -> Iterator[Step]:
        """This model of the same data, found under another bound and scaled into this one, then as in `steps`."""
        threads = checked_threads(threads)
        problem = _Problem(self, ComparedEntries.of(train, threads), rng)
        found = factors_of(model, problem.entries.shape, "ConvexERM")
        yield from self._descent(problem, problem.at(*problem.inside(found)))

    def fold_in(self, model: Model, ratings: View, threads: int = 1) -> Factors:
        """The model of these users, each at the minimum of their loss with the penalty that the bound is worth."""
        known, penalties = penalised(model)
        if not penalties.all():
            problem = "the scores do not reach the bound on their size, so that nothing limits those of one more user"
            raise UserError(problem, remedy="train with a smaller lam", subject="ConvexERM")
        found = alone(known, ratings, CODES[self.loss], 1 / penalties[0], checked_threads(threads))
        return replace(found, penalties=penalties)

    def _descent(self, problem: "_Problem", point: "_Point") -> Iterator[Step]:
        """A point, then a model after each step, until the objective stops decreasing."""
        yield problem.step(point)
        curvature, stalls = 1.0, 0
        while len(problem.entries) and stalls < _PATIENCE:
            found, curvature = _projected(problem, point, curvature)
            found = _corrected(problem, found, self.corrections)
            stalls = 0 if found.objective < point.objective * (1 - _STALLED) else stalls + 1
            point = found
            yield problem.step(point)


@dataclass(frozen=True, eq=False)
class _Point:
    """X = left diag(sizes) right^T with orthonormal columns, the spare ones of size 0, and its objective."""

    left: Floats
    sizes: Floats
    right: Floats
    scores: Floats  # of the entries
    objective: float
    slopes: Floats  # the entries of the gradient


class _Problem:
    """The objective over matrices of bounded nuclear norm."""

    def __init__(self, solver: ConvexERM, compared: ComparedEntries, rng: np.random.Generator) -> None:
        self.compared, self.entries, self.loss = compared, compared.entries, solver.loss
        users, items = (len(ids) for ids in self.entries.seen)
        self.radius = float(np.sqrt(solver.lam * users * items))
        self.rng, self.probe = rng, rng.standard_normal(min(self.entries.shape))

    def fresh(self, columns: int) -> Floats:
        """Random start vectors, with an entry per item, for a subspace iteration."""
        return self.rng.standard_normal((self.entries.shape[1], columns))

    def nothing(self) -> tuple[Floats, Floats, Floats]:
        """The factors of X = 0, with some random start vectors."""
        users, items = self.entries.shape
        width = min(_SPARE, users, items)
        return np.zeros((users, width)), np.zeros(width), _orthonormal(self.fresh(width))

    def inside(self, found: Factors) -> tuple[Floats, Floats, Floats]:
        """The factors of this matrix, scaled into the ball, with some random start vectors."""
        product = ProductSVD.of(found.users, found.items)
        rank = int((product.values > _VANISHED * self.radius).sum())
        width = min(rank + _SPARE, *self.entries.shape)
        values = product.values[:rank] * min(1.0, self.radius / max(product.values[:rank].sum(), self.radius))
        right = _orthonormal(np.hstack([product.right[:, :rank], self.fresh(width - rank)]))
        right[:, :rank] = product.right[:, :rank]  # QR may turn a column's sign
        left = np.hstack([product.left[:, :rank], np.zeros((len(found.users), width - rank))])
        return left, np.concatenate([values, np.zeros(width - rank)]), right

    def at(self, left: Floats, sizes: Floats, right: Floats) -> _Point:
        """The point X = left diag(sizes) right^T with its scores, objective and gradient."""
        rank = int((sizes > 0).sum())
        users, items = np.ascontiguousarray(left[:, :rank] * sizes[:rank]), np.ascontiguousarray(right[:, :rank])
        scores, slopes = np.empty((2, len(self.entries)))  # of the size of one, memory would go back to the system
        self.entries.inner_products(users, items, scores)
        return _Point(left, sizes, right, scores, *self.compared.slopes(self.loss, scores, slopes))

    def step(self, point: _Point) -> Step:
        """The step with the factors as a model, NaN for users and items in no comparison.

        A user's penalty is the multiplier of the bound, -<G, X> / radius where the bound is reached at the optimum.
        """
        roots = np.sqrt(point.sizes[point.sizes > 0])
        penalty = max(0.0, -float(point.slopes @ point.scores)) / self.radius if len(roots) else 1.0
        sides = [side[:, : len(roots)] * roots for side in (point.left, point.right)]
        if not len(roots):
            sides = [np.zeros((len(side), 1)) for side in sides]
        users, items = (known_rows(side, ids) for side, ids in zip(sides, self.entries.seen, strict=True))
        penalties = np.full(users.shape[1], penalty)
        return Step(Factors(users, items, penalties), lambda: point.objective, lambda: self.gap(point))

    def gap(self, point: _Point) -> float:
        """The duality gap <G, X> + radius sigma_1(G), of which rounding errors could leave less than nothing."""
        return max(0.0, float(point.slopes @ point.scores) + self.radius * self._largest(point.slopes))

    def _largest(self, slopes: Floats) -> float:
        """An upper bound on the gradient's largest singular value: that of the Lanczos method plus its tolerance."""
        matrix, smaller = self.entries.holding(slopes).matrix(), min(self.entries.shape)
        if smaller <= _FEW or not slopes.any():
            if matrix.shape[0] > smaller:
                matrix = matrix.T
            return float(np.sqrt(max(0.0, np.linalg.eigvalsh((matrix @ matrix.T).toarray())[-1])))
        options: Any = {"v0": self.probe, "ncv": _FEW - 1, "maxiter": 100 * smaller}
        (found,) = scipy.sparse.linalg.svds(matrix, 1, tol=_EXACT**0.5, return_singular_vectors=False, **options)
        return float(found) * (1 + _EXACT)


def _projected(problem: _Problem, point: _Point, curvature: float) -> tuple[_Point, float]:
    """A projected gradient step, and the next curvature: it is doubled until the quadratic bound of the step holds."""
    for _ in range(_TRIALS):
        candidate = problem.at(*_decomposed(problem, point, 1 / curvature, point.right))
        change = candidate.scores - point.scores
        bound = point.objective + float(point.slopes @ change) + curvature / 2 * _distance(candidate, point)
        if candidate.objective <= min(bound, point.objective) + _ROUNDING * point.objective:
            return candidate, curvature * _EASED
        curvature *= 2
        del candidate  # its memory serves the next one
    return point, curvature


def _decomposed(problem: _Problem, point: _Point, length: float, basis: Floats) -> tuple[Floats, Floats, Floats]:
    """The singular value decomposition of the projection of M = X - length G onto the ball, as far as it is sought.

    A few more vectors than the projection's rank are sought, with the last ones as a warm start. If none of the
    singular values becomes 0, there may be more, and the next step seeks half as many again.
    """
    left, sizes, right = _dominant(problem, point, length, basis)
    kept = _onto_the_ball(sizes, problem.radius)
    rank = int((kept > 0).sum())
    width = min(*problem.entries.shape, rank + (_SPARE if rank < len(kept) else max(_SPARE, rank // 2)))
    if width > len(kept):
        more = width - len(kept)
        right = np.hstack([right, _orthonormal(np.hstack([right, problem.fresh(more)]))[:, len(kept) :]])
        left = np.hstack([left, np.zeros((len(left), more))])
        kept = np.concatenate([kept, np.zeros(more)])
    return left[:, :width], kept[:width], right[:, :width]


def _dominant(problem: _Problem, point: _Point, length: float, basis: Floats) -> tuple[Floats, Floats, Floats]:
    """The largest singular values of M with their vectors, by subspace iteration."""
    sparse = problem.entries.holding(-length * point.slopes)
    rank = int((point.sizes > 0).sum())
    left, right = point.left[:, :rank] * point.sizes[:rank], point.right[:, :rank]
    for power in range(_POWERS):
        image = _orthonormal(left @ (right.T @ basis) + sparse.times(basis))
        back = right @ (left.T @ image) + sparse.transposed_times(image)
        if power + 1 < _POWERS:
            basis = _orthonormal(back)
    vectors, sizes, turned = np.linalg.svd(back, full_matrices=False)
    return image @ turned.T, sizes, vectors


def _onto_the_ball(sizes: Floats, radius: float) -> Floats:
    """The projection of descending sizes onto sum <= radius: all minus a threshold, at least 0."""
    if sizes.sum() <= radius:
        return np.where(sizes > _VANISHED * radius, sizes, 0.0)
    thresholds = (np.cumsum(sizes) - radius) / np.arange(1, len(sizes) + 1)
    threshold = thresholds[np.flatnonzero(sizes > thresholds)[-1]]
    left = np.maximum(0.0, sizes - threshold)
    return np.where(left > _VANISHED * radius, left, 0.0)


def _distance(one: _Point, other: _Point) -> float:
    """The squared Frobenius distance |X - Y|^2, from the factors."""
    mixed = (one.left * one.sizes).T @ other.left * other.sizes * (one.right.T @ other.right)
    squares = float(one.sizes @ one.sizes + other.sizes @ other.sizes)
    return max(0.0, squares - 2 * float(mixed.sum()))


def _corrected(problem: _Problem, point: _Point, corrections: int) -> _Point:
    """The point after some L-BFGS steps on its factors, on the sphere if it lies there, else inside the ball."""
    rank = int((point.sizes > 0).sum())
    if rank == 0 or corrections == 0:
        return point
    roots = np.sqrt(point.sizes[:rank])
    start = np.concatenate([point.left[:, :rank] * roots, point.right[:, :rank] * roots]).ravel()
    size = np.sqrt(2 * problem.radius)
    on_the_sphere = point.sizes.sum() >= (1 - _ON_THE_SPHERE) * problem.radius
    function = _on_factors(problem, rank, size if on_the_sphere else None)
    x = start
    for step in islice(descend(function, start), corrections + 1):
        x = step.x
        if not on_the_sphere and np.linalg.norm(x) > size:
            break
    norm = float(np.linalg.norm(x))
    corrected = _point_of(problem, point, x * (size / norm if on_the_sphere or norm > size else 1.0), rank)
    return corrected if corrected.objective < point.objective else point


def _on_factors(problem: _Problem, rank: int, size: float | None) -> Function:
    """The objective as a function of both factors in one vector, scaled to norm `size` if one is given."""
    users = problem.entries.shape[0]

    def objective(x: Floats) -> tuple[float, Floats]:
        scale = 1.0 if size is None else size / float(np.linalg.norm(x))
        both = (scale * x).reshape(-1, rank)
        left, right = both[:users], both[users:]
        value, *sides = problem.compared.gradients(problem.loss, left, right)
        gradient = np.concatenate([side[:, :rank] for side in sides]).ravel()
        if size is not None:  # scaling removes the radial part of the gradient
            gradient = scale * (gradient - (gradient @ both.ravel()) / size**2 * both.ravel())
        return value, gradient

    return objective


def _point_of(problem: _Problem, point: _Point, x: Floats, rank: int) -> _Point:
    """The point of the product of both factors; its spare vectors are the old ones, made orthogonal to the new."""
    users, width = problem.entries.shape[0], len(point.sizes)
    both = x.reshape(-1, rank)
    product = ProductSVD.of(both[:users], both[users:])
    sizes = np.where(product.values > _VANISHED * problem.radius, product.values, 0.0)
    right = product.right
    spare = _orthonormal(np.hstack([right, point.right[:, rank:]]))[:, rank:]
    left = np.hstack([product.left, np.zeros((users, width - rank))])
    return problem.at(left, np.concatenate([sizes, np.zeros(width - rank)]), np.hstack([right, spare]))


def _orthonormal(columns: Floats) -> Floats:
    basis, _ = np.linalg.qr(columns)
    return basis
