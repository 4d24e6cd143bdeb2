"""The papers' protocols: what trains, what tests, and a hash that only content can move."""

import itertools
from collections import Counter

import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rankbench.data.splits import SPLITS, Split, split
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Comparisons, Ratings
from rankbench.errors import UserError

patient = settings(deadline=None)  # a slow machine is no failure

HALF = "half-per-user[reviewers=20,least=10,most=60,references=3,low=10,high=60]"
EVERY_SPLIT = ("n-per-user[n=5,least=2]", "half-per-user[reviewers=20,least=10,most=60]", HALF, "entries", "cold-items")
KEEPS_ALL_ROWS = ("entries", "entries[test=0.5]", "cold-items", "cold-items[test=0.5]")


@pytest.fixture(scope="module")
def data():
    """60 users with 20 ratings of 100 items each."""
    return LowRank(users=60, items=100, per_user=20).view(np.random.default_rng(0))


@st.composite
def ratings(draw):
    """Up to twelve users with up to fifteen ratings each, some with none."""
    counts = np.array(draw(st.lists(st.integers(0, 15), min_size=1, max_size=12)))
    assume(counts.sum())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    items = np.concatenate([rng.choice(20, n, replace=False) for n in counts])
    users = np.repeat(np.arange(len(counts)), counts)
    return Ratings.from_triples(users, items, rng.integers(1, 6, len(users)).astype(float), len(counts), 20)


def rows_of(view):
    """Every row of a view and how often it is there."""
    columns = (view.items, view.values) if isinstance(view, Ratings) else (view.better, view.worse)
    return Counter(zip(view.users.tolist(), *(column.tolist() for column in columns), strict=True))


def per_user(view):
    """How many rows each user has."""
    return np.diff(view.indptr)


def cut_or_skip(view, protocol, seed):
    """The split; a draw of data that is too small for it is passed over."""
    try:
        return split(view, protocol, seed=seed)
    except UserError:
        assume(False)


# ---- what goes where ----


@patient
@given(ratings(), st.integers(0, 99))
@pytest.mark.parametrize("protocol", KEEPS_ALL_ROWS)
def test_a_protocol_that_keeps_all_puts_every_row_on_one_side(protocol, view, seed):
    parts = cut_or_skip(view, protocol, seed)
    assert rows_of(parts.train) + rows_of(parts.test) == rows_of(view)


@patient
@given(ratings(), st.integers(0, 99))
@pytest.mark.parametrize("test", [0.2, 0.5, 0.9])
def test_entries_hold_out_the_rounded_share_of_the_rows_of_either_view(test, view, seed):
    for rows in (view, view.comparisons()):
        parts = cut_or_skip(rows, f"entries[test={test}]", seed)
        assert len(parts.test) == round(test * len(rows))
        assert type(parts.train) is type(parts.test) is type(rows)
        assert rows_of(parts.train) + rows_of(parts.test) == rows_of(rows)


@patient
@given(ratings(), st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_n_per_user_trains_on_n_of_whoever_has_enough(view, n, least, seed):
    parts = cut_or_skip(view, f"n-per-user[n={n},least={least}]", seed)
    enough = per_user(view) >= n + least
    assert per_user(parts.train).tolist() == (n * enough).tolist()
    assert per_user(parts.test).tolist() == ((per_user(view) - n) * enough).tolist()
    kept = rows_of(view.take(np.flatnonzero(enough[view.users])))
    assert rows_of(parts.train) + rows_of(parts.test) == kept


@patient
@given(ratings(), st.integers(1, 5), st.integers(2, 15), st.integers(2, 15), st.integers(0, 99))
def test_half_per_user_halves_the_drawn_reviewers_and_the_odd_row_trains(view, reviewers, least, most, seed):
    parts = cut_or_skip(view, f"half-per-user[reviewers={reviewers},least={least},most={most}]", seed)
    counts, train, test = per_user(view), per_user(parts.train), per_user(parts.test)
    drawn = train > 0
    suitable = (counts >= least) & (counts <= most)
    assert drawn.sum() == min(reviewers, suitable.sum())
    assert suitable[drawn].all() and not test[~drawn].any()
    assert train[drawn].tolist() == ((counts[drawn] + 1) // 2).tolist()
    assert rows_of(parts.train) + rows_of(parts.test) == rows_of(view.take(np.flatnonzero(drawn[view.users])))


@patient
@given(ratings(), st.floats(0.05, 0.95), st.integers(0, 99))
def test_cold_items_never_train(view, test, seed):
    parts = cut_or_skip(view, f"cold-items[test={test}]", seed)
    cold = set(parts.test.items.tolist())
    assert not cold & set(parts.train.items.tolist())
    assert len(cold) <= round(test * view.n_items)


def test_a_share_of_the_items_is_cold(data):
    cold = set(split(data, "cold-items", test=0.3).test.items.tolist())
    assert len(cold) == 30  # of a hundred, all rated


@pytest.mark.parametrize("protocol", EVERY_SPLIT)
def test_both_parts_are_over_the_same_users_and_items(data, protocol):
    parts = split(data, protocol)
    assert {(part.n_users, part.n_items) for part in (parts.train, parts.test)} == {(60, 100)}
    assert not set(rows_of(parts.train)) & set(rows_of(parts.test))


@pytest.mark.parametrize("protocol", ["n-per-user[n=10,least=2]", "half-per-user[reviewers=60,least=2]", "entries"])
def test_every_row_is_as_likely_to_train_as_any_other(data, protocol):
    repetitions = 200
    trained = sum((rows_of(split(data, protocol, repetition=i).train) for i in range(repetitions)), Counter())
    counts = np.array([trained[row] for row in rows_of(data)])
    share = counts.sum() / (repetitions * len(data))
    deviations = (counts - repetitions * share) / np.sqrt(repetitions * share * (1 - share))
    assert np.abs(deviations).max() < 5


# ---- references ----


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
        assert per_user(part).tolist() == [5, 5, 0, 0]


def test_a_reviewer_is_never_a_reference(data):
    parts = split(data, "half-per-user[reviewers=55,least=20,most=20,references=9,low=20,high=20]")
    assert parts.train.item_features.shape == (100, 5)  # whoever was not drawn, though nine were asked for


def test_without_references_the_features_stay_as_they_are(data):
    assert split(data, "half-per-user[least=10]").train.item_features is None


# ---- the hash ----


@pytest.mark.parametrize("protocol", EVERY_SPLIT)
def test_the_same_seed_gives_the_same_hash_and_another_seed_or_repetition_another(data, protocol):
    def hashes():
        return [split(data, protocol, seed=s, repetition=r).hash for s, r in itertools.product(range(4), range(3))]

    assert hashes() == hashes()
    assert len(set(hashes())) == 12


@pytest.mark.parametrize("protocol", EVERY_SPLIT)
def test_the_order_of_rows_in_the_file_never_matters(data, protocol):
    order = np.random.default_rng(1).permutation(len(data))
    shuffled = Ratings.from_triples(data.users[order], data.items[order], data.values[order], 60, 100)
    assert split(shuffled, protocol).hash == split(data, protocol).hash


def test_the_order_of_comparisons_in_the_file_never_matters(data):
    pairs = data.comparisons(5, np.random.default_rng(0))
    order = np.random.default_rng(1).permutation(len(pairs))
    shuffled = Comparisons.from_triples(pairs.users[order], pairs.better[order], pairs.worse[order], 60, 100)
    assert split(shuffled, "entries").hash == split(pairs, "entries").hash


def variants():
    """A small pair of parts, and what differs from it in one thing each."""
    part = Ratings([0, 2], [0, 1], [1.0, 2.0], 3)
    yield "itself", part, part
    yield "the parts exchanged", part.take(np.array([0])), part
    yield "another value", Ratings([0, 2], [0, 1], [1.0, 2.5], 3), part
    yield "another item", Ratings([0, 2], [0, 2], [1.0, 2.0], 3), part
    yield "another user", Ratings([0, 1, 2], [0, 1], [1.0, 2.0], 3), part
    yield "one more item", Ratings([0, 2], [0, 1], [1.0, 2.0], 4), part
    yield "dense features", Ratings([0, 2], [0, 1], [1.0, 2.0], 3, np.eye(3)), part
    yield "other features", Ratings([0, 2], [0, 1], [1.0, 2.0], 3, 2 * np.eye(3)), part
    yield "sparse features", Ratings([0, 2], [0, 1], [1.0, 2.0], 3, scipy.sparse.eye_array(3)), part
    yield "comparisons", part.comparisons(), part


def test_whatever_differs_in_content_differs_in_hash():
    hashes = {name: Split(train, test).hash for name, train, test in variants()}
    hashes["the parts exchanged back"] = Split(*reversed(list(variants())[1][1:])).hash
    assert len(set(hashes.values())) == len(hashes)


def test_settings_by_text_by_keyword_or_by_default_make_one_split(data):
    by_text, by_keyword = split(data, "n-per-user[n=10,least=2]"), split(data, "n-per-user", n=10, least=2)
    mixed = split(data, " n-per-user [least=2] ", n="10")
    assert by_text.hash == by_keyword.hash == mixed.hash
    assert split(data, "entries").hash == split(data, "entries[test=0.2]").hash


# ---- errors ----


@pytest.mark.parametrize(
    ("protocol", "part"),
    [
        ("n-per-user[n=20,least=1]", "train"),
        ("half-per-user[least=21]", "train"),
        ("half-per-user[least=15,most=14]", "train"),
        ("entries[test=0.0001]", "test"),
        ("entries[test=0.9999]", "train"),
        ("cold-items[test=0.001]", "test"),
        ("cold-items[test=0.999]", "train"),
    ],
)
def test_data_too_small_for_a_split_is_an_error_that_names_it(data, protocol, part):
    name = protocol.partition("[")[0]
    with pytest.raises(UserError, match=rf"the split {name}\[.*leaves nothing to {part} on: the data is too small"):
        split(data, protocol)


def test_references_that_nobody_can_be_are_an_error(data):
    with pytest.raises(UserError, match=r"finds no reference reviewer with that many ratings: widen low\.\.high"):
        split(data, "half-per-user[least=10,references=2,low=1,high=5]")


@pytest.mark.parametrize("name", ["half-per-user", "cold-items"])
def test_comparisons_are_refused_where_ratings_are_needed(data, name):
    with pytest.raises(UserError, match=rf"the split {name} needs ratings, the data holds comparisons \(use entries\)"):
        split(data.comparisons(3, np.random.default_rng(0)), name)


@pytest.mark.parametrize(
    ("protocol", "settings", "message"),
    [
        ("n-per-users", {}, "unknown split 'n-per-users'; did you mean 'n-per-user'"),
        ("n-per-user", {"m": 3}, "unknown setting of n-per-user: 'm'"),
        ("n-per-user", {"n": 0}, "n-per-user: n=0 is out of range: must be at least 1"),
        ("entries", {"test": 1}, "entries: test=1 is out of range: must be above 0 and below 1"),
        ("cold-items[test=nan]", {}, "test=nan is out of range"),
        ("half-per-user[least=1]", {}, "least=1 is out of range: must be at least 2"),
    ],
)
def test_bad_settings_are_refused(data, protocol, settings, message):
    with pytest.raises(UserError, match=message):
        split(data, protocol, **settings)


@pytest.mark.parametrize("name", sorted(SPLITS.entries))
def test_every_split_can_be_made_by_its_name_alone_and_has_a_version(name):
    assert SPLITS.make(name).version >= 1
