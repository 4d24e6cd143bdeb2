"""Pairwise SGD against its formulas: one update, one pass number by number, and what a run achieves."""

import sys
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest
from drawing import shuffled_inside_out, stream, visits
from helpers import padding
from scipy.optimize import approx_fprime
from solvers.contract import SolverContract
from solvers.least import slopes_of
from solvers.problems import comparisons_in_halves

from rankbench.core.contract import Floats, Ints, Step
from rankbench.core.errors import UserError
from rankbench.data.synthetic import BTL
from rankbench.data.views import Comparisons
from rankbench.execution.training import fit
from rankbench.kernels.methods.pairwise import DescentFactors
from rankbench.kernels.shared.rows import ComparisonRows
from rankbench.kernels.solvers import sgd as kernel
from rankbench.methods.factors import zero_rows
from rankbench.methods.losses import CODES
from rankbench.metrics import evaluate
from rankbench.solvers.sgd import SGD, rotation_of

LOSSES: dict[str, Callable[[Any], Any]] = {
    "squared-hinge": lambda margin: np.maximum(0, 1 - margin) ** 2,
    "logistic": lambda margin: np.logaddexp(0, -margin),
    "smooth-hinge": lambda margin: np.where(margin < 0, 0.5 - margin, np.maximum(0, 1 - margin) ** 2 / 2),
    "hinge": lambda margin: np.maximum(0, 1 - margin),
}
SLOPES: dict[str, Callable[[Any], Any]] = {
    "squared-hinge": lambda margin: -2 * np.maximum(0, 1 - margin),
    "logistic": lambda margin: -1 / (1 + np.exp(margin)),
    "smooth-hinge": lambda margin: -np.clip(1 - margin, 0, 1),
    "hinge": lambda margin: -1.0 * (margin < 1),
}
each_loss = pytest.mark.parametrize("loss", list(LOSSES))


class TestSGD(SolverContract):
    solver = SGD(rank=4, lam=0.5)


class TestSGDWithLogisticLoss(SolverContract):
    solver = SGD(rank=3, lam=0.5, step=0.1, decay=1e-4, loss="logistic")


class TestSGDInTournaments(SolverContract):
    solver = SGD(rank=4, lam=0.5, schedule="tournament", parts=6)


class TestSGDInSinglePrecision(SolverContract):
    solver = SGD(rank=4, lam=0.5, schedule="tournament", parts=6, precision="single")


class TestNomadicSGD(SolverContract):
    solver = SGD(rank=4, lam=0.5, schedule="nomad", parts=3)


class TestHogwildSGD(SolverContract):
    solver = SGD(rank=4, lam=0.5, schedule="hogwild")


halves = pytest.fixture(comparisons_in_halves)


@pytest.fixture
def train() -> Comparisons:
    return BTL(users=12, items=9, comparisons=7).view(np.random.default_rng(1))


def objective(users: Floats, items: Floats, train: Comparisons, loss: str, lam: float) -> float:
    margins = np.sum(users[train.users] * (items[train.better] - items[train.worse]), axis=1)
    return LOSSES[loss](margins).sum() + lam / 2 * (np.square(users).sum() + np.square(items).sum())


def factors(step: Step) -> tuple[Floats, Floats]:
    """A copy of what the step lends."""
    return step.model.users.copy(), step.model.items.copy()


# one update


def updated(
    loss: str, u: Floats, v: Floats, shrink: tuple[float, Floats], step: float, decay: float = 0.0, updates: int = 0
) -> Any:
    """User and items after a single comparison, item 0 better than item 1."""
    users, items = u[None].copy(), v.copy()
    factors = DescentFactors(
        users=users,
        items=items,
        user_shrink=np.array([shrink[0]]),
        item_shrink=shrink[1],
        step=step,
        decay=decay,
    )
    descent = kernel.Descent(factors=factors, loss=CODES[loss])
    rows = Comparisons([0, 1], [0], [1], 2).rows
    kernel.serial_pass(descent=descent, comparisons=rows, updates=updates, rng=np.random.default_rng(0))
    return np.vstack([users, items])


@pytest.fixture
def vectors() -> tuple[Floats, Floats]:
    rng = np.random.default_rng(4)
    return rng.standard_normal(8), rng.standard_normal((2, 8))


@each_loss
@pytest.mark.parametrize("sign", [1, -1])
def test_an_update_goes_down_the_gradient_of_the_loss_and_its_share_of_the_regulariser(loss, sign, vectors):
    u, v = sign * 0.4 * vectors[0], vectors[1]
    shares = np.array([0.3, 0.2, 0.7])

    def part(flat: Floats) -> float:
        rows = flat.reshape(3, 8)
        return LOSSES[loss](rows[0] @ (rows[1] - rows[2])) + shares @ np.square(rows).sum(axis=1) / 2

    before = np.vstack([u, v])
    moved = (before - updated(loss, u, v, (shares[0], shares[1:]), step=0.01)) / 0.01
    np.testing.assert_allclose(moved.ravel(), approx_fprime(before.ravel(), part, 1e-7), rtol=1e-5, atol=1e-5)


def test_where_the_margin_is_met_the_regulariser_still_shrinks():
    u, v = np.array([2.0, 0, 0, 0]), np.array([[1.0, 0, 0, 0], [0, 0, 0, 0]])
    after = updated("squared-hinge", u, v, (0.5, np.array([0.25, 0.25])), step=0.1)
    np.testing.assert_allclose(after, np.vstack([u * 0.95, v * 0.975]), rtol=1e-15)


@each_loss
@pytest.mark.parametrize(("decay", "updates"), [(0.0, 10), (1e-5, 0), (1e-5, 10**6), (0.5, 3)])
def test_the_step_size_falls_as_one_over_one_plus_decay_times_updates(loss, decay, updates, vectors):
    none = 0.0, np.zeros(2)
    eta = 0.05 / (1 + decay * updates)
    scheduled = updated(loss, *vectors, none, 0.05, decay=decay, updates=updates)
    np.testing.assert_array_equal(scheduled, updated(loss, *vectors, none, eta))


# a pass


def one_pass(
    train: Comparisons, solver: SGD, users: Floats, items: Floats, done: int, rng: np.random.Generator
) -> None:
    """What a serial pass does: users in random order, each one's rows in random order, four users in turns."""
    bits = rng.bit_generator.ctypes
    order = visits(lambda: bits.next_uint32(bits.state_address), np.diff(train.indptr))
    rows = ((i, train.better[train.indptr[i] + index], train.worse[train.indptr[i] + index]) for i, index in order)
    visit(rows, train, solver, users, items, done)


def visit(rows: Any, train: Comparisons, solver: SGD, users: Floats, items: Floats, done: int) -> None:
    """The formulas of the report's text, update by update."""
    per_user = np.diff(train.indptr)
    per_item = np.bincount(np.concatenate([train.better, train.worse]), minlength=train.n_items)
    for t, (i, j, k) in enumerate(rows, start=done):
        u, v, w = users[i].copy(), items[j].copy(), items[k].copy()
        eta = solver.step / (1 + solver.decay * t)
        g = SLOPES[solver.loss](u @ (v - w))
        users[i] -= eta * (g * (v - w) + solver.lam / per_user[i] * u)
        items[j] -= eta * (g * u + solver.lam / per_item[j] * v)
        items[k] -= eta * (-g * u + solver.lam / per_item[k] * w)


# parallel schedules


def rows_in_rounds(solver: SGD, train: Comparisons, rng: np.random.Generator) -> Any:
    """The comparisons in the order of a pass of the tournament or of NOMAD, were there a single thread."""
    plan = rotation_of(train, solver.schedule, solver.parts)
    _, tasks, _ = plan.order(rng)
    seed = int(rng.integers(2**63))
    for task in tasks:
        word, rows = stream(seed, int(task)), np.arange(plan.starts[task], plan.starts[task + 1])
        for window in shuffled_inside_out(word, -(-len(rows) // 64)):
            together = rows[64 * window : 64 * window + 64]
            for row in together[shuffled_inside_out(word, len(together))]:
                yield plan.users[row], plan.better[row], plan.worse[row]


def rows_without_locks(train: Comparisons, rng: np.random.Generator) -> Any:
    """The comparisons in the order of a pass of Hogwild on one thread."""
    order, seed = rng.permutation(train.n_users), int(rng.integers(2**63))
    for user in order:
        first, end = train.indptr[user], train.indptr[user + 1]
        for row in shuffled_inside_out(stream(seed, int(user)), int(end - first)):
            yield user, train.better[first + row], train.worse[first + row]


@pytest.mark.one_in(5)
@each_loss
@pytest.mark.parametrize("schedule", ["tournament", "nomad", "hogwild"])
@pytest.mark.parametrize("threads", [1, 2])
def test_two_parallel_passes_are_those_of_the_formulas(schedule, threads, loss):
    if schedule == "hogwild" and threads > 1:
        pytest.skip("threads race on purpose")
    train = BTL(users=60, items=9, comparisons=30).view(np.random.default_rng(1))
    solver = SGD(rank=3, lam=0.7, step=0.1, decay=0.01, loss=loss, schedule=schedule, parts=4)
    if schedule != "hogwild":
        assert np.diff(rotation_of(train, schedule, solver.parts).starts).max() > 2 * 64  # a task of three windows
    rng, twin = np.random.default_rng(5), np.random.default_rng(5)
    steps = solver.steps(train, rng, threads)
    users, items = factors(next(steps))
    twin.standard_normal(users.size + items.size)  # the start
    for done in (0, len(train)):
        rows = rows_without_locks(train, twin) if schedule == "hogwild" else rows_in_rounds(solver, train, twin)
        visit(rows, train, solver, users, items, done)
        model = next(steps).model
        np.testing.assert_allclose(model.users, users, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(model.items, items, rtol=1e-11, atol=1e-13)


@each_loss
@pytest.mark.parametrize("rank", [1, 8, 11])
@pytest.mark.parametrize("schedule", ["serial", "tournament", "hogwild"])
def test_single_precision_takes_the_same_steps_in_numbers_of_32_bits(schedule, rank, loss, train):
    both = [SGD(rank, schedule=schedule, loss=loss, precision=precision) for precision in ("double", "single")]
    steps = [islice(solver.steps(train, np.random.default_rng(3)), 4) for solver in both]
    for double, single in zip(*steps, strict=True):
        for exact, found in zip(factors(double), factors(single), strict=True):
            np.testing.assert_array_equal(found, found.astype(np.float32))
            np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-5)
            assert (found != exact).any()
        assert single.objective() == pytest.approx(objective(*factors(single), train, loss, 0.1), rel=1e-12)


def test_an_update_in_single_precision_is_the_formula_rounded_after_each_operation(vectors):
    half = np.float32(0.5)
    u, (v, w) = -vectors[0].astype(np.float32), vectors[1].astype(np.float32)
    users, items = u[None].copy(), np.array([v, w])
    shrink = {"user_shrink": np.array([5.0]), "item_shrink": np.array([5.0, 10.0])}
    descended = DescentFactors(users=users, items=items, **shrink, step=0.1, decay=0.0)
    descent = kernel.Descent(factors=descended, loss=CODES["squared-hinge"])
    rows = Comparisons([0, 1], [0], [1], 2).rows
    kernel.serial_pass(descent=descent, comparisons=rows, updates=0, rng=np.random.default_rng(0))
    terms = (u * (v - w)).reshape(2, 4).sum(axis=0)
    margin = (terms[0] + terms[2]) + (terms[1] + terms[3])
    g = np.float32(0.1 * -2 * max(0.0, 1.0 - float(margin)))
    np.testing.assert_array_equal(users[0], half * u - g * (v - w))
    np.testing.assert_array_equal(items[0], half * v - g * u)
    np.testing.assert_array_equal(items[1], g * u)  # a share of 0 is kept
    assert users.dtype == items.dtype == np.float32 and g != 0


@pytest.mark.parametrize(
    ("users", "items", "problem"),
    [
        (np.zeros((2, 4)), np.zeros((3, 8)), "columns of items: 8 where 4 are needed"),
        (np.zeros((2, 6)), np.zeros((3, 6)), "rows of 6 numbers are not padded to whole lanes"),
        (np.zeros((2, 4), "f"), np.zeros((3, 4), "f"), "rows of 4 numbers are not padded to whole lanes"),
        (np.zeros((2, 8)), np.zeros((3, 8), "f"), "Buffer dtype mismatch, expected 'double' but got 'float'"),
        (np.zeros((2, 8), "f"), np.zeros((3, 8)), "Buffer dtype mismatch, expected 'float' but got 'double'"),
        (np.zeros((3, 4)), np.zeros((3, 4)), "there must be one shrinkage for each user and each item"),
    ],
)
def test_factors_that_the_kernel_cannot_use_are_refused(users, items, problem):
    with pytest.raises(ValueError, match=problem):
        DescentFactors(users=users, items=items, user_shrink=np.zeros(2), item_shrink=np.zeros(3), step=0.1, decay=0.0)


@pytest.mark.parametrize("schedule", ["tournament", "nomad"])
@pytest.mark.parametrize("parts", [1, 2, 5, 16])
def test_any_number_of_threads_gives_the_bytes_of_one(schedule, parts, halves):
    solver = SGD(rank=6, schedule=schedule, parts=parts)
    found = [fit(solver, halves[0], steps=3, threads=threads) for threads in (1, 2, 3, 7)]
    assert len({model.users.tobytes() + model.items.tobytes() for model in found}) == 1


@pytest.mark.parametrize("schedule", ["serial", "tournament", "nomad", "hogwild"])
def test_every_schedule_reaches_about_the_same_objective(schedule, halves):
    best = min(objectives(SGD(rank=2, lam=1.0), halves[0], threads=1))
    assert min(objectives(SGD(rank=2, lam=1.0, schedule=schedule), halves[0], threads=2)) < 1.05 * best


def objectives(solver: SGD, train: Comparisons, threads: int) -> list[float]:
    """After each of twenty passes."""
    steps = solver.steps(train, np.random.default_rng(0), threads)
    return [next(steps).objective() for _ in range(21)]


# bad input


@pytest.mark.parametrize("lam", [0, -1])
def test_a_penalty_must_be_above_zero(lam):
    with pytest.raises(UserError, match=f"lam={lam} is out of range: must be at least 1e-12"):
        SGD(lam=lam)


def test_nomad_without_pymetis_names_the_extra(monkeypatch, train):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    steps = SGD(schedule="nomad", parts=2).steps(train, np.random.default_rng(0))
    next(steps)
    with pytest.raises(UserError, match=r"pip install 'rankbench\[partition\]'"):
        next(steps)


def test_more_threads_than_cores_are_allowed(train):
    found = [fit(SGD(schedule="tournament"), train, steps=2, threads=threads) for threads in (1, 64)]
    assert found[0].users.tobytes() == found[1].users.tobytes()
    assert found[0].items.tobytes() == found[1].items.tobytes()


@each_loss
@pytest.mark.parametrize("rank", [1, 4, 6])
def test_two_passes_are_those_of_the_formulas_drawn_from_the_same_bits(loss, rank, train):
    solver = SGD(rank=rank, lam=0.7, step=0.1, decay=0.01, loss=loss)
    rng, twin = np.random.default_rng(5), np.random.default_rng(5)
    steps = solver.steps(train, rng)
    users, items = factors(next(steps))
    twin.standard_normal(users.size + items.size)  # the start
    for done in (0, len(train)):
        one_pass(train, solver, users, items, done, twin)
        model = next(steps).model
        np.testing.assert_allclose(model.users, users, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(model.items, items, rtol=1e-12, atol=1e-14)
    assert rng.bit_generator.state == twin.bit_generator.state


@each_loss
@pytest.mark.parametrize("items", [5, 30, 3000])
@pytest.mark.parametrize("step", [0.01, 3.0])
@pytest.mark.parametrize(("rank", "held"), [(1, -1), (4, 3), (9, -1), (12, 0)])
def test_four_updates_at_once_have_the_bits_that_they_have_one_after_another(rank, held, step, items, loss):
    """Each user has one comparison: their turns are one update each, as are passes for one user each."""
    rng, n = np.random.default_rng(0), 401
    pairs = np.array([rng.choice(items, size=2, replace=False) for _ in range(n)], np.int32)
    start = zero_rows(n, rank), zero_rows(items, rank)
    for rows in start:
        rows[:, :rank] = rng.normal(size=(len(rows), rank))

    def moved(passes: list[Ints]) -> list[bytes]:
        users, items = (rows.copy() for rows in start)
        shrinks = {"user_shrink": np.linspace(0.1, 0.9, len(users)), "item_shrink": np.linspace(0.2, 0.6, len(items))}
        factors = DescentFactors(users=users, items=items, **shrinks, step=step, decay=0.1, held=held)
        descent = kernel.Descent(factors=factors, loss=CODES[loss])
        for before, chosen in enumerate(passes):
            indptr = np.concatenate([[0], np.cumsum(np.isin(np.arange(n), chosen))])
            rows = ComparisonRows(indptr=indptr, better=pairs[chosen, 0], worse=pairs[chosen, 1])
            kernel.serial_pass(descent=descent, comparisons=rows, updates=before, rng=np.random.default_rng(7))
        return [users.tobytes(), items.tobytes()]

    bits = np.random.default_rng(7).bit_generator.ctypes
    order = visits(lambda: bits.next_uint32(bits.state_address), np.ones(n, int))
    assert moved([np.arange(n)]) == moved([np.array([user]) for user, _ in order])


@each_loss
def test_a_pass_of_tiny_steps_goes_down_the_gradient_of_the_whole_objective(loss, train):
    steps = SGD(rank=3, lam=2.0, step=1e-7, decay=0.0, loss=loss).steps(train, np.random.default_rng(0))
    before, after = ([side.copy() for side in factors(next(steps))] for _ in range(2))
    slope = slopes_of(lambda users, items: objective(users, items, train, loss, 2.0), *before)
    np.testing.assert_allclose((np.vstack(before) - np.vstack(after)).ravel() / 1e-7, slope, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rank", range(1, 10))
def test_padded_lanes_stay_zero(rank, train):
    steps = SGD(rank=rank).steps(train, np.random.default_rng(0))
    for _ in range(3):
        model = next(steps).model
        for block in (model.users, model.items):
            assert block.shape[1] == rank
            assert not padding(block).any()


def test_the_start_is_normal_with_rows_of_expected_length_one():
    train = BTL(users=400, items=300, comparisons=5).view(np.random.default_rng(0))
    users, items = factors(next(SGD(rank=16).steps(train, np.random.default_rng(0))))
    for block in (users, items[np.isfinite(items[:, 0])]):
        assert np.square(block).sum(axis=1).mean() == pytest.approx(1, rel=0.05)
        assert abs(block.mean()) < 0.01


def test_who_is_in_no_comparison_is_never_moved_or_scored(train):
    wider = Comparisons([*train.indptr, len(train)], train.better, train.worse, train.n_items + 1)
    steps = SGD(rank=3).steps(wider, np.random.default_rng(0))
    for _ in range(3):
        users, items = factors(next(steps))
        assert np.isnan(users[-1]).all() and np.isnan(items[-1]).all()
        assert np.isfinite(users[:-1]).all() and np.isfinite(items[:-1]).all()


# a run


@each_loss
@pytest.mark.parametrize("threads", [1, 3])
def test_the_objective_is_the_formula_at_every_step(loss, threads, train):
    steps = SGD(rank=5, lam=0.4, loss=loss).steps(train, np.random.default_rng(0), threads)
    for _ in range(4):
        step = next(steps)
        assert step.objective() == pytest.approx(objective(*factors(step), train, loss, 0.4), rel=1e-12)


@each_loss
def test_it_learns_low_rank_scores(loss, halves):
    train, test = halves
    solver = SGD(rank=2, lam=1.0, loss=loss)
    errors = [evaluate(fit(solver, train, steps=steps), test, ["pairwise-error"]) for steps in (0, 30)]
    start, end = (error["pairwise-error"] for error in errors)
    assert start == pytest.approx(0.5, abs=0.03)
    assert end < 0.15


@each_loss
def test_its_objective_comes_down(loss, halves):
    steps = SGD(rank=2, lam=1.0, loss=loss).steps(halves[0], np.random.default_rng(0))
    objectives = [next(steps).objective() for _ in range(21)]
    assert objectives[20] < objectives[5] < objectives[0]


def test_without_comparisons_there_is_the_start_and_nothing_to_lose():
    nothing = Comparisons(np.zeros(41, int), [], [], 3)
    for _ in range(3):
        np.full(40, 7.0)  # memory that an unfilled array would show
        (step,) = SGD().steps(nothing, np.random.default_rng(0))
        assert step.objective() == 0


@pytest.mark.parametrize("loss", list(LOSSES))
def test_rare_items_do_not_run_away_under_a_large_penalty(loss):
    """Each item is in one comparison, so that step lam / |Omega_j| = 45: the old vectors count for nothing."""
    train = Comparisons([0, 1, 2], [0, 2], [1, 3], n_items=4)
    solver = SGD(rank=2, lam=900, step=0.05, loss=loss)
    steps = islice(solver.steps(train, np.random.default_rng(0)), 50)
    sizes = [np.abs(step.model.items).max() for step in steps]
    assert np.isfinite(sizes).all()
    assert max(sizes[2:]) <= max(sizes[:2])


def test_an_update_keeps_nothing_of_a_row_whose_shrinkage_is_above_one():
    users, items = np.full((1, 4), 2.0), np.array([[1.0] * 4, [3.0] * 4])
    factors = DescentFactors(
        users=users, items=items, user_shrink=np.array([20.0]), item_shrink=np.array([0.5, 20.0]), step=0.1, decay=0.0
    )
    descent = kernel.Descent(factors=factors, loss=CODES["squared-hinge"])
    train = Comparisons([0, 1], [0], [1], n_items=2)
    kernel.serial_pass(descent=descent, comparisons=train.rows, updates=0, rng=np.random.default_rng(0))
    g = 0.1 * -2 * (1 - -16.0)  # the margin is 2 (1 - 3) over four lanes
    np.testing.assert_allclose(users[0], -g * (1.0 - 3.0))
    np.testing.assert_allclose(items[0], 0.95 * 1.0 - g * 2.0)
    np.testing.assert_allclose(items[1], g * 2.0)
