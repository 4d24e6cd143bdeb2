"""SVRank over pairs: coordinate ascent on the dual of each user's problem, users side by side.

With c = 2C/m^2 and b_ij for the unordered pair i < j, |b_ij| <= c, the dual is
D(b) = -1/4 a^T K a + a . y - eps sum |b_ij|, a = sum b_ij (e_j - e_i), and h = K a / 2 are the scores. The
primal P = a . h / 2 + c sum max(|r_j - r_i| - eps, 0), r = h - y, needs m residuals and a sort, no pairs.
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankbench.kernels.shared.lanes cimport total
from rankbench.kernels.solvers.magnitudes cimport pair_loss
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.sorting cimport argsort

cdef enum:
    _INNER = 10  # passes over the pairs that still move, for each pass over all of them

cdef struct Pair:
    int32_t i
    int32_t j
    int32_t place  # of its dual

cdef struct User:
    # A problem, and the memory that a thread works on it with.
    Py_ssize_t m
    double c
    double eps
    const double *y
    double *b
    double *gram  # centred
    double *means  # of the gram's columns before that
    double *a
    double *h
    double *r
    int32_t *order
    int32_t *spare
    Pair *moving


def pair_rounds(
    const double[:, ::1] gram,
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[::1] values,
    const int32_t[::1] users,
    double C,
    double eps,
    double tolerance,
    int rounds,
    const int64_t[::1] first_dual,
    double[::1] duals,
    double[::1] coefficients,
    double[::1] offsets,
    double[::1] primal,
    double[::1] gap,
    int threads,
):
    """Go on with each of these users from its duals, which lie from first_dual[place]: some rounds, or until done.

    A user is done once its gap is at most tolerance x primal. `coefficients`, by rating, and `offsets`,
    `primal` and `gap`, by user, tell where it stands then.
    """
    threads = team(threads)
    cdef Py_ssize_t longest = np.diff(indptr)[np.asarray(users)].max(initial=0), place, row
    cdef size_t size = _bytes(longest)
    cdef char *memory = <char *> malloc(threads * size + 1)
    cdef User *states = <User *> malloc(threads * sizeof(User))
    cdef User *state = states
    cdef int32_t user
    try:
        if memory == NULL or states == NULL:
            raise MemoryError
        with nogil, parallel(num_threads=threads):
            state = &states[thread_id()]
            _lay_out(state, memory + thread_id() * size, longest)
            for place in prange(users.shape[0], schedule="dynamic"):
                user = users[place]
                row = indptr[user]
                state.m = indptr[user + 1] - row
                state.c = 2.0 * C / (<double> state.m * <double> state.m)
                state.eps = eps
                state.y = &values[row]
                state.b = &duals[first_dual[place]]
                _gather(state, &gram[0, 0], gram.shape[0], &items[row])
                _ascend(state, tolerance, rounds, &primal[user], &gap[user])
                offsets[user] = _expansion(state, &coefficients[row])
    finally:
        free(memory)
        free(states)


cdef size_t _bytes(Py_ssize_t m) noexcept nogil:
    """What a thread needs for users of at most m ratings, rounded up to whole doubles."""
    cdef size_t pairs = <size_t> (m * (m - 1) // 2)
    return 8 * (((m * m + 4 * m) * sizeof(double) + pairs * sizeof(Pair) + 2 * m * sizeof(int32_t)) // 8 + 1)


cdef void _lay_out(User *state, char *memory, Py_ssize_t m) noexcept nogil:
    state.gram = <double *> memory
    state.means = state.gram + m * m
    state.a = state.means + m
    state.h = state.a + m
    state.r = state.h + m
    state.order = <int32_t *> (state.r + m)
    state.spare = state.order + m
    state.moving = <Pair *> (state.spare + m)


cdef void _gather(User *state, const double *gram, Py_ssize_t stride, const int32_t *items) noexcept nogil:
    """The user's part of the kernel matrix, centred: scores move by a constant, and large offsets cancel here."""
    cdef Py_ssize_t i, j, m = state.m
    cdef const double *row
    cdef double grand
    for i in range(m):
        row = gram + items[i] * stride
        for j in range(m):
            state.gram[i * m + j] = row[items[j]]
        state.means[i] = total(state.gram + i * m, m) / m
    grand = total(state.means, m) / m
    for i in range(m):
        for j in range(m):
            state.gram[i * m + j] += grand - state.means[i] - state.means[j]


cdef void _ascend(User *state, double tolerance, int rounds, double *primal, double *gap) noexcept nogil:
    """Rounds of one pass over all pairs and some over those that still move."""
    cdef Py_ssize_t moving, _inner
    cdef int _round
    _rescore(state)
    for _round in range(rounds):
        moving = _pass_over_all(state)
        for _inner in range(_INNER):
            _pass_over_moving(state, moving)
        _rescore(state)
        _certify(state, primal, gap)
        if gap[0] <= tolerance * primal[0]:
            return


cdef Py_ssize_t _pass_over_all(User *state) noexcept nogil:
    """Update every pair once; the pairs that moved or lie between their bounds are `moving`: how many they are."""
    cdef Py_ssize_t i, j, place = 0, moving = 0
    cdef double before, after
    for i in range(state.m):
        for j in range(i + 1, state.m):
            before = state.b[place]
            _update(state, i, j, place)
            after = state.b[place]
            if after != before or (after != 0.0 and fabs(after) < state.c):
                state.moving[moving].i = <int32_t> i
                state.moving[moving].j = <int32_t> j
                state.moving[moving].place = <int32_t> place
                moving += 1
            place += 1
    return moving


cdef void _pass_over_moving(User *state, Py_ssize_t moving) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(moving):
        _update(state, state.moving[k].i, state.moving[k].j, state.moving[k].place)


cdef inline void _update(User *state, Py_ssize_t i, Py_ssize_t j, Py_ssize_t place) noexcept nogil:
    """b = clip(soft(b + 2 (t - z) / K_p, 2 eps / K_p), -c, c), the best b there is; O(1), and O(m) where it moves.

    t = y_j - y_i, z = h_j - h_i, K_p = K_ii + K_jj - 2 K_ij. Two items with the same features have
    K_p = 0: there the dual is linear in b, and b goes to a bound.
    """
    cdef Py_ssize_t k, m = state.m
    cdef const double *low = state.gram + i * m
    cdef const double *high = state.gram + j * m
    cdef double curvature = low[i] + high[j] - 2.0 * low[j]
    cdef double missing = (state.y[j] - state.y[i]) - (state.h[j] - state.h[i])
    cdef double best, move
    cdef double old = state.b[place]
    if curvature > 1e-14 * (low[i] + high[j]):
        best = old * curvature + 2.0 * missing
        best = max(0.0, best - 2.0 * state.eps) + min(0.0, best + 2.0 * state.eps)
        best = min(state.c, max(-state.c, best / curvature))
    else:
        best = state.c * ((missing > state.eps) - (missing < -state.eps))
    move = 0.5 * (best - old)
    if move == 0.0:
        return
    state.b[place] = best
    for k in range(m):
        state.h[k] += move * (high[k] - low[k])


cdef void _rescore(User *state) noexcept nogil:
    """a and h = K a / 2 from the duals, anew: updates round."""
    cdef Py_ssize_t i, j, k, place = 0, m = state.m
    cdef double half
    for i in range(m):
        state.a[i] = 0.0
        state.h[i] = 0.0
    for i in range(m):
        for j in range(i + 1, m):
            state.a[j] += state.b[place]
            state.a[i] -= state.b[place]
            place += 1
    for i in range(m):
        half = 0.5 * state.a[i]
        for k in range(m):
            state.h[k] += half * state.gram[i * m + k]


cdef void _certify(User *state, double *primal, double *gap) noexcept nogil:
    """P = a . h / 2 + loss, and P - D = a . h + loss - a . y + eps sum |b|."""
    cdef double norm = 0.0, fit = 0.0, size = 0.0, loss
    cdef Py_ssize_t i, place, m = state.m
    for i in range(m):
        state.r[i] = state.h[i] - state.y[i]
        state.order[i] = <int32_t> i
        norm += state.a[i] * state.h[i]
        fit += state.a[i] * state.y[i]
    argsort(state.r, state.order, state.spare, m)
    loss = state.c * pair_loss(state.r, state.order, m, state.eps)
    if state.eps > 0.0:
        for place in range(m * (m - 1) // 2):
            size += fabs(state.b[place])
    primal[0] = 0.5 * norm + loss
    gap[0] = norm + loss - fit + state.eps * size


cdef double _expansion(const User *state, double *coefficients) noexcept nogil:
    """h(x) = sum coefficients K(x, x_i) + offset, of the mean of the ratings: returns the offset."""
    cdef double offset = total(state.y, state.m) / state.m
    cdef Py_ssize_t i
    for i in range(state.m):
        coefficients[i] = 0.5 * state.a[i]
        offset -= coefficients[i] * state.means[i]
    return offset
