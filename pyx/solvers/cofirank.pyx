"""CofiRank's losses of a user's scores, and the bundle method for the vector of each user.

A loss is convex in the scores f of the items that a user rated. Each function for a loss returns its value and fills
in a subgradient.
"""

# Roof of users_half, a rating in a plane: 16 * rank + 16 bytes; 4 * rank + 4 flops.
# Roof of losses, a rating: 28 bytes; 2 * rank + 4 flops; rank / 8 lines.
# Roof of item_slopes, a rating: 12 bytes; 2 * rank flops; rank / 8 + 1 lines.

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport INFINITY, NAN, fabs
from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libc.string cimport memcpy, memset

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints
from rankbench.kernels.shared.checks cimport agree, within
from rankbench.kernels.shared.lanes cimport dot, dot_any, dot_rows, dot_rows_at, read_ahead, sum_rows
from rankbench.kernels.shared.normal_equations cimport Chosen, gather, whole_lanes
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport Pattern, SparseRows, first_row, first_value, longest_row
from rankbench.kernels.shared.sorting cimport argsort, in_order
from rankbench.kernels.solvers.assignment cimport Assignment, best_places, lay_out_assignment
from rankbench.kernels.solvers.bundle cimport Planes, Support, lay_out_support, weigh_planes

cdef double _HUGE = 1e100  # scores up to here have finite sums and products with weights
cdef double _LARGE = 1e99  # no score is above _HUGE if targets are up to here
cdef double _LARGE_SQUARES = 1e190  # and their least squares up to here

cdef extern from *:
    """
    #define RANKBENCH_SLOPES_AHEAD 16

    typedef struct {
        const double *point, *rows, *targets;
        Py_ssize_t n;
        double *slopes, *plane;
    } rankbench_squares;

    /* The slopes of four rows. A sum begins with its first product, so that a zero may have another sign than a sum
       from zero on, which shows neither in the loss nor in the plane. */
    static inline __attribute__((always_inline)) void rankbench_four_slopes(
        const double *point, const double *rows, const double *targets, const Py_ssize_t width, double *out
    ) {
        rankbench_four sums[4];
        rankbench_lanes a, b;
        for (int row = 0; row < 4; row++)
            for (int part = 0; part < RANKBENCH_PARTS; part++) {
                RANKBENCH_LOAD(a, point + part * RANKBENCH_WIDTH);
                RANKBENCH_LOAD(b, rows + row * width + part * RANKBENCH_WIDTH);
                sums[row].part[part] = a * b;
            }
        for (Py_ssize_t k = 4; k < width; k += 4)
            for (int row = 0; row < 4; row++)
                rankbench_add_product(&sums[row], point + k, rows + row * width + k);
        rankbench_sums_of_four(sums[0], sums[1], sums[2], sums[3], out);
        for (int k = 0; k < 4; k += RANKBENCH_WIDTH) {
            RANKBENCH_LOAD(a, out + k);
            RANKBENCH_LOAD(b, targets + k);
            a -= b;
            RANKBENCH_STORE(out + k, a);
        }
    }

    /* Slopes wait for products, the loss for each of its terms, and the plane for slopes: so slopes are made sixteen
       rows before they are used, and all three go on side by side. */
    static inline __attribute__((always_inline)) double rankbench_squares_in_lanes(
        const rankbench_squares *of, const Py_ssize_t width
    ) {
        const double *point = of->point, *rows = of->rows, *targets = of->targets;
        double *slopes = of->slopes, terms[4], value = 0.0;
        rankbench_lanes sums[6], a, b, c, d;
        Py_ssize_t i, n = of->n;
        for (int k = 0; k < width / RANKBENCH_WIDTH; k++)
            sums[k] = (rankbench_lanes) {0};
        for (i = 0; i < RANKBENCH_SLOPES_AHEAD && i + 4 <= n; i += 4)
            rankbench_four_slopes(point, rows + i * width, targets + i, width, slopes + i);
        for (i = 0; i + 4 <= n; i += 4, rows += 4 * width) {
            const Py_ssize_t next = i + RANKBENCH_SLOPES_AHEAD;
            if (next + 4 <= n)
                rankbench_four_slopes(
                    point, rows + RANKBENCH_SLOPES_AHEAD * width, targets + next, width, slopes + next
                );
            for (int k = 0; k < 4; k += RANKBENCH_WIDTH) {
                RANKBENCH_LOAD(a, slopes + i + k);
                a = 0.5 * a * a;
                RANKBENCH_STORE(terms + k, a);
            }
            for (int k = 0; k < 4; k++)
                value += terms[k];
            for (int k = 0; k < width / RANKBENCH_WIDTH; k++) {
                RANKBENCH_LOAD(a, rows + k * RANKBENCH_WIDTH);
                RANKBENCH_LOAD(b, rows + width + k * RANKBENCH_WIDTH);
                RANKBENCH_LOAD(c, rows + 2 * width + k * RANKBENCH_WIDTH);
                RANKBENCH_LOAD(d, rows + 3 * width + k * RANKBENCH_WIDTH);
                sums[k] += (slopes[i] * a + slopes[i + 1] * b) + (slopes[i + 2] * c + slopes[i + 3] * d);
            }
        }
        for (; i < n; i++, rows += width) {
            rankbench_four products = {0};
            for (Py_ssize_t k = 0; k < width; k += 4)
                rankbench_add_product(&products, point + k, rows + k);
            slopes[i] = rankbench_sum_of_four(products) - targets[i];
            value += 0.5 * slopes[i] * slopes[i];
            for (int k = 0; k < width / RANKBENCH_WIDTH; k++) {
                RANKBENCH_LOAD(a, rows + k * RANKBENCH_WIDTH);
                sums[k] += slopes[i] * a;
            }
        }
        for (int k = 0; k < width / RANKBENCH_WIDTH; k++)
            RANKBENCH_STORE(of->plane + k * RANKBENCH_WIDTH, sums[k]);
        return value;
    }

    /* NaN, and nothing done, if the sums of the rows would not stay in registers. */
    static double rankbench_sum_squares(const rankbench_squares *of, Py_ssize_t width) {
        switch (width) {
            case 4: return rankbench_squares_in_lanes(of, 4);
            case 8: return rankbench_squares_in_lanes(of, 8);
            case 12: return rankbench_squares_in_lanes(of, 12);
        #if RANKBENCH_WIDTH == 4
            case 16: return rankbench_squares_in_lanes(of, 16);
            case 20: return rankbench_squares_in_lanes(of, 20);
            case 24: return rankbench_squares_in_lanes(of, 24);
        #endif
        }
        return NAN;
    }
    """
    ctypedef struct Squares "rankbench_squares":
        const double *point
        const double *rows
        const double *targets
        Py_ssize_t n
        double *slopes
        double *plane
    # the loss of least squares at the point, with its slopes, and with its plane, the sum of slope times row
    double _sum_squares "rankbench_sum_squares" (const Squares *of, Py_ssize_t width) noexcept nogil

cdef enum:
    AHEAD = 32  # raters whose slopes are asked for in time
    IN_VAIN = 20  # planes that neither raise the bound nor lower the objective

cpdef enum Loss:
    NDCG
    ORDINAL
    REGRESSION

cdef struct User:
    # One user's rows; what they hold depends on the loss, as `Problem` says.
    Loss loss
    Py_ssize_t n
    const int32_t *items
    const double *targets
    const double *anchors
    double scale
    bint squares  # the loss is that of least squares, and no target is large

cdef struct Search:
    # What decides when a user's vector is good enough.
    Py_ssize_t rank
    double lam
    double tolerance  # relative duality gap
    Py_ssize_t most_planes

cdef struct Found:
    double objective
    double gap

cdef struct Memory:
    # Scratch memory of one thread.
    Assignment assignment
    double *f  # scores of the user's items
    double *slopes
    double *counts  # per level of rating
    double *rows  # the vectors of the user's items, with zeros behind them as far as lanes go; so are planes and point
    double *planes
    double *products  # of planes
    double *offsets
    double *beta  # weights of the planes
    Support support
    double *point  # where the loss is looked at
    int32_t *places
    int32_t *order
    int32_t *scratch


cdef class Problem:
    """A loss with all that it needs to know about the ratings: row u of `rows` holds user u's items with their targets.

    - ndcg: targets are gains over the ideal DCG, anchors the mean weight of the item's places in the orders that are
      right, scales 1, or 0 for a user with nothing to gain. Place p has weights[p] and, if it is one of the first,
      discounts[p].
    - ordinal: targets are the numbers of the levels of rating, scales 1 / pairs, or 0 for a user without pairs.
    - regression: targets are the ratings.
    """

    cdef Loss loss
    cdef SparseRows rows
    cdef const double[::1] anchors
    cdef const double[::1] scales
    cdef const double[::1] weights
    cdef const double[::1] discounts
    cdef Py_ssize_t longest  # the most rows of any user
    cdef bint squares  # as of a `User`

    def __init__(
        self,
        *,
        Loss loss,
        SparseRows rows,
        const double[::1] anchors,
        const double[::1] scales,
        const double[::1] weights,
        const double[::1] discounts,
    ):
        """Take the arrays, without a copy."""
        if loss not in (NDCG, ORDINAL, REGRESSION):
            raise ValueError(f"loss={<int64_t> loss} is the code of no loss")
        if anchors.shape[0] != rows.values.shape[0] or scales.shape[0] != rows.view.n:
            raise ValueError("there must be an anchor for each rating and a scale for each user")
        self.longest = longest_row(rows.view.indptr, rows.view.n)
        if weights.shape[0] < self.longest:
            raise ValueError("there must be a weight for each place")
        numbers = np.concatenate([
            np.asarray(rows.values), np.asarray(anchors), np.asarray(scales), np.asarray(weights), np.asarray(discounts)
        ])
        if not np.abs(numbers).max(initial=0.0) <= _HUGE:
            raise ValueError(f"targets, anchors, scales, weights and discounts must be numbers up to {_HUGE:g}")
        self.loss, self.rows = loss, rows
        self.anchors, self.scales, self.weights, self.discounts = anchors, scales, weights, discounts
        self.squares = loss == REGRESSION and np.abs(rows.values).max(initial=0.0) <= _LARGE


def losses(
    *,
    Problem problem,
    const double[:, ::1] users,
    const double[:, ::1] factors,
    double[::1] out,
    double[::1] slopes,
    int threads,
):
    """Fill `out` with each user's loss, and `slopes` with its slope along each of the user's scores."""
    threads = team(threads)
    agree("users", users.shape[0], problem.rows.view.n)
    agree("losses", out.shape[0], users.shape[0])
    agree("slopes", slopes.shape[0], problem.rows.values.shape[0])
    cdef Py_ssize_t rank = factors.shape[1], first
    cdef const int64_t *indptr = problem.rows.view.indptr
    cdef int user
    _check_ranks(users, factors)
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory own = _lay_out(&arena, problem, rank, 0)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        own = _lay_out(&arena, problem, rank, 0)
        for user in prange(<int> users.shape[0], schedule="dynamic", chunksize=8):
            first = indptr[user]
            out[user] = 0.0
            if indptr[user + 1] > first:
                out[user] = _loss_at(
                    _of_user(problem, user), &users[user, 0], &factors[0, 0], rank, &own, &slopes[first]
                )


def users_half(
    *,
    Problem problem,
    double[:, ::1] users,
    const double[:, ::1] factors,
    double lam,
    double tolerance,
    int most_planes,
    int threads,
) -> tuple[Floats, Floats]:
    """Minimise loss(u) + lam/2 |u|^2 for each user, from the u in `users` and in place; objectives and duality gaps."""
    threads = team(threads)
    within("most_planes", most_planes, 1, INT32_MAX)
    agree("users", users.shape[0], problem.rows.view.n)
    objectives, gaps = np.zeros(users.shape[0]), np.zeros(users.shape[0])
    cdef double[::1] objective = objectives, gap = gaps
    cdef const int64_t *indptr = problem.rows.view.indptr
    cdef Search search = Search(factors.shape[1], lam, tolerance, most_planes)
    cdef Found found
    cdef int user
    _check_ranks(users, factors)
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory own = _lay_out(&arena, problem, search.rank, most_planes)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        own = _lay_out(&arena, problem, search.rank, most_planes)
        for user in prange(<int> users.shape[0], schedule="dynamic", chunksize=8):
            if indptr[user + 1] > indptr[user]:
                found = _bundle(_of_user(problem, user), &users[user, 0], &factors[0, 0], search, &own)
                objective[user] = found.objective
                gap[user] = found.gap
    return objectives, gaps


def item_slopes(
    *,
    Pattern raters,
    const int64_t[::1] places,
    const double[::1] slopes,
    const double[:, ::1] users,
    double[:, ::1] out,
    int threads,
):
    """Fill out[item] with the sum over the item's raters of slope times the rater's vector.

    `places` says where the slope of each entry of `raters` stands in `slopes`, which is in the order of the users.
    """
    threads = team(threads)
    agree("rows of out", out.shape[0], raters.view.n)
    agree("columns of out", out.shape[1], users.shape[1])
    agree("places", places.shape[0], raters.columns.shape[0])
    cdef const int64_t *at = &places[0] if places.shape[0] else NULL
    cdef Py_ssize_t item
    cdef int64_t first
    for item in prange(out.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        first = raters.view.indptr[item]
        _sum_raters(
            at + first, first_value(slopes), raters.view.columns + first, raters.view.indptr[item + 1] - first,
            first_row(users), users.shape[1], &out[item, 0],
        )


cdef inline void _sum_raters(
    const int64_t *places, const double *slopes, const int32_t *raters, Py_ssize_t n, const double *users,
    Py_ssize_t rank, double *out
) noexcept nogil:
    """out = sum over n raters of slopes[place] times the rater's vector, four raters at a time."""
    cdef const double *one
    cdef const double *two
    cdef const double *three
    cdef const double *four
    cdef double a, b, c, d
    cdef Py_ssize_t i, k, whole = n - n % 4
    for k in range(rank):
        out[k] = 0.0
    for i in range(0, whole, 4):
        for k in range(i + AHEAD, min(i + AHEAD + 4, n)):
            read_ahead(slopes + places[k], 1)
        a, b, c, d = slopes[places[i]], slopes[places[i + 1]], slopes[places[i + 2]], slopes[places[i + 3]]
        one, two = users + raters[i] * rank, users + raters[i + 1] * rank
        three, four = users + raters[i + 2] * rank, users + raters[i + 3] * rank
        for k in range(rank):
            out[k] += (a * one[k] + b * two[k]) + (c * three[k] + d * four[k])
    for i in range(whole, n):
        a, one = slopes[places[i]], users + raters[i] * rank
        for k in range(rank):
            out[k] += a * one[k]


def weigh(
    *, const double[:, ::1] products, const double[::1] offsets, double lam, double tolerance, double[::1] beta
) -> float:
    """Optimise the weights of the planes in `beta`; the dual's value, a lower bound of the objective."""
    if min(products.shape[0], products.shape[1], beta.shape[0]) < offsets.shape[0]:
        raise ValueError(f"there must be room for {offsets.shape[0]} planes in products and beta")
    cdef Planes planes = Planes(offsets.shape[0], &products[0, 0], products.shape[1], &offsets[0], 1.0 / lam)
    cdef Arena arena = Arena(NULL, 0)
    cdef Support support = lay_out_support(&arena, planes.n)
    cdef Scratch scratch = Scratch(arena.used, 1)
    arena = scratch.share(0)
    support = lay_out_support(&arena, planes.n)
    return weigh_planes(&planes, tolerance, &beta[0], &support)


cdef int _check_ranks(const double[:, ::1] users, const double[:, ::1] factors) except -1:
    """Raise ValueError if the vectors of users and items differ in length."""
    if users.shape[1] != factors.shape[1]:
        raise ValueError(f"users have rank {users.shape[1]}, items have rank {factors.shape[1]}")
    return 0


cdef inline User _of_user(Problem problem, Py_ssize_t user) noexcept nogil:
    """The rows of one user."""
    cdef Py_ssize_t first = problem.rows.view.indptr[user]
    return User(
        problem.loss, problem.rows.view.indptr[user + 1] - first, problem.rows.view.columns + first,
        problem.rows.view.values + first, first_value(problem.anchors) + first, problem.scales[user],
        problem.squares,
    )


cdef Memory _lay_out(Arena *arena, Problem problem, Py_ssize_t rank, Py_ssize_t planes) noexcept nogil:
    """Room for the user with the most rows, and for so many planes."""
    cdef Py_ssize_t n = problem.longest, width = whole_lanes(rank)
    return Memory(
        lay_out_assignment(
            arena, n, first_value(problem.weights), first_value(problem.discounts), problem.discounts.shape[0]
        ),
        floats(arena, n), floats(arena, n), floats(arena, n + 1), floats(arena, width * n),
        floats(arena, planes * width), floats(arena, planes * planes), floats(arena, planes), floats(arena, planes),
        lay_out_support(arena, planes), floats(arena, width), ints(arena, n), ints(arena, n), ints(arena, n),
    )


# ---- losses ----


cdef double _loss_at(
    User user, const double *u, const double *factors, Py_ssize_t rank, Memory *own, double *slopes
) noexcept nogil:
    """The loss of the scores u . m_j."""
    cdef Py_ssize_t j
    if rank % 4 == 0:
        dot_rows_at(u, factors, user.items, user.n, rank, False, own.f)
    else:
        for j in range(user.n):
            own.f[j] = dot_any(u, factors + user.items[j] * rank, rank)
    return _loss(user, own, slopes)


cdef double _loss(User user, Memory *own, double *slopes) noexcept nogil:
    """The loss of the scores in `own.f`; NaN where one of them is NaN or huge, since no order of such is the best."""
    cdef Py_ssize_t j, wrong = 0
    for j in range(user.n):  # without an early end, so that several are looked at at a time
        wrong += not fabs(own.f[j]) <= _HUGE
    if wrong:
        memset(slopes, 0, user.n * sizeof(double))
        return NAN
    if user.loss == NDCG:
        return _ndcg(user, own, slopes)
    if user.loss == ORDINAL:
        return _ordinal(user, own, slopes)
    if user.loss == REGRESSION:
        return _regression(user, own, slopes)
    return NAN  # no loss


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

    One sweep from below, in which each better item meets all worse ones that are not a margin of 1 below it, and one
    from above, in which each worse item meets the better ones.
    """
    cdef Py_ssize_t n = user.n, j
    cdef double violated
    in_order(own.order, n)
    for j in range(n):
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
    """Take from each better item, or give to each worse one, the number of its pairs within the margin; their sum.

    Invariant: counts[level] is how many items of this level the sweep has not passed; those passed are a margin of 1
    or more away from the item at hand, and so from all that follow.
    """
    cdef Py_ssize_t n = user.n, place, passed = 0, level, mine
    cdef int32_t j, other
    cdef double sum_ = 0.0, pairs
    for place in range(n + 1):
        own.counts[place] = 0.0
    for place in range(n):
        level = <Py_ssize_t> user.targets[place]
        own.counts[level] += 1.0
    for place in range(n):
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


cdef Found _bundle(User user, double *u, const double *factors, Search search, Memory *own) noexcept nogil:
    """Move u to the point of least objective that is found; that objective, and its duality gap.

    Each turn adds a plane where the maximum of the planes plus lam/2 |w|^2 has its minimum, until the gap is small
    enough, or rounding keeps it.
    Invariant: the planes lie below the loss, so the highest value of the dual, `bound`, lies below the minimum; u is
    the best point seen, and `best` its objective.
    """
    cdef double value, best, bound = -INFINITY
    cdef Py_ssize_t rank = search.rank, width = whole_lanes(rank), k, in_vain = 0
    cdef Planes planes = Planes(1, own.products, search.most_planes, own.offsets, 1.0 / search.lam)
    gather(factors, Chosen(user.items, user.n, rank), rank, own.rows, width)
    memset(own.point, 0, width * sizeof(double))
    memcpy(own.point, u, rank * sizeof(double))
    own.beta[0], own.support.n = 1.0, 0
    best = _add_plane(user, search, 0, own)
    while True:
        value = weigh_planes(
            &planes, 0.1 * max(search.tolerance * fabs(best), min(fabs(best), best - bound)), own.beta, &own.support
        )
        if value > bound:
            bound = value
            in_vain = 0
        if best - bound <= search.tolerance * fabs(best) or planes.n == search.most_planes or in_vain == IN_VAIN:
            break
        sum_rows(own.beta, own.planes, planes.n, width, own.point)
        for k in range(width):
            own.point[k] /= -search.lam
        value = _add_plane(user, search, planes.n, own)
        own.beta[planes.n] = 0.0
        planes.n += 1
        in_vain += 1
        if value < best:
            best = value
            in_vain = 0
            memcpy(u, own.point, rank * sizeof(double))
    return Found(best, max(0.0, best - bound))


cdef double _add_plane(User user, Search search, Py_ssize_t at, Memory *own) noexcept nogil:
    """Add the plane that touches the loss at the point, with its products with those before; the objective there."""
    cdef Py_ssize_t width = whole_lanes(search.rank), stride = search.most_planes, t
    cdef double *plane = own.planes + at * width
    cdef double *products = own.products + at * stride
    cdef double value = INFINITY
    cdef Squares squares = Squares(own.point, own.rows, user.targets, user.n, own.slopes, plane)
    if user.squares:
        value = _sum_squares(&squares, width)
    if not value <= _LARGE_SQUARES:
        dot_rows(own.point, own.rows, user.n, width, own.f)
        value = _loss(user, own, own.slopes)
        sum_rows(own.slopes, own.rows, user.n, width, plane)
    own.offsets[at] = value - dot(plane, own.point, width)
    dot_rows(plane, own.planes, at + 1, width, products)
    for t in range(at):
        own.products[t * stride + at] = products[t]
    return value + 0.5 * search.lam * dot(own.point, own.point, width)
