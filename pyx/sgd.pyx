"""Pairwise stochastic gradient descent on factors, one pass at a time, user by user.

A user's comparisons are visited together, in random order, and so are the users: u_i stays in L1
while only two rows of V move in, which makes an update several times cheaper than drawing comparisons
at random from all of Omega, and lowers the objective as fast per pass.

In parallel there are two ways. In rounds: tasks of one round share neither a user nor an item, so that
any number of threads leaves the same bits. Without locks: every user has one thread, and threads write
over each other's items.
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport exp, fabs
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc

from numpy.random cimport bitgen_t

from linalg cimport dot_difference, fetch
from margins cimport _SQUARED_HINGE
from pairwise cimport update
from parallel cimport team, thread_id
from random cimport below, bit_generator
from splitmix cimport shuffled, stream_of

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
            _shuffle(bits, order, indptr[user + 1] - first)
            _visit_user(
                loss, order, indptr[user + 1] - first, &better[0] + first, &worse[0] + first,
                &users[user, 0], &items[0, 0], users.shape[1], user_shrink[user], &item_shrink[0], &schedule,
            )
    free(user_order)


def rounds_pass(
    int loss,
    const int64_t[::1] round_starts,
    const int32_t[::1] tasks,
    const int64_t[::1] task_starts,
    const int32_t[::1] row_users,
    const int32_t[::1] better,
    const int32_t[::1] worse,
    double[:, ::1] users,
    double[:, ::1] items,
    const double[::1] user_shrink,
    const double[::1] item_shrink,
    double step,
    double decay,
    const double[::1] updates,
    uint64_t seed,
    int threads,
):
    """Visit every comparison once, round by round; the tasks of a round share neither user nor item.

    Round r runs tasks[round_starts[r] : round_starts[r + 1]], side by side. Task t holds the rows from
    task_starts[t] on, and draws their order from a stream of its own; updates[place] were made before the
    task at this place of `tasks`. So no bit depends on the number of threads.
    """
    threads = team(threads)
    cdef Py_ssize_t rounds = round_starts.shape[0] - 1, this_round, place, first, end
    cdef Py_ssize_t longest = np.diff(task_starts).max(initial=0)
    cdef int32_t *orders = <int32_t *> malloc((threads * longest + 1) * sizeof(int32_t))
    cdef int32_t *order
    if orders == NULL:
        raise MemoryError
    order, this_round, first, end = orders, 0, 0, 0  # each thread has its own
    with nogil, parallel(num_threads=threads):
        order = orders + thread_id() * longest
        for this_round in range(rounds):
            first = round_starts[this_round]
            end = round_starts[this_round + 1]
            for place in prange(first, end, schedule="dynamic", chunksize=1):
                _run_task(
                    loss, order, tasks[place], &task_starts[0], &row_users[0], &better[0], &worse[0],
                    &users[0, 0], &items[0, 0], users.shape[1], &user_shrink[0], &item_shrink[0],
                    step, decay, updates[place], seed,
                )
    free(orders)


cdef void _run_task(
    int loss, int32_t *order, Py_ssize_t task, const int64_t *task_starts, const int32_t *row_users,
    const int32_t *better, const int32_t *worse, double *users, double *items, Py_ssize_t rank,
    const double *user_shrink, const double *item_shrink, double step, double decay, double updates, uint64_t seed,
) noexcept nogil:
    """Draw the order of a task's rows, and visit them."""
    cdef Py_ssize_t first = task_starts[task], n = task_starts[task + 1] - first
    cdef uint64_t stream = stream_of(seed, task)
    cdef Schedule schedule = Schedule(step, decay, updates)
    shuffled(&stream, order, n)
    _visit_task(
        loss, order, n, row_users + first, better + first, worse + first, users, items, rank,
        user_shrink, item_shrink, &schedule,
    )


def hogwild_pass(
    int loss,
    const int32_t[::1] user_order,
    const double[::1] updates,
    const int64_t[::1] indptr,
    const int32_t[::1] better,
    const int32_t[::1] worse,
    double[:, ::1] users,
    double[:, ::1] items,
    const double[::1] user_shrink,
    const double[::1] item_shrink,
    double step,
    double decay,
    uint64_t seed,
    int threads,
):
    """Visit every comparison once, users side by side; items are read and written without locks, on purpose.

    updates[place] were made before the user at this place of `user_order`, had they come one by one.
    """
    threads = team(threads)
    cdef Py_ssize_t place, longest = np.diff(indptr).max(initial=0)
    cdef int32_t *orders = <int32_t *> malloc((threads * longest + 1) * sizeof(int32_t))
    if orders == NULL:
        raise MemoryError
    for place in prange(user_order.shape[0], nogil=True, schedule="dynamic", chunksize=8, num_threads=threads):
        _run_user(
            loss, orders + thread_id() * longest, user_order[place], &indptr[0], &better[0], &worse[0],
            &users[0, 0], &items[0, 0], users.shape[1], &user_shrink[0], &item_shrink[0],
            step, decay, updates[place], seed,
        )
    free(orders)


cdef void _run_user(
    int loss, int32_t *order, Py_ssize_t user, const int64_t *indptr, const int32_t *better, const int32_t *worse,
    double *users, double *items, Py_ssize_t rank, const double *user_shrink, const double *item_shrink,
    double step, double decay, double updates, uint64_t seed,
) noexcept nogil:
    """Draw the order of a user's rows, and visit them."""
    cdef Py_ssize_t first = indptr[user], n = indptr[user + 1] - first
    cdef uint64_t stream = stream_of(seed, user)
    cdef Schedule schedule = Schedule(step, decay, updates)
    shuffled(&stream, order, n)
    _visit_user(
        loss, order, n, better + first, worse + first, users + user * rank, items, rank,
        user_shrink[user], item_shrink, &schedule,
    )


cdef void _visit_user(
    int loss, const int32_t *order, Py_ssize_t n, const int32_t *better, const int32_t *worse,
    double *u, double *items, Py_ssize_t rank, double user_shrink, const double *item_shrink,
    Schedule *schedule,
) noexcept nogil:
    """All comparisons of one user in this order."""
    cdef Py_ssize_t place, row, ahead
    for place in range(n):
        if place + _AHEAD < n:
            ahead = order[place + _AHEAD]
            fetch(items + better[ahead] * rank, rank)
            fetch(items + worse[ahead] * rank, rank)
        row = order[place]
        _visit(loss, u, items, better[row], worse[row], rank, user_shrink, item_shrink, schedule)


cdef void _visit_task(
    int loss, const int32_t *order, Py_ssize_t n, const int32_t *rows_user, const int32_t *better,
    const int32_t *worse, double *users, double *items, Py_ssize_t rank,
    const double *user_shrink, const double *item_shrink, Schedule *schedule,
) noexcept nogil:
    """All comparisons of one task in this order: its few users and items stay in the cache."""
    cdef Py_ssize_t place, row, ahead
    for place in range(n):
        if place + _AHEAD < n:
            ahead = order[place + _AHEAD]
            fetch(users + rows_user[ahead] * rank, rank)
            fetch(items + better[ahead] * rank, rank)
            fetch(items + worse[ahead] * rank, rank)
        row = order[place]
        _visit(
            loss, users + rows_user[row] * rank, items, better[row], worse[row], rank,
            user_shrink[rows_user[row]], item_shrink, schedule,
        )


cdef inline void _visit(
    int loss, double *u, double *items, int32_t j, int32_t k, Py_ssize_t rank,
    double user_shrink, const double *item_shrink, Schedule *schedule,
) noexcept nogil:
    """One comparison: item j was better than item k."""
    cdef double *v = items + j * rank
    cdef double *w = items + k * rank
    cdef double eta = schedule.step / (1.0 + schedule.decay * schedule.updates)
    cdef double margin = dot_difference(u, v, w, rank)
    cdef double slope = _squared_hinge_slope(margin) if loss == _SQUARED_HINGE else _logistic_slope(margin)
    schedule.updates += 1.0
    # keep = 1 - eta lam / |Omega|; the report's listings take the new u for v and w, its formulas the old one
    update(
        u, v, w, rank, eta * slope,
        1.0 - eta * user_shrink, 1.0 - eta * item_shrink[j], 1.0 - eta * item_shrink[k],
    )


cdef inline double _squared_hinge_slope(double margin) noexcept nogil:
    """-2 (1 - m)_+ as -(x + |x|): as exact, and without a branch that no processor can foretell."""
    cdef double missing = 1.0 - margin
    return -(missing + fabs(missing))


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
