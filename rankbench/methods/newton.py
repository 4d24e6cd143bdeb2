"""Truncated Newton for min 1/2 |x|^2 + C loss(A x), with a smooth loss over pairs and A linear, with its gap."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from rankbench.core.contract import Floats, Model, Step
from rankbench.kernels.shared.losses import Loss
from rankbench.methods.line_search import sufficient
from rankbench.methods.pair_tasks import PairTasks, ScoredPairs

CONVERGED = 1e-12  # the relative gap at which to stop, about the size of rounding errors
_ROUNDING = 1e-14  # of the terms of a sum
_TRIALS = 20  # of the line search
_INNER = 1000  # conjugate gradients per Newton step, at most
_MANY = 50  # conjugate gradients that take as long as it takes to make the stronger preconditioner
_FEW = 10  # conjugate gradients that cost little: where no step took more, directions may be more exact
_STALLED = 0.05  # relative decrease below which a step that does not halve the gap, either, was not exact enough
_SHARPER = 0.1  # what the tolerance of the next directions is multiplied with then


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear map from unknowns to a score per row, with its transpose and a preconditioner for the Hessian.

    `preconditioner` takes a weight per row, C times the sum of the curvatures of the pairs that the row is in. It
    returns a symmetric positive definite map, close to (I + A^T diag(weights) A)^-1. `stronger`, where there is one, is
    closer, but takes longer to make: it is asked for once a Newton step took many conjugate gradients.
    """

    size: int
    forward: Callable[[Floats], Floats]
    backward: Callable[[Floats], Floats]
    preconditioner: Callable[[Floats], Callable[[Floats], Floats]]
    stronger: Callable[[Floats], Callable[[Floats], Floats] | None] | None = None

    def inverse(self, weights: Floats, before: int) -> Callable[[Floats], Floats]:
        """The preconditioner for a step after one of so many conjugate gradients."""
        found = self.stronger(weights) if self.stronger and before > _MANY else None
        return found or self.preconditioner(weights)


@dataclass(frozen=True, eq=False)
class NewtonPoint:
    """A point of the minimisation; the gap is an upper bound on how far the objective is above its minimum."""

    unknowns: Floats
    pairs: ScoredPairs
    gradient: Floats
    objective: float
    gap: float

    def step(self, model: Model) -> Step:
        """The step that a solver yields for this point, given the model."""
        return Step(model, lambda: self.objective, lambda: self.gap)


def minimise(tasks: PairTasks, linear: Linear, C: float) -> Iterator[NewtonPoint]:
    """Zero, then a point after each Newton step, until the gap vanishes or the line search fails."""
    unknowns = np.zeros(linear.size)
    point: NewtonPoint | None = _point(unknowns, tasks.at(linear.forward(unknowns)), linear, C)
    most, share = 0, 1.0  # conjugate gradients of a step so far, and of the usual tolerance of directions
    while point is not None:
        yield point
        if point.gap <= CONVERGED * point.objective:
            return
        direction, taken = _direction(point, linear, C, most, share)
        most = max(most, taken)
        before, point = point, _moved(tasks, point, direction, linear, C)
        if point is not None and most <= _FEW and _stalled(before, point):
            share *= _SHARPER


def _stalled(before: NewtonPoint, after: NewtonPoint) -> bool:
    """Whether a step gained little: neither has the gap halved nor has the objective fallen by much.

    Where the Hessian is ill-conditioned, directions with a small residual can be far from Newton's: they turn between
    the walls of a valley, along which the objective falls by less than a thousandth in each step.
    """
    return after.gap > before.gap / 2 and after.objective > (1 - _STALLED) * before.objective


def _point(unknowns: Floats, pairs: ScoredPairs, linear: Linear, C: float) -> NewtonPoint:
    """The point with these unknowns: its gradient, objective and gap."""
    pull = -C * linear.backward(pairs.slope)
    objective = 0.5 * float(unknowns @ unknowns) + C * pairs.loss
    gradient = unknowns - pull
    return NewtonPoint(unknowns, pairs, gradient, objective, gap_of(unknowns, pull, pairs, C))


def gap_of(unknowns: Floats, pull: Floats, pairs: ScoredPairs, C: float) -> float:
    """The duality gap, from the dual variables a = -C L'(margin) of the pairs.

    With pull = A^T a, and L(m) + L*(L'(m)) = m L'(m) for the conjugate L*, the gap is 1/2 |x - pull|^2. For the squared
    hinge a is 2 C (1 - margin)_+, and the best multiple of it is better far from the optimum. The dual value is
    sum a - sum a^2/(4C) - 1/2 |pull|^2, where sum a^2/(4C) = C loss and sum a = 2 C loss - C slope . scores; that of
    the best multiple is (sum a)^2 / (4 (C loss + 1/2 |pull|^2)).
    """
    difference = unknowns - pull
    plain = 0.5 * float(difference @ difference)
    if pairs.tasks.loss != Loss.SQUARED_HINGE:
        return plain
    weight = 2 * C * pairs.loss - C * float(pairs.slope @ pairs.scores)
    cost = C * pairs.loss + 0.5 * float(pull @ pull)
    if cost == 0:
        return plain
    objective = 0.5 * float(unknowns @ unknowns) + C * pairs.loss
    return max(0.0, min(plain, objective - weight**2 / (4 * cost)))


def _direction(point: NewtonPoint, linear: Linear, C: float, most: int, share: float) -> tuple[Floats, int]:
    """The Newton direction by conjugate gradients, the more exact the smaller the gap, and how many these were.

    SciPy's: it stops by the norm of the residual, `methods.conjugate_gradients` by the preconditioned one."""
    taken = 0

    def count(_: Floats) -> None:
        nonlocal taken
        taken += 1

    def times(p: Floats) -> Floats:
        return np.asarray(p + C * linear.backward(point.pairs.curve(linear.forward(p))))

    shape = linear.size, linear.size
    hessian = LinearOperator(shape, times, dtype=np.float64)
    inverse = linear.inverse(2 * C * point.pairs.degree, most)
    preconditioner = LinearOperator(shape, inverse, dtype=np.float64)
    tolerance = share * min(0.1, np.sqrt(point.gap / point.objective))
    direction, _ = cg(hessian, -point.gradient, rtol=tolerance, maxiter=_INNER, M=preconditioner, callback=count)
    return np.asarray(direction), taken


def _moved(tasks: PairTasks, point: NewtonPoint, direction: Floats, linear: Linear, C: float) -> NewtonPoint | None:
    """The point after a step along a direction; None if no length is accepted.

    A step is accepted if the objective falls enough, or if it is level and the gap halves: where C is large, the gap is
    still far from zero when the last digits of the objective no longer show that it falls. If the whole step is not,
    Newton's method seeks the lowest point between 0 and 1. It often lies just behind the length from which another pair
    costs something, so that the next direction knows of this pair; halved lengths all end before it.
    """
    moves, promised = linear.forward(direction), float(point.gradient @ direction)
    along, own = float(point.unknowns @ direction), float(direction @ direction)
    terms = point.objective + C * float(point.pairs.degree @ np.square(point.pairs.scores))
    length, low, high = 1.0, 0.0, 1.0
    for _ in range(_TRIALS):
        pairs = tasks.at(point.pairs.scores + length * moves)
        change = length * (along + length / 2 * own) + C * (pairs.loss - point.pairs.loss)
        fallen = sufficient(change, 0.0, length, promised)
        if fallen or change <= _ROUNDING * terms:
            found = _point(point.unknowns + length * direction, pairs, linear, C)
            if fallen or found.gap <= point.gap / 2:
                return found
        slope = promised + length * own + C * float((pairs.slope - point.pairs.slope) @ moves)
        low, high = (low, length) if slope > 0 else (length, high)
        bend = own + C * float(moves @ pairs.curve(moves))
        length = length - slope / bend if bend else high
        if not low < length < high:
            length = (low + high) / 2
    return None
