"""Generated ratings in the published shape of a data set that cannot be downloaded, only for timing and memory."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import scipy.sparse
from scipy.special import ndtr, ndtri

from rankbench.arrays.mapped import Pile
from rankbench.arrays.npz import sealed
from rankbench.core.contract import Floats, Ints
from rankbench.core.errors import UserError
from rankbench.data.origins import Generated
from rankbench.data.synthetic.drawing import Count, inner
from rankbench.data.synthetic.sampling import Urn, draw_sets
from rankbench.data.synthetic.shapes import SHAPES, Name, Shape
from rankbench.data.views import Ratings
from rankbench.names import Checked, Limits

RANK = 5
USERS, ITEMS, TASTES = 0.11, 0.23, 0.10  # shares of the variance of a score; the rest is noise
_WORDS = (1.0, 2.7)  # s and q of the popularity of features: Mandelbrot's law of words


@dataclass(frozen=True)
class Lookalike(Checked):
    """Generated ratings in the published shape of a data set that cannot be downloaded, FOR SPEED WORK ONLY.

    The numbers of users, items and ratings are exactly the published ones. No user rates an item twice, the
    smallest and largest number of ratings of a user stay within those of the real data set, and every item that is
    rated there is rated here. The users' numbers of ratings are log-normal above the smallest one; items are drawn
    with Zipf-Mandelbrot weights without replacement (successive sampling). The module `shapes` has the parameters
    of each data set and what they were fitted to.

    A score is the sum of a user's offset, an item's quality, u_i^T v_j of rank 5 and noise, with shares 0.11, 0.23,
    0.10 and 0.56 of the variance. The first two shares are measured on ML-1M (alternating means, shrunk by 5
    ratings). The third is a guess above 0.065, the share of the variance of held-out ratings there that a
    factorisation of rank 6 explains. Scores become levels with the published frequencies. In the shape of ML-1M,
    0.27 of the users' pairs are ties; in ML-1M itself 0.295.

    `ratings` or `share` make a smaller data set of the same shape: fewer users, each as active as before, and all
    items. `features=true` adds sparse item features in the published number; an item's factors are then sums of
    random factors of its features.
    """

    name: Name
    share: Annotated[float, Limits(above=0, high=1)] = 1.0
    ratings: Count | None = None
    features: bool = False
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        whole = SHAPES[self.name]
        if self.ratings is not None and self.share != 1:
            raise UserError(f"ratings={self.ratings} and share={self.share} both set the size: leave one out")
        if self.ratings is not None and self.ratings > whole.ratings:
            raise UserError(f"ratings={self.ratings} is out of range: {self.name} has {whole.ratings}")
        if self.features and not whole.features:
            known = ", ".join(name for name, shape in SHAPES.items() if shape.features)
            raise UserError(f"features=true: {self.name} has no published features, only {known} have")

    @property
    def shape(self) -> Shape:
        """The shape of the data to generate."""
        whole = SHAPES[self.name]
        return whole.smaller(self.ratings or max(1, round(self.share * whole.ratings)))

    @property
    def origin(self) -> Generated:
        """The origin: generated data, which is not the real data set."""
        shape = self.shape
        size = f"{shape.users} users, {shape.items} items, {shape.ratings} ratings"
        return Generated(size, home=f"generated in the published shape of {self.name}, for speed work only")

    def view(self, rng: np.random.Generator) -> Ratings:
        """Ratings of this shape, with features if asked for."""
        shape = self.shape
        indptr = np.concatenate([[0], np.cumsum(rng.permutation(_activity(shape)))])
        weights = _weights(rng, shape)
        ensured = _ensured(rng, indptr, weights) if shape == SHAPES[self.name] else np.empty(0, np.int64)
        features = _features(rng, shape) if self.features else None
        tastes = Tastes.drawn(rng, shape, features)
        items, values = Pile(np.int32), Pile(np.float64)
        scale = None
        for first, _, keys in draw_sets(rng, np.diff(indptr), Urn.of(weights), ensured):
            users, drawn = np.divmod(keys, shape.items)
            scores = tastes.scores(rng, first + users, drawn)
            scale = scale or Scale.of(shape, scores)  # users are in random order, so the first block is representative
            items.add(drawn)
            values.add(scale.shown(scores))
        return Ratings(indptr, sealed(items.array()), sealed(values.array()), shape.items, features)


@dataclass(frozen=True, eq=False)
class Tastes:
    """The terms of a score without noise: an offset per user, a quality per item, and low-rank factors."""

    offsets: Floats
    qualities: Floats
    left: Floats
    right: Floats

    @classmethod
    def drawn(cls, rng: np.random.Generator, shape: Shape, features: scipy.sparse.csr_array | None) -> "Tastes":
        """Normally distributed terms; if items have features, an item's factors are sums of its features' factors."""
        offsets = np.sqrt(USERS) * rng.standard_normal(shape.users)
        qualities = np.sqrt(ITEMS) * rng.standard_normal(shape.items)
        left = np.sqrt(TASTES / RANK) * rng.standard_normal((RANK, shape.users))
        if features is None:
            return cls(offsets, qualities, left.T, rng.standard_normal((RANK, shape.items)).T)
        sums = features @ rng.standard_normal((shape.features, RANK))
        right = sums / np.sqrt(np.diff(features.indptr))[:, None]
        return cls(offsets, qualities, left.T, np.asfortranarray(right))

    def scores(self, rng: np.random.Generator, users: Ints, items: Ints) -> Floats:
        """The scores of these pairs with noise, with a variance of about 1."""
        noise = np.sqrt(1 - USERS - ITEMS - TASTES) * rng.standard_normal(len(users))
        return np.asarray(
            self.offsets[users] + self.qualities[items] + inner(self.left, self.right, users, items) + noise
        )


@dataclass(frozen=True, eq=False)
class Scale:
    """How a score becomes a rating: a level, a value with the published quantiles, or the score's exponential."""

    shape: Shape
    knots: Floats  # scores at the borders between levels, or at the quantiles

    @classmethod
    def of(cls, shape: Shape, scores: Floats) -> "Scale":
        """The scale that gives these scores the published distribution of ratings."""
        if shape.levels is not None:
            shares = np.cumsum(list(shape.levels.values()))
            return cls(shape, np.quantile(scores, shares[:-1] / shares[-1]))
        return cls(shape, np.quantile(scores, np.linspace(0, 1, len(shape.quantiles or ()))))

    def shown(self, scores: Floats) -> Floats:
        """The ratings for these scores."""
        if self.shape.levels is not None:
            return np.array(list(self.shape.levels))[np.searchsorted(self.knots, scores)]
        if self.shape.quantiles is not None:
            return np.round(np.interp(scores, self.knots, self.shape.quantiles) * 20) / 20  # in steps of 0.05
        return np.exp(scores)


def _activity(shape: Shape) -> Ints:
    """The number of ratings of each user, ascending: quantiles of a log-normal, scaled to the exact total."""
    centre, spread = shape.activity
    above = ndtr((centre - np.log(shape.least)) / spread)  # probability mass above the smallest number
    ranks = (np.arange(shape.users) + 0.5) / shape.users
    parts = np.maximum(np.exp(centre - spread * ndtri(above * (1 - ranks))) - shape.least, 0)  # may round below
    extras = _poured(parts, shape.ratings - shape.least * shape.users, shape.most - shape.least)
    counts = np.floor(extras).astype(np.int64)
    lacking = shape.ratings - shape.least * shape.users - counts.sum()
    counts[np.argsort(counts - extras, kind="stable")[:lacking]] += 1  # the largest remainders are rounded up
    return shape.least + counts


def _poured(parts: Floats, total: int, room: int) -> Floats:
    """The total divided in proportion to the parts, with no share above `room`; the excess goes to other shares."""
    shares, full = np.zeros(len(parts)), np.zeros(len(parts), bool)
    while True:  # each round fills at least one share, or is the last
        shares[full] = room
        if full.all() or total <= room * full.sum():
            return shares
        shares[~full] = parts[~full] * ((total - room * full.sum()) / parts[~full].sum())
        if not (shares > room).any():
            return shares
        full |= shares > room


def _weights(rng: np.random.Generator, shape: Shape) -> Floats:
    """The sampling weight of each item: Zipf-Mandelbrot weights in random order, zero for items without ratings."""
    weights = np.zeros(shape.items)
    weights[rng.permutation(shape.items)[: shape.rated]] = _zipf(shape.rated, *shape.popularity)
    return weights


def _zipf(size: int, exponent: float, shift: float) -> Floats:
    """The weights (rank + shift)^-exponent for ranks from 1 to size."""
    return np.asarray((np.arange(1, size + 1) + shift) ** -exponent)


def _ensured(rng: np.random.Generator, indptr: Ints, weights: Floats) -> Ints:
    """A key for one rating of every rated item, with users drawn in proportion to their numbers of ratings."""
    items = np.flatnonzero(weights)
    rows = rng.choice(indptr[-1], len(items), replace=False)
    users = np.searchsorted(indptr, rows, side="right") - 1
    return np.sort(users * len(weights) + items)


def _features(rng: np.random.Generator, shape: Shape) -> scipy.sparse.csr_array:
    """A sparse 0/1 feature matrix with a row per item; some features are frequent, most are rare."""
    counts = np.minimum(1 + rng.poisson(shape.per_item - 1, shape.items), shape.features)
    urn = Urn.of(rng.permutation(_zipf(shape.features, *_WORDS)))
    blocks = [keys % shape.features for _, _, keys in draw_sets(rng, counts, urn, np.empty(0, np.int64))]
    columns, indptr = np.concatenate(blocks), np.concatenate([[0], np.cumsum(counts)])
    return scipy.sparse.csr_array((np.ones(len(columns)), columns, indptr), shape=(shape.items, shape.features))
