"""A plan with its results, grouped over repetitions."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from types import MappingProxyType

from rankbench.core.contract import Determinism
from rankbench.core.texts import safe
from rankbench.experiments import Experiment
from rankbench.names import Named, without_settings
from rankbench.records.cells import Cell, DataSplit, Measure, Profile, Skip
from rankbench.records.plans import Plan
from rankbench.records.results import Result


@dataclass(frozen=True)
class Entry:
    """A planned cell and its result, which is None while the cell has not run."""

    cell: Cell
    result: Result | None
    failure: str = ""  # why it cannot run: none of its trials ended well

    @property
    def status(self) -> str:
        """How the cell ended, or `pending`."""
        return "failed" if self.failure else self.result.status if self.result else "pending"

    @property
    def reason(self) -> str:
        """Why the cell did not end well, as text that is safe to show, or an empty string."""
        return safe(self.failure or (self.result.reason if self.result and self.result.reason else ""))

    @property
    def good(self) -> Result | None:
        """The result if the cell ended well, else None."""
        return self.result if self.status == "ok" else None


@dataclass(frozen=True)
class Study:
    """A plan and its results by key: one experiment for one seed and profile."""

    plan: Plan
    by_key: Mapping[str, Result]  # by the key of the cell
    notes: tuple[str, ...] = ()  # what else is stored and not shown here
    cells: str = ""  # the folder of the results, where the values for each user lie too

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_key", MappingProxyType(dict(self.by_key)))

    def __repr__(self) -> str:
        done = sum(entry.result is not None for entry in self.entries)
        return f"Study({self.name}: {done} of {len(self.entries)} cells, {self.profile} profile, seed {self.seed})"

    @property
    def experiment(self) -> Experiment:
        """The experiment."""
        return self.plan.experiment

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.experiment.name

    @property
    def profile(self) -> Profile:
        """The profile, which decides the sizes."""
        return self.plan.profile

    @property
    def seed(self) -> int:
        """The seed."""
        return self.plan.seed

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The metrics, in their order."""
        return self.plan.measures

    @property
    def skips(self) -> tuple[Skip, ...]:
        """The parts of the experiment that were skipped."""
        return self.plan.skips

    @property
    def is_judged(self) -> bool:
        """Whether other tools trained the models, whose scores were evaluated here."""
        return bool(self.plan.planned) and all(cell.is_judged for cell in self.plan.planned)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """All planned cells with their results."""
        plan = self.plan
        return tuple(Entry(cell, self.by_key.get(cell.key), plan.reason(cell)) for cell in plan.planned)

    @cached_property
    def trials(self) -> tuple[Entry, ...]:
        """All trials with their results."""
        return tuple(Entry(trial, self.by_key.get(trial.key)) for trial in self.plan.trials)

    @property
    def failed_trials(self) -> tuple[Entry, ...]:
        """The trials whose setting was not tried out; one that diverged was, and cannot be chosen."""
        return tuple(entry for entry in self.trials if entry.status not in ("ok", "pending", "diverged"))

    @property
    def results(self) -> tuple[Result, ...]:
        """The stored results of all cells, without those of trials."""
        return tuple(entry.result for entry in self.entries if entry.result)

    @cached_property
    def groups(self) -> "tuple[Group, ...]":
        """The cells grouped over their repetitions, in the order of the plan."""
        gathered: dict[tuple[object, ...], list[Entry]] = {}
        for entry in self.entries:
            cell = entry.cell
            written = without_settings(cell.solver, cell.tuned).settings
            gathered.setdefault((*cell.parts, written, cell.threads), []).append(entry)
        return tuple(_group(tuple(members)) for members in gathered.values())

    @cached_property
    def has_several_splits(self) -> bool:
        """Whether tables must name the split."""
        return len({entry.cell.place.split.identity for entry in self.entries}) > 1


@dataclass(frozen=True)
class Group:
    """All repetitions of one solver with the same written settings on one data set and split."""

    place: DataSplit
    solver: Named  # without the settings that tuning chose
    tuned: tuple[str, ...]
    determinism: Determinism
    threads: int
    entries: tuple[Entry, ...]

    @property
    def data(self) -> Named:
        """The data set."""
        return self.place.data

    @property
    def split(self) -> Named:
        """The split."""
        return self.place.split

    @cached_property
    def good(self) -> tuple[Result, ...]:
        """The repetitions that ended well."""
        return tuple(result for entry in self.entries if (result := entry.good))

    @property
    def status(self) -> str:
        """The worst status of any repetition."""
        return min((entry.status for entry in self.entries), key=_WORST.index)

    def values(self, label: str) -> list[float]:
        """A metric's values in the repetitions that ended well, without NaN."""
        return list(self.by_repetition(label).values())

    def by_repetition(self, label: str) -> dict[int, float]:
        """The same by the number of the repetition."""
        found = {result.cell.place.repetition: result.value(label) for result in self.good}
        return {repetition: value for repetition, value in found.items() if not isnan(value)}

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for groups that differ in nothing but the number of threads."""
        return *self.place.identity, self.solver.base, self.solver.settings


def _group(members: tuple[Entry, ...]) -> Group:
    """The group of these cells, which differ only in the repetition and the settings that tuning chose for it."""
    first = members[0].cell
    return Group(
        place=first.place.whole,
        solver=without_settings(first.solver, first.tuned),
        tuned=first.tuned,
        determinism=first.determinism,
        threads=first.threads,
        entries=members,
    )


_WORST = ("failed", "lost", "memory", "timeout", "diverged", "pending", "ok")
