"""The k-core of a data set: what a split leaves out before it cuts."""

from collections import Counter

import numpy as np
import pytest
from data.splits.small import SEEDS, patient, rankings, ratings, rows_of
from hypothesis import given

from rankbench.core.errors import UserError
from rankbench.data.splits import SPLITS, OfCore, cut, split
from rankbench.data.splits.cores import core_of
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Ratings


@pytest.fixture
def data():
    """60 users with 10 ratings each, of 60 items, most of which have more than 7."""
    return LowRank(users=60, items=60, per_user=10).view(np.random.default_rng(0))


def peeled(rows, least):
    """The rows that are left when the one row of a user or item with too few is taken away at a time."""
    rows = list(rows)
    while True:
        users = Counter(row[0] for row in rows)
        items = Counter(item for row in rows for item in set(row[1]))
        poor = [row for row in rows if users[row[0]] < least or min(items[item] for item in row[1]) < least]
        if not poor:
            return sorted(rows)
        rows.remove(poor[0])


def with_items(view):
    """The rows of a view as (user, its items, what else there is)."""
    if isinstance(view, Ratings):
        return [(user, (item,), value) for user, item, value in rows_of(view)]
    return [(int(user), (int(a), int(b))) for user, a, b in zip(view.users, view.better, view.worse, strict=True)]


@patient
@given(ratings(), SEEDS)
def test_the_core_of_ratings_is_what_peeling_row_by_row_leaves(view, seed):
    least = 1 + seed % 4
    assert sorted(with_items(core_of(view, least))) == peeled(with_items(view), least)


@patient
@given(rankings(), SEEDS)
def test_the_core_of_comparisons_is_what_peeling_row_by_row_leaves(view, seed):
    least = 1 + seed % 4
    assert sorted(with_items(core_of(view, least))) == peeled(with_items(view), least)


@pytest.mark.parametrize("name", [name for name in SPLITS.entries if hasattr(SPLITS.find(name), "core")])
def test_a_split_of_a_core_is_the_split_of_that_core_and_says_so(name, data):
    named = SPLITS.resolve(name, {"core": 7} | ({"n": 3, "least": 2} if name == "n-per-user" else {}))
    assert isinstance(named.record, OfCore) and "core=7" in named.identity
    timed = Ratings(data.indptr, data.items, data.values, data.n_items, times=np.arange(len(data)) % 10)
    parts = cut(timed, named, 0, 0)
    kept = set(zip(*(getattr(core_of(timed, 7), column).tolist() for column in ("users", "items")), strict=True))
    for part in parts.parts.values():
        assert (part.n_users, part.n_items) == (data.n_users, data.n_items)
        if isinstance(part, Ratings) and name != "binary":
            assert set(zip(part.users.tolist(), part.items.tolist(), strict=True)) <= kept


def test_a_core_of_one_row_is_all_rows_and_leaves_names_and_hashes_as_they_were(data):
    assert SPLITS.resolve("per-user[core=1]").identity == SPLITS.resolve("per-user").identity
    assert split(data, "per-user", core=1).hash == split(data, "per-user").hash
    assert split(data, "per-user", core=7).hash != split(data, "per-user").hash


def test_a_core_of_two_leaves_out_an_item_with_one_row():
    view = Ratings.from_triples([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 3], np.arange(6.0))
    parts = split(view, "leave-one-out", core=2)
    assert sorted([*parts.train.items, *parts.test.items]) == [0, 0, 1, 1]


def test_a_core_without_a_row_is_refused(data):
    with pytest.raises(UserError, match=r"keeps no row, as core=11 takes all users and items away: lower core"):
        split(data, "per-user", core=11)
