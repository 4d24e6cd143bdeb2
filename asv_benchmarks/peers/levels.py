"""What wider instructions gain: each levelled kernel at every level that this machine has, against the baseline.

A level is chosen when kernels are imported, so each one runs in a process of its own. The processes take turns.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from itertools import chain, count

import numpy as np
from turns import Row, Run, in_turns, per_second

from rankbench.core.contract import Step
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Ratings, offer
from rankbench.kernels import LEVELS
from rankbench.kernels.level import BASELINE
from rankbench.solvers import SOLVERS

WORK = (
    "altsvm[rank=10,lam=100]",
    "altsvm[rank=100,lam=100]",
    "bpr[rank=64]",
    "fm[rank=64,features=none]",
    "frsvm[rank=10,features=none]",
    "frsvm[rank=64,features=none]",
    "mf[rank=64]",
    "rmc[lam=30,rank=20]",
    "robirank[rank=64]",
    "sgd[rank=64]",
)


def levels(repeats: int) -> Iterator[Row]:
    """Steps per second of each solver at each level, against the baseline in the same turns."""
    with ExitStack() as stack:
        children = {level: stack.enter_context(_child(level)) for level in LEVELS}
        for text in WORK:
            found = in_turns(repeats, {level: _told(child, text) for level, child in children.items()})
            for level in children:
                if level != BASELINE:
                    yield Row(f"{text}: {level} : baseline", "steps/s", None, found[BASELINE], found[level])


def _child(level: str) -> subprocess.Popen[str]:
    """A process with the kernels of a level, which answers each solver's name with its steps per second."""
    environment = {**os.environ, "RANKBENCH_LEVEL": level}
    return subprocess.Popen(
        [sys.executable, __file__], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _told(child: subprocess.Popen[str], text: str) -> Run:
    def once() -> float:
        child.stdin.write(f"{text}\n")
        child.stdin.flush()
        return float(child.stdout.readline())

    return once


@cache
def _ratings() -> Ratings:
    return LowRank(users=2000, items=1500, per_user=100).view(np.random.default_rng(0))


@cache
def _steps(text: str) -> Iterator[Step]:
    """The steps of this solver's training, which begins again when it has converged."""
    solver = SOLVERS.make(text)
    return chain.from_iterable(solver.steps(offer(solver, _ratings()), np.random.default_rng(0)) for _ in count())


def _answer() -> None:
    """Measure the solvers whose names come in."""
    for line in sys.stdin:
        steps = _steps(line.strip())
        print(per_second(lambda steps=steps: (next(steps), next(steps)), 2)(), flush=True)


if __name__ == "__main__":
    _answer()
