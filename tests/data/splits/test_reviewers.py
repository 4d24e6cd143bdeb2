"""The splits of Cortes et al. 2007: the reviewers, the reference reviewers, and the item features."""

import numpy as np
import pytest
from data.splits.small import SEEDS, cut_or_skip, patient, per_user, ratings, rows_of, rows_of_users
from hypothesis import given
from hypothesis import strategies as st

from rankbench.core.errors import UserError
from rankbench.data.splits import split
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Ratings


@pytest.fixture(scope="module")
def data():
    """60 users with 20 ratings of 100 items each."""
    return LowRank(users=60, items=100, per_user=20).view(np.random.default_rng(0))


# ---- half per user ----


@patient
@given(ratings(), st.integers(1, 5), st.integers(2, 15), st.integers(2, 15), SEEDS)
def test_half_per_user_halves_the_drawn_reviewers_and_the_odd_row_trains(view, reviewers, least, most, seed):
    parts = cut_or_skip(view, f"half-per-user[reviewers={reviewers},least={least},most={most}]", seed)
    counts, train, test = per_user(view), per_user(parts.train), per_user(parts.test)
    drawn = train > 0
    suitable = (counts >= least) & (counts <= most)
    assert drawn.sum() == min(reviewers, suitable.sum())
    assert suitable[drawn].all() and not test[~drawn].any()
    assert train[drawn].tolist() == ((counts[drawn] + 1) // 2).tolist()
    assert rows_of(parts.train) + rows_of(parts.test) == rows_of_users(view, drawn)


def test_reference_reviewers_become_the_item_features_with_their_medians_in_the_holes():
    counts = [10, 10, 4, 5]
    items = np.concatenate([np.arange(n) + shift for n, shift in zip(counts, [0, 2, 0, 5], strict=True)])
    values = np.concatenate([np.ones(10), np.full(10, 2.0), [1, 2, 3, 9], [4, 4, 1, 1, 5]])
    view = Ratings.from_triples(np.repeat(np.arange(4), counts), items, values, 4, 12)
    parts = split(view, "half-per-user", reviewers=2, least=10, most=10, references=2, low=4, high=5)
    first, second = np.full(12, 2.5), np.full(12, 4.0)
    first[:4], second[5:10] = [1, 2, 3, 9], [4, 4, 1, 1, 5]
    for part in (parts.train, parts.test):
        np.testing.assert_array_equal(part.item_features, np.stack([first, second], axis=1))
        assert part.feature_names.tolist() == [2, 3]
        assert per_user(part).tolist() == [5, 5, 0, 0]


def test_references_take_the_place_of_features_and_names_that_the_data_has():
    view = LowRank(users=60, items=100, per_user=20).view(np.random.default_rng(0))
    ids, genres = np.array([f"u{i}" for i in range(60)]), np.array(["drama", "war"])
    named = Ratings(view.indptr, view.items, view.values, 100, np.ones((100, 2)), feature_names=genres, user_ids=ids)
    parts = split(named, "half-per-user[reviewers=5,least=10,references=7,low=10]")
    references = parts.train.feature_names.tolist()
    assert parts.train.item_features.shape == (100, 7) and len(references) == 7
    assert not set(references) & set(ids[per_user(parts.train) > 0])
    kept = split(named, "half-per-user[reviewers=5,least=10]").train
    assert kept.feature_names.tolist() == ["drama", "war"] and kept.item_features.shape == (100, 2)


def test_a_reviewer_is_never_a_reference(data):
    parts = split(data, "half-per-user[reviewers=55,least=20,most=20,references=9,low=20,high=20]")
    assert parts.train.item_features.shape == (100, 5)  # whoever was not drawn, though nine were asked for


def test_without_references_the_features_stay_as_they_are(data):
    assert split(data, "half-per-user[least=10]").train.item_features is None


# ---- leave one reviewer out ----


def by_the_book(view, least, raters, repetition):
    """What the protocol leaves, in plain Python: items, the reviewer, and features as {(item, other): value}."""
    rows = [row for row in rows_of(view) if per_user(view)[row[0]] >= least]
    items = sorted({i for _, i, _ in rows if sum(other == i for _, other, _ in rows) >= raters})
    rows = [row for row in rows if row[1] in items]
    users = sorted({user for user, _, _ in rows})
    reviewer = [user for user in users if sum(row[0] == user for row in rows) >= 2][repetition]
    features = {}
    for other in (user for user in users if user != reviewer):
        given_ = {i: y for user, i, y in rows if user == other}
        features |= {(i, other): given_.get(i, np.median(list(given_.values()))) for i in items}
    return items, reviewer, features, {(i, y) for user, i, y in rows if user == reviewer}


@patient
@given(ratings(), st.integers(2, 8), st.integers(1, 3), st.integers(0, 3), SEEDS)
def test_one_reviewer_is_halved_and_the_others_are_the_features(view, least, raters, repetition, seed):
    parts = cut_or_skip(view, f"leave-reviewer-out[least={least},raters={raters}]", seed, repetition)
    items, reviewer, features, rated = by_the_book(view, least, raters, repetition)
    assert parts.train.item_ids.tolist() == parts.test.item_ids.tolist() == items
    both = rows_of(parts.train) + rows_of(parts.test)
    assert both == {(reviewer, items.index(i), y): 1 for i, y in rated}
    assert len(parts.train) - len(parts.test) == len(rated) % 2
    names = parts.train.feature_names.tolist()
    table = parts.train.item_features
    assert {(i, u): table[row, column] for row, i in enumerate(items) for column, u in enumerate(names)} == features
    np.testing.assert_array_equal(parts.test.item_features, table)


def test_items_that_stay_keep_their_published_ids():
    ids = np.array(["a", "b", "c"])
    view = Ratings([0, 2, 5], [1, 2, 0, 1, 2], [1.0, 2, 3, 4, 5], 3, item_ids=ids, user_ids=np.array([7, 9]))
    parts = split(view, "leave-reviewer-out[least=2,raters=2]")
    assert parts.train.item_ids.tolist() == ["b", "c"]
    assert parts.train.feature_names.tolist() == [9]
    np.testing.assert_array_equal(parts.train.item_features, [[4.0], [5.0]])


def test_more_repetitions_than_reviewers_are_an_error(data):
    with pytest.raises(UserError, match="has 60 reviewers to leave out: ask for at most 60 repetitions"):
        split(data, "leave-reviewer-out[least=3,raters=1]", repetition=60)


def test_a_reviewer_without_another_is_an_error():
    view = Ratings([0, 3], [0, 1, 2], [1.0, 2, 3], 3)
    with pytest.raises(UserError, match="finds no other reviewer of these items to make features of"):
        split(view, "leave-reviewer-out[least=2,raters=1]")
