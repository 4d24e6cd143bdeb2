"""BPR: uniform negatives, updates along the gradient, and good recommendations."""

from itertools import islice

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import chisquare
from solvers.contract import SolverContract

from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.kernels.shared.rows import Pattern
from rankbench.kernels.solvers import bpr as kernel
from rankbench.solvers.bpr import BPR, positives_of


class TestBPR(SolverContract):
    solver = BPR(rank=3, least=1.0, step=0.1)


class TestBPRFromEveryRating(SolverContract):
    solver = BPR(rank=2, parts=3)


class TestBPRInSinglePrecision(SolverContract):
    solver = BPR(rank=3, step=0.1, precision="single")


class TestBPRWithBiases(SolverContract):
    solver = BPR(rank=3, least=1.0, step=0.1, biases=True)


class TestBPRWithBiasesInSinglePrecision(SolverContract):
    solver = BPR(rank=2, step=0.1, biases=True, precision="single")


@pytest.fixture
def ratings() -> Ratings:
    """Two camps of users and two of items; half of what a user would choose is seen, and some of the rest."""
    rng = np.random.default_rng(0)
    liked = (np.arange(80)[:, None] < 40) == (np.arange(60)[None, :] < 30)
    seen = rng.random((80, 60)) < 0.5 * liked + 0.1 * ~liked
    users, items = np.nonzero(seen)
    return Ratings.from_triples(users, items, np.where(liked, 5.0, 1.0)[seen], 80, 60)


def test_single_precision_takes_the_same_steps_in_numbers_of_32_bits(ratings):
    both = [BPR(rank=5, precision=precision) for precision in ("double", "single")]
    steps = [islice(solver.steps(ratings, np.random.default_rng(3)), 4) for solver in both]
    for number, (double, single) in enumerate(zip(*steps, strict=True)):
        for exact, found in ((double.model.users, single.model.users), (double.model.items, single.model.items)):
            np.testing.assert_array_equal(found, found.astype(np.float32))
            np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-5)
            assert (found != exact).any()
        assert single.objective() == pytest.approx(double.objective(), rel=1e-5), number


# negatives


def draws(positives: list[int], n_items: int, times: int) -> np.ndarray:
    """What is drawn for a user with these positives, by users who are all alike."""
    indptr = np.arange(times + 1, dtype=np.int64) * len(positives)
    out = np.empty(times * len(positives), np.int32)
    rows = Pattern(indptr=indptr, columns=np.tile(np.array(positives, np.int32), times))
    kernel.draw_negatives(positives=rows, n_items=n_items, seed=7, out=out, threads=2)
    return out


@pytest.mark.parametrize("positives", [[0], [9], [0, 1, 2], [7, 8, 9], [1, 4, 5, 8], [0, 1, 2, 3, 5, 6, 7, 8, 9]])
def test_every_missing_item_is_as_likely_as_any_other_and_no_positive_is_drawn(positives):
    found, times = np.unique(draws(positives, 10, 4000), return_counts=True)
    assert sorted({*found, *positives}) == list(range(10)) and not set(found) & set(positives)
    assert len(times) == 1 or chisquare(times).pvalue > 0.001


def test_what_counts_as_positive(ratings):
    indptr, items = positives_of(ratings, None)
    assert indptr.tolist() == ratings.indptr.tolist() and items.tolist() == ratings.items.tolist()
    indptr, items = positives_of(ratings, 5.0)
    assert len(items) == (ratings.values >= 5).sum()
    for user in range(ratings.n_users):
        rows = slice(ratings.indptr[user], ratings.indptr[user + 1])
        expected = ratings.items[rows][ratings.values[rows] >= 5]
        assert items[indptr[user] : indptr[user + 1]].tolist() == expected.tolist()


def test_who_has_every_item_or_no_positive_ties_them_all_and_who_has_no_rating_scores_nan():
    view = Ratings.from_triples([0, 0, 0, 1, 2], [0, 1, 2, 1, 0], [3, 3, 3, 3, 1], 4, 3)
    model = fit(BPR(rank=2, least=2.0), view, steps=3)
    assert model.score(np.repeat([0, 2], 3), np.tile(np.arange(3), 2)).tolist() == [0] * 6
    assert np.isnan(model.score(np.array([3]), np.array([0]))).all()
    assert np.ptp(model.score(np.repeat(1, 3), np.arange(3))) > 0


# updates


def test_an_update_goes_down_the_gradient():
    view = Ratings.from_triples([0], [0], [1.0], 1, 2)  # one positive, and one item that can be its negative
    steps = BPR(rank=2, lam=0.3, step=1e-3).steps(view, np.random.default_rng(3))
    model = next(steps).model
    before = np.vstack([model.users, model.items])

    def loss(flat):
        u, v, w = flat.reshape(3, 2)
        return np.logaddexp(0, -u @ (v - w)) + 0.15 * np.square(flat).sum()

    gradient = approx_fprime(before.ravel(), loss, 1e-7).reshape(3, 2)
    model = next(steps).model
    moved = (before - np.vstack([model.users, model.items])) / 1e-3
    np.testing.assert_allclose(moved, gradient, rtol=1e-5, atol=1e-5)


def pieces_of(model, rank):
    """U, V and the biases out of the rows (u, 1) and (v, b)."""
    known = model.users[~np.isnan(model.users[:, 0])]
    assert (known[:, rank:] == 1).all() and model.items.shape[1] == rank + 1
    return model.users[:, :rank].copy(), model.items[:, :rank].copy(), model.items[:, rank].copy()


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("rank", [2, 3, 4, 8])  # in rows of four numbers, and of eight
def test_with_biases_an_update_goes_down_the_gradient_of_all_but_the_constant(rank, precision):
    view = Ratings.from_triples([0], [0], [1.0], 9, 2)  # one positive, and one item that can be its negative
    exact = precision == "double"
    solver = BPR(rank=rank, lam=0.3, step=1e-3 if exact else 0.1, biases=True, precision=precision)
    steps = solver.steps(view, np.random.default_rng(3))
    model = next(steps).model
    users, items, biases = pieces_of(model, rank)
    assert (biases == 0).all()
    for _ in range(3):
        x = users[0] @ (items[0] - items[1]) + biases[0] - biases[1]
        slope, sign = -1 / (1 + np.exp(x)), np.array([1.0, -1.0])
        user_slope = slope * (items[0] - items[1]) + 0.3 * users[0]
        item_slope = slope * sign[:, None] * users[0] + 0.3 * items
        bias_slope = slope * sign + 0.3 * biases
        users = users - solver.step * user_slope
        items, biases = items - solver.step * item_slope, biases - solver.step * bias_slope
        found = pieces_of(next(steps).model, rank)
        for piece, expected in zip(found, (users, items, biases), strict=True):
            np.testing.assert_allclose(piece, expected, rtol=1e-12 if exact else 1e-5, atol=1e-14 if exact else 1e-6)


def test_with_biases_the_objective_has_their_penalty_and_none_of_the_constant():
    view = Ratings.from_triples([0, 1], [0, 1], [1.0, 1.0], 2, 2)
    for step in islice(BPR(rank=2, lam=0.5, biases=True).steps(view, np.random.default_rng(0)), 3):
        (u, s), (v, w), (b, c) = pieces_of(step.model, 2)
        size = 2 * (v @ v + w @ w + b * b + c * c) + u @ u + s @ s
        losses = np.logaddexp(0, -u @ (v - w) - b + c) + np.logaddexp(0, -s @ (w - v) + b - c)
        assert step.objective() == pytest.approx(losses + 0.25 * size, rel=1e-12)


def test_biases_tell_users_without_a_positive_what_is_popular():
    users, items = np.nonzero(np.random.default_rng(0).random((60, 20)) < np.linspace(0.9, 0.1, 20))
    values = np.full(len(users), 5.0)
    values[users == 7] = 1.0
    model = fit(BPR(rank=2, least=2.0, biases=True), Ratings.from_triples(users, items, values, 61, 20), steps=30)
    scores = model.score_all(np.array([7, 60]))
    assert np.corrcoef(scores[0], np.arange(20))[0, 1] < -0.9
    assert np.isnan(scores[1]).all()


def test_biases_have_the_bytes_of_one_thread_too(ratings):
    found = [fit(BPR(rank=5, parts=4, biases=True), ratings, steps=4, threads=threads) for threads in (1, 2, 5)]
    assert len({model.users.tobytes() + model.items.tobytes() for model in found}) == 1


def test_the_objective_is_the_sum_over_positives_and_negatives_kept_from_the_start():
    view = Ratings.from_triples([0, 1], [0, 1], [1.0, 1.0], 2, 2)
    for _, step in zip(range(3), BPR(rank=2, lam=0.5).steps(view, np.random.default_rng(0)), strict=False):
        (u, s), (v, w) = step.model.users, step.model.items
        size = sum(2 * np.square(row).sum() for row in (v, w)) + np.square(u).sum() + np.square(s).sum()
        losses = np.logaddexp(0, -u @ (v - w)) + np.logaddexp(0, -s @ (w - v))
        assert step.objective() == pytest.approx(losses + 0.25 * size, rel=1e-12)


def test_its_objective_comes_down(ratings):
    steps = BPR(rank=3).steps(ratings, np.random.default_rng(0))
    objectives = [next(steps).objective() for _ in range(21)]
    assert objectives[20] < objectives[5] < objectives[0]


@pytest.mark.parametrize("least", [None, 5.0])
def test_it_recommends_what_users_would_choose(ratings, least):
    model = fit(BPR(rank=3, least=least, step=0.1), ratings, steps=30)
    scores = model.score(*(ids.ravel() for ids in np.indices((80, 60)))).reshape(80, 60)
    seen = np.zeros((80, 60), bool)
    seen[ratings.users, ratings.items] = True
    liked = (np.arange(80)[:, None] < 40) == (np.arange(60)[None, :] < 30)
    correct = [
        np.mean(row[own & ~used][:, None] > row[~own & ~used])
        for row, own, used in zip(scores, liked, seen, strict=True)
    ]
    assert np.mean(correct) > 0.9


def test_any_number_of_threads_gives_the_bytes_of_one(ratings):
    found = [fit(BPR(rank=5, parts=4), ratings, steps=4, threads=threads) for threads in (1, 2, 3, 5)]
    assert len({model.users.tobytes() + model.items.tobytes() for model in found}) == 1


# bad input


def test_a_rank_above_both_sides_is_refused(ratings):
    with pytest.raises(UserError, match="rank=81 is larger than both sides, 80 users and 60 items"):
        next(BPR(rank=81).steps(ratings, np.random.default_rng(0)))


def test_a_penalty_must_be_above_zero():
    with pytest.raises(UserError, match="lam=0 is out of range: must be at least 1e-12"):
        BPR(lam=0)
