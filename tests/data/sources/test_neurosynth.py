"""Neurosynth: the published counts, the conversion from Talairach to MNI space, and the label of the substitution."""

import gzip
import re
from pathlib import Path

import numpy as np
import pandas
import pooch
import pytest
import scipy.sparse
from data.sources.at_hand import REAL, needs, put, refusal, triples, view_of
from data.sources.test_brain import sparse_npz

from rankbench.core.errors import UserError
from rankbench.data.files import Files
from rankbench.data.sources import brain, neuroquery, neurosynth
from rankbench.data.sources.neurosynth import Neurosynth, Release

FILE = "data-neurosynth_version-{}_{}"
COMMON = (
    "neuroquery/data-neuroquery_version-1_metadata.tsv.gz",
    "neuroquery/data-neuroquery_version-1_vocab-neuroquery156521_vocabulary.txt",
)

pytestmark = pytest.mark.usefixtures("folders")
ENDS = ("coordinates.tsv.gz", "metadata.tsv.gz", "vocab-terms_vocabulary.txt", "vocab-LDA50_vocabulary.txt")
at_hand = needs(*COMMON, *(f"neurosynth/{FILE.format(release, end)}" for release in (6, 7) for end in ENDS))

COORDINATES = """id\ttable_id\ttable_num\tpeak_id\tx\ty\tz
10\t1\t1.\t1\t0.0\t4.0\t8.0
10\t1\t\t2\t1.0\t4.0\t8.0
30\t2\tS1\t3\t0.0\t4.0\t8.0
30\t2\tS1\t4\t50.0\t4.0\t8.0
20\t3\t2\t5\t-52.0\t0.0\t6.0
"""
METADATA = '''id\tdoi\tspace\ttitle\tauthors\tyear\tjournal
10\t\tMNI\tPain.\tAguirre GK, D'Esposito M\t1997\tNeuroImage
20\t10.1/x\tTAL\t"The ""tip of the tongue"""\tKikyo H\t2001\tBrain
30\t10.1/y\tUNKNOWN\tÜber das Sehen\tMüller\t2015\tCortex
'''
WEIGHTS = [[0.5, 0, 0.25, 0], [0, 1, 0, 0], [0.125, 0, 0, 0]]
TERMS = "001\nauditory cortex\npain\nunused\n"


@pytest.fixture
def small(monkeypatch):
    """Three studies, five peaks and four terms in the published format, and two topics where 50 are."""
    monkeypatch.setattr(neurosynth, "_RELEASES", {6: Release("July 2015", 5, 3, 4, 2, 2)})
    topics = np.full((3, 50), 0.01)
    topics[:, 0] = [0.5, 0.2, 0.1]
    own({"vocab-LDA50_source-abstract_type-weight_features.npz": sparse_npz(scipy.sparse.csc_matrix(topics))})
    own({"vocab-LDA50_vocabulary.txt": "\n".join(f"{number}_a_b_c" for number in range(50))})
    own({"vocab-terms_source-abstract_type-tfidf_features.npz": sparse_npz(scipy.sparse.csc_matrix(WEIGHTS))})
    own({"vocab-terms_vocabulary.txt": TERMS.rstrip("\n")})  # the published ones end without a line break
    own({"coordinates.tsv.gz": zipped(COORDINATES), "metadata.tsv.gz": zipped(METADATA)})


def own(files):
    put("neurosynth", {FILE.format(6, end): content for end, content in files.items()})


def zipped(text):
    return gzip.compress(text.encode())


@pytest.fixture
def stand_in(small, monkeypatch):
    """NeuroQuery's counts of three terms in three articles, two of each being Neurosynth's."""
    monkeypatch.setattr(neuroquery, "_STUDIES", 3)
    monkeypatch.setattr(neuroquery, "_TERMS", {"156521": 3})
    monkeypatch.setattr(neuroquery, "_ENTRIES", {("156521", "abstract"): 5})
    counts = np.array([[0, 9, 0], [1, 0, 3], [2, 7, 0]])
    put(
        "neuroquery",
        {
            "data-neuroquery_version-1_coordinates.tsv.gz": zipped("its own peaks play no part"),
            "data-neuroquery_version-1_metadata.tsv.gz": zipped("id\ttitle\n5\tNo\n20\tTip\n30\tEye\n"),
            "data-neuroquery_version-1_vocab-neuroquery156521_vocabulary.txt": "pain\nstrange\nauditory cortex\n",
            "data-neuroquery_version-1_vocab-neuroquery156521_source-abstract_type-count_features.npz": sparse_npz(
                scipy.sparse.csr_matrix(counts)
            ),
        },
    )


def test_the_published_format_becomes_a_ranking(small):
    view = view_of(Neurosynth(voxels=3, radius=0))
    assert triples(view) == [
        ("-60 4 -2", "001", 0),  # where Talairach's -52, 0, 6 lies in MNI space
        ("-60 4 -2", "auditory cortex", 1),
        ("-60 4 -2", "pain", 0),
        ("0 4 8", "001", 0.625),
        ("0 4 8", "auditory cortex", 0),
        ("0 4 8", "pain", 0.25),
        ("50 4 8", "001", 0.125),
        ("50 4 8", "auditory cortex", 0),
        ("50 4 8", "pain", 0),
    ]
    positive = view_of(Neurosynth(voxels=3, radius=0, zeros=False))
    assert triples(positive) == [row for row in triples(view) if row[2] > 0]


def test_talairach_is_brought_into_mni_space_and_nothing_else(small):
    files = Files.of("neurosynth")
    reported, moved = neurosynth.peaks(files, mni=False), neurosynth.peaks(files)
    changed = (reported.places() != moved.places()).any(axis=1)
    assert reported.study[changed].tolist() == [20]
    np.testing.assert_allclose(moved.places()[4], [-55.057, 1.883, 2.889], atol=0.001)


def test_studies_are_read_with_their_spaces(small):
    studies = neurosynth.studies(Files.of("neurosynth"))
    assert studies.ids.tolist() == [10, 20, 30]
    assert studies.spaces.tolist() == ["MNI", "TAL", "UNKNOWN"]


def test_a_term_is_described_by_the_topics_of_the_studies_that_use_it(small):
    view = view_of(Neurosynth(voxels=3, features="lda50"))
    assert view.feature_names[:2].tolist() == ["topic:0_a_b_c", "topic:1_a_b_c"]
    assert view.item_ids.tolist() == ["001", "auditory cortex", "pain"]
    expected = [(0.5 * 0.5 + 0.125 * 0.1) / 0.625, 0.2, 0.5]
    np.testing.assert_allclose(view.item_features[:, 0], expected)
    np.testing.assert_allclose(view.item_features[:, 1:], 0.01)


def test_the_substitution_weighs_neuroquerys_counts_of_the_common_terms_in_the_common_studies(stand_in):
    rows, counts = neurosynth.substitute(Files("both", Neurosynth(terms="neuroquery").origin.files().paths))
    assert rows.tolist() == [1, 2]
    assert counts.names.tolist() == ["auditory cortex", "pain"]
    assert counts.matrix.toarray().tolist() == [[3, 1], [0, 2]]
    weights = brain.tfidf(counts).matrix.toarray()
    view = view_of(Neurosynth(terms="neuroquery", voxels=3, radius=0))
    assert view.user_ids.tolist() == ["-60 4 -2", "0 4 8", "50 4 8"]  # chosen by all three studies
    np.testing.assert_allclose(view.values.reshape(3, 2), [weights[0], weights[1], weights[1]])
    described = view_of(Neurosynth(terms="neuroquery", voxels=3, features="lda50"))
    shares = weights[:, 1] / weights[:, 1].sum()
    np.testing.assert_allclose(described.item_features[:, 0], [0.2, shares @ [0.2, 0.1]])


def test_the_substitution_is_labelled_and_needs_both_sets(small):
    origin = Neurosynth(terms="neuroquery", release=6).origin
    for text in (origin.size, origin.home):
        assert "substitut" in text.lower() and "NeuroQuery" in text
    assert "2 of 3 studies, 2 of 4 terms" in origin.size
    assert origin.missing() == "rankbench data fetch neurosynth[terms=neuroquery]"
    assert "rankbench data fetch neurosynth[terms=neuroquery]" in refusal(Neurosynth(terms="neuroquery"))
    assert [part.name for part in origin.parts] == ["neurosynth", "neuroquery"]
    assert "SUBSTITUTION" not in Neurosynth().origin.size


def test_sets_that_share_less_than_is_known_are_refused(stand_in, monkeypatch):
    monkeypatch.setattr(neurosynth, "_RELEASES", {6: Release("July 2015", 5, 3, 4, 7_145, 2)})
    assert "share 2 studies and 2 terms where 7,145 and 2 are expected" in refusal(Neurosynth(terms="neuroquery"))


def test_the_files_of_a_release_are_named_with_the_settings_that_need_them(small):
    assert Neurosynth().origin.missing() is None
    assert Neurosynth(features="lda50").origin.missing() is None
    assert Neurosynth(features="lda100").origin.missing() == "rankbench data fetch neurosynth[features=lda100]"


def test_every_file_that_is_needed_can_be_had_from_the_repository():
    for source in (Neurosynth(), Neurosynth(release=7, features="lda100"), Neurosynth(terms="neuroquery")):
        for part in source.origin.parts:
            assert {(download.name,) for download in part.downloads} == set(part.needs)
            for download in part.downloads:
                assert all(re.fullmatch(rf"https://.*/{re.escape(download.name)}", url) for url in download.urls)
    (part,) = Neurosynth(release=7).origin.parts
    assert all(download.sha256 for download in part.downloads)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("10\t1\t\t2\t1.0", "10\t1\t\t2\tleft"), "coordinates.tsv.gz, line 3: x 'left' is no number"),
        (("30\t2\tS1\t3\t0.0\t", "30\t2\tS1\t3\t"), "coordinates.tsv.gz, line 4: 6 fields where 7 are needed"),
        (("10\t1\t1.", "11\t1\t1."), "holds peaks of study 11, which the metadata does not list"),
        (("20\t3\t2\t5\t-52.0\t0.0\t6.0\n", ""), "holds 4 peaks where 5 were published"),
    ],
)
def test_wrong_peaks_are_named(small, change, message):
    own({"coordinates.tsv.gz": zipped(COORDINATES.replace(*change))})
    assert message in refusal(Neurosynth(voxels=3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("20\t10", "XX\t10"), "metadata.tsv.gz, line 3: id 'XX' is no whole number"),
        (("\t2015\tCortex", "\t2015"), "metadata.tsv.gz, line 4: 6 fields where 7 are needed"),
        (("space", "room"), "metadata.tsv.gz, line 1: no column 'space' among id, doi, room,"),
        (("UNKNOWN", "SPM"), "metadata.tsv.gz names the space 'SPM': known are MNI, TAL, UNKNOWN"),
        (("30\t10", "10\t10"), "metadata.tsv.gz lists study 10 more than once"),
    ],
)
def test_wrong_metadata_is_named(small, change, message):
    own({"metadata.tsv.gz": zipped(METADATA.replace(*change))})
    assert message in refusal(Neurosynth(voxels=3))


def test_terms_that_do_not_fit_their_matrix_are_refused(small):
    own({"vocab-terms_vocabulary.txt": "001\npain"})
    assert "vocabulary.txt holds 2 terms where 4 were published" in refusal(Neurosynth(voxels=3))
    own({"vocab-terms_vocabulary.txt": TERMS})
    own({"vocab-terms_source-abstract_type-tfidf_features.npz": b"PK damaged"})
    assert "tfidf_features.npz is cut, damaged or not a sparse matrix" in refusal(Neurosynth(voxels=3))


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"release": 5}, "release=5"), ({"terms": "neuroqury"}, "'neuroquery'"), ({"features": "lda200"}, "'lda100'")],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        Neurosynth(**settings)


# ---- the real files ----

COUNTS = {6: (413_429, 11_406, 3_169), 7: (507_891, 14_371, 3_228)}
SHARED = {6: (7_145, 2_873), 7: (8_682, 2_927)}
SPACES = {6: [8_096, 1_982, 1_328], 7: [10_204, 2_335, 1_832]}


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Release 6 with the substitution, parsed into a cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKBENCH_DATA", REAL)
        patch.setenv("RANKBENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        return view_of(Neurosynth(terms="neuroquery", features="lda100"))


@pytest.fixture
def files(monkeypatch):
    monkeypatch.setenv("RANKBENCH_DATA", REAL)
    return Files.of("neurosynth")


@at_hand
@pytest.mark.parametrize("release", COUNTS)
def test_the_counts_are_the_published_ones(files, release):
    studies, peaks = neurosynth.studies(files, release), neurosynth.peaks(files, release)
    terms = neurosynth.vocabulary(files, release)
    assert (len(peaks), len(studies.ids), len(np.unique(terms))) == COUNTS[release]
    assert set(peaks.study.tolist()) == set(studies.ids.tolist())
    assert [(studies.spaces == space).sum() for space in ("MNI", "TAL", "UNKNOWN")] == SPACES[release]


@at_hand
@pytest.mark.parametrize("release", COUNTS)
def test_peaks_and_studies_are_those_of_the_files(files, release):
    coordinates, metadata = (
        pandas.read_csv(Path(REAL, "neurosynth", FILE.format(release, end)), sep="\t", keep_default_na=False)
        for end in ("coordinates.tsv.gz", "metadata.tsv.gz")
    )
    reported, studies = neurosynth.peaks(files, release, mni=False), neurosynth.studies(files, release)
    np.testing.assert_array_equal(reported.study, coordinates["id"])
    np.testing.assert_array_equal(reported.places(), coordinates[["x", "y", "z"]])
    assert studies.ids.tolist() == metadata["id"].tolist()


@at_hand
@pytest.mark.parametrize(("release", "number"), [(6, 50), (6, 100), (7, 50)])
def test_the_topics_of_every_study_sum_to_one(files, release, number):
    topics = neurosynth.topics(files, release, number)
    assert topics.matrix.shape == (COUNTS[release][1], number) == (COUNTS[release][1], len(topics.names))
    assert topics.matrix.nnz == COUNTS[release][1] * number
    np.testing.assert_allclose(topics.matrix.sum(axis=1), 1)


@at_hand
@pytest.mark.parametrize("release", COUNTS)
def test_the_substitution_covers_what_it_says(monkeypatch, release):
    monkeypatch.setenv("RANKBENCH_DATA", REAL)
    source = Neurosynth(terms="neuroquery", release=release)
    assert source.origin.missing() is None
    rows, counts = neurosynth.substitute(source.origin.files(), release)
    assert (len(rows), len(counts.names)) == counts.matrix.shape == SHARED[release]
    assert all(f"{number:,} of" in source.origin.size for number in SHARED[release])


@at_hand
def test_the_view_ranks_all_terms_in_1231_voxels_and_is_dense_with_very_few_ties(real):
    assert (real.n_users, real.n_items) == (1_231, 2_861)  # 12 of the 2,873 are in no common abstract
    assert len(real) == 1_231 * 2_861
    rows = real.values.reshape(1_231, 2_861)
    assert 0.975 < (rows > 0).mean() < 0.985
    positive = [row[row > 0] for row in rows]
    assert sum(len(row) - len(np.unique(row)) for row in positive) < 0.001 * (rows > 0).sum()
    places = np.array([list(map(int, name.split())) for name in real.user_ids.tolist()])
    assert (places.min(axis=0) >= [-70, -106, -52]).all() and (places.max(axis=0) <= [70, 74, 78]).all()


@at_hand
@pytest.mark.parametrize(
    ("voxel", "terms"),
    [
        ("-40 -26 58", ["motor", "hand"]),  # left primary motor cortex
        ("10 -86 -2", ["visual"]),  # primary visual cortex
        ("-60 -16 8", ["speech", "auditory"]),  # left auditory cortex
        ("40 -56 -22", ["face", "faces"]),  # right fusiform face area
        ("-20 -6 -22", ["amygdala", "emotional"]),
        ("10 14 -2", ["reward"]),  # right ventral striatum
    ],
)
def test_voxels_rank_the_terms_of_their_region_among_the_first_ten(real, voxel, terms):
    user = int(np.flatnonzero(real.user_ids == voxel)[0])
    values = real.values[real.indptr[user] : real.indptr[user + 1]]
    first = real.item_ids[np.argsort(-values)[:10]].tolist()
    assert set(terms) <= set(first)


REGIONS = {  # where a term's share of a voxel's affinities must be largest
    "visual": lambda x, y, z: y <= -66,
    "motor": lambda x, y, z: -36 <= y <= 14 and z >= 48,
    "auditory": lambda x, y, z: abs(x) >= 40 and -46 <= y <= 4 and -12 <= z <= 28,
    "amygdala": lambda x, y, z: 10 <= abs(x) <= 30 and -16 <= y <= 4 and z <= -12,
    "hippocampus": lambda x, y, z: 20 <= abs(x) <= 40 and -36 <= y <= -6 and z <= -2,
    "cerebellum": lambda x, y, z: y <= -46 and z <= -12,
    "default mode": lambda x, y, z: y <= -46 and 8 <= z <= 48,
}


@at_hand
@pytest.mark.parametrize("term", REGIONS)
def test_a_term_weighs_most_where_the_brain_does_what_it_says(real, term):
    rows = real.values.reshape(real.n_users, real.n_items)
    shares = rows[:, np.flatnonzero(real.item_ids == term)[0]] / rows.sum(axis=1)
    for voxel in real.user_ids[np.argsort(-shares)[:3]].tolist():
        assert REGIONS[term](*map(int, voxel.split())), voxel


@at_hand
def test_terms_have_the_topics_that_are_about_them(real):
    names, features = real.feature_names.tolist(), real.item_features
    assert features.shape == (2_861, 100)
    np.testing.assert_allclose(features.sum(axis=1), 1)
    for term in ("reward", "faces", "pain", "memory", "language"):
        row = features[np.flatnonzero(real.item_ids == term)[0]] / features.mean(axis=0)
        assert term[:4] in names[int(np.argmax(row))], names[int(np.argmax(row))]


@at_hand
def test_the_files_at_hand_have_the_published_hashes_and_the_tfidf_is_asked_for(monkeypatch):
    monkeypatch.setenv("RANKBENCH_DATA", REAL)
    held = [held for held in Neurosynth(release=7, features="lda50").origin.held() if held.sha256]
    assert len(held) >= 12
    assert [pooch.file_hash(one.path) for one in held] == [one.sha256 for one in held]
    if not list(Path(REAL, "neurosynth").glob("*version-6*tfidf*")):
        assert Neurosynth().origin.missing() == "rankbench data fetch neurosynth"
