"""Products with the entries of a sparse users x items matrix, and losses of comparisons by the scores of entries.

An entry is a place (user, item) of the matrix. A user with n items may compare them n^2 times, but all that these
comparisons share is a score and a slope for each entry, so that only entries cost vector work. Rows are worked on side
by side, each by one thread and summed in the order of its entries, so that no bit depends on the number of threads.
"""

# Roof of gradients, an entry: 4 bytes; 6 * rank flops; rank / 4 lines.
# Roof of slopes, a comparison: 8 bytes; 88 flops.
# Roof of times, an entry: 12 bytes; 2 * width flops; width / 8 lines.
# Roof of inner_products, an entry: 12 bytes; 2 * rank flops; rank / 8 lines.

import numpy as np

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints
from rankbench.kernels.shared.checks cimport above_ids, agree
from rankbench.kernels.shared.chosen cimport Chosen, sum_chosen
from rankbench.kernels.shared.lanes cimport LANES, add_to_rows, dot_rows_at
from rankbench.kernels.shared.losses cimport MARGINS, Loss, known_loss, tangents_of
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport (
    ComparisonRows, ComparisonView, Pattern, PatternView, SparseRows, SparseView, first_row, longest_row,
)

cdef enum:
    _NEAR = 1 << 16  # doubles of a factor that stays in a cache by itself
    FEW = 16  # comparisons of a user that show how many in a row have the same better item
    LONG = 4  # so many in a row, on average, are summed up in a register

cdef struct Mentions:
    # Scratch memory: for each item the user who named it last (-1: no user), and its place among that user's entries.
    int32_t *user
    int32_t *place

cdef struct Problem:
    # What is differentiated, and by which rows.
    Loss loss
    const ComparisonView *comparisons
    const PatternView *entries
    const double *users
    const double *items
    Py_ssize_t rank
    bint far  # whether the items' rows lie beyond the caches

cdef struct Own:
    # Scratch memory for a user's entries.
    double *scores
    double *slopes

cdef struct Places:
    # Of each comparison, the places of its items among the user's entries.
    int32_t *better
    int32_t *worse


cdef class Derivatives:
    """Where `gradients` writes: the loss of each user, and the derivatives by the rows of users and of items.

    Those by the scores of the entries are written to `slopes` if that is not empty; then those of items are not.
    """

    cdef double[::1] losses
    cdef double[:, ::1] users
    cdef double[:, ::1] items
    cdef double[::1] slopes

    def __init__(self, *, double[::1] losses, double[:, ::1] users, double[:, ::1] items, double[::1] slopes):
        """Take the arrays, without a copy."""
        agree("losses", losses.shape[0], users.shape[0])
        agree("columns of items", items.shape[1], users.shape[1])
        self.losses, self.users, self.items, self.slopes = losses, users, items, slopes


def gather(*, ComparisonRows comparisons, Py_ssize_t n_items) -> tuple[Int64s, Int32s, Int32s, Int32s]:
    """The entries that comparisons name: where each user's begin and their items, in the order of their first mention.

    Then come, for each comparison, the places of the better and of the worse item among the user's entries.
    O(comparisons + items).
    """
    above_ids("n_items", n_items, comparisons.better)
    above_ids("n_items", n_items, comparisons.worse)
    cdef Py_ssize_t n_users = comparisons.view.n, n = comparisons.better.shape[0]
    cdef int64_t[::1] starts = np.zeros(n_users + 1, np.int64)
    cdef int32_t[::1] items
    cdef int32_t[::1] better = np.empty(n, np.int32)
    cdef int32_t[::1] worse = np.empty(n, np.int32)
    cdef Arena arena = Arena(NULL, 0)
    cdef Mentions mentions = _lay_out(&arena, n_items)
    cdef Scratch scratch = Scratch(arena.used, 1)
    cdef Places places = Places(NULL, NULL)
    if n > 0:
        places = Places(&better[0], &worse[0])
    arena = scratch.share(0)
    mentions = _lay_out(&arena, n_items)
    with nogil:
        _place(&comparisons.view, mentions, n_items, places, &starts[0])
    items = np.empty(starts[n_users], np.int32)
    if n > 0:
        with nogil:
            _list_items(&comparisons.view, places, &starts[0], &items[0])
    return np.asarray(starts), np.asarray(items), np.asarray(better), np.asarray(worse)


def slopes(
    *,
    Loss loss,
    Pattern entries,
    ComparisonRows comparisons,
    const double[::1] scores,
    double[::1] loss_out,
    double[::1] slope_out,
    int threads,
):
    """Fill `loss_out` with each user's sum of losses, and `slope_out` with its derivative by the score of each entry.

    A comparison's `better` and `worse` are places among its user's entries.
    """
    threads = team(threads)
    known_loss(loss)
    agree("users with comparisons", comparisons.view.n, entries.view.n)
    agree("losses", loss_out.shape[0], entries.view.n)
    agree("scores", scores.shape[0], entries.columns.shape[0])
    agree("slopes", slope_out.shape[0], entries.columns.shape[0])
    cdef Py_ssize_t user
    cdef int64_t first
    for user in prange(entries.view.n, nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        first = entries.view.indptr[user]
        loss_out[user] = _user_slopes(
            loss, &comparisons.view, user, entries.view.indptr[user + 1] - first, &scores[0] + first,
            &slope_out[0] + first,
        )


def gradients(
    *,
    Loss loss,
    Pattern entries,
    ComparisonRows comparisons,
    const double[:, ::1] users,
    const double[:, ::1] items,
    Derivatives out,
    int threads,
):
    """Compute the losses of comparisons by the scores users items^T, and the derivatives by users and items.

    All of a user's work is done at once, while the rows of the user's items are in the cache. Without `slopes` one
    thread does it all. It adds to the items' derivatives too, in the order in which `times` adds up those of an item.
    """
    threads = team(threads)
    known_loss(loss)
    cdef Py_ssize_t user, rank = users.shape[1], longest = longest_row(entries.view.indptr, entries.view.n)
    cdef bint alone = out.slopes.shape[0] == 0
    if rank % LANES or rank == 0:
        raise ValueError(f"rows of {rank} numbers are not padded to whole lanes")
    agree("users with comparisons", comparisons.view.n, entries.view.n)
    agree("rows of users", users.shape[0], entries.view.n)
    agree("columns of items", items.shape[1], rank)
    above_ids("rows of items", items.shape[0], entries.columns)
    agree("derivatives of users", out.users.shape[0], users.shape[0])
    agree("columns of derivatives", out.users.shape[1], rank)
    agree("derivatives of items", out.items.shape[0], items.shape[0])
    if alone:
        threads = 1
    else:
        agree("slopes", out.slopes.shape[0], entries.columns.shape[0])
    cdef Problem problem = Problem(
        loss, &comparisons.view, &entries.view, first_row(users), first_row(items), rank, items.shape[0] * rank > _NEAR
    )
    cdef Arena arena = Arena(NULL, 0)
    cdef Own own = _lay_out_own(&arena, longest)
    cdef Scratch scratch = Scratch(arena.used, threads)
    if alone:
        out.items[:] = 0.0
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        own = _lay_out_own(&arena, longest)
        for user in prange(entries.view.n, schedule="dynamic", chunksize=16):
            if not alone:
                own.slopes = &out.slopes[0] + entries.view.indptr[user]
            out.losses[user] = _user_gradients(&problem, user, own, &out.users[user, 0])
            if alone:
                _add_to_items(&problem, user, own.slopes, &out.items[0, 0])


def arrange(*, const double[::1] values, const int32_t[::1] places, double[::1] out, int threads):
    """Write each value to its place in `out`; no two have the same place.

    To read in order and write here and there takes half the time of reading here and there and writing in order.
    """
    threads = team(threads)
    cdef Py_ssize_t k
    agree("places", places.shape[0], values.shape[0])
    agree("out", out.shape[0], values.shape[0])
    above_ids("values", values.shape[0], places)
    for k in prange(values.shape[0], nogil=True, schedule="static", num_threads=threads):
        out[places[k]] = values[k]


def times(*, SparseRows matrix, const double[:, ::1] dense, double[:, ::1] out, int threads):
    """Fill `out` with the product of a sparse matrix and a dense one; O(entries width)."""
    threads = team(threads)
    cdef Py_ssize_t row, width = dense.shape[1]
    agree("rows of out", out.shape[0], matrix.view.n)
    agree("columns of out", out.shape[1], width)
    if matrix.values.shape[0] == 0 or width == 0:
        out[:] = 0.0
        return
    cdef bint far = dense.shape[0] * width > _NEAR
    for row in prange(matrix.view.n, nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        _row_product(&matrix.view, row, &dense[0, 0], width, far, &out[row, 0])


def inner_products(
    *, Pattern entries, const double[:, ::1] left, const double[:, ::1] right, double[::1] out, int threads
):
    """Fill `out` with the inner product of row and column for each entry: left right^T at these places.

    O(entries rank). Rows are padded with zeros to whole lanes.
    """
    threads = team(threads)
    cdef Py_ssize_t row, rank = left.shape[1]
    if rank % LANES:
        raise ValueError(f"rows of {rank} numbers are not padded to whole lanes")
    agree("rows of left", left.shape[0], entries.view.n)
    agree("columns of right", right.shape[1], rank)
    agree("products", out.shape[0], entries.columns.shape[0])
    if out.shape[0] == 0 or rank == 0:
        out[:] = 0.0
        return
    cdef bint far = right.shape[0] * rank > _NEAR
    for row in prange(entries.view.n, nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        _row_inner(&entries.view, row, &left[row, 0], &right[0, 0], rank, far, &out[0])


cdef Mentions _lay_out(Arena *arena, Py_ssize_t n_items) noexcept nogil:
    """Room for what `gather` notes of each item."""
    return Mentions(ints(arena, n_items), ints(arena, n_items))


cdef void _place(
    const ComparisonView *comparisons, Mentions mentions, Py_ssize_t n_items, Places places, int64_t *starts
) noexcept nogil:
    """Give each item that a user names a place, and count the places.

    Invariant: the places 0 .. found - 1 are those of the items that the user named so far.
    """
    cdef Py_ssize_t user, row, item
    cdef int32_t found
    for item in range(n_items):
        mentions.user[item] = -1
    for user in range(comparisons.n):
        found = 0
        for row in range(comparisons.indptr[user], comparisons.indptr[user + 1]):
            found += _is_new(mentions, comparisons.better[row], <int32_t> user, found)
            places.better[row] = mentions.place[comparisons.better[row]]
            found += _is_new(mentions, comparisons.worse[row], <int32_t> user, found)
            places.worse[row] = mentions.place[comparisons.worse[row]]
        starts[user + 1] = starts[user] + found


cdef inline bint _is_new(Mentions mentions, Py_ssize_t item, int32_t user, int32_t place) noexcept nogil:
    """Whether the user names the item for the first time; its place is then the one given."""
    if mentions.user[item] == user:
        return False
    mentions.user[item] = user
    mentions.place[item] = place
    return True


cdef void _list_items(
    const ComparisonView *comparisons, Places places, const int64_t *starts, int32_t *items
) noexcept nogil:
    """Write each entry's item to its place."""
    cdef Py_ssize_t user, row
    for user in range(comparisons.n):
        for row in range(comparisons.indptr[user], comparisons.indptr[user + 1]):
            items[starts[user] + places.better[row]] = comparisons.better[row]
            items[starts[user] + places.worse[row]] = comparisons.worse[row]


cdef Own _lay_out_own(Arena *arena, Py_ssize_t longest) noexcept nogil:
    """Room for the entries of any user."""
    return Own(floats(arena, longest), floats(arena, longest))


cdef double _user_gradients(const Problem *problem, Py_ssize_t user, Own own, double *out) noexcept nogil:
    """The user's sum of losses; the slopes of the user's entries and the derivatives by the user's row are written."""
    cdef int64_t first = problem.entries.indptr[user]
    cdef Py_ssize_t n = problem.entries.indptr[user + 1] - first
    cdef const int32_t *items = problem.entries.columns + first
    cdef Chosen chosen = Chosen(
        items, own.slopes, n, problem.items, problem.rank, far=False, add=False
    )
    dot_rows_at(
        problem.users + user * problem.rank, problem.items, items, n, problem.rank, problem.far, own.scores
    )
    cdef double loss = _user_slopes(problem.loss, problem.comparisons, user, n, own.scores, own.slopes)
    sum_chosen(&chosen, out)
    return loss


cdef void _add_to_items(const Problem *problem, Py_ssize_t user, const double *slopes, double *out) noexcept nogil:
    """Add what a user's entries contribute to the derivatives by the items' rows."""
    cdef int64_t first = problem.entries.indptr[user]
    add_to_rows(
        slopes, problem.users + user * problem.rank, problem.entries.columns + first,
        problem.entries.indptr[user + 1] - first, problem.rank, out,
    )


cdef double _user_slopes(
    Loss loss, const ComparisonView *comparisons, Py_ssize_t user, Py_ssize_t n, const double *scores, double *slopes
) noexcept nogil:
    """The user's sum of losses; the slopes of its n entries are written."""
    cdef double margins[MARGINS]
    cdef double losses[MARGINS]
    cdef double along[MARGINS]
    cdef double total = 0.0
    cdef Py_ssize_t first = comparisons.indptr[user], end = comparisons.indptr[user + 1], count, k
    cdef const int32_t *better = comparisons.better
    cdef const int32_t *worse = comparisons.worse
    cdef bint in_runs = _in_runs(better + first, end - first)
    for k in range(n):
        slopes[k] = 0.0
    while first < end:
        count = min(<Py_ssize_t> MARGINS, end - first)
        for k in range(count):
            margins[k] = scores[better[first + k]] - scores[worse[first + k]]
        tangents_of(loss, margins, count, losses, along)
        for k in range(count):
            total += losses[k]
        if in_runs:
            _add_runs(better + first, worse + first, count, along, slopes)
        else:
            _add_one_by_one(better + first, worse + first, count, along, slopes)
        first += count
    return total


cdef inline bint _in_runs(const int32_t *better, Py_ssize_t n) noexcept nogil:
    """Whether many comparisons in a row have the same better item, as those of ratings have; the first few tell."""
    cdef Py_ssize_t k, few = min(n, <Py_ssize_t> FEW)
    cdef int32_t changes = 0
    for k in range(1, few):
        changes += better[k] != better[k - 1]
    return changes * LONG < few


cdef inline void _add_one_by_one(
    const int32_t *better, const int32_t *worse, Py_ssize_t n, const double *along, double *slopes
) noexcept nogil:
    """Add the slopes of n comparisons to those of their entries."""
    cdef Py_ssize_t k
    for k in range(n):
        slopes[better[k]] += along[k]
        slopes[worse[k]] -= along[k]


cdef inline void _add_runs(
    const int32_t *better, const int32_t *worse, Py_ssize_t n, const double *along, double *slopes
) noexcept nogil:
    """The same, with the sum of a better item in a register for as many comparisons as it has in a row.

    Where these are few, the processor mispredicts the end of each row, which takes longer than to add one by one.
    """
    cdef double own
    cdef int32_t entry
    cdef Py_ssize_t k = 0
    while k < n:
        entry = better[k]
        own = slopes[entry]
        while k < n and better[k] == entry:
            own += along[k]
            slopes[worse[k]] -= along[k]
            k += 1
        slopes[entry] = own


cdef void _row_inner(
    const PatternView *entries, Py_ssize_t row, const double *left, const double *right, Py_ssize_t rank, bint far,
    double *out,
) noexcept nogil:
    """The inner products of one row of the left factor with the rows of the right one that its entries name.

    Rows that are `far`, beyond the caches, are asked for ahead.
    """
    cdef int64_t first = entries.indptr[row]
    dot_rows_at(left, right, entries.columns + first, entries.indptr[row + 1] - first, rank, far, out + first)


cdef void _row_product(
    const SparseView *matrix, Py_ssize_t row, const double *dense, Py_ssize_t width, bint far, double *out
) noexcept nogil:
    """One row of the product."""
    cdef int64_t first = matrix.indptr[row]
    cdef Chosen chosen = Chosen(
        matrix.columns + first, matrix.values + first, matrix.indptr[row + 1] - first, dense, width, far, add=False
    )
    sum_chosen(&chosen, out)
