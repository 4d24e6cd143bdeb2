"""Models without anything learnt of a user: a score for each item, and random scores."""

from dataclasses import dataclass

import numpy as np

from rankbench.arrays import soundness
from rankbench.arrays.mixing import mixed
from rankbench.core.brief import brief, brief_html
from rankbench.core.contract import Floats, Ints
from rankbench.core.errors import UserError
from rankbench.models.asking import checked_pairs, checked_users


@dataclass(frozen=True, eq=False)
class ItemScores:
    """One score per item, the same for every user."""

    scores: Floats

    __repr__ = brief
    _repr_html_ = brief_html

    def score(self, users: Ints, items: Ints) -> Floats:
        """The score of the item in each pair."""
        return self.scores[checked_pairs(users, items, None, len(self.scores))[1]]

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the item scores, repeated for each user."""
        users, threads = checked_users(users, None, threads)
        return np.broadcast_to(self.scores, (len(users), len(self.scores)))

    def validate(self) -> None:
        """Raise an error unless the scores are a vector of numbers."""
        soundness.numbers("scores", self.scores, None)


@dataclass(frozen=True, eq=False)
class HashedScores:
    """A random score from 0 to 1 for each pair of user and item, computed from a seed and the pair, and not stored."""

    seed: int
    n_users: int
    n_items: int

    __repr__ = brief
    _repr_html_ = brief_html

    def score(self, users: Ints, items: Ints) -> Floats:
        """The random score of each pair, the same whenever it is asked for."""
        users, items = checked_pairs(users, items, self.n_users, self.n_items)
        return self._drawn(users, items)

    def score_all(self, users: Ints, threads: int = 1) -> Floats:
        """users x items: the random scores of all items for these users."""
        users, threads = checked_users(users, self.n_users, threads)
        return self._drawn(users[:, None], np.arange(self.n_items)[None, :])

    def validate(self) -> None:
        """Raise an error unless the seed and the sizes are whole numbers within their ranges."""
        limits = {"seed": 2**63, "n_users": 2**31, "n_items": 2**31}
        for name, high in limits.items():
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 <= value < high:
                raise UserError(f"{name}={value} is out of range: must be a whole number from 0 to {high - 1}")

    def _drawn(self, users: Ints, items: Ints) -> Floats:
        """The first 53 bits of the mixed number of each pair, as a fraction."""
        pairs = users.astype(np.uint64) * np.uint64(self.n_items) + items.astype(np.uint64)
        bits = mixed(np.uint64(self.seed) + mixed(pairs + np.uint64(1))) >> np.uint64(11)
        return bits.astype(np.float64) * 2.0**-53
