"""SQL-Rank: derivatives of the likelihood of lists, random ties, unrated items, and the minimum of the objective."""

from dataclasses import replace
from functools import partial
from itertools import islice, pairwise

import numpy as np
import pytest
import scipy.optimize
from scipy.special import expit, logsumexp
from scipy.stats import chisquare
from solvers.contract import SolverContract
from solvers.least import least_below, slopes_of
from solvers.problems import few_ratings
from solvers.two_groups import gain

from rankbench.core.contract import Floats, Ints
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.kernels.solvers import sqlrank as kernel
from rankbench.solvers.sqlrank import SQLRank, _Descent


class TestSQLRank(SolverContract):
    solver = SQLRank(rank=3, lam=0.1)


@pytest.mark.trust
class TestSQLRankOfScores(SolverContract):
    solver = SQLRank(rank=3, lam=0.1, link="identity", batch=5)


class TestSQLRankAmongUnrated(SolverContract):
    solver = SQLRank(rank=3, lam=0.1, unrated=2, least=1.0)


@pytest.fixture
def train() -> Ratings:
    """Ratings of 15 users, all different; item 0 and user 14 have none."""
    few = few_ratings()
    return replace(few, values=np.random.default_rng(2).permutation(len(few)).astype(float))


def loss_of(scores: Floats, link: str) -> float:
    """What a list with these scores in its order costs, by the formula of the docstring."""
    m = expit(scores) if link == "sigmoid" else scores
    return float(sum(logsumexp(m[place:]) - m[place] for place in range(len(m))))


def value(solver: SQLRank, train: Ratings, users: Floats, items: Floats) -> float:
    """The objective of ratings that are all different."""
    losses = 0.0
    for user in range(train.n_users):
        rows = slice(train.indptr[user], train.indptr[user + 1])
        own = train.items[rows][np.argsort(-train.values[rows])]
        losses += loss_of(items[own] @ users[user], solver.link)
    return losses + solver.lam / 2 * float(np.square(users).sum() + np.square(items).sum())


def kernels_slopes(scores: Floats, indptr: Ints, link: str, threads: int = 1) -> tuple[Floats, Floats]:
    """What the kernel gives."""
    losses, slopes = np.empty(len(indptr) - 1), np.empty(len(scores))
    kernel.list_slopes(
        indptr=indptr, scores=scores, sigmoid=link == "sigmoid", losses=losses, slopes=slopes, threads=threads
    )
    return losses, slopes


@pytest.mark.parametrize("link", ["sigmoid", "identity"])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_losses_and_slopes_are_those_of_the_formula(link, scale):
    indptr = np.cumsum([0, 5, 0, 1, 6, 8, 9, 16, 17, 40])  # the kernel works on blocks of eight places
    scores = scale * np.random.default_rng(0).standard_normal(indptr[-1])
    losses, slopes = kernels_slopes(scores, indptr, link)
    pieces = [slice(*ends) for ends in pairwise(indptr)]
    np.testing.assert_allclose(losses, [loss_of(scores[piece], link) for piece in pieces], rtol=1e-12, atol=1e-12)
    expected = scipy.optimize.approx_fprime(scores, lambda x: sum(loss_of(x[piece], link) for piece in pieces), 1e-7)
    np.testing.assert_allclose(slopes, expected, atol=1e-5)
    assert losses[1] == 0.0 and losses[2] == 0.0 and abs(slopes[5]) < 1e-15  # a list of none, and one of one item


def test_large_scores_do_not_overflow_and_threads_do_not_change_bits():
    rng = np.random.default_rng(0)
    scores, indptr = rng.standard_normal(9000) * 800, np.arange(0, 9001, 9)
    for link in ("sigmoid", "identity"):
        one, three = kernels_slopes(scores, indptr, link), kernels_slopes(scores, indptr, link, threads=3)
        assert np.isfinite(np.concatenate(one)).all()
        assert one[0].tobytes() == three[0].tobytes() and one[1].tobytes() == three[1].tobytes()


@pytest.mark.parametrize("link", ["sigmoid", "identity"])
def test_a_score_that_is_no_number_leaves_its_list_without_a_loss_and_no_other(link):
    scores = np.array([0.5, np.nan, 1.0, 2.0, 0.0])
    losses, slopes = kernels_slopes(scores, np.array([0, 3, 5]), link)
    assert np.isnan(losses[0]) and np.isnan(slopes[1])
    assert losses[1] == pytest.approx(loss_of(scores[3:], link)) and np.isfinite(slopes[3:]).all()


def test_lists_fall_and_break_ties_anew_each_time_all_orders_alike():
    view = Ratings.from_triples([0, 0, 0, 0], [4, 1, 2, 0], [1.0, 3.0, 3.0, 3.0], 1, 5)
    descent = _Descent(SQLRank(rank=1), view, np.random.default_rng(0), 1)
    drawn = [tuple(descent.lists().items.tolist()) for _ in range(1200)]
    found, times = np.unique(drawn, axis=0, return_counts=True)
    assert len(found) == 6 and (found[:, 3] == 4).all() and chisquare(times).pvalue > 0.001


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("levels", [1, 5, 1000])
def test_the_order_is_that_of_a_sort_by_user_rating_and_random_key(levels, threads):
    rng = np.random.default_rng(levels)
    users, items = np.divmod(np.flatnonzero(rng.random(40 * 150) < 0.7), 150)
    view = Ratings.from_triples(users, items, rng.integers(levels, size=len(users)).astype(float), 41, 150)
    descent = _Descent(SQLRank(rank=1), view, np.random.default_rng(7), threads)
    descent.rng = np.random.default_rng(8)
    keys = np.random.default_rng(8).random(len(view))
    assert descent._order().tolist() == np.lexsort((keys, -view.values, view.users)).tolist()


def test_unrated_items_stand_behind_all_rated_ones_all_alike():
    view = Ratings.from_triples([0, 0, 1, 1, 1, 1, 1], [4, 1, 0, 1, 2, 3, 4], [1.0, 3.0, 1, 2, 3, 4, 5], 2, 5)
    descent = _Descent(SQLRank(rank=1, unrated=3), view, np.random.default_rng(0), 1)
    lists = [descent.lists() for _ in range(500)]
    assert {tuple(one.indptr.tolist()) for one in lists} == {(0, 8, 13)}  # user 1 has rated all
    first = np.array([one.items[:8] for one in lists])
    assert (first[:, 0] == 1).all() and (first[:, 1] == 4).all()
    assert chisquare(np.bincount(first[:, 2:].ravel(), minlength=5)[[0, 2, 3]]).pvalue > 0.001
    assert not np.isin(first[:, 2:], [1, 4]).any()


@pytest.mark.trust
def test_a_step_over_all_users_follows_the_slope_of_the_objective(train):
    solver = SQLRank(rank=2, lam=0.3, step=0.01)
    descent = _Descent(solver, train, np.random.default_rng(0), 1)
    start = [np.nan_to_num(side.rows.copy()) for side in (descent.users, descent.items)]
    lists = descent.lists()
    assert descent.objective(lists) == pytest.approx(value(solver, train, *start), rel=1e-12)
    descent.visit(np.arange(14), lists)
    expected = slopes_of(partial(value, solver, train), *start)
    squares = np.concatenate([np.nan_to_num(side.squares).ravel() for side in (descent.users, descent.items)])
    np.testing.assert_allclose(np.sqrt(squares), np.abs(expected), atol=2e-5)
    after = (np.nan_to_num(side.rows) for side in (descent.users, descent.items))
    moved = np.concatenate([(now - was).ravel() for now, was in zip(after, start, strict=True)])
    steep = np.abs(expected) > 1e-3
    np.testing.assert_allclose(moved[steep], -0.01 * np.sign(expected[steep]), rtol=1e-9)


def test_in_a_pass_the_whole_penalty_is_taken_once(train):
    solver = SQLRank(rank=2, lam=0.3, batch=4)
    shares = []
    descent = _Descent(solver, train, np.random.default_rng(0), 1)
    lists = descent.lists()
    one_item = descent.items.rows[3].copy()
    descent.items.rows[:] = 0.0
    descent.users.rows[:14] = 0.0
    descent.items.rows[3] = one_item  # then all slopes of the losses are zero, and the penalty's are not
    for first in range(0, 14, 4):
        chosen = np.arange(first, min(first + 4, 14))
        before = descent.items.squares[3].copy()
        descent.items.rows[3] = one_item
        descent.users.rows[:14] = 0.0
        descent.visit(chosen, lists)
        shares.append(np.sqrt(descent.items.squares[3] - before) / np.abs(one_item))
    np.testing.assert_allclose(np.sum(shares, axis=0), 0.3, rtol=1e-9)


@pytest.mark.trust
@pytest.mark.parametrize("link", ["sigmoid", "identity"])
def test_another_optimiser_finds_nothing_much_below_the_end(link, train):
    solver = SQLRank(rank=2, lam=0.5, step=0.5, link=link)
    *_, end = islice(solver.steps(train, np.random.default_rng(0)), 3000)
    ends = np.nan_to_num(end.model.users), np.nan_to_num(end.model.items)
    assert least_below(partial(value, solver, train), *ends) == pytest.approx(end.objective(), rel=1e-4)


def test_what_is_not_known_has_no_score_and_what_is_below_the_least_rating_counts_as_not_rated(train):
    scores = fit(SQLRank(rank=2), train, steps=3).score_all(np.arange(15))
    assert np.isnan(scores[14]).all() and np.isnan(scores[:, 0]).all() and not np.isnan(scores[:14, 1:]).any()
    among = fit(SQLRank(rank=2, unrated=1), train, steps=3).score_all(np.arange(14))
    assert not np.isnan(among).any()
    least = float(np.median(train.values))
    moved = replace(train, values=np.where(train.values < least, least - 9.0, train.values))
    for unrated in (0, 2):
        solver = SQLRank(rank=2, least=least, unrated=unrated)
        above, other = (fit(solver, one, steps=3).score_all(np.arange(15)) for one in (train, moved))
        assert above.tobytes() == other.tobytes()
    nothing = list(SQLRank(rank=2, least=1e9).steps(train, np.random.default_rng(0)))
    assert len(nothing) == 1 and nothing[0].objective() == 0.0


def test_it_finds_what_users_took_better_than_popularity():
    assert gain(SQLRank(rank=2, unrated=3), 30) > 0.1
