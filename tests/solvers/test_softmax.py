"""Softmax over the catalogue: derivatives, the estimate from drawn items, and the minimum of the objective."""

from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np
import pytest
import scipy.optimize
from scipy.special import logsumexp
from solvers.contract import SolverContract
from solvers.least import least_below, slopes_of
from solvers.problems import few_ratings
from solvers.two_groups import gain

from rankbench.core.contract import Floats
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.models import Factors
from rankbench.solvers.softmax import Softmax, _Descent, slopes


class TestSoftmax(SolverContract):
    solver = Softmax(rank=3, lam=0.05)


class TestSoftmaxOfDrawnItems(SolverContract):
    solver = Softmax(rank=3, lam=0.05, negatives=6, batch=7)


class TestSoftmaxOfHighRatings(SolverContract):
    solver = Softmax(rank=3, least=1.0, negatives=6, power=0.5)


train = pytest.fixture(few_ratings)


def value(solver: Softmax, train: Ratings, users: Floats, items: Floats) -> float:
    """The formula of the docstring, with a number behind each item's vector."""
    scores = users @ items[:, :-1].T + items[:, -1]
    losses = logsumexp(scores, axis=1)[train.users] - scores[train.users, train.items]
    counts = np.diff(train.indptr), np.bincount(train.items, minlength=train.n_items)
    sizes = counts[0] @ np.square(users).sum(axis=1) + counts[1] @ np.square(items).sum(axis=1)
    return float(losses.sum() + solver.lam / 2 * sizes)


def test_the_objective_is_that_of_the_formula(train):
    solver = Softmax(rank=3, lam=0.05, negatives=4)
    *_, end = islice(solver.steps(train, np.random.default_rng(0)), 6)
    users = np.nan_to_num(end.model.users[:, :-1])
    assert end.objective() == pytest.approx(value(solver, train, users, end.model.items), rel=1e-12)


def test_a_positive_far_below_another_one_that_was_not_drawn_is_not_lost():
    drawn, own, rows, places = np.array([[0.0, -1.0]]), np.array([0.0, 2000.0, -2000.0]), np.zeros(3, int), [0, -1, -1]
    losses, by_own, by_drawn = slopes(drawn, own, rows, np.array(places))
    shares = np.array([1.0, np.exp(-1.0)]) / (1 + np.exp(-1.0))
    np.testing.assert_allclose(losses, [np.log1p(np.exp(-1.0)), 0.0, 2000 + np.log1p(np.exp(-1.0))], rtol=1e-14)
    np.testing.assert_allclose(by_own, [shares[0] - 1, 0.0, -1.0], atol=1e-15)
    np.testing.assert_allclose(by_drawn, [[shares[0], 2 * shares[1]]], rtol=1e-14)


def test_slopes_are_those_of_the_losses():
    rng = np.random.default_rng(0)
    drawn, own = rng.standard_normal((3, 5)), rng.standard_normal(6)
    rows, places = np.array([0, 0, 1, 1, 1, 2]), np.array([-1, 4, 0, 2, -1, -1])

    def losses(point: Floats) -> Floats:
        return slopes(point[6:].reshape(3, 5), point[:6], rows, places)[0]

    for loss, row, place, score in zip(slopes(drawn, own, rows, places)[0], rows, places, own, strict=True):
        others = np.delete(drawn[row], place) if place >= 0 else drawn[row]
        assert loss == pytest.approx(logsumexp([score, *others]) - score, rel=1e-12)
    found = slopes(drawn, own, rows, places)
    point = np.concatenate([own, drawn.ravel()])
    expected = scipy.optimize.approx_fprime(point, lambda x: losses(x).sum(), 1e-7)
    np.testing.assert_allclose(np.concatenate([found[1], found[2].ravel()]), expected, atol=1e-6)
    moved = slopes(drawn + 700, own + 700, rows, places)
    for one, other in zip(found, moved, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


def test_a_step_over_all_users_follows_the_slope_of_the_objective(train):
    solver = Softmax(rank=2, lam=0.3, step=0.01)
    descent = _Descent.start(solver, train, np.random.default_rng(0))
    before = [np.nan_to_num(side.copy()) for side in (descent.users.rows, descent.items.rows)]
    descent.visit(np.arange(14), np.random.default_rng(0))
    start = before[0][:, :-1], before[1]
    expected = slopes_of(partial(value, solver, train), *start)
    squares = np.concatenate([descent.users.squares[:, :-1].ravel(), descent.items.squares.ravel()])
    np.testing.assert_allclose(np.sqrt(squares), np.abs(expected), atol=2e-5)
    after = np.nan_to_num(descent.users.rows)[:, :-1], descent.items.rows
    moves = np.concatenate([(now - was).ravel() for now, was in zip(after, start, strict=True)])
    sloping = np.abs(expected) > 1e-3
    np.testing.assert_allclose(moves[sloping], -0.01 * np.sign(expected[sloping]), rtol=1e-9)
    assert (descent.users.rows[:14, -1] == 1).all()


@pytest.mark.trust
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_what_drawn_items_stand_for_is_right_on_average(power, train):
    descent = _Descent.start(Softmax(rank=2, negatives=5, power=power), train, np.random.default_rng(0))
    rng, exponentials = np.random.default_rng(3), np.exp(np.linspace(-1, 2, 11))
    sums = [np.exp(logs) @ exponentials[drawn] for drawn, logs in (descent._drawn(rng) for _ in range(4000))]
    assert np.mean(sums) == pytest.approx(exponentials.sum(), abs=4 * np.std(sums) / np.sqrt(4000))
    assert np.std(sums) > 0.1  # an estimate


@pytest.mark.trust
def test_another_optimiser_finds_nothing_much_below_the_end(train):
    solver = Softmax(rank=2, lam=0.05, step=0.5)
    *_, end = islice(solver.steps(train, np.random.default_rng(0)), 4000)
    found = least_below(partial(value, solver, train), np.nan_to_num(end.model.users[:, :-1]), end.model.items)
    assert found == pytest.approx(end.objective(), rel=1e-4)


@pytest.mark.trust
def test_drawn_items_lead_to_nearly_the_same_objective(train):
    ends = []
    for negatives in (11, 8):
        *_, end = islice(Softmax(rank=2, lam=0.3, negatives=negatives).steps(train, np.random.default_rng(0)), 2000)
        ends.append(end.objective())
    assert ends[0] <= ends[1] * (1 + 1e-6) and ends[1] == pytest.approx(ends[0], rel=0.02)


def test_what_is_not_known_has_no_score_and_what_is_below_the_least_rating_does_not_count(train):
    scores = fit(Softmax(rank=2), train, steps=3).score_all(np.arange(15))
    assert np.isnan(scores[14]).all() and not np.isnan(scores[:14]).any()
    least = float(np.median(train.values))
    moved = replace(train, values=np.where(train.values < least, least - 9.0, 7e9))
    above, other = (fit(Softmax(rank=2, least=least), one, steps=3).score_all(np.arange(15)) for one in (train, moved))
    assert above.tobytes() == other.tobytes()
    nothing = list(Softmax(rank=2, least=1e9).steps(train, np.random.default_rng(0)))
    assert len(nothing) == 1 and nothing[0].objective() == 0.0


@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_new_users_get_the_minimum_of_their_own_losses(lam, train):
    solver = Softmax(rank=3, lam=lam)
    items = fit(solver, train, steps=30).items
    users = solver.fold_in(Factors(np.zeros((1, 4)), items), train).users[:, :-1]
    scores = users @ items[:, :-1].T + items[:, -1]
    chances = np.exp(scores - logsumexp(scores, axis=1)[:, None])
    for user in range(14):
        own = train.items[train.indptr[user] : train.indptr[user + 1]]
        slope = chances[user] @ items[:, :-1] - items[own, :-1].mean(axis=0) + lam * users[user]
        np.testing.assert_allclose(slope, 0, atol=1e-12)


def test_it_finds_what_users_took_better_than_popularity():
    assert gain(Softmax(rank=2, lam=0.01), 15) > 0.1
    assert gain(Softmax(rank=2, lam=0.01, negatives=20), 15) > 0.1
