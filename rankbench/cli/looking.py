"""The commands that train nothing: list, info, status, table, plot, report, export and doctor."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankbench.cli import completion
from rankbench.cli.opening import is_archive, made_by, named, stored_in
from rankbench.cli.options import RESULTS, Machine, OfFull, OfSeed, Seed, Stored, option
from rankbench.core.errors import UserError, unknown

if TYPE_CHECKING:
    from rankbench.records.store import ResultsFolder
    from rankbench.records.studies import Study
    from rankbench.report.analysis.comparison import Comparison
    from rankbench.report.analysis.costs import CostTable

# Each command imports what it needs when it runs, so that --help and completion stay fast.
# ruff: noqa: PLC0415


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command("list")(list_names)
    for verb in (info, status, report, table, compare, plot, export, doctor):
        app.command()(verb)


def list_names(
    kind: Annotated[
        str, typer.Argument(metavar=f"[{'|'.join(completion.KINDS)}]", autocompletion=completion.kinds)
    ] = "experiments",
) -> None:
    """List the experiments, solvers, data sets, splits or metrics, one per line with a short description.

    Example: rankbench list solvers
    """
    from rankbench.cli.describe import everything
    from rankbench.cli.lines import show

    kinds = everything()
    if kind not in kinds:
        raise unknown("kind", kind, kinds)
    width = max(map(len, kinds[kind]))
    for name, about in kinds[kind].items():
        show(f"{name:<{width}}  {about}")


def info(name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=completion.everything)]) -> None:
    """Describe an experiment, solver, data set, split or metric.

    Example: rankbench info sgd
    """
    from rankbench.cli.describe import describe
    from rankbench.cli.lines import show

    show(describe(name))


def export(
    data: Annotated[str, typer.Argument(metavar="DATA", autocompletion=completion.data_sets)],
    split: Annotated[str, typer.Argument(metavar="SPLIT", autocompletion=completion.splits)],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="A new folder.")],
    seed: Seed = 0,
    repetition: Annotated[int, option("--repetition", "N", "Counted from 0.")] = 0,
) -> None:
    """Write a split as CSV files, with the published ids and the split's hash.

    Example: rankbench export ml-100k given-folds --repetition 2 --to fold3
    """
    from rankbench.cli.lines import show
    from rankbench.data import DATASETS
    from rankbench.data.export import export as write_out
    from rankbench.data.splits import SPLITS
    from rankbench.planning.materials import Materials
    from rankbench.records.cells import Place

    if repetition < 0:
        raise UserError(f"--repetition {repetition} is out of range: must be at least 0")
    parts = Materials(seed).split(Place(DATASETS.resolve(data), SPLITS.resolve(split), repetition))
    record = write_out(parts, to, data=data, split=split, seed=seed, repetition=repetition)
    sizes = ", ".join(f"{part} {about['rows']} rows" for part, about in record["parts"].items())
    show(f"{to}: {sizes}; hash {parts.hash}")


def report(
    out: Stored = RESULTS,
    to: Annotated[
        Path | None, option("--to", "DIR", "Where the report goes; by default OUT/report, of an archive FILE-report.")
    ] = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write the HTML page.")] = True,
) -> None:
    """Write tables, figures and the page from stored results.

    Example: rankbench report --out results
    """
    from rankbench.cli.lines import complain, show
    from rankbench.report.writing import write_report

    if is_archive(out):
        to = to or out.with_name(f"{out.stem}-report")
    show(f"report: {write_report(stored_in(out), complain, to, page).resolve()}")


def table(
    name: Annotated[str, typer.Argument(metavar="EXPERIMENT|FILE", autocompletion=completion.stored)],
    as_csv: Annotated[bool, typer.Option("--csv", help="One row per data set, solver and metric.")] = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="A booktabs table.")] = False,
    of_trials: Annotated[bool, typer.Option("--trials", help="The trials of the tuning, one per line.")] = False,
    by_trials: Annotated[
        bool, typer.Option("--by-trials", help="Which solver leads after 1, 2, ... trials of each.")
    ] = False,
    of_peaks: Annotated[
        bool, typer.Option("--peaks", help="The peak memory of each stage, one result per line.")
    ] = False,
    of_costs: Annotated[
        bool, typer.Option("--costs", help="How the cost of each solver grows, or compares with its rivals'.")
    ] = False,
    seed: OfSeed = None,
    full: OfFull = None,
    machine: Machine = "",
    out: Stored = RESULTS,
) -> None:
    """Print an experiment's table from stored results; EXPERIMENT may be an archive.

    Example: rankbench table park2015-table1 --csv
    """
    from rankbench.report.analysis.by_trials import by_trials_sheet, standings
    from rankbench.report.analysis.costs import cost_tables
    from rankbench.report.analysis.peaks import peak_sheet, peaks_to_csv
    from rankbench.report.analysis.trials import trial_sheet, trials, trials_to_csv
    from rankbench.report.render.tables import definitions, failures, notes, sheet, to_csv, to_latex, to_markdown
    from rankbench.report.rows import rows

    _refuse_both({"--csv": as_csv, "--latex": as_latex})
    _refuse_both({"--peaks": of_peaks, "--trials": of_trials, "--by-trials": by_trials, "--costs": of_costs})
    if by_trials and as_csv:
        raise UserError("--by-trials has no CSV: --trials --csv has the values that it is made from")
    found = stored_study(out, name, seed, full, machine)
    if (of_trials or by_trials) and not found.trials:
        raise UserError(f"{name} has no trials: it tunes nothing, each solver runs with the settings given")
    if of_costs:
        return _print_costs(cost_tables(found), found, as_csv, as_latex)
    if as_csv:
        plain = trials_to_csv(trials(found)) if of_trials else to_csv(rows(found))
        sys.stdout.write(peaks_to_csv(found) if of_peaks else plain)
        return
    if by_trials:
        wanted = by_trials_sheet(standings(found))
    else:
        wanted = peak_sheet(found) if of_peaks else trial_sheet(trials(found)) if of_trials else sheet(found)
    if as_latex:
        sys.stdout.write(to_latex(wanted))
    else:
        sys.stdout.write("\n".join([to_markdown(wanted), *failures(found), *notes(found), *definitions(found), ""]))


def _refuse_both(options: dict[str, bool]) -> None:
    """Refuse more than one of some options."""
    if sum(options.values()) > 1:
        *others, last = options
        raise UserError(f"{', '.join(others)} and {last} exclude each other: choose one")


def _print_costs(tables: "list[CostTable]", found: "Study", as_csv: bool, as_latex: bool) -> None:
    """Print the tables of costs of a study."""
    from rankbench.report.render.tables import timing_notes, to_latex, to_markdown

    if not tables:
        raise UserError(f"{found.name} compares no costs: its figure shows no growth, and it names no rivals")
    if as_csv or as_latex:
        sys.stdout.write("\n".join(one.to_csv(found) if as_csv else to_latex(one.sheet) for one in tables))
        return
    for one in tables:
        sys.stdout.write("\n".join([to_markdown(one.sheet), *timing_notes(found), one.legend, ""]))


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
    from rankbench.report.analysis.comparison import WORSE, sheet_of, to_csv, within

    if len(what) == 1:
        found = within(stored_study(out, what[0], seed, full))
        title = f"{what[0]}: each two solvers, user by user"
    else:
        sets = [named(text, out, experiment) for text in what]
        studies = [_studies(one, experiment, seed, full) for one in sets]
        pairs = [_beside(studies[0], later, (what[0], text)) for later, text in zip(studies[1:], what[1:], strict=True)]
        found = [line for lines in pairs for line in lines]
        title = f"{', '.join(what[1:])} against {what[0]}, user by user"
    if not found:
        raise UserError("nothing to compare: no two results that ended well have values for the same users")
    if as_csv:
        sys.stdout.write(to_csv(found))
    else:
        show_sheet(title, sheet_of(found))
    if fail_if_worse and any(line.verdict == WORSE for line in found):
        raise typer.Exit(1)


def _studies(results: "ResultsFolder", experiment: str, seed: int | None, full: bool | None) -> dict[str, "Study"]:
    """The study of each experiment, or of this one, by its name."""
    from rankbench.report.study import study

    names = [name for name in results.names() if experiment in ("", name)]
    return {name: found for name in names if (found := study(results, name, seed, full))}


def _beside(one: dict[str, "Study"], other: dict[str, "Study"], names: tuple[str, str]) -> list["Comparison"]:
    """The comparisons of all experiments that two sets of results have in common."""
    from rankbench.report.analysis.comparison import between

    common = sorted(one.keys() & other.keys())
    if not common:
        raise UserError(f"{names[0]} and {names[1]} have no experiment in common: give two sets of results of one")
    return [line for name in common for line in between(one[name], other[name], names)]


def plot(
    names: Annotated[list[str], typer.Argument(metavar="[basis] EXPERIMENT", autocompletion=completion.stored)],
    columns: Annotated[str, typer.Option("--columns", metavar="1,2,...", help="Basic functions to draw.")] = "",
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Where the figure goes.")] = Path(),
    seed: OfSeed = None,
    full: OfFull = None,
    out: Stored = RESULTS,
) -> None:
    """Draw an experiment's figure as PDF and PNG, over five data sets also ranks; with `basis`, its basic functions.

    Example: rankbench plot parkzhang2014-fig1 --to figures

    Example: rankbench plot basis cheng2018-table4 --columns 1,2
    """
    from rankbench.cli.lines import show

    kind, name = (names[0], names[1]) if len(names) == 2 and names[0] == "basis" else ("figure", names[0])
    if len(names) > 1 and kind == "figure":
        raise UserError(f"cannot plot {' '.join(names)!r}: expected EXPERIMENT or basis EXPERIMENT")
    if columns and kind == "figure":
        raise UserError(f"--columns={columns} is only for basic functions: rankbench plot basis {name}")
    found = stored_study(out, name, seed, full)
    try:
        to.mkdir(parents=True, exist_ok=True)
        files = _draw_bases(found, columns, to) if kind == "basis" else _draw_figure(found, to, out)
    except OSError as error:
        raise UserError(f"cannot write to {to}: {error.strerror}") from None
    show("\n".join(f"{to / file}.{ending}" for file in files for ending in ("pdf", "png")))


def _draw_figure(found: "Study", to: Path, out: Path) -> list[str]:
    """Draw the study's figure, and that of its ranks if it has any; returns the file names without extension."""
    from rankbench.report.analysis.ranks import draw_ranks, ranks
    from rankbench.report.render.figures import draw
    from rankbench.report.render.series import drawing

    drawn = drawing(found)
    if drawn is None:
        raise UserError(f"no cell of {found.name} has ended well yet: rankbench run {found.name} --out {out}")
    draw(drawn, to, found.name)
    if ranked := ranks(found):
        draw_ranks(ranked, to, f"{found.name}-ranks")
    return [found.name, *([f"{found.name}-ranks"] if ranked else [])]


def _draw_bases(found: "Study", columns: str, to: Path) -> list[str]:
    """Draw every solver's basic functions; returns the file names without extension."""
    from rankbench.report.render.ranking_functions import bases, draw_basis

    if not (each := bases(found)):
        raise UserError(
            f"{found.name} has stored no basic functions of named features: run frsvm on data with named features"
        )
    try:
        numbers = [int(part) for part in columns.split(",") if part]
    except ValueError:
        raise UserError(f"--columns={columns}: expected numbers like 1,2") from None
    files = [f"{found.name}-basis-{number}" for number in range(1, len(each) + 1)]
    for basis, file in zip(each, files, strict=True):
        draw_basis(basis, numbers, to, file)
    return files


def doctor() -> None:
    """Print what rankbench finds: the machine, the libraries and the data.

    Example: rankbench doctor
    """
    from rankbench.cli.describe import diagnosis
    from rankbench.cli.lines import show

    show(diagnosis())


def status(
    name: Annotated[str | None, typer.Argument(metavar="[EXPERIMENT]", autocompletion=completion.stored)] = None,
    out: Stored = RESULTS,
) -> None:
    """Print which results are stored, by experiment, profile, seed and machine, with sizes.

    Example: rankbench status park2015-table1
    """
    from rankbench.cli.lines import show
    from rankbench.cli.status import described

    if name and is_archive(name):
        out, name = Path(name), None
    results = stored_in(out)
    names = results.names()
    if not names:
        raise UserError(f"no results under {out}: run some first (rankbench run all --out {out})")
    if name and name not in names:
        raise unknown("experiment in this folder of results:", name, names, f"rankbench status --out {out}")
    for one in [name] if name else names:
        show("\n".join(described(results.store(one), one)))


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
    if not stored:
        return UserError(f"no results under {out}: rankbench run {name} --out {out}")
    return unknown("experiment in this folder of results:", name, stored, f"rankbench run {name} --out {out}")
