"""The squared hinge over all pairs of each task's ratings, in near-linear time, or a loss over listed pairs.

The mathematics stands in all_pairs.pxd, whose functions other kernels call per task. Here whole sets of tasks go
through them side by side, and ratings and comparisons are brought into the form that they take.
"""

# Roof of evaluate_all, a rating: 56 bytes; 4 * (levels + 1) + 24 flops.
# Roof of curve_all, a rating: 44 bytes; 2 * (levels + 1) + 8 flops.

import numpy as np

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t

from rankbench.kernels.methods.all_pairs cimport (
    PairMemory, Task, TaskPairsView, Windows, curve, evaluate, lay_out_pairs, sums_size, task_of,
)
from rankbench.kernels.shared.arena cimport Arena, Scratch, ints
from rankbench.kernels.shared.checks cimport above_ids, agree
from rankbench.kernels.shared.losses cimport SQUARED_HINGE, Loss, known_loss
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport ComparisonRows, Pattern, SparseRows, first_id, longest_row
from rankbench.kernels.shared.sorting cimport argsort, in_order

cdef struct Found:
    # What the loss of all tasks leaves behind at some scores, row by row.
    const double *scores
    Windows windows
    double *degree
    double *slope

cdef struct Ranking:
    # Scratch memory for the ranks of a task's ratings.
    int32_t *order
    int32_t *sorting


cdef class TaskPairs:
    """Ranking tasks: rows of (task, item), and for each task the pairs of rows that are to be ordered.

    The pairs are all those that the ratings of a task order strictly, given `level`, the rank of each row's rating
    among the distinct ones of its task, and `levels`, how many these are. Or they are `listed`: a comparison's `better`
    and `worse` are then numbers of rows within its task, and `loss` is the code of their loss.
    """

    def __init__(
        self,
        *,
        Pattern rows,
        const int32_t[::1] level=None,
        const int32_t[::1] levels=None,
        ComparisonRows listed=None,
        Loss loss=SQUARED_HINGE,
    ):
        """Take the arrays, without a copy."""
        cdef Py_ssize_t number, sums = 0, n = rows.view.n
        cdef const int64_t *indptr = rows.view.indptr
        if (levels is None) == (listed is None) or (level is None) != (levels is None):
            raise ValueError("pairs are either implied by level and levels, or listed")
        known_loss(loss)
        if listed is None and loss != SQUARED_HINGE:
            raise ValueError("pairs that are not listed have the squared hinge")
        if listed is None:
            if levels.shape[0] != n or level.shape[0] != rows.columns.shape[0]:
                raise ValueError("there must be one number of levels for each task, and one level for each row")
            for number in range(n):
                sums = max(sums, sums_size(indptr[number + 1] - indptr[number], levels[number]))
        elif listed.view.n != n:
            raise ValueError(f"there are {n} tasks, but pairs of {listed.view.n}")
        self.rows, self.level, self.levels, self.listed = rows, level, levels, listed
        self.view = TaskPairsView(
            n, indptr, rows.view.columns, NULL, NULL, NULL, NULL, NULL, longest_row(indptr, n), sums, loss,
        )
        if listed is None:
            self.view.level, self.view.levels = first_id(level), first_id(levels)
        else:
            self.view.pair_indptr = listed.view.indptr
            self.view.better, self.view.worse = listed.view.better, listed.view.worse


def rank_values(*, SparseRows ratings, int threads) -> tuple[Int32s, Int32s]:
    """Each rating's level among the distinct ratings of its task, from 0, and how many levels each task has."""
    threads = team(threads)
    cdef Py_ssize_t task, n_tasks = ratings.view.n, longest = longest_row(ratings.view.indptr, n_tasks)
    cdef const int64_t *indptr = ratings.view.indptr
    level, levels = np.empty(ratings.values.shape[0], np.int32), np.zeros(n_tasks, np.int32)
    cdef int32_t[::1] to_level = level, to_levels = levels
    cdef Arena arena = Arena(NULL, 0)
    cdef Ranking ranking = _lay_out_ranking(&arena, longest)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        ranking = _lay_out_ranking(&arena, longest)
        for task in prange(n_tasks, schedule="dynamic", chunksize=64):
            if indptr[task + 1] > indptr[task]:
                to_levels[task] = _rank(
                    ratings.view.values + indptr[task], indptr[task + 1] - indptr[task], ranking,
                    &to_level[indptr[task]],
                )
    return level, levels


def place_pairs(*, ComparisonRows comparisons, Py_ssize_t n_items) -> tuple[Int64s, Int32s, Int32s, Int32s]:
    """The distinct items of each task, ascending (their indptr and ids), and both columns as places among them.

    Invariant: between two tasks, `place_of` is -1 for every item.
    """
    above_ids("n_items", n_items, comparisons.better)
    above_ids("n_items", n_items, comparisons.worse)
    cdef const int64_t[::1] indptr = comparisons.indptr
    cdef const int32_t[::1] better = comparisons.better
    cdef const int32_t[::1] worse = comparisons.worse
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
    *,
    TaskPairs tasks,
    const double[::1] scores,
    int32_t[:, ::1] windows,
    double[::1] degree,
    double[::1] slope,
    double[::1] losses,
    int threads,
):
    """Fill `losses` with each task's loss, and `slope` with the gradient of its scores.

    `windows` and `degree` are written too, for `curve_all`. The order of the rows that `windows` comes in with is
    where sorting by score begins.
    """
    threads = team(threads)
    cdef Py_ssize_t number, n = scores.shape[0]
    agree("scores", n, tasks.rows.columns.shape[0])
    agree("rows of windows", windows.shape[0], 3)
    agree("columns of windows", windows.shape[1], n)
    agree("degrees", degree.shape[0], n)
    agree("slopes", slope.shape[0], n)
    agree("losses", losses.shape[0], tasks.view.n)
    cdef Found found = Found(
        &scores[0], Windows(&windows[0, 0], &windows[1, 0], &windows[2, 0]), &degree[0], &slope[0]
    )
    cdef Arena arena = Arena(NULL, 0)
    cdef PairMemory memory = lay_out_pairs(&arena, &tasks.view)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = lay_out_pairs(&arena, &tasks.view)
        for number in prange(tasks.view.n, schedule="dynamic", chunksize=16):
            losses[number] = _evaluate_task(&tasks.view, number, &found, &memory)


def curve_all(
    *,
    TaskPairs tasks,
    const double[::1] scores,
    int32_t[:, ::1] windows,
    double[::1] degree,
    const double[::1] direction,
    double[::1] out,
    int threads,
):
    """Fill `out` with the Hessian at the scores that were evaluated last with these windows, times a direction."""
    threads = team(threads)
    cdef Py_ssize_t number, n = scores.shape[0]
    agree("scores", n, tasks.rows.columns.shape[0])
    agree("rows of windows", windows.shape[0], 3)
    agree("columns of windows", windows.shape[1], n)
    agree("degrees", degree.shape[0], n)
    agree("numbers of the direction", direction.shape[0], n)
    agree("numbers of out", out.shape[0], n)
    cdef Found found = Found(
        &scores[0], Windows(&windows[0, 0], &windows[1, 0], &windows[2, 0]), &degree[0], NULL
    )
    cdef Arena arena = Arena(NULL, 0)
    cdef PairMemory memory = lay_out_pairs(&arena, &tasks.view)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = lay_out_pairs(&arena, &tasks.view)
        for number in prange(tasks.view.n, schedule="dynamic", chunksize=16):
            _curve_task(&tasks.view, number, &found, &direction[0], &out[0], &memory)


cdef inline Windows _windows_from(const Found *found, int64_t first) noexcept nogil:
    """The windows of the task whose rows begin at `first`."""
    return Windows(found.windows.order + first, found.windows.high + first, found.windows.low + first)


cdef inline Task _task_in_a_row(const TaskPairsView *tasks, Py_ssize_t number) noexcept nogil:
    """One of all tasks, whose rows stand one after the other."""
    cdef Task task = task_of(tasks, number)
    task.followed = number + 1 < tasks.n
    return task


cdef double _evaluate_task(
    const TaskPairsView *tasks, Py_ssize_t number, const Found *found, PairMemory *memory
) noexcept nogil:
    """One task's loss; its part of what is found is written."""
    cdef Task task = _task_in_a_row(tasks, number)
    cdef int64_t first = tasks.indptr[number]
    cdef double *slope = found.slope + first
    cdef Py_ssize_t i
    cdef double loss = evaluate(
        &task, found.scores + first, _windows_from(found, first), found.degree + first, slope, memory
    )
    for i in range(task.n):
        slope[i] *= 2.0
    return loss


cdef void _curve_task(
    const TaskPairsView *tasks, Py_ssize_t number, const Found *found, const double *direction, double *out,
    PairMemory *memory,
) noexcept nogil:
    """One task's part of the product of the Hessian with a direction."""
    cdef Task task = _task_in_a_row(tasks, number)
    cdef int64_t first = tasks.indptr[number]
    cdef Py_ssize_t i
    curve(
        &task, found.scores + first, _windows_from(found, first), found.degree + first, direction + first,
        out + first, memory,
    )
    for i in range(task.n):
        out[first + i] *= 2.0


cdef Ranking _lay_out_ranking(Arena *arena, Py_ssize_t longest) noexcept nogil:
    """Room to sort the ratings of a task."""
    return Ranking(ints(arena, longest), ints(arena, longest))


cdef int32_t _rank(const double *values, Py_ssize_t n, Ranking ranking, int32_t *level) noexcept nogil:
    """How many distinct values there are; `level` gets each value's place among them."""
    cdef Py_ssize_t rank
    cdef int32_t reached = 0
    cdef int32_t *order = ranking.order
    in_order(order, n)
    argsort(values, order, ranking.sorting, n)
    for rank in range(n):
        if rank > 0 and values[order[rank]] > values[order[rank - 1]]:
            reached += 1
        level[order[rank]] = reached
    return reached + 1


cdef inline Py_ssize_t _meet(int32_t item, int32_t *place_of, int32_t *items, Py_ssize_t end) noexcept nogil:
    """The number of items met, after an item is noted at its first sight."""
    if place_of[item] < 0:
        place_of[item] = 0
        items[end] = item
        end += 1
    return end
