"""Functions that the generators share: low-rank scores of chosen pairs, and random choices of items and pairs."""

from typing import Annotated

import numpy as np

from rankbench.core.contract import Floats, Ints
from rankbench.core.errors import UserError
from rankbench.names import Limits

Count = Annotated[int, Limits(low=1)]
Pairable = Annotated[int, Limits(low=2)]  # at least two, so that there is a pair to compare
Amount = Annotated[float, Limits(low=0)]


def check_per_user(per_user: int, items: int) -> None:
    """Raise an error if users would observe more items than there are."""
    if per_user > items:
        raise UserError(f"per_user={per_user} is out of range: there are only {items} items")


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
    """The matrix product left right^T; the order of summation is fixed."""
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
