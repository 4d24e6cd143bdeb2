"""The options that several commands share, and the parsing of durations and sizes."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankbench.cli import completion
from rankbench.core.errors import UserError
from rankbench.core.lines import RESULTS as USUAL

if TYPE_CHECKING:
    from rankbench.execution.run import Conditions
    from rankbench.records.cells import Source

# What runs cells is imported when it is needed, so that --help and completion stay fast.
# ruff: noqa: PLC0415

RESULTS = Path(USUAL)
_JOBS = 1024  # each job is a thread of this process, and three processes


def option(short: str, metavar: str | None, text: str, names: Callable[[str], list[str]] | None = None) -> Any:
    """A command-line option with names like `-q/--quiet`, a placeholder, a help text, and names to complete."""
    return typer.Option(*short.split("/"), metavar=metavar, help=text, autocompletion=names)


def seed_option(text: str) -> Any:
    """The option of a seed, which is checked before anything else is done."""
    return typer.Option("--seed", metavar="N", help=text, callback=_checked_seed)


def _checked_seed(seed: int | None) -> int | None:
    from rankbench.core.streams import checked_seed

    return None if seed is None else checked_seed(seed, "--seed")


Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[all|EXPERIMENT...]",
        help="Names, first words of names, or TOML files of your own.",
        autocompletion=completion.experiments,
    ),
]
Out = Annotated[Path, option("-o/--out", "DIR", "The folder of results.")]
Stored = Annotated[Path, option("-o/--out", "DIR|FILE", "The folder of results, or an archive.")]
Machine = Annotated[
    str, option("--machine", "ID", "Only results of this machine or commit, by the first digits; see status.")
]
Solvers = Annotated[
    list[str] | None,
    option(
        "-s/--solver",
        "SOLVER[param=value,...]",
        "Only this solver; also path/to/file.py:Class. Repeatable.",
        completion.solvers,
    ),
]
Data = Annotated[list[str] | None, option("-d/--data", "DATA", "Only this data set. Repeatable.", completion.data_sets)]
Repetitions = Annotated[int | None, option("-r/--repetitions", "REPS", "Repetitions instead of the default number.")]
Redraw = Annotated[
    str, option("--redraw", "SOURCES", "What a repetition draws anew, of splits,search,start; the rest is held.")
]
Seed = Annotated[int, seed_option("Random seed of data, splits and solvers.")]
Jobs = Annotated[int, option("-j/--jobs", "JOBS", "Cells to run at a time; times that this disturbs are marked.")]
Threads = Annotated[int, option("--threads", "N", "Threads of each solver.")]
Timeout = Annotated[str, option("--timeout", "10m", "Time limit of a cell: 30s, 10m, 2h, or none.")]
Memory = Annotated[str, option("--memory", "8G", "Memory limit of a cell and its child processes: 500M, 8G, or none.")]
Full = Annotated[bool, option("--full", None, "The papers' own sizes instead of the quick profile.")]
DryRun = Annotated[
    bool,
    option(
        "--dry-run",
        None,
        "Say what would run and for how long, and run nothing; of several experiments -v lists the cells.",
    ),
]
Rerun = Annotated[
    str,
    option("--rerun", "KINDS", "Run again stored results: failed, disturbed, foreign (other kernels or CPUs), all."),
]
Join = Annotated[
    bool,
    option("--join", None, "Run cells along with other drivers of this folder; end when they run all that are left."),
]
Wait = Annotated[
    bool, option("--wait", None, "With --join: wait until the last cell has ended, to take over from dead drivers.")
]
Scheduler = Annotated[
    str | None,
    option("--scheduler", "ADDRESS|FILE", "Run cells on the workers of this Dask scheduler; -j is cells per node."),
]
WaitForWorkers = Annotated[
    str, option("--wait-for-workers", "5m", "With --scheduler: end after so long without a worker: 30s, 5m, or none.")
]
SchedulerTimeout = Annotated[
    str,
    option(
        "--scheduler-timeout", "1m", "With --scheduler: end once it has not answered for so long: 30s, 1m, or none."
    ),
]
Trials = Annotated[int | None, option("--trials", "N", "Trials of each solver in random search.")]
Report = Annotated[bool, typer.Option("--report/--no-report", help="Write the report at the end.")]
Quiet = Annotated[bool, option("-q/--quiet", None, "Print results and nothing else.")]
Verbose = Annotated[bool, option("-v/--verbose", None, "Where there is no terminal, print a line for each cell.")]
OfSeed = Annotated[int | None, option("--seed", "N", "Show the run with this seed; by default the latest run.")]
OfFull = Annotated[
    bool | None, typer.Option("--full/--quick", help="Show a run in this profile; by default the latest run.")
]


@contextmanager
def as_options() -> Iterator[None]:
    """A context in which errors about settings are worded as errors about command-line options."""
    try:
        yield
    except UserError as error:
        raise error.as_option() if error.subject in ("Selection", "Tune", "Budget", "Wishes") else error from None


def refuse_odd_joining(join: bool, wait: bool, dry_run: bool) -> None:
    """Refuse options that make no sense together with --join, or without it."""
    if wait and not join:
        raise UserError("--wait is for one of several drivers: give it together with --join")
    if join and dry_run:
        raise UserError("--dry-run runs nothing, so it cannot --join: give one of them")


def conditions_of(
    jobs: int, timeout: str, memory: str = "none", rerun: str = "", join: bool = False, wait: bool = False
) -> "Conditions":
    """The conditions of a run that these options ask for; a driver that runs alone always waits."""
    from rankbench.execution.isolation import Caps
    from rankbench.execution.run import Conditions, reruns

    caps = Caps(seconds_of(timeout), bytes_of(memory))
    try:
        kinds = reruns(rerun if rerun else ())
    except UserError as error:
        raise UserError(f"--rerun {rerun[:60]}: {error}") from None
    if not 1 <= jobs <= _JOBS:
        raise UserError(f"-j {jobs} is out of range: must be at least 1 and at most {_JOBS}")
    return Conditions(jobs, caps, kinds, join, wait or not join)


def redraws_of(sources: str) -> "tuple[Source, ...]":
    """The sources of variation that --redraw names."""
    from rankbench.records.cells import redraws

    try:
        return redraws(sources)
    except UserError as error:
        raise UserError(f"--redraw {sources[:60]}: {error}") from None


def seconds_of(text: str, name: str = "--timeout") -> float | None:
    """The seconds in a duration such as 30s, 10m or 2h, the value of this option; None for no limit."""
    return _amount(text, name, {"s": 1.0, "m": 60.0, "h": 3600.0}, "30s, 10m, 2h")


def bytes_of(text: str) -> int | None:
    """The bytes in a size such as 500M or 8G; None for no limit."""
    amount = _amount(text, "--memory", {"M": 2.0**20, "G": 2.0**30}, "500M, 8G")
    return None if amount is None else int(amount)


def _amount(text: str, name: str, units: dict[str, float], examples: str) -> float | None:
    """The number in a text such as 10m, multiplied by its unit; None for the text `none`."""
    if text == "none":
        return None
    match = re.fullmatch(rf"([0-9]{{1,9}}(?:\.[0-9]{{1,9}})?)([{''.join(units)}])", text)
    if not match or float(match[1]) == 0:
        raise UserError(f"{name} {text[:60]!r} cannot be read: write it like {examples}, or none")
    return float(match[1]) * units[match[2]]
