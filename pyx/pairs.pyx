"""The strict pairs that ratings imply: how many there are, all of them, or some drawn at random."""

import numpy as np

from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from numpy.random cimport bitgen_t

from random cimport bit_generator
from sorting cimport argsort


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

    Walking the pairs in order, each is taken with probability (places left) / (pairs left): every
    subset of the right size is as likely as any other, and the order stays (Knuth's algorithm S).
    """
    cdef Py_ssize_t n_users = indptr.shape[0] - 1, user
    better = np.empty(out_indptr[n_users], np.int32)
    worse = np.empty(out_indptr[n_users], np.int32)
    cdef int32_t[::1] to_better = better, to_worse = worse
    cdef bitgen_t *bits = bit_generator(rng)
    cdef Py_ssize_t place = 0, j, k
    cdef int64_t left, pairs
    with rng.bit_generator.lock, nogil:
        for user in range(n_users):
            left = out_indptr[user + 1] - out_indptr[user]
            pairs = counts[user]
            for j in range(indptr[user], indptr[user + 1]):
                for k in range(indptr[user], indptr[user + 1]):
                    if values[j] > values[k]:
                        if left == pairs or bits.next_double(bits.state) * pairs < left:
                            to_better[place] = items[j]
                            to_worse[place] = items[k]
                            place += 1
                            left -= 1
                        pairs -= 1
    return better, worse


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
