"""Columns of texts that are kept once each hold what an array of all of them holds."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbench.data.building import numbered
from rankbench.data.tables.texts import Coded, equal, joined

TEXTS = st.lists(st.text("ab \u00e9\U0001f600", max_size=3), min_size=1, max_size=12)


def coded(texts):
    return Coded.of(np.array(texts, object))


@given(TEXTS)
def test_a_column_holds_its_texts_and_knows_the_distinct_ones_in_order(texts):
    column = coded(texts)
    assert column.tolist() == texts and len(column) == len(texts)
    assert column.texts.tolist() == sorted(set(texts)) and column.texts.dtype.kind == "U"
    assert column.is_filled.tolist() == [text != "" for text in texts]
    assert [column[row] for row in range(len(texts))] == texts


@given(TEXTS, st.data())
def test_some_rows_keep_only_texts_that_occur_in_them(texts, data):
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=6))
    some = coded(texts)[np.array(rows, np.int64)]
    assert some.tolist() == [texts[row] for row in rows]
    assert some.texts.tolist() == sorted({texts[row] for row in rows})


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_joined_columns_hold_the_rows_of_each_one_behind_the_other(columns):
    every = list(chain.from_iterable(columns))
    whole = joined([coded(texts) for texts in columns])
    assert whole.tolist() == every and whole.texts.tolist() == sorted(set(every))
    assert whole.codes.dtype == np.int32


@given(TEXTS, st.data())
def test_rows_are_equal_where_both_columns_hold_the_same(texts, data):
    others = data.draw(st.lists(st.sampled_from([*texts, "c"]), min_size=len(texts), max_size=len(texts)))
    assert equal(coded(texts), coded(others)).tolist() == [a == b for a, b in zip(texts, others, strict=True)]


def test_columns_of_numbers_are_joined_and_compared_as_well():
    one, other = np.array([1, 2, 3]), np.array([1, 5, 3])
    assert joined([one, other]).tolist() == [1, 2, 3, 1, 5, 3]
    assert equal(one, other).tolist() == [True, False, True]


@pytest.mark.parametrize("texts", [["b", "a", "b"], ["\u00e9", "z", "\U0001f600"]])
def test_an_array_and_a_column_of_the_same_texts_are_numbered_alike(texts):
    (ids, numbers), (of_array, numbers_of_array) = numbered(coded(texts)), numbered(np.array(texts))
    assert ids.tolist() == of_array.tolist() == sorted(set(texts)) and ids.dtype == of_array.dtype
    assert numbers.tolist() == numbers_of_array.tolist() and numbers.dtype == numbers_of_array.dtype == np.int32
