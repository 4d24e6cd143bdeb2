"""RankBoost: the time of a thousand rounds, and the speed compared with listing all pairs."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
from turns import Measure, Row, compared, per_second, seconds

from rankbench.core.contract import Floats
from rankbench.data.views import Ratings
from rankbench.solvers.rankboost import RankBoost

_ROUNDS = 1000
_FEW, _SMALL = 20, 200  # rounds and items of the comparison with listed pairs


def rankboost(repeats: int) -> Iterator[Row | Measure]:
    """1,000 rounds on 10,000 items x 300 features, with few or many feature values; then compared with listed pairs."""
    for what, view in {"five levels": problem(10_000, 300, True), "continuous": problem(10_000, 300, False)}.items():
        took = seconds(lambda view=view: ours(view, _ROUNDS))
        yield Measure(f"rankboost, 1,000 rounds, m = 10,000 x 300, {what}, 1 thread", "s", took, at_most=20.0)
    small = problem(_SMALL, 30, True)
    what = "rankboost : pairs listed in NumPy, m = 200 x 30"
    peer, own = per_second(lambda: listed(small, _FEW), _FEW), per_second(lambda: ours(small, _FEW), _FEW)
    yield compared(repeats, what, "rounds/s", None, peer=peer, ours=own)


def problem(items: int, features: int, levels: bool) -> Ratings:
    """The ratings of one user who rated all items."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((items, features))
    values = np.round(x @ rng.standard_normal(features) / 10 + rng.standard_normal(items))
    x = np.clip(np.round(x + 3), 1, 5) if levels else x
    return Ratings(np.array([0, items]), np.arange(items), values, items, x)


def ours(view: Ratings, rounds: int) -> float:
    """The loss after this many rounds of rankbench."""
    *_, last = islice(RankBoost().steps(view, np.random.default_rng(0)), rounds + 1)
    assert last.objective is not None
    return last.objective()


def listed(view: Ratings, rounds: int) -> float:
    """The loss after this many rounds in NumPy, with a weight for every pair and all thresholds tried."""
    low, high = np.nonzero(view.values[:, None] < view.values[None, :])
    x: Floats = view.item_features
    above = np.column_stack([x[:, f] > cut for f in range(x.shape[1]) for cut in np.unique(x[:, f])[:-1]])
    steps = above[high].astype(np.float64) - above[low]
    weights, loss = np.full(len(low), 1 / len(low)), 1.0
    for _ in range(rounds):
        r = weights @ steps
        best = np.argmax(np.abs(r))
        weights = weights * np.exp(-np.arctanh(r[best]) * steps[:, best])
        loss *= weights.sum()
        weights /= weights.sum()
    return float(loss)
