"""Objectives of matrices by other means: slopes by differences, and what another optimiser finds below an end."""

from collections.abc import Callable

import numpy as np
import scipy.optimize

from rankbench.core.contract import Floats

Objective = Callable[..., float]  # of matrices


def slopes_of(objective: Objective, *at: Floats, step: float = 1e-7) -> Floats:
    """The slopes at these matrices, row by row, by differences."""
    return scipy.optimize.approx_fprime(_flat(at), lambda point: objective(*_parts(point, at)), step)


def least_below(objective: Objective, *start: Floats) -> float:
    """The least value that L-BFGS-B finds from these matrices on."""
    found = scipy.optimize.minimize(lambda point: objective(*_parts(point, start)), _flat(start), method="L-BFGS-B")
    return float(found.fun)


def _flat(matrices: tuple[Floats, ...]) -> Floats:
    return np.concatenate([matrix.ravel() for matrix in matrices])


def _parts(point: Floats, like: tuple[Floats, ...]) -> list[Floats]:
    """The matrices of these shapes that a vector holds, one after the other."""
    cuts = np.cumsum([matrix.size for matrix in like])[:-1]
    return [part.reshape(matrix.shape) for part, matrix in zip(np.split(point, cuts), like, strict=True)]
