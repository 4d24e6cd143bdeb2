"""Comparisons divided into tasks that share neither user nor item, so that threads may work on them side by side.

Items are cut into groups, and users into half as many. A task is a pair of item groups and a user group. The pairs
of item groups in a round of a tournament share no item. During such a round the user groups move from pair to pair as
in a Latin square, so that no two tasks that run at the same time share a user either. More groups of users would give
smaller tasks, but no more of them side by side.
"""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from rankbench.core.contract import Floats, Int32s, Int64s, Ints
from rankbench.kernels.methods import rotation as kernel
from rankbench.kernels.shared.rows import ComparisonRows
from rankbench.kernels.solvers import sgd
from rankbench.methods.factors import seed_of
from rankbench.methods.schedules import balanced, latin_square, rounds, tasks


@dataclass(frozen=True, eq=False)
class Rotation:
    """The comparisons sorted by task, and which tasks may run side by side."""

    starts: Int64s  # of each task's rows, and where the last one ends
    users: Int32s
    better: Int32s
    worse: Int32s
    weights: Floats | None  # of the slopes of the losses; None where all are 1
    rounds: tuple[Int32s, ...]  # tasks that share no user and no item, the longest first, without empty ones

    @cached_property
    def rows(self) -> kernel.TaskRows:
        """The rows as the kernels take them."""
        return kernel.TaskRows(
            starts=self.starts, users=self.users, better=self.better, worse=self.worse, weights=self.weights
        )

    def bound(self, threads: int) -> float:
        """An upper bound on the speed-up by threads: a round takes at least its longest task, and an even share."""
        sizes = np.diff(self.starts)
        least = sum(max(sizes[together[0]], sizes[together].sum() / threads) for together in self.rounds)
        return float(len(self.users) / max(least, 1))

    def visit(self, descent: sgd.Descent, updates: int, rng: np.random.Generator, threads: int) -> None:
        """Let a descent take a step for every comparison, its rounds in a random order, after so many updates."""
        starts, in_order, before = self.order(rng)
        sgd.rounds_pass(
            descent=descent,
            rows=self.rows,
            round_starts=starts,
            tasks=in_order,
            updates=updates + before,
            seed=seed_of(rng),
            threads=threads,
        )

    def order(self, rng: np.random.Generator) -> tuple[Int64s, Int32s, Floats]:
        """The rounds in a random order: where each starts, the tasks, and the number of rows before each task."""
        chosen = [self.rounds[number] for number in rng.permutation(len(self.rounds))]
        in_order = np.concatenate(chosen)
        starts = np.cumsum([0, *map(len, chosen)])
        before = np.concatenate([[0], np.cumsum(np.diff(self.starts)[in_order])[:-1]])
        return starts, in_order, before.astype(np.float64)


def user_groups(per_user: Ints, groups: int) -> Int32s:
    """The group of every user, who has so many comparisons, beside so many groups of items."""
    return balanced(per_user, _side_by_side(groups))


def rotation(
    comparisons: ComparisonRows,
    users: Int32s,
    items: Int32s,
    groups: int,
    weights: Floats | None = None,
    room: Int32s | None = None,
) -> Rotation:
    """The tasks and rounds of these comparisons, with the groups of `user_groups` and so many groups of items.

    What there is of each comparison but its weight is written to `room`, of three numbers for each, if that is given.
    """
    side_by_side = _side_by_side(groups)
    columns = kernel.bucket(
        comparisons=comparisons,
        user_group=users,
        item_group=items,
        pair_of=tasks(groups),
        groups=side_by_side,
        weights=weights,
        room=room,
    )
    return Rotation(*columns, _rounds(groups, np.diff(columns[0])))


def _side_by_side(groups: int) -> int:
    """How many tasks of a round there are at most: pairs of so many groups of items, or single ones."""
    return (groups + 1) // 2


def _rounds(groups: int, sizes: Int64s) -> tuple[Int32s, ...]:
    """All rounds of tasks of these sizes: the longest first, without empty ones."""
    ordered = (together[np.argsort(-sizes[together], kind="stable")] for together in _side_by_side_tasks(groups))
    found = (together[sizes[together] > 0] for together in ordered)
    return tuple(together for together in found if len(together))


@cache
def _side_by_side_tasks(groups: int) -> tuple[Int32s, ...]:
    """The tasks of all rounds: each of the tournament once for each user group, as these change between its pairs.

    The round in which each group of an even number meets itself has twice as many pairs, and becomes two.
    """
    side_by_side = _side_by_side(groups)
    pair_of, square = tasks(groups), latin_square(side_by_side)
    found = []
    for meets in rounds(groups):
        pairs = np.array([pair_of[pair] for pair in meets])
        for some in np.split(pairs, range(side_by_side, len(pairs), side_by_side)):
            found += [(some * side_by_side + line[: len(some)]).astype(np.int32) for line in square]
    return tuple(found)
