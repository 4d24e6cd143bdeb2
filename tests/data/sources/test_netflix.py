"""Netflix: all published forms give the same view for any block size, and wrong lines are named."""

import gzip
import io
import tarfile

import numpy as np
import pytest
from data.sources.at_hand import put, refusal, triples, view_of, zipped

from rankbench.core.errors import UserError
from rankbench.data.building import Counts
from rankbench.data.sources import netflix
from rankbench.data.sources.netflix import Netflix

MOVIES = {
    1: "1488844,3,2005-09-06\n822109,5,2005-05-13\n885013,4,2005-10-19\n",
    2: "822109,1,2005-09-05\n",
    10: "7,2,2004-01-01\n2649429,5,1999-11-11\n1488844,5,2005-12-31\n",
}
TRIPLES = [
    (7, 10, 2.0),
    (822109, 1, 5.0),
    (822109, 2, 1.0),
    (885013, 1, 4.0),
    (1488844, 1, 3.0),
    (1488844, 10, 5.0),
    (2649429, 10, 5.0),
]


def file_of(movie):
    """The name of a movie's own file."""
    return f"mv_{movie:07d}.txt"


def with_header(movie, rows):
    """A movie's lines."""
    return f"{movie}:\n{rows}"


def archive(members, mode="w"):
    """A tar archive as bytes."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode=mode) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return whole.getvalue()


def folder(movies):
    """The files of the folder training_set."""
    return {file_of(movie): with_header(movie, rows) for movie, rows in movies.items()}


def training_set(movies):
    """The archive training_set.tar, its files in no order."""
    members = {f"training_set/{name}": text.encode() for name, text in reversed(folder(movies).items())}
    return {"training_set.tar": archive(members)}


def prize(movies):
    """The archive as the prize's participants got it, with what else is in it."""
    inner = training_set(movies)["training_set.tar"]
    others = {"download/movie_titles.txt": b"1,2003,Dinosaur Planet\n", "download/probe.txt": b"1:\n30878\n"}
    return {"nf_prize_dataset.tar.gz": archive(others | {"download/training_set.tar": inner}, "w:gz")}


def combined(movies):
    """Kaggle's four files, some of which hold nothing of ours but a movie of nobody."""
    texts = [with_header(movie, rows) for movie, rows in movies.items()]
    parts = [texts[0], texts[1], "3:\n", "".join(texts[2:])]
    return {f"combined_data_{number}.txt": text for number, text in enumerate(parts, start=1)}


def kaggle(movies):
    """Kaggle's archive."""
    return {"archive.zip": zipped(combined(movies))}


FORMS = [folder, training_set, prize, combined, kaggle]


@pytest.fixture
def own(folders, monkeypatch):
    """Folders of our own, and counts that fit the small files."""
    monkeypatch.setattr(netflix, "_COUNTS", Counts(7, 5, 3))
    return monkeypatch


def refused(files):
    """The message about these files."""
    put("netflix", files)
    return refusal(Netflix())


# ---- every form gives the same ----


@pytest.mark.parametrize("form", [folder, training_set, prize])
def test_a_file_per_movie_loose_or_in_archives(own, form):
    put("netflix", form(MOVIES))
    view = view_of(Netflix())
    assert triples(view) == TRIPLES
    assert view.values.dtype == np.float64


@pytest.mark.parametrize("form", [combined, kaggle])
def test_kaggles_files_loose_or_zipped(own, form):
    put("netflix", form(MOVIES))
    own.setattr(netflix, "_COUNTS", Counts(7, 5, 4))  # with the movie that nobody rated
    assert triples(view_of(Netflix())) == TRIPLES


@pytest.mark.parametrize("form", FORMS)
def test_windows_line_ends_and_a_last_line_without_one(own, form):
    windows = {movie: rows.replace("\n", "\r\n") for movie, rows in MOVIES.items()}
    own.setattr(netflix, "expect", lambda *about: None)
    put("netflix", form(windows))
    assert triples(view_of(Netflix())) == TRIPLES


def test_headers_with_windows_line_ends(own):
    put("netflix", {name: text.replace("\n", "\r\n").encode() for name, text in folder(MOVIES).items()})
    assert triples(view_of(Netflix())) == TRIPLES


def test_files_without_a_last_line_end_do_not_run_together(own):
    put("netflix", {name: text.rstrip("\n") for name, text in folder(MOVIES).items()})
    assert triples(view_of(Netflix())) == TRIPLES


def test_blank_lines_at_the_end_are_nothing(own):
    put("netflix", {name: text + "\n\r\n" for name, text in folder(MOVIES).items()})
    assert triples(view_of(Netflix())) == TRIPLES


@pytest.mark.one_in(7)
@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 10, 50, 200, 1_000, 1 << 25])
@pytest.mark.parametrize("form", FORMS)
def test_a_large_set_is_the_same_in_every_form_and_block(own, form, block):
    rng = np.random.default_rng(block)
    rows = {(int(movie), int(customer)) for movie, customer in rng.integers((1, 1), (9, 60), (300, 2))}
    rated = {pair: int(rng.integers(1, 6)) for pair in sorted(rows, key=lambda _: rng.random())}
    movies = {
        movie: "".join(f"{who},{stars},2005-01-01\n" for (what, who), stars in rated.items() if what == movie)
        for movie in range(1, 9)
    }
    own.setattr(netflix, "_BLOCK", block)
    own.setattr(netflix, "expect", lambda *about: None)
    put("netflix", form(movies))
    expected = sorted((who, what, float(stars)) for (what, who), stars in rated.items())
    assert triples(view_of(Netflix())) == expected


@pytest.mark.parametrize("form", [training_set, prize, combined, kaggle])
def test_what_is_at_hand_is_not_missing(own, form):
    put("netflix", form(MOVIES))
    assert Netflix().origin.missing() is None


def test_a_folder_is_at_hand_once_its_last_movie_is(own):
    put("netflix", folder(MOVIES))
    assert Netflix().origin.missing() is not None
    put("netflix", {"mv_0017770.txt": "17770:\n"})
    assert Netflix().origin.missing() is None


def test_it_cannot_be_downloaded_and_says_what_to_do(own):
    assert Netflix().origin.missing().startswith("rankbench data import netflix PATH (Netflix has withdrawn it")
    with pytest.raises(UserError, match="netflix cannot be downloaded: Netflix has withdrawn it: take nf_prize"):
        Netflix().origin.fetch(lambda name, done, total: None)


# ---- what is refused ----

BAD = {
    "no movie above": ("822109,5,2005-05-13\n", 1, "is not MOVIE:"),
    "a row cut short": ("2:\n822109,5,2005-05-13\n885013,4\n", 3, "'885013,4' is not CUSTOMER,RATING,DATE"),
    "a row of one field": ("2:\n822109\n", 2, "'822109' is not CUSTOMER,RATING,DATE"),
    "a field too many": ("2:\n822109,5,2005,1\n", 2, "is not CUSTOMER,RATING,DATE"),
    "a blank line amid": ("2:\n822109,5,2005-05-13\n\n7,5,2005-05-13\n", 3, "'' is not CUSTOMER,RATING,DATE"),
    "a rating of 0": ("2:\n822109,0,2005-05-13\n", 2, "is out of range: ratings are from 1 to 5"),
    "a rating of 6": ("2:\n822109,5,2005-05-13\n7,6,2005-05-13\n", 3, "is out of range: ratings are from 1 to 5"),
    "a rating of 261": ("2:\n822109,261,2005-05-13\n", 2, "is out of range: ratings are from 1 to 5"),
    "half a star": ("2:\n822109,3.5,2005-05-13\n", 2, "is out of range: ratings are from 1 to 5"),
    "no rating": ("2:\n822109,,2005-05-13\n", 2, "is out of range: ratings are from 1 to 5"),
    "customer 0": ("2:\n0,3,2005-05-13\n", 2, "customers are numbered from 1 to 2,649,429"),
    "a customer that nobody is": ("2:\n2649430,3,2005-05-13\n", 2, "customers are numbered from 1 to 2,649,429"),
    "a customer that overflows": ("2:\n99999999999999999999,3,2005-05-13\n", 2, "customers are numbered from 1"),
    "a customer by name": ("2:\nAnna,3,2005-05-13\n", 2, "customers are numbered from 1"),
    "a movie by name": ("Dinosaur Planet:\n822109,5,2005-05-13\n", 1, "is not MOVIE:"),
    "movie 0": ("0:\n822109,5,2005-05-13\n", 1, "is not MOVIE:"),
    "a time in a date": ("2:\n822109,5,2005-05-13 10:30\n", 2, "10:30' is not CUSTOMER,RATING,DATE"),
    "other bytes than text": ("2:\n\x00\x01ÿ,5,2005-05-13\n", 2, "customers are numbered from 1"),
}


@pytest.mark.parametrize("block", [10, 1 << 25])
@pytest.mark.parametrize(("content", "line", "message"), BAD.values(), ids=BAD)
def test_a_line_that_does_not_fit_is_named_in_its_own_file(own, content, line, message, block):
    own.setattr(netflix, "_BLOCK", block)
    found = refused(folder(MOVIES) | {file_of(2): content})
    assert f"{file_of(2)}, line {line}: " in found
    assert message in found


@pytest.mark.parametrize("block", [10, 1 << 25])
def test_a_line_that_does_not_fit_is_named_in_a_long_file_too(own, block):
    own.setattr(netflix, "_BLOCK", block)
    wrong = MOVIES | {10: MOVIES[10] + "9,9,2005-01-01\n"}
    assert "combined_data_4.txt, line 5: '9,9,2005-01-01' is out of range" in refused(combined(wrong))


def test_a_line_that_does_not_fit_is_named_within_the_archives(own):
    wrong = MOVIES | {2: "7,0,2005-01-01\n"}
    message = refused(prize(wrong))
    assert "nf_prize_dataset.tar.gz/training_set.tar/mv_0000002.txt, line 2: '7,0,2005-01-01' is out of" in message


def test_an_empty_file_is_named(own):
    message = refused(folder(MOVIES) | {file_of(2): ""})
    assert message.endswith("mv_0000002.txt is empty: get the file again")


@pytest.mark.parametrize("block", [10, 1 << 25])
def test_a_customer_who_rates_a_movie_twice_is_named_with_both_lines(own, block):
    own.setattr(netflix, "_BLOCK", block)
    twice = MOVIES | {10: MOVIES[10] + "7,4,2004-01-02\n"}
    message = refused(combined(twice))
    assert "combined_data_4.txt, line 5: customer 7 rates movie 10 on line 2 of " in message
    assert message.endswith("combined_data_4.txt already: keep one of the two rows")


def test_a_movie_that_two_files_hold_is_found_out_by_its_customers(own):
    message = refused(folder(MOVIES) | {file_of(99): with_header(1, MOVIES[1])})
    assert "mv_0000099.txt, line 3: customer 822109 rates movie 1 on line 3 of " in message


@pytest.mark.parametrize("keep", [100, 300])
def test_a_cut_archive_around_an_archive_is_named(own, keep):
    content = prize(MOVIES)["nf_prize_dataset.tar.gz"][:keep]
    assert "nf_prize_dataset.tar.gz is cut or damaged" in refused({"nf_prize_dataset.tar.gz": content})


def test_a_cut_archive_is_named(own):
    content = training_set(MOVIES)["training_set.tar"][: 512 + 40]  # amid the first file
    assert "training_set.tar is cut or damaged (unexpected end of data)" in refused({"training_set.tar": content})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("training_set.tar", b"not found" * 100),
        ("training_set.tar.gz", gzip.compress(b"not found", mtime=0)),
        ("nf_prize_dataset.tar.gz", b"<html>not found</html>"),
    ],
)
def test_what_is_no_archive_is_named(own, name, content):
    assert f"{name} is cut or damaged" in refused({name: content})


def test_one_of_kaggles_files_missing_is_named(own):
    files = combined(MOVIES)
    del files["combined_data_2.txt"]
    assert "no file combined_data_2.txt in " in refused(files)


def test_other_counts_than_the_published_ones_are_refused(own):
    own.setattr(netflix, "_COUNTS", Counts(100_480_507, 480_189, 17_770))
    message = refused(folder(MOVIES))
    assert "netflix holds 5 users, 3 items, 7 ratings where 480,189 users, 17,770 items, 100,480,507" in message


def test_a_block_of_headings_alone_has_no_ratings():
    assert [len(part) for part in netflix._numbers(np.zeros(0, np.uint8), 0, [])] == [0, 0]
