"""The small training problems that whole solvers are measured on, the same for every commit."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbench.data.splits import Split, split
from rankbench.data.synthetic import BTL, LowRank, Magnitudes
from rankbench.errors import UserError
from rankbench.solvers import SOLVERS


@dataclass(frozen=True)
class Problem:
    """A solver and a split by name, the data, how long it trains, and the held-out error whose time is taken."""

    solver: str
    data: Any
    split: str
    steps: int
    error: float
    comparisons: int | None = None  # to train on, per user; None: whatever the split holds


PROBLEMS = {
    "sgd": Problem(
        "sgd[rank=10,lam=1,step=0.02]",
        LowRank(users=1000, items=400, per_user=80),
        "n-per-user[n=40]",
        steps=20,
        error=0.13,
        comparisons=100,
    ),
    "global": Problem(
        "global[lam=1,loss=logistic]",
        BTL(users=1, items=1000, comparisons=60_000),
        "entries[test=0.2]",
        steps=20,
        error=0.2,
    ),
    "mprank": Problem(
        "mprank[kernel=gaussian,C=10,width=1]",
        Magnitudes(users=300, items=500, per_user=100),
        "n-per-user[n=50]",
        steps=1,
        error=0.27,
    ),
}


def solver(problem: Problem) -> Any:
    """The solver, or what asv takes for «not yet» at a commit that knows nothing of it."""
    try:
        return SOLVERS.make(problem.solver)
    except UserError as error:
        raise NotImplementedError(str(error)) from None


def parts(problem: Problem) -> Split:
    """What to train on and what to hold out."""
    halves = split(problem.data.view(np.random.default_rng(0)), problem.split, seed=0)
    if problem.comparisons is None:
        return halves
    return Split(halves.train.comparisons(problem.comparisons, np.random.default_rng(1)), halves.test)
