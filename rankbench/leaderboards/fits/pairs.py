"""Votes added up: one row for each pair of items that were compared, and how often each outcome was seen."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from rankbench.arrays.distinct import distinct
from rankbench.core.contract import Floats, Int8s, Int32s, Int64s
from rankbench.leaderboards.votes import LEFT, RIGHT, TIE, Groups, Votes

_OUTCOMES = 3
_DENSE = 1 << 24  # pairs that are counted in a table of all of them


@dataclass(frozen=True, eq=False)
class Pairs:
    """Distinct pairs with their counts of wins of the left item, wins of the right one and ties.

    `design` has the columns that the margin of a pair takes beside the two scores: a constant for the advantage of the
    left side, and the covariates. `squares` are the sums of squared weights, for a vote's own variance.
    """

    n_items: int
    left: Int32s
    right: Int32s
    seen: Floats  # outcome x pair
    squares: Floats  # outcome x pair
    design: Floats  # pair x column
    rows: Int64s  # the pair of each vote
    outcome: Int8s  # of each vote, as the pair is turned
    amounts: Floats  # what each vote counts

    def __len__(self) -> int:
        return len(self.left)

    @property
    def incidence(self) -> scipy.sparse.csr_array:
        """The matrix of pairs x parameters of the margin: 1 for the left item, -1 for the right one, and the design."""
        size, q = len(self), self.design.shape[1]
        columns = np.column_stack([self.left, self.right, np.tile(np.arange(q) + self.n_items, (size, 1))])
        values = np.column_stack([np.ones(size), -np.ones(size), self.design])
        indptr = np.arange(size + 1) * (2 + q)
        shape = (size, self.n_items + q)
        return scipy.sparse.csr_array((values.ravel(), columns.ravel().astype(np.int64), indptr), shape=shape)

    def by_group(self, groups: Groups) -> scipy.sparse.csr_array:
        """How often each group of votes, such as a judge's, has each outcome of each pair: a sparse matrix."""
        cells = self.outcome * np.int64(len(self)) + self.rows
        shape = (len(groups.names), _OUTCOMES * len(self))
        return scipy.sparse.coo_array((self.amounts, (groups.codes, cells)), shape=shape).tocsr()


def pairs_of(votes: Votes, side: bool = False) -> Pairs:
    """The votes added up by pair; with `side` left and right are kept apart, for the advantage of a side."""
    covariates = votes.covariates
    turned = np.zeros(len(votes), bool) if side or covariates is not None else votes.left > votes.right
    left, right = np.where(turned, votes.right, votes.left), np.where(turned, votes.left, votes.right)
    outcome = np.where(turned & (votes.outcome != TIE), LEFT + RIGHT - votes.outcome, votes.outcome).astype(np.int8)
    constant = np.ones((len(votes), int(side)))
    if covariates is None:
        rows, firsts = _rows_of(left.astype(np.int64) * votes.n_items + right, votes.n_items**2)
        design = constant[: len(firsts)]
    else:
        rows = firsts = np.arange(len(votes))
        design = np.column_stack([constant, covariates])
    size = len(firsts)
    cells = outcome * np.int64(size) + rows
    seen, squares = (
        np.bincount(cells, amounts, _OUTCOMES * size).reshape(_OUTCOMES, size).astype(float)
        for amounts in (votes.amounts, votes.counts * votes.weights**2)
    )
    return Pairs(votes.n_items, left[firsts].astype(np.int32), right[firsts].astype(np.int32), seen, squares, design,
                 rows, outcome, votes.amounts)  # fmt: skip


def _rows_of(keys: Int64s, size: int) -> tuple[Int64s, Int64s]:
    """The number of each key among the distinct ones in their order, and where each distinct one occurs."""
    if size <= _DENSE:
        places = np.zeros(size, np.int64)
        places[keys] = 1
        known = np.flatnonzero(places)
        places[known] = np.arange(len(known))
        rows = places[keys]
    else:
        known = distinct(keys)
        rows = np.searchsorted(known, keys)
    firsts = np.empty(len(known), np.int64)
    firsts[rows] = np.arange(len(keys))
    return rows, firsts
