"""The inverses of tasks' Hessians of complete graphs of pairs, against dense matrices."""

import numpy as np
import pytest
import scipy.sparse

from rankbench.methods import task_inverses
from rankbench.methods.task_inverses import TaskInverses


def problem(rng, sizes=(5, 0, 1, 8), words=6):
    """Sparse features of the rows of some tasks with a column for each task and word, and whose each column is."""
    blocks = [rng.standard_normal((size, words)) * (rng.random((size, words)) < 0.4) for size in sizes]
    matrix = scipy.sparse.block_array(
        [[scipy.sparse.csr_array(block if i == j else np.zeros((len(block), words))) for j in range(len(sizes))]
         for i, block in enumerate(blocks)],
        format="csr",
    )  # fmt: skip
    used = np.unique(matrix.indices)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    return matrix[:, used].tocsr(), rows, np.repeat(np.arange(len(sizes)), words)[used]


def laplacian(h, task_of_row):
    """The Laplacian of complete graphs of the tasks' rows with these degrees."""
    out = np.diag(h)
    for task in np.unique(task_of_row):
        own = np.where(task_of_row == task, h, 0.0)
        out -= np.outer(own, own) / (own.sum() or 1.0)
    return out


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scale", [0.1, 100.0])
def test_they_invert_the_hessian_exactly(seed, scale):
    rng = np.random.default_rng(seed)
    features, rows, columns = problem(rng)
    h = scale * rng.random(len(rows)) * (rng.random(len(rows)) < 0.8)
    found = TaskInverses.of(features, rows, columns, h, 0.7)
    dense = features.toarray()
    hessian = np.eye(len(columns)) + dense.T @ laplacian(h, rows) @ dense / 0.7
    right = rng.standard_normal(len(columns))
    rest = found.times(found.roots * (dense @ right))
    solution = right - dense.T @ (found.roots * rest) / 0.7
    np.testing.assert_allclose(solution, np.linalg.solve(hessian, right), atol=1e-10)


def test_features_of_one_row_alone_need_no_system():
    features = scipy.sparse.csr_array(np.eye(4)[:, [0, 1, 3]])
    found = TaskInverses.of(features, np.array([0, 0, 1, 1]), np.array([0, 0, 1]), np.arange(4.0), 1.0)
    assert found.inverses == [] and found.repeated.shape == (4, 0)
    np.testing.assert_allclose(found.diagonal, [1, 2, 1, 4])


def test_too_many_shared_features_are_left_to_the_weaker_preconditioner(monkeypatch):
    features, rows, columns = problem(np.random.default_rng(0))
    h = np.ones(len(rows))
    assert TaskInverses.of(features, rows, columns, h, 1.0) is not None
    monkeypatch.setattr(task_inverses, "_LARGEST", 3)
    assert TaskInverses.of(features, rows, columns, h, 1.0) is None
