"""A session: experiments are planned, run, verified and reported in one folder, by the command line and Python."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from rankbench import experiments
from rankbench.api.terminal import Terminal
from rankbench.core.errors import Unfinished, UserError
from rankbench.core.lines import in_folder
from rankbench.core.temporary import own_folder
from rankbench.core.texts import error_text
from rankbench.execution.run import Conditions, Run, Tell
from rankbench.execution.workplace import Workplace
from rankbench.experiments import Experiment
from rankbench.planning.materials import Materials
from rankbench.planning.plan import check_named, plan
from rankbench.records.cells import Cell, Selection, file_name, file_of_cell
from rankbench.records.store import ResultsFolder
from rankbench.records.studies import Study
from rankbench.report import manifest
from rankbench.report.writing import write_report
from rankbench.verification.cells import sampled, verifiable
from rankbench.verification.verify import Extent, StudyFiles, Verification, verify


@dataclass(frozen=True)
class Listening:
    """The display of a function that is called with each event, and of nobody who reads."""

    tell: Tell = lambda event: None

    def say(self, line: str) -> None:
        """Take a line about the run."""

    def complain(self, line: str) -> None:
        """Take a line about what went wrong."""

    def progress(self, name: str, total: int) -> AbstractContextManager[Tell]:
        """A context with the function."""
        return nullcontext(self.tell)


Display = Listening | Terminal


@dataclass(frozen=True)
class Session:
    """What is asked for, the conditions under which it runs, and the folder for the results."""

    results: ResultsFolder
    selection: Selection = field(default_factory=Selection)
    conditions: Conditions = field(default_factory=Conditions)
    workplace: Workplace | None = None  # None: this machine
    display: Display = field(default_factory=Listening)

    def prepared(self, experiment: Experiment, materials: Materials | None = None, writes: bool = True) -> Run:
        """A run of the experiment's plan, with the stored results already read; its data may have been read before.

        One that is only looked at writes nothing: splits that do not fit in memory are cut again.
        """
        store = self.results.store(experiment.name)
        found = materials or Materials(self.selection.seed)
        found.scratch = store.scratch if writes else None
        found.remember(store.folder)
        return Run(plan(experiment, self.selection, found), store, self.conditions, found, self.workplace)

    def execute(self, run: Run) -> Study:
        """Run a plan: first its trials, then its cells; in the end, however it comes, the manifest is written."""
        run.open()
        try:
            return self._executed(run)
        finally:
            self._renew_manifest(run)

    def _renew_manifest(self, run: Run) -> None:
        """Write the manifest, and a line if files were changed since they were listed in it, and not by this run."""
        ours = {file_name(cell) for cell in run.plan.everything if run.has_made(cell)}
        changed = manifest.renew(run.store, run.plan, ours)
        if others := sorted(name for name in changed if file_of_cell(name.rpartition("/")[2]) not in ours):
            name, more = run.plan.experiment.name, f" and {len(others) - 1} more" if len(others) > 1 else ""
            self.display.say(
                f"note: {name}: {others[0]}{more} changed since the manifest of the run before was written, and not by "
                f"this run; {in_folder(f'rankbench verify {name} --all', self.results.out)} makes all results again"
            )

    def _executed(self, run: Run) -> Study:
        name = run.plan.experiment.name
        if (count := run.reused()) and "foreign" not in self.conditions.rerun:
            self.display.say(
                f"note: {name} reuses {count} results made with other kernels, library versions or on another "
                "processor, whose last digits may differ (--rerun foreign runs them again)"
            )
        if run.plan.searches:
            to_run = run.pending_trials
            self._say_what_is_there(f"{name} trials", run.plan.trials, to_run)
            coming = len(to_run) + sum(search.to_come for search in run.plan.searches)
            with self.display.progress(f"{name} trials", coming if to_run else 0) as tell:
                run.try_out(tell)
        to_run = run.pending
        self._say_what_is_there(name, run.plan.cells, to_run)
        with self.display.progress(name, len(to_run)) as tell:
            run.execute(tell)
        found = run.study()
        good, total = sum(1 for entry in found.entries if entry.good), len(found.entries)
        table = in_folder(f"rankbench table {name}", self.results.out)
        ended = f"{good} of {total} cells ended well; {table}" if total else "no cell could be run"
        self.display.say(f"{name}: {ended}")
        return found

    def run(self, experiment: Experiment) -> tuple[Run, Study]:
        """Plan and run an experiment."""
        run = self.prepared(experiment)
        return run, self.execute(run)

    def run_each(self, chosen: Sequence[Experiment]) -> Iterator[tuple[Run, Study] | None]:
        """Run several experiments; one that stops with an error is complained of and None, and the others go on."""
        for experiment in chosen:
            try:
                yield self.run(experiment)
            except Unfinished:
                raise  # the others would wait in vain, too
            except UserError as error:
                self.display.complain(f"{experiment.name}: {error}")
                yield None
            except Exception as error:  # a data set, a solver or a metric of the user's may raise anything
                problem = f"{error_text(error)}; all other experiments continue"
                self.display.complain(f"{experiment.name} stopped: {problem}")
                yield None

    def verify(self, kept: StudyFiles, extent: Extent) -> Verification:
        """Check what is stored, and run a sample of its cells and trials again."""
        total = len(sampled(verifiable(kept.study), extent.number))
        with (
            TemporaryDirectory(dir=own_folder()) as folder,
            self.display.progress(f"{kept.study.name} again", total) as tell,
        ):
            afresh = ResultsFolder(Path(folder), self.display.complain)
            return verify(kept, extent, afresh, self.conditions, tell)

    def report(self) -> Path:
        """Write the report of everything in the folder; returns the path of its page."""
        path = write_report(self.results, self.display.complain).resolve()
        self.display.say(f"report: {path}")
        return path

    def refuse_namesakes(self, chosen: Sequence[Experiment]) -> None:
        """Refuse to join a folder in which another experiment of the same name is run."""
        for experiment in chosen:
            asked = plan(experiment, self.selection)
            for stored in self.results.store(experiment.name).plans():
                own = (stored.profile, stored.seed) == (self.selection.profile, self.selection.seed)
                if own and not stored.asks_as(asked):
                    origin = stored.experiment.source or "the package"
                    problem = f"{self.results.out} has a run of another {experiment.name}, from {origin}"
                    raise UserError(problem, remedy="join it with the same file, or choose another folder with --out")

    def note_threads(self, chosen: Sequence[Experiment]) -> None:
        """Say so if more threads are asked for than there are cores."""
        threads = max(self.selection.threads, *(number for own in chosen for number in own.threads), 1)
        cores = psutil.cpu_count() or 1
        if threads > cores:
            same = "exact results stay the same, times will not improve"
            self.display.say(f"note: {threads} threads on {cores} cores; {same}")

    def _say_what_is_there(self, name: str, planned: tuple[Cell, ...], to_run: tuple[Cell, ...]) -> None:
        keys = {cell.key for cell in to_run}
        if there := sum(1 for cell in planned if cell.key not in keys):
            again = "--rerun all runs them again"
            self.display.say(f"{name}: {there} of {len(planned)} cells are stored already ({again})")


def chosen_experiments(names: Sequence[str], selection: Selection) -> list[Experiment]:
    """The experiments with these names; `all` means all, and the first word of several names means those."""
    chosen = experiments.names() if "all" in names else [one for name in names for one in experiments.members(name)]
    found = [experiments.load(name, selection.full) for name in dict.fromkeys(chosen)]
    if selection.trials and not any(experiment.tune for experiment in found):
        raise UserError(f"--trials={selection.trials}: none of {', '.join(chosen)} tunes anything")
    check_named(found, selection)
    return found
