"""Losses of a margin, the score of the better item less that of the worse one: one record for each.

The kernels have the same losses in pyx/shared/losses.pxd. To add one, add it there, and here a record to `LOSSES` and
its name to those of the four types of names that it suits: the solvers of pairs take it then. The tests compare the
two files, and each loss with its own derivatives and its dual.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.special import expit

from rankbench.core.contract import Floats
from rankbench.kernels.shared.losses import Loss as Code

Function = Callable[[Floats], Floats]
CurvedLoss = Literal["squared-hinge", "logistic"]  # curved wherever a pair costs something: for Newton's method
SmoothLoss = Literal["squared-hinge", "logistic", "smooth-hinge"]  # with a continuous slope: for L-BFGS
PairLoss = Literal["squared-hinge", "logistic", "smooth-hinge", "hinge"]  # all: for stochastic gradients
DualLoss = Literal["squared-hinge", "smooth-hinge", "hinge"]  # with a `Dual`: for dual coordinate descent


@dataclass(frozen=True)
class Dual:
    """The dual of a loss that is a parabola on an interval: L(m) = max of a (1 - m) - ridge/2 a^2 over 0 <= a <= upper.

    With a weight C > 0 on the loss it is the same with ridge / C and C upper.
    """

    ridge: float
    upper: float


@dataclass(frozen=True)
class Loss:
    """A loss by its name: its code in the kernels, its value, slope and curvature at margins, and its dual if any."""

    name: str
    code: Code
    value: Function
    slope: Function
    curvature: Function
    dual: Dual | None = None


LOSSES = (
    Loss(
        "squared-hinge",  # max(0, 1 - m)^2
        Code.SQUARED_HINGE,
        lambda m: np.square(np.maximum(0.0, 1.0 - m)),
        lambda m: -2.0 * np.maximum(0.0, 1.0 - m),
        lambda m: np.where(m < 1.0, 2.0, 0.0),
        Dual(0.5, np.inf),
    ),
    Loss(
        "hinge",  # max(0, 1 - m)
        Code.HINGE,
        lambda m: np.maximum(0.0, 1.0 - m),
        lambda m: np.where(m < 1.0, -1.0, 0.0),
        np.zeros_like,
        Dual(0.0, 1.0),
    ),
    Loss(
        "logistic",  # log(1 + e^-m)
        Code.LOGISTIC,
        lambda m: np.logaddexp(0.0, -m),
        lambda m: -np.asarray(expit(-m)),
        lambda m: np.asarray(expit(m) * expit(-m)),
    ),
    Loss(
        "smooth-hinge",  # 1/2 - m below 0, (1 - m)^2 / 2 up to 1, then 0
        Code.SMOOTH_HINGE,
        lambda m: np.where(m < 0.0, 0.5 - m, 0.5 * np.square(np.maximum(0.0, 1.0 - m))),
        lambda m: -np.clip(1.0 - m, 0.0, 1.0),
        lambda m: np.where((m > 0.0) & (m < 1.0), 1.0, 0.0),
        Dual(1.0, 1.0),
    ),
)

BY_NAME = {loss.name: loss for loss in LOSSES}
CODES = {loss.name: loss.code for loss in LOSSES}
NAMES = {loss.code: loss.name for loss in LOSSES}
DUALS = {loss.name: loss.dual for loss in LOSSES if loss.dual}
CURVED = frozenset(CODES[name] for name in get_args(CurvedLoss))
