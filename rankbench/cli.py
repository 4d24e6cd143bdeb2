"""The command line: run, tune, list, info, report, table, plot, export, doctor and data."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from rankbench.errors import UserError, unknown

if TYPE_CHECKING:
    from rankbench.report.tables import Study

# Every command imports what it needs when it runs: --help and completion must answer at once.
# ruff: noqa: PLC0415

_HELP = """Fast solvers for learning to rank from preferences, and a harness that gets the papers' numbers again.

Example: rankbench run all"""

app = typer.Typer(help=_HELP, rich_markup_mode=None, pretty_exceptions_enable=False)
data_app = typer.Typer(
    help="Where data lies, and how to get it.\n\nExample: rankbench data fetch insteval",
    rich_markup_mode=None,
)
app.add_typer(data_app, name="data")

RESULTS = Path("results")
_USAGE_ERROR: Any = typer.BadParameter.__mro__[2]  # ClickException, wherever this typer keeps it


def _option(short: str, metavar: str | None, text: str) -> Any:
    """An option whose long name is the parameter's, `-q/--quiet`."""
    return typer.Option(*short.split("/"), metavar=metavar, help=text)


Names = Annotated[
    list[str] | None, typer.Argument(metavar="[all|EXPERIMENT...]", help="Names, or TOML files of your own.")
]
Out = Annotated[Path, _option("--out", "DIR", "The folder of results.")]
Solvers = Annotated[
    list[str] | None,
    _option("-s/--solver", "SOLVER[param=value,...]", "Only this solver; also path/to/file.py:Class. Repeatable."),
]
Data = Annotated[list[str] | None, _option("-d/--data", "DATA", "Only this data set. Repeatable.")]
Repetitions = Annotated[int | None, _option("-r/--repetitions", "REPS", "Instead of the experiment's own number.")]
Seed = Annotated[int, _option("--seed", "N", "Decides data, splits and solvers.")]
Jobs = Annotated[int, _option("-j/--jobs", "JOBS", "Cells at a time; above 1 their times are marked contended.")]
Threads = Annotated[int, _option("--threads", "N", "Threads of each solver.")]
Timeout = Annotated[str, _option("--timeout", "10m", "What a cell may take: 30s, 10m, 2h, or none.")]
Memory = Annotated[str, _option("--memory", "8G", "What a cell may hold: 500M, 8G, or none.")]
Full = Annotated[bool, _option("--full", None, "The papers' own sizes instead of the quick profile.")]
DryRun = Annotated[bool, _option("--dry-run", None, "Print the cells and an estimate, and run nothing.")]
Force = Annotated[bool, _option("--force", None, "Run again what is there.")]
RetryFailed = Annotated[bool, _option("--retry-failed", None, "Run again what did not end well.")]
Trials = Annotated[int | None, _option("--trials", "N", "Trials of each solver, where an experiment tunes at random.")]
Report = Annotated[bool, typer.Option("--report/--no-report", help="Write the report at the end.")]
Quiet = Annotated[bool, _option("-q/--quiet", None, "Print results and nothing else.")]


@app.command()
def run(
    experiments: Names = None,
    solver: Solvers = None,
    data: Data = None,
    repetitions: Repetitions = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    threads: Threads = 1,
    timeout: Timeout = "10m",
    memory: Memory = "none",
    trials: Trials = None,
    full: Full = False,
    dry_run: DryRun = False,
    force: Force = False,
    retry_failed: RetryFailed = False,
    report: Report = True,
    out: Out = RESULTS,
    quiet: Quiet = False,
) -> None:
    """Run experiments, resuming what is there, and write the report.

    Example: rankbench run park2015-table1 -s sgd[rank=20] -s global -r 5
    """
    from rankbench.harness.isolation import Caps
    from rankbench.harness.plan import Selection
    from rankbench.harness.run import Conditions
    from rankbench.session import preview_all, run_all

    with _as_options():
        selection = Selection(tuple(solver or ()), tuple(data or ()), repetitions, seed, threads, full, trials)
    conditions = Conditions(out, _jobs(jobs), Caps(_seconds(timeout), _bytes(memory)), force, retry_failed)
    names = experiments or ["all"]
    if dry_run:
        raise typer.Exit(preview_all(names, selection, conditions))
    raise typer.Exit(run_all(names, selection, conditions, report, quiet))


@app.command()
def tune(
    solver: Annotated[str, typer.Argument(metavar="SOLVER[param=value,...]", help="Also path/to/file.py:Class.")],
    data: Annotated[str, _option("-d/--data", "DATA", "The data set to tune on.")],
    space: Annotated[
        list[str] | None,
        _option("--space", "KEY=VALUES", "lam=1..1000:log, rank=5..20 or loss=hinge|logistic. Repeatable."),
    ] = None,
    split: Annotated[str, _option("--split", "SPLIT", "What is held out from all trials.")] = "entries[test=0.2]",
    metric: Annotated[str, _option("--metric", "METRIC", "What the best trial is best at.")] = "pairwise-error",
    validation: Annotated[str, _option("--validation", "SPLIT", "How the training part is cut.")] = "entries[test=0.2]",
    trials: Annotated[int, _option("--trials", "N", "How many settings to try.")] = 8,
    steps: Annotated[int, _option("--steps", "N", "Steps of the solver.")] = 20,
    seed: Seed = 0,
    jobs: Jobs = 1,
    threads: Threads = 1,
    timeout: Timeout = "10m",
    force: Force = False,
    retry_failed: RetryFailed = False,
    out: Out = RESULTS,
    quiet: Quiet = False,
) -> None:
    """Tune one solver on one data set, and say how to use what was best.

    Example: rankbench tune sgd[rank=5] -d low-rank --space lam=1..1000:log --trials 8
    """
    from rankbench.experiments.spaces import Tune, read_space
    from rankbench.harness.isolation import Caps
    from rankbench.harness.plan import Selection
    from rankbench.harness.run import Conditions
    from rankbench.harness.tuning import alone
    from rankbench.session import tune_one

    with _as_options():
        selection = Selection(seed=seed, threads=threads)
        wanted = Tune({solver: read_space(space or ())}, "random", trials, metric, validation)
        experiment = alone(solver, data, split, wanted, steps)
    conditions = Conditions(out, _jobs(jobs), Caps(_seconds(timeout)), force, retry_failed)
    raise typer.Exit(tune_one(experiment, selection, conditions, quiet))


@app.command("list")
def list_names(
    kind: Annotated[str, typer.Argument(metavar="[experiments|solvers|datasets|splits|metrics]")] = "experiments",
) -> None:
    """List what there is to run, one name a line with a word about it.

    Example: rankbench list solvers
    """
    from rankbench.describe import everything
    from rankbench.terminal import show

    catalogue = everything()
    if kind not in catalogue:
        raise unknown("kind", kind, catalogue)
    width = max(map(len, catalogue[kind]))
    for name, about in catalogue[kind].items():
        show(f"{name:<{width}}  {about}")


@app.command()
def info(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Tell all about an experiment, solver, data set, split or metric.

    Example: rankbench info sgd
    """
    from rankbench.describe import describe
    from rankbench.terminal import show

    show(describe(name))


@app.command()
def export(
    data: Annotated[str, typer.Argument(metavar="DATA")],
    split: Annotated[str, typer.Argument(metavar="SPLIT")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="A new folder.")],
    seed: Seed = 0,
    repetition: Annotated[int, _option("--repetition", "N", "Counted from 0.")] = 0,
) -> None:
    """Write a split out as CSV files, with the published ids and its hash.

    Example: rankbench export ml-100k given-folds --repetition 2 --to fold3
    """
    from rankbench.data.export import export as write_out
    from rankbench.harness.plan import Materials
    from rankbench.terminal import show

    if repetition < 0:
        raise UserError(f"--repetition {repetition} is out of range: must be at least 0")
    parts = Materials(seed).split(data, split, repetition)
    record = write_out(parts, to, data=data, split=split, seed=seed, repetition=repetition)
    sizes = ", ".join(f"{part} {about['rows']} rows" for part, about in record["parts"].items())
    show(f"{to}: {sizes}; hash {parts.hash}")


@app.command()
def report(
    out: Out = RESULTS,
    to: Annotated[Path | None, _option("--to", "DIR", "Where the report goes; OUT/report unless said.")] = None,
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write the HTML page.")] = True,
) -> None:
    """Write tables, figures and the page from stored results.

    Example: rankbench report --out results
    """
    from rankbench.report.writing import write_report
    from rankbench.terminal import show

    show(f"report: {write_report(out, to, page).resolve()}")


@app.command()
def table(
    name: Annotated[str, typer.Argument(metavar="EXPERIMENT")],
    as_csv: Annotated[bool, typer.Option("--csv", help="One row per data set, solver and metric.")] = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="A booktabs table.")] = False,
    of_trials: Annotated[bool, typer.Option("--trials", help="What tuning tried, a line for every trial.")] = False,
    out: Out = RESULTS,
) -> None:
    """Print an experiment's table from stored results.

    Example: rankbench table park2015-table1 --csv
    """
    from rankbench.report.tables import definitions, notes, rows, sheet, to_csv, to_latex, to_markdown
    from rankbench.report.trials import trial_sheet, trials, trials_to_csv

    if as_csv and as_latex:
        raise UserError("--csv and --latex exclude each other: choose one")
    found = _study(out, name)
    if of_trials and not found.trials:
        raise UserError(f"{name} has no trials: it tunes nothing, each solver runs as it is written")
    wanted = trial_sheet(trials(found)) if of_trials else sheet(found)
    if as_csv:
        sys.stdout.write(trials_to_csv(trials(found)) if of_trials else to_csv(rows(found)))
    elif as_latex:
        sys.stdout.write(to_latex(wanted))
    else:
        sys.stdout.write("\n".join([to_markdown(wanted), *notes(found), *definitions(found), ""]))


@app.command()
def plot(
    names: Annotated[list[str], typer.Argument(metavar="[basis] EXPERIMENT")],
    columns: Annotated[str, typer.Option("--columns", metavar="1,2,...", help="Of a basis: which functions.")] = "",
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Where the figure goes.")] = Path(),
    out: Out = RESULTS,
) -> None:
    """Draw an experiment's figure as PDF and PNG; with `basis`, its basic ranking functions.

    Example: rankbench plot parkzhang2014-fig1 --to figures

    Example: rankbench plot basis cheng2018-table4 --columns 1,2
    """
    from rankbench.terminal import show

    kind, name = (names[0], names[1]) if len(names) == 2 and names[0] == "basis" else ("figure", names[0])
    if len(names) > 1 and kind == "figure":
        raise UserError(f"cannot plot {' '.join(names)!r}: expected EXPERIMENT or basis EXPERIMENT")
    if columns and kind == "figure":
        raise UserError(f"--columns={columns} chooses basic functions: rankbench plot basis {name}")
    found = _study(out, name)
    try:
        to.mkdir(parents=True, exist_ok=True)
        files = _draw_bases(found, columns, to) if kind == "basis" else _draw_figure(found, to, out)
    except OSError as error:
        raise UserError(f"cannot write to {to}: {error.strerror}") from None
    show("\n".join(f"{to / file}.{ending}" for file in files for ending in ("pdf", "png")))


def _draw_figure(found: "Study", to: Path, out: Path) -> list[str]:
    """Draw the study's figure; its file without ending."""
    from rankbench.report.figures import draw
    from rankbench.report.series import drawing

    drawn = drawing(found)
    if drawn is None:
        raise UserError(f"nothing of {found.name} has ended well yet: rankbench run {found.name} --out {out}")
    draw(drawn, to, found.name)
    return [found.name]


def _draw_bases(found: "Study", columns: str, to: Path) -> list[str]:
    """Draw every solver's basic functions; their files without ending."""
    from rankbench.report.basis import bases, draw_basis

    if not (each := bases(found)):
        raise UserError(
            f"{found.name} has stored no basic functions of named features: run frsvm on data that has them"
        )
    try:
        numbers = [int(part) for part in columns.split(",") if part]
    except ValueError:
        raise UserError(f"--columns={columns}: expected numbers like 1,2") from None
    files = [f"{found.name}-basis-{number}" for number in range(1, len(each) + 1)]
    for basis, file in zip(each, files, strict=True):
        draw_basis(basis, numbers, to, file)
    return files


@app.command()
def doctor() -> None:
    """Print the machine, the libraries and the data as rankbench sees them.

    Example: rankbench doctor
    """
    from rankbench.describe import diagnosis
    from rankbench.terminal import show

    show(diagnosis())


@data_app.command()
def where(name: Annotated[str | None, typer.Argument(metavar="[DATA]")] = None) -> None:
    """Print the folders that data is looked for in, of all data sets or of one.

    Example: rankbench data where ml-1m
    """
    from rankbench.describe import data_folders, places
    from rankbench.terminal import show

    show(places(name) if name else data_folders())


@data_app.command()
def fetch(name: Annotated[str, typer.Argument(metavar="DATA")]) -> None:
    """Get a data set and check it, or say how a person can.

    Example: rankbench data fetch ml-100k
    """
    from rankbench.data import DATASETS
    from rankbench.describe import counted
    from rankbench.terminal import downloads, show

    with downloads() as tell:
        DATASETS.make(name).origin.fetch(tell)
    show(counted(name))


@data_app.command("import")
def import_copy(
    name: Annotated[str, typer.Argument(metavar="DATA")],
    path: Annotated[Path, typer.Argument(metavar="PATH", help="An archive, a file or a folder of files.")],
) -> None:
    """Take a copy of a data set that you have already.

    Example: rankbench data import netflix nf_prize_dataset.tar.gz
    """
    from rankbench.data import DATASETS, load
    from rankbench.data.importing import take
    from rankbench.describe import counted
    from rankbench.specs import parse
    from rankbench.terminal import show

    folder = take(parse(name).name, DATASETS.make(name).origin, path, lambda: load(name))
    show(f"{counted(name)}\nkept in {folder}")


@data_app.command()
def verify(name: Annotated[str | None, typer.Argument(metavar="[DATA]")] = None) -> None:
    """Hash the files of data sets again and compare.

    Example: rankbench data verify
    """
    from rankbench.data import DATASETS
    from rankbench.describe import verified
    from rankbench.terminal import show

    if name:
        DATASETS.make(name)
    lines, good = verified([name] if name else DATASETS.whole_names())
    show("\n".join(lines))
    if not good:
        raise typer.Exit(1)


def main() -> None:
    """The console script: mistakes are one line on stderr and exit code 1, never a traceback."""
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except UserError as error:
        _leave(str(error), 1)
    except _USAGE_ERROR as error:
        _leave(error.format_message(), 1)
    except (KeyboardInterrupt, typer.Abort):
        _leave("stopped", 130)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has had enough
        sys.exit(0)
    sys.exit(code if isinstance(code, int) else 0)


def _leave(message: str, code: int) -> NoReturn:
    from rankbench.terminal import complain

    complain(message)
    sys.exit(code)


def _study(out: Path, name: str) -> "Study":
    from rankbench.report.writing import studies, study

    found = study(out, name)
    if found is None:
        stored = [one.name for one in studies(out)]
        if not stored:
            raise UserError(f"no results under {out}: rankbench run {name} --out {out}")
        raise unknown("experiment in this folder of results:", name, stored, f"rankbench run {name} --out {out}")
    return found


@contextmanager
def _as_options() -> Iterator[None]:
    """Errors of the records that options are put into speak of the options."""
    try:
        yield
    except UserError as error:
        raise UserError(re.sub(r"^(Selection|Tune|Budget): ", "--", str(error))) from None


def _jobs(jobs: int) -> int:
    if jobs < 1:
        raise UserError(f"-j {jobs} is out of range: must be at least 1")
    return jobs


def _seconds(text: str) -> float | None:
    return _amount(text, "--timeout", {"s": 1.0, "m": 60.0, "h": 3600.0}, "30s, 10m, 2h")


def _bytes(text: str) -> int | None:
    amount = _amount(text, "--memory", {"M": 2.0**20, "G": 2.0**30}, "500M, 8G")
    return None if amount is None else int(amount)


def _amount(text: str, option: str, units: dict[str, float], examples: str) -> float | None:
    """A number with its unit; none means no limit."""
    if text == "none":
        return None
    match = re.fullmatch(rf"(\d+(?:\.\d+)?)([{''.join(units)}])", text)
    if not match or float(match[1]) == 0:
        raise UserError(f"{option} {text!r} cannot be read: write it like {examples}, or none")
    return float(match[1]) * units[match[2]]


if __name__ == "__main__":
    main()
