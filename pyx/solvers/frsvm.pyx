"""Factorization RankSVM: what both of its steps need of all tasks, and the whole of a step over the tasks.

Rows of factors are padded with zeros to whole lanes. `rows` below are the arrays that all_pairs.pyx makes
of ratings or comparisons, `items` the item of each row, and the state of a point is, row by row, its scores,
order, windows and degrees. Tasks, blocks of items or rows of features run side by side and each sum has one
order, so that no bit depends on the number of threads.
"""

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankbench.kernels.methods.all_pairs cimport (
    Rows, Scratch, Task, Windows, curve, evaluate, longest_task, rows_of, scratch_in, scratch_size,
    task_of,
)
from rankbench.kernels.shared.blas cimport multiply, multiply_from_left
from rankbench.kernels.shared.lanes cimport dot, fetch, read_ahead
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.sorting cimport in_order

cdef enum:
    _ROWS = 128  # of dense features times a matrix: rows in a block
    _COLUMNS = 32  # of transposed dense features times a matrix: columns in a block
    _HALVINGS = 30  # of a step before it is given up
    _AHEAD = 4  # rows of factors that are on their way while one is worked on

cdef struct Search:
    # How far a task's Newton steps go.
    double C
    int newton  # steps
    int cg  # conjugate gradients in each
    double forcing  # residual at which they end, relative to the gradient

cdef struct Place:
    # One task's memory: n values per row, k per coordinate
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


def score(
    const int64_t[::1] indptr, const int32_t[::1] items, const double[:, ::1] users, const double[:, ::1] factors,
    double[::1] out, int threads,
):
    """Fill out with the inner product of user and item for each row."""
    threads = team(threads)
    cdef Py_ssize_t task
    if items.shape[0] > 0:
        for task in prange(users.shape[0], nogil=True, schedule="dynamic", chunksize=32, num_threads=threads):
            _score(
                &items[0], indptr[task], indptr[task + 1], &users[task, 0], &factors[0, 0], users.shape[1], &out[0]
            )


def block_starts(const int64_t[::1] indptr, const int32_t[::1] items, Py_ssize_t width, int32_t[:, ::1] out):
    """out[b, task] = the task's rows before the items from b width on; items ascend within a task."""
    cdef Py_ssize_t task, block, row, blocks = out.shape[0]
    with nogil:
        for task in range(out.shape[1]):
            block = 0
            for row in range(indptr[task], indptr[task + 1]):
                while items[row] >= block * width:
                    out[block, task] = <int32_t> (row - indptr[task])
                    block += 1
            while block < blocks:
                out[block, task] = <int32_t> (indptr[task + 1] - indptr[task])
                block += 1


def scatter(
    const int64_t[::1] indptr, const int32_t[::1] items, const int32_t[:, ::1] starts, Py_ssize_t width,
    const double[::1] weights, const double[:, ::1] users, double[:, ::1] out, int threads,
):
    """out_j = sum of weight times user over the rows of item j, task by task.

    Items go in blocks whose rows of `out` stay in cache while all tasks pass by.
    """
    threads = team(threads)
    cdef Py_ssize_t block
    for block in prange(starts.shape[0] - 1, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads):
        _scatter(indptr, items, starts, block, width, weights, users, out)


def users_step(
    const int64_t[::1] indptr, const int32_t[::1] level, const int32_t[::1] levels,
    const int64_t[::1] pair_indptr, const int32_t[::1] better, const int32_t[::1] worse,
    const int32_t[::1] items, const double[:, ::1] factors, double[:, ::1] users,
    double C, int newton, int cg, double forcing, int threads,
):
    """Truncated Newton for each task by itself: each row of `users` moves to where its own objective is no higher."""
    threads = team(threads)
    cdef Rows rows = rows_of(indptr, level, levels, pair_indptr, better, worse)
    cdef Search search = Search(C, newton, cg, forcing)
    cdef Py_ssize_t task, tasks = users.shape[0], rank = users.shape[1], longest = longest_task(&rows, tasks)
    cdef Py_ssize_t size = scratch_size(&rows, tasks) + longest * (rank + 10) + 5 * rank
    cdef double *memory = <double *> malloc(threads * size * sizeof(double))
    cdef double *own = memory
    if memory == NULL:
        raise MemoryError
    if items.shape[0] > 0:
        with nogil, parallel(num_threads=threads):
            own = memory + thread_id() * size
            for task in prange(tasks, schedule="dynamic", chunksize=16):
                _fit_task(&rows, task, &items[0], &factors[0, 0], &users[task, 0], rank, search, own, longest)
    free(memory)


def sparse_times(
    const int64_t[::1] indptr, const int32_t[::1] indices, const double[::1] data, const double[:, ::1] matrix,
    double[:, ::1] out, int threads,
):
    """out = a CSR matrix times a dense one, row by row."""
    threads = team(threads)
    cdef Py_ssize_t row
    for row in prange(out.shape[0], nogil=True, schedule="dynamic", chunksize=32, num_threads=threads):
        _sparse_row(indptr[row], indptr[row + 1], indices, data, matrix, &out[row, 0])


def dense_times(const double[:, ::1] features, const double[:, ::1] matrix, double[:, ::1] out, int threads):
    """out = features times a matrix, in blocks of rows."""
    threads = team(threads)
    cdef Py_ssize_t block, n = features.shape[0], blocks = (n + _ROWS - 1) // _ROWS
    for block in prange(blocks, nogil=True, schedule="static", num_threads=threads):
        multiply(
            &features[block * _ROWS, 0], &matrix[0, 0], &out[block * _ROWS, 0],
            <int> min(<Py_ssize_t> _ROWS, n - block * _ROWS), <int> matrix.shape[1], <int> features.shape[1],
        )


def transposed_times(const double[:, ::1] features, const double[:, ::1] matrix, double[:, ::1] out, int threads):
    """out = features transposed times a matrix, in blocks of columns of the features."""
    threads = team(threads)
    cdef Py_ssize_t block, n = features.shape[1], blocks = (n + _COLUMNS - 1) // _COLUMNS
    for block in prange(blocks, nogil=True, schedule="dynamic", chunksize=1, num_threads=threads):
        multiply_from_left(
            &features[0, block * _COLUMNS], &matrix[0, 0], &out[block * _COLUMNS, 0],
            <int> min(<Py_ssize_t> _COLUMNS, n - block * _COLUMNS), <int> matrix.shape[1],
            <int> features.shape[0], <int> n,
        )


cdef void _score(
    const int32_t *items, Py_ssize_t first, Py_ssize_t end, const double *user, const double *factors,
    Py_ssize_t rank, double *out,
) noexcept nogil:
    cdef Py_ssize_t row
    for row in range(first, end):
        if row + _AHEAD < end:
            read_ahead(factors + items[row + _AHEAD] * rank, rank)
        out[row] = dot(user, factors + items[row] * rank, rank)


cdef void _scatter(
    const int64_t[::1] indptr, const int32_t[::1] items, const int32_t[:, ::1] starts, Py_ssize_t block,
    Py_ssize_t width, const double[::1] weights, const double[:, ::1] users, double[:, ::1] out,
) noexcept nogil:
    """One block of items; a weight of zero, as most are near the end, costs no more than a look."""
    cdef Py_ssize_t task, row, k, end, rank = users.shape[1]
    cdef double weight
    cdef double *target
    cdef const double *user
    for row in range(block * width, min((block + 1) * width, out.shape[0])):
        for k in range(rank):
            out[row, k] = 0.0
    for task in range(users.shape[0]):
        user = &users[task, 0]
        end = indptr[task] + starts[block + 1, task]
        for row in range(indptr[task] + starts[block, task], end):
            if row + _AHEAD < end:
                fetch(&out[items[row + _AHEAD], 0], rank)
            weight = weights[row]
            if weight != 0.0:
                target = &out[items[row], 0]
                for k in range(rank):
                    target[k] += weight * user[k]


cdef void _fit_task(
    const Rows *rows, Py_ssize_t number, const int32_t *items, const double *factors, double *user,
    Py_ssize_t rank, Search search, double *memory, Py_ssize_t longest,
) noexcept nogil:
    """min over v of C loss(R v) + |v|^2 / 2, R being the factors of the task's items."""
    cdef Task task = task_of(rows, number)
    cdef Py_ssize_t i, k
    cdef int _step
    cdef Place place
    cdef Scratch scratch
    cdef Windows windows
    cdef double loss
    _lay_out(&place, &windows, &scratch, memory, task.n, rank, longest)
    for i in range(task.n):
        if i + _AHEAD < task.n:
            read_ahead(factors + items[rows.indptr[number] + i + _AHEAD] * rank, rank)
        for k in range(rank):
            place.rows[i * rank + k] = factors[items[rows.indptr[number] + i] * rank + k]
    in_order(windows.order, task.n)
    _rows_times(&place, task.n, rank, user, place.q)
    loss = evaluate(&task, place.q, windows, place.degree, place.slope, &scratch)
    for _step in range(search.newton):
        _rows_transposed_times(&place, task.n, rank, place.slope, user, 2.0 * search.C, place.gradient)
        _conjugate_gradients(&task, &place, windows, &scratch, rank, search)
        if not _move(&task, &place, windows, &scratch, rank, search.C, user, &loss):
            break


cdef void _lay_out(
    Place *place, Windows *windows, Scratch *scratch, double *memory, Py_ssize_t n, Py_ssize_t rank,
    Py_ssize_t longest,
) noexcept nogil:
    """Hand out a thread's memory; rows of factors first, then what there is per row, then per coordinate."""
    place.rows = memory
    memory += longest * rank
    place.q = memory
    place.step_q = memory + longest
    place.trial = memory + 2 * longest
    place.change = memory + 3 * longest
    place.product = memory + 4 * longest
    place.degree = memory + 5 * longest
    place.slope = memory + 6 * longest
    windows.order = <int32_t *> (memory + 7 * longest)
    windows.high = <int32_t *> (memory + 8 * longest)
    windows.low = <int32_t *> (memory + 9 * longest)
    memory += 10 * longest
    place.gradient = memory
    place.d = memory + rank
    place.residual = memory + 2 * rank
    place.p = memory + 3 * rank
    place.curved = memory + 4 * rank
    scratch[0] = scratch_in(memory + 5 * rank, longest)


cdef void _conjugate_gradients(
    const Task *task, Place *place, Windows windows, Scratch *scratch, Py_ssize_t rank, Search search
) noexcept nogil:
    """d ~ -(I + 2C R^T H R)^-1 gradient, and R d beside it."""
    cdef Py_ssize_t k, i
    cdef int _turn
    cdef double size, before, length, ratio, enough
    for i in range(task.n):
        place.step_q[i] = 0.0
    for k in range(rank):
        place.d[k] = 0.0
        place.residual[k] = place.p[k] = -place.gradient[k]
    size = dot(place.residual, place.residual, rank)
    enough = search.forcing * search.forcing * size
    for _turn in range(search.cg):
        if size <= enough:
            return
        _rows_times(place, task.n, rank, place.p, place.change)
        curve(task, place.q, windows, place.degree, place.change, place.product, scratch)
        _rows_transposed_times(place, task.n, rank, place.product, place.p, 2.0 * search.C, place.curved)
        length = size / dot(place.p, place.curved, rank)
        for k in range(rank):
            place.d[k] += length * place.p[k]
            place.residual[k] -= length * place.curved[k]
        for i in range(task.n):
            place.step_q[i] += length * place.change[i]
        before = size
        size = dot(place.residual, place.residual, rank)
        ratio = size / before
        for k in range(rank):
            place.p[k] = place.residual[k] + ratio * place.p[k]


cdef bint _move(
    const Task *task, Place *place, Windows windows, Scratch *scratch, Py_ssize_t rank, double C, double *user,
    double *loss,
) noexcept nogil:
    """Halve the step until the objective falls as Armijo asks, and take it; false if no step is left.

    What it leaves behind, scores, slopes and windows, is that of the new point, if there is one.
    """
    cdef Py_ssize_t i, k
    cdef int _halving
    cdef double length = 1.0, fall = dot(place.gradient, place.d, rank)
    cdef double inner = dot(user, place.d, rank), size = dot(place.d, place.d, rank), trial
    if not fall < 0.0:
        return False
    for _halving in range(_HALVINGS):
        for i in range(task.n):
            place.trial[i] = place.q[i] + length * place.step_q[i]
        trial = evaluate(task, place.trial, windows, place.degree, place.slope, scratch)
        if C * (trial - loss[0]) + length * inner + 0.5 * length * length * size <= 1e-4 * length * fall:
            for k in range(rank):
                user[k] += length * place.d[k]
            for i in range(task.n):
                place.q[i] = place.trial[i]
            loss[0] = trial
            return True
        length *= 0.5
    return False


cdef inline void _rows_times(
    const Place *place, Py_ssize_t n, Py_ssize_t rank, const double *x, double *out
) noexcept nogil:
    """out = R x"""
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = dot(x, place.rows + i * rank, rank)


cdef inline void _rows_transposed_times(
    const Place *place, Py_ssize_t n, Py_ssize_t rank, const double *x, const double *start, double factor,
    double *out,
) noexcept nogil:
    """out = start + factor R^T x, four rows at a time."""
    cdef Py_ssize_t i, k, whole = n - n % 4
    cdef const double *row = place.rows
    cdef double a, b, c, d
    for k in range(rank):
        out[k] = 0.0
    for i in range(0, whole, 4):
        a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
        for k in range(rank):
            out[k] += (a * row[k] + b * row[rank + k]) + (c * row[2 * rank + k] + d * row[3 * rank + k])
        row += 4 * rank
    for i in range(whole, n):
        a = x[i]
        for k in range(rank):
            out[k] += a * row[k]
        row += rank
    for k in range(rank):
        out[k] = start[k] + factor * out[k]


cdef void _sparse_row(
    Py_ssize_t first, Py_ssize_t end, const int32_t[::1] indices, const double[::1] data, const double[:, ::1] matrix,
    double *out,
) noexcept nogil:
    cdef Py_ssize_t k, entry, rank = matrix.shape[1]
    cdef const double *row
    cdef double value
    for k in range(rank):
        out[k] = 0.0
    for entry in range(first, end):
        value = data[entry]
        row = &matrix[indices[entry], 0]
        for k in range(rank):
            out[k] += value * row[k]
