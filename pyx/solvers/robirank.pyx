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
from rankbench.kernels.methods.turns cimport SEATS, apart
from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints
from rankbench.kernels.shared.checks cimport agree, within
from rankbench.kernels.shared.draws cimport Stream, below, shuffled, stream_of
from rankbench.kernels.shared.lanes cimport Difference, dot, dot_rows_at, fetch_both, of_long_difference, read_ahead
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

    /* A step of each of four users. */
    typedef struct {
        Py_ssize_t users[RANKBENCH_SEATS];
        char *rows[3][RANKBENCH_SEATS];
        double weights[RANKBENCH_SEATS], etas[RANKBENCH_SEATS];
        double margins[RANKBENCH_SEATS], changes[RANKBENCH_SEATS], lengths[RANKBENCH_SEATS];
        int32_t ring[3 * RANKBENCH_SEATS];
    } rankbench_steps;

    /* u . (v - w), |v - w|^2 and |u|^2 in four lanes each, with the bits of `of_long_difference` and `dot`. */
    typedef struct { rankbench_four margin, apart, length; } rankbench_measures;

    static inline rankbench_measures rankbench_measures_of(const rankbench_steps *steps, int seat, Py_ssize_t n) {
        const double *u = (const double *) steps->rows[0][seat], *v = (const double *) steps->rows[1][seat];
        const double *w = (const double *) steps->rows[2][seat];
        rankbench_measures even = {{{{0}}}}, odd = {{{{0}}}};
        Py_ssize_t k;
        for (k = 0; k + 8 <= n; k += 8) {
            rankbench_add_difference(&even.margin, u + k, v + k, w + k);
            rankbench_add_difference(&odd.margin, u + k + 4, v + k + 4, w + k + 4);
            rankbench_add_square(&even.apart, v + k, w + k);
            rankbench_add_square(&odd.apart, v + k + 4, w + k + 4);
            rankbench_add_product(&even.length, u + k, u + k);
            rankbench_add_product(&even.length, u + k + 4, u + k + 4);
        }
        if (k < n) {
            rankbench_add_difference(&even.margin, u + k, v + k, w + k);
            rankbench_add_square(&even.apart, v + k, w + k);
            rankbench_add_product(&even.length, u + k, u + k);
        }
        for (int part = 0; part < RANKBENCH_PARTS; part++) {
            even.margin.part[part] += odd.margin.part[part];
            even.apart.part[part] += odd.apart.part[part];
        }
        return even;
    }

    /* The sizes and lengths of four steps at once; whether a length may be too much. */
    static inline int rankbench_measure(
        rankbench_steps *steps, Py_ssize_t n, double step, double decay, double updates
    ) {
        static const double after[RANKBENCH_SEATS] = {0.0, 1.0, 2.0, 3.0};
        const rankbench_measures a = rankbench_measures_of(steps, 0, n), b = rankbench_measures_of(steps, 1, n);
        const rankbench_measures c = rankbench_measures_of(steps, 2, n), d = rankbench_measures_of(steps, 3, n);
        double squares[RANKBENCH_SEATS];
        rankbench_flags far = {0};
        rankbench_sums_of_four(a.margin, b.margin, c.margin, d.margin, steps->margins);
        rankbench_sums_of_four(a.apart, b.apart, c.apart, d.apart, steps->changes);
        rankbench_sums_of_four(a.length, b.length, c.length, d.length, squares);
        for (int part = 0; part < RANKBENCH_PARTS; part++) {
            const Py_ssize_t k = part * RANKBENCH_WIDTH;
            rankbench_lanes margin, change, square, weight, eta, g;
            RANKBENCH_LOAD(margin, steps->margins + k);
            RANKBENCH_LOAD(change, steps->changes + k);
            RANKBENCH_LOAD(square, squares + k);
            RANKBENCH_LOAD(weight, steps->weights + k);
            RANKBENCH_LOAD(eta, after + k);
            eta = step / (1.0 + decay * (updates + eta));
            g = eta * weight / (1.0 + rankbench_powers_of(rankbench_exponents_of_two(margin)));
            change += 2.0 * square;
            margin = (rankbench_lanes) ((rankbench_flags) margin & ~(rankbench_flags) rankbench_all(-0.0));
            far |= ~((2.0 * margin * g + change) * g < 0.99);
            RANKBENCH_STORE(steps->changes + k, change);
            RANKBENCH_STORE(steps->lengths + k, g);
            RANKBENCH_STORE(steps->etas + k, eta);
        }
        return rankbench_any(far);
    }
    """
    double _logistic_sum "rankbench_logistic_sum" (
        const double *powers, Py_ssize_t n, double scale, double *product
    ) noexcept nogil
    ctypedef struct Steps "rankbench_steps":
        Py_ssize_t users[SEATS]
        char *rows[3][SEATS]  # u, v and w of the user, a wish and a competitor
        double weights[SEATS]
        double etas[SEATS]  # the step sizes
        double margins[SEATS]
        double changes[SEATS]  # |v - w|^2 + 2 |u|^2
        double lengths[SEATS]  # the step sizes times the slopes
        int32_t ring[3 * SEATS]  # the wishes, the competitors, and the wishes again
    bint _measure "rankbench_measure" (
        Steps *steps, Py_ssize_t n, double step, double decay, double updates
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

cdef struct Seat:
    # A user whose wishes are visited.
    Own own
    Py_ssize_t user
    const double *weights  # of the wishes
    Stream stream
    int32_t *order  # of the wishes
    Py_ssize_t place  # in this order
    int drawn  # competitors of the wish there


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

    Four users are visited in turns, an update of each, and one who has no wishes left makes room for the next in the
    order. The updates of one user wait for each other; those of four are computed at once, unless two share an item,
    with the bits that they have one after another.

    A drawn competitor represents its share of the row's gradient: weight times the slope of log2(1 + 2^-m),
    which is -1 / (1 + 2^m), with weight = gain xi / ln 2 times the number of competitors over the number drawn. It is
    shortened where it would change its margin by more than 1. An update reads and writes 3 rank doubles, in about
    17 rank flops.
    """
    within("draws", draws, 1, INT32_MAX)
    agree("users", len(factors.users), wishes.view.n)
    agree("weights", weights.shape[0], wishes.places.shape[0])
    agree("users in order", user_order.shape[0], wishes.view.n)
    if factors.view.single:
        raise ValueError("the factors must be of double precision")
    cdef Py_ssize_t place, longest = longest_row(wishes.view.indptr, wishes.view.n), seat = 0
    cdef Seat seats[SEATS]
    cdef Arena arena = Arena(NULL, 0)
    _make_seats(&arena, longest, seats)
    cdef Scratch scratch = Scratch(arena.used, 1)
    arena = scratch.share(0)
    _make_seats(&arena, longest, seats)
    with nogil:
        for place in range(user_order.shape[0]):
            while seats[seat].place < seats[seat].own.wanted:
                seat += 1
                if seat == SEATS:
                    updates = _visit_four(&factors.view, seats, draws, updates)
                    seat = 0
            _begin(&seats[seat], &wishes.view, user_order[place], first_value(weights), seed)
        for seat in range(SEATS):
            updates = _visit_rest(&factors.view, &seats[seat], draws, updates)


cdef void _make_seats(Arena *arena, Py_ssize_t longest, Seat *seats) noexcept nogil:
    """Seats that nobody has taken, with room for the order of so many wishes."""
    cdef Py_ssize_t k
    for k in range(SEATS):
        seats[k].order = ints(arena, longest)
        seats[k].place = seats[k].own.wanted = 0


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


cdef inline void _begin(
    Seat *seat, const WishesView *wishes, Py_ssize_t user, const double *weights, uint64_t seed
) noexcept nogil:
    """Let a user take this seat, with the wishes in random order; while it is drawn, their arrays are asked for."""
    seat.own = _of_user(wishes, user)
    seat.user, seat.weights, seat.place, seat.drawn = user, weights + wishes.indptr[user], 0, 0
    seat.stream = stream_of(seed, user)
    read_ahead(seat.weights, seat.own.wanted)
    read_ahead(<const double *> seat.own.places, seat.own.wanted // 2)
    read_ahead(<const double *> seat.own.candidates, min(seat.own.n, 2 * seat.own.wanted) // 2)
    shuffled(&seat.stream, seat.order, seat.own.wanted)


cdef double _visit_four(const FactorsView *shared, Seat *seats, int draws, double updates) noexcept nogil:
    """Visit wishes of four users in turns, until one of them has none left; return the number of updates so far.

    The next steps are drawn after the lengths of these, for which the moves wait: draws take no time of their own.
    """
    cdef FactorsView factors = shared[0]
    cdef Steps steps[2]
    cdef Steps *here
    cdef Py_ssize_t turns = INT32_MAX, turn, k
    cdef bint together
    for k in range(SEATS):
        turns = min(turns, seats[k].own.wanted - seats[k].place)
    turns *= draws
    _draw_four(&factors, seats, draws, steps)
    for turn in range(turns):
        here = steps + (turn & 1)
        together = apart(here.ring)
        if together:
            _measure_four(&factors, here, updates)
        else:
            for k in range(SEATS):
                _take(&factors, here, k, updates + k)
        if turn + 1 < turns:
            _draw_four(&factors, seats, draws, steps + 1 - (turn & 1))
        if together:
            for k in range(SEATS):
                _move(&factors, here, k)
        updates += SEATS
    return updates


cdef double _visit_rest(const FactorsView *factors, Seat *seat, int draws, double updates) noexcept nogil:
    """Visit the wishes that a user has left; return the number of updates so far."""
    cdef Steps steps
    while seat.place < seat.own.wanted:
        _draw(factors, seat, draws, &steps, 0)
        _take(factors, &steps, 0, updates)
        updates += 1.0
    return updates


cdef inline void _draw_four(const FactorsView *factors, Seat *seats, int draws, Steps *steps) noexcept nogil:
    """The next step of each user."""
    cdef Py_ssize_t k
    for k in range(SEATS):
        _draw(factors, &seats[k], draws, steps, k)


cdef inline void _draw(
    const FactorsView *factors, Seat *seat, int draws, Steps *steps, Py_ssize_t k
) noexcept nogil:
    """The next step of one user: a wish against a drawn competitor, whose rows are asked for."""
    cdef Py_ssize_t row = seat.order[seat.place]
    cdef int32_t wish = seat.own.places[row], rival = <int32_t> below(&seat.stream, <uint32_t> (seat.own.n - 1))
    cdef int32_t better, worse
    rival += rival >= wish
    better, worse = seat.own.candidates[wish], seat.own.candidates[rival]
    steps.ring[k] = steps.ring[2 * SEATS + k] = better
    steps.ring[SEATS + k] = worse
    steps.weights[k] = seat.weights[row]
    steps.users[k] = seat.user
    steps.rows[0][k] = factors.users + seat.user * factors.row
    steps.rows[1][k] = factors.items + better * factors.row
    steps.rows[2][k] = factors.items + worse * factors.row
    fetch_both(<double *> steps.rows[1][k], <double *> steps.rows[2][k], factors.rank)
    seat.drawn += 1
    if seat.drawn == draws:
        seat.place, seat.drawn = seat.place + 1, 0


cdef inline void _take(const FactorsView *factors, Steps *steps, Py_ssize_t k, double updates) noexcept nogil:
    """Take a gradient step on weight log2(1 + 2^-m), m = u . (v - w), and on a share of the penalty."""
    cdef const double *u = <const double *> steps.rows[0][k]
    cdef Difference d = of_long_difference(
        u, <const double *> steps.rows[1][k], <const double *> steps.rows[2][k], factors.rank
    )
    cdef double eta = step_size(factors, updates), g = eta * steps.weights[k] / (1.0 + power_of_two(d.product))
    steps.lengths[k] = _bounded(g, d.product, d.square + 2.0 * dot(u, u, factors.rank))
    steps.etas[k] = eta
    _move(factors, steps, k)


cdef inline void _measure_four(const FactorsView *factors, Steps *steps, double updates) noexcept nogil:
    """The lengths of four steps that share no vector."""
    cdef Py_ssize_t k
    if _measure(steps, factors.rank, factors.rates.step, factors.rates.decay, updates):
        for k in range(SEATS):
            steps.lengths[k] = _bounded(steps.lengths[k], steps.margins[k], steps.changes[k])


cdef inline void _move(const FactorsView *factors, const Steps *steps, Py_ssize_t k) noexcept nogil:
    """Take a step of known length."""
    descend_on(
        factors, steps.users[k], steps.ring[k], steps.ring[SEATS + k], steps.etas[k], -steps.lengths[k]
    )


cdef inline double _bounded(double g, double margin, double change) noexcept nogil:
    """g, or less if u + g d, v + g u and w - g u with d = v - w could have a margin that differs by more than 1.

    It differs by g (|d|^2 + 2 |u|^2) + 2 g^2 m, so that the longest g solves 2 |m| g^2 + change g = 1, where change is
    |d|^2 + 2 |u|^2.
    """
    if (2.0 * fabs(margin) * g + change) * g < 0.99:  # it is not too long, and needs no root
        return g
    return min(g, 2.0 / (change + sqrt(change * change + 8.0 * fabs(margin))))
