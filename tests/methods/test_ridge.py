"""Ridge regressions of many rows: each against NumPy, and with the bits that it has alone."""

from itertools import pairwise

import numpy as np
import pytest

from rankbench.kernels.methods import als
from rankbench.kernels.shared.rows import SparseRows

RANKS = [1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 17, 24, 25, 30, 34]  # up to 24, four rows are solved side by side


def problem(rank, counts=(3, 40, 0, 1, 7, 2, 5, 0, 9, 70, 130), seed=0):
    """Rows with so many entries each, and the vectors of 50 columns."""
    rng, indptr = np.random.default_rng(seed), np.concatenate([[0], np.cumsum(counts)])
    columns = rng.integers(0, 50, indptr[-1]).astype(np.int32)
    return indptr, columns, rng.standard_normal(indptr[-1]), rng.standard_normal((50, rank))


def solved(indptr, columns, values, vectors, penalties, threads=1, start=3.0):
    """What the kernel returns, and the rows' solutions."""
    out = np.full((len(indptr) - 1, vectors.shape[1]), start)
    rows = SparseRows(indptr=indptr, columns=columns, values=values)
    return als.ridge(rows=rows, vectors=vectors, penalties=penalties, out=out, threads=threads), out


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("power", [0.0, 1.0])
def test_rows_agree_with_numpy(rank, power):
    indptr, columns, values, vectors = problem(rank)
    failed, out = solved(indptr, columns, values, vectors, als.Ridge(each=np.full(rank, 0.5), power=power))
    assert failed == -1
    for row, (first, end) in enumerate(pairwise(indptr)):
        v, scale = vectors[columns[first:end]], 0.5 * float(end - first) ** power
        expected = np.zeros(rank)
        if len(v):
            expected = np.linalg.solve(v.T @ v + scale * np.eye(rank), v.T @ values[first:end])
        np.testing.assert_allclose(out[row], expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("rank", RANKS)
def test_rows_beside_others_have_the_bits_of_each_alone(rank):
    indptr, columns, values, vectors = problem(rank)
    each, half = np.full(rank, 0.5), np.random.default_rng(1).standard_normal((rank, rank))
    each[rank // 2] = np.inf  # held at its start
    for penalties in (als.Ridge(each=np.full(rank, 0.5)), als.Ridge(each=each, form=half @ half.T)):
        _, out = solved(indptr, columns, values, vectors, penalties)
        assert solved(indptr, columns, values, vectors, penalties, threads=3)[1].tobytes() == out.tobytes()
        for row, (first, end) in enumerate(pairwise(indptr)):
            _, alone = solved(np.array([0, end - first]), columns[first:end], values[first:end], vectors, penalties)
            assert alone[0].tobytes() == out[row].tobytes()


@pytest.mark.parametrize("rank", [4, 10, 30])
@pytest.mark.parametrize("row", range(8))
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_the_first_row_without_a_finite_solution_is_named_and_the_others_are_solved(rank, row, value):
    indptr, columns, values, vectors = problem(rank, counts=[5] * 8)
    penalties = als.Ridge(each=np.full(rank, 0.5))
    _, expected = solved(indptr, columns, values, vectors, penalties)
    vectors = np.vstack([vectors, np.full((1, rank), value)])
    columns[indptr[row]] = 50
    failed, out = solved(indptr, columns, values, vectors, penalties)
    assert failed == row
    others = np.arange(8) != row
    assert out[others].tobytes() == expected[others].tobytes()


@pytest.mark.parametrize("rank", [3, 10, 30])
def test_a_singular_system_is_named(rank):
    indptr, columns, values, vectors = problem(rank, counts=[200, 200, 1, 200, 200])
    assert solved(indptr, columns, values, np.round(vectors * 4), als.Ridge(each=np.zeros(rank)))[0] == 2
