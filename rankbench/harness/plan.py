"""From an experiment to its cells: one for every data set, split, repetition and solver, and its trials."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Annotated, Any

from rankbench import data as data_sets
from rankbench.contract import NeedsMore
from rankbench.data.splits import SPLITS, Split, cut
from rankbench.data.views import View, mismatch
from rankbench.errors import UserError
from rankbench.experiments import Budget, Experiment
from rankbench.experiments.spaces import Tune, first_candidate
from rankbench.metrics import metric, unusable
from rankbench.solvers import SOLVERS
from rankbench.specs import Limits, canonical, check, parse, settings_of, show, without_folder
from rankbench.streams import stream

FORMAT = 2  # of result files and of what goes into a key; raised when either changes


@dataclass(frozen=True)
class Selection:
    """What a user asks of an experiment: which of its parts, how often, from which seed."""

    solvers: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    repetitions: Annotated[int, Limits(low=1)] | None = None
    seed: Annotated[int, Limits(low=0)] = 0
    threads: Annotated[int, Limits(low=1)] = 1
    full: bool = False
    trials: Annotated[int, Limits(low=1)] | None = None  # of each solver, where the experiment tunes

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
    texts: tuple[str, ...]  # data, split, solver, perhaps validation as somebody wrote them: no part of the identity
    validation: str = ""  # how a trial cuts the training part: its own test part is the validation part
    tuned: tuple[str, ...] = ()  # the settings that a search chose, and not who wrote the solver: no part either

    @property
    def key(self) -> str:
        """SHA-256 over the cell's content: its identity, its seed and its file."""
        record = {name: value for name, value in asdict(self).items() if name not in ("texts", "tuned")}
        text = json.dumps({**record, "format": FORMAT}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def seat(self) -> str:
        """What one cell of an experiment alone holds: a later one takes the seat, whatever was chosen for it."""
        chosen = () if self.validation else self.tuned
        written = {name: value for name, value in self.settings.items() if name not in chosen}
        place = (self.data, self.split, self.repetition, self.validation, self.solver, written, self.tuned)
        return json.dumps((*place, self.threads))

    @property
    def place(self) -> tuple[str, str, int, str]:
        """What a cell shares with others that train on the same rows."""
        return self.texts[0], self.texts[1], self.repetition, self.texts[3] if self.validation else ""

    @property
    def solver_text(self) -> str:
        """The solver as somebody wrote it, with what was chosen for it: its record is made from this."""
        return with_settings(self.texts[2], {name: self.settings[name] for name in self.tuned if name in self.settings})

    @property
    def shown(self) -> tuple[str, str, str]:
        """Data, split and solver for people."""
        data, split, solver = map(without_folder, self.texts[:3])
        return data, split, solver

    @property
    def label(self) -> str:
        """The cell in one line for people."""
        trial = ("trial",) if self.validation else ()
        return " · ".join((*self.shown[:2], without_folder(self.solver_text), f"repetition {self.repetition}", *trial))


@dataclass(frozen=True)
class Skip:
    """A part of the plan that cannot run here, why, and the command that would change it."""

    data: str
    split: str
    solver: str
    reason: str
    remedy: str | None = None


@dataclass(frozen=True)
class Search:
    """One solver's trials on one training part, and the cell that is to take the settings of the best."""

    cell: Cell
    trials: tuple[Cell, ...]


@dataclass(frozen=True)
class Failure:
    """A cell that cannot run because none of its trials ended well, and the first of them."""

    cell: Cell
    trial: Cell
    reason: str


@dataclass(frozen=True)
class Plan:
    """An experiment's cells, and what had to be left out; where it tunes, the cells decided so far."""

    experiment: Experiment
    selection: Selection
    cells: tuple[Cell, ...]
    skips: tuple[Skip, ...]
    searches: tuple[Search, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def trials(self) -> tuple[Cell, ...]:
        """Every trial once, also where several repetitions share it."""
        return tuple({trial.seat: trial for search in self.searches for trial in search.trials}.values())

    @property
    def undecided(self) -> tuple[Cell, ...]:
        """The cells that still wait for their trials."""
        decided = {cell.seat for cell in (*self.cells, *(failure.cell for failure in self.failures))}
        return tuple(search.cell for search in self.searches if search.cell.seat not in decided)


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

    def split(self, data: str, protocol: str, repetition: int, validation: str = "") -> Split:
        """One repetition of a split of a data set; with a validation, its training part cut again by that."""
        parts = cut(self.view(data), SPLITS.make(protocol), protocol, self._seed, repetition, data)
        if not validation:
            return parts
        outer = canonical(protocol, SPLITS.make(protocol))
        seed = int(stream(self._seed, "validation", outer).integers(2**62))  # not the stream that cut the test part
        named = f"the training part of {protocol} of {data}"
        return cut(parts.train, SPLITS.make(validation), validation, seed, repetition, named)


def plan(experiment: Experiment, selection: Selection, materials: Materials | None = None) -> Plan:
    """Every cell of the experiment that can run here, and every part that cannot, with the reason.

    Where the experiment tunes, these are searches: their cells follow from what the trials give.
    """
    materials = materials or Materials(selection.seed)
    experiment = _with_trials(experiment, selection.trials)
    cells: list[Cell] = []
    skips: list[Skip] = []
    searches: list[Search] = []
    for data in _selected(experiment.data, selection.data):
        if remedy := data_sets.DATASETS.make(data).origin.missing():
            skips.append(Skip(data, "", "", "the data is not at hand", remedy))
            continue
        found = list(_of_data(experiment, selection, materials, data))
        skips += [one for one in found if isinstance(one, Skip)]
        able = [one for one in found if isinstance(one, Cell)]
        if experiment.tune:
            searches += _searches(experiment, experiment.tune, able, materials)
        else:
            cells += able
    return Plan(experiment, selection, tuple(cells), tuple(dict.fromkeys(skips)), tuple(searches))


def with_settings(text: str, settings: Mapping[str, Any]) -> str:
    """The name with these settings beside, or instead of, its own."""
    spec = parse(text)
    shown = {name: "none" if value is None else value for name, value in settings.items()}
    return show(spec.name, {**spec.settings, **shown}) if settings else text


def _with_trials(experiment: Experiment, trials: int | None) -> Experiment:
    """The experiment with another number of trials, where it tunes and a number was asked for."""
    if experiment.tune is None or trials is None:
        return experiment
    if experiment.tune.method == "grid":
        raise UserError(f"--trials={trials}: {experiment.name} tunes on a grid, whose size is its number of trials")
    return replace(experiment, tune=replace(experiment.tune, trials=trials))


def _of_data(experiment: Experiment, selection: Selection, materials: Materials, data: str) -> Iterator[Cell | Skip]:
    """The cells of a data set, and what of it must be left out."""
    solvers = [(text, _solver(experiment, text)) for text in _selected(experiment.solvers, selection.solvers)]
    splits = [(text, canonical(text, SPLITS.make(text))) for text in experiment.splits]
    data_name = canonical(data, data_sets.DATASETS.make(data))
    for (split, split_name), repetition in product(splits, range(selection.repetitions or experiment.repetitions)):
        parts = materials.split(data, split, repetition)
        _check_metrics(experiment, experiment.metrics, parts)
        for (text, solver), threads in product(solvers, experiment.threads or (selection.threads,)):
            if isinstance(solver, NeedsMore) and (remedy := solver.missing()):
                yield Skip(data, split, text, f"{text} needs a package that is not installed", remedy)
            elif reason := mismatch(solver, parts.train):
                yield Skip(data, split, text, f"{text} {reason}")
            else:
                place = {"data": data_name, "split": split_name, "split_hash": parts.hash, "repetition": repetition}
                own = {"texts": (data, split, text), "threads": threads}
                yield _cell(experiment, selection, solver, {**place, **own})


def _solver(experiment: Experiment, text: str) -> Any:
    """The record of a solver, with something in place of what is yet to be chosen."""
    return SOLVERS.make(with_settings(text, first_candidate(experiment.tune.space_of(text)) if experiment.tune else {}))


def _cell(
    experiment: Experiment,
    selection: Selection,
    solver: Any,
    place: dict[str, Any],
) -> Cell:
    return Cell(
        **place,
        **_measured_by(experiment.metrics),
        seed=selection.seed,
        solver=parse(without_folder(place["texts"][2])).name,
        settings=settings_of(solver),
        version=solver.version,
        determinism=solver.determinism.value,
        budget=experiment.budget,
        every=experiment.every,
        objective=experiment.objective,
    )


def _measured_by(names: tuple[str, ...]) -> dict[str, Any]:
    records = [metric(name) for name in names]
    return {
        "metrics": tuple(record.label for record in records),
        "metric_versions": tuple(record.version for record in records),
    }


def _searches(experiment: Experiment, tune: Tune, cells: list[Cell], materials: Materials) -> Iterator[Search]:
    """A search for each cell; with `per = "split"` all repetitions share the trials of the first."""
    measure = tune.metric or experiment.metrics[0]
    cut_by = canonical(tune.validation, SPLITS.make(tune.validation))
    hashes: dict[tuple[str, int], str] = {}
    for cell in cells:
        data, split, solver = cell.texts
        repetition = cell.repetition if tune.per == "repetition" else 0
        if (split, repetition) not in hashes:
            parts = materials.split(data, split, repetition, tune.validation)
            _check_metrics(experiment, (measure,), parts)
            hashes[split, repetition] = parts.hash
        tuned = tuple(name for name in cell.settings if name in tune.space_of(solver))
        waiting = replace(cell, tuned=tuned, settings={k: v for k, v in cell.settings.items() if k not in tuned})
        trial = replace(
            waiting,
            **_measured_by((measure,)),
            texts=(data, split, solver, tune.validation),
            validation=cut_by,
            split_hash=hashes[split, repetition],
            repetition=repetition,
            every=cell.budget.steps or cell.every,  # of a trial only the end counts
            objective=False,
        )
        yield Search(waiting, tuple(_trials(trial, tune)))


def _trials(trial: Cell, tune: Tune) -> Iterator[Cell]:
    """The trial with each candidate's settings; all repetitions of a split try the same ones."""
    written = json.dumps(trial.settings)
    rng = stream(trial.seed, "tune", trial.data, trial.split, trial.solver, written)
    for candidate in tune.candidates(trial.texts[2], rng):
        yield replace(trial, settings=settings_of(SOLVERS.make(with_settings(trial.texts[2], candidate))))


def _selected(own: tuple[str, ...], asked: tuple[str, ...]) -> tuple[str, ...]:
    """The experiment's own entries, or those asked for: a bare name stands for its entries of that name."""
    if not asked:
        return own
    picked: list[str] = []
    for text in asked:
        namesakes = [entry for entry in own if parse(entry).name == text]
        picked += namesakes or [text]
    return tuple(dict.fromkeys(picked))


def _check_metrics(experiment: Experiment, names: tuple[str, ...], parts: Split) -> None:
    for name in names:
        if reason := unusable(metric(name), parts.test):
            raise UserError(f"{experiment.name}: {reason}")
