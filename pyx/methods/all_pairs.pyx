"""The squared hinge over all pairs of each task's ratings, in near-linear time, or over listed pairs.

The mathematics stands in all_pairs.pxd, whose functions other kernels call per task; here whole sets of
tasks go through them side by side, and ratings and comparisons are brought into the form that they take.
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankbench.kernels.methods.all_pairs cimport (
    Rows, Scratch, Task, Windows, curve, evaluate, longest_task, rows_of, scratch_in, scratch_size,
    task_of,
)
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.sorting cimport argsort, in_order


def rank_values(const int64_t[::1] indptr, const double[::1] values, int threads):
    """Each rating's level among the distinct ratings of its task, from 0, and how many levels each task has."""
    threads = team(threads)
    cdef Py_ssize_t task, n_tasks = indptr.shape[0] - 1, longest = np.diff(indptr).max(initial=0)
    level, levels = np.empty(values.shape[0], np.int32), np.zeros(n_tasks, np.int32)
    cdef int32_t[::1] to_level = level, to_levels = levels
    cdef int32_t *memory = <int32_t *> malloc((threads * 2 * longest + 1) * sizeof(int32_t))
    cdef int32_t *order = memory
    if memory == NULL:
        raise MemoryError
    with nogil, parallel(num_threads=threads):
        order = memory + thread_id() * 2 * longest
        for task in prange(n_tasks, schedule="dynamic", chunksize=64):
            if indptr[task + 1] > indptr[task]:
                to_levels[task] = _rank(
                    &values[indptr[task]], order, order + longest, &to_level[indptr[task]],
                    indptr[task + 1] - indptr[task],
                )
    free(memory)
    return level, levels


def place_pairs(const int64_t[::1] indptr, const int32_t[::1] better, const int32_t[::1] worse, Py_ssize_t n_items):
    """The distinct items of each task, ascending (their indptr and ids), and both columns as places among them."""
    cdef Py_ssize_t task, pair, n_tasks = indptr.shape[0] - 1, first = 0, end = 0, place
    starts = np.zeros(n_tasks + 1, np.int64)
    items = np.empty(2 * better.shape[0], np.int32)
    better_place, worse_place = np.empty(better.shape[0], np.int32), np.empty(better.shape[0], np.int32)
    cdef int64_t[::1] to_starts = starts
    cdef int32_t[::1] to_items = items, to_better = better_place, to_worse = worse_place
    cdef int32_t[::1] place_of = np.full(n_items, -1, np.int32)
    for task in range(n_tasks):
        first = end
        with nogil:
            for pair in range(indptr[task], indptr[task + 1]):
                end = _meet(better[pair], &place_of[0], &to_items[0], end)
                end = _meet(worse[pair], &place_of[0], &to_items[0], end)
        items[first:end].sort()
        with nogil:
            for place in range(first, end):
                place_of[to_items[place]] = <int32_t> (place - first)
            for pair in range(indptr[task], indptr[task + 1]):
                to_better[pair] = place_of[better[pair]]
                to_worse[pair] = place_of[worse[pair]]
            for place in range(first, end):
                place_of[to_items[place]] = -1
        to_starts[task + 1] = end
    return starts, items[:end].copy(), better_place, worse_place


def evaluate_all(
    const int64_t[::1] indptr, const int32_t[::1] level, const int32_t[::1] levels,
    const int64_t[::1] pair_indptr, const int32_t[::1] better, const int32_t[::1] worse,
    const double[::1] scores, int32_t[:, ::1] windows, double[::1] degree, double[::1] slope,
    double[::1] losses, int threads,
):
    """Each task's loss and the gradient of its scores; windows and degree are kept for `curve_all`."""
    threads = team(threads)
    cdef Rows rows = rows_of(indptr, level, levels, pair_indptr, better, worse)
    cdef Py_ssize_t tasks = indptr.shape[0] - 1, number, i
    cdef Py_ssize_t longest = longest_task(&rows, tasks), size = scratch_size(&rows, tasks)
    cdef double *memory = <double *> malloc(threads * size * sizeof(double))
    cdef double *own = memory
    if memory == NULL:
        raise MemoryError
    with nogil, parallel(num_threads=threads):
        own = memory + thread_id() * size
        for number in prange(tasks, schedule="dynamic", chunksize=16):
            losses[number] = _evaluate_task(
                &rows, number, longest, &scores[0], &windows[0, 0], scores.shape[0], &degree[0], &slope[0], own
            )
        for i in prange(scores.shape[0], schedule="static"):
            slope[i] *= 2.0
    free(memory)


def curve_all(
    const int64_t[::1] indptr, const int32_t[::1] level, const int32_t[::1] levels,
    const int64_t[::1] pair_indptr, const int32_t[::1] better, const int32_t[::1] worse,
    const double[::1] scores, int32_t[:, ::1] windows, const double[::1] degree, const double[::1] direction,
    double[::1] out, int threads,
):
    """The Hessian at the scores that were evaluated last with these windows, times a direction."""
    threads = team(threads)
    cdef Rows rows = rows_of(indptr, level, levels, pair_indptr, better, worse)
    cdef Py_ssize_t tasks = indptr.shape[0] - 1, number, i
    cdef Py_ssize_t longest = longest_task(&rows, tasks), size = scratch_size(&rows, tasks)
    cdef double *memory = <double *> malloc(threads * size * sizeof(double))
    cdef double *own = memory
    if memory == NULL:
        raise MemoryError
    with nogil, parallel(num_threads=threads):
        own = memory + thread_id() * size
        for number in prange(tasks, schedule="dynamic", chunksize=16):
            _curve_task(
                &rows, number, longest, &scores[0], &windows[0, 0], scores.shape[0], &degree[0], &direction[0],
                &out[0], own,
            )
        for i in prange(scores.shape[0], schedule="static"):
            out[i] *= 2.0
    free(memory)


cdef inline Windows _windows_of(int32_t *windows, Py_ssize_t stride, int64_t first) noexcept nogil:
    """One task's part of the windows of all."""
    return Windows(windows + first, windows + stride + first, windows + 2 * stride + first)


cdef double _evaluate_task(
    const Rows *rows, Py_ssize_t number, Py_ssize_t longest, const double *scores, int32_t *windows,
    Py_ssize_t stride, double *degree, double *slope, double *memory,
) noexcept nogil:
    cdef Task task = task_of(rows, number)
    cdef int64_t first = rows.indptr[number]
    cdef Scratch scratch = scratch_in(memory, longest)
    return evaluate(
        &task, scores + first, _windows_of(windows, stride, first), degree + first, slope + first, &scratch
    )


cdef void _curve_task(
    const Rows *rows, Py_ssize_t number, Py_ssize_t longest, const double *scores, int32_t *windows,
    Py_ssize_t stride, const double *degree, const double *direction, double *out, double *memory,
) noexcept nogil:
    cdef Task task = task_of(rows, number)
    cdef int64_t first = rows.indptr[number]
    cdef Scratch scratch = scratch_in(memory, longest)
    curve(
        &task, scores + first, _windows_of(windows, stride, first), degree + first, direction + first, out + first,
        &scratch,
    )


cdef int32_t _rank(
    const double *values, int32_t *order, int32_t *sorting, int32_t *level, Py_ssize_t n
) noexcept nogil:
    """Each value's place among the distinct ones; returns how many these are."""
    cdef Py_ssize_t rank
    cdef int32_t reached = 0
    in_order(order, n)
    argsort(values, order, sorting, n)
    for rank in range(n):
        if rank > 0 and values[order[rank]] > values[order[rank - 1]]:
            reached += 1
        level[order[rank]] = reached
    return reached + 1


cdef inline Py_ssize_t _meet(int32_t item, int32_t *place_of, int32_t *items, Py_ssize_t end) noexcept nogil:
    """Note an item at its first sight."""
    if place_of[item] < 0:
        place_of[item] = 0
        items[end] = item
        end += 1
    return end
