"""The squared hinge over all pairs of each task's ratings, in near-linear time, or over listed pairs.

The mathematics stands in all_pairs.pxd, whose functions other kernels call per task; here whole sets of
tasks go through them side by side, and ratings and comparisons are brought into the form that they take.
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from all_pairs cimport (
    Rows, Scratch, Task, Windows, curve, evaluate, in_order, longest_task, scratch_in, scratch_size, task_of,
)
from parallel cimport thread_id
from sorting cimport argsort


def rank_values(const int64_t[::1] indptr, const double[::1] values, int threads):
    """Each rating's level among the distinct ratings of its task, from 0, and how many levels each task has."""
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


def all_pairs(
    const int64_t[::1] indptr,
    const int32_t[::1] level,
    const int32_t[::1] levels,
    const double[::1] scores,
    const double[::1] direction,
    double[::1] losses,
    double[::1] gradient,
    double[::1] product,
    int threads,
):
    """Each task's loss, and per rating its gradient and Hessian times direction, over all pairs of its ratings."""
    cdef Rows rows = Rows(&indptr[0], _first(level), _first(levels), NULL, NULL, NULL)
    _all_tasks(&rows, indptr.shape[0] - 1, scores, direction, losses, gradient, product, threads)


def listed_pairs(
    const int64_t[::1] indptr,
    const int64_t[::1] pair_indptr,
    const int32_t[::1] better,
    const int32_t[::1] worse,
    const double[::1] scores,
    const double[::1] direction,
    double[::1] losses,
    double[::1] gradient,
    double[::1] product,
    int threads,
):
    """The same over listed pairs, in the form that `place_pairs` gives them."""
    cdef Rows rows = Rows(&indptr[0], NULL, NULL, &pair_indptr[0], _first(better), _first(worse))
    _all_tasks(&rows, indptr.shape[0] - 1, scores, direction, losses, gradient, product, threads)


cdef inline const int32_t *_first(const int32_t[::1] ids) noexcept nogil:
    """Where a column begins, be it empty."""
    return &ids[0] if ids.shape[0] > 0 else NULL


cdef int _all_tasks(
    const Rows *rows, Py_ssize_t tasks, const double[::1] scores, const double[::1] direction,
    double[::1] losses, double[::1] gradient, double[::1] product, int threads,
) except -1:
    """Tasks side by side, each thread in memory of its own."""
    cdef Py_ssize_t number, longest = longest_task(rows, tasks), size = scratch_size(rows, tasks) + 3 * longest + 1
    cdef double *memory = <double *> malloc(threads * size * sizeof(double))
    cdef double *own = memory
    if memory == NULL:
        raise MemoryError
    if scores.shape[0] > 0:
        with nogil, parallel(num_threads=threads):
            own = memory + thread_id() * size
            for number in prange(tasks, schedule="dynamic", chunksize=16):
                losses[number] = _one_task(
                    rows, number, longest, &scores[0], &direction[0], &gradient[0], &product[0], own
                )
    else:
        losses[:] = 0.0
    free(memory)
    return 0


cdef double _one_task(
    const Rows *rows, Py_ssize_t number, Py_ssize_t longest, const double *scores, const double *direction,
    double *gradient, double *product, double *memory,
) noexcept nogil:
    cdef Task task = task_of(rows, number)
    cdef Py_ssize_t i, first = rows.indptr[number]
    cdef int32_t *order = <int32_t *> (memory + longest)
    cdef Windows windows = Windows(order, order + longest, order + 2 * longest)
    cdef Scratch scratch = scratch_in(memory + 3 * longest, longest)
    cdef double loss
    in_order(order, task.n)
    loss = evaluate(&task, scores + first, windows, memory, gradient + first, &scratch)
    curve(&task, scores + first, windows, memory, direction + first, product + first, &scratch)
    for i in range(first, first + task.n):
        gradient[i] *= 2.0
        product[i] *= 2.0
    return loss


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
