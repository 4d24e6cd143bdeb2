"""MPRank's closed forms, one small system per user, users side by side.

Both minimise |w|^2 + (2C/m) |X_c^T w - y_c|^2 over centred features and targets; with
alpha = m / (2C) the primal solves (X_c X_c^T + alpha I) w = X_c y_c, of the features' size, and the dual
(K_c + alpha I) a = y_c, of the size of the user's ratings.
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from blas cimport multiply_transposed, solve_positive
from linalg cimport total
from parallel cimport thread_id


def dual(
    const double[:, ::1] gram,
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[::1] values,
    const int32_t[::1] users,
    double C,
    double[::1] coefficients,
    double[::1] offsets,
    int threads,
):
    """Solve the dual of each of these users; returns the first whose system was not positive definite, or -1."""
    cdef Py_ssize_t longest = np.diff(indptr).max(initial=0), size = longest * longest + longest, place, row
    cdef int32_t[::1] failed = np.zeros(users.shape[0], np.int32)
    cdef double *memory = <double *> malloc((threads * size + 1) * sizeof(double))
    cdef double *own = memory
    cdef int32_t user
    if memory == NULL:
        raise MemoryError
    with nogil, parallel(num_threads=threads):
        own = memory + thread_id() * size
        for place in prange(users.shape[0], schedule="dynamic"):
            user = users[place]
            row = indptr[user]
            failed[place] = _solve_dual(
                &gram[0, 0], gram.shape[0], &items[row], &values[row], <int> (indptr[user + 1] - row),
                C, own, &coefficients[row], &offsets[user],
            )
    free(memory)
    return _first_failed(users, failed)


def primal(
    const double[:, ::1] features,
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[::1] values,
    const int32_t[::1] users,
    double C,
    double[:, ::1] weights,
    double[::1] offsets,
    int threads,
):
    """Solve the primal of each of these users; returns the first whose system was not positive definite, or -1."""
    cdef Py_ssize_t longest = np.diff(indptr).max(initial=0), n = features.shape[1]
    cdef Py_ssize_t size = n * longest + n * n + n, place, row
    cdef int32_t[::1] failed = np.zeros(users.shape[0], np.int32)
    cdef double *memory = <double *> malloc((threads * size + 1) * sizeof(double))
    cdef double *own = memory
    cdef int32_t user
    if memory == NULL:
        raise MemoryError
    with nogil, parallel(num_threads=threads):
        own = memory + thread_id() * size
        for place in prange(users.shape[0], schedule="dynamic"):
            user = users[place]
            row = indptr[user]
            failed[place] = _solve_primal(
                &features[0, 0], <int> n, &items[row], &values[row], <int> (indptr[user + 1] - row),
                C, own, &weights[user, 0], &offsets[user],
            )
    free(memory)
    return _first_failed(users, failed)


cdef int _first_failed(const int32_t[::1] users, const int32_t[::1] failed) noexcept:
    """The first user whose system was not positive definite, or -1."""
    cdef Py_ssize_t place
    for place in range(users.shape[0]):
        if failed[place]:
            return users[place]
    return -1


cdef int _solve_dual(
    const double *gram, Py_ssize_t stride, const int32_t *items, const double *values, int m,
    double C, double *scratch, double *coefficients, double *offset,
) noexcept nogil:
    """a = (K_c + m/(2C) I)^-1 y_c and the offset that gives the scores the mean of y; m^3/3 flops.

    Only the upper triangle is gathered, centred and solved: the kernel is symmetric. Invariant of the
    gathering: means[b] holds the sum of rows :a over column b, for b >= a.
    """
    cdef double *matrix = scratch
    cdef double *means = scratch + m * m
    cdef double mean_value = total(values, m) / m, grand
    cdef const double *row
    cdef Py_ssize_t a, b
    for a in range(m):
        means[a] = 0.0
        coefficients[a] = values[a] - mean_value
    for a in range(m):
        row = gram + items[a] * stride
        for b in range(a, m):
            matrix[a * m + b] = row[items[b]]
        means[a] += total(matrix + a * m + a, m - a)
        for b in range(a + 1, m):
            means[b] += matrix[a * m + b]
    for a in range(m):
        means[a] /= m
    grand = total(means, m) / m
    for a in range(m):
        for b in range(a, m):
            matrix[a * m + b] += grand - means[a] - means[b]
        matrix[a * m + a] += m / (2.0 * C)
    if solve_positive(matrix, coefficients, m):
        return 1
    offset[0] = mean_value
    for a in range(m):
        offset[0] -= coefficients[a] * means[a]
    return 0


cdef int _solve_primal(
    const double *features, int n, const int32_t *items, const double *values, int m,
    double C, double *scratch, double *weights, double *offset,
) noexcept nogil:
    """w = (X_c X_c^T + m/(2C) I)^-1 X_c y_c and the offset; n^2 m flops for the matrix, n^3/3 to solve."""
    cdef double *centred = scratch  # n x m, one feature a row
    cdef double *matrix = centred + n * m
    cdef double *means = matrix + n * n
    cdef double mean_value = total(values, m) / m
    cdef Py_ssize_t k, a
    for k in range(n):
        for a in range(m):
            centred[k * m + a] = features[items[a] * n + k]
        means[k] = total(centred + k * m, m) / m
        weights[k] = 0.0
        for a in range(m):
            centred[k * m + a] -= means[k]
            weights[k] += centred[k * m + a] * (values[a] - mean_value)
    multiply_transposed(centred, centred, matrix, n, n, m, n)
    for k in range(n):
        matrix[k * n + k] += m / (2.0 * C)
    if solve_positive(matrix, weights, n):
        return 1
    offset[0] = mean_value
    for k in range(n):
        offset[0] -= weights[k] * means[k]
    return 0
