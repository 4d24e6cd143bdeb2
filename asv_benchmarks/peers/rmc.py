"""Retargeted matrix completion compared with standard completion per step, and with dense SVDs in NumPy."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
from turns import Measure, Row, Run, compared, cpu_seconds

from rankbench import data as data_sets
from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Floats, Step
from rankbench.data.views import Ratings
from rankbench.methods.isotonic import Blocks
from rankbench.solvers.rmc import RMC
from rankbench.solvers.smc import SMC

_LAM = 16.0
_STILL = 1e-4  # a fit stops when the relative change of X is below this
_STEPS = 12
_DENSE_STEPS = 3
_OF_ITS_SIZE = {
    "ml-1m": "low-rank[users=6040,items=3706,per_user=166]",
    "ml-100k": "low-rank[users=943,items=1682,per_user=106]",
}


def rmc(repeats: int) -> Iterator[Row | Measure]:
    """The cost of retargeting per step on MovieLens 1M, and a fit of MovieLens 100K; CPU time on one thread."""
    with one_blas_thread():
        yield _per_step(repeats, data_sets.load(_at_hand("ml-1m")))
        yield _fit(repeats, data_sets.load(_at_hand("ml-100k")))


def _per_step(repeats: int, train: Ratings) -> Row:
    """Steps per second of `rmc` and `smc` at the same rank after the first five steps, in which it still grows."""

    def run_of(solver: RMC | SMC) -> Run:
        def run() -> float:
            steps = solver.steps(train, np.random.default_rng(0))
            _take(steps, 6)
            return _STEPS / cpu_seconds(lambda: _take(steps, _STEPS))

        return run

    what = f"rmc : smc, a step at rank 50, {len(train):,} ratings"
    smc, ours = run_of(SMC(lam=1.0, centred=True, rank=50)), run_of(RMC(lam=1.0, rank=50))
    return compared(repeats, what, "steps/s", 1 / 1.1, peer=smc, ours=ours)


def _fit(repeats: int, train: Ratings) -> Row:
    """A whole fit compared with dense SVDs, of which a few steps are timed and scaled to the same number of steps."""
    needed = _steps_until_still(train)
    print(f"rmc: {needed} steps until X changes by less than {_STILL:g}")

    def dense() -> float:
        blocks = Blocks.of(train.indptr, train.values)
        return _DENSE_STEPS / (needed * cpu_seconds(lambda: _dense_steps(train, blocks)))

    def ours() -> float:
        steps = RMC(lam=_LAM).steps(train, np.random.default_rng(0))
        return 1 / cpu_seconds(lambda: _take(steps, needed + 1))

    what = f"rmc : dense SVD per step, {len(train):,} ratings, lam 16"
    return compared(repeats, what, "fits/s", 10.0, peer=dense, ours=ours)


def _steps_until_still(train: Ratings) -> int:
    before = np.zeros(len(train))
    for index, step in enumerate(RMC(lam=_LAM, tolerance=1e-9).steps(train, np.random.default_rng(0))):
        now = step.model.score(train.users, train.items)
        if index and np.linalg.norm(now - before) < _STILL * np.linalg.norm(now):
            return index
        before = now
    raise SystemExit("rmc came to its end before X stood still")


def _take(steps: Iterator[Step], number: int) -> None:
    for _ in islice(steps, number):
        pass


def _dense_steps(train: Ratings, blocks: Blocks) -> None:
    """Some steps of the same descent with a dense X; both use rankbench's projection."""
    now = before = np.zeros((train.n_users, train.n_items))
    for step in range(_DENSE_STEPS):
        moved = now + step / (step + 3) * (now - before)
        before, now = now, _dense_step(moved, train, blocks)


def _dense_step(moved: Floats, train: Ratings, blocks: Blocks) -> Floats:
    moved[train.users, train.items] = blocks.project(moved[train.users, train.items])
    left, values, right = np.linalg.svd(moved, full_matrices=False)
    return (left * np.maximum(values - _LAM, 0)) @ right


def _at_hand(name: str) -> str:
    """The name of the data set, or of generated data of its size if it is not available."""
    missing = data_sets.DATASETS.make(name).origin.missing()
    if missing:
        print(f"{name} is not at hand ({missing}): measured on {_OF_ITS_SIZE[name]}")
    return _OF_ITS_SIZE[name] if missing else name
