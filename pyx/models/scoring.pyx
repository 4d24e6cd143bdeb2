"""Inner products of some rows with all columns, the scores of a block of users for the whole catalogue; or of pairs.

BLAS takes half the time where it has wider instructions than the portable build; but how it sums depends on
where in the matrix a pair stands, so that equal vectors need not tie. Here the sum of a pair runs over its
coordinates in order, and its bits depend on the two vectors alone.
"""

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankbench.kernels.shared.parallel cimport team, thread_id

cdef enum:
    _STRIP = 64  # columns packed at a time, for all rows


def products(
    const double[:, ::1] rows,
    const int32_t[::1] chosen,
    const double[:, ::1] columns,
    double[:, ::1] out,
    int threads,
):
    """Fill out[a, j] with rows[chosen[a]] . columns[j]."""
    threads = team(threads)
    cdef Py_ssize_t rank = columns.shape[1], n = columns.shape[0], strip, strips = (n + _STRIP - 1) // _STRIP
    cdef Py_ssize_t size = rank * _STRIP + 1
    cdef double *memory = <double *> malloc(threads * size * sizeof(double))
    cdef double *packed = memory
    if memory == NULL:
        raise MemoryError
    if rank > 0 and chosen.shape[0] > 0:
        with nogil, parallel(num_threads=threads):
            packed = memory + thread_id() * size
            for strip in prange(strips, schedule="static"):
                _pack(&columns[strip * _STRIP, 0], min(<Py_ssize_t> _STRIP, n - strip * _STRIP), rank, packed)
                _multiply(rows, chosen, packed, min(<Py_ssize_t> _STRIP, n - strip * _STRIP), out, strip * _STRIP)
    else:
        out[:, :] = 0.0
    free(memory)


def sparse_pairs(
    const int64_t[::1] indptr,
    const int32_t[::1] columns,
    const double[::1] values,
    const double[:, ::1] weights,
    const double[::1] offsets,
    const int32_t[::1] users,
    const int32_t[::1] items,
    double[::1] out,
):
    """out_p = item row . user's weights + the user's offset, the items' rows in CSR, summed in their order."""
    cdef Py_ssize_t pair, place
    cdef double total
    with nogil:
        for pair in range(out.shape[0]):
            total = 0.0
            for place in range(indptr[items[pair]], indptr[items[pair] + 1]):
                total = total + values[place] * weights[users[pair], columns[place]]
            out[pair] = total + offsets[users[pair]]


cdef void _pack(const double *columns, Py_ssize_t n, Py_ssize_t rank, double *packed) noexcept nogil:
    """A strip of columns coordinate by coordinate, zeros where there is none."""
    cdef Py_ssize_t j, k
    for j in range(_STRIP):
        for k in range(rank):
            packed[k * _STRIP + j] = columns[j * rank + k] if j < n else 0.0


cdef void _multiply(
    const double[:, ::1] rows, const int32_t[::1] chosen, const double *packed, Py_ssize_t n,
    double[:, ::1] out, Py_ssize_t first,
) noexcept nogil:
    """All rows times a packed strip of n columns; four coordinates at a time, added one after the other."""
    cdef double sums[_STRIP]
    cdef double a, b, c, d
    cdef const double *strip
    cdef Py_ssize_t rank = rows.shape[1], whole = rank - rank % 4, row, j, k
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
