"""The vector that minimises a smooth convex function, by Newton's method with a dense matrix of curvatures."""

from typing import Protocol

import numpy as np

from rankbench.core.contract import Floats
from rankbench.methods.line_search import halved, sufficient

_STEPS = 100  # at most
_ENDED = 1e-12  # a decrement, as a share of the function's value, at which the vector is found
_TRIALS = 30  # step lengths of a line search, at most


class Convex(Protocol):
    """A smooth convex function of a vector."""

    def value(self, x: Floats) -> float:
        """Its value."""

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        """Its gradient, and its matrix of second derivatives, which is positive definite."""


def minimum(function: Convex, size: int) -> Floats:
    """The vector of so many numbers at which the function is lowest, from zero on."""
    x = np.zeros(size)
    value = function.value(x)
    for _ in range(_STEPS):
        gradient, curvature = function.derivatives(x)
        direction = -np.linalg.solve(curvature, gradient)
        slope = float(gradient @ direction)
        if -slope <= _ENDED * max(1.0, abs(value)):
            return np.asarray(x + direction)  # which squares the rest of the error
        for length in halved(_TRIALS):
            there = function.value(x + length * direction)
            if sufficient(there, value, length, slope):
                break
        else:
            break
        x, value = x + length * direction, there
    return x
