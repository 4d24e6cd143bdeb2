"""Losses of a margin, the score of the better item less that of the worse one: one record for each.

Whoever adds a loss adds a record to `LOSSES`, with the codes by which those kernels know it that have it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from rankbench.contract import Floats
from rankbench.kernels import entries, global_ranking, margins

Function = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Loss:
    """A loss by its name: value, slope and curvature at margins, and its code in the kernels that compute it."""

    name: str
    value: Function
    slope: Function
    curvature: Function
    of_factors: int | None = None  # in kernels of users' and items' vectors
    of_entries: int | None = None  # in kernels of (user, item) entries
    of_items: int | None = None  # in kernels of one score per item


LOSSES = (
    Loss(
        "squared-hinge",  # max(0, 1 - m)^2
        lambda m: np.square(np.maximum(0.0, 1.0 - m)),
        lambda m: -2.0 * np.maximum(0.0, 1.0 - m),
        lambda m: np.where(m < 1.0, 2.0, 0.0),
        margins.SQUARED_HINGE,
        entries.SQUARED_HINGE,
        global_ranking.SQUARED_HINGE,
    ),
    Loss(
        "hinge",  # max(0, 1 - m)
        lambda m: np.maximum(0.0, 1.0 - m),
        lambda m: np.where(m < 1.0, -1.0, 0.0),
        np.zeros_like,
        of_factors=margins.HINGE,
    ),
    Loss(
        "logistic",  # log(1 + e^-m)
        lambda m: np.logaddexp(0.0, -m),
        lambda m: -np.asarray(expit(-m)),
        lambda m: np.asarray(expit(m) * expit(-m)),
        margins.LOGISTIC,
        entries.LOGISTIC,
        global_ranking.LOGISTIC,
    ),
    Loss(
        "smooth-hinge",  # 1/2 - m below 0, (1 - m)^2 / 2 up to 1, then 0
        lambda m: np.where(m < 0.0, 0.5 - m, 0.5 * np.square(np.maximum(0.0, 1.0 - m))),
        lambda m: -np.clip(1.0 - m, 0.0, 1.0),
        lambda m: np.where((m > 0.0) & (m < 1.0), 1.0, 0.0),
        of_entries=entries.SMOOTH_HINGE,
    ),
)

OF_FACTORS = {loss.name: loss.of_factors for loss in LOSSES if loss.of_factors is not None}
OF_ENTRIES = {loss.name: loss.of_entries for loss in LOSSES if loss.of_entries is not None}
OF_ITEMS = {loss.name: loss.of_items for loss in LOSSES if loss.of_items is not None}
