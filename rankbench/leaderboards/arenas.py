"""Generated arenas: comparisons by judges who each have a taste of their own, with the scores that a fit tends to."""

from dataclasses import dataclass

import numpy as np

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.leaderboards.fits.fitting import fitted
from rankbench.leaderboards.fits.likelihoods import LIKELIHOODS, Davidson
from rankbench.leaderboards.fits.pairs import Pairs
from rankbench.leaderboards.fits.problems import OfPairs
from rankbench.leaderboards.votes import Groups, Votes

_NODES = 40  # of the quadrature over tastes


@dataclass(frozen=True)
class Arena:
    """Comparisons of random pairs by judges, with outcomes as Davidson's model has them.

    Items' qualities are normal with standard deviation `quality`. For judge w the margin of item a over item b is
    quality_a - quality_b + taste_wa - taste_wb + side, with normal tastes of standard deviation `taste`: two
    comparisons of one judge are not independent. `busy` spreads the judges' numbers of comparisons, which are
    proportional to e^(busy z) with z normal.
    """

    items: int = 20
    judges: int = 100
    comparisons: int = 5_000
    quality: float = 1.0
    taste: float = 0.5
    side: float = 0.0
    ties: float = -1.0  # the parameter t of ties
    busy: float = 0.5

    def __post_init__(self) -> None:
        if self.items < 2 or self.judges < 1 or self.comparisons < 1:
            raise UserError("an arena needs two items, a judge and a comparison", subject="Arena")

    def qualities(self, seed: int) -> Floats:
        """The items' qualities."""
        return np.random.default_rng([seed, 0]).normal(0, self.quality, self.items)

    def votes(self, seed: int, draw: int = 0) -> Votes:
        """The comparisons; another `draw` has other judges and the same items."""
        rng, qualities = np.random.default_rng([seed, 1, draw]), self.qualities(seed)
        shares = np.exp(self.busy * rng.standard_normal(self.judges))
        judge = np.sort(rng.choice(self.judges, self.comparisons, p=shares / shares.sum()))
        left = rng.integers(self.items, size=self.comparisons)
        right = (left + rng.integers(1, self.items, self.comparisons)) % self.items
        tastes = rng.normal(0, self.taste, (self.judges, self.items))
        m = qualities[left] - qualities[right] + tastes[judge, left] - tastes[judge, right] + self.side
        chances = Davidson().chances(m, self.ties)
        outcome = (rng.random(self.comparisons) > np.cumsum(chances, axis=0)[:2]).sum(axis=0)
        names, codes = np.unique(judge, return_inverse=True)
        ones = np.ones(self.comparisons)
        return Votes(
            np.array([f"item {number}" for number in range(self.items)], object), left.astype(np.int32),
            right.astype(np.int32), outcome.astype(np.int8), ones, ones,
            Groups(np.array([f"judge {name}" for name in names], object), codes.astype(np.int32)),
        )  # fmt: skip

    def limit(self, seed: int, model: str = "bradley-terry", side: bool = False) -> Floats:
        """The scores that a model's fit tends to as judges grow in number: those of the mean judge's chances."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        spreads, weights = nodes * self.taste * np.sqrt(2), weights / weights.sum()
        left, right = (places.ravel() for places in np.indices((self.items, self.items)))
        apart = left != right
        left, right = left[apart].astype(np.int32), right[apart].astype(np.int32)
        qualities = self.qualities(seed)
        m = qualities[left] - qualities[right] + self.side
        chances = sum(w * Davidson().chances(m + spread, self.ties) for spread, w in zip(spreads, weights, strict=True))
        seen = np.asarray(chances)
        size = len(left)
        none = np.zeros(0)
        pairs = Pairs(self.items, left, right, seen, seen, np.ones((size, int(side))), none.astype(np.int64),
                      none.astype(np.int8), none)  # fmt: skip
        names = ("side",) * side + ("ties",) * LIKELIHOODS[model].has_ties
        return fitted(OfPairs(pairs, LIKELIHOODS[model], names)).scores
