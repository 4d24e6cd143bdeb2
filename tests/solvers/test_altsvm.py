"""AltSVM compared with LIBLINEAR and L-BFGS, its certificates, and its quality."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from helpers import padding
from sklearn.svm import LinearSVC
from solvers.contract import InParts, SolverContract
from solvers.problems import comparisons_in_halves

from rankbench.core.contract import Determinism, Floats, Int32s, Int64s, Records, Step
from rankbench.core.errors import UserError
from rankbench.data.synthetic import BTL
from rankbench.data.views import Comparisons
from rankbench.distributed.in_process import InProcess
from rankbench.execution.training import fit
from rankbench.kernels.solvers import altsvm as kernel
from rankbench.methods import schedules
from rankbench.metrics import evaluate
from rankbench.solvers import altsvm
from rankbench.solvers.altsvm import AltSVM, Machines, Part, item_groups

LOSSES = {
    "squared-hinge": lambda margin: np.maximum(0, 1 - margin) ** 2,
    "hinge": lambda margin: np.maximum(0, 1 - margin),
    "smooth-hinge": lambda margin: np.where(margin < 0, 0.5 - margin, np.maximum(0, 1 - margin) ** 2 / 2),
}
SCHEDULES = ("tournament", "partitioned", "hogwild", "atomic", "random")
each_loss = pytest.mark.parametrize("loss", ["squared-hinge", "hinge"])
every_loss = pytest.mark.parametrize("loss", list(LOSSES))
each_schedule = pytest.mark.parametrize("schedule", SCHEDULES)


class TestAltSVM(SolverContract):
    solver = AltSVM(rank=3, lam=0.5)


class TestAltSVMWithHingeLoss(SolverContract):
    solver = AltSVM(rank=2, lam=0.5, loss="hinge", inner=2, groups=5)


class TestAltSVMPartitioned(SolverContract):
    solver = AltSVM(rank=3, lam=0.5, schedule="partitioned", groups=4)


class TestAltSVMHogwild(SolverContract):
    solver = AltSVM(rank=3, lam=0.5, schedule="hogwild")


class TestAltSVMAtomic(SolverContract):
    solver = AltSVM(rank=3, lam=0.5, schedule="atomic")


class TestAltSVMRandom(SolverContract):
    solver = AltSVM(rank=3, lam=0.5, schedule="random")


class TestAltSVMInParts(InParts, SolverContract):
    solver = AltSVM(rank=3, lam=0.5, partitions=2)


@pytest.mark.trust
class TestAltSVMInPartsWithHingeLoss(InParts, SolverContract):
    solver = AltSVM(rank=2, lam=0.5, loss="hinge", inner=2, groups=5, partitions=2)


class TestAltSVMInPartsRandom(InParts, SolverContract):
    solver = AltSVM(rank=3, lam=0.5, schedule="random", partitions=2)


halves = pytest.fixture(comparisons_in_halves)


@pytest.fixture
def train() -> Comparisons:
    return BTL(users=15, items=12, comparisons=20).view(np.random.default_rng(1))


def run(solver: AltSVM, train: Comparisons, steps: int, threads: int = 1) -> Iterator[Step]:
    return islice(solver.steps(train, np.random.default_rng(0), threads), steps)


def started(solver: AltSVM, train: Comparisons) -> Machines:
    """The start of a fit in this process."""
    return Machines(solver, InProcess(), train, np.random.default_rng(0), 1)


def users_of(machines: Machines) -> Floats:
    return machines.model().gathered().users


class Half(NamedTuple):
    """Where a half has left both sides."""

    users: Floats
    items: Floats
    objective: float
    gap: float  # of the half alone


def course(solver: AltSVM, train: Comparisons) -> Iterator[Half]:
    """The start, whose gap is not a number, then the halves that `steps` runs through, each with its certificate."""
    machines = started(solver, train)

    def now(gap: float) -> Half:
        model = machines.model().gathered()
        return Half(model.users.copy(), model.items.copy(), machines.objective(), gap)

    yield now(np.nan)
    while True:
        machines.fit_items()
        yield now(machines.gap("items"))
        machines.fit_users()
        yield now(machines.gap("users"))


def factors(step: Step) -> tuple[Floats, Floats]:
    """A copy of what the step lends."""
    return step.model.users.copy(), step.model.items.copy()


def objective(users: Floats, items: Floats, train: Comparisons, solver: AltSVM) -> float:
    margins = np.sum(users[train.users] * (items[train.better] - items[train.worse]), axis=1)
    size = np.nansum(np.square(users)) + np.nansum(np.square(items))
    return float(LOSSES[solver.loss](margins).sum() + solver.lam / 2 * size)


# a half against LIBLINEAR, which lacks the smooth hinge, and L-BFGS


def item_examples(train: Comparisons, users: Floats) -> Any:
    """u_i in the block of the better item and -u_i in that of the worse one."""
    rank, n = users.shape[1], len(train)
    rows = np.repeat(np.arange(n), rank)
    own = users[train.users]
    columns = [side[:, None] * rank + np.arange(rank) for side in (train.better, train.worse)]
    parts = [(own.ravel(), (rows, columns[0].ravel())), (-own.ravel(), (rows, columns[1].ravel()))]
    shape = n, train.n_items * rank
    return sum(scipy.sparse.coo_array(part, shape).tocsr() for part in parts)


def least(examples: Any, solver: AltSVM) -> float:
    """The least lam/2 |w|^2 + sum L(w . x)."""
    return lbfgs(examples, solver) if solver.loss == "smooth-hinge" else liblinear(examples, solver)


def lbfgs(examples: Any, solver: AltSVM) -> float:
    """The least of that with the smooth hinge."""

    def value_and_slope(w: Floats) -> tuple[float, Floats]:
        margins = examples @ w
        value = LOSSES["smooth-hinge"](margins).sum() + solver.lam / 2 * w @ w
        return value, examples.T @ -np.clip(1 - margins, 0, 1) + solver.lam * w

    start = np.zeros(examples.shape[1])
    tight = {"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-9}
    return float(scipy.optimize.minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=tight).fun)


def liblinear(examples: Any, solver: AltSVM) -> float:
    """lam times the least 1/2 |w|^2 + C sum L(w . x), half of the examples turned round as the other class."""
    signs = np.where(np.arange(examples.shape[0]) % 2, 1.0, -1.0)
    turned = scipy.sparse.csr_matrix(examples.multiply(signs[:, None]))
    turned.indices, turned.indptr = turned.indices.astype(np.int32), turned.indptr.astype(np.int32)
    svm = LinearSVC(
        C=1 / solver.lam, loss=solver.loss.replace("-", "_"), fit_intercept=False, tol=1e-9, max_iter=10**6, dual=True
    )
    w = svm.fit(turned, signs).coef_.ravel()
    return float(LOSSES[solver.loss](examples @ w).sum() + solver.lam / 2 * w @ w)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "schedule"),
    [
        *product(["squared-hinge", "hinge"], ["tournament", "partitioned", "random", "atomic"]),
        ("smooth-hinge", "tournament"),
    ],
)
@pytest.mark.parametrize("lam", [0.5, 30.0])
def test_with_users_fixed_the_items_half_ends_where_another_solver_does(loss, schedule, lam, train):
    solver = AltSVM(rank=3, lam=lam, loss=loss, inner=4000, schedule=schedule, groups=4)
    begin, half = islice(course(solver, train), 2)
    users = begin.users
    np.testing.assert_array_equal(half.users, users)
    own = half.objective - lam / 2 * np.square(users).sum()
    assert 0 <= half.gap + 1e-9 * own < 1e-6 * own
    assert own == pytest.approx(least(item_examples(train, users), solver), rel=1e-6)


@pytest.mark.slow
@every_loss
@pytest.mark.parametrize("lam", [0.5, 30.0])
def test_with_items_fixed_every_user_ends_where_another_solver_does(loss, lam, train):
    solver = AltSVM(rank=3, lam=lam, loss=loss, inner=4000)
    _, (_, items, *_), (users, same, value, gap) = islice(course(solver, train), 3)
    np.testing.assert_array_equal(items, same)
    value -= lam / 2 * np.nansum(np.square(items))
    assert 0 <= gap + 1e-9 * value < 1e-6 * value
    differences = items[train.better] - items[train.worse]
    for first, end in pairwise(train.indptr):
        user = train.users[first]
        best = least(scipy.sparse.csr_array(differences[first:end]), solver)
        margins = differences[first:end] @ users[user]
        assert LOSSES[loss](margins).sum() + lam / 2 * np.square(users[user]).sum() == pytest.approx(best, rel=1e-6)


@each_loss
@each_schedule
def test_the_gap_of_a_half_is_never_below_its_distance_from_the_best(loss, schedule, train):
    """Warm duals, a single pass: the optimum of each half is found by solving it again, to the end."""
    solver = AltSVM(rank=2, lam=3.0, loss=loss, schedule=schedule)
    for before, half in islice(pairwise(course(solver, train)), 0, 6, 2):
        own = half.objective - 1.5 * np.square(before.users).sum()
        distance = own - liblinear(item_examples(train, before.users), solver)
        assert distance <= half.gap * (1 + 1e-6)
        assert half.gap < 30 * max(distance, 1e-3 * own)  # and not beyond all measure


@every_loss
def test_one_comparison_takes_one_update(loss):
    train = Comparisons([0, 1], [1], [0], 2)
    for half in islice(course(AltSVM(rank=2, lam=0.7, loss=loss), train), 1, 6):
        assert half.gap == pytest.approx(0, abs=1e-6 * half.objective)


@each_schedule
def test_the_halves_are_those_that_a_run_goes_through(schedule, train):
    solver = AltSVM(rank=2, lam=3, schedule=schedule)
    for half, step in zip(course(solver, train), run(solver, train, 5), strict=False):
        assert [half.users.tobytes(), half.items.tobytes()] == [side.tobytes() for side in factors(step)]


# duals and vectors


def arranged(train: Comparisons, user_order: Int32s, groups: Int32s, pair_of: Int32s) -> tuple[Records, Int64s]:
    """The records by task, and where each task starts."""
    return kernel.records_of(
        comparisons=train.rows,
        user_order=user_order,
        item_group=groups,
        pair_of=pair_of,
        n_tasks=int(pair_of.max()) + 1,
    )


def test_a_comparison_takes_28_bytes():
    view, dual, record = 2 * np.dtype(np.int32).itemsize, np.dtype(np.float32).itemsize, kernel.RECORD.itemsize
    assert view + dual + record == 28


def in_eight_lanes(terms: Floats) -> float:
    """Their sum as the kernels add it up: the terms k, k + 8, k + 16, ... of each lane in order, then the lanes."""
    lanes = [0.0] * 8
    for k, term in enumerate(terms):
        lanes[k % 8] += term
    a, b, c, d = (lanes[k] + lanes[k + 4] for k in range(4))
    return (a + b) + (c + d)


@pytest.mark.parametrize("rank", [4, 8, 12, 16, 20, 24, 100])
@pytest.mark.parametrize("side", ["items", "users"])
def test_margins_are_summed_in_eight_lanes(rank, side):
    """Two large terms cancel, and those added between them are rounded away: in another order, others would be."""
    rng, train = np.random.default_rng(rank), Comparisons([0, 1], [1], [0], 2)
    for _ in range(20):
        users, items = rng.standard_normal((1, rank)), np.stack([np.zeros(rank), np.ones(rank)])
        users[0, rng.choice(rank, 2, replace=False)] = 2.0**50, -(2.0**50)
        box, duals = kernel.Box(ridge=0, upper=np.inf), np.zeros(1, np.float32)
        u, difference = users[0].copy(), items[1]
        records, starts = arranged(train, np.zeros(1, np.int32), np.zeros(2, np.int32), np.zeros((1, 1), np.int32))
        tasks, vectors = kernel.TaskRecords(records=records, starts=starts), kernel.Vectors(users=users, items=items)
        margin = in_eight_lanes(u * difference)
        if side == "items":
            kernel.drawn_items_pass(box=box, tasks=tasks, vectors=vectors, rng=rng)
            found, square = records["dual"][0], 2 * in_eight_lanes(u**2)
        else:
            kernel.drawn_users_pass(box=box, tasks=tasks, duals=duals, vectors=vectors, rng=rng)
            found, square = duals[0], in_eight_lanes(difference**2)
        assert found == np.float32(max((1 - margin) * (1 / square), 0))


@pytest.mark.parametrize("n", [1, 31, 32, 33, 100])
@pytest.mark.parametrize("half", ["items", "users"])
def test_a_pass_in_random_order_draws_as_many_comparisons_as_there_are(n, half):
    """NumPy draws 32-bit integers in the same way, so that afterwards both generators are in the same state."""
    train = BTL(users=1, items=12, comparisons=n).view(np.random.default_rng(1))
    records, starts = arranged(train, np.zeros(1, np.int32), np.zeros(12, np.int32), np.zeros((1, 1), np.int32))
    tasks = kernel.TaskRecords(records=records, starts=starts)
    vectors = kernel.Vectors(users=np.ones((1, 4)), items=np.ones((12, 4)))
    rng, other = np.random.default_rng(5), np.random.default_rng(5)
    more = {} if half == "items" else {"duals": np.zeros(n, np.float32)}
    drawn = kernel.drawn_items_pass if half == "items" else kernel.drawn_users_pass
    drawn(box=kernel.Box(ridge=0.5, upper=np.inf), tasks=tasks, vectors=vectors, rng=rng, **more)
    seen = np.unique(other.integers(0, n, n, dtype=np.uint32)) if n > 1 else [0]
    assert rng.bit_generator.state == other.bit_generator.state or n == 1
    duals = records["dual"] if half == "items" else more["duals"]
    assert set(np.flatnonzero(duals)) <= set(seen) and duals[seen[0]] != 0


@pytest.mark.parametrize(("schedule", "threads"), [("tournament", 3), ("atomic", 3), ("random", 1), ("hogwild", 1)])
@pytest.mark.parametrize("rank", [1, 2, 5])
def test_the_items_are_the_sum_of_their_examples_by_their_duals(schedule, threads, rank, train):
    """No addition is lost: what V moved by is what its duals moved by."""
    rng, lanes = np.random.default_rng(3), -(-rank // 4) * 4
    users, items = np.zeros((train.n_users, lanes)), np.zeros((train.n_items, lanes))
    users[:, :rank] = rng.standard_normal((train.n_users, rank))
    order, one_group = rng.permutation(train.n_users).astype(np.int32), np.zeros(train.n_items, np.int32)
    if schedule == "tournament":
        ends = np.cumsum([0, *map(len, schedules.rounds(4))])
        records, starts = arranged(train, order, item_groups(train, schedule, 4), schedules.tasks(4))
        rounds = np.stack([ends[:-1], ends[1:]], axis=1)
    else:
        records, _ = arranged(train, order, one_group, np.zeros((1, 1), np.int32))
        starts, rounds = np.arange(0, len(train) + 1, 20), np.array([[0, len(train) // 20]])
    box, vectors = kernel.Box(ridge=0.5, upper=np.inf), kernel.Vectors(users=users, items=items)
    tasks = kernel.TaskRecords(records=records, starts=starts)
    for seed in range(5):
        if schedule == "random":
            kernel.drawn_items_pass(box=box, tasks=tasks, vectors=vectors, rng=rng)
        else:
            kernel.items_pass(
                box=box,
                tasks=tasks,
                rounds=rounds,
                vectors=vectors,
                seed=seed,
                atomic=schedule == "atomic",
                threads=threads,
            )
    expected = np.zeros_like(items)
    moves = records["dual"][:, None].astype(float) * users[records["user"]]
    np.add.at(expected, records["better"], moves)
    np.subtract.at(expected, records["worse"], moves)
    np.testing.assert_allclose(items, expected, rtol=1e-9, atol=1e-12)
    assert (records["dual"] > 0).mean() > 0.5
    rebuilt = np.zeros_like(items)
    vectors = kernel.Vectors(users=users, items=rebuilt)
    sums = kernel.items_from_duals(tasks=tasks, rounds=rounds, vectors=vectors, threads=1)
    np.testing.assert_allclose(rebuilt, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(sums.sum(axis=0), kernel.sums(duals=records["dual"]), rtol=1e-12)


def test_atomic_additions_of_two_threads_to_the_same_items_are_never_lost():
    """Two tasks of one round have the same two items, 200,000 times: without atomic additions some would be lost."""
    rng, n = np.random.default_rng(0), 400_000
    records = np.zeros(n, kernel.RECORD)
    records["user"], records["better"] = rng.integers(100, size=n), 1
    users, items = rng.standard_normal((100, 4)), np.zeros((2, 4))
    kernel.items_pass(
        box=kernel.Box(ridge=0.5, upper=np.inf),
        tasks=kernel.TaskRecords(records=records, starts=np.array([0, n // 2, n])),
        rounds=np.array([[0, 2]]),
        vectors=kernel.Vectors(users=users, items=items),
        seed=0,
        atomic=True,
        threads=2,
    )
    moves = records["dual"].astype(float) @ users[records["user"]]
    np.testing.assert_allclose(items, [-moves, moves], rtol=1e-9)


@pytest.mark.parametrize("schedule", ["tournament", "partitioned"])
@pytest.mark.parametrize("groups", [1, 2, 5, 8])
def test_every_comparison_has_one_record_and_no_two_tasks_of_a_round_share_an_item(schedule, groups, halves):
    train = halves[0]
    order = np.random.default_rng(0).permutation(train.n_users).astype(np.int32)
    records, starts = arranged(train, order, item_groups(train, schedule, groups), schedules.tasks(groups))
    listed = np.stack([records[name] for name in ("user", "better", "worse")])
    expected = np.stack([train.users, train.better, train.worse])
    np.testing.assert_array_equal(listed[:, np.lexsort(listed)], expected[:, np.lexsort(expected)])
    first = 0
    for meets in schedules.rounds(groups):
        items = [
            set(records["better"][starts[task] : starts[task + 1]])
            | set(records["worse"][starts[task] : starts[task + 1]])
            for task in range(first, first + len(meets))
        ]
        assert sum(map(len, items)) == len(set().union(*items))
        first += len(meets)
    assert first == len(starts) - 1


def test_within_a_task_a_user_comes_once(halves):
    train = halves[0]
    order = np.arange(train.n_users, dtype=np.int32)[::-1].copy()
    records, starts = arranged(train, order, item_groups(train, "tournament", 4), schedules.tasks(4))
    for first, end in pairwise(starts):
        assert (np.diff(records["user"][first:end]) <= 0).all()


@pytest.mark.parametrize("upper", [np.inf, 3.0])
@pytest.mark.parametrize("best", [2.0**-9, 0.3, 0.8, 1.0, 1.3, 5.0, 2.0**12])
def test_duals_are_scaled_by_a_power_of_two_next_to_the_best(best, upper):
    """t minimises t^2/2 (size + ridge square) - t linear; where there is an upper end they may only shrink."""
    linear, square, ridge = 5.0, 4.0, 0.25
    box, size = kernel.Box(ridge=ridge, upper=upper), linear / best - ridge * square
    chosen = 2.0 ** kernel.scale_exponent(box=box, linear=linear, square=square, size=size)
    wanted = min(best, 1.0) if np.isfinite(upper) else best
    assert wanted / 2**0.5 <= chosen * (1 + 1e-12) <= wanted * 2**0.5 * (1 + 1e-12) or chosen == 1 == wanted


@pytest.mark.trust
@each_loss
@each_schedule
def test_few_passes_at_a_small_lam_do_not_run_off(loss, schedule, halves):
    """Without scaling the duals this objective passes 1e20 within twenty steps."""
    solver = AltSVM(rank=3, lam=0.05, loss=loss, schedule=schedule)
    objectives = [step.objective() for step in run(solver, halves[0], 41)]
    assert max(objectives[21:]) < 2 * max(objectives[:5])


def contradictions(users: int, items: int, n: int, contrary: int) -> Comparisons:
    """Random comparisons, so many with their contrary: if all have theirs, zeros are the best vectors."""
    rng = np.random.default_rng(0)
    of, one = rng.integers(users, size=n), rng.integers(items, size=n)
    other = (one + 1 + rng.integers(items - 1, size=n)) % items
    both = [np.concatenate(pair) for pair in ((of, of[:contrary]), (one, other[:contrary]), (other, one[:contrary]))]
    return Comparisons.from_triples(*both, users, items)


@pytest.mark.one_in(3)
@each_loss
@each_schedule
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("lam", [0.1, 0.001])
def test_one_pass_at_a_small_lam_leaves_nothing_worse_than_zeros(loss, schedule, partitions, lam):
    """Such halves stayed at two to five times the objective of zeros."""
    if partitions > 1 and schedule in altsvm._RACES:
        pytest.skip("in parts these schedules are not run")
    train = contradictions(10, 8, 220, 220)
    solver = AltSVM(rank=3, lam=lam, loss=loss, schedule=schedule, groups=2, partitions=partitions)
    objectives = np.array([step.objective() for step in run(solver, train, 61)])
    assert max(objectives[21:]) <= 1.02 * len(train)


@every_loss
def test_once_vectors_were_worse_than_zeros_both_sides_are_looked_at_in_every_round(loss):
    """Items' vectors that are nearly zeros make the users' too long."""
    train = contradictions(50, 30, 2000, 1000)
    objectives = [step.objective() for step in run(AltSVM(rank=3, lam=0.1, loss=loss), train, 61)]
    assert max(objectives[21:]) <= 1.02 * len(train) * LOSSES[loss](0.0)


@pytest.mark.parametrize(("side", "halvings"), [("items", 0), ("users", 0), ("items", 5), ("users", 5)])
def test_vectors_are_halved_until_they_are_no_worse_than_zeros(side, halvings, halves):
    train = halves[0]
    machines = started(AltSVM(rank=3, lam=30), train)
    for _ in range(10):
        machines.fit_items()
        machines.fit_users()

    def block() -> Floats:
        return machines.executor.ask(Part.shown, {0: ()})[0] if side == "users" else machines.items

    right = block().copy()
    while machines.losses() + 15 * machines.size(side) < len(train):
        block()[:] *= 2  # now the longest that are better than zeros are half as long
    longest = block() / 2
    block()[:] *= 2.0 ** (halvings - 1)
    assert machines.halved(side) == (halvings > 0)
    np.testing.assert_array_equal(block(), longest)
    assert not np.array_equal(longest, right / 2)


# a run


@each_loss
@each_schedule
@pytest.mark.parametrize("threads", [1, 3])
def test_the_objective_is_the_formula_at_every_step(loss, schedule, threads, train):
    solver = AltSVM(rank=5, lam=0.4, loss=loss, schedule=schedule)
    for step in run(solver, train, 5, threads):
        assert step.objective() == pytest.approx(objective(*factors(step), train, solver), rel=1e-12)


@pytest.mark.trust
@each_loss
@each_schedule
@pytest.mark.parametrize("threads", [1, 3])
def test_it_learns_low_rank_scores_whatever_the_schedule(loss, schedule, threads, halves):
    train, test = halves
    solver = AltSVM(rank=2, lam=10.0, loss=loss, schedule=schedule, inner=2, groups=4)
    errors = [evaluate(fit(solver, train, steps=steps, threads=threads), test, ["pairwise-error"]) for steps in (0, 30)]
    begin, end = (error["pairwise-error"] for error in errors)
    assert begin == pytest.approx(0.5, abs=0.03)
    assert end < 0.1


@pytest.mark.trust
@each_schedule
def test_every_schedule_comes_to_like_objectives(schedule, halves):
    solver = AltSVM(rank=2, lam=20.0)
    wanted, found = (
        [step.objective() for step in run(each, halves[0], 61)][-1]
        for each in (solver, replace(solver, schedule=schedule))
    )
    assert found == pytest.approx(wanted, rel=0.02)


@pytest.mark.parametrize("schedule", ["tournament", "partitioned", "random"])
@pytest.mark.parametrize("threads", [2, 3, 64])
def test_bits_are_the_same_on_any_number_of_threads_more_than_cores_too(schedule, threads, halves):
    solver = AltSVM(rank=6, lam=2.0, schedule=schedule)
    one, many = ([*map(factors, run(solver, halves[0], 6, used))] for used in (1, threads))
    for (users, items), (same_users, same_items) in zip(one, many, strict=True):
        assert users.tobytes() == same_users.tobytes()
        assert items.tobytes() == same_items.tobytes()


@pytest.mark.parametrize(("schedule", "threads", "bound"), [("tournament", 1, 1), ("random", 4, 1.6), ("atomic", 4, 4)])
def test_the_bound_on_the_speed_up_is_that_of_the_longest_tasks(schedule, threads, bound, halves):
    """All users have a hundred comparisons: their half can be shared out evenly, and so can tasks without rounds."""
    *_, step = run(AltSVM(rank=2, schedule=schedule), halves[0], 2, threads)
    assert step.bound == pytest.approx(bound)


def test_a_part_that_holds_nearly_all_bounds_the_speed_up():
    """Items 0 to 3 are compared 99 times, 4 and 5 once: two parts, the one 99 times the other."""
    better, worse = np.array([0] * 33 + [1] * 33 + [2] * 33 + [4]), np.array([1] * 33 + [2] * 33 + [3] * 33 + [5])
    train = Comparisons(np.arange(0, 101, 10), better, worse, 6)
    *_, step = run(AltSVM(rank=2, schedule="partitioned", groups=2), train, 2, threads=2)
    parts = schedules.partition(train.better, train.worse, 6, 2)
    across = parts[train.better] != parts[train.worse]
    inside = np.bincount(parts[train.better[~across]], minlength=2)
    assert step.bound == pytest.approx(200 / (max(inside.max(), inside.sum() / 2) + across.sum() + 50))


@each_schedule
def test_what_races_says_so(schedule):
    racy = schedule in ("hogwild", "atomic")
    assert AltSVM(schedule=schedule).determinism is (Determinism.RACY if racy else Determinism.EXACT)


@pytest.mark.parametrize("rank", range(1, 10))
def test_padded_lanes_stay_zero(rank, train):
    machines = started(AltSVM(rank=rank), train)
    for _ in islice(machines.halves(), 4):
        assert machines.model().items.shape[1] == rank
        for block in (machines.executor.ask(Part.shown, {0: ()})[0], machines.items[:, :rank]):
            assert not padding(block).any()


def test_who_is_in_no_comparison_is_never_moved_or_scored(train):
    wider = Comparisons([*train.indptr, len(train)], train.better, train.worse, train.n_items + 1)
    for step in run(AltSVM(rank=3), wider, 5):
        users, items = factors(step)
        assert np.isnan(users[-1]).all() and np.isnan(items[-1]).all()
        assert np.isfinite(users[:-1]).all() and np.isfinite(items[:-1]).all()


# what it refuses


@pytest.mark.parametrize("setting", ["rank=0", "lam=0", "lam=-1", "inner=0", "groups=0", "groups=129"])
def test_settings_out_of_range_are_refused(setting):
    name, value = setting.split("=")
    with pytest.raises(UserError, match=rf"AltSVM: {name}={value}(\.0)? is out of range"):
        AltSVM(**{name: float(value) if name == "lam" else int(value)})


def test_the_partition_names_the_extra_that_brings_it(train, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    steps = AltSVM(rank=2, schedule="partitioned", groups=2).steps(train, np.random.default_rng(0))
    with pytest.raises(UserError, match=r"pip install 'rankbench\[partition\]'"):
        next(steps)


@pytest.mark.parametrize("side", ["items", "users"])
def test_the_gap_of_a_half_holds_where_threads_lost_updates(side, train):
    machines = started(AltSVM(rank=3, lam=0.5, schedule="hogwild"), train)
    (machines.fit_items if side == "items" else machines.fit_users)()
    before, objective_before = machines.gap(side), machines.objective()
    if side == "items":
        machines.items *= 1.5  # as if other updates had been written over
        assert machines.gap(side) - before == pytest.approx(machines.objective() - objective_before, rel=1e-9)
    assert before >= 0


# users in parts


@pytest.mark.one_in(3)
@pytest.mark.slow
@each_loss
@pytest.mark.parametrize("schedule", ["tournament", "random"])
@pytest.mark.parametrize(("partitions", "lam"), [(2, 0.5), (5, 30.0)])
def test_with_users_in_parts_the_items_half_ends_where_liblinear_does(loss, schedule, partitions, lam, train):
    solver = AltSVM(rank=3, lam=lam, loss=loss, inner=6000, schedule=schedule, groups=4, partitions=partitions)
    machines = started(solver, train)
    users = users_of(machines)
    machines.fit_items()
    own = machines.objective() - lam / 2 * np.square(users).sum()
    assert 0 <= machines.gap("items") + 1e-9 * own < 1e-5 * own
    assert own == pytest.approx(liblinear(item_examples(train, users), solver), rel=1e-5)


@pytest.mark.slow
@each_loss
def test_with_users_in_parts_every_user_ends_where_liblinear_does(loss, train):
    solver = AltSVM(rank=3, lam=0.5, loss=loss, inner=4000, partitions=4)
    machines = started(solver, train)
    machines.fit_items()
    machines.fit_users()
    own = machines.objective() - solver.lam / 2 * np.square(machines.items).sum()
    assert 0 <= machines.gap("users") + 1e-9 * own < 1e-6 * own


@pytest.mark.trust
@each_loss
@pytest.mark.parametrize("schedule", ["tournament", "partitioned", "random"])
@pytest.mark.parametrize("partitions", [2, 8])
def test_no_pass_of_the_parts_lowers_the_dual_objective(loss, schedule, partitions, halves):
    """Also far from the optimum: the duals of one half come from other users' vectors."""
    solver = AltSVM(rank=3, lam=0.3, loss=loss, schedule=schedule, partitions=partitions)
    machines = started(solver, halves[0])
    for _ in range(4):
        machines.fit_items()
        values = [machines.dual_value("items")]
        for _ in range(6):
            machines.visit_items()
            values.append(machines.dual_value("items"))
        assert (np.diff(values) >= -1e-9 * np.abs(values[1:])).all() and values[-1] > values[0]
        assert machines.gap("items") >= -1e-9 * machines.objective()
        machines.fit_users()


@each_loss
def test_changes_are_as_the_duals_say(loss, halves):
    """V as the passes have moved it is V as the duals give it."""
    machines = started(AltSVM(rank=3, lam=0.3, loss=loss, inner=3, partitions=6), halves[0])
    for _ in range(3):
        machines.fit_items()
        by_duals = machines.executor.total(Part.items_from_duals)[0]
        np.testing.assert_allclose(machines.items, by_duals, rtol=1e-9, atol=1e-12 * np.abs(by_duals).max())
        machines.fit_users()


@each_loss
def test_in_parts_it_comes_about_as_far_as_in_one_process(loss, halves):
    train, test = halves
    errors = [
        evaluate(fit(AltSVM(rank=2, lam=0.3, loss=loss, partitions=parts), train, steps=30), test, ["pairwise-error"])
        for parts in (1, 4)
    ]
    assert errors[1]["pairwise-error"] < 1.1 * errors[0]["pairwise-error"] + 0.01


def test_only_training_without_parts_has_a_bound_on_its_speed_up(train):
    assert [step.bound for step in run(AltSVM(rank=2, partitions=2), train, 3)] == [None] * 3
    first, *others = [step.bound for step in run(AltSVM(rank=2), train, 3)]
    assert first is None and all(bound >= 1 for bound in others)


def test_more_parts_than_users_are_refused(train):
    with pytest.raises(UserError, match="AltSVM: partitions=16 is above the number of users, 15; lower partitions"):
        next(run(AltSVM(rank=2, partitions=16), train, 1))
