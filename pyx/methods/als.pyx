"""Alternating least squares on factors: ridge regressions row by row, and the products of the item side.

Rows are users or items, and columns are the other side. Rows are independent, and each is summed by one thread in
the order of its entries, so that no bit depends on the number of threads. Each coordinate of a ridge regression has a
penalty of its own, and one whose penalty is infinite is held: the others are fitted to what it leaves. A quadratic form
may be added to all rows' objectives, such as the squares of a row's products with all vectors.
"""

# Roof of ridge, an entry: 12 bytes; rank * (rank + 3) flops; rank / 8 lines.
# Roof of ridge by rows, a row: 16 * rank bytes; rank ** 3 / 3 + 2 * rank ** 2 flops.

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport isfinite, isinf
from libc.stdint cimport INT32_MAX, int32_t, int64_t

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats
from rankbench.kernels.shared.checks cimport agree, within
from rankbench.kernels.shared.lanes cimport dot, dot_any, read_ahead
from rankbench.kernels.shared.normal_equations cimport (
    BLOCK, FOUR, SMALL, Chosen, Equations, Vectors, add_products, clear, gather, room_for, solve_equations,
    solve_four, stride_of,
)
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.powers cimport raised
from rankbench.kernels.shared.rows cimport (
    Pattern, PatternView, SparseRows, SparseView, first_id, first_row, first_value, longest_row,
)

cdef extern from *:
    """
    #define RANKBENCH_EXACT 1e-30
    #define RANKBENCH_VANISHED 1e-250
    """
    const double EXACT "RANKBENCH_EXACT"  # of a squared residual, relative to the first one: rounding errors are left
    const double VANISHED "RANKBENCH_VANISHED"  # below this a squared length may underflow in a product

cdef enum:
    _TOGETHER = 4  # entries whose vectors are added at once, so that the sum is read and written once for them

cdef struct Penalties:
    # Those of a row's coordinates, each (n + more)^power times as large for a row of n entries, and a form for all.
    const double *each
    double power
    double more
    const double *form  # rank x rank, symmetric; NULL for none

cdef struct Memory:
    # Scratch memory of one thread.
    Equations system  # of a ridge regression
    double *gathered  # up to BLOCK vectors that are summed into it

cdef struct Systems:
    # Ridge regressions of one thread that wait for their solution, and whose they are.
    Py_ssize_t waiting
    Py_ssize_t rows[FOUR]
    Equations each[FOUR]
    double *gathered

cdef struct Regressions:
    # The ridge regressions of all rows.
    const SparseView *rows
    const double *vectors
    int rank
    Penalties penalties
    double *out
    int32_t *failed  # whether a row's system was not solved in finite numbers

cdef struct Iterate:
    # Conjugate gradients of one thread: how often, and scratch memory of three vectors.
    int iterations
    double *residual  # of the system of a ridge regression, divided by two: minus its gradient
    double *direction
    double *image  # the system's matrix times the direction

cdef struct Sweep:
    # Blocks of coordinates of one thread: how many at a time, and scratch memory.
    int block
    double *errors  # of the row's entries: what its vector leaves of their values
    Memory memory  # of a system of so many unknowns, whose solution is by how much a block moves

cdef struct Entries:
    # Some of a row's entries, and how many.
    const int32_t *columns
    const double *values
    int64_t n

cdef struct Block:
    # Some coordinates: the first one, and how many.
    int first
    int size


cdef class Ridge:
    """What a row's vector x costs beside its squared errors: (n + more)^power sum each_a x_a^2 + x . form x.

    n is the row's number of entries, and `form` a symmetric matrix; without it there is none.
    """

    cdef const double[::1] each
    cdef const double[:, ::1] form
    cdef Penalties view

    def __init__(
        self, *, const double[::1] each, double power=0.0, double more=0.0, const double[:, ::1] form=None
    ):
        """Take the arrays, without a copy."""
        self.each = each
        self.form = form
        self.view = Penalties(NULL, power, more, NULL)
        if form is not None:
            agree("rows of form", form.shape[0], each.shape[0])
            agree("columns of form", form.shape[1], each.shape[0])
        if each.shape[0] > 0:
            self.view.each = &each[0]
            if form is not None:
                self.view.form = &form[0, 0]


def ridge(
    *, SparseRows rows, const double[:, ::1] vectors, Ridge penalties, double[:, ::1] out, int threads
) -> int:
    """Give each row its minimiser of sum (value - out . vector)^2 and its penalties, in place.

    Returns the first row whose system was not solved in finite numbers, or -1. A row of n entries costs
    n k^2 + k^3/3 flops at rank k.
    """
    threads = team(threads)
    agree("rows of out", out.shape[0], rows.view.n)
    agree("columns of vectors", vectors.shape[1], out.shape[1])
    agree("penalties", penalties.each.shape[0], out.shape[1])
    if rows.view.n == 0:
        return -1
    cdef Py_ssize_t first
    cdef int rank = <int> out.shape[1]
    cdef int32_t[::1] failed = np.zeros(rows.view.n, np.int32)
    cdef Arena arena = Arena(NULL, 0)
    cdef Systems memory = _lay_out_systems(&arena, rank)
    cdef Scratch scratch = Scratch(arena.used, threads)
    cdef Regressions all_rows = Regressions(
        &rows.view, first_row(vectors), rank, penalties.view, &out[0, 0], &failed[0]
    )
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out_systems(&arena, rank)
        for first in prange(0, rows.view.n, 16, schedule="dynamic"):
            _ridge_rows(&all_rows, first, min(first + 16, rows.view.n), &memory)
    return int(np.flatnonzero(failed)[0]) if np.any(failed) else -1


def improve_ridge(
    *, SparseRows rows, const double[:, ::1] vectors, Ridge penalties, int iterations, double[:, ::1] out,
    int threads
) -> int:
    """Bring each row nearer to the minimiser that `ridge` gives it, in place.

    Takes so many iterations of conjugate gradients from the row as it is, fewer where the residual vanishes. Returns
    the first row that is not finite then, or -1. A row of n entries costs 4 n k flops at rank k for each iteration,
    and once more for the first residual.
    """
    threads = team(threads)
    agree("rows of out", out.shape[0], rows.view.n)
    agree("columns of vectors", vectors.shape[1], out.shape[1])
    agree("penalties", penalties.each.shape[0], out.shape[1])
    within("iterations", iterations, 0, INT32_MAX)
    cdef Py_ssize_t row, rank = out.shape[1]
    cdef int32_t[::1] failed = np.zeros(rows.view.n, np.int32)
    cdef Arena arena = Arena(NULL, 0)
    cdef Iterate memory = _lay_out_iterate(&arena, rank, iterations)
    cdef Scratch scratch = Scratch(arena.used, threads)
    cdef Penalties own = penalties.view
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out_iterate(&arena, rank, iterations)
        for row in prange(rows.view.n, schedule="dynamic", chunksize=16):
            failed[row] = _improve_row(&rows.view, row, first_row(vectors), rank, own, memory, &out[row, 0])
    return int(np.flatnonzero(failed)[0]) if np.any(failed) else -1


def sweep_ridge(
    *, SparseRows rows, const double[:, ::1] vectors, Ridge penalties, int block, double[:, ::1] out, int threads
) -> int:
    """Bring each row nearer to the minimiser that `ridge` gives it, in place, `block` coordinates at a time.

    Each block is solved for while the others stay, once in their order. Returns the first row that is not finite
    then, or -1. A row of n entries costs n k (block + 4) flops at rank k.
    """
    threads = team(threads)
    agree("rows of out", out.shape[0], rows.view.n)
    agree("columns of vectors", vectors.shape[1], out.shape[1])
    agree("penalties", penalties.each.shape[0], out.shape[1])
    within("block", block, 1, INT32_MAX)
    cdef Py_ssize_t row
    cdef int rank = <int> out.shape[1]
    cdef Py_ssize_t longest = longest_row(rows.view.indptr, rows.view.n)
    cdef int32_t[::1] failed = np.zeros(rows.view.n, np.int32)
    cdef Arena arena = Arena(NULL, 0)
    cdef Sweep memory = _lay_out_sweep(&arena, min(block, rank), longest)
    cdef Scratch scratch = Scratch(arena.used, threads)
    cdef Penalties own = penalties.view
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out_sweep(&arena, min(block, rank), longest)
        for row in prange(rows.view.n, schedule="dynamic", chunksize=16):
            failed[row] = _sweep_row(&rows.view, row, first_row(vectors), rank, own, memory, &out[row, 0])
    return int(np.flatnonzero(failed)[0]) if np.any(failed) else -1


def gram(*, const double[:, ::1] vectors, double[:, ::1] out):
    """Fill `out` with the sum of v v^T over all vectors."""
    agree("rows of out", out.shape[0], vectors.shape[1])
    agree("columns of out", out.shape[1], vectors.shape[1])
    cdef Py_ssize_t a, b, n = vectors.shape[0], rank = vectors.shape[1]
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, rank)
    cdef Scratch scratch = Scratch(arena.used, 1)
    cdef const int32_t[::1] columns = np.arange(n, dtype=np.int32)
    cdef const double[::1] values = np.zeros(n)
    arena = scratch.share(0)
    memory = _lay_out(&arena, rank)
    with nogil:
        clear(&memory.system, rank)
        _add_entries(Entries(first_id(columns), first_value(values), n), first_row(vectors), rank, memory)
        for a in range(rank):
            for b in range(rank):
                out[a, b] = memory.system.matrix[min(a, b) * memory.system.stride + max(a, b)]


def gram_times(
    *, Pattern rows, const double[:, ::1] vectors, const double[:, ::1] left, double[:, ::1] out, int threads
):
    """Fill `out` with (sum over the row's entries of vector vector^T) left_row; the rank is a multiple of 4."""
    threads = team(threads)
    agree("rows of out", out.shape[0], rows.view.n)
    agree("rows of left", left.shape[0], rows.view.n)
    agree("columns of left", left.shape[1], out.shape[1])
    agree("columns of vectors", vectors.shape[1], out.shape[1])
    cdef Py_ssize_t row
    for row in prange(rows.view.n, nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        _gram_times_row(&rows.view, row, first_row(vectors), out.shape[1], &left[row, 0], &out[row, 0])


def squared_errors(
    *, SparseRows rows, const double[:, ::1] left, const double[:, ::1] vectors, double[::1] out, int threads
):
    """Fill `out` with each row's sum of (value - left_row . vector)^2."""
    threads = team(threads)
    agree("rows of out", out.shape[0], rows.view.n)
    agree("rows of left", left.shape[0], rows.view.n)
    agree("columns of vectors", vectors.shape[1], left.shape[1])
    cdef Py_ssize_t row
    for row in prange(rows.view.n, nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        out[row] = _row_error(&rows.view, row, &left[row, 0], first_row(vectors), left.shape[1])


cdef Memory _lay_out(Arena *arena, Py_ssize_t unknowns) noexcept nogil:
    """Room for systems of up to so many unknowns."""
    return Memory(room_for(arena, unknowns), floats(arena, BLOCK * stride_of(unknowns)))


cdef Systems _lay_out_systems(Arena *arena, Py_ssize_t unknowns) noexcept nogil:
    """Room for systems of so many unknowns, side by side."""
    cdef Systems found
    cdef Py_ssize_t k
    found.waiting = 0
    for k in range(FOUR if unknowns <= SMALL else 1):  # larger ones are solved one by one
        found.each[k] = room_for(arena, unknowns)
    found.gathered = floats(arena, BLOCK * stride_of(unknowns))
    return found


cdef void _ridge_rows(const Regressions *all_rows, Py_ssize_t first, Py_ssize_t end, Systems *systems) noexcept nogil:
    """Solve the rows first .. end - 1: out = (form + sum v v^T + penalties)^-1 sum y v, or zero without entries."""
    cdef Py_ssize_t row
    for row in range(first, end):
        if all_rows.rows.indptr[row + 1] == all_rows.rows.indptr[row]:
            _set_free(all_rows.out + row * all_rows.rank, all_rows.penalties.each, all_rows.rank)
        elif _sum_row(all_rows, row, Memory(systems.each[systems.waiting], systems.gathered)):
            systems.rows[systems.waiting] = row
            systems.waiting += 1
            if systems.waiting == FOUR or all_rows.rank > SMALL:
                _solve_waiting(all_rows, systems)
        else:
            all_rows.failed[row] = True
    _solve_waiting(all_rows, systems)


cdef void _solve_waiting(const Regressions *all_rows, Systems *systems) noexcept nogil:
    """Solve the systems that wait, and write their solutions if these are finite."""
    cdef Py_ssize_t k, a
    cdef int failed = 0
    cdef double *out
    if systems.waiting == FOUR:
        solve_four(systems.each)
    else:
        for k in range(systems.waiting):
            failed |= solve_equations(&systems.each[k]) << k
    for k in range(systems.waiting):
        out = all_rows.out + systems.rows[k] * all_rows.rank
        for a in range(all_rows.rank):
            failed |= (not isfinite(systems.each[k].right[a])) << k
            out[a] = systems.each[k].right[a]
        all_rows.failed[systems.rows[k]] = failed >> k & 1
    systems.waiting = 0


cdef bint _sum_row(const Regressions *all_rows, Py_ssize_t row, Memory memory) noexcept nogil:
    """Sum a row's system; whether its diagonal is finite."""
    cdef int64_t begin = all_rows.rows.indptr[row], n = all_rows.rows.indptr[row + 1] - begin
    cdef Py_ssize_t a, b, rank = all_rows.rank
    cdef Equations *system = &memory.system
    cdef const Penalties *penalties = &all_rows.penalties
    cdef double scale = raised(<double> n + penalties.more, penalties.power)
    cdef Entries entries = Entries(all_rows.rows.columns + begin, all_rows.rows.values + begin, n)
    cdef double *diagonal
    clear(system, rank)
    if penalties.form != NULL:
        for a in range(rank):
            for b in range(rank):
                system.matrix[a * system.stride + b] = penalties.form[a * rank + b]
    _add_entries(entries, all_rows.vectors, rank, memory)
    for a in range(rank):
        diagonal = system.matrix + a * system.stride + a
        if isinf(penalties.each[a]):
            _hold(system, a, all_rows.out[row * rank + a])
        else:
            diagonal[0] += scale * penalties.each[a]
        if not isfinite(diagonal[0]):
            return False
    return True


cdef inline void _set_free(double *out, const double *penalties, Py_ssize_t rank) noexcept nogil:
    """Set the coordinates that are not held to zero."""
    cdef Py_ssize_t a
    for a in range(rank):
        if not isinf(penalties[a]):
            out[a] = 0.0


cdef void _hold(Equations *system, Py_ssize_t held, double value) noexcept nogil:
    """Take an unknown whose value is given out of a system: to the right side, and its equation says the value."""
    cdef Py_ssize_t a, place
    for a in range(system.unknowns):
        place = min(a, held) * system.stride + max(a, held)
        system.right[a] -= system.matrix[place] * value
        system.matrix[place] = 0.0
    system.matrix[held * system.stride + held] = 1.0
    system.right[held] = value


cdef Iterate _lay_out_iterate(Arena *arena, Py_ssize_t rank, int iterations) noexcept nogil:
    """Room for one row's conjugate gradients."""
    return Iterate(iterations, floats(arena, rank), floats(arena, rank), floats(arena, rank))


cdef int _improve_row(
    const SparseView *rows, Py_ssize_t row, const double *vectors, Py_ssize_t rank, Penalties penalties,
    Iterate memory, double *out,
) noexcept nogil:
    """Conjugate gradients on (form + sum v v^T + penalties) out = sum y v from `out`; zero for a row without entries.

    It ends where the residual has lost all its digits: further directions would be made of rounding errors, and grow.
    Returns whether the result is not finite. Invariant: residual = sum y v - (form + sum v v^T + penalties) out,
    and 0 where a coordinate is held.
    """
    cdef Py_ssize_t a
    cdef int _iteration
    cdef double squared, start, before, length
    cdef double scale = raised(<double> (rows.indptr[row + 1] - rows.indptr[row]) + penalties.more, penalties.power)
    if rows.indptr[row] == rows.indptr[row + 1]:
        _set_free(out, penalties.each, rank)
        return 0
    _add_products(rows, row, vectors, rank, out, True, memory.residual)
    for a in range(rank):
        memory.residual[a] -= scale * penalties.each[a] * out[a]
        if penalties.form != NULL:
            memory.residual[a] -= dot_any(penalties.form + a * rank, out, rank)
        if isinf(penalties.each[a]):
            memory.residual[a] = 0.0
        memory.direction[a] = memory.residual[a]
    squared = dot_any(memory.residual, memory.residual, rank)
    start = squared
    for _iteration in range(memory.iterations):
        if squared <= EXACT * start or squared < VANISHED:
            break
        _add_products(rows, row, vectors, rank, memory.direction, False, memory.image)
        for a in range(rank):
            memory.image[a] += scale * penalties.each[a] * memory.direction[a]
            if penalties.form != NULL:
                memory.image[a] += dot_any(penalties.form + a * rank, memory.direction, rank)
            if isinf(penalties.each[a]):
                memory.image[a] = 0.0  # such a coordinate is held
        length = squared / dot_any(memory.direction, memory.image, rank)
        for a in range(rank):
            out[a] += length * memory.direction[a]
            memory.residual[a] -= length * memory.image[a]
        before = squared
        squared = dot_any(memory.residual, memory.residual, rank)
        for a in range(rank):
            memory.direction[a] = memory.residual[a] + squared / before * memory.direction[a]
    return not isfinite(squared)


cdef Sweep _lay_out_sweep(Arena *arena, int block, Py_ssize_t longest) noexcept nogil:
    """Room for the blocks of one row."""
    return Sweep(block, floats(arena, longest), _lay_out(arena, block))


cdef int _sweep_row(
    const SparseView *rows, Py_ssize_t row, const double *vectors, int rank, Penalties penalties, Sweep memory,
    double *out,
) noexcept nogil:
    """For each block of coordinates in turn: the least cost of the row while its others stay; returns if that failed.

    Invariant: errors = values - vectors . out.
    """
    cdef int64_t entry, begin = rows.indptr[row], n = rows.indptr[row + 1] - rows.indptr[row]
    cdef double scale = raised(<double> n + penalties.more, penalties.power)
    cdef Equations *system = &memory.memory.system
    cdef const double *v
    cdef int first = 0, size, a
    if n == 0:
        _set_free(out, penalties.each, rank)
        return 0
    for entry in range(n):
        v = vectors + rows.columns[begin + entry] * <Py_ssize_t> rank
        memory.errors[entry] = rows.values[begin + entry] - dot_any(v, out, rank)
    while first < rank:
        size = min(memory.block, rank - first)
        clear(system, size)
        _add_entries(Entries(rows.columns + begin, memory.errors, n), vectors + first, rank, memory.memory)
        for a in range(size):
            _add_penalties(penalties, scale, Block(first, size), a, rank, out, system)
        if solve_equations(system):
            return 1
        for a in range(size):
            out[first + a] += system.right[a]
            if not isfinite(out[first + a]):
                return 1
        for entry in range(n):
            v = vectors + rows.columns[begin + entry] * <Py_ssize_t> rank + first
            memory.errors[entry] -= dot_any(v, system.right, size)
        first += size
    return 0


cdef inline void _add_penalties(
    Penalties penalties, double scale, Block block, int a, int rank, const double *out, Equations *system
) noexcept nogil:
    """Add the penalties and the form to row `a` of a block's system; a coordinate that is held does not move."""
    cdef int b, first = block.first
    cdef const double *form = penalties.form + (first + a) * <Py_ssize_t> rank
    cdef double *row = system.matrix + a * system.stride
    if isinf(penalties.each[first + a]):
        _hold(system, a, 0.0)
        return
    system.right[a] -= scale * penalties.each[first + a] * out[first + a]
    row[a] += scale * penalties.each[first + a]
    if penalties.form != NULL:
        system.right[a] -= dot_any(form, out, rank)
        for b in range(a, block.size):
            if not isinf(penalties.each[first + b]):
                row[b] += form[first + b]


cdef inline void _add_products(
    const SparseView *rows, Py_ssize_t row, const double *vectors, Py_ssize_t rank, const double *left, bint errors,
    double *out,
) noexcept nogil:
    """out = sum c v over the row's entries, c being v . left or, with `errors`, the value minus it."""
    cdef int64_t entry = rows.indptr[row], end = rows.indptr[row + 1]
    cdef const int32_t *columns = rows.columns
    cdef const double *v[_TOGETHER]
    cdef double c[_TOGETHER]
    cdef Py_ssize_t a, k
    cdef Py_ssize_t many
    for k in range(rank):
        out[k] = 0.0
    while entry < end:
        many = min(<int64_t> _TOGETHER, end - entry)
        for a in range(many):
            v[a] = vectors + columns[entry + a] * rank
            if entry + a + _TOGETHER < end:
                read_ahead(vectors + columns[entry + a + _TOGETHER] * rank, rank)
        for a in range(many):
            c[a] = dot_any(v[a], left, rank)
            if errors:
                c[a] = rows.values[entry + a] - c[a]
        if many == _TOGETHER:
            for k in range(rank):
                out[k] = (((out[k] + c[0] * v[0][k]) + c[1] * v[1][k]) + c[2] * v[2][k]) + c[3] * v[3][k]
        else:
            for a in range(many):
                for k in range(rank):
                    out[k] += c[a] * v[a][k]
        entry += many


cdef inline void _add_entries(
    Entries entries, const double *vectors, Py_ssize_t rank, Memory memory
) noexcept nogil:
    """Add sum v v^T and sum value x v to a system, v being as many numbers of a vector as it has unknowns."""
    cdef int64_t block = 0, size
    cdef Equations *system = &memory.system
    while block < entries.n:
        size = min(<int64_t> BLOCK, entries.n - block)
        gather(
            vectors, Chosen(entries.columns + block, size, rank), system.unknowns, memory.gathered, system.stride
        )
        add_products(system, Vectors(memory.gathered, entries.values + block, size))
        block += size


cdef void _gram_times_row(
    const PatternView *rows, Py_ssize_t row, const double *vectors, Py_ssize_t rank, const double *left, double *out
) noexcept nogil:
    """out = sum (vector . left) vector over the row's entries."""
    cdef int64_t entry
    cdef Py_ssize_t k
    cdef const int32_t *columns = rows.columns
    cdef const double *vector
    cdef double inner
    for k in range(rank):
        out[k] = 0.0
    for entry in range(rows.indptr[row], rows.indptr[row + 1]):
        vector = vectors + columns[entry] * rank
        inner = dot(vector, left, rank)
        for k in range(rank):
            out[k] += inner * vector[k]


cdef double _row_error(
    const SparseView *rows, Py_ssize_t row, const double *left, const double *vectors, Py_ssize_t rank
) noexcept nogil:
    """The row's sum of squared errors; each error is summed from the value on, in the order of the coordinates."""
    cdef int64_t entry
    cdef Py_ssize_t k
    cdef double total = 0.0, error
    cdef const double *vector
    for entry in range(rows.indptr[row], rows.indptr[row + 1]):
        vector = vectors + rows.columns[entry] * rank
        error = rows.values[entry]
        for k in range(rank):
            error -= left[k] * vector[k]
        total += error * error
    return total
