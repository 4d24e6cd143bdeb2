"""Splits that train on drawn comparisons: correct counts and candidates, and uniform draws."""

import numpy as np
import pytest
from data.splits.small import SEEDS, cut_or_skip, patient, per_user, ratings, rows_of, rows_of_users
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from rankbench.core.errors import UserError
from rankbench.data.splits import split
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Comparisons, Ratings
from rankbench.solvers.bpr import BPR
from rankbench.solvers.robirank import RobiRank
from rankbench.solvers.sgd import SGD


def pairs_of(view):
    """The (user, item) pairs of some ratings."""
    return {(user, item) for user, item, _ in rows_of(view)}


# ---- binary ----


@patient
@given(ratings(), st.integers(1, 40), st.floats(0.05, 0.95), SEEDS)
def test_binary_sets_seen_items_against_unseen_ones_and_holds_out_a_share_of_all_pairs(view, C, test, seed):
    parts = cut_or_skip(view, f"binary[C={C},test={test}]", seed)
    train, seen = parts.train, parts.seen
    assert isinstance(train, Comparisons)
    assert len(parts.test) == round(test * len(view))
    assert (parts.test.values == 1).all() and (seen.values == 1).all()
    assert pairs_of(seen) | pairs_of(parts.test) == pairs_of(view)
    assert not pairs_of(seen) & pairs_of(parts.test)
    comparable = (per_user(seen) > 0) & (per_user(seen) < view.n_items)
    assert per_user(train).tolist() == (C * comparable).tolist()
    users = train.users.tolist()
    assert set(zip(users, train.better.tolist(), strict=True)) <= pairs_of(seen)
    assert not set(zip(users, train.worse.tolist(), strict=True)) & pairs_of(seen)
    sorted_rows = np.lexsort((train.worse, train.better, train.users))
    assert (sorted_rows == np.arange(len(train))).all()


def test_a_user_who_rated_everything_has_no_comparison():
    view = Ratings.from_triples([0] * 4 + [1] * 2, [0, 1, 2, 3, 0, 1], np.ones(6), 3, 4)
    parts = next(parts for parts in (split(view, "binary[C=5]", seed=seed) for seed in range(99))
                 if per_user(parts.seen)[0] == 4)  # fmt: skip
    assert per_user(parts.train).tolist() == [0, 5, 0]


def test_a_user_who_rated_all_items_but_one_has_comparisons_with_that_one():
    view = Ratings.from_triples([0] * 4 + [1] * 2, [0, 1, 2, 4, 0, 1], np.ones(6), 2, 5)
    parts = next(parts for parts in (split(view, "binary[C=5]", seed=seed) for seed in range(99))
                 if per_user(parts.seen)[0] == 4)  # fmt: skip
    assert per_user(parts.train)[0] == 5
    assert parts.train.worse[:5].tolist() == [3] * 5


def test_data_in_which_everybody_rated_everything_is_an_error():
    with pytest.raises(UserError, match="finds no user with an unrated item to compare with"):
        split(Ratings.from_triples(np.arange(9), np.zeros(9, int), np.ones(9), 9, 1), "binary[test=0.4]")


def test_binary_draws_every_pair_of_a_seen_and_an_unseen_item_alike():
    items, n_items = [1, 2, 5, 9], 11
    view = Ratings.from_triples(np.zeros(4, int), items, np.ones(4), 1, n_items)
    parts = split(view, "binary[C=70000,test=0.2]")
    seen = parts.seen.items.tolist()
    unseen = sorted(set(range(n_items)) - set(seen))
    assert len(seen) == 3 and 0 in unseen and 10 in unseen
    times = np.zeros((n_items, n_items), int)
    np.add.at(times, (parts.train.better, parts.train.worse), 1)
    assert times.sum() == 70_000 == times[np.ix_(seen, unseen)].sum()
    assert chisquare(times[np.ix_(seen, unseen)].ravel()).pvalue > 0.001


def test_binary_never_builds_the_complement():
    n_items = 2**31 - 2  # a mask of them would take gigabytes for every user
    view = Ratings.from_triples([0, 0, 0, 1, 1, 1], [5, 7, n_items - 1, 0, 1, 2], np.ones(6), 2, n_items)
    train = split(view, "binary[C=2000,test=0.2]").train
    assert per_user(train).tolist() == [2000, 2000]
    assert 0.4 * n_items < train.worse.mean() < 0.6 * n_items


# ---- drawn comparisons ----


@patient
@given(ratings(), st.integers(2, 40), st.floats(0.05, 0.95), SEEDS)
def test_comparisons_are_n_different_strict_pairs_of_whoever_has_as_many(view, n, test, seed):
    parts = cut_or_skip(view, f"comparisons[n={n},test={test}]", seed)
    implied = view.comparisons()
    enough = per_user(implied) >= n
    assert (per_user(parts.train) + per_user(parts.test)).tolist() == (n * enough).tolist()
    assert set(per_user(parts.test)[enough]) == {min(int(np.floor(test * n + 0.5)), n - 1)}
    assert rows_of(parts.train) + rows_of(parts.test) <= rows_of(implied)


@patient
@given(ratings(), st.integers(2, 8), SEEDS)
def test_or_all_strict_pairs_of_n_items_of_whoever_has_as_many(view, n, seed):
    parts = cut_or_skip(view, f"comparisons[n={n},of=items]", seed)
    drawn = rows_of(parts.train) + rows_of(parts.test)
    assert drawn <= rows_of_users(view.comparisons(), per_user(view) >= n)
    for user in {user for user, _, _ in drawn}:
        items = {item for row in drawn if row[0] == user for item in row[1:]}
        theirs = {item: y for other, item, y in rows_of(view) if other == user}
        assert len(items) <= n  # an item that ties with all others is in no pair
        expected = sum(theirs[j] > theirs[k] for j in items for k in items)
        assert sum(row[0] == user for row in drawn) == expected


def test_all_pairs_of_all_items_are_all_pairs():
    view = Ratings.from_triples(np.repeat([0, 1], 6), np.tile(np.arange(6), 2), np.arange(12.0) % 5, 2, 6)
    parts = split(view, "comparisons[n=6,of=items]")
    assert rows_of(parts.train) + rows_of(parts.test) == rows_of(view.comparisons())


# ---- sampling pairs of ratings ----


def test_a_sample_of_more_pairs_than_could_be_walked_is_drawn_at_once():
    n = 300_000  # 45 thousand million pairs
    view = Ratings([0, n], np.arange(n), np.arange(n, dtype=float)[::-1], n)
    drawn = view.comparisons(500, np.random.default_rng(0))
    assert len(drawn) == 500 == len(rows_of(drawn))
    assert (drawn.better < drawn.worse).all()  # the values fall
    assert drawn.better.std() > n / 6  # not all of the same corner


@patient
@given(st.lists(st.integers(0, 5), min_size=2, max_size=40), st.integers(0, 60), SEEDS)
def test_a_sample_is_so_many_different_strict_pairs_in_order(values, limit, seed):
    view = Ratings([0, len(values)], np.arange(len(values)), np.array(values, float), len(values))
    everything, drawn = view.comparisons(), view.comparisons(limit, np.random.default_rng(seed))
    pairs = list(zip(drawn.better.tolist(), drawn.worse.tolist(), strict=True))
    assert len(pairs) == min(limit, len(everything))
    assert pairs == sorted(set(pairs))
    assert all(values[j] > values[k] for j, k in pairs)


def test_every_pair_of_many_is_as_likely_to_be_drawn_as_any_other():
    values = np.random.default_rng(0).integers(1, 6, 40).astype(float)
    users = 2000
    view = Ratings(np.arange(users + 1) * 40, np.tile(np.arange(40), users), np.tile(values, users), 40)
    drawn = view.comparisons(30, np.random.default_rng(1))
    times = np.zeros((40, 40), int)
    np.add.at(times, (drawn.better, drawn.worse), 1)
    strict = values[:, None] > values[None, :]
    assert times.sum() == 30 * users == times[strict].sum()
    assert chisquare(times[strict]).pvalue > 0.001


def test_solvers_of_ratings_learn_from_what_binary_drew_its_comparisons_from():
    view = LowRank(users=30, items=40, per_user=12).view(np.random.default_rng(0))
    parts = split(view, "binary[C=5]")
    assert parts.train_for(RobiRank()) is parts.seen and parts.train_for(BPR()) is parts.seen
    assert parts.train_for(SGD()) is parts.train
