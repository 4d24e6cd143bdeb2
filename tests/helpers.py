"""Small experiments and a clean way to run the command line inside a test."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rankbench.cli import main
from rankbench.experiments import Budget, Experiment, Figure
from rankbench.experiments.spaces import Range, Tune
from rankbench.harness.plan import Cell
from rankbench.harness.store import Result

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


def made_up(cell: Cell, value: float, **changes: object) -> Result:
    """A result whose metrics are `value` and `value / 2`."""
    metrics = {"pairwise-error": value / 2, "ndcg@5": value}
    curve = [{"step": s, "seconds": 0.1 * (s + 1), "metrics": metrics} for s in range(3)]
    content = {
        "key": cell.key, "cell": {}, "status": "ok", "reason": None, "curve": curve, "metrics": metrics,
        "left_out": {}, "unscored": 0.0, "seconds": 2.0, "wall": 3.0, "peak_mb": 50.0, "contended": False,
        "machine": dict.fromkeys(("cpu", "usable_cores", "memory_gib", "blas", "compiler", "python"), "x"),
        "fingerprint": "abc", "finished": "now",
    }  # fmt: skip
    return Result(**{**content, **changes})  # type: ignore[arg-type]


def rankbench(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command line in this process; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["rankbench", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    return int(exit_.value.code or 0)
