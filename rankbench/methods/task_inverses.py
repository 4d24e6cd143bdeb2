"""The inverse of all tasks' Hessians, as if the pairs of each task made a complete graph, for sparse features.

The Hessian of the squared hinge by a task's scores is the Laplacian of its graph of pairs with a margin below 1, times
2 C. A row j in h_j / 2C of such pairs has h_j on the diagonal. In its place stands the complete graph in which rows j
and k are joined with the weight h_j h_k / sum(h). Its Laplacian is diag(h) - h h^T / sum(h) = h^1/2 (I - q q^T) h^1/2
with the unit vector q = (h / sum(h))^1/2; on the diagonal it has h_j less its share h_j / sum(h). With features X of
the task's rows and Y = (I - q q^T) h^1/2 X / private^1/2, the Hessian by the task's unknowns is about I + Y^T Y, and

    (I + Y^T Y)^-1 = I - Y^T Z Y,    Z = (I + Y Y^T)^-1.

Y Y^T = P T P with P = I - q q^T and T = h^1/2 X X^T h^1/2 / private. A feature of one row alone adds to T's diagonal;
those of several rows, the columns of U = h^1/2 X / private^1/2, give the rest: T = diag(D - 1) + U U^T. So

    (I + T)^-1 b = (b - U S^-1 U^T D^-1 b) / D,    S = I + U^T D^-1 U,

with a small S for each task. For b orthogonal to q, Z b = y + lambda c with y = (I + T)^-1 b, c = (I + T)^-1 q and
lambda such that q . Z b = 0.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy.sparse

from rankbench.core.contract import Floats, Ints

_LARGEST = 1 << 26  # numbers in the inverses of all S: half a GiB


@dataclass(frozen=True, eq=False)
class TaskInverses:
    """Z of all tasks at once, as a function of a number for each of their rows."""

    task_of_row: Ints
    roots: Floats  # the square root of h
    unit: Floats  # q
    diagonal: Floats  # D
    repeated: scipy.sparse.csr_array  # U, with a column for each feature that several rows of a task have
    inverses: list[Floats]  # of S for each task that has such columns; in 32 bits they are not positive definite
    ends: Ints  # the first column of each of these tasks, and the number of columns
    direction: Floats  # c
    products: Floats  # q . c for each task; 1 where h is zero

    @classmethod
    def of(
        cls, features: scipy.sparse.csr_array, task_of_row: Ints, task_of_column: Ints, h: Floats, private: float
    ) -> "TaskInverses | None":
        """The inverses for features with a column for each task and feature; None where they would be too large."""
        rows_with = np.bincount(features.indices, minlength=features.shape[1])
        columns = np.flatnonzero(rows_with > 1)
        firsts = np.flatnonzero(np.diff(task_of_column[columns], prepend=-1))
        ends = np.append(firsts, len(columns))
        if float(np.square(np.diff(ends).astype(np.float64)).sum()) > _LARGEST:
            return None
        total = np.bincount(task_of_row, h)[task_of_row] if len(h) else h
        unit = np.sqrt(np.divide(h, total, out=np.zeros_like(h), where=total > 0))
        scaled = scipy.sparse.diags_array(np.sqrt(h / private)) @ features
        of_entries = np.where(rows_with[scaled.indices] > 1, 0.0, np.square(scaled.data))
        row_of_entry = np.repeat(np.arange(len(h)), np.diff(scaled.indptr))
        diagonal = np.asarray(1.0 + np.bincount(row_of_entry, of_entries, len(h)), np.float64)
        repeated = scaled.tocsc()[:, columns].tocsr()
        small = (repeated.T @ scipy.sparse.diags_array(1 / diagonal) @ repeated).tocsr()
        systems = (np.eye(end - first) + small[first:end, first:end].toarray() for first, end in pairwise(ends))
        inverses = [np.linalg.inv(system) for system in systems]
        half = cls(task_of_row, np.sqrt(h), unit, diagonal, repeated, inverses, ends, unit, np.ones(0))
        direction = half._unprojected(unit)
        products = np.bincount(task_of_row, unit * direction)
        return replace(half, direction=direction, products=np.where(products > 0, products, 1.0))

    def times(self, b: Floats) -> Floats:
        """Z b without its part along q, which Y^T does not see."""
        found = self._unprojected(b)
        along = np.bincount(self.task_of_row, self.unit * found, len(self.products)) / self.products
        return found - self.direction * along[self.task_of_row]

    def _unprojected(self, b: Floats) -> Floats:
        """(I + T)^-1 b."""
        first = b / self.diagonal
        sums = self.repeated.T @ first
        out = np.empty_like(sums)
        for inverse, (start, end) in zip(self.inverses, pairwise(self.ends), strict=True):
            np.dot(inverse, sums[start:end], out=out[start:end])
        return np.asarray(first - (self.repeated @ out) / self.diagonal)
