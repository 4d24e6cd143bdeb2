"""RankBoost with thresholds on features, with users in parallel and without a list of pairs.

The weight of a pair (i, k), y_i < y_k, is exp(h_i - h_k): a product of one factor for each of its items. So a
threshold that is 1 on a set A has r = sum over A of pull_k, with pull_k = sum_{i below k} exp(h_i - h_k)
- sum_{i above k} exp(h_k - h_i), divided by the weight of all pairs. Two scans over the places, which are a user's
rows by ascending target, give every pull. As pulls sum to zero, a feature's largest group of equal values is not
visited: thresholds below it are summed up from below, and thresholds above it from above.
"""

# Roof of boost by entries, an entry: 4 bytes; 3 flops; 1 / 8 lines.
# Roof of boost by rows, a row: 56 bytes; 12 flops; 4 calls.

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int8_t, int32_t, int64_t

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints, longs, taken
from rankbench.kernels.shared.checks cimport above_ids, agree
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.powers cimport log_of_one_plus, power, powers
from rankbench.kernels.shared.rows cimport SparseRows, SparseView, first_value
from rankbench.kernels.shared.sorting cimport argsort

cdef enum:
    _BELOW = -1  # a run of the rows with a feature's lowest values, upwards
    _ABOVE = 1  # a run of the rows with its highest values, downwards
    _CHUNK = 1 << 15  # entries in a unit of work of a thread
    _NEAR = 1300  # scores that differ by less have powers, from their middle, whose sums and products do not overflow

cdef struct Columns:
    # The nonzero features of one user's rows, feature by feature, and scratch memory to sort one feature.
    Py_ssize_t rows
    int64_t *ends  # feature f lies in ends[f - 1] .. ends[f]
    int32_t *places
    double *values
    double *keys  # one per place
    int32_t *order
    int32_t *scratch

cdef struct Problem:
    # Ratings by user, in ascending order, the number of pairs by user, and the features of the items.
    SparseView ratings
    const double *pairs
    SparseView features
    Py_ssize_t n_features

cdef struct Size:
    # The largest size of the columns of one user.
    Py_ssize_t rows
    Py_ssize_t entries

cdef struct Counts:
    # Where the entries and the runs of each user start; while they are counted, user u's count is at u + 1.
    int64_t *entries
    int64_t *runs

cdef struct Sorted:
    # One feature's rows by value: order[:low] below the group that is left out, order[high:n] above it.
    Py_ssize_t n
    Py_ssize_t low
    Py_ssize_t high
    double left_out

cdef struct Written:
    # The numbers of entries and runs written so far, and the arrays they go to; entries == NULL: count only.
    int64_t entry
    int64_t run
    int32_t *entries
    double *cuts
    int64_t *starts
    int32_t *features
    int8_t *sides

cdef struct Best:
    # The threshold with the largest absolute sum of pulls on one side of it, in a chunk.
    double pull
    int64_t entry
    int64_t run

cdef struct Rows:
    # One user's rows, by ascending value.
    Py_ssize_t n
    const double *values
    const double *scores
    double *rising  # e^(score - the middle of the scores)
    double *falling  # e^(the middle - score - top)
    double *pulls

cdef struct Threshold:
    # [x_feature > cut] times a weight; weight 0: none.
    int32_t feature
    double cut
    double weight


cdef class RunList:
    """All thresholds that a round may choose from, as runs of a user's rows sorted by the value of one feature.

    A run goes from the lowest value up or from the highest down, and ends before the largest group of equal
    values, which need not be visited. Run r holds entries[starts[r]:starts[r + 1]]. An entry is the place of a row, or
    ~place where a group of equal values ends, so that a threshold may stand there; `cuts` holds the threshold. Chunks
    of consecutive runs of one user are the units of work. The memory is 12 bytes per entry.
    """

    cdef int32_t[::1] entries
    cdef double[::1] cuts
    cdef int64_t[::1] starts
    cdef int32_t[::1] features
    cdef int8_t[::1] sides
    cdef int64_t[::1] user_chunks  # the chunks of each user
    cdef int32_t[::1] chunk_users
    cdef int64_t[::1] chunk_runs  # the first run of each chunk, and the end of the last chunk

    def __init__(
        self, *, SparseRows ratings, const double[::1] pairs, SparseRows features, Py_ssize_t n_features, int threads
    ):
        """List the runs of each user with pairs; its rows ascend by target, and `features` has a row for each item.

        The runs are counted first, and then written, user by user.
        """
        threads = team(threads)
        cdef Py_ssize_t n_users = ratings.view.n, n_chunks
        cdef int64_t n_entries, n_runs
        cdef int64_t[:, ::1] starts = np.zeros((2, n_users + 1), np.int64)
        cdef Counts counts = Counts(&starts[0, 0], &starts[1, 0])
        cdef Problem problem = Problem(ratings.view, first_value(pairs), features.view, n_features)
        cdef Written written = Written(0, 0, NULL, NULL, NULL, NULL, NULL)
        above_ids("n_features", n_features, features.columns)
        if pairs.shape[0] != n_users:
            raise ValueError(f"there are {n_users} users but {pairs.shape[0]} numbers of pairs")
        _list_runs(&problem, counts, written, threads)
        np.cumsum(starts, axis=1, out=np.asarray(starts))
        n_entries, n_runs = starts[0, n_users], starts[1, n_users]
        self.entries, self.cuts = np.empty(n_entries, np.int32), np.empty(n_entries)
        self.starts = np.empty(n_runs + 1, np.int64)
        self.features, self.sides = np.empty(n_runs, np.int32), np.empty(n_runs, np.int8)
        if n_runs > 0:
            written = Written(
                0, 0, &self.entries[0], &self.cuts[0], &self.starts[0], &self.features[0], &self.sides[0]
            )
            _list_runs(&problem, counts, written, threads)
        self.starts[n_runs] = n_entries
        n_chunks = _cut_into_chunks(self, counts, n_users, False)
        self.user_chunks = np.empty(n_users + 1, np.int64)
        self.chunk_users, self.chunk_runs = np.empty(n_chunks, np.int32), np.empty(n_chunks + 1, np.int64)
        _cut_into_chunks(self, counts, n_users, True)

    def __len__(self) -> int:
        """The number of entries that a round reads."""
        return self.entries.shape[0]


cdef class Boosting:
    """The state of boosting: each row's score and pull, and each user's weight of all pairs and mean weight.

    A user's rows of `ratings` ascend by value; `pairs` is the user's number of pairs of different values. `totals`
    holds the weight of all pairs up to a factor: a user with total 0 gets no further threshold. `losses` holds the mean
    weight of a pair. The caller owns both arrays.
    """

    cdef SparseRows ratings
    cdef const double[::1] pairs
    cdef double[::1] scores
    cdef double[::1] pulls
    cdef double[::1] rising
    cdef double[::1] falling
    cdef double[::1] totals
    cdef double[::1] losses

    def __init__(self, *, SparseRows ratings, const double[::1] pairs, double[::1] totals, double[::1] losses):
        """Take the arrays, without a copy; all scores are 0, and no pair has a weight yet."""
        if not ratings.view.n == pairs.shape[0] == totals.shape[0] == losses.shape[0]:
            raise ValueError("each user must have a number of pairs, a total and a loss")
        self.ratings, self.pairs, self.totals, self.losses = ratings, pairs, totals, losses
        self.scores, self.pulls, self.rising, self.falling = np.zeros((4, ratings.values.shape[0]))


def weigh(*, Boosting boosting, int threads):
    """Compute each row's pull, and each user's weight of all pairs and mean weight, from the scores."""
    threads = team(threads)
    cdef Py_ssize_t user
    for user in prange(boosting.pairs.shape[0], nogil=True, schedule="dynamic", num_threads=threads):
        if boosting.pairs[user] > 0:
            _weigh_user(boosting, user)


def boost(
    *, Boosting boosting, RunList runs, int32_t[::1] features, double[::1] cuts, double[::1] weights, int threads
):
    """Choose one more threshold for each user, and weigh all pairs again; weight 0 if no threshold separates pairs.

    Runs are searched in chunks, in parallel, and then a user's chunks are compared in order. For each entry a round
    reads 4 bytes and a pull, which is mostly in the cache.
    """
    threads = team(threads)
    agree("users with runs", runs.user_chunks.shape[0] - 1, boosting.pairs.shape[0])
    agree("features", features.shape[0], boosting.pairs.shape[0])
    agree("cuts", cuts.shape[0], boosting.pairs.shape[0])
    agree("weights", weights.shape[0], boosting.pairs.shape[0])
    cdef Py_ssize_t n_chunks = runs.chunk_users.shape[0], chunk, user
    cdef Arena arena = Arena(NULL, 0)
    cdef Best *found = <Best *> taken(&arena, n_chunks, sizeof(Best))
    cdef Scratch scratch = Scratch(arena.used, 1)
    cdef Threshold chosen
    arena = scratch.share(0)
    found = <Best *> taken(&arena, n_chunks, sizeof(Best))
    for chunk in prange(n_chunks, nogil=True, schedule="dynamic", num_threads=threads):
        found[chunk] = _search(
            &runs.starts[0], runs.chunk_runs[chunk], runs.chunk_runs[chunk + 1], &runs.entries[0],
            &boosting.pulls[boosting.ratings.view.indptr[runs.chunk_users[chunk]]],
        )
    for user in prange(boosting.pairs.shape[0], nogil=True, schedule="dynamic", num_threads=threads):
        chosen = _choose(boosting, runs, user, found)
        features[user] = chosen.feature
        cuts[user] = chosen.cut
        weights[user] = chosen.weight
        if chosen.weight != 0.0:
            _weigh_user(boosting, user)


# ---- the list of runs, made once ----


cdef void _list_runs(const Problem *problem, Counts counts, Written all_runs, int threads):
    """Count the runs of every user with pairs, or write them from each user's start."""
    cdef Py_ssize_t user
    cdef Size size = _largest(problem)
    cdef Arena arena = Arena(NULL, 0)
    cdef Columns columns = _lay_out(&arena, size, problem.n_features)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        columns = _lay_out(&arena, size, problem.n_features)
        for user in prange(problem.ratings.n, schedule="dynamic"):
            if problem.pairs[user] > 0:
                _list_user(problem, user, counts, all_runs, columns)


cdef Size _largest(const Problem *problem) noexcept:
    """The largest number of rows of a user with pairs, and of entries of features in a user's rows."""
    cdef Size size = Size(0, 0)
    cdef Py_ssize_t user, row, entries
    cdef int32_t item
    for user in range(problem.ratings.n):
        if problem.pairs[user] > 0:
            entries = 0
            for row in range(problem.ratings.indptr[user], problem.ratings.indptr[user + 1]):
                item = problem.ratings.columns[row]
                entries += problem.features.indptr[item + 1] - problem.features.indptr[item]
            size.entries = max(size.entries, entries)
            size.rows = max(
                size.rows, <Py_ssize_t> (problem.ratings.indptr[user + 1] - problem.ratings.indptr[user])
            )
    return size


cdef Columns _lay_out(Arena *arena, Size size, Py_ssize_t n_features) noexcept nogil:
    """Scratch memory for the columns of one user, not filled in."""
    return Columns(
        0, longs(arena, n_features), ints(arena, size.entries), floats(arena, size.entries), floats(arena, size.rows),
        ints(arena, size.rows), ints(arena, size.rows),
    )


cdef void _list_user(
    const Problem *problem, Py_ssize_t user, Counts counts, Written runs, Columns columns
) noexcept nogil:
    """Count all runs of one user, or write them, feature by feature."""
    cdef Py_ssize_t f
    cdef int64_t first = 0
    if runs.entries != NULL:
        runs.entry, runs.run = counts.entries[user], counts.runs[user]
    columns.rows = problem.ratings.indptr[user + 1] - problem.ratings.indptr[user]
    _transpose(problem, problem.ratings.columns + problem.ratings.indptr[user], &columns)
    for f in range(problem.n_features):
        if columns.ends[f] > first:
            _write_runs(&columns, _sort_feature(&columns, first, columns.ends[f]), <int32_t> f, &runs)
        first = columns.ends[f]
    if runs.entries == NULL:
        counts.entries[user + 1], counts.runs[user + 1] = runs.entry, runs.run


cdef void _transpose(const Problem *problem, const int32_t *items, Columns *columns) noexcept nogil:
    """Turn the items' rows of features into columns, by counting.

    Invariant: while the columns are filled, ends[f] is the next free slot of feature f.
    """
    cdef Py_ssize_t k, f
    cdef int64_t entry, before = 0, count
    cdef SparseView rows = problem.features
    for f in range(problem.n_features):
        columns.ends[f] = 0
    for k in range(columns.rows):
        for entry in range(rows.indptr[items[k]], rows.indptr[items[k] + 1]):
            columns.ends[rows.columns[entry]] += 1
    for f in range(problem.n_features):
        count = columns.ends[f]
        columns.ends[f] = before
        before += count
    for k in range(columns.rows):
        for entry in range(rows.indptr[items[k]], rows.indptr[items[k] + 1]):
            f = rows.columns[entry]
            columns.places[columns.ends[f]] = <int32_t> k
            columns.values[columns.ends[f]] = rows.values[entry]
            columns.ends[f] += 1


cdef Sorted _sort_feature(Columns *columns, int64_t first, int64_t end) noexcept nogil:
    """One feature's rows by value, and the group to leave out: the zeros if most values are 0, else the largest."""
    cdef Py_ssize_t n = columns.rows, k, start = 0
    cdef int64_t entry
    cdef bint mostly_zero = 2 * (end - first) <= n
    cdef Sorted rows = Sorted(n, 0, 0, 0.0)
    if mostly_zero:
        rows.n = end - first
    else:
        for k in range(n):
            columns.keys[k] = 0.0
            columns.order[k] = <int32_t> k
    for entry in range(first, end):
        columns.keys[columns.places[entry]] = columns.values[entry]
        if mostly_zero:
            columns.order[entry - first] = columns.places[entry]
    argsort(columns.keys, columns.order, columns.scratch, rows.n)
    if mostly_zero:
        for k in range(rows.n):
            rows.low += columns.keys[columns.order[k]] < 0.0
            rows.high += columns.keys[columns.order[k]] <= 0.0
        return rows
    for k in range(1, n + 1):
        if k == n or columns.keys[columns.order[k]] != columns.keys[columns.order[start]]:
            if k - start > rows.high - rows.low:
                rows.low, rows.high = start, k
            start = k
    rows.left_out = columns.keys[columns.order[rows.low]]
    return rows


cdef void _write_runs(const Columns *columns, Sorted rows, int32_t feature, Written *runs) noexcept nogil:
    """Write the run of the rows below the left-out group, upwards, and the run of the rows above it, downwards."""
    cdef Py_ssize_t k
    cdef double value, next_
    if rows.low > 0:
        _start_run(runs, feature, _BELOW)
        for k in range(rows.low):
            value = columns.keys[columns.order[k]]
            next_ = columns.keys[columns.order[k + 1]] if k + 1 < rows.low else rows.left_out
            _write_entry(runs, columns.order[k], value, next_)
    if rows.high < rows.n:
        _start_run(runs, feature, _ABOVE)
        for k in range(rows.n - 1, rows.high - 1, -1):
            value = columns.keys[columns.order[k]]
            next_ = columns.keys[columns.order[k - 1]] if k > rows.high else rows.left_out
            _write_entry(runs, columns.order[k], value, next_)


cdef inline void _start_run(Written *runs, int32_t feature, int8_t side) noexcept nogil:
    """Begin a run of this feature."""
    if runs.entries != NULL:
        runs.starts[runs.run] = runs.entry
        runs.features[runs.run] = feature
        runs.sides[runs.run] = side
    runs.run += 1


cdef inline void _write_entry(Written *runs, int32_t place, double value, double next_) noexcept nogil:
    """Add a row to the run; a threshold is allowed between two different values."""
    if runs.entries != NULL:
        runs.entries[runs.entry] = place if value == next_ else ~place
        runs.cuts[runs.entry] = _between(min(value, next_), max(value, next_))
    runs.entry += 1


cdef inline double _between(double low, double high) noexcept nogil:
    """The midpoint, or `low` if there is no number between them: values above the cut are at least `high`."""
    cdef double middle = 0.5 * low + 0.5 * high
    return middle if low <= middle < high else low


cdef int64_t _cut_into_chunks(RunList runs, Counts counts, Py_ssize_t n_users, bint write) noexcept nogil:
    """The number of chunks, which are filled in if `write` is true.

    A chunk ends with its user, and where a run starts in another multiple of _CHUNK entries than the run before it.
    """
    cdef Py_ssize_t user
    cdef int64_t run, part, last = 0, chunk = 0
    for user in range(n_users):
        if write:
            runs.user_chunks[user] = chunk
        for run in range(counts.runs[user], counts.runs[user + 1]):
            part = (runs.starts[run] - counts.entries[user]) // _CHUNK
            if run == counts.runs[user] or part != last:
                if write:
                    runs.chunk_users[chunk] = <int32_t> user
                    runs.chunk_runs[chunk] = run
                chunk += 1
                last = part
    if write:
        runs.user_chunks[n_users] = chunk
        runs.chunk_runs[chunk] = counts.runs[n_users]
    return chunk


# ---- a round ----


cdef Best _search(
    const int64_t *starts, int64_t first, int64_t end, const int32_t *entries, const double *pulls
) noexcept nogil:
    """The threshold with the largest |sum of pulls| in the runs first .. end; of ties up to rounding the first."""
    cdef Best best = Best(0.0, -1, -1)
    cdef double beyond = 0.0, sum_
    cdef int64_t run, k
    cdef int32_t entry
    for run in range(first, end):
        sum_ = 0.0
        for k in range(starts[run], starts[run + 1]):
            entry = entries[k]
            sum_ += pulls[entry ^ (entry >> 31)]  # ~place is place with every bit flipped
            if entry < 0 and fabs(sum_) > beyond:
                beyond = fabs(sum_) * (1.0 + 1e-12)
                best = Best(sum_, k, run)
    return best


cdef Best _best_of(const Best *found, Py_ssize_t n) noexcept nogil:
    """The best threshold of a user's chunks; the first if several tie up to rounding."""
    cdef Best best = found[0]
    cdef Py_ssize_t k
    for k in range(1, n):
        if fabs(found[k].pull) > fabs(best.pull) * (1.0 + 1e-12):
            best = found[k]
    return best


cdef inline Threshold _choose(Boosting boosting, RunList runs, Py_ssize_t user, const Best *found) noexcept nogil:
    """Choose the threshold of one user, add it to the scores of the user's rows, and return it."""
    cdef int64_t first = runs.user_chunks[user], end = runs.user_chunks[user + 1]
    if end == first:
        return Threshold(0, 0.0, 0.0)
    return _add_threshold(
        _best_of(found + first, end - first), boosting.pairs[user], boosting.totals[user], runs,
        &boosting.scores[boosting.ratings.view.indptr[user]],
    )


cdef Threshold _add_threshold(Best best, double pairs, double total, RunList runs, double *scores) noexcept nogil:
    """Add a threshold to the scores up to a constant, and return it with its weight alpha; weight 0: no threshold.

    alpha = 1/2 ln((1 + r) / (1 - r)), r kept half a pair away from 1. The sum over a run from below is -r: instead of
    adding alpha to the rows above the threshold, it is subtracted from the rows below, which are fewer; this gives the
    same differences.
    """
    cdef double limit = 1.0 - 0.5 / pairs, r, weight
    cdef int side
    cdef int64_t k
    cdef int32_t entry
    if best.entry < 0 or not total > 0.0:
        return Threshold(0, 0.0, 0.0)
    side = runs.sides[best.run]
    r = max(-limit, min(limit, side * best.pull / total))
    if fabs(r) < 1e-12:
        return Threshold(0, 0.0, 0.0)  # rounding error: no threshold separates any pair
    weight = _half_log_odds(r)
    for k in range(runs.starts[best.run], best.entry + 1):
        entry = runs.entries[k]
        scores[entry ^ (entry >> 31)] += side * weight
    return Threshold(runs.features[best.run], runs.cuts[best.entry], weight)


cdef inline double _half_log_odds(double r) noexcept nogil:
    """artanh(r) = 1/2 ln((1 + r) / (1 - r)), for |r| < 1."""
    cdef double size = fabs(r), half = 0.5 * log_of_one_plus(2.0 * size / (1.0 - size))
    return half if r > 0.0 else -half


cdef inline void _weigh_user(Boosting boosting, Py_ssize_t user) noexcept nogil:
    """Compute the pulls, total weight and loss of one user; every weight is divided by e^top, the largest."""
    cdef Py_ssize_t first = boosting.ratings.view.indptr[user]
    cdef Rows rows = Rows(
        boosting.ratings.view.indptr[user + 1] - first, boosting.ratings.view.values + first, &boosting.scores[first],
        &boosting.rising[first], &boosting.falling[first], &boosting.pulls[first],
    )
    cdef double low = INFINITY, high = -INFINITY, top = _largest_difference(rows.values, rows.scores, rows.n)
    cdef Py_ssize_t k
    for k in range(rows.n):
        low, high = min(low, rows.scores[k]), max(high, rows.scores[k])
    if high - low < _NEAR:
        boosting.totals[user] = _weigh_near(rows, low + 0.5 * (high - low), top)
    else:
        boosting.totals[user] = _weigh_far(rows, top)
    boosting.losses[user] = boosting.totals[user] / boosting.pairs[user] * (power(top) if top < 709.0 else INFINITY)


cdef double _weigh_near(Rows rows, double middle, double top) noexcept nogil:
    """Compute all pulls in two scans, and return their sum; one power of each row either way is all that they need."""
    cdef double total = 0.0, sum_ = 0.0
    cdef Py_ssize_t start = 0, end, k
    for k in range(rows.n):
        rows.falling[k] = -rows.scores[k]
    powers(rows.scores, middle, rows.n, rows.rising)
    powers(rows.falling, top - middle, rows.n, rows.falling)
    while start < rows.n:
        end = _end_of_level(rows.values, start, rows.n)
        for k in range(start, end):
            rows.pulls[k] = sum_ * rows.falling[k]
            total += rows.pulls[k]
        for k in range(start, end):
            sum_ += rows.rising[k]
        start = end
    sum_, end = 0.0, rows.n
    while end > 0:
        start = _start_of_level(rows.values, end)
        for k in range(start, end):
            rows.pulls[k] -= sum_ * rows.rising[k]
        for k in range(start, end):
            sum_ += rows.falling[k]
        end = start
    return total


cdef double _weigh_far(Rows rows, double top) noexcept nogil:
    """The same for scores so far apart that their powers would overflow, with four powers of each row."""
    cdef double total = 0.0, peak = -INFINITY, sum_ = 0.0
    cdef Py_ssize_t start = 0, end, k
    while start < rows.n:
        end = _end_of_level(rows.values, start, rows.n)
        for k in range(start, end):
            rows.pulls[k] = sum_ * power(peak - rows.scores[k] - top)
            total += rows.pulls[k]
        for k in range(start, end):
            _join(rows.scores[k], &peak, &sum_)
        start = end
    peak, sum_, end = -INFINITY, 0.0, rows.n
    while end > 0:
        start = _start_of_level(rows.values, end)
        for k in range(start, end):
            rows.pulls[k] -= sum_ * power(peak + rows.scores[k] - top)
        for k in range(start, end):
            _join(-rows.scores[k], &peak, &sum_)
        end = start
    return total


cdef inline void _join(double exponent, double *peak, double *sum_) noexcept nogil:
    """Add e^exponent to sum_ e^peak, peak being the largest exponent so far."""
    if exponent > peak[0]:
        sum_[0] = sum_[0] * power(peak[0] - exponent) + 1.0
        peak[0] = exponent
    else:
        sum_[0] += power(exponent - peak[0])


cdef double _largest_difference(const double *values, const double *scores, Py_ssize_t n) noexcept nogil:
    """max of h_i - h_k over the pairs y_i < y_k."""
    cdef double largest = -INFINITY, peak = -INFINITY
    cdef Py_ssize_t start = 0, end, k
    while start < n:
        end = _end_of_level(values, start, n)
        for k in range(start, end):
            largest = max(largest, peak - scores[k])
        for k in range(start, end):
            peak = max(peak, scores[k])
        start = end
    return largest


cdef inline Py_ssize_t _end_of_level(const double *values, Py_ssize_t start, Py_ssize_t n) noexcept nogil:
    """The end of the group of values that equal the value at `start`."""
    cdef Py_ssize_t end = start + 1
    while end < n and values[end] == values[start]:
        end += 1
    return end


cdef inline Py_ssize_t _start_of_level(const double *values, Py_ssize_t end) noexcept nogil:
    """The start of the group of values that equal the value before `end`."""
    cdef Py_ssize_t start = end - 1
    while start > 0 and values[start - 1] == values[start]:
        start -= 1
    return start
