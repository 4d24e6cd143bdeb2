"""Negatives for implicit feedback: for every positive an item that its user has not, all equally likely."""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from parallel cimport team
from splitmix cimport even_below, stream_of


def draw_negatives(
    const int64_t[::1] indptr, const int32_t[::1] positives, int n_items, uint64_t seed, int32_t[::1] out, int threads
):
    """A negative beside each positive; each user draws from a stream of their own, so threads change nothing.

    A user's positives ascend, and leave at least one item.
    """
    threads = team(threads)
    cdef Py_ssize_t user
    for user in prange(indptr.shape[0] - 1, nogil=True, schedule="dynamic", chunksize=64, num_threads=threads):
        if indptr[user + 1] > indptr[user]:
            _draw(&positives[0] + indptr[user], indptr[user + 1] - indptr[user], n_items,
                  stream_of(seed, user), &out[0] + indptr[user])


cdef void _draw(
    const int32_t *positives, Py_ssize_t n, Py_ssize_t n_items, uint64_t stream, int32_t *out
) noexcept nogil:
    """The number of a missing item is drawn, and the item looked up: O(log n), and no draw is rejected."""
    cdef Py_ssize_t place
    for place in range(n):
        out[place] = _missing(positives, n, <int32_t> even_below(&stream, <uint32_t> (n_items - n)))


cdef inline int32_t _missing(const int32_t *positives, Py_ssize_t n, int32_t number) noexcept nogil:
    """The missing item that so many missing ones stand before.

    positives[p] - p items are missing before the p-th positive, and that never falls: the first p for which
    it is above `number` says that p positives stand before the item.
    """
    cdef Py_ssize_t low = 0, high = n, middle
    while low < high:
        middle = (low + high) // 2
        if positives[middle] - middle > number:
            high = middle
        else:
            low = middle + 1
    return number + <int32_t> low
