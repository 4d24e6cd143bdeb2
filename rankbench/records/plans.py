"""An experiment as cells to run, and the searches that choose settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

from rankbench.experiments import Experiment
from rankbench.records.cells import SOURCES, Cell, Measure, Profile, Skip, Source
from rankbench.records.results import Result


class Continuation(Protocol):
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
    trials: tuple[Cell, ...]  # those that are known, of which others may follow; none: nothing to tune
    continuation: Continuation | None = None

    @property
    def to_come(self) -> int:
        """How many trials may still follow from the results of those that are known."""
        return 0 if self.continuation is None else max(0, self.continuation.most - len(self.trials))


@dataclass(frozen=True)
class Failure:
    """A cell that cannot run because none of its trials ended well, with the first of these trials."""

    cell: Cell
    reason: str
    trial: Cell | None = field(default=None, compare=False)  # None in a plan that was stored


@dataclass(frozen=True)
class Plan:
    """An experiment's cells, trials and skipped parts, as they are planned, run, stored and read again."""

    experiment: Experiment
    profile: Profile
    seed: int
    measures: tuple[Measure, ...]
    planned: tuple[Cell, ...]  # all cells; one that waits for its trials lacks the settings that they choose
    skips: tuple[Skip, ...] = ()
    trials: tuple[Cell, ...] = ()  # a trial that several repetitions share is listed once
    failures: tuple[Failure, ...] = ()
    searches: tuple[Search, ...] = field(default=(), compare=False)  # how the settings are chosen; not stored
    made: str = field(default="", compare=False)  # time of the last run that had something to do; empty if none had

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that can run: their settings are known."""
        return tuple(cell for cell in self.planned if cell.is_decided and not self.reason(cell))

    @cached_property
    def undecided(self) -> tuple[Cell, ...]:
        """The cells whose settings are not chosen yet because trials are missing."""
        return tuple(cell for cell in self.planned if not cell.is_decided and not self.reason(cell))

    @property
    def everything(self) -> tuple[Cell, ...]:
        """All cells and all trials."""
        return (*self.planned, *self.trials)

    def reason(self, cell: Cell) -> str:
        """Why a cell cannot run; empty for one that can."""
        return self.reasons.get(cell.slot, "") if self.failures else ""

    @cached_property
    def reasons(self) -> Mapping[tuple[str, int, int], str]:
        """By the slot of each cell that cannot run: why."""
        return MappingProxyType({failure.cell.slot: failure.reason for failure in self.failures})

    @property
    def held(self) -> tuple[Source, ...]:
        """What later repetitions draw as the first one did; empty where they draw everything anew."""
        held = {source for cell in self.everything for source in cell.place.held}
        return tuple(source for source in SOURCES if source in held)

    def is_filed_as(self, other: "Plan") -> bool:
        """Whether both are stored in one file: the same experiment, profile and seed, and the same draws."""
        kinds = [(one.profile, one.seed, one.experiment.source, one.held) for one in (self, other)]
        return kinds[0] == kinds[1]

    def asks_as(self, other: "Plan") -> bool:
        """Whether both plans measure the same, so that their cells can be joined; descriptions may differ."""
        return self._asked == other._asked

    @property
    def _asked(self) -> tuple[object, ...]:
        """What is measured and how, whatever the data, the solvers and the descriptions."""
        one = self.experiment
        identities = tuple((measure.identity, measure.version) for measure in self.measures)
        return identities, one.budget, one.every, one.objective, one.tune


def distinct_trials(searches: Sequence[Search]) -> tuple[Cell, ...]:
    """All trials of these searches; one that several repetitions share is listed once."""
    return tuple({trial.slot: trial for search in searches for trial in search.trials}.values())
