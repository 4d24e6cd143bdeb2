"""The value of a metric under a convention: per user, vectorised over all users, and the mean over those who count.

Where the order of a tie is left open, every value is the expected one over all its orders: at each rank of the tie an
item is relevant with the share of the tie's relevant items, and so on for the sums over ranks.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

import numpy as np
from scipy.special import digamma, gammaln

from rankbench.core.contract import Flags, Floats, Int64s
from rankbench.judging.conventions import (
    Average,
    Candidates,
    Convention,
    Discount,
    Divisor,
    Gain,
    Ideal,
    Missing,
    Ties,
    Unknown,
    Without,
)
from rankbench.judging.rankings import Pool, Ranking, ranked, sums

_IN_PAIRS = {Ties.FIRST: 1.0, Ties.LAST: 0.0}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A run and its truth, evaluated under any convention; orders are kept, since many conventions share them."""

    pool: Pool
    cut: int | None
    kept: dict[tuple[Candidates, Ties], Ranking] = field(default_factory=dict)

    def value(self, convention: Convention) -> float:
        """The metric's mean under this convention; NaN if no user counts."""
        values, weights = self.by_user(convention)
        counted = ~np.isnan(values)
        total = float(weights[counted].sum())
        return float(values[counted] @ weights[counted]) / total if total > 0 else np.nan

    def by_user(self, convention: Convention) -> "Values":
        """The metric's value of each user, NaN for those who do not count, and each user's weight in the mean."""
        ranking = self._ranking(convention)
        hits = _at_least(ranking.relevance, convention.relevant)
        values, divisors = _VALUES[convention.metric](self, convention, ranking, hits)
        weights = np.ones(len(values)) if convention.average == Average.USERS else divisors
        return _counted(self.pool, convention, values), weights

    @property
    def limit(self) -> float:
        """The last rank that counts."""
        return inf if self.cut is None else self.cut

    def _ranking(self, convention: Convention) -> Ranking:
        """The order of all lists under this convention."""
        key = convention.candidates, convention.ties
        if key not in self.kept:
            self.kept[key] = ranked(self.pool, *key)
        return self.kept[key]


Values = tuple[Floats, Floats]  # each user's value, NaN where there is none, and what their weight may be taken from


def _ndcg(of: Evaluation, convention: Convention, ranking: Ranking, hits: Flags) -> Values:
    """DCG of the list, divided by that of the ideal list."""
    gains = _gains(ranking.relevance, hits, convention)
    expected = (ranking.in_tie(gains) / ranking.size)[ranking.tie]
    found = ranking.of_user(np.where(ranking.place <= of.limit, expected * _discounts(ranking.place, convention), 0.0))
    best = _ideal(of, convention)
    values = _ratio(found, best)
    if convention.without == Without.DROPPED:
        values[best == 0] = np.nan
    return values, best


def _ideal(of: Evaluation, convention: Convention) -> Floats:
    """For each user the DCG of the ideal list."""
    pool = of.pool
    chosen = pool.judged & pool.retrieved if convention.ideal == Ideal.RETRIEVED else pool.judged
    owner, relevance = pool.owner[chosen], pool.relevance[chosen]
    gains = _gains(relevance, _at_least(relevance, convention.relevant), convention)
    order = np.lexsort((-gains, owner))
    owner, gains = owner[order], gains[order]
    place = np.arange(len(owner)) - np.searchsorted(owner, np.arange(pool.users))[owner] + 1
    limit = inf if convention.ideal == Ideal.WHOLE else of.limit
    weights = np.where(place <= limit, _discounts(place, convention), 0.0)
    return sums(owner, gains * weights, pool.users)


def _hits(of: Evaluation, convention: Convention, ranking: Ranking, hits: Flags) -> Values:
    """Precision and recall: the hits up to the cut-off by the divisor."""
    share = (ranking.in_tie(hits.astype(np.float64)) / ranking.size)[ranking.tie]
    found = ranking.of_user(np.where(ranking.place <= of.limit, share, 0.0))
    divisors = _divisors(of, convention, ranking)
    return _ratio(found, divisors), divisors


def _average_precision(of: Evaluation, convention: Convention, ranking: Ranking, hits: Flags) -> Values:
    """The sum of the precisions at the ranks of relevant items, or at all ranks, by the divisor."""
    relevant, before = _of_ties(ranking, hits)
    m, r, place = ranking.size[ranking.tie], relevant[ranking.tie], ranking.place
    inside = place - ranking.place[ranking.first][ranking.tie]  # the number of the tie's items before this rank
    if convention.ties == Ties.TOGETHER:
        up_to, place = before[ranking.tie] + r, place - inside + m - 1
    else:
        up_to = before[ranking.tie] + 1.0 + inside * (r - 1) / np.maximum(1, m - 1)
    precision = r / m * up_to / place
    if convention.divisor == Divisor.PLACES:
        return _over_places(of, ranking, before[ranking.tie] + (inside + 1) * r / m)
    divisors = _divisors(of, convention, ranking)
    return _ratio(ranking.of_user(np.where(place <= of.limit, precision, 0.0)), divisors), divisors


def _over_places(of: Evaluation, ranking: Ranking, up_to: Floats) -> Values:
    """The mean precision over all ranks up to the cut-off; a list that ends before it is hit no more."""
    lengths = ranking.lengths
    last = lengths.astype(np.float64) if of.cut is None else np.full(ranking.users, float(of.cut))
    found = ranking.of_user(np.where(ranking.place <= of.limit, up_to / ranking.place, 0.0))
    ends = np.flatnonzero(ranking.place == lengths[ranking.owner])
    in_all = np.zeros(ranking.users)
    in_all[ranking.owner[ends]] = up_to[ends]
    rest = digamma(last + 1) - digamma(np.minimum(lengths, last) + 1)  # the sum of 1 / rank over the ranks after it
    return _ratio(found + in_all * rest, last), last


def _reciprocal_rank(of: Evaluation, convention: Convention, ranking: Ranking, hits: Flags) -> Values:
    """1 / rank of the first relevant item."""
    chances = np.where(ranking.place <= of.limit, _first_hit(ranking, hits), 0.0)
    return ranking.of_user(chances / ranking.place), np.ones(ranking.users)


def _hit_rate(of: Evaluation, convention: Convention, ranking: Ranking, hits: Flags) -> Values:
    """Whether any item up to the cut-off is relevant."""
    chances = np.where(ranking.place <= of.limit, _first_hit(ranking, hits), 0.0)
    return ranking.of_user(chances), np.ones(ranking.users)


def _first_hit(ranking: Ranking, hits: Flags) -> Floats:
    """For each rank the chance that the first relevant item stands there.

    Of the C(m, r) sets of places that r relevant items of a tie of m may take, C(m - i, r - 1) begin with place i.
    """
    relevant, before = _of_ties(ranking, hits)
    chances = np.zeros(len(ranking.owner))
    here = np.flatnonzero(((relevant > 0) & (before == 0))[ranking.tie])
    m, r = ranking.size[ranking.tie][here], relevant[ranking.tie][here]
    after = m - 1 - (ranking.place - ranking.place[ranking.first][ranking.tie])[here]  # places behind this one
    can = after >= r - 1
    chances[here[can]] = np.exp(_log_choose(after[can], r[can] - 1) - _log_choose(m[can], r[can]))
    return chances


def _log_choose(n: Int64s, k: Floats) -> Floats:
    """The logarithm of the number of ways to choose k of n."""
    logs: Floats = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return logs


def _auc(of: Evaluation, convention: Convention, ranking: Ranking, hits: Flags) -> Values:
    """The share of the pairs of a relevant and another item that stand in the right order; a tie counts 1/2."""
    relevant, before = _of_ties(ranking, hits)
    tied = _IN_PAIRS.get(convention.ties, 0.5)
    right = (ranking.size - relevant) * (before + tied * relevant)
    owners = ranking.owner[ranking.first]
    positives = sums(owners, relevant, ranking.users)
    pairs = positives * (ranking.lengths - positives)
    found = np.full(ranking.users, np.nan)
    np.divide(sums(owners, right, ranking.users), pairs, out=found, where=pairs > 0)
    return found, positives if convention.average == Average.POSITIVES else pairs


_VALUES: dict[str, Callable[[Evaluation, Convention, Ranking, Flags], Values]] = {
    "ndcg": _ndcg,
    "precision": _hits,
    "recall": _hits,
    "map": _average_precision,
    "mrr": _reciprocal_rank,
    "hit-rate": _hit_rate,
    "auc": _auc,
}


def _at_least(relevance: Floats, lowest: float | None) -> Flags:
    """Which items count as relevant; never one that is not in the truth."""
    return ~np.isnan(relevance) if lowest is None else relevance >= lowest


def _gains(relevance: Floats, hits: Flags, convention: Convention) -> Floats:
    """What each item is worth."""
    gains = np.zeros(len(relevance))
    own = relevance[hits]
    if convention.gain == Gain.LINEAR:
        gains[hits] = own
    elif convention.gain == Gain.BINARY:
        gains[hits] = 1.0
    else:
        lowest = convention.relevant or 0.0
        gains[hits] = np.exp2(own if convention.gain == Gain.EXPONENTIAL else own - lowest + 1) - 1
    gains[gains < 0] = 0.0
    return gains


def _discounts(place: Int64s, convention: Convention) -> Floats:
    """The weight of each rank."""
    logs: Floats = np.maximum(1.0, np.log2(place)) if convention.discount == Discount.CLIPPED else np.log2(1.0 + place)
    return 1.0 / logs


def _of_ties(ranking: Ranking, hits: Flags) -> tuple[Floats, Floats]:
    """For each tie the number of its relevant items, and of the user's relevant items before it."""
    relevant = ranking.in_tie(hits.astype(np.float64))
    owners = ranking.owner[ranking.first]
    before = np.cumsum(relevant) - relevant
    starts = np.searchsorted(owners, np.arange(ranking.users))
    return relevant, before - before[starts[owners]]


def _divisors(of: Evaluation, convention: Convention, ranking: Ranking) -> Floats:
    """What each user's sum is divided by."""
    relevant = of.pool.count(_at_least(of.pool.relevance, convention.relevant)).astype(np.float64)
    retrieved = np.minimum(ranking.lengths, of.limit)
    if convention.divisor == Divisor.RELEVANT:
        return relevant
    if convention.divisor == Divisor.RELEVANT_OR_CUT:
        return np.minimum(relevant, of.limit)
    if convention.divisor == Divisor.RELEVANT_OR_RETRIEVED:
        return np.minimum(relevant, retrieved)
    return retrieved if of.cut is None or convention.divisor == Divisor.RETRIEVED else np.full(len(relevant), of.limit)


def _ratio(total: Floats, divisors: Floats) -> Floats:
    """total / divisors, and 0 where the divisor is 0."""
    found = np.zeros(len(total))
    np.divide(total, divisors, out=found, where=divisors > 0)
    return found


def _counted(pool: Pool, convention: Convention, values: Floats) -> Floats:
    """The values of the users who count, NaN for all others."""
    values = values.copy()
    in_run, in_truth = pool.count(pool.retrieved) > 0, pool.count(pool.judged) > 0
    none = in_truth & (pool.count(_at_least(pool.relevance, convention.relevant)) == 0)
    counted = in_truth & ~(none & (convention.without == Without.DROPPED))
    if convention.without == Without.ALIKE:
        counted &= ~_alike(pool)
    if convention.metric == "ndcg":  # which has no value where no gain can be had
        counted &= ~np.isnan(values)
    if convention.metric != "auc":  # where a user without a pair has no value
        values[none] = 1.0 if convention.without == Without.ONE else 0.0
    if convention.missing == Missing.ZERO:
        values[in_truth & ~in_run] = 0.0
    if convention.missing == Missing.DROPPED:
        counted &= in_run
    if convention.unknown == Unknown.ZERO:
        counted |= in_run & ~in_truth
        values[in_run & ~in_truth] = 0.0
    return np.where(counted, values, np.nan)


def _alike(pool: Pool) -> Flags:
    """Whether all of a user's items in the truth have the same relevance."""
    highest, lowest = np.full(pool.users, -inf), np.full(pool.users, inf)
    judged = pool.judged
    np.maximum.at(highest, pool.owner[judged], pool.relevance[judged])
    np.minimum.at(lowest, pool.owner[judged], pool.relevance[judged])
    return highest <= lowest
