"""Inner products: of some rows with all columns, as scores of a block of users for the whole catalogue; or of pairs.

BLAS takes half the time where it has wider instructions than the portable build. But the order in which it sums
depends on where in the matrix a pair stands, so that items of equal vectors need not tie. Here the sum of a pair runs
over its coordinates in order, and its bits depend on the two vectors alone.
"""

# Roof of products, a score: 8 bytes; 2 * rank flops.
# Roof of pairs, a score: 16 bytes; 2 * rank flops; rank / 8 + 1 lines.

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats
from rankbench.kernels.shared.checks cimport agree
from rankbench.kernels.shared.lanes cimport LANES
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport SparseRows

cdef extern from *:
    """
    #include <string.h>

    #if RANKBENCH_WIDTH == 4
    static inline rankbench_lanes rankbench_multiplied(const double *x, const double *y) {
        rankbench_lanes a, b;
        RANKBENCH_LOAD(a, x);
        RANKBENCH_LOAD(b, y);
        return a * b;
    }
    #endif

    /* The inner products of four pairs of vectors, each summed over the coordinates in order. With wider instructions
       four coordinates of each pair are multiplied at once, and turned such that a lane holds what one pair adds. */
    static inline void rankbench_four_in_order(
        const double *const *x, const double *const *y, Py_ssize_t n, double *out
    ) {
        Py_ssize_t k = 0;
        double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    #if RANKBENCH_WIDTH == 4
        rankbench_lanes sums = {0}, p, q, r, s, even, odd, other_even, other_odd;
        for (; k + 4 <= n; k += 4) {
            p = rankbench_multiplied(x[0] + k, y[0] + k);
            q = rankbench_multiplied(x[1] + k, y[1] + k);
            r = rankbench_multiplied(x[2] + k, y[2] + k);
            s = rankbench_multiplied(x[3] + k, y[3] + k);
            even = RANKBENCH_OF_TWO(p, q, 0, 4, 2, 6);
            odd = RANKBENCH_OF_TWO(p, q, 1, 5, 3, 7);
            other_even = RANKBENCH_OF_TWO(r, s, 0, 4, 2, 6);
            other_odd = RANKBENCH_OF_TWO(r, s, 1, 5, 3, 7);
            sums += RANKBENCH_OF_TWO(even, other_even, 0, 1, 4, 5);
            sums += RANKBENCH_OF_TWO(odd, other_odd, 0, 1, 4, 5);
            sums += RANKBENCH_OF_TWO(even, other_even, 2, 3, 6, 7);
            sums += RANKBENCH_OF_TWO(odd, other_odd, 2, 3, 6, 7);
        }
        a = sums[0];
        b = sums[1];
        c = sums[2];
        d = sums[3];
    #endif
        for (; k < n; k++) {
            a += x[0][k] * y[0][k];
            b += x[1][k] * y[1][k];
            c += x[2][k] * y[2][k];
            d += x[3][k] * y[3][k];
        }
        out[0] = a;
        out[1] = b;
        out[2] = c;
        out[3] = d;
    }
    """
    void four_in_order "rankbench_four_in_order" (
        const double **x, const double **y, Py_ssize_t n, double *out
    ) noexcept nogil

cdef enum:
    _STRIP = 64  # columns packed at a time, for all rows
    _NARROW = 8  # the same where there are few columns, as of factors of low rank
    _ROWS = 4  # rows at a time against a narrow strip, so that no sum waits for itself
    _FEW = 24  # so many columns are fewer strips of _NARROW than half a strip of _STRIP

cdef struct Table:
    # Rows of doubles, each contiguous; others may lie between them, as where a model shows a part of wider rows.
    const char *first
    Py_ssize_t step  # bytes from one row to the next


def products(
    *,
    const double[:, ::1] rows,
    const int32_t[::1] chosen,
    const double[:, ::1] columns,
    double[:, ::1] out,
    int threads,
):
    """Fill out[a, j] with rows[chosen[a]] . columns[j], in 2 rank flops each.

    Threads share strips of columns. A strip is packed once for all chosen rows.
    """
    threads = team(threads)
    cdef Py_ssize_t rank = columns.shape[1], strip, width = _NARROW if columns.shape[0] <= _FEW else _STRIP
    cdef Py_ssize_t strips = (columns.shape[0] + width - 1) // width
    agree("columns of rows", rows.shape[1], rank)
    agree("rows of out", out.shape[0], chosen.shape[0])
    agree("columns of out", out.shape[1], columns.shape[0])
    cdef Arena arena = Arena(NULL, 0)
    cdef double *packed = _lay_out(&arena, rank)
    cdef Scratch scratch = Scratch(arena.used, threads)
    if rank == 0 or chosen.shape[0] == 0:
        out[:, :] = 0.0
        return
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        packed = _lay_out(&arena, rank)
        for strip in prange(strips, schedule="static"):
            _fill_strip(rows, chosen, columns, strip * width, width, packed, out)


def pairs(
    *,
    const double[:, :] rows,
    const int32_t[::1] chosen,
    const double[:, :] columns,
    const int32_t[::1] asked,
    double[::1] out,
):
    """Fill out[p] with rows[chosen[p]] . columns[asked[p]], with the bits that `products` gives, in 2 rank flops each.

    Each row and each column is contiguous. Four pairs at a time, so that no sum waits for itself.
    """
    agree("columns of rows", rows.shape[1], columns.shape[1])
    agree("chosen", chosen.shape[0], out.shape[0])
    agree("asked", asked.shape[0], out.shape[0])
    cdef Py_ssize_t rank = columns.shape[1], n = out.shape[0], whole = n - n % 4, pair, k
    if rank == 0 or n == 0:
        out[:] = 0.0
        return
    cdef Table left = _table(rows), right = _table(columns)
    cdef const double *x[4]
    cdef const double *y[4]
    with nogil:
        for pair in range(0, whole, 4):
            for k in range(4):
                x[k] = _row(left, chosen[pair + k])
                y[k] = _row(right, asked[pair + k])
            four_in_order(x, y, rank, &out[pair])
        for pair in range(whole, n):
            out[pair] = _in_order(_row(left, chosen[pair]), _row(right, asked[pair]), rank)


def sparse_pairs(
    *,
    SparseRows features,
    const double[:, ::1] weights,
    const double[::1] offsets,
    const int32_t[::1] users,
    const int32_t[::1] items,
    double[::1] out,
):
    """Fill out[p] with features[items[p]] . weights[users[p]] + offsets[users[p]], summed in the order of the row."""
    agree("offsets", offsets.shape[0], weights.shape[0])
    agree("users", users.shape[0], out.shape[0])
    agree("items", items.shape[0], out.shape[0])
    cdef Py_ssize_t pair, place
    cdef double total
    with nogil:
        for pair in range(out.shape[0]):
            total = 0.0
            for place in range(features.view.indptr[items[pair]], features.view.indptr[items[pair] + 1]):
                total = total + features.view.values[place] * weights[users[pair], features.view.columns[place]]
            out[pair] = total + offsets[users[pair]]


cdef Table _table(const double[:, :] rows) except *:
    """The rows, of which there is at least one; a ValueError unless each is contiguous."""
    if rows.shape[1] > 1 and rows.strides[1] != sizeof(double):
        raise ValueError("the numbers of a row are not next to each other")
    return Table(<const char *> &rows[0, 0], rows.strides[0])


cdef inline const double *_row(Table table, Py_ssize_t row) noexcept nogil:
    return <const double *> (table.first + row * table.step)


cdef double _in_order(const double *x, const double *y, Py_ssize_t n) noexcept nogil:
    """The inner product of two vectors, summed over the coordinates in order."""
    cdef double total = 0.0
    cdef Py_ssize_t k
    for k in range(n):
        total = total + x[k] * y[k]
    return total


cdef double *_lay_out(Arena *arena, Py_ssize_t rank) noexcept nogil:
    """Room for a packed strip."""
    return floats(arena, rank * _STRIP)


cdef void _fill_strip(
    const double[:, ::1] rows, const int32_t[::1] chosen, const double[:, ::1] columns, Py_ssize_t first,
    Py_ssize_t width, double *packed, double[:, ::1] out,
) noexcept nogil:
    """The products of all chosen rows with the columns of a strip, from column `first` on."""
    cdef Py_ssize_t n = min(width, columns.shape[0] - first)
    _pack(&columns[first, 0], n, columns.shape[1], width, packed)
    if width == _NARROW:
        _multiply_narrow(rows, chosen, packed, n, out, first)
    else:
        _multiply(rows, chosen, packed, n, out, first)


cdef void _pack(
    const double *columns, Py_ssize_t n, Py_ssize_t rank, Py_ssize_t width, double *packed
) noexcept nogil:
    """Copy n columns to a strip, coordinate by coordinate; a strip is `width` wide, its columns beyond n are zeros."""
    cdef Py_ssize_t j, k
    for j in range(width):
        for k in range(rank):
            packed[k * width + j] = columns[j * rank + k] if j < n else 0.0


cdef void _multiply_narrow(
    const double[:, ::1] rows, const int32_t[::1] chosen, const double *packed, Py_ssize_t n,
    double[:, ::1] out, Py_ssize_t first,
) noexcept nogil:
    """Multiply all chosen rows by a packed narrow strip of n columns; the last rows stand in for those beyond them."""
    cdef double sums[_ROWS * _NARROW]
    cdef const double *x[_ROWS]
    cdef const double *strip
    cdef Py_ssize_t rank = rows.shape[1], count = chosen.shape[0], row, q, j, k
    for row in range(0, count, 4):  # _ROWS
        for q in range(_ROWS):
            x[q] = &rows[chosen[min(row + q, count - 1)], 0]
        for j in range(_ROWS * _NARROW):
            sums[j] = 0.0
        strip = packed
        for k in range(rank):
            for q in range(_ROWS):
                for j in range(_NARROW):
                    sums[q * _NARROW + j] = sums[q * _NARROW + j] + x[q][k] * strip[j]
            strip += _NARROW
        for q in range(min(<Py_ssize_t> _ROWS, count - row)):
            for j in range(n):
                out[row + q, first + j] = sums[q * _NARROW + j]


cdef void _multiply(
    const double[:, ::1] rows, const int32_t[::1] chosen, const double *packed, Py_ssize_t n,
    double[:, ::1] out, Py_ssize_t first,
) noexcept nogil:
    """Multiply all chosen rows by a packed strip of n columns; four coordinates at a time, added one after the other.

    Invariant: sums[j] is the product of the row with column j of the strip over the coordinates before k.
    """
    cdef double sums[_STRIP]
    cdef double a, b, c, d
    cdef const double *strip
    cdef Py_ssize_t rank = rows.shape[1], whole = rank - rank % LANES, row, j, k
    for row in range(chosen.shape[0]):
        strip = packed
        for j in range(_STRIP):
            sums[j] = 0.0
        for k in range(0, whole, 4):
            a = rows[chosen[row], k]
            b = rows[chosen[row], k + 1]
            c = rows[chosen[row], k + 2]
            d = rows[chosen[row], k + 3]
            for j in range(_STRIP):
                sums[j] = (((sums[j] + a * strip[j]) + b * strip[j + _STRIP]) + c * strip[j + 2 * _STRIP]) \
                    + d * strip[j + 3 * _STRIP]
            strip += 4 * _STRIP
        for k in range(whole, rank):
            a = rows[chosen[row], k]
            for j in range(_STRIP):
                sums[j] = sums[j] + a * strip[j]
            strip += _STRIP
        for j in range(n):
            out[row, first + j] = sums[j]
