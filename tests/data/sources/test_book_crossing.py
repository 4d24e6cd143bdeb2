"""Book-Crossing: the counts of the available editions, the dump's syntax, and malformed files."""

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
from data.sources.at_hand import REAL, needs, put, refusal, triples, view_of, zipped

from rankbench.core.errors import UserError
from rankbench.data.building import Counts
from rankbench.data.sources import book_crossing
from rankbench.data.sources.book_crossing import BookCrossing

first_at_hand = needs("book-crossing/BX-Book-Ratings.first199999.csv.gz")
filtered_at_hand = needs("book-crossing/book_crossing.zip")
HEADER = b'"User-ID";"ISBN";"Book-Rating"\r\n'
DUMP = HEADER + (
    b'"276725";"034545104X";"0"\r\n'
    b'"276726";"0155061224";"5"\r\n'
    b'"276726";"155061224";"6"\r\n'  # another ISBN than the one above
    b'"11676";"\\"0432534220\\"";"6"\r\n'
    b'"11676";"847556080\xba";"10"\r\n'  # latin-1
    b'"11676";"a;b";"1"\r\n'
)


@pytest.fixture
def own(folders, monkeypatch):
    """Folders of our own, and row counts that fit the small files."""
    small = {"full": {"rows": (6, 5)}, "first": {"rows": (6, 4), "counts": Counts(3, 2, 2)}}
    small["filtered"] = {"counts": Counts(3, 2, 2)}
    editions = {name: replace(book_crossing._EDITIONS[name], **numbers) for name, numbers in small.items()}
    monkeypatch.setattr(book_crossing, "_EDITIONS", editions)


def refused(name, content, edition="full"):
    """The message about a file of this content."""
    put("book-crossing", {name: content})
    return refusal(BookCrossing(edition=edition))


# ---- the real files ----


@first_at_hand
def test_the_first_rows_hold_what_was_counted_in_them(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    path = Path(REAL, "book-crossing/BX-Book-Ratings.first199999.csv.gz")
    table = pandas.read_csv(path, sep=";", dtype={"ISBN": str}, keep_default_na=False, encoding="latin-1", quoting=3)
    assert (len(table), table["UserID"].nunique(), table["ISBN"].nunique()) == (199_999, 17_793, 106_955)
    assert table.duplicated(["UserID", "ISBN"]).sum() == 12
    explicit = table[table["BookRating"] > 0]
    assert len(explicit) == 79_269
    last = explicit.drop_duplicates(["UserID", "ISBN"], keep="last")
    view = view_of(BookCrossing(edition="first"))
    assert (len(view), view.n_users, view.n_items) == (79_264, 13_208, 52_050)
    assert np.unique(view.values).tolist() == list(range(1, 11))
    assert set(triples(view)) == set(last.itertuples(index=False, name=None))
    assert BookCrossing(edition="first").origin.size == "13,208 users, 52,050 items, 79,264 ratings (of 199,999 rows)"


@filtered_at_hand
def test_the_filtered_edition_holds_what_was_counted_in_it(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    with (
        zipfile.ZipFile(Path(REAL, "book-crossing/book_crossing.zip")) as archive,
        archive.open("book_crossing/book_ratings.dat") as file,
    ):
        content = file.read()
    assert content.count(b"\n") == 62_657  # the number of ratings that its README gives: it counts the header
    rows = [line.split(b"\t") for line in content.splitlines()[1:]]
    view = view_of(BookCrossing(edition="filtered"))
    assert (len(view), view.n_users, view.n_items) == (62_656, 1_295, 14_684)
    assert np.unique(view.values).tolist() == list(range(1, 11))
    assert set(triples(view)) == {(int(user), int(book), float(rating)) for user, book, rating in rows}


# ---- small files in the published format ----


@pytest.mark.parametrize("line_end", [b"\r\n", b"\n"])
def test_the_dump_is_read_with_its_quotes_letters_and_escapes(own, line_end):
    put("book-crossing", {"BX-CSV-Dump.zip": zipped({"BX-Book-Ratings.csv": DUMP.replace(b"\r\n", line_end)})})
    assert triples(view_of(BookCrossing())) == [
        (11676, '"0432534220"', 6.0),
        (11676, "847556080º", 10.0),
        (11676, "a;b", 1.0),
        (276726, "0155061224", 5.0),
        (276726, "155061224", 6.0),
    ]


def test_in_the_spreadsheet_the_last_rating_of_a_pair_wins_and_zeros_are_none(own):
    rows = "276725;034545104X;0\r\n8;1;9\r\n8;1;10\r\n8;1;0\r\n8;847556080º;7\r\n9;1;3\r\n"
    put("book-crossing", {"BX-Book-Ratings.first199999.csv": f"UserID;ISBN;BookRating\r\n{rows}".encode("latin-1")})
    assert triples(view_of(BookCrossing(edition="first"))) == [(8, "1", 10.0), (8, "847556080º", 7.0), (9, "1", 3.0)]


def test_the_filtered_edition_is_read(own):
    rows = "user\titem\trating\n1\t6264\t7.000000\n1\t4350\t10.000000\n2\t4350\t5.000000\n"
    put("book-crossing", {"book_crossing.zip": zipped({"book_crossing/book_ratings.dat": rows})})
    assert triples(view_of(BookCrossing(edition="filtered"))) == [(1, 4350, 10.0), (1, 6264, 7.0), (2, 4350, 5.0)]


def test_what_is_missing_depends_on_the_edition(own):
    assert BookCrossing().origin.missing() == "rankbench data fetch book-crossing"
    assert "first 199,999 rows" in BookCrossing(edition="first").origin.missing()
    put("book-crossing", {"book_ratings.dat": "user\titem\trating\n"})
    assert BookCrossing(edition="filtered").origin.missing() is None
    assert BookCrossing().origin.missing() is not None
    with pytest.raises(
        UserError, match=r"no file BX-Book-Ratings.*: rankbench data import book-crossing\[edition=first\]"
    ):
        view_of(BookCrossing(edition="first"))


# ---- what is refused ----

LINES = DUMP.splitlines(keepends=True)


def test_a_pair_that_comes_twice_in_the_dump_is_named_with_both_lines(own):
    again = b"".join(LINES[:-1]) + b'"276726";"0155061224";"7"\r\n'
    assert refused("BX-Book-Ratings.csv", again).endswith(
        "BX-Book-Ratings.csv, line 7: user 276726, item 0155061224 is on line 3 already: keep one of the two rows"
    )


BAD = {
    "a row cut short": (b'"276728";"0155061224"\r\n', "2 fields where 3 are needed"),
    "a rating that is no number": (b'"276728";"0155061224";"five"\r\n', "rating 'five' is no number"),
    "a rating over the scale": (b'"276728";"0155061224";"11"\r\n', "rating 11 is out of range: must be from 0 to 10"),
    "a rating under the scale": (b'"276728";"0155061224";"-1"\r\n', "rating -1 is out of range: must be from 0 to 10"),
    "a user that is none": (b'"Anna";"0155061224";"7"\r\n', "user 'Anna' is no whole number of 64 bits"),
    "a user that overflows": (
        b'"9223372036854775808";"0155061224";"7"\r\n',
        "user '9223372036854775808' is no whole number of 64 bits",
    ),
    "no ISBN": (b'"276728";"";"7"\r\n', "item '' is empty"),
}


@pytest.mark.parametrize(("line", "message"), BAD.values(), ids=BAD)
def test_a_line_that_does_not_fit_is_named(own, line, message):
    content = b"".join([*LINES[:3], line, *LINES[4:]])
    assert f"BX-Book-Ratings.csv, line 4: {message}" in refused("BX-Book-Ratings.csv", content)


def test_a_rating_out_of_range_in_the_filtered_edition_is_named(own):
    message = refused("book_ratings.dat", "user\titem\trating\n1\t2\t7.0\n1\t3\t0.0\n", "filtered")
    assert message.endswith("book_ratings.dat, line 3: rating 0 is out of range: must be from 1 to 10 in steps of 1")


@pytest.mark.parametrize(
    ("edition", "name", "content", "message"),
    [
        ("full", "BX-Book-Ratings.csv", DUMP, "6 rows with 5 ratings where 1,149,780 rows with 433,671 ratings were"),
        (
            "first",
            "BX-Book-Ratings.first199999.csv",
            b"UserID;ISBN;BookRating\r\n8;1;9\r\n",
            "1 rows with 1 ratings where 199,999 rows with 79,269 ratings were published: the file is cut",
        ),
        (
            "filtered",
            "book_ratings.dat",
            b"user\titem\trating\n1\t2\t7.0\n",
            "1 users, 1 items, 1 ratings where 1,295 users, 14,684 items, 62,656 ratings were published",
        ),
    ],
)
def test_an_edition_of_other_size_is_refused(folders, edition, name, content, message):
    assert message in refused(name, content, edition)
