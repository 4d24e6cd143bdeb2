"""CofiRank's losses of a user's scores, and the bundle method for every user's vector.

A loss is convex in the scores f of a user's items; each returns its value and fills in a subgradient.
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankbench.kernels.solvers.assignment cimport DOUBLES, INTEGERS, Assignment, best_places, lay_out_assignment
from rankbench.kernels.solvers.bundle cimport weigh_planes
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.sorting cimport argsort

NDCG, ORDINAL, REGRESSION = range(3)

cdef enum Loss:
    _NDCG, _ORDINAL, _REGRESSION

cdef struct User:
    # One user's rows; what `targets` and `scale` are depends on the loss.
    Py_ssize_t n
    const int32_t *items
    const double *targets  # ndcg: gain over the ideal DCG; ordinal: the number of the level; regression: the rating
    const double *anchors  # ndcg: the mean weight of the item's places in the orders that are right
    double scale  # ndcg: 1, or 0 if nothing is to be gained; ordinal: 1 / pairs, or 0 if there are none

cdef struct Memory:
    # What one thread works with.
    Assignment assignment
    double *f
    double *slopes
    double *counts
    double *rows  # the vectors of the user's items
    double *planes
    double *products
    double *offsets
    double *beta
    double *spare
    double *point
    int32_t *places
    int32_t *order
    int32_t *scratch


def losses(
    int loss,
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[::1] targets,
    const double[::1] anchors,
    const double[::1] scales,
    const double[::1] weights,
    const double[::1] discounts,
    const double[:, ::1] users,
    const double[:, ::1] factors,
    double[::1] out,
    double[::1] slopes,
    int threads,
):
    """Each user's loss, and its slope along each of the user's scores."""
    threads = team(threads)
    cdef Py_ssize_t longest = np.diff(indptr).max(initial=1), rank = factors.shape[1]
    cdef int user
    cdef Memory *members = _memory(threads, longest, rank, 0, weights, discounts)
    cdef Memory *own = members
    with nogil, parallel(num_threads=threads):
        own = &members[thread_id()]
        for user in prange(<int> users.shape[0], schedule="dynamic", chunksize=8):
            out[user] = 0.0
            if indptr[user + 1] > indptr[user]:
                out[user] = _loss_at(
                    loss, _user(indptr, items, targets, anchors, scales, user), &users[user, 0],
                    &factors[0, 0], rank, own, &slopes[indptr[user]],
                )
    _release(members, threads)


def users_half(
    int loss,
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[::1] targets,
    const double[::1] anchors,
    const double[::1] scales,
    const double[::1] weights,
    const double[::1] discounts,
    double[:, ::1] users,
    const double[:, ::1] factors,
    double lam,
    double tolerance,
    int most_planes,
    double[::1] objectives,
    double[::1] gaps,
    int threads,
):
    """For each user min over u of loss(u) + lam/2 |u|^2, from the u that is there, and how far it may still be."""
    threads = team(threads)
    cdef Py_ssize_t longest = np.diff(indptr).max(initial=1), rank = factors.shape[1]
    cdef int user
    cdef Memory *members = _memory(threads, longest, rank, most_planes, weights, discounts)
    cdef Memory *own = members
    with nogil, parallel(num_threads=threads):
        own = &members[thread_id()]
        for user in prange(<int> users.shape[0], schedule="dynamic", chunksize=8):
            objectives[user] = 0.0
            gaps[user] = 0.0
            if indptr[user + 1] > indptr[user]:
                _bundle(
                    loss, _user(indptr, items, targets, anchors, scales, user), &users[user, 0],
                    &factors[0, 0], rank, lam, tolerance, most_planes, own, &objectives[user], &gaps[user],
                )
    _release(members, threads)


def item_slopes(
    const int64_t[::1] indptr,
    const int32_t[::1] raters,
    const int64_t[::1] places,
    const double[::1] slopes,
    const double[:, ::1] users,
    double[:, ::1] out,
    int threads,
):
    """sum over an item's raters of slope times vector; `places` says where a slope stands among the users' rows."""
    threads = team(threads)
    cdef Py_ssize_t item, k
    cdef int64_t row
    for item in prange(out.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        for k in range(out.shape[1]):
            out[item, k] = 0.0
        for row in range(indptr[item], indptr[item + 1]):
            for k in range(out.shape[1]):
                out[item, k] += slopes[places[row]] * users[raters[row], k]


def weigh(
    const double[:, ::1] products, const double[::1] offsets, double lam, double tolerance, double[::1] beta
):
    """Optimise the planes' weights in place; the dual's value, a lower bound of the objective."""
    cdef double[::1] spare = np.empty(max(1, offsets.shape[0]))
    return weigh_planes(
        &products[0, 0], products.shape[1], &offsets[0], lam, offsets.shape[0], tolerance, &beta[0], &spare[0]
    )


# ---- losses ----


cdef double _loss_at(
    int loss, User user, const double *u, const double *factors, Py_ssize_t rank, Memory *own, double *slopes
) noexcept nogil:
    """The loss of the scores u . m_j."""
    cdef Py_ssize_t j
    for j in range(user.n):
        own.f[j] = _dot(u, factors + user.items[j] * rank, rank)
    return _loss(loss, user, own, slopes)


cdef double _loss(int loss, User user, Memory *own, double *slopes) noexcept nogil:
    """The loss of the scores in `own.f`."""
    if loss == _NDCG:
        return _ndcg(user, own, slopes)
    if loss == _ORDINAL:
        return _ordinal(user, own, slopes)
    return _regression(user, own, slopes)


cdef double _ndcg(User user, Memory *own, double *slopes) noexcept nogil:
    """max over orders of 1 - NDCG + sum_j (weight of j's place - anchor_j) f_j."""
    cdef double value = user.scale
    cdef Py_ssize_t j, place
    best_places(&own.assignment, own.f, user.targets, user.n, own.places)
    for j in range(user.n):
        place = own.places[j]
        slopes[j] = own.assignment.weights[place] - user.anchors[j]
        value += slopes[j] * own.f[j]
        if place < own.assignment.k:
            value -= own.assignment.discounts[place] * user.targets[j]
    return value


cdef double _ordinal(User user, Memory *own, double *slopes) noexcept nogil:
    """The mean over pairs y_i < y_k of max(0, 1 - (f_k - f_i)); O(n log n + n levels).

    Once from below, where a better item meets all worse ones that are not a margin below it, and once from
    above; counts[level] holds how many of a level the sweep has passed.
    """
    cdef Py_ssize_t n = user.n, j
    cdef double violated
    for j in range(n):
        own.order[j] = <int32_t> j
        slopes[j] = 0.0
    argsort(own.f, own.order, own.scratch, n)
    violated = _sweep(user, own, slopes, True)
    _sweep(user, own, slopes, False)
    violated *= user.scale
    for j in range(n):
        slopes[j] *= user.scale
        violated += slopes[j] * own.f[j]
    return violated


cdef double _sweep(User user, Memory *own, double *slopes, bint better) noexcept nogil:
    """Take from each better item, or give to each worse one, the number of its pairs within the margin; their sum."""
    cdef Py_ssize_t n = user.n, place, passed = 0, level, mine
    cdef int32_t j, other
    cdef double sum_ = 0.0, pairs
    for place in range(n + 1):
        own.counts[place] = 0.0
    for place in range(n):
        level = <Py_ssize_t> user.targets[place]
        own.counts[level] += 1.0
    for place in range(n):  # counts: of those that the sweep has not passed
        j = own.order[place if better else n - 1 - place]
        while passed < n:
            other = own.order[passed if better else n - 1 - passed]
            if (own.f[j] - own.f[other] if better else own.f[other] - own.f[j]) < 1.0:
                break
            level = <Py_ssize_t> user.targets[other]
            own.counts[level] -= 1.0
            passed += 1
        pairs = 0.0
        mine = <Py_ssize_t> user.targets[j]
        for level in range(0 if better else mine + 1, mine if better else n):
            pairs += own.counts[level]
        slopes[j] += -pairs if better else pairs
        sum_ += pairs
    return sum_


cdef double _regression(User user, Memory *own, double *slopes) noexcept nogil:
    """1/2 sum (f - y)^2."""
    cdef double value = 0.0
    cdef Py_ssize_t j
    for j in range(user.n):
        slopes[j] = own.f[j] - user.targets[j]
        value += 0.5 * slopes[j] * slopes[j]
    return value


# ---- one user's vector ----


cdef void _bundle(
    int loss, User user, double *u, const double *factors, Py_ssize_t rank, double lam,
    double tolerance, Py_ssize_t most_planes, Memory *own, double *objective, double *gap,
) noexcept nogil:
    """Planes are added where the model of planes has its minimum; u is the best point seen.

    Invariant: the planes lie below the loss, so the dual's value lies below the minimum.
    """
    cdef double value, best, bound = -INFINITY
    cdef Py_ssize_t planes = 1, k, t
    for t in range(user.n):
        for k in range(rank):
            own.rows[t * rank + k] = factors[user.items[t] * rank + k]
    for k in range(rank):
        own.point[k] = u[k]
    own.beta[0] = 1.0
    best = _add_plane(loss, user, rank, lam, 0, most_planes, own)
    while True:
        bound = weigh_planes(
            own.products, most_planes, own.offsets, lam, planes,
            0.1 * max(tolerance * fabs(best), min(fabs(best), best - bound)), own.beta, own.spare,
        )
        if best - bound <= tolerance * fabs(best) or planes == most_planes:
            break
        for k in range(rank):
            own.point[k] = 0.0
            for t in range(planes):
                own.point[k] -= own.beta[t] * own.planes[t * rank + k] / lam
        value = _add_plane(loss, user, rank, lam, planes, most_planes, own)
        own.beta[planes] = 0.0
        planes += 1
        if value < best:
            best = value
            for k in range(rank):
                u[k] = own.point[k]
    objective[0], gap[0] = best, max(0.0, best - bound)


cdef double _add_plane(
    int loss, User user, Py_ssize_t rank, double lam, Py_ssize_t at, Py_ssize_t stride, Memory *own
) noexcept nogil:
    """The plane that touches the loss at the point, and its products with the planes before; the objective there."""
    cdef double *plane = own.planes + at * rank
    cdef double value
    cdef Py_ssize_t j, k, t
    for j in range(user.n):
        own.f[j] = _dot(own.point, own.rows + j * rank, rank)
    value = _loss(loss, user, own, own.slopes)
    for k in range(rank):
        plane[k] = 0.0
    for j in range(user.n):
        for k in range(rank):
            plane[k] += own.slopes[j] * own.rows[j * rank + k]
    own.offsets[at] = value - _dot(plane, own.point, rank)
    for t in range(at + 1):
        own.products[at * stride + t] = _dot(plane, own.planes + t * rank, rank)
        own.products[t * stride + at] = own.products[at * stride + t]
    return value + 0.5 * lam * _dot(own.point, own.point, rank)


cdef inline double _dot(const double *x, const double *y, Py_ssize_t n) noexcept nogil:
    cdef double sum_ = 0.0
    cdef Py_ssize_t k
    for k in range(n):
        sum_ += x[k] * y[k]
    return sum_


# ---- views and memory ----


cdef inline User _user(
    const int64_t[::1] indptr, const int32_t[::1] items, const double[::1] targets,
    const double[::1] anchors, const double[::1] scales, Py_ssize_t user,
) noexcept nogil:
    cdef Py_ssize_t first = indptr[user]
    return User(indptr[user + 1] - first, &items[first], &targets[first], &anchors[first], scales[user])


cdef Memory *_memory(
    int threads, Py_ssize_t longest, Py_ssize_t rank, Py_ssize_t planes,
    const double[::1] weights, const double[::1] discounts,
) except NULL:
    """Each thread's own, in one block."""
    cdef Py_ssize_t doubles = (DOUBLES + 3 + rank) * longest + 1 + planes * (rank + planes + 3) + rank
    cdef Py_ssize_t integers = (INTEGERS + 3) * longest, thread
    cdef Memory *members = <Memory *> malloc(threads * sizeof(Memory))
    cdef char *block = <char *> malloc(threads * (doubles * sizeof(double) + integers * sizeof(int32_t)))
    cdef Memory *own
    if members == NULL or block == NULL:
        free(members)
        free(block)
        raise MemoryError
    for thread in range(threads):
        own = &members[thread]
        _lay_out(
            own, <double *> block + thread * doubles,
            <int32_t *> (<double *> block + threads * doubles) + thread * integers, longest, rank, planes,
        )
        own.assignment.weights = &weights[0]
        own.assignment.discounts = &discounts[0]
        own.assignment.k = discounts.shape[0]
    return members


cdef void _lay_out(
    Memory *own, double *doubles, int32_t *integers, Py_ssize_t longest, Py_ssize_t rank, Py_ssize_t planes
) noexcept nogil:
    own.f = doubles  # the first of the first thread's is the block itself
    own.slopes = own.f + longest
    own.counts = own.slopes + longest
    own.rows = own.counts + longest + 1
    own.planes = own.rows + rank * longest
    own.products = own.planes + planes * rank
    own.offsets = own.products + planes * planes
    own.beta = own.offsets + planes
    own.spare = own.beta + planes
    own.point = own.spare + planes
    own.places = integers
    own.order = integers + longest
    own.scratch = integers + 2 * longest
    lay_out_assignment(&own.assignment, own.point + rank, integers + 3 * longest, longest)


cdef void _release(Memory *members, int threads) noexcept:
    free(members[0].f)
    free(members)
