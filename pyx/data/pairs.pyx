"""The strict pairs that ratings imply: how many there are, all of them, or some drawn at random."""

import numpy as np

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from numpy.random cimport bitgen_t

from rankbench.kernels.shared.draws cimport bit_generator, draw_subset, table_size
from rankbench.kernels.shared.sorting cimport argsort, sort32


def count(const int64_t[::1] indptr, const double[::1] values):
    """How many strict pairs each user's ratings imply, in O(n log n) per user."""
    cdef Py_ssize_t n_users = indptr.shape[0] - 1, user, longest = _longest(indptr)
    counts = np.zeros(n_users, np.int64)
    cdef int64_t[::1] out = counts
    cdef int32_t *scratch = <int32_t *> malloc(2 * (longest + 1) * sizeof(int32_t))
    if scratch == NULL:
        raise MemoryError
    with nogil:
        for user in range(n_users):
            if indptr[user + 1] > indptr[user]:
                out[user] = _strict_pairs(
                    &values[indptr[user]], scratch, scratch + longest, indptr[user + 1] - indptr[user]
                )
    free(scratch)
    return counts


def list_pairs(
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[::1] values,
    const int64_t[::1] counts,
    const int64_t[::1] out_indptr,
    rng,
):
    """The (better, worse) pairs of every user in order; where fewer fit than there are, an even sample.

    All pairs cost O(n^2) per user; a sample of k costs O(n log n + k), however many there are.
    """
    cdef Py_ssize_t n_users = indptr.shape[0] - 1, user
    better = np.empty(out_indptr[n_users], np.int32)
    worse = np.empty(out_indptr[n_users], np.int32)
    cdef int32_t[::1] to_better = better, to_worse = worse
    cdef bitgen_t *bits = bit_generator(rng)
    cdef Scratch scratch
    if not _allocate(&scratch, _longest(indptr), _largest_sample(counts, out_indptr)):
        raise MemoryError
    cdef int64_t wanted
    cdef Py_ssize_t n
    with rng.bit_generator.lock, nogil:
        for user in range(n_users):
            wanted = out_indptr[user + 1] - out_indptr[user]
            n = indptr[user + 1] - indptr[user]
            if wanted == 0:
                continue
            if wanted < counts[user]:
                _sample(
                    bits, &items[indptr[user]], &values[indptr[user]], n, counts[user], wanted, &scratch,
                    &to_better[out_indptr[user]], &to_worse[out_indptr[user]],
                )  # fmt: skip
            else:
                _all(
                    &items[indptr[user]], &values[indptr[user]], n,
                    &to_better[out_indptr[user]], &to_worse[out_indptr[user]],
                )  # fmt: skip
    _release(&scratch)
    return better, worse


cdef struct Scratch:
    # rows by ascending value with room to sort them; how many pairs the rows before a row win; what is
    # drawn, and the table that knows it
    int32_t *order
    int32_t *room
    int64_t *won_before
    int64_t *drawn
    int64_t *table


cdef bint _allocate(Scratch *scratch, Py_ssize_t longest, int64_t largest) noexcept:
    """Room for users with that many rows and samples of that many pairs, or False."""
    scratch.order = <int32_t *> malloc((longest + 1) * sizeof(int32_t))
    scratch.room = <int32_t *> malloc((longest + 1) * sizeof(int32_t))
    scratch.won_before = <int64_t *> malloc((longest + 1) * sizeof(int64_t))
    scratch.drawn = <int64_t *> malloc((largest + 1) * sizeof(int64_t))
    scratch.table = <int64_t *> malloc(table_size(largest) * sizeof(int64_t))
    if (
        scratch.order != NULL and scratch.room != NULL and scratch.won_before != NULL
        and scratch.drawn != NULL and scratch.table != NULL
    ):
        return True
    _release(scratch)
    return False


cdef void _release(Scratch *scratch) noexcept:
    free(scratch.order)
    free(scratch.room)
    free(scratch.won_before)
    free(scratch.drawn)
    free(scratch.table)


cdef int64_t _largest_sample(const int64_t[::1] counts, const int64_t[::1] out_indptr) noexcept:
    """The most pairs that are drawn for any user; who gets all of theirs needs no draw."""
    cdef Py_ssize_t user
    cdef int64_t largest = 0, wanted
    for user in range(counts.shape[0]):
        wanted = out_indptr[user + 1] - out_indptr[user]
        if wanted < counts[user]:
            largest = max(largest, wanted)
    return largest


cdef void _all(
    const int32_t *items, const double *values, Py_ssize_t n, int32_t *better, int32_t *worse
) noexcept nogil:
    """Every strict pair of one user."""
    cdef Py_ssize_t j, k, place = 0
    for j in range(n):
        for k in range(n):
            if values[j] > values[k]:
                better[place] = items[j]
                worse[place] = items[k]
                place += 1


cdef void _sample(
    bitgen_t *bits, const int32_t *items, const double *values, Py_ssize_t n, int64_t pairs, int64_t wanted,
    Scratch *scratch, int32_t *better, int32_t *worse,
) noexcept nogil:
    """`wanted` of one user's strict pairs.

    The pairs are numbered row by row, and within a row by the loser's place in the order of values: the
    row and the rest of a number are the pair, and nothing is listed. Numbers are drawn ascending, so only
    the losers of a row are left to be put in order.
    """
    cdef Py_ssize_t row = 0
    cdef int64_t i, first = 0
    _count_wins(values, n, scratch)
    draw_subset(bits, pairs, wanted, scratch.table, scratch.drawn)
    for i in range(wanted):
        while scratch.drawn[i] >= scratch.won_before[row + 1]:
            row += 1
            sort32(worse + first, <size_t> (i - first))
            first = i
        better[i] = items[row]
        worse[i] = items[scratch.order[scratch.drawn[i] - scratch.won_before[row]]]
    sort32(worse + first, <size_t> (wanted - first))


cdef void _count_wins(const double *values, Py_ssize_t n, Scratch *scratch) noexcept nogil:
    """Rows by ascending value into `order`; into won_before[row + 1] the pairs that rows 0 .. row win."""
    cdef Py_ssize_t i, lower = 0
    for i in range(n):
        scratch.order[i] = <int32_t> i
    argsort(values, scratch.order, scratch.room, n)
    scratch.won_before[0] = 0
    for i in range(n):
        if values[scratch.order[i]] > values[scratch.order[lower]]:
            lower = i
        scratch.won_before[scratch.order[i] + 1] = lower
    for i in range(n):
        scratch.won_before[i + 1] += scratch.won_before[i]


cdef Py_ssize_t _longest(const int64_t[::1] indptr) noexcept:
    """The largest number of rows of any user."""
    cdef Py_ssize_t user, longest = 0
    for user in range(indptr.shape[0] - 1):
        longest = max(longest, <Py_ssize_t> (indptr[user + 1] - indptr[user]))
    return longest


cdef int64_t _strict_pairs(
    const double *values, int32_t *order, int32_t *scratch, Py_ssize_t n
) noexcept nogil:
    """All pairs less the tied ones: n(n-1)/2 - sum over groups of equal values of g(g-1)/2."""
    cdef int64_t pairs = <int64_t> n * (n - 1) // 2
    cdef Py_ssize_t i, start = 0
    for i in range(n):
        order[i] = <int32_t> i
    argsort(values, order, scratch, n)
    for i in range(1, n + 1):
        if i == n or values[order[i]] != values[order[start]]:
            pairs -= <int64_t> (i - start) * (i - start - 1) // 2
            start = i
    return pairs
