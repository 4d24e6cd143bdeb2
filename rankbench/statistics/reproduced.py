"""A published number beside ours, with the spread of both sides: agrees, higher, lower, or undecided."""

from dataclasses import dataclass
from math import hypot, inf, isfinite, sqrt

from scipy.special import stdtrit

AGREES, HIGHER, LOWER, UNDECIDED = "agrees", "higher", "lower", "undecided"


@dataclass(frozen=True)
class Printed:
    """A number as a paper prints it."""

    value: float
    digits: int  # behind the point
    spread: float | None = None  # the standard deviation over its repetitions
    repetitions: int = 1


@dataclass(frozen=True)
class Ours:
    """A measured mean, its standard error with degrees of freedom, and how single repetitions spread around it."""

    mean: float
    error: float
    freedom: float
    repetitions: int
    spread: float  # the standard deviation of one repetition's mean


@dataclass(frozen=True)
class Reproduction:
    """What is said of our number beside a published one."""

    word: str
    difference: float  # ours minus theirs
    reach: float  # a difference up to this is no surprise, at 5 %
    reason: str = ""


def reproduced(ours: Ours, printed: Printed) -> Reproduction:
    """Whether our number agrees with a published one, or is higher or lower than both sides' spread explains."""
    difference = ours.mean - printed.value
    rounding = 0.5 * 10.0**-printed.digits
    known = printed.spread is not None
    if not isfinite(difference) or not isfinite(ours.error) or ours.freedom < 1:
        return Reproduction(UNDECIDED, difference, inf, "our own interval is not known")
    if not known and ours.repetitions < 2:
        return Reproduction(UNDECIDED, difference, inf, "theirs has no spread, and ours is one repetition")
    spread = printed.spread if printed.spread is not None else ours.spread
    own = ours.error if ours.repetitions > 1 else max(ours.error, spread)  # what a repetition changes is theirs to say
    theirs = spread / sqrt(max(printed.repetitions, 1))
    error, others = hypot(own, theirs), (printed.repetitions if known else ours.repetitions) - 1
    if error == 0 and not known:
        return Reproduction(UNDECIDED, difference, inf, "neither side is known to vary")
    shares = own**4 / ours.freedom + theirs**4 / max(others, 1)
    freedom = error**4 / shares if shares > 0 else inf
    reach = rounding + (float(stdtrit(min(freedom, 1e6), 0.975)) * error)
    reason = "" if known else "their number has no spread and counts as one draw" if printed.repetitions < 2 else (
        "their number has no spread and counts as varying like ours")  # fmt: skip
    if abs(difference) <= reach:
        return Reproduction(AGREES, difference, reach, reason)
    return Reproduction(HIGHER if difference > 0 else LOWER, difference, reach, reason)
