"""Small data that the tests of several solvers train on."""

from dataclasses import replace

import numpy as np
import scipy.sparse

from rankbench.data.synthetic import BTL, FeatureLowRank, LowRank
from rankbench.data.views import Comparisons, Ratings, View


def few_ratings() -> Ratings:
    """Ratings of 15 users; item 0 and user 14 have none."""
    view = LowRank(users=15, items=11, rank=2, per_user=6).view(np.random.default_rng(1))
    return view.where((view.items > 0) & (view.users != 14))


def few_tasks(form: str, users: int = 8) -> View:
    """Tasks with noise: ratings of few `levels` or `continuous` ones, or `comparisons`; features dense or `sparse`."""
    made = FeatureLowRank(users=users, items=30, features=6, rank=2, per_user=12, noise=0.5)
    view = made.view(np.random.default_rng(1))
    if "continuous" not in form:
        view = replace(view, values=np.round(view.values / 2))
    if "sparse" in form:
        holes = np.random.default_rng(3).random(view.item_features.shape) < 0.5
        view = replace(view, item_features=scipy.sparse.csr_array(np.where(holes, 0.0, view.item_features)))
    return view.comparisons(20, np.random.default_rng(2)) if "comparisons" in form else view


def comparisons_in_halves() -> tuple[Comparisons, Comparisons]:
    """Low-rank comparisons, every other one held out."""
    view = BTL(users=200, items=60, rank=2, comparisons=200, scale=10.0).view(np.random.default_rng(2))
    rows = np.arange(len(view))
    return view.take(rows[::2]), view.take(rows[1::2])
