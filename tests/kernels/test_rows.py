"""Input checks of the kernels: wrong types and different lengths of arrays are refused; and scratch memory."""

import numpy as np
import pytest

from rankbench.kernels.methods import entries
from rankbench.kernels.methods.margins import losses
from rankbench.kernels.methods.pairwise import DescentFactors
from rankbench.kernels.methods.rotation import TaskRows
from rankbench.kernels.shared.rows import ComparisonRows, Pattern, SparseRows

INDPTR, IDS, VALUES = np.array([0, 1, 3]), np.array([4, 0, 2], np.int32), np.array([1.0, 2.0, 3.0])
BUNDLES = {
    Pattern: {"indptr": INDPTR, "columns": IDS},
    SparseRows: {"indptr": INDPTR, "columns": IDS, "values": VALUES},
    ComparisonRows: {"indptr": INDPTR, "better": IDS, "worse": IDS[::-1].copy()},
    TaskRows: {"starts": INDPTR, "users": IDS, "better": IDS, "worse": IDS},
}
each_bundle = pytest.mark.parametrize("bundle", BUNDLES)
each_array = pytest.mark.parametrize(
    ("bundle", "name"), [(bundle, name) for bundle in BUNDLES for name in BUNDLES[bundle]]
)


def sealed(array):
    """A copy that cannot be written to."""
    array = array.copy()
    array.flags.writeable = False
    return array


@each_bundle
def test_arrays_that_cannot_be_written_to_are_taken(bundle):
    bundle(**{name: sealed(array) for name, array in BUNDLES[bundle].items()})


@each_bundle
def test_no_rows_are_rows(bundle):
    empty = {name: array[:1] if array is INDPTR else array[:0] for name, array in BUNDLES[bundle].items()}
    bundle(**empty)


@each_bundle
def test_arrays_are_given_by_name(bundle):
    with pytest.raises(TypeError, match="positional"):
        bundle(*BUNDLES[bundle].values())


@each_array
def test_an_array_of_another_type_is_refused(bundle, name):
    array = BUNDLES[bundle][name]
    other = {np.dtype(np.int64): np.int32, np.dtype(np.int32): np.int64, np.dtype(np.float64): np.float32}[array.dtype]
    with pytest.raises(ValueError, match="dtype mismatch"):
        bundle(**BUNDLES[bundle] | {name: array.astype(other)})


@each_array
def test_an_array_of_another_length_is_refused(bundle, name):
    with pytest.raises(ValueError, match=r"must|are needed"):
        bundle(**BUNDLES[bundle] | {name: BUNDLES[bundle][name][:-1]})


@each_bundle
def test_row_pointers_start_at_zero_and_there_is_at_least_one(bundle):
    (pointers,) = (name for name, array in BUNDLES[bundle].items() if array is INDPTR)
    for wrong in (np.array([1, 1, 3]), np.zeros(0, np.int64)):
        with pytest.raises(ValueError, match="indptr must start with 0"):
            bundle(**BUNDLES[bundle] | {pointers: wrong})


def test_factors_of_different_ranks_or_without_a_shrinkage_for_each_row_are_refused():
    fine = {"users": np.ones((2, 4)), "items": np.ones((3, 4)), "user_shrink": np.ones(2)}
    fine |= {"item_shrink": np.ones(3), "step": 0.1, "decay": 0.0}
    DescentFactors(**fine)
    with pytest.raises(ValueError, match="columns of items: 8"):
        DescentFactors(**fine | {"items": np.ones((3, 8))})
    with pytest.raises(ValueError, match="one shrinkage"):
        DescentFactors(**fine | {"item_shrink": np.ones(2)})
    with pytest.raises(ValueError, match="rows of 4 numbers have none at place 4"):
        DescentFactors(**fine | {"held": 4})


def test_arrays_are_taken_without_a_copy():
    values = VALUES.copy()
    rows = SparseRows(indptr=INDPTR, columns=IDS, values=values)
    out = np.zeros((2, 1))
    values[:] = 10.0  # is seen by whatever the rows are given to
    entries.times(matrix=rows, dense=np.ones((5, 1)), out=out, threads=1)
    assert out.tolist() == [[10.0], [20.0]]


def test_none_in_place_of_rows_is_refused():
    with pytest.raises(TypeError, match="ComparisonRows"):
        losses(loss=0, comparisons=None, users=np.ones((1, 4)), items=np.ones((1, 4)), out=np.zeros(1), threads=1)
