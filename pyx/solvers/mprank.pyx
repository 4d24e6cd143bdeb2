"""MPRank's closed forms, one small linear system for each user, with users in parallel.

Both forms minimise |w|^2 + (2C/m) |X_c^T w - y_c|^2 over centred features and targets; with alpha = m / (2C) the
primal solves (X_c X_c^T + alpha I) w = X_c y_c, with one unknown per feature, and the dual
(K_c + alpha I) a = y_c, with one unknown per rating. Each user has a C. The eigenvectors of either matrix give the
leave-one-out residual of each rating, for any number of values of C.

Every function takes the ratings by user, with the items' rows of the kernel matrix or of the features as columns, and
the users to solve for. It returns the first user with a system that is not positive definite, or -1.
"""

# Roof of dual, a user: 4 * m ** 2 bytes; m ** 3 / 3 + 9 / 2 * m ** 2 flops.
# Roof of primal, a user: 8 * m * n bytes; n * (n + 6) * m + n ** 3 / 3 + 2 * n ** 2 flops.

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats
from rankbench.kernels.shared.blas cimport multiply_transposed, spectrum, spectrum_work
from rankbench.kernels.shared.checks cimport above_ids, agree
from rankbench.kernels.shared.lanes cimport total
from rankbench.kernels.shared.normal_equations cimport (
    BLOCK, Chosen, Equations, Vectors, add_products, clear, gather, room_for, solve_equations, stride_of,
)
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport SparseRows

cdef struct Matrix:
    # A kernel matrix between items, or the items' features.
    const double *entries
    Py_ssize_t columns

cdef struct Own:
    # The ratings of one user.
    const int32_t *items
    const double *values
    int m

cdef struct Grid:
    # The values of C to try, and the array for their errors.
    const double *C
    Py_ssize_t n
    double *errors

cdef struct Turned:
    # Centred data in the basis of eigenvectors: z holds a row of m values for each eigenvalue.
    double *z
    double *eigenvalues
    Py_ssize_t n

cdef struct Memory:
    # Scratch memory of one thread, for the system of a user.
    Equations system
    double *means
    double *gathered  # up to BLOCK centred features and targets
    double *targets

cdef struct PathMemory:
    # Scratch memory of one thread, for the eigenvectors of a user's matrix, and what each form needs of the others.
    double *matrix
    double *means
    double *centred
    double *points
    double *eigenvalues
    double *targets
    double *left
    double *free_part
    double *work  # scratch memory of LAPACK


def dual(
    *,
    const double[:, ::1] gram,
    SparseRows ratings,
    const int32_t[::1] users,
    const double[::1] C,
    double[::1] coefficients,
    double[::1] offsets,
    int threads,
) -> int:
    """Fill in the coefficients, by rating, and the offset of each user, from the dual."""
    threads = team(threads)
    agree("columns of gram", gram.shape[1], gram.shape[0])
    above_ids("rows of gram", gram.shape[0], ratings.columns)
    agree("weights C", C.shape[0], ratings.view.n)
    agree("coefficients", coefficients.shape[0], ratings.values.shape[0])
    agree("offsets", offsets.shape[0], ratings.view.n)
    cdef Py_ssize_t longest = _longest(ratings, users), place
    cdef int32_t[::1] failed = np.zeros(users.shape[0], np.int32)
    cdef Matrix matrix = Matrix(&gram[0, 0], gram.shape[1])
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, longest)
    cdef Scratch scratch = Scratch(arena.used, threads)
    cdef int32_t user
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out(&arena, longest)
        for place in prange(users.shape[0], schedule="dynamic"):
            user = users[place]
            failed[place] = _solve_dual(
                matrix, _of_user(ratings, user), C[user], memory, &coefficients[ratings.view.indptr[user]],
                &offsets[user],
            )
    return _first_failed(users, failed)


def primal(
    *,
    const double[:, ::1] features,
    SparseRows ratings,
    const int32_t[::1] users,
    const double[::1] C,
    double[:, ::1] weights,
    double[::1] offsets,
    int threads,
) -> int:
    """Fill in the weights of the features and the offset of each user, from the primal."""
    threads = team(threads)
    above_ids("rows of features", features.shape[0], ratings.columns)
    agree("weights C", C.shape[0], ratings.view.n)
    agree("rows of weights", weights.shape[0], ratings.view.n)
    agree("columns of weights", weights.shape[1], features.shape[1])
    agree("offsets", offsets.shape[0], ratings.view.n)
    cdef Py_ssize_t place
    cdef int32_t[::1] failed = np.zeros(users.shape[0], np.int32)
    cdef Matrix matrix = Matrix(&features[0, 0], features.shape[1])
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, matrix.columns)
    cdef Scratch scratch = Scratch(arena.used, threads)
    cdef int32_t user
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out(&arena, matrix.columns)
        for place in prange(users.shape[0], schedule="dynamic"):
            user = users[place]
            failed[place] = _solve_primal(
                matrix, _of_user(ratings, user), C[user], memory, &weights[user, 0], &offsets[user]
            )
    return _first_failed(users, failed)


def path(
    *,
    const double[:, ::1] matrix,
    SparseRows ratings,
    const int32_t[::1] users,
    const double[::1] C,
    double[:, ::1] errors,
    bint primal,
    int threads,
) -> int:
    """Fill errors[user] with the mean squared leave-one-out error at each C, from the kernel matrix.

    With `primal` the matrix holds the features, fewer than any of the users has ratings.
    """
    threads = team(threads)
    if not primal:
        agree("columns of the kernel matrix", matrix.shape[1], matrix.shape[0])
    above_ids("rows of the matrix", matrix.shape[0], ratings.columns)
    agree("rows of errors", errors.shape[0], ratings.view.n)
    agree("columns of errors", errors.shape[1], C.shape[0])
    cdef Py_ssize_t longest = _longest(ratings, users), place
    cdef int32_t[::1] failed = np.zeros(users.shape[0], np.int32)
    cdef Matrix given = Matrix(&matrix[0, 0], matrix.shape[1])
    cdef Py_ssize_t size = given.columns if primal else longest
    cdef Arena arena = Arena(NULL, 0)
    cdef PathMemory memory = _lay_out_path(&arena, longest, size, primal)
    cdef Scratch scratch = Scratch(arena.used, threads)
    cdef Grid grid
    cdef int32_t user
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out_path(&arena, longest, size, primal)
        for place in prange(users.shape[0], schedule="dynamic"):
            user = users[place]
            grid = Grid(&C[0], C.shape[0], &errors[user, 0])
            if primal:
                failed[place] = _primal_path(given, _of_user(ratings, user), grid, memory)
            else:
                failed[place] = _dual_path(given, _of_user(ratings, user), grid, memory)
    return _first_failed(users, failed)


# ---- users and their scratch memory ----


cdef Py_ssize_t _longest(SparseRows ratings, const int32_t[::1] users) noexcept:
    """The largest number of ratings of any of these users."""
    cdef Py_ssize_t longest = 0, place
    for place in range(users.shape[0]):
        longest = max(longest, <Py_ssize_t> _of_user(ratings, users[place]).m)
    return longest


cdef inline Own _of_user(SparseRows ratings, Py_ssize_t user) noexcept nogil:
    """The ratings of one user."""
    cdef Py_ssize_t first = ratings.view.indptr[user]
    return Own(
        ratings.view.columns + first, ratings.view.values + first, <int> (ratings.view.indptr[user + 1] - first)
    )


cdef int _first_failed(const int32_t[::1] users, const int32_t[::1] failed) noexcept:
    """The first user with a system that is not positive definite, or -1."""
    cdef Py_ssize_t place
    for place in range(users.shape[0]):
        if failed[place]:
            return users[place]
    return -1


cdef Memory _lay_out(Arena *arena, Py_ssize_t unknowns) noexcept nogil:
    """Scratch memory for a system of at most so many unknowns."""
    return Memory(
        room_for(arena, unknowns), floats(arena, unknowns), floats(arena, BLOCK * stride_of(unknowns)),
        floats(arena, BLOCK),
    )


cdef PathMemory _lay_out_path(Arena *arena, Py_ssize_t m, Py_ssize_t n, bint primal) noexcept nogil:
    """Scratch memory for the errors of at most m ratings, from n features or from the kernel matrix, where n is m."""
    return PathMemory(
        matrix=floats(arena, n * n), means=floats(arena, n), centred=floats(arena, n * m if primal else 0),
        points=floats(arena, n * m if primal else 0), eigenvalues=floats(arena, n), targets=floats(arena, m),
        left=floats(arena, m), free_part=floats(arena, m), work=floats(arena, spectrum_work(n)),
    )


# ---- one user ----


cdef void _gather_centred(Matrix gram, Own own, double *matrix, Py_ssize_t stride, double *means) noexcept nogil:
    """Fill in the upper triangle of the user's centred kernel matrix, and its column means before centring.

    Only the upper triangle is gathered and centred: the kernel is symmetric. Invariant of the gathering:
    means[b] holds the sum of rows :a over column b, for b >= a.
    """
    cdef double grand
    cdef const double *row
    cdef Py_ssize_t a, b, m = own.m
    for a in range(m):
        means[a] = 0.0
    for a in range(m):
        row = gram.entries + own.items[a] * gram.columns
        for b in range(a, m):
            matrix[a * stride + b] = row[own.items[b]]
        means[a] += total(matrix + a * stride + a, m - a)
        for b in range(a + 1, m):
            means[b] += matrix[a * stride + b]
    for a in range(m):
        means[a] /= m
    grand = total(means, m) / m
    for a in range(m):
        for b in range(a, m):
            matrix[a * stride + b] += grand - means[a] - means[b]


cdef int _solve_dual(
    Matrix gram, Own own, double C, Memory memory, double *coefficients, double *offset
) noexcept nogil:
    """Fill in a = (K_c + m/(2C) I)^-1 y_c and the offset that gives the scores the mean of y; m^3/3 flops.

    The sum of a is 0, as K_c maps a vector of ones to 0. With a small ridge and a large kernel rounding errors would
    leave a larger sum, which scores would take for a part of the function, as they use the kernel itself and not K_c.
    Returns 1 if the system is not positive definite, else 0.
    """
    cdef Equations *system = &memory.system
    cdef Py_ssize_t a, m = own.m
    cdef double mean_value = total(own.values, m) / m, mean
    clear(system, m)
    for a in range(m):
        system.right[a] = own.values[a] - mean_value
    _gather_centred(gram, own, system.matrix, system.stride, memory.means)
    if _solve(system, m / (2.0 * C), mean_value, memory.means, coefficients, offset):
        return 1
    mean = total(coefficients, m) / m
    for a in range(m):
        coefficients[a] -= mean
    offset[0] = _offset(mean_value, memory.means, coefficients, m)
    return 0


cdef int _solve_primal(
    Matrix features, Own own, double C, Memory memory, double *weights, double *offset
) noexcept nogil:
    """Fill in w = (X_c X_c^T + m/(2C) I)^-1 X_c y_c and the offset; n^2 m flops for the matrix, n^3/3 to solve.

    Returns 1 if the system is not positive definite, else 0.
    """
    cdef Equations *system = &memory.system
    cdef double *means = memory.means
    cdef double *centred
    cdef const double *row
    cdef Py_ssize_t a, k, block = 0, size, m = own.m, n = features.columns
    cdef double mean_value = total(own.values, m) / m
    for k in range(n):
        means[k] = 0.0
    for a in range(m):
        row = features.entries + own.items[a] * n
        for k in range(n):
            means[k] += row[k]
    for k in range(n):
        means[k] /= m
    clear(system, n)
    while block < m:
        size = min(<Py_ssize_t> BLOCK, m - block)
        gather(features.entries, Chosen(own.items + block, size, n), n, memory.gathered, system.stride)
        for a in range(size):
            centred = memory.gathered + a * system.stride
            for k in range(n):
                centred[k] -= means[k]
            memory.targets[a] = own.values[block + a] - mean_value
        add_products(system, Vectors(memory.gathered, memory.targets, size))
        block += size
    return _solve(system, m / (2.0 * C), mean_value, means, weights, offset)


cdef int _solve(
    Equations *system, double alpha, double mean_value, const double *means, double *solution, double *offset
) noexcept nogil:
    """Fill in the solution with alpha on the diagonal, and mean_value - means . solution; 1 if that failed, else 0."""
    cdef Py_ssize_t k
    for k in range(system.unknowns):
        system.matrix[k * system.stride + k] += alpha
    if solve_equations(system):
        return 1
    for k in range(system.unknowns):
        solution[k] = system.right[k]
    offset[0] = _offset(mean_value, means, solution, system.unknowns)
    return 0


cdef double _offset(double mean_value, const double *means, const double *solution, Py_ssize_t n) noexcept nogil:
    """What gives the scores their mean."""
    cdef double offset = mean_value
    cdef Py_ssize_t k
    for k in range(n):
        offset -= solution[k] * means[k]
    return offset


cdef int _dual_path(Matrix gram, Own own, Grid grid, PathMemory memory) noexcept nogil:
    """Fill in the errors by K_c = V diag(lam) V^T with the features Z = V sqrt(lam), each a row of `matrix`.

    Returns LAPACK's error code, or 0.
    """
    cdef double *matrix = memory.matrix
    cdef double *eigenvalues = memory.eigenvalues
    cdef double size
    cdef int m = own.m
    cdef Py_ssize_t k, i
    _gather_centred(gram, own, matrix, m, memory.means)
    if spectrum(matrix, eigenvalues, memory.work, m):
        return 1
    for k in range(m):
        eigenvalues[k] = max(0.0, eigenvalues[k])
        size = sqrt(eigenvalues[k])
        for i in range(m):
            matrix[k * m + i] *= size
    _left_out(Turned(matrix, eigenvalues, m), own, grid, memory)
    return 0


cdef int _primal_path(Matrix features, Own own, Grid grid, PathMemory memory) noexcept nogil:
    """Fill in the errors by X_c X_c^T = U diag(lam) U^T, with the rotated features Z = X_c^T U, each a row.

    Returns LAPACK's error code, or 0.
    """
    cdef double *centred = memory.centred  # n x m, one row per feature; then Z
    cdef double *points = memory.points  # m x n
    cdef double *matrix = memory.matrix
    cdef double mean
    cdef int m = own.m, n = <int> features.columns
    cdef Py_ssize_t k, i
    for k in range(n):
        for i in range(m):
            centred[k * m + i] = features.entries[own.items[i] * n + k]
        mean = total(centred + k * m, m) / m
        for i in range(m):
            centred[k * m + i] -= mean
            points[i * n + k] = centred[k * m + i]
    multiply_transposed(centred, centred, matrix, n, n, m, n)
    if spectrum(matrix, memory.eigenvalues, memory.work, n):
        return 1
    multiply_transposed(matrix, points, centred, n, m, n, m)
    _left_out(Turned(centred, memory.eigenvalues, n), own, grid, memory)
    return 0


cdef void _left_out(Turned data, Own own, Grid grid, PathMemory memory) noexcept nogil:
    """Fill in the mean over i of ((y_i - h_i) / (1 - H_ii))^2 at each C, with the same ridge m/(2C).

    With alpha = m/(2C), h = mean + sum_k z_k p_k / (lam_k + alpha), p_k = z_k . y, and the leverage H_ii = 1/m +
    sum_k z_ki^2 / (lam_k + alpha). If H_ii is 1 up to rounding, the error is infinite. The cost is 6 m flops
    for each eigenvalue and C.
    """
    cdef double *left = memory.left
    cdef double *free_part = memory.free_part
    cdef double *targets = memory.targets
    cdef const double *z = data.z
    cdef Py_ssize_t c, k, i, m = own.m
    cdef double mean = total(own.values, m) / m, alpha, shrunk, weight, error
    for i in range(m):
        targets[i] = own.values[i] - mean
    for c in range(grid.n):
        alpha = m / (2.0 * grid.C[c])
        for i in range(m):
            left[i] = targets[i]
            free_part[i] = 1.0 - 1.0 / m
        for k in range(data.n):
            weight = 1.0 / (data.eigenvalues[k] + alpha)
            shrunk = 0.0
            for i in range(m):
                shrunk += z[k * m + i] * targets[i]
            shrunk *= weight
            for i in range(m):
                left[i] -= z[k * m + i] * shrunk
                free_part[i] -= z[k * m + i] * z[k * m + i] * weight
        error = 0.0
        for i in range(m):
            error += (left[i] / free_part[i]) ** 2 if free_part[i] > 1e-12 else INFINITY
        grid.errors[c] = error / m
