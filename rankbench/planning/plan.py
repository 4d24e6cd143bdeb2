"""Planning: the cells of an experiment (one per data set, split, repetition and solver) and its tuning trials."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from rankbench import data as data_sets
from rankbench.core.contract import Solver
from rankbench.core.errors import UserError
from rankbench.core.packages import missing
from rankbench.core.streams import stream
from rankbench.data.splits import SPLITS, VALIDATIONS, Split
from rankbench.data.views import mismatch
from rankbench.experiments import Experiment
from rankbench.experiments.spaces import Tune, first_candidate
from rankbench.metrics import metric, unusable, valueless
from rankbench.names import Named, ReadsFiles, parse, with_settings, without_settings
from rankbench.planning.adaptive import TPE, halving, required_optuna
from rankbench.planning.known_splits import KnownSplit
from rankbench.planning.materials import Materials
from rankbench.planning.widening import widening
from rankbench.records.cells import Cell, Measure, Place, Selection, Skip, Source
from rankbench.records.plans import Plan, Search, distinct_trials
from rankbench.solvers import SOLVERS

_NOT_HERE = "the data is not at hand"


@dataclass(frozen=True)
class Question:
    """An experiment and a selection with all names resolved, from which the cells are made."""

    experiment: Experiment
    selection: Selection
    measures: tuple[Measure, ...]
    solvers: tuple[Named, ...]
    splits: tuple[Named, ...]
    data: tuple[Named, ...]

    @property
    def threads(self) -> tuple[int, ...]:
        """The numbers of threads that each solver runs with."""
        return self.experiment.threads or (self.selection.threads,)

    @cached_property
    def missing(self) -> tuple[str | None, ...]:
        """For each solver the command that installs the package it needs; None where nothing is missing."""
        return tuple(missing(named.record) for named in self.solvers)

    @property
    def repetitions(self) -> range:
        """The repetitions, counted from 0."""
        return range(self.selection.repetitions or self.experiment.repetitions)

    def held(self, repetition: int, *sources: Source) -> tuple[Source, ...]:
        """Those of these sources of variation that a repetition draws as the first one did."""
        return tuple(one for one in sources if repetition and one not in self.selection.redraw)


def plan(experiment: Experiment, selection: Selection, materials: Materials | None = None) -> Plan:
    """The plan of an experiment: every cell that can run here, and every skipped part with the reason.

    If the experiment tunes, the plan has searches instead of cells; the cells follow from the results of the trials.
    A part with an error is skipped and the remaining parts run; it is an error only if nothing is left.
    """
    materials = materials or Materials(selection.seed)
    question = resolved(_with_trials(experiment, selection.trials), selection)
    found: list[Cell | Search | Skip] = []
    for data in question.data:
        found += _of_data(question, materials, data)
    skips = tuple(dict.fromkeys(one for one in found if isinstance(one, Skip)))
    broken = [skip for skip in skips if skip.failed]
    if broken and all(isinstance(one, Skip) for one in found):
        raise UserError(broken[0].reason)
    searches = tuple(one for one in found if isinstance(one, Search))
    cells = tuple(one.cell if isinstance(one, Search) else one for one in found if not isinstance(one, Skip))
    about = (question.experiment, selection.profile, selection.seed, question.measures)
    return Plan(*about, cells, skips, distinct_trials(searches), searches=searches)


def resolved(experiment: Experiment, selection: Selection) -> Question:
    """The selected parts of the experiment with every name resolved."""
    tune = experiment.tune
    solvers = (
        SOLVERS.resolve(text, first_candidate(tune.space_of(text)) if tune else None)
        for text in _selected(experiment.solvers, selection.solvers)
    )
    return Question(
        experiment,
        selection,
        measures=tuple(Measure.of(metric(name)) for name in experiment.metrics),
        solvers=tuple(solvers),
        splits=tuple(map(SPLITS.resolve, experiment.splits)),
        data=tuple(map(data_sets.DATASETS.resolve, _selected(experiment.data, selection.data))),
    )


def check_named(experiments: Sequence[Experiment], selection: Selection) -> None:
    """Raise an error if a data set that the user named is not at hand, or a solver that the user named is unknown."""
    for text in _selected(tuple(entry for one in experiments for entry in one.data), selection.data):
        if text in selection.data or parse(text).name in selection.data:
            record = data_sets.DATASETS.resolve(text).record
            if remedy := record.origin.missing():
                raise UserError(remedy if isinstance(record, ReadsFiles) else f"{text} is not at hand: {remedy}")
    for text in selection.solvers:
        SOLVERS.find(parse(text).name)


def _with_trials(experiment: Experiment, trials: int | None) -> Experiment:
    """The experiment with the requested number of trials, if it tunes and a number was requested."""
    if experiment.tune is None or trials is None:
        return experiment
    if experiment.tune.method == "grid":
        raise UserError(f"--trials={trials}: {experiment.name} tunes on a grid, which decides how many run")
    return replace(experiment, tune=replace(experiment.tune, trials=trials))


def _of_data(question: Question, materials: Materials, data: Named) -> Iterator[Cell | Search | Skip]:
    """The cells of a data set (searches if the experiment tunes), and its skipped parts."""
    found = list(_able(question, materials, data))
    tune = question.experiment.tune
    yield from (one for one in found if isinstance(one, Skip))
    cells = [one for one in found if isinstance(one, Cell)]
    yield from _searches(question, tune, cells, materials) if tune else cells


def _able(question: Question, materials: Materials, data: Named) -> Iterator[Cell | Skip]:
    """A cell for each solver that can be trained on the data set, and the skipped parts."""
    source = data.record
    if remedy := source.origin.missing():
        own = isinstance(source, ReadsFiles)  # a missing file that the user named is an error
        yield Skip(data, None, None, remedy, failed=True) if own else Skip(data, None, None, _NOT_HERE, remedy)
        return
    places = [
        Place(data, split, repetition, held=question.held(repetition, "splits", "start"))
        for repetition, split in product(question.repetitions, question.splits)
    ]
    try:
        if not all(map(materials.known.get, places)):
            materials.view(data)
    except UserError as error:
        yield Skip(data, None, None, str(error), failed=True)
        return
    for place in places:
        try:
            known = materials.about(place)
            _check_metrics(question.experiment, question.measures, known.example)
            if place.repetition == places[0].repetition:  # the others are cut alike
                _check_search(question.experiment, question.measures, materials, place)
        except UserError as error:
            yield Skip(data, place.split, None, str(error), failed=True)
        else:
            yield from _of_place(question, place, known)


def _of_place(question: Question, place: Place, known: KnownSplit) -> Iterator[Cell | Skip]:
    """The cells on one split, and a skip for each solver that cannot be trained on it."""
    parts = known.example
    for (named, remedy), threads in product(zip(question.solvers, question.missing, strict=True), question.threads):
        solver: Solver = named.record
        if remedy:
            reason = f"{named.written} needs a package that is not installed"
            yield Skip(place.data, place.split, named, reason, remedy)
        elif reason := mismatch(solver, parts.train_for(solver)) or "":
            yield Skip(place.data, place.split, named, f"{named.written} {reason}")
        else:
            yield _cell(question, place, known.hash, named, threads)


def _cell(question: Question, place: Place, split_hash: str, named: Named, threads: int) -> Cell:
    solver: Solver = named.record
    experiment = question.experiment
    return Cell(
        place=place,
        split_hash=split_hash,
        seed=question.selection.seed,
        solver=named,
        version=solver.version,
        determinism=solver.determinism,
        measures=question.measures,
        budget=experiment.budget,
        every=experiment.every,
        objective=experiment.objective,
        threads=threads,
    )


def _searches(question: Question, tune: Tune, cells: list[Cell], materials: Materials) -> Iterator[Search | Skip]:
    """A search for each cell; with `per = "split"` all repetitions share the trials of the first."""
    _refuse_shared_trials(question, tune, cells)
    measure = Measure.of(metric(tune.metric)) if tune.metric else question.measures[0]
    cut_by = VALIDATIONS.resolve(tune.validation)
    hashes: dict[Place, str] = {}
    for cell in cells:
        repetition = cell.place.repetition if tune.per == "repetition" else 0
        held = question.held(repetition, "splits", "search")
        place = replace(cell.place, repetition=repetition, validation=cut_by, held=held)
        if place not in hashes:
            try:
                known = materials.about(place)
                _check_metrics(question.experiment, (measure,), known.example)
                _check_search(question.experiment, (measure,), materials, place)
            except UserError as error:
                yield Skip(place.data, place.split, None, str(error), failed=True)
                continue
            hashes[place] = known.hash
        tuned = tuple(name for name, _ in cell.solver.settings if name in tune.space_of(cell.solver.written))
        waiting = replace(cell, tuned=tuned, solver=without_settings(cell.solver, tuned))
        trial = replace(
            waiting,
            place=place,
            split_hash=hashes[place],
            measures=(measure,),
            every=_between_evaluations(cell),
            objective=False,
        )
        yield _search(waiting, tuple(_trials(trial, cell.solver, tune)), cell.solver, tune)


def _between_evaluations(cell: Cell) -> int:
    """The steps between two evaluations of a trial, which is evaluated only at its end unless it has patience."""
    return cell.every if cell.budget.patience is not None else cell.budget.steps or cell.every


def _search(waiting: Cell, trials: tuple[Cell, ...], solver: Named, tune: Tune) -> Search:
    """The search that begins with these trials; it has none where there is nothing to choose, steps included."""
    if not waiting.tuned and waiting.budget.patience is None:
        return Search(waiting, ())
    if tune.method == "halving":
        if waiting.budget.steps is None:
            problem = 'method = "halving" gives trials a share of the steps of [budget], which has none'
            raise UserError(problem, remedy="add steps to [budget]")
        rungs = halving(len(trials), waiting.budget.steps, tune.eta)
        return Search(waiting, rungs.begun(trials), rungs)
    if tune.method == "tpe" and not tune.is_whole(solver.written):
        required_optuna()
        return Search(waiting, trials, TPE(solver, tune.space_of(solver.written), len(trials), tune.trials))
    rounds = 0 if tune.method == "tpe" else tune.widen
    return Search(waiting, trials, widening(tune.space_of(solver.written), len(trials), rounds))


def _refuse_shared_trials(question: Question, tune: Tune, cells: list[Cell]) -> None:
    """Raise an error if the trials of the first repetition would train on rows that other repetitions test on."""
    repeated = [cell.place.data for cell in cells if cell.place.repetition]
    if tune.per == "split" and not all(map(data_sets.drawn_anew, repeated)):
        problem = f'{question.experiment.name}: with per = "split" settings are chosen on rows that others test on'
        raise UserError(problem, remedy='write per = "repetition", or use generated data, which is drawn anew')


def _trials(trial: Cell, solver: Named, tune: Tune) -> Iterator[Cell]:
    """A trial for each candidate's settings; each repetition draws others, where it draws the search anew.

    Candidates that are spread evenly are the same for all solvers, as far as their spaces allow.
    """
    whose = (trial.stream_name, json.dumps(dict(trial.solver.settings))) if tune.draws == "random" else ("all",)
    anew = (number,) if (number := trial.place.draw("search")) else ()
    rng = stream(trial.seed, "tune", *trial.drawn_for, *whose, *anew)
    for candidate in tune.candidates(solver.written, rng):
        yield replace(trial, solver=with_settings(solver, candidate))


def _selected(own: tuple[str, ...], asked: tuple[str, ...]) -> tuple[str, ...]:
    """The requested entries, or all of the experiment's if none are; a bare name selects all entries of that name."""
    if not asked:
        return own
    picked: list[str] = []
    for text in asked:
        namesakes = [entry for entry in own if parse(entry).name == text]
        picked += namesakes or [text]
    return tuple(dict.fromkeys(picked))


def _check_metrics(experiment: Experiment, measures: tuple[Measure, ...], parts: Split) -> None:
    for measure in measures:
        if reason := unusable(measure.record, parts.test):
            raise UserError(f"{experiment.name}: {reason}")


def _check_search(experiment: Experiment, measures: tuple[Measure, ...], materials: Materials, place: Place) -> None:
    """Raise an error if an experiment would run all trials of its searches, and none of these metrics has a value."""
    if experiment.tune is None or materials.about(place).is_ordered:
        return
    parts = materials.split(place)
    reasons = [valueless(measure.record, parts.test, parts.train) for measure in measures]
    if all(reasons):
        raise UserError(f"{experiment.name}: {reasons[0]}")
