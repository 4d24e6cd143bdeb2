"""Splits that cut each user's rows separately: which users are kept, and how many rows each part gets."""

import numpy as np
from data.splits.small import SEEDS, cut_or_skip, patient, per_user, ratings, rows_of, rows_of_users
from hypothesis import given
from hypothesis import strategies as st

from rankbench.data.splits import split
from rankbench.data.views import Ratings

SMALL = st.integers(1, 6)


@patient
@given(ratings(), SMALL, SMALL, SEEDS)
def test_n_per_user_trains_on_n_of_whoever_has_enough(view, n, least, seed):
    parts = cut_or_skip(view, f"n-per-user[n={n},least={least}]", seed)
    enough = per_user(view) >= n + least
    assert per_user(parts.train).tolist() == (n * enough).tolist()
    assert per_user(parts.test).tolist() == ((per_user(view) - n) * enough).tolist()
    assert rows_of(parts.train) + rows_of(parts.test) == rows_of_users(view, enough)


@patient
@given(ratings(), st.integers(2, 6), SMALL, SEEDS)
def test_items_per_task_trains_on_n_and_tests_on_so_many_others(view, n, test, seed):
    parts = cut_or_skip(view, f"items-per-task[n={n},test={test}]", seed)
    enough = per_user(view) >= n + test
    assert per_user(parts.train).tolist() == (n * enough).tolist()
    assert per_user(parts.test).tolist() == (test * enough).tolist()
    assert rows_of(parts.train) + rows_of(parts.test) <= rows_of(view)


@patient
@given(ratings(), SMALL, SMALL, SEEDS)
def test_leave_one_out_tests_n_of_whoever_has_enough_and_trains_on_all_else(view, n, least, seed):
    parts = cut_or_skip(view, f"leave-one-out[n={n},least={least}]", seed)
    enough = per_user(view) >= n + least
    assert per_user(parts.test).tolist() == (n * enough).tolist()
    assert rows_of(parts.train) + rows_of(parts.test) == rows_of(view)


@patient
@given(ratings(), st.floats(0.05, 0.95), SEEDS)
def test_per_user_tests_the_nearest_share_and_always_leaves_something_to_train_on(view, test, seed):
    for rows in (view, view.comparisons()):
        parts = cut_or_skip(rows, f"per-user[test={test}]", seed)
        counts, tested = per_user(rows), per_user(parts.test)
        assert rows_of(parts.train) + rows_of(parts.test) == rows_of(rows)
        assert (per_user(parts.train)[counts > 0] >= 1).all()
        several = counts > tested + 1  # all but those of whom all but one row test
        assert (np.abs(tested - test * counts)[several] <= 0.5).all()
        assert (tested <= test * counts + 0.5).all()


def test_a_share_that_is_half_a_row_is_rounded_up():
    view = Ratings.from_triples(np.repeat([0, 1, 2], [1, 2, 5]), [0, 0, 1, 0, 1, 2, 3, 4], np.ones(8))
    assert per_user(split(view, "per-user[test=0.5]").test).tolist() == [0, 1, 3]
