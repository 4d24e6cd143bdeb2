"""Comparing solvers on one's own data from Python: `on(frame)` runs what `rankbench on` runs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rankbench.core.errors import UserError
from rankbench.execution.isolation import Caps
from rankbench.execution.run import Conditions, Run
from rankbench.own_data.auditing import Audit, audited
from rankbench.own_data.choosing import Choice, Wishes
from rankbench.own_data.experiment_file import experiment_of, text_of
from rankbench.own_data.fitting_choice import choice_for
from rankbench.own_data.frames import handed
from rankbench.records.cells import Selection
from rankbench.records.store import ResultsFolder
from rankbench.records.studies import Study
from rankbench.report.render.answer import answer, answer_sheet, failures
from rankbench.report.render.tables import Sheet, to_markdown


@dataclass(frozen=True)
class Comparison:
    """The answer to which solver is best on a data set, with the table that it rests on."""

    answer: str
    sheet: Sheet
    failures: tuple[str, ...]  # a line for each solver that failed or does not suit the data
    experiment: str  # the text of the experiment file, for `rankbench run`

    def __str__(self) -> str:
        return "\n".join([to_markdown(self.sheet), f"{self.answer}.", *self.failures])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        told = "".join(f"<p>{escape(line)}</p>" for line in (f"{self.answer}.", *self.failures))
        return f"{self.frame.to_html(index=False)}{told}"

    @property
    def frame(self) -> Any:
        """The table as a pandas DataFrame of texts, from the best solver to the worst."""
        import pandas  # noqa: PLC0415  slow to import

        return pandas.DataFrame(list(self.sheet.lines), columns=list(self.sheet.headings))

    @property
    def best(self) -> str:
        """The name of the best solver; empty if none has a result."""
        return next((line[0] for line in self.sheet.lines if line[2]), "")


def on(
    data: Any,
    *,
    solvers: Sequence[str] = (),
    metrics: Sequence[str] = (),
    split: str = "",
    seconds: float | None = None,
    trials: int | None = None,
    **how: Any,
) -> Comparison:
    """Compare solvers on a DataFrame, ratings, a file or a named data set: `on(frame, solvers=["mine.py:Mine"])`.

    What is not given is chosen from the data.

    Parameters
    ----------
    data : pandas.DataFrame, Ratings, Comparisons, str or Path
        Ratings or comparisons, or where they are.
    solvers : list of str
        Names of solvers to compare with the floor; also `path/to/file.py:Class`.
    metrics : list of str
        Names of metrics; the first one decides.
    split : str
        The name of the split.
    seconds : float, optional
        For the whole comparison, divided equally over all trainings.
    trials : int, optional
        Trials of each solver that is tuned.
    **how
        `repetitions=1`, `seed=0`, `jobs=1`, and `out`, a folder in which results are kept and reused; without it they
        are removed at the end.

    Returns
    -------
    Comparison
        The answer in words, `answer`; the table, `frame`; the name of the best solver, `best`; and the text of the
        experiment file, `experiment`.
    """
    unknown = sorted(set(how) - {"repetitions", "seed", "jobs", "out"})
    if unknown:
        raise UserError(f"on() takes no {unknown[0]}", remedy="it takes repetitions, seed, jobs and out")
    for name in (*solvers, *metrics):
        if not isinstance(name, str):
            raise UserError(f"{name!r:.60} is not a name", remedy='give names, such as "sgd[rank=5]" or "mine.py:Mine"')
    repetitions, jobs, seed = how.get("repetitions", 1), how.get("jobs", 1), how.get("seed", 0)
    wishes = Wishes(tuple(solvers), tuple(metrics), split, seconds, trials, repetitions, jobs, seed)
    with _folder(how.get("out")) as out:
        given = handed(data, out)
        with given.errors():
            choice = choice_for(given.name, wishes)
        return _compared(choice, out, Selection(seed=seed), jobs)


def audit(data: Any, *, seed: int = 0) -> Audit:
    """Look for what is often wrong with a DataFrame, ratings, a file or a named data set: `print(audit(frame))`.

    Parameters
    ----------
    data : pandas.DataFrame, Ratings, Comparisons, str or Path
        Ratings or comparisons, or where they are.
    seed : int
        Decides the random numbers of the splits that are tried.

    Returns
    -------
    Audit
        The findings, each with a remedy.
    """
    with _folder(None) as out:
        given = handed(data, out)
        found = audited(given.name, seed)
        return replace(found, about=given.worded(found.about))


def _compared(choice: Choice, out: Path, selection: Selection, jobs: int) -> Comparison:
    """Run the comparison, with its results in a folder."""
    experiment = experiment_of(choice)
    store = ResultsFolder(out, lambda text: None).store(experiment.name)
    run = Run.of(experiment, selection, store, Conditions(jobs, Caps(choice.limit), retry_failed=True))
    run.open()
    run.execute(lambda event: None)
    return _told(run.study(), choice)


def _told(study: Study, choice: Choice) -> Comparison:
    return Comparison(answer(study), answer_sheet(study), tuple(failures(study)), text_of(choice))


@contextmanager
def _folder(out: str | Path | None) -> Iterator[Path]:
    """The folder of results: the one given, or one that is removed at the end."""
    if out is not None:
        yield Path(out)
        return
    with TemporaryDirectory(prefix="rankbench-on-") as folder:
        yield Path(folder)
