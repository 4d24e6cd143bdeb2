"""Ticks of matplotlib's axes at round numbers, written in full."""

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any

from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

_MANY = 7  # values on an axis that each get a tick
_STEPS = (1, 2, 2.5, 5, 10)  # round numbers


def set_places(axis: Any, places: Sequence[float]) -> None:
    """Ticks at these places, or at some of them if there are many."""
    axis.set_major_locator(FixedLocator(places[:: ceil(len(places) / _MANY)]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(_number))


def set_ticks(axis: Any, log: bool, most: int) -> None:
    """Round numbers as ticks, written in full: on a logarithmic axis 1, 2 and 5 if it is short, else tens."""
    if not log:
        axis.set_major_locator(round_ticks(most))
        if most == 1:  # matplotlib would write one tick with the digits of the axis's ends
            axis.set_major_formatter(FuncFormatter(_number))
        return
    axis.set_minor_locator(NullLocator())
    axis.set_major_locator(Decades(most))
    axis.set_major_formatter(FuncFormatter(_number))


def round_ticks(most: int) -> MaxNLocator:
    """Ticks at about so many round numbers, and two at least, or one where one is asked for."""
    return MaxNLocator(most, steps=_STEPS, min_n_ticks=min(2, most))


class Decades(LogLocator):
    """Ticks of a logarithmic axis: tens, with 2 and 5 between them where that gives few ticks."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """The ticks from vmin to vmax."""
        if vmax < 4 * vmin:
            return MaxNLocator(self.most, steps=_STEPS).tick_values(vmin, vmax)
        first, last = floor(log10(vmin)), ceil(log10(vmax))
        for steps in ((1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
            found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
            inside = [tick for tick in found if vmin <= tick <= vmax]
            if len(inside) <= self.most:
                return inside
        return inside[:: ceil(len(inside) / self.most)]


def _number(value: float, _place: object = None) -> str:
    """A tick's label: `0.01`, `100`, `2000`."""
    return f"{value:.10g}" if 1e-4 <= abs(value) < 1e6 or value == 0 else f"{value:g}"
