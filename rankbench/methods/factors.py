"""What solvers of factors share: padding, random starts, the decomposition of a product, and losses of comparisons."""

from dataclasses import dataclass

import numpy as np

from rankbench.contract import Floats, Ints
from rankbench.errors import UserError
from rankbench.kernels.methods import margins
from rankbench.kernels.shared.lanes import LANES
from rankbench.kernels.shared.losses import Loss as Code
from rankbench.kernels.shared.rows import ComparisonRows


def whole_lanes(rank: int) -> int:
    """The number of columns, at least the rank, to which the kernels' rows of factors are padded with zeros."""
    return -(-rank // LANES) * LANES


def padded(factors: Floats) -> Floats:
    """The factors with columns of zeros behind them, as many as the kernels need."""
    out = np.zeros((len(factors), whole_lanes(factors.shape[1])))
    out[:, : factors.shape[1]] = factors
    return out


def start(rng: np.random.Generator, counts: Ints, rank: int) -> Floats:
    """Random normal rows of expected squared norm 1, padded for the kernels; NaN where there is no training row."""
    rows = np.zeros((len(counts), whole_lanes(rank)))
    rows[:, :rank] = rng.standard_normal((len(counts), rank)) / np.sqrt(rank)
    rows[counts == 0] = np.nan
    return rows


@dataclass(frozen=True, eq=False)
class ProductSVD:
    """The singular value decomposition of a product left right^T, from its two tall factors.

    Each side's singular vectors are basis @ turn, an orthonormal basis of the factor's columns and a small
    rotation. They are left apart: whoever scales the vectors may scale the small matrix.
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


def check_rank(solver: str, rank: int, n_users: int, n_items: int) -> None:
    """Raise an error for a rank above both the number of users and of items."""
    if rank > max(n_users, n_items):
        raise UserError(
            f"{solver}: rank={rank} is larger than both sides, {n_users} users and {n_items} items: "
            f"take at most {max(n_users, n_items)}"
        )


def total_loss(loss: Code, comparisons: ComparisonRows, users: Floats, items: Floats, threads: int) -> float:
    """The sum of the losses of comparisons under these factors, whose rows are padded to whole lanes."""
    by_user = np.zeros(len(users))
    if len(items):
        margins.losses(loss=loss, comparisons=comparisons, users=users, items=items, out=by_user, threads=threads)
    return float(by_user.sum())


def seed_of(rng: np.random.Generator) -> int:
    """A random seed for the generators of a parallel pass."""
    return int(rng.integers(2**63))
