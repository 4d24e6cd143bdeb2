"""The time to fit one user whom a model was not trained on, and L-BFGS of SciPy on the same objective beside it.

The catalogue has as many items as MovieLens 100K, and the user as many ratings as its median user. Both minimise the
same function of the user's vector; SciPy's is of single users with NumPy, from zero on, as far as its line search goes.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import numpy as np
import scipy.optimize
from scipy.special import expit, logsumexp
from turns import Measure, Row, compared, per_second, seconds

from rankbench.core.contract import Floats, Ints
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Ratings, offer
from rankbench.solvers import SOLVERS

_RANK, _RATINGS, _LIMIT = 64, 65, 1.0  # milliseconds
_SOLVERS = (
    "mf", "ials", "sgd", "altsvm", "frsvm[features=none]", "bpr", "fm[features=none]", "softmax", "cofirank",
    "smc[share=0.02]", "rmc[share=0.02]", "robirank", "sqlrank",
)  # fmt: skip

Objective = Callable[[Floats], tuple[float, Floats]]


def newcomers(repeats: int) -> Iterator[Row | Measure]:
    """Milliseconds for a user by each solver, and those of `bpr` and `softmax` beside SciPy's."""
    data = LowRank(users=943, items=1682, per_user=_RATINGS, rank=8).view(np.random.default_rng(0))
    one = Ratings(data.indptr[:2], data.items[:_RATINGS], data.values[:_RATINGS], data.n_items)
    for name in _SOLVERS:
        solver = SOLVERS.make(name.replace("]", f",rank={_RANK}]") if "[" in name else f"{name}[rank={_RANK}]")
        *_, step = islice(solver.steps(offer(solver, data), np.random.default_rng(0), 2), 5)
        ours = partial(solver.fold_in, step.model, one)
        times = [seconds(ours) for _ in range(10 * repeats)]
        what = f"fold_in of {name}: {_RATINGS} ratings, {data.n_items:,} items, rank {_RANK}"
        yield Measure(what, "ms", 1e3 * float(np.median(times)), at_most=_LIMIT)
        if name in _OBJECTIVES:
            theirs = _fitted(_OBJECTIVES[name](solver.lam, step.model.items, one.items))
            runs = {"peer": per_second(theirs), "ours": per_second(ours)}
            yield compared(repeats, f"fold_in of {name} : L-BFGS of SciPy", "users / s", 1.0, **runs)


def _fitted(objective: Objective) -> Callable[[], object]:
    options = {"ftol": 1e-16, "gtol": 1e-9, "maxiter": 1000}
    return lambda: scipy.optimize.minimize(objective, np.zeros(_RANK), jac=True, method="L-BFGS-B", options=options)


def _bpr(lam: float, items: Floats, own: Ints) -> Objective:
    """The mean logistic loss over all pairs of one of these items and another one."""
    positives, others = items[own], np.delete(items, own, axis=0)

    def objective(x: Floats) -> tuple[float, Floats]:
        margins = np.subtract.outer(positives @ x, others @ x)
        slopes = expit(-margins) / margins.size
        gradient = slopes.sum(axis=0) @ others - slopes.sum(axis=1) @ positives
        return float(np.logaddexp(0, -margins).mean() + lam / 2 * x @ x), gradient + lam * x

    return objective


def _softmax(lam: float, items: Floats, own: Ints) -> Objective:
    """The mean of -ln of the chance of these items."""
    vectors, numbers, mean = items[:, :-1], items[:, -1], items[own].mean(axis=0)

    def objective(x: Floats) -> tuple[float, Floats]:
        scores = vectors @ x + numbers
        whole = logsumexp(scores)
        value = whole - mean[:-1] @ x - mean[-1] + lam / 2 * x @ x
        return float(value), np.exp(scores - whole) @ vectors - mean[:-1] + lam * x

    return objective


_OBJECTIVES = {"bpr": _bpr, "softmax": _softmax}
