"""Schedules: tournaments without conflicts for any number of groups, even loads, and cuts that find blocks."""

import sys
from collections import Counter
from itertools import combinations_with_replacement

import numpy as np
import pytest

from rankbench.core.errors import UserError
from rankbench.methods.schedules import balanced, latin_square, loads, partition, rounds, tasks

each_size = pytest.mark.parametrize("groups", [*range(1, 10), 16, 31])


@each_size
def test_every_two_groups_meet_once_and_in_a_round_every_group_occurs_once(groups):
    played = rounds(groups)
    met = Counter(tuple(sorted(pair)) for meets in played for pair in meets)
    assert met == Counter(combinations_with_replacement(range(groups), 2))
    assert len(played) == groups
    for meets in played:
        assert sorted({group for pair in meets for group in pair}) == list(range(groups))
        assert sum(len(set(pair)) for pair in meets) == groups


def test_with_an_even_number_each_group_first_meets_itself():
    first, *others = rounds(8)
    assert first == [(group, group) for group in range(8)]
    assert all(len(meets) == 4 for meets in others)


@each_size
def test_tasks_are_numbered_in_the_order_of_the_rounds(groups):
    table = tasks(groups)
    in_order = [table[pair] for meets in rounds(groups) for pair in meets]
    assert in_order == list(range(groups * (groups + 1) // 2))
    np.testing.assert_array_equal(table, table.T)


@each_size
def test_a_latin_square_gives_nobody_a_group_twice(groups):
    square = latin_square(groups)
    for line in (*square, *square.T):
        assert sorted(line) == list(range(groups))


@pytest.mark.parametrize("groups", [1, 2, 7, 16])
def test_loads_are_dealt_out_evenly(groups):
    load = np.random.default_rng(0).zipf(1.7, 1000).clip(max=300)
    held = np.bincount(balanced(load, groups), load, minlength=groups)
    assert held.sum() == load.sum()
    assert held.max() - held.min() <= 1


def test_one_heavy_item_has_its_group_to_itself():
    chosen = balanced(np.array([1, 1, 90, 1, 1, 1]), 3)
    assert np.count_nonzero(chosen == chosen[2]) == 1


def blocks(rng: np.random.Generator, across: int) -> tuple[np.ndarray, np.ndarray]:
    """Four blocks of twenty items that are compared among themselves, and a few comparisons across."""
    block, ends = rng.integers(4, size=4000), np.array([rng.permutation(20)[:2] for _ in range(4000)])
    better, worse = (20 * block[:, None] + ends).T
    return np.append(better, rng.integers(0, 40, across)), np.append(worse, rng.integers(40, 80, across))


@pytest.mark.parametrize("across", [0, 50])
def test_the_cut_finds_the_blocks(across):
    better, worse = blocks(np.random.default_rng(0), across)
    by_block = partition(better, worse, 90, 4)[:80].reshape(4, 20)
    assert (by_block == by_block[:, :1]).all()
    assert len(set(by_block[:, 0])) == 4


def test_the_cut_is_the_same_again():
    better, worse = blocks(np.random.default_rng(1), 2000)
    one, other = (partition(better, worse, 80, 5) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_one_part_holds_everything():
    assert partition(np.array([0, 1]), np.array([2, 2]), 3, 1).tolist() == [0, 0, 0]


def test_with_a_part_for_every_item_everything_is_cut():
    assert partition(np.array([0, 1]), np.array([3, 3]), 5, 4)[[0, 1, 3]].tolist() == [0, 1, 2]


def test_nothing_to_compare_is_no_failure():
    nothing = np.array([], np.int32)
    assert partition(nothing, nothing, 3, 2).tolist() == [0, 0, 0]


def test_loads_count_both_sides():
    assert loads(np.array([0, 0, 3]), np.array([1, 3, 1]), 5).tolist() == [2, 2, 0, 2, 0]


def test_without_pymetis_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(UserError, match=r"pip install 'rankbench\[partition\]'"):
        partition(np.array([0, 1, 2]), np.array([3, 3, 3]), 5, 2)
