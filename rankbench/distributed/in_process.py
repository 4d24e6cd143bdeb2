"""All parts in this process, one after another."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankbench.core.contract import Partitioned, Scattered, Step, Sums
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


def steps_in_process(solver: Partitioned, train: Any, rng: np.random.Generator, threads: int) -> Iterator[Step]:
    """A solver's steps on the parts of its users, with all of them in this process and plain models."""
    for step in solver.steps_on(InProcess(), train, rng, threads):
        yield replace(step, model=step.model.gathered()) if isinstance(step.model, Scattered) else step
