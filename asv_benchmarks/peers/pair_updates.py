"""Pair updates per second of `sgd` compared with BPR in implicit and cornac, and on two threads compared with one."""

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
from cornac.models import BPR
from implicit.bpr import BayesianPersonalizedRanking
from threadpoolctl import threadpool_limits
from turns import Row, Run, in_turns, iterations_of_implicit, per_second

from rankbench.core.packages import missing
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Comparisons, Ratings
from rankbench.methods.peers import cornac_data, counts_of
from rankbench.solvers.sgd import SGD


def pair_updates(repeats: int) -> Iterator[Row]:
    """`sgd` on one core compared with BPR, on data in MovieLens 1M's shape; then its schedules on two cores.

    An epoch of BPR draws as many pairs as there are positives. A drawn negative that the user has rated, too, is
    skipped (about one in twenty); skips are counted as updates, in favour of BPR. `sgd` gets as many comparisons.
    Only epochs are timed: by implicit's callback, around cornac's method for an epoch, and around `next` of `sgd`.
    By default cornac uses 32 bits and a bias per item.
    """
    ratings = LowRank(users=6040, items=3706, per_user=166).view(np.random.default_rng(0))
    comparisons = ratings.comparisons(166, np.random.default_rng(1))
    for rank in (10, 32, 64):
        peers = {
            "cornac BPR": _cornac_epochs(ratings, rank),
            "cornac BPR, no biases": _cornac_epochs(ratings, rank, use_bias=False),
            "cornac BPR, 64 bits": _cornac_epochs(ratings, rank, np.float64),
            "implicit BPR": _bpr_epochs(ratings, rank),
            "implicit BPR, negatives not verified": _bpr_epochs(ratings, rank, verify_negative_samples=False),
            "implicit BPR, 64 bits": _bpr_epochs(ratings, rank, dtype=np.float64),
        }
        solvers = {f"sgd {loss}": SGD(rank, loss=loss) for loss in ("squared-hinge", "logistic")}
        solvers["sgd squared-hinge, 32 bits"] = SGD(rank, precision="single")
        ours = {name: _sgd_passes(comparisons, solver) for name, solver in solvers.items()}
        with threadpool_limits(1):
            found = in_turns(repeats, peers | ours)
        for own in ours:
            for peer in peers:
                target = 1.5 if peer == "cornac BPR" and own == "sgd squared-hinge" else 1.0
                yield Row(f"rank {rank}: {own} : {peer}", "pair updates/s", target, found[peer], found[own])
    yield from _two_threads(ratings.comparisons(600, np.random.default_rng(1)), repeats)


def _two_threads(comparisons: Comparisons, repeats: int) -> Iterator[Row]:
    """Each parallel schedule: two threads compared with one, and one thread compared with the serial schedule."""
    for rank in (10, 64):
        schedules = (SGD(rank, schedule=name) for name in ("tournament", "nomad", "hogwild"))
        solvers = {solver.schedule: solver for solver in schedules if missing(solver) is None}
        runs = {
            f"{name} on {n}": _sgd_passes(comparisons, solver, n) for name, solver in solvers.items() for n in (1, 2)
        }
        found = in_turns(repeats, {"serial": _sgd_passes(comparisons, SGD(rank)), **runs})
        for name in solvers:
            one, two = found[f"{name} on 1"], found[f"{name} on 2"]
            target = 1.6 if name == "tournament" else None
            yield Row(f"rank {rank}: sgd {name}, 2 threads : 1", "pair updates/s", target, one, two)
            yield Row(f"rank {rank}: sgd {name} : serial, 1 thread", "pair updates/s", None, found["serial"], one)


class _Timed(BPR):
    """Cornac's BPR with each epoch timed."""

    elapsed = 0.0

    def _fit_sgd(self, *arguments: object) -> Any:
        start = perf_counter()
        found = super()._fit_sgd(*arguments)
        self.elapsed = perf_counter() - start
        return found


def _cornac_epochs(ratings: Ratings, rank: int, dtype: type = np.float32, **settings: object) -> Run:
    """A function that runs one more epoch of cornac's BPR at each call."""
    positives, rng = cornac_data(ratings, np.ones(len(ratings))), np.random.default_rng(0)
    sizes = {"U": ratings.n_users, "V": ratings.n_items}
    start = {name: ((rng.random((size, rank)) - 0.5) / rank).astype(dtype) for name, size in sizes.items()}
    start["Bi"] = np.zeros(ratings.n_items, dtype)
    model = _Timed(k=rank, max_iter=1, num_threads=1, learning_rate=0.05, init_params=start, **settings)

    def run() -> float:
        model.fit(positives)
        return len(ratings) / model.elapsed

    return run


def _bpr_epochs(ratings: Ratings, rank: int, **settings: object) -> Run:
    """A function that runs one more epoch of implicit's BPR at each call."""
    model = BayesianPersonalizedRanking(
        factors=rank, iterations=1, num_threads=1, random_state=0, use_gpu=False, **settings
    )
    return iterations_of_implicit(model, counts_of(ratings, "binary", None), len(ratings))


def _sgd_passes(comparisons: Comparisons, solver: SGD, threads: int = 1) -> Run:
    """A function that runs one more pass of a solver at each call."""
    steps = solver.steps(comparisons, np.random.default_rng(0), threads)
    next(steps)
    return per_second(lambda: next(steps), len(comparisons))
