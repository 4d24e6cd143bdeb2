"""Splits: the papers' protocols for what to train on and what to hold out, each with its own name.

A split is an artefact: its hash covers every byte of both parts, stands in every result, and
depends neither on the order of rows in a file nor on the number of threads.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Protocol

import numpy as np

from rankbench.arrays import fingerprint
from rankbench.contract import Ints
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.errors import UserError
from rankbench.specs import Catalogue, Limits, build, canonical, check, parse
from rankbench.streams import stream

SPLITS = Catalogue(
    "split",
    {
        "n-per-user": "rankbench.data.splits:NPerUser",
        "half-per-user": "rankbench.data.splits:HalfPerUser",
        "entries": "rankbench.data.splits:Entries",
        "cold-items": "rankbench.data.splits:ColdItems",
    },
    "rankbench.splits",
    "rankbench list splits",
    needs=("version", "cut"),
)


Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class Split:
    """A training part and a held-out part over the same users and items."""

    train: Any
    test: Any

    @property
    def hash(self) -> str:
        """SHA-256 over the content of both parts."""
        return fingerprint(self.train, self.test)


class SplitProtocol(Protocol):
    """A way to split: a frozen record of settings that cuts a view in two."""

    version: ClassVar[int]

    def cut(self, view: Any, rng: np.random.Generator) -> Split:
        """The two parts, drawn by `rng`."""
        ...


def split(view: View, protocol: str, *, seed: int = 0, repetition: int = 0, **settings: Any) -> Split:
    """Cut a view by a named protocol: `split(data, "n-per-user", n=50, seed=0)`."""
    spec = parse(protocol)
    record = build(SPLITS.find(spec.name), {**spec.settings, **settings}, spec.name)
    return cut(view, record, protocol, seed, repetition)


def cut(view: View, record: SplitProtocol, text: str, seed: int, repetition: int) -> Split:
    """The split that belongs to this name, seed and repetition; an empty part is an error."""
    name = canonical(text, record)
    parts = record.cut(view, stream(seed, "split", name, repetition))
    for part, kept in (("train", parts.train), ("test", parts.test)):
        if len(kept) == 0:
            raise UserError(f"the split {name} leaves nothing to {part} on: the data is too small for it")
    return parts


@dataclass(frozen=True)
class NPerUser:
    """Park et al. 2015: users with at least n + least ratings; n drawn at random train, the rest test."""

    n: Annotated[int, Limits(low=1)] = 20
    least: Annotated[int, Limits(low=1)] = 10
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)

    def cut(self, view: View, rng: np.random.Generator) -> Split:
        """n rows of each kept user against the others."""
        counts = np.diff(view.indptr)
        kept = np.repeat(counts >= self.n + self.least, counts)
        train = _places(view, rng) < self.n
        return _parts(view, kept & train, kept & ~train)


@dataclass(frozen=True)
class HalfPerUser:
    """Cortes et al. 2007: half of each reviewer's ratings train, half test.

    Reviewers have `least` to `most` ratings, `reviewers` of them are drawn. With `references` above
    zero, so many other users with `low` to `high` ratings become the item features: an item's vector is
    what they gave it, holes filled with that reference reviewer's median.
    """

    reviewers: Annotated[int, Limits(low=1)] = 300
    least: Annotated[int, Limits(low=2)] = 50
    most: Annotated[int, Limits(low=2)] = 300
    references: Annotated[int, Limits(low=0)] = 0
    low: Annotated[int, Limits(low=1)] = 20
    high: Annotated[int, Limits(low=1)] = 40
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)

    def cut(self, view: View, rng: np.random.Generator) -> Split:
        """Half of each drawn reviewer's rows against the other half (the odd one trains)."""
        ratings = _ratings(view, "half-per-user")
        counts = np.diff(ratings.indptr)
        reviewers = _draw(np.flatnonzero((counts >= self.least) & (counts <= self.most)), self.reviewers, rng)
        if self.references:
            others = np.setdiff1d(np.flatnonzero((counts >= self.low) & (counts <= self.high)), reviewers)
            features = _reference_features(ratings, _draw(others, self.references, rng))
            ratings = replace(ratings, item_features=features)
        kept = np.repeat(np.isin(np.arange(ratings.n_users), reviewers), counts)
        train = _places(ratings, rng) < np.repeat((counts + 1) // 2, counts)
        return _parts(ratings, kept & train, kept & ~train)


@dataclass(frozen=True)
class Entries:
    """Gunasekar et al. 2016: a fraction of all rows, drawn at random, tests; the rest trains."""

    test: Annotated[float, Limits(above=0, below=1)] = 0.2
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)

    def cut(self, view: View, rng: np.random.Generator) -> Split:
        """The rounded share of the rows against the others."""
        held_out = rng.permutation(len(view)) < round(self.test * len(view))
        return _parts(view, ~held_out, held_out)


@dataclass(frozen=True)
class ColdItems:
    """A fraction of the items is never trained on: all their ratings test."""

    test: Annotated[float, Limits(above=0, below=1)] = 0.2
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)

    def cut(self, view: View, rng: np.random.Generator) -> Split:
        """Ratings of warm items against ratings of cold ones."""
        ratings = _ratings(view, "cold-items")
        cold = rng.permutation(ratings.n_items) < round(self.test * ratings.n_items)
        held_out = cold[ratings.items]
        return _parts(ratings, ~held_out, held_out)


def _ratings(view: View, protocol: str) -> Ratings:
    if isinstance(view, Comparisons):
        raise UserError(f"the split {protocol} needs ratings, the data holds comparisons (use entries)")
    return view


def _parts(view: View, train: Mask, test: Mask) -> Split:
    return Split(view.take(np.flatnonzero(train)), view.take(np.flatnonzero(test)))


def _places(view: View, rng: np.random.Generator) -> Ints:
    """For every row its place in a random order of its user's rows."""
    order = np.lexsort((rng.random(len(view)), view.users))
    places = np.empty(len(view), np.int64)
    places[order] = np.arange(len(view)) - np.repeat(view.indptr[:-1], np.diff(view.indptr))
    return places


def _draw(candidates: Ints, n: int, rng: np.random.Generator) -> Ints:
    """At most n of the candidates, ascending."""
    return np.sort(rng.permutation(candidates)[:n])


def _reference_features(ratings: Ratings, references: Ints) -> np.ndarray[Any, np.dtype[np.float64]]:
    """items x references: what each gave the item, or that reviewer's median."""
    if len(references) == 0:
        raise UserError("half-per-user finds no reference reviewer with that many ratings: widen low..high")
    features = np.empty((ratings.n_items, len(references)))
    for column, user in enumerate(references):
        rows = slice(ratings.indptr[user], ratings.indptr[user + 1])
        features[:, column] = np.median(ratings.values[rows])
        features[ratings.items[rows], column] = ratings.values[rows]
    return features
