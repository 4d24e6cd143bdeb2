"""MPRank's closed forms, one small system per user, users side by side.

Both minimise |w|^2 + (2C/m) |X_c^T w - y_c|^2 over centred features and targets; with
alpha = m / (2C) the primal solves (X_c X_c^T + alpha I) w = X_c y_c, of the features' size, and the dual
(K_c + alpha I) a = y_c, of the size of the user's ratings. C is by user. The eigenvectors of either matrix
give what each rating's residual would be if it were left out, for any number of C.
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankbench.kernels.shared.blas cimport multiply_transposed, solve_positive, spectrum, spectrum_work
from rankbench.kernels.shared.lanes cimport total
from rankbench.kernels.shared.parallel cimport team, thread_id


def dual(
    const double[:, ::1] gram,
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[::1] values,
    const int32_t[::1] users,
    const double[::1] C,
    double[::1] coefficients,
    double[::1] offsets,
    int threads,
):
    """Solve the dual of each of these users; returns the first whose system was not positive definite, or -1."""
    threads = team(threads)
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
                C[user], own, &coefficients[row], &offsets[user],
            )
    free(memory)
    return _first_failed(users, failed)


def primal(
    const double[:, ::1] features,
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[::1] values,
    const int32_t[::1] users,
    const double[::1] C,
    double[:, ::1] weights,
    double[::1] offsets,
    int threads,
):
    """Solve the primal of each of these users; returns the first whose system was not positive definite, or -1."""
    threads = team(threads)
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
                C[user], own, &weights[user, 0], &offsets[user],
            )
    free(memory)
    return _first_failed(users, failed)


def dual_path(
    const double[:, ::1] gram,
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[::1] values,
    const int32_t[::1] users,
    const double[::1] C,
    double[:, ::1] errors,
    int threads,
):
    """Fill errors[user] with the mean squared leave-one-out error at each C; returns the first that failed, or -1."""
    threads = team(threads)
    cdef Py_ssize_t longest = np.diff(indptr)[np.asarray(users)].max(initial=0), place, row
    cdef Py_ssize_t size = longest * longest + 4 * longest + spectrum_work(longest)
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
            failed[place] = _dual_path(
                &gram[0, 0], gram.shape[0], &items[row], &values[row], <int> (indptr[user + 1] - row),
                &C[0], C.shape[0], own, &errors[user, 0],
            )
    free(memory)
    return _first_failed(users, failed)


def primal_path(
    const double[:, ::1] features,
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[::1] values,
    const int32_t[::1] users,
    const double[::1] C,
    double[:, ::1] errors,
    int threads,
):
    """The same from the features, where they are fewer than the ratings."""
    threads = team(threads)
    cdef Py_ssize_t longest = np.diff(indptr)[np.asarray(users)].max(initial=0), n = features.shape[1], place, row
    cdef Py_ssize_t size = 2 * n * longest + n * n + 2 * n + 3 * longest + spectrum_work(n)
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
            failed[place] = _primal_path(
                &features[0, 0], <int> n, &items[row], &values[row], <int> (indptr[user + 1] - row),
                &C[0], C.shape[0], own, &errors[user, 0],
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


cdef void _gather_centred(
    const double *gram, Py_ssize_t stride, const int32_t *items, int m, double *matrix, double *means
) noexcept nogil:
    """The upper triangle of the centred kernel matrix, and the means of its columns before that.

    Only the upper triangle is gathered and centred: the kernel is symmetric. Invariant of the gathering:
    means[b] holds the sum of rows :a over column b, for b >= a.
    """
    cdef double grand
    cdef const double *row
    cdef Py_ssize_t a, b
    for a in range(m):
        means[a] = 0.0
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


cdef int _solve_dual(
    const double *gram, Py_ssize_t stride, const int32_t *items, const double *values, int m,
    double C, double *scratch, double *coefficients, double *offset,
) noexcept nogil:
    """a = (K_c + m/(2C) I)^-1 y_c and the offset that gives the scores the mean of y; m^3/3 flops."""
    cdef double *matrix = scratch
    cdef double *means = scratch + m * m
    cdef double mean_value = total(values, m) / m
    cdef Py_ssize_t a
    for a in range(m):
        coefficients[a] = values[a] - mean_value
    _gather_centred(gram, stride, items, m, matrix, means)
    for a in range(m):
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


cdef int _dual_path(
    const double *gram, Py_ssize_t stride, const int32_t *items, const double *values, int m,
    const double *C, Py_ssize_t n_C, double *scratch, double *errors,
) noexcept nogil:
    """K_c = V diag(lam) V^T: its features are Z = V sqrt(lam), a row of `matrix` each."""
    cdef double *matrix = scratch
    cdef double *eigenvalues = matrix + m * m
    cdef double *rest = eigenvalues + m  # 3 m, then LAPACK's
    cdef double size
    cdef Py_ssize_t k, i
    _gather_centred(gram, stride, items, m, matrix, rest)
    if spectrum(matrix, eigenvalues, rest + 3 * m, m):
        return 1
    for k in range(m):
        eigenvalues[k] = max(0.0, eigenvalues[k])
        size = sqrt(eigenvalues[k])
        for i in range(m):
            matrix[k * m + i] *= size
    _left_out(matrix, eigenvalues, m, values, m, C, n_C, rest, errors)
    return 0


cdef int _primal_path(
    const double *features, int n, const int32_t *items, const double *values, int m,
    const double *C, Py_ssize_t n_C, double *scratch, double *errors,
) noexcept nogil:
    """X_c X_c^T = U diag(lam) U^T: the features turned to Z = X_c^T U, a row each."""
    cdef double *centred = scratch  # n x m, one feature a row; then Z
    cdef double *points = centred + n * m  # m x n
    cdef double *matrix = points + n * m
    cdef double *eigenvalues = matrix + n * n
    cdef double *rest = eigenvalues + 2 * n  # 3 m, then LAPACK's
    cdef double mean
    cdef Py_ssize_t k, i
    for k in range(n):
        for i in range(m):
            centred[k * m + i] = features[items[i] * n + k]
        mean = total(centred + k * m, m) / m
        for i in range(m):
            centred[k * m + i] -= mean
            points[i * n + k] = centred[k * m + i]
    multiply_transposed(centred, centred, matrix, n, n, m, n)
    if spectrum(matrix, eigenvalues, rest + 3 * m, n):
        return 1
    multiply_transposed(matrix, points, centred, n, m, n, m)
    _left_out(centred, eigenvalues, n, values, m, C, n_C, rest, errors)
    return 0


cdef void _left_out(
    const double *z, const double *eigenvalues, Py_ssize_t n, const double *values, Py_ssize_t m,
    const double *C, Py_ssize_t n_C, double *scratch, double *errors,
) noexcept nogil:
    """The mean over i of ((y_i - h_i) / (1 - H_ii))^2 at each C: h_i is left out, m/(2C) stays as it is.

    With alpha = m/(2C), h = mean + sum_k z_k p_k / (lam_k + alpha), p_k = z_k . y, and the leverage H_ii = 1/m +
    sum_k z_ki^2 / (lam_k + alpha). Where H_ii is 1 to the last digits the error is infinite.
    """
    cdef double *left = scratch
    cdef double *free_part = left + m
    cdef double *centred = free_part + m
    cdef double mean = total(values, m) / m, alpha, shrunk, weight, error
    cdef Py_ssize_t c, k, i
    for i in range(m):
        centred[i] = values[i] - mean
    for c in range(n_C):
        alpha = m / (2.0 * C[c])
        for i in range(m):
            left[i] = centred[i]
            free_part[i] = 1.0 - 1.0 / m
        for k in range(n):
            weight = 1.0 / (eigenvalues[k] + alpha)
            shrunk = 0.0
            for i in range(m):
                shrunk += z[k * m + i] * centred[i]
            shrunk *= weight
            for i in range(m):
                left[i] -= z[k * m + i] * shrunk
                free_part[i] -= z[k * m + i] * z[k * m + i] * weight
        error = 0.0
        for i in range(m):
            error += (left[i] / free_part[i]) ** 2 if free_part[i] > 1e-12 else INFINITY
        errors[c] = error / m
