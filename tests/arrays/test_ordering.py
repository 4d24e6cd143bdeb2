"""The order of rows by a code each, against NumPy's stable sort."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rankbench.arrays import ordering
from rankbench.arrays.ordering import order_of


@given(arrays(st.sampled_from([np.int32, np.int64]), st.integers(0, 60), elements=st.integers(0, 9)), st.integers(0, 3))
def test_it_is_that_of_a_stable_sort(codes, more):
    assert order_of(codes, 10 + more).tolist() == np.argsort(codes, kind="stable").tolist()


def test_rows_that_32_bits_do_not_number_are_sorted(monkeypatch):
    monkeypatch.setattr(ordering, "_MOST", 3)
    monkeypatch.setattr(ordering.scipy.sparse, "csr_array", None)
    assert order_of(np.array([1, 0, 1, 0]), 2).tolist() == [1, 3, 0, 2]
