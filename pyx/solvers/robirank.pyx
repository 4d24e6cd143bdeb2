"""RobiRank's robust loss with its auxiliary variables in closed form, and stochastic descent with these fixed.

A wish is an item j that user i has rated. It competes with the candidates k of its list:
t_ij = sum_k log2(1 + 2^(f_ik - f_ij)). The closed form uses all candidates, the descent a few drawn ones.
"""

# Roof of closed_form by pairs, a wish and a candidate: 8 bytes; 3 flops.
# Roof of closed_form by candidates, a candidate: 4 bytes; 2 * rank + 4 flops; rank / 8 lines; 1 calls.
# Roof of descend, an update: 4 bytes; 17 * rank + 30 flops; rank / 4 + 2 lines; 1 calls.

from cython.parallel cimport parallel, prange
from libc.math cimport exp2, fabs, log2, sqrt
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint32_t, uint64_t

from rankbench.kernels.methods.pairwise cimport DescentFactors, FactorsView, descend_on, step_size
from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints
from rankbench.kernels.shared.checks cimport agree, within
from rankbench.kernels.shared.draws cimport Stream, below, shuffled, stream_of
from rankbench.kernels.shared.lanes cimport Difference, dot, dot_rows_at, of_long_difference
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport count_rows, first_id, first_value, longest_row

cdef enum:
    _FARTHEST = 500  # larger score differences are clipped to it: 2^500 keeps all products finite

cdef extern from *:
    """
    #include <math.h>
    #include <string.h>

    typedef double rankbench_products __attribute__((vector_size(16)));
    typedef long long rankbench_fulls __attribute__((vector_size(16)));

    /* sum_k log2(1 + powers_k scale), as the logarithm of a product: one multiplication per term, and few logarithms.

       Four products are computed side by side. A factor is at most 1 + 2^500, and the logarithm of a product is taken
       once one is above 2^250, so that none gets near 2^1024, nor does the product of all four at the end. */
    static double rankbench_logistic_sum(const double *powers, Py_ssize_t n, double scale) {
        const double full = 0x1p250;
        const rankbench_products ones = {1.0, 1.0}, limits = {full, full};
        rankbench_products first = ones, second = ones, v, w;
        rankbench_fulls over;
        Py_ssize_t k, whole = n - n % 4;
        double total = 0.0, a;
        for (k = 0; k < whole; k += 4) {
            memcpy(&v, powers + k, sizeof v);
            memcpy(&w, powers + k + 2, sizeof w);
            first *= 1.0 + v * scale;
            second *= 1.0 + w * scale;
            over = (first > limits) | (second > limits);
            if (over[0] | over[1]) {
                total += (log2(first[0]) + log2(first[1])) + (log2(second[0]) + log2(second[1]));
                first = second = ones;
            }
        }
        a = first[0];
        for (k = whole; k < n; k++) {
            a *= 1.0 + powers[k] * scale;
            if (a > full) {
                total += log2(a);
                a = 1.0;
            }
        }
        return total + log2((a * first[1]) * (second[0] * second[1]));
    }
    """
    double _logistic_sum "rankbench_logistic_sum" (const double *powers, Py_ssize_t n, double scale) noexcept nogil

cdef struct WishesView:
    Py_ssize_t n  # users
    const int64_t *indptr
    const int32_t *places
    const double *gains
    const int64_t *lists  # of user i: begins at lists[2 i], ends before lists[2 i + 1]
    const int32_t *candidates

cdef struct Own:
    # The wishes and the candidates of one user.
    Py_ssize_t wanted
    const int32_t *places
    const double *gains
    Py_ssize_t n
    const int32_t *candidates

cdef struct Model:
    FactorsView factors
    int draws  # competitors of each visit


cdef class WishRows:
    """The wishes of each user: the rows p from indptr[i] to indptr[i + 1] of user i, each with a place and a gain.

    The candidates of user i are candidates[lists[i, 0]:lists[i, 1]], and the wish of row p has index places[p] there.
    """

    cdef const int64_t[::1] indptr
    cdef const int32_t[::1] places
    cdef const double[::1] gains
    cdef const int64_t[:, ::1] lists
    cdef const int32_t[::1] candidates
    cdef WishesView view

    def __init__(
        self,
        *,
        const int64_t[::1] indptr,
        const int32_t[::1] places,
        const double[::1] gains,
        const int64_t[:, ::1] lists,
        const int32_t[::1] candidates,
    ):
        """Take the arrays, without a copy."""
        cdef Py_ssize_t n = count_rows(indptr, places.shape[0])
        if gains.shape[0] != places.shape[0]:
            raise ValueError(f"there are {places.shape[0]} places but {gains.shape[0]} gains")
        if lists.shape[0] != n or lists.shape[1] != 2:
            raise ValueError(f"there must be the beginning and the end of a list for each of {n} users")
        self.indptr, self.places, self.gains, self.lists, self.candidates = indptr, places, gains, lists, candidates
        self.view = WishesView(
            n, &indptr[0], first_id(places), first_value(gains), NULL, first_id(candidates)
        )
        if n > 0:
            self.view.lists = &lists[0, 0]


def closed_form(
    *,
    WishRows wishes,
    const double[:, ::1] users,
    const double[:, ::1] items,
    double[::1] xi,
    double[::1] losses,
    int threads,
):
    """Fill in xi = 1 / (1 + t) of each wish, and each user's sum of gain log2(1 + t).

    A user costs 2 rank flops per candidate, and 2 flops for each pair of a wish and a candidate.
    """
    threads = team(threads)
    agree("users", users.shape[0], wishes.view.n)
    agree("columns of items", items.shape[1], users.shape[1])
    agree("numbers xi", xi.shape[0], wishes.places.shape[0])
    agree("losses", losses.shape[0], wishes.view.n)
    cdef Py_ssize_t user, longest = 0
    for user in range(wishes.view.n):
        longest = max(longest, <Py_ssize_t> (wishes.lists[user, 1] - wishes.lists[user, 0]))
    cdef Arena arena = Arena(NULL, 0)
    cdef double *powers = floats(&arena, longest)
    cdef Scratch scratch = Scratch(arena.used, threads)
    cdef Own own
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        powers = floats(&arena, longest)
        for user in prange(wishes.view.n, schedule="dynamic", chunksize=4):
            own = _of_user(&wishes.view, user)
            if own.wanted > 0:
                losses[user] = _close(
                    own, &users[user, 0], &items[0, 0], users.shape[1], powers, &xi[wishes.view.indptr[user]]
                )
            else:
                losses[user] = 0.0


def descend(
    *,
    DescentFactors factors,
    WishRows wishes,
    const double[::1] weights,
    const int32_t[::1] user_order,
    int draws,
    double updates,
    uint64_t seed,
):
    """Visit every wish once, on one thread, with `draws` random competitors; `updates` were made before this pass.

    A drawn competitor represents its share of the row's gradient: weight times the slope of log2(1 + 2^-m),
    which is -1 / (1 + 2^m), with weight = gain xi / ln 2 times the number of competitors over the number drawn. It is
    shortened where it would change its margin by more than 1. An update reads and writes 3 rank doubles, in about
    17 rank flops.
    """
    within("draws", draws, 0, INT32_MAX)
    agree("users", len(factors.users), wishes.view.n)
    agree("weights", weights.shape[0], wishes.places.shape[0])
    agree("users in order", user_order.shape[0], wishes.view.n)
    if factors.view.single:
        raise ValueError("the factors must be of double precision")
    cdef Py_ssize_t place, user, longest = longest_row(wishes.view.indptr, wishes.view.n)
    cdef Model model = Model(factors.view, draws)
    cdef Arena arena = Arena(NULL, 0)
    cdef int32_t *order = ints(&arena, longest)
    cdef Scratch scratch = Scratch(arena.used, 1)
    cdef const double *first_weight = first_value(weights)
    arena = scratch.share(0)
    order = ints(&arena, longest)
    with nogil:
        for place in range(user_order.shape[0]):
            user = user_order[place]
            updates = _visit_user(
                &model, _of_user(&wishes.view, user), first_weight + wishes.view.indptr[user], user,
                stream_of(seed, user), order, updates,
            )


cdef inline Own _of_user(const WishesView *wishes, Py_ssize_t user) noexcept nogil:
    """The wishes and the candidates of one user."""
    cdef int64_t first = wishes.indptr[user], begin = wishes.lists[2 * user]
    return Own(
        wishes.indptr[user + 1] - first, wishes.places + first, wishes.gains + first,
        wishes.lists[2 * user + 1] - begin, wishes.candidates + begin,
    )


cdef double _close(
    Own own, const double *u, const double *items, Py_ssize_t rank, double *powers, double *xi
) noexcept nogil:
    """Fill in xi of each wish of one user, and return the user's loss.

    Invariant of the sums: powers[k] is 2^(f_k - best), best being the score of the best candidate.
    """
    cdef double best, robust, loss = 0.0
    cdef Py_ssize_t k, row, place, n = own.n
    dot_rows_at(u, items, own.candidates, n, rank, False, powers)
    best = powers[0]
    for k in range(n):
        best = max(best, powers[k])
    for k in range(n):
        powers[k] = exp2(max(powers[k] - best, <double> -_FARTHEST))
    for row in range(own.wanted):
        place = own.places[row]
        robust = 1.0 + _logistic_sum(powers, place, 1.0 / powers[place])
        robust += _logistic_sum(powers + place + 1, n - place - 1, 1.0 / powers[place])
        xi[row] = 1.0 / robust
        loss += own.gains[row] * log2(robust)
    return loss


cdef double _visit_user(
    const Model *shared, Own own, const double *weights, Py_ssize_t user, Stream stream, int32_t *order,
    double updates,
) noexcept nogil:
    """Visit one user's wishes in random order with drawn competitors; return the number of updates so far."""
    cdef Model model = shared[0]
    cdef Py_ssize_t place, row
    cdef int32_t wish, rival
    cdef int _drawn
    shuffled(&stream, order, own.wanted)
    for place in range(own.wanted):
        row = order[place]
        wish = own.places[row]
        for _drawn in range(model.draws):
            rival = <int32_t> below(&stream, <uint32_t> (own.n - 1))
            rival += rival >= wish
            _step(&model, user, own.candidates[wish], own.candidates[rival], weights[row], updates)
            updates += 1.0
    return updates


cdef inline void _step(
    const Model *model, Py_ssize_t user, int32_t j, int32_t k, double weight, double updates
) noexcept nogil:
    """Take a gradient step on weight log2(1 + 2^-m), m = u . (v_j - v_k), and on a share of the penalty."""
    cdef const FactorsView *factors = &model.factors
    cdef double eta = step_size(factors, updates)
    cdef const double *u = <const double *> (factors.users + user * factors.row)
    cdef const double *v = <const double *> (factors.items + j * factors.row)
    cdef const double *w = <const double *> (factors.items + k * factors.row)
    cdef Difference d = of_long_difference(u, v, w, factors.rank)
    cdef double g = eta * weight / (1.0 + exp2(d.product)), change = d.square + 2.0 * dot(u, u, factors.rank)
    if not (2.0 * fabs(d.product) * g + change) * g < 0.99:  # else it is not too long, and needs no root
        g = min(g, _longest(d.product, change))
    descend_on(factors, user, j, k, eta, -g)


cdef inline double _longest(double margin, double change) noexcept nogil:
    """The g for which u + g d, v_j + g u and v_k - g u with d = v_j - v_k have a margin that differs by at most 1.

    It differs by g (|d|^2 + 2 |u|^2) + 2 g^2 m, so that g solves 2 |m| g^2 + change g = 1, change = |d|^2 + 2 |u|^2.
    """
    return 2.0 / (change + sqrt(change * change + 8.0 * fabs(margin)))
