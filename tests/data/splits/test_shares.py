"""Splits that hold out a share of all rows, or of all items."""

import numpy as np
import pytest
from data.splits.small import SEEDS, cut_or_skip, patient, per_user, rankings, ratings, rows_of
from hypothesis import given
from hypothesis import strategies as st

from rankbench.core.errors import UserError
from rankbench.data.splits import split
from rankbench.data.synthetic import LowRank

SHARES = st.floats(0.05, 0.95)


@patient
@given(ratings(), SHARES, SEEDS)
def test_entries_hold_out_the_rounded_share_of_the_rows_of_either_view(view, test, seed):
    for rows in (view, view.comparisons()):
        parts = cut_or_skip(rows, f"entries[test={test}]", seed)
        assert len(parts.test) == round(test * len(rows))
        assert type(parts.train) is type(parts.test) is type(rows)
        assert rows_of(parts.train) + rows_of(parts.test) == rows_of(rows)


@patient
@given(ratings(), st.floats(0.1, 0.4), st.floats(0, 0.3), st.floats(0.05, 0.3), SEEDS)
def test_entries_set_validation_aside_and_train_on_a_fraction_of_all_rows(view, test, validation, train, seed):
    parts = cut_or_skip(view, f"entries[test={test},validation={validation},train={train}]", seed)
    n_test, n_validation = round(test * len(view)), round(validation * len(view))
    assert len(parts.test) == n_test
    assert len(parts.train) == min(round(train * len(view)), len(view) - n_test - n_validation)
    assert rows_of(parts.train) + rows_of(parts.test) <= rows_of(view)


@patient
@given(ratings(), SHARES, SEEDS)
def test_without_a_fraction_to_train_on_all_that_is_left_trains(view, validation, seed):
    parts = cut_or_skip(view, f"entries[test=0.04,validation={validation}]", seed)
    assert len(parts.train) == len(view) - round(0.04 * len(view)) - round(validation * len(view))


@patient
@given(ratings(), SHARES, SEEDS)
def test_cold_items_never_train(view, test, seed):
    parts = cut_or_skip(view, f"cold-items[test={test}]", seed)
    cold = set(parts.test.items.tolist())
    assert not cold & set(parts.train.items.tolist())
    assert len(cold) <= round(test * view.n_items)
    assert rows_of(parts.train) + rows_of(parts.test) == rows_of(view)


@patient
@given(rankings(), SHARES, SEEDS)
def test_comparisons_with_a_cold_item_never_train(view, test, seed):
    parts = cut_or_skip(view, f"cold-items[test={test}]", seed)
    warm = set(parts.train.better.tolist()) | set(parts.train.worse.tolist())
    for better, worse in zip(parts.test.better.tolist(), parts.test.worse.tolist(), strict=True):
        assert better not in warm or worse not in warm
    assert rows_of(parts.train) + rows_of(parts.test) == rows_of(view)


@patient
@given(ratings(), SHARES, st.integers(0, 4), SEEDS)
def test_so_many_rows_of_a_new_user_train_and_all_of_the_others(view, test, known, seed):
    for rows in (view, view.comparisons()):
        parts = cut_or_skip(rows, f"new-users[test={test},known={known},least=2]", seed)
        train, tested, whole = (per_user(part) for part in (parts.train, parts.test, rows))
        new = tested > 0
        assert new.sum() == max(1, round(test * (whole >= known + 2).sum()))
        assert (train[new] == known).all()
        assert (train[~new] == whole[~new]).all()
        assert (tested[new] >= 2).all()
        assert rows_of(parts.train) + rows_of(parts.test) == rows_of(rows)


def test_no_user_has_enough_rows_to_be_new():
    view = LowRank(users=5, items=9, per_user=4).view(np.random.default_rng(0))
    with pytest.raises(UserError, match=r"no user has 5 ratings .* lower known or least"):
        split(view, "new-users", known=4)


@pytest.mark.parametrize(("test", "cold"), [(0.3, 30), (0.055, 6)])
def test_a_share_of_the_items_is_cold(test, cold):
    view = LowRank(users=60, items=100, per_user=20).view(np.random.default_rng(0))
    assert len(set(view.items.tolist())) == 100
    assert len(set(split(view, "cold-items", test=test).test.items.tolist())) == cold
