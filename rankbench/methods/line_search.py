"""Line search by backtracking: a step is halved until it decreases a function sufficiently (Armijo 1966)."""

from collections.abc import Iterator

SUFFICIENT = 1e-4  # the share of the decrease promised by the slope that a step must achieve


def sufficient(value: float, start: float, length: float, slope: float) -> bool:
    """Whether a step of this length has decreased a function from `start` to `value` sufficiently.

    That is by more than a ten-thousandth of length x slope, what the slope of the function at the start of
    the step promises. Whoever computes the change rather than the value passes it as `value`, with start=0.
    """
    return bool(value < start + SUFFICIENT * length * slope)


def halved(trials: int, first: float = 1.0) -> Iterator[float]:
    """The lengths that backtracking tries: the first one, half of it, a quarter of it, ..."""
    length = first
    for _ in range(trials):
        yield length
        length /= 2
