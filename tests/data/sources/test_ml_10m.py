"""MovieLens 10M: half stars and UTF-8 in the published archive, and malformed files."""

import pytest
from data.sources.at_hand import put, refusal, triples, view_of, words, zipped

from rankbench.core.errors import UserError
from rankbench.data.building import Counts
from rankbench.data.sources import ml_10m
from rankbench.data.sources.ml_10m import MovieLens10M

RATINGS = "1::122::5::838985046\n1::185::0.5::838983525\n139::8606::3.5::1111545931\n"
MOVIES = (
    "122::Boomerang (1992)::Comedy|Romance\n"
    "185::Misérables, Les (1995)::Drama\n"
    "8606::Pull My Daisy (1958)::(no genres listed)\n"
)


@pytest.fixture
def tiny(folders, monkeypatch):
    """Three ratings in the published archive, and folders of the test's own."""
    monkeypatch.setattr(ml_10m.MovieLens10M, "counts", Counts(3, 2, 3))
    return put("ml-10m", archive())


def archive(ratings=RATINGS, movies=MOVIES):
    return {"ml-10m.zip": zipped({"ml-10M100K/ratings.dat": ratings, "ml-10M100K/movies.dat": movies})}


def test_half_stars_and_accents_are_read_out_of_the_archive(tiny):
    view = view_of(MovieLens10M(features="genres+titles+decades"))
    assert triples(view) == [(1, 122, 5), (1, 185, 0.5), (139, 8606, 3.5)]
    assert words(view, 185) == ["genres:Drama", "titles:les", "titles:misérables", "decades:1990s"]


def test_no_genre_is_none_and_not_a_genre(tiny):
    view = view_of(MovieLens10M())
    assert words(view, 8606) == []
    assert view.feature_names.tolist() == ["genres:Comedy", "genres:Drama", "genres:Romance"]


@pytest.mark.parametrize(
    ("ratings", "movies", "message"),
    [
        (RATINGS + "139::122::0.7::1\n", MOVIES, "line 4: rating 0.7 is out of range: must be from 0.5 to 5"),
        (RATINGS, MOVIES.encode("latin-1"), "movies.dat, line 2: not utf-8 (byte 0xe9)"),
        (RATINGS, "122::Boomerang (1992)\n", "movies.dat, line 1: 2 fields where 3 are needed"),
    ],
)
def test_what_does_not_fit_is_named_within_the_archive(tiny, ratings, movies, message):
    put("ml-10m", archive(ratings, movies))
    found = refusal(MovieLens10M())
    assert message in found and f"{tiny}/ml-10m.zip/ml-10M100K/" in found


def test_a_cut_archive_is_named(tiny):
    path = tiny / "ml-10m.zip"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UserError, match=r"ml-10m\.zip is cut or damaged .*: get the file again"):
        view_of(MovieLens10M())


def test_other_counts_than_the_published_ones_are_refused(tiny, monkeypatch):
    monkeypatch.setattr(ml_10m.MovieLens10M, "counts", Counts(10_000_054, 69_878, 10_677))
    assert "ml-10m holds 2 users, 3 items, 3 ratings where 69,878 users, 10,677 items" in refusal(MovieLens10M())
    assert MovieLens10M.origin.size == "69,878 users, 10,677 items, 10,000,054 ratings"
