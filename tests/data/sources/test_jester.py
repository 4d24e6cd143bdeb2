"""Jester: the published counts, sheets as .csv and as real .xls workbooks, and malformed files."""

import io
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas
import pytest
from data.sources.at_hand import REAL, needs, put, refusal, triples, view_of, zipped

from rankbench.data.building import Counts
from rankbench.data.sources import jester
from rankbench.data.sources.jester import Jester

at_hand = needs("jester/jester-data-1.zip")


def row(*ratings):
    """A user's line: how many jokes are rated, then a rating of each of 100 jokes, 99 for none."""
    rated = dict(ratings)
    return [float(len(rated)), *(float(rated.get(joke, 99)) for joke in range(1, 101))]


FIRST = [row((1, -7.82), (100, 9.13)), row((2, 0.0), (3, 10), (4, -10))]
SECOND = [row((5, 1.5))]
THIRD = [row((1, 2.25), (2, -9.95))]
TRIPLES = [(1, 1, -7.82), (1, 100, 9.13), (2, 2, 0.0), (2, 3, 10.0), (2, 4, -10.0)]


def csv(rows):
    """The rows as they were saved: whole numbers without a point, no header."""
    return "".join(",".join(f"{value:g}" for value in row) + "\n" for row in rows)


def xls(rows):
    """A real workbook of the kind that is published."""
    pytest.importorskip("xlrd")
    workbook = pytest.importorskip("xlwt").Workbook()
    sheet = workbook.add_sheet("jester-data")
    for number, values in enumerate(rows):
        for index, value in enumerate(values):
            sheet.write(number, index, value)
    content = io.BytesIO()
    workbook.save(content)
    return content.getvalue()


@pytest.fixture
def own(folders, monkeypatch):
    """Folders of our own, and counts that fit the small files."""
    monkeypatch.setattr(jester, "_COUNTS", {"1": Counts(5, 2, 100), "all": Counts(8, 4, 100)})


def refused(name, content):
    """The message about a part 1 in a file of this content."""
    put("jester", {name: content})
    return refusal(Jester())


# ---- the real file ----


@at_hand
def test_the_counts_are_the_published_ones(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    view = view_of(Jester())
    assert (len(view), view.n_users, view.n_items) == (1_810_455, 24_983, 100)
    assert np.diff(view.indptr).min() == 36
    assert (view.values.min(), view.values.max()) == (-9.95, 10)
    assert view.user_ids.tolist() == list(range(1, 24_984))
    assert view.item_ids.tolist() == list(range(1, 101))
    with zipfile.ZipFile(Path(REAL, "jester/jester-data-1.zip")) as archive, archive.open("jester-data-1.csv") as file:
        table = pandas.read_csv(file, header=None)
    np.testing.assert_array_equal(np.diff(view.indptr), table[0])
    whole = np.full((24_983, 100), 99.0)
    whole[view.users, view.items] = view.values
    np.testing.assert_array_equal(whole, table.loc[:, 1:])


@at_hand
def test_a_real_workbook_holds_what_the_real_text_does(monkeypatch, tmp_path):
    with zipfile.ZipFile(Path(REAL, "jester/jester-data-1.zip")) as archive, archive.open("jester-data-1.csv") as file:
        rows = pandas.read_csv(file, header=None, nrows=200).to_numpy()
    monkeypatch.setenv("RANKBENCH_DATA", str(tmp_path))
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jester, "_COUNTS", {"1": Counts(int(rows[:, 0].sum()), 200, 100)})
    put("jester", {"jester_dataset_1_1.zip": zipped({"jester-data-1.xls": xls(rows.tolist())})})
    view = view_of(Jester())
    whole = np.full((200, 100), 99.0)
    whole[view.users, view.items] = view.values
    np.testing.assert_array_equal(whole, rows[:, 1:])


@at_hand
def test_as_stars_the_ratings_are_those_of_the_published_scale_moved(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    published, stars = view_of(Jester()), view_of(Jester(scale="stars"))
    assert (published.items == stars.items).all()
    np.testing.assert_allclose(stars.values, np.interp(published.values, [-10, 10], [1, 5]), atol=1e-15)


# ---- small files ----


def test_a_scale_does_not_answer_with_what_was_cached_for_the_other(own):
    put("jester", {"jester-data-1.csv": csv(FIRST)})
    for _ in range(2):
        assert triples(view_of(Jester())) == TRIPLES
        stars = np.array(triples(view_of(Jester(scale="stars"))))
        np.testing.assert_allclose(stars, [(*place, 3 + rating / 5) for *place, rating in TRIPLES])


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_99_is_no_rating_and_0_is_one(own, line_end):
    put("jester", {"jester-data-1.csv": csv(FIRST).replace("\n", line_end)})
    assert triples(view_of(Jester())) == TRIPLES


def test_a_workbook_is_read_in_its_published_archive(own):
    put("jester", {"jester_dataset_1_1.zip": zipped({"jester-data-1.xls": xls(FIRST)})})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert triples(view_of(Jester())) == TRIPLES


def test_users_are_numbered_over_all_parts_in_order(own):
    files = {"jester-data-3.csv": csv(THIRD), "jester-data-1.csv": csv(FIRST), "jester-data-2.xls": xls(SECOND)}
    put("jester", files)
    assert triples(view_of(Jester(parts="all"))) == [*TRIPLES, (3, 5, 1.5), (4, 1, 2.25), (4, 2, -9.95)]
    assert triples(view_of(Jester())) == TRIPLES


def test_what_is_missing_depends_on_the_parts(own):
    assert Jester().origin.missing() == "rankbench data fetch jester"
    put("jester", {"jester-data-1.csv": csv(FIRST)})
    assert Jester().origin.missing() is None
    assert Jester(parts="all").origin.missing() == "rankbench data fetch jester[parts=all]"
    assert [download.name[-5:] for download in Jester(parts="all").origin.downloads] == ["1.zip", "2.zip", "3.zip"]
    assert Jester(parts="all").origin.size == "4 users, 100 items, 8 ratings"
    assert "jester: no file jester-data-2.csv or jester-data-2.xls in " in refusal(Jester(parts="all"))


# ---- what is refused ----


def test_a_count_that_does_not_fit_the_row_of_a_workbook_is_named(own):
    assert refused("jester-data-1.xls", xls([FIRST[0], [4.0, *FIRST[1][1:]]])).endswith(
        "jester-data-1.xls, row 2: holds 3 ratings but its first field says 4"
    )


def test_blank_lines_do_not_shift_the_line_that_is_named(own):
    wrong = csv(FIRST[:1]) + "\n\n" + csv([[4.0, *FIRST[1][1:]]])
    assert refused("jester-data-1.csv", wrong).endswith(
        "jester-data-1.csv, line 4: holds 3 ratings but its first field says 4"
    )


LINE = csv(FIRST[1:])
BAD = {
    "a rating out of range": (
        csv([row((7, 10.5))]),
        "rating 10.5 of joke 7 is out of range: must be from -10 to 10, or 99 for none",
    ),
    "an infinite rating": (csv([row((7, np.inf))]), "rating inf of joke 7 is out of range"),
    "a rating that is no number": (LINE.replace("-10", "funny", 1), "rating of joke 4 'funny' is no number"),
    "a rating that is not a number by name": (LINE.replace("-10", "nan", 1), "rating of joke 4 'nan' is no number"),
    "an empty field": (LINE.replace("-10", "", 1), "rating of joke 4 '' is no number"),
    "a count that is no number": ("x" + LINE, "number of ratings 'x3' is no number"),
    "a cut line": (LINE[:50], "fields where 101 are needed: '3,99,0,10,-10"),
    "a field too many": (LINE.replace("\n", ",99\n"), "102 fields where 101 are needed"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_a_line_that_does_not_fit_is_named(own, content, message):
    found = refused("jester-data-1.csv", csv(FIRST[:1]) + content)
    assert "jester-data-1.csv, line 2: " in found
    assert message in found


def test_lines_that_are_all_too_short_are_named(own):
    short = "".join(f"1,{joke}\n" for joke in range(3))
    assert "jester-data-1.csv, line 1: 2 fields where 101 are needed" in refused("jester-data-1.csv", short)


def test_other_bytes_than_text_are_named(own):
    content = csv(FIRST[:1]).encode() + b"\xff\xfe" + LINE.encode()
    assert "jester-data-1.csv, line 2: not utf-8 (byte 0xff)" in refused("jester-data-1.csv", content)


def test_an_empty_file_is_named(own):
    assert refused("jester-data-1.csv", "").endswith("jester-data-1.csv holds no rows")


def test_a_cell_that_is_no_number_is_named(own):
    rows = [FIRST[0], [*FIRST[1][:6], "99?", *FIRST[1][7:]]]
    assert refused("jester-data-1.xls", xls(rows)).endswith("row 2, column 7: '99?' is no number")


def test_an_empty_cell_is_named(own):
    rows = [FIRST[0], [*FIRST[1][:6], None, *FIRST[1][7:]]]
    assert refused("jester-data-1.xls", xls(rows)).endswith("row 2, column 7: '' is no number")


def test_a_workbook_of_another_width_is_named(own):
    assert "holds 2 rows of 50 cells where rows of 101 are needed" in refused(
        "jester-data-1.xls", xls([values[:50] for values in FIRST])
    )


@pytest.mark.parametrize("keep", [0, 10, 600, 5_000])
def test_a_damaged_workbook_is_named(own, keep):
    content = xls(FIRST * 30)[:keep]
    message = refused("jester-data-1.xls", content)
    assert "jester-data-1.xls is cut, damaged or not an .xls workbook" in message
    assert message.endswith("get the file again")


def test_without_the_reader_of_workbooks_the_command_that_brings_it_is_named(own, monkeypatch):
    content = xls(FIRST)
    monkeypatch.setitem(sys.modules, "xlrd", None)
    assert refused("jester-data-1.xls", content).endswith('pip install "rankbench[xls]"')


def test_other_counts_than_the_published_ones_are_refused(own, monkeypatch):
    monkeypatch.setattr(jester, "_COUNTS", {"1": Counts(1_810_455, 24_983, 100)})
    message = refused("jester-data-1.csv", csv(FIRST))
    assert "jester[parts=1] holds 2 users, 100 items, 5 ratings where 24,983 users, 100 items, 1,810,455" in message
