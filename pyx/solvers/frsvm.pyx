"""Factorization RankSVM: what both of its steps need of all tasks, and the whole of a step over the tasks.

Rows of factors are padded with zeros to whole lanes. Tasks, blocks of items or rows of features run side by side, and
each sum has one order, so that no bit depends on the number of threads.
"""

# Roof of scatter, a rating: 12 bytes; 2 * rank flops; rank / 8 lines.
# Roof of transposed_times, an item: 8 * (features + rank) bytes; 1 flops; 2 * features * rank blas.

import numpy as np

from cython.parallel cimport parallel, prange
from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libc.string cimport memset

from rankbench.kernels.methods.all_pairs cimport (
    PairMemory, Task, TaskPairs, TaskPairsView, Windows, curve, evaluate, lay_out_pairs, lay_out_windows, task_of,
)
from rankbench.kernels.shared.arena cimport Arena, Scratch, floats
from rankbench.kernels.shared.blas cimport multiply, multiply_from_left
from rankbench.kernels.shared.checks cimport above_ids, agree, within
from rankbench.kernels.shared.chosen cimport Chosen, sum_chosen
from rankbench.kernels.shared.lanes cimport LANES, add_to_rows, dot, dot_rows, dot_rows_at, read_ahead, sum_rows
from rankbench.kernels.shared.line_search cimport level, promising, sufficient
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport Pattern, PatternView
from rankbench.kernels.shared.sorting cimport in_order

cdef enum:
    _ROWS = 128  # of dense features times a matrix: rows in a block
    _COLUMNS = 32  # of transposed dense features times a matrix: columns in a block
    _HALVINGS = 30  # of a step before it is given up
    _RUNS = 256  # rows whose runs of one item are found at a time
    _AHEAD = 4  # rows of factors that are on their way while one is worked on

cdef struct Settings:
    double C
    int steps
    int cg
    double forcing

cdef struct ByItem:
    # The rows of the tasks in another order, those of block b from bounds[b] to bounds[b + 1]; NULL: not made.
    int64_t *bounds
    int32_t *items
    int32_t *tasks
    int32_t *places  # of the rows in their tasks

cdef struct BlockView:
    Py_ssize_t width  # items of a block
    Py_ssize_t blocks
    Py_ssize_t items
    const int32_t *starts  # (blocks + 1) x tasks
    PatternView rows
    ByItem by_item

cdef struct Runs:
    # Rows whose weight is not zero, cut where the item changes: run r has those from ends[r - 1] to ends[r].
    double weights[_RUNS]
    int32_t tasks[_RUNS]
    int32_t items[_RUNS]
    int32_t ends[_RUNS]
    Py_ssize_t n

cdef struct Problem:
    # min over v of C loss(R v) + |v|^2 / 2, the problem of one task, R being the factors of its items.
    Task task
    Settings settings
    Py_ssize_t rank

cdef struct Memory:
    # Scratch memory of one thread: values per row of a task, then values per coordinate.
    double *rows  # n x k, the item factors
    double *q
    double *step_q  # rows d
    double *trial
    double *change
    double *product
    double *degree
    double *slope
    double *gradient
    double *d
    double *residual
    double *p
    double *curved
    Windows windows
    PairMemory pairs


cdef class TruncatedNewton:
    """How a task's objective C loss + |v|^2 / 2 is minimised: by so many Newton steps.

    Each takes at most `cg` conjugate gradients, which end once the residual is `forcing` times the gradient.
    """

    cdef Settings settings

    def __init__(self, *, double C, int steps, int cg, double forcing):
        """Take the settings."""
        within("steps", steps, 0, INT32_MAX)
        within("cg", cg, 0, INT32_MAX)
        self.settings = Settings(C, steps, cg, forcing)


cdef class ItemBlocks:
    """The rows of tasks, cut where their items pass from one block of `width` items to the next.

    Items ascend within a task. The rows of task t whose items are in block b are starts[b, t] to starts[b + 1, t],
    counted from the task's first row. With a `tile` they are put in a second order, too, for `scatter`: block by block,
    then by so many tasks at a time, and among these by item.
    """

    cdef Pattern rows
    cdef const int32_t[:, ::1] starts
    cdef int64_t[::1] bounds
    cdef int32_t[:, ::1] order
    cdef BlockView view

    def __init__(self, *, Pattern rows, Py_ssize_t n_items, Py_ssize_t width, Py_ssize_t tile = 0):
        """Find where the blocks begin in every task; O(rows + tasks blocks), and O(items tasks / tile) for a `tile`."""
        above_ids("n_items", n_items, rows.columns)
        within("width", width, 1, INT32_MAX)
        within("tile", tile, 0, INT32_MAX)
        cdef Py_ssize_t blocks = (n_items + width - 1) // width
        cdef int32_t[:, ::1] starts = np.zeros((blocks + 1, max(rows.view.n, 1)), np.int32)
        with nogil:
            _find_starts(&rows.view, width, blocks, &starts[0, 0])
        self.rows, self.starts = rows, starts
        self.view = BlockView(width, blocks, n_items, &starts[0, 0], rows.view, ByItem(NULL, NULL, NULL, NULL))
        if tile > 0 and rows.columns.shape[0] > 0:
            if not _ascend(&rows.view):
                raise ValueError("the items of a task must ascend")
            self._order_by_item(tile)

    cdef int _order_by_item(self, Py_ssize_t tile) except -1:
        """Put the rows in their second order."""
        cdef int64_t[::1] next_places = np.empty(self.view.width, np.int64)
        self.bounds = np.zeros(self.view.blocks + 1, np.int64)
        self.order = np.empty((3, self.rows.columns.shape[0]), np.int32)
        self.view.by_item = ByItem(&self.bounds[0], &self.order[0, 0], &self.order[1, 0], &self.order[2, 0])
        with nogil:
            _order_blocks(&self.view, tile, &next_places[0])


def scatter(
    *, ItemBlocks blocks, const double[::1] weights, const double[:, ::1] users, double[:, ::1] out, int threads
):
    """Fill `out` with the sum of weight times user over the rows of each item, task by task.

    Items go in blocks whose rows of `out` stay in cache while all tasks pass by. Where the blocks have their rows by
    item, an item's sums stay in registers over a tile of tasks; both orders give the same bits.
    """
    threads = team(threads)
    agree("weights", weights.shape[0], blocks.rows.columns.shape[0])
    agree("users", users.shape[0], blocks.rows.view.n)
    agree("rows of out", out.shape[0], blocks.view.items)
    agree("columns of out", out.shape[1], users.shape[1])
    cdef Py_ssize_t block
    for block in prange(blocks.view.blocks, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads):
        _scatter(&blocks.view, block, &weights[0], &users[0, 0], users.shape[1], &out[0, 0])


def scores(
    *, ItemBlocks blocks, const double[:, ::1] users, const double[:, ::1] factors, double[::1] out, int threads
):
    """Fill `out` with the inner product of the user's and the item's row for each row of the tasks.

    Items go in blocks, as in `scatter`, so that their factors are read from memory once and not for every task.
    """
    threads = team(threads)
    agree("users", users.shape[0], blocks.rows.view.n)
    agree("rows of factors", factors.shape[0], blocks.view.items)
    agree("columns of factors", factors.shape[1], users.shape[1])
    agree("scores", out.shape[0], blocks.rows.columns.shape[0])
    if factors.shape[1] % LANES:
        raise ValueError(f"rows of {factors.shape[1]} numbers are not padded to whole lanes")
    cdef Py_ssize_t block
    for block in prange(blocks.view.blocks, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads):
        _score(&blocks.view, block, &users[0, 0], &factors[0, 0], users.shape[1], &out[0])


def users_step(
    *,
    TaskPairs tasks,
    TruncatedNewton method,
    const double[:, ::1] factors,
    double[:, ::1] users,
    int threads,
) -> int:
    """Move each row of `users` to where its own objective, given the items' factors, is no higher.

    The number of rows is returned whose objective could fall by more than rounding errors hide.
    """
    threads = team(threads)
    cdef Py_ssize_t task, rank = users.shape[1], moved = 0
    agree("users", users.shape[0], tasks.view.n)
    agree("columns of factors", factors.shape[1], rank)
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, &tasks.view, rank)
    cdef Scratch scratch = Scratch(arena.used, threads)
    if tasks.view.longest > 0:
        with nogil, parallel(num_threads=threads):
            arena = scratch.share(thread_id())
            memory = _lay_out(&arena, &tasks.view, rank)
            for task in prange(tasks.view.n, schedule="dynamic", chunksize=16):
                moved += _fit_task(&tasks.view, task, &method.settings, &factors[0, 0], &users[task, 0], rank, &memory)
    return moved


def dense_times(*, const double[:, ::1] features, const double[:, ::1] matrix, double[:, ::1] out, int threads):
    """Fill `out` with features times a matrix, in blocks of rows."""
    threads = team(threads)
    cdef Py_ssize_t block, n = features.shape[0], blocks = (n + _ROWS - 1) // _ROWS
    agree("rows of the matrix", matrix.shape[0], features.shape[1])
    agree("rows of out", out.shape[0], n)
    agree("columns of out", out.shape[1], matrix.shape[1])
    for block in prange(blocks, nogil=True, schedule="static", num_threads=threads):
        multiply(
            &features[block * _ROWS, 0], &matrix[0, 0], &out[block * _ROWS, 0],
            <int> min(<Py_ssize_t> _ROWS, n - block * _ROWS), <int> matrix.shape[1], <int> features.shape[1],
        )


def transposed_times(*, const double[:, ::1] features, const double[:, ::1] matrix, double[:, ::1] out, int threads):
    """Fill `out` with features transposed times a matrix, in blocks of columns of the features."""
    threads = team(threads)
    cdef Py_ssize_t block, n = features.shape[1], blocks = (n + _COLUMNS - 1) // _COLUMNS
    agree("rows of the matrix", matrix.shape[0], features.shape[0])
    agree("rows of out", out.shape[0], n)
    agree("columns of out", out.shape[1], matrix.shape[1])
    for block in prange(blocks, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads):
        multiply_from_left(
            &features[0, block * _COLUMNS], &matrix[0, 0], &out[block * _COLUMNS, 0],
            <int> min(<Py_ssize_t> _COLUMNS, n - block * _COLUMNS), <int> matrix.shape[1],
            <int> features.shape[0], <int> n,
        )


cdef void _find_starts(const PatternView *rows, Py_ssize_t width, Py_ssize_t blocks, int32_t *starts) noexcept nogil:
    """Of each block and task, the first row of the task that is in this block or behind it."""
    cdef Py_ssize_t task, block, row
    for task in range(rows.n):
        block = 0
        for row in range(rows.indptr[task], rows.indptr[task + 1]):
            while rows.columns[row] >= block * width:
                starts[block * rows.n + task] = <int32_t> (row - rows.indptr[task])
                block += 1
        while block <= blocks:
            starts[block * rows.n + task] = <int32_t> (rows.indptr[task + 1] - rows.indptr[task])
            block += 1


cdef bint _ascend(const PatternView *rows) noexcept nogil:
    """Whether the items of each task ascend, so that those of a block follow each other."""
    cdef Py_ssize_t task, row
    for task in range(rows.n):
        for row in range(rows.indptr[task] + 1, rows.indptr[task + 1]):
            if rows.columns[row - 1] > rows.columns[row]:
                return False
    return True


cdef void _order_blocks(const BlockView *blocks, Py_ssize_t tile, int64_t *next_places) noexcept nogil:
    """Write all rows in their second order; `next_places` is scratch memory, a number for each item of a block."""
    cdef Py_ssize_t block, first
    cdef int64_t end = 0
    for block in range(blocks.blocks):
        first = 0
        while first < blocks.rows.n:
            end = _order_tile(blocks, block, first, min(first + tile, blocks.rows.n), end, next_places)
            first += tile
        blocks.by_item.bounds[block + 1] = end


cdef int64_t _order_tile(
    const BlockView *blocks, Py_ssize_t block, Py_ssize_t first, Py_ssize_t last, int64_t end, int64_t *next_places
) noexcept nogil:
    """Write the rows of a block's items in tasks first .. last - 1 from `end` on, by counting; where they end."""
    cdef Py_ssize_t task, place, item, base = block * blocks.width
    cdef const int32_t *starts = blocks.starts + block * blocks.rows.n
    cdef const int32_t *ends = starts + blocks.rows.n
    cdef const int32_t *items
    cdef int64_t found, to
    memset(next_places, 0, blocks.width * sizeof(int64_t))
    for task in range(first, last):
        items = blocks.rows.columns + blocks.rows.indptr[task]
        for place in range(starts[task], ends[task]):
            next_places[items[place] - base] += 1
    for item in range(blocks.width):
        found = next_places[item]
        next_places[item] = end
        end += found
    for task in range(first, last):
        items = blocks.rows.columns + blocks.rows.indptr[task]
        for place in range(starts[task], ends[task]):
            to = next_places[items[place] - base]
            next_places[items[place] - base] = to + 1
            blocks.by_item.items[to] = items[place]
            blocks.by_item.tasks[to] = <int32_t> task
            blocks.by_item.places[to] = <int32_t> place
    return end


cdef void _scatter(
    const BlockView *blocks, Py_ssize_t block, const double *weights, const double *users, Py_ssize_t rank, double *out
) noexcept nogil:
    """One block of items; a weight of zero, as most are near the end, costs no more than a look."""
    cdef Py_ssize_t task, first, base = block * blocks.width, tasks = blocks.rows.n
    cdef const int32_t *starts = blocks.starts + block * tasks
    memset(out + base * rank, 0, min(blocks.width, blocks.items - base) * rank * sizeof(double))
    if blocks.by_item.bounds != NULL:
        _scatter_by_item(blocks, block, weights, users, rank, out)
        return
    for task in range(tasks):
        first = blocks.rows.indptr[task] + starts[task]
        add_to_rows(
            weights + first, users + task * rank, blocks.rows.columns + first, starts[tasks + task] - starts[task],
            rank, out,
        )


cdef void _scatter_by_item(
    const BlockView *blocks, Py_ssize_t block, const double *weights, const double *users, Py_ssize_t rank, double *out
) noexcept nogil:
    """Rows of one item that follow each other are added to its sums together, in the order of their tasks."""
    cdef Runs runs
    cdef Py_ssize_t run, first
    cdef int64_t row = blocks.by_item.bounds[block], end = blocks.by_item.bounds[block + 1]
    cdef Chosen chosen = Chosen(&runs.tasks[0], &runs.weights[0], 0, users, rank, far=False, add=True)
    while row < end:
        _find_runs(blocks, row, min(row + _RUNS, end), weights, &runs)
        first = 0
        for run in range(runs.n):
            chosen.columns, chosen.values, chosen.n = &runs.tasks[first], &runs.weights[first], runs.ends[run] - first
            first = runs.ends[run]
            if chosen.n > 0:
                sum_chosen(&chosen, out + runs.items[run] * rank)
        row += _RUNS


cdef void _find_runs(
    const BlockView *blocks, int64_t first, int64_t end, const double *weights, Runs *runs
) noexcept nogil:
    """The runs of rows of one item among first .. end - 1 of the second order, less the rows whose weight is zero.

    No step depends on whether a run ends or a weight is zero, which no processor could foretell.
    """
    cdef const ByItem *rows = &blocks.by_item
    cdef int32_t kept = 0, task
    cdef Py_ssize_t n = 0
    cdef int64_t row
    for row in range(first, end):
        task = rows.tasks[row]
        runs.tasks[kept] = task
        runs.weights[kept] = weights[blocks.rows.indptr[task] + rows.places[row]]
        kept += runs.weights[kept] != 0.0
        runs.items[n] = rows.items[row]
        runs.ends[n] = kept
        n += row + 1 == end or rows.items[row + 1] != rows.items[row]
    runs.n = n


cdef void _score(
    const BlockView *blocks, Py_ssize_t block, const double *users, const double *factors, Py_ssize_t rank, double *out
) noexcept nogil:
    """The scores of one block of items."""
    cdef Py_ssize_t task, first, tasks = blocks.rows.n
    cdef const int32_t *starts = blocks.starts + block * tasks
    for task in range(tasks):
        first = blocks.rows.indptr[task] + starts[task]
        dot_rows_at(
            users + task * rank, factors, blocks.rows.columns + first, starts[tasks + task] - starts[task], rank,
            False, out + first,
        )


cdef Memory _lay_out(Arena *arena, const TaskPairsView *tasks, Py_ssize_t rank) noexcept nogil:
    """Room for any of the tasks."""
    cdef Py_ssize_t n = tasks.longest
    cdef Memory memory
    memory.rows = floats(arena, n * rank)
    memory.q = floats(arena, n)
    memory.step_q = floats(arena, n)
    memory.trial = floats(arena, n)
    memory.change = floats(arena, n)
    memory.product = floats(arena, n)
    memory.degree = floats(arena, n)
    memory.slope = floats(arena, n)
    memory.gradient = floats(arena, rank)
    memory.d = floats(arena, rank)
    memory.residual = floats(arena, rank)
    memory.p = floats(arena, rank)
    memory.curved = floats(arena, rank)
    memory.windows = lay_out_windows(arena, n)
    memory.pairs = lay_out_pairs(arena, tasks)
    return memory


cdef bint _fit_task(
    const TaskPairsView *tasks, Py_ssize_t number, const Settings *settings, const double *factors, double *user,
    Py_ssize_t rank, Memory *memory,
) noexcept nogil:
    """Newton steps for one task; whether one could lower its objective visibly."""
    cdef Problem problem = Problem(task_of(tasks, number), settings[0], rank)
    cdef const int32_t *items = tasks.items + tasks.indptr[number]
    cdef Py_ssize_t i, k, n = problem.task.n
    cdef double *rows = memory.rows
    cdef int _step
    cdef double loss
    for i in range(n):
        if i + _AHEAD < n:
            read_ahead(factors + items[i + _AHEAD] * rank, rank)
        for k in range(rank):
            rows[i * rank + k] = factors[items[i] * rank + k]
    in_order(memory.windows.order, n)
    dot_rows(user, memory.rows, n, rank, memory.q)
    loss = evaluate(&problem.task, memory.q, memory.windows, memory.degree, memory.slope, &memory.pairs)
    for _step in range(settings.steps):
        _gradient(&problem, memory.slope, user, memory.rows, memory.gradient)
        _conjugate_gradients(&problem, memory)
        if not _move(&problem, user, &loss, memory):
            return _step > 0
    return settings.steps > 0


cdef inline void _gradient(
    const Problem *problem, const double *slope, const double *start, const double *rows, double *out
) noexcept nogil:
    """out = start + 2 C R^T slope"""
    cdef Py_ssize_t k
    cdef double factor = 2.0 * problem.settings.C
    sum_rows(slope, rows, problem.task.n, problem.rank, out)
    for k in range(problem.rank):
        out[k] = start[k] + factor * out[k]


cdef void _conjugate_gradients(const Problem *problem, Memory *memory) noexcept nogil:
    """d ~ -(I + 2C R^T H R)^-1 gradient, and R d beside it.

    Invariant: residual = -gradient - (I + 2C R^T H R) d, size = |residual|^2, step_q = R d.
    """
    cdef Memory own = memory[0]
    cdef Py_ssize_t k, i, n = problem.task.n, rank = problem.rank
    cdef int _turn
    cdef double size, before, length, ratio, enough
    for i in range(n):
        own.step_q[i] = 0.0
    for k in range(rank):
        own.d[k] = 0.0
        own.residual[k] = own.p[k] = -own.gradient[k]
    size = dot(own.residual, own.residual, rank)
    enough = problem.settings.forcing * problem.settings.forcing * size
    for _turn in range(problem.settings.cg):
        if size <= enough:
            return
        dot_rows(own.p, own.rows, n, rank, own.change)
        curve(&problem.task, own.q, own.windows, own.degree, own.change, own.product, &own.pairs)
        _gradient(problem, own.product, own.p, own.rows, own.curved)
        length = size / dot(own.p, own.curved, rank)
        for k in range(rank):
            own.d[k] += length * own.p[k]
            own.residual[k] -= length * own.curved[k]
        for i in range(n):
            own.step_q[i] += length * own.change[i]
        before = size
        size = dot(own.residual, own.residual, rank)
        ratio = size / before
        for k in range(rank):
            own.p[k] = own.residual[k] + ratio * own.p[k]


cdef bint _move(const Problem *problem, double *user, double *loss, Memory *memory) noexcept nogil:
    """Halve the step until the objective falls as Armijo asks, and take it; false if no further step is worth its time.

    Where the objective could not show the fall, only the whole step is tried. What it leaves behind, scores, slopes and
    windows, is that of the new point, if there is one.
    """
    cdef Memory own = memory[0]
    cdef Py_ssize_t i, k, n = problem.task.n, rank = problem.rank
    cdef int _halving
    cdef double length = 1.0, fall = dot(own.gradient, own.d, rank), C = problem.settings.C
    cdef double inner = dot(user, own.d, rank), size = dot(own.d, own.d, rank), trial, change
    cdef double objective = C * loss[0] + 0.5 * dot(user, user, rank)
    cdef bint seen = promising(fall, objective)
    if not fall < 0.0:
        return False
    for _halving in range(_HALVINGS if seen else 1):
        for i in range(n):
            own.trial[i] = own.q[i] + length * own.step_q[i]
        trial = evaluate(&problem.task, own.trial, own.windows, own.degree, own.slope, &own.pairs)
        change = C * (trial - loss[0]) + length * inner + 0.5 * length * length * size
        if sufficient(change, 0.0, length, fall) if seen else level(change, objective):
            for k in range(rank):
                user[k] += length * own.d[k]
            for i in range(n):
                own.q[i] = own.trial[i]
            loss[0] = trial
            return seen
        length *= 0.5
    return False
