"""Training: run a solver step by step under a budget; the clock runs only inside the solver's `next()`."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from math import isfinite
from time import perf_counter

import numpy as np

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Model, Solver, Step
from rankbench.core.errors import UserError
from rankbench.core.streams import seed_of, stream
from rankbench.data.views import Ratings, View, offer
from rankbench.experiments import Budget
from rankbench.names import checked_threads

_GROWTH = 1000.0  # times the objective of the first model: no training that works rises so far
_ROWS = 1000  # of the training part, about as many are scored to see whether a model is finite


@dataclass(frozen=True)
class Checkpoint:
    """A step, the training seconds up to it, whether the budget is spent, what it imported, and the first objective."""

    index: int
    seconds: float
    step: Step
    spent: bool
    imported: tuple[str, ...] = ()  # packages that this step loaded: their loading is in its seconds
    first: float | None = None  # the objective of the first model that has one


Listener = Callable[[Checkpoint], bool | None]


def checkpoints(
    steps: Iterator[Step], budget: Budget, clock: Callable[[], float] = perf_counter
) -> Iterator[Checkpoint]:
    """The solver's steps with their training seconds, until the solver ends or the budget is spent."""
    seconds, index, previous, first = 0.0, 0, None, None
    while True:
        latest = next(reversed(sys.modules))
        start = clock()
        step = next(steps, None)
        seconds += clock() - start
        imported = _packages_since(latest)
        if step is None:
            return
        if index and step.objective is None and budget.steps is None and budget.seconds is None:
            raise UserError("a budget with only a tolerance needs a solver with an objective: add steps or seconds")
        ended = _spent(budget, index, seconds) or _settled(budget, step, previous)
        previous = step.objective() if budget.tolerance and step.objective else None
        first = step.objective() if first is None and step.objective else first
        yield Checkpoint(index, seconds, step, ended, imported, first)
        if ended:
            return
        index += 1


def _packages_since(latest: str) -> tuple[str, ...]:
    """The sorted names of the packages imported since this module was the latest one.

    rankbench itself, users' files and names that start with an underscore are left out. Only new names are looked at:
    reading a thousand old ones takes two milliseconds in a forked process, which copies each page that it touches.
    """
    # In one call, as threads of a solver may be importing meanwhile.
    added = list(takewhile(latest.__ne__, reversed(sys.modules))) if latest in sys.modules else []
    return tuple(sorted(name for name in added if "." not in name and not name.startswith(("_", "rankbench"))))


def _spent(budget: Budget, index: int, seconds: float) -> bool:
    steps_spent = budget.steps is not None and index >= budget.steps
    return steps_spent or (budget.seconds is not None and seconds >= budget.seconds)


def _settled(budget: Budget, step: Step, previous: float | None) -> bool:
    """Whether the objective changed by at most the tolerance, relative to its previous value."""
    if budget.tolerance is None or previous is None or step.objective is None:
        return False
    return abs(previous - step.objective()) <= budget.tolerance * abs(previous)


def fit(
    solver: Solver,
    train: View,
    *,
    steps: int | None = 20,
    seconds: float | None = None,
    tolerance: float | None = None,
    seed: int = 0,
    threads: int = 1,
) -> Model:
    """The plain model that a solver has trained within a budget, without ids; `rankbench.fit` adds these."""
    return trained(solver, train, Budget(steps, seconds, tolerance), seed, threads)


def trained(
    solver: Solver, train: View, budget: Budget, seed: int, threads: int = 1, tell: Listener | None = None
) -> Model:
    """The model that a solver has trained within a budget.

    After each step the listener is told of it, off the clock, and ends the training by returning True.
    """
    threads = checked_threads(threads)  # built-in solvers check it themselves, but a user's solver may not
    rng = stream(seed_of(seed), "fit", type(solver).__name__)
    checkpoint = None
    with one_blas_thread():
        for checkpoint in checkpoints(solver.steps(offer(solver, train), rng, threads), budget):
            if tell is not None and tell(checkpoint) is True:
                break
        if checkpoint is None:
            raise UserError(f"{type(solver).__name__} yielded no model")
        if reason := objective_lost(checkpoint) or _scores_lost(checkpoint.step, train):
            problem = f"the training of {type(solver).__name__} diverged: {reason}"
            raise UserError(problem, remedy="take a smaller step or a stronger penalty, or scale the data")
    return checkpoint.step.model


def objective_lost(checkpoint: Checkpoint) -> str | None:
    """Why an objective shows that the training diverged: it is not finite, or far above the first one; else None."""
    if checkpoint.step.objective is None:
        return None
    objective, first = float(checkpoint.step.objective()), checkpoint.first
    if not isfinite(objective):
        return f"its objective is {objective}"
    if first is not None and 0 < _GROWTH * first < objective:
        return f"its objective rose from {first:.3g} to {objective:.3g}"
    return None


def _scores_lost(step: Step, train: View) -> str | None:
    """Why a model is of no use, as some scores of what it was trained on are not finite, else None.

    About a thousand training rows are scored, at even distances.
    """
    rows = np.arange(0, len(train), 1 + len(train) // _ROWS)
    users, items = train.users[rows], (train.items if isinstance(train, Ratings) else train.better)[rows]
    with_order = train.has_order[users] if isinstance(train, Ratings) else np.ones(len(rows), bool)
    lost = int((~np.isfinite(step.model.score(users[with_order], items[with_order]))).sum())
    return f"{lost} of {len(rows)} training rows have no finite score" if lost else None
