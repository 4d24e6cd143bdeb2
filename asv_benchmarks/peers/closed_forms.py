"""`mprank`'s closed form for each user compared with a loop over scikit-learn's KernelRidge."""

from collections.abc import Callable, Iterator

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits
from turns import Row, Run, in_turns, insist, per_second

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Floats, Ints
from rankbench.data.synthetic import Magnitudes
from rankbench.data.views import Ratings
from rankbench.kernels.solvers import mprank as mprank_kernel
from rankbench.models import KernelScores
from rankbench.solvers.mprank import MPRank

_C, _WIDTH = 10.0, 1.0
_AGREEMENT = 1e-8


def closed_forms(repeats: int) -> Iterator[Row]:
    """`mprank` with a Gaussian kernel compared with a loop over scikit-learn's KernelRidge on centred sub-kernels.

    First both get the kernel matrix between all items, then each computes its own.
    """
    ratings = Magnitudes(users=300, items=1000, per_user=100).view(np.random.default_rng(0))
    gram = _peer_gram(ratings)
    _check_agreement(ratings, gram)
    for threads in (1, 2):
        found = in_turns(repeats, _closed_form_runs(ratings, gram, threads))
        for reading in ("kernel given", "kernel made"):
            what = f"mprank : KernelRidge loop, {reading}, {threads} thread{'s'[: threads - 1]}"
            target = 10.0 if reading == "kernel given" else None
            yield Row(what, "fits/s", target, found[f"loop, {reading}"], found[f"ours, {reading}"])


def _closed_form_runs(ratings: Ratings, gram: Floats, threads: int) -> dict[str, Run]:
    """The runs to compare; the threads are used by BLAS in the loop, and by the kernel in rankbench (BLAS has one)."""
    return {
        "loop, kernel given": _rate(threads, lambda: ridge_loop(ratings, gram)),
        "ours, kernel given": _rate(1, lambda: mprank_given(ratings, gram, threads)),
        "loop, kernel made": _rate(threads, lambda: ridge_loop(ratings, _peer_gram(ratings))),
        "ours, kernel made": _rate(1, lambda: mprank_whole(ratings, threads)),
    }


def ridge_loop(ratings: Ratings, gram: Floats) -> Floats:
    """Every user's dual coefficients from scikit-learn, in the order of the ratings."""
    coefficients = np.empty(len(ratings))
    for user in range(ratings.n_users):
        rows = slice(ratings.indptr[user], ratings.indptr[user + 1])
        values = ratings.values[rows]
        ridge = KernelRidge(alpha=len(values) / (2 * _C), kernel="precomputed")
        coefficients[rows] = ridge.fit(_centred(gram, ratings.items[rows]), values - values.mean()).dual_coef_
    return coefficients


def _centred(gram: Floats, items: Ints) -> Floats:
    """The centred kernel matrix of these items (features minus their mean)."""
    kernel = gram[np.ix_(items, items)]
    means = kernel.mean(axis=0)
    kernel += means.mean() - means - means[:, None]
    return kernel


def mprank_given(ratings: Ratings, gram: Floats, threads: int) -> KernelScores:
    """The model from rankbench's compiled kernel, with the kernel matrix given."""
    coefficients, offsets = np.zeros(len(ratings)), np.empty(ratings.n_users)
    users = np.arange(ratings.n_users, dtype=np.int32)
    mprank_kernel.dual(
        gram=gram,
        ratings=ratings.rows,
        users=users,
        C=np.full(len(users), _C),
        coefficients=coefficients,
        offsets=offsets,
        threads=threads,
    )
    every = np.arange(len(gram), dtype=np.int32)
    return KernelScores(gram, every, ratings.indptr, ratings.items, coefficients, offsets)


def mprank_whole(ratings: Ratings, threads: int) -> KernelScores:
    """The model from rankbench's solver, from features on."""
    solver = MPRank(C=_C, kernel="gaussian", width=_WIDTH)
    return next(solver.steps(ratings, np.random.default_rng(0), threads)).model


def _peer_gram(ratings: Ratings) -> Floats:
    return rbf_kernel(ratings.item_features, gamma=1 / (2 * _WIDTH**2))


def _rate(blas_threads: int, work: Callable[[], object]) -> Run:
    """A function that measures fits per second with BLAS on this many threads."""
    return threadpool_limits.wrap(limits=blas_threads)(per_second(work))


def _check_agreement(ratings: Ratings, gram: Floats) -> None:
    """Exit unless both give the same scores for the items that each user rated."""
    expected = _ridge_scores(ratings, gram)
    with one_blas_thread():
        models = {"given": mprank_given(ratings, gram, 1), "made": mprank_whole(ratings, 2)}
    for reading, model in models.items():
        difference = np.abs(model.score(ratings.users, ratings.items) - expected).max()
        print(f"mprank : KernelRidge loop, kernel {reading}: largest difference of a score {difference:.1e}")
        insist(difference, _AGREEMENT)


def _ridge_scores(ratings: Ratings, gram: Floats) -> Floats:
    """The scores by scikit-learn's coefficients, with each user's mean rating added."""
    coefficients, scores = ridge_loop(ratings, gram), np.empty(len(ratings))
    for user in range(ratings.n_users):
        rows = slice(ratings.indptr[user], ratings.indptr[user + 1])
        scores[rows] = _centred(gram, ratings.items[rows]) @ coefficients[rows] + ratings.values[rows].mean()
    return scores
