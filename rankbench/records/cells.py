"""What is asked of a run: a solver on a repetition of a split, with everything that decides its numbers."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Literal, get_args

from rankbench.core.contract import Determinism
from rankbench.core.errors import refuse_unknown
from rankbench.core.texts import file_part, safe
from rankbench.experiments import Budget
from rankbench.metrics import Metric, metric, own_metric
from rankbench.names import (
    REPETITIONS,
    THREADS,
    TRIALS,
    Checked,
    Limits,
    Named,
    Settings,
    without_folder,
)

JUDGED = "rankbench.judging.subjects"  # the module of what stands for truths, runs and metrics of other tools
RUN = "run:"  # begins the name of a run that another tool wrote, which stands in place of a solver
BESIDE = "@"  # in the name of a file: a measurement that lies beside the result of its cell
KEY_FORMAT = 2  # version of what goes into a cell's key; raised when `Cell.content` changes

Profile = Literal["quick", "full"]
Source = Literal[
    "splits",  # the rows that train and test; of generated data the data too
    "search",  # the rows that it validates on, its candidates, and the starts of its trials
    "start",  # the random numbers of the solver
]
SOURCES: tuple[Source, ...] = get_args(Source)


def redraws(kinds: Iterable[str]) -> tuple[Source, ...]:
    """These sources of variation, checked; a text with commas stands for several."""
    found = [str(kind).strip() for kind in (kinds.split(",") if isinstance(kinds, str) else kinds)]
    refuse_unknown("source of variation to redraw", found or [""], SOURCES)
    return tuple(kind for kind in SOURCES if kind in found)


@dataclass(frozen=True)
class Selection(Checked):
    """What the user selects of an experiment: solvers, data, repetitions, seed, threads, profile and trials."""

    solvers: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    repetitions: Annotated[int, REPETITIONS] | None = None
    seed: Annotated[int, Limits(low=0)] = 0
    threads: Annotated[int, THREADS] = 1
    full: bool = False
    trials: Annotated[int, TRIALS] | None = None  # of each solver, where the experiment tunes
    redraw: tuple[Source, ...] = SOURCES  # what each repetition draws anew

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
class DataSplit:
    """A data set with a split of it: what the results of all repetitions have in common."""

    data: Named
    split: Named

    @property
    def identity(self) -> tuple[str, str]:
        """The identities of both."""
        return self.data.identity, self.split.identity

    @property
    def written(self) -> str:
        """The data set and the split as the user wrote them."""
        return f"{self.data.written} {self.split.written}"


@dataclass(frozen=True)
class Place:
    """One repetition of a split of a data set: the rows on which a cell is trained and evaluated."""

    data: Named
    split: Named
    repetition: int
    validation: Named | None = None  # for trials: the split that cuts a validation set from the training part
    held: tuple[Source, ...] = ()  # what is drawn as in repetition 0

    def draw(self, source: Source) -> int:
        """The number of the draw of a source of variation: that of the repetition, or 0 if the source is held."""
        return 0 if source in self.held else self.repetition

    @property
    def whole(self) -> DataSplit:
        """The data set with the split, of all repetitions."""
        return DataSplit(self.data, self.split)

    @property
    def written(self) -> str:
        """The data set and the split as the user wrote them."""
        return self.whole.written


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
        } | self._draws

    @property
    def _draws(self) -> dict[str, object]:
        """What a key has of how the numbers are drawn, where it is not the usual way."""
        rows = {"draws": "of rows"} if self.place.data.is_own_file else {}  # so results of older draws are others
        return rows | ({"held": list(self.place.held)} if self.place.held else {})

    @property
    def is_decided(self) -> bool:
        """Whether all of its settings are known; a cell that waits for its trials lacks those that they choose."""
        settings = dict(self.solver.settings)
        return self.budget.patience is None and all(name in settings for name in self.tuned)

    @property
    def is_judged(self) -> bool:
        """Whether another tool trained the model and wrote its scores, which were evaluated here."""
        return self.solver.name.startswith(RUN)

    @property
    def is_trial(self) -> bool:
        """Whether the cell is a trial of a search, evaluated on a validation set."""
        return self.place.validation is not None

    @cached_property
    def line(self) -> str:
        """A text that all repetitions of this cell share: the names of its parts, without the content of files."""
        return self._line_on(self.place.data.full)

    @cached_property
    def stream_line(self) -> str:
        """The line that seeds a search: without the name of a user's own file of data."""
        return self._line_on("") if self.place.data.is_own_file else self.line

    def _line_on(self, data: str) -> str:
        place, validation = self.place, self.place.validation
        chosen = () if self.is_trial else self.tuned
        written = {name: value for name, value in self.solver.settings if name not in chosen}
        where = (data, place.split.full, validation.full if validation else "")
        return json.dumps((*where, self.solver.name, written, self.tuned, self.threads))

    @property
    def drawn_for(self) -> tuple[str, str]:
        """The data and the split that seed random numbers; a user's own file does not, so its format changes none."""
        place = self.place
        return "" if place.data.is_own_file else place.data.identity, place.split.identity

    @property
    def slot(self) -> tuple[str, int, int]:
        """This cell's slot in the plan: it stays the same when tuning picks other settings, or a file is edited."""
        return self.line, self.place.repetition, self.rung

    @property
    def parts(self) -> tuple[str, str, str]:
        """The identities of the data and the split, and that of the solver without its settings."""
        return self.place.data.identity, self.place.split.identity, self.solver.base

    @property
    def edition(self) -> tuple[str, str, str, int]:
        """The identities that change when a user edits a file or a solver raises its version."""
        return *self.parts, self.version

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


def file_name(cell: Cell) -> str:
    """The name of a cell's result file: the solver's name and the first digits of the cell's key."""
    return f"{stem(cell)}.json"


def stem(cell: Cell) -> str:
    """The same without its ending."""
    return f"{_in_file_name(cell.solver.name)}-{cell.key[:16]}"


def file_of_cell(name: str) -> str:
    """The name of the result file of the cell whose result, or measurement beside it, lies in a file of this name."""
    return f"{name.rpartition('.')[0].partition(BESIDE)[0]}.json"


@cache
def _in_file_name(solver: str) -> str:
    return file_part(without_folder(solver))


_WRITTEN = 3  # solvers of the same fate that a line writes out; of more it says how many, and their names


@dataclass(frozen=True)
class Skip:
    """A part of an experiment that cannot run here, with the reason and the command that would fix it."""

    data: Named
    split: Named | None
    solver: Named | None
    reason: str
    remedy: str = ""
    failed: bool = False  # an error, as opposed to missing data or a solver that does not suit the data

    def covers(self, parts: tuple[str, str, str]) -> bool:
        """Whether a cell with these identities of its data, split and solver belongs to this part."""
        asked = (self.data.identity, self.split and self.split.identity, self.solver and self.solver.base)
        return all(wanted is None or wanted == found for wanted, found in zip(asked, parts, strict=True))

    @property
    def text(self) -> str:
        """One line, safe to show: what was skipped, the reason, and the command that would fix it."""
        return self.text_beside(0, ())

    @property
    def complaint(self) -> str:
        """The reason without the name of the solver, if it begins with it: other solvers may have the same."""
        return self.reason.removeprefix(self.solver.written) if self.solver else self.reason

    def text_beside(self, others: int, solvers: Sequence[Named]) -> str:
        """The same line for this part and so many others, and for other solvers that were skipped for this reason."""
        names = ", ".join(one.written for one in solvers)
        if len(solvers) > _WRITTEN:
            names = f"{len(solvers)} more ({', '.join(dict.fromkeys(one.name for one in solvers))})"
        parts = " ".join(part.written for part in (self.data, self.split) if part)
        more = f" and {others} more" if others else ""
        same = f"; the same for {names}" if solvers else ""
        return safe(f"{parts}{more}: {self.reason}{same}" + (f"; to get it: {self.remedy}" if self.remedy else ""))


def skip_lines(skips: Iterable[Skip]) -> list[str]:
    """A line for each reason, safe to show, with the first part that was skipped for it and how many more there are.

    Solvers that lack the same on the same parts share a line.
    """
    found: dict[tuple[str, str], list[Skip]] = {}
    for skip in skips:
        found.setdefault((skip.reason, skip.remedy), []).append(skip)
    alike: dict[object, list[list[Skip]]] = {}
    for members in found.values():
        parts = tuple((skip.data, skip.split) for skip in members)
        alike.setdefault((parts, members[0].complaint, members[0].remedy), []).append(members)
    return [_line(*groups) for groups in alike.values()]


def _line(first: Sequence[Skip], *others: Sequence[Skip]) -> str:
    """What was skipped for one reason, and for the same of other solvers."""
    solvers = [members[0].solver for members in others if members[0].solver]
    return first[0].text_beside(len(first) - 1, solvers)
