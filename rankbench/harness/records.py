"""The frozen dataclasses that the harness and the report share: cells, plans, results and studies."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan, nan
from typing import Annotated, Literal, Protocol, get_args

from rankbench.contract import Determinism
from rankbench.errors import safe
from rankbench.experiments import Budget, Experiment
from rankbench.metrics import Metric, metric, own_metric
from rankbench.names import (
    REPETITIONS,
    THREADS,
    TRIALS,
    Limits,
    Named,
    Settings,
    check,
    without_folder,
    without_settings,
)

KEY_FORMAT = 2  # version of what goes into a cell's key; raised when `Cell.content` changes

Status = Literal["ok", "diverged", "failed", "timeout", "memory", "lost"]
Profile = Literal["quick", "full"]


@dataclass(frozen=True)
class Selection:
    """What the user selects of an experiment: solvers, data, repetitions, seed, threads, profile and trials."""

    solvers: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    repetitions: Annotated[int, REPETITIONS] | None = None
    seed: Annotated[int, Limits(low=0)] = 0
    threads: Annotated[int, THREADS] = 1
    full: bool = False
    trials: Annotated[int, TRIALS] | None = None  # of each solver, where the experiment tunes

    def __post_init__(self) -> None:
        check(self)

    @property
    def profile(self) -> Profile:
        """The name of the selected profile, which decides the sizes."""
        return "full" if self.full else "quick"


@dataclass(frozen=True)
class Measure:
    """A metric as stored in a result, complete enough to be read without the file that defines the metric."""

    label: str  # as the user wrote it, with its settings
    identity: str
    version: int
    better: Literal["higher", "lower"]
    formula: str
    source: Named | None = None  # for a metric of the user's own, its resolved name

    @classmethod
    def of(cls, found: Metric) -> "Measure":
        """The stored form of a metric."""
        return cls(found.label, found.identity, found.version, found.better, found.formula, found.source)

    @property
    def record(self) -> Metric:
        """The metric itself."""
        return own_metric(self.source) if self.source else metric(self.label)

    @property
    def sign(self) -> int:
        """1 where a higher value is better, -1 where a lower one is."""
        return 1 if self.better == "higher" else -1


@dataclass(frozen=True)
class Place:
    """One repetition of a split of a data set: the rows on which a cell is trained and evaluated."""

    data: Named
    split: Named
    repetition: int
    validation: Named | None = None  # for trials: the split that cuts a validation set from the training part

    @property
    def written(self) -> str:
        """The data set and the split as the user wrote them."""
        return f"{self.data.written} {self.split.written}"


@dataclass(frozen=True)
class Cell:
    """One solver on one split, to be trained and evaluated; it holds everything that decides the numbers."""

    place: Place
    split_hash: str  # of the content of the rows
    seed: int
    solver: Named
    version: int
    determinism: Determinism
    measures: tuple[Measure, ...]
    budget: Budget
    every: int  # steps between two evaluations
    objective: bool
    threads: int
    tuned: tuple[str, ...] = ()  # the names of the settings that tuning chose
    rung: int = 0  # of a trial of successive halving: how many shorter trials of its settings came before

    @cached_property
    def key(self) -> str:
        """The SHA-256 of the cell's content, which identifies the cell and names its result file."""
        text = json.dumps(self.content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def content(self) -> dict[str, object]:
        """What goes into the key: everything that decides the numbers, independent of how names were spelled."""
        place, budget = self.place, self.budget
        limits = {"steps": budget.steps, "seconds": budget.seconds, "tolerance": budget.tolerance}
        return {
            "data": place.data.identity,
            "split": place.split.identity,
            "split_hash": self.split_hash,
            "repetition": place.repetition,
            "seed": self.seed,
            "solver": self.solver.base,
            "settings": dict(self.solver.settings),
            "version": self.version,
            "determinism": self.determinism.value,
            "metrics": [measure.identity for measure in self.measures],
            "metric_versions": [measure.version for measure in self.measures],
            "budget": limits if budget.patience is None else limits | {"patience": budget.patience},
            "every": self.every,
            "objective": self.objective,
            "threads": self.threads,
            "validation": place.validation.identity if place.validation else "",
            "format": KEY_FORMAT,
        }

    @property
    def is_trial(self) -> bool:
        """Whether the cell is a trial of a search, evaluated on a validation set."""
        return self.place.validation is not None

    @cached_property
    def line(self) -> str:
        """A text that all repetitions of this cell share: the names of its parts, without the content of files."""
        place, validation = self.place, self.place.validation
        chosen = () if self.is_trial else self.tuned
        written = {name: value for name, value in self.solver.settings if name not in chosen}
        where = (place.data.full, place.split.full, validation.full if validation else "")
        return json.dumps((*where, self.solver.name, written, self.tuned, self.threads))

    @property
    def slot(self) -> tuple[str, int, int]:
        """This cell's slot in the plan: it stays the same when tuning picks other settings, or a file is edited."""
        return self.line, self.place.repetition, self.rung

    @property
    def edition(self) -> tuple[str, str, str, int]:
        """The identities that change when a user edits a file or a solver raises its version."""
        return self.place.data.identity, self.place.split.identity, self.solver.base, self.version

    @property
    def chosen(self) -> Settings:
        """The settings that tuning chose."""
        return tuple((name, value) for name, value in self.solver.settings if name in self.tuned)

    @property
    def solver_text(self) -> str:
        """The solver as the user wrote it, plus the settings that tuning chose."""
        return self.solver.with_chosen(self.chosen)

    @property
    def stream_name(self) -> str:
        """The name that seeds the solver's random numbers; editing a user's file does not change it."""
        return without_folder(self.solver.name)

    @property
    def label(self) -> str:
        """The cell in one line, for display."""
        trial = ("trial",) if self.is_trial else ()
        place = self.place
        named = (place.data.written, place.split.written, self.solver_text, f"repetition {place.repetition}")
        return " · ".join((*named, *trial))


@dataclass(frozen=True)
class Skip:
    """A part of an experiment that cannot run here, with the reason and the command that would fix it."""

    data: Named
    split: Named | None
    solver: Named | None
    reason: str
    remedy: str = ""
    failed: bool = False  # an error, as opposed to missing data or a solver that does not suit the data

    @property
    def text(self) -> str:
        """One line, safe to show: what was skipped, the reason, and the command that would fix it."""
        return self.text_beside(0)

    def text_beside(self, others: int) -> str:
        """The same line for this part and so many others that were skipped for the same reason."""
        parts = " ".join(part.written for part in (self.data, self.split) if part)
        more = f" and {others} more" if others else ""
        return safe(f"{parts}{more}: {self.reason}" + (f"; to get it: {self.remedy}" if self.remedy else ""))


def skip_lines(skips: Iterable[Skip]) -> list[str]:
    """A line for each reason, safe to show, with the first part that was skipped for it and how many more there are."""
    found: dict[tuple[str, str], list[Skip]] = {}
    for skip in skips:
        found.setdefault((skip.reason, skip.remedy), []).append(skip)
    return [members[0].text_beside(len(members) - 1) for members in found.values()]


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


@dataclass(frozen=True)
class Point:
    """A point of the training curve: the evaluation of the model after some step."""

    step: int
    seconds: float  # training time inside the solver up to this step
    values: tuple[float, ...]  # of the cell's metrics, in their order; NaN where a metric has no value
    objective: float | None = None
    gap: float | None = None
    bound: float | None = None  # upper limit of the speed-up that these threads can give


@dataclass(frozen=True)
class Counted:
    """How many users a metric counts, and how many it leaves out."""

    users: int
    left_out: int


@dataclass(frozen=True)
class Weight:
    """A named feature and its weight."""

    feature: str
    weight: float


@dataclass(frozen=True)
class RankingFunction:
    """The strongest features of one basic ranking function, with positive and negative weights, strongest first."""

    positive: tuple[Weight, ...]
    negative: tuple[Weight, ...]


Stage = Literal["data", "split", "read", "prepare", "train", "evaluate"]
STAGES: tuple[Stage, ...] = get_args(Stage)


@dataclass(frozen=True)
class Peak:
    """The highest resident memory of the process that ran a stage, while it ran; mapped files count where resident.

    The driver makes or reads the data and cuts the split. The cell's own process reads the split, makes the view that
    the solver learns from, trains and evaluates.
    """

    stage: Stage
    megabytes: float


@dataclass(frozen=True)
class Machine:
    """The machine and software of a run: everything that affects its speed or the last digits of its numbers."""

    cpu: str
    cores: int
    usable_cores: int
    memory_gib: float
    system: str
    python: str
    blas: tuple[str, ...]
    compiler: str
    openmp: int
    native: bool
    debug: bool
    packages: tuple[tuple[str, str], ...]
    git: str | None
    kernels: str = ""  # digest of the compiled kernels; empty in old results, which lack it
    level: str = "baseline"  # the instruction set of the kernels; old results had but one

    def version(self, package: str) -> str:
        """The version of a package, or `absent`."""
        return dict(self.packages).get(package, "absent")

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hex digits; times may be compared between runs with equal fingerprints."""
        speed = [self.cpu, self.cores, self.usable_cores, self.python, list(self.blas), self.compiler, self.openmp]
        build = [self.native, self.debug, *([self.level] if self.level != "baseline" else [])]
        return _digits([*speed, *build, self.version("numpy"), self.version("scipy")])

    @cached_property
    def basis(self) -> str:
        """Twelve hex digits; runs with an equal basis should give the same numbers to the last bit."""
        libraries = [self.version("numpy"), self.version("scipy"), list(self.blas)]
        return _digits([self.kernels, *libraries, self.cpu, self.system.rpartition(" ")[2]])


@dataclass(frozen=True)
class Result:
    """The result of a cell."""

    cell: Cell
    status: Status
    reason: str | None
    curve: tuple[Point, ...]
    counted: tuple[Counted, ...]  # for each metric of the cell; empty if nothing was evaluated
    unscored: float | None  # share of held-out pairs that the model scored NaN
    wall: float  # wall time of the whole cell, including evaluation and starting the process
    peak_mb: float | None
    contended: bool  # disturbed by cells that ran at the same time: its times are unreliable
    machine: Machine
    finished: str
    prepare: float | None = None  # seconds to make the view that the solver learns from, not part of training time
    load: float | None = None  # cores that other processes used meanwhile
    imported: tuple[str, ...] = ()  # packages imported during training
    trace: str | None = None  # traceback of a failure
    stopped: str | None = None  # what ended the training: the budget or the solver
    functions: tuple[RankingFunction, ...] = ()  # basic ranking functions, if the model has them
    split: str = ""  # SHA-256 of the split's parts; empty in results from before it was kept
    model: str = ""  # SHA-256 of the last model's arrays; empty also where a model is no record of arrays
    start: str = ""  # of a trial: the key of the trial whose model it started from; empty if it started from nothing
    peaks: tuple[Peak, ...] = ()  # in the order of the stages; empty in results from before they were measured

    def __post_init__(self) -> None:
        if any(len(point.values) != len(self.cell.measures) for point in self.curve):
            raise ValueError("a point of its curve does not have one value for each metric")

    def __repr__(self) -> str:
        values = [f"{measure.label} {self.value(measure.label):.4g}" for measure in self.cell.measures]
        return f"Result({self.cell.label}: {', '.join([self.status, *values])})"

    @property
    def key(self) -> str:
        """The key of its cell."""
        return self.cell.key

    @property
    def seconds(self) -> float | None:
        """Training seconds inside the solver."""
        return self.curve[-1].seconds if self.curve else None

    @property
    def relative_gap(self) -> float | None:
        """The last model's gap relative to its objective; None where either is not recorded, or the objective is 0."""
        last = self.curve[-1] if self.curve else None
        return last.gap / abs(last.objective) if last and last.gap is not None and last.objective else None

    def value(self, label: str) -> float:
        """A metric's value for the last model, or for the best one of a trial with patience; NaN if there is none."""
        return self.value_at(self._counting_point, label) if self.curve else nan

    @property
    def chosen_budget(self) -> Budget:
        """The budget of a cell with this trial's settings: after patience, the steps to the trial's best value."""
        budget = self.cell.budget
        return budget if budget.patience is None else replace(budget, steps=self._counting_point.step, patience=None)

    @property
    def _counting_point(self) -> Point:
        """The last point of the curve; of a trial with patience the first one with the best value."""
        if self.cell.budget.patience is None:
            return self.curve[-1]
        measure = self.cell.measures[0]
        values = [measure.sign * self.value_at(point, measure.label) for point in self.curve]
        known = [value for value in values if not isnan(value)]
        return self.curve[values.index(max(known))] if known else self.curve[-1]

    def value_at(self, point: Point, label: str) -> float:
        """A metric's value at a point of the curve, or NaN if there is none."""
        for measure, value in zip(self.cell.measures, point.values, strict=True):
            if measure.label == label:
                return value
        return nan

    def counted_by(self, label: str) -> Counted | None:
        """How many users a metric counts, or None if unknown."""
        found = dict(zip((measure.label for measure in self.cell.measures), self.counted, strict=False))
        return found.get(label)

    @property
    def disturbed(self) -> bool:
        """Whether other processes used so much of the machine that the measured times are unreliable."""
        return self.load is not None and self.load > DISTURBED


DISTURBED = 0.25  # above this many cores used by other processes on average, a time is unreliable


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
    """The stored results of one experiment for one seed and profile, in its most recently planned form."""

    experiment: Experiment
    profile: Profile
    seed: int
    measures: tuple[Measure, ...]
    entries: tuple[Entry, ...]
    skips: tuple[Skip, ...]
    trials: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()  # what else is stored and not shown here
    cells: str = ""  # the folder of the results, where the values for each user lie too

    def __repr__(self) -> str:
        done = sum(entry.result is not None for entry in self.entries)
        return f"Study({self.name}: {done} of {len(self.entries)} cells, {self.profile} profile, seed {self.seed})"

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.experiment.name

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
            written = tuple((name, value) for name, value in cell.solver.settings if name not in cell.tuned)
            place = (cell.place.data.identity, cell.place.split.identity)
            key = (*place, cell.solver.base, written, cell.threads)
            gathered.setdefault(key, []).append(entry)
        return tuple(_group(tuple(members)) for members in gathered.values())

    @cached_property
    def has_several_splits(self) -> bool:
        """Whether tables must name the split."""
        return len({entry.cell.place.split.identity for entry in self.entries}) > 1


@dataclass(frozen=True)
class Group:
    """All repetitions of one solver with the same written settings on one data set and split."""

    data: Named
    split: Named
    solver: Named
    tuned: tuple[str, ...]
    determinism: Determinism
    threads: int
    entries: tuple[Entry, ...]

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
        found = (result.value(label) for result in self.good)
        return [value for value in found if not isnan(value)]

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for groups that differ in nothing but the number of threads."""
        written = tuple((name, value) for name, value in self.solver.settings if name not in self.tuned)
        return self.data.identity, self.split.identity, self.solver.base, written


def _group(members: tuple[Entry, ...]) -> Group:
    """The group of these cells, which differ only in the repetition and the settings that tuning chose for it."""
    first = members[0].cell
    return Group(
        data=first.place.data,
        split=first.place.split,
        solver=without_settings(first.solver, first.tuned),
        tuned=first.tuned,
        determinism=first.determinism,
        threads=first.threads,
        entries=members,
    )


_WORST = ("failed", "lost", "memory", "timeout", "diverged", "pending", "ok")


def _digits(content: list[object]) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def pairs_of(label: str) -> str:
    """The name of the array, among a cell's values for each user, that holds the numbers of pairs of a metric."""
    return f"{label} (pairs)"


def failed(result: Result, reason: str) -> Result:
    """The result turned into a failure, without its measurements."""
    return replace(result, status="failed", reason=reason, curve=(), counted=())
