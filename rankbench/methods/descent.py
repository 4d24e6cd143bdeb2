"""Limited-memory BFGS for smooth functions of many variables, as a generator of its points."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rankbench.core.contract import Floats
from rankbench.methods.line_search import sufficient

Function = Callable[[Floats], tuple[float, Floats]]  # a value, and the gradient

_CURVATURE = 0.9  # the share of the slope that may be left after a step (Wolfe's curvature condition)
_TRIALS = 20  # evaluations of a line search, at most


@dataclass(frozen=True, eq=False)
class Point:
    """A point with the function's value and gradient there."""

    x: Floats
    value: float
    gradient: Floats


def descend(function: Function, start: Floats, memory: int = 10) -> Iterator[Point]:
    """The start, then a point of lower value after each iteration, until the line search finds none (Nocedal 1980).

    The line search is a bisection for the weak Wolfe conditions. So the changes of point and gradient have a
    positive inner product, and may enter the approximation of the Hessian.
    """
    point = Point(start, *function(start))
    pairs: list[tuple[Floats, Floats]] = []
    while True:
        yield point
        direction = -_inverse_times(pairs, point.gradient)
        found = _line_search(function, point, direction, 1.0 if pairs else _first_length(point))
        if found is None:
            return
        change, bend = found.x - point.x, found.gradient - point.gradient
        if change @ bend > 0 and bend @ bend > 0:  # which is zero where the squares of a tiny gradient underflow
            pairs = [*pairs, (change, bend)][-memory:]
        point = found


def _first_length(point: Point) -> float:
    """The first step length: it moves by a hundredth of the point's norm, while nothing is known of the curvature."""
    size = float(np.linalg.norm(point.gradient))
    return max(float(np.linalg.norm(point.x)) / 100, 1e-3) / size if size > 0 else 1.0


def _inverse_times(pairs: list[tuple[Floats, Floats]], gradient: Floats) -> Floats:
    """The approximate inverse Hessian times the gradient, by the two-loop recursion over the remembered pairs."""
    product = gradient.copy()
    weights = []
    for change, bend in reversed(pairs):
        weights.append(float(change @ product) / float(change @ bend))
        product -= weights[-1] * bend
    if pairs:
        change, bend = pairs[-1]
        product *= float(change @ bend) / float(bend @ bend)
    for (change, bend), weight in zip(pairs, reversed(weights), strict=True):
        product += (weight - float(bend @ product) / float(change @ bend)) * change
    return product


def _line_search(function: Function, point: Point, direction: Floats, length: float) -> Point | None:
    """A point that meets the weak Wolfe conditions, else the last of sufficient decrease; None if there is none."""
    slope = float(point.gradient @ direction)
    if not slope < 0:
        return None
    low, high, best = 0.0, np.inf, None
    for _ in range(_TRIALS):
        x = point.x + length * direction
        trial = Point(x, *function(x))
        if not sufficient(trial.value, point.value, length, slope):
            high = length
        else:
            best = trial
            if trial.gradient @ direction >= _CURVATURE * slope:
                return trial
            low = length
        length = 2 * low if high == np.inf else (low + high) / 2
    return best
