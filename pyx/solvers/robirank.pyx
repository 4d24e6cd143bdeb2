"""RobiRank's robust loss with its auxiliary variables in closed form, and stochastic descent with these fixed.

A wish is an item j that user i has rated. It competes with the candidates k of its list:
t_ij = sum_k log2(1 + 2^(f_ik - f_ij)). The closed form uses all candidates, the descent a few drawn ones.
"""

# Roof of closed_form by pairs, a wish and a candidate: 8 bytes; 3 flops.
# Roof of closed_form by candidates, a candidate: 4 bytes; 2 * rank + 40 flops; rank / 8 lines.
# Roof of closed_form by wishes, a wish: 16 bytes; 100 flops.
# Roof of descend, an update: 4 bytes; 17 * rank + 30 flops; rank / 4 + 2 lines; 1 calls.

from cython.parallel cimport parallel, prange
from libc.math cimport fabs, sqrt
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint32_t, uint64_t

from rankbench.kernels.methods.pairwise cimport DescentFactors, FactorsView, descend_on, step_size
from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints
from rankbench.kernels.shared.checks cimport agree, within
from rankbench.kernels.shared.draws cimport Stream, below, shuffled, stream_of
from rankbench.kernels.shared.lanes cimport Difference, dot, dot_rows_at, of_long_difference
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.powers cimport binary_logs, power_of_two, powers_of_two
from rankbench.kernels.shared.rows cimport count_rows, first_id, first_value, longest_row

cdef extern from *:
    """
    #define RANKBENCH_FULL 0x1p125

    /* Takes the logarithms of four products to one sum, and begins anew. */
    static void rankbench_take_logs(rankbench_four *products, double *total) {
        rankbench_four logs;
        for (int part = 0; part < RANKBENCH_PARTS; part++) {
            logs.part[part] = rankbench_binary_logs(products->part[part]);
            products->part[part] = rankbench_all(1.0);
        }
        *total += rankbench_sum_of_four(logs);
    }

    /* ((first second) (third fourth)) lane */
    static inline double rankbench_product_of_four(rankbench_four products) {
        const double *lanes = (const double *) &products;
        return (lanes[0] * lanes[1]) * (lanes[2] * lanes[3]);
    }

    /* sum_k log2(1 + powers_k scale), as the logarithm of a product: one multiplication per term, and few logarithms.

       Eight products are computed side by side. A factor is at most 1 + 2^500, and the logarithm of a product is taken
       once it is above 2^125, so that none gets near 2^1024, nor does the product of all eight at the end, which is
       given back in `product`. The number of terms is a multiple of eight. */
    static inline double rankbench_logistic_sum(const double *powers, Py_ssize_t n, double scale, double *product) {
        rankbench_four one, two;
        double total = 0.0;
        for (int part = 0; part < RANKBENCH_PARTS; part++)
            one.part[part] = two.part[part] = rankbench_all(1.0);
        for (Py_ssize_t k = 0; k < n; k += 8) {
            rankbench_flags full = {0};
            for (int part = 0; part < RANKBENCH_PARTS; part++) {
                rankbench_lanes v, w;
                RANKBENCH_LOAD(v, powers + k + part * RANKBENCH_WIDTH);
                RANKBENCH_LOAD(w, powers + k + 4 + part * RANKBENCH_WIDTH);
                one.part[part] *= 1.0 + v * scale;
                two.part[part] *= 1.0 + w * scale;
                full |= (one.part[part] > RANKBENCH_FULL) | (two.part[part] > RANKBENCH_FULL);
            }
            if (rankbench_any(full)) {
                rankbench_take_logs(&one, &total);
                rankbench_take_logs(&two, &total);
            }
        }
        *product = rankbench_product_of_four(one) * rankbench_product_of_four(two);
        return total;
    }
    """
    double _logistic_sum "rankbench_logistic_sum" (
        const double *powers, Py_ssize_t n, double scale, double *product
    ) noexcept nogil

cdef enum:
    _TERMS = 8  # a sum of logarithms has a multiple of so many

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

cdef struct Memory:
    # Scratch memory of one thread.
    double *powers  # of each candidate, and zeros up to a multiple of _TERMS
    double *products  # of each wish
    double *sums  # of each wish

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
    cdef Memory memory = _lay_out(&arena, longest, longest_row(wishes.view.indptr, wishes.view.n))
    cdef Scratch scratch = Scratch(arena.used, threads)
    cdef Own own
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out(&arena, longest, longest_row(wishes.view.indptr, wishes.view.n))
        for user in prange(wishes.view.n, schedule="dynamic", chunksize=4):
            own = _of_user(&wishes.view, user)
            if own.wanted > 0:
                losses[user] = _close(
                    own, &users[user, 0], &items[0, 0], users.shape[1], memory, &xi[wishes.view.indptr[user]]
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


cdef Memory _lay_out(Arena *arena, Py_ssize_t candidates, Py_ssize_t wishes) noexcept nogil:
    """Room for a list of so many candidates, and for so many wishes."""
    return Memory(floats(arena, candidates + _TERMS), floats(arena, wishes), floats(arena, wishes))


cdef double _close(
    Own own, const double *u, const double *items, Py_ssize_t rank, Memory memory, double *xi
) noexcept nogil:
    """Fill in xi of each wish of one user, and return the user's loss.

    A wish is among its own candidates: log2(1 + 1) is the 1 of 1 + t. Invariant of the sums: powers[k] is
    2^(f_k - best), best being the score of the best candidate.
    """
    cdef double best, loss = 0.0
    cdef double *powers = memory.powers
    cdef Py_ssize_t k, row, n = own.n
    dot_rows_at(u, items, own.candidates, n, rank, False, powers)
    best = powers[0]
    for k in range(n):
        best = max(best, powers[k])
    powers_of_two(powers, best, n, powers)
    for k in range(n, n + _TERMS):
        powers[k] = 0.0
    for row in range(own.wanted):
        memory.sums[row] = _logistic_sum(powers, n, 1.0 / powers[own.places[row]], &memory.products[row])
    binary_logs(memory.products, own.wanted, memory.products)
    for row in range(own.wanted):
        memory.sums[row] += memory.products[row]
        xi[row] = 1.0 / memory.sums[row]
    binary_logs(memory.sums, own.wanted, memory.sums)
    for row in range(own.wanted):
        loss += own.gains[row] * memory.sums[row]
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
    cdef double g = eta * weight / (1.0 + power_of_two(d.product)), change = d.square + 2.0 * dot(u, u, factors.rank)
    if not (2.0 * fabs(d.product) * g + change) * g < 0.99:  # else it is not too long, and needs no root
        g = min(g, _longest(d.product, change))
    descend_on(factors, user, j, k, eta, -g)


cdef inline double _longest(double margin, double change) noexcept nogil:
    """The g for which u + g d, v_j + g u and v_k - g u with d = v_j - v_k have a margin that differs by at most 1.

    It differs by g (|d|^2 + 2 |u|^2) + 2 g^2 m, so that g solves 2 |m| g^2 + change g = 1, change = |d|^2 + 2 |u|^2.
    """
    return 2.0 / (change + sqrt(change * change + 8.0 * fabs(margin)))
