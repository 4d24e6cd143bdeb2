"""Arrays in files: what is large is mapped and not read, holds the same numbers, and leaves no file behind."""

import zipfile
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbench.arrays import mapped
from rankbench.arrays.mapped import Pile, home_of, pieces, put_aside
from rankbench.arrays.npz import fingerprint, is_sealed, map_npz, pack, read_npz, write_npz
from rankbench.core.errors import UserError
from rankbench.data import load
from rankbench.data.splits import split
from rankbench.data.views import Comparisons, Ratings, view_of
from rankbench.data.views import layout as views_module
from rankbench.data.views.layout import blocks
from rankbench.planning.materials import packed, read_split, write_split

DATA = "lookalike:ml-10m[ratings=3000]"


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Arrays from 200 bytes on go to files in a folder of the test, and seven elements are looked at together."""
    monkeypatch.setattr(mapped, "LARGE", 200)
    monkeypatch.setattr(mapped, "PIECE", 7)
    monkeypatch.setattr(views_module, "PIECE", 7)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


@settings(deadline=None)
@given(st.lists(st.integers(0, 20), max_size=6), st.sampled_from([(), (3,)]), st.booleans())
def test_a_pile_holds_its_blocks_in_order(sizes, row, large):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapped, "LARGE", 64 if large else 1 << 27)
        pile, places = Pile(np.float64, row), np.cumsum([0, *sizes])
        whole = np.random.default_rng(0).random((places[-1], *row))
        for start, end in pairwise(places):
            pile.add(whole[start:end])
        found = pile.array()
    np.testing.assert_array_equal(found, whole)
    assert found.shape == whole.shape and found.dtype == np.float64 and not found.flags.writeable
    assert (home_of(found) is not None) == (large and whole.nbytes >= 64)


def test_the_file_of_a_pile_has_no_name(small):
    pile = Pile(np.int32)
    pile.add(np.arange(100))
    found = pile.array()
    assert is_sealed(found) and home_of(found[3:7]) and list(small.iterdir()) == []


def test_a_pile_without_room_is_one_line(small, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(small / "nowhere"))
    monkeypatch.setattr("tempfile.tempdir", str(small / "nowhere"))
    with pytest.raises(UserError, match=r"cannot write to .*nowhere: No such file.*make room there, or set TMPDIR"):
        Pile(np.int32).add(np.arange(100))


def test_pages_that_are_put_aside_come_back(small):
    pile = Pile(np.int32)
    pile.add(np.arange(5000))
    found = pile.array()
    put_aside(found, np.arange(3), None)
    assert np.concatenate(list(pieces(found))).tolist() == list(range(5000))
    assert found.sum() == 5000 * 4999 // 2


def test_an_array_in_another_buffer_is_not_ours():
    found = np.frombuffer(b"12345678", np.int32)
    assert home_of(found) is None and not is_sealed(found)


ARRAYS = {
    "odd name": np.arange(7, dtype=np.int8),
    "floats": np.arange(40.0).reshape(8, 5),
    "text": np.array(["a", "böß"] * 20),
    "one": np.array(3),
    "by column": np.asfortranarray(np.arange(40.0).reshape(8, 5)),
    "none": np.empty((0, 3)),
    "ids": np.arange(99, dtype=np.int32),
}


def test_large_arrays_of_a_file_are_mapped_and_the_others_read(small):
    path = small / "a.npz"
    write_npz(path, ARRAYS)
    found, read = map_npz(path), read_npz(path)
    assert list(found) == list(read) == list(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        np.testing.assert_array_equal(read[name], array)
        assert found[name].dtype == array.dtype and found[name].flags.aligned
    assert [name for name in found if home_of(found[name])] == ["floats", "text", "ids"]
    path.unlink()
    assert found["ids"].sum() == 99 * 49


def test_compressed_and_unaligned_arrays_are_read(small):
    np.savez_compressed(small / "packed.npz", ids=np.arange(99))
    with zipfile.ZipFile(small / "odd.npz", "w") as archive:
        for name in ("x", "xy", "xyz"):  # of three places in a row at most one is aligned
            with archive.open(f"{name}.npy", "w") as stream:
                np.lib.format.write_array(stream, np.arange(99))
    for found in (map_npz(small / "packed.npz"), map_npz(small / "odd.npz")):
        assert all(array.tolist() == list(range(99)) and array.flags.aligned for array in found.values())


@pytest.mark.parametrize("place", [0.3, 0.6, 0.9])
def test_a_bit_turned_in_a_mapped_array_is_an_error(small, place):
    path = small / "a.npz"
    write_npz(path, {"ids": np.arange(5000)})
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 4
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"a\.npz is damaged"):
        map_npz(path)


def test_a_mapped_array_that_needs_objects_is_refused(small):
    np.savez(small / "a.npz", a=np.array([{}] * 50, dtype=object))
    with pytest.raises(UserError, match="damaged or not an npz file of plain arrays"):
        map_npz(small / "a.npz")


def views():
    """Views of both kinds, with users without rows at both ends and in between."""
    rng = np.random.default_rng(3)
    users, items = np.divmod(np.flatnonzero(rng.random(9 * 12) < 0.4), 12)
    users = np.array([1, 2, 3, 4, 6, 7, 8, 9, 11])[users]
    folds = rng.integers(0, 3, len(users))
    yield Ratings.from_triples(users, items, rng.integers(1, 3, len(users)).astype(float), 13, 12, folds=folds)
    yield Comparisons.from_triples(users, items, (items + 1) % 12, 13, 12)


@pytest.mark.parametrize("view", list(views()), ids=lambda view: type(view).__name__)
def test_rows_by_a_mask_are_those_by_numbers(small, view):
    assert [(rows.start, rows.stop) for _, rows in blocks(view.indptr)][-1][1] == len(view)
    for share in (0.0, 0.5, 1.0):
        mask = np.random.default_rng(1).random(len(view)) < share
        assert fingerprint(view.where(mask)) == fingerprint(view.take(np.flatnonzero(mask)))


def test_users_with_an_order_are_found_block_by_block(small):
    view = next(views())
    expected = [len(set(view.values[first:end].tolist())) > 1 for first, end in pairwise(view.indptr)]
    assert view.has_order.tolist() == expected and any(expected) and not all(expected)


def test_what_is_wrong_is_found_in_every_block(small):
    items, values = np.arange(40), np.ones(40)
    values[33] = np.inf
    with pytest.raises(UserError, match="rating 33 is inf"):
        Ratings([0, 40], items, values, 40)
    with pytest.raises(UserError, match="user 1 rates item 9 twice"):
        Ratings([0, 30, 40], [*range(30), *range(8), 9, 9], np.ones(40), 40)
    with pytest.raises(UserError, match=r"items of user 2 are not in ascending order \(row 31\)"):
        Ratings([0, 10, 30, 40], [*range(10), *range(20), 5, 4, *range(6, 14)], np.ones(40), 40)
    with pytest.raises(UserError, match="item features hold NaN"):
        Ratings([0, 1], [0], [1.0], 9, np.where(np.eye(9)[::-1] > 0, np.nan, 1.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "n-per-user[n=5,least=3]",
        "per-user",
        "entries",
        "leave-one-out",
        "binary[C=5]",
        "leave-reviewer-out[least=20,raters=2]",
    ],
)
def test_mapped_data_and_its_splits_have_the_same_bits(small, name):
    found = split(load(DATA), name)
    write_split(small / "split.npz", found)
    back = read_split(small / "split.npz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapped, "LARGE", 1 << 27)
        whole = load(DATA)
        expected = split(whole, name)
    assert any(map(home_of, packed(back).values())) and not any(map(home_of, packed(expected).values()))
    assert home_of(load(DATA).items) and fingerprint(load(DATA)) == fingerprint(whole)
    assert found.hash == back.hash == expected.hash
    assert not any(path.name != "split.npz" for path in small.iterdir())


def test_features_that_both_parts_share_are_written_once(small):
    found = split(load(DATA), "leave-reviewer-out[least=20,raters=2]")
    write_split(small / "split.npz", found)
    arrays, back = read_npz(small / "split.npz"), read_split(small / "split.npz")
    assert [name for name in arrays if name.endswith("item_features")] == ["train.item_features"]
    assert home_of(back.test.item_features) is home_of(back.train.item_features) is not None
    np.testing.assert_array_equal(back.test.item_features, found.test.item_features)


def test_sparse_features_of_a_mapped_view_are_the_same(small):
    features = scipy.sparse.random_array((30, 20), density=0.5, rng=np.random.default_rng(0)).tocsr()
    view = Ratings([0, 30], np.arange(30), np.ones(30), 30, features)
    write_npz(small / "view.npz", pack(view))
    assert fingerprint(view_of(map_npz(small / "view.npz"))) == fingerprint(view)
