"""Data in the published shape of a set that cannot be had: to measure seconds and memory, and nothing else."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import scipy.sparse
from scipy.special import ndtr, ndtri

from rankbench.arrays import sealed
from rankbench.contract import Floats, Ints
from rankbench.data.origins import Generated
from rankbench.data.synthetic.drawing import Count, inner
from rankbench.data.synthetic.sampling import Urn, draw_sets
from rankbench.data.synthetic.shapes import SHAPES, Name, Shape
from rankbench.data.views import Ratings
from rankbench.errors import UserError
from rankbench.names import Limits, check

RANK = 5
USERS, ITEMS, TASTES = 0.11, 0.23, 0.10  # shares of the variance of a score; the rest is noise
_WORDS = (1.0, 2.7)  # s and q of the popularity of features: Mandelbrot's law of words


@dataclass(frozen=True)
class Lookalike:
    """Ratings in the published shape of a set that cannot be had, FOR SPEED WORK ONLY: users, items, ratings, skew.

    Users, items and ratings are exactly as many as published, no user rates an item twice, none has fewer
    ratings than anybody in the set or more than its most active one, and every item that somebody rated is
    rated. Users' numbers of ratings follow a log-normal law above the least, items are drawn by
    Zipf-Mandelbrot weights without repeats (successive sampling); `shapes` has the parameters of each set and
    what they were fitted to.

    A score is a user's offset, an item's quality, u_i^T v_j of rank 5 and noise, with shares 0.11, 0.23, 0.10
    and 0.56 of the variance. The first two are measured on ML-1M (means by turns, shrunk by 5 ratings), where
    a factorisation of rank 6 explains 0.065 of the variance of held-out ratings, and more must be there.
    Scores become levels as frequent as published. In the shape of ML-1M 0.27 of the users' pairs tie by this
    law, and 0.295 of its own.

    `ratings` or `share` make a smaller one of the same shape: fewer users, each as active as before, among all
    the items. `features=true` adds sparse item features in the published number, whose sums then make the
    items' tastes.
    """

    name: Name
    share: Annotated[float, Limits(above=0, high=1)] = 1.0
    ratings: Count | None = None
    features: bool = False
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)
        whole = SHAPES[self.name]
        if self.ratings is not None and self.share != 1:
            raise UserError(f"ratings={self.ratings} and share={self.share} say the same twice: leave one out")
        if self.ratings is not None and self.ratings > whole.ratings:
            raise UserError(f"ratings={self.ratings} is out of range: {self.name} has {whole.ratings}")
        if self.features and not whole.features:
            known = ", ".join(name for name, shape in SHAPES.items() if shape.features)
            raise UserError(f"features=true: none are published for {self.name}, only for {known}")

    @property
    def shape(self) -> Shape:
        """What is to be made."""
        whole = SHAPES[self.name]
        return whole.smaller(self.ratings or max(1, round(self.share * whole.ratings)))

    @property
    def origin(self) -> Generated:
        """Generated, and not the set that it looks like."""
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
        items, values = np.empty(shape.ratings, np.int32), np.empty(shape.ratings)
        scale = None
        for first, end, keys in draw_sets(rng, np.diff(indptr), Urn.of(weights), ensured):
            rows = slice(indptr[first], indptr[end])
            items[rows] = keys % shape.items
            scores = tastes.scores(rng, first + keys // shape.items, items[rows])
            scale = scale or Scale.of(shape, scores)  # users come in random order: the first speak for all
            values[rows] = scale.shown(scores)
        return Ratings(indptr, sealed(items), sealed(values), shape.items, features)


@dataclass(frozen=True, eq=False)
class Tastes:
    """What decides a score before the noise: an offset per user, a quality per item, and low rank."""

    offsets: Floats
    qualities: Floats
    left: Floats
    right: Floats

    @classmethod
    def drawn(cls, rng: np.random.Generator, shape: Shape, features: scipy.sparse.csr_array | None) -> "Tastes":
        """Normal tastes; where items have features, the sums of their features' tastes."""
        offsets = np.sqrt(USERS) * rng.standard_normal(shape.users)
        qualities = np.sqrt(ITEMS) * rng.standard_normal(shape.items)
        left = np.sqrt(TASTES / RANK) * rng.standard_normal((RANK, shape.users))
        if features is None:
            return cls(offsets, qualities, left.T, rng.standard_normal((RANK, shape.items)).T)
        sums = features @ rng.standard_normal((shape.features, RANK))
        right = sums / np.sqrt(np.diff(features.indptr))[:, None]
        return cls(offsets, qualities, left.T, np.asfortranarray(right))

    def scores(self, rng: np.random.Generator, users: Ints, items: Ints) -> Floats:
        """Scores of these pairs, noise and all, of about unit variance."""
        noise = np.sqrt(1 - USERS - ITEMS - TASTES) * rng.standard_normal(len(users))
        return np.asarray(
            self.offsets[users] + self.qualities[items] + inner(self.left, self.right, users, items) + noise
        )


@dataclass(frozen=True, eq=False)
class Scale:
    """How a score is shown: as a level, as a value with the published quantiles, or as its exponential."""

    shape: Shape
    knots: Floats  # scores between two levels, or at the quantiles

    @classmethod
    def of(cls, shape: Shape, scores: Floats) -> "Scale":
        """The scale on which these scores are spread as is known of the set."""
        if shape.levels is not None:
            shares = np.cumsum(list(shape.levels.values()))
            return cls(shape, np.quantile(scores, shares[:-1] / shares[-1]))
        return cls(shape, np.quantile(scores, np.linspace(0, 1, len(shape.quantiles or ()))))

    def shown(self, scores: Floats) -> Floats:
        """The ratings that these scores become."""
        if self.shape.levels is not None:
            return np.array(list(self.shape.levels))[np.searchsorted(self.knots, scores)]
        if self.shape.quantiles is not None:
            return np.round(np.interp(scores, self.knots, self.shape.quantiles) * 20) / 20  # in steps of 0.05
        return np.exp(scores)


def _activity(shape: Shape) -> Ints:
    """How many ratings each user gives, ascending: the quantiles of the law, scaled to the exact sum."""
    centre, spread = shape.activity
    above = ndtr((centre - np.log(shape.least)) / spread)  # the mass of the law above the least
    ranks = (np.arange(shape.users) + 0.5) / shape.users
    parts = np.maximum(np.exp(centre - spread * ndtri(above * (1 - ranks))) - shape.least, 0)  # may round below
    extras = _poured(parts, shape.ratings - shape.least * shape.users, shape.most - shape.least)
    counts = np.floor(extras).astype(np.int64)
    lacking = shape.ratings - shape.least * shape.users - counts.sum()
    counts[np.argsort(counts - extras, kind="stable")[:lacking]] += 1  # the greatest remainders round up
    return shape.least + counts


def _poured(parts: Floats, total: int, room: int) -> Floats:
    """The total in proportion to the parts, no share above the room: what overflows goes to the others."""
    shares, full = np.zeros(len(parts)), np.zeros(len(parts), bool)
    while True:  # each round fills somebody, or is the last
        shares[full] = room
        if full.all() or total <= room * full.sum():
            return shares
        shares[~full] = parts[~full] * ((total - room * full.sum()) / parts[~full].sum())
        if not (shares > room).any():
            return shares
        full |= shares > room


def _weights(rng: np.random.Generator, shape: Shape) -> Floats:
    """The weight by which each item is drawn: Zipf-Mandelbrot's over random items, zero for those never rated."""
    weights = np.zeros(shape.items)
    weights[rng.permutation(shape.items)[: shape.rated]] = _zipf(shape.rated, *shape.popularity)
    return weights


def _zipf(size: int, exponent: float, shift: float) -> Floats:
    """(rank + shift)^-exponent for ranks from 1."""
    return np.asarray((np.arange(1, size + 1) + shift) ** -exponent)


def _ensured(rng: np.random.Generator, indptr: Ints, weights: Floats) -> Ints:
    """A rating of every item that is rated at all, by users drawn in proportion to their ratings; as keys."""
    items = np.flatnonzero(weights)
    rows = rng.choice(indptr[-1], len(items), replace=False)
    users = np.searchsorted(indptr, rows, side="right") - 1
    return np.sort(users * len(weights) + items)


def _features(rng: np.random.Generator, shape: Shape) -> scipy.sparse.csr_array:
    """A sparse matrix of ones with a row per item: some features are in many rows, most in few."""
    counts = np.minimum(1 + rng.poisson(shape.per_item - 1, shape.items), shape.features)
    urn = Urn.of(rng.permutation(_zipf(shape.features, *_WORDS)))
    blocks = [keys % shape.features for _, _, keys in draw_sets(rng, counts, urn, np.empty(0, np.int64))]
    columns, indptr = np.concatenate(blocks), np.concatenate([[0], np.cumsum(counts)])
    return scipy.sparse.csr_array((np.ones(len(columns)), columns, indptr), shape=(shape.items, shape.features))
