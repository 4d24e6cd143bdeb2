"""Kernel matrices between items, and scores that are weighted sums of kernel values.

A matrix is computed in blocks of rows of fixed size, each by one BLAS call on one thread, so that no bit depends on
how many threads share the blocks.
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints
from rankbench.kernels.shared.blas cimport multiply_transposed
from rankbench.kernels.shared.checks cimport agree
from rankbench.kernels.shared.lanes cimport dot_at
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport SparseRows, SparseView

cdef enum:
    _BLOCK = 128  # rows that one thread computes at a time
    _TILE = 8  # rows and columns of what is mirrored at a time: a cache line of doubles

cdef struct Points:
    # The rows of a sparse matrix, between which the Gaussian kernel is computed.
    Py_ssize_t n
    const double *squares  # |x|^2
    const double *alone  # exp(scale |x|^2)
    double scale  # -1 / (2 width^2)

cdef struct Memory:
    # Scratch memory of one thread, for one row of the kernel matrix.
    double *products  # with the rows met
    int32_t *met  # per row, the last row that met it
    int32_t *others  # the rows met by the one at hand


def linear(*, const double[:, ::1] features, int threads, bint whole=True) -> Floats:
    """K = X X^T; not whole, only the part up to the diagonal is sure to be filled, which is all that `gaussian` reads.

    n^2 features flops for the part up to the diagonal, in blocks, and a pass over memory for the other part.
    """
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


def gaussian(*, double[:, ::1] products, double width, int threads):
    """Replace the inner products X X^T by K = exp(-|x - y|^2 / (2 width^2)), with n^2 / 2 exponentials."""
    threads = team(threads)
    cdef Py_ssize_t n = products.shape[0], strip, strips = (n + _TILE - 1) // _TILE
    agree("columns of products", products.shape[1], n)
    cdef double[::1] squares = np.diagonal(products).copy()
    cdef double scale = -0.5 / (width * width)
    for strip in prange(strips, nogil=True, schedule="dynamic", num_threads=threads):
        _gaussian_strip(&products[0, 0], &squares[0], n, strip * _TILE, scale)


def sparse_gaussian(*, SparseRows rows, SparseRows columns, double width, int threads) -> Floats:
    """K = exp(-|x - y|^2 / (2 width^2)) between the rows of a sparse matrix, which is given by columns too.

    Only pairs of rows with an entry in a common column cost an exponential each.
    """
    threads = team(threads)
    agree("entries by columns", columns.values.shape[0], rows.values.shape[0])
    cdef Py_ssize_t n = rows.view.n, row
    result = np.empty((n, n))
    if rows.values.shape[0] == 0:
        result.fill(1.0)
        return result
    cdef double[:, ::1] out = result
    cdef double[::1] squares = np.zeros(n)
    cdef double scale = -0.5 / (width * width)
    for row in range(n):
        squares[row] = _square(&rows.view, row)
    cdef double[::1] alone = np.exp(np.multiply(squares, scale))
    cdef Points points = Points(n, &squares[0], &alone[0], scale)
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, n)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out(&arena, n)
        memset(memory.met, -1, n * sizeof(int32_t))
        for row in prange(n, schedule="dynamic", chunksize=_BLOCK):
            _sparse_gaussian_row(&points, &rows.view, &columns.view, row, memory, &out[row, 0])
    return result


def expand(
    *,
    const double[:, ::1] gram,
    SparseRows coefficients,
    const double[::1] offsets,
    const int32_t[::1] users,
    const int32_t[::1] asked,
    const int64_t[::1] order,
    double[::1] out,
):
    """Fill out[p] with sum_j a_j K(asked[p], j) + offset, over the items j of users[p], for the pairs p in this order.

    Row u of `coefficients` holds the a_j of user u. Pairs of the same asked item find its row of K in the cache if
    they stand together in `order`.
    """
    agree("offsets", offsets.shape[0], coefficients.view.n)
    agree("users", users.shape[0], out.shape[0])
    agree("asked items", asked.shape[0], out.shape[0])
    agree("places in order", order.shape[0], out.shape[0])
    cdef Py_ssize_t place, pair, first
    cdef int32_t user
    with nogil:
        for place in range(order.shape[0]):
            pair = order[place]
            user = users[pair]
            first = coefficients.view.indptr[user]
            out[pair] = offsets[user]
            if coefficients.view.indptr[user + 1] > first:
                out[pair] += dot_at(
                    coefficients.view.values + first, &gram[asked[pair], 0], coefficients.view.columns + first,
                    coefficients.view.indptr[user + 1] - first,
                )


cdef Memory _lay_out(Arena *arena, Py_ssize_t n) noexcept nogil:
    """Room for one row of a kernel matrix between n points."""
    return Memory(floats(arena, n), ints(arena, n), ints(arena, n))


cdef void _gaussian_strip(
    double *matrix, const double *squares, Py_ssize_t n, Py_ssize_t first, double scale
) noexcept nogil:
    """Compute rows first .. first + _TILE - 1 up to the diagonal, and their mirror image beyond it.

    A strip reads only what lies before the diagonal of its own rows, which no other strip writes: strips may run
    side by side. It goes tile by tile, so that the mirrored columns stay in the cache.
    """
    cdef Py_ssize_t tile, i, j, end = min(first + _TILE, n)
    cdef double value
    for tile in range(first // _TILE + 1):
        for i in range(first, end):
            for j in range(tile * _TILE, min(tile * _TILE + _TILE, i + 1)):
                value = exp(scale * max(0.0, squares[i] + squares[j] - 2.0 * matrix[i * n + j]))
                matrix[i * n + j] = value
                matrix[j * n + i] = value


cdef double _square(const SparseView *matrix, Py_ssize_t row) noexcept nogil:
    """|x|^2, summed in the order of `_sparse_gaussian_row`, so that equal rows are at distance zero."""
    cdef double square = 0.0
    cdef Py_ssize_t at
    for at in range(matrix.indptr[row], matrix.indptr[row + 1]):
        square += matrix.values[at] * matrix.values[at]
    return square


cdef void _sparse_gaussian_row(
    const Points *shared, const SparseView *by_row, const SparseView *by_column, Py_ssize_t row, Memory memory,
    double *out,
) noexcept nogil:
    """Compute one row of K: exp(scale |x|^2) exp(scale |y|^2) where x and y have no column in common.

    Invariant: met[j] is the last row with a column in common with row j; where it is this one, products[j] is their
    inner product so far, and j is among the first `count` of `others`.
    """
    cdef Points points = shared[0]
    cdef Py_ssize_t count = 0, at, place, column
    cdef int32_t j
    for at in range(by_row.indptr[row], by_row.indptr[row + 1]):
        column = by_row.columns[at]
        for place in range(by_column.indptr[column], by_column.indptr[column + 1]):
            j = by_column.columns[place]
            if memory.met[j] != row:
                memory.met[j] = <int32_t> row
                memory.others[count] = j
                count += 1
                memory.products[j] = 0.0
            memory.products[j] += by_row.values[at] * by_column.values[place]
    for place in range(points.n):
        out[place] = points.alone[row] * points.alone[place]
    for place in range(count):
        j = memory.others[place]
        out[j] = exp(
            points.scale * max(0.0, points.squares[row] + points.squares[j] - 2.0 * memory.products[j])
        )


cdef void _mirror_strip(double *matrix, Py_ssize_t n, Py_ssize_t first) noexcept nogil:
    """Copy rows first .. first + _TILE - 1 up to the diagonal to the columns beyond it, tile by tile."""
    cdef Py_ssize_t tile, i, j, end = min(first + _TILE, n)
    for tile in range(first // _TILE + 1):
        for i in range(first, end):
            for j in range(tile * _TILE, min(tile * _TILE + _TILE, i)):
                matrix[j * n + i] = matrix[i * n + j]
