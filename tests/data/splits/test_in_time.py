"""Splits by time: nothing that trains is later than what is tested, for all users together or for each alone."""

import numpy as np
import pytest
from data.splits.small import cut_or_skip, patient, per_user, ratings, rows_of
from hypothesis import given
from hypothesis import strategies as st

from rankbench.core.errors import UserError
from rankbench.data.splits import split
from rankbench.data.views import Ratings, offer
from rankbench.solvers.mf import MF

VIEW = Ratings.from_triples(
    [0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 1, 0], [1.0, 2, 3, 4, 5, 1], times=[10, 30, 20, 30, 10, 40]
)


@patient
@given(ratings(), st.sampled_from([0.1, 0.3, 0.6]), st.sampled_from(["drop", "keep"]))
def test_no_training_row_is_as_late_as_a_test_row_of_anybody(view, share, new_users):
    parts = cut_or_skip(view, f"temporal[test={share},new_users={new_users}]")
    assert parts.train.times.max() < parts.test.times.min()
    everything = rows_of(parts.train) + rows_of(parts.test)
    held_out = len(view) - len(parts.train)
    assert held_out >= round(share * len(view))
    latest = np.sort(view.times)[::-1]
    assert latest[max(1, round(share * len(view))) - 1] == min(view.times[view.times > parts.train.times.max()])
    if new_users == "keep":
        assert everything == rows_of(view)
    else:
        assert (per_user(parts.train)[per_user(parts.test) > 0] > 0).all()


@patient
@given(ratings(), st.integers(1, 4), st.integers(1, 3))
def test_each_users_last_rows_are_tested(view, n, least):
    parts = cut_or_skip(view, f"leave-last-out[n={n},least={least}]")
    assert rows_of(parts.train) + rows_of(parts.test) == rows_of(view)
    for user in range(view.n_users):
        enough = per_user(view)[user] >= n + least
        assert per_user(parts.test)[user] == (n if enough else 0)
        if enough:
            train, test = (part.times[part.indptr[user] : part.indptr[user + 1]] for part in (parts.train, parts.test))
            assert train.max() <= test.min()


def test_the_parts_of_a_small_example():
    parts = split(VIEW, "temporal[test=0.4]")  # 30, 30 and 40 are the last; user 2 has nothing to train on
    assert rows_of(parts.test) == {(0, 1, 2.0): 1, (1, 0, 4.0): 1} and len(parts.train) == 3
    assert (2, 0, 1.0) in rows_of(split(VIEW, "temporal[test=0.4,new_users=keep]").test)
    assert rows_of(split(VIEW, "leave-last-out").test) == {(0, 1, 2.0): 1, (1, 0, 4.0): 1}


def test_equal_times_are_drawn_among():
    view = Ratings.from_triples(np.zeros(6, int), np.arange(6), np.ones(6), times=np.full(6, 5))
    tested = {int(split(view, "leave-last-out", seed=seed).test.items[0]) for seed in range(40)}
    assert tested == set(range(6))


@pytest.mark.parametrize("protocol", ["temporal", "leave-last-out"])
def test_data_without_times_is_refused_with_another_way(protocol):
    view = Ratings.from_triples([0, 0], [0, 1], [1.0, 2.0])
    with pytest.raises(
        UserError, match=r"needs the times of the ratings, and this data has none, or not all can be read "
    ):
        split(view, protocol)


def test_a_solver_does_not_see_times():
    assert offer(MF(), VIEW).times is None


def test_times_are_one_whole_number_for_each_rating():
    with pytest.raises(UserError, match="items has 2 rows and times 1: they must have the same length"):
        Ratings([0, 2], [0, 1], [1.0, 2.0], 2, times=[5])
    with pytest.raises(UserError, match="times must be integers, not float64"):
        Ratings([0, 1], [0], [1.0], 2, times=[0.5])
    assert "times: from 10 to 40" in repr(VIEW)
