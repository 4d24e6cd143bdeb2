"""From an experiment to its cells: one for every data set, split, repetition and solver."""

import hashlib
import json
from dataclasses import asdict, dataclass
from itertools import product
from typing import Annotated, Any

from rankbench import data as data_sets
from rankbench.data.splits import SPLITS, Split, cut
from rankbench.data.views import View, mismatch
from rankbench.errors import UserError
from rankbench.experiments import Budget, Experiment
from rankbench.metrics import metric, unusable
from rankbench.solvers import SOLVERS
from rankbench.specs import Limits, canonical, check, parse, settings_of, without_folder

FORMAT = 1  # of result files and of what goes into a key; raised when either changes


@dataclass(frozen=True)
class Selection:
    """What a user asks of an experiment: which of its parts, how often, from which seed."""

    solvers: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    repetitions: Annotated[int, Limits(low=1)] | None = None
    seed: Annotated[int, Limits(low=0)] = 0
    threads: Annotated[int, Limits(low=1)] = 1
    full: bool = False

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class Cell:
    """One training run and its evaluation: all that decides the numbers, and nothing else."""

    data: str
    split: str
    split_hash: str
    repetition: int
    seed: int
    solver: str
    settings: dict[str, Any]
    version: int
    determinism: str
    metrics: tuple[str, ...]
    metric_versions: tuple[int, ...]
    budget: Budget
    every: int
    objective: bool
    threads: int
    texts: tuple[str, str, str]  # data, split and solver as somebody wrote them: no part of the identity

    @property
    def key(self) -> str:
        """SHA-256 over the cell's content: its identity, its seed and its file."""
        record = {name: value for name, value in asdict(self).items() if name != "texts"}
        text = json.dumps({**record, "format": FORMAT}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def shown(self) -> tuple[str, ...]:
        """Data, split and solver for people."""
        return tuple(map(without_folder, self.texts))

    @property
    def label(self) -> str:
        """The cell in one line for people."""
        return " · ".join((*self.shown, f"repetition {self.repetition}"))


@dataclass(frozen=True)
class Skip:
    """A part of the plan that cannot run here, why, and the command that would change it."""

    data: str
    split: str
    solver: str
    reason: str
    remedy: str | None = None


@dataclass(frozen=True)
class Plan:
    """An experiment's cells, and what had to be left out."""

    experiment: Experiment
    selection: Selection
    cells: tuple[Cell, ...]
    skips: tuple[Skip, ...]


class Materials:
    """Views and splits made on demand; the last view is kept, since a plan walks data set by data set."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._kept: tuple[str, View] | None = None

    def view(self, name: str) -> View:
        """The data set of this name."""
        if self._kept is None or self._kept[0] != name:
            self._kept = name, data_sets.load(name, self._seed)
        return self._kept[1]

    def split(self, data: str, protocol: str, repetition: int) -> Split:
        """One repetition of a split of a data set."""
        return cut(self.view(data), SPLITS.make(protocol), protocol, self._seed, repetition)


def plan(experiment: Experiment, selection: Selection, materials: Materials | None = None) -> Plan:
    """Every cell of the experiment that can run here, and every part that cannot, with the reason."""
    materials = materials or Materials(selection.seed)
    solvers = [(text, SOLVERS.make(text)) for text in _selected(experiment.solvers, selection.solvers)]
    splits = [(text, canonical(text, SPLITS.make(text))) for text in experiment.splits]
    cells: list[Cell] = []
    skips: list[Skip] = []
    for data in _selected(experiment.data, selection.data):
        source = data_sets.DATASETS.make(data)
        if remedy := source.missing():
            skips.append(Skip(data, "", "", "the data is not at hand", remedy))
            continue
        for (split, split_name), repetition in product(splits, range(selection.repetitions or experiment.repetitions)):
            parts = materials.split(data, split, repetition)
            _check_metrics(experiment, parts)
            place: dict[str, Any] = {"data": canonical(data, source), "split": split_name, "split_hash": parts.hash}
            for text, solver in solvers:
                if reason := mismatch(solver, parts.train):
                    skips.append(Skip(data, split, text, f"{text} {reason}"))
                else:
                    place |= {"texts": (data, split, text), "repetition": repetition}
                    cells.append(_cell(experiment, selection, solver, place))
    return Plan(experiment, selection, tuple(cells), tuple(dict.fromkeys(skips)))


def _cell(
    experiment: Experiment,
    selection: Selection,
    solver: Any,
    place: dict[str, Any],
) -> Cell:
    records = [metric(name) for name in experiment.metrics]
    return Cell(
        **place,
        seed=selection.seed,
        solver=parse(without_folder(place["texts"][2])).name,
        settings=settings_of(solver),
        version=solver.version,
        determinism=solver.determinism.value,
        metrics=tuple(record.label for record in records),
        metric_versions=tuple(record.version for record in records),
        budget=experiment.budget,
        every=experiment.every,
        objective=experiment.objective,
        threads=selection.threads,
    )


def _selected(own: tuple[str, ...], asked: tuple[str, ...]) -> tuple[str, ...]:
    """The experiment's own entries, or those asked for: a bare name stands for its entries of that name."""
    if not asked:
        return own
    picked: list[str] = []
    for text in asked:
        namesakes = [entry for entry in own if parse(entry).name == text]
        picked += namesakes or [text]
    return tuple(dict.fromkeys(picked))


def _check_metrics(experiment: Experiment, parts: Split) -> None:
    for name in experiment.metrics:
        if reason := unusable(metric(name), parts.test):
            raise UserError(f"{experiment.name}: {reason}")
