"""One call of `rankbench run` or `rankbench tune`: plan, run, print results, and return the exit code."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from rankbench import experiments
from rankbench.cli.lines import complain, show
from rankbench.cli.printer import progress_of, show_folded, show_sheet
from rankbench.core.errors import UserError
from rankbench.core.temporary import own_folder
from rankbench.data.splits import SPLITS
from rankbench.execution.run import Conditions, Run
from rankbench.execution.verify import sampled, verify
from rankbench.execution.workplace import Workplace
from rankbench.experiments import Experiment
from rankbench.own_data.auditing import hints
from rankbench.own_data.choosing import STEPS, Choice
from rankbench.own_data.experiment_file import experiment_of
from rankbench.own_data.users_kept import Kept
from rankbench.planning.plan import check_named, plan
from rankbench.records.cells import Cell, Place, Selection, skip_lines
from rankbench.records.store import ResultsFolder, Warn
from rankbench.records.studies import Study
from rankbench.report.analysis.scoreboard import in_words, score_sheet, scoreboard
from rankbench.report.analysis.trials import best_first, trial_sheet, trials
from rankbench.report.render.answer import answer, answer_sheet, failures
from rankbench.report.render.tables import sheet, timing_notes, verdict_notes
from rankbench.report.study import stored_beyond
from rankbench.report.writing import write_report

OK, CELL_FAILED, INTERRUPTED = 0, 2, 130
_WITH_VALUE = ("--seed", "--threads", "--timeout", "--memory", "--out")  # options of `on` that `init` does not take
_FLAGS = ("-q", "--quiet", "--report", "--no-report")


def results_in(out: Path, untouched: bool = False, warn: Warn = complain) -> ResultsFolder:
    """A folder of results; files in it that cannot be read are reported, on standard error unless `warn` is given.

    They are also renamed, unless the folder is to be left `untouched`.
    """
    return ResultsFolder(out, warn, untouched)


@contextmanager
def workplace_at(scheduler: str | None, per_node: int) -> Iterator[Workplace | None]:
    """A context with the Dask cluster of this scheduler; without a scheduler it is None, which is this machine."""
    if scheduler is None:
        yield None
        return
    try:
        from rankbench.execution.cluster.driver import Cluster  # noqa: PLC0415  needs an extra, and is slow to import
    except ImportError:
        raise UserError(
            "--scheduler needs Dask, which is not installed", remedy="pip install rankbench[dask]"
        ) from None
    cluster = Cluster(scheduler, per_node, complain)
    try:
        yield cluster
    finally:
        cluster.close()


@dataclass(frozen=True)
class Session:
    """What the user asked for, and the folder for the results."""

    results: ResultsFolder
    selection: Selection
    conditions: Conditions
    quiet: bool
    workplace: Workplace | None = None  # None: this machine

    def run_all(self, names: list[str], report: bool) -> int:
        """Run every experiment, print its table and write the report; returns the exit code."""
        chosen = chosen_experiments(names, self.selection)
        self._note_threads(chosen)
        try:
            good = self._run_each(chosen) if len(chosen) > 1 else self._run_one(chosen[0])
            if report:
                path = write_report(self.results, complain)
                self._say(f"report: {path.resolve()}")
        except KeyboardInterrupt:
            return self._say_how_to_resume(chosen)
        return OK if good else CELL_FAILED

    def join_all(self, names: list[str]) -> int:
        """Run cells along with the other drivers of the folder, and print a line for each experiment."""
        chosen = chosen_experiments(names, self.selection)
        self._note_threads(chosen)
        for experiment in chosen:
            self._refuse_namesake(experiment)
        try:
            good = self._run_in_brief(chosen)[1]
        except KeyboardInterrupt:
            return self._say_how_to_resume(chosen)
        return OK if good else CELL_FAILED

    def tune_one(self, experiment: Experiment) -> int:
        """Tune one solver, print its trials from best to worst and how to use the best; returns the exit code."""
        self._note_threads([experiment])
        run = self._prepared(experiment)
        if run.plan.skips:
            raise UserError(run.plan.skips[0].text)
        try:
            self._execute(run)
        except KeyboardInterrupt:
            return self._say_how_to_resume([experiment])
        found = run.study()
        show_sheet(f"{experiment.title}: trials, best first", trial_sheet(best_first(trials(found))))
        good = self._show(run, found)
        for cell in run.plan.cells:
            show(_using(cell))
        return OK if good else CELL_FAILED

    def answer(self, choice: Choice, report: bool) -> int:
        """Compare solvers on a user's own data and print which is best; returns the exit code."""
        experiment = experiment_of(choice)
        self._note_threads([experiment])
        run = self._prepared(experiment)
        self._say_what_is_compared(choice, run)
        try:
            replace(self, quiet=self.quiet or not sys.stdout.isatty())._execute(run)
            found = run.study()
            show_sheet(f"{choice.data.written}, {choice.protocol.split}", answer_sheet(found))
            show_folded(f"{answer(found)}.")
            for line in failures(found):
                complain(line)
            if report:
                path = write_report(self.results, complain)
                self._say(f"report: {path.resolve()}")
        except KeyboardInterrupt:
            return self._say_how_to_resume([experiment])
        self._say(f"to change it: {_as_init()}")
        return OK if found.entries and all(entry.good for entry in found.entries) else CELL_FAILED

    def _say_what_is_compared(self, choice: Choice, run: Run) -> None:
        """Print the data, the split with the users that it leaves out, and the solvers, before they are run."""
        say = (lambda text: None) if self.quiet else show_folded
        data = choice.data
        say(f"data: {choice.facts.text}")
        place = Place(data, SPLITS.resolve(choice.protocol.split), 0)
        kept = Kept.by(run.materials.split(place), run.materials.view(data))
        say(f"split: {choice.protocol.split}: {choice.protocol.why}")
        say(f"users: {kept.text}")
        each = f"{choice.seconds:g} s" if choice.seconds is not None else f"{STEPS} steps"
        say(f"solvers: {', '.join(choice.solvers)}; {choice.trainings} trainings of {each} each")
        for finding in hints(data, self.selection.seed):
            say(f"note: {finding.line}")

    def preview_all(self, names: list[str]) -> int:
        """Print every trial and cell, whether its result is stored, and a time estimate; write nothing."""
        for experiment in chosen_experiments(names, self.selection):
            run = self._prepared(experiment)
            keys = {cell.key for cell in (*run.pending_trials, *run.pending)}
            for cell in (*run.plan.trials, *run.plan.cells):
                show(f"{'run ' if cell.key in keys else 'have'} {cell.label}")
            for cell in run.plan.undecided:
                show(f"run  {cell.label} · with the settings of its best trial")
            _show_skips(run)
            _show_estimate(run)
        return OK

    def _run_one(self, experiment: Experiment) -> bool:
        """Run an experiment and print its table and all failures; returns whether there were no failures."""
        run = self._prepared(experiment)
        self._execute(run)
        return self._show(run, run.study())

    def _run_each(self, chosen: list[Experiment]) -> bool:
        """Run several experiments and print how their numbers compare with the published ones.

        Tables are left to the report.
        """
        found, good = self._run_in_brief(chosen)
        if scores := scoreboard(found):
            show_sheet(in_words(scores), score_sheet(scores))
        return good

    def _run_in_brief(self, chosen: list[Experiment]) -> tuple[list[Study], bool]:
        """Run experiments and print a line for each; returns their studies, and whether nothing failed.

        An error of one experiment is printed and does not stop the others.
        """
        found, good = [], True
        for experiment in chosen:
            try:
                run = self._prepared(experiment)
                self._execute(run)
                found.append(run.study())
                good &= self._show_in_brief(run, found[-1])
            except UserError as error:
                complain(f"{experiment.name}: {error}")
                good = False
            except Exception as error:
                complain(f"{experiment.name} stopped: {type(error).__name__}: {error}; all other experiments continue")
                good = False
        return found, good

    def _refuse_namesake(self, experiment: Experiment) -> None:
        """Refuse to join a folder in which another experiment of the same name is run."""
        asked = plan(experiment, self.selection)
        for stored in self.results.store(experiment.name).plans():
            own = (stored.profile, stored.seed) == (self.selection.profile, self.selection.seed)
            if own and not stored.asks_as(asked):
                origin = stored.experiment.source or "the package"
                problem = f"{self.results.out} has a run of another {experiment.name}, from {origin}"
                raise UserError(problem, remedy="join it with the same file, or choose another folder with --out")

    def _prepared(self, experiment: Experiment) -> Run:
        """A run of the experiment's plan, with the stored results already read."""
        store = self.results.store(experiment.name)
        return Run.of(experiment, self.selection, store, self.conditions, self.workplace)

    def _execute(self, run: Run) -> None:
        """Run a plan: first its trials, then its cells."""
        name = run.plan.experiment.name
        run.open()
        if (count := run.reused()) and not self.conditions.strict:
            self._say(
                f"note: {name} reuses {count} results made with other kernels, library versions or on another "
                "processor, whose last digits may differ (--strict runs them again)"
            )
        if run.plan.searches:
            to_run = run.pending_trials
            self._say_what_is_there(f"{name} trials", run.plan.trials, to_run)
            coming = len(to_run) + sum(search.to_come for search in run.plan.searches)
            with progress_of(f"{name} trials", coming, self.quiet or not to_run) as tell:
                run.try_out(tell)
        to_run = run.pending
        self._say_what_is_there(name, run.plan.cells, to_run)
        with progress_of(name, len(to_run), self.quiet or not to_run) as tell:
            run.execute(tell)

    def _say(self, text: str) -> None:
        if not self.quiet:
            show(text)

    def _say_what_is_there(self, name: str, planned: tuple[Cell, ...], to_run: tuple[Cell, ...]) -> None:
        keys = {cell.key for cell in to_run}
        if there := sum(1 for cell in planned if cell.key not in keys):
            self._say(f"{name}: {there} of {len(planned)} cells are stored already (--force runs them again)")

    def _show(self, run: Run, found: Study) -> bool:
        """Print the table of this plan's cells and all failures; returns whether there were no failures."""
        experiment = run.plan.experiment
        if any(entry.result or entry.failure for entry in found.entries):
            show_sheet(f"{experiment.name}: {experiment.title}", sheet(found))
        if not self.quiet:
            for line in (*verdict_notes(found), *timing_notes(found)):
                show(line)
            self._show_notes(run, found)
        return _complain_of_failures(found)

    def _show_in_brief(self, run: Run, found: Study) -> bool:
        """Print how many cells ended well, and all failures; returns whether there were no failures."""
        good = sum(1 for entry in found.entries if entry.good)
        self._say(f"{found.name}: {good} of {len(found.entries)} cells ended well; rankbench table {found.name}")
        if not self.quiet:
            self._show_notes(run, found)
        return _complain_of_failures(found)

    def _show_notes(self, run: Run, found: Study) -> None:
        _show_skips(run)
        _note_trials(found)
        _note_imports(found)
        _note_hidden(run, found)

    def _say_how_to_resume(self, chosen: list[Experiment]) -> int:
        """Print how many results an interrupted run has kept and how to resume it; returns the exit code."""
        kept = sum(1 for experiment in chosen for _ in self.results.store(experiment.name).files())
        command = shlex.join(["rankbench", *(word for word in sys.argv[1:] if word != "--force")])
        complain(f"stopped; finished cells kept: {kept}; resume with: {command}")
        return INTERRUPTED

    def _note_threads(self, chosen: list[Experiment]) -> None:
        threads = max(self.selection.threads, *(number for own in chosen for number in own.threads), 1)
        cores = psutil.cpu_count() or 1
        if threads > cores:
            self._say(f"note: {threads} threads on {cores} cores; exact results stay the same, times will not improve")


def chosen_experiments(names: list[str], selection: Selection) -> list[Experiment]:
    """The experiments with these names; `all` means all, and the first word of several names means those."""
    chosen = experiments.names() if "all" in names else [one for name in names for one in experiments.members(name)]
    found = [experiments.load(name, selection.full) for name in dict.fromkeys(chosen)]
    if selection.trials and not any(experiment.tune for experiment in found):
        raise UserError(f"--trials={selection.trials}: none of {', '.join(chosen)} tunes anything")
    check_named(found, selection)
    return found


def _show_estimate(run: Run) -> None:
    planned = run.plan
    to_run = len(run.pending_trials) + len(run.pending) + len(planned.undecided)
    seconds, unknown = run.estimate()
    guess = f"about {seconds:.0f} s judging by stored results" if to_run > unknown else "no estimate"
    without = f", {unknown} of unknown duration" if unknown else ""
    total = len(planned.cells) + len(planned.trials) + len(planned.undecided)
    of_them = f" ({len(planned.trials)} of them trials)" if planned.trials else ""
    show(f"{planned.experiment.name}: {to_run} of {total} cells{of_them} to run, {guess}{without}")


def _note_trials(found: Study) -> None:
    """Print the number of trials, how many of them failed, and the command that lists them."""
    results = [entry for entry in found.trials if entry.result]
    if results:
        lost = sum(entry.status != "ok" for entry in results)
        failed = f", {lost} of which did not end well and cannot be chosen" if lost else ""
        show(f"trials: {len(results)}{failed}; rankbench table {found.name} --trials lists them")


def _note_imports(found: Study) -> None:
    """Print the packages that solvers imported during training, because importing counts as training time."""
    by_solver: dict[str, dict[str, None]] = {}
    for entry in (*found.entries, *found.trials):
        for module in entry.result.imported if entry.result else ():
            by_solver.setdefault(entry.cell.solver.name, {})[module] = None
    for solver, modules in by_solver.items():
        show(
            f"note: {solver} imported {', '.join(modules)} during training, which counts as training time: "
            "import at the top of its file"
        )


def _note_hidden(run: Run, found: Study) -> None:
    """Print how many stored results of the experiment are not part of this run."""
    if count := stored_beyond(run.store, found.plan):
        name = found.name
        show(f"note: {count} more results of {name} are stored but not part of this run: rankbench status {name}")


def _as_init() -> str:
    """The command that writes this comparison's experiment file: the same, without what `init` does not take."""
    kept, words = [], iter(sys.argv[2:])
    for word in words:
        name = word.partition("=")[0]
        if name in _WITH_VALUE:
            if "=" not in word:
                next(words, None)
        elif name not in _FLAGS:
            kept.append(word)
    return shlex.join(["rankbench", "init", *kept])


def _using(cell: Cell) -> str:
    """A line with the command that runs a cell's solver on this data, in the most similar experiment if any fits."""
    data, solver = cell.place.data.written, cell.solver_text
    selection = Selection(solvers=(solver,), data=(data,), repetitions=1)
    for experiment in sorted(map(experiments.load, experiments.names()), key=partial(_distance, cell)):
        try:
            if plan(experiment, selection).skips:
                continue
        except UserError:
            continue  # the experiment's split or metrics do not suit the data
        return f"to use it: {shlex.join(['rankbench', 'run', experiment.name, '-d', data, '-s', solver])}"
    return f"the best: {solver}"


def _distance(cell: Cell, experiment: Experiment) -> tuple[bool, bool, bool]:
    """How different an experiment is from a cell: other data, other metrics, or tuning; smaller is more similar."""
    known = any(text.partition("[")[0] == cell.place.data.name for text in experiment.data)
    measured = {measure.label for measure in cell.measures}
    return not known, not measured & set(experiment.metrics), experiment.tune is not None


def _show_skips(run: Run) -> None:
    for line in skip_lines(skip for skip in run.plan.skips if not skip.failed):
        show(f"skipped {run.plan.experiment.name}: {line}")


def _complain_of_failures(found: Study) -> bool:
    """Print every cell and every part of the plan that failed; returns whether there is none."""
    bad = [entry for entry in found.entries if entry.status not in ("ok", "pending")]
    for entry in bad:
        complain(f"{entry.status}: {entry.cell.label}: {entry.reason} (--retry-failed runs it again)")
    broken = [skip for skip in found.skips if skip.failed]
    for skip in broken:
        complain(f"failed: {found.name}: {skip.text}")
    return not bad and not broken


def verified(found: Study, number: int | None, conditions: Conditions, quiet: bool) -> int:
    """Run a sample of stored cells again and say what differs; the exit code."""
    cells = sampled(found, number)
    if not cells:
        raise UserError(f"no cell of {found.name} has ended well, so there is nothing to verify")
    with (
        TemporaryDirectory(dir=own_folder()) as folder,
        progress_of(f"{found.name} again", len(cells), quiet) as tell,
    ):
        checks = verify(found, cells, results_in(Path(folder)), conditions, tell)
    for check in checks:
        if check.verdict != "same":
            parts = f" in {', '.join(check.differing)}" if check.differing else ""
            show(f"{check.verdict}: {check.cell.label}{parts}: {check.why}")
    counts = {verdict: sum(check.verdict == verdict for check in checks) for verdict in ("same", "close")}
    close = f", {counts['close']} close" if counts["close"] else ""
    show(f"{found.name}: {counts['same']} of {len(checks)} cells came out the same to the last byte{close}")
    return OK if sum(counts.values()) == len(checks) else 1
