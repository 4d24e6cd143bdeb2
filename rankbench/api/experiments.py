"""Experiments from Python: run them, or tune a solver."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from rankbench import experiments
from rankbench.api.outcomes import Outcome, folder_of
from rankbench.api.session import Display, Listening, Session
from rankbench.api.terminal import Terminal
from rankbench.core.errors import UserError
from rankbench.core.lines import RESULTS
from rankbench.core.streams import seed_of
from rankbench.execution.cluster.waiting import Waits
from rankbench.execution.isolation import Caps
from rankbench.execution.run import Conditions, Tell, reruns
from rankbench.execution.workplace import workplace_at
from rankbench.experiments import Budget, Experiment
from rankbench.experiments.spaces import Tune, read_space
from rankbench.own_data.frames import handed, named
from rankbench.planning.plan import check_named
from rankbench.planning.tuning import alone
from rankbench.planning.widening import rounds_of
from rankbench.records.cells import SOURCES, Selection, redraws

TIMEOUT = 600.0  # seconds for a cell, as on the command line
Names = str | Sequence[str]


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
    about = (listed(solver), listed(data), repetitions, seed_of(seed), threads, full, trials)
    selection = Selection(*about, redraws(redraw))
    chosen = experiments.load(experiment, full) if isinstance(experiment, str) else experiment
    if not isinstance(chosen, Experiment):
        problem = f"the experiment is a {type(chosen).__name__}"
        raise UserError(problem, remedy="pass a name (rankbench list experiments) or the path of a TOML file")
    check_named([chosen], selection)
    display = display_of(quiet, verbose, callback)
    waits = Waits(seconds_in("wait_for_workers", wait_for_workers), seconds_in("scheduler_timeout", scheduler_timeout))
    with workplace_at(None if dry_run else scheduler, jobs, display.complain, waits) as workplace:
        session = Session(folder_of(out), selection, conditions, workplace, display)
        if join:
            session.refuse_namesakes([chosen])
        planned = session.prepared(chosen, writes=not dry_run)
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
    data : str, Path, DataFrame, Ratings or Comparisons
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
        session = Session(folder_of(out), selection, conditions, display=display_of(quiet, verbose))
        run = session.prepared(chosen)
        if run.plan.skips:
            raise UserError(run.plan.skips[0].text)
        return Outcome(session.execute(run))


def conditions_of(
    jobs: int = 1,
    timeout: float | None = TIMEOUT,
    memory: int | None = None,
    rerun: Names = (),
    join: bool = False,
    wait: bool = False,
) -> Conditions:
    """The conditions of a run, checked; a driver that runs alone always waits."""
    if isinstance(jobs, bool) or not isinstance(jobs, Integral) or jobs < 1:
        raise UserError(f"jobs={jobs!r} is not valid", remedy="give a whole number of at least 1")
    if memory is not None and (isinstance(memory, bool) or not isinstance(memory, Integral) or memory < 1):
        raise UserError(f"memory={memory!r} is not valid", remedy="give bytes above 0, or None for no limit")
    if wait and not join:
        raise UserError("wait is for one of several drivers", remedy="give it together with join=True")
    caps = Caps(seconds_in("timeout", timeout), None if memory is None else int(memory))
    return Conditions(int(jobs), caps, reruns(rerun), join, wait or not join)


def seconds_in(name: str, value: float | None) -> float | None:
    """The value of this option, checked: seconds, or None for no limit."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, Real) or not value > 0):
        raise UserError(f"{name}={value!r} is not valid", remedy="give seconds above 0, or None for no limit")
    return None if value is None else float(value)


def display_of(quiet: bool, verbose: bool = False, callback: Tell | None = None) -> Display:
    """What shows a session: nothing, a function that is told of its events, or the terminal."""
    if not quiet and callback is not None:
        raise UserError("quiet=False and callback exclude each other", remedy="give one of them")
    if quiet:
        return Listening(callback or (lambda event: None))
    return Terminal(verbose=verbose, stderr=True)


def listed(given: Names) -> tuple[str, ...]:
    """One name, or several."""
    names = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    for name in names:
        if not isinstance(name, str):
            remedy = 'give names, such as "sgd[rank=5]" or "mine.py:Mine"'
            raise UserError(f"a {type(name).__name__} is no name", remedy=remedy)
    return names


def _alternatives(values: Any) -> str:
    """The values to try as they are written on a command line."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        values = [values]
    return "|".join(map(str, values))
