"""Low-rank scores behind monotone curves, as ratings or as partial orders (Gunasekar et al. 2016).

All of it is their equation (1), y_u = g_u(Theta_u + W_u): a hidden matrix of low rank, noise, and
a monotone curve of each user's own, of which a solver may know nothing.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from scipy.special import expit, ndtri

from rankbench.contract import Floats, Ints
from rankbench.data.origins import Generated
from rankbench.data.synthetic.drawing import (
    Amount,
    Count,
    Pairable,
    check_per_user,
    factors,
    inner,
    observed,
)
from rankbench.data.views import Comparisons, Ratings
from rankbench.names import Limits, check

Levels = Annotated[int, Limits(low=0)]


@dataclass(frozen=True)
class LowRank:
    """Low-rank scores with noise, seen through a monotone curve: levels 1..levels, or as they are (levels=0).

    Z = U V^T / sqrt(rank) + noise * N; a level is a quantile of the normal law that Z would follow, so
    the levels are about equally frequent. The curve is the same for all users; `monotone` gives each
    their own.
    """

    users: Count = 300
    items: Pairable = 200
    rank: Count = 3
    per_user: Pairable = 50
    levels: Levels = 5
    noise: Amount = 0.3
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)
        check_per_user(self.per_user, self.items)

    @property
    def origin(self) -> Generated:
        """Generated."""
        return Generated(f"{self.users} users, {self.items} items, {self.users * self.per_user} ratings")

    def view(self, rng: np.random.Generator) -> Ratings:
        """Ratings drawn from the model."""
        users, items, values = _noisy_scores(self, rng)
        if self.levels:
            values = _level(values, self.levels, np.sqrt(1 + self.noise**2))
        return Ratings.from_triples(users, items, values, self.users, self.items)


@dataclass(frozen=True)
class Monotone:
    """Low-rank scores through a monotone curve of each user's own (Gunasekar et al. 2016, equation 1).

    Z = U V^T / sqrt(rank) + noise * N, brought to unit variance; user u shows y = gain_u h_u(Z) + offset_u
    with gain_u = exp(spread * N) and offset_u = spread * N. The paper asks for arbitrary curves and names
    none; here h_u is identity, exp, cube or logistic, and with `mixed` each user gets one of the four. All
    grow strictly, so only a user's order says anything about Z. With `levels` above zero a user shows
    gain_u Z + offset_u in steps 1..levels, about equally frequent where spread is zero; a curve below a
    staircase is not to be seen, so `curve` then changes nothing.
    """

    users: Count = 300
    items: Pairable = 200
    rank: Count = 3
    per_user: Pairable = 50
    curve: Literal["identity", "exp", "cube", "logistic", "mixed"] = "mixed"
    levels: Levels = 0
    spread: Amount = 0.5
    noise: Amount = 0.3
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)
        check_per_user(self.per_user, self.items)

    @property
    def origin(self) -> Generated:
        """Generated."""
        return Generated(f"{self.users} users, {self.items} items, {self.users * self.per_user} ratings")

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
        """Which of the curves each user looks through."""
        drawn = rng.integers(len(_CURVES), size=self.users)
        return drawn if self.curve == "mixed" else np.full(self.users, list(_CURVES).index(self.curve))


@dataclass(frozen=True)
class PartialOrders:
    """A random directed acyclic graph per user over hidden low-rank scores (Gunasekar et al. 2016, section 3).

    Each user meets `per_user` random items. Of the n (n - 1) / 2 pairs among them a share `density` is
    compared, at least one, drawn without repeats; the item with the higher Z = U V^T / sqrt(rank) + noise * N
    wins. An item's noise is drawn once and not anew for each comparison, as in their equation (1): the edges
    follow one hidden order, so that they never go in a circle.
    """

    users: Count = 300
    items: Pairable = 200
    rank: Count = 3
    per_user: Pairable = 20
    density: Annotated[float, Limits(above=0, high=1)] = 0.2
    noise: Amount = 0.3
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)
        check_per_user(self.per_user, self.items)

    @property
    def edges(self) -> int:
        """How many comparisons each user makes."""
        return max(1, round(self.density * self.per_user * (self.per_user - 1) / 2))

    @property
    def origin(self) -> Generated:
        """Generated."""
        return Generated(f"{self.users} users, {self.items} items, {self.users * self.edges} comparisons")

    def view(self, rng: np.random.Generator) -> Comparisons:
        """Comparisons drawn from the model."""
        _, items, scores = _noisy_scores(self, rng)
        one, other = np.triu_indices(self.per_user, 1)
        drawn = [rng.choice(len(one), self.edges, replace=False, shuffle=False) for _ in range(self.users)]
        edges, starts = np.concatenate(drawn), np.repeat(np.arange(self.users) * self.per_user, self.edges)
        one, other = starts + one[edges], starts + other[edges]
        wins = scores[one] >= scores[other]  # of equals the first wins, which makes no circle either
        better, worse = items[np.where(wins, one, other)], items[np.where(wins, other, one)]
        return Comparisons.from_triples(
            np.repeat(np.arange(self.users), self.edges), better, worse, self.users, self.items
        )


_CURVES = {"identity": lambda t: t, "exp": np.exp, "cube": lambda t: t**3, "logistic": expit}


def _noisy_scores(model: LowRank | Monotone | PartialOrders, rng: np.random.Generator) -> tuple[Ints, Ints, Floats]:
    """Users, the items they meet, and the noisy score of each."""
    tastes, traits = factors(rng, model.users, model.items, model.rank)
    users, items = observed(rng, model.users, model.items, model.per_user)
    scores = inner(tastes, traits, users, items) / np.sqrt(model.rank)
    return users, items, scores + model.noise * rng.standard_normal(len(users))


def _level(values: Floats, levels: int, spread: float = 1.0) -> Floats:
    """Which of so many equally likely steps of a normal law a value stands on, counted from 1."""
    borders = ndtri(np.arange(1, levels) / levels) * spread
    return np.asarray(np.searchsorted(borders, values) + 1, np.float64)


def _bent(values: Floats, curves: Ints) -> Floats:
    """Each value through the curve of this number."""
    return np.choose(curves, [curve(values) for curve in _CURVES.values()])
