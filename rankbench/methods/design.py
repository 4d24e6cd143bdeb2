"""The matrix of item features as solvers of factors multiply by it: dense, sparse, or the identity."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Floats, Int32s, Int64s
from rankbench.features.matrix import Features, SparseFeatures
from rankbench.features.single import SingleFeatures
from rankbench.kernels.methods import entries as entries_kernel
from rankbench.kernels.shared.rows import SparseRows
from rankbench.kernels.solvers import frsvm as kernel


@dataclass(frozen=True, eq=False)
class Design:
    """The matrix X of item features, dense, sparse or the identity, with its products on several threads."""

    features: Features | SingleFeatures | None
    n_items: int
    threads: int

    @cached_property
    def rows(self) -> SparseRows | None:
        """The rows of X as the kernels take them, where X is sparse."""
        return sparse_rows(*self.features.compressed()) if isinstance(self.features, SparseFeatures) else None

    @cached_property
    def columns(self) -> SparseRows | None:
        """The columns of X, likewise."""
        return sparse_rows(*self.features.compressed_columns()) if isinstance(self.features, SparseFeatures) else None

    @property
    def width(self) -> int:
        """How many features an item has."""
        return self.n_items if self.features is None else self.features.shape[1]

    @property
    def size(self) -> float:
        """The mean squared norm of an item's features."""
        if self.features is None:
            return 1.0
        return self.features.square_sum / self.n_items

    def times(self, matrix: Floats) -> Floats:
        """X times a matrix; the matrix itself where X = I."""
        if self.features is None:
            return matrix
        out = np.empty((self.n_items, matrix.shape[1]))
        if self.rows is not None:
            entries_kernel.times(matrix=self.rows, dense=matrix, out=out, threads=self.threads)
            return out
        with one_blas_thread():
            if isinstance(self.features, SingleFeatures):
                return self.features.times(matrix, self.threads)
            kernel.dense_times(features=self.features.matrix, matrix=matrix, out=out, threads=self.threads)
        return out

    def transposed_times(self, matrix: Floats) -> Floats:
        """X^T times a matrix; the matrix itself where X = I."""
        if self.features is None:
            return matrix
        out = np.empty((self.width, matrix.shape[1]))
        if self.columns is not None:
            entries_kernel.times(matrix=self.columns, dense=matrix, out=out, threads=self.threads)
            return out
        with one_blas_thread():
            if isinstance(self.features, SingleFeatures):
                return self.features.transposed_times(matrix, self.threads)
            kernel.transposed_times(features=self.features.matrix, matrix=matrix, out=out, threads=self.threads)
        return out


def sparse_rows(indptr: Int64s, columns: Int32s, values: Floats) -> SparseRows:
    """A sparse matrix as the kernels take it."""
    return SparseRows(indptr=indptr, columns=columns, values=values)
