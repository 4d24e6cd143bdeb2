"""Updates of one pair per second against implicit's BPR."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse
from implicit.bpr import BayesianPersonalizedRanking
from threadpoolctl import threadpool_limits
from turns import Row, Run, in_turns, seconds

from rankbench.data.synthetic import LowRank
from rankbench.data.views import Comparisons, Ratings
from rankbench.solvers.sgd import SGD


def pair_updates(repeats: int) -> Iterator[Row]:
    """`sgd` on one core against implicit's BPR, on data of MovieLens-1M's shape.

    An epoch of BPR draws as many pairs as there are positives (a drawn negative that the user has rated
    too is skipped, at about one in twenty; skips count as updates here, to the peer's favour); ours gets
    as many comparisons. Epochs are timed alone: by its own callback there, around `next` here.
    """
    ratings = LowRank(users=6040, items=3706, per_user=166).view(np.random.default_rng(0))
    comparisons = ratings.comparisons(166, np.random.default_rng(1))
    for rank in (10, 64):
        peers = {
            "implicit BPR": _bpr_epochs(ratings, rank),
            "implicit BPR, negatives not verified": _bpr_epochs(ratings, rank, verify_negative_samples=False),
            "implicit BPR, 64 bits": _bpr_epochs(ratings, rank, dtype=np.float64),
        }
        ours = {f"sgd {loss}": _sgd_passes(comparisons, SGD(rank, loss=loss)) for loss in ("squared-hinge", "logistic")}
        with threadpool_limits(1):
            found = in_turns(repeats, peers | ours)
        for own in ours:
            for peer in peers:
                yield Row(f"rank {rank}: {own} : {peer}", "pair updates/s", 1.0, found[peer], found[own])


def _bpr_epochs(ratings: Ratings, rank: int, **settings: object) -> Run:
    """One more epoch of one model at each call."""
    columns = ratings.items.copy(), ratings.indptr.astype(np.int32)  # implicit wants them writeable
    positives = scipy.sparse.csr_matrix(
        (np.ones(len(ratings), np.float32), *columns), (ratings.n_users, ratings.n_items)
    )
    model = BayesianPersonalizedRanking(
        factors=rank, iterations=1, num_threads=1, random_state=0, use_gpu=False, **settings
    )

    def run() -> float:
        elapsed: list[float] = []
        model.fit(positives, show_progress=False, callback=lambda _epoch, taken, *_rest: elapsed.append(taken))
        return len(ratings) / elapsed[0]

    return run


def _sgd_passes(comparisons: Comparisons, solver: SGD) -> Run:
    """One more pass of one solver at each call."""
    steps = solver.steps(comparisons, np.random.default_rng(0))
    next(steps)
    return lambda: len(comparisons) / seconds(lambda: next(steps))
