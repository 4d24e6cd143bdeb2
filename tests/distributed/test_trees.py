"""Sums over parts: the same bits for any distribution of the parts, and the cut of users into parts."""

from itertools import pairwise

import numpy as np
import pytest

from rankbench.arrays.npz import fingerprint, fingerprint_in_pieces
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, Ratings
from rankbench.distributed.cutting import edges_of, parts_of
from rankbench.distributed.trees import PartialSums
from rankbench.models import Factors

RNG = np.random.default_rng(0)


def in_a_tree(values):
    """The sum by recursion: the left half has the largest power of two of the values that leaves some."""
    if len(values) == 1:
        return values[0]
    half = 1 << ((len(values) - 1).bit_length() - 1)
    return in_a_tree(values[:half]) + in_a_tree(values[half:])


@pytest.mark.parametrize("parts", [1, 2, 3, 5, 8, 13, 64, 100])
def test_the_tree_has_one_shape_whoever_adds_what_first(parts):
    values = [RNG.standard_normal(3) * 10.0 ** RNG.integers(-8, 8) for _ in range(parts)]
    expected = in_a_tree(values)
    for holders in (1, 2, 3, 7):
        whole = PartialSums(parts)
        for holder in RNG.permutation(holders):
            own = PartialSums(parts)
            for part in RNG.permutation(np.arange(parts)[holder::holders]):
                own.add(int(part), (values[part], 1))
            whole.join(own.nodes)
        total, count = whole.total
        assert total.tobytes() == expected.tobytes() and count == parts


def test_a_holder_of_neighbours_sends_few_sums():
    for parts, first, end in ((64, 16, 32), (64, 21, 42), (100, 50, 100)):
        own = PartialSums(parts)
        for part in range(first, end):
            own.add(part, (1,))
        assert len(own.nodes) <= 2 * int(np.log2(end - first) + 1)
        assert sum(value for (value,) in own.nodes.values()) == end - first


def test_there_is_no_total_before_all_have_been_added():
    sums = PartialSums(3)
    sums.add(0, (1.0,))
    sums.add(2, (1.0,))
    with pytest.raises(KeyError):
        _ = sums.total


@pytest.mark.parametrize("parts", [1, 2, 3, 10, 20])
def test_every_user_is_in_one_part_with_all_of_its_rows(parts):
    counts = RNG.permutation([*range(19), 300])
    users = np.repeat(np.arange(20), counts)
    ratings = Ratings.from_triples(
        users, np.concatenate([np.arange(c) for c in counts]), RNG.random(len(users)), 20, 300
    )
    for view in (ratings, ratings.comparisons(5, RNG)):
        edges = edges_of(view, parts, "a solver")
        assert edges[0] == 0 and edges[-1] == 20 and (np.diff(edges) > 0).all() and len(edges) == parts + 1
        cut = parts_of(view, edges)
        assert [part.n_users for part in cut] == np.diff(edges).tolist()
        assert {part.n_items for part in cut} == {300}
        column = "items" if isinstance(view, Ratings) else "better"
        np.testing.assert_array_equal(np.concatenate([getattr(part, column) for part in cut]), getattr(view, column))
        for part, (first, end) in zip(cut, pairwise(edges), strict=True):
            np.testing.assert_array_equal(np.diff(part.indptr), np.diff(view.indptr)[first:end])


def test_parts_have_about_as_many_rows_each():
    view = Comparisons(np.arange(1001) * 3, np.tile([0, 1, 2], 1000), np.tile([1, 2, 0], 1000), 3)
    sizes = [len(part) for part in parts_of(view, edges_of(view, 7, "a solver"))]
    assert max(sizes) - min(sizes) <= 6


def test_more_parts_than_users_are_one_line():
    view = Comparisons([0, 1, 1], [0], [1], 2)
    with pytest.raises(UserError) as caught:
        edges_of(view, 3, "frsvm")
    assert str(caught.value) == "frsvm: partitions=3 is above the number of users, 2; lower partitions"


def test_a_hash_in_pieces_is_that_of_the_whole():
    whole = Factors(RNG.random((10, 3)), RNG.random((4, 3)))
    pieces = [whole.users[:4], whole.users[4:4], whole.users[4:]]
    assert fingerprint_in_pieces(Factors(np.empty((0, 3)), whole.items), "users", 10, pieces) == fingerprint(whole)
