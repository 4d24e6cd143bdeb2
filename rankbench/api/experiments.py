"""Experiments from Python: run or tune, and look at what is stored as tables of pandas."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankbench import experiments
from rankbench.api.session import Display, Listening, Session
from rankbench.api.terminal import Terminal
from rankbench.core.brief import brief_table
from rankbench.core.errors import UserError, unknown
from rankbench.core.streams import seed_of
from rankbench.core.texts import csv_frame, safe
from rankbench.execution.cluster.waiting import Waits
from rankbench.execution.isolation import Caps
from rankbench.execution.retraining import best_of
from rankbench.execution.run import Conditions, Tell, reruns
from rankbench.execution.workplace import workplace_at
from rankbench.experiments import Budget, Experiment
from rankbench.experiments.spaces import Tune, read_space
from rankbench.own_data.frames import handed, named
from rankbench.planning.plan import check_named
from rankbench.planning.tuning import alone
from rankbench.planning.widening import rounds_of
from rankbench.records.cells import SOURCES, Selection, redraws
from rankbench.records.store import ResultsFolder
from rankbench.records.studies import Entry, Study
from rankbench.report import rows
from rankbench.report.analysis import comparison, power, trials, variance
from rankbench.report.render import tables
from rankbench.report.study import studies, study

if TYPE_CHECKING:
    import pandas

RESULTS = "results"
TIMEOUT = 600.0  # seconds for a cell, as on the command line
Names = str | Sequence[str]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What is stored of an experiment, as tables of pandas; a notebook shows its table with intervals and verdicts."""

    study: Study

    def __repr__(self) -> str:
        done = sum(entry.good is not None for entry in self.study.entries)
        about = f"{safe(self.study.name)}: {done} of {len(self.study.entries)} cells ended well"
        skipped = "".join(f"skipped: {skip.text}\n" for skip in self.study.skips)
        return f"{about}\n{tables.to_markdown(tables.sheet(self.study))}{skipped}"

    def _repr_html_(self) -> str:
        sheet = tables.sheet(self.study)
        return brief_table(self.study.experiment.title, sheet.headings, sheet.lines)

    @property
    def ok(self) -> bool:
        """Whether every cell has run and ended well, and no trial has failed."""
        return all(entry.good is not None for entry in self.study.entries) and not self.study.failed_trials

    @property
    def best(self) -> str:
        """The solver with the best mean of the first metric, with its chosen settings: a name that `fit` takes."""
        return self.best_on()

    def best_on(self, data: str = "", split: str = "") -> str:
        """The same on one data set and split, which need a name only where there are several.

        Parameters
        ----------
        data : str
            A data set of the experiment, as it is written there.
        split : str
            A split of the experiment.

        Returns
        -------
        str
            A name that `fit` takes.
        """
        found = list(self.study.groups)
        for kind, text in (("data set", data), ("split", split)):
            known = {group: getattr(group.place, kind.partition(" ")[0]) for group in found}
            found = [group for group, of in known.items() if text in ("", of.written, *of.names)]
            if not found:
                raise unknown(f"{kind} of {self.study.name}", text, {of.written for of in known.values()})
        remedies = {kind: f"choose one with best_on({kind}=...)" for kind in ("data", "split")}
        return best_of(found, self.study.measures[0], remedies).cell.solver_text

    def table(self) -> "pandas.DataFrame":
        """A row for each data set, solver and metric: the columns of `rankbench table --csv`, missing ones NaN."""
        return _frame((vars(row) for row in rows.rows(self.study)), rows.COLUMNS)

    def results(self) -> "pandas.DataFrame":
        """A row for each cell and metric, with the value, the training seconds and how the cell ended."""
        return _frame(row for entry in self.study.entries for row in _of_cell(self.study, entry))

    def curves(self) -> "pandas.DataFrame":
        """A row for each evaluated point of each training and each metric: step, seconds, objective and value."""
        return _frame(row for entry in self.study.entries for row in _of_curve(self.study, entry))

    def trials(self) -> "pandas.DataFrame":
        """A row for each trial of the tuning, with its value on the validation part and whether it was chosen."""
        return _frame((vars(trial) for trial in trials.trials(self.study)), trials.COLUMNS)

    def power(self, repetitions: Sequence[int] = (3, 5, 10)) -> "pandas.DataFrame":
        """A row for each data set, metric and number of repetitions: the difference that these would show, and when.

        It rests on the stored repetitions, of which there must be two: fewer say nothing about others.
        """
        found = power.powers(self.study, repetitions)
        rows = ({"data": one.place.data.written, "split": one.place.split.written, **vars(one)} for one in found)
        return _frame(({name: row[name] for name in power.COLUMNS} for row in rows), power.COLUMNS)

    def variance(self) -> "pandas.DataFrame":
        """A row for each solver, metric and source of variation: its share of the variance, with the interval.

        Users are told from what repetitions draw anew; runs with other `redraw` tell splits, search and start apart.
        """
        found = (one.record for one in variance.shares_of(self.study))
        return _frame(found, variance.COLUMNS)

    def compare(self, margin: float | None = None) -> "pandas.DataFrame":
        """A row for each two solvers, data set and metric: difference, interval, verdict; see `rankbench.compare`."""
        return _frame((one.record for one in comparison.within(self.study, margin)), comparison.COLUMNS)


def run(
    experiment: str | Experiment,
    *,
    solver: Names = (),
    data: Names = (),
    repetitions: int | None = None,
    redraw: Names = SOURCES,
    seed: int = 0,
    jobs: int = 1,
    threads: int = 1,
    timeout: float | None = TIMEOUT,
    memory: int | None = None,
    trials: int | None = None,
    full: bool = False,
    dry_run: bool = False,
    rerun: Names = (),
    join: bool = False,
    wait: bool = False,
    scheduler: str | None = None,
    wait_for_workers: float | None = 300.0,
    scheduler_timeout: float | None = 60.0,
    report: bool = False,
    out: str | Path = RESULTS,
    quiet: bool = True,
    verbose: bool = False,
    callback: Tell | None = None,
) -> Outcome:
    """Run an experiment by name, or that of a TOML file, as `rankbench run` does, and return what is stored of it.

    Cells with a stored result are not run again, unless `rerun` says so.

    Parameters
    ----------
    experiment : str or Experiment
        A name (`rankbench list experiments`) or the path of a TOML file.
    solver, data : str or list of str
        Only these solvers, and only these data sets.
    repetitions : int, optional
        Repetitions instead of the experiment's own number.
    redraw : str or list of str
        What each repetition draws anew, of "splits", "search" and "start"; the others are those of the first one.
    seed : int
        Decides all random numbers.
    jobs : int
        How many cells run at a time.
    threads : int
        Threads of each solver.
    timeout : float, optional
        Seconds that a cell may take; None for no limit.
    memory : int, optional
        Bytes that a cell and its child processes may take.
    trials : int, optional
        Trials of each solver in random search.
    full : bool
        The paper's own sizes instead of the quick profile.
    dry_run : bool
        Run nothing: the outcome shows which cells have a result.
    rerun : str or list of str
        Which stored results are made again: "failed", "disturbed" (timed while other processes were busy), "foreign"
        (of other kernels, libraries or processors) or "all".
    join, wait : bool
        Run along with other drivers of the folder, and wait until the last cell has ended.
    scheduler : str, optional
        Run cells on the workers of the Dask scheduler at this address.
    wait_for_workers, scheduler_timeout : float, optional
        Seconds without any worker, and without an answer of the scheduler, after which the run ends with an
        `Unfinished`; None for no limit. What is stored is kept.
    report : bool
        Write the report of the folder at the end.
    out : str or Path
        The folder of results.
    quiet, verbose : bool
        With `quiet=False`, show the progress on standard error, and with `verbose` a line for each cell where there
        is no terminal.
    callback : callable, optional
        Is called with an `Event` when a cell starts or ends.

    Returns
    -------
    Outcome
        All that is stored of the experiment, as tables.
    """
    conditions = conditions_of(jobs, timeout, memory, rerun, join, wait)
    selection = Selection(
        _names(solver), _names(data), repetitions, seed_of(seed), threads, full, trials, redraws(redraw)
    )
    chosen = experiments.load(experiment, full) if isinstance(experiment, str) else experiment
    if not isinstance(chosen, Experiment):
        problem = f"the experiment is a {type(chosen).__name__}"
        raise UserError(problem, remedy="pass a name (rankbench list experiments) or the path of a TOML file")
    check_named([chosen], selection)
    display = display_of(quiet, verbose, callback)
    waits = Waits(_seconds("wait_for_workers", wait_for_workers), _seconds("scheduler_timeout", scheduler_timeout))
    with workplace_at(None if dry_run else scheduler, jobs, display.complain, waits) as workplace:
        session = Session(_folder(out), selection, conditions, workplace, display)
        if join:
            session.refuse_namesakes([chosen])
        planned = session.prepared(chosen)
        found = planned.study() if dry_run else session.execute(planned)
        if report and not dry_run:
            session.report()
    return Outcome(found)


def tune(
    solver: str,
    data: Any,
    space: Mapping[str, Any],
    *,
    split: str = "entries[test=0.2]",
    metric: str = "pairwise-error",
    validation: str = "entries[test=0.2]",
    trials: int = 8,
    steps: int = 20,
    patience: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    threads: int = 1,
    timeout: float | None = TIMEOUT,
    memory: int | None = None,
    rerun: Names = (),
    method: str = "random",
    draws: str = "sobol",
    widen: int | None = None,
    out: str | Path = RESULTS,
    quiet: bool = True,
    verbose: bool = False,
) -> Outcome:
    """Tune a solver on a data set: `tune("sgd", "ml-100k", {"lam": "1..1000:log", "rank": [5, 10]}).best`.

    Parameters
    ----------
    solver : str
        The name of the solver, with the settings that stay in brackets.
    data : str, Path, pandas.DataFrame, Ratings or Comparisons
        The name of a data set, the path of a file, or a table; what is no file yet is written to one in `out`.
    space : dict
        For each setting to tune, a range as a text, "1..1000:log", or a list of values to try.
    split, validation : str
        The split that cuts off the test part, and the one that cuts the validation part from the training part.
    metric : str
        The metric that chooses.
    trials : int
        How many settings to try.
    steps : int
        Steps of each training.
    patience : int, optional
        Stop early: a trial ends after so many steps in a row without a better value, and the last training takes as
        many steps as the best trial took to its best value.
    seed : int
        Decides all random numbers.
    jobs : int
        How many trials run at a time.
    threads : int
        Threads of the solver.
    timeout : float, optional
        Seconds that a trial may take; None for no limit.
    memory : int, optional
        Bytes that a trial may take.
    rerun : str or list of str
        Which stored results are made again, as in `run`.
    method : str
        "random", "halving" (the best go on with more steps) or "tpe" (by Optuna).
    draws : str
        "sobol" (spread evenly over the space) or "random".
    widen : int, optional
        How many times a range grows while its best value is the outermost one that was tried; four times by default,
        and never with "halving" and "tpe", whose trials follow rules of their own.
    out : str or Path
        The folder of results, in which each trial is stored.
    quiet : bool
        With `quiet=False`, show the progress on standard error.
    verbose : bool
        A line for each trial, too, where standard error is no terminal.

    Returns
    -------
    Outcome
        Its `best` is the name of the solver with the chosen settings, and `trials()` has all trials.
    """
    if not isinstance(solver, str):
        remedy = "pass its name with its settings, such as 'sgd[rank=5]'"
        raise UserError(f"the solver is a {type(solver).__name__}", remedy=remedy)
    if not isinstance(space, Mapping):
        remedy = 'pass the values to try by name: {"lam": "1..1000:log"}'
        raise UserError(f"the space is a {type(space).__name__}", remedy=remedy)
    texts = [f"{name}={values if isinstance(values, str) else _alternatives(values)}" for name, values in space.items()]
    kind = Tune(method=method, draws=draws, widen=rounds_of(method, widen))  # type: ignore[arg-type]  # checked there
    wanted = replace(kind, space={solver: read_space(texts)}, trials=trials, metric=metric, validation=validation)
    conditions = conditions_of(jobs, timeout, memory, rerun)
    selection = Selection(seed=seed_of(seed), threads=threads)
    given = handed(data, Path(out))
    with given.errors():
        chosen = alone(solver, named(given), split, wanted, Budget(steps, patience=patience))
        session = Session(_folder(out), selection, conditions, display=display_of(quiet, verbose))
        run = session.prepared(chosen)
        if run.plan.skips:
            raise UserError(run.plan.skips[0].text)
        return Outcome(session.execute(run))


def results(
    experiment: str | None = None,
    *,
    seed: int | None = None,
    full: bool | None = None,
    out: str | Path = RESULTS,
    to: str | Path | None = None,
) -> "pandas.DataFrame":
    """The stored results of an experiment, or of all, as a table with a row for each cell and metric.

    They are those of the latest run, or of the run with this seed and profile.

    Parameters
    ----------
    experiment : str, optional
        A name or a TOML file; all experiments of the folder if none is given.
    seed : int, optional
        The seed of the run.
    full : bool, optional
        The profile of the run.
    out : str or Path
        The folder of results.
    to : str or Path, optional
        A file that the table is also written to; its name ends in .parquet or .csv.

    Returns
    -------
    pandas.DataFrame
        The columns of `Outcome.results`.
    """
    import pandas  # noqa: PLC0415

    found = [outcome(experiment, seed=seed, full=full, out=out)] if experiment else _outcomes(out)
    table = pandas.concat([one.results() for one in found], ignore_index=True)
    if to is not None:
        _write(table, Path(to))
    return table


def outcome(
    experiment: str, *, seed: int | None = None, full: bool | None = None, out: str | Path = RESULTS
) -> Outcome:
    """What is stored of an experiment: of the latest run, or of the run with this seed and profile.

    Parameters
    ----------
    experiment : str
        A name or a TOML file.
    seed : int, optional
        The seed of the run.
    full : bool, optional
        The profile of the run.
    out : str or Path
        The folder of results.

    Returns
    -------
    Outcome
        All that is stored of it, as tables.
    """
    folder = _folder(out)
    path = Path(experiment) if experiment.endswith(".toml") else None
    name, source = (path.stem, str(path.resolve())) if path else (experiment, None)
    found = study(folder, name, seed, full, source)
    if found is None and name in folder.names():
        raise UserError(
            f"{name} has no such run in {out}", remedy=f"rankbench status {name} --out {out} lists its runs"
        )
    if found is None:
        raise unknown(f"experiment in {out}:", name, folder.names() or ["none"], f"rankbench.run({experiment!r})")
    return Outcome(found)


def compare(what: Outcome | str, *, margin: float | None = None, out: str | Path = RESULTS) -> "pandas.DataFrame":
    """Each two solvers of an experiment on the same users and repetitions: difference, 95 % interval, verdict.

    Parameters
    ----------
    what : Outcome or str
        What `run` returned, or the name of an experiment.
    margin : float, optional
        Solvers that differ by less are equal; by default as the experiment says, else a hundredth of the best mean.
    out : str or Path
        The folder of results, for a name.

    Returns
    -------
    pandas.DataFrame
        A row for each two solvers, data set and metric.
    """
    return (outcome(what, out=out) if isinstance(what, str) else what).compare(margin)


def conditions_of(
    jobs: int = 1,
    timeout: float | None = TIMEOUT,
    memory: int | None = None,
    rerun: Names = (),
    join: bool = False,
    wait: bool = False,
) -> Conditions:
    """The conditions of a run, checked; a driver that runs alone always waits."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise UserError(f"jobs={jobs!r} is not valid", remedy="give a whole number of at least 1")
    _seconds("timeout", timeout)
    if memory is not None and (not isinstance(memory, int) or memory < 1):
        raise UserError(f"memory={memory!r} is not valid", remedy="give bytes above 0, or None for no limit")
    if wait and not join:
        raise UserError("wait is for one of several drivers", remedy="give it together with join=True")
    return Conditions(jobs, Caps(timeout, memory), reruns(rerun), join, wait or not join)


def _seconds(name: str, value: float | None) -> float | None:
    """The value of this option, checked: seconds, or None for no limit."""
    if value is not None and (not isinstance(value, int | float) or not value > 0):
        raise UserError(f"{name}={value!r} is not valid", remedy="give seconds above 0, or None for no limit")
    return value


def display_of(quiet: bool, verbose: bool = False, callback: Tell | None = None) -> Display:
    """What shows a session: nothing, a function that is told of its events, or the terminal."""
    if not quiet and callback is not None:
        raise UserError("quiet=False and callback exclude each other", remedy="give one of them")
    if quiet:
        return Listening(callback or (lambda event: None))
    return Terminal(verbose=verbose, stderr=True)


def _folder(out: str | Path) -> ResultsFolder:
    """A folder of results; files in it that cannot be read are left out with a warning."""
    return ResultsFolder(Path(out), lambda text: warnings.warn(safe(text), stacklevel=4))


def _outcomes(out: str | Path) -> list[Outcome]:
    found = [Outcome(one) for one in studies(_folder(out))]
    if not found:
        raise UserError(f"no results under {out}", remedy='run an experiment first: rankbench.run("park2015-table1")')
    return found


def _names(given: Names) -> tuple[str, ...]:
    """One name, or several."""
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str):
            remedy = "pass its name with its settings, such as 'sgd[rank=5]'"
            raise UserError(f"a {type(name).__name__} is no name", remedy=remedy)
    return names


def _alternatives(values: Any) -> str:
    """The values to try as they are written on a command line."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        values = [values]
    return "|".join(map(str, values))


def _of_cell(found: Study, entry: Entry) -> Iterator[dict[str, object]]:
    """A row of `results` for each metric of a cell."""
    cell, result = entry.cell, entry.result
    shared = _about(found, entry) | {"status": entry.status, "reason": entry.reason}
    for measure in cell.measures:
        value = result.value(measure.label) if result else nan
        cost = {"seconds": result.seconds, "peak_mb": result.peak_mb} if result else {}
        yield {**shared, "metric": measure.label, "value": value, **cost, "key": cell.key}


def _of_curve(found: Study, entry: Entry) -> Iterator[dict[str, object]]:
    """A row of `curves` for each point of a cell's training and each metric."""
    for point in entry.result.curve if entry.result else ():
        about = {"step": point.step, "seconds": point.seconds, "objective": point.objective}
        for measure, value in zip(entry.cell.measures, point.values, strict=True):
            yield {**_about(found, entry), **about, "metric": measure.label, "value": value}


def _about(found: Study, entry: Entry) -> dict[str, object]:
    """Which cell it is."""
    place = entry.cell.place
    return {
        "experiment": found.name,
        "data": place.data.written,
        "split": place.split.written,
        "repetition": place.repetition,
        "seed": entry.cell.seed,
        "solver": entry.cell.solver.written,
        "chosen": entry.cell.solver_text,
        "threads": entry.cell.threads,
    }


def _frame(rows: Iterable[Mapping[str, object]], columns: Sequence[str] | None = None) -> "pandas.DataFrame":
    import pandas  # noqa: PLC0415  slow to import, and not needed by the command line

    return pandas.DataFrame(list(rows), columns=None if columns is None else list(columns))


def _write(table: "pandas.DataFrame", path: Path) -> None:
    """Write a table to a file of the kind that its name says."""
    if path.suffix not in (".parquet", ".csv"):
        raise UserError(f"{path} is no name of a table's file", remedy="end it in .parquet or .csv")
    try:
        if path.suffix == ".csv":
            csv_frame(table).to_csv(path, index=False)
        else:
            table.to_parquet(path, index=False)
    except ImportError:
        raise UserError("writing Parquet needs pyarrow", remedy='pip install "rankbench[parquet]"') from None
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}", remedy="choose another file") from None
