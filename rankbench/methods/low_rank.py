"""The singular value decomposition of a matrix of low rank, from its factors and without forming the matrix."""

from dataclasses import dataclass

import numpy as np

from rankbench.core.contract import Floats


@dataclass(frozen=True, eq=False)
class ProductSVD:
    """The singular value decomposition of a product left right^T, from its two tall factors.

    Each side's singular vectors are basis @ turn, an orthonormal basis of the factor's columns and a small
    rotation. They are kept apart because scaling the vectors then only needs the small matrix to be scaled.
    """

    left_basis: Floats
    left_turn: Floats
    values: Floats
    right_basis: Floats
    right_turn: Floats

    @classmethod
    def of(cls, left: Floats, right: Floats, whole: bool = False) -> "ProductSVD":
        """The decomposition of left right^T; `whole` rotations are square even where one side has less rank."""
        (left_basis, upper), (right_basis, other) = np.linalg.qr(left), np.linalg.qr(right)
        left_turn, values, right_turn = np.linalg.svd(upper @ other.T, full_matrices=whole)
        return cls(left_basis, left_turn, values, right_basis, right_turn.T)

    @property
    def left(self) -> Floats:
        """The left singular vectors, as columns."""
        return self.left_basis @ self.left_turn

    @property
    def right(self) -> Floats:
        """The right singular vectors, as columns."""
        return self.right_basis @ self.right_turn
