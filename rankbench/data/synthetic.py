"""Synthetic data: the papers' generative models, which need no file, no network and no licence."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from scipy.special import expit, ndtri

from rankbench.contract import Floats, Ints
from rankbench.data import Provenance
from rankbench.data.views import Comparisons, Ratings
from rankbench.errors import UserError
from rankbench.specs import Limits, check

Count = Annotated[int, Limits(low=1)]
Amount = Annotated[float, Limits(low=0)]


@dataclass(frozen=True)
class BTL:
    """Bradley-Terry-Luce comparisons over low-rank scores (Park et al. 2015).

    X = scale * U V^T / sqrt(rank) with standard normal U, V; each user meets `comparisons` random pairs
    of items and prefers j to k with probability 1 / (1 + exp(X_k - X_j)).
    """

    users: Count = 300
    items: Annotated[int, Limits(low=2)] = 200
    rank: Count = 3
    comparisons: Count = 100
    scale: Amount = 5.0
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)

    def missing(self) -> None:
        """Nothing: it is generated."""

    def provenance(self) -> Provenance:
        """Generated."""
        return _generated(f"{self.users} users, {self.items} items, {self.users * self.comparisons} comparisons")

    def view(self, rng: np.random.Generator) -> Comparisons:
        """Comparisons drawn from the model."""
        scores = self.scale * _low_rank(rng, self.users, self.items, self.rank)
        users = np.repeat(np.arange(self.users), self.comparisons)
        one = rng.integers(self.items, size=len(users))
        other = (one + rng.integers(1, self.items, size=len(users))) % self.items  # never the same
        wins = rng.random(len(users)) < expit(scores[users, one] - scores[users, other])
        better, worse = np.where(wins, one, other), np.where(wins, other, one)
        return Comparisons.from_triples(users, better, worse, self.users, self.items)


@dataclass(frozen=True)
class LowRank:
    """Low-rank scores with noise, seen through a monotone curve: levels 1..levels, or as they are (levels=0).

    Z = U V^T / sqrt(rank) + noise * N; a level is a quantile of the normal law that Z would follow, so
    the levels are about equally frequent.
    """

    users: Count = 300
    items: Annotated[int, Limits(low=2)] = 200
    rank: Count = 3
    per_user: Annotated[int, Limits(low=2)] = 50
    levels: Annotated[int, Limits(low=0)] = 5
    noise: Amount = 0.3
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)
        _check_per_user(self.per_user, self.items)

    def missing(self) -> None:
        """Nothing: it is generated."""

    def provenance(self) -> Provenance:
        """Generated."""
        return _generated(f"{self.users} users, {self.items} items, {self.users * self.per_user} ratings")

    def view(self, rng: np.random.Generator) -> Ratings:
        """Ratings drawn from the model."""
        scores = _low_rank(rng, self.users, self.items, self.rank)
        users, items = _observed(rng, self.users, self.items, self.per_user)
        values: Floats = scores[users, items] + self.noise * rng.standard_normal(len(users))
        if self.levels:
            borders = ndtri(np.arange(1, self.levels) / self.levels) * np.sqrt(1 + self.noise**2)
            values = (np.searchsorted(borders, values) + 1).astype(np.float64)
        return Ratings.from_triples(users, items, values, self.users, self.items)


@dataclass(frozen=True)
class Magnitudes:
    """Continuous ratings that are functions of item features, for MPRank and its kin (Cortes et al. 2007).

    y = w_u . x + bend * cos(a_u . x) + noise: linear for bend = 0, for a kernel to find otherwise.
    """

    users: Count = 60
    items: Annotated[int, Limits(low=2)] = 300
    features: Count = 8
    per_user: Annotated[int, Limits(low=2)] = 100
    bend: Amount = 1.0
    noise: Amount = 0.3
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)
        _check_per_user(self.per_user, self.items)

    def missing(self) -> None:
        """Nothing: it is generated."""

    def provenance(self) -> Provenance:
        """Generated."""
        return _generated(f"{self.users} users, {self.items} items, {self.users * self.per_user} ratings")

    def view(self, rng: np.random.Generator) -> Ratings:
        """Ratings drawn from the model, with the features that explain them."""
        features = rng.standard_normal((self.items, self.features)) / np.sqrt(self.features)
        slopes = rng.standard_normal((self.users, self.features))
        waves = 3.0 * rng.standard_normal((self.users, self.features))
        scores = slopes @ features.T + self.bend * np.cos(waves @ features.T)
        users, items = _observed(rng, self.users, self.items, self.per_user)
        values = scores[users, items] + self.noise * rng.standard_normal(len(users))
        return Ratings.from_triples(users, items, values, self.users, self.items, features)


def _generated(size: str) -> Provenance:
    return Provenance("generated", "none needed", size)


def _check_per_user(per_user: int, items: int) -> None:
    if per_user > items:
        raise UserError(f"per_user={per_user} is out of range: there are only {items} items")


def _low_rank(rng: np.random.Generator, users: int, items: int, rank: int) -> Floats:
    """users x items scores of this rank, with unit variance."""
    return np.asarray(rng.standard_normal((users, rank)) @ rng.standard_normal((rank, items)) / np.sqrt(rank))


def _observed(rng: np.random.Generator, users: int, items: int, per_user: int) -> tuple[Ints, Ints]:
    """Which items each user rates: per_user of them, drawn without repeats."""
    drawn = np.concatenate([rng.choice(items, per_user, replace=False, shuffle=False) for _ in range(users)])
    return np.repeat(np.arange(users), per_user), drawn
