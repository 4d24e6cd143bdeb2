"""RankSVMs with the squared hinge: pair losses of all tasks with their state kept, and Newton steps task by task.

Tasks are independent and each is worked on by one thread in a fixed order, so no bit depends on the
number of threads.
"""

from cython.parallel cimport parallel, prange
from libc.math cimport fmin, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from rankbench.kernels.methods.all_pairs cimport (
    Rows, Scratch, Task, Windows, curve, evaluate, longest_task, rows_of, scratch_in, scratch_size,
    task_of,
)
from rankbench.kernels.shared.lanes cimport dot
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.sorting cimport in_order

cdef enum:
    _INNER = 500  # conjugate gradients per Newton step, at most
    _HALVINGS = 40

cdef double _SUFFICIENT = 1e-4  # of the decrease that the gradient promises (Armijo)

cdef struct Features:
    # dense (indptr = NULL) or CSR, a row per item
    const double *values
    const int32_t *indptr
    const int32_t *columns
    Py_ssize_t d

cdef struct Memory:
    # one thread's: vectors over features, padded to whole lanes; then over the task's items
    double *weights
    double *gradient
    double *direction
    double *residual
    double *conjugate
    double *product
    double *scores
    double *moves
    double *slope
    double *curved
    double *degree
    double *trial
    double *rows  # the task's items' dense features, gathered
    Windows windows
    Scratch scratch


def scores_dense(
    const int64_t[::1] indptr, const int32_t[::1] items, const double[:, ::1] features,
    const double[:, ::1] weights, double[::1] out, int threads,
):
    """The product of each row's item's features with its task's weights."""
    threads = team(threads)
    cdef Features all_features = Features(&features[0, 0], NULL, NULL, features.shape[1])
    _scores(&all_features, indptr, items, weights, out, threads)


def scores_sparse(
    const int64_t[::1] indptr, const int32_t[::1] items, const double[::1] values,
    const int32_t[::1] feature_indptr, const int32_t[::1] columns,
    const double[:, ::1] weights, double[::1] out, int threads,
):
    """The same for features in CSR."""
    threads = team(threads)
    cdef Features all_features = _sparse(values, feature_indptr, columns, weights.shape[1])
    _scores(&all_features, indptr, items, weights, out, threads)


def sums_dense(
    const int64_t[::1] indptr, const int32_t[::1] items, const double[:, ::1] features,
    const double[::1] slope, double[:, ::1] out, int threads,
):
    """Each task's sum of its items' features, weighted by its rows of slope."""
    threads = team(threads)
    cdef Features all_features = Features(&features[0, 0], NULL, NULL, features.shape[1])
    _sums(&all_features, indptr, items, slope, out, threads)


def sums_sparse(
    const int64_t[::1] indptr, const int32_t[::1] items, const double[::1] values,
    const int32_t[::1] feature_indptr, const int32_t[::1] columns,
    const double[::1] slope, double[:, ::1] out, int threads,
):
    """The same for features in CSR."""
    threads = team(threads)
    cdef Features all_features = _sparse(values, feature_indptr, columns, out.shape[1])
    _sums(&all_features, indptr, items, slope, out, threads)


def newton_dense(
    const int64_t[::1] indptr, const int32_t[::1] level, const int32_t[::1] levels,
    const int64_t[::1] pair_indptr, const int32_t[::1] better, const int32_t[::1] worse,
    const int32_t[::1] items, const double[:, ::1] features, double C, double tolerance,
    double[:, ::1] weights, int32_t[::1] done, int threads,
):
    """One truncated Newton step of every task that is not done."""
    threads = team(threads)
    cdef Rows rows = rows_of(indptr, level, levels, pair_indptr, better, worse)
    cdef Features all_features = Features(&features[0, 0], NULL, NULL, features.shape[1])
    _newton(&rows, &items[0], &all_features, C, tolerance, weights, done, threads)


def newton_sparse(
    const int64_t[::1] indptr, const int32_t[::1] level, const int32_t[::1] levels,
    const int64_t[::1] pair_indptr, const int32_t[::1] better, const int32_t[::1] worse,
    const int32_t[::1] items, const double[::1] values, const int32_t[::1] feature_indptr,
    const int32_t[::1] columns, double C, double tolerance,
    double[:, ::1] weights, int32_t[::1] done, int threads,
):
    """The same for features in CSR."""
    threads = team(threads)
    cdef Rows rows = rows_of(indptr, level, levels, pair_indptr, better, worse)
    cdef Features all_features = _sparse(values, feature_indptr, columns, weights.shape[1])
    _newton(&rows, &items[0], &all_features, C, tolerance, weights, done, threads)


cdef Features _sparse(
    const double[::1] values, const int32_t[::1] indptr, const int32_t[::1] columns, Py_ssize_t d
):
    return Features(&values[0], &indptr[0], &columns[0], d)


cdef int _scores(
    const Features *features, const int64_t[::1] indptr, const int32_t[::1] items,
    const double[:, ::1] weights, double[::1] out, int threads,
) except -1:
    cdef Py_ssize_t number
    for number in prange(weights.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        _task_scores(features, &items[0], indptr[number], indptr[number + 1], &weights[number, 0], &out[0])
    return 0


cdef void _task_scores(
    const Features *features, const int32_t *items, int64_t first, int64_t end, const double *weights, double *out
) noexcept nogil:
    cdef int64_t row
    for row in range(first, end):
        out[row] = _item_score(features, items[row], weights)


cdef inline double _item_score(const Features *features, int32_t item, const double *weights) noexcept nogil:
    """x_item . w; of dense features the whole lanes first, then what is left, in order."""
    cdef Py_ssize_t k, whole = features.d - features.d % 4
    cdef const double *x
    cdef double score = 0.0
    if features.indptr != NULL:
        for k in range(features.indptr[item], features.indptr[item + 1]):
            score += features.values[k] * weights[features.columns[k]]
        return score
    x = features.values + item * features.d
    score = dot(x, weights, whole)
    for k in range(whole, features.d):
        score += x[k] * weights[k]
    return score


cdef int _sums(
    const Features *features, const int64_t[::1] indptr, const int32_t[::1] items,
    const double[::1] slope, double[:, ::1] out, int threads,
) except -1:
    cdef Py_ssize_t number
    for number in prange(out.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        _task_sums(features, &items[0], indptr[number], indptr[number + 1], &slope[0], &out[number, 0])
    return 0


cdef void _task_sums(
    const Features *features, const int32_t *items, int64_t first, int64_t end, const double *slope, double *out
) noexcept nogil:
    cdef int64_t row
    memset(out, 0, features.d * sizeof(double))
    for row in range(first, end):
        _add_item(features, items[row], slope[row], out)


cdef inline void _add_item(const Features *features, int32_t item, double weight, double *out) noexcept nogil:
    """out += weight x_item"""
    cdef Py_ssize_t k
    cdef const double *x
    if features.indptr != NULL:
        for k in range(features.indptr[item], features.indptr[item + 1]):
            out[features.columns[k]] += weight * features.values[k]
        return
    x = features.values + item * features.d
    for k in range(features.d):
        out[k] += weight * x[k]


cdef int _newton(
    const Rows *rows, const int32_t *items, const Features *features, double C, double tolerance,
    double[:, ::1] weights, int32_t[::1] done, int threads,
) except -1:
    """Tasks side by side, each thread in memory of its own."""
    cdef Py_ssize_t tasks = weights.shape[0], number, longest = longest_task(rows, tasks)
    cdef Py_ssize_t own_scratch = scratch_size(rows, tasks), padded = _padded(features.d)
    cdef Py_ssize_t size = 6 * padded + 9 * longest + own_scratch + (0 if features.indptr else longest * padded) + 1
    cdef double *memory = <double *> malloc(threads * size * sizeof(double))
    cdef Memory own
    if memory == NULL:
        raise MemoryError
    with nogil, parallel(num_threads=threads):
        own = _divide(memory + thread_id() * size, padded, longest, own_scratch)
        for number in prange(tasks, schedule="dynamic", chunksize=4):
            if not done[number]:
                done[number] = _newton_step(rows, number, items, features, C, tolerance, &weights[number, 0], &own)
    free(memory)
    return 0


cdef inline Py_ssize_t _padded(Py_ssize_t d) noexcept nogil:
    return (d + 3) // 4 * 4


cdef Memory _divide(double *memory, Py_ssize_t d, Py_ssize_t n, Py_ssize_t scratch) noexcept nogil:
    """Who gets which part of a thread's memory."""
    cdef Memory own
    cdef double *by_item = memory + 6 * d
    cdef int32_t *windows = <int32_t *> (by_item + 6 * n)
    own.weights, own.gradient, own.direction = memory, memory + d, memory + 2 * d
    own.residual, own.conjugate, own.product = memory + 3 * d, memory + 4 * d, memory + 5 * d
    own.scores, own.moves, own.slope = by_item, by_item + n, by_item + 2 * n
    own.curved, own.degree, own.trial = by_item + 3 * n, by_item + 4 * n, by_item + 5 * n
    own.windows = Windows(windows, windows + n, windows + 2 * n)
    own.scratch = scratch_in(by_item + 9 * n, n)
    own.rows = by_item + 9 * n + scratch
    return own


cdef int _newton_step(
    const Rows *rows, Py_ssize_t number, const int32_t *items, const Features *features, double C,
    double tolerance, double *weights, Memory *own,
) noexcept nogil:
    """min 1/2 |w|^2 + C loss(X w): one step from `weights`; returns whether the task is done.

    By the duality gap, which is half the squared gradient (with the dual variables 2 C (1 - margin)_+), or
    because no step along the direction lowers the objective any more.
    """
    cdef Task task = task_of(rows, number)
    cdef Features gathered = _gather(features, items + rows.indptr[number], task.n, own)
    cdef const int32_t *own_items = items + rows.indptr[number]
    cdef Py_ssize_t d = features.d, padded = _padded(d), k
    cdef double objective, squared, length, tolerated
    if task.n == 0:
        return 1
    memset(own.weights, 0, padded * sizeof(double))
    for k in range(d):
        own.weights[k] = weights[k]
    _forward(&gathered, own_items, task.n, own.weights, own.scores)
    in_order(own.windows.order, task.n)
    objective = C * evaluate(&task, own.scores, own.windows, own.degree, own.slope, &own.scratch)
    objective += 0.5 * dot(own.weights, own.weights, padded)
    _backward(&gathered, own_items, task.n, padded, own.slope, 2.0 * C, own.weights, own.gradient)
    squared = dot(own.gradient, own.gradient, padded)
    if not 0.5 * squared > tolerance * objective:
        return 1
    tolerated = fmin(0.1, sqrt(0.5 * squared / objective))
    _conjugate_gradients(&task, &gathered, own_items, C, padded, squared, tolerated, own)
    length = _line_search(&task, &gathered, own_items, C, padded, objective, own)
    for k in range(d):
        weights[k] += length * own.direction[k]
    return length == 0.0


cdef Features _gather(const Features *features, const int32_t *items, Py_ssize_t n, Memory *own) noexcept nogil:
    """The task's dense rows, one after the other and padded: they stay in the cache. CSR stays where it is."""
    cdef Py_ssize_t row, k, padded = _padded(features.d)
    cdef const double *x
    if features.indptr != NULL:
        return features[0]
    for row in range(n):
        x = features.values + items[row] * features.d
        for k in range(features.d):
            own.rows[row * padded + k] = x[k]
        for k in range(features.d, padded):
            own.rows[row * padded + k] = 0.0
    return Features(own.rows, NULL, NULL, padded)


cdef void _forward(
    const Features *gathered, const int32_t *items, Py_ssize_t n, const double *weights, double *out
) noexcept nogil:
    """out = X w over the task's items."""
    cdef Py_ssize_t row
    if gathered.indptr != NULL:
        _task_scores(gathered, items, 0, n, weights, out)
        return
    for row in range(n):
        out[row] = dot(gathered.values + row * gathered.d, weights, gathered.d)


cdef void _backward(
    const Features *gathered, const int32_t *items, Py_ssize_t n, Py_ssize_t padded, const double *slope,
    double scale, const double *plus, double *out,
) noexcept nogil:
    """out = plus + scale X^T slope"""
    cdef Py_ssize_t row, k
    cdef double weight
    cdef const double *x
    for k in range(padded):
        out[k] = plus[k]
    for row in range(n):
        weight = scale * slope[row]
        if gathered.indptr != NULL:
            _add_item(gathered, items[row], weight, out)
        elif weight != 0.0:
            x = gathered.values + row * padded
            for k in range(padded):
                out[k] += weight * x[k]


cdef void _conjugate_gradients(
    const Task *task, const Features *gathered, const int32_t *items, double C, Py_ssize_t padded,
    double squared, double tolerance, Memory *own,
) noexcept nogil:
    """direction = -H^-1 gradient with H = I + 2 C X^T L X, as far as the relative residual `tolerance`.

    Invariant: residual = -gradient - H direction, squared = |residual|^2.
    """
    cdef Py_ssize_t k, _iteration
    cdef double stop = tolerance * tolerance * squared, step, before
    for k in range(padded):
        own.direction[k] = 0.0
        own.residual[k] = own.conjugate[k] = -own.gradient[k]
    for _iteration in range(_INNER):
        _forward(gathered, items, task.n, own.conjugate, own.moves)
        curve(task, own.scores, own.windows, own.degree, own.moves, own.curved, &own.scratch)
        _backward(gathered, items, task.n, padded, own.curved, 2.0 * C, own.conjugate, own.product)
        step = squared / dot(own.conjugate, own.product, padded)
        for k in range(padded):
            own.direction[k] += step * own.conjugate[k]
            own.residual[k] -= step * own.product[k]
        before = squared
        squared = dot(own.residual, own.residual, padded)
        if not squared > stop:
            return
        for k in range(padded):
            own.conjugate[k] = own.residual[k] + squared / before * own.conjugate[k]


cdef double _line_search(
    const Task *task, const Features *gathered, const int32_t *items, double C, Py_ssize_t padded,
    double objective, Memory *own,
) noexcept nogil:
    """The first of 1, 1/2, 1/4 ... of the direction that lowers the objective enough; 0 if none does.

    Trials need no features: the scores move along a line, and the size of the weights is a parabola.
    """
    cdef double along = dot(own.weights, own.direction, padded), promised = dot(own.gradient, own.direction, padded)
    cdef double size = dot(own.weights, own.weights, padded), own_size = dot(own.direction, own.direction, padded)
    cdef double length = 1.0, found
    cdef Py_ssize_t _halving, i
    _forward(gathered, items, task.n, own.direction, own.moves)
    for _halving in range(_HALVINGS):
        for i in range(task.n):
            own.trial[i] = own.scores[i] + length * own.moves[i]
        found = C * evaluate(task, own.trial, own.windows, own.degree, own.slope, &own.scratch)
        found += 0.5 * (size + length * (2.0 * along + length * own_size))
        if found < objective + _SUFFICIENT * length * promised:
            return length
        length *= 0.5
    return 0.0
