"""Scores that are weighted sums over the items of a user: score of item i = sum_j x_j W[j, i].

The sum of a pair runs over the user's items j in ascending order, in every function here. So its bits depend on the
user and the item alone, and not on how many pairs are scored at once.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t
from libc.string cimport memset

from rankbench.kernels.shared.checks cimport agree
from rankbench.kernels.shared.lookup cimport entry_at
from rankbench.kernels.shared.parallel cimport team
from rankbench.kernels.shared.rows cimport SparseRows, SparseView


def dense_pairs(
    *,
    SparseRows rows,
    const double[:, ::1] weights,
    const int32_t[::1] users,
    const int32_t[::1] asked,
    double[::1] out,
):
    """Fill out[p] with sum_j x_j W[j, asked[p]] over the entries of row users[p]; O(entries) each."""
    agree("users", users.shape[0], out.shape[0])
    agree("columns asked for", asked.shape[0], out.shape[0])
    agree("rows of weights", weights.shape[0], weights.shape[1])
    cdef Py_ssize_t pair, place
    cdef double total
    with nogil:
        for pair in range(out.shape[0]):
            total = 0.0
            for place in range(rows.view.indptr[users[pair]], rows.view.indptr[users[pair] + 1]):
                total = total + rows.view.values[place] * weights[rows.view.columns[place], asked[pair]]
            out[pair] = total


def sparse_pairs(
    *, SparseRows rows, SparseRows weights, const int32_t[::1] users, const int32_t[::1] asked, double[::1] out
):
    """Fill out[p] as `dense_pairs` does; the columns of each row of W ascend, O(entries log columns) each."""
    agree("users", users.shape[0], out.shape[0])
    agree("columns asked for", asked.shape[0], out.shape[0])
    cdef Py_ssize_t pair, place
    cdef double total
    with nogil:
        for pair in range(out.shape[0]):
            total = 0.0
            for place in range(rows.view.indptr[users[pair]], rows.view.indptr[users[pair] + 1]):
                total = total + rows.view.values[place] * entry_at(&weights.view, rows.view.columns[place], asked[pair])
            out[pair] = total


def dense_all(
    *, SparseRows rows, const double[:, ::1] weights, const int32_t[::1] users, double[:, ::1] out, int threads
):
    """Fill out[a, i] with sum_j x_j W[j, i] over the entries of row users[a]; O(entries x columns) for each user."""
    threads = team(threads)
    agree("rows of out", out.shape[0], users.shape[0])
    agree("columns of out", out.shape[1], weights.shape[1])
    agree("rows of weights", weights.shape[0], weights.shape[1])
    cdef Py_ssize_t row
    if out.shape[1] == 0:
        return
    for row in prange(users.shape[0], nogil=True, schedule="dynamic", num_threads=threads):
        _add_dense(&rows.view, users[row], weights, &out[row, 0])


def sparse_all(*, SparseRows rows, SparseRows weights, const int32_t[::1] users, double[:, ::1] out, int threads):
    """Fill out[a, i] as `dense_all` does, in O(columns + the entries of the rows of W that a user has)."""
    threads = team(threads)
    agree("rows of out", out.shape[0], users.shape[0])
    agree("columns of out", out.shape[1], weights.view.n)
    cdef Py_ssize_t row
    if out.shape[1] == 0:
        return
    for row in prange(users.shape[0], nogil=True, schedule="dynamic", num_threads=threads):
        _add_sparse(&rows.view, users[row], &weights.view, &out[row, 0], out.shape[1])


cdef void _add_dense(
    const SparseView *rows, Py_ssize_t user, const double[:, ::1] weights, double *out
) noexcept nogil:
    """The scores of all columns for one user."""
    cdef Py_ssize_t place, i
    cdef double value
    cdef const double *row
    memset(out, 0, weights.shape[1] * sizeof(double))
    for place in range(rows.indptr[user], rows.indptr[user + 1]):
        value, row = rows.values[place], &weights[rows.columns[place], 0]
        for i in range(weights.shape[1]):
            out[i] += value * row[i]


cdef void _add_sparse(
    const SparseView *rows, Py_ssize_t user, const SparseView *weights, double *out, Py_ssize_t n
) noexcept nogil:
    """The scores of all n columns for one user."""
    cdef Py_ssize_t place, entry
    cdef double value
    memset(out, 0, n * sizeof(double))
    for place in range(rows.indptr[user], rows.indptr[user + 1]):
        value = rows.values[place]
        for entry in range(weights.indptr[rows.columns[place]], weights.indptr[rows.columns[place] + 1]):
            out[weights.columns[entry]] += value * weights.values[entry]
