"""Convex solvers compared with scikit-learn on listed differences, and with dense singular value decompositions."""

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits
from turns import Row, compared, in_turns, insist, per_second

from rankbench.core.contract import Floats
from rankbench.data.synthetic import BTL, LowRank
from rankbench.data.views import Comparisons
from rankbench.solvers.convex_erm import ConvexERM
from rankbench.solvers.global_ranking import GlobalRanking

_LAM = 10.0
_AGREEMENT = 1e-6


def convex(repeats: int) -> Iterator[Row]:
    """`global` from comparisons to scores, and an iteration of `convex-erm`, on one core each.

    scikit-learn gets the matrix of differences, which is not timed. Its tolerance is set so that its objective is
    within a relative 1e-6 of rankbench's, which is checked first.
    """
    with threadpool_limits(1):
        yield from _global_rows(repeats)
        yield _convex_row(repeats)


def _global_rows(repeats: int) -> Iterator[Row]:
    ratings = LowRank(users=500, items=600, per_user=40).view(np.random.default_rng(0))
    train = ratings.comparisons()
    rows, signs = _differences(train)
    for loss, makers in _peers().items():
        for name, make in makers.items():
            _check_agreement(train, loss, name, make().fit(rows, signs))
        runs = {name: per_second(lambda make=make: make().fit(rows, signs)) for name, make in makers.items()}
        found = in_turns(repeats, {**runs, "ours": per_second(lambda loss=loss: _solved(train, loss))})
        for name in makers:
            yield Row(f"global {loss} : {name}, {len(train)} comparisons", "fits/s", 1.0, found[name], found["ours"])


def _peers() -> dict[str, dict[str, Callable[[], LogisticRegression | LinearSVC]]]:
    """scikit-learn's solvers for each loss, each with a tolerance at which the objectives agree."""
    plain = {"C": 1 / _LAM, "fit_intercept": False, "max_iter": 10_000}
    return {
        "logistic": {
            "LogisticRegression lbfgs": lambda: LogisticRegression(solver="lbfgs", tol=1e-6, **plain),
            "LogisticRegression newton-cg": lambda: LogisticRegression(solver="newton-cg", tol=1e-5, **plain),
            "LogisticRegression newton-cholesky": lambda: LogisticRegression(
                solver="newton-cholesky", tol=1e-4, **plain
            ),
        },
        "squared-hinge": {"LinearSVC primal": lambda: LinearSVC(loss="squared_hinge", dual=False, tol=1e-3, **plain)},
    }


def _solved(train: Comparisons, loss: str) -> Floats:
    """rankbench's scores, trained until the duality gap is small enough."""
    steps = GlobalRanking(_LAM, loss).steps(train, np.random.default_rng(0))
    step = next(step for step in steps if step.gap() <= _AGREEMENT * step.objective())
    return step.model.scores


def _differences(train: Comparisons) -> tuple[scipy.sparse.csr_matrix, Floats]:
    """A row x_better - x_worse per comparison, every other one negated, because a classifier needs two classes."""
    signs = np.where(np.arange(len(train)) % 2, -1.0, 1.0)
    columns = np.stack([train.better, train.worse], axis=1).ravel()
    values = (signs[:, None] * [1.0, -1.0]).ravel()
    starts = np.arange(0, 2 * len(train) + 1, 2)
    return scipy.sparse.csr_matrix((values, columns, starts), (len(train), train.n_items)), signs


def _check_agreement(train: Comparisons, loss: str, name: str, fitted: LogisticRegression | LinearSVC) -> None:
    """Exit unless both objectives agree."""

    def objective(scores: Floats) -> float:
        margins = scores[train.better] - scores[train.worse]
        losses = np.logaddexp(0, -margins) if loss == "logistic" else np.maximum(0, 1 - margins) ** 2
        return float(losses.sum() + _LAM / 2 * scores @ scores)

    ours, theirs = objective(np.nan_to_num(_solved(train, loss))), objective(fitted.coef_[0])
    print(f"global {loss} : {name}: objective theirs {theirs:.9g}, ours {ours:.9g}")
    insist(abs(ours - theirs) / theirs, _AGREEMENT, "objectives")


def _convex_row(repeats: int) -> Row:
    """A projection of rankbench compared with a projected gradient step on the dense matrix, both after a warm-up."""
    train = BTL(users=800, items=600, comparisons=100).view(np.random.default_rng(0))
    ours = ConvexERM(lam=5.0, corrections=0).steps(train, np.random.default_rng(0))
    dense = _dense_steps(train, float(np.sqrt(5.0 * 800 * 600)))
    next(dense)
    next(islice(ours, 29, None))
    what = "convex-erm, a projection : NumPy on the dense matrix, 800 x 600"
    runs = {"peer": per_second(lambda: next(dense)), "ours": per_second(lambda: next(ours))}
    return compared(repeats, what, "iterations/s", 5.0, **runs)


def _dense_steps(train: Comparisons, radius: float) -> Iterator[Floats]:
    """Projected gradient steps with a full singular value decomposition each, for the logistic loss."""
    scores = np.zeros((train.n_users, train.n_items))
    users, better, worse = train.users, train.better, train.worse
    while True:
        pulls = 1 / (1 + np.exp(scores[users, better] - scores[users, worse]))
        gradient = np.bincount(users * scores.shape[1] + worse, pulls, scores.size)
        gradient -= np.bincount(users * scores.shape[1] + better, pulls, scores.size)
        left, sizes, right = np.linalg.svd(scores - gradient.reshape(scores.shape), full_matrices=False)
        cuts = (np.cumsum(sizes) - radius) / np.arange(1, len(sizes) + 1)
        scores = left * np.maximum(0.0, sizes - max(0.0, cuts.max())) @ right
        yield scores
