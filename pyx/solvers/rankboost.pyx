"""RankBoost with thresholds on features, users side by side: no pair is ever listed.

The weight of a pair (i, k), y_i < y_k, is exp(h_i - h_k): a product of one factor for each of its items. So
a threshold that says 1 on a set A has r = sum over A of pull_k, with pull_k = sum_{i below k} exp(h_i - h_k)
- sum_{i above k} exp(h_k - h_i), over the weight of all pairs; and two scans over the places, which are a
user's rows by ascending target, give every pull. As pulls sum to zero, a feature's largest group of equal
values is never visited: thresholds below it are summed up from below, those above it from above.
"""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport INFINITY, atanh, exp, fabs
from libc.stdint cimport int8_t, int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankbench.kernels.shared.parallel cimport team
from rankbench.kernels.shared.sorting cimport argsort

cdef enum:
    _BELOW = -1  # a run of the rows with a feature's lowest values, upwards
    _ABOVE = 1  # one of those with its highest values, downwards

cdef struct Columns:
    # The features of one user's rows, feature by feature, zeros left out; and memory to sort one of them.
    Py_ssize_t rows
    int64_t *ends  # feature f lies in ends[f - 1] .. ends[f]
    int32_t *places
    double *values
    double *keys  # by place
    int32_t *order
    int32_t *scratch

cdef struct Sorted:
    # One feature's rows by value: order[:low] below the group that is left out, order[high:n] above it.
    Py_ssize_t n
    Py_ssize_t low
    Py_ssize_t high
    double left_out

cdef struct Runs:
    # Where one user's runs go; entries == NULL: they are only counted.
    int64_t n_entries
    int64_t n_runs
    int64_t first_entry
    int32_t *entries  # places; ~place where a group of equal values ends, so that a threshold may stand there
    double *thresholds
    int64_t *starts
    int32_t *features
    int8_t *sides

cdef struct Best:
    # The threshold of a chunk with the largest sum of pulls on one side of it.
    double pull
    int64_t entry
    int64_t run


def count_runs(
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[::1] pairs,
    const int64_t[::1] feature_indptr,
    const int32_t[::1] feature_indices,
    const double[::1] feature_values,
    Py_ssize_t n_features,
    int64_t[::1] n_entries,
    int64_t[::1] n_runs,
    int threads,
):
    """How many entries and runs each user with pairs has; rows ascend by target, features are CSR by item."""
    threads = team(threads)
    cdef Py_ssize_t user
    cdef int32_t[::1] failed = np.zeros(pairs.shape[0] + 1, np.int32)
    for user in prange(pairs.shape[0], nogil=True, schedule="dynamic", num_threads=threads):
        n_entries[user] = 0
        n_runs[user] = 0
        if pairs[user] > 0:
            failed[user] = _count_user(
                &items[indptr[user]], indptr[user + 1] - indptr[user], &feature_indptr[0],
                feature_indices, feature_values, n_features, &n_entries[user], &n_runs[user],
            )
    if np.any(failed):
        raise MemoryError


def list_runs(
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[::1] pairs,
    const int64_t[::1] feature_indptr,
    const int32_t[::1] feature_indices,
    const double[::1] feature_values,
    Py_ssize_t n_features,
    const int64_t[::1] user_entries,
    const int64_t[::1] user_runs,
    int32_t[::1] entries,
    double[::1] thresholds,
    int64_t[::1] run_starts,
    int32_t[::1] run_features,
    int8_t[::1] run_sides,
    int threads,
):
    """Write down the runs that were counted, user after user."""
    threads = team(threads)
    cdef Py_ssize_t user
    cdef int64_t run, entry
    cdef int32_t[::1] failed = np.zeros(pairs.shape[0] + 1, np.int32)
    for user in prange(pairs.shape[0], nogil=True, schedule="dynamic", num_threads=threads):
        run = user_runs[user]
        entry = user_entries[user]
        if user_runs[user + 1] > run:
            failed[user] = _list_user(
                &items[indptr[user]], indptr[user + 1] - indptr[user], &feature_indptr[0],
                feature_indices, feature_values, n_features, entry, &entries[entry], &thresholds[entry],
                &run_starts[run], &run_features[run], &run_sides[run],
            )
    if np.any(failed):
        raise MemoryError
    run_starts[run_starts.shape[0] - 1] = entries.shape[0]


def weigh(
    const int64_t[::1] indptr,
    const double[::1] values,
    const double[::1] pairs,
    const double[::1] scores,
    double[::1] pulls,
    double[::1] totals,
    double[::1] losses,
    int threads,
):
    """Each row's pull and each user's weight of all pairs, both up to a factor; and a pair's mean weight."""
    threads = team(threads)
    cdef Py_ssize_t user
    for user in prange(pairs.shape[0], nogil=True, schedule="dynamic", num_threads=threads):
        if pairs[user] > 0:
            _weigh(
                &values[indptr[user]], &scores[indptr[user]], indptr[user + 1] - indptr[user], pairs[user],
                &pulls[indptr[user]], &totals[user], &losses[user],
            )


def boost(
    const int64_t[::1] indptr,
    const double[::1] values,
    const double[::1] pairs,
    const int64_t[::1] user_chunks,
    const int32_t[::1] chunk_users,
    const int64_t[::1] chunk_runs,
    const int64_t[::1] run_starts,
    const int32_t[::1] run_features,
    const int8_t[::1] run_sides,
    const int32_t[::1] entries,
    const double[::1] thresholds,
    double[::1] scores,
    double[::1] pulls,
    double[::1] totals,
    double[::1] losses,
    int32_t[::1] features,
    double[::1] cuts,
    double[::1] weights,
    int threads,
):
    """One threshold more for each user, and all that `weigh` fills with it; weight 0 where none tells pairs apart.

    Runs are searched in chunks, whoever's they are, and then a user's chunks compared in their order.
    """
    threads = team(threads)
    cdef Py_ssize_t n_chunks = chunk_users.shape[0], chunk, user
    cdef Best *found = <Best *> malloc((n_chunks + 1) * sizeof(Best))
    if found == NULL:
        raise MemoryError
    for chunk in prange(n_chunks, nogil=True, schedule="dynamic", num_threads=threads):
        found[chunk] = _search(
            &run_starts[0], chunk_runs[chunk], chunk_runs[chunk + 1], &entries[0], &pulls[indptr[chunk_users[chunk]]]
        )
    for user in prange(pairs.shape[0], nogil=True, schedule="dynamic", num_threads=threads):
        features[user] = 0
        cuts[user] = 0.0
        weights[user] = 0.0
        if user_chunks[user + 1] > user_chunks[user]:
            _add_threshold(
                _best_of(found + user_chunks[user], user_chunks[user + 1] - user_chunks[user]),
                pairs[user], totals[user], run_starts, run_features, run_sides, entries, thresholds,
                &scores[indptr[user]], &features[user], &cuts[user], &weights[user],
            )
        if weights[user] != 0.0:
            _weigh(
                &values[indptr[user]], &scores[indptr[user]], indptr[user + 1] - indptr[user], pairs[user],
                &pulls[indptr[user]], &totals[user], &losses[user],
            )
    free(found)


# ---- what is searched: laid out once ----


cdef int _count_user(
    const int32_t *items, Py_ssize_t n, const int64_t *feature_indptr, const int32_t[::1] feature_indices,
    const double[::1] feature_values, Py_ssize_t n_features, int64_t *n_entries, int64_t *n_runs,
) noexcept nogil:
    cdef Runs runs = Runs(0, 0, 0, NULL, NULL, NULL, NULL, NULL)
    cdef int failed = _lay_out(
        items, n, feature_indptr, feature_indices, feature_values, n_features, &runs
    )
    n_entries[0], n_runs[0] = runs.n_entries, runs.n_runs
    return failed


cdef int _list_user(
    const int32_t *items, Py_ssize_t n, const int64_t *feature_indptr, const int32_t[::1] feature_indices,
    const double[::1] feature_values, Py_ssize_t n_features, int64_t first_entry, int32_t *entries,
    double *thresholds, int64_t *starts, int32_t *features, int8_t *sides,
) noexcept nogil:
    cdef Runs runs = Runs(0, 0, first_entry, entries, thresholds, starts, features, sides)
    return _lay_out(items, n, feature_indptr, feature_indices, feature_values, n_features, &runs)


cdef int _lay_out(
    const int32_t *items, Py_ssize_t n, const int64_t *feature_indptr, const int32_t[::1] feature_indices,
    const double[::1] feature_values, Py_ssize_t n_features, Runs *runs,
) noexcept nogil:
    """All runs of one user, feature by feature; 1 if there is no memory for it."""
    cdef Py_ssize_t size = 0, k, f
    cdef int64_t first = 0
    cdef Columns columns
    cdef Sorted rows
    cdef char *memory
    for k in range(n):
        size += feature_indptr[items[k] + 1] - feature_indptr[items[k]]
    memory = <char *> malloc(
        (n_features + 1) * sizeof(int64_t) + (size + n) * sizeof(double) + (size + 2 * n) * sizeof(int32_t)
    )
    if memory == NULL:
        return 1
    columns.rows = n
    columns.ends = <int64_t *> memory
    columns.values = <double *> (columns.ends + n_features + 1)
    columns.keys = columns.values + size
    columns.places = <int32_t *> (columns.keys + n)
    columns.order = columns.places + size
    columns.scratch = columns.order + n
    _transpose(items, n, feature_indptr, feature_indices, feature_values, n_features, &columns)
    for f in range(n_features):
        if columns.ends[f] > first:
            rows = _sort_feature(&columns, first, columns.ends[f])
            _write_runs(&columns, rows, <int32_t> f, runs)
        first = columns.ends[f]
    free(memory)
    return 0


cdef void _transpose(
    const int32_t *items, Py_ssize_t n, const int64_t *indptr, const int32_t[::1] indices,
    const double[::1] values, Py_ssize_t n_features, Columns *columns,
) noexcept nogil:
    """CSR to columns, by counting; while they are filled, ends[f] is the next free place of feature f."""
    cdef Py_ssize_t k, f
    cdef int64_t entry, before = 0, count
    for f in range(n_features):
        columns.ends[f] = 0
    for k in range(n):
        for entry in range(indptr[items[k]], indptr[items[k] + 1]):
            columns.ends[indices[entry]] += 1
    for f in range(n_features):
        count = columns.ends[f]
        columns.ends[f] = before
        before += count
    for k in range(n):
        for entry in range(indptr[items[k]], indptr[items[k] + 1]):
            f = indices[entry]
            columns.places[columns.ends[f]] = <int32_t> k
            columns.values[columns.ends[f]] = values[entry]
            columns.ends[f] += 1


cdef Sorted _sort_feature(Columns *columns, int64_t first, int64_t end) noexcept nogil:
    """Sort one feature's rows by value and say which group is left out: zero if most are zero, else the largest."""
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


cdef void _write_runs(const Columns *columns, Sorted rows, int32_t feature, Runs *runs) noexcept nogil:
    """What lies below the group that is left out, upwards to it; and what lies above, downwards to it."""
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


cdef inline void _start_run(Runs *runs, int32_t feature, int8_t side) noexcept nogil:
    if runs.entries != NULL:
        runs.starts[runs.n_runs] = runs.first_entry + runs.n_entries
        runs.features[runs.n_runs] = feature
        runs.sides[runs.n_runs] = side
    runs.n_runs += 1


cdef inline void _write_entry(Runs *runs, int32_t place, double value, double next_) noexcept nogil:
    if runs.entries != NULL:
        runs.entries[runs.n_entries] = place if value == next_ else ~place
        runs.thresholds[runs.n_entries] = _between(min(value, next_), max(value, next_))
    runs.n_entries += 1


cdef inline double _between(double low, double high) noexcept nogil:
    """The middle; the lower one where no number lies between: whatever is above it is at least `high`."""
    cdef double middle = 0.5 * low + 0.5 * high
    return middle if low <= middle < high else low


# ---- a round ----


cdef Best _search(
    const int64_t *starts, int64_t first, int64_t end, const int32_t *entries, const double *pulls
) noexcept nogil:
    """The largest |sum of pulls| over the runs first .. end; of those equal up to rounding, the first."""
    cdef Best best = Best(0.0, -1, -1)
    cdef double beyond = 0.0, sum_
    cdef int64_t run, k
    cdef int32_t entry
    for run in range(first, end):
        sum_ = 0.0
        for k in range(starts[run], starts[run + 1]):
            entry = entries[k]
            sum_ += pulls[entry ^ (entry >> 31)]  # ~place is place with every bit turned
            if entry < 0 and fabs(sum_) > beyond:
                beyond = fabs(sum_) * (1.0 + 1e-12)
                best = Best(sum_, k, run)
    return best


cdef Best _best_of(const Best *found, Py_ssize_t n) noexcept nogil:
    """The best of a user's chunks, by the same rule as within one."""
    cdef Best best = found[0]
    cdef Py_ssize_t k
    for k in range(1, n):
        if fabs(found[k].pull) > fabs(best.pull) * (1.0 + 1e-12):
            best = found[k]
    return best


cdef void _add_threshold(
    Best best, double pairs, double total, const int64_t[::1] run_starts, const int32_t[::1] run_features,
    const int8_t[::1] run_sides, const int32_t[::1] entries, const double[::1] thresholds,
    double *scores, int32_t *feature, double *cut, double *weight,
) noexcept nogil:
    """alpha = 1/2 ln((1 + r) / (1 - r)), r kept half a pair away from 1; the rows' scores move up to a constant.

    The sum over a run from below is -r: instead of adding alpha to all above the threshold, take it from
    those below, which are fewer and which changes no difference.
    """
    cdef double limit = 1.0 - 0.5 / pairs, r
    cdef int side
    cdef int64_t k
    cdef int32_t entry
    if best.entry < 0 or not total > 0.0:
        return
    side = run_sides[best.run]
    r = max(-limit, min(limit, side * best.pull / total))
    if fabs(r) < 1e-12:
        return  # rounding: no threshold tells anything apart
    feature[0] = run_features[best.run]
    cut[0] = thresholds[best.entry]
    weight[0] = atanh(r)
    for k in range(run_starts[best.run], best.entry + 1):
        entry = entries[k]
        scores[entry ^ (entry >> 31)] += side * weight[0]


cdef void _weigh(
    const double *values, const double *scores, Py_ssize_t n, double pairs,
    double *pulls, double *total, double *loss,
) noexcept nogil:
    """All pulls in two scans; every weight is divided by e^top, the largest, so that none overflows."""
    cdef double top = _largest_difference(values, scores, n), peak = -INFINITY, sum_ = 0.0
    cdef Py_ssize_t start = 0, end, k
    total[0] = 0.0
    while start < n:
        end = _end_of_level(values, start, n)
        for k in range(start, end):
            pulls[k] = sum_ * exp(peak - scores[k] - top)
            total[0] += pulls[k]
        for k in range(start, end):
            _join(scores[k], &peak, &sum_)
        start = end
    peak, sum_, end = -INFINITY, 0.0, n
    while end > 0:
        start = end - 1
        while start > 0 and values[start - 1] == values[start]:
            start -= 1
        for k in range(start, end):
            pulls[k] -= sum_ * exp(peak + scores[k] - top)
        for k in range(start, end):
            _join(-scores[k], &peak, &sum_)
        end = start
    loss[0] = total[0] / pairs * exp(top)


cdef inline void _join(double exponent, double *peak, double *sum_) noexcept nogil:
    """Add e^exponent to sum_ e^peak, peak being the largest exponent so far."""
    if exponent > peak[0]:
        sum_[0] = sum_[0] * exp(peak[0] - exponent) + 1.0
        peak[0] = exponent
    else:
        sum_[0] += exp(exponent - peak[0])


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
    cdef Py_ssize_t end = start + 1
    while end < n and values[end] == values[start]:
        end += 1
    return end
