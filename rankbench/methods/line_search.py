"""Line search by backtracking: a step is halved until it decreases a function sufficiently (Armijo 1966)."""

from collections.abc import Iterator

from rankbench.kernels.shared.line_search import HIDDEN_DECREASE, SUFFICIENT_DECREASE


def sufficient(value: float, start: float, length: float, slope: float) -> bool:
    """Whether a step of this length has decreased a function from `start` to `value` sufficiently.

    That is by more than a ten-thousandth of length x slope, the decrease that the slope at the start of the step
    promises. To test a change of the function instead of its value, pass the change as `value` and start=0.
    """
    return bool(value < start + SUFFICIENT_DECREASE * length * slope)


def promising(slope: float, value: float) -> bool:
    """Whether a function's value can show the decrease that a slope promises for a step of length 1.

    It cannot where the decrease is less than half of the last digit of the value: a search would end by chance.
    """
    return bool(slope < -HIDDEN_DECREASE * abs(value))


def halved(trials: int, first: float = 1.0) -> Iterator[float]:
    """The lengths that backtracking tries: the first one, half of it, a quarter of it, ..."""
    length = first
    for _ in range(trials):
        yield length
        length /= 2
