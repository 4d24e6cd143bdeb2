"""Alternating least squares on factors: ridge regressions row by row, and the products of the item side.

Rows are users or items, columns the other side; all is CSR by row. Rows are independent and each is
summed by one thread in the order of its entries, so no bit depends on the number of threads.
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankbench.kernels.shared.blas cimport add_gram, solve_positive
from rankbench.kernels.shared.lanes cimport dot
from rankbench.kernels.shared.parallel cimport team, thread_id

cdef enum:
    _BLOCK = 256  # vectors gathered at a time: they stay in the second-level cache
    _FEW = 24  # up to this rank a loop over the triangle is faster than a call


def ridge(
    const int64_t[::1] indptr,
    const int32_t[::1] columns,
    const double[::1] values,
    const double[:, ::1] vectors,
    double lam,
    double[:, ::1] out,
    int threads,
):
    """Give each row its minimiser of sum (value - out . vector)^2 + lam |out|^2; n k^2 + k^3/3 flops.

    Returns the first row whose system was not solved in finite numbers, or -1.
    """
    threads = team(threads)
    cdef Py_ssize_t n_rows = out.shape[0], row
    cdef int rank = <int> out.shape[1]
    cdef Py_ssize_t size = rank * rank + _BLOCK * rank
    cdef int32_t[::1] failed = np.zeros(n_rows, np.int32)
    cdef double *memory = <double *> malloc((threads * size + 1) * sizeof(double))
    cdef double *own = memory
    if memory == NULL:
        raise MemoryError
    with nogil, parallel(num_threads=threads):
        own = memory + thread_id() * size
        for row in prange(n_rows, schedule="dynamic", chunksize=16):
            failed[row] = _ridge_row(
                indptr[row], indptr[row + 1], &columns[0], &values[0], &vectors[0, 0], rank, lam, own, &out[row, 0]
            )
    free(memory)
    return int(np.flatnonzero(failed)[0]) if np.any(failed) else -1


def weighted_sums(
    const int64_t[::1] indptr,
    const int32_t[::1] columns,
    const double[::1] weights,
    const double[:, ::1] vectors,
    double[:, ::1] out,
    int threads,
):
    """out_row = sum over the row's entries of weight * vector."""
    threads = team(threads)
    cdef Py_ssize_t row
    for row in prange(out.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        _weighted_sum(
            indptr[row], indptr[row + 1], &columns[0], &weights[0], &vectors[0, 0], out.shape[1], &out[row, 0]
        )


def gram_times(
    const int64_t[::1] indptr,
    const int32_t[::1] columns,
    const double[:, ::1] vectors,
    const double[:, ::1] left,
    double[:, ::1] out,
    int threads,
):
    """out_row = (sum over the row's entries of vector vector^T) left_row; the rank is a multiple of 4."""
    threads = team(threads)
    cdef Py_ssize_t row
    for row in prange(out.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        _gram_times_row(
            indptr[row], indptr[row + 1], &columns[0], &vectors[0, 0], out.shape[1], &left[row, 0], &out[row, 0]
        )


def squared_errors(
    const int64_t[::1] indptr,
    const int32_t[::1] columns,
    const double[::1] values,
    const double[:, ::1] rows,
    const double[:, ::1] vectors,
    double[::1] out,
    int threads,
):
    """Each row's sum of (value - row . vector)^2."""
    threads = team(threads)
    cdef Py_ssize_t row
    for row in prange(out.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        out[row] = _row_error(
            indptr[row], indptr[row + 1], &columns[0], &values[0], &rows[row, 0], &vectors[0, 0], rows.shape[1]
        )


cdef int _ridge_row(
    int64_t first, int64_t end, const int32_t *columns, const double *values, const double *vectors, int rank,
    double lam, double *scratch, double *out,
) noexcept nogil:
    """out = (sum v v^T + lam I)^-1 sum y v; zero for a row without entries.

    Only the upper triangle (row-major) is summed and solved. Invariant: matrix and out hold the sums over
    the entries before `block`.
    """
    cdef double *matrix = scratch
    cdef double *gathered = scratch + rank * rank
    cdef int64_t block, entry, size
    cdef const double *vector
    cdef Py_ssize_t a
    for a in range(rank):
        out[a] = 0.0
    if first == end:
        return 0
    for a in range(rank * rank):
        matrix[a] = 0.0
    block = first
    while block < end:
        size = min(<int64_t> _BLOCK, end - block)
        for entry in range(size):
            vector = vectors + columns[block + entry] * <Py_ssize_t> rank
            for a in range(rank):
                gathered[entry * rank + a] = vector[a]
                out[a] += values[block + entry] * vector[a]
        if rank <= _FEW:
            _add_gram_by_hand(gathered, size, rank, matrix)
        else:
            add_gram(gathered, matrix, <int> size, rank)
        block += size
    for a in range(rank):
        matrix[a * rank + a] += lam
        if not isfinite(matrix[a * rank + a]):
            return 1
    if solve_positive(matrix, out, rank):
        return 1
    for a in range(rank):
        if not isfinite(out[a]):
            return 1
    return 0


cdef inline void _add_gram_by_hand(const double *gathered, int64_t n, int rank, double *matrix) noexcept nogil:
    """matrix += sum v v^T, upper triangle."""
    cdef int64_t entry
    cdef Py_ssize_t a, b
    cdef const double *v
    for entry in range(n):
        v = gathered + entry * rank
        for a in range(rank):
            for b in range(a, rank):
                matrix[a * rank + b] += v[a] * v[b]


cdef void _weighted_sum(
    int64_t first, int64_t end, const int32_t *columns, const double *weights, const double *vectors,
    Py_ssize_t rank, double *out,
) noexcept nogil:
    cdef int64_t entry
    cdef Py_ssize_t k
    cdef const double *vector
    for k in range(rank):
        out[k] = 0.0
    for entry in range(first, end):
        vector = vectors + columns[entry] * rank
        for k in range(rank):
            out[k] += weights[entry] * vector[k]


cdef void _gram_times_row(
    int64_t first, int64_t end, const int32_t *columns, const double *vectors, Py_ssize_t rank,
    const double *left, double *out,
) noexcept nogil:
    cdef int64_t entry
    cdef Py_ssize_t k
    cdef const double *vector
    cdef double inner
    for k in range(rank):
        out[k] = 0.0
    for entry in range(first, end):
        vector = vectors + columns[entry] * rank
        inner = dot(vector, left, rank)
        for k in range(rank):
            out[k] += inner * vector[k]


cdef double _row_error(
    int64_t first, int64_t end, const int32_t *columns, const double *values, const double *row,
    const double *vectors, Py_ssize_t rank,
) noexcept nogil:
    cdef int64_t entry
    cdef Py_ssize_t k
    cdef double total = 0.0, error
    for entry in range(first, end):
        error = values[entry]
        for k in range(rank):
            error -= row[k] * vectors[columns[entry] * rank + k]
        total += error * error
    return total
