"""Pairwise SGD against its formulas: one update, one pass number by number, and what a run achieves."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from solvers.contract import SolverContract

from rankbench.contract import Floats, Ints, Step
from rankbench.data.synthetic import BTL
from rankbench.data.views import Comparisons
from rankbench.harness.training import fit
from rankbench.kernels import sgd as kernel
from rankbench.metrics import evaluate
from rankbench.solvers.sgd import SGD

LOSSES: dict[str, Callable[[Any], Any]] = {
    "squared-hinge": lambda margin: np.maximum(0, 1 - margin) ** 2,
    "logistic": lambda margin: np.logaddexp(0, -margin),
}
SLOPES: dict[str, Callable[[Any], Any]] = {
    "squared-hinge": lambda margin: -2 * np.maximum(0, 1 - margin),
    "logistic": lambda margin: -1 / (1 + np.exp(margin)),
}
CODES = {"squared-hinge": kernel.SQUARED_HINGE, "logistic": kernel.LOGISTIC}
each_loss = pytest.mark.parametrize("loss", list(LOSSES))


class TestSGD(SolverContract):
    solver = SGD(rank=4, lam=0.5)


class TestSGDWithLogisticLoss(SolverContract):
    solver = SGD(rank=3, lam=0.5, step=0.1, decay=1e-4, loss="logistic")


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


def updated(loss: str, u: Floats, v: Floats, shrink: tuple[float, Floats], step: float, **schedule: float) -> Any:
    """User and items after a single comparison, item 0 better than item 1."""
    users, items = u[None].copy(), v.copy()
    rows = np.array([0, 1]), np.array([0], np.int32), np.array([1], np.int32)
    settings = {"decay": 0.0, "updates": 0, **schedule}
    shrinks = np.array([shrink[0]]), shrink[1]
    kernel.serial_pass(CODES[loss], *rows, users, items, *shrinks, step, rng=np.random.default_rng(0), **settings)
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


def below(rng: np.random.Generator, n: int) -> int:
    """An even draw from 0 .. n-1 out of the words that the bit generator hands to C (Lemire 2019)."""
    bits = rng.bit_generator.ctypes
    product = bits.next_uint32(bits.state_address) * n
    while product % 2**32 < 2**32 % n:
        product = bits.next_uint32(bits.state_address) * n
    return product // 2**32


def shuffled(rng: np.random.Generator, n: int) -> Any:
    """0 .. n-1 in the order of a Fisher-Yates shuffle, drawn one at a time."""
    order = list(range(n))
    for place in range(n):
        drawn = place + below(rng, n - place)
        order[place], order[drawn] = order[drawn], order[place]
        yield order[place]


def one_pass(
    train: Comparisons, solver: SGD, users: Floats, items: Floats, done: int, rng: np.random.Generator
) -> None:
    """What a pass does, in the formulas of the report's text, update by update."""
    per_user = np.diff(train.indptr)
    per_item = np.bincount(np.concatenate([train.better, train.worse]), minlength=train.n_items)
    for i in shuffled(rng, train.n_users):
        for place in shuffled(rng, per_user[i]):
            j, k = train.better[train.indptr[i] + place], train.worse[train.indptr[i] + place]
            u, v, w = users[i].copy(), items[j].copy(), items[k].copy()
            eta = solver.step / (1 + solver.decay * done)
            g = SLOPES[solver.loss](u @ (v - w))
            users[i] -= eta * (g * (v - w) + solver.lam / per_user[i] * u)
            items[j] -= eta * (g * u + solver.lam / per_item[j] * v)
            items[k] -= eta * (-g * u + solver.lam / per_item[k] * w)
            done += 1


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
def test_a_pass_of_tiny_steps_goes_down_the_gradient_of_the_whole_objective(loss, train):
    steps = SGD(rank=3, lam=2.0, step=1e-7, decay=0.0, loss=loss).steps(train, np.random.default_rng(0))
    before = np.vstack(factors(next(steps)))
    after = np.vstack(factors(next(steps)))

    def whole(flat: Floats) -> float:
        rows = flat.reshape(before.shape)
        return objective(rows[: train.n_users], rows[train.n_users :], train, loss, 2.0)

    slope = approx_fprime(before.ravel(), whole, 1e-7).reshape(before.shape)
    np.testing.assert_allclose((before - after) / 1e-7, slope, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rank", range(1, 10))
def test_padded_lanes_stay_zero(rank, train):
    steps = SGD(rank=rank).steps(train, np.random.default_rng(0))
    for _ in range(3):
        model = next(steps).model
        for block in (model.users, model.items):
            assert block.shape[1] == rank
            assert block.base.shape[1] % 4 == 0
            assert not block.base[:, rank:].any()


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


@pytest.fixture
def halves() -> tuple[Comparisons, Comparisons]:
    """Low-rank comparisons, every other one held out."""
    view = BTL(users=200, items=60, rank=2, comparisons=200, scale=10.0).view(np.random.default_rng(2))
    rows: Ints = np.arange(len(view))
    return view.take(rows[::2]), view.take(rows[1::2])


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
