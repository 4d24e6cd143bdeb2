"""Which items the comparisons can hold against each other, and which of them nothing bounds from above or below."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from rankbench.core.contract import Flags, Floats, Int64s
from rankbench.leaderboards.votes import Names

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class Connections:
    """The groups of items that comparisons connect, and the items that never lost or never won."""

    parts: Int64s  # the group of each item
    n_parts: int
    bounded: bool  # whether scores of maximal likelihood exist
    loose: Flags  # the items that no way of wins leads to, or from, and all if no two items have won back and forth
    undefeated: Int64s
    winless: Int64s

    @classmethod
    def of(cls, wins: Floats) -> "Connections":
        """The connections in a table of wins, ties being half a win of each.

        Finite scores exist where from each item a way of wins leads to each other one (L. R. Ford, 1957).
        """
        graph = scipy.sparse.csr_array(wins > 0)
        n_parts, parts = connected_components(graph, directed=True, connection="weak")
        n_strong, strong = connected_components(graph, directed=True, connection="strong")
        sizes = np.bincount(strong)
        loose = (strong != sizes.argmax()) | (sizes.max() == 1)
        won, lost = wins.sum(axis=1) > 0, wins.sum(axis=0) > 0
        return cls(parts, int(n_parts), n_strong == n_parts == 1, loose, np.flatnonzero(won & ~lost),
                   np.flatnonzero(lost & ~won))  # fmt: skip

    def remarks(self, items: Names) -> Iterator[str]:
        """What a reader has to know, in sentences."""
        if self.n_parts > 1:
            sizes = np.bincount(self.parts)
            largest = int(sizes.argmax())
            others = items[self.parts != largest]
            yield (
                f"{self.n_parts} groups of items are not connected by any comparison, so that ranks across them are "
                f"a guess; outside the largest group: {_listed(others)}"
            )
        for places, what in ((self.undefeated, "Never lost"), (self.winless, "Never won")):
            if len(places):
                yield f"{what}: {_listed(items[places])}"
        if not self.bounded and self.n_parts == 1 and not len(self.undefeated) and not len(self.winless):
            yield "Some items never lost to any of the others"


def _listed(names: Names) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(str, names[:_SHOWN])) + more
