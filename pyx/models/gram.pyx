"""Kernel matrices between items, and expansions over them.

Rows are made in blocks of fixed size, one BLAS call on one thread each: how many threads share the
blocks cannot change a bit.
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from rankbench.kernels.shared.blas cimport multiply_transposed
from rankbench.kernels.shared.lanes cimport dot_at
from rankbench.kernels.shared.parallel cimport team, thread_id

cdef enum:
    _BLOCK = 128
    _TILE = 8

cdef struct Sparse:
    # Rows or columns of a sparse matrix, one after the other, with the ids of what they cross
    const int64_t *starts
    const int32_t *ids
    const double *values


def linear(const double[:, ::1] features, int threads, bint whole=True):
    """K = X X^T; not whole, only what lies up to the diagonal is sure to be there, as `gaussian` needs it."""
    threads = team(threads)
    cdef Py_ssize_t n = features.shape[0], block, blocks = (n + _BLOCK - 1) // _BLOCK, end, strip
    result = np.zeros((n, n))
    cdef double[:, ::1] out = result
    if features.shape[1] > 0:
        for block in prange(blocks, nogil=True, schedule="dynamic", num_threads=threads):
            end = min((block + 1) * _BLOCK, n)
            multiply_transposed(
                &features[block * _BLOCK, 0], &features[0, 0], &out[block * _BLOCK, 0],
                <int> (end - block * _BLOCK), <int> end, <int> features.shape[1], <int> n,
            )
        if whole:
            for strip in prange((n + _TILE - 1) // _TILE, nogil=True, schedule="dynamic", num_threads=threads):
                _mirror_strip(&out[0, 0], n, strip * _TILE)
    return result


def gaussian(double[:, ::1] products, double width, int threads):
    """K = exp(-|x - y|^2 / (2 width^2)) in place of the inner products X X^T."""
    threads = team(threads)
    cdef Py_ssize_t n = products.shape[0], strip, strips = (n + _TILE - 1) // _TILE
    cdef double[::1] squares = np.diagonal(products).copy()
    cdef double scale = -0.5 / (width * width)
    for strip in prange(strips, nogil=True, schedule="dynamic", num_threads=threads):
        _gaussian_strip(&products[0, 0], &squares[0], n, strip * _TILE, scale)


def sparse_gaussian(
    const int64_t[::1] row_starts, const int32_t[::1] columns, const double[::1] row_values,
    const int64_t[::1] column_starts, const int32_t[::1] rows, const double[::1] column_values,
    double width, int threads,
):
    """The same from features in CSR, given by columns too: only who has some column in common costs an exponential."""
    threads = team(threads)
    cdef Py_ssize_t n = row_starts.shape[0] - 1, row
    result = np.empty((n, n))
    if row_values.shape[0] == 0:
        result.fill(1.0)
        return result
    cdef double[:, ::1] out = result
    cdef double[::1] squares = np.zeros(n)
    cdef double scale = -0.5 / (width * width)
    cdef Sparse by_row = Sparse(&row_starts[0], &columns[0], &row_values[0])
    cdef Sparse by_column = Sparse(&column_starts[0], &rows[0], &column_values[0])
    for row in range(n):
        squares[row] = _square(&by_row, row)
    cdef double[::1] alone = np.exp(np.multiply(squares, scale))
    cdef double *memory = <double *> malloc(threads * 2 * n * sizeof(double))
    cdef double *products = memory
    cdef int32_t *met = NULL
    if memory == NULL:
        raise MemoryError
    with nogil, parallel(num_threads=threads):
        products = memory + thread_id() * 2 * n
        met = <int32_t *> (products + n)
        memset(met, -1, n * sizeof(int32_t))
        for row in prange(n, schedule="dynamic", chunksize=_BLOCK):
            _sparse_gaussian_row(
                &by_row, &by_column, row, &squares[0], &alone[0], n, scale, products, met, met + n, &out[row, 0]
            )
    free(memory)
    return result


def expand(
    const double[:, ::1] gram,
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[::1] coefficients,
    const double[::1] offsets,
    const int32_t[::1] users,
    const int32_t[::1] asked,
    const int64_t[::1] order,
    double[::1] out,
):
    """out_p = sum over the user's items j of a_j K(asked_p, j), plus the user's offset, for the pairs in this order."""
    cdef Py_ssize_t place, pair, first
    cdef int32_t user
    with nogil:
        for place in range(order.shape[0]):
            pair = order[place]
            user = users[pair]
            first = indptr[user]
            out[pair] = offsets[user]
            if indptr[user + 1] > first:
                out[pair] += dot_at(
                    &coefficients[first], &gram[asked[pair], 0], &items[first], indptr[user + 1] - first
                )


cdef void _gaussian_strip(
    double *matrix, const double *squares, Py_ssize_t n, Py_ssize_t first, double scale
) noexcept nogil:
    """Rows first .. first + _TILE - 1 up to the diagonal, and their mirror image beyond it.

    A strip reads only what lies before the diagonal of its own rows, which no other strip writes; it goes
    tile by tile, so that the mirrored columns stay in cache.
    """
    cdef Py_ssize_t tile, i, j, end = min(first + _TILE, n)
    cdef double value
    for tile in range(first // _TILE + 1):
        for i in range(first, end):
            for j in range(tile * _TILE, min(tile * _TILE + _TILE, i + 1)):
                value = exp(scale * max(0.0, squares[i] + squares[j] - 2.0 * matrix[i * n + j]))
                matrix[i * n + j] = value
                matrix[j * n + i] = value


cdef double _square(const Sparse *matrix, Py_ssize_t row) noexcept nogil:
    """|x|^2, summed in the order of `_sparse_gaussian_row`, so that equal rows are at distance zero."""
    cdef double square = 0.0
    cdef Py_ssize_t at
    for at in range(matrix.starts[row], matrix.starts[row + 1]):
        square += matrix.values[at] * matrix.values[at]
    return square


cdef void _sparse_gaussian_row(
    const Sparse *by_row, const Sparse *by_column, Py_ssize_t row, const double *squares, const double *alone,
    Py_ssize_t n, double scale, double *products, int32_t *met, int32_t *others, double *out,
) noexcept nogil:
    """One row of K: the product of what both have alone, unless they meet in a column.

    met[j] is the last row that j met; others are those that this one meets, with their inner products.
    """
    cdef Py_ssize_t count = 0, at, place, column
    cdef int32_t j
    for at in range(by_row.starts[row], by_row.starts[row + 1]):
        column = by_row.ids[at]
        for place in range(by_column.starts[column], by_column.starts[column + 1]):
            j = by_column.ids[place]
            if met[j] != row:
                met[j] = <int32_t> row
                others[count] = j
                count += 1
                products[j] = 0.0
            products[j] += by_row.values[at] * by_column.values[place]
    for place in range(n):
        out[place] = alone[row] * alone[place]
    for place in range(count):
        j = others[place]
        out[j] = exp(scale * max(0.0, squares[row] + squares[j] - 2.0 * products[j]))


cdef void _mirror_strip(double *matrix, Py_ssize_t n, Py_ssize_t first) noexcept nogil:
    """What stands beyond the diagonal, from rows first .. first + _TILE - 1 before it, tile by tile."""
    cdef Py_ssize_t tile, i, j, end = min(first + _TILE, n)
    for tile in range(first // _TILE + 1):
        for i in range(first, end):
            for j in range(tile * _TILE, min(tile * _TILE + _TILE, i)):
                matrix[j * n + i] = matrix[i * n + j]
