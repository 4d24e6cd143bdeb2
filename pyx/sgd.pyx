"""Pairwise stochastic gradient descent on factors, one pass at a time, user by user.

A user's comparisons are visited together, in random order, and so are the users: u_i stays in L1
while only two rows of V move in, which makes an update several times cheaper than drawing comparisons
at random from all of Omega, and lowers the objective as fast per pass.
"""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport exp, fabs, log1p
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from numpy.random cimport bitgen_t

from linalg cimport dot_difference, fetch
from random cimport below, bit_generator

SQUARED_HINGE, LOGISTIC = range(2)

cdef enum Loss:
    _SQUARED_HINGE, _LOGISTIC

cdef enum:
    _AHEAD = 2  # comparisons whose rows of V are on their way while one is worked on

cdef struct Schedule:
    # eta = step / (1 + decay * updates)
    double step
    double decay
    double updates


def serial_pass(
    int loss,
    const int64_t[::1] indptr,
    const int32_t[::1] better,
    const int32_t[::1] worse,
    double[:, ::1] users,
    double[:, ::1] items,
    const double[::1] user_shrink,
    const double[::1] item_shrink,
    double step,
    double decay,
    double updates,
    rng,
):
    """Visit every comparison once; rows of `users` and `items` are padded to whole lanes.

    user_shrink is lam / |Omega_i|, item_shrink lam / |Omega^j|; `updates` were made before this pass.
    """
    cdef Py_ssize_t n_users = users.shape[0], place, user, first, longest = np.diff(indptr).max(initial=0)
    cdef bitgen_t *bits = bit_generator(rng)
    cdef Schedule schedule = Schedule(step, decay, updates)
    cdef int32_t *user_order = <int32_t *> malloc((n_users + longest + 1) * sizeof(int32_t))
    cdef int32_t *order = user_order + n_users
    if user_order == NULL:
        raise MemoryError
    with rng.bit_generator.lock, nogil:
        _identity(user_order, n_users)
        for place in range(n_users):
            user = _draw_next(bits, user_order, place, n_users)
            first = indptr[user]
            _visit_user(
                loss, bits, order, indptr[user + 1] - first, &better[0] + first, &worse[0] + first,
                &users[user, 0], &items[0, 0], users.shape[1], user_shrink[user], &item_shrink[0], &schedule,
            )
    free(user_order)


def losses(
    int loss,
    const int64_t[::1] indptr,
    const int32_t[::1] better,
    const int32_t[::1] worse,
    const double[:, ::1] users,
    const double[:, ::1] items,
    double[::1] out,
    int threads,
):
    """Each user's sum of losses."""
    cdef Py_ssize_t user
    for user in prange(users.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        out[user] = _user_loss(
            loss, indptr[user], indptr[user + 1], &better[0], &worse[0],
            &users[user, 0], &items[0, 0], users.shape[1],
        )


cdef void _visit_user(
    int loss, bitgen_t *bits, int32_t *order, Py_ssize_t n, const int32_t *better, const int32_t *worse,
    double *u, double *items, Py_ssize_t rank, double user_shrink, const double *item_shrink,
    Schedule *schedule,
) noexcept nogil:
    """All comparisons of one user in random order: order[:place] were visited, order[place:] are to come."""
    cdef Py_ssize_t place, row, ahead
    cdef int32_t j, k
    cdef double *v
    cdef double *w
    cdef double margin, slope, eta
    _shuffle(bits, order, n)
    for place in range(n):
        if place + _AHEAD < n:
            ahead = order[place + _AHEAD]
            fetch(items + better[ahead] * rank, rank)
            fetch(items + worse[ahead] * rank, rank)
        row = order[place]
        j, k = better[row], worse[row]
        v = items + j * rank
        w = items + k * rank
        eta = schedule.step / (1.0 + schedule.decay * schedule.updates)
        schedule.updates += 1.0
        margin = dot_difference(u, v, w, rank)
        slope = _squared_hinge_slope(margin) if loss == _SQUARED_HINGE else _logistic_slope(margin)
        _update(
            u, v, w, rank, eta * slope,
            1.0 - eta * user_shrink, 1.0 - eta * item_shrink[j], 1.0 - eta * item_shrink[k],
        )


cdef void _update(
    double *u, double *v, double *w, Py_ssize_t rank, double g, double keep_u, double keep_v, double keep_w
) noexcept nogil:
    """u = keep_u u - g (v - w);  v = keep_v v - g u;  w = keep_w w + g u: all from the old values.

    keep = 1 - eta lam / |Omega|. The report's listings take the new u for v and w, its formulas the old
    one; these are the formulas.
    """
    cdef Py_ssize_t k
    cdef double old_u, old_v, old_w
    for k in range(rank):
        old_u, old_v, old_w = u[k], v[k], w[k]
        u[k] = keep_u * old_u - g * (old_v - old_w)
        v[k] = keep_v * old_v - g * old_u
        w[k] = keep_w * old_w + g * old_u


cdef double _user_loss(
    int loss, Py_ssize_t first, Py_ssize_t end, const int32_t *better, const int32_t *worse,
    const double *u, const double *items, Py_ssize_t rank,
) noexcept nogil:
    cdef double total = 0.0, margin
    cdef Py_ssize_t row
    for row in range(first, end):
        margin = dot_difference(u, items + better[row] * rank, items + worse[row] * rank, rank)
        total += _squared_hinge(margin) if loss == _SQUARED_HINGE else _logistic(margin)
    return total


cdef inline double _squared_hinge(double margin) noexcept nogil:
    cdef double missing = max(0.0, 1.0 - margin)
    return missing * missing


cdef inline double _squared_hinge_slope(double margin) noexcept nogil:
    """-2 (1 - m)_+ as -(x + |x|): as exact, and without a branch that no processor can foretell."""
    cdef double missing = 1.0 - margin
    return -(missing + fabs(missing))


cdef inline double _logistic(double margin) noexcept nogil:
    """log(1 + e^-m) without overflow."""
    return log1p(exp(-abs(margin))) + max(0.0, -margin)


cdef inline double _logistic_slope(double margin) noexcept nogil:
    """-1 / (1 + e^m)"""
    return -1.0 / (1.0 + exp(margin))


cdef inline void _identity(int32_t *order, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        order[i] = <int32_t> i


cdef inline void _shuffle(bitgen_t *bits, int32_t *order, Py_ssize_t n) noexcept nogil:
    """0 .. n-1 in random order."""
    cdef Py_ssize_t place
    _identity(order, n)
    for place in range(n):
        _draw_next(bits, order, place, n)


cdef inline int32_t _draw_next(bitgen_t *bits, int32_t *order, Py_ssize_t place, Py_ssize_t n) noexcept nogil:
    """One step of a Fisher-Yates shuffle: an even draw from order[place:n], moved to `place`."""
    cdef Py_ssize_t drawn = place + below(bits, <unsigned int> (n - place))
    cdef int32_t chosen = order[drawn]
    order[drawn] = order[place]
    order[place] = chosen
    return chosen
