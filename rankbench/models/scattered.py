"""Models of factors whose users' vectors stay with the parts of a training set."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbench.arrays.npz import fingerprint_in_pieces
from rankbench.core.brief import brief
from rankbench.core.contract import Executor, Floats, Int64s, Ints, Sums
from rankbench.models.asking import checked_pairs, checked_users, products_with_all
from rankbench.models.factors import Factors, FeatureFactors


@dataclass(frozen=True, eq=False)
class ScatteredUsers:
    """The users' vectors of a model, which stay with the parts of a training set, wherever an executor keeps these."""

    executor: Executor
    edges: Int64s  # part p has the users from edges[p] to edges[p + 1]
    vectors: Callable[[Any], Floats]  # those of a part's users
    rank: int

    def __repr__(self) -> str:
        return f"ScatteredUsers({len(self)} x {self.rank} in {len(self.edges) - 1} parts)"

    def __len__(self) -> int:
        return int(self.edges[-1])

    def scores(self, items: Floats, users: Ints, asked: Ints) -> Floats:
        """u_user . v_item for each pair, computed where the user's vector is, given all items' vectors."""
        users, asked = checked_pairs(users, asked, len(self), len(items))
        own, out = self._by_part(users), np.empty(len(users))
        pairs = {part: (users[rows] - self.edges[part], asked[rows]) for part, rows in own.items()}
        found = self.executor.ask(_scores_of, pairs, self.vectors, items) if own else {}
        for part, rows in own.items():
            out[rows] = found[part]
        return out

    def rows(self, users: Ints) -> Floats:
        """The vectors of these users, brought to this process."""
        own, out = self._by_part(users), np.empty((len(users), self.rank))
        asked = {part: (users[rows] - self.edges[part],) for part, rows in own.items()}
        found = self.executor.ask(_rows_of, asked, self.vectors) if own else {}
        for part, rows in own.items():
            out[rows] = found[part]
        return out

    def pieces(self) -> Iterator[Floats]:
        """The vectors of one part after another."""
        for part in range(len(self.edges) - 1):
            yield self.executor.ask(_all_of, {part: ()}, self.vectors)[part]

    def gathered(self) -> Floats:
        """The vectors of all users in this process; those of a single part as they are."""
        pieces = list(self.pieces())
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def mean(self) -> Floats:
        """The mean vector of all users."""
        total: Floats = self.executor.total(_sum_of, self.vectors)[0]
        return total / len(self)

    def _by_part(self, users: Ints) -> dict[int, Ints]:
        """Which of the asked users each part has, for the parts that have any."""
        part_of = np.searchsorted(self.edges, users, side="right") - 1
        return {int(part): np.flatnonzero(part_of == part) for part in np.unique(part_of)}


@dataclass(frozen=True, eq=False, repr=False)
class _Scattered(ABC):
    """A model of products of vectors whose users' vectors stay with the parts of a training set."""

    users: ScatteredUsers

    __repr__ = brief

    def score(self, users: Ints, items: Ints) -> Floats:
        """u_user . v_item for each pair; only scores travel."""
        return self.users.scores(self._items(1), users, items)

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the scores of all items for these users, whose vectors travel."""
        users, threads = checked_users(users, len(self.users), threads)
        return products_with_all(self.users.rows(users), np.arange(len(users)), self._items(threads), threads)

    def gathered(self) -> Factors | FeatureFactors:
        """The plain model, in this process."""
        return self._with(self.users.gathered())

    def digest(self) -> str:
        """The hash of the plain model's arrays."""
        bare = self._with(np.empty((0, self.users.rank)))
        return fingerprint_in_pieces(bare, "users", len(self.users), self.users.pieces())

    @abstractmethod
    def _with(self, users: Floats) -> Factors | FeatureFactors:
        """The plain model with these vectors of users."""

    @abstractmethod
    def _items(self, threads: int) -> Floats:
        """The vector of each item."""


@dataclass(frozen=True, eq=False, repr=False)
class ScatteredFactors(_Scattered):
    """`Factors` whose users' vectors stay with the parts of a training set."""

    items: Floats

    def _with(self, users: Floats) -> Factors:
        return Factors(users, self.items)

    def _items(self, threads: int) -> Floats:
        return self.items


@dataclass(frozen=True, eq=False, repr=False)
class ScatteredFeatureFactors(_Scattered):
    """`FeatureFactors` whose users' weights stay with the parts of a training set."""

    basis: Floats
    features: Any

    def ranking_functions(self) -> tuple[Floats, Floats]:
        """U, and the mean over users of the weight of each column."""
        return self.basis, self.users.mean()

    def _with(self, users: Floats) -> FeatureFactors:
        return FeatureFactors(users, self.basis, self.features)

    def _items(self, threads: int) -> Floats:
        """The value of each function for each item."""
        plain = self._with(np.empty((0, self.users.rank)))
        return plain.items(np.arange(self.features.shape[0]), threads)


def _scores_of(part: Any, users: Ints, asked: Ints, vectors: Callable[[Any], Floats], items: Floats) -> Floats:
    return Factors(vectors(part), items).score(users, asked)


def _rows_of(part: Any, users: Ints, vectors: Callable[[Any], Floats]) -> Floats:
    return vectors(part)[users]


def _all_of(part: Any, vectors: Callable[[Any], Floats]) -> Floats:
    return np.ascontiguousarray(vectors(part))


def _sum_of(part: Any, vectors: Callable[[Any], Floats]) -> Sums:
    return (vectors(part).sum(axis=0),)
