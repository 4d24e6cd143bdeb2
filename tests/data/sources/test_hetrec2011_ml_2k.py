"""HetRec 2011 MovieLens 2K: the available slice, the published files of movies, and the full format."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pandas
import pytest
from data.sources.at_hand import REAL, needs, put, refusal, triples, view_of, words, zipped

from rankbench.arrays.npz import fingerprint
from rankbench.core.errors import UserError
from rankbench.data.building import Counts
from rankbench.data.sources import hetrec2011_ml_2k
from rankbench.data.sources.hetrec2011_ml_2k import HetRecMovieLens2K, item_features

NAME = "hetrec2011-ml-2k"
PARTS = ("train_user_ratings.dat", "test_user_ratings.dat")
at_hand = needs(*(f"{NAME}/{file}" for file in (*PARTS, "movies.dat", "movie_genres.dat", "movie_directors.dat")))


def published(name):
    return pandas.read_csv(Path(REAL, NAME, name), sep="\t", encoding="latin-1", quoting=3)


@pytest.fixture
def real(monkeypatch, tmp_path):
    """The real files, and a cache of the test's own."""
    monkeypatch.setenv("RANKBENCH_DATA", REAL)
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))


# ---- what is at hand ----


@at_hand
def test_the_slice_holds_both_files_and_the_second_is_its_fold(real):
    view = view_of(HetRecMovieLens2K(edition="slice"))
    assert (len(view), view.n_users, view.n_items) == (10_102, 38, 3_260)
    assert np.unique(view.values).tolist() == np.arange(0.5, 5.5, 0.5).tolist()
    assert np.bincount(view.folds).tolist() == [9_091, 1_011]
    for fold, name in enumerate(PARTS):
        rows = published(name).sort_values(["userID", "movieID"])[["userID", "movieID", "rating"]]
        found = triples(view.take(np.flatnonzero(view.folds == fold)))
        assert found == list(rows.itertuples(index=False, name=None))


@at_hand
def test_all_listed_movies_have_the_published_genres_and_directors(real):
    features = item_features(HetRecMovieLens2K().origin.files(), "genres+directors+titles+decades").words
    rows = {kind: [word for of_one in table.values() for word in of_one] for kind, table in features.items()}
    assert (len(rows["genres"]), len(set(rows["genres"]))) == (20_809, 20)
    assert (len(rows["directors"]), len(set(rows["directors"]))) == (10_155, 4_060)
    assert len(features["titles"]) == len(features["decades"]) == len(features["genres"]) == 10_197
    years = published("movies.dat").set_index("id")["year"]
    assert features["decades"] == {movie: [f"{year // 10}0s"] for movie, year in years.items()}
    for kind, column in (("genres", "genre"), ("directors", "directorID")):
        expected = published(f"movie_{kind}.dat").groupby("movieID")[column].agg(list).to_dict()
        assert features[kind] == expected


@at_hand
def test_the_features_of_a_movie_are_those_of_the_files(real):
    view = view_of(HetRecMovieLens2K(edition="slice", features="titles+directors+decades+genres"))
    assert words(view, 3) == [
        "titles:grumpy", "titles:men", "titles:old", "directors:donald_petrie", "decades:1990s", "genres:Comedy",
        "genres:Romance",
    ]  # fmt: skip


@at_hand
def test_the_hashes_are_those_of_the_files(real):
    for edition in ("full", "slice"):
        held = HetRecMovieLens2K(edition=edition).origin.held()
        assert len(held) == 5
        assert all(hashlib.sha256(one.path.read_bytes()).hexdigest() == one.sha256 for one in held)


# ---- small files in the published format ----

HEADER = "userID\tmovieID\trating\tdate_day\tdate_month\tdate_year\tdate_hour\tdate_minute\tdate_second\n"
ROWS = "75\t3\t1\t29\t10\t2006\t23\t17\t16\n75\t32\t4.5\t29\t10\t2006\t23\t23\t44\n190\t3\t0.5\t1\t1\t2008\t0\t0\t1\n"
TIMES = "userID\tmovieID\trating\ttimestamp\n75\t3\t1\t1162160236000\n75\t32\t4.5\t1162160624000\n190\t3\t0.5\t1\n"
MOVIES = {
    "movies.dat": (
        "id\ttitle\timdbID\tspanishTitle\timdbPictureURL\tyear\trtID\n"
        "3\tGrumpy Old Men\t0107050\tDos viejos gru\xf1ones\thttp://x\t1993\tgrumpy\n"
        '32\t"Les Misérables"\t0114746\tDoce monos\thttp://y\t1995\t\\N\n'
    ),
    "movie_genres.dat": "movieID\tgenre\n3\tComedy\n3\tRomance\n32\tSci-Fi\n",
    "movie_directors.dat": "movieID\tdirectorID\tdirectorName\n32\tterry_gilliam\tTerry Gilliam\n",
}
DOS = {name: text.replace("\n", "\r\n").encode("latin-1") for name, text in MOVIES.items()}


@pytest.fixture
def tiny(folders, monkeypatch):
    """Three ratings as published, CRLF and Latin-1, and folders of the test's own."""
    monkeypatch.setattr(hetrec2011_ml_2k, "_COUNTS", {"full": Counts(3, 2, 2), "slice": Counts(3, 2, 2)})
    return put(NAME, {**DOS, "user_ratedmovies.dat": (HEADER + ROWS).replace("\n", "\r\n")})


def test_the_full_ratings_are_read_as_published(tiny):
    view = view_of(HetRecMovieLens2K(features="genres+directors+titles+decades"))
    assert triples(view) == [(75, 3, 1), (75, 32, 4.5), (190, 3, 0.5)]
    assert view.folds is None
    assert words(view, 32) == [
        "genres:Sci-Fi", "directors:terry_gilliam", "titles:les", "titles:misérables", "decades:1990s"
    ]  # fmt: skip


def test_time_stamps_and_the_archive_make_no_difference(tiny):
    expected = fingerprint(view_of(HetRecMovieLens2K()))
    (tiny / "user_ratedmovies.dat").unlink()
    put(NAME, {"user_ratedmovies-timestamps.dat": TIMES.replace("\n", "\r\n")})
    assert fingerprint(view_of(HetRecMovieLens2K())) == expected
    for file in tiny.iterdir():
        file.unlink()
    assert HetRecMovieLens2K().origin.missing() == f"rankbench data fetch {NAME}"
    put(NAME, {"hetrec2011-movielens-2k-v2.zip": zipped({**DOS, "user_ratedmovies.dat": HEADER + ROWS})})
    assert HetRecMovieLens2K().origin.missing() is None
    assert fingerprint(view_of(HetRecMovieLens2K())) == expected


def test_the_slice_is_not_taken_for_the_full_set_nor_the_other_way_round(tiny):
    command = f"rankbench data import {NAME}[edition=slice] PATH"
    remedy = f"{command} (a third party's {PARTS[0]} and {PARTS[1]} beside the published files"
    assert HetRecMovieLens2K(edition="slice").origin.missing().startswith(remedy)
    with pytest.raises(UserError, match=rf"{NAME}\[edition=slice\] is not at hand: rankbench data import"):
        view_of(HetRecMovieLens2K(edition="slice"))
    first, _, rest = ROWS.partition("\n")
    put(NAME, {PARTS[0]: HEADER + rest, PARTS[1]: HEADER + first + "\n"})
    view = view_of(HetRecMovieLens2K(edition="slice"))
    assert (triples(view), view.folds.tolist()) == ([(75, 3, 1), (75, 32, 4.5), (190, 3, 0.5)], [1, 0, 0])
    (tiny / "user_ratedmovies.dat").unlink()
    assert HetRecMovieLens2K().origin.missing() == f"rankbench data fetch {NAME}"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("user_ratedmovies.dat", HEADER + ROWS + "190\t32\n", "line 5: 2 fields where 3 are needed: '190\\t32'"),
        (
            "user_ratedmovies.dat",
            HEADER + ROWS + "190\t32\t5.5\t1\n",
            "rating 5.5 is out of range: must be from 0.5",
        ),
        ("movie_genres.dat", "movieID\tgenre\n3\n", "movie_genres.dat, line 2: 1 fields where 2 are needed: '3'"),
        (
            "movie_directors.dat",
            "movieID\tdirectorID\nx\ty\n",
            "movie_directors.dat, line 2: id 'x' is no whole number",
        ),
        ("movies.dat", "id\ttitle\n3\tGrumpy Old Men\n", "movies.dat, line 2: 2 fields where 6 are needed"),
    ],
)
def test_what_does_not_fit_is_named(tiny, name, content, message):
    put(NAME, {name: content})
    found = refusal(HetRecMovieLens2K(features="genres+directors+decades"))
    assert message in found and str(tiny / name) in found


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ("1\t3\t2\n1\t4\t2\n1\t3\t2\n", "1\t9\t2\n", f"{PARTS[0]}, line 4: user 1, item 3 is on line 2 already"),
        ("1\t3\t2\n", "1\t9\t2\n1\t9\t2\n", f"{PARTS[1]}, line 3: user 1, item 9 is on line 2 already"),
        ("1\t3\t2\n", "1\t9\t2\n1\t3\t4\n", f"{PARTS[1]}, line 3: user 1, item 3 is in"),
    ],
)
def test_a_pair_that_comes_again_in_the_slice_is_named(tiny, train, test, message):
    put(NAME, {PARTS[0]: HEADER + train, PARTS[1]: HEADER + test})
    assert message in refusal(HetRecMovieLens2K(edition="slice"))


@pytest.mark.parametrize("edition", ["full", "slice"])
def test_other_counts_than_the_published_ones_are_refused(tiny, monkeypatch, edition):
    counts = {"full": Counts(855_598, 2_113, 10_109), "slice": Counts(10_102, 38, 3_260)}
    monkeypatch.setattr(hetrec2011_ml_2k, "_COUNTS", counts)
    put(NAME, {PARTS[0]: HEADER + "1\t3\t2\n", PARTS[1]: HEADER + "1\t9\t2\n"})
    source = HetRecMovieLens2K(edition=edition)
    assert source.origin.size == str(counts[edition])
    with pytest.raises(UserError, match=re.escape(f"{NAME}[edition={edition}] holds") + f".* where {counts[edition]}"):
        view_of(source)
