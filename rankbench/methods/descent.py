"""Descent on smooth functions of many numbers: limited-memory BFGS as a generator of its points."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rankbench.contract import Floats
from rankbench.methods.line_search import sufficient

Function = Callable[[Floats], tuple[float, Floats]]  # a value, and the gradient

_CURVATURE = 0.9  # of the slope may be left (Wolfe)
_TRIALS = 20


@dataclass(frozen=True, eq=False)
class Point:
    """Where the function was evaluated, and what it gave there."""

    x: Floats
    value: float
    gradient: Floats


def descend(function: Function, start: Floats, memory: int = 10) -> Iterator[Point]:
    """The start, then a lower point after each iteration; ends where no step leads lower (Nocedal 1980).

    Steps meet the weak Wolfe conditions, found by bisection, so that every pair of changes has positive
    curvature and may be remembered.
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
        if change @ bend > 0:
            pairs = [*pairs, (change, bend)][-memory:]
        point = found


def _first_length(point: Point) -> float:
    """A step as long as a hundredth of the point itself, or 1 from the origin: nothing else is known yet."""
    size = float(np.linalg.norm(point.gradient))
    return max(float(np.linalg.norm(point.x)) / 100, 1e-3) / size if size > 0 else 1.0


def _inverse_times(pairs: list[tuple[Floats, Floats]], gradient: Floats) -> Floats:
    """The remembered approximation of the inverse Hessian times the gradient, by two loops over the pairs."""
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
    """A lower point that meets the weak Wolfe conditions, or the last that at least fell; None without one."""
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
