"""Vectors of users and items by sampled softmax with its correction (Bengio and Senécal 2008, Yi et al. 2019)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
import scipy.sparse

from rankbench.arrays.distinct import distinct
from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Determinism, Floats, Ints, Model, Step
from rankbench.data.by_item import counted, entries_of
from rankbench.data.views import Ratings
from rankbench.kernels.methods import fold_in
from rankbench.kernels.shared.rows import Pattern
from rankbench.methods.adagrad import AdaGrad
from rankbench.methods.factors import zero_rows
from rankbench.methods.folding import own, vectors_and_numbers
from rankbench.models import Factors
from rankbench.names import Checked, Limits, checked_threads
from rankbench.names.ranges import Count, Least, Rank, StepSize, Weight

_START = 0.1  # the standard deviation of a number at the start, times the root of the rank
_SCORES = 1 << 22  # computed at a time for the objective


@dataclass(frozen=True)
class Softmax(Checked):
    """A vector per user and item and a number per item, by which a user's items are probable among the catalogue.

    min over U, V, b of - sum over positives (i, j) of ln p_ij
    + lam/2 (sum_i n_i |u_i|^2 + sum_j n_j (|v_j|^2 + b_j^2)), where p_ij = exp(s_ij) / sum_k exp(s_ik) over all items
    k, s_ij = u_i . v_j + b_j, and n_i and n_j count the positives of a user and an item. A rating is a positive if it
    is at least `least`; without `least` each is one.

    The sum over k is estimated from `negatives` items, drawn for each step with replacement and with probabilities q
    in proportion to (n_j + 1)^power: an item that was drawn c times stands for c / (negatives q) items. So the estimate
    is right on average, which is the correction by log q of the literature; without it popular items would be pushed
    down. The positive itself is exact, and left out where it was drawn. In a catalogue of at most so many items
    nothing is drawn, and all is exact.

    A step takes the positives of `batch` users, all against the same drawn items, and changes each number x by
    -step g / sqrt(sum of its g^2 so far), where g is the derivative by x (AdaGrad). A pass visits each user with a
    positive once, in random order. Users without a rating score NaN, and users with ratings but without a positive
    get the numbers of the items.
    """

    rank: Rank = 32
    lam: Weight = 0.003
    step: StepSize = 0.1
    negatives: Count = 1000
    power: Annotated[float, Limits(low=0, high=2)] = 1.0
    batch: Count = 64
    least: Least = None
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 2  # exponents that do not vanish where a user's scores are far apart

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The random start, then a model after each pass over the users."""
        checked_threads(threads)
        descent = _Descent.start(self, train, rng)
        model = Factors(descent.users.rows, descent.items.rows)
        active = np.flatnonzero(np.diff(descent.kept.indptr))
        yield Step(model, descent.objective)
        while len(active):
            order = rng.permutation(active)
            for first in range(0, len(order), self.batch):
                descent.visit(order[first : first + self.batch], rng)
            yield Step(model, descent.objective)

    @one_blas_thread()
    def fold_in(self, model: Model, ratings: Ratings, threads: int = 1) -> Factors:
        """The model of these users, each with the vector that is best with the items of the model as they are."""
        threads = checked_threads(threads)
        items, offsets = vectors_and_numbers(model, ratings, self.rank, True)
        kept, vectors = ratings.at_least(self.least), zero_rows(ratings.n_users, self.rank)
        positives = Pattern(indptr=kept.indptr, columns=kept.items)
        fold_in.choices(positives=positives, items=items, offsets=offsets, lam=self.lam, users=vectors, threads=threads)
        users = _with_ones(vectors[:, : self.rank])
        users[np.diff(ratings.indptr) == 0] = np.nan
        return Factors(users, own(model, Factors).items)


@dataclass(frozen=True, eq=False)
class _Descent:
    """The vectors, with a constant behind each user's and the number behind each item's, and how far they went."""

    solver: Softmax
    kept: Ratings
    users: AdaGrad
    items: AdaGrad

    @classmethod
    def start(cls, solver: Softmax, train: Ratings, rng: np.random.Generator) -> "_Descent":
        """Small random vectors; zeros for users without a positive, NaN for those without a rating."""
        kept, scale = train.at_least(solver.least), _START / np.sqrt(solver.rank)
        users = _with_ones(scale * rng.standard_normal((train.n_users, solver.rank)))
        users[np.diff(kept.indptr) == 0, :-1] = 0.0
        users[np.diff(train.indptr) == 0] = np.nan
        items = np.zeros((train.n_items, solver.rank + 1))
        items[:, :-1] = scale * rng.standard_normal((train.n_items, solver.rank))
        return cls(solver, kept, AdaGrad(users, solver.step), AdaGrad(items, solver.step))

    @cached_property
    def counts(self) -> tuple[Ints, Ints]:
        """How many positives each user and each item has."""
        return np.diff(self.kept.indptr), counted(self.kept.items, self.kept.n_items)

    @cached_property
    def weights(self) -> tuple[Floats, Floats]:
        """To what the probability with which each item is drawn is in proportion, and its sums up to each item."""
        weights: Floats = np.power(self.counts[1] + 1.0, self.solver.power)
        return weights, np.cumsum(weights)

    @one_blas_thread()
    def visit(self, chosen: Ints, rng: np.random.Generator) -> None:
        """Take a step along the derivatives of the losses of these users' positives, and of their penalties."""
        rows, own = self._positives_of(chosen)
        drawn, logs = self._drawn(rng)
        users, items = self.users.rows[chosen], self.items.rows
        vectors = items[drawn]
        scores = np.einsum("ij,ij->i", users[rows], items[own])
        _, by_own, by_drawn = slopes(users @ vectors.T + logs, scores, rows, _places(own, drawn))
        touched = distinct(np.concatenate([drawn, own]))
        shape, places = (len(chosen), len(touched)), np.searchsorted(touched, own)
        indptr = np.searchsorted(rows, np.arange(len(chosen) + 1))
        pulls = scipy.sparse.csr_array((by_own, places, indptr), shape=shape)
        of_items = pulls.T @ users
        of_items[np.searchsorted(touched, drawn)] += by_drawn.T @ users
        of_users = pulls @ items[touched] + by_drawn @ vectors
        lam, counts = self.solver.lam, np.bincount(places, minlength=len(touched))
        of_users += lam * np.bincount(rows, minlength=len(chosen))[:, None] * users
        of_users[:, -1] = 0.0  # the constant
        of_items += lam * counts[:, None] * items[touched]
        self.users.move(chosen, of_users)
        self.items.move(touched, of_items)

    def _positives_of(self, chosen: Ints) -> tuple[Ints, Ints]:
        """The positives of these users: which of them each belongs to, and the item."""
        rows, places = entries_of(self.kept.indptr, chosen)
        return rows, self.kept.items[places]

    def _drawn(self, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Different items in ascending order, and the logarithm of how many items each stands for."""
        n_items, size = self.kept.n_items, self.solver.negatives
        if n_items <= size:
            return np.arange(n_items), np.zeros(n_items)
        weights, ends = self.weights
        found = np.sort(np.searchsorted(ends[:-1], rng.random(size) * ends[-1], side="right"))
        drawn = distinct(found)
        times = np.diff(np.searchsorted(found, drawn), append=size)
        return drawn, np.log(times * ends[-1] / (size * weights[drawn]))

    @one_blas_thread()
    def objective(self) -> float:
        """The objective over the whole catalogue, without an estimate; a block of users at a time."""
        users, items = self.users.rows, self.items.rows
        everything, total = np.arange(self.kept.n_items), 0.0
        active = np.flatnonzero(self.counts[0])
        block = max(1, _SCORES // max(1, self.kept.n_items))
        for first in range(0, len(active), block):
            chosen = active[first : first + block]
            rows, own = self._positives_of(chosen)
            scores = users[chosen] @ items.T
            total += slopes(scores, scores[rows, own], rows, _places(own, everything))[0].sum()
        sizes = np.square(users[:, :-1]).sum(axis=1), np.square(items).sum(axis=1)
        known = self.counts[0] > 0
        penalty = self.counts[0][known] @ sizes[0][known] + self.counts[1] @ sizes[1]
        return float(total + self.solver.lam / 2 * penalty)


def slopes(drawn: Floats, own: Floats, rows: Ints, places: Ints) -> tuple[Floats, Floats, Floats]:
    """The loss of each positive, and the derivatives of their sum by the positives' scores and by the drawn ones.

    The loss is -ln(e^own / (e^own + sum_k e^drawn_k)) over the drawn scores of the positive's row, without the one at
    its own place, if that is not -1. The exponents of a row are taken less its largest drawn score, and those of a
    positive less the larger of that and its own score, so that neither all vanish nor any overflows.
    """
    top = drawn.max(axis=1, initial=-np.inf)
    highest = np.maximum(top[rows], own)
    weights, mine, share = np.exp(drawn - top[:, None]), np.exp(own - highest), np.exp(top[rows] - highest)
    here = places >= 0
    twice = np.where(here, weights[rows, places], 0.0)
    total = mine + share * np.maximum(weights.sum(axis=1)[rows] - twice, 0.0)
    by_drawn = weights * np.bincount(rows, share / total, minlength=len(drawn))[:, None]
    by_drawn[rows[here], places[here]] -= (share * twice / total)[here]
    return np.log(total) + highest - own, mine / total - 1.0, by_drawn


def _places(items: Ints, drawn: Ints) -> Ints:
    """Where each of these items stands among the drawn ones, which ascend; -1 if it does not."""
    places = np.minimum(np.searchsorted(drawn, items), len(drawn) - 1)
    return np.where(drawn[places] == items, places, -1)


def _with_ones(rows: Floats) -> Floats:
    """The rows with a 1 behind each."""
    return np.column_stack([rows, np.ones(len(rows))])
