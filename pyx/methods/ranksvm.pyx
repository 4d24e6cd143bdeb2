"""RankSVMs with the squared hinge: products of tasks with item features, and Newton steps task by task.

Tasks are independent and each is worked on by one thread in a fixed order, so that no bit depends on the number of
threads.
"""

# Roof of scores, a rating: 12 bytes; 2 * features flops; features / 8 lines.
# Roof of sums, a rating: 12 bytes; 2 * features flops; features / 8 lines.

from cython.parallel cimport parallel, prange
from libc.math cimport fmin, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from rankbench.kernels.methods.all_pairs cimport (
    PairMemory, Task, TaskPairs, TaskPairsView, Windows, curve, evaluate, lay_out_pairs, lay_out_windows, task_of,
)
from rankbench.kernels.shared.arena cimport Arena, Scratch, floats
from rankbench.kernels.shared.checks cimport above_ids, agree
from rankbench.kernels.shared.lanes cimport LANES, dot, dot_rows, dot_rows_at
from rankbench.kernels.shared.line_search cimport sufficient
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport Pattern, PatternView, SparseRows
from rankbench.kernels.shared.sorting cimport in_order

cdef enum:
    _INNER = 500  # conjugate gradients per Newton step, at most
    _TRIALS = 20
    _NEAR = 1 << 16  # doubles of features that stay in a cache by themselves

cdef double _ROUNDING = 1e-14  # of the terms of a sum: an objective that rises by less is level
cdef double _COARSE = 1e-5  # relative residual above which a direction along which no step is good is made anew,
cdef double _EXACT = 1e-9  # with this one
cdef double _HIDDEN = 1e-15  # likewise: an objective that falls by less may not fall at all

cdef struct FeatureView:
    # A row of features per item, dense (indptr = NULL) or sparse.
    const double *values
    const int64_t *indptr
    const int32_t *columns
    Py_ssize_t d
    bint far  # whether a dense matrix lies beyond the caches

cdef struct Problem:
    # min over w of 1/2 |w|^2 + C loss(X w), the problem of one task.
    Task task
    FeatureView features  # dense: of the task's items one after the other, in whole lanes; sparse: of all items
    const int32_t *items
    double C
    Py_ssize_t padded  # features, rounded up to whole lanes

cdef struct Memory:
    # Scratch memory of one thread: vectors over the features, in whole lanes, then vectors over the task's items.
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
    PairMemory pairs


cdef class ItemFeatures:
    """The d features of each item, as the rows of a dense matrix or of a sparse one."""

    cdef const double[:, ::1] dense
    cdef SparseRows sparse
    cdef FeatureView view

    def __init__(self, *, Py_ssize_t d, const double[:, ::1] dense=None, SparseRows sparse=None):
        """Take the matrix, without a copy."""
        if (dense is None) == (sparse is None):
            raise ValueError("features are either dense or sparse")
        if dense is not None and dense.shape[1] != d:
            raise ValueError(f"there are {dense.shape[1]} features, not {d}")
        if sparse is not None:
            above_ids("d", d, sparse.columns)
        self.dense, self.sparse = dense, sparse
        if sparse is None:
            self.view = FeatureView(&dense[0, 0], NULL, NULL, d, dense.shape[0] * d > _NEAR)
        else:
            self.view = FeatureView(sparse.view.values, sparse.view.indptr, sparse.view.columns, d, False)


def scores(
    *, ItemFeatures features, Pattern rows, const double[:, ::1] weights, double[::1] out, int threads
):
    """Fill `out` with the product of each row's item's features with its task's weights."""
    threads = team(threads)
    agree("rows of weights", weights.shape[0], rows.view.n)
    agree("columns of weights", weights.shape[1], features.view.d)
    agree("scores", out.shape[0], rows.columns.shape[0])
    cdef Py_ssize_t number
    for number in prange(rows.view.n, nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        _task_scores(
            &features.view, rows.view.columns, rows.view.indptr[number], rows.view.indptr[number + 1],
            &weights[number, 0], &out[0],
        )


def sums(
    *, ItemFeatures features, Pattern rows, const double[::1] slope, double[:, ::1] out, int threads
):
    """Fill `out` with each task's sum of its items' features, weighted by its rows of `slope`."""
    threads = team(threads)
    agree("slopes", slope.shape[0], rows.columns.shape[0])
    agree("rows of out", out.shape[0], rows.view.n)
    agree("columns of out", out.shape[1], features.view.d)
    cdef Py_ssize_t number
    for number in prange(rows.view.n, nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        _task_sums(&features.view, &rows.view, number, &slope[0], &out[number, 0])


def newton(
    *,
    TaskPairs tasks,
    ItemFeatures features,
    double C,
    double tolerance,
    double[:, ::1] weights,
    int32_t[::1] done,
    int threads,
):
    """Move the weights of every task that is not `done` by one truncated Newton step, and mark those that are then.

    Each task has min 1/2 |w|^2 + C loss(X w) by itself; it is done at a relative duality gap of `tolerance`.
    """
    threads = team(threads)
    agree("rows of weights", weights.shape[0], tasks.view.n)
    agree("columns of weights", weights.shape[1], features.view.d)
    agree("marks", done.shape[0], tasks.view.n)
    cdef Py_ssize_t number
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, &features.view, &tasks.view)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out(&arena, &features.view, &tasks.view)
        for number in prange(tasks.view.n, schedule="dynamic", chunksize=4):
            if not done[number]:
                done[number] = _newton_step(
                    &tasks.view, number, &features.view, C, tolerance, &weights[number, 0], &memory
                )


cdef Memory _lay_out(Arena *arena, const FeatureView *features, const TaskPairsView *tasks) noexcept nogil:
    """Room for one task: dense features are gathered, sparse ones stay where they are."""
    cdef Py_ssize_t d = _padded(features.d), n = tasks.longest
    return Memory(
        floats(arena, d), floats(arena, d), floats(arena, d), floats(arena, d), floats(arena, d), floats(arena, d),
        floats(arena, n), floats(arena, n), floats(arena, n), floats(arena, n), floats(arena, n), floats(arena, n),
        floats(arena, n * d if features.indptr == NULL else 0), lay_out_windows(arena, n), lay_out_pairs(arena, tasks),
    )


cdef inline Py_ssize_t _padded(Py_ssize_t d) noexcept nogil:
    """This many features, rounded up to whole lanes."""
    return (d + LANES - 1) // LANES * LANES


cdef void _task_scores(
    const FeatureView *features, const int32_t *items, int64_t first, int64_t end, const double *weights, double *out
) noexcept nogil:
    """The scores of the items first .. end - 1 under these weights, four at a time where whole lanes hold them."""
    cdef int64_t row
    if features.indptr == NULL and features.d % LANES == 0:
        dot_rows_at(weights, features.values, items + first, end - first, features.d, features.far, out + first)
        return
    for row in range(first, end):
        out[row] = _item_score(features, items[row], weights)


cdef inline double _item_score(const FeatureView *features, int32_t item, const double *weights) noexcept nogil:
    """x_item . w; of dense features the whole lanes first, then what is left, added one by one.

    `dot_any` adds what is left up by itself, which rounds otherwise.
    """
    cdef Py_ssize_t k, whole = features.d - features.d % LANES
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


cdef void _task_sums(
    const FeatureView *features, const PatternView *rows, Py_ssize_t number, const double *slope, double *out
) noexcept nogil:
    """The weighted sum of the features of one task's items."""
    cdef int64_t row
    memset(out, 0, features.d * sizeof(double))
    for row in range(rows.indptr[number], rows.indptr[number + 1]):
        _add_item(features, rows.columns[row], slope[row], out)


cdef inline void _add_item(const FeatureView *features, int32_t item, double weight, double *out) noexcept nogil:
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


cdef int _newton_step(
    const TaskPairsView *tasks, Py_ssize_t number, const FeatureView *features, double C, double tolerance,
    double *weights, Memory *memory,
) noexcept nogil:
    """Whether the task is done, after one step from `weights`.

    By the duality gap, which is half the squared gradient (with the dual variables 2 C (1 - margin)_+), or
    because no step along the direction lowers the objective or the gap any more.
    """
    cdef Problem problem = _gathered(tasks, number, features, C, memory)
    cdef Py_ssize_t d = features.d, padded = problem.padded, k
    cdef double objective, squared, inexact, length
    cdef bint moved = False
    if problem.task.n == 0:
        return 1
    memset(memory.weights, 0, padded * sizeof(double))
    for k in range(d):
        memory.weights[k] = weights[k]
    _forward(&problem, memory.weights, memory.scores)
    in_order(memory.windows.order, problem.task.n)
    objective = C * evaluate(
        &problem.task, memory.scores, memory.windows, memory.degree, memory.slope, &memory.pairs
    )
    objective += 0.5 * dot(memory.weights, memory.weights, padded)
    _backward(&problem, memory.slope, memory.weights, memory.gradient)
    squared = dot(memory.gradient, memory.gradient, padded)
    if not 0.5 * squared > tolerance * objective:
        return 1
    inexact = fmin(0.1, sqrt(0.5 * squared / objective))
    _conjugate_gradients(&problem, squared, inexact, memory)
    length = _line_search(&problem, objective, squared, memory)
    if length == 0.0 and inexact > _COARSE:  # once more, along an exact direction
        # The trials have overwritten the windows and degrees, which the curvature needs.
        evaluate(&problem.task, memory.scores, memory.windows, memory.degree, memory.slope, &memory.pairs)
        _conjugate_gradients(&problem, squared, _EXACT, memory)
        length = _line_search(&problem, objective, squared, memory)
    for k in range(d):
        moved |= weights[k] + length * memory.direction[k] != weights[k]
        weights[k] += length * memory.direction[k]
    return not moved


cdef Problem _gathered(
    const TaskPairsView *tasks, Py_ssize_t number, const FeatureView *features, double C, Memory *memory
) noexcept nogil:
    """The task's problem, its dense rows one after the other and padded: they stay in the cache."""
    cdef Py_ssize_t row, k, padded = _padded(features.d)
    cdef Problem problem = Problem(
        task_of(tasks, number), features[0], tasks.items + tasks.indptr[number], C, padded
    )
    cdef const double *x
    cdef double *gathered = memory.rows
    if features.indptr != NULL:
        return problem
    for row in range(problem.task.n):
        x = features.values + problem.items[row] * features.d
        for k in range(features.d):
            gathered[row * padded + k] = x[k]
        for k in range(features.d, padded):
            gathered[row * padded + k] = 0.0
    problem.features = FeatureView(gathered, NULL, NULL, padded, False)
    return problem


cdef void _forward(const Problem *problem, const double *weights, double *out) noexcept nogil:
    """out = X w over the task's items."""
    if problem.features.indptr != NULL:
        _task_scores(&problem.features, problem.items, 0, problem.task.n, weights, out)
    else:
        dot_rows(weights, problem.features.values, problem.task.n, problem.padded, out)


cdef void _backward(const Problem *problem, const double *slope, const double *plus, double *out) noexcept nogil:
    """out = plus + 2 C X^T slope"""
    cdef Py_ssize_t row, k, padded = problem.padded
    cdef double weight, scale = 2.0 * problem.C
    cdef const double *x
    for k in range(padded):
        out[k] = plus[k]
    for row in range(problem.task.n):
        weight = scale * slope[row]
        if problem.features.indptr != NULL:
            _add_item(&problem.features, problem.items[row], weight, out)
        elif weight != 0.0:
            x = problem.features.values + row * padded
            for k in range(padded):
                out[k] += weight * x[k]


cdef void _conjugate_gradients(
    const Problem *problem, double squared, double tolerance, Memory *memory
) noexcept nogil:
    """direction = -H^-1 gradient with H = I + 2 C X^T L X, as far as the relative residual `tolerance`.

    Invariant: residual = -gradient - H direction, squared = |residual|^2.
    """
    cdef Memory own = memory[0]
    cdef Py_ssize_t k, _iteration, padded = problem.padded
    cdef double stop = tolerance * tolerance * squared, step, before
    for k in range(padded):
        own.direction[k] = 0.0
        own.residual[k] = own.conjugate[k] = -own.gradient[k]
    for _iteration in range(_INNER):
        _forward(problem, own.conjugate, own.moves)
        curve(&problem.task, own.scores, own.windows, own.degree, own.moves, own.curved, &own.pairs)
        _backward(problem, own.curved, own.conjugate, own.product)
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


cdef double _line_search(const Problem *problem, double objective, double squared, Memory *memory) noexcept nogil:
    """A length of the direction that lowers the objective enough; 0 if none is found.

    If the whole step does not, Newton's method seeks the lowest point between 0 and 1. It often lies just behind the
    length from which another pair costs something, so that the next direction knows of this pair. Where rounding errors
    hide how much the objective falls, the step has to halve the gap instead, so the squared gradient: where
    C is large, the gap is still far from zero then. So the steps end. Other trials need no features: the scores move
    along a line, and the size of the weights is a parabola.
    """
    cdef Memory own = memory[0]
    cdef Py_ssize_t _trial, i, padded = problem.padded
    cdef double along = dot(own.weights, own.direction, padded), promised = dot(own.gradient, own.direction, padded)
    cdef double size = dot(own.weights, own.weights, padded), own_size = dot(own.direction, own.direction, padded)
    cdef double length = 1.0, low = 0.0, high = 1.0, found, slope, bend, terms = objective
    for i in range(problem.task.n):
        terms += problem.C * own.degree[i] * own.scores[i] * own.scores[i]  # squares of an active pair's scores
    _forward(problem, own.direction, own.moves)
    for _trial in range(_TRIALS):
        for i in range(problem.task.n):
            own.trial[i] = own.scores[i] + length * own.moves[i]
        found = problem.C * evaluate(&problem.task, own.trial, own.windows, own.degree, own.slope, &own.pairs)
        found += 0.5 * (size + length * (2.0 * along + length * own_size))
        if found < objective - _HIDDEN * terms and sufficient(found, objective, length, promised):
            return length
        curve(&problem.task, own.trial, own.windows, own.degree, own.moves, own.curved, &own.pairs)
        slope = bend = 0.0
        for i in range(problem.task.n):
            slope += own.slope[i] * own.moves[i]
            bend += own.curved[i] * own.moves[i]
        slope = along + length * own_size + 2.0 * problem.C * slope
        bend = own_size + 2.0 * problem.C * bend
        if found <= objective + _ROUNDING * terms and _squared_gradient(problem, length, memory) <= 0.5 * squared:
            return length
        if slope > 0.0:
            high = length
        else:
            low = length
        length -= slope / bend
        if not low < length < high:
            length = 0.5 * (low + high)
    return 0.0


cdef double _squared_gradient(const Problem *problem, double length, Memory *memory) noexcept nogil:
    """The squared gradient after a step of this length, as the next step finds it, to the last bit."""
    cdef Py_ssize_t k
    for k in range(problem.padded):
        memory.conjugate[k] = memory.weights[k] + length * memory.direction[k]
    _forward(problem, memory.conjugate, memory.trial)
    in_order(memory.windows.order, problem.task.n)
    evaluate(&problem.task, memory.trial, memory.windows, memory.degree, memory.slope, &memory.pairs)
    _backward(problem, memory.slope, memory.conjugate, memory.product)
    return dot(memory.product, memory.product, problem.padded)
