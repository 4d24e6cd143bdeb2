"""RobiRank's robust loss with its auxiliary variables in closed form, and stochastic descent with these held.

An item j that user i wants competes with the candidates k of its list: t_ij = sum_k log2(1 + 2^(f_ik - f_ij)).
"""

from cython.parallel cimport prange
from libc.math cimport exp2, log2
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

import numpy as np

from rankbench.kernels.shared.lanes cimport dot, dot_difference
from rankbench.kernels.methods.pairwise cimport Move, update
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.draws cimport Stream, below, shuffled, stream_of

cdef enum:
    _FARTHEST = 500  # score differences beyond it count as it: 2^500 keeps all products finite

cdef double _FULL = exp2(400.0)  # a product above it is folded into the logarithm


def closed_form(
    const int64_t[::1] indptr,
    const int32_t[::1] places,
    const double[::1] gains,
    const int64_t[:, ::1] lists,
    const int32_t[::1] candidates,
    const double[:, ::1] users,
    const double[:, ::1] items,
    double[::1] xi,
    double[::1] losses,
    int threads,
):
    """xi = 1 / (1 + t) for each wanted item, and each user's sum of gain log2(1 + t).

    User i wants the rows indptr[i] .. indptr[i + 1]; row p is candidates[lists[i, 0] + places[p]], and the
    list ends before lists[i, 1].
    """
    threads = team(threads)
    cdef Py_ssize_t user
    cdef Py_ssize_t longest = np.max(np.subtract(lists[:, 1], lists[:, 0]), initial=0)
    cdef double *scratch = <double *> malloc((threads * longest + 1) * sizeof(double))
    if scratch == NULL:
        raise MemoryError
    for user in prange(indptr.shape[0] - 1, nogil=True, schedule="dynamic", chunksize=4, num_threads=threads):
        if indptr[user + 1] > indptr[user]:
            losses[user] = _of_user(
                indptr[user + 1] - indptr[user], &places[indptr[user]], &gains[indptr[user]],
                &candidates[lists[user, 0]], lists[user, 1] - lists[user, 0],
                &users[user, 0], &items[0, 0], users.shape[1], scratch + thread_id() * longest, &xi[indptr[user]],
            )
        else:
            losses[user] = 0.0
    free(scratch)


cdef double _of_user(
    Py_ssize_t wanted, const int32_t *places, const double *gains, const int32_t *candidates, Py_ssize_t n,
    const double *u, const double *items, Py_ssize_t rank, double *powers, double *xi,
) noexcept nogil:
    """One user's loss, and xi of each wanted item."""
    cdef double best, robust, loss = 0.0
    cdef Py_ssize_t k, row
    for k in range(n):
        powers[k] = dot(u, items + candidates[k] * rank, rank)
    best = powers[0]
    for k in range(n):
        best = max(best, powers[k])
    for k in range(n):
        powers[k] = exp2(max(powers[k] - best, <double> -_FARTHEST))
    for row in range(wanted):
        robust = 1.0 + _logistic_sum(powers, places[row], 1.0 / powers[places[row]])
        robust += _logistic_sum(powers + places[row] + 1, n - places[row] - 1, 1.0 / powers[places[row]])
        xi[row] = 1.0 / robust
        loss += gains[row] * log2(robust)
    return loss


cdef double _logistic_sum(const double *powers, Py_ssize_t n, double scale) noexcept nogil:
    """sum_k log2(1 + powers_k scale), as the logarithm of a product: a multiplication each, and few logarithms.

    Four products run side by side. A factor is at most 1 + 2^500 and a product is folded once it is above
    2^400, so that none gets near 2^1024.
    """
    cdef double a = 1.0, b = 1.0, c = 1.0, d = 1.0, total = 0.0
    cdef Py_ssize_t k, whole = n - n % 4
    for k in range(0, whole, 4):
        a *= 1.0 + powers[k] * scale
        b *= 1.0 + powers[k + 1] * scale
        c *= 1.0 + powers[k + 2] * scale
        d *= 1.0 + powers[k + 3] * scale
        if a > _FULL or b > _FULL or c > _FULL or d > _FULL:
            total += (log2(a) + log2(b)) + (log2(c) + log2(d))
            a = b = c = d = 1.0
    for k in range(whole, n):
        a *= 1.0 + powers[k] * scale
        if a > _FULL:
            total += log2(a)
            a = 1.0
    return total + ((log2(a) + log2(b)) + (log2(c) + log2(d)))


def descend(
    const int32_t[::1] user_order,
    const int64_t[::1] indptr,
    const int32_t[::1] places,
    const double[::1] weights,
    const int64_t[:, ::1] lists,
    const int32_t[::1] candidates,
    double[:, ::1] users,
    double[:, ::1] items,
    const double[::1] user_shrink,
    const double[::1] item_shrink,
    int draws,
    double step,
    double decay,
    double updates,
    uint64_t seed,
):
    """Visit every wanted item once, against `draws` competitors each, by steps of step / (1 + decay updates).

    A drawn competitor stands for its share of the row's gradient: weight times the slope of log2(1 + 2^-m),
    which is -1 / (1 + 2^m), with weight = gain xi / ln 2 times the number of competitors over `draws`.
    """
    cdef Py_ssize_t place, longest = np.diff(indptr).max(initial=0)
    cdef int32_t *order = <int32_t *> malloc((longest + 1) * sizeof(int32_t))
    cdef Py_ssize_t user, row, n, first
    cdef int32_t own, other
    cdef int _drawn
    cdef double eta
    cdef Stream stream
    if order == NULL:
        raise MemoryError
    with nogil:
        for place in range(user_order.shape[0]):
            user = user_order[place]
            first, n = indptr[user], lists[user, 1] - lists[user, 0]
            stream = stream_of(seed, user)
            shuffled(&stream, order, indptr[user + 1] - first)
            for row in range(indptr[user + 1] - first):
                own = places[first + order[row]]
                for _drawn in range(draws):
                    other = <int32_t> below(&stream, <uint32_t> (n - 1))
                    other += other >= own
                    eta = step / (1.0 + decay * updates)
                    updates += 1.0
                    _step(
                        eta, weights[first + order[row]], &users[user, 0], &items[0, 0], users.shape[1],
                        candidates[lists[user, 0] + own], candidates[lists[user, 0] + other],
                        user_shrink[user], &item_shrink[0],
                    )
    free(order)


cdef inline void _step(
    double eta, double weight, double *u, double *items, Py_ssize_t rank, int32_t j, int32_t k,
    double user_shrink, const double *item_shrink,
) noexcept nogil:
    """Down the gradient of weight log2(1 + 2^-m), m = u . (v_j - v_k), and of the penalty's share."""
    cdef double margin = dot_difference(u, items + j * rank, items + k * rank, rank)
    cdef double g = -eta * weight / (1.0 + exp2(margin))
    update(
        u, items + j * rank, items + k * rank, rank,
        Move(g, 1.0 - eta * user_shrink, 1.0 - eta * item_shrink[j], 1.0 - eta * item_shrink[k]),
    )
