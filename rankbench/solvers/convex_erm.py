"""Convex empirical risk minimisation: the score matrix itself, under a bound on its nuclear norm (Park et al. 2015)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import scipy.sparse.linalg

from rankbench.contract import Determinism, Floats, Step
from rankbench.data.views import Comparisons
from rankbench.methods.descent import Function, descend
from rankbench.methods.entries import ComparedEntries, known_rows
from rankbench.models import Factors
from rankbench.names import Limits, check, checked_threads

_SPARE = 4  # singular vectors sought beyond those that X has
_POWERS = 2  # products with M and its transpose per search
_VANISHED = 1e-13  # of the radius: a singular value that is none
_STALLED = 1e-14  # of the objective: a decrease that is none
_ROUNDING = 1e-15  # of the objective
_PATIENCE = 10  # steps without a decrease: X, and with it the gap, still moves to the optimum
_ON_THE_SPHERE = 1e-9
_EASED = 0.9  # what is left of the curvature after a step that it bounded
_TRIALS = 60
_FEW = 40  # users or items, whose own products are as good
_EXACT = 1e-11  # of a singular value may be missing: Lanczos works with squares, and so with the root of this


@dataclass(frozen=True)
class ConvexERM:
    """A score for each user and item, the best of all matrices of bounded nuclear norm, with a gap as proof.

    min_X sum L(X_ij - X_ik) over comparisons (i, j over k), s.t. |X|_* <= sqrt(lam d1 d2), with d1 users
    and d2 items that are in some comparison: so `lam` is a bound on the size of the scores squared times
    the rank, and *more* of it regularises *less*. `L` is the logistic loss of the Bradley-Terry-Luce
    model (Corollary 1), the 1-Lipschitz smooth hinge (1/2 - m below 0, (1 - m)^2 / 2 up to 1, then 0) or
    the squared hinge, which is not Lipschitz, so that the theorem does not speak of it.

    X = U diag(s) V^T is kept as factors, and no users x items matrix is ever formed: the gradient G is
    sparse. A step is a projected gradient step, X <- P(X - G / curvature) by a truncated singular value
    decomposition of low rank plus sparse, started from the last one's vectors, and then `corrections`
    steps of L-BFGS on the factors at that rank. The first finds the rank and heads for the optimum over
    all matrices, the second gets there fast: with |X|_* = min (|A|^2 + |B|^2) / 2 over A B^T = X, the ball
    becomes |A|^2 + |B|^2 <= 2 radius. The gap <G, X> + radius sigma_1(G) is that of Frank and Wolfe and,
    by Fenchel's equality, the duality gap: the dual of the slopes is -sum L*(-a) - radius sigma_1(G).
    """

    lam: Annotated[float, Limits(above=0, below=np.inf)] = 1.0
    loss: Literal["logistic", "smooth-hinge", "squared-hinge"] = "logistic"
    corrections: Annotated[int, Limits(low=0)] = 10
    learns_from: ClassVar = Comparisons
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1

    def __post_init__(self) -> None:
        check(self)

    def steps(self, train: Comparisons, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """X = 0, then a model after each step, until the objective falls no more."""
        threads = checked_threads(threads)
        problem = _Problem(self, ComparedEntries.of(train, threads), rng)
        point = problem.at(*problem.nothing())
        yield problem.step(point)
        curvature, stalls = 1.0, 0
        while len(train) and stalls < _PATIENCE:
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

    def __init__(self, solver: ConvexERM, entries: ComparedEntries, rng: np.random.Generator) -> None:
        self.entries, self.loss = entries, solver.loss
        users, items = (len(ids) for ids in entries.seen)
        self.radius = float(np.sqrt(solver.lam * users * items))
        self.rng, self.probe = rng, rng.standard_normal(min(entries.shape))

    def fresh(self, columns: int) -> Floats:
        """Random directions of items to search in."""
        return self.rng.standard_normal((self.entries.shape[1], columns))

    def nothing(self) -> tuple[Floats, Floats, Floats]:
        """The factors of X = 0, with some random directions to search from."""
        users, items = self.entries.shape
        width = min(_SPARE, users, items)
        return np.zeros((users, width)), np.zeros(width), _orthonormal(self.fresh(width))

    def at(self, left: Floats, sizes: Floats, right: Floats) -> _Point:
        """Everything about X = left diag(sizes) right^T."""
        rank = int((sizes > 0).sum())
        users, items = np.ascontiguousarray(left[:, :rank] * sizes[:rank]), np.ascontiguousarray(right[:, :rank])
        scores = self.entries.products(users, items)
        return _Point(left, sizes, right, scores, *self.entries.slopes(self.loss, scores))

    def step(self, point: _Point) -> Step:
        """The factors as a model, NaN for whoever is in no comparison."""
        roots = np.sqrt(point.sizes[point.sizes > 0])
        users, items = (side[:, : len(roots)] * roots for side in (point.left, point.right))
        known = self.entries.seen
        factors = [
            known_rows(side if side.size else np.zeros((len(side), 1)), ids)
            for side, ids in zip((users, items), known, strict=True)
        ]
        return Step(Factors(*factors), lambda: point.objective, lambda: self.gap(point))

    def gap(self, point: _Point) -> float:
        """<G, X> + radius sigma_1(G), which bounds what the objective lies above the optimum."""
        return float(point.slopes @ point.scores) + self.radius * self._largest(point.slopes)

    def _largest(self, slopes: Floats) -> float:
        """The largest singular value of the gradient, by Lanczos; what may be missing of it is put on top."""
        matrix, smaller = self.entries.matrix(slopes), min(self.entries.shape)
        if smaller <= _FEW or not slopes.any():
            if matrix.shape[0] > smaller:
                matrix = matrix.T
            return float(np.sqrt(max(0.0, np.linalg.eigvalsh((matrix @ matrix.T).toarray())[-1])))
        options: Any = {"v0": self.probe, "ncv": _FEW - 1, "maxiter": 100 * smaller}
        (found,) = scipy.sparse.linalg.svds(matrix, 1, tol=_EXACT**0.5, return_singular_vectors=False, **options)
        return float(found) * (1 + _EXACT)


def _projected(problem: _Problem, point: _Point, curvature: float) -> tuple[_Point, float]:
    """The projection of X - G / curvature; the curvature grows until it bounds the objective on the way there."""
    for _ in range(_TRIALS):
        candidate = problem.at(*_decomposed(problem, point, 1 / curvature, point.right))
        change = candidate.scores - point.scores
        bound = point.objective + float(point.slopes @ change) + curvature / 2 * _distance(candidate, point)
        if candidate.objective <= min(bound, point.objective) + _ROUNDING * point.objective:
            return candidate, curvature * _EASED
        curvature *= 2
    return point, curvature


def _decomposed(problem: _Problem, point: _Point, length: float, basis: Floats) -> tuple[Floats, Floats, Floats]:
    """The projection's singular vectors and sizes: those of M = X - length G as far as they are sought, cut down.

    A few more vectors than the projection leaves are sought, starting from the last ones. Where it leaves all
    of them there may be more: the next step seeks half as many again. (Inside the ball it would leave every one.)
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
    """The largest singular values of M and their vectors, by subspace iteration."""
    entries, weights = problem.entries, -length * point.slopes
    rank = int((point.sizes > 0).sum())
    left, right = point.left[:, :rank] * point.sizes[:rank], point.right[:, :rank]
    for _ in range(_POWERS):
        image = _orthonormal(left @ (right.T @ basis) + entries.times(weights, basis))
        back = right @ (left.T @ image) + entries.transposed_times(weights, image)
        basis = _orthonormal(back)
    vectors, sizes, turned = np.linalg.svd(back, full_matrices=False)
    return image @ turned.T, sizes, vectors


def _onto_the_ball(sizes: Floats, radius: float) -> Floats:
    """The nearest falling sizes that sum to at most the radius: all less a threshold, and none below 0."""
    if sizes.sum() <= radius:
        return np.where(sizes > _VANISHED * radius, sizes, 0.0)
    thresholds = (np.cumsum(sizes) - radius) / np.arange(1, len(sizes) + 1)
    threshold = thresholds[np.flatnonzero(sizes > thresholds)[-1]]
    left = np.maximum(0.0, sizes - threshold)
    return np.where(left > _VANISHED * radius, left, 0.0)


def _distance(one: _Point, other: _Point) -> float:
    """|X - Y|^2, by way of the factors."""
    mixed = (one.left * one.sizes).T @ other.left * other.sizes * (one.right.T @ other.right)
    squares = float(one.sizes @ one.sizes + other.sizes @ other.sizes)
    return max(0.0, squares - 2 * float(mixed.sum()))


def _corrected(problem: _Problem, point: _Point, corrections: int) -> _Point:
    """The point after some steps on its factors, on the sphere where it lies there and else inside the ball."""
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
    corrected = _balanced(problem, point, x * (size / norm if on_the_sphere or norm > size else 1.0), rank)
    return corrected if corrected.objective < point.objective else point


def _on_factors(problem: _Problem, rank: int, size: float | None) -> Function:
    """The objective of both factors, one above the other; scaled to a size first where there is one."""
    users = problem.entries.shape[0]

    def objective(x: Floats) -> tuple[float, Floats]:
        scale = 1.0 if size is None else size / float(np.linalg.norm(x))
        both = (scale * x).reshape(-1, rank)
        left, right = both[:users], both[users:]
        value, slopes = problem.entries.slopes(problem.loss, problem.entries.products(left, right))
        gradient = np.concatenate(
            [problem.entries.times(slopes, right), problem.entries.transposed_times(slopes, left)]
        ).ravel()
        if size is not None:  # what points outwards is lost in the scaling
            gradient = scale * (gradient - (gradient @ both.ravel()) / size**2 * both.ravel())
        return value, gradient

    return objective


def _balanced(problem: _Problem, point: _Point, x: Floats, rank: int) -> _Point:
    """The decomposition of the product of both factors; the vectors to spare stay as they were, as far as they can."""
    users = problem.entries.shape[0]
    both = x.reshape(-1, rank)
    (left, one), (right, other) = np.linalg.qr(both[:users]), np.linalg.qr(both[users:])
    turned, sizes, back = np.linalg.svd(one @ other.T)
    sizes = np.where(sizes > _VANISHED * problem.radius, sizes, 0.0)
    width = len(point.sizes)
    right = right @ back.T
    spare = _orthonormal(np.hstack([right, point.right[:, rank:]]))[:, rank:]
    left = np.hstack([left @ turned, np.zeros((users, width - rank))])
    return problem.at(left, np.concatenate([sizes, np.zeros(width - rank)]), np.hstack([right, spare]))


def _orthonormal(columns: Floats) -> Floats:
    basis, _ = np.linalg.qr(columns)
    return basis
