"""The commands that train nothing: list, status, table, compare, report and doctor."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankbench.cli import completion
from rankbench.cli.opening import is_archive, made_by, named, stored_in
from rankbench.cli.options import RESULTS, Machine, OfFull, OfSeed, Stored, option
from rankbench.cli.process import FAILED
from rankbench.core.errors import UserError, not_stored, unknown, writing_to
from rankbench.core.lines import complain, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankbench.records.store import ResultsFolder
    from rankbench.records.studies import Study
    from rankbench.report.analysis.comparison import Comparison
    from rankbench.report.asked import AskedTable
    from rankbench.report.render.tables import Sheet

# Each command imports what it needs when it runs, so that --help and completion stay fast.
# ruff: noqa: PLC0415

PARTS = ("results", "trials", "by-trials", "costs", "peaks", "variance")
parts = completion.completer(lambda: PARTS)


def list_names(
    name: Annotated[
        str, typer.Argument(metavar=f"[{'|'.join(completion.KINDS)}|NAME]", autocompletion=completion.listed)
    ] = "experiments",
) -> None:
    """List the experiments, solvers, data sets, splits or metrics, one per line; or describe the one with this name.

    Example: rankbench list solvers

    Example: rankbench list sgd
    """
    from rankbench.cli.describe import describe, everything

    if name not in completion.KINDS:
        return show(describe(name))
    found = everything()[name]
    width = max(map(len, found))
    return show("\n".join(f"{one:<{width}}  {about}" for one, about in found.items()))


def report(
    name: Annotated[
        str, typer.Argument(metavar="[EXPERIMENT|FILE]", help="Only its figures.", autocompletion=completion.stored)
    ] = "",
    out: Stored = RESULTS,
    to: Annotated[
        Path | None, option("--to", "DIR", "By default OUT/report, of an archive FILE-report; for figures, here.")
    ] = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write the HTML page.")] = True,
    columns: Annotated[str, option("--columns", "1,2,...", "The basic functions in a figure of them.")] = "",
    seed: OfSeed = None,
    full: OfFull = None,
) -> None:
    """Write tables, figures and the page from stored results; or of one experiment its figures, as PDF and PNG.

    Example: rankbench report --out results

    Example: rankbench report parkzhang2014-fig1 --to figures
    """
    from rankbench.report.writing import write_report

    if name:
        return _draw(stored_study(out, name, seed, full), columns, to or Path(), out)
    if columns or seed is not None or full is not None:
        raise UserError("--columns, --seed, --full and --quick are for the figures of one experiment: name it")
    if is_archive(out):
        to = to or out.with_name(f"{out.stem}-report")
    return show(f"report: {write_report(stored_in(out), complain, to, page).resolve()}")


def _draw(found: "Study", columns: str, to: Path, out: Path) -> None:
    """Draw the figures of a study and print their paths: its own, that of its ranks, and its basic functions."""
    with writing_to(to, ""):
        to.mkdir(parents=True, exist_ok=True)
        files = [*_draw_figure(found, to, out), *_draw_bases(found, columns, to)]
    show("\n".join(f"{to / file}.{ending}" for file in files for ending in ("pdf", "png")))


def table(
    name: Annotated[str, typer.Argument(metavar="EXPERIMENT|FILE", autocompletion=completion.stored)],
    as_csv: Annotated[bool, typer.Option("--csv", help="One row per data set, solver and metric.")] = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="A booktabs table.")] = False,
    what: Annotated[
        str,
        option(
            "--what",
            "|".join(PARTS),
            "Trials; leaders by their number; growth of costs; peak memory; shares of the variance.",
            parts,
        ),
    ] = "results",
    seed: OfSeed = None,
    full: OfFull = None,
    machine: Machine = "",
    out: Stored = RESULTS,
) -> None:
    """Print an experiment's table from stored results; EXPERIMENT may be an archive.

    Example: rankbench table park2015-table1 --csv

    Example: rankbench table peers-ratings --what trials
    """
    from rankbench.report.analysis.variance import shares_of
    from rankbench.report.asked import asked_tables

    if what not in PARTS:
        raise unknown("part of a table", what, PARTS)
    if as_csv and as_latex:
        raise UserError("--csv and --latex exclude each other: choose one")
    if what == "by-trials" and as_csv:
        raise UserError("--what by-trials has no CSV: --what trials --csv has the values that it is made from")
    found = stored_study(out, name, seed, full, machine)
    if what in ("trials", "by-trials") and not found.trials:
        raise UserError(f"{name} has no trials: it tunes nothing, each solver runs with the settings given")
    if what == "variance" and not shares_of(found):
        problem = f"{name} has no two repetitions with values for users, which shares of the variance are made of"
        raise UserError(problem, remedy="run it with -r 2 or more")
    if what == "costs":
        return _print_costs(asked_tables(found), found, as_csv, as_latex)
    return _print_part(found, what, as_csv, as_latex)


def _print_part(found: "Study", what: str, as_csv: bool, as_latex: bool) -> None:
    """Print one of the tables that every experiment has."""
    from rankbench.report.analysis.costs import peak_sheet, peaks_to_csv
    from rankbench.report.analysis.trials import by_trials_sheet, standings, trial_sheet, trials, trials_to_csv
    from rankbench.report.analysis.variance import LEGEND, share_sheet, shares_of, shares_to_csv
    from rankbench.report.render.tables import definitions, sheet, to_csv, to_latex
    from rankbench.report.rows import rows

    if as_csv:
        writers = {
            "results": lambda: to_csv(rows(found)),
            "trials": lambda: trials_to_csv(trials(found)),
            "peaks": lambda: peaks_to_csv(found),
            "variance": lambda: shares_to_csv(shares_of(found)),
        }
        sys.stdout.write(writers[what]())
        return
    sheets = {
        "results": lambda: sheet(found),
        "trials": lambda: trial_sheet(trials(found)),
        "by-trials": lambda: by_trials_sheet(standings(found)),
        "peaks": lambda: peak_sheet(found),
        "variance": lambda: share_sheet(shares_of(found)),
    }
    wanted = sheets[what]()
    if as_latex:
        sys.stdout.write(to_latex(wanted))
    else:
        _print_sheet(wanted, found, [LEGEND] if what == "variance" else definitions(found))


def _print_sheet(wanted: "Sheet", found: "Study", legend: "Sequence[str]") -> None:
    """Print a table as Markdown, with what a reader must know below it."""
    from rankbench.core.texts import markdown_prose
    from rankbench.report.render.tables import failures, notes, to_markdown

    lines = (*failures(found), *notes(found), *legend)
    show("\n".join([to_markdown(wanted), *map(markdown_prose, lines)]))


def _print_costs(tables: "list[AskedTable]", found: "Study", as_csv: bool, as_latex: bool) -> None:
    """Print the tables that an experiment asks for."""
    from rankbench.report.render.tables import timing_notes, to_latex, to_markdown

    if not tables:
        raise UserError(
            f"{found.name} compares no costs: its figure shows no growth, and it names no rivals and no redraws"
        )
    if as_csv or as_latex:
        sys.stdout.write("\n".join(one.to_csv(found) if as_csv else to_latex(one.sheet) for one in tables))
        return
    for one in tables:
        show("\n".join([to_markdown(one.sheet), *timing_notes(found), one.legend]))


def compare(
    what: Annotated[
        list[str], typer.Argument(metavar="EXPERIMENT|FOLDER|FILE|COMMIT ...", autocompletion=completion.stored)
    ],
    as_csv: Annotated[bool, typer.Option("--csv", help="One row per comparison, with all digits.")] = False,
    fail_if_worse: Annotated[
        bool, typer.Option("--fail-if-worse", help="Exit code 1 if a later one is worse than the first anywhere.")
    ] = False,
    experiment: Annotated[
        str, option("-e/--experiment", "NAME", "Only this experiment of several.", completion.stored)
    ] = "",
    margin: Annotated[
        float | None, option("--margin", "X", "Solvers that differ by less are equal; else as the experiment says.")
    ] = None,
    seed: OfSeed = None,
    full: OfFull = None,
    out: Stored = RESULTS,
) -> None:
    """Compare solvers user by user: two by two within an experiment, or each with itself in several sets of results.

    Of several folders, archives or commits, each later one is compared with the first. A commit stands for those
    results in the folder --out that it has made; nothing is built or run.

    Example: rankbench compare gunasekar2016-table2

    Example: rankbench compare before after --fail-if-worse

    Example: rankbench compare one.zip other.zip
    """
    from rankbench.cli.printer import show_sheet
    from rankbench.report.analysis.comparison import sheet_of, to_csv, within
    from rankbench.statistics.decisions import WORSE

    if len(what) == 1:
        found = within(stored_study(out, what[0], seed, full), margin)
        title = f"{what[0]}: each two solvers, user by user"
    else:
        sets = [named(text, out, experiment) for text in what]
        studies = [_studies(one, experiment, seed, full) for one in sets]
        pairs = [
            _beside(studies[0], later, (what[0], text), margin)
            for later, text in zip(studies[1:], what[1:], strict=True)
        ]
        found = [line for lines in pairs for line in lines]
        title = f"{', '.join(what[1:])} against {what[0]}, user by user"
    if not found:
        raise UserError("nothing to compare: no two results that ended well have values for the same users")
    if as_csv:
        sys.stdout.write(to_csv(found))
    else:
        show_sheet(title, sheet_of(found))
    if fail_if_worse and any(line.verdict == WORSE for line in found):
        raise typer.Exit(FAILED)


def _studies(results: "ResultsFolder", experiment: str, seed: int | None, full: bool | None) -> dict[str, "Study"]:
    """The study of each experiment, or of this one, by its name."""
    from rankbench.report.study import study

    names = [name for name in results.names() if experiment in ("", name)]
    return {name: found for name in names if (found := study(results, name, seed, full))}


def _beside(
    one: dict[str, "Study"], other: dict[str, "Study"], names: tuple[str, str], margin: float | None
) -> list["Comparison"]:
    """The comparisons of all experiments that two sets of results have in common."""
    from rankbench.report.analysis.comparison import between

    common = sorted(one.keys() & other.keys())
    if not common:
        raise UserError(f"{names[0]} and {names[1]} have no experiment in common: give two sets of results of one")
    return [line for name in common for line in between(one[name], other[name], names, margin)]


def _draw_figure(found: "Study", to: Path, out: Path) -> list[str]:
    """Draw the study's figure, and that of its ranks if it has any; returns the file names without extension."""
    from rankbench.report.analysis.ranks import draw_ranks, ranks
    from rankbench.report.render.figures.plots import draw
    from rankbench.report.render.figures.series import drawing

    drawn = drawing(found)
    if drawn is None:
        raise UserError(f"no cell of {found.name} has ended well yet: rankbench run {found.name} --out {out}")
    draw(drawn, to, found.name)
    if ranked := ranks(found):
        draw_ranks(ranked, to, f"{found.name}-ranks")
    return [found.name, *([f"{found.name}-ranks"] if ranked else [])]


def _draw_bases(found: "Study", columns: str, to: Path) -> list[str]:
    """Draw the basic functions of every solver that has them; returns the file names without extension."""
    from rankbench.report.render.ranking_functions import bases, draw_bases

    each = bases(found)
    if columns and not each:
        problem = f"--columns={columns}: {found.name} has stored no basic functions of named features"
        raise UserError(problem, remedy="run frsvm on data with named features")
    try:
        numbers = [int(part) for part in columns.split(",") if part]
    except ValueError:
        raise UserError(f"--columns={columns}: expected numbers like 1,2") from None
    files = [f"{found.name}-basis-{number}" for number in range(1, len(each) + 1)]
    for basis, file in zip(each, files, strict=True):
        draw_bases([basis], numbers, to, file)
    return files


def doctor() -> None:
    """Print what rankbench finds: the machine, the libraries and the data.

    Example: rankbench doctor
    """
    from rankbench.cli.describe import diagnosis

    show(diagnosis())


def status(
    name: Annotated[str | None, typer.Argument(metavar="[EXPERIMENT]", autocompletion=completion.stored)] = None,
    out: Stored = RESULTS,
) -> None:
    """Print which results are stored, by experiment, profile, seed and machine, with sizes.

    Example: rankbench status park2015-table1
    """
    from rankbench.cli.describe import runs_of

    if name and is_archive(name):
        out, name = Path(name), None
    results = stored_in(out)
    names = results.names()
    if not names:
        raise UserError(f"no results under {out}: run some first (rankbench run all --out {out})")
    if name and name not in names:
        raise not_stored(name, names, "--out", f"rankbench status --out {out}")
    for one in [name] if name else names:
        show("\n".join(runs_of(results.store(one), one)))


def stored_study(out: Path, name: str, seed: int | None, full: bool | None, machine: str = "") -> "Study":
    """What is stored of an experiment, or the error that says how to get it; the name may be that of an archive."""
    from rankbench.report.study import study

    if is_archive(name):
        out, results = Path(name), made_by(Path(name), machine)
        name, source = results.names()[0], None
    else:
        path = Path(name) if name.endswith(".toml") else None
        name, source = (path.stem, str(path.resolve())) if path else (name, None)
        results = made_by(out, machine, name)
    found = study(results, name, seed, full, source)
    if found is None:
        raise _not_stored(results, out, name)
    return found


def _not_stored(results: "ResultsFolder", out: Path, name: str) -> UserError:
    """The error for an experiment of which nothing, or nothing that was asked for, is stored."""
    stored = results.names()
    if name in stored and results.store(name).plans():
        remedy = f"rankbench status {name} --out {out} lists its runs"
        return UserError(f"{name} has no such run", remedy=remedy)
    if name in stored:
        problem = f"the results of {name} were written by an older rankbench, which recorded runs in another way"
        return UserError(problem, remedy=f"rankbench run {name} --out {out} finds them again and reuses them")
    if not stored and not Path(name).is_dir():
        return UserError(f"no results under {out}: rankbench run {name} --out {out}")
    return not_stored(name, stored, "--out", f"rankbench run {name} --out {out}")
