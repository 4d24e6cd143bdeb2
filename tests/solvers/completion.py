"""A slow, dense reference implementation of matrix completion by the nuclear norm."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from scipy.optimize import isotonic_regression

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Floats, Step
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Ratings


def some_ratings() -> Ratings:
    """200 users, 300 items, 40 ratings each on five levels."""
    return LowRank(users=200, items=300, rank=4, per_user=40).view(np.random.default_rng(3))


def last(solver: Any, train: Any, threads: int = 1) -> Step:
    """Where the solver ends by itself."""
    with one_blas_thread():
        for step in solver.steps(train, np.random.default_rng(0), threads):
            found = step
    return found


@one_blas_thread()
def dense_optimum(
    train: Ratings, lam: float, nearest: Callable[[Floats], Floats], steps: int = 250
) -> tuple[float, Floats]:
    """The optimal value of lam |X|_* + 1/2 |nearest(x) - x|^2, x = X at the ratings, and X; with X dense."""
    before = now = np.zeros((train.n_users, train.n_items))
    observed, momentum = (train.users, train.items), 1.0
    for _ in range(steps):
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        moved = now + (momentum - 1) / faster * (now - before)
        target = moved.copy()
        target[observed] = nearest(moved[observed])
        left, values, right = np.linalg.svd(target, full_matrices=False)
        values = np.maximum(values - lam, 0)
        x_new = (left * values) @ right
        momentum = 1.0 if ((moved - x_new) * (x_new - now)).sum() > 0 else faster
        before, now = now, x_new
        if np.linalg.norm(now - before) < 1e-8 * np.linalg.norm(now):
            break
    x = now[observed]
    return float(lam * values.sum() + 0.5 * np.square(nearest(x) - x).sum()), now


def slow_projection(train: Ratings, eps: float = 1.0) -> Callable[[Floats], Floats]:
    """Each user's values onto the blocks of their ratings, by SciPy, after sorting inside the blocks."""

    def nearest(x: Floats) -> Floats:
        out = np.empty_like(x)
        for user in range(train.n_users):
            rows = np.arange(train.indptr[user], train.indptr[user + 1])
            rows = rows[np.lexsort((x[rows], train.values[rows]))]
            margins = eps * np.unique(train.values[rows], return_inverse=True)[1]
            out[rows] = isotonic_regression(x[rows] - margins).x + margins
        return out

    return nearest


def as_matrix(train: Ratings, values: Floats) -> Any:
    """The sparse matrix with these values at the ratings."""
    return scipy.sparse.csr_array((values, train.items, train.indptr), shape=(train.n_users, train.n_items))
