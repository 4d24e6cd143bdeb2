"""Factorization RankSVM: seconds and memory of an epoch at published sizes, and how the gradient's cost grows."""

from collections.abc import Callable, Iterator
from itertools import islice
from time import process_time

import numpy as np
from turns import Measure, Row, compared, cpu_seconds, exponent, per_second, seconds

from rankbench import load
from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Floats, Step
from rankbench.core.system import peak_bytes
from rankbench.data import DATASETS
from rankbench.data.splits import split
from rankbench.data.synthetic import FeatureLowRank, Lookalike
from rankbench.data.views import Ratings
from rankbench.methods.pair_tasks import PairTasks
from rankbench.solvers.frsvm import FRSVM

_RATINGS = 128_000  # number of ratings of all tasks together, if pairs are not listed
_LENGTHS = {
    "near-linear": (1000, 2000, 4000, 8000, 16_000),
    "explicit": (250, 500, 1000, 2000, 4000),
}  # ratings per task


def frsvm(repeats: int) -> Iterator[Row | Measure]:
    """The growth of the cost, then epochs at the sizes of Tables 2 and 4, of PrimalCR++ on ML-1M, and of ML-20M."""
    with one_blas_thread():
        yield from _exponents()
        yield from _naive(repeats)
        yield from _small_epochs(repeats)
        yield from _without_features()
        yield from _descent()
        yield from _ml_20m()


def _exponents() -> Iterator[Measure]:
    """How the gradient's cost grows with the number of ratings of a task: the slope of log time over log n."""
    for what, evaluate, low, high in (
        ("near-linear, 5 levels", _near_linear(5), None, 1.15),
        ("near-linear, continuous", _near_linear(0), None, 1.15),
        ("explicit, continuous", _explicit, 1.8, None),
    ):
        lengths = _LENGTHS[what.partition(",")[0]]
        measures = [evaluate(n) for n in lengths]
        turns = [[measure() for measure in measures] for _ in range(5)]
        power = exponent(lengths, np.min(turns, axis=0))
        yield Measure(f"gradient of a task, {what}: exponent in its ratings", "", power, high, low)


def _near_linear(levels: int) -> Callable[[int], Callable[[], float]]:
    """For n ratings per task, a function that returns the seconds per task; the total number of ratings is fixed."""

    def prepare(n: int) -> Callable[[], float]:
        ratings, scores = _tasks(n, _RATINGS // n, levels)
        tasks = PairTasks.of(ratings, 1)
        return _per_task(lambda: tasks.at(scores).curve(scores), ratings.n_users)

    return prepare


def _explicit(n: int) -> Callable[[], float]:
    count = max(1, 4_000_000 // n**2)
    ratings, scores = _tasks(n, count, 0)
    tasks = PairTasks.of(ratings.comparisons(), 1)
    return _per_task(lambda: tasks.at(scores).curve(scores), count)


def _per_task(work: Callable[[], object], tasks: int) -> Callable[[], float]:
    """CPU seconds per task."""
    return lambda: cpu_seconds(work) / tasks


def _tasks(n: int, tasks: int, levels: int) -> tuple[Ratings, Floats]:
    """Tasks of n ratings each, and scores with a standard deviation of about 1."""
    rng = np.random.default_rng(0)
    values = rng.integers(levels, size=n * tasks) if levels else rng.standard_normal(n * tasks)
    items = np.tile(np.arange(n, dtype=np.int32), tasks)
    return Ratings(np.arange(tasks + 1) * n, items, values, n), rng.standard_normal(n * tasks)


def _table2() -> Ratings:
    """The training part of Table 2: all pairs of 41 items for each of 1000 tasks."""
    train: Ratings = split(FeatureLowRank().view(np.random.default_rng(0)), "items-per-task[n=41,test=20]").train
    return train


def _naive(repeats: int) -> Iterator[Row]:
    """The gradient with respect to U on Table 2's data, compared with a direct implementation of eq. (4) in NumPy."""
    train = _table2()
    rng = np.random.default_rng(1)
    basis, users = rng.standard_normal((64, 20)), rng.standard_normal((train.n_users, 20))
    pairs, tasks, features = train.comparisons(), PairTasks.of(train, 1), train.item_features
    owners = pairs.users

    def naive() -> Floats:
        differences = features[pairs.better] - features[pairs.worse]
        missing = np.maximum(0, 1 - np.einsum("pk,pk->p", differences @ basis, users[owners]))
        return np.asarray(differences.T @ (-2 * missing[:, None] * users[owners]))

    def ours() -> Floats:
        factors = features @ basis
        scores = np.einsum("rk,rk->r", factors[tasks.items], users[train.users])
        pull = tasks.at(scores).slope
        sums = np.zeros((train.n_items, 20))
        np.add.at(sums, tasks.items, pull[:, None] * users[train.users])
        return np.asarray(features.T @ sums)

    np.testing.assert_allclose(ours(), naive(), rtol=1e-9)
    runs = {"peer": per_second(naive), "ours": per_second(ours)}
    yield compared(repeats, "gradient of U on Table 2's data : O(|Omega| k d)", "gradients/s", 20.0, **runs)


def _small_epochs(repeats: int) -> Iterator[Measure]:
    """Seconds per epoch on problems with published times: Table 2 on one core, HetRec's shape on two."""
    for rank, theirs in ((10, 0.07), (20, 0.10), (30, 0.17)):
        yield from _epochs(f"Table 2's data, rank {rank}", FRSVM(rank=rank, C=0.1), _table2(), 1, repeats, theirs)
    lookalike = Lookalike("hetrec2011-ml-2k", features=True).view(np.random.default_rng(0))
    yield from _epochs("HetRec's shape, rank 150", FRSVM(rank=150, C=0.01), lookalike, 2, 4, 2.0)


def _epochs(what: str, solver: FRSVM, train: Ratings, threads: int, epochs: int, at_most: float) -> Iterator[Measure]:
    """The median seconds per epoch without the start, and the CPU time per core, which the load does not affect."""
    wall, busy, _ = _medians(solver.steps(train, np.random.default_rng(0), threads), epochs)
    for reading, taken in (("wall", wall), ("CPU time for each core", busy / threads)):
        yield Measure(f"epoch on {what}, {threads} threads, {reading}", "s", taken, at_most)


def _medians(steps: Iterator[Step], epochs: int) -> tuple[float, float, Step]:
    """The median seconds of so many epochs after the start, by the clock and of all cores, and the last step."""
    next(steps)
    reached: list[Step] = []
    wall, busy = [], []
    for _ in range(epochs):
        start = process_time()
        wall.append(seconds(lambda: reached.append(next(steps))))
        busy.append(process_time() - start)
    return float(np.median(wall)), float(np.median(busy)), reached[-1]


def _without_features() -> Iterator[Measure]:
    """PrimalCR++'s problem on ML-1M: ten ratings of each user held out, rank 10, lam = 5000, one core."""
    if remedy := DATASETS.make("ml-1m").origin.missing():
        print(f"ml-1m is not at hand, its iterations are left out: {remedy}")
        return
    data = load("ml-1m")
    rng, kept = np.random.default_rng(0), np.ones(len(data), bool)
    for first, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        kept[first + rng.choice(end - first, 10, replace=False)] = False
    lam = 5000.0
    solver = FRSVM(rank=10, C=1 / lam, features="none")
    wall, busy, reached = _medians(solver.steps(data.take(np.flatnonzero(kept)), np.random.default_rng(1), 1), 3)
    yield Measure("ml-1m, X = I: an iteration, one core", "s", wall, 5.3 / 2)
    yield Measure("ml-1m, X = I: an iteration, CPU time", "s", busy, 5.3 / 2)
    yield Measure("ml-1m, X = I: objective times lam after 3", "", lam * reached.objective(), 8.52e7)


def _descent() -> Iterator[Measure]:
    """The decrease of f in an epoch, relative to the paper's epoch (a gradient step for U, then one for V)."""
    train = Lookalike("ml-20m", share=0.01, features=True).view(np.random.default_rng(0))
    solver = FRSVM(rank=50, C=0.001)
    start, first = islice(solver.steps(train, np.random.default_rng(0)), 2)
    point = start.model.basis.copy(), start.model.users.copy()
    before, after = start.objective(), first.objective()
    theirs = before - _gradient_epoch(solver, train, *point)
    yield Measure("fall of f in an epoch, over that of gradient steps", "", (before - after) / theirs, at_least=1.0)


def _gradient_epoch(solver: FRSVM, train: Ratings, basis: Floats, users: Floats) -> float:
    """f after a gradient step for U and one for V, each with the best of many step lengths."""
    tasks, features, owners = PairTasks.of(train, 1), train.item_features, train.users

    def value(basis: Floats, users: Floats) -> float:
        scores = np.einsum("rk,rk->r", (features @ basis)[tasks.items], users[owners])
        return solver.C * tasks.at(scores).loss + ((basis**2).sum() + (users**2).sum()) / 2

    def slopes(basis: Floats, users: Floats) -> tuple[Floats, Floats]:
        factors = features @ basis
        scores = np.einsum("rk,rk->r", factors[tasks.items], users[owners])
        pull = tasks.at(scores).slope
        sums, of_users = np.zeros((train.n_items, solver.rank)), np.zeros_like(users)
        np.add.at(sums, tasks.items, pull[:, None] * users[owners])
        np.add.at(of_users, owners, pull[:, None] * factors[tasks.items])
        return basis + solver.C * (features.T @ sums), users + solver.C * of_users

    lengths = 2.0 ** np.arange(-24, 4)
    downhill = slopes(basis, users)[0]
    basis = min((basis - length * downhill for length in lengths), key=lambda moved: value(moved, users))
    downhill = slopes(basis, users)[1]
    return min(value(basis, users - length * downhill) for length in lengths)


def _ml_20m() -> Iterator[Measure]:
    """Epochs at rank 50 on the lookalike of ML-20M, on two cores, and their peak memory."""
    train = Lookalike("ml-20m", features=True).view(np.random.default_rng(0))
    yield from _epochs("the lookalike of ML-20M, rank 50", FRSVM(rank=50, C=0.001), train, 2, 3, 20.0)
    yield Measure("the same, peak memory of the process", "GiB", peak_bytes() / 2**30, 6.0)
