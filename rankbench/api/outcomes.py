"""What is stored of experiments, as tables of pandas."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

from rankbench.core.brief import brief_table
from rankbench.core.errors import UserError, not_stored, unknown
from rankbench.core.lines import RESULTS
from rankbench.core.texts import csv_frame, safe
from rankbench.execution.retraining import best_of
from rankbench.records.cells import skip_lines
from rankbench.records.store import ResultsFolder
from rankbench.records.studies import Entry, Study
from rankbench.report import rows
from rankbench.report.analysis import comparison, power, trials, variance
from rankbench.report.render import tables
from rankbench.report.study import studies, study

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class Outcome:
    """What is stored of an experiment, as tables of pandas; a notebook shows its table with intervals and verdicts."""

    study: Study

    def __repr__(self) -> str:
        done = sum(entry.good is not None for entry in self.study.entries)
        about = f"{safe(self.study.name)}: {done} of {len(self.study.entries)} cells ended well"
        skipped = "".join(f"skipped: {line}\n" for line in skip_lines(self.study.skips))
        return f"{about}\n{tables.to_markdown(tables.sheet(self.study))}{skipped}"

    def _repr_html_(self) -> str:
        sheet = tables.sheet(self.study)
        return brief_table(self.study.experiment.title, sheet.headings, sheet.lines)

    @property
    def ok(self) -> bool:
        """Whether every cell has run and ended well, and no trial has failed."""
        return all(entry.good is not None for entry in self.study.entries) and not self.study.failed_trials

    @property
    def best(self) -> str:
        """The solver with the best mean of the first metric, with its chosen settings: a name that `fit` takes."""
        return self.best_on()

    def best_on(self, data: str = "", split: str = "") -> str:
        """The same on one data set and split, which need a name only where there are several.

        Parameters
        ----------
        data : str
            A data set of the experiment, as it is written there.
        split : str
            A split of the experiment.

        Returns
        -------
        str
            A name that `fit` takes.
        """
        found = list(self.study.groups)
        for kind, text in (("data set", data), ("split", split)):
            known = {group: getattr(group.place, kind.partition(" ")[0]) for group in found}
            found = [group for group, of in known.items() if text in ("", of.written, *of.names)]
            if not found:
                raise unknown(f"{kind} of {self.study.name}", text, {of.written for of in known.values()})
        remedies = {kind: f"choose one with best_on({kind}=...)" for kind in ("data", "split")}
        return best_of(found, self.study.measures[0], remedies).cell.solver_text

    def table(self) -> "pandas.DataFrame":
        """A row for each data set, solver and metric: the columns of `rankbench table --csv`, missing ones NaN."""
        return _frame((vars(row) for row in rows.rows(self.study)), rows.COLUMNS)

    def results(self) -> "pandas.DataFrame":
        """A row for each cell and metric, with the value, the training seconds and how the cell ended."""
        return _frame(row for entry in self.study.entries for row in _of_cell(self.study, entry))

    def curves(self) -> "pandas.DataFrame":
        """A row for each evaluated point of each training and each metric: step, seconds, objective and value."""
        return _frame(row for entry in self.study.entries for row in _of_curve(self.study, entry))

    def trials(self) -> "pandas.DataFrame":
        """A row for each trial of the tuning, with its value on the validation part and whether it was chosen."""
        return _frame((vars(trial) for trial in trials.trials(self.study)), trials.COLUMNS)

    def power(self, repetitions: Sequence[int] = (3, 5, 10)) -> "pandas.DataFrame":
        """A row for each data set, metric and number of repetitions: the difference that these would show, and when.

        It rests on the stored repetitions, of which there must be two: fewer say nothing about others.
        """
        return _frame((one.record for one in power.powers(self.study, repetitions)), power.COLUMNS)

    def variance(self) -> "pandas.DataFrame":
        """A row for each solver, metric and source of variation: its share of the variance, with the interval.

        Runs with other values of `redraw` separate the shares of splits, search and start; one run alone has those of
        users and repetitions.
        """
        found = (one.record for one in variance.shares_of(self.study))
        return _frame(found, variance.COLUMNS)

    def compare(self, margin: float | None = None) -> "pandas.DataFrame":
        """A row for each two solvers, data set and metric: difference, interval, verdict; see `rankbench.compare`."""
        return _frame((one.record for one in comparison.within(self.study, margin)), comparison.COLUMNS)


def results(
    experiment: str | None = None,
    *,
    seed: int | None = None,
    full: bool | None = None,
    out: str | Path = RESULTS,
    to: str | Path | None = None,
) -> "pandas.DataFrame":
    """The stored results of an experiment, or of all, as a table with a row for each cell and metric.

    They are those of the latest run, or of the run with this seed and profile.

    Parameters
    ----------
    experiment : str, optional
        A name or a TOML file; all experiments of the folder if none is given.
    seed : int, optional
        The seed of the run.
    full : bool, optional
        The profile of the run.
    out : str or Path
        The folder of results.
    to : str or Path, optional
        A file that the table is also written to; its name ends in .parquet or .csv.

    Returns
    -------
    pandas.DataFrame
        The columns of `Outcome.results`.
    """
    import pandas  # noqa: PLC0415

    found = [outcome(experiment, seed=seed, full=full, out=out)] if experiment else _outcomes(out)
    table = pandas.concat([one.results() for one in found], ignore_index=True)
    if to is not None:
        _write(table, Path(to))
    return table


def outcome(
    experiment: str, *, seed: int | None = None, full: bool | None = None, out: str | Path = RESULTS
) -> Outcome:
    """What is stored of an experiment: of the latest run, or of the run with this seed and profile.

    Parameters
    ----------
    experiment : str
        A name or a TOML file.
    seed : int, optional
        The seed of the run.
    full : bool, optional
        The profile of the run.
    out : str or Path
        The folder of results.

    Returns
    -------
    Outcome
        All that is stored of it, as tables.
    """
    folder = folder_of(out)
    path = Path(experiment) if experiment.endswith(".toml") else None
    name, source = (path.stem, str(path.resolve())) if path else (experiment, None)
    found = study(folder, name, seed, full, source)
    if found is None and name in folder.names():
        raise UserError(
            f"{name} has no such run in {out}", remedy=f"rankbench status {name} --out {out} lists its runs"
        )
    if found is None:
        raise not_stored(
            experiment, folder.names() or ["none"], "out=", f"rankbench.run({experiment!r}, out={str(out)!r})"
        )
    return Outcome(found)


def compare(what: Outcome | str, *, margin: float | None = None, out: str | Path = RESULTS) -> "pandas.DataFrame":
    """Each two solvers of an experiment on the same users and repetitions: difference, 95 % interval, verdict.

    Parameters
    ----------
    what : Outcome or str
        What `run` returned, or the name of an experiment.
    margin : float, optional
        Solvers that differ by less are equal; by default as the experiment says, else a hundredth of the best mean.
    out : str or Path
        The folder of results, for a name.

    Returns
    -------
    pandas.DataFrame
        A row for each two solvers, data set and metric.
    """
    return (outcome(what, out=out) if isinstance(what, str) else what).compare(margin)


def folder_of(out: str | Path) -> ResultsFolder:
    """A folder of results; files in it that cannot be read are left out with a warning."""
    return ResultsFolder(Path(out), lambda text: warnings.warn(safe(text), stacklevel=4))


def _outcomes(out: str | Path) -> list[Outcome]:
    found = [Outcome(one) for one in studies(folder_of(out))]
    if not found:
        raise UserError(f"no results under {out}", remedy='run an experiment first: rankbench.run("park2015-table1")')
    return found


def _of_cell(found: Study, entry: Entry) -> Iterator[dict[str, object]]:
    """A row of `results` for each metric of a cell."""
    cell, result = entry.cell, entry.result
    shared = _about(found, entry) | {"status": entry.status, "reason": entry.reason}
    for measure in cell.measures:
        value = result.value(measure.label) if result else nan
        cost = {"seconds": result.seconds, "peak_mb": result.peak_mb} if result else {}
        yield {**shared, "metric": measure.label, "value": value, **cost, "key": cell.key}


def _of_curve(found: Study, entry: Entry) -> Iterator[dict[str, object]]:
    """A row of `curves` for each point of a cell's training and each metric."""
    for point in entry.result.curve if entry.result else ():
        about = {"step": point.step, "seconds": point.seconds, "objective": point.objective}
        for measure, value in zip(entry.cell.measures, point.values, strict=True):
            yield {**_about(found, entry), **about, "metric": measure.label, "value": value}


def _about(found: Study, entry: Entry) -> dict[str, object]:
    """Which cell it is."""
    place = entry.cell.place
    return {
        "experiment": found.name,
        "data": place.data.written,
        "split": place.split.written,
        "repetition": place.repetition,
        "seed": entry.cell.seed,
        "solver": entry.cell.solver.written,
        "chosen": entry.cell.solver_text,
        "threads": entry.cell.threads,
    }


def _frame(rows: Iterable[Mapping[str, object]], columns: Sequence[str] | None = None) -> "pandas.DataFrame":
    import pandas  # noqa: PLC0415  slow to import, and not needed by the command line

    return pandas.DataFrame(list(rows), columns=None if columns is None else list(columns))


def _write(table: "pandas.DataFrame", path: Path) -> None:
    """Write a table to a file of the kind that its name says."""
    if path.suffix not in (".parquet", ".csv"):
        raise UserError(f"{path} is no name of a table's file", remedy="end it in .parquet or .csv")
    try:
        if path.suffix == ".csv":
            csv_frame(table).to_csv(path, index=False)
        else:
            table.to_parquet(path, index=False)
    except ImportError:
        raise UserError("writing Parquet needs pyarrow", remedy='pip install "rankbench[parquet]"') from None
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}", remedy="choose another file") from None
