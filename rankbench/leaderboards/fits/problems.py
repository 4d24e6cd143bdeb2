"""What a fit minimises: the sum of the losses of comparisons or of rankings, with a penalty where it is needed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse
from scipy.special import expit

from rankbench.core.contract import Floats, Int32s, Int64s
from rankbench.leaderboards.fits.likelihoods import Likelihood, Terms, softplus
from rankbench.leaderboards.fits.pairs import Pairs
from rankbench.leaderboards.votes import Groups, Rankings

_BLOCK = 1 << 22  # entries of a block of rankings' curvatures
_AT_ONCE = 1 << 16  # members of rankings, over all draws of which gradients are computed side by side


@dataclass(frozen=True, eq=False)
class Point:
    """The objective with its derivatives at some parameters."""

    value: float
    gradient: Floats
    hessian: Floats


@dataclass(frozen=True, eq=False)
class Reweighted:
    """Gradients of the losses with other weights, exponential ones with mean 1, for many draws side by side."""

    size: int  # the number of weights
    draw: Callable[[np.random.Generator, int], Floats]  # what `gradients` takes, for so many draws of weights
    gradients: Callable[[Floats, Floats], Floats]  # at parameters (parameters x draws), from what was drawn


def with_penalty(point: Point, z: Floats, n_items: int, penalty: float) -> Point:
    """The point with the penalty: each item has won and lost `penalty`/2 comparisons with an item of score 0.

    Without a penalty nothing says where the scores lie, so that their mean is held at 0: 1/n is added to the Hessian's
    entries of scores, whose gradient sums to 0.
    """
    s = z[:n_items]
    value, gradient, hessian = point.value, point.gradient.copy(), point.hessian.copy()
    if penalty == 0:
        hessian[:n_items, :n_items] += 1 / n_items
        return Point(value, gradient, hessian)
    p = expit(s)
    value += penalty / 2 * float((softplus(s) + softplus(-s)).sum())
    gradient[:n_items] += penalty * (p - 0.5)
    hessian[np.arange(n_items), np.arange(n_items)] += penalty * p * (1 - p)
    return Point(value, gradient, hessian)


@dataclass(frozen=True, eq=False)
class OfPairs:
    """The losses of comparisons under one of the models of outcomes."""

    pairs: Pairs
    model: Likelihood
    names: tuple[str, ...] = ()

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self.pairs.n_items

    @property
    def start(self) -> Floats:
        """All items equal, no advantage, no covariate."""
        q = self.pairs.design.shape[1]
        return np.concatenate([np.zeros(self.n_items + q), [self.model.start] * self.model.has_ties])

    def margins(self, z: Floats) -> tuple[Floats, Floats | float]:
        """The margins of all pairs, and the parameter of ties."""
        end = self.n_items + self.pairs.design.shape[1]
        m = z[self.pairs.left] - z[self.pairs.right]
        if end > self.n_items:
            m = m + self.pairs.design @ z[self.n_items : end]
        return m, z[end] if self.model.has_ties else np.zeros(z.shape[1:])

    def terms(self, z: Floats) -> Terms:
        """The losses of all pairs with their derivatives."""
        m, t = self.margins(z)
        return self.model.terms(m, float(t))

    def at(self, z: Floats) -> Point:
        """The objective at these parameters."""
        terms, seen = self.terms(z), self.pairs.seen
        by_m, by_t, by_mm, by_mt, by_tt = (
            np.einsum("op,op->p", seen, one) for one in (terms.by_m, terms.by_t, terms.by_mm, terms.by_mt, terms.by_tt)
        )
        with np.errstate(invalid="ignore"):
            value = float(np.where(seen > 0, seen * terms.loss, 0.0).sum())
        ties = [by_t.sum()] * self.model.has_ties
        gradient = np.concatenate([self._transposed(by_m), ties])
        return Point(value, gradient, self._squares(by_mm, by_mt, by_tt))

    def by_group(self, z: Floats, groups: Groups) -> scipy.sparse.csr_array:
        """The gradient of each group of votes."""
        counted = self.pairs.by_group(groups)
        terms = self.terms(z)
        slopes = scipy.sparse.vstack([self.pairs.incidence.multiply(one[:, None]) for one in terms.by_m])
        if self.model.has_ties:
            slopes = scipy.sparse.hstack([slopes, scipy.sparse.csr_array(terms.by_t.reshape(-1, 1))])
        return scipy.sparse.csr_array(counted @ slopes.tocsr())

    def own_squares(self, z: Floats) -> Floats:
        """The sum of g g' over single votes."""
        terms = self.terms(z)
        products = ((terms.by_m, terms.by_m), (terms.by_m, terms.by_t), (terms.by_t, terms.by_t))
        return self._squares(*(np.einsum("op,op,op->p", self.pairs.squares, *two) for two in products))

    def reweighted(self, groups: Groups | None) -> Reweighted:
        """The gradient with other weights; what is drawn are counts of outcomes (outcome x pair x draw)."""
        if groups is None:
            return Reweighted(3 * len(self.pairs), self._draw_votes, self.gradients)
        counted = self.pairs.by_group(groups)  # group x outcome of a pair
        size = int(counted.shape[0])

        def draw(rng: np.random.Generator, n: int) -> Floats:
            weights = rng.standard_exponential((size, n))
            return np.asarray(counted.T @ weights).reshape(3, -1, n)

        return Reweighted(size, draw, self.gradients)

    def _draw_votes(self, rng: np.random.Generator, n: int) -> Floats:
        """Counts with a weight for each comparison; the sum of those of one outcome of a pair is gamma distributed.

        Votes of different weight have a gamma distribution with the mean and the variance of their sum.
        """
        seen, squares = self.pairs.seen[..., None], self.pairs.squares[..., None]
        scale = np.divide(squares, seen, out=np.zeros_like(seen), where=seen > 0)
        shape = np.divide(seen, scale, out=np.zeros_like(seen), where=seen > 0)
        return rng.standard_gamma(np.broadcast_to(shape, (*shape.shape[:2], n))) * scale

    def gradients(self, z: Floats, seen: Floats) -> Floats:
        """The gradients at many parameters with their own counts of outcomes (outcome x pair x draw)."""
        m, t = self.margins(z)
        by_m, by_t = self.model.slopes(m, np.asarray(t), seen)
        found = self.pairs.incidence.T @ by_m
        return np.vstack([found, by_t]) if self.model.has_ties else found

    def _transposed(self, by_m: Floats) -> Floats:
        """Sums of a number of each pair over the parameters of its margin."""
        n = self.n_items
        scores = np.bincount(self.pairs.left, by_m, n) - np.bincount(self.pairs.right, by_m, n)
        return np.concatenate([scores, self.pairs.design.T @ by_m])

    def _squares(self, by_mm: Floats, by_mt: Floats, by_tt: Floats) -> Floats:
        """The sum over all pairs of a matrix for each, of second derivatives or of products of slopes."""
        n, pairs, ties = self.n_items, self.pairs, int(self.model.has_ties)
        q = pairs.design.shape[1]
        out = np.zeros((n + q + ties,) * 2)
        off = np.bincount(pairs.left * np.int64(n) + pairs.right, by_mm, n * n).reshape(n, n)
        out[:n, :n] = -off - off.T
        out[np.arange(n), np.arange(n)] += np.bincount(pairs.left, by_mm, n) + np.bincount(pairs.right, by_mm, n)
        beside = [self._transposed(by_mm * column) for column in pairs.design.T]
        for place, column in enumerate(beside, n):
            out[: n + q, place] = out[place, : n + q] = column
        if ties:
            out[:-1, -1] = out[-1, :-1] = self._transposed(by_mt)
            out[-1, -1] = by_tt.sum()
        return out


@dataclass(frozen=True, eq=False)
class _Alike:
    """Rankings of the same length: their members, the best first, and which rankings they are.

    Scores and what is made of them may have another axis behind, that of draws.
    """

    members: Int32s  # ranking x place
    which: Int64s
    n_items: int

    @cached_property
    def incidence(self) -> scipy.sparse.csr_array:
        """Which members each item is."""
        places = (self.members.ravel(), np.arange(self.members.size))
        return scipy.sparse.coo_array((np.ones(self.members.size), places), (self.n_items, self.members.size)).tocsr()

    def totals(self, values: Floats) -> Floats:
        """The sum of a number of each member by item."""
        found: Floats = self.incidence @ values.reshape(self.members.size, *values.shape[2:])
        return found

    def by_row(self, values: Floats, rows: Int64s, shape: tuple[int, int]) -> scipy.sparse.csr_array:
        """A number of each member as a sparse matrix of these rows x items."""
        places = (np.repeat(rows, self.members.shape[1]), self.members.ravel())
        return scipy.sparse.coo_array((values.ravel(), places), shape=shape).tocsr()

    def choices(self, s: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """At these scores: each ranking's loss, e^s, and the sums over the choices so far of 1/T and 1/T^2.

        T is the sum of e^s over the items that a choice is made from: the chosen one and all that come later.
        """
        own = s[self.members]
        top = own.max(axis=1, keepdims=True)
        e = np.exp(own - top)
        totals = np.cumsum(e[:, ::-1], axis=1)[:, ::-1][:, :-1]
        loss = (np.log(totals) + top - own[:, :-1]).sum(axis=1)
        firsts, seconds = np.cumsum(1 / totals, axis=1), np.cumsum(1 / totals**2, axis=1)
        whole = [np.concatenate([one, one[:, -1:]], axis=1) for one in (firsts, seconds)]
        return loss, e, whole[0], whole[1]

    def slopes(self, s: Floats) -> Floats:
        """The derivative of each ranking's loss by the score of each of its members."""
        _, e, firsts, _ = self.choices(s)
        found = e * firsts
        found[:, :-1] -= 1
        return found


@dataclass(frozen=True, eq=False)
class OfRankings:
    """The losses of rankings under the model of Plackett and Luce: the best is chosen, then the best of the rest.

    An item is chosen with probability e^s / (sum of e^s over those that are left). R. L. Plackett (1975), JRSS C 24.
    """

    n_items: int
    rankings: Rankings
    names: tuple[str, ...] = ()

    @property
    def start(self) -> Floats:
        """All items equal."""
        return np.zeros(self.n_items)

    @cached_property
    def alike(self) -> list[_Alike]:
        """The rankings by their length; those of one item say nothing."""
        found = []
        for length in np.unique(self.rankings.lengths):
            which = np.flatnonzero(self.rankings.lengths == length)
            members = self.rankings.members[self.rankings.indptr[which][:, None] + np.arange(length)]
            found += [_Alike(members, which, self.n_items)] if length > 1 else []
        return found

    def at(self, z: Floats) -> Point:
        """The objective at these scores."""
        n, value = self.n_items, 0.0
        gradient, hessian = np.zeros(n), np.zeros((n, n))
        for alike in self.alike:
            loss, e, firsts, seconds = alike.choices(z)
            value += float(loss.sum())
            gradient += alike.totals(alike.slopes(z))
            hessian[np.arange(n), np.arange(n)] += alike.totals(e * firsts)
            hessian -= _products(alike, e, seconds, n)
        return Point(value, gradient, hessian)

    def by_group(self, z: Floats, groups: Groups) -> scipy.sparse.csr_array:
        """The gradient of each group of rankings, of which `groups` says the one of each comparison."""
        owners, shape = self._owners(groups), (len(groups.names), self.n_items)
        found = scipy.sparse.csr_array(shape)
        for alike in self.alike:
            found = found + alike.by_row(alike.slopes(z), owners[alike.which], shape)
        return found

    def own_squares(self, z: Floats) -> Floats:
        """The sum of g g' over single rankings."""
        found = np.zeros((self.n_items,) * 2)
        for alike in self.alike:
            rows = np.arange(len(alike.which))
            g = alike.by_row(alike.slopes(z), rows, (len(rows), self.n_items))
            found += (g.T @ g).toarray()
        return found

    def reweighted(self, groups: Groups | None) -> Reweighted:
        """The gradient with other weights; what is drawn are weights of rankings (ranking x draw)."""
        owners = np.arange(len(self.rankings.lengths)) if groups is None else self._owners(groups)
        size = len(owners) if groups is None else len(groups.names)
        return Reweighted(size, lambda rng, n: rng.standard_exponential((size, n))[owners], self._weighed)

    def _weighed(self, z: Floats, weights: Floats) -> Floats:
        """The gradients at many parameters with their own weights."""
        found, draws = np.zeros_like(z), z.shape[1]
        for alike in self.alike:
            step = max(1, _AT_ONCE // alike.members.size)
            for part in (slice(low, low + step) for low in range(0, draws, step)):
                found[:, part] += alike.totals(alike.slopes(z[:, part]) * weights[alike.which, None, part])
        return found

    def _owners(self, groups: Groups) -> Int64s:
        """The group of each ranking, from those of the comparisons that follow from it."""
        owners = np.zeros(len(self.rankings.lengths), np.int64)
        owners[self.rankings.of_pairs] = groups.codes
        return owners


def _products(alike: _Alike, e: Floats, seconds: Floats, n: int) -> Floats:
    """The sum over rankings of e_a e_b (sum of 1/T^2 over the choices from both a and b), for items a and b."""
    length = e.shape[1]
    earlier = np.minimum.outer(np.arange(length), np.arange(length))
    found, step = np.zeros(n * n), max(1, _BLOCK // length**2)
    for low in range(0, len(e), step):
        rows = slice(low, low + step)
        keys = alike.members[rows, :, None] * np.int64(n) + alike.members[rows, None, :]
        values = e[rows, :, None] * e[rows, None, :] * seconds[rows][:, earlier]
        found += np.bincount(keys.ravel(), values.ravel(), n * n)
    return found.reshape(n, n)


Problem = OfPairs | OfRankings
