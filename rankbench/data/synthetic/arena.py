"""Generated arenas: judges who each have a taste of their own compare items, whose features are known."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from scipy.special import expit

from rankbench.core.contract import Floats, Int8s, Int64s
from rankbench.data.origins import Generated
from rankbench.data.synthetic.drawing import Amount, Count, Pairable, inner, product
from rankbench.data.views import Comparisons
from rankbench.names import Checked, Limits

LEFT, RIGHT, TIE = range(3)  # what may come of a comparison
_Effect = Annotated[float, Limits(low=-1e6, high=1e6)]  # on log odds


@dataclass(frozen=True, eq=False)
class Drawn:
    """The comparisons of an arena, a row for each, and what they were drawn from."""

    judges: Int64s
    left: Int64s
    right: Int64s
    outcome: Int8s
    lengths: Floats  # the left answer's length less the right one's
    margins: Floats  # by which the left item is ahead


@dataclass(frozen=True)
class Arena(Checked):
    """Comparisons of random pairs by judges, with outcomes as Davidson's model for ties has them.

    Items' qualities are normal with standard deviation `quality`. For judge w the margin of item a over item b is
    quality_a - quality_b + taste_wa - taste_wb + side + length (length_a - length_b), with normal tastes of standard
    deviation `taste` and lengths of 1/sqrt(2): two comparisons of one judge are not independent. With `features` above
    zero an item has that many, and quality and tastes are linear in them, judges' weights being of rank `rank`; else
    qualities and tastes of different items are independent. `busy` spreads the judges' numbers of
    comparisons, which are proportional to e^(busy z) with z normal. Solvers learn from the comparisons without a tie.
    """

    items: Pairable = 20
    judges: Count = 100
    comparisons: Count = 5_000
    quality: Amount = 1.0
    taste: Amount = 0.5
    side: _Effect = 0.0  # the advantage of the left side
    ties: _Effect = -1.0  # two equal items tie with the chance e^ties / (2 + e^ties)
    busy: Amount = 0.5
    features: Annotated[int, Limits(low=0)] = 0
    rank: Count = 2
    length: _Effect = 0.0  # what a longer answer gains
    title: ClassVar = "an arena"
    version: ClassVar[int] = 1

    @property
    def origin(self) -> Generated:
        """The origin: generated data of this size."""
        return Generated(f"{self.judges} users, {self.items} items, {self.comparisons} comparisons and ties")

    def view(self, rng: np.random.Generator) -> Comparisons:
        """The comparisons that are no ties, with the items' features if they have any."""
        seed = self.seed_of(rng)
        found = self.drawn(seed)
        kept, won = found.outcome != TIE, found.outcome == LEFT
        better, worse = np.where(won, found.left, found.right)[kept], np.where(won, found.right, found.left)[kept]
        features = self.embeddings(seed) if self.features else None
        return Comparisons.from_triples(found.judges[kept], better, worse, self.judges, self.items, features)

    def seed_of(self, rng: np.random.Generator) -> int:
        """The seed of the comparisons that `view` draws with these random numbers."""
        return int(rng.integers(2**32))

    def embeddings(self, seed: int) -> Floats:
        """The items' features, of mean square length 1."""
        drawn = np.random.default_rng([seed, 2]).standard_normal((self.items, self.features))
        found: Floats = drawn / np.sqrt(self.features)
        return found

    def qualities(self, seed: int) -> Floats:
        """The items' qualities."""
        rng = np.random.default_rng([seed, 0])
        if not self.features:
            return rng.normal(0, self.quality, self.items)
        weights = self.quality * rng.standard_normal((1, self.features))
        return product(self.embeddings(seed), weights)[:, 0]

    def loadings(self, seed: int) -> Floats:
        """A row for each item: how each of the independent parts of a judge's taste bears on it."""
        if not self.features:
            return self.taste * np.eye(self.items)
        basis = np.random.default_rng([seed, 3]).standard_normal((self.features, self.rank)) / np.sqrt(self.rank)
        return self.taste * product(self.embeddings(seed), basis.T)

    def drawn(self, seed: int, draw: int = 0) -> Drawn:
        """The comparisons; another `draw` has other judges and the same items."""
        rng, qualities = np.random.default_rng([seed, 1, draw]), self.qualities(seed)
        shares = np.exp(self.busy * rng.standard_normal(self.judges))
        judges = np.sort(rng.choice(self.judges, self.comparisons, p=shares / shares.sum()))
        left = rng.integers(self.items, size=self.comparisons)
        right = (left + rng.integers(1, self.items, self.comparisons)) % self.items
        margins = qualities[left] - qualities[right] + self.side
        own = rng.standard_normal((self.judges, self.rank if self.features else self.items))
        margins += self._tastes(own, seed, judges, left) - self._tastes(own, seed, judges, right)
        lengths = rng.standard_normal(self.comparisons)
        margins += self.length * lengths
        return Drawn(judges, left, right, self._outcomes(margins, rng), lengths, margins)

    def _tastes(self, own: Floats, seed: int, judges: Int64s, items: Int64s) -> Floats:
        """What each judge likes about an item beyond its quality."""
        if not self.features:
            return self.taste * own[judges, items]
        return inner(own, self.loadings(seed), judges, items)

    def _outcomes(self, margins: Floats, rng: np.random.Generator) -> Int8s:
        """What comes of each comparison: a tie has the weight e^ties beside e^(m/2) and e^(-m/2)."""
        wins = expit(margins)
        ties = expit(self.ties - np.logaddexp(margins / 2, -margins / 2))
        tied, won = rng.random(len(margins)) < ties, rng.random(len(margins)) < wins
        return np.where(tied, TIE, np.where(won, LEFT, RIGHT)).astype(np.int8)
