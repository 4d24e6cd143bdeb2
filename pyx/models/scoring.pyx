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

    /* A panel is some columns beside each other: their first coordinates, then their second ones, and so on. It is as
       wide as two vectors, so that four rows times a panel are summed up in registers. */
    #define RANKBENCH_PANEL (2 * RANKBENCH_WIDTH)

    static inline void rankbench_pack(const double *const *columns, Py_ssize_t rank, double *panel) {
        Py_ssize_t k = 0;
    #if RANKBENCH_WIDTH == 4
        rankbench_lanes a, b, c, d, low, high, other_low, other_high, turned;
        for (; k + 4 <= rank; k += 4)
            for (int half = 0; half < 8; half += 4) {
                double *to = panel + k * RANKBENCH_PANEL + half;
                RANKBENCH_LOAD(a, columns[half] + k);
                RANKBENCH_LOAD(b, columns[half + 1] + k);
                RANKBENCH_LOAD(c, columns[half + 2] + k);
                RANKBENCH_LOAD(d, columns[half + 3] + k);
                low = RANKBENCH_OF_TWO(a, b, 0, 4, 2, 6);
                high = RANKBENCH_OF_TWO(a, b, 1, 5, 3, 7);
                other_low = RANKBENCH_OF_TWO(c, d, 0, 4, 2, 6);
                other_high = RANKBENCH_OF_TWO(c, d, 1, 5, 3, 7);
                turned = RANKBENCH_OF_TWO(low, other_low, 0, 1, 4, 5);
                RANKBENCH_STORE(to, turned);
                turned = RANKBENCH_OF_TWO(high, other_high, 0, 1, 4, 5);
                RANKBENCH_STORE(to + RANKBENCH_PANEL, turned);
                turned = RANKBENCH_OF_TWO(low, other_low, 2, 3, 6, 7);
                RANKBENCH_STORE(to + 2 * RANKBENCH_PANEL, turned);
                turned = RANKBENCH_OF_TWO(high, other_high, 2, 3, 6, 7);
                RANKBENCH_STORE(to + 3 * RANKBENCH_PANEL, turned);
            }
    #endif
        for (; k < rank; k++)
            for (int j = 0; j < RANKBENCH_PANEL; j++)
                panel[k * RANKBENCH_PANEL + j] = columns[j][k];
    }

    static inline void rankbench_store_both(double *to, rankbench_lanes left, rankbench_lanes right) {
        RANKBENCH_STORE(to, left);
        RANKBENCH_STORE(to + RANKBENCH_WIDTH, right);
    }

    /* The inner products of four rows with n columns, packed panel by panel, each summed over the coordinates in
       order. Sums in an array, or this function within another one, would not stay in registers. */
    static __attribute__((noinline)) void rankbench_times_strip(
        const double *const *x, const double *panel, Py_ssize_t rank, Py_ssize_t n, double *const *out
    ) {
        const double *a = x[0], *b = x[1], *c = x[2], *d = x[3];
        double rest[4][RANKBENCH_PANEL];
        for (Py_ssize_t first = 0; first < n; first += RANKBENCH_PANEL) {
            rankbench_lanes left, right, a0 = {0}, a1 = {0}, b0 = {0}, b1 = {0}, c0 = {0}, c1 = {0}, d0 = {0}, d1 = {0};
            for (Py_ssize_t k = 0; k < rank; k++, panel += RANKBENCH_PANEL) {
                RANKBENCH_LOAD(left, panel);
                RANKBENCH_LOAD(right, panel + RANKBENCH_WIDTH);
                a0 += a[k] * left;
                a1 += a[k] * right;
                b0 += b[k] * left;
                b1 += b[k] * right;
                c0 += c[k] * left;
                c1 += c[k] * right;
                d0 += d[k] * left;
                d1 += d[k] * right;
            }
            int whole = first + RANKBENCH_PANEL <= n;
            rankbench_store_both(whole ? out[0] + first : rest[0], a0, a1);
            rankbench_store_both(whole ? out[1] + first : rest[1], b0, b1);
            rankbench_store_both(whole ? out[2] + first : rest[2], c0, c1);
            rankbench_store_both(whole ? out[3] + first : rest[3], d0, d1);
        }
        for (Py_ssize_t j = n - n % RANKBENCH_PANEL; j < n; j++)
            for (int row = 0; row < 4; row++)
                out[row][j] = rest[row][j % RANKBENCH_PANEL];
    }
    """
    void four_in_order "rankbench_four_in_order" (
        const double **x, const double **y, Py_ssize_t n, double *out
    ) noexcept nogil
    Py_ssize_t PANEL "RANKBENCH_PANEL"
    void pack_panel "rankbench_pack" (const double **columns, Py_ssize_t rank, double *panel) noexcept nogil
    void times_strip "rankbench_times_strip" (
        const double **x, const double *strip, Py_ssize_t rank, Py_ssize_t n, double **out
    ) noexcept nogil

cdef enum:
    _STRIP = 64  # columns packed at a time, for all rows: several panels
    _WIDEST = 2 * LANES  # columns of a panel, at most

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
    cdef Py_ssize_t rank = columns.shape[1], strip, strips = (columns.shape[0] + _STRIP - 1) // _STRIP
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
            _fill_strip(rows, chosen, columns, strip * _STRIP, packed, out)


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
    double *packed, double[:, ::1] out,
) noexcept nogil:
    """The products of all chosen rows with the columns of a strip, from column `first` on.

    To pack the columns for one row would take longer than to multiply them.
    """
    cdef Py_ssize_t end = min(first + _STRIP, columns.shape[0])
    if chosen.shape[0] == 1:
        _multiply_row(&rows[chosen[0], 0], columns, first, end, &out[0, 0])
    else:
        _pack(columns, first, end, packed)
        _multiply(rows, chosen, packed, out, first, end)


cdef void _multiply_row(
    const double *row, const double[:, ::1] columns, Py_ssize_t first, Py_ssize_t end, double *out
) noexcept nogil:
    """Multiply a row by four columns at a time, as they lie; the last one stands in for those beyond it."""
    cdef const double *x[4]
    cdef const double *y[4]
    cdef double sums[4]
    cdef Py_ssize_t column, q
    for q in range(4):
        x[q] = row
    for column in range(first, end, 4):
        for q in range(4):
            y[q] = &columns[min(column + q, end - 1), 0]
        four_in_order(x, y, columns.shape[1], sums)
        for q in range(min(<Py_ssize_t> 4, end - column)):
            out[column + q] = sums[q]


cdef void _pack(const double[:, ::1] columns, Py_ssize_t first, Py_ssize_t end, double *packed) noexcept nogil:
    """Copy columns to a strip, panel by panel; the last one stands in for those beyond it."""
    cdef const double *beside[_WIDEST]
    cdef Py_ssize_t rank = columns.shape[1], column = first, j
    while column < end:
        for j in range(PANEL):
            beside[j] = &columns[min(column + j, end - 1), 0]
        pack_panel(beside, rank, packed + (column - first) * rank)
        column += PANEL


cdef void _multiply(
    const double[:, ::1] rows, const int32_t[::1] chosen, const double *packed,
    double[:, ::1] out, Py_ssize_t first, Py_ssize_t end,
) noexcept nogil:
    """Multiply all chosen rows by a packed strip, four at a time; the last one stands in for those beyond it."""
    cdef const double *x[4]
    cdef double *to[4]
    cdef Py_ssize_t count = chosen.shape[0], row, q
    for row in range(0, count, 4):
        for q in range(4):
            x[q] = &rows[chosen[min(row + q, count - 1)], 0]
            to[q] = &out[min(row + q, count - 1), first]
        times_strip(x, packed, rows.shape[1], end - first, to)
