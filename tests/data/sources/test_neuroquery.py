"""NeuroQuery: the published counts, the rows of articles, and the terms that voxels rank highest."""

import gzip
import re

import numpy as np
import pandas
import pooch
import pytest
import scipy.sparse
from data.sources.at_hand import REAL, needs, put, refusal, triples, view_of
from data.sources.test_brain import sparse_npz

from rankbench.core.errors import UserError
from rankbench.data.files import Files
from rankbench.data.sources import brain, neuroquery
from rankbench.data.sources.neuroquery import NeuroQuery

FILE = "data-neuroquery_version-1"
at_hand = needs(
    f"neuroquery/{FILE}_coordinates.tsv.gz",
    f"neuroquery/{FILE}_metadata.tsv.gz",
    f"neuroquery/{FILE}_vocab-neuroquery7547_vocabulary.txt",
    f"neuroquery/{FILE}_vocab-neuroquery156521_vocabulary.txt",
)

COORDINATES = "id\ttable_id\ttable_name\tx\ty\tz\n" + "".join(
    f'{study}\tt0010\t"Table\n2"\t{place}\n'
    for study, place in [(20, "0.0\t4.0\t8.0"), (20, "1.0\t4.0\t8.0"), (10, "0.0\t4.0\t8.0"), (10, "50.0\t4.0\t8.0")]
)

pytestmark = pytest.mark.usefixtures("folders")
METADATA = 'id\ttitle\n10\t"""First pain"" in\nhumans"\n20\tThe brain\n'


@pytest.fixture
def small(monkeypatch):
    """Two articles, four peaks and three terms in the published format."""
    monkeypatch.setattr(neuroquery, "_STUDIES", 2)
    monkeypatch.setattr(neuroquery, "_PEAKS", 4)
    monkeypatch.setattr(neuroquery, "_TERMS", {"7547": 3})
    monkeypatch.setattr(neuroquery, "_ENTRIES", {("7547", "abstract"): 4})
    put(
        "neuroquery",
        {
            f"{FILE}_coordinates.tsv": "",  # of another name: not looked at
            f"{FILE}_coordinates.tsv.gz": gzipped(COORDINATES),
            f"{FILE}_metadata.tsv.gz": gzipped(METADATA),
            f"{FILE}_vocab-neuroquery7547_vocabulary.txt": "brain\npain\nvisual cortex\n",
            f"{FILE}_vocab-neuroquery7547_source-abstract_type-count_features.npz": matrix([[1, 3, 0], [2, 0, 1]]),
            f"{FILE}_vocab-neuroquery7547_source-title_type-count_features.npz": matrix([[0, 1, 0], [1, 0, 0]]),
        },
    )


def gzipped(text):
    return gzip.compress(text.encode())


def matrix(rows):
    return sparse_npz(scipy.sparse.csr_matrix(np.array(rows, dtype=float)))


def test_the_published_format_becomes_a_ranking(small):
    view = view_of(NeuroQuery(voxels=2, radius=0, least=1, weights="counts"))
    assert triples(view) == [
        ("0 4 8", "brain", 3),
        ("0 4 8", "pain", 3),
        ("0 4 8", "visual cortex", 1),
        ("50 4 8", "brain", 1),
        ("50 4 8", "pain", 3),
        ("50 4 8", "visual cortex", 0),
    ]


def test_settings_choose_the_part_of_the_article_the_terms_and_whether_zeros_count(small):
    view = view_of(NeuroQuery(voxels=2, radius=0, least=1, weights="counts", source="title", zeros=False))
    assert triples(view) == [("0 4 8", "brain", 1), ("0 4 8", "pain", 1), ("50 4 8", "pain", 1)]
    often = view_of(NeuroQuery(voxels=2, radius=0, least=2, weights="counts"))
    assert triples(often) == [("0 4 8", "brain", 3), ("50 4 8", "brain", 1)]
    weighted = view_of(NeuroQuery(voxels=1, radius=0, least=1))
    tfidf = brain.tfidf(neuroquery.counts(Files.of("neuroquery"))).matrix.toarray()
    np.testing.assert_allclose(weighted.values, tfidf.sum(axis=0))


def test_articles_are_read_with_their_quotes_and_line_breaks(small):
    assert neuroquery.study_ids(Files.of("neuroquery")).tolist() == [10, 20]
    found = brain.table(Files.of("neuroquery").find(neuroquery._METADATA), {"title": str})
    assert found["title"] == ['"First pain" in\nhumans', "The brain"]


def test_other_counts_than_the_published_ones_are_refused(small, monkeypatch):
    monkeypatch.setattr(neuroquery, "_STUDIES", 13_459)
    assert "features.npz is (2, 3) where (13459, 3) was published" in refusal(NeuroQuery(voxels=2))
    with pytest.raises(UserError, match=r"metadata.tsv.gz holds 2 studies where 13,459 were published"):
        neuroquery.study_ids(Files.of("neuroquery"))
    monkeypatch.setattr(neuroquery, "_STUDIES", 2)
    monkeypatch.setattr(neuroquery, "_ENTRIES", {("7547", "abstract"): 712_311})
    assert "features.npz holds 4 entries where 712,311 were published" in refusal(NeuroQuery(voxels=2))


def test_what_is_not_there_is_missing_and_the_command_names_the_settings(small):
    assert NeuroQuery().origin.missing() is None
    keywords = NeuroQuery(source="keywords", voxels=7)
    assert keywords.origin.missing() == "rankbench data fetch neuroquery[source=keywords]"
    found = refusal(keywords)
    assert found.endswith("at hand, or not complete: rankbench data fetch neuroquery[source=keywords]")


def test_every_file_that_is_needed_can_be_had_from_the_repository():
    (part,) = NeuroQuery(vocabulary="156521", source="title").origin.parts
    assert {(download.name,) for download in part.downloads} == set(part.needs)
    for download in part.downloads:
        assert all(re.fullmatch(rf"https://github.com/.*/data/{download.name}", url) for url in download.urls)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"vocabulary": "6308"}, "vocabulary"), ({"radius": 10.5}, "radius=10.5"), ({"voxels": 0}, "voxels=0")],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        NeuroQuery(**settings)


# ---- the real files ----


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The default settings' view, parsed into a cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKBENCH_DATA", REAL)
        patch.setenv("RANKBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        return view_of(NeuroQuery())


@pytest.fixture
def files(monkeypatch):
    monkeypatch.setenv("RANKBENCH_DATA", REAL)
    return Files.of("neuroquery")


@at_hand
def test_the_peaks_are_the_published_ones(files):
    peaks = neuroquery.peaks(files)
    assert len(peaks) == 469_260
    assert len(np.unique(peaks.study)) == 13_459
    table = pandas.read_csv(files.find(f"{FILE}_coordinates.tsv.gz").path, sep="\t")
    np.testing.assert_array_equal(peaks.study, table["id"])
    np.testing.assert_array_equal(peaks.places(), table[["x", "y", "z"]])
    careful = brain._careful_peaks(files.find(f"{FILE}_coordinates.tsv.gz"))
    np.testing.assert_array_equal(careful.places(), peaks.places())


@at_hand
@pytest.mark.parametrize(
    ("vocabulary", "source", "entries"),
    [
        ("7547", "abstract", 712_311),
        ("7547", "keywords", 59_413),
        ("7547", "title", 86_276),
        ("156521", "abstract", 1_328_235),
    ],
)
def test_the_counts_are_the_published_ones(files, vocabulary, source, entries):
    terms = neuroquery.counts(files, vocabulary, source)
    assert terms.matrix.shape == (13_459, int(vocabulary)) == (13_459, len(set(terms.names.tolist())))
    assert terms.matrix.nnz == entries
    assert (terms.matrix.data % 1 == 0).all() and terms.matrix.data.min() == 1


@at_hand
def test_the_rows_of_the_counts_are_the_articles_in_the_order_of_the_metadata(files):
    titles = brain.table(files.find(neuroquery._METADATA), {"title": str})["title"]
    terms = neuroquery.counts(files, "7547", "title")
    said = [
        term in " ".join(re.findall(r"\w+", titles[row].lower()))
        for row in range(0, 13_459, 9)
        for term in terms.names[terms.matrix[[row]].indices].tolist()
    ]
    assert np.mean(said) > 0.98  # a few titles hold letters and markup that the counting dropped


@at_hand
def test_the_view_ranks_every_term_that_is_used_often_enough_and_is_nearly_dense(real, files):
    counts = neuroquery.counts(files)
    often = counts.names[(counts.matrix > 0).sum(axis=0) >= 14]
    assert real.item_ids.tolist() == often.tolist()
    assert (real.n_users, real.n_items, len(real)) == (1_231, 3_041, 1_231 * 3_041)
    assert real.values.min() == 0
    assert 0.96 < (real.values > 0).mean() < 0.975


@at_hand
@pytest.mark.parametrize(
    ("voxel", "term"),
    [("-20 -6 -22", "amygdala"), ("-60 -16 8", "speech"), ("10 14 -2", "reward"), ("-40 -26 58", "motor")],
)
def test_voxels_rank_the_terms_of_their_region_high(real, voxel, term):
    user = int(np.flatnonzero(real.user_ids == voxel)[0])
    values = real.values[real.indptr[user] : real.indptr[user + 1]]
    place = (values > values[int(np.flatnonzero(real.item_ids == term)[0])]).sum()
    assert place < 10


@at_hand
def test_the_files_at_hand_have_the_published_hashes(monkeypatch):
    monkeypatch.setenv("RANKBENCH_DATA", REAL)
    held = [held for held in NeuroQuery().origin.held() if held.sha256]
    assert len(held) == 8
    assert [pooch.file_hash(one.path) for one in held] == [one.sha256 for one in held]
