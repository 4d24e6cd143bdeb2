"""Peaks, voxels and affinities compared with SciPy's geometry, scikit-learn's tf-idf and dense products."""

import gzip
import io
import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial import Rectangle
from sklearn.feature_extraction.text import TfidfTransformer

from rankbench.core.errors import UserError
from rankbench.data.files import File
from rankbench.data.sources import brain
from rankbench.data.sources.brain import Joint, Peaks, Terms

CENTRES = np.array(list(itertools.product(range(-90, 91, 10), range(-126, 85, 10), range(-72, 109, 10))))
HEADER = "id\ttable\tx\ty\tz\n"


def peaks_at(*rows):
    """Peaks of (study, x, y, z)."""
    study, x, y, z = zip(*rows, strict=True)
    return Peaks(np.array(study), *(np.array(axis, dtype=float) for axis in (x, y, z)))


def terms_of(matrix):
    matrix = scipy.sparse.csr_array(np.asarray(matrix, dtype=float))
    return Terms(np.array([f"term{number}" for number in range(matrix.shape[1])]), matrix)


def active(peaks, studies, radius):
    """The names of the voxels in which each study is active."""
    marks = brain.activations(peaks, np.array(studies), radius).toarray()
    assert np.isin(marks, (0, 1)).all()
    return [brain.names_of(np.flatnonzero(column)).tolist() for column in marks.T]


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return File(path)


def npz(**parts):
    content = io.BytesIO()
    np.savez(content, **parts)
    return content.getvalue()


def sparse_npz(matrix):
    content = io.BytesIO()
    scipy.sparse.save_npz(content, matrix)
    return content.getvalue()


# ---- voxels ----


def test_voxels_are_cubes_of_ten_millimetres_from_the_corner_of_the_template():
    assert brain.names_of(np.array([0, 19 * 22 * 19 - 1])).tolist() == ["-90 -126 -72", "90 84 108"]
    peaks = peaks_at((1, -90, -126, -72), (2, -35.1, -21.1, 62.9), (3, -34.9, -20.9, 63.1), (4, 89, 83, 107))
    assert active(peaks, [1, 2, 3, 4], 0) == [["-90 -126 -72"], ["-40 -26 58"], ["-30 -16 68"], ["90 84 108"]]


def test_a_peak_between_two_voxels_belongs_to_one_of_them():
    assert active(peaks_at((1, -35, -21, 63)), [1], 0) == [["-30 -16 68"]]


def test_a_study_counts_once_in_a_voxel_and_strangers_and_what_lies_off_the_grid_not_at_all():
    peaks = peaks_at((7, 0, 4, 8), (7, 1, 5, 9), (3, 0, 4, 8), (9, 0, 4, 8), (3, 149, 0, 0), (7, 0, -144, 0))
    assert active(peaks, [7, 3], 0) == [["0 4 8"], ["0 4 8"]]


@settings(max_examples=30)
@given(
    arrays(np.float64, (4, 3), elements=st.floats(-110, 120, width=32)),
    st.sampled_from([0.5, 3.0, 6.0, 10.0]),
)
def test_within_the_radius_is_what_scipy_measures(places, radius):
    marks = brain.activations(Peaks(np.arange(4), *places.T), np.arange(4), radius).toarray()
    for study, place in enumerate(places):
        for voxel in np.flatnonzero(marks[:, study]):
            assert distance(voxel, place) <= radius + 1e-9
        reached = [voxel for voxel in neighbours(place) if distance(voxel, place) < radius - 1e-9]
        assert marks[reached, study].all()


def distance(voxel, place):
    return Rectangle(CENTRES[voxel] + 5.0, CENTRES[voxel] - 5.0).min_distance_point(place)


def neighbours(place):
    """Every voxel of the grid whose centre is within 16 mm of a place along each axis."""
    return np.flatnonzero((np.abs(CENTRES - place) <= 16).all(axis=1))


def test_the_busiest_voxels_have_the_most_studies_not_the_most_peaks_and_of_equals_the_first():
    many = [(1, 0, 4, 8)] * 5
    peaks = peaks_at(*many, (1, 10, 4, 8), (2, 10, 4, 8), (1, 20, 4, 8), (2, -20, 4, 8))
    assert brain.names_of(brain.busiest(peaks, 1)).tolist() == ["10 4 8"]
    assert brain.names_of(brain.busiest(peaks, 3)).tolist() == ["-20 4 8", "0 4 8", "10 4 8"]
    with pytest.raises(UserError, match="voxels=5: only 4 voxels have a peak"):
        brain.busiest(peaks, 5)


def test_talairach_is_inverted_as_neurosynth_does_it():
    from_mni = np.array(
        [
            [0.9254, 0.0024, -0.0118, -1.0207],
            [-0.0048, 0.9316, -0.0871, -1.7667],
            [0.0152, 0.0883, 0.8924, 4.0926],
            [0, 0, 0, 1],
        ]
    )
    peaks = peaks_at((1, -38, -24, 54), (2, -38, -24, 54), (3, 10.5, -90, 0))
    moved = brain.to_mni(peaks, np.array([True, False, True]))
    expected = np.column_stack([peaks.places(), np.ones(3)]) @ np.linalg.pinv(from_mni.T)
    np.testing.assert_allclose(moved.places()[[0, 2]], expected[[0, 2], :3], atol=1e-9)
    np.testing.assert_array_equal(moved.places()[1], [-38, -24, 54])
    np.testing.assert_array_equal(peaks.places()[0], [-38, -24, 54])  # the reported ones stay


# ---- terms and affinities ----


@given(arrays(np.int64, (6, 5), elements=st.integers(0, 3)))
def test_tfidf_is_that_of_scikit_learn(counts):
    found = brain.tfidf(terms_of(counts)).matrix.toarray()
    np.testing.assert_allclose(found, TfidfTransformer().fit_transform(counts).toarray(), atol=1e-12)


def test_terms_that_few_studies_use_are_left_out():
    terms = terms_of([[5, 0, 1], [0, 0, 1], [0, 0, 1]])
    assert terms.used(1).names.tolist() == ["term0", "term2"]
    assert terms.used(2).names.tolist() == ["term2"]
    assert terms.used(2).matrix.toarray().tolist() == [[1], [1], [1]]
    with pytest.raises(UserError, match="least=4: no term"):
        terms.used(4)


PEAKS = peaks_at((5, 0, 4, 8), (5, 0, 4, 9), (2, 0, 4, 8), (2, 50, 4, 8), (8, -50, 4, 8))
WEIGHTS = [[1.5, 0, 2], [0.25, 1, 0], [0, 0, 4]]  # of studies 5, 2 and 8


def test_an_affinity_is_the_sum_over_the_studies_of_the_voxel():
    view = brain.ranking(PEAKS, np.array([5, 2, 8]), terms_of(WEIGHTS), voxels=3, radius=0, zeros=True)
    assert view.user_ids.tolist() == ["-50 4 8", "0 4 8", "50 4 8"]
    assert view.item_ids.tolist() == ["term0", "term1", "term2"]
    assert view.values.reshape(3, 3).tolist() == [[0, 0, 4], [1.75, 1, 2], [0.25, 1, 0]]


def test_without_zeros_only_the_positive_affinities_are_there():
    view = brain.ranking(PEAKS, np.array([5, 2, 8]), terms_of(WEIGHTS), voxels=3, radius=0, zeros=False)
    rows = list(zip(view.users.tolist(), view.items.tolist(), view.values.tolist(), strict=True))
    assert rows == [(0, 2, 4), (1, 0, 1.75), (1, 1, 1), (1, 2, 2), (2, 0, 0.25), (2, 1, 1)]
    assert (view.n_users, view.n_items) == (3, 3)


def test_voxels_are_chosen_by_all_studies_also_those_without_terms():
    view = brain.ranking(PEAKS, np.array([8]), terms_of([[0, 3]]), voxels=3, radius=0, zeros=True)
    assert view.user_ids.tolist() == ["-50 4 8", "0 4 8", "50 4 8"]
    assert view.values.reshape(3, 2).tolist() == [[0, 3], [0, 0], [0, 0]]


# ---- files ----


@pytest.mark.parametrize("quick", [True, False])
def test_peaks_are_read_alike_by_the_fast_reader_and_the_careful_one(tmp_path, quick):
    content = HEADER + '7\t"Table\n1"\t-3.5\t4\t1e1\n7\tT ""2""\t0\t-0.25\t8\n\n12345678901\tT\t1\t2\t3\n'
    file = written(tmp_path / "peaks.tsv.gz", gzip.compress(content.encode()))
    peaks = (brain._fast_peaks if quick else brain._careful_peaks)(file)
    assert peaks.study.tolist() == [7, 7, 12345678901]
    assert peaks.places().tolist() == [[-3.5, 4, 10], [0, -0.25, 8], [1, 2, 3]]


def test_a_row_that_only_the_careful_reader_understands_is_no_error(tmp_path):
    file = written(tmp_path / "peaks.tsv", HEADER + "7\tT\t 1\t2_0\t3\n")
    assert brain._fast_peaks(file) is None
    assert brain.read_peaks(file, np.array([7]), 1).places().tolist() == [[1, 20, 3]]


WRONG_ROWS = {
    "7\tT\t1\t2": "4 fields where 5 are needed",
    "7\tT\t1\t2\t3\t4": "6 fields where 5 are needed",
    "7\tT\t1\t2\t": "z '' is no number",
    "7\tT\tone\t2\t3": "x 'one' is no number",
    "7\tT\t1\tnan\t3": "y 'nan' is not finite",
    "7\tT\t1\t2\tinf": "z 'inf' is not finite",
    "7.5\tT\t1\t2\t3": "id '7.5' is no whole number",
    "99999999999999999999\tT\t1\t2\t3": "id '99999999999999999999' does not fit into 64 bits",
}


@pytest.mark.parametrize("row", WRONG_ROWS)
def test_a_wrong_row_is_named_with_its_line(tmp_path, row):
    file = written(tmp_path / "peaks.tsv", HEADER + f'7\t"T\n1"\t1\t2\t3\n{row}\n7\tT\t1\t2\t3\n')
    with pytest.raises(UserError) as error:
        brain.read_peaks(file, np.array([7]), 3)
    assert str(error.value) == f"{file}, line 4: {WRONG_ROWS[row]}"


def test_rows_that_are_all_longer_than_the_header_are_not_shifted(tmp_path):
    file = written(tmp_path / "peaks.tsv", "id\tx\ty\tz\n7\t1\t2\t3\t4\n7\t1\t2\t3\t4\n")
    with pytest.raises(UserError, match="line 2: 5 fields where 4 are needed"):
        brain.read_peaks(file, np.array([7]), 2)


def test_what_is_no_table_of_peaks_is_named(tmp_path):
    for content, message in {
        "": "line 1: no column 'id' among none",
        "id\tx\ty\n7\t1\t2\n": "line 1: no column 'z' among id, x, y",
        HEADER.encode() + b"7\tT\xe9\t1\t2\t3\n": "line 2: not utf-8 (byte 0xe9)",
        HEADER + "7\t" + "T" * 200_000 + "\tx\t2\t3\n": "line 2: field larger than field limit (131072)",
    }.items():
        file = written(tmp_path / "peaks.tsv", content)
        with pytest.raises(UserError) as error:
            brain.read_peaks(file, np.array([7]), 1)
        assert str(error.value) == f"{file}, {message}"


def test_a_cut_archive_is_named(tmp_path):
    file = written(tmp_path / "peaks.tsv.gz", gzip.compress((HEADER + "7\tT\t1\t2\t3\n" * 999).encode())[:-30])
    with pytest.raises(UserError, match=r"peaks.tsv.gz is cut or damaged"):
        brain.read_peaks(file, np.array([7]), 999)


def test_counts_and_studies_must_be_the_published_ones(tmp_path):
    file = written(tmp_path / "peaks.tsv", HEADER + "7\tT\t1\t2\t3\n8\tT\t1\t2\t3\n")
    with pytest.raises(UserError, match="holds 2 peaks where 1,000 were published: it is cut or of another edition"):
        brain.read_peaks(file, np.array([7, 8]), 1_000)
    with pytest.raises(UserError, match="holds peaks of study 8, which the metadata does not list"):
        brain.read_peaks(file, np.array([9, 7]), 2)
    with pytest.raises(UserError, match="holds 2 terms where 3 were published"):
        brain.read_names(written(tmp_path / "names.txt", "one\ntwo\n"), 3)
    twice = written(tmp_path / "studies.tsv", "id\n7\n8\n7\n")
    with pytest.raises(UserError, match="lists study 7 more than once"):
        brain.read_studies(twice, {"id": brain.whole}, 3)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.csr_array])
def test_a_matrix_is_read_whichever_way_it_is_compressed(tmp_path, kind):
    dense = np.array([[0, 1.5, 0], [2, 0, 0.5]])
    file = written(tmp_path / "matrix.npz", sparse_npz(kind(dense)))
    found = brain.read_matrix(file, (2, 3), 3)
    assert found.format == "csr" and found.has_canonical_format
    np.testing.assert_array_equal(found.toarray(), dense)


GOOD = sparse_npz(scipy.sparse.csr_matrix(np.arange(600.0).reshape(20, 30)))
PARTS = {
    "data": np.ones(2),
    "indices": np.array([0, 1]),
    "indptr": np.array([0, 1, 2]),
    "shape": np.array([2, 3]),
    "format": np.array(b"csr"),
}
DAMAGES = {
    "empty": b"",
    "text": b"not found",
    "a pickle": pickle.dumps({"data": 1}),
    "cut": GOOD[:-50],
    "cut to a stub": GOOD[:30],
    "no matrix": npz(values=np.ones(3)),
    "pickled parts": npz(**PARTS | {"data": np.array([1, "x"], dtype=object)}),
    "an index beyond the columns": npz(**PARTS | {"indices": np.array([0, 900_000_000])}),
    "a row that ends before it starts": npz(**PARTS | {"indptr": np.array([0, 3, 2])}),
    "another layout": sparse_npz(scipy.sparse.coo_matrix(np.ones((2, 3)))),
}


@pytest.mark.parametrize("content", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_matrix_is_named_and_no_pickle_opened(tmp_path, content):
    file = written(tmp_path / "matrix.npz", content)
    with pytest.raises(UserError, match="is cut, damaged or not a sparse matrix") as error:
        brain.read_matrix(file, (2, 3), None)
    assert str(error.value).startswith(str(file)) and "\n" not in str(error.value)


def test_a_turned_bit_in_a_matrix_is_found(tmp_path):
    middle = len(GOOD) // 2
    file = written(tmp_path / "matrix.npz", GOOD[:middle] + bytes([GOOD[middle] ^ 1]) + GOOD[middle + 1 :])
    with pytest.raises(UserError, match="is cut, damaged"):
        brain.read_matrix(file, (20, 30), None)


def test_another_matrix_than_the_published_one_is_refused(tmp_path):
    file = written(tmp_path / "matrix.npz", sparse_npz(scipy.sparse.csr_matrix(np.eye(2, 3))))
    with pytest.raises(UserError, match=r"is \(2, 3\) where \(3, 2\) was published"):
        brain.read_matrix(file, (3, 2), None)
    with pytest.raises(UserError, match="holds 2 entries where 5 were published"):
        brain.read_matrix(file, (2, 3), 5)
    for weight in (-1, np.nan, np.inf):
        wrong = written(tmp_path / "wrong.npz", sparse_npz(scipy.sparse.csr_matrix([[1, weight]])))
        with pytest.raises(UserError, match="negative or not finite"):
            brain.read_matrix(wrong, (1, 2), None)


def test_data_of_several_publications_fetches_each_of_them():
    class Part:
        name = "first"

        def fetch(self, tell):
            tell("fetched")

    told = []
    Joint("joint", "", "", "", (Part(), Part())).fetch(told.append)
    assert told == ["fetched", "fetched"]
