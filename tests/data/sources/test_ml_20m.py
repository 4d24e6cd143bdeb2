"""MovieLens 20M: commas, quotes and headers as published, and malformed files."""

import pytest
from data.sources.at_hand import put, refusal, triples, view_of, words, zipped

from rankbench.arrays.npz import fingerprint
from rankbench.data.building import Counts
from rankbench.data.sources import ml_20m
from rankbench.data.sources.ml_20m import MovieLens20M

RATINGS = "userId,movieId,rating,timestamp\n1,2,3.5,1112486027\n1,131262,0.5,1112484676\n7,2,5.0,1011209096\n"
MOVIES = (
    "movieId,title,genres\n"
    "2,Jumanji (1995),Adventure|Children|Fantasy\n"
    '11,"American President, The (1995)",Comedy|Drama|Romance\n'
    '131262,"""Great Performances"" Cats, Café (1998)",(no genres listed)\n'
)


@pytest.fixture
def tiny(folders, monkeypatch):
    """Three ratings, and folders of the test's own."""
    monkeypatch.setattr(ml_20m.MovieLens20M, "counts", Counts(3, 2, 2))
    return put("ml-20m", {"ratings.csv": RATINGS, "movies.csv": MOVIES})


def test_ratings_and_quoted_titles_are_read(tiny):
    view = view_of(MovieLens20M(features="titles+genres+decades"))
    assert triples(view) == [(1, 2, 3.5), (1, 131262, 0.5), (7, 2, 5)]
    found = [f"titles:{word}" for word in ("café", "cats", "great", "performances")]
    assert words(view, 131262) == [*found, "decades:1990s"]
    assert words(view, 2)[1:4] == ["genres:Adventure", "genres:Children", "genres:Fantasy"]


def test_the_archive_holds_the_same(tiny):
    expected = fingerprint(view_of(MovieLens20M()))
    for file in tiny.iterdir():
        file.unlink()
    put("", {"ml-20m.zip": zipped({"ml-20m/ratings.csv": RATINGS, "ml-20m/movies.csv": MOVIES})})
    assert fingerprint(view_of(MovieLens20M())) == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("ratings.csv", RATINGS + "7,11\n", "ratings.csv, line 5: 2 fields where 3 are needed: '7,11'"),
        (
            "ratings.csv",
            RATINGS + "\n7,11,4.2,1\n",
            "line 6: rating 4.2 is out of range: must be from 0.5 to 5 in steps",
        ),
        ("ratings.csv", "1,2,3.5,1112486027\nuserId,movieId,rating,timestamp\n", "line 2: user 'userId' is no whole"),
        ("movies.csv", MOVIES + "12,Dracula\n", "movies.csv, line 5: 2 fields where 3 are needed: '12,Dracula'"),
        ("movies.csv", MOVIES + "12.5,Dracula,Horror\n", "movies.csv, line 5: id '12.5' is no whole number"),
        ("movies.csv", MOVIES.encode("latin-1"), "movies.csv, line 4: not utf-8 (byte 0xe9)"),
    ],
)
def test_what_does_not_fit_is_named(tiny, name, content, message):
    put("ml-20m", {name: content})
    found = refusal(MovieLens20M())
    assert message in found and str(tiny / name) in found


def test_a_changed_file_is_parsed_again_and_what_was_parsed_before_is_forgotten(tiny, tmp_path):
    view_of(MovieLens20M())
    put("ml-20m", {"ratings.csv": RATINGS.replace("3.5", "4.5")})
    assert triples(view_of(MovieLens20M()))[0] == (1, 2, 4.5)
    assert len(list((tmp_path / "cache/parsed").iterdir())) == 1
    view_of(MovieLens20M(features="none"))
    assert len(list((tmp_path / "cache/parsed").iterdir())) == 2
