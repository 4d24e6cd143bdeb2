"""A split from a file: one that was exported comes back with its hash, and a table puts ratings into parts."""

from dataclasses import replace

import numpy as np
import pytest
from data.splits.small import rows_of

from rankbench.core.errors import UserError
from rankbench.data.export import export
from rankbench.data.splits import SPLITS, split
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Ratings


@pytest.fixture(scope="module")
def data():
    """60 users with 20 ratings of 100 items each, with ids."""
    view = LowRank(users=60, items=100, per_user=20).view(np.random.default_rng(0))
    return replace(view, user_ids=np.arange(60) * 7 + 1, item_ids=np.array([f"i{i:03}" for i in range(100)]))


def exported(data, folder, protocol):
    """The split, and the folder that it was written into."""
    parts = split(data, protocol, seed=3)
    export(parts, folder, data="some", split=protocol, seed=3, repetition=0)
    return parts


def test_ratings_of_an_exported_split_have_the_times_of_the_data(tmp_path, data):
    dated = replace(data, times=np.arange(len(data))[::-1])
    parts = exported(dated, tmp_path / "out", "per-user")
    again = split(dated, f"given[file={tmp_path / 'out'}]")
    assert again.train.times.tolist() == parts.train.times.tolist()
    assert split(data, f"given[file={tmp_path / 'out'}]").train.times is None
    exported(replace(data, times=np.arange(len(data))), tmp_path / "drawn", "half-per-user[reviewers=9,least=9]")
    assert split(dated, f"given[file={tmp_path / 'drawn'}]").hash


@pytest.mark.parametrize("ids", ["ids", "numbers"])
@pytest.mark.parametrize("protocol", ["n-per-user[n=5]", "binary[C=7]", "entries[validation=0.1]", "comparisons[n=10]"])
def test_an_exported_split_comes_back(tmp_path, data, protocol, ids):
    view = data if ids == "ids" else replace(data, user_ids=None, item_ids=None)
    parts = exported(view, tmp_path / "out", protocol)
    for file in ("out", "out/split.json"):
        again = split(view, f"given[file={tmp_path / file}]", seed=8, repetition=2)
        assert again.hash == parts.hash and again.parts.keys() == parts.parts.keys()


def test_the_content_of_the_file_is_the_identity(tmp_path, data):
    exported(data, tmp_path / "one", "per-user")
    exported(data, tmp_path / "two", "per-user")
    exported(data, tmp_path / "other", "entries")
    one, two, other = (SPLITS.resolve(f"given[file={tmp_path / name}]").identity for name in ("one", "two", "other"))
    assert one == two != other and str(tmp_path) not in one


def changed(folder):
    """Exchange a rating in the exported file."""
    path = folder / "train.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], *lines[2:]]))


def emptied(folder):
    (folder / "test.csv").unlink()


def damaged(folder):
    (folder / "split.json").write_text("{}")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (changed, "split.json says "),
        (emptied, "holds no complete split: test.csv: No such file or directory"),
        (damaged, "cannot be read for this data: 'parts'"),
    ],
)
def test_a_split_that_was_changed_is_refused(tmp_path, data, damage, message):
    exported(data, tmp_path / "out", "per-user")
    damage(tmp_path / "out")
    with pytest.raises(UserError) as error:
        split(data, f"given[file={tmp_path / 'out'}]")
    assert message in str(error.value) and "\n" not in str(error.value)


def test_other_data_is_refused(tmp_path, data):
    exported(data, tmp_path / "out", "per-user")
    with pytest.raises(UserError, match="with this data, and split"):
        split(replace(data, item_features=np.eye(100)), f"given[file={tmp_path / 'out'}]")
    with pytest.raises(UserError, match=r"user id .* is unknown"):
        split(replace(data, user_ids=np.arange(60) + 1000), f"given[file={tmp_path / 'out'}]")


SMALL = Ratings.from_triples(
    [0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [1.0, 2, 3, 4, 5], user_ids=["ann", "bob"], item_ids=[10, 20, 30], times=range(5)
)
LINES = ["user,item,part", "bob,20,test", "ann,10,train", "ann,30,validation", "bob,10,train"]


def test_a_table_puts_ratings_into_parts(tmp_path):
    path = tmp_path / "parts.csv"
    path.write_text("\n".join(LINES) + "\n")
    parts = split(SMALL, f"given[file={path}]")
    assert rows_of(parts.train) == {(0, 0, 1.0): 1, (1, 0, 4.0): 1}
    assert rows_of(parts.test) == {(1, 1, 5.0): 1} and parts.test.times.tolist() == [4]
    assert rows_of(parts.validation) == {(0, 2, 3.0): 1}
    path.write_text("\n".join(line for line in LINES if "validation" not in line) + "\n")
    assert split(SMALL, f"given[file={path}]").validation is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ann,20,tests", "the part 'tests' is unknown; use train, test, validation"),
        ("bob,30,test", "line 6: the data has no rating of this user and item; take the line out"),
        ("bob,10,test", "line 6: this user and item are on an earlier line too; keep one of them"),
        ("eve,10,test", "user id eve is unknown"),
        ("ann,x,test", "cannot be read: "),
    ],
)
def test_a_line_that_does_not_fit_is_named(tmp_path, line, message):
    path = tmp_path / "parts.csv"
    path.write_text("\n".join([*LINES, line]) + "\n")
    with pytest.raises(UserError) as error:
        split(SMALL, f"given[file={path}]")
    assert message in str(error.value) and "\n" not in str(error.value)


def test_of_several_repeated_lines_the_first_one_that_repeats_is_named(tmp_path):
    path = tmp_path / "parts.csv"
    path.write_text("\n".join([*LINES, *LINES[1:]]) + "\n")
    with pytest.raises(UserError, match="line 6: this user and item are on an earlier line too"):
        split(SMALL, f"given[file={path}]")


def test_a_number_beyond_the_last_item_is_not_taken_for_another_users_rating(tmp_path):
    path = tmp_path / "parts.csv"
    path.write_text("user,item,part\n0,3,train\n1,1,test\n")  # counted on, item 3 of user 0 is item 0 of user 1
    with pytest.raises(UserError, match="item id 3 is out of range: ids run from 0 to 2"):
        split(replace(SMALL, user_ids=None, item_ids=None), f"given[file={path}]")


def test_a_table_needs_its_header_and_ratings(tmp_path):
    path = tmp_path / "parts.csv"
    path.write_text("\n".join(LINES[1:]) + "\n")
    with pytest.raises(UserError, match="has no column 'user'; give it a header: user,item,part"):
        split(SMALL, f"given[file={path}]")
    with pytest.raises(UserError, match="needs ratings, the data holds comparisons"):
        split(SMALL.comparisons(), f"given[file={path}]")
    with pytest.raises(
        UserError, match=r"^the split given needs a file: write given\[file=FOLDER\], with a folder that"
    ):
        split(SMALL, "given")
    with pytest.raises(UserError, match=r"has no file '.*gone.csv': check the path"):
        split(SMALL, f"given[file={tmp_path / 'gone.csv'}]")
