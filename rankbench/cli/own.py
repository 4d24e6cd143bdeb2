"""The commands for a user's own data: audit it, compare solvers on it, and write the experiment file of that."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankbench.cli import completion
from rankbench.cli.options import (
    RESULTS,
    Out,
    Quiet,
    Report,
    Seed,
    Threads,
    as_options,
    bytes_of,
    jobs_of,
    option,
    seconds_of,
)
from rankbench.core.errors import UserError

if TYPE_CHECKING:
    from rankbench.own_data.choosing import Choice, Wishes

# Each command imports what it needs when it runs, so that --help and completion stay fast.
# ruff: noqa: PLC0415

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE[sep=;,user=NAME,...]",
        help="A CSV or Parquet file, or a known data set.",
        autocompletion=completion.data_sets,
    ),
]
Compared = Annotated[
    list[str] | None,
    option(
        "-s/--solver",
        "SOLVER",
        "Compare these with the floor; also path/to/file.py:Class. Repeatable.",
        completion.solvers,
    ),
]
Metrics = Annotated[
    list[str] | None,
    option("--metric", "METRIC", "The metrics; the first one decides. Repeatable.", completion.metrics),
]
HowSplit = Annotated[str, option("--split", "SPLIT", "How to split off the test part.", completion.splits)]
Time = Annotated[str, option("--time", "5m", "Time for everything, divided equally: 30s, 5m, 2h; none: 20 steps each.")]
Tried = Annotated[int | None, option("--trials", "N", "Trials of each solver that is tuned.")]
Repeated = Annotated[int, option("-r/--repetitions", "REPS", "How often the data is split anew.")]
Cores = Annotated[int | None, option("-j/--jobs", "JOBS", "Trainings at a time; by default one for each core.")]


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for verb in (on, init, audit):
        app.command()(verb)


def on(
    file: File,
    solver: Compared = None,
    metric: Metrics = None,
    split: HowSplit = "",
    time: Time = "none",
    trials: Tried = None,
    repetitions: Repeated = 1,
    seed: Seed = 0,
    jobs: Cores = None,
    threads: Threads = 1,
    timeout: Annotated[
        str | None, option("--timeout", "10m", "Time limit of a training; with --time some times its share, else 10m.")
    ] = None,
    memory: Annotated[str, option("--memory", "8G", "Memory limit of a training.")] = "none",
    report: Report = True,
    out: Out = RESULTS,
    quiet: Quiet = False,
) -> None:
    """Compare solvers on your own data: a split and metrics that suit it, equal tuning, and a verdict with intervals.

    Example: rankbench on ratings.csv

    Example: rankbench on pairs.csv -s my_solver.py:Mine --time 5m
    """
    from dataclasses import replace

    from rankbench.cli.session import Session, results_in
    from rankbench.execution.isolation import Caps
    from rankbench.execution.run import Conditions
    from rankbench.records.cells import Selection

    wishes = replace(_wishes(solver, metric, split, time, trials, repetitions, jobs), seed=seed)
    with as_options():
        selection = Selection(seed=seed, threads=threads)
    choice = _chosen(file, wishes)
    caps = Caps(choice.limit if timeout is None else seconds_of(timeout), bytes_of(memory))
    session = Session(results_in(out), selection, Conditions(wishes.jobs, caps, retry_failed=True), quiet)
    raise typer.Exit(session.answer(choice, report))


def init(
    file: File,
    solver: Compared = None,
    metric: Metrics = None,
    split: HowSplit = "",
    time: Time = "none",
    trials: Tried = None,
    repetitions: Repeated = 1,
    jobs: Cores = None,
    to: Annotated[Path | None, option("--to", "FILE", "The file to write; by default on-NAME.toml here.")] = None,
) -> None:
    """Write the experiment file that `rankbench on` runs with the same options, commented, to change and run.

    Example: rankbench init ratings.csv --time 5m
    """
    from rankbench.cli.lines import show
    from rankbench.own_data.experiment_file import experiment_of, name_of, text_of

    choice = _chosen(file, _wishes(solver, metric, split, time, trials, repetitions, jobs))
    experiment_of(choice)  # raises the errors of a wrong solver or metric before anything is written
    path = to or Path(f"{name_of(choice)}.toml")
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text_of(choice))
    except FileExistsError:
        raise UserError(f"{path} exists already", remedy="choose another file with --to") from None
    except OSError as error:
        raise UserError(f"cannot write to {path}: {error.strerror or error}") from None
    show(f"{path}: run it with rankbench run {path}")


def audit(file: File, seed: Seed = 0) -> None:
    """Look for what is often wrong with a file of ratings or pairs. Exit code 1 if anything is found.

    Example: rankbench audit ratings.csv
    """
    from rankbench.cli.lines import show
    from rankbench.cli.printer import show_findings, show_folded, show_sheet
    from rankbench.own_data.auditing import audited, splits_sheet

    found = audited(file, seed)
    show_folded(found.about)
    show_findings(found.findings)
    if found.view is not None:
        show("")
        show_sheet("What each split keeps", splits_sheet(found.view, seed))
    raise typer.Exit(1 if any(one.bad for one in found.findings) else 0)


def _wishes(
    solvers: list[str] | None,
    metrics: list[str] | None,
    split: str,
    time: str,
    trials: int | None,
    repetitions: int,
    jobs: int | None,
) -> "Wishes":
    """What the user has said, checked."""
    from rankbench.core.system import usable_cores
    from rankbench.own_data.choosing import Wishes

    if trials is not None and trials < 1:
        raise UserError(f"--trials={trials} is out of range: must be at least 1")
    if repetitions < 1:
        raise UserError(f"--repetitions={repetitions} is out of range: must be at least 1")
    seconds = seconds_of(time, "--time")
    at_once = usable_cores() if jobs is None else jobs_of(jobs)
    return Wishes(tuple(solvers or ()), tuple(metrics or ()), split, seconds, trials, repetitions, at_once)


def _chosen(file: str, wishes: "Wishes") -> "Choice":
    """The comparison that suits a file, as far as the user has not said otherwise."""
    from rankbench.own_data.fitting_choice import choice_for

    return choice_for(file, wishes)
