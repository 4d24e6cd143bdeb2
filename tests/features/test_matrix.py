"""Dense and sparse feature matrices give the same results as each other and as NumPy."""

import numpy as np
import pytest
import scipy.sparse

from rankbench.features.matrix import DenseFeatures, SparseFeatures, features_of

RNG = np.random.default_rng(0)
X = np.where(RNG.random((9, 5)) < 0.5, RNG.standard_normal((9, 5)), 0.0)
each_kind = pytest.mark.parametrize("features", [features_of(X), features_of(scipy.sparse.csr_array(X))], ids=type)


def test_the_kind_is_that_of_the_array():
    assert isinstance(features_of(X), DenseFeatures)
    for form in (scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.csr_matrix):
        assert isinstance(features_of(form(X)).matrix, scipy.sparse.csr_array)
    with pytest.raises(TypeError, match="there are no item features"):
        features_of(None)


@each_kind
def test_products_are_those_of_numpy(features):
    vector, matrix, items = RNG.standard_normal(5), RNG.standard_normal((5, 3)), np.array([3, 3, 0])
    assert features.shape == (9, 5)
    for other in (vector, matrix):
        np.testing.assert_allclose(features.times(other), X @ other, atol=1e-12)
    np.testing.assert_allclose(features.transposed_times(X[:, 0]), X.T @ X[:, 0], atol=1e-12)
    np.testing.assert_allclose(features.transposed_times(X), X.T @ X, atol=1e-12)
    np.testing.assert_allclose(features.projections(vector), X @ vector, atol=1e-12)
    np.testing.assert_allclose(features.squared_lengths(), np.square(X).sum(axis=1))
    np.testing.assert_allclose(features.gram(1), X @ X.T, atol=1e-12)
    np.testing.assert_allclose(features.products_with(features.rows(items)), X @ X[items].T, atol=1e-12)
    weights = scipy.sparse.csr_array(RNG.standard_normal((2, 9)))
    np.testing.assert_allclose(features.combined(weights), weights @ X, atol=1e-12)


@each_kind
def test_a_product_with_a_matrix_is_contiguous(features):
    assert features.times(np.ones((3, 5)).T).flags.c_contiguous
    assert features.dense().flags.c_contiguous


@each_kind
def test_values_are_picked_out(features):
    items = np.array([3, 3, 0])
    np.testing.assert_array_equal(features.dense(), X)
    np.testing.assert_array_equal(features.rows(items).dense(), X[items])
    np.testing.assert_array_equal(features.squared().dense(), X**2)
    np.testing.assert_array_equal(features.at(items, np.array([1, 2, 4])), X[items, [1, 2, 4]])
    assert features.equals(features_of(X)) and not features.equals(features_of(X + np.eye(9, 5)))
    assert features.stored.sum() == pytest.approx(X.sum())


def test_kernels_get_sorted_columns_without_repeats():
    untidy = scipy.sparse.csr_array((np.ones(3), np.array([2, 0, 2]), np.array([0, 3])), (1, 4))
    indptr, columns, values = SparseFeatures(untidy).compressed()
    assert (indptr.tolist(), columns.tolist(), values.tolist()) == ([0, 2], [0, 2], [1, 2])
    assert untidy.indices.tolist() == [2, 0, 2]
    indptr, rows, values = SparseFeatures(untidy).compressed_columns()
    assert (indptr.tolist(), rows.tolist(), values.tolist()) == ([0, 1, 1, 2, 2], [0, 0], [1, 2])
