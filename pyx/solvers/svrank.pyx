"""SVRank over pairs: coordinate ascent on the dual of each user's problem, with users in parallel.

With c = 2C/m^2 and b_ij for the unordered pair i < j, |b_ij| <= c, the dual is
D(b) = -1/4 a^T K a + a . y - eps sum |b_ij|, a = sum b_ij (e_j - e_i), and h = K a / 2 are the scores. The primal value
P = a . h / 2 + c sum max(|r_j - r_i| - eps, 0), r = h - y, needs m residuals and a sort, and no list of pairs.
"""

# Roof of pair_rounds, a visit of a pair: 32 * m + 16 bytes; 3 * m + 16 flops.

from cython.parallel cimport parallel, prange
from libc.math cimport fabs
from libc.stdint cimport INT32_MAX, int32_t, int64_t

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints, taken
from rankbench.kernels.shared.checks cimport agree, within
from rankbench.kernels.shared.lanes cimport total
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport SparseRows
from rankbench.kernels.shared.sorting cimport argsort
from rankbench.kernels.solvers.magnitudes cimport pair_loss

cdef enum:
    _INNER = 10  # passes over the pairs that still move, after each pass over all pairs

cdef struct Matrix:
    # A kernel matrix between items.
    const double *entries
    Py_ssize_t columns

cdef struct Pair:
    int32_t i
    int32_t j
    int32_t place  # the index of its dual variable

cdef struct User:
    # One user's problem, and a thread's scratch memory for it.
    Py_ssize_t m
    double c
    double eps
    const double *y
    double *b
    double *gram  # centred
    double *means  # the column means of the gram matrix before centring
    double *a
    double *h
    double *r
    int32_t *order
    int32_t *spare
    Pair *moving


cdef class PairProblem:
    """The settings of the problem, the same for all users, and the stopping criterion.

    C is the weight of the losses, which are 0 up to `eps`. A user is done when the duality gap is at most `tolerance`
    times the primal value, or after `rounds` rounds.
    """

    cdef double C
    cdef double eps
    cdef double tolerance
    cdef int rounds

    def __init__(self, *, double C, double eps, double tolerance, int rounds):
        """Take the settings."""
        within("rounds", rounds, 1, INT32_MAX)
        self.C, self.eps, self.tolerance, self.rounds = C, eps, tolerance, rounds


cdef class PairDuals:
    """The dual variables of all pairs: a user's start at starts[user], m (m - 1) / 2 of them for m ratings."""

    cdef const int64_t[::1] starts
    cdef double[::1] values

    def __init__(self, *, const int64_t[::1] starts, double[::1] values):
        """Take the arrays, without a copy; the duals are changed in place."""
        self.starts, self.values = starts, values


cdef class Functions:
    """The users' functions: a coefficient per rating; an offset, a primal value and a duality gap per user."""

    cdef double[::1] coefficients
    cdef double[::1] offsets
    cdef double[::1] primal
    cdef double[::1] gap

    def __init__(self, *, double[::1] coefficients, double[::1] offsets, double[::1] primal, double[::1] gap):
        """Take the arrays, without a copy; they are filled in for the users that are fitted."""
        if not offsets.shape[0] == primal.shape[0] == gap.shape[0]:
            raise ValueError("each user must have an offset, a primal value and a gap")
        self.coefficients, self.offsets, self.primal, self.gap = coefficients, offsets, primal, gap


def pair_rounds(
    *,
    PairProblem problem,
    const double[:, ::1] gram,
    SparseRows ratings,
    const int32_t[::1] users,
    PairDuals duals,
    Functions functions,
    int threads,
):
    """Improve the duals and functions of these users for some rounds, or until the users are done.

    The columns of `ratings` are the items' rows of the kernel matrix. A round is a pass over all pairs, and some passes
    over the pairs that still move. A thread needs 8 m^2 bytes for the kernel matrix and 6 m^2 for the pairs.
    """
    threads = team(threads)
    agree("coefficients", functions.coefficients.shape[0], ratings.values.shape[0])
    agree("offsets", functions.offsets.shape[0], ratings.view.n)
    agree("starts of duals", duals.starts.shape[0], ratings.view.n)
    cdef Py_ssize_t longest = 0, place
    cdef Matrix matrix = Matrix(&gram[0, 0], gram.shape[1])
    for place in range(users.shape[0]):
        longest = max(longest, <Py_ssize_t> (ratings.indptr[users[place] + 1] - ratings.indptr[users[place]]))
    cdef Arena arena = Arena(NULL, 0)
    cdef User room = _lay_out(&arena, longest)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        room = _lay_out(&arena, longest)
        for place in prange(users.shape[0], schedule="dynamic"):
            _fit_user(problem, matrix, ratings, users[place], duals, functions, room)


cdef User _lay_out(Arena *arena, Py_ssize_t m) noexcept nogil:
    """Scratch memory for users with at most m ratings, without a problem."""
    cdef User room
    room.m, room.c, room.eps, room.y, room.b = 0, 0.0, 0.0, NULL, NULL
    room.gram = floats(arena, m * m)
    room.means = floats(arena, m)
    room.a = floats(arena, m)
    room.h = floats(arena, m)
    room.r = floats(arena, m)
    room.order = ints(arena, m)
    room.spare = ints(arena, m)
    room.moving = <Pair *> taken(arena, m * (m - 1) // 2, sizeof(Pair))
    return room


cdef void _fit_user(
    PairProblem problem, Matrix gram, SparseRows ratings, Py_ssize_t user, PairDuals duals, Functions functions,
    User state,
) noexcept nogil:
    """Improve one user's duals and function, in the scratch memory of `state`."""
    cdef Py_ssize_t first = ratings.view.indptr[user]
    state.m = ratings.view.indptr[user + 1] - first
    state.c = 2.0 * problem.C / (<double> state.m * <double> state.m)
    state.eps = problem.eps
    state.y = ratings.view.values + first
    state.b = &duals.values[duals.starts[user]]
    _gather(&state, gram, ratings.view.columns + first)
    _ascend(&state, problem.tolerance, problem.rounds, &functions.primal[user], &functions.gap[user])
    functions.offsets[user] = _expansion(&state, &functions.coefficients[first])


cdef void _gather(User *state, Matrix gram, const int32_t *items) noexcept nogil:
    """Fill in the user's part of the kernel matrix, centred, which only shifts scores and removes large offsets."""
    cdef Py_ssize_t i, j, m = state.m
    cdef const double *row
    cdef double grand
    for i in range(m):
        row = gram.entries + items[i] * gram.columns
        for j in range(m):
            state.gram[i * m + j] = row[items[j]]
        state.means[i] = total(state.gram + i * m, m) / m
    grand = total(state.means, m) / m
    for i in range(m):
        for j in range(m):
            state.gram[i * m + j] += grand - state.means[i] - state.means[j]


cdef void _ascend(User *state, double tolerance, int rounds, double *primal, double *gap) noexcept nogil:
    """Run rounds of one pass over all pairs and some over the pairs that still move; fill in primal value and gap."""
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
    """Update every pair, list in `moving` the pairs that moved or are between their bounds, and return their number."""
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
    """Update each pair in the list `moving` once."""
    cdef Py_ssize_t k
    for k in range(moving):
        _update(state, state.moving[k].i, state.moving[k].j, state.moving[k].place)


cdef inline void _update(User *state, Py_ssize_t i, Py_ssize_t j, Py_ssize_t place) noexcept nogil:
    """Set b = clip(soft(b + 2 (t - z) / K_p, 2 eps / K_p), -c, c), the optimal b; O(1), and O(m) if b changes.

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
    """Compute a and h = K a / 2 from the duals, in m^2 steps, which removes the rounding errors of updates."""
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
    """Compute P = a . h / 2 + loss, and P - D = a . h + loss - a . y + eps sum |b|."""
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
    """The offset of h(x) = sum coefficients K(x, x_i) + offset that gives the scores the mean of the ratings."""
    cdef double offset = total(state.y, state.m) / state.m
    cdef Py_ssize_t i
    for i in range(state.m):
        coefficients[i] = 0.5 * state.a[i]
        offset -= coefficients[i] * state.means[i]
    return offset
