"""Losses of comparisons over the distinct (user, item) pairs that they name, and products with those pairs.

A user with n items may compare them n^2 times: a score and a slope per pair of user and item, an
«entry», is all that comparisons share, and only entries cost vector work. Users, and items where rows
are items, are worked on side by side, each by one thread, in a fixed order.
"""

import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankbench.kernels.shared.losses cimport Loss, Tangent, tangent_of
from rankbench.kernels.shared.parallel cimport team


def gather(const int64_t[::1] indptr, const int32_t[::1] better, const int32_t[::1] worse, Py_ssize_t n_items):
    """indptr and items of the entries, a user's in the order of their first mention; and where the comparisons'
    items stand among their user's entries."""
    cdef Py_ssize_t n_users = indptr.shape[0] - 1
    cdef int64_t[::1] starts = np.zeros(n_users + 1, np.int64)
    cdef int32_t[::1] items
    cdef int32_t[::1] better_places = np.empty(better.shape[0], np.int32)
    cdef int32_t[::1] worse_places = np.empty(better.shape[0], np.int32)
    cdef int32_t *last = <int32_t *> malloc(2 * (n_items + 1) * sizeof(int32_t))
    if last == NULL:
        raise MemoryError
    with nogil:
        _place(indptr, better, worse, n_items, last, starts, better_places, worse_places)
    free(last)
    items = np.empty(starts[n_users], np.int32)
    with nogil:
        _list_items(indptr, better, worse, starts, better_places, worse_places, items)
    return np.asarray(starts), np.asarray(items), np.asarray(better_places), np.asarray(worse_places)


def slopes(
    Loss loss,
    const int64_t[::1] comparisons,
    const int32_t[::1] better,
    const int32_t[::1] worse,
    const int64_t[::1] indptr,
    const double[::1] scores,
    double[::1] loss_out,
    double[::1] slope_out,
    int threads,
):
    """Each user's sum of losses, and its derivative by the score of each entry."""
    threads = team(threads)
    cdef Py_ssize_t user
    for user in prange(loss_out.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        loss_out[user] = _user_slopes(
            loss, comparisons[user], comparisons[user + 1], &better[0], &worse[0],
            indptr[user + 1] - indptr[user], &scores[0] + indptr[user], &slope_out[0] + indptr[user],
        )


def products(
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[:, ::1] users,
    const double[:, ::1] item_rows,
    double[::1] out,
    int threads,
):
    """The inner product of user and item for each entry."""
    threads = team(threads)
    cdef Py_ssize_t user, entry
    for user in prange(users.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        for entry in range(indptr[user], indptr[user + 1]):
            out[entry] = _inner(&users[user, 0], &item_rows[items[entry], 0], users.shape[1])


def sums(
    const int64_t[::1] indptr,
    const int32_t[::1] columns,
    const double[::1] weights,
    const double[:, ::1] rows,
    double[:, ::1] out,
    int threads,
):
    """out[a] = the sum of weight x row over the entries of a: a sparse matrix times a dense one."""
    threads = team(threads)
    cdef Py_ssize_t one
    for one in prange(out.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        _sum_rows(
            indptr[one], indptr[one + 1], &columns[0], &weights[0], &rows[0, 0], rows.shape[1], &out[one, 0]
        )


cdef void _place(
    const int64_t[::1] indptr, const int32_t[::1] better, const int32_t[::1] worse, Py_ssize_t n_items,
    int32_t *last, int64_t[::1] starts, int32_t[::1] better_places, int32_t[::1] worse_places,
) noexcept nogil:
    """last[item] is the last user who named it, and last[n_items + item] its place among that one's entries."""
    cdef Py_ssize_t user, row, item, found
    for item in range(n_items):
        last[item] = -1
    for user in range(indptr.shape[0] - 1):
        found = 0
        for row in range(indptr[user], indptr[user + 1]):
            found += _is_new(last, better[row], <int32_t> user, n_items, <int32_t> found)
            better_places[row] = last[n_items + better[row]]
            found += _is_new(last, worse[row], <int32_t> user, n_items, <int32_t> found)
            worse_places[row] = last[n_items + worse[row]]
        starts[user + 1] = starts[user] + found


cdef inline bint _is_new(
    int32_t *last, Py_ssize_t item, int32_t user, Py_ssize_t n_items, int32_t place
) noexcept nogil:
    """Whether the user names the item for the first time; its place is then the one given."""
    if last[item] == user:
        return False
    last[item] = user
    last[n_items + item] = place
    return True


cdef void _list_items(
    const int64_t[::1] indptr, const int32_t[::1] better, const int32_t[::1] worse, const int64_t[::1] starts,
    const int32_t[::1] better_places, const int32_t[::1] worse_places, int32_t[::1] items,
) noexcept nogil:
    cdef Py_ssize_t user, row
    for user in range(indptr.shape[0] - 1):
        for row in range(indptr[user], indptr[user + 1]):
            items[starts[user] + better_places[row]] = better[row]
            items[starts[user] + worse_places[row]] = worse[row]


cdef double _user_slopes(
    Loss loss, Py_ssize_t first, Py_ssize_t end, const int32_t *better, const int32_t *worse,
    Py_ssize_t n, const double *scores, double *slopes,
) noexcept nogil:
    """The user's sum of losses; the slopes of its entries are written."""
    cdef double total = 0.0
    cdef Tangent tangent
    cdef Py_ssize_t row
    for row in range(n):
        slopes[row] = 0.0
    for row in range(first, end):
        tangent = tangent_of(loss, scores[better[row]] - scores[worse[row]])
        total += tangent.value
        slopes[better[row]] += tangent.slope
        slopes[worse[row]] -= tangent.slope
    return total


cdef inline double _inner(const double *x, const double *y, Py_ssize_t n) noexcept nogil:
    """sum_k x_k y_k in four lanes, then the rest."""
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0, rest = 0.0
    cdef Py_ssize_t k, whole = n - n % 4
    for k in range(0, whole, 4):
        a += x[k] * y[k]
        b += x[k + 1] * y[k + 1]
        c += x[k + 2] * y[k + 2]
        d += x[k + 3] * y[k + 3]
    for k in range(whole, n):
        rest += x[k] * y[k]
    return ((a + b) + (c + d)) + rest


cdef void _sum_rows(
    Py_ssize_t first, Py_ssize_t end, const int32_t *columns, const double *weights,
    const double *rows, Py_ssize_t width, double *out,
) noexcept nogil:
    cdef Py_ssize_t entry, k
    cdef const double *row
    cdef double weight
    for k in range(width):
        out[k] = 0.0
    for entry in range(first, end):
        row = rows + columns[entry] * width
        weight = weights[entry]
        for k in range(width):
            out[k] += weight * row[k]
