"""Helpers for tests: small experiments, and running the command line inside a test."""

import csv
import io
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _pytest.capture import CaptureResult
from matplotlib.image import imread

from rankbench.api.session import Session
from rankbench.cli import main
from rankbench.core.contract import Floats
from rankbench.execution.run import Conditions, Run, Tell, reruns
from rankbench.experiments import Budget, Experiment, Figure
from rankbench.experiments.spaces import Range, Tune
from rankbench.records.cells import Cell, Selection
from rankbench.records.machines import Machine
from rankbench.records.results import Counted, Point, Result
from rankbench.records.store import ResultsFolder, Store
from rankbench.records.studies import Study
from rankbench.solvers import SOLVERS

TINY = Experiment(
    name="tiny",
    title="A tiny experiment",
    paper="no paper",
    about="For tests.",
    data=("low-rank[users=20,items=30,per_user=20]",),
    splits=("n-per-user[n=8,least=5]",),
    solvers=("global[lam=10]", "sgd[rank=2]"),
    metrics=("pairwise-error", "ndcg@5"),
    repetitions=2,
    budget=Budget(steps=3),
    figure=Figure(kind="curve", x="step"),
)

OWN_SOLVERS = tuple(name for name, home in SOLVERS.entries.items() if not home.startswith("rankbench.solvers.peers."))

SPACES = {"global": {"lam": Range(1.0, 1000.0, "log")}, "sgd": {"lam": Range(0.1, 100.0, "log"), "rank": (2, 3)}}
TUNE_TOML = (
    "{trials = 3, metric = 'ndcg@5', space = {global = {lam = {low = 1, high = 1000, scale = 'log'}}, "
    "sgd = {lam = {low = 0.1, high = 100, scale = 'log'}, rank = [2, 3]}}}"
)

SOLVER_HEAD = """
import os, signal, time
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from rankbench import Comparisons, Determinism, ItemScores, Ratings, Step

@dataclass(frozen=True)
class Mine:
    mode: str = "ok"
    learns_from: ClassVar = (Ratings, Comparisons)
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1

    def steps(self, train, rng, threads=1):
        yield Step(ItemScores(np.arange(train.n_items, dtype=float)))
"""


def with_solver(folder: Path, *lines: str, name: str = "mine.py") -> str:
    """A user's solver file whose `steps` goes on with these lines; returns `path:Mine`."""
    path = folder / name
    path.write_text(SOLVER_HEAD + "".join(f"        {line}\n" for line in lines))
    return f"{path}:Mine"


ABSENT = """
from dataclasses import dataclass
from typing import ClassVar

from rankbench import Publication

@dataclass(frozen=True)
class Gone:
    version: ClassVar = 1
    origin = Publication("nowhere", "", "", "", (("ratings.txt",),), how="ask its owner")
    def view(self, rng): raise AssertionError("it is not there")
"""


def absent_data(folder: Path) -> str:
    """A user's data set that is not at hand; returns `path:Gone`."""
    (folder / "gone.py").write_text(ABSENT)
    return f"{folder / 'gone.py'}:Gone"


def tiny(**changes: object) -> Experiment:
    """The tiny experiment, changed."""
    return replace(TINY, **changes)  # type: ignore[arg-type]


def tuned(tune: Tune | None = None, **changes: object) -> Experiment:
    """The tiny experiment with three trials for each solver, changed."""
    tune = tune or Tune(SPACES, trials=3, metric="ndcg@5")
    return tiny(**{"solvers": ("global", "sgd[step=0.1]"), "tune": tune, **changes})


def tiny_toml(folder: Path, **changes: str) -> str:
    """The path of a TOML file of a tiny experiment; changes replace or add whole values."""
    values = {
        "title": '"Tiny"',
        "paper": '"none"',
        "about": '"For tests."',
        "data": '["low-rank[users=20,items=30,per_user=20]"]',
        "splits": '["n-per-user[n=8,least=5]"]',
        "solvers": '["global[lam=10]", "sgd[rank=2]"]',
        "metrics": '["pairwise-error", "ndcg@5"]',
        "repetitions": "2",
        "budget": "{steps = 3}",
    } | changes
    path = folder / "tiny.toml"
    path.write_text("".join(f"{key} = {value}\n" for key, value in values.items() if value))
    return str(path)


MACHINE = Machine(
    cpu="a processor", cores=2, usable_cores=2, memory_gib=8.0, system="Linux 6 x86_64", python="3.12.0",
    blas=("openblas 0.3 (Haswell)",), compiler="gcc 12", openmp=201511, native=False, debug=False,
    packages=(("rankbench", "0.1.0"), ("numpy", "2.4.0"), ("scipy", "1.16.0")), git="abc123", kernels="0123456789abcde",
)  # fmt: skip


FAILED = {"status": "failed", "reason": "boom", "curve": (), "counted": ()}  # what changes a result that failed


def made_up(cell: Cell, value: float, **changes: object) -> Result:
    """A result whose second metric is `value` and whose first is half of it, as are those of `TINY`."""
    values = (value / 2, value)[: len(cell.measures)]
    curve = tuple(Point(step, 0.1 * (step + 1), values) for step in range(3))
    result = Result(
        cell=cell, status="ok", reason=None, curve=curve, counted=tuple(Counted(20, 0) for _ in values), unscored=0.0,
        wall=3.0, peak_mb=50.0, contended=False, machine=MACHINE, finished="2026-01-02T03:04:05+00:00",
    )  # fmt: skip
    return replace(result, **changes)  # type: ignore[arg-type]


def around(cell: Cell, value: float, users: int = 20) -> dict[str, Floats]:
    """Values for each user whose means are those of `made_up`: all the same but for what users and repetitions add."""
    rng = np.random.default_rng(cell.place.repetition)
    noise = 0.01 * rng.permutation(np.linspace(-1, 1, users))
    values = (value / 2, value)[: len(cell.measures)]
    return {measure.label: one + noise for measure, one in zip(cell.measures, values, strict=True)}


def no_values(cell: Cell, value: float) -> dict[str, Floats]:
    """No values for each user, as results of older versions have none."""
    return {}


def made_up_run(
    out: Path,
    experiment: Experiment = TINY,
    value: Any = 0.5,
    *,
    selection: Selection | None = None,
    made: Callable[..., Result] = made_up,
    arrays: Callable[[Cell, float], dict[str, Floats]] = around,
    **changes: Any,
) -> Run:
    """An experiment's run with made-up results, which are stored as if it had been run.

    `value` is a number for all cells, one for each, or a function of the cell, and so may be what changes its result.
    A cell whose value is None has no result.
    """
    run = prepared(out, experiment, selection)
    run.open()
    cells = run.plan.cells
    values = map(value, cells) if callable(value) else value if isinstance(value, tuple) else (value,) * len(cells)
    for cell, one in zip(cells, values, strict=False):
        own = {name: change(cell) if callable(change) else change for name, change in changes.items()}
        if one is not None:
            run.keep(made(cell, one, **own), arrays(cell, one))
    return run


def made_up_study(out: Path, *asked: Any, **changes: Any) -> Study:
    """The study of such a run."""
    return made_up_run(out, *asked, **changes).study()


def altered(study: Study, **changes: Any) -> Study:
    """The study with other entries, trials (both with their results) or fields of its plan."""
    entries, trials = changes.pop("entries", study.entries), changes.pop("trials", study.trials)
    results = {entry.cell.key: entry.result for entry in (*entries, *trials) if entry.result}
    planned, tried = (tuple(entry.cell for entry in found) for found in (entries, trials))
    return replace(study, plan=replace(study.plan, planned=planned, trials=tried, **changes), by_key=results)


def colours(path: Path) -> int:
    """How many shades a PNG file has: an empty canvas has one."""
    return len(np.unique(imread(path)))


def silent(text: str) -> None:
    """Listen to warnings and say nothing."""


def store_in(out: Path, name: str = "tiny") -> Store:
    """Where an experiment's results lie under a folder."""
    return ResultsFolder(out, silent).store(name)


def prepared(out: Path, experiment: Experiment, selection: Selection | None = None, **conditions: object) -> Run:
    """An experiment's run that has read what is stored, and has run nothing yet."""
    rerun = reruns(str(conditions.pop("rerun", "")).split())
    asked = Conditions(rerun=rerun, **conditions)  # type: ignore[arg-type]
    return Session(ResultsFolder(out, silent), selection or Selection(), asked).prepared(experiment)


def ran(
    out: Path,
    experiment: Experiment = TINY,
    selection: Selection | None = None,
    tell: Tell = lambda event: None,
    **conditions: object,
) -> Run:
    """An experiment's run that has ended."""
    run = prepared(out, experiment, selection, **conditions)
    run.open()
    run.execute(tell)
    return run


def rankbench(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command line in this process; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["rankbench", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    return int(exit_.value.code or 0)


@dataclass(frozen=True)
class CommandLine:
    """The command line in this process, as the fixture `cli` gives it: `cli("table", "tiny").out` is what it prints."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *words: object, code: int = 0) -> CaptureResult[str]:
        """What a command says as it ends with this exit code: `out` and `err`."""
        self.capsys.readouterr()
        found, said = rankbench(self.monkeypatch, *map(str, words)), self.capsys.readouterr()
        assert found == code, said.err
        return said

    def refuses(self, *words: object) -> str:
        """The one line with which a command is refused; it prints nothing else."""
        said = self(*words, code=2)
        assert said.out == "" and said.err.startswith("rankbench: ") and said.err.count("\n") == 1, said
        assert said.err[:-1].isprintable() and len(said.err) < 10_000
        return said.err


def csv_rows(text: str) -> list[dict[str, str]]:
    """The rows of a CSV, each by the names of its columns."""
    return list(csv.DictReader(io.StringIO(text)))


def until(condition: Callable[[], object]) -> None:
    """Wait for an event; the limit is for a test that fails."""
    limit = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.01)


def padding(rows: Floats) -> Floats:
    """The numbers behind these columns that fill up each row to whole lanes."""
    assert rows.strides[0] % 32 == 0 and rows.strides[1] == 8
    whole = np.lib.stride_tricks.as_strided(rows, (len(rows), rows.strides[0] // 8))
    return whole[:, rows.shape[1] :]
