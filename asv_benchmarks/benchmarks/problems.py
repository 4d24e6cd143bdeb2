"""The small training problems for benchmarks of whole solvers, the same for every commit."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rankbench.core.errors import UserError
from rankbench.data.splits import Split, split
from rankbench.data.synthetic import BTL, FeatureLowRank, LowRank, Magnitudes
from rankbench.solvers import SOLVERS


@dataclass(frozen=True)
class Problem:
    """A solver on a split of a data set, with its number of steps and the held-out error to reach."""

    solver: str
    steps: int
    error: float
    data: Any
    split: str
    comparisons: int | None = None  # training comparisons per user; None: train on the split's ratings


_FACTORS = LowRank(users=1000, items=400, per_user=80)
_of_ratings = partial(Problem, data=_FACTORS, split="n-per-user[n=40]")
_of_comparisons = partial(_of_ratings, comparisons=100)
_of_features = partial(  # tasks that share a few functions of the items' features
    Problem,
    data=FeatureLowRank(users=300, items=1000, features=30, rank=5, per_user=60),
    split="items-per-task[n=30,test=20]",
)
_of_magnitudes = partial(  # ratings that are functions of the items' features, separately for each user
    Problem, data=Magnitudes(users=300, items=500, per_user=100), split="n-per-user[n=50]"
)
PROBLEMS = {
    "sgd": _of_comparisons("sgd[rank=10,lam=1,step=0.02]", 20, 0.13),
    "altsvm": _of_comparisons("altsvm[rank=10,lam=30]", 20, 0.1),
    "convex-erm": _of_comparisons("convex-erm[lam=1]", 10, 0.1),
    "lcr": _of_comparisons("lcr[rank=5,lam=30]", 10, 0.12),
    "global": Problem(
        "global[lam=1,loss=logistic]", 20, 0.2, BTL(users=1, items=1000, comparisons=60_000), "entries[test=0.2]"
    ),
    "bpr": _of_ratings("bpr[least=4]", 10, 0.4),
    "robirank": _of_ratings("robirank[rank=5]", 10, 0.12),
    "mf": _of_ratings("mf[rank=5,lam=3]", 10, 0.09),
    "item-knn": _of_ratings("item-knn[neighbours=100,values=centred]", 1, 0.15),
    "ease": _of_ratings("ease[values=centred]", 1, 0.3),
    "rmc": _of_ratings("rmc[lam=10]", 20, 0.085),
    "smc": _of_ratings("smc[lam=10]", 20, 0.1),
    "cofirank": _of_ratings("cofirank[loss=regression,rank=5]", 4, 0.25),
    "frsvm": _of_features("frsvm[rank=5,C=0.1]", 10, 0.01),
    "ranksvm-joint": _of_features("ranksvm-joint[C=0.01]", 10, 0.4915),
    "ranksvm-separate": _of_features("ranksvm-separate[C=0.1]", 10, 0.145),
    "ranksvm-var": _of_features("ranksvm-var[C=0.1]", 10, 0.145),
    "ranksvm-nuclear": _of_features("ranksvm-nuclear[C=0.03]", 10, 0.04),
    "imc": _of_features("imc[rank=5,lam=1]", 10, 0.025),
    "mprank": _of_magnitudes("mprank[kernel=gaussian,C=10,width=1]", 1, 0.27),
    "svrank": _of_magnitudes("svrank[kernel=gaussian,C=30,width=1]", 20, 0.27),
    "rankboost": _of_magnitudes("rankboost", 50, 0.295),
}


def solver(problem: Problem) -> Any:
    """The problem's solver; NotImplementedError, which asv skips, at a commit without this solver."""
    try:
        return SOLVERS.make(problem.solver)
    except UserError as error:
        raise NotImplementedError(str(error)) from None


def parts(problem: Problem) -> Split:
    """The training and held-out parts of the problem."""
    halves = split(problem.data.view(np.random.default_rng(0)), problem.split, seed=0)
    if problem.comparisons is None:
        return halves
    return Split(halves.train.comparisons(problem.comparisons, np.random.default_rng(1)), halves.test)
