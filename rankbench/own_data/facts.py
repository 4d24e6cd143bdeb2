"""What is in a data set: the counts and values from which a split, metrics and solvers are chosen."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from rankbench.arrays.distinct import distinct
from rankbench.core.contract import Int64s
from rankbench.data.views import Comparisons, View

_FEW = 0.05  # the share of users with an order below which ratings count as positives

Kind = Literal["ratings", "positives", "comparisons"]


@dataclass(frozen=True, eq=False)
class Facts:
    """The facts about a data set that decide how solvers are compared on it.

    `positives` are ratings without an order: nearly every user has given all of their items the same value, as with
    clicks.
    """

    kind: Kind
    users: int
    items: int
    counts: Int64s  # rows of each user
    low: float  # the lowest and the highest rating; 0 where there are no ratings
    high: float
    levels: int  # distinct ratings
    constant: int  # users with at least two rows who give all of them the same value
    features: bool
    cyclic: bool = False  # whether a user's comparisons contradict each other, as a > b > c > a

    @classmethod
    def of(cls, view: View) -> "Facts":
        """The facts about a view."""
        counts = np.diff(view.indptr)
        sizes = (view.n_users, view.n_items, counts)
        features = view.item_features is not None
        if isinstance(view, Comparisons):
            return cls("comparisons", *sizes, 0.0, 0.0, 0, 0, features, _has_cycle(view))
        with_order = view.has_order
        constant = int(((counts > 1) & ~with_order).sum())
        low, high = float(view.values.min(initial=np.inf)), float(view.values.max(initial=-np.inf))
        levels, several = len(distinct(view.values)), int((counts > 1).sum())
        without_order = levels <= 1 or (several > 0 and with_order.sum() < _FEW * several)
        kind: Kind = "positives" if without_order else "ratings"
        return cls(kind, *sizes, low, high, levels, constant, features)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.counts.sum())

    @property
    def pairs(self) -> int:
        """How many pairs of rows of a user there are, which is more than there are comparisons if some are ties."""
        return int((self.counts * (self.counts - 1) // 2).sum())

    @property
    def typical(self) -> int:
        """The median number of rows of a user, at least 1."""
        return max(1, int(np.median(self.counts))) if self.users else 1

    def share_with(self, least: int) -> float:
        """The share of the users who have at least this many rows."""
        return float((self.counts >= least).mean()) if self.users else 0.0

    @property
    def text(self) -> str:
        """The facts in one line."""
        rows = {"ratings": "ratings", "positives": "rows without an order", "comparisons": "comparisons"}[self.kind]
        scale = f", values from {self.low:g} to {self.high:g}" if self.kind == "ratings" else ""
        spread = f"{self.counts.min(initial=self.rows)} to {self.counts.max(initial=0)} a user, median {self.typical}"
        return f"{self.users:,} users, {self.items:,} items, {self.rows:,} {rows}{scale}; {spread}"


def _has_cycle(view: Comparisons) -> bool:
    """Whether some users' comparisons have a cycle: then some items of a user can be reached from each other."""
    users = view.users.astype(np.int64) * view.n_items
    nodes, places = np.unique(np.concatenate([users + view.better, users + view.worse]), return_inverse=True)
    better, worse = np.split(places, 2)
    graph = scipy.sparse.csr_array((np.ones(len(view), np.int8), (better, worse)), shape=(len(nodes),) * 2)
    parts, _ = connected_components(graph, connection="strong")
    return bool(parts < len(nodes))
