"""What the generators share: their sizes, low-rank scores of chosen pairs, and random choices of items and pairs."""

from typing import Annotated

import numpy as np

from rankbench.core.contract import Floats, Ints
from rankbench.core.errors import UserError
from rankbench.data.origins import Generated
from rankbench.names import Checked, Limits

Count = Annotated[int, Limits(low=1)]
Pairable = Annotated[int, Limits(low=2)]  # at least two, so that there is a pair to compare
Amount = Annotated[float, Limits(low=0)]


class WithItemsPerUser(Checked):
    """A generator of which each user observes `per_user` items, at most as many as there are."""

    users: int
    items: int
    per_user: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per_user > self.items:
            raise UserError(f"per_user={self.per_user} is out of range: there are only {self.items} items")

    @property
    def origin(self) -> Generated:
        """The origin: generated data of this size."""
        return Generated(f"{self.users} users, {self.items} items, {self._rows()}")

    def _rows(self) -> str:
        """How many ratings or comparisons are drawn, in words."""
        return f"{self.users * self.per_user} ratings"


def factors(rng: np.random.Generator, users: int, items: int, rank: int) -> tuple[Floats, Floats]:
    """Standard normal factors, a row per user and a row per item."""
    return rng.standard_normal((users, rank)), rng.standard_normal((rank, items)).T


def inner(left: Floats, right: Floats, rows: Ints, columns: Ints) -> Floats:
    """The inner product of left[row] and right[column] for each pair; the order of summation is fixed."""
    total = np.zeros(len(rows))
    for one, other in zip(left.T, right.T, strict=True):
        total += one[rows] * other[columns]
    return total


def product(left: Floats, right: Floats) -> Floats:
    """The matrix product left right^T; the order of summation is fixed, and not up to the processor as with BLAS."""
    total = np.zeros((len(left), len(right)))
    for one, other in zip(left.T, right.T, strict=True):
        total += one[:, None] * other
    return total


def observed(rng: np.random.Generator, users: int, items: int, per_user: int) -> tuple[Ints, Ints]:
    """Users and their observed items: `per_user` items of each user, drawn without replacement."""
    drawn = np.concatenate([rng.choice(items, per_user, replace=False, shuffle=False) for _ in range(users)])
    return np.repeat(np.arange(users), per_user), drawn


def random_pairs(rng: np.random.Generator, users: int, items: int, per_user: int) -> tuple[Ints, Ints, Ints]:
    """Users and two different items for each comparison; all pairs of items are equally likely."""
    one = rng.integers(items, size=users * per_user)
    other = (one + rng.integers(1, items, size=users * per_user)) % items
    return np.repeat(np.arange(users), per_user), one, other
