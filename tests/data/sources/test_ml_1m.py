"""MovieLens 1M: the published counts, both formats of ratings, and malformed files."""

import gzip
import hashlib
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
from data.sources.at_hand import REAL, needs, put, refusal, triples, view_of, words, zipped

from rankbench.arrays.npz import fingerprint
from rankbench.data.building import Counts
from rankbench.data.sources import ml_1m
from rankbench.data.sources.ml_1m import MovieLens1M

at_hand = needs("ml-1m/ratings_no_timestamp.dat.gz", "ml-1m/movies.dat")
RATINGS = "1::1193::5::978300760\n1::48::3::978302109\n2::1193::4::978298413\n"
MOVIES = (
    "48::Pocahontas (1995)::Animation|Children's|Musical|Romance\n"
    "73::Misérables, Les (1995)::Drama|Musical\n"
    "1193::One Flew Over the Cuckoo's Nest (1975)::Drama\n"
).encode("latin-1")


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The real ratings with every kind of feature."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKBENCH_DATA", REAL)
        patch.setenv("RANKBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        return view_of(MovieLens1M(features="genres+titles+decades"))


@pytest.fixture
def tiny(folders, monkeypatch):
    """Three ratings, and folders of the test's own."""
    monkeypatch.setattr(ml_1m.MovieLens1M, "counts", Counts(3, 2, 2))
    return put("ml-1m", {"ratings.dat": RATINGS, "movies.dat": MOVIES})


@at_hand
def test_the_counts_are_the_published_ones(real):
    assert (len(real), real.n_users, real.n_items) == (1_000_209, 6_040, 3_706)
    levels, counts = np.unique(real.values, return_counts=True)
    assert dict(zip(levels.tolist(), counts.tolist(), strict=True)) == {
        1: 56_174, 2: 107_557, 3: 261_197, 4: 348_971, 5: 226_310
    }  # fmt: skip
    assert np.diff(real.indptr).min() == 20
    assert real.user_ids.tolist() == list(range(1, 6_041))


@at_hand
def test_the_ratings_are_those_of_the_file(real):
    text = gzip.decompress(Path(REAL, "ml-1m/ratings_no_timestamp.dat.gz").read_bytes()).decode()
    rows = pandas.read_csv(io.StringIO(text.replace("::", ",")), header=None).sort_values([0, 1])
    for column, found in enumerate((real.user_ids[real.users], real.item_ids[real.items], real.values)):
        np.testing.assert_array_equal(found, rows[column])


@at_hand
def test_the_genres_are_those_of_the_file(real):
    lines = Path(REAL, "ml-1m/movies.dat").read_text("latin-1").splitlines()
    assert len(lines) == 3_883
    table = pandas.DataFrame([line.split("::") for line in lines], columns=["movie", "title", "genres"])
    flags = table.set_index(table["movie"].astype(int))["genres"].str.get_dummies("|").loc[real.item_ids]
    names = real.feature_names[:18].tolist()
    assert names == [f"genres:{genre}" for genre in sorted(flags)]
    np.testing.assert_array_equal(real.item_features[:, :18].toarray(), flags[sorted(flags)])


@at_hand
def test_every_movie_has_a_decade_and_title_words_without_the_year(real):
    decades = real.item_features[:, [name.startswith("decades:") for name in real.feature_names]]
    assert (decades.sum(axis=1) == 1).all()
    assert decades.shape[1] == 10  # 1910s to 2000s
    assert {"titles:misérables", "titles:toy"} <= set(real.feature_names)
    assert words(real, 2)[-2:] == ["titles:jumanji", "decades:1990s"]


def test_four_fields_and_three_are_the_same_ratings(tiny):
    published = view_of(MovieLens1M())
    assert triples(published) == [(1, 48, 3), (1, 1193, 5), (2, 1193, 4)]
    assert words(published, 48) == ["genres:Animation", "genres:Children's", "genres:Musical", "genres:Romance"]
    (tiny / "ratings.dat").unlink()
    short = "".join(line.rsplit("::", 1)[0] + "\n" for line in RATINGS.splitlines())
    (tiny / "ratings_no_timestamp.dat.gz").write_bytes(gzip.compress(short.encode()))
    assert published.times.tolist() == [978302109, 978300760, 978298413]
    assert fingerprint(view_of(MovieLens1M())) == fingerprint(replace(published, times=None))


def test_the_published_archive_is_read_in_place(tiny):
    loose = fingerprint(view_of(MovieLens1M()))
    for file in tiny.iterdir():
        file.unlink()
    assert MovieLens1M.origin.missing() == "rankbench data fetch ml-1m"
    put("ml-1m", {"ml-1m.zip": zipped({"ml-1m/ratings.dat": RATINGS, "ml-1m/movies.dat": MOVIES})})
    assert MovieLens1M.origin.missing() is None
    assert fingerprint(view_of(MovieLens1M())) == loose


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("ratings.dat", RATINGS + "2::48\n", "ratings.dat, line 4: 2 fields where 3 are needed: '2::48'"),
        (
            "ratings.dat",
            RATINGS + "2::48::0::1\n",
            "line 4: rating 0 is out of range: must be from 1 to 5 in steps of 1",
        ),
        ("movies.dat", "48::Pocahontas (1995)\n", "movies.dat, line 1: 2 fields where 3 are needed"),
        ("movies.dat", "48a::Pocahontas (1995)::Drama\n", "movies.dat, line 1: id '48a' is no whole number"),
    ],
)
def test_what_does_not_fit_is_named(tiny, name, content, message):
    (tiny / name).write_text(content)
    found = refusal(MovieLens1M())
    assert message in found and str(tiny / name) in found


@at_hand
def test_the_hashes_are_those_of_the_files(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_DATA", REAL)
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    known = [held for held in MovieLens1M.origin.held() if held.sha256]
    assert {"movies.dat", "ratings_no_timestamp.dat.gz"} <= {held.path.name for held in known}
    assert [hashlib.sha256(held.path.read_bytes()).hexdigest() for held in known] == [held.sha256 for held in known]
