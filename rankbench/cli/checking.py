"""The command for a user's own solver, metric or data: check it, and debug or profile a solver."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rankbench.cli import completion
from rankbench.cli.options import option, seconds_of, seed_option
from rankbench.cli.process import FAILED, OK
from rankbench.core.errors import UserError
from rankbench.core.lines import show

if TYPE_CHECKING:
    from rankbench.names import Named
    from rankbench.planning.materials import Materials
    from rankbench.records.cells import Cell
    from rankbench.records.results import Point

# Each command imports what it needs when it runs, so that --help and completion stay fast.
# ruff: noqa: PLC0415


def check(
    what: Annotated[
        str,
        typer.Argument(
            metavar="SOLVER|METRIC|FILE[param=value,...]",
            help="path/to/file.py:Class, a name, or a file of ratings or pairs.",
            autocompletion=completion.checkable,
        ),
    ],
    timeout: Annotated[str, option("--timeout", "60s", "Time limit of a check.")] = "60s",
    profile: Annotated[bool, option("--profile", None, "Train once in this process; print what took time.")] = False,
    pdb: Annotated[bool, option("--pdb", None, "Train once in this process; an error opens the debugger.")] = False,
    data: Annotated[
        str, option("-d/--data", "DATA|FILE", "What to train on with --profile or --pdb.", completion.data_sets)
    ] = "",
    split: Annotated[str, option("--split", "SPLIT", "How to split that.", completion.splits)] = "entries[test=0.2]",
    metric: Annotated[
        str, option("--metric", "METRIC", "What to measure on it.", completion.metrics)
    ] = "pairwise-error",
    steps: Annotated[int, option("--steps", "N", "Steps of that training.")] = 20,
    seed: Annotated[int, seed_option("Decides the splits that are tried on a file.")] = 0,
) -> None:
    """Check a solver (determinism, threads, scores ...), a metric (limits, ties ...), or a file of ratings or pairs.

    Solvers and metrics are checked in a process of their own. Exit code 1 if anything is found.

    Example: rankbench check my_solver.py:Mine

    Example: rankbench check my_metric.py:Mine

    Example: rankbench check ratings.csv

    Example: rankbench check my_solver.py:Mine --pdb -d ratings.csv
    """
    from rankbench.checks.kit import checked
    from rankbench.cli.printer import show_findings
    from rankbench.execution.debugging import cell_of

    if profile and pdb:
        raise UserError("--profile and --pdb exclude each other: choose one")
    if profile or pdb:
        made = cell_of(what, _data(what, data), split, metric, steps)
        raise typer.Exit(_profile(*made) if profile else _debug(*made))
    if _is_data(what):
        raise typer.Exit(_audit(what, seed))
    found = []
    for finding in checked(_named(what), seconds_of(timeout)):
        show_findings([finding])
        sys.stdout.flush()
        found.append(finding.outcome)
    show(", ".join(f"{found.count(outcome)} {outcome}" for outcome in dict.fromkeys(found)))
    raise typer.Exit(FAILED if "failed" in found else OK)


def _is_data(text: str) -> bool:
    """Whether this means data: a known data set, or a file or a folder that is no source of Python."""
    from rankbench.data import DATASETS
    from rankbench.names.user_files import class_from_file, is_from_file, own_path
    from rankbench.solvers import SOLVERS

    name = text.partition("[")[0]
    if SOLVERS.knows(name):
        return False
    if DATASETS.knows(name):
        return True
    if is_from_file(text):
        return hasattr(class_from_file(name, "solver, metric or data set"), "view")
    path = own_path(name)
    return path.suffix != ".py" and (bool(path.suffix) or os.path.exists(path))


def _audit(text: str, seed: int) -> int:
    """Look for what is often wrong with a file of ratings or pairs, and print it; the exit code."""
    from rankbench.cli.printer import show_findings, show_folded, show_sheet
    from rankbench.own_data.auditing import audited, splits_sheet

    found = audited(text, seed)
    show_folded(found.about)
    show_findings(found.findings)
    if found.view is not None:
        show("")
        show_sheet("What each split keeps", splits_sheet(found.view, seed))
    return FAILED if any(one.bad for one in found.findings) else OK


def _named(text: str) -> "Named":
    """What is to be checked: a solver, or a metric that is not the package's own."""
    from rankbench.metrics import METRICS, OWN_METRICS
    from rankbench.names.user_files import is_from_file
    from rankbench.solvers import SOLVERS

    name = text.partition("[")[0]
    if name.partition("@")[0] in METRICS:
        remedy = "rankbench check takes a solver, or a metric of your own: path/to/file.py:Class"
        raise UserError(f"{name} is a metric of rankbench, which its own tests check", remedy=remedy)
    if OWN_METRICS.knows(name) or (is_from_file(name) and hasattr(OWN_METRICS.find(name), "of_user")):
        return OWN_METRICS.resolve(text)
    return SOLVERS.resolve(text)


def _data(solver: str, data: str) -> str:
    """The name of the data to train on: what the user named, else generated data, with features if they are needed."""
    from rankbench.own_data.naming import data_named
    from rankbench.solvers import SOLVERS

    if data:
        return data_named(data).written
    return "feature-low-rank" if SOLVERS.resolve(solver).record.needs_features else "low-rank"


def _profile(cell: "Cell", materials: "Materials") -> int:
    """Run a cell here and print which functions took most time; the exit code."""
    from rankbench.cli.printer import show_sheet
    from rankbench.execution.debugging import profiled
    from rankbench.report.render.tables import Sheet

    points, functions = profiled(cell, materials)
    lines = tuple((one.name, str(one.calls), f"{one.own:.3f}", f"{one.total:.3f}") for one in functions)
    headings = ("function", "calls", "own seconds", "with its calls")
    show_sheet(cell.label, Sheet(headings, (False, True, True, True), lines, frozenset()))
    show(_ended(cell, points[-1]))
    return OK


def _debug(cell: "Cell", materials: "Materials") -> int:
    """Run a cell here; an exception is printed with its own line and opens the debugger. The exit code."""
    import pdb
    import traceback

    from rankbench.execution.debugging import run_here
    from rankbench.names.user_lines import with_own_line

    try:
        points, _ = run_here(cell, materials)
    except Exception as error:  # a solver may raise anything
        show(traceback.format_exc().rstrip(), sys.stderr)
        show(with_own_line(error))
        pdb.post_mortem(error.__traceback__)
        return FAILED
    show(_ended(cell, points[-1]))
    return OK


def _ended(cell: "Cell", last: "Point") -> str:
    """How a training ended, in a line."""
    value = f"{cell.measures[0].label} {last.values[0]:.4f}"
    return f"{cell.label}: {value} after {last.step} steps, {last.seconds:.3f} s"
