"""MovieLens 100K: the published counts, the published folds, and malformed files."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
from data.sources.at_hand import REAL, needs, put, refusal, triples, view_of, words

from rankbench.core.errors import UserError
from rankbench.data.building import Counts
from rankbench.data.sources import ml_100k
from rankbench.data.sources.ml_100k import MovieLens100K

FOLDS = {"u": ("u1", "u2", "u3", "u4", "u5"), "ab": ("ua", "ub")}
at_hand = needs("ml-100k/u.data", "ml-100k/u.item", "ml-100k/u.genre", "ml-100k/u1.test", "ml-100k/ub.test")


def published(name, **how):
    return pandas.read_csv(Path(REAL, "ml-100k", name), header=None, encoding="latin-1", **how)


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The real set with either kind of folds, parsed into a cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKBENCH_DATA", REAL)
        patch.setenv("RANKBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        return {folds: view_of(MovieLens100K(folds=folds)) for folds in FOLDS}


@at_hand
def test_the_counts_are_the_published_ones(real):
    view = real["u"]
    assert (len(view), view.n_users, view.n_items) == (100_000, 943, 1_682)
    assert np.unique(view.values).tolist() == [1, 2, 3, 4, 5]
    assert np.diff(view.indptr).min() == 20
    assert view.user_ids.tolist() == list(range(1, 944))
    assert view.item_ids.tolist() == list(range(1, 1_683))


@at_hand
def test_the_ratings_are_those_of_the_file(real):
    rows = published("u.data", sep="\t")[[0, 1, 2]].sort_values([0, 1])
    assert triples(real["u"]) == [(user, item, float(value)) for user, item, value in rows.itertuples(index=False)]


@at_hand
@pytest.mark.parametrize("kind", FOLDS)
def test_each_fold_is_exactly_the_published_test_file_and_the_rest_its_base_file(real, kind):
    view = real[kind]
    for number, name in enumerate(FOLDS[kind], start=1):
        for part, chosen in (("test", view.folds == number), ("base", view.folds != number)):
            expected = published(f"{name}.{part}", sep="\t")[[0, 1, 2]].sort_values([0, 1])
            found = view.take(np.flatnonzero(chosen))
            assert triples(found) == [(u, i, float(value)) for u, i, value in expected.itertuples(index=False)]


@at_hand
def test_five_folds_cover_everything_and_the_pair_ten_of_each_user(real):
    assert np.bincount(real["u"].folds).tolist() == [0, 20_000, 20_000, 20_000, 20_000, 20_000]
    assert np.bincount(real["ab"].folds).tolist() == [81_140, 9_430, 9_430]
    for number in (1, 2):
        assert set(np.bincount(real["ab"].users[real["ab"].folds == number])) == {10}


@at_hand
def test_the_genres_are_the_published_flags(real):
    genres = published("u.genre", sep="|")[0].tolist()
    flags = published("u.item", sep="|").set_index(0)[list(range(5, 24))].set_axis(genres, axis=1)
    view = real["u"]
    assert view.feature_names.tolist() == [f"genres:{genre}" for genre in sorted(genres)]
    np.testing.assert_array_equal(view.item_features, flags.loc[view.item_ids][sorted(genres)])


@at_hand
def test_titles_and_decades_come_from_the_titles(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    view = view_of(MovieLens100K(features="decades+titles"))
    assert words(view, 1) == ["decades:1990s", "titles:story", "titles:toy"]
    assert "titles:misérables" in view.feature_names  # Latin-1
    assert words(view, 267) == ["titles:unknown"]  # has no year
    assert view.feature_names[0] == "decades:1920s"


# ---- small files in the published format ----

TINY = {
    "u.data": "1\t10\t5\t881250949\n2\t10\t3\t891717742\n1\t20\t4\t878887116\n2\t30\t1\t880606923\n",
    "u.item": (
        "10|Toy Story (1995)|01-Jan-1995||http://us.imdb.com/M/title-exact?Toy%20Story%20(1995)|0|1\n"
        "20|Misérables, Les (1995)|01-Jan-1995|||1|1\n"
        "30|unknown||||0|0\n"
    ).encode("latin-1"),
    "u.genre": "unknown|0\nAction|1\n\n",
    "u1.test": "1\t10\t5\t881250949\n",
    "u2.test": "2\t10\t3\t891717742\n",
    "u3.test": "1\t20\t4\t878887116\n",
    "u4.test": "2\t30\t1\t880606923\n",
    "u5.test": "",
    "ua.test": "2\t30\t1\t880606923\n",
    "ub.test": "1\t10\t5\t881250949\n",
}
TINY["u5.test"] = TINY["u4.test"]


@pytest.fixture
def tiny(folders, monkeypatch):
    """Four ratings, and folders of the test's own."""
    monkeypatch.setattr(ml_100k.MovieLens100K, "counts", Counts(4, 2, 3))
    return put("ml-100k", TINY)


def test_the_ten_per_user_pair_leaves_the_other_rows_in_no_fold(tiny):
    view = view_of(MovieLens100K(folds="ab"))
    assert triples(view) == [(1, 10, 5), (1, 20, 4), (2, 10, 3), (2, 30, 1)]
    assert view.folds.tolist() == [2, 0, 0, 1]


def test_without_features_the_files_of_movies_are_not_read(tiny):
    (tiny / "u.item").write_text("nonsense")
    assert view_of(MovieLens100K(features="none")).item_features is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("u.data", "1\t10\t5\t1\n1\t10\n", "u.data, line 2: 2 fields where 3 are needed: '1\\t10'"),
        ("u.data", "1\t10\t4.5\n", "u.data, line 1: rating 4.5 is out of range: must be from 1 to 5 in steps of 1"),
        ("u.data", TINY["u.data"] + "1\t10\t5\n", "u.data, line 5: user 1, item 10 is on line 1 already"),
        ("u2.test", "1\t10\t5\n2\t20\t3\n", "u2.test, line 2: user 2, item 20 is not in"),
        ("u.item", "10|Toy Story (1995)||||0\n", "u.item, line 1: 6 fields where 7 are needed"),
        ("u.item", "10|a||||0|1\nx|b||||0|1\n", "u.item, line 2: id 'x' is no whole number"),
        ("u.genre", "Action\n", "u.genre, line 1: 1 fields where 2 are needed: 'Action'"),
    ],
)
def test_what_does_not_fit_is_named(tiny, name, content, message):
    (tiny / name).write_text(content)
    found = refusal(MovieLens100K())
    assert message in found and str(tiny / name) in found


def test_other_counts_than_the_published_ones_are_refused(tiny, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("RANKBENCH_DATA", str(tiny.parent))
    monkeypatch.setenv("RANKBENCH_CACHE", str(tiny.parent / "cache"))
    found = refusal(MovieLens100K())
    assert found == (
        "ml-100k holds 2 users, 3 items, 4 ratings where 943 users, 1,682 items, 100,000 ratings were published: "
        "the files are cut or another edition"
    )


def test_what_is_missing_is_one_command(tiny):
    assert MovieLens100K.origin.missing() is None
    (tiny / "ub.test").unlink()
    assert MovieLens100K.origin.missing() == "rankbench data fetch ml-100k"


def test_strange_settings_are_refused():
    with pytest.raises(UserError, match="unknown features 'actors': choose from genres, titles, decades"):
        MovieLens100K(features="genres+actors")
    with pytest.raises(UserError, match="folds"):
        replace(MovieLens100K(), folds="seven")
