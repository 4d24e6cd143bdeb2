"""Features of items from .npy, .npz and Parquet."""

import sys

import numpy as np
import pandas
import pytest
from data.sources.at_hand import view_of

from rankbench.core.errors import UserError
from rankbench.data.sources.csv_pairs import OwnPairs
from rankbench.data.sources.csv_ratings import OwnRatings

TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write arrays as a file of this ending; returns the path of comparisons and that of the features."""
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path / "cache"))

    def written(ending, table=TABLE, ids=None, pairs="u,better,worse\n1,0,2\n1,3,2\n"):
        path = tmp_path / f"features{ending}"
        (tmp_path / "pairs.csv").write_text(pairs.replace("u,", "user,", 1))
        if ending == ".npy":
            np.save(path, table)
        elif ending == ".npz":
            np.savez(path, features=table, **({} if ids is None else {"ids": ids}))
        else:
            pytest.importorskip("pyarrow")
            frame = table if isinstance(table, pandas.DataFrame) else pandas.DataFrame({"item": ids, "v": list(table)})
            frame.to_parquet(path)
        return str(tmp_path / "pairs.csv"), str(path)

    return written


def read(paths):
    return view_of(OwnPairs(paths[0], features=paths[1]))


@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_rows_without_ids_are_numbered_from_0(write, ending):
    view = read(write(ending))
    assert view.item_ids.tolist() == [0, 2, 3]
    assert view.item_features.tolist() == TABLE[[0, 2, 3]].tolist()
    assert view.feature_names.tolist() == ["f1", "f2", "f3"]


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
@pytest.mark.parametrize("ids", [[9, 3, 0, 2], ["9", "3", "0", "2"]])
def test_rows_are_matched_by_their_ids(write, ending, ids):
    view = read(write(ending, ids=np.array(ids)))
    assert view.item_features.tolist() == TABLE[[2, 3, 1]].tolist()


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
def test_ids_may_be_texts(write, ending):
    view = read(write(ending, ids=np.array(["x", "b", "c", "a"]), pairs="u,better,worse\n1,a,b\n1,c,b\n"))
    assert view.item_ids.tolist() == ["a", "b", "c"]
    assert view.item_features.tolist() == TABLE[[3, 1, 2]].tolist()


def test_columns_of_parquet_have_their_names(write):
    frame = pandas.DataFrame({"size": [1.0, 2.0, 3.0], "item": [3, 0, 2], "price": [4, 5, 6]})
    view = read(write(".parquet", frame))
    assert view.feature_names.tolist() == ["size", "price"]
    assert view.item_features.tolist() == [[2, 5], [3, 6], [1, 4]]


def test_ratings_take_them_too(write, tmp_path):
    _, features = write(".npy")
    (tmp_path / "r.csv").write_text("user,item,rating\n1,0,5\n1,2,3\n")
    assert view_of(OwnRatings(str(tmp_path / "r.csv"), features=features)).item_features.tolist() == [
        [0, 1, 2],
        [6, 7, 8],
    ]


@pytest.mark.parametrize(
    ("ending", "how", "message"),
    [
        (".npy", {"table": TABLE[:3]}, "has 3 rows, and no row 3; number the items by the rows from 0"),
        (".npy", {"pairs": "u,better,worse\n1,a,b\n"}, "has no ids, and the items are called 'a'"),
        (".npy", {"table": TABLE[0]}, "not a row of numbers for each item"),
        (".npy", {"table": np.array([["a"]])}, "not a row of numbers for each item"),
        (".npy", {"table": np.where(TABLE == 7, np.nan, TABLE)}, "a feature of item 2 is not finite"),
        (".npz", {"ids": np.array([0, 2, 2, 3])}, "has two rows for item 2"),
        (".npz", {"ids": np.array([0, 2, 4, 5])}, "has no row for item 3"),
        (".npz", {"ids": np.array([0, 2])}, "has 4 rows, and ids of shape"),
        (".parquet", {"ids": np.array([0, 2, 4, 5])}, "has no row for item 3"),
    ],
)
def test_what_does_not_fit_is_named(write, ending, how, message):
    with pytest.raises(UserError, match=message.replace("[", r"\[")):
        read(write(ending, **how))


@pytest.mark.parametrize("ending", [".npy", ".npz", ".parquet"])
def test_a_file_that_is_none_is_named(write, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    paths = write(".npy")
    broken = paths[1].replace(".npy", ending)
    with open(broken, "wb") as stream:
        stream.write(b"nothing")
    with pytest.raises(UserError, match="is no file of arrays"):
        read((paths[0], broken))


def test_an_archive_with_several_arrays_and_parquet_that_cannot_be_read_here_are_refused(write, monkeypatch, tmp_path):
    paths = write(".npz")
    np.savez(paths[1], one=TABLE, other=TABLE)
    with pytest.raises(UserError, match="holds one, other; store one array, and `ids`"):
        read(paths)
    paths = write(".parquet", ids=np.arange(len(TABLE)))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UserError, match="reading Parquet needs pyarrow; pip install"):
        read(paths)
