"""The draws behind the splits: rows dealt out to parts, and rated items set against unrated ones."""

import numpy as np

from libc.stdint cimport int8_t, int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from numpy.random cimport bitgen_t

from rankbench.kernels.shared.draws cimport below, below64, bit_generator
from rankbench.kernels.shared.sorting cimport sort32


def deal(const int64_t[::1] indptr, const int64_t[:, ::1] quotas, rng):
    """The part of every row: of a group's rows, quotas[group, part] go to each part, the others to none.

    Walking the rows, each goes to a part with probability (places left there) / (rows left), so every way
    to deal them is as likely as any other. What goes to none has the number of parts as its part.
    """
    cdef Py_ssize_t n_groups = indptr.shape[0] - 1, group, row
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
    const int64_t[::1] indptr, const int32_t[::1] items, Py_ssize_t n_items, const int64_t[::1] out_indptr, rng
):
    """(better, worse): random items of each user over random items not theirs, with replacement, in order.

    A user has out_indptr's number of comparisons; it must be zero for who has no item or all of them. The
    items not theirs are never listed: O(log n) finds the k-th of them.
    """
    cdef Py_ssize_t n_users = indptr.shape[0] - 1, user, longest = 0
    better = np.empty(out_indptr[n_users], np.int32)
    worse = np.empty(out_indptr[n_users], np.int32)
    cdef int32_t[::1] to_better = better, to_worse = worse
    cdef bitgen_t *bits = bit_generator(rng)
    for user in range(n_users):
        longest = max(longest, <Py_ssize_t> (indptr[user + 1] - indptr[user]))
    cdef int64_t *tally = <int64_t *> malloc((longest + 1) * sizeof(int64_t))
    if tally == NULL:
        raise MemoryError
    with rng.bit_generator.lock, nogil:
        for user in range(n_users):
            if out_indptr[user + 1] > out_indptr[user]:
                _compare_one_user(
                    bits, &items[indptr[user]], <uint32_t> (indptr[user + 1] - indptr[user]), <uint32_t> n_items,
                    out_indptr[user + 1] - out_indptr[user], tally,
                    &to_better[out_indptr[user]], &to_worse[out_indptr[user]],
                )  # fmt: skip
    free(tally)
    return better, worse


cdef inline int8_t _part(int64_t *left, int n_parts, int64_t drawn) noexcept nogil:
    """The part among whose places the drawn one is; the place is taken."""
    cdef int part
    for part in range(n_parts):
        if drawn < left[part]:
            left[part] -= 1
            return <int8_t> part
        drawn -= left[part]
    return <int8_t> n_parts


cdef void _compare_one_user(
    bitgen_t *bits, const int32_t *items, uint32_t n_rated, uint32_t n_items, int64_t wanted, int64_t *tally,
    int32_t *better, int32_t *worse,
) noexcept nogil:
    """One user's comparisons: how often each item is drawn, then so many opponents for it, ascending."""
    cdef int64_t i, k, _, place = 0
    memset(tally, 0, n_rated * sizeof(int64_t))
    for _ in range(wanted):
        tally[below(bits, n_rated)] += 1
    for i in range(n_rated):
        for k in range(place, place + tally[i]):
            better[k] = items[i]
            worse[k] = _unrated(items, n_rated, below(bits, n_items - n_rated))
        sort32(worse + place, <size_t> tally[i])
        place += tally[i]


cdef inline int32_t _unrated(const int32_t *items, uint32_t n_rated, uint32_t k) noexcept nogil:
    """The k-th item that is not among the ascending `items`, counted from 0.

    Before items[i] there are items[i] - i such items; the answer is k plus the number of items with at
    most k of them before.
    """
    cdef uint32_t low = 0, high = n_rated, middle
    while low < high:
        middle = (low + high) // 2
        if <uint32_t> items[middle] - middle <= k:
            low = middle + 1
        else:
            high = middle
    return <int32_t> (k + low)
