"""An experiment as cells to run, and the searches that choose settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from rankbench.experiments import Experiment
from rankbench.records.cells import Cell, Measure, Selection, Skip
from rankbench.records.results import Result


class Growth(Protocol):
    """How a search goes on from the results of its trials."""

    @property
    def most(self) -> int:
        """How many trials there are in the end."""
        ...

    def more(self, trials: Sequence[Cell], results: Sequence["Result"]) -> tuple[Cell, ...]:
        """The trials to add to these, which have all ended; empty if there are no more."""
        ...


@dataclass(frozen=True)
class Search:
    """One solver's trials on one training part, and the cell that gets the settings of the best trial."""

    cell: Cell
    trials: tuple[Cell, ...]  # those that are known, of which others follow with a growth; none: nothing to tune
    growth: Growth | None = None

    @property
    def to_come(self) -> int:
        """How many trials may still follow from the results of those that are known."""
        return 0 if self.growth is None else max(0, self.growth.most - len(self.trials))


@dataclass(frozen=True)
class Failure:
    """A cell that cannot run because none of its trials ended well, with the first of these trials."""

    cell: Cell
    trial: Cell
    reason: str


@dataclass(frozen=True)
class Plan:
    """An experiment's cells, and what is skipped; if the experiment tunes, only the cells decided so far."""

    experiment: Experiment
    selection: Selection
    measures: tuple[Measure, ...]
    cells: tuple[Cell, ...]
    skips: tuple[Skip, ...]
    searches: tuple[Search, ...] = ()
    failures: tuple[Failure, ...] = ()

    @cached_property
    def trials(self) -> tuple[Cell, ...]:
        """All trials; a trial that several repetitions share is listed once."""
        return tuple({trial.slot: trial for search in self.searches for trial in search.trials}.values())

    @property
    def undecided(self) -> tuple[Cell, ...]:
        """The cells whose settings are not chosen yet because trials are missing."""
        decided = {cell.slot for cell in (*self.cells, *(failure.cell for failure in self.failures))}
        return tuple(search.cell for search in self.searches if search.cell.slot not in decided)
