"""Cases of updates of factors, comparison by comparison."""

from functools import partial

import numpy as np
from ready import DOUBLE, Ready, all_pairs, case, drawn_pairs, factors, ratings, steps_of

from rankbench.distributed.in_process import InProcess
from rankbench.kernels.methods.pairwise import DescentFactors
from rankbench.kernels.solvers import altsvm, robirank, sqlrank
from rankbench.methods.factors import whole_lanes
from rankbench.solvers.altsvm import AltSVM, Machines, Part
from rankbench.solvers.bpr import BPR
from rankbench.solvers.robirank import wishes_of
from rankbench.solvers.sgd import SGD

_DRAWN = "197 instructions, and a record from anywhere in memory"


@case(
    "sgd rank 10",
    "update",
    "138 instructions, of which 70 do not go with the rank: an order, a step size, twelve addresses",
    rank=10,
)
@case("sgd rank 64", "update", "431 instructions, of which 360 go with the rank", rank=64)
def _sgd(share: float, rank: int) -> Ready:
    train, width = drawn_pairs(share), whole_lanes(rank)
    call, _ = steps_of(SGD(rank), train)
    n = len(train)
    counts = {"pyx/solvers/sgd.pyx: serial_pass": n}
    return Ready(call, n, counts, {"rank": width}, 8 * n, DOUBLE * (width + 1) * train.n_items)


@case(
    "bpr rank 10",
    "update",
    "an update waits some 62 cycles for an exponential; drawing and sorting take 11 ns",
    rank=10,
)
@case(
    "bpr rank 64",
    "update",
    "two updates at a time wait some 60 cycles for their products and 62 for their exponentials",
    rank=64,
)
def _bpr(share: float, rank: int) -> Ready:
    train, width = ratings(share), whole_lanes(rank)
    call, _ = steps_of(BPR(rank), train)
    n = len(train)
    counts = {
        "pyx/methods/negatives.pyx: draw_negatives": n,
        "pyx/methods/rotation.pyx: bucket": n,
        "pyx/solvers/sgd.pyx: rounds_pass": n,
    }
    return Ready(call, n, counts, {"rank": width}, 20 * n, DOUBLE * (width + 1) * train.n_items)


def _part(rank: int, schedule: str, share: float) -> Part:
    """All comparisons with their vectors and dual variables, after a round."""
    executor, solver = InProcess(), AltSVM(rank, lam=100.0, schedule=schedule)
    machines = Machines(solver, executor, all_pairs(share), np.random.default_rng(0), 1)
    machines.fit_items()
    machines.fit_users()
    part: Part = executor.ask(_itself, {0: ()})[0]
    return part


def _itself(part: Part) -> Part:
    return part


@case("altsvm rank 10, items", "update", "147 instructions, a third of which go with the rank", rank=10)
@case("altsvm rank 100, items", "update", "595 instructions and 4 mispredicted branches", rank=100)
def _altsvm(share: float, rank: int) -> Ready:
    state = _part(rank, "tournament", share)
    n, width = len(state.train), whole_lanes(rank)
    call = partial(
        altsvm.items_pass,
        box=state.box,
        tasks=state.tasks,
        rounds=state.plan.rounds,
        vectors=state.vectors,
        seed=0,
        atomic=False,
        threads=1,
    )
    counts = {"pyx/solvers/altsvm.pyx: items_pass": n}
    return Ready(call, n, counts, {"rank": width}, state.plan.records.nbytes, state.items.nbytes)


@case("altsvm rank 10, users", "update", "179 instructions, of which 51 go with the rank", rank=10)
@case(
    "altsvm rank 100, users",
    "update",
    "671 instructions, of which 535 go with the rank, and 5 mispredicted branches",
    rank=100,
)
def _altsvm_users(share: float, rank: int) -> Ready:
    state = _part(rank, "tournament", share)
    n, width = len(state.train), whole_lanes(rank)
    call = partial(
        altsvm.users_pass,
        box=state.box,
        comparisons=state.train.rows,
        duals=state.duals,
        vectors=state.vectors,
        passes=1,
        seed=0,
        threads=1,
    )
    counts = {"pyx/solvers/altsvm.pyx: users_pass": n}
    return Ready(call, n, counts, {"rank": width}, 12 * n, state.items.nbytes)


@case("altsvm rank 10, items, random order", "update", _DRAWN, rank=10)
@case("altsvm rank 100, items, random order", "update", _DRAWN, rank=100)
def _altsvm_random(share: float, rank: int) -> Ready:
    state, rng = _part(rank, "random", share), np.random.default_rng(3)
    n, width = len(state.train), whole_lanes(rank)
    call = partial(altsvm.drawn_items_pass, box=state.box, tasks=state.tasks, vectors=state.vectors, rng=rng)
    counts = {"pyx/solvers/altsvm.pyx: drawn_items_pass": n}
    return Ready(call, n, counts, {"rank": width}, state.items.nbytes + state.users.nbytes, state.plan.records.nbytes)


@case(
    "robirank descent, rank 10",
    "update",
    "four users' updates at a time wait some 110 cycles from a margin by way of its power to the vectors",
    rank=10,
)
def _robirank_descent(share: float, rank: int) -> Ready:
    train, width = ratings(share), whole_lanes(rank)
    wishes = wishes_of(train, "rated")
    users, items = factors(train.n_users, rank), factors(train.n_items, rank, 1)
    shrinks = np.full(train.n_users, 1e-3), np.full(train.n_items, 1e-3)
    moved = DescentFactors(
        users=users, items=items, user_shrink=shrinks[0], item_shrink=shrinks[1], step=0.01, decay=1e-6
    )
    order, weights, n = np.arange(train.n_users, dtype=np.int32), np.full(len(wishes), 0.1), len(wishes)
    call = partial(
        robirank.descend,
        factors=moved,
        wishes=wishes.rows,
        weights=weights,
        user_order=order,
        draws=1,
        updates=0.0,
        seed=0,
    )
    counts = {"pyx/solvers/robirank.pyx: descend": n}
    return Ready(call, n, counts, {"rank": width}, 12 * n, DOUBLE * (width + 1) * train.n_items)


@case("robirank closed form, rank 10", "pair", rank=10)
def _robirank_closed(share: float, rank: int) -> Ready:
    train = ratings(share)
    wishes = wishes_of(train, "rated")
    users, items = factors(train.n_users, rank), factors(train.n_items, rank, 1)
    pairs = float(wishes.rivals.sum())
    counts = {
        "pyx/solvers/robirank.pyx: closed_form by pairs": pairs,
        "pyx/solvers/robirank.pyx: closed_form by candidates": len(train),
        "pyx/solvers/robirank.pyx: closed_form by wishes": len(wishes),
    }
    powers = DOUBLE * len(train) / train.n_users
    return Ready(lambda: wishes.close(users, items, 1), pairs, counts, {"rank": users.shape[1]}, powers, items.nbytes)


@case(
    "sqlrank, slopes of lists",
    "entry",
    "86 instructions: the series of two powers and a logarithm, five quotients, and sums that wait for each other",
)
def _lists(share: float) -> Ready:
    train = ratings(share)
    n = len(train)
    losses, slopes, scores = np.empty(train.n_users), np.empty(n), np.random.default_rng(0).standard_normal(n)
    given = {"indptr": train.indptr, "scores": scores, "losses": losses, "slopes": slopes}
    call = partial(sqlrank.list_slopes, **given, sigmoid=True, threads=1)
    return Ready(call, n, {"pyx/solvers/sqlrank.pyx: list_slopes": n}, {}, 24 * n)
