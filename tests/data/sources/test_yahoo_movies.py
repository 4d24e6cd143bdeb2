"""Yahoo! Movies: small files in the syntax of the publication's readme, and malformed files."""

import pytest
from data.sources.at_hand import put, refusal, triples, view_of, words, zipped

from rankbench.core.errors import UserError
from rankbench.data.building import Counts
from rankbench.data.sources import yahoo_movies
from rankbench.data.sources.yahoo_movies import YahooMovies

TRAIN, TEST, CONTENT = (
    f"ydata-ymovies-{name}-v1_0.txt"
    for name in ("user-movie-ratings-train", "user-movie-ratings-test", "movie-content-descr")
)
REST = "\t".join([r"\N"] * 31)  # running time, rating by the MPAA, dates, people: 34 fields in all
FILES = {
    TRAIN: "1\t1800029049\t12\t5\n1\t1804857429\t8\t4\n2\t1800029049\t1\t1\n2\t1800030906\t13\t5\n",
    TEST: "2\t1804857429\t9\t4\n",
    CONTENT: (
        f"1800029049\tAmélie (2001)\tA girl in Paris. A love story\t{REST}\n"
        f"1804857429\tLove\t\\N\t{REST}\n"
        f"1800030906\t\\N\t\\N\t{REST}\n"
        f"1800000001\tNobody rated this\tUnseen\t{REST}\n"
    ).encode("latin-1"),
}


@pytest.fixture
def own(folders, monkeypatch):
    """Folders of our own, and counts that fit the small files."""
    counts(monkeypatch, Counts(4, 2, 3), Counts(1, 1, 1))


def counts(monkeypatch, train, test):
    """What is held to have been published."""
    monkeypatch.setattr(yahoo_movies, "_COUNTS", {TRAIN: train, TEST: test})


def refused(changed, **settings):
    """The message where some files are of another content."""
    put("yahoo-movies", FILES | changed)
    return refusal(YahooMovies(**settings))


def test_grades_from_1_to_13_and_the_later_ratings_as_a_fold(own):
    put("yahoo-movies", FILES)
    view = view_of(YahooMovies())
    assert triples(view) == [
        (1, 1800029049, 12.0),
        (1, 1804857429, 8.0),
        (2, 1800029049, 1.0),
        (2, 1800030906, 13.0),
        (2, 1804857429, 9.0),
    ]
    assert view.folds.tolist() == [0, 0, 0, 0, 1]


def test_converted_ratings_from_1_to_5(own):
    put("yahoo-movies", FILES)
    view = view_of(YahooMovies(scale="5", features="none"))
    assert view.values.tolist() == [5, 4, 1, 5, 4]
    assert view.item_features is None


def test_features_are_the_words_of_title_and_synopsis(own):
    put("yahoo-movies", {"R4.zip": zipped(FILES)})
    view = view_of(YahooMovies())
    assert words(view, 1800029049) == [
        f"words:{word}" for word in ("a", "amélie", "girl", "in", "love", "paris", "story")
    ]
    assert words(view, 1804857429) == ["words:love"]
    assert words(view, 1800030906) == []
    assert "words:unseen" not in view.feature_names


def test_a_movie_rated_in_both_files_keeps_the_later_rating(own, monkeypatch):
    counts(monkeypatch, Counts(4, 2, 3), Counts(2, 2, 2))
    put("yahoo-movies", FILES | {TEST: "2\t1804857429\t9\t4\n1\t1800029049\t3\t2\n"})
    view = view_of(YahooMovies())
    assert triples(view)[0] == (1, 1800029049, 3.0)
    assert view.folds.tolist() == [1, 0, 0, 0, 1]


def test_a_pair_that_comes_twice_in_one_file_is_an_error_unless_the_last_is_to_win(own, monkeypatch):
    counts(monkeypatch, Counts(5, 2, 3), Counts(1, 1, 1))
    twice = {TRAIN: FILES[TRAIN] + "1\t1800029049\t2\t1\n"}
    message = refused(twice)
    assert f"{TRAIN}, line 5: user 1, item 1800029049 is on line 1 already" in message
    assert triples(view_of(YahooMovies(repeats="last")))[0] == (1, 1800029049, 2.0)


def test_it_cannot_be_downloaded_and_says_what_to_do(own):
    origin = YahooMovies().origin
    assert origin.missing().startswith("rankbench data import yahoo-movies PATH (apply for data set R4")
    with pytest.raises(UserError, match="yahoo-movies cannot be downloaded: apply for data set R4 of Yahoo! Webscope"):
        origin.fetch(lambda name, done, total: None)
    put("yahoo-movies", {name: FILES[name] for name in (TRAIN, TEST)})
    assert YahooMovies().origin.missing() is not None
    assert YahooMovies(features="none").origin.missing() is None


# ---- what is refused ----

FIRST_LINES = "".join(FILES[TRAIN].splitlines(keepends=True)[:3])
BAD = {
    "a row cut short": ("2\t1800030906\n", {}, "2 fields where 3 are needed"),
    "no converted rating": ("2\t1800030906\t13\n", {"scale": "5"}, "3 fields where 4 are needed"),
    "a grade as a letter": ("2\t1800030906\tA+\t5\n", {}, "rating 'A+' is no number"),
    "a grade out of range": ("2\t1800030906\t14\t5\n", {}, "rating 14 is out of range: must be from 1 to 13"),
    "a rating out of range": (
        "2\t1800030906\t13\t6\n",
        {"scale": "5"},
        "rating 6 is out of range: must be from 1 to 5",
    ),
}


@pytest.mark.parametrize(("line", "settings", "message"), BAD.values(), ids=BAD)
def test_a_line_that_does_not_fit_is_named(own, line, settings, message):
    found = refused({TRAIN: FIRST_LINES + line}, **settings)
    assert f"{TRAIN}, line 4: " in found
    assert message in found


def test_a_tested_movie_that_was_never_trained_on_is_named(own):
    message = refused({TEST: "2\t1800000001\t9\t4\n"})
    assert f"{TEST}, line 1: item 1800000001 is not in " in message
    assert message.endswith(f"{TRAIN}: the files are of different editions")


def test_a_movie_without_a_number_in_the_content_is_named(own):
    assert f"{CONTENT}, line 2: id 'x' is no whole number" in refused({CONTENT: f"1\ta\tb\t{REST}\nx\ta\tb\t{REST}\n"})


def test_a_cut_line_of_the_content_is_named(own):
    assert f"{CONTENT}, line 2: 2 fields where 3 are needed" in refused({CONTENT: f"1\ta\tb\t{REST}\n2\ta\n"})


def test_other_counts_than_the_published_ones_are_refused(own, monkeypatch):
    monkeypatch.setattr(yahoo_movies, "_COUNTS", {TRAIN: Counts(211_231, 7_642, 11_915), TEST: Counts(1, 1, 1)})
    assert f"{TRAIN} holds 2 users, 3 items, 4 ratings where 7,642 users, 11,915 items, 211,231 ratings" in refused({})


def test_a_copy_is_imported_counted_and_kept_with_a_note_of_files_that_are_read_before_it(cli, own, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for name, content in FILES.items():
        (copy / name).write_bytes(content.encode() if isinstance(content, str) else content)
    counted, *lines = cli("data", "import", "yahoo-movies", copy).out.splitlines()
    assert counted.startswith("yahoo-movies: 5 rows, 2 users, 3 items; ")
    kept = f"kept in {tmp_path / 'cache' / 'data' / 'yahoo-movies'}"
    assert lines == [kept]
    put("yahoo-movies", FILES)
    note = f"note: files in {tmp_path / 'data' / 'yahoo-movies'} are read before those in the cache"
    assert cli("data", "import", "yahoo-movies", copy).out.splitlines()[1:] == [kept, note]
