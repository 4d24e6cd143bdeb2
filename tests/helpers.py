"""Small experiments and a clean way to run the command line inside a test."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rankbench.cli import main
from rankbench.experiments import Budget, Experiment, Figure

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


def tiny(**changes: object) -> Experiment:
    """The tiny experiment, changed."""
    return replace(TINY, **changes)  # type: ignore[arg-type]


def tiny_toml(folder: Path, **changes: str) -> str:
    """The path of a TOML file of a tiny experiment; changes replace whole values."""
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


def rankbench(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command line in this process; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["rankbench", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    return int(exit_.value.code or 0)
