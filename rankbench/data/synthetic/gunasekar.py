"""Low-rank scores transformed by monotone curves, as ratings or as partial orders (Gunasekar et al. 2016).

All three generators follow the paper's equation (1), y_u = g_u(Theta_u + W_u): a hidden low-rank matrix, noise,
and a monotone curve for each user that is unknown to the solver.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from scipy.special import expit, ndtri

from rankbench.core.contract import Floats, Ints
from rankbench.data.synthetic.drawing import (
    Amount,
    Count,
    Pairable,
    WithItemsPerUser,
    factors,
    inner,
    observed,
)
from rankbench.data.views import Comparisons, Ratings
from rankbench.names import Limits

Levels = Annotated[int, Limits(low=0)]


@dataclass(frozen=True)
class LowRank(WithItemsPerUser):
    """Low-rank scores with noise, as ratings from 1 to `levels`, or as continuous ratings (levels=0).

    Z = U V^T / sqrt(rank) + noise * N. The borders between levels are quantiles of a normal distribution, so the
    levels are about equally frequent. They are the same for all users; in `monotone` each user has a different
    curve.
    """

    users: Count = 300
    items: Pairable = 200
    rank: Count = 3
    per_user: Pairable = 50
    levels: Levels = 5
    noise: Amount = 0.3
    title: ClassVar = "low-rank ratings"
    version: ClassVar[int] = 1

    def view(self, rng: np.random.Generator) -> Ratings:
        """Ratings drawn from the model."""
        users, items, values = _noisy_scores(self, rng)
        if self.levels:
            values = _level(values, self.levels, np.sqrt(1 + self.noise**2))
        return Ratings.from_triples(users, items, values, self.users, self.items)


@dataclass(frozen=True)
class Monotone(WithItemsPerUser):
    """Low-rank scores with a different monotone curve for each user (Gunasekar et al. 2016, equation 1).

    Z = U V^T / sqrt(rank) + noise * N, scaled to unit variance; user u rates y = gain_u h_u(Z) + offset_u
    with gain_u = exp(spread * N) and offset_u = spread * N. The paper allows arbitrary curves and names
    none; here h_u is identity, exp, cube or logistic, and with `mixed` each user gets a random one of the four. All
    are strictly increasing, so only the order of a user's ratings tells about Z. With `levels` above zero, a user
    rates gain_u Z + offset_u rounded to levels 1..levels, about equally frequent if spread is zero; `curve` then
    has no effect.
    """

    users: Count = 300
    items: Pairable = 200
    rank: Count = 3
    per_user: Pairable = 50
    curve: Literal["identity", "exp", "cube", "logistic", "mixed"] = "mixed"
    levels: Levels = 0
    spread: Amount = 0.5
    noise: Amount = 0.3
    title: ClassVar = "monotone ratings"
    version: ClassVar[int] = 1

    def view(self, rng: np.random.Generator) -> Ratings:
        """Ratings drawn from the model."""
        users, items, scores = _noisy_scores(self, rng)
        scores /= np.sqrt(1 + self.noise**2)
        gains = np.exp(self.spread * rng.standard_normal(self.users))[users]
        offsets = (self.spread * rng.standard_normal(self.users))[users]
        if self.levels:
            values = _level(gains * scores + offsets, self.levels)
        else:
            values = gains * _bent(scores, self._curves(rng)[users]) + offsets
        return Ratings.from_triples(users, items, values, self.users, self.items)

    def _curves(self, rng: np.random.Generator) -> Ints:
        """The number of each user's curve."""
        drawn = rng.integers(len(_CURVES), size=self.users)
        return drawn if self.curve == "mixed" else np.full(self.users, list(_CURVES).index(self.curve))


@dataclass(frozen=True)
class PartialOrders(WithItemsPerUser):
    """A random directed acyclic graph of comparisons per user, from low-rank scores (Gunasekar et al. 2016, section 3).

    Each user observes `per_user` random items. A share `density` of their n (n - 1) / 2 pairs, at least one pair, is
    drawn without replacement and compared; the item with the higher Z = U V^T / sqrt(rank) + noise * N wins. An
    item's noise is drawn once and not for each comparison, as in the paper's equation (1), so the comparisons
    never form a cycle.
    """

    users: Count = 300
    items: Pairable = 200
    rank: Count = 3
    per_user: Pairable = 20
    density: Annotated[float, Limits(above=0, high=1)] = 0.2
    noise: Amount = 0.3
    title: ClassVar = "partial orders"
    version: ClassVar[int] = 1

    @property
    def edges(self) -> int:
        """How many comparisons each user makes."""
        return max(1, round(self.density * self.per_user * (self.per_user - 1) / 2))

    def view(self, rng: np.random.Generator) -> Comparisons:
        """Comparisons drawn from the model."""
        _, items, scores = _noisy_scores(self, rng)
        one, other = np.triu_indices(self.per_user, 1)
        drawn = [rng.choice(len(one), self.edges, replace=False, shuffle=False) for _ in range(self.users)]
        edges, starts = np.concatenate(drawn), np.repeat(np.arange(self.users) * self.per_user, self.edges)
        one, other = starts + one[edges], starts + other[edges]
        wins = scores[one] >= scores[other]  # in a tie the first item wins, which makes no cycle either
        better, worse = items[np.where(wins, one, other)], items[np.where(wins, other, one)]
        return Comparisons.from_triples(
            np.repeat(np.arange(self.users), self.edges), better, worse, self.users, self.items
        )

    def _rows(self) -> str:
        return f"{self.users * self.edges} comparisons"


_CURVES = {"identity": lambda t: t, "exp": np.exp, "cube": lambda t: t**3, "logistic": expit}


def _noisy_scores(model: LowRank | Monotone | PartialOrders, rng: np.random.Generator) -> tuple[Ints, Ints, Floats]:
    """Users, their observed items, and the noisy score of each."""
    tastes, traits = factors(rng, model.users, model.items, model.rank)
    users, items = observed(rng, model.users, model.items, model.per_user)
    scores = inner(tastes, traits, users, items) / np.sqrt(model.rank)
    return users, items, scores + model.noise * rng.standard_normal(len(users))


def _level(values: Floats, levels: int, spread: float = 1.0) -> Floats:
    """Each value's level from 1 to `levels`; the borders are quantiles of a normal distribution."""
    borders = ndtri(np.arange(1, levels) / levels) * spread
    return np.asarray(np.searchsorted(borders, values) + 1, np.float64)


def _bent(values: Floats, curves: Ints) -> Floats:
    """Each value transformed by the curve with its number."""
    return np.choose(curves, [curve(values) for curve in _CURVES.values()])
