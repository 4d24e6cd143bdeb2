"""Arrays in files: what is large is mapped and not read, holds the same numbers, and leaves no file behind."""

import errno
import gc
import os
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import psutil
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbench.arrays import mapped
from rankbench.arrays.array_files import read_arrays, write_arrays
from rankbench.arrays.mapped import Pile, home_of, pieces, zeros
from rankbench.arrays.npz import fingerprint, is_sealed, pack
from rankbench.core import system
from rankbench.core.errors import UserError
from rankbench.data import load
from rankbench.data.splits import split
from rankbench.data.views import Comparisons, Ratings, view_of
from rankbench.data.views import layout as views_module
from rankbench.data.views.layout import blocks
from rankbench.execution.training import fit
from rankbench.metrics import per_user
from rankbench.planning.materials import packed, read_split, write_split
from rankbench.solvers import SOLVERS
from rankbench.solvers.altsvm import AltSVM, Part, Site

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


def test_an_array_is_read_in_pieces(small):
    pile = Pile(np.int32)
    pile.add(np.arange(5000))
    assert np.concatenate(list(pieces(pile.array()))).tolist() == list(range(5000))


def in_file(array: np.ndarray) -> bool:
    """Whether a file holds an array to work in."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return isinstance(array.base, memoryview)


@pytest.mark.parametrize("shape", [2500, (25, 100)])
def test_a_large_array_to_work_in_is_a_file_without_a_name(small, monkeypatch, shape):
    monkeypatch.setattr(system, "total_memory", lambda: 8 * 10_000)
    found, others = zeros(shape, np.float32), [zeros(2499, np.float32), zeros(0, np.int64)]
    assert in_file(found) and not any(map(in_file, others)) and list(small.iterdir()) == []
    assert found.shape == np.zeros(shape).shape and found.dtype == np.float32 and not found.any()
    assert found.flags.writeable and not is_sealed(found)


def test_a_small_array_stays_in_memory_however_small_the_machine(monkeypatch):
    monkeypatch.setattr(system, "total_memory", lambda: 800)
    assert not in_file(zeros(2500, np.float32))


def test_an_array_to_work_in_without_room_is_one_line(small, monkeypatch):
    monkeypatch.setattr(system, "total_memory", lambda: 0)
    monkeypatch.setattr(system, "reserve", Mock(side_effect=OSError(errno.ENOSPC, "No space left")))
    with pytest.raises(UserError, match=r"cannot write to .*: No space left.*make room there, or set TMPDIR"):
        zeros(1000, np.int64)


def until(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds, for at most a minute."""
    end = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def watchers() -> list[threading.Thread]:
    """The threads that give pages of mapped files back."""
    return [thread for thread in threading.enumerate() if thread.name == "mapped files"]


def test_pages_are_given_back_while_there_are_large_files_and_come_back_as_they_were(small, monkeypatch):
    monkeypatch.setattr(mapped, "_INTERVAL", 0.01)
    monkeypatch.setattr(system, "total_memory", lambda: 0)
    monkeypatch.setattr(system, "mapped_bytes", lambda: mapped.RESIDENT)
    read, written = Pile(np.int64), zeros(1 << 20, np.int64)
    read.add(np.arange(1 << 20))
    read = read.array()
    written[:] = read
    assert in_file(written) and home_of(read) is not None
    until(lambda: resident(small) < 1 << 20)
    np.testing.assert_array_equal(written, read)
    np.testing.assert_array_equal(read, np.arange(1 << 20))
    assert len(watchers()) == 1
    del read, written
    gc.collect()
    until(lambda: not watchers())


def resident(folder: Path) -> int:
    """How many bytes of mapped files of this folder are in memory, those without a name among them."""
    return sum(entry.rss for entry in psutil.Process().memory_maps() if entry.path.startswith(str(folder)))


def test_pages_stay_while_few_are_in_memory(small, monkeypatch):
    monkeypatch.setattr(mapped, "_INTERVAL", 0.01)
    monkeypatch.setattr(system, "total_memory", lambda: 0)
    monkeypatch.setattr(system, "mapped_bytes", lambda: mapped.RESIDENT - 1)
    written = zeros(1 << 20, np.int64)
    written[:] = 1
    time.sleep(0.1)
    assert resident(small) >= written.nbytes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_watches_its_own_files(small, monkeypatch):
    monkeypatch.setattr(system, "total_memory", lambda: 0)
    kept = zeros(1000, np.int64)
    child = os.fork()
    if not child:
        os._exit(0 if in_file(zeros(1000, np.int64)) and len(watchers()) == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0 and in_file(kept)


def test_an_array_in_another_buffer_is_not_ours():
    found = np.frombuffer(b"12345678", np.int32)
    assert home_of(found) is None and not is_sealed(found)


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


@pytest.mark.trust
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
    write_split(small / "split.arrays", found)
    back = read_split(small / "split.arrays")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapped, "LARGE", 1 << 27)
        whole = load(DATA)
        expected = split(whole, name)
    assert any(map(home_of, packed(back).values())) and not any(map(home_of, packed(expected).values()))
    assert home_of(load(DATA).items) and fingerprint(load(DATA)) == fingerprint(whole)
    assert found.hash == back.hash == expected.hash
    assert not any(path.name != "split.arrays" for path in small.iterdir())


@pytest.mark.parametrize(
    "solver", ["altsvm", "altsvm[partitions=2]", "altsvm[schedule=random]", "sgd[schedule=tournament]"]
)
def test_what_a_solver_keeps_of_each_row_in_a_file_gives_the_same_bits(small, monkeypatch, solver):
    train = split(load(DATA), "n-per-user[n=5,least=3]").train.comparisons()
    asked = []
    monkeypatch.setattr(system, "total_memory", lambda: asked.append(0) or 0)
    found = fingerprint(fit(SOLVERS.make(solver), train, steps=4))
    monkeypatch.setattr(mapped, "LARGE", 1 << 27)
    assert asked and fingerprint(fit(SOLVERS.make(solver), train, steps=4)) == found


@pytest.mark.parametrize(("partitions", "in_a_file"), [(1, False), (2, True)])
def test_the_duals_of_several_parts_may_take_no_more_memory_than_those_of_one(
    small, monkeypatch, partitions, in_a_file
):
    train = Comparisons([0, 200], np.arange(200) % 2, 1 - np.arange(200) % 2, 2)
    monkeypatch.setattr(system, "total_memory", lambda: 1000 / mapped.SHARE)  # 800 bytes of duals are less than 1000
    site = Site(AltSVM(rank=1, partitions=partitions), 2, 1)
    duals = Part(train, np.random.default_rng(0), site).duals
    assert (duals.base is not None) == in_a_file and duals.nbytes == 800


def test_comparisons_are_evaluated_block_by_block(small, monkeypatch):
    ratings = split(load(DATA), "n-per-user[n=5,least=3]")
    train, test = (part.comparisons() for part in (ratings.train, ratings.test))
    model, names = (
        fit(SOLVERS.make("sgd"), train, steps=2),
        ["pairwise-error", "pairwise-error[average=pairs]", "log-loss"],
    )
    found = per_user(model, test, names)
    monkeypatch.setattr(views_module, "PIECE", 1 << 22)
    whole = per_user(model, test, names)
    assert len(list(blocks(test.indptr))) == 1 and len(whole) == 3
    for name, values in whole.items():
        np.testing.assert_array_equal(found[name], values)


def test_features_that_both_parts_share_are_written_once(small):
    found = split(load(DATA), "leave-reviewer-out[least=20,raters=2]")
    write_split(small / "split.arrays", found)
    back = read_split(small / "split.arrays")
    assert (small / "split.arrays").stat().st_size < 2 * found.train.item_features.nbytes
    assert home_of(back.test.item_features) is home_of(back.train.item_features) is not None
    np.testing.assert_array_equal(back.test.item_features, found.test.item_features)


def test_sparse_features_of_a_mapped_view_are_the_same(small):
    features = scipy.sparse.random_array((30, 20), density=0.5, rng=np.random.default_rng(0)).tocsr()
    view = Ratings([0, 30], np.arange(30), np.ones(30), 30, features)
    write_arrays(small / "view", pack(view))
    assert fingerprint(view_of(read_arrays(small / "view"))) == fingerprint(view)
