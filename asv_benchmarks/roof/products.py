"""Cases of products with ratings and between items, and of steps that are made of them."""

from functools import partial
from typing import Any

import numpy as np
from ready import DOUBLE, Ready, case, drawn_pairs, factors, only_step_of, part, ratings, steps_of, tasks

from rankbench.core.contract import Floats
from rankbench.data.synthetic import BTL
from rankbench.data.views import Ratings
from rankbench.kernels.solvers import frsvm
from rankbench.methods.entries import ComparedEntries, Entries
from rankbench.methods.factors import whole_lanes
from rankbench.methods.pair_tasks import PairTasks
from rankbench.solvers.cofirank import CofiRank, Problem, users_half
from rankbench.solvers.convex_erm import ConvexERM
from rankbench.solvers.ease import EASE
from rankbench.solvers.fm import FM, Machine
from rankbench.solvers.frsvm import item_blocks
from rankbench.solvers.item_knn import ItemKNN
from rankbench.solvers.mf import MF
from rankbench.solvers.rmc import RMC
from rankbench.solvers.smc import SMC

_PROJECTED = "54 instructions and 0.6 mispredicted branches for a rating more than smc, in the projection"
_NEAR = 1 << 16  # numbers that a thread's own cache holds, as in rankbench.solvers.frsvm


@case(
    "mf rank 10",
    "sweep",
    "88 sums in tiles for the 55 that rank 10 needs, of vectors that are gathered first",
    rank=10,
)
@case("mf rank 64", "sweep", rank=64)
def _mf(share: float, rank: int) -> Ready:
    train = ratings(share)
    steps, _ = steps_of(MF(rank=rank), train)
    n, rows = len(train), train.n_users + train.n_items
    counts = {"pyx/methods/als.pyx: ridge": 2 * n, "pyx/methods/als.pyx: ridge by rows": rows}
    return Ready(lambda: (steps(), steps()), 1, counts, {"rank": rank}, 12 * n, DOUBLE * rank * train.n_users)


@case(
    "smc rank 50",
    "step",
    "four tenths of the instructions are those of BLAS's products; the others work on ratings and small matrices",
    solver=SMC(lam=1.0, centred=True, rank=50),
    projects=False,
)
@case("rmc rank 50, with its projection", "step", _PROJECTED, solver=RMC(lam=1.0, rank=50), projects=True)
def _completion(share: float, solver: Any, projects: bool) -> Ready:
    """A step at the largest rank allowed, once it is reached."""
    train = ratings(share)
    call, step = steps_of(solver, train, 6)
    n, rank = len(train), step.model.items.shape[1]
    width = min(rank + 10, solver.rank)
    counts = {
        "pyx/methods/entries.pyx: inner_products": n,
        "pyx/methods/entries.pyx: times": 2 * n,
        "rankbench/methods/completion.py: descend by entries": n,
        "rankbench/methods/completion.py: descend by rows": train.n_users + train.n_items,
    }
    sizes = {"rank": float(whole_lanes(rank)), "width": width}
    if projects:
        counts["pyx/methods/isotonic.pyx: project along blocks"] = n
    return Ready(call, 1, counts, sizes, 12 * n, DOUBLE * width * train.n_users)


@case("ratings times 50 columns", "rating", what="times", width=50)
@case(
    "inner products at ratings, rank 52",
    "rating",
    "101 instructions, of which 36 go with the rank",
    what="inner_products",
    width=52,
)
def _entries(share: float, what: str, width: int) -> Ready:
    """A product of the sparse matrix of ratings with a dense one, or inner products at its entries."""
    train = ratings(share)
    entries = Entries.of(train.indptr, train.items, train.n_items, 1)
    users, items = (np.ones((size, width)) for size in (train.n_users, train.n_items))
    sparse, n = entries.holding(train.values), len(train)
    calls = {"times": lambda: sparse.times(items), "inner_products": lambda: entries.inner_products(users, items)}
    counts, sizes = {f"pyx/methods/entries.pyx: {what}": n}, {"rank": width, "width": width}
    return Ready(calls[what], n, counts, sizes, 12 * n, items.nbytes)


@case(
    "convex-erm projection",
    "step",
    "products with ratings take a third, QR, SVD and the loss another; every ninth step is taken twice",
)
def _convex(share: float) -> Ready:
    """A projected gradient step, without corrections; X has reached its rank by then."""
    train = BTL(users=part(800, share), items=600, comparisons=100).view(np.random.default_rng(0))
    call, step = steps_of(ConvexERM(lam=5.0, corrections=0), train, 30)
    entries, rank = len(ComparedEntries.of(train, 1).entries), step.model.items.shape[1]
    counts = {
        "pyx/methods/entries.pyx: times": 4 * entries,
        "pyx/methods/entries.pyx: inner_products": entries,
        "pyx/methods/entries.pyx: slopes": len(train),
        "rankbench/solvers/convex_erm.py: _decomposed": train.n_users + train.n_items,
    }
    sizes = {"rank": rank, "width": rank + 4}
    return Ready(call, 1, counts, sizes, 12 * entries, DOUBLE * (rank + 4) * train.n_users)


@case(
    "fm rank 10, objective and gradient",
    "comparison",
    "series that fill the processor's queue, and items' sums that are read and written in the second cache",
)
def _fm(share: float) -> Ready:
    """An evaluation of the objective and its gradient, of users and items only."""
    train = drawn_pairs(share)
    compared, settings = ComparedEntries.of(train, 1), FM(rank=10, features="none")
    machine = Machine(settings.lam, settings.loss, compared, None)
    start, entries, width = machine.start(np.random.default_rng(0), 10), len(compared.entries), whole_lanes(11)
    counts = {
        "pyx/methods/entries.pyx: gradients": entries,
        "pyx/methods/entries.pyx: slopes": len(train),
        "rankbench/solvers/fm.py: Machine": train.n_users + train.n_items,
    }
    sizes = {"rank": width, "width": width}
    rows = DOUBLE * width * train.n_items
    return Ready(lambda: machine.objective(start), len(train), counts, sizes, 24 * entries, rows)


@case(
    "ease",
    "fit",
    "LAPACK's inverse takes three quarters of the time, at 45 Gflop/s",
)
def _ease(share: float) -> Ready:
    train = ratings(share)
    met = len(np.unique(train.items))
    counts = {
        "rankbench/solvers/ease.py: steps by products": float((np.diff(train.indptr) ** 2.0).sum()),
        "rankbench/solvers/ease.py: _weights": met,
    }
    return Ready(only_step_of(EASE(), train), 1, counts, {"items": met}, DOUBLE * met**2, DOUBLE * met)


@case("item-knn", "product", "each product is added to a place of its own, and the nearest items are chosen one by one")
def _item_knn(share: float) -> Ready:
    train = ratings(share)
    products = float((np.diff(train.indptr) ** 2.0).sum())
    taken = np.bincount(train.items, minlength=train.n_items)
    others = 1 - (1 - 1 / train.n_items) ** (taken * (166 - 1.0))
    met = float(np.mean(train.n_items * others))
    counts = {
        "pyx/solvers/item_knn.pyx: neighbours by products": products,
        "pyx/solvers/item_knn.pyx: neighbours by items met": met * train.n_items,
    }
    return Ready(only_step_of(ItemKNN(), train), products, counts, {"met": met}, 12 * len(train), 12 * train.n_items)


@case(
    "frsvm rank 10, gradient of U, X = I",
    "rating",
    "a rating reads and writes the sums of its item; the same machine code takes a third longer in some runs",
    rank=10,
)
@case(
    "frsvm rank 64, gradient of U, X = I",
    "rating",
    "a rating reads the vector of its user, 512 bytes that come from the second level of the caches",
    rank=64,
)
def _scatter(share: float, rank: int) -> Ready:
    """The part of U's gradient that goes by ratings: all of it where X = I."""
    train, width = ratings(share), whole_lanes(rank)
    blocks = item_blocks(PairTasks.of(train, 1), train.n_items, width, 1)
    weights, users = np.ones(len(train)), factors(train.n_users, rank)
    out, n = np.empty((train.n_items, width)), len(train)
    counts = {"pyx/solvers/frsvm.pyx: scatter": n}
    call = partial(frsvm.scatter, blocks=blocks, weights=weights, users=users, out=out, threads=1)
    return Ready(call, n, counts, {"rank": width}, 12 * n, DOUBLE * min(_NEAR, width * train.n_items))


@case(
    "frsvm rank 10, gradient of U, features",
    "item",
    "BLAS's product for 12 columns: 45 % of the instructions copy the features into its order",
    rank=10,
)
def _with_features(share: float, rank: int) -> Ready:
    """The part of U's gradient that goes by items: their features times what the ratings have summed up."""
    train, width = tasks(share), whole_lanes(rank)
    n, features = train.item_features.shape
    sums, out = factors(n, rank), np.empty((features, width))
    counts = {"pyx/solvers/frsvm.pyx: transposed_times": n}
    call = partial(frsvm.transposed_times, features=train.item_features, matrix=sums, out=out, threads=1)
    return Ready(call, n, counts, {"rank": width, "features": features}, train.item_features.nbytes)


@case(
    "cofirank rank 10, users' half",
    "rating and plane",
    "a third is weights of planes, of which each step waits for the one before, and copies of items' vectors",
)
def _cofirank_users(share: float) -> Ready:
    """A users' half with a fixed number of planes: no tolerance is reached by then."""
    train, rank, planes = ratings(share), 10, 5
    problem, users, items = _cofirank(train, rank)
    units = planes * len(train)
    counts = {"pyx/solvers/cofirank.pyx: users_half": units}
    own = DOUBLE * rank * len(train) / train.n_users
    return Ready(lambda: users_half(problem, users, items, 1e-300, planes), units, counts, {"rank": rank}, own)


@case(
    "cofirank rank 10, a plane of the items' half",
    "rating",
    "slopes are gathered one by one, in the order of the users",
)
def _cofirank_items(share: float) -> Ready:
    """One look at the losses of all users and their slopes by the items, as each plane of an items' half needs."""
    train, rank = ratings(share), 10
    problem, users, items = _cofirank(train, rank)
    n = len(train)
    counts = {"pyx/solvers/cofirank.pyx: losses": n, "pyx/solvers/cofirank.pyx: item_slopes": n}
    return Ready(
        lambda: problem.item_slopes(problem.losses(users, items)[1], users), n, counts, {"rank": rank}, 40 * n, 8 * n
    )


def _cofirank(train: Ratings, rank: int) -> tuple[Problem, Floats, Floats]:
    """The problem of least squares, and vectors of users and items."""
    settings = CofiRank(rank, loss="regression")
    problem = Problem.of(train, settings.loss, settings.k, settings.lam, 1)
    return problem, factors(train.n_users, rank), factors(train.n_items, rank)
