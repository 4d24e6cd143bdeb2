"""Splits that hold out a share of all rows, or of all items."""

import numpy as np
import pytest
from data.splits.small import SEEDS, cut_or_skip, patient, ratings, rows_of
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize(("test", "cold"), [(0.3, 30), (0.055, 6)])
def test_a_share_of_the_items_is_cold(test, cold):
    view = LowRank(users=60, items=100, per_user=20).view(np.random.default_rng(0))
    assert len(set(view.items.tolist())) == 100
    assert len(set(split(view, "cold-items", test=test).test.items.tolist())) == cold
