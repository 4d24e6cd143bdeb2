"""Metrics of the lists of recommended items, beyond how right they are: coverage, exposure, novelty and similarity.

A user's list has the k items with the highest scores among those without a training rating. Where scores tie at its
end, the items of the tie are on the list with equal chances, and every metric takes the expected value over all
orders of ties, drawn for each user independently. Lists are made block by block, and never all at once: what depends
on the lists of all users, which items how many lists hold, is counted in a first pass, and shared out in a second.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from rankbench.core.contract import Floats, Int32s, Int64s, Model
from rankbench.data.views import Ratings, View
from rankbench.features.matrix import Matrix
from rankbench.kernels.metrics import lists as kernel
from rankbench.kernels.shared.rows import Pattern
from rankbench.metrics.catalogue import scored, seen_items
from rankbench.metrics.records import ListCode


@dataclass(frozen=True, eq=False)
class Lists:
    """The lists of a block of users, in CSR form: the items that may be on them, and the chance of each to be."""

    users: Int32s
    indptr: Int64s
    items: Int32s
    chances: Floats
    lengths: Int64s  # the number of items on each list: k, or all candidates if they are fewer
    last: Int64s  # users x 2: how many places the tie at the end of the list takes, and how many items it has
    n_items: int

    def sums(self, values: Floats) -> Floats:
        """For each list the expected sum of these values of the items."""
        shape = len(self.users), self.n_items
        found: Floats = scipy.sparse.csr_array((self.chances, self.items, self.indptr), shape) @ values
        return found


@dataclass(frozen=True, eq=False)
class Exposure:
    """How much all lists together show each item."""

    expected: Floats  # how many lists hold it
    shown: Floats  # the probability that any does
    users: int  # lists that are not empty


def of_lists(
    model: Model, test: Ratings, asked: Sequence[tuple[int, int]], threads: int, train: View
) -> dict[tuple[int, int], Floats]:
    """The values of each (code, k) asked for, one for each user; NaN for users without a held-out rating or a list."""
    values: dict[tuple[int, int], Floats] = {}
    for k in dict.fromkeys(k for _, k in asked):
        codes = [ListCode(code) for code, size in asked if size == k]
        found = _values(codes, partial(made, model, test, k, threads, train), test, train)
        values |= {(int(code), k): of_users for code, of_users in found.items()}
    return values


def made(model: Model, test: Ratings, k: int, threads: int, train: View) -> Iterator[Lists]:
    """The lists of the users with a held-out rating, block by block."""
    indptr, items = seen_items(train)
    candidates = kernel.Candidates(
        seen=Pattern(indptr=indptr, columns=items), held_out=Pattern(indptr=test.indptr, columns=test.items)
    )
    for users, scores in scored(model, test, threads):
        lowest, counts = kernel.ends(
            scores=scores, users=users, candidates=candidates, k=min(k, test.n_items), threads=threads
        )
        starts = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
        members = np.empty(starts[-1], np.int32)
        kernel.members(
            scores=scores,
            users=users,
            candidates=candidates,
            lowest=lowest,
            indptr=starts,
            items=members,
            threads=threads,
        )
        lengths = np.minimum(k, counts.sum(axis=1))
        last = np.column_stack([lengths - counts[:, 0], counts[:, 1]])
        rows = np.repeat(np.arange(len(users)), np.diff(starts))
        above = scores[rows, members] > lowest[rows]  # false for NaN
        chances = np.where(above, 1.0, last[rows, 0] / np.maximum(1, last[rows, 1]))
        yield Lists(users, starts, members, chances, lengths, last, test.n_items)


def _values(
    codes: Sequence[ListCode], blocks: Callable[[], Iterator[Lists]], test: Ratings, train: View
) -> Mapping[ListCode, Floats]:
    """The value of each metric for each user, from one pass over the lists, or two where all lists count together."""
    weights = _weights(codes, blocks, test.n_items, train)
    directions = _directions(test.item_features) if ListCode.SIMILARITY in codes else None
    values = {code: np.full(test.n_users, np.nan) for code in codes}
    for lists in blocks():
        some = lists.lengths > 0
        for code in codes:
            if code == ListCode.SIMILARITY:
                values[code][lists.users] = _similarity(lists, directions)
            else:
                share = 1.0 / lists.lengths[some] if code == ListCode.NOVELTY else 1.0
                values[code][lists.users[some]] = lists.sums(weights[code])[some] * share
    return values


def _weights(
    codes: Sequence[ListCode], blocks: Callable[[], Iterator[Lists]], n_items: int, train: View
) -> dict[ListCode, Floats]:
    """For each metric that is a sum over the items of a list, what each item adds to it."""
    weights: dict[ListCode, Floats] = {}
    if not {ListCode.COVERAGE, ListCode.GINI}.isdisjoint(codes):
        exposure = _exposure(blocks(), n_items)
        weights |= {ListCode.COVERAGE: _coverage_weights(exposure), ListCode.GINI: _gini_weights(exposure)}
    if ListCode.NOVELTY in codes:
        weights[ListCode.NOVELTY] = _self_information(train)
    return weights


def _exposure(blocks: Iterator[Lists], n_items: int) -> Exposure:
    """How much the lists of all users show each item; a tie's items are drawn for each user independently."""
    expected, surely, missed, users = np.zeros(n_items), np.zeros(n_items, bool), np.zeros(n_items), 0
    for lists in blocks:
        expected += np.bincount(lists.items, lists.chances, n_items)
        sure = lists.chances >= 1.0
        surely[lists.items[sure]] = True
        missed += np.bincount(lists.items[~sure], np.log1p(-lists.chances[~sure]), n_items)
        users += int(np.count_nonzero(lists.lengths))
    return Exposure(expected, np.where(surely, 1.0, -np.expm1(missed)), users)


def _coverage_weights(exposure: Exposure) -> Floats:
    """What an item on a list adds to the user's value, so that the mean over users is the share of items shown."""
    each = np.divide(exposure.shown, exposure.expected, out=np.zeros_like(exposure.shown), where=exposure.expected > 0)
    weights: Floats = each * exposure.users / max(1, len(each))
    return weights


def _gini_weights(exposure: Exposure) -> Floats:
    """What an item on a list adds to the user's value, so that the mean over users is the Gini coefficient.

    With r the item's rank by exposure, rising, the coefficient is sum of (2 r - n - 1) x exposure / (n x all exposure).
    """
    n, total = len(exposure.expected), float(exposure.expected.sum())
    if total == 0.0:
        return np.zeros(n)
    weights: Floats = (2.0 * _mid_ranks(exposure.expected) - n - 1.0) * exposure.users / (n * total)
    return weights


def _mid_ranks(values: Floats) -> Floats:
    """The rank of each value from 1, the lowest first; equal values share the mean of their ranks."""
    _, own, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[own]
    return ranks


def _self_information(train: View) -> Floats:
    """-log2 of the share of the users with a training row who have one of this item; one such user at least."""
    _, items = seen_items(train)
    raters = np.bincount(items, minlength=train.n_items)
    users = int(np.count_nonzero(np.diff(train.indptr)))
    information: Floats = np.log2(max(1, users) / np.maximum(1, raters))
    return information


def _directions(features: Matrix | None) -> scipy.sparse.csr_array:
    """The features of each item divided by their norm, so that inner products are cosines; zeros stay zeros."""
    table = scipy.sparse.csr_array(features)
    largest = abs(table).max(axis=1).toarray().ravel()  # before squares are taken, which may overflow
    table = scipy.sparse.diags_array(1.0 / np.where(largest > 0, largest, 1.0)) @ table
    norms = np.sqrt(_squares(table))
    return scipy.sparse.csr_array(scipy.sparse.diags_array(1.0 / np.where(norms > 0, norms, 1.0)) @ table)


def _similarity(lists: Lists, directions: Any) -> Floats:
    """The mean cosine over the pairs of each list, expected over ties; NaN for lists of fewer than two items.

    The cosines of all pairs of a set add up to half of |sum|^2 less the sum of |.|^2, so no pair is looked at.
    """
    shape = len(lists.users), lists.n_items
    in_tie = np.repeat(lists.last[:, 0] < lists.last[:, 1], np.diff(lists.indptr)) & (lists.chances < 1.0)
    sums, inner = [], []
    for chosen in (~in_tie, in_tie):
        rows = scipy.sparse.csr_array((chosen.astype(np.float64), lists.items, lists.indptr), shape)
        sums.append(rows @ directions)
        inner.append((_squares(sums[-1]) - rows @ _squares(directions)) / 2)
    places, size = lists.last.T
    one = places / np.maximum(1, size)
    both = one * (places - 1) / np.maximum(1, size - 1)
    across = np.asarray(sums[0].multiply(sums[1]).sum(axis=1))
    pairs = lists.lengths * (lists.lengths - 1) / 2
    found = np.full(len(lists.users), np.nan)
    np.divide(inner[0] + one * across + both * inner[1], pairs, out=found, where=pairs > 0)
    clipped: Floats = np.clip(found, -1.0, 1.0)
    return clipped


def _squares(rows: scipy.sparse.csr_array) -> Floats:
    """The squared norm of each row."""
    squares: Floats = np.asarray(rows.multiply(rows).sum(axis=1))
    return squares
