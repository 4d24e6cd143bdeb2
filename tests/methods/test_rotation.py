"""Rotations: every comparison is in one task, and tasks of one round share neither user nor item."""

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbench.core.contract import Ints
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Comparisons
from rankbench.methods.rotation import Rotation, rotation, user_groups
from rankbench.solvers.altsvm import AltSVM, planned
from rankbench.solvers.sgd import rotation_of


@pytest.fixture(scope="module")
def train() -> Comparisons:
    return LowRank(users=60, items=50, per_user=12).view(np.random.default_rng(0)).comparisons()


def rows_of(plan: Rotation, task: int) -> slice:
    return slice(plan.starts[task], plan.starts[task + 1])


@pytest.mark.parametrize("parts", [1, 2, 3, 8, 16])
@pytest.mark.parametrize("schedule", ["tournament", "nomad"])
def test_every_comparison_is_in_one_task_of_one_round(schedule, parts, train):
    plan = rotation_of(train, schedule, parts)
    found = sorted(zip(plan.users, plan.better, plan.worse, strict=True))
    assert found == sorted(zip(train.users, train.better, train.worse, strict=True))
    tasks = np.concatenate(plan.rounds)
    assert sorted(tasks) == np.flatnonzero(np.diff(plan.starts)).tolist()


@pytest.mark.parametrize("parts", [2, 3, 8, 16])
@pytest.mark.parametrize("schedule", ["tournament", "nomad"])
def test_tasks_of_one_round_share_neither_user_nor_item(schedule, parts, train):
    plan = rotation_of(train, schedule, parts)
    assert max(map(len, plan.rounds)) == (parts + 1) // 2
    for together in plan.rounds:
        rows = [rows_of(plan, task) for task in together]
        held = [(set(plan.users[own]), {*plan.better[own], *plan.worse[own]}) for own in rows]
        for (users, items), (other_users, other_items) in combinations(held, 2):
            assert not users & other_users and not items & other_items


def test_within_a_task_rows_keep_their_order(train):
    plan = rotation_of(train, "tournament", 4)
    place = {row: number for number, row in enumerate(zip(train.users, train.better, train.worse, strict=True))}
    for task in range(len(plan.starts) - 1):
        rows = rows_of(plan, task)
        found = [place[row] for row in zip(plan.users[rows], plan.better[rows], plan.worse[rows], strict=True)]
        assert found == sorted(found)


def test_every_order_holds_all_rounds_and_counts_what_comes_before(train):
    plan = rotation_of(train, "tournament", 4)
    starts, tasks, before = plan.order(np.random.default_rng(0))
    sizes = np.diff(plan.starts)
    rounds = [tuple(tasks[first:end]) for first, end in pairwise(starts)]
    assert sorted(rounds) == sorted(map(tuple, plan.rounds)) and rounds != list(map(tuple, plan.rounds))
    assert [sizes[tasks[:place]].sum() for place in range(len(tasks))] == before.tolist()


def test_the_bound_is_that_of_the_longest_task_of_each_round():
    users = np.repeat([0, 1], [3, 1])
    view = Comparisons.from_triples(users, [0, 0, 0, 2], [1, 1, 1, 3])
    plan = rotation(view.rows, user_groups(np.diff(view.indptr), 3), np.array([0, 0, 1, 2], np.int32), 3)
    assert plan.bound(1) == pytest.approx(1)
    assert plan.bound(2) == plan.bound(9) == pytest.approx(4 / 3)  # both side by side, and the longer one takes three


def test_a_rotation_in_given_memory_is_the_same_and_needs_three_numbers_for_each_comparison():
    view = Comparisons.from_triples(np.repeat([0, 1], [3, 1]), [0, 0, 0, 2], [1, 1, 1, 3])
    groups = user_groups(np.diff(view.indptr), 3), np.array([0, 0, 1, 2], np.int32)
    room = np.full(13, -1, np.int32)
    here, anew = rotation(view.rows, *groups, 3, room=room), rotation(view.rows, *groups, 3)
    for one, other in ((here.users, anew.users), (here.better, anew.better), (here.worse, anew.worse)):
        np.testing.assert_array_equal(one, other)
        assert np.shares_memory(one, room) and not np.shares_memory(other, room)
    assert room[12] == -1
    with pytest.raises(ValueError, match="numbers of room=11 is out of range: must be at least 12"):
        rotation(view.rows, *groups, 3, room=room[:11])


# Kernels run the tasks of a round side by side without locks. That no thread ever writes to what another one reads
# or writes follows from this alone, for any number of threads and any order of the tasks within a round.


def conflicts(rounds: Iterable[Sequence[tuple[Ints, ...]]]) -> list[tuple[int, int]]:
    """The round and the id of each user or item that two tasks of the round touch; a task has sets of ids."""
    found = []
    for number, tasks in enumerate(rounds):
        for kind in zip(*tasks, strict=True):  # all sets of users, then all sets of items
            ids, times = np.unique(np.concatenate([np.unique(ids) for ids in kind]), return_counts=True)
            found += [(number, int(one)) for one in ids[times > 1]]
    return found


@st.composite
def compared(draw):
    """Comparisons of any shape; some users and items are in none, some in very many."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_users, n_items, n = draw(st.integers(1, 40)), draw(st.integers(2, 40)), draw(st.integers(0, 400))
    better = np.minimum(rng.geometric(draw(st.floats(0.02, 0.5)), n) - 1, n_items - 1)
    worse = (better + rng.integers(1, n_items, n)) % n_items
    return Comparisons.from_triples(rng.integers(0, n_users, n), better, worse, n_users, n_items)


@given(compared(), st.integers(1, 17))
def test_no_two_tasks_of_a_round_touch_the_same_row_of_any_data(train, parts):
    plan = rotation_of(train, "tournament", parts)
    rows = [[rows_of(plan, task) for task in together] for together in plan.rounds]
    held = [[(plan.users[own], np.append(plan.better[own], plan.worse[own])) for own in tasks] for tasks in rows]
    assert conflicts(held) == []
    assert sum(len(plan.users[own]) for tasks in rows for own in tasks) == len(train)


@given(compared(), st.integers(1, 17))
def test_no_two_tasks_of_a_round_of_altsvm_touch_the_same_item(train, groups):
    plan = planned(AltSVM(rank=1, groups=groups), train, np.random.default_rng(0))
    tasks = [plan.records[first:end] for first, end in pairwise(plan.starts)]
    held = [[(np.append(own["better"], own["worse"]),) for own in tasks[first:end]] for first, end in plan.rounds]
    assert conflicts(held) == []
    assert [len(tasks), sum(map(len, tasks))] == [plan.rounds[-1, 1], len(train)]


def test_a_conflict_is_found():
    one, other = (np.array([0, 1]), np.array([5])), (np.array([1]), np.array([6]))
    assert conflicts([[one], [one, other]]) == [(1, 1)]
