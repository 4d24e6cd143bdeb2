"""Comparing solvers on one's own data from Python: `on(frame)` runs what `rankbench on` runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any
from weakref import finalize

from rankbench.api.anytime import compared, cores, usual_seconds
from rankbench.api.experiments import TIMEOUT, Names, conditions_of, display_of, listed, seconds_in
from rankbench.api.outcomes import Outcome
from rankbench.api.session import Session
from rankbench.core.errors import UserError, placed
from rankbench.core.streams import seed_of
from rankbench.core.texts import html, safe
from rankbench.own_data import REPETITIONS
from rankbench.own_data.auditing import Audit, audited
from rankbench.own_data.choosing import Wishes
from rankbench.own_data.experiment_file import experiment_of, text_of
from rankbench.own_data.fitting_choice import choice_for
from rankbench.own_data.frames import handed
from rankbench.planning.materials import Materials
from rankbench.records.cells import Selection
from rankbench.records.store import ResultsFolder
from rankbench.records.studies import Study
from rankbench.report.analysis.strength import weaknesses
from rankbench.report.render.answer import answer, answer_sheet, failures
from rankbench.report.render.tables import Sheet, to_markdown

if TYPE_CHECKING:
    import pandas

_RERUN = ("failed",)  # a solver that failed may have been mended since


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Outcome):
    """Which solver is best on a data set, in words, with all results that this rests on."""

    experiment: str = ""  # the text of the experiment file, for `rankbench run`; of judged runs there is none
    missing: str = ""  # which solvers did not finish in the time, and how long they would take
    coverage: tuple[str, ...] = ()  # a line for the truth and for each judged run: users, items, ties

    def __repr__(self) -> str:
        return "\n".join([to_markdown(self._sheet), *map(safe, self._told)])

    def _repr_html_(self) -> str:
        told = "".join(f"<p>{html(line)}</p>" for line in self._told)
        return f"{self.frame.to_html(index=False)}{told}"

    @property
    def answer(self) -> str:
        """Which solver is best, how good it is, and from which others the users tell it."""
        return answer(self.study)

    @property
    def failures(self) -> tuple[str, ...]:
        """A line for each solver that failed or does not suit the data."""
        return tuple(failures(self.study))

    @property
    def frame(self) -> "pandas.DataFrame":
        """The table as texts, from the best solver to the worst; `table()` has all digits."""
        import pandas  # noqa: PLC0415  slow to import

        return pandas.DataFrame(list(self._sheet.lines), columns=list(self._sheet.headings))

    @property
    def _told(self) -> list[str]:
        """The answer in sentences, and a line for each failure."""
        sentences = (self.answer, *weaknesses(self.study), *([self.missing] if self.missing else []))
        return [*self.coverage, *(f"{sentence}." for sentence in sentences), *self.failures]

    @property
    def _sheet(self) -> Sheet:
        return answer_sheet(self.study)


def on(
    data: Any,
    *,
    solver: Names = (),
    metric: Names = (),
    split: str = "",
    time: float | None = None,
    trials: int | None = None,
    repetitions: int = REPETITIONS,
    margin: float | None = None,
    seed: int = 0,
    jobs: int | None = None,
    threads: int = 1,
    timeout: float | None = TIMEOUT,
    memory: int | None = None,
    report: bool = False,
    out: str | Path | None = None,
    quiet: bool = True,
    verbose: bool = False,
) -> Answer:
    """Compare solvers on a DataFrame, ratings, a file or a named data set: `on(frame, solver=["mine.py:Mine"])`.

    What is not given is chosen from the data.

    Parameters
    ----------
    data : DataFrame, Ratings, Comparisons, str or Path
        Ratings or comparisons, or where they are.
    solver : str or list of str
        Names of solvers to compare with the floor; also `path/to/file.py:Class`.
    metric : str or list of str
        Names of metrics; the first one decides.
    split : str
        The name of the split.
    time : float, optional
        Seconds for the whole comparison, `math.inf` for no limit; by default a minute, or more for more rows. Solvers
        that do not finish are named at the end, and a later call with the same `out` goes on.
    trials : int, optional
        Trials of each solver that is tuned.
    repetitions : int
        How often the data is split anew; with one, verdicts speak of that split alone.
    margin : float, optional
        Solvers that differ by less in the first metric are equal; by default a hundredth of the best mean.
    seed : int
        Decides all random numbers.
    jobs : int
        How many trainings run at a time; by default as many as there are cores.
    threads : int
        Threads of each solver.
    timeout : float, optional
        Seconds that a training may take; ten minutes by default.
    memory : int, optional
        Bytes that a training may take.
    report : bool
        Write the report of the folder `out` at the end.
    out : str or Path, optional
        A folder in which results are kept and reused; without it they are removed at the end.
    quiet : bool
        With `quiet=False`, show the progress on standard error.
    verbose : bool
        A line for each training, too, where standard error is no terminal.

    Returns
    -------
    Answer
        An `Outcome` with the answer in words, `answer`, and the text of the experiment file, `experiment`.
    """
    solvers, metrics = listed(solver), listed(metric)
    limit = seconds_in("time", time)
    seed = seed_of(seed)
    with placed("", instead_of="Wishes"):
        wishes = Wishes(solvers, metrics, split, trials, repetitions, seed, margin)
    with results_folder(out, report) as (results, keep):
        given, materials = handed(data, results.out), Materials(seed)
        with given.errors():
            choice = choice_for(given.name, wishes, materials)
        seconds = usual_seconds(choice.facts.rows) if limit is None else None if limit == inf else limit
        conditions = conditions_of(cores() if jobs is None else jobs, timeout, memory, _RERUN)
        selection = Selection(seed=seed, threads=threads)
        session = Session(results, selection, conditions, display=display_of(quiet, verbose))
        found = compared(session, experiment_of(choice), seconds, materials)
        if report:
            session.report()
        keep(found.study)
        return Answer(found.study, text_of(choice), found.missing)


def audit(data: Any, *, seed: int = 0) -> Audit:
    """Look for what is often wrong with a DataFrame, ratings, a file or a named data set: `print(audit(frame))`.

    Parameters
    ----------
    data : DataFrame, Ratings, Comparisons, str or Path
        Ratings or comparisons, or where they are.
    seed : int
        Decides the random numbers of the splits that are tried.

    Returns
    -------
    Audit
        The findings, each with a remedy.
    """
    with results_folder(None) as (results, _):
        given = handed(data, results.out)
        found = audited(given.name, seed)
        findings = tuple(
            replace(one, seen=given.worded(one.seen), remedy=given.remedied(one.remedy)) for one in found.findings
        )
        return replace(found, about=given.worded(found.about), findings=findings)


@contextmanager
def results_folder(
    out: str | Path | None, report: bool = False
) -> Iterator[tuple[ResultsFolder, Callable[[Study], None]]]:
    """The folder of results: the one given, or one that is removed once the study is no longer in use.

    The function that comes with it takes that study; without one the folder is removed at once. A report stays.
    """
    if report and out is None:
        raise UserError("report=True needs a folder", remedy="give out, where results and report are kept")
    folder = Path(mkdtemp(prefix="rankbench-on-") if out is None else out)
    kept: list[Study] = []
    try:
        yield ResultsFolder(folder, lambda text: None), kept.append
    finally:
        if out is None:
            for study in kept:
                finalize(study, rmtree, folder, ignore_errors=True)
            if not kept:
                rmtree(folder, ignore_errors=True)
