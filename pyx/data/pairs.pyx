"""The strict pairs that ratings imply: how many each user has, all of them, or some of them drawn at random.

A strict pair of a user is two of the user's items of which one is rated strictly higher: the better one and the
worse one.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from numpy.random cimport bitgen_t

from rankbench.kernels.shared.arena cimport Arena, Scratch, ints, longs
from rankbench.kernels.shared.checks cimport agree
from rankbench.kernels.shared.draws cimport bit_generator, draw_subset, table_size
from rankbench.kernels.shared.rows cimport SparseRows, longest_row
from rankbench.kernels.shared.sorting cimport argsort, in_order, sort32

from rankbench.arrays.mapped import empty

cdef struct Rated:
    # The ratings of one user.
    Py_ssize_t n
    const int32_t *items
    const double *values

cdef struct Listed:
    # Where the pairs of one user go.
    int64_t n
    int32_t *better
    int32_t *worse

cdef struct Memory:
    # Scratch memory for the user at hand.
    int32_t *order  # rows by ascending value
    int32_t *spare  # room to sort them
    int64_t *won_before  # per row, the pairs that the rows before it win
    int64_t *drawn  # numbers of pairs
    int64_t *table  # what knows which numbers have been drawn


def count(*, SparseRows ratings) -> Int64s:
    """How many strict pairs the ratings of each user imply, in O(n log n) for a user with n ratings."""
    cdef Py_ssize_t n_users = ratings.view.n, user, longest = longest_row(ratings.view.indptr, n_users)
    counts = np.zeros(n_users, np.int64)
    cdef int64_t[::1] out = counts
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, longest, 0)
    cdef Scratch scratch = Scratch(arena.used, 1)
    arena = scratch.share(0)
    memory = _lay_out(&arena, longest, 0)
    with nogil:
        for user in range(n_users):
            out[user] = _strict_pairs(_of_user(ratings, user), memory)
    return counts


def list_pairs(
    *, SparseRows ratings, const int64_t[::1] counts, const int64_t[::1] out_indptr, rng
) -> tuple[Int32s, Int32s]:
    """The better and the worse item of strict pairs, by user: all that a user has, or an even sample of them.

    `counts` says how many each user has, and out_indptr[user + 1] - out_indptr[user] how many are wanted. A user's
    pairs come in the order of the better item, then of the worse one. For a user with n ratings all pairs cost
    O(n^2), and a sample of k costs O(n log n + k), however many pairs there are.
    """
    cdef Py_ssize_t n_users = ratings.view.n, user, first
    agree("numbers of pairs", counts.shape[0], n_users)
    agree("row pointers of wanted pairs", out_indptr.shape[0], n_users + 1)
    better, worse = empty(out_indptr[n_users], np.int32), empty(out_indptr[n_users], np.int32)
    cdef int32_t[::1] to_better = better, to_worse = worse
    cdef bitgen_t *bits = bit_generator(rng)
    cdef Py_ssize_t longest = longest_row(ratings.view.indptr, n_users)
    cdef int64_t largest = _largest_sample(counts, out_indptr), wanted
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, longest, largest)
    cdef Scratch scratch = Scratch(arena.used, 1)
    cdef Listed listed
    arena = scratch.share(0)
    memory = _lay_out(&arena, longest, largest)
    with rng.bit_generator.lock, nogil:
        for user in range(n_users):
            first = out_indptr[user]
            wanted = out_indptr[user + 1] - first
            if wanted == 0:
                continue
            listed = Listed(wanted, &to_better[first], &to_worse[first])
            if wanted < counts[user]:
                _sample(bits, _of_user(ratings, user), counts[user], listed, memory)
            else:
                _all(_of_user(ratings, user), listed)
    return better, worse


cdef Memory _lay_out(Arena *arena, Py_ssize_t longest, int64_t largest) noexcept nogil:
    """Room for users with so many ratings at most and samples of at most so many pairs."""
    return Memory(
        ints(arena, longest), ints(arena, longest),
        longs(arena, longest + 1), longs(arena, largest), longs(arena, <Py_ssize_t> table_size(largest)),
    )


cdef inline Rated _of_user(SparseRows ratings, Py_ssize_t user) noexcept nogil:
    """The ratings of one user."""
    cdef Py_ssize_t first = ratings.view.indptr[user]
    return Rated(ratings.view.indptr[user + 1] - first, ratings.view.columns + first, ratings.view.values + first)


cdef int64_t _largest_sample(const int64_t[::1] counts, const int64_t[::1] out_indptr) noexcept:
    """The most pairs that are drawn for any user; who gets all pairs needs no draw."""
    cdef Py_ssize_t user
    cdef int64_t largest = 0, wanted
    for user in range(counts.shape[0]):
        wanted = out_indptr[user + 1] - out_indptr[user]
        if wanted < counts[user]:
            largest = max(largest, wanted)
    return largest


cdef void _all(Rated user, Listed listed) noexcept nogil:
    """List every strict pair of one user."""
    cdef Py_ssize_t j, k, place = 0
    for j in range(user.n):
        for k in range(user.n):
            if user.values[j] > user.values[k]:
                listed.better[place] = user.items[j]
                listed.worse[place] = user.items[k]
                place += 1


cdef void _sample(bitgen_t *bits, Rated user, int64_t pairs, Listed listed, Memory memory) noexcept nogil:
    """List an even sample of the strict pairs of one user, of which there are `pairs`.

    The pairs are numbered row by row, and within a row by the place of the worse item in the order of values, so
    that a number gives the row and the pair, and no list of all is made. Numbers are drawn in ascending order, and
    only the worse items of a row are left to be sorted.
    Invariant: all pairs before listed[first] are in their final order, and those from there on are of this row.
    """
    cdef Py_ssize_t row = 0
    cdef int64_t i, first = 0
    _count_wins(user, memory)
    draw_subset(bits, pairs, listed.n, memory.table, memory.drawn)
    for i in range(listed.n):
        while memory.drawn[i] >= memory.won_before[row + 1]:
            row += 1
            sort32(listed.worse + first, <size_t> (i - first))
            first = i
        listed.better[i] = user.items[row]
        listed.worse[i] = user.items[memory.order[memory.drawn[i] - memory.won_before[row]]]
    sort32(listed.worse + first, <size_t> (listed.n - first))


cdef void _count_wins(Rated user, Memory memory) noexcept nogil:
    """Rows by ascending value into `order`; into won_before[row + 1] the pairs that rows 0 .. row win."""
    cdef Py_ssize_t i, lower = 0
    in_order(memory.order, user.n)
    argsort(user.values, memory.order, memory.spare, user.n)
    memory.won_before[0] = 0
    for i in range(user.n):
        if user.values[memory.order[i]] > user.values[memory.order[lower]]:
            lower = i
        memory.won_before[memory.order[i] + 1] = lower
    for i in range(user.n):
        memory.won_before[i + 1] += memory.won_before[i]


cdef int64_t _strict_pairs(Rated user, Memory memory) noexcept nogil:
    """All pairs less the tied ones: n(n-1)/2 - sum over groups of equal values of g(g-1)/2."""
    cdef int64_t pairs = <int64_t> user.n * (user.n - 1) // 2
    cdef Py_ssize_t i, start = 0
    in_order(memory.order, user.n)
    argsort(user.values, memory.order, memory.spare, user.n)
    for i in range(1, user.n + 1):
        if i == user.n or user.values[memory.order[i]] != user.values[memory.order[start]]:
            pairs -= <int64_t> (i - start) * (i - start - 1) // 2
            start = i
    return pairs
