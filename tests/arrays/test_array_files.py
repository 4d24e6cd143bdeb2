"""Files of arrays: they come back as they were, large ones are mapped, and what is damaged is an error in one line."""

import json
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rankbench.arrays import mapped
from rankbench.arrays.array_files import read_arrays, write_arrays
from rankbench.arrays.mapped import home_of
from rankbench.arrays.npz import is_sealed
from rankbench.core.errors import UserError

KINDS = st.sampled_from(["float64", "float32", "int64", "int32", "int8", "uint16", "bool", "<U5", ">f8"])
ARRAYS = {
    "kind": np.array("Ratings"),
    "floats": np.linspace(0, 1, 30),
    "by column": np.asfortranarray(np.arange(40.0).reshape(8, 5)),
    "every second": np.arange(80)[::2],
    "none": np.empty((0, 3)),
    "none either": np.empty(0, np.int32),
    "ids": np.arange(99, dtype=np.int32),
}


@pytest.fixture
def path(monkeypatch, tmp_path):
    """A path; arrays from 200 bytes on are mapped, and seven bytes are looked at together."""
    monkeypatch.setattr(mapped, "LARGE", 200)
    monkeypatch.setattr(mapped, "PIECE", 7)
    return tmp_path / "a.arrays"


def same(found, given):
    """Whether an array came back as it was given."""
    np.testing.assert_array_equal(found, given, strict=True)
    return found.flags.aligned and found.flags.c_contiguous and not found.flags.writeable


@given(st.lists(hnp.arrays(KINDS, hnp.array_shapes(min_dims=0, min_side=0)), max_size=5))
def test_any_arrays_come_back(tmp_path_factory, arrays):
    path, named = tmp_path_factory.mktemp("a") / "a.arrays", {str(number): one for number, one in enumerate(arrays)}
    write_arrays(path, named)
    found = read_arrays(path)
    assert list(found) == list(named) and all(same(found[name], named[name]) for name in named)


def test_large_arrays_are_mapped_and_the_others_read(path):
    write_arrays(path, ARRAYS)
    found = read_arrays(path)
    assert list(found) == list(ARRAYS) and all(same(found[name], array) for name, array in ARRAYS.items())
    assert [name for name in found if home_of(found[name])] == ["floats", "by column", "every second", "ids"]
    assert all(map(is_sealed, found.values()))  # a data view takes them without a copy
    path.unlink()
    assert found["ids"].sum() == 99 * 49


def test_the_same_memory_is_written_once_and_is_the_same_again(path):
    features = np.arange(100.0).reshape(10, 10)
    write_arrays(path, {"train": features, "test": features, "turned": features.T, "part": features[:3]})
    found = read_arrays(path)
    assert found["train"] is found["test"] and same(found["turned"], features.T) and same(found["part"], features[:3])
    assert 1840 < path.stat().st_size < 2500


def test_objects_are_not_written(path):
    with pytest.raises(TypeError, match="pickled holds object: only numbers and texts are written"):
        write_arrays(path, {"pickled": np.array([{}])})
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize("place", [0.0, 0.02, 0.3, 0.6, 0.97])
def test_a_bit_turned_is_an_error(path, place):
    write_arrays(path, {"ids": np.arange(5000), "few": np.arange(24)})
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 4
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"a\.arrays is damaged: "):
        read_arrays(path)


def holding(*table, text=None):
    """A file with this table."""
    text = json.dumps(table).encode() if text is None else text
    return struct.pack("<QI", len(text), zlib.crc32(text)) + text + bytes(4096)


NONE = 0  # the checksum of no bytes


@pytest.mark.parametrize(
    "content",
    [
        b"", b"short", struct.pack("<QI", 2**63, 0) + b"[]", struct.pack("<QI", 2, 1) + b"[]",
        holding(text=b"[" * 200_000), holding(text=b"\xff"), holding(text=b"7"), holding([1]),
        holding(("a", "|O", [1], 0, NONE)), holding(("a", "V8", [1], 0, NONE)), holding(("a", "no", [1], 0, NONE)),
        holding(("a", "<f8", [2**62], 0, NONE)), holding(("a", "<f8", [2**40, 2**40], 0, NONE)),
        holding(("a", "<f8", [-1], 0, NONE)), holding(("a", "<f8", [-1, -1], 0, NONE)),
        holding(("a", "<f8", [0], -(10**6), NONE)), holding(("a", "<f8", [6], 2**70, NONE)),
        holding(("a", "<f8", "ab", 0, NONE)), holding(("a", "<f8", None, 0, NONE)), holding(("a", "<f8", [0], 0, "0")),
        holding(([], "<f8", [0], 0, NONE)),
    ],
)  # fmt: skip
def test_what_is_no_such_file_is_an_error(path, content):
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"a\.arrays is damaged: "):
        read_arrays(path)


@pytest.mark.parametrize("change", [("ids", "odd"), ("<i8", "<f8"), ("[5000]", "[4999]")])
def test_a_table_that_was_changed_is_an_error(path, change):
    write_arrays(path, {"ids": np.arange(5000)})
    before, after = (text.encode() for text in change)
    path.write_bytes(path.read_bytes().replace(before, after))
    with pytest.raises(UserError, match=r"a\.arrays is damaged: the bytes of its table have changed"):
        read_arrays(path)
