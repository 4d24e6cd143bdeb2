"""Loss, gradient and curvature of a global ranking, a model with one score per item.

The comparisons of all users are first gathered into a tournament, a symmetric sparse matrix: row j lists each opponent
k of item j once, with the numbers of wins and losses of j against k. Each item then sums over its own row, so that no
two threads write to the same memory. The cost is linear in the number of distinct pairs, not of comparisons.
"""

# Roof of sweep, an opponent of an item: 28 bytes; 72 flops.
# Roof of curvature_times, an opponent of an item: 12 bytes; 3 flops.

import numpy as np

from cython.parallel cimport prange
from libc.string cimport memcpy
from libc.stdint cimport int32_t, int64_t

from rankbench.kernels.shared.arena cimport Arena, Scratch, ints
from rankbench.kernels.shared.checks cimport above_ids, agree
from rankbench.kernels.shared.losses cimport MARGINS, Loss, Outcomes, Parabolas, known_loss, parabolas_of
from rankbench.kernels.shared.parallel cimport team
from rankbench.kernels.shared.rows cimport first_id, first_value

cdef extern from *:
    """
    typedef struct { const double *curvatures; const int32_t *opponents; double own; const double *others; }
        rankbench_bends;

    /* Adds c_k (p_j - p_k) for the four opponents from `at` on, each to a lane of its own. */
    static inline void rankbench_add_bends(rankbench_four *sum, const rankbench_bends *of, Py_ssize_t at) {
        const int32_t *k = of->opponents + at;
        for (int part = 0; part < RANKBENCH_PARTS; part++, k += RANKBENCH_WIDTH, at += RANKBENCH_WIDTH) {
            rankbench_lanes curvatures, others;
            RANKBENCH_LOAD(curvatures, of->curvatures + at);
            for (int lane = 0; lane < RANKBENCH_WIDTH; lane++)
                others[lane] = of->others[k[lane]];
            sum->part[part] += curvatures * (of->own - others);
        }
    }

    /* sum_k c_k (p_j - p_k) over n opponents: eight at a time, then four, then the rest in order. */
    static inline double rankbench_sum_of_bends(rankbench_bends of, Py_ssize_t n) {
        rankbench_four even = {0}, odd = {0};
        double rest = 0.0;
        Py_ssize_t at = 0;
        for (; at + 8 <= n; at += 8) {
            rankbench_add_bends(&even, &of, at);
            rankbench_add_bends(&odd, &of, at + 4);
        }
        if (at + 4 <= n) {
            rankbench_add_bends(&even, &of, at);
            at += 4;
        }
        for (; at < n; at++)
            rest += of.curvatures[at] * (of.own - of.others[of.opponents[at]]);
        return rankbench_sum_of_eight(even, odd) + rest;
    }
    """
    ctypedef struct Bends "rankbench_bends":
        # What the row j of a Hessian times a direction p is made of.
        const double *curvatures  # of the pairs of j, c_jk
        const int32_t *opponents  # k
        double own  # p_j
        const double *others  # p
    double _sum_of_bends "rankbench_sum_of_bends" (Bends of, Py_ssize_t n) noexcept nogil

cdef struct TournamentView:
    const int64_t *indptr
    const int32_t *opponents
    const double *wins
    const double *losses

cdef struct Totals:
    # Sums over the row of one item.
    double loss
    double gradient
    double diagonal

cdef struct Sides:
    # Scratch memory while a tournament is made.
    int32_t *met  # by item, all opponents: j if j won, ~j if j lost
    int32_t *last  # the latest opponent of each item


cdef class Tournament:
    """The numbers of wins and losses of each item against each opponent.

    The opponents of item j are opponents[indptr[j]:indptr[j + 1]], each once and in ascending order; item j won
    `wins` times and lost `losses` times against each.
    """

    cdef int64_t[::1] indptr
    cdef int32_t[::1] opponents
    cdef double[::1] wins
    cdef double[::1] losses
    cdef TournamentView view

    def __init__(self, *, const int32_t[::1] better, const int32_t[::1] worse, Py_ssize_t n_items):
        """Gather these comparisons.

        Both sides of every comparison are first sorted by opponent, so that a scan visits the opponents of each item in
        ascending order. A first scan counts the distinct opponents, a second fills the rows. The time is linear, and
        the scratch memory is 8 bytes per comparison and 12 per item.
        """
        agree("worse items", worse.shape[0], better.shape[0])
        above_ids("n_items", n_items, better)
        above_ids("n_items", n_items, worse)
        cdef Py_ssize_t item, n_pairs
        cdef int64_t[::1] starts = np.zeros(n_items + 1, np.int64)
        cdef Arena arena = Arena(NULL, 0)
        cdef Sides sides = _lay_out(&arena, better.shape[0], n_items)
        cdef Scratch scratch = Scratch(arena.used, 1)
        arena = scratch.share(0)
        sides = _lay_out(&arena, better.shape[0], n_items)
        self.indptr = np.zeros(n_items + 1, np.int64)
        with nogil:
            _list_sides(better, worse, starts, sides.met)
            _count_opponents(starts, sides, self.indptr)
        n_pairs = self.indptr[n_items]
        self.opponents, self.wins, self.losses = np.empty(n_pairs, np.int32), np.zeros(n_pairs), np.zeros(n_pairs)
        with nogil:
            _fill_rows(starts, sides, self)
            for item in range(n_items, 0, -1):  # filling moved each row's start to its end
                self.indptr[item] = self.indptr[item - 1]
        self.indptr[0] = 0
        self.view = TournamentView(
            &self.indptr[0], first_id(self.opponents), first_value(self.wins), first_value(self.losses)
        )

    def arrays(self) -> tuple[Int64s, Int32s, Floats, Floats]:
        """The rows as arrays: indptr, opponents, wins and losses."""
        return np.asarray(self.indptr), np.asarray(self.opponents), np.asarray(self.wins), np.asarray(self.losses)


def sweep(
    *,
    Loss loss,
    Tournament tournament,
    const double[::1] scores,
    double[:, ::1] totals,
    double[::1] curvature,
    int threads,
):
    """Fill `totals` and `curvature` with the losses and their derivatives at these scores, in one pass over the pairs.

    totals[0] is the loss of each item's pairs, each pair counted at one item only; totals[1] is the gradient, and
    totals[2] the diagonal of the Hessian, the sum of each item's curvatures. `curvature` has an entry for each entry of
    the tournament.
    """
    threads = team(threads)
    known_loss(loss)
    agree("scores", scores.shape[0], tournament.indptr.shape[0] - 1)
    agree("rows of totals", totals.shape[0], 3)
    agree("columns of totals", totals.shape[1], scores.shape[0])
    agree("curvatures", curvature.shape[0], tournament.opponents.shape[0])
    cdef Py_ssize_t item
    cdef double *per_pair = <double *> first_value(curvature)
    cdef Totals found
    for item in prange(scores.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        found = _sweep_row(loss, item, &tournament.view, &scores[0], per_pair)
        totals[0, item] = found.loss
        totals[1, item] = found.gradient
        totals[2, item] = found.diagonal


def curvature_times(
    *, Tournament tournament, const double[::1] curvature, const double[::1] direction, double[::1] out, int threads
):
    """Fill `out` with the Hessian of the losses times a direction p: out_j = sum_k c_jk (p_j - p_k)."""
    threads = team(threads)
    agree("numbers of out", out.shape[0], tournament.indptr.shape[0] - 1)
    agree("numbers of the direction", direction.shape[0], out.shape[0])
    agree("curvatures", curvature.shape[0], tournament.opponents.shape[0])
    cdef const double *per_pair = first_value(curvature)
    cdef Py_ssize_t item
    for item in prange(out.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        out[item] = _curvature_times(item, &tournament.view, per_pair, &direction[0])


cdef Sides _lay_out(Arena *arena, Py_ssize_t comparisons, Py_ssize_t n_items) noexcept nogil:
    """Scratch memory for both sides of every comparison, and for the latest opponent of each item."""
    return Sides(ints(arena, 2 * comparisons), ints(arena, n_items))


cdef void _list_sides(
    const int32_t[::1] better, const int32_t[::1] worse, int64_t[::1] starts, int32_t *sides
) noexcept nogil:
    """List the opponents of item k in sides[starts[k]:starts[k + 1]]: j if j won, ~j if j lost."""
    cdef Py_ssize_t row, item, n_items = starts.shape[0] - 1
    for row in range(better.shape[0]):
        starts[better[row]] += 1
        starts[worse[row]] += 1
    for item in range(1, n_items + 1):  # starts[k] becomes the end of k's part, and moves down as it is filled
        starts[item] += starts[item - 1]
    for row in range(better.shape[0] - 1, -1, -1):
        starts[worse[row]] -= 1
        sides[starts[worse[row]]] = better[row]
        starts[better[row]] -= 1
        sides[starts[better[row]]] = ~worse[row]


cdef inline int32_t _met(int32_t side) noexcept nogil:
    """The item of a side, which is j or ~j."""
    return side if side >= 0 else ~side


cdef void _count_opponents(const int64_t[::1] starts, Sides sides, int64_t[::1] indptr) noexcept nogil:
    """Fill the rows' indptr.

    Invariant: last[j] is the latest opponent of j, while the opponents are visited in ascending order.
    """
    cdef Py_ssize_t item, place, n_items = starts.shape[0] - 1
    cdef int32_t *last = sides.last
    cdef int32_t met
    for item in range(n_items):
        last[item] = -1
    for item in range(n_items):
        for place in range(starts[item], starts[item + 1]):
            met = _met(sides.met[place])
            if last[met] != item:
                last[met] = <int32_t> item
                indptr[met + 1] += 1
    for item in range(n_items):
        indptr[item + 1] += indptr[item]
        last[item] = -1


cdef void _fill_rows(const int64_t[::1] starts, Sides sides, Tournament rows) noexcept nogil:
    """Fill the rows of opponents, wins and losses; indptr[j] moves from the start of j's row to its end."""
    cdef Py_ssize_t item, place, n_items = starts.shape[0] - 1
    cdef int32_t *last = sides.last
    cdef int64_t[::1] indptr = rows.indptr
    cdef int32_t[::1] opponents = rows.opponents
    cdef double[::1] wins = rows.wins, losses = rows.losses
    cdef int32_t met
    for item in range(n_items):
        for place in range(starts[item], starts[item + 1]):
            met = _met(sides.met[place])
            if last[met] != item:
                last[met] = <int32_t> item
                opponents[indptr[met]] = <int32_t> item
                indptr[met] += 1
            if sides.met[place] >= 0:
                wins[indptr[met] - 1] += 1.0
            else:
                losses[indptr[met] - 1] += 1.0


cdef Totals _sweep_row(
    Loss loss, Py_ssize_t item, const TournamentView *view, const double *scores, double *curvature
) noexcept nogil:
    """The sums over a row: each pair's loss is counted by the item with the lower number, the gradient by both."""
    cdef TournamentView rows = view[0]
    cdef double margins[MARGINS]
    cdef Parabolas pairs
    cdef double total = 0.0, gradient = 0.0, diagonal = 0.0
    cdef Py_ssize_t edge = rows.indptr[item], end = rows.indptr[item + 1], count, elsewhere, k
    while edge < end:
        count, elsewhere = min(<Py_ssize_t> MARGINS, end - edge), 0
        for k in range(count):
            margins[k] = scores[item] - scores[rows.opponents[edge + k]]
            elsewhere += rows.opponents[edge + k] < item  # these come first, and count the pair themselves
        parabolas_of(loss, Outcomes(&margins[0], rows.wins + edge, rows.losses + edge), count, elsewhere, &pairs)
        for k in range(count):
            total += pairs.values[k]
            gradient += pairs.slopes[k]
            diagonal += pairs.curvatures[k]
        memcpy(curvature + edge, pairs.curvatures, count * sizeof(double))
        edge += count
    return Totals(total, gradient, diagonal)


cdef inline double _curvature_times(
    Py_ssize_t item, const TournamentView *rows, const double *curvature, const double *direction
) noexcept nogil:
    """The entry of the Hessian times a direction for one item."""
    cdef int64_t first = rows.indptr[item], end = rows.indptr[item + 1]
    return _sum_of_bends(Bends(curvature + first, rows.opponents + first, direction[item], direction), end - first)
