"""The random draws that splits are made of: rows dealt out to parts, and rated items compared with unrated ones."""

import numpy as np

from libc.stdint cimport int8_t, int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from numpy.random cimport bitgen_t

from rankbench.kernels.shared.arena cimport Arena, Scratch, longs
from rankbench.kernels.shared.checks cimport above_ids, agree
from rankbench.kernels.shared.draws cimport below, below64, bit_generator
from rankbench.kernels.shared.rows cimport Pattern, longest_row
from rankbench.kernels.shared.sorting cimport sort32

from rankbench.arrays.mapped import empty

cdef struct Rated:
    # The items of one user, ascending.
    uint32_t n
    const int32_t *items

cdef struct Listed:
    # Where the comparisons of one user go.
    int64_t n
    int32_t *better
    int32_t *worse


def deal(*, const int64_t[::1] indptr, const int64_t[:, ::1] quotas, rng) -> Int8s:
    """The part of every row: of a group's rows, quotas[group, part] go to each part, and the others to none.

    A row that goes to none has the number of parts as its part. Rows are walked in order, and each goes to a part
    with probability (places left in that part) / (rows left in the group): every way to deal the rows is as likely
    as any other. O(parts) for each row.
    """
    cdef Py_ssize_t n_groups = indptr.shape[0] - 1, group, row
    agree("quotas", quotas.shape[0], n_groups)
    labels = np.empty(indptr[n_groups], np.int8)
    places = np.array(quotas, np.int64, order="C")
    cdef int8_t[::1] out = labels
    cdef int64_t[:, ::1] left = places
    cdef int n_parts = <int> quotas.shape[1]
    cdef bitgen_t *bits = bit_generator(rng)
    with rng.bit_generator.lock, nogil:
        for group in range(n_groups):
            for row in range(indptr[group], indptr[group + 1]):
                out[row] = _part(&left[group, 0], n_parts, below64(bits, <uint64_t> (indptr[group + 1] - row)))
    return labels


def against_unrated(
    *, Pattern rated, Py_ssize_t n_items, const int64_t[::1] out_indptr, rng
) -> tuple[Int32s, Int32s]:
    """Better and worse items: random items of each user against random items that the user has not, in order.

    Both are drawn with replacement. A user has out_indptr[user + 1] - out_indptr[user] comparisons, which must be
    zero for who has no item or all of them. The items that a user has not are never listed: O(log n) finds the k-th
    of them.
    """
    cdef Py_ssize_t n_users = rated.view.n, user, first
    if out_indptr.shape[0] != n_users + 1:
        raise ValueError("there must be a number of comparisons for each user")
    above_ids("n_items", n_items, rated.columns)
    for user in range(n_users):
        if out_indptr[user + 1] > out_indptr[user] and not 0 < _of_user(rated, user).n < n_items:
            raise ValueError(f"a user with none or all of n_items={n_items} items can have no comparison")
    better, worse = empty(out_indptr[n_users], np.int32), empty(out_indptr[n_users], np.int32)
    cdef int32_t[::1] to_better = better, to_worse = worse
    cdef bitgen_t *bits = bit_generator(rng)
    cdef Py_ssize_t longest = longest_row(rated.view.indptr, n_users)
    cdef Arena arena = Arena(NULL, 0)
    cdef int64_t *tally = longs(&arena, longest)
    cdef Scratch scratch = Scratch(arena.used, 1)
    cdef Listed listed
    arena = scratch.share(0)
    tally = longs(&arena, longest)
    with rng.bit_generator.lock, nogil:
        for user in range(n_users):
            first = out_indptr[user]
            if out_indptr[user + 1] > first:
                listed = Listed(out_indptr[user + 1] - first, &to_better[first], &to_worse[first])
                _compare(bits, _of_user(rated, user), <uint32_t> n_items, listed, tally)
    return better, worse


cdef inline Rated _of_user(Pattern rated, Py_ssize_t user) noexcept nogil:
    """The items of one user."""
    cdef Py_ssize_t first = rated.view.indptr[user]
    return Rated(<uint32_t> (rated.view.indptr[user + 1] - first), rated.view.columns + first)


cdef inline int8_t _part(int64_t *left, int n_parts, int64_t drawn) noexcept nogil:
    """The part that has the drawn place, of all places that are left; the place is taken."""
    cdef int part
    for part in range(n_parts):
        if drawn < left[part]:
            left[part] -= 1
            return <int8_t> part
        drawn -= left[part]
    return <int8_t> n_parts


cdef void _compare(bitgen_t *bits, Rated user, uint32_t n_items, Listed listed, int64_t *tally) noexcept nogil:
    """Fill in one user's comparisons: how often each item is drawn, then so many opponents for it, ascending.

    Invariant: the first `place` comparisons are those of the items before i, in their final order.
    """
    cdef int64_t i, k, _, place = 0
    memset(tally, 0, user.n * sizeof(int64_t))
    for _ in range(listed.n):
        tally[below(bits, user.n)] += 1
    for i in range(user.n):
        for k in range(place, place + tally[i]):
            listed.better[k] = user.items[i]
            listed.worse[k] = _unrated(user, below(bits, n_items - user.n))
        sort32(listed.worse + place, <size_t> tally[i])
        place += tally[i]


cdef inline int32_t _unrated(Rated user, uint32_t k) noexcept nogil:
    """The k-th item that the user has not, counted from 0.

    Before items[i] there are items[i] - i such items; the answer is k plus the number of items with at
    most k of them before.
    """
    cdef uint32_t low = 0, high = user.n, middle
    while low < high:
        middle = (low + high) // 2
        if <uint32_t> user.items[middle] - middle <= k:
            low = middle + 1
        else:
            high = middle
    return <int32_t> (k + low)
