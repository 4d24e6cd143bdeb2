"""What solvers of factors share: how vectors start, and the ranks that make sense."""

import numpy as np

from rankbench.contract import Floats, Ints
from rankbench.errors import UserError

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


def seed_of(rng: np.random.Generator) -> int:
    """A seed for the streams of a parallel pass."""
    return int(rng.integers(2**63))
