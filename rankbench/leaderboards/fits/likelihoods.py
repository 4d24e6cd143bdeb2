"""Models of a comparison's outcome, by the margin m of the left item over the right one: their losses and slopes.

With s the items' scores, m = s_left - s_right + the advantage of the left side + covariates. Every loss is the negative
logarithm of the outcome's probability, and is convex in m and in the parameter of ties t, so that a fit has one answer.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from rankbench.core.contract import Floats
from rankbench.leaderboards.votes import LEFT, RIGHT, TIE


@dataclass(frozen=True, eq=False)
class Terms:
    """Loss and derivatives of each outcome (rows) of each pair (columns), by m and by t."""

    loss: Floats
    by_m: Floats
    by_t: Floats
    by_mm: Floats
    by_mt: Floats
    by_tt: Floats


def softplus(x: Floats) -> Floats:
    """log(1 + e^x)."""
    found: Floats = np.logaddexp(0.0, x)
    return found


@dataclass(frozen=True)
class BradleyTerry:
    """P(left wins) = 1 / (1 + e^-m); a tie counts as half a win of each, which gives no probability of ties.

    R. A. Bradley and M. E. Terry (1952), Biometrika 39.
    """

    title: ClassVar[str] = "Bradley-Terry"
    has_ties: ClassVar[bool] = False  # whether it has a parameter t, and so a probability of ties
    start: ClassVar[float] = 0.0  # the t that a fit begins with

    def terms(self, m: Floats, t: float) -> Terms:
        """The loss of each outcome at these margins, with its derivatives."""
        won, lost = softplus(-m), softplus(m)
        p = expit(m)
        zero = np.zeros((3, len(m)))
        by_m = np.stack([p - 1, p, p - 0.5])
        return Terms(np.stack([won, lost, (won + lost) / 2]), by_m, zero, np.tile(p * (1 - p), (3, 1)), zero, zero)

    def slopes(self, m: Floats, t: Floats, seen: Floats) -> tuple[Floats, Floats]:
        """The derivatives by m and by t of the losses of the outcomes seen, for many fits side by side."""
        return seen.sum(axis=0) * expit(m) - (seen[LEFT] + seen[TIE] / 2), np.zeros_like(t)

    def chances(self, m: Floats, t: float) -> Floats:
        """The probability of each outcome."""
        p = expit(m)
        return np.stack([p, 1 - p, np.zeros_like(p)])


@dataclass(frozen=True)
class Davidson:
    """P(left) : P(right) : P(tie) = e^(m/2) : e^(-m/2) : e^t; two equal items tie with e^t / (2 + e^t).

    R. R. Davidson (1970), JASA 65. With Z the sum of the three, the loss is log Z - m/2, log Z + m/2 or log Z - t.
    """

    title: ClassVar[str] = "Davidson"
    has_ties: ClassVar[bool] = True
    start: ClassVar[float] = 0.0

    def terms(self, m: Floats, t: float) -> Terms:
        """The loss of each outcome at these margins, with its derivatives."""
        log_z = np.logaddexp(np.abs(m) / 2 + softplus(-np.abs(m)), t)
        left, right, tie = np.exp(m / 2 - log_z), np.exp(-m / 2 - log_z), np.exp(t - log_z)
        tilt = (left - right) / 2
        loss = np.stack([log_z - m / 2, log_z + m / 2, log_z - t])
        by_m = np.stack([tilt - 0.5, tilt + 0.5, tilt])
        by_t = np.stack([tie, tie, tie - 1])
        seconds = ((left + right) / 4 - tilt**2, -tie * tilt, tie * (1 - tie))
        return Terms(loss, by_m, by_t, *(np.tile(one, (3, 1)) for one in seconds))

    def slopes(self, m: Floats, t: Floats, seen: Floats) -> tuple[Floats, Floats]:
        """The derivatives by m and by t of the losses of the outcomes seen, for many fits side by side."""
        left, right, tie = self.chances(m, t)
        n = seen.sum(axis=0)
        return n * (left - right) / 2 - (seen[LEFT] - seen[RIGHT]) / 2, (n * tie - seen[TIE]).sum(axis=0)

    def chances(self, m: Floats, t: Floats | float) -> Floats:
        """The probability of each outcome."""
        high = np.maximum(np.abs(m) / 2, t)
        parts = np.stack([np.exp(m / 2 - high), np.exp(-m / 2 - high), np.exp(t - high) + 0 * m])
        found: Floats = parts / parts.sum(axis=0)
        return found


@dataclass(frozen=True)
class RaoKupper:
    """P(left wins) = 1 / (1 + e^(t - m)), P(right wins) = 1 / (1 + e^(t + m)), a tie otherwise; t > 0.

    P. V. Rao and L. L. Kupper (1967), JASA 62. With S(x) = 1 / (1 + e^-x) a tie has the probability
    S(m + t) - S(m - t) = (1 - e^(-2 t)) S(m + t) S(t - m), so that its loss is convex, too.
    """

    title: ClassVar[str] = "Rao-Kupper"
    has_ties: ClassVar[bool] = True
    start: ClassVar[float] = 0.5

    def terms(self, m: Floats, t: float) -> Terms:
        """The loss of each outcome at these margins, with its derivatives."""
        u, v = m + t, m - t
        p, q = expit(u), expit(v)
        room = -np.expm1(-2 * t) if t > 0 else np.nan  # the loss is infinite beyond its domain
        extra, slope = -np.log(room), -2 * np.exp(-2 * t) / room
        curve = 4 * np.exp(-2 * t) / room**2
        loss = np.stack([softplus(-v), softplus(u), softplus(-u) + softplus(v) + extra])
        by_m = np.stack([q - 1, p, p - 1 + q])
        by_t = np.stack([1 - q, p, p - 1 - q + slope])
        one, other = p * (1 - p), q * (1 - q)
        by_mm = np.stack([other, one, one + other])
        by_mt = np.stack([-other, one, one - other])
        return Terms(loss, by_m, by_t, by_mm, by_mt, by_mm + np.array([0.0, 0.0, curve])[:, None])

    def slopes(self, m: Floats, t: Floats, seen: Floats) -> tuple[Floats, Floats]:
        """The derivatives by m and by t of the losses of the outcomes seen, for many fits side by side."""
        p, q = expit(m + t), expit(m - t)
        room = -np.expm1(-2 * t)
        left, right, tie = seen
        by_m = left * (q - 1) + right * p + tie * (p - 1 + q)
        by_t = left * (1 - q) + right * p + tie * (p - 1 - q - 2 * np.exp(-2 * t) / room)
        return by_m, by_t.sum(axis=0)

    def chances(self, m: Floats, t: float) -> Floats:
        """The probability of each outcome."""
        left, right = expit(m - t), expit(-m - t)
        return np.stack([left, right, 1 - left - right])


Likelihood = BradleyTerry | Davidson | RaoKupper
LIKELIHOODS: dict[str, Likelihood] = {
    "bradley-terry": BradleyTerry(),
    "davidson": Davidson(),
    "rao-kupper": RaoKupper(),
}
