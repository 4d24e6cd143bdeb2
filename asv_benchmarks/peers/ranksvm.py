"""RankSVMs compared with scikit-learn's LinearSVC on listed differences, and `mf` compared with implicit's ALS."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from implicit.als import AlternatingLeastSquares
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits
from turns import Row, Run, in_turns, insist, iterations_of_implicit, per_second

from rankbench.core.contract import Floats, Ints, Solver
from rankbench.data.synthetic import FeatureLowRank, LowRank
from rankbench.data.views import Ratings
from rankbench.methods.peers import counts_of
from rankbench.solvers.mf import MF
from rankbench.solvers.ranksvm_joint import RankSVMJoint
from rankbench.solvers.ranksvm_separate import RankSVMSeparate

_C = 1.0
_AGREEMENT = 1e-6  # relative, of the objectives
_SVC_TOLERANCE = {"separate": 1e-5, "joint": 1e-2}  # the largest powers of ten at which the objectives agree


def ranksvm(repeats: int) -> Iterator[Row]:
    """`ranksvm-separate` and `ranksvm-joint` at Table 2's shape, on one core; then `mf`, sweep by sweep.

    LinearSVC gets the differences of all pairs, and listing them is not timed; rankbench gets the ratings. Both
    reach the same objective to 1e-6, although rankbench stops by a much stricter criterion.
    """
    yield from _svms(repeats)
    yield from _factorizations(repeats)


def _svms(repeats: int) -> Iterator[Row]:
    ratings = FeatureLowRank(users=100, items=4100, per_user=41).view(np.random.default_rng(0))
    rows, tasks = _differences(ratings)
    runs: dict[str, Callable[[], float]] = {
        "LinearSVC, separate": lambda: _svc_by_task(rows, tasks),
        "separate": lambda: _ends_at(RankSVMSeparate(C=_C), ratings),
        "LinearSVC, joint": lambda: _svc(rows, _SVC_TOLERANCE["joint"]),
        "joint": lambda: _ends_at(RankSVMJoint(C=_C), ratings),
    }
    with threadpool_limits(1):
        for name in ("separate", "joint"):
            _check_agreement(name, runs[f"LinearSVC, {name}"](), runs[name]())
        found = in_turns(repeats, {name: per_second(run) for name, run in runs.items()})
    for name in ("separate", "joint"):
        what = f"ranksvm-{name} : LinearSVC, {len(rows)} differences given"
        yield Row(what, "fits/s", 1.0, found[f"LinearSVC, {name}"], found[name])


def _differences(ratings: Ratings) -> tuple[Floats, Ints]:
    """A row per pair: the better item's features minus the worse one's, every other row negated; and the tasks."""
    pairs = ratings.comparisons()
    rows = ratings.item_features[pairs.better] - ratings.item_features[pairs.worse]
    return rows * _signs(len(rows))[:, None], pairs.users


def _signs(n: int) -> Floats:
    return np.where(np.arange(n) % 2, -1.0, 1.0)


def _svc(rows: Floats, tolerance: float, first: int = 0) -> float:
    """The objective that LinearSVC reaches."""
    signs = _signs(first + len(rows))[first:]
    machine = LinearSVC(C=_C, loss="squared_hinge", fit_intercept=False, dual=False, tol=tolerance, max_iter=10_000)
    weights = machine.fit(rows, signs).coef_[0]
    missing = np.maximum(0, 1 - signs * (rows @ weights))
    return float(0.5 * weights @ weights + _C * missing @ missing)


def _svc_by_task(rows: Floats, tasks: Ints) -> float:
    borders = np.flatnonzero(np.diff(tasks, prepend=-1, append=-1))
    return sum(_svc(rows[first:end], _SVC_TOLERANCE["separate"], first) for first, end in pairwise(borders.tolist()))


def _ends_at(solver: Solver, ratings: Ratings) -> float:
    """The objective when the solver stops."""
    *_, step = solver.steps(ratings, np.random.default_rng(0))
    return step.objective()


def _check_agreement(name: str, theirs: float, ours: float) -> None:
    """Exit unless both reach the same objective."""
    print(f"ranksvm-{name} : LinearSVC: objectives {ours:.8g} and {theirs:.8g}, {ours / theirs - 1:+.1e} relative")
    insist(abs(ours / theirs - 1), _AGREEMENT, "objectives")


def _factorizations(repeats: int) -> Iterator[Row]:
    """One sweep over users and items of data in MovieLens 1M's shape, on one core.

    implicit fits every entry of the matrix, with the ratings as confidence, using one Gram matrix for all rows; `mf`
    fits the ratings. The number of products per rating is the same. implicit's conjugate gradients (three per
    row, 32 bits, its default) solve each row approximately, as `mf[inner=3]` does in 64 bits; its Cholesky solver and
    `mf` solve it exactly.
    """
    ratings = LowRank(users=6040, items=3706, per_user=166).view(np.random.default_rng(0))
    for rank in (10, 64):
        runs = {
            "implicit ALS, Cholesky, 64 bits": _implicit(ratings, rank, use_cg=False, dtype=np.float64),
            "implicit ALS, Cholesky, 32 bits": _implicit(ratings, rank, use_cg=False, dtype=np.float32),
            "implicit ALS, conjugate gradients, 32 bits": _implicit(ratings, rank, use_cg=True, dtype=np.float32),
            "mf": _sweeps(ratings, MF(rank=rank)),
            "mf[inner=3]": _sweeps(ratings, MF(rank=rank, inner=3)),
        }
        with threadpool_limits(1):
            found = in_turns(repeats, runs)
        *exact, iterative = list(runs)[:3]
        for peer in exact:
            yield Row(f"rank {rank}: mf : {peer}", "sweeps/s", None, found[peer], found["mf"])
        target = 1.5 if rank == 64 else None
        yield Row(f"rank {rank}: mf[inner=3] : {iterative}", "sweeps/s", target, found[iterative], found["mf[inner=3]"])


def _implicit(ratings: Ratings, rank: int, **settings: object) -> Run:
    """A function that runs one more sweep of implicit at each call, timed by implicit's callback."""
    confidence = replace(ratings, values=1 + ratings.values - ratings.values.min())
    model = AlternatingLeastSquares(
        factors=rank, iterations=1, num_threads=1, random_state=0, use_gpu=False, use_native=True, **settings
    )
    return iterations_of_implicit(model, counts_of(confidence, "ratings", None))


def _sweeps(ratings: Ratings, solver: MF) -> Run:
    """A function that runs one more sweep (two half steps) of a solver at each call."""
    steps = solver.steps(ratings, np.random.default_rng(0))
    next(steps)
    return per_second(lambda: (next(steps), next(steps)))
