"""A user's own votes as a data set: `votes:PATH`, any file that `rankbench rank` reads, with judges as users."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.core.contract import Int32s
from rankbench.core.errors import UserError
from rankbench.data.sources.own_files import OwnSource
from rankbench.data.tables.fields import Ids, is_padded
from rankbench.data.views import Comparisons
from rankbench.leaderboards.sources.reading import Wanted, votes_of
from rankbench.leaderboards.votes import LEFT, TIE, Names, Votes

_MOST = 2**31 - 1  # comparisons


@dataclass(frozen=True)
class OwnVotes(OwnSource):
    """A file of comparisons or rankings, as `rankbench rank` reads it; each judge is a user who has preferences.

    It is CSV, Parquet or JSON with the columns winner and loser, or left, right and winner, or ranking (`a > b = c`),
    or item and rank, and perhaps judge and count, by these or other usual names; or a file of PrefLib (soc, soi, toc,
    toi), in which each ranking has a judge of its own. Say which column is which where names do not:
    votes:PATH[winner=chosen,judge=worker]. Without a judge all votes are one user's.

    Ties are left out. The comparisons of one ranking stay together in splits; so do those of one judge with the same
    value in the column `together`, such as the question. `features` is a file with an item and its numbers on each
    line, or .npy, .npz (with `ids`) or .parquet.
    """

    path: str
    features: str | None = None
    together: str | None = None
    judge: str | None = None
    winner: str | None = None
    loser: str | None = None
    left: str | None = None
    right: str | None = None
    ranking: str | None = None
    item: str | None = None
    rank: str | None = None
    count: str | None = None
    kind: ClassVar[str] = "votes"
    version: ClassVar[int] = 1

    def votes(self) -> Votes:
        """All votes, ties included."""
        columns = self.columns("judge", "winner", "loser", "left", "right", "ranking", "item", "rank", "count")
        return votes_of(self._files().paths[0], columns, Wanted(self.together or ""))

    def _without_features(self) -> Comparisons:
        return comparisons_of(self.votes(), str(self._files().paths[0]))


def comparisons_of(votes: Votes, called: str) -> Comparisons:
    """The comparisons of votes that are no ties, with the judges as users; one that counts n times is there n times."""
    if (votes.weights != 1).any():
        raise UserError(f"{called} has weights, which solvers do not take", remedy="drop the column of weights")
    kept = votes.outcome != TIE
    if not kept.any():
        raise UserError(f"{called} holds nothing but ties")
    if votes.counts[kept].sum() > _MOST:
        raise UserError(f"{called} counts over {_MOST:,} comparisons")
    rows = np.repeat(np.flatnonzero(kept), votes.counts[kept].astype(np.int64))
    won = votes.outcome[rows] == LEFT
    left, right = votes.left[rows], votes.right[rows]
    item_ids, places = _ids(votes.items)
    judges = votes.judges
    user_ids, users = (None, np.zeros(1, np.int64)) if judges is None else _ids(judges.names)
    whose = np.zeros(len(rows), np.int64) if judges is None else users[judges.codes[rows]]
    return Comparisons.from_triples(
        whose, places[np.where(won, left, right)], places[np.where(won, right, left)], len(users), len(item_ids),
        groups=_together(votes, rows), user_ids=user_ids, item_ids=item_ids,
    )  # fmt: skip


def _together(votes: Votes, rows: np.ndarray) -> Int32s | None:
    """The ranking, or the category, of each of these comparisons."""
    if votes.rankings is not None:
        return np.asarray(votes.rankings.of_pairs[rows], np.int32)
    found: Int32s | None = None if votes.categories is None else votes.categories.codes[rows]
    return found


def _ids(names: Names) -> tuple[Ids, np.ndarray]:
    """The ids in ascending order, and the place of each name; whole numbers without leading zeros are numbers."""
    texts: Ids = names.astype(str)
    numbers = all(text.isdecimal() and len(text) < 19 for text in texts.tolist()) and not is_padded(texts)
    ids, places = np.unique(texts.astype(np.int64) if numbers else texts, return_inverse=True)
    return ids, places
