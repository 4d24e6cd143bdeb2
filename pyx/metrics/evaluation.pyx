"""Ranking metrics of each user whose candidates are the user's own held-out items, with users side by side.

Definitions stand in rankbench/metrics/records.py. Each user is looked at once, and no more is sorted than the
metrics asked for need. NDCG, precision and other metrics with a cut take the best few items only. Of few ratings all
pairs are compared. Of many, pairs in the wrong order are counted by sorting: scores are dealt out by falling truth, and
each exchange on the way to falling scores is a wrong pair, O(n log n). The rest are sweeps over sorted items.
"""

# Roof of per_user of ndcg, a rating: 16 bytes; 16 flops.
# Roof of per_user of kendall, a rating: 16 bytes; 3 * levels + log2(ratings) + 6 flops.

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport INFINITY, NAN, fabs, isfinite, sqrt
from libc.stdint cimport int64_t

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
    ONE_SIDED_1,
    ONE_SIDED_2,
    ORDERED_PAIRS,
    PAIRWISE_ERROR,
    SPEARMAN,
    TEST_TRAIN_ERROR,
    TEST_TRAIN_PAIRS,
)
from rankbench.kernels.metrics.places cimport (
    PY_SSIZE_T_MAX,
    Depth,
    Places,
    deepened,
    enough_discounts,
    metric_of_places,
    of_places,
)
from rankbench.kernels.metrics.requests cimport Request, RequestView, Requests, request_at
from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, longs, taken
from rankbench.kernels.shared.counting cimport WIDTH, PairCounts, count_pairs, level_below
from rankbench.kernels.shared.lanes cimport total
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.ranked cimport (
    LEVELS,
    Item,
    Tie,
    end_of_tie,
    find_ties,
    highest_truths,
    merge_falling,
    room_for_items,
    sort_falling,
    sort_items,
    take_best,
)
from rankbench.kernels.shared.rows cimport count_rows, first_value, longest_row

cdef enum:
    _FEW = 36  # times as many ratings as a row of lanes holds: all of their pairs are compared sooner than sorted

cdef struct Needs:
    # What the metrics asked for have to know about a user.
    Depth depth
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

cdef struct Memory:
    # Scratch memory of one thread, for one user.
    Item *items  # held-out ones best first
    Item *scratch
    Item *spare
    Tie *ties
    double *highest  # truths, falling
    double *residuals  # score - truth, falling
    double *values
    double *scratch_values
    double *joined  # truths and scores of both parts
    int64_t *starts

cdef struct User:
    # One user's held-out and training ratings, and what is known about them.
    Rows test
    Rows train
    Memory memory
    Places places
    Pairs own  # of two held-out items
    Pairs train_own  # of two training items
    Pairs both  # of any two of both


cdef class RatedScores:
    """The ratings of each user with a model's scores of the same items: those from indptr[u] to indptr[u + 1] are u's.

    No score is NaN.
    """

    cdef const int64_t[::1] indptr
    cdef const double[::1] truth
    cdef const double[::1] scores
    cdef Py_ssize_t n_users

    def __init__(self, *, const int64_t[::1] indptr, const double[::1] truth, const double[::1] scores):
        """Take the arrays, without a copy."""
        if truth.shape[0] != scores.shape[0]:
            raise ValueError(f"there are {truth.shape[0]} ratings but {scores.shape[0]} scores")
        if not np.isfinite(truth).all() or np.isnan(scores).any():
            raise ValueError("ratings must be finite, and no score may be NaN")
        self.n_users = count_rows(indptr, truth.shape[0])
        self.indptr, self.truth, self.scores = indptr, truth, scores


def per_user(*, RatedScores test, Requests requests, int threads, RatedScores train=None) -> Floats:
    """Each metric for each user, metrics x users; NaN where a user has no value.

    `train` holds the same users' training ratings, which metrics of pairs with training items need.
    """
    threads = team(threads)
    cdef Py_ssize_t n_users = test.n_users, user, longest = _longest(test, train) + 1
    cdef Needs needs = _needs(&requests.view)
    result = np.full((requests.view.n, n_users), np.nan)
    cdef double[:, ::1] out = result
    if requests.view.n == 0:
        return result
    if needs.train_pairs and train is None:
        raise ValueError("pairs with training items need the training ratings")
    enough_discounts(requests, longest_row(&test.indptr[0], n_users))
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, longest)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out(&arena, longest)
        for user in prange(n_users, schedule="dynamic", chunksize=64):
            if test.indptr[user + 1] > test.indptr[user]:
                _measure(
                    _of_user(test, user), _of_user(train, user) if needs.train_pairs else Rows(0, NULL, NULL), memory,
                    needs, &requests.view, &out[0, user], n_users,
                )
    return result


cdef Py_ssize_t _longest(RatedScores test, RatedScores train) except -1:
    """The most ratings of any user, training ratings included."""
    cdef Py_ssize_t user, n, longest = 0
    if train is not None and train.n_users != test.n_users:
        raise ValueError(f"{test.n_users} users have held-out ratings but {train.n_users} have training ratings")
    for user in range(test.n_users):
        n = test.indptr[user + 1] - test.indptr[user]
        if train is not None:
            n += train.indptr[user + 1] - train.indptr[user]
        longest = max(longest, n)
    return longest


cdef Memory _lay_out(Arena *arena, Py_ssize_t n) noexcept nogil:
    """Room for users with fewer than n ratings."""
    return Memory(
        room_for_items(arena, n), room_for_items(arena, n),
        room_for_items(arena, n), <Tie *> taken(arena, n, sizeof(Tie)), floats(arena, n),
        floats(arena, n), floats(arena, n), floats(arena, n), floats(arena, 2 * n), longs(arena, n),
    )


cdef inline Rows _of_user(RatedScores rated, Py_ssize_t user) noexcept nogil:
    """The ratings of one user."""
    cdef Py_ssize_t first = rated.indptr[user]
    return Rows(
        rated.indptr[user + 1] - first, first_value(rated.truth) + first, first_value(rated.scores) + first
    )


cdef Needs _needs(const RequestView *asked) noexcept nogil:
    """The least that serves all of the metrics."""
    cdef Needs needs = Needs(Depth(0, 0), False, False, False)
    cdef Py_ssize_t m
    cdef Request request
    for m in range(asked.n):
        request = request_at(asked, m)
        if of_places(request.code):
            needs.depth = deepened(needs.depth, request)
        elif request.code == SPEARMAN:
            needs.depth = Depth(PY_SSIZE_T_MAX, PY_SSIZE_T_MAX)
        elif of_exchanges(request.code):
            needs.depth.places = PY_SSIZE_T_MAX
        needs.residuals |= of_residuals(request.code)
        needs.pairs |= of_pairs(request.code) or request.code == KENDALL
        needs.train_pairs |= of_training_pairs(request.code)
    return needs


cdef void _measure(
    Rows test, Rows train, Memory memory, Needs needs, const RequestView *asked, double *out, Py_ssize_t stride
) noexcept nogil:
    """Write one user's metrics to out[0], out[stride], ..."""
    cdef User user
    cdef Py_ssize_t m
    user.test, user.train, user.memory = test, train, memory
    _prepare(&user, needs)
    for m in range(asked.n):
        out[m * stride] = _metric(&user, request_at(asked, m), asked.discounts)


cdef void _prepare(User *user, Needs needs) noexcept nogil:
    """Sort and count what is needed."""
    cdef Memory memory = user.memory
    cdef Py_ssize_t n = user.test.n, known, i
    if needs.pairs:
        user.own = _pairs_of(&memory, user.test)
    if needs.train_pairs:
        user.train_own = _pairs_of(&memory, user.train)
        user.both = _pairs_of(&memory, _join_rows(user))
    if needs.residuals:
        for i in range(n):
            memory.residuals[i] = user.test.scores[i] - user.test.truth[i]
        sort_falling(memory.residuals, memory.scratch_values, n)
    if needs.depth.highest > 0:
        highest_truths(user.test.truth, n, min(needs.depth.highest, n), memory.highest, memory.scratch_values)
    if needs.depth.places > 0:
        known = take_best(user.test.scores, user.test.truth, n, needs.depth.places, memory.items, memory.scratch)
        user.places = Places(
            False, n, n, user.test.truth, memory.highest, memory.items, memory.ties,
            find_ties(memory.items, known, needs.depth.places, memory.ties),
        )


cdef Rows _join_rows(User *user) noexcept nogil:
    """The held-out and the training ratings, one after the other."""
    cdef Py_ssize_t n = user.test.n + user.train.n, i
    for i in range(user.test.n):
        user.memory.joined[i] = user.test.truth[i]
        user.memory.joined[n + i] = user.test.scores[i]
    for i in range(user.train.n):
        user.memory.joined[user.test.n + i] = user.train.truth[i]
        user.memory.joined[n + user.test.n + i] = user.train.scores[i]
    return Rows(n, user.memory.joined, user.memory.joined + n)


cdef inline bint of_training_pairs(int code) noexcept nogil:
    """Whether a metric looks at pairs with training items."""
    return code in (TEST_TRAIN_ERROR, BOTH_ERROR, TEST_TRAIN_PAIRS, BOTH_PAIRS)


cdef inline bint of_pairs(int code) noexcept nogil:
    """Whether a metric is a share or a number of pairs."""
    return code in (PAIRWISE_ERROR, MISRANKING, ORDERED_PAIRS) or of_training_pairs(code)


cdef inline bint of_residuals(int code) noexcept nogil:
    """Whether a metric is a cost of differences of sorted residuals."""
    return code in (MAGNITUDE_1, INSENSITIVE_1, INSENSITIVE_2)


cdef inline bint of_exchanges(int code) noexcept nogil:
    """Whether a metric is a cost of the pairs in the wrong order."""
    return code in (HINGE_RANK_1, HINGE_RANK_2, ONE_SIDED_1, ONE_SIDED_2)


cdef inline bint of_magnitude(int code) noexcept nogil:
    """Whether a metric is one of Cortes's costs."""
    return code == MAGNITUDE_2 or of_residuals(code) or of_exchanges(code)


cdef double _metric(User *user, Request request, const double *discounts) noexcept nogil:
    """One metric of a user for whom all that it needs has been prepared."""
    if of_places(request.code):
        return metric_of_places(&user.places, request, discounts)
    if request.code == KENDALL:
        return _kendall_tau_b(user.own)
    if request.code == SPEARMAN:
        return _spearman(user)
    if of_magnitude(request.code):
        return _magnitude(user, request)
    if of_pairs(request.code):
        return _of_pairs(user, request.code)
    return NAN  # no metric


# ---- pairs ----


cdef Pairs _pairs_of(Memory *memory, Rows rows) noexcept nogil:
    """The numbers of pairs among these ratings: of few ratings all pairs are looked at, of many they are sorted."""
    cdef double everything = 0.5 * <double> rows.n * <double> (rows.n - 1)
    cdef bint few = rows.n <= _FEW * WIDTH
    cdef PairCounts found = count_pairs(rows.truth, rows.scores, rows.n) if few else _by_sorting(memory, rows)
    return Pairs(
        everything - found.same_truth, everything - found.same_score, found.same_score - found.same_both, found.wrong
    )


cdef PairCounts _by_sorting(Memory *memory, Rows rows) noexcept nogil:
    """The counts of pairs among these ratings in O(n log n) (Knight 1966).

    Scores are dealt out by falling truth; the pairs that sorting by falling score must then exchange are wrong.
    Invariant of the merging: `source` holds the scores, falling within each of the groups between the starts, and
    the exchanges between levels of the same group have been counted.
    """
    cdef Py_ssize_t groups = _deal(memory, rows), group, first, n
    cdef PairCounts found = PairCounts(0, 0, 0, 0)
    cdef double *source = memory.values
    cdef double *target = memory.scratch_values
    cdef double *swap
    for group in range(groups):
        first, n = memory.starts[group], memory.starts[group + 1] - memory.starts[group]
        sort_falling(source + first, target + first, n)
        found.same_truth += n * (n - 1) // 2
        found.same_both += _tied_pairs(source + first, n)
    while groups > 1:
        found.wrong += _merge_groups(source, target, memory.starts, groups)
        groups = (groups + 1) // 2
        swap = source
        source = target
        target = swap
    found.same_score = _tied_pairs(source, rows.n)
    return found


cdef Py_ssize_t _deal(Memory *memory, Rows rows) noexcept nogil:
    """Arrange the scores by falling truth, and note where each level of truth begins; how many levels there are.

    A few levels are found one after the other, O(n) each; where there are many, the ratings are sorted.
    """
    cdef double level = INFINITY
    cdef Py_ssize_t levels = 0, filled = 0, i
    while filled < rows.n and levels < LEVELS:
        memory.starts[levels] = filled
        levels += 1
        level = level_below(rows.truth, rows.n, level).value
        for i in range(rows.n):
            memory.values[filled] = rows.scores[i]
            filled += rows.truth[i] == level
    if filled < rows.n:
        for i in range(rows.n):
            memory.spare[i] = Item(rows.truth[i], rows.scores[i])
        sort_items(memory.spare, memory.scratch, rows.n)
        levels = 0
        for i in range(rows.n):
            memory.values[i] = memory.spare[i].truth
            if i == 0 or memory.spare[i].score != memory.spare[i - 1].score:
                memory.starts[levels] = i
                levels += 1
    memory.starts[levels] = rows.n
    return levels


cdef int64_t _merge_groups(
    double *source, double *target, int64_t *starts, Py_ssize_t groups
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


cdef int64_t _tied_pairs(const double *values, Py_ssize_t n) noexcept nogil:
    """Pairs of equal values, which stand together."""
    cdef int64_t pairs = 0
    cdef Py_ssize_t i, start = 0
    for i in range(1, n + 1):
        if i == n or values[i] != values[start]:
            pairs += (i - start) * (i - start - 1) // 2
            start = i
    return pairs


cdef double _of_pairs(const User *user, int code) noexcept nogil:
    """A share or a number of pairs; those of a held-out and a training item are all less those within either part."""
    cdef Pairs pairs = user.own
    if code in (TEST_TRAIN_ERROR, TEST_TRAIN_PAIRS):
        pairs = _less(_less(user.both, user.own), user.train_own)
    elif code in (BOTH_ERROR, BOTH_PAIRS):
        pairs = _less(user.both, user.train_own)
    if code in (ORDERED_PAIRS, TEST_TRAIN_PAIRS, BOTH_PAIRS):
        return pairs.ordered
    if pairs.ordered == 0.0:
        return NAN
    if code == MISRANKING:
        return (pairs.wrong + pairs.tied) / pairs.ordered
    if code in (PAIRWISE_ERROR, TEST_TRAIN_ERROR, BOTH_ERROR):
        return (pairs.wrong + 0.5 * pairs.tied) / pairs.ordered
    return NAN  # no metric of pairs


cdef Pairs _less(Pairs one, Pairs other) noexcept nogil:
    """The difference, number by number."""
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
    cdef Py_ssize_t n = user.test.n, levels = _levels(user.memory.highest, n, user.memory.spare), first = 0, end, i
    cdef double middle = 0.5 * (n - 1), x, y, xx = 0.0, yy = 0.0, xy = 0.0
    while first < n:
        end = end_of_tie(user.memory.items, first, n)
        y = 0.5 * (first + end - 1) - middle
        for i in range(first, end):
            x = _mid_rank(user.memory.spare, levels, user.memory.items[i].truth) - middle
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
    """The mid-rank of a truth, by binary search."""
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
        return 2.0 / (n * n) * _beyond(user.memory.residuals, user.test.n, 0.0, 1)
    cdef int power = 2 if code in (INSENSITIVE_2, HINGE_RANK_2, ONE_SIDED_2) else 1
    if code in (INSENSITIVE_1, INSENSITIVE_2):
        return 2.0 / (n * n) * _beyond(user.memory.residuals, user.test.n, request.threshold, power)
    if code in (HINGE_RANK_1, HINGE_RANK_2):
        return 2.0 / (n * n) * _over_exchanges(user, False, power)
    if code in (ONE_SIDED_1, ONE_SIDED_2):
        return 2.0 / (n * n) * _over_exchanges(user, True, power)
    return NAN  # no cost of magnitudes


cdef inline void _join(Group *group, double value) noexcept nogil:
    """Add a value to a group."""
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

    A merge sort by falling truth of the items, which stand best first. An item that is taken from the left run has
    been exchanged with all those taken from the right run before it, whose truths are higher and whose v are lower.
    """
    cdef double sum_ = 0.0
    cdef Py_ssize_t n = user.test.n, width = 1, start, i
    cdef Item *source = user.memory.spare
    cdef Item *target = user.memory.scratch
    cdef Item *swap
    for i in range(n):
        source[i] = user.memory.items[i]
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
    """Merge two runs of falling truth; the sum over the exchanged pairs.

    Invariant: `exchanged` holds what has been taken from the right run.
    """
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
