"""The order of rows by a code each, against NumPy's stable sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rankbench.arrays import ordering
from rankbench.arrays.ordering import ascend, lexical_order, order_of


@given(arrays(st.sampled_from([np.int32, np.int64]), st.integers(0, 60), elements=st.integers(0, 9)), st.integers(0, 3))
def test_it_is_that_of_a_stable_sort(codes, more):
    assert order_of(codes, 10 + more).tolist() == np.argsort(codes, kind="stable").tolist()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_codes_may_have_any_whole_type_and_be_a_view_that_cannot_be_written_to(dtype):
    codes = np.array([3, 9, 1, 9, 3, 9, 0, 9], dtype)[::2]
    codes.flags.writeable = False
    assert order_of(codes, 4).tolist() == [3, 1, 0, 2]


@pytest.mark.parametrize(("most", "n_codes"), [(3, 2), (4, 10**12)])
def test_more_rows_than_32_bits_number_and_few_of_many_codes_are_sorted(monkeypatch, most, n_codes):
    monkeypatch.setattr(ordering, "_MOST", most)
    monkeypatch.setattr(ordering.scipy.sparse, "csr_array", None)
    assert order_of(np.array([1, 0, 1, 0]), n_codes).tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize("code", [-1, 3])
def test_codes_that_are_out_of_range_are_refused(code):
    with pytest.raises(ValueError, match=f"codes from .*{code}"):
        order_of(np.array([1, code, 1]), 3)


@given(arrays(np.int32, st.tuples(st.integers(0, 40), st.just(3)), elements=st.integers(0, 3)))
def test_by_several_codes_it_is_that_of_a_lexical_sort(rows):
    found = lexical_order(*((column, 4) for column in rows.T))
    assert found.tolist() == np.lexsort(rows.T[::-1]).tolist()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12), st.booleans(), st.integers(1, 5))
def test_rows_ascend_if_each_is_above_the_one_before_also_between_blocks(rows, ordered, block):
    rows = sorted(set(rows)) if ordered else rows
    with pytest.MonkeyPatch.context() as own:
        own.setattr(ordering, "_BLOCK", block)
        columns = np.array(rows, np.int32).reshape(-1, 2).T
        assert ascend(*columns) == (rows == sorted(set(rows)))
