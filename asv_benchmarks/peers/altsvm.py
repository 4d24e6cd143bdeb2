"""AltSVM's tournament schedule compared with a global random order, on two threads, and at large sizes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice

import numpy as np
from turns import Measure, Row, Run, compared, cpu_seconds, exponent, per_second

from rankbench.core.contract import Step
from rankbench.core.system import peak_bytes
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Comparisons
from rankbench.kernels.solvers.altsvm import RECORD
from rankbench.solvers.altsvm import AltSVM

SIZES = (10**5, 10**6, 10**7)
LARGEST = 10**8  # measured only with ALTSVM_LARGEST=1 in the environment: under 3 GiB and about a minute
PASSES = 10
LAM = 100.0


def altsvm(repeats: int) -> Iterator[Row | Measure]:
    """One core compared with the same kernel in global random order, then two threads with one, then growing sizes."""
    ratings = LowRank(users=6040, items=3706, per_user=166).view(np.random.default_rng(0))
    comparisons = ratings.comparisons(553, np.random.default_rng(1))
    for rank in (10, 100):
        ours, peer = (_passes(comparisons, AltSVM(rank, lam=LAM, schedule=name)) for name in ("tournament", "random"))
        what = f"rank {rank}: tournament : global random order"
        yield compared(repeats, what, "updates/s", 1.3, peer=peer, ours=ours)
    yield _quality(comparisons, repeats)
    for schedule in ("tournament", "partitioned", "hogwild", "atomic"):
        solver = AltSVM(10, lam=LAM, schedule=schedule)
        one, two = (_passes(comparisons, solver, threads) for threads in (1, 2))
        target = 1.6 if schedule == "tournament" else None
        yield compared(repeats, f"rank 10: {schedule}, 2 threads : 1", "updates/s", target, peer=one, ours=two)
    per_row = comparisons.better.itemsize + comparisons.worse.itemsize + np.dtype(np.float32).itemsize
    yield Measure("memory per comparison, duals and schedule included", "bytes", per_row + RECORD.itemsize, at_most=32)
    yield from _growth()


def _passes(comparisons: Comparisons, solver: AltSVM, threads: int = 1) -> Run:
    """A function that runs one pass over items and one over users at each call."""
    steps = solver.steps(comparisons, np.random.default_rng(0), threads)
    next(steps)
    return per_second(lambda: (next(steps), next(steps)), 2 * len(comparisons))


def _quality(comparisons: Comparisons, repeats: int) -> Measure:
    """The ratio of the objective to that of the global random order after equally many passes; median over starts."""
    ratios = []
    for seed in range(min(repeats, 3)):
        ends = {}
        for schedule in ("tournament", "random"):
            solver = AltSVM(10, lam=LAM, schedule=schedule)
            ends[schedule] = _last(solver.steps(comparisons, np.random.default_rng(seed)), 2 * PASSES).objective()
        ratios.append(ends["tournament"] / ends["random"])
    what = f"objective after {PASSES} passes over that in global random order"
    return Measure(what, "", float(np.median(ratios)), at_most=1.005)


def _last(steps: Iterator[Step], count: int) -> Step:
    """The last of the first `count` steps."""
    return next(islice(steps, count, None))


def _growth() -> Iterator[Measure]:
    """How the cost of a pass grows with the number of comparisons; each size runs in its own process."""
    sizes = (*SIZES, LARGEST) if os.environ.get("ALTSVM_LARGEST") == "1" else SIZES
    found = [_measured(size) for size in sizes]
    for size, (taken, peak) in zip(sizes, found, strict=True):
        yield Measure(f"{size:.0e} comparisons: both halves, once", "s", taken)
        yield Measure(f"{size:.0e} comparisons: peak memory of the process", "MiB", peak)
    power = exponent(sizes, [taken for taken, _ in found])
    yield Measure(f"cost of a pass: fitted exponent from {sizes[0]:.0e} to {sizes[-1]:.0e}", "", power, at_most=1.1)


def _measured(size: int) -> tuple[float, float]:
    """The CPU seconds of both halves of a pass, and the peak memory in MiB."""
    shown = subprocess.run([sys.executable, __file__, str(size)], check=True, capture_output=True, text=True).stdout
    taken, peak = shown.split()
    return float(taken), float(peak)


def drawn(size: int, items: int = 3706, per_user: int = 1000) -> Comparisons:
    """This many comparisons that agree with a hidden order of the items, made without extra memory."""
    rng = np.random.default_rng(0)
    better, worse = np.empty(size, np.int32), np.empty(size, np.int32)
    for first in range(0, size, 10**6):
        end = min(first + 10**6, size)
        one = rng.integers(0, items, end - first, np.int32)
        other = (one + rng.integers(1, items, end - first, np.int32)) % items
        better[first:end], worse[first:end] = np.minimum(one, other), np.maximum(one, other)
    return Comparisons(np.arange(0, size + 1, per_user), better, worse, items)


def main(size: int) -> None:
    """Print the time of both halves in the second pass, and the peak memory."""
    steps = AltSVM(10, lam=LAM).steps(drawn(size), np.random.default_rng(0))
    _last(steps, 2)
    print(cpu_seconds(lambda: _last(steps, 1)), peak_bytes() / 2**20)


if __name__ == "__main__":
    main(int(sys.argv[1]))
