"""Negatives for implicit feedback: for every positive an item that its user has not, all equally likely."""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, uint32_t, uint64_t

from rankbench.kernels.shared.parallel cimport team
from rankbench.kernels.shared.rows cimport Pattern
from rankbench.kernels.shared.draws cimport Stream, below, stream_of


def draw_negatives(*, Pattern positives, int n_items, uint64_t seed, int32_t[::1] out, int threads):
    """Fill `out` with a negative for each positive, by user; a user's positives ascend and leave at least one item.

    Each user draws from a stream of their own, so that no bit depends on the number of threads.
    """
    threads = team(threads)
    cdef Py_ssize_t user, first, n
    for user in prange(positives.view.n, nogil=True, schedule="dynamic", chunksize=64, num_threads=threads):
        first = positives.view.indptr[user]
        n = positives.view.indptr[user + 1] - first
        if n > 0:
            _draw(positives.view.columns + first, n, n_items, stream_of(seed, user), &out[first])


cdef void _draw(
    const int32_t *positives, Py_ssize_t n, Py_ssize_t n_items, Stream stream, int32_t *out
) noexcept nogil:
    """The number of a missing item is drawn, and the item looked up: O(log n), and no draw is rejected."""
    cdef Py_ssize_t place
    for place in range(n):
        out[place] = _missing(positives, n, <int32_t> below(&stream, <uint32_t> (n_items - n)))


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
