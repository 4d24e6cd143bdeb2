"""Line search by backtracking: a step is halved until it decreases a function sufficiently (Armijo 1966)."""

from collections.abc import Iterator

from rankbench.kernels.shared.line_search import HIDDEN_CHANGE, SUFFICIENT_DECREASE


def sufficient(value: float, start: float, length: float, slope: float) -> bool:
    """Whether a step of this length has decreased a function from `start` to `value` sufficiently.

    That is by more than a ten-thousandth of length x slope, the decrease that the slope at the start of the step
    promises. To test a change of the function instead of its value, pass the change as `value` and start=0.
    """
    return bool(value < start + SUFFICIENT_DECREASE * length * slope)


def promising(slope: float, value: float) -> bool:
    """Whether a function's value can show the decrease that a slope promises for a step of length 1.

    If not, rounding errors decide which steps decrease it sufficiently, and a search for one is in vain.
    """
    return bool(slope < -HIDDEN_CHANGE * abs(value))


def level(change: float, value: float) -> bool:
    """Whether a function has risen by no more than the rounding errors of its value may be.

    On this condition a whole Newton step is taken that is not `promising`, since the gradient may still fall.
    """
    return bool(change <= HIDDEN_CHANGE * abs(value))


def halved(trials: int, first: float = 1.0) -> Iterator[float]:
    """The lengths that backtracking tries: the first one, half of it, a quarter of it, ..."""
    length = first
    for _ in range(trials):
        yield length
        length /= 2
