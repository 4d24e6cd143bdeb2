"""Ranking metrics per user over CSR arrays: every metric in one pass, users side by side.

Definitions stand in rankbench/metrics.py. Tied scores are treated as if each order of the tie were
equally likely, and the expected value is computed in closed form: all places of a tie hold its mean
gain. A user is sorted once by score and once by truth, O(n log n); all else is a sweep.
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport NAN, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from parallel cimport thread_id
from sorting cimport argsort

PAIRWISE_ERROR, NDCG, NDCG_LINEAR, PRECISION, KENDALL, SPEARMAN = range(6)

cdef enum Code:
    _PAIRWISE_ERROR, _NDCG, _NDCG_LINEAR, _PRECISION, _KENDALL, _SPEARMAN

cdef struct Request:
    int code
    Py_ssize_t cut  # places that count; 0: all
    double relevant  # the least truth that counts as relevant

cdef struct User:
    # One user's held-out part, and the thread's own scratch of n each.
    Py_ssize_t n
    const double *truth
    const double *scores
    int32_t *by_score  # ascending in score, ties ascending in truth
    int32_t *by_truth  # ascending in truth, ties ascending in score
    int32_t *scratch
    double *ranks
    double *other_ranks

cdef struct Pairs:
    # Numbers of unordered pairs.
    double ordered  # truth differs
    double distinct  # score differs
    double tied  # truth differs, score does not
    double wrong  # both differ, and they disagree


def per_user(
    const int64_t[::1] indptr,
    const double[::1] truth,
    const double[::1] scores,
    const int32_t[::1] codes,
    const int32_t[::1] cuts,
    const double[::1] relevant,
    const double[::1] discounts,
    int threads,
):
    """metrics x users; NaN for users without an ordered pair. `scores` must hold no NaN."""
    cdef Py_ssize_t n_users = indptr.shape[0] - 1, n_metrics = codes.shape[0], user, m, row
    cdef Py_ssize_t longest = np.diff(indptr).max(initial=0)
    result = np.full((n_metrics, n_users), np.nan)
    cdef double[:, ::1] out = result
    if n_metrics == 0:
        return result
    cdef char *memory = <char *> malloc(threads * (longest + 1) * _BYTES)
    cdef User *members = <User *> malloc(threads * sizeof(User))
    cdef Request *requests = <Request *> malloc(n_metrics * sizeof(Request))
    cdef User *member = members
    try:
        if memory == NULL or members == NULL or requests == NULL:
            raise MemoryError
        for m in range(n_metrics):
            requests[m] = Request(codes[m], cuts[m], relevant[m])
        with nogil, parallel(num_threads=threads):
            member = &members[thread_id()]
            _lay_out(member, memory + thread_id() * (longest + 1) * _BYTES, longest + 1)
            for user in prange(n_users, schedule="dynamic", chunksize=64):
                row = indptr[user]
                if indptr[user + 1] - row > 1:
                    member.n = indptr[user + 1] - row
                    member.truth = &truth[row]
                    member.scores = &scores[row]
                    _evaluate(member, requests, n_metrics, &discounts[0], &out[0, user], n_users)
    finally:
        free(memory)
        free(members)
        free(requests)
    return result


cdef enum:
    _BYTES = 3 * sizeof(int32_t) + 2 * sizeof(double) + 4  # per item; 4 keep the doubles aligned


cdef void _lay_out(User *user, char *memory, Py_ssize_t n) noexcept nogil:
    """Hand a thread's scratch memory to its user: doubles first, then indices."""
    user.ranks = <double *> memory
    user.other_ranks = user.ranks + n
    user.by_score = <int32_t *> (user.other_ranks + n)
    user.by_truth = user.by_score + n
    user.scratch = user.by_truth + n


cdef void _evaluate(
    User *user, const Request *requests, Py_ssize_t n_metrics,
    const double *discounts, double *out, Py_ssize_t stride,
) noexcept nogil:
    """Every requested metric of one user, `stride` apart; left at NaN without an ordered pair."""
    cdef Pairs pairs
    cdef Py_ssize_t m
    _sort_both_ways(user)
    if user.truth[user.by_truth[0]] == user.truth[user.by_truth[user.n - 1]]:
        return
    pairs = _count_pairs(user)
    for m in range(n_metrics):
        out[m * stride] = _metric(user, &pairs, requests[m], discounts)


cdef double _metric(User *user, const Pairs *pairs, Request request, const double *discounts) noexcept nogil:
    cdef Py_ssize_t cut = min(request.cut, user.n) if request.cut > 0 else user.n
    if request.code == _PAIRWISE_ERROR:
        return (pairs.wrong + 0.5 * pairs.tied) / pairs.ordered
    if request.code == _NDCG:
        return _dcg_ratio(user, cut, discounts, _exponential_gain)
    if request.code == _NDCG_LINEAR:
        return _dcg_ratio(user, cut, discounts, _linear_gain)
    if request.code == _PRECISION:
        return _precision(user, cut, request.relevant)
    if request.code == _KENDALL:
        return _kendall_tau_b(pairs)
    return _spearman(user)


cdef void _sort_both_ways(User *user) noexcept nogil:
    """by_truth: (truth, then score); by_score: (score, then truth). The sort is stable."""
    cdef Py_ssize_t i
    for i in range(user.n):
        user.by_score[i] = <int32_t> i
    argsort(user.scores, user.by_score, user.scratch, user.n)
    for i in range(user.n):
        user.by_truth[i] = user.by_score[i]
    argsort(user.truth, user.by_truth, user.scratch, user.n)
    for i in range(user.n):
        user.by_score[i] = user.by_truth[i]
    argsort(user.scores, user.by_score, user.scratch, user.n)


cdef Pairs _count_pairs(User *user) noexcept nogil:
    """Knight 1966: walk in order of truth; a pair is wrong where sorting by score must exchange it."""
    cdef Pairs pairs
    cdef double everything = 0.5 * <double> user.n * <double> (user.n - 1)
    cdef double truth_ties = _tied_pairs(user.truth, user.truth, user.by_truth, user.n)
    cdef double score_ties = _tied_pairs(user.scores, user.scores, user.by_score, user.n)
    cdef double both_tied = _tied_pairs(user.truth, user.scores, user.by_truth, user.n)
    cdef int32_t *walk = <int32_t *> user.ranks  # borrowed: the ranks are filled later
    cdef Py_ssize_t i
    for i in range(user.n):
        walk[i] = user.by_truth[i]
    pairs.ordered = everything - truth_ties
    pairs.distinct = everything - score_ties
    pairs.tied = score_ties - both_tied
    pairs.wrong = <double> _exchanges(user.scores, walk, user.scratch, user.n)
    return pairs


cdef double _tied_pairs(
    const double *first, const double *second, const int32_t *order, Py_ssize_t n
) noexcept nogil:
    """Pairs equal in both keys, given an order in which equals stand together."""
    cdef double pairs = 0.0
    cdef Py_ssize_t i, start = 0
    for i in range(1, n + 1):
        if i == n or first[order[i]] != first[order[start]] or second[order[i]] != second[order[start]]:
            pairs += 0.5 * <double> (i - start) * <double> (i - start - 1)
            start = i
    return pairs


cdef int64_t _exchanges(const double *keys, int32_t *order, int32_t *scratch, Py_ssize_t n) noexcept nogil:
    """How many pairs stand with the strictly larger key first; a merge sort that counts as it goes."""
    cdef int64_t exchanges = 0
    cdef Py_ssize_t width = 1, start, middle, end, left, right, place
    cdef int32_t *source = order
    cdef int32_t *target = scratch
    cdef int32_t *swap
    while width < n:
        start = 0
        while start < n:
            middle, end = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for place in range(start, end):
                if right >= end or (left < middle and keys[source[left]] <= keys[source[right]]):
                    target[place] = source[left]
                    left += 1
                else:
                    target[place] = source[right]
                    right += 1
                    exchanges += middle - left  # all that still wait on the left are larger
            start += 2 * width
        swap = source
        source = target
        target = swap
        width *= 2
    return exchanges


ctypedef double (*Gain)(double) noexcept nogil


cdef extern from "<math.h>" nogil:
    double exp2(double)


cdef double _exponential_gain(double truth) noexcept nogil:
    return exp2(truth) - 1.0


cdef double _linear_gain(double truth) noexcept nogil:
    return truth


cdef double _dcg_ratio(User *user, Py_ssize_t cut, const double *discounts, Gain gain) noexcept nogil:
    """sum over the first places of gain x discount, over the same with the best order; NaN if that is 0."""
    cdef double ideal = 0.0, found = 0.0, mean
    cdef Py_ssize_t place, first = 0, end, i
    for place in range(cut):
        ideal += gain(user.truth[user.by_truth[user.n - 1 - place]]) * discounts[place]
    while first < cut:
        end = _end_of_tie(user, first)
        mean = 0.0
        for i in range(first, end):
            mean += gain(user.truth[user.by_score[user.n - 1 - i]])
        mean /= end - first
        for place in range(first, min(end, cut)):
            found += mean * discounts[place]
        first = end
    return found / ideal if ideal > 0.0 else NAN


cdef double _precision(User *user, Py_ssize_t cut, double relevant) noexcept nogil:
    """The expected share of relevant items among the first `cut` places."""
    cdef double hits = 0.0, in_tie
    cdef Py_ssize_t first = 0, end, i
    while first < cut:
        end = _end_of_tie(user, first)
        in_tie = 0.0
        for i in range(first, end):
            in_tie += user.truth[user.by_score[user.n - 1 - i]] >= relevant
        hits += in_tie * (min(end, cut) - first) / (end - first)
        first = end
    return hits / cut


cdef Py_ssize_t _end_of_tie(const User *user, Py_ssize_t first) noexcept nogil:
    """The place after the last one that shares its score with place `first` (best first)."""
    cdef Py_ssize_t end = first + 1
    cdef double score = user.scores[user.by_score[user.n - 1 - first]]
    while end < user.n and user.scores[user.by_score[user.n - 1 - end]] == score:
        end += 1
    return end


cdef double _kendall_tau_b(const Pairs *pairs) noexcept nogil:
    """(right - wrong) / sqrt(ordered x distinct); 0 for constant scores, as a random order earns."""
    cdef double right = pairs.ordered - pairs.tied - pairs.wrong
    if pairs.distinct == 0.0:
        return 0.0
    return (right - pairs.wrong) / sqrt(pairs.ordered * pairs.distinct)


cdef double _spearman(User *user) noexcept nogil:
    """Pearson's correlation of mid-ranks; 0 for constant scores, as a random order earns."""
    cdef double middle = 0.5 * (user.n - 1), x, y, xx = 0.0, yy = 0.0, xy = 0.0
    cdef Py_ssize_t i
    _mid_ranks(user.truth, user.by_truth, user.ranks, user.n)
    _mid_ranks(user.scores, user.by_score, user.other_ranks, user.n)
    for i in range(user.n):
        x = user.ranks[i] - middle
        y = user.other_ranks[i] - middle
        xx += x * x
        yy += y * y
        xy += x * y
    return xy / sqrt(xx * yy) if yy > 0.0 else 0.0


cdef void _mid_ranks(const double *keys, const int32_t *order, double *ranks, Py_ssize_t n) noexcept nogil:
    """Ranks from 0; equal keys share the mean of theirs."""
    cdef Py_ssize_t i, j, start = 0
    for i in range(1, n + 1):
        if i == n or keys[order[i]] != keys[order[start]]:
            for j in range(start, i):
                ranks[order[j]] = 0.5 * (start + i - 1)
            start = i
