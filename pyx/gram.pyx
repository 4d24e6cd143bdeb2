"""Kernel matrices between items, and expansions over them.

Rows are made in blocks of fixed size, one BLAS call on one thread each: how many threads share the
blocks cannot change a bit.
"""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t

from blas cimport multiply_transposed

cdef enum:
    _BLOCK = 128
    _TILE = 8


def linear(const double[:, ::1] features, int threads, bint whole=True):
    """K = X X^T; not whole, only what lies up to the diagonal is sure to be there, as `gaussian` needs it."""
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
    cdef Py_ssize_t n = products.shape[0], strip, strips = (n + _TILE - 1) // _TILE
    cdef double[::1] squares = np.diagonal(products).copy()
    cdef double scale = -0.5 / (width * width)
    cdef double[::1] alone = np.exp(np.multiply(squares, scale))
    for strip in prange(strips, nogil=True, schedule="dynamic", num_threads=threads):
        _gaussian_strip(&products[0, 0], &squares[0], &alone[0], n, strip * _TILE, scale)


def expand(
    const double[:, ::1] gram,
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[::1] coefficients,
    const double[::1] offsets,
    const int32_t[::1] users,
    const int32_t[::1] asked,
    double[::1] out,
):
    """out_p = sum over the user's items j of a_j K(asked_p, j), plus the user's offset."""
    cdef Py_ssize_t pair, row
    cdef double total
    with nogil:
        for pair in range(out.shape[0]):
            total = offsets[users[pair]]
            for row in range(indptr[users[pair]], indptr[users[pair] + 1]):
                total = total + coefficients[row] * gram[asked[pair], items[row]]
            out[pair] = total


cdef void _gaussian_strip(
    double *matrix, const double *squares, const double *alone, Py_ssize_t n, Py_ssize_t first, double scale
) noexcept nogil:
    """Rows first .. first + _TILE - 1 up to the diagonal, and their mirror image beyond it.

    A strip reads only what lies before the diagonal of its own rows, which no other strip writes; it goes
    tile by tile, so that the mirrored columns stay in cache. Of items that have nothing in common, whose
    product is zero, the value is that of the one times that of the other, and no exponential.
    """
    cdef Py_ssize_t tile, i, j, end = min(first + _TILE, n)
    cdef double value
    for tile in range(first // _TILE + 1):
        for i in range(first, end):
            for j in range(tile * _TILE, min(tile * _TILE + _TILE, i + 1)):
                if matrix[i * n + j] == 0.0:
                    value = alone[i] * alone[j]
                else:
                    value = exp(scale * max(0.0, squares[i] + squares[j] - 2.0 * matrix[i * n + j]))
                matrix[i * n + j] = value
                matrix[j * n + i] = value


cdef void _mirror_strip(double *matrix, Py_ssize_t n, Py_ssize_t first) noexcept nogil:
    """What stands beyond the diagonal, from rows first .. first + _TILE - 1 before it, tile by tile."""
    cdef Py_ssize_t tile, i, j, end = min(first + _TILE, n)
    for tile in range(first // _TILE + 1):
        for i in range(first, end):
            for j in range(tile * _TILE, min(tile * _TILE + _TILE, i)):
                matrix[j * n + i] = matrix[i * n + j]
