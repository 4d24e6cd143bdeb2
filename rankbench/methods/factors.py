"""What solvers of factors share: how vectors start, the ranks that make sense, and what comparisons lose."""

import numpy as np

from rankbench.contract import Floats, Ints
from rankbench.errors import UserError
from rankbench.kernels import margins

LOSSES = {"squared-hinge": margins.SQUARED_HINGE, "hinge": margins.HINGE, "logistic": margins.LOGISTIC}
_LANES = 4  # the kernels' rows are padded to whole lanes; the padding is zero and stays so


def start(rng: np.random.Generator, counts: Ints, rank: int) -> Floats:
    """Normal rows of expected length one, padded to whole lanes; NaN for whoever is in no training row."""
    rows = np.zeros((len(counts), -(-rank // _LANES) * _LANES))
    rows[:, :rank] = rng.standard_normal((len(counts), rank)) / np.sqrt(rank)
    rows[counts == 0] = np.nan
    return rows


def check_rank(solver: str, rank: int, n_users: int, n_items: int) -> None:
    """Refuse a rank that no matrix of these sides can have."""
    if rank > max(n_users, n_items):
        raise UserError(
            f"{solver}: rank={rank} is larger than both sides, {n_users} users and {n_items} items: "
            f"take at most {max(n_users, n_items)}"
        )


def total_loss(loss: int, rows: tuple[Ints, Ints, Ints], users: Floats, items: Floats, threads: int) -> float:
    """What comparisons lose, their indptr, better and worse given, added up by user."""
    by_user = np.zeros(len(users))
    if len(rows[1]):
        margins.losses(loss, *rows, users, items, by_user, threads)
    return float(by_user.sum())


def seed_of(rng: np.random.Generator) -> int:
    """A seed for the streams of a parallel pass."""
    return int(rng.integers(2**63))
