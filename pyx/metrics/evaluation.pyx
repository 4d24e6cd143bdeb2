"""Ranking metrics per user over CSR arrays, candidates the user's own held-out items, users side by side.

Definitions stand in rankbench/metrics/records.py. Each user is looked at once, and no more is sorted than the
metrics asked for need: NDCG, precision and their like at a cut take the best few only; pair counts deal the
scores out by truth and count exchanges while they sort them, O(n log n); the rest are sweeps.
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport INFINITY, NAN, fabs, isfinite, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankbench.kernels.metrics.codes cimport (
    BOTH_ERROR,
    BOTH_PAIRS,
    HINGE_RANK_1,
    HINGE_RANK_2,
    INSENSITIVE_1,
    INSENSITIVE_2,
    KENDALL,
    MAGNITUDE_1,
    MAGNITUDE_2,
    MISRANKING,
    NDCG,
    NDCG_LINEAR,
    ONE_SIDED_1,
    ONE_SIDED_2,
    ORDERED_PAIRS,
    SPEARMAN,
    TEST_TRAIN_ERROR,
    TEST_TRAIN_PAIRS,
)
from rankbench.kernels.shared.lanes cimport total
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.metrics.places cimport (
    PY_SSIZE_T_MAX,
    Places,
    Request,
    furthest,
    metric_of_places,
    of_places,
)
from rankbench.kernels.metrics.ranked cimport (
    LEVELS,
    Item,
    Tie,
    end_of_tie,
    find_ties,
    highest_below,
    highest_truths,
    merge_falling,
    sort_falling,
    sort_items,
    take_best,
)

cdef struct Needs:
    # What the metrics asked for have to know about a user.
    Py_ssize_t places  # how many of the best items; 0: none
    Py_ssize_t highest  # how many of the highest truths; 0: none
    bint pairs
    bint train_pairs
    bint residuals

cdef struct Pairs:
    # Numbers of unordered pairs.
    double ordered  # truth differs
    double distinct  # score differs
    double tied  # truth differs, score does not
    double wrong  # both differ, and they disagree

cdef struct Rows:
    # Some ratings of one user, as they lie in the caller's arrays.
    Py_ssize_t n
    const double *truth
    const double *scores

cdef struct User:
    # One user's held-out and training ratings, and the thread's own memory.
    Rows test
    Rows train
    Places places
    Pairs own  # of two held-out items
    Pairs train_own  # of two training items
    Pairs both  # of any two of both
    Item *items  # held-out ones best first
    Item *scratch
    Item *spare
    Tie *ties
    double *highest  # truths, falling
    double *residuals  # score - truth, falling
    double *values
    double *scratch_values
    double *joined  # truths and scores of both parts
    Py_ssize_t *starts

cdef enum:
    _BYTES = 3 * sizeof(Item) + sizeof(Tie) + 6 * sizeof(double) + sizeof(Py_ssize_t)  # of memory for each item


def per_user(
    const int64_t[::1] indptr,
    const double[::1] truth,
    const double[::1] scores,
    const int32_t[::1] codes,
    const int32_t[::1] cuts,
    const double[::1] thresholds,
    const double[::1] discounts,
    int threads,
    const int64_t[::1] train_indptr=None,
    const double[::1] train_truth=None,
    const double[::1] train_scores=None,
):
    """metrics x users; NaN where a user has no value. `scores` must hold no NaN."""
    threads = team(threads)
    cdef Py_ssize_t n_users = indptr.shape[0] - 1, n_metrics = codes.shape[0], user, m
    cdef bint trained = train_indptr is not None
    result = np.full((n_metrics, n_users), np.nan)
    cdef double[:, ::1] out = result
    if n_metrics == 0:
        return result
    counts = np.diff(indptr) + (np.diff(train_indptr) if trained else 0)
    cdef Py_ssize_t longest = counts.max(initial=0) + 1
    cdef char *memory = <char *> malloc(threads * longest * _BYTES)
    cdef User *members = <User *> malloc(threads * sizeof(User))
    cdef Request *requests = <Request *> malloc(n_metrics * sizeof(Request))
    cdef User *member = members
    cdef Needs needs
    try:
        if memory == NULL or members == NULL or requests == NULL:
            raise MemoryError
        for m in range(n_metrics):
            requests[m] = Request(codes[m], cuts[m], thresholds[m])
        needs = _needs(requests, n_metrics)
        if needs.train_pairs and not trained:
            raise ValueError("pairs with training items need the training ratings")
        with nogil, parallel(num_threads=threads):
            member = &members[thread_id()]
            _lay_out(member, memory + thread_id() * longest * _BYTES, longest)
            for user in prange(n_users, schedule="dynamic", chunksize=64):
                member.test = _rows(indptr, truth, scores, user)
                member.train = _rows(train_indptr, train_truth, train_scores, user) if trained else Rows(0, NULL, NULL)
                if member.test.n > 0:
                    _prepare(member, needs)
                    for m in range(n_metrics):
                        out[m, user] = _metric(member, requests[m], &discounts[0])
    finally:
        free(memory)
        free(members)
        free(requests)
    return result


cdef Rows _rows(
    const int64_t[::1] indptr, const double[::1] truth, const double[::1] scores, Py_ssize_t user
) noexcept nogil:
    cdef Py_ssize_t first = indptr[user], n = indptr[user + 1] - indptr[user]
    return Rows(n, &truth[first], &scores[first]) if n > 0 else Rows(0, NULL, NULL)


cdef void _lay_out(User *user, char *memory, Py_ssize_t n) noexcept nogil:
    """Hand a thread's memory to its user."""
    user.items = <Item *> memory
    user.scratch = user.items + n
    user.spare = user.scratch + n
    user.ties = <Tie *> (user.spare + n)
    user.highest = <double *> (user.ties + n)
    user.residuals = user.highest + n
    user.values = user.residuals + n
    user.scratch_values = user.values + n
    user.joined = user.scratch_values + n
    user.starts = <Py_ssize_t *> (user.joined + 2 * n)


cdef Needs _needs(const Request *requests, Py_ssize_t n) noexcept nogil:
    """The least that serves all of the metrics."""
    cdef Needs needs = Needs(0, 0, False, False, False)
    cdef Py_ssize_t m
    cdef int code
    for m in range(n):
        code = requests[m].code
        if of_places(code):
            needs.places = max(needs.places, furthest(requests[m]))
            if code == NDCG or code == NDCG_LINEAR:
                needs.highest = max(needs.highest, furthest(requests[m]))
        elif code in (TEST_TRAIN_ERROR, BOTH_ERROR, TEST_TRAIN_PAIRS, BOTH_PAIRS):
            needs.pairs = needs.train_pairs = True
        elif code in (MAGNITUDE_1, INSENSITIVE_1, INSENSITIVE_2):
            needs.residuals = True
        elif code == SPEARMAN:
            needs.places = needs.highest = PY_SSIZE_T_MAX
        elif code in (HINGE_RANK_1, HINGE_RANK_2, ONE_SIDED_1, ONE_SIDED_2):
            needs.places = PY_SSIZE_T_MAX
        elif code != MAGNITUDE_2:
            needs.pairs = True
    return needs


cdef void _prepare(User *user, Needs needs) noexcept nogil:
    """Sort and count what is needed."""
    cdef Py_ssize_t n = user.test.n, known, i
    if needs.pairs:
        user.own = _pairs_of(user, user.test)
    if needs.train_pairs:
        user.train_own = _pairs_of(user, user.train)
        user.both = _pairs_of(user, _join_rows(user))
    if needs.residuals:
        for i in range(n):
            user.residuals[i] = user.test.scores[i] - user.test.truth[i]
        sort_falling(user.residuals, user.scratch_values, n)
    if needs.highest > 0:
        highest_truths(user.test.truth, n, min(needs.highest, n), user.highest, user.scratch_values)
    if needs.places > 0:
        known = take_best(user.test.scores, user.test.truth, n, needs.places, user.items, user.scratch)
        user.places = Places(
            False, n, n, user.test.truth, user.highest, user.items, user.ties, find_ties(user.items, known, user.ties)
        )


cdef Rows _join_rows(User *user) noexcept nogil:
    """The held-out and the training ratings side by side."""
    cdef Py_ssize_t n = user.test.n + user.train.n, i
    for i in range(user.test.n):
        user.joined[i] = user.test.truth[i]
        user.joined[n + i] = user.test.scores[i]
    for i in range(user.train.n):
        user.joined[user.test.n + i] = user.train.truth[i]
        user.joined[n + user.test.n + i] = user.train.scores[i]
    return Rows(n, user.joined, user.joined + n)


cdef double _metric(User *user, Request request, const double *discounts) noexcept nogil:
    if of_places(request.code):
        return metric_of_places(&user.places, request, discounts)
    if request.code == KENDALL:
        return _kendall_tau_b(user.own)
    if request.code == SPEARMAN:
        return _spearman(user)
    if request.code >= HINGE_RANK_1:
        return _magnitude(user, request)
    return _of_pairs(user, request.code)


# ---- pairs ----


cdef Pairs _pairs_of(User *user, Rows rows) noexcept nogil:
    """Knight 1966: of scores dealt out by falling truth, those are wrong that sorting must exchange; O(n log n).

    Invariant of the merging: `source` holds the scores, falling within each of the groups between the starts,
    and what was exchanged between levels of the same group is counted.
    """
    cdef double everything = _all_pairs(rows.n), same_truth = 0.0, same_both = 0.0, same_score
    cdef Py_ssize_t groups = _deal(user, rows), group, first, n
    cdef Pairs pairs = Pairs(0.0, 0.0, 0.0, 0.0)
    cdef double *source = user.values
    cdef double *target = user.scratch_values
    cdef double *swap
    for group in range(groups):
        first, n = user.starts[group], user.starts[group + 1] - user.starts[group]
        sort_falling(source + first, target + first, n)
        same_truth += _all_pairs(n)
        same_both += _tied_pairs(source + first, n)
    while groups > 1:
        pairs.wrong += <double> _merge_groups(source, target, user.starts, groups)
        groups = (groups + 1) // 2
        swap = source
        source = target
        target = swap
    same_score = _tied_pairs(source, rows.n)
    pairs.ordered = everything - same_truth
    pairs.distinct = everything - same_score
    pairs.tied = same_score - same_both
    return pairs


cdef Py_ssize_t _deal(User *user, Rows rows) noexcept nogil:
    """Put the scores by falling truth, and the start of each level; how many levels. By sorting, if many."""
    cdef double level = INFINITY
    cdef Py_ssize_t levels = 0, filled = 0, i
    while filled < rows.n and levels < LEVELS:
        user.starts[levels] = filled
        levels += 1
        level = highest_below(rows.truth, rows.n, level)
        for i in range(rows.n):
            user.values[filled] = rows.scores[i]
            filled += rows.truth[i] == level
    if filled < rows.n:
        for i in range(rows.n):
            user.spare[i] = Item(rows.truth[i], rows.scores[i])
        sort_items(user.spare, user.scratch, rows.n)
        levels = 0
        for i in range(rows.n):
            user.values[i] = user.spare[i].truth
            if i == 0 or user.spare[i].score != user.spare[i - 1].score:
                user.starts[levels] = i
                levels += 1
    user.starts[levels] = rows.n
    return levels


cdef int64_t _merge_groups(
    double *source, double *target, Py_ssize_t *starts, Py_ssize_t groups
) noexcept nogil:
    """Merge groups two by two and keep the starts of what they become; how many scores were exchanged."""
    cdef int64_t exchanges = 0
    cdef Py_ssize_t group = 0, first, middle, end
    while group < groups:
        first, middle, end = starts[group], starts[group + 1], starts[min(group + 2, groups)]
        exchanges += merge_falling(source + first, target + first, middle - first, end - first)
        starts[group // 2] = first
        group += 2
    starts[(groups + 1) // 2] = end
    return exchanges


cdef double _all_pairs(Py_ssize_t n) noexcept nogil:
    return 0.5 * <double> n * <double> (n - 1)


cdef double _tied_pairs(const double *values, Py_ssize_t n) noexcept nogil:
    """Pairs of equal values, which stand together."""
    cdef double pairs = 0.0
    cdef Py_ssize_t i, start = 0
    for i in range(1, n + 1):
        if i == n or values[i] != values[start]:
            pairs += _all_pairs(i - start)
            start = i
    return pairs


cdef double _of_pairs(const User *user, int code) noexcept nogil:
    """Shares and numbers of pairs; what couples held-out with training items is all less those of either."""
    cdef Pairs pairs = user.own
    if code in (TEST_TRAIN_ERROR, TEST_TRAIN_PAIRS):
        pairs = _less(_less(user.both, user.own), user.train_own)
    elif code in (BOTH_ERROR, BOTH_PAIRS):
        pairs = _less(user.both, user.train_own)
    if code in (ORDERED_PAIRS, TEST_TRAIN_PAIRS, BOTH_PAIRS):
        return pairs.ordered
    if pairs.ordered == 0.0:
        return NAN
    return (pairs.wrong + (1.0 if code == MISRANKING else 0.5) * pairs.tied) / pairs.ordered


cdef Pairs _less(Pairs one, Pairs other) noexcept nogil:
    return Pairs(
        one.ordered - other.ordered, one.distinct - other.distinct, one.tied - other.tied, one.wrong - other.wrong
    )


# ---- correlations ----


cdef double _kendall_tau_b(Pairs pairs) noexcept nogil:
    """(right - wrong) / sqrt(ordered x distinct); 0 for constant scores, as a random order earns."""
    cdef double right = pairs.ordered - pairs.tied - pairs.wrong
    if pairs.ordered == 0.0:
        return NAN
    if pairs.distinct == 0.0:
        return 0.0
    return (right - pairs.wrong) / sqrt(pairs.ordered * pairs.distinct)


cdef double _spearman(User *user) noexcept nogil:
    """Pearson's correlation of mid-ranks; 0 for constant scores, as a random order earns."""
    cdef Py_ssize_t n = user.test.n, levels = _levels(user.highest, n, user.spare), first = 0, end, i
    cdef double middle = 0.5 * (n - 1), x, y, xx = 0.0, yy = 0.0, xy = 0.0
    while first < n:
        end = end_of_tie(user.items, first, n)
        y = 0.5 * (first + end - 1) - middle
        for i in range(first, end):
            x = _mid_rank(user.spare, levels, user.items[i].truth) - middle
            xx += x * x
            yy += y * y
            xy += x * y
        first = end
    if xx == 0.0:
        return NAN
    return xy / sqrt(xx * yy) if yy > 0.0 else 0.0


cdef Py_ssize_t _levels(const double *truths, Py_ssize_t n, Item *levels) noexcept nogil:
    """Each truth once, falling, with its mid-rank in place of a truth; how many there are."""
    cdef Py_ssize_t i, start = 0, count = 0
    for i in range(1, n + 1):
        if i == n or truths[i] != truths[start]:
            levels[count] = Item(truths[start], 0.5 * (start + i - 1))
            count += 1
            start = i
    return count


cdef double _mid_rank(const Item *levels, Py_ssize_t n, double truth) noexcept nogil:
    """The mid-rank of a truth, found by halving."""
    cdef Py_ssize_t low = 0, half
    while n > 1:
        half = n // 2
        low += half * (levels[low + half].score >= truth)
        n -= half
    return levels[low].truth


# ---- magnitudes (Cortes et al. 2007) ----
#
# Costs are means over all n^2 ordered pairs of a user's items, the diagonal included. With the residuals
# r = score - truth, h_j - h_i - (y_j - y_i) = r_j - r_i; and of a pair that is ordered wrongly both sides of
# |r_j - r_i| = |h_j - h_i| + |y_j - y_i| are known by their signs. Sums over growing sets of values keep their
# number, mean and squared deviations (Welford 1962), so nothing cancels.


cdef struct Group:
    double n
    double mean
    double squares  # sum of squared deviations from the mean


cdef double _magnitude(User *user, Request request) noexcept nogil:
    """One of the four cost functions; NaN with fewer than two items or a score that is not finite."""
    cdef double n = <double> user.test.n
    cdef int code = request.code
    cdef Py_ssize_t i
    if user.test.n < 2:
        return NAN
    for i in range(user.test.n):
        if not isfinite(user.test.scores[i]):
            return NAN
    if code == MAGNITUDE_2:
        return 2.0 / n * _squared_deviations(user.test)
    if code == MAGNITUDE_1:
        return 2.0 / (n * n) * _beyond(user.residuals, user.test.n, 0.0, 1)
    if code in (INSENSITIVE_1, INSENSITIVE_2):
        return 2.0 / (n * n) * _beyond(user.residuals, user.test.n, request.threshold, code - INSENSITIVE_1 + 1)
    if code in (HINGE_RANK_1, HINGE_RANK_2):
        return 2.0 / (n * n) * _over_exchanges(user, False, code - HINGE_RANK_1 + 1)
    return 2.0 / (n * n) * _over_exchanges(user, True, code - ONE_SIDED_1 + 1)


cdef inline void _join(Group *group, double value) noexcept nogil:
    cdef double off = value - group.mean
    group.n += 1.0
    group.mean += off / group.n
    group.squares += off * (value - group.mean)


cdef inline double _distance(Group group, double value, int power) noexcept nogil:
    """sum over the group of |value - member|^power; for power 1 all members must lie on one side."""
    cdef double off = value - group.mean
    return group.n * fabs(off) if power == 1 else group.squares + group.n * off * off


cdef double _squared_deviations(Rows rows) noexcept nogil:
    """sum (r - mean r)^2, O(n): half of 1/n sum over ordered pairs of (r_j - r_i)^2."""
    cdef double mean = (total(rows.scores, rows.n) - total(rows.truth, rows.n)) / rows.n, off, sum_ = 0.0
    cdef Py_ssize_t i
    for i in range(rows.n):
        off = rows.scores[i] - rows.truth[i] - mean
        sum_ += off * off
    return sum_


cdef double _beyond(const double *falling, Py_ssize_t n, double eps, int power) noexcept nogil:
    """sum over unordered pairs of max(|r_j - r_i| - eps, 0)^power: O(n), once they are sorted.

    Invariant: the group holds the values before `joined`, all those more than eps above the j-th.
    """
    cdef Group group = Group(0.0, 0.0, 0.0)
    cdef double sum_ = 0.0
    cdef Py_ssize_t j, joined = 0
    for j in range(n):
        while falling[joined] - falling[j] > eps:
            _join(&group, falling[joined])
            joined += 1
        sum_ += _distance(group, falling[j] + eps, power)
    return sum_


cdef double _over_exchanges(User *user, bint residuals, int power) noexcept nogil:
    """sum over pairs in the wrong order of |v_j - v_i|^power, v the scores or the residuals; O(n log n).

    A merge sort by falling truth of the items, which stand best first. Whoever comes from the left has been
    exchanged with all that came from the right before, whose truths are higher and whose v are lower.
    """
    cdef double sum_ = 0.0
    cdef Py_ssize_t n = user.test.n, width = 1, start, i
    cdef Item *source = user.spare
    cdef Item *target = user.scratch
    cdef Item *swap
    for i in range(n):
        source[i] = user.items[i]
        source[i].score -= source[i].truth if residuals else 0.0
    while width < n:
        start = 0
        while start < n:
            sum_ += _merge_exchanged(
                source + start, target + start, min(width, n - start), min(2 * width, n - start), power
            )
            start += 2 * width
        swap = source
        source = target
        target = swap
        width *= 2
    return sum_


cdef double _merge_exchanged(
    const Item *source, Item *target, Py_ssize_t middle, Py_ssize_t n, int power
) noexcept nogil:
    """Merge two runs of falling truth; the sum over the exchanged pairs."""
    cdef Group exchanged = Group(0.0, 0.0, 0.0)
    cdef double sum_ = 0.0
    cdef Py_ssize_t left = 0, right = middle, place
    for place in range(n):
        if right < n and (left >= middle or source[right].truth > source[left].truth):
            target[place] = source[right]
            _join(&exchanged, source[right].score)
            right += 1
        else:
            target[place] = source[left]
            sum_ += _distance(exchanged, source[left].score, power)
            left += 1
    return sum_
