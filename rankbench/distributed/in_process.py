"""All parts in this process, one after another."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rankbench.contract import Sums
from rankbench.distributed.trees import PartialSums


class InProcess:
    """An executor that keeps all parts in this process."""

    def __init__(self) -> None:
        self._parts: list[Any] = []

    def place(self, make: Callable[..., Any], own: Sequence[tuple[Any, ...]], *shared: Any) -> None:
        """Make every part."""
        self._parts = [make(*mine, *shared) for mine in own]

    def total(self, work: Callable[..., Sums], *shared: Any) -> Sums:
        """The sum of what the parts return."""
        sums = PartialSums(len(self._parts))
        for number, part in enumerate(self._parts):
            sums.add(number, work(part, *shared))
        return sums.total

    def ask(self, work: Callable[..., Any], own: Mapping[int, tuple[Any, ...]], *shared: Any) -> dict[int, Any]:
        """What these parts answer."""
        return {number: work(self._parts[number], *mine, *shared) for number, mine in own.items()}
