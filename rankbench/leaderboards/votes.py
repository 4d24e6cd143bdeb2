"""What judges said: comparisons of two items, each won by the left one, by the right one, or tied; and rankings."""

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from rankbench.core.contract import Flags, Floats, Int8s, Int32s, Int64s

Names = npt.NDArray[np.object_]
LEFT, RIGHT, TIE = range(3)  # what may come of a comparison, as in generated arenas


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each row, such as its judge or its category: the groups' names, and the number of each row's."""

    names: Names
    codes: Int32s

    @property
    def sizes(self) -> Int64s:
        """The number of rows of each group."""
        return np.bincount(self.codes, minlength=len(self.names))

    def take(self, rows: Flags) -> "Groups":
        """The groups of some rows; groups that are left without a row go."""
        kept, codes = np.unique(self.codes[rows], return_inverse=True)
        return Groups(self.names[kept], codes.astype(np.int32))


@dataclass(frozen=True, eq=False)
class Rankings:
    """Orders of some of the items, the best first; `indptr` says where each begins in `members`."""

    indptr: Int64s
    members: Int32s
    of_pairs: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))  # the ranking of each comparison
    tied: bool = False  # whether some of them had ties, which `members` cannot say

    @property
    def lengths(self) -> Int64s:
        """The number of items in each."""
        return np.diff(self.indptr)


@dataclass(frozen=True, eq=False)
class Votes:
    """Comparisons of two items, with what came of each, who judged, and how often it was said.

    `counts` says for how many equal comparisons a row stands, `weights` how much one of them counts. Comparisons that
    follow from rankings have the rankings beside, of which each is a judge of its own unless it names one.
    """

    items: Names
    left: Int32s
    right: Int32s
    outcome: Int8s
    counts: Floats
    weights: Floats
    judges: Groups | None = None
    covariates: Floats | None = None  # a column for each property in which the two sides differ
    covariate_names: tuple[str, ...] = ()
    categories: Groups | None = None
    rankings: Rankings | None = None
    ordered: bool = True  # whether left and right mean something, such as the place on the screen

    def __len__(self) -> int:
        return len(self.left)

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(self.items)

    @property
    def amounts(self) -> Floats:
        """What each row counts."""
        return self.counts * self.weights

    def where(self, rows: Flags) -> "Votes":
        """Some of the comparisons, with the items that occur in them; rankings are left out."""
        kept, codes = np.unique(np.concatenate([self.left[rows], self.right[rows]]), return_inverse=True)
        left, right = np.split(codes.astype(np.int32), 2)
        return replace(
            self,
            items=self.items[kept],
            left=left,
            right=right,
            outcome=self.outcome[rows],
            counts=self.counts[rows],
            weights=self.weights[rows],
            judges=None if self.judges is None else self.judges.take(rows),
            covariates=None if self.covariates is None else self.covariates[rows],
            categories=None if self.categories is None else self.categories.take(rows),
            rankings=None,
        )

    def by_category(self) -> dict[str, "Votes"]:
        """The comparisons of each category, in the order of their names."""
        found = self.categories
        if found is None:
            return {}
        whole = replace(self, categories=None)
        return {str(found.names[code]): whole.where(found.codes == code) for code in np.argsort(found.names)}


def from_rankings(items: Names, rankings: Rankings, levels: Int32s, judges: Groups | None) -> Votes:
    """The comparisons that follow from rankings: every two items of one, tied where their levels are equal.

    `levels` are the ranks of the members, which never fall within a ranking; `judges` are those of the rankings.
    """
    left, right, owners = _pairs_of(rankings)
    tied = levels[left] == levels[right]
    own = np.arange(len(rankings.lengths), dtype=np.int32)
    judging = judges or Groups(own.astype(str).astype(object), own)
    return Votes(
        items,
        rankings.members[left],
        rankings.members[right],
        np.where(tied, TIE, LEFT).astype(np.int8),
        np.ones(len(left)),
        np.ones(len(left)),
        Groups(judging.names, judging.codes[owners]),
        rankings=replace(rankings, of_pairs=owners, tied=bool(tied.any())),
        ordered=False,
    )


def _pairs_of(rankings: Rankings) -> tuple[Int64s, Int64s, Int64s]:
    """The places of every two members of one ranking, the first one before the second, and which ranking it is."""
    found = []
    for length in np.unique(rankings.lengths):
        owners = np.flatnonzero(rankings.lengths == length)
        one, other = np.triu_indices(length, 1)
        starts = rankings.indptr[owners][:, None]
        found.append(((starts + one).ravel(), (starts + other).ravel(), np.repeat(owners, len(one))))
    left, right, whose = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return left, right, whose
