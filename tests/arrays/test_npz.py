"""Records of arrays survive a file without pickle, and a fingerprint depends on all of their content."""

from dataclasses import dataclass
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rankbench.arrays import npz
from rankbench.arrays.npz import as_kernels_take, fingerprint, pack, read_npz, unpack, write_npz
from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.methods.isotonic import _vector
from rankbench.metrics.catalogue import _scores
from rankbench.metrics.rows import scores_of

patient = settings(deadline=None)  # a slow machine is no failure


@dataclass(frozen=True, eq=False)
class Record:
    """An array, whatever else, and a number."""

    array: Any
    other: Any = None
    number: Any = 3


@dataclass(frozen=True, eq=False)
class Twin:
    """The same fields under another name."""

    array: Any
    other: Any = None
    number: Any = 3


KINDS = {"Record": Record, "Twin": Twin}
ANY_ARRAY = hnp.arrays(
    st.sampled_from(["float64", "float32", "int64", "int32", "bool", "<U5"]), hnp.array_shapes(min_dims=1, min_side=0)
)


@patient
@given(ANY_ARRAY, st.integers(-5, 5), st.sampled_from(["", "train."]))
def test_unpack_undoes_pack(array, number, prefix):
    again = unpack(pack(Record(array, None, number), prefix), KINDS, prefix)
    assert type(again) is Record
    assert (again.other, again.number) == (None, number)
    assert (again.array.dtype, again.array.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(again.array, array)


def unaligned(values):
    """The same numbers, at an address that is no multiple of their size."""
    block = np.zeros(values.nbytes + 1, np.uint8)
    made = np.ndarray(values.shape, values.dtype, block, 1)
    made[...] = values
    return made


def test_kernels_take_arrays_that_are_contiguous_and_aligned():
    fine = np.arange(6.0)
    assert as_kernels_take(fine, np.float64) is fine
    for other in (unaligned(fine), np.repeat(fine, 2)[::2], fine.astype(np.float32), fine.tolist(), fine.astype(">f8")):
        taken = as_kernels_take(other, np.float64)
        assert taken.flags.aligned and taken.flags.c_contiguous and taken.dtype == np.float64
        np.testing.assert_array_equal(taken, fine)


def test_scores_and_vectors_that_are_not_aligned_never_reach_a_kernel():
    class Model:
        def score(self, users, items):
            return unaligned(items * 1.0)

        def score_all(self, users, threads=1):
            return unaligned(np.tile(np.arange(3.0), (len(users), 1)))

    users, items = np.array([0, 0, 1]), np.array([0, 1, 2])
    ratings = Ratings.from_triples(users, items, unaligned(np.array([1.0, 2.0, 3.0])))
    assert not Model().score(users, items).flags.aligned
    for array in (scores_of(Model(), users, items), _scores(Model(), np.array([0, 1]), 3, 1), ratings.values):
        assert array.flags.aligned
    assert _vector("x", unaligned(np.arange(3.0))).flags.aligned


@pytest.mark.parametrize("dense", [np.eye(3), np.zeros((2, 5)), np.arange(6.0).reshape(3, 2)])
def test_a_sparse_matrix_stays_sparse(dense):
    packed = pack(Record(np.ones(1), scipy.sparse.csr_array(dense)))
    assert {f"other.{part}" for part in ("data", "indices", "indptr", "shape")} <= set(packed)
    again = unpack(packed, KINDS).other
    assert again.format == "csr"
    np.testing.assert_array_equal(again.toarray(), dense)


def test_two_records_share_a_file_under_two_prefixes(tmp_path):
    write_npz(tmp_path / "both.npz", pack(Record(np.arange(3)), "one.") | pack(Twin(np.arange(4)), "two."))
    arrays = read_npz(tmp_path / "both.npz")
    one, two = unpack(arrays, KINDS, "one."), unpack(arrays, KINDS, "two.")
    assert (type(one), len(one.array), type(two), len(two.array)) == (Record, 3, Twin, 4)


@patient
@given(array=ANY_ARRAY)
def test_a_file_gives_back_names_types_shapes_and_bytes(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    write_npz(path, {"a": array, "b.c": np.array("text")})
    again = read_npz(path)
    assert list(again) == ["a", "b.c"] and again["b.c"] == "text"
    assert fingerprint(Record(again["a"])) == fingerprint(Record(array))


def test_writing_leaves_no_partial_file_and_replaces_what_was_there(tmp_path):
    path = tmp_path / "a.npz"
    for length in (3, 5):
        write_npz(path, {"a": np.arange(length)})
        assert list(tmp_path.iterdir()) == [path]
    assert len(read_npz(path)["a"]) == 5


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.npz"
    write_npz(path, {"a": np.arange(3)})
    before = path.read_bytes()
    with pytest.raises(ValueError, match="allow_pickle"):
        write_npz(path, {"a": np.arange(9), "b": np.array([{}, {}])})
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


DAMAGES = {
    "empty": lambda content: b"",
    "cut short": lambda content: content[:-40],
    "text": lambda content: b"hello",
    "one bit turned": lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_an_error_that_names_it(tmp_path, damage):
    path = tmp_path / "a.npz"
    write_npz(path, {"a": np.arange(100)})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=r"a\.npz is damaged or not an npz file of plain arrays"):
        read_npz(path)


def test_a_file_that_holds_a_pickle_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.array([{}, {}]))
    with pytest.raises(UserError, match="not an npz file of plain arrays"):
        read_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("rows", [0, 3, 200_000])  # less and more than is read at once
def test_what_is_read_may_be_written_to_and_lies_as_it_lay(tmp_path, rows):
    by_column = np.asfortranarray(np.arange(2.0 * rows).reshape(rows, 2))
    write_npz(tmp_path / "a.npz", {"a": by_column, "b": by_column.T, "c": np.array(3)})
    found = read_npz(tmp_path / "a.npz")
    assert all(array.flags.writeable for array in found.values())
    for name, array in {"a": by_column, "b": by_column.T}.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].flags.f_contiguous == array.flags.f_contiguous


def test_an_array_that_is_shorter_than_its_header_says_is_damaged(tmp_path):
    with ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("a.npy", array_file(np.arange(4.0))[:-8])
        archive.writestr("b.npy", b"\x93NUM")
    with pytest.raises(UserError, match="is damaged or not an npz file"):
        read_npz(tmp_path / "a.npz")


def array_file(array):
    stream = BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_one_array_in_a_file_of_its_own_is_no_npz(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    with pytest.raises(UserError, match=r"a\.npy is damaged or not an npz file"):
        read_npz(tmp_path / "a.npy")


def test_fingerprints_differ_by_content_type_shape_name_and_order():
    base = np.arange(6)
    records = [
        (Record(base),),
        (Record(base[::-1]),),
        (Record(base.astype(np.int32)),),
        (Record(base.astype(float)),),
        (Record(base.astype(">i8")),),
        (Record(base.reshape(2, 3)),),
        (Record(base.reshape(3, 2)),),
        (Record(base, base),),
        (Record(base, scipy.sparse.csr_array(base.reshape(2, 3))),),
        (Record(base, None, 4),),
        (Twin(base),),
        (Record(base), Twin(base)),
        (Twin(base), Record(base)),
    ]
    assert len({fingerprint(*each) for each in records}) == len(records)


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda a: np.repeat(a, 2, axis=0)[::2]])
def test_fingerprints_do_not_see_how_an_array_lies_in_memory(layout):
    base = np.arange(12.0).reshape(3, 4)
    assert fingerprint(Record(layout(base))) == fingerprint(Record(base))


def test_a_fingerprint_is_the_same_on_every_machine():
    record = Record(np.arange(3, dtype="<i8"), np.array(["a"]), 0.5)
    assert fingerprint(record) == "ae6d50446e5df9fcf9217b6bbc7f6f8db2a712d700d6174aaf613129181dbe8b"


def test_only_a_record_can_be_packed():
    with pytest.raises(TypeError, match="a dict cannot be packed"):
        pack({"array": np.ones(1)})


def test_a_file_that_would_unpack_to_far_more_than_its_size_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "_UNPACKED", 0)
    np.savez_compressed(tmp_path / "a.npz", zeros=np.zeros(10**5))
    with pytest.raises(UserError, match="would unpack to 800,128 bytes: it is no file of rankbench"):
        read_npz(tmp_path / "a.npz")
