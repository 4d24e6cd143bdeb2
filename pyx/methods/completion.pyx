"""A sparse matrix times a dense one, and the entries of a low-rank matrix at its places: row by row, in fixed order."""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t

from rankbench.kernels.shared.lanes cimport dot
from rankbench.kernels.shared.parallel cimport team

cdef enum:
    _LANES = 8  # columns of the product that stay in registers while a row is read


def products(
    const int64_t[::1] indptr,
    const int32_t[::1] columns,
    const double[::1] values,
    const double[:, ::1] dense,
    double[:, ::1] out,
    int threads,
):
    """out = S dense, the rows of S being `columns` and `values` at indptr[row]:indptr[row + 1]. O(nnz width)."""
    threads = team(threads)
    cdef Py_ssize_t row, width = dense.shape[1], first
    if columns.shape[0] == 0 or width == 0:
        out[:] = 0.0
        return
    for row in prange(out.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        first = indptr[row]
        _row_product(
            &columns[0] + first, &values[0] + first, indptr[row + 1] - first, &dense[0, 0], width, &out[row, 0]
        )


def entries(
    const int64_t[::1] indptr,
    const int32_t[::1] columns,
    const double[:, ::1] left,
    const double[:, ::1] right,
    double[::1] out,
    int threads,
):
    """out = (left right^T) at the places of S; the rows of both are padded to whole lanes. O(nnz rank)."""
    threads = team(threads)
    cdef Py_ssize_t row, place
    if left.shape[1] == 0:
        out[:] = 0.0
        return
    for row in prange(left.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        for place in range(indptr[row], indptr[row + 1]):
            out[place] = dot(&left[row, 0], &right[columns[place], 0], left.shape[1])


cdef void _row_product(
    const int32_t *columns, const double *values, Py_ssize_t n, const double *dense, Py_ssize_t width, double *out
) noexcept nogil:
    """out = sum_k values[k] dense[columns[k]], a few columns at a time, each summed in the order of the row."""
    cdef Py_ssize_t start = 0, k
    while start + _LANES <= width:
        _lanes(columns, values, n, dense + start, width, out + start)
        start += _LANES
    while start < width:
        out[start] = 0.0
        for k in range(n):
            out[start] += values[k] * dense[columns[k] * width + start]
        start += 1


cdef inline void _lanes(
    const int32_t *columns, const double *values, Py_ssize_t n, const double *dense, Py_ssize_t width, double *out
) noexcept nogil:
    """The same for _LANES columns."""
    cdef double sums[_LANES]
    cdef Py_ssize_t lane, k
    cdef const double *row
    cdef double value
    for lane in range(_LANES):
        sums[lane] = 0.0
    for k in range(n):
        row, value = dense + columns[k] * width, values[k]
        for lane in range(_LANES):
            sums[lane] += value * row[lane]
    for lane in range(_LANES):
        out[lane] = sums[lane]
