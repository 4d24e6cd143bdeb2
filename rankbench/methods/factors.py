"""What solvers of factors share: padding, random starts, single precision, and losses of comparisons."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankbench.core.contract import Float32s, Floats, Ints
from rankbench.core.errors import UserError
from rankbench.kernels.methods import margins
from rankbench.kernels.shared.arena import LINE
from rankbench.kernels.shared.lanes import LANES, SINGLE_LANES
from rankbench.kernels.shared.losses import Loss as Code
from rankbench.kernels.shared.rows import ComparisonRows


def whole_lanes(rank: int, lanes: int = LANES) -> int:
    """The number of columns, at least the rank, to which the kernels' rows of factors are padded with zeros."""
    return -(-rank // lanes) * lanes


def zero_rows(n: int, rank: int) -> Floats:
    """Rows of zeros for vectors of this rank, padded to whole lanes, the first one at the start of a cache line.

    NumPy lets an array begin anywhere in a line. Then every other load of four numbers touches two lines, and the
    last numbers of one row share a line with the first ones of the next, which another thread may be writing.
    """
    rows: Floats = _from_a_line(n, whole_lanes(rank), np.float64)
    return rows


def padded(factors: Floats) -> Floats:
    """The factors with columns of zeros behind them, as many as the kernels need; themselves if they are as they need.

    They are not to be written to.
    """
    start = factors.__array_interface__["data"][0]
    in_lanes = factors.shape[1] % LANES == 0 and start % LINE == 0
    if in_lanes and factors.flags.c_contiguous and factors.dtype == np.float64:
        return factors
    out = zero_rows(*factors.shape)
    out[:, : factors.shape[1]] = factors
    return out


def start(rng: np.random.Generator, counts: Ints, rank: int) -> Floats:
    """Random normal rows of expected squared norm 1, padded for the kernels; NaN where there is no training row."""
    rows = zero_rows(len(counts), rank)
    rows[:, :rank] = rng.standard_normal((len(counts), rank)) / np.sqrt(rank)
    rows[counts == 0] = np.nan
    return rows


@dataclass(frozen=True, eq=False)
class Trained:
    """The vectors of users and items that a kernel changes, beside those of the model.

    In double precision they are the model's own arrays. In single precision they are rounded copies: the model has the
    same numbers as doubles once `update_model` has been called.
    """

    model: tuple[Floats, Floats]
    users: Floats | Float32s
    items: Floats | Float32s

    @classmethod
    def start(cls, users: Floats, items: Floats, precision: Literal["double", "single"]) -> "Trained":
        """What a kernel trains, beginning at the model's vectors, which are rounded if the precision is single."""
        if precision == "double":
            return cls((users, items), users, items)
        trained = cls((users, items), _rounded(users), _rounded(items))
        trained.update_model()
        return trained

    def update_model(self) -> None:
        """Copy what was trained into the model's arrays, if it is not in these already."""
        for shown, own in zip(self.model, (self.users, self.items), strict=True):
            if shown is not own:
                shown[:] = own[:, : shown.shape[1]]


def _rounded(rows: Floats) -> Float32s:
    """The rows in single precision, padded with zeros for its lanes."""
    out: Float32s = _from_a_line(len(rows), whole_lanes(rows.shape[1], SINGLE_LANES), np.float32)
    out[:, : rows.shape[1]] = rows
    return out


def _from_a_line(n: int, columns: int, kind: type) -> Any:
    """A matrix of zeros whose first number is the first of a cache line."""
    size = n * columns * np.dtype(kind).itemsize
    block = np.zeros(size + LINE, np.uint8)
    first = -block.ctypes.data % LINE
    return block[first : first + size].view(kind).reshape(n, columns)


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


def streams_of(rng: np.random.Generator, parts: int) -> list[np.random.Generator]:
    """A random stream for each part, drawn from one; a single part has this one itself."""
    return [rng] if parts == 1 else [np.random.default_rng(seed_of(rng)) for _ in range(parts)]
