"""Users and items in groups that travel: tasks that share neither, so that any number of threads may run them.

Items are cut into groups, and so are users. A task is a pair of item groups and a user group. The pairs of a
tournament's round share no item; while they last, the user groups travel from pair to pair as in a Latin
square, so that no two tasks at work share a user either.
"""

from dataclasses import dataclass

import numpy as np

from rankbench.contract import Floats, Ints
from rankbench.kernels import rotation as kernel
from rankbench.methods.schedules import latin_square, rounds, tasks


@dataclass(frozen=True, eq=False)
class Rotation:
    """The comparisons sorted by task, and which tasks may run side by side."""

    starts: Ints  # of each task's rows, and where the last one ends
    users: Ints
    better: Ints
    worse: Ints
    rounds: tuple[Ints, ...]  # tasks that share nothing, the longest first; those without a row left out

    def bound(self, threads: int) -> float:
        """The greatest speed-up by so many threads: a round takes as long as its longest task, or as an even share."""
        sizes = np.diff(self.starts)
        least = sum(max(sizes[together[0]], sizes[together].sum() / threads) for together in self.rounds)
        return float(len(self.users) / max(least, 1))

    def order(self, rng: np.random.Generator) -> tuple[Ints, Ints, Floats]:
        """The rounds in random order: where each starts, its tasks, and the rows visited before each task."""
        chosen = [self.rounds[number] for number in rng.permutation(len(self.rounds))]
        in_order = np.concatenate(chosen)
        starts = np.cumsum([0, *map(len, chosen)])
        before = np.concatenate([[0], np.cumsum(np.diff(self.starts)[in_order])[:-1]])
        return starts, in_order, before.astype(np.float64)


def rotation(indptr: Ints, better: Ints, worse: Ints, user_groups: Ints, item_groups: Ints, groups: int) -> Rotation:
    """The rotation of these comparisons, with as many groups of users as of items."""
    columns = kernel.bucket(indptr, better, worse, user_groups, item_groups, tasks(groups), groups)
    return Rotation(*columns, _rounds(groups, np.diff(columns[0])))


def _rounds(groups: int, sizes: Ints) -> tuple[Ints, ...]:
    """Every round of the tournament as often as there are user groups, with another group for each pair."""
    pair_of, square = tasks(groups), latin_square(groups)
    found = []
    for meets in rounds(groups):
        pairs = np.array([pair_of[pair] for pair in meets])
        for line in square:
            together = (pairs * groups + line[: len(pairs)]).astype(np.int32)
            longest_first = together[np.argsort(-sizes[together], kind="stable")]
            found.append(longest_first[sizes[longest_first] > 0])
    return tuple(together for together in found if len(together))
