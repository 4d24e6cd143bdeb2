"""Negatives for implicit feedback: for every positive a random item that is not a positive of the user."""

# Roof of draw_negatives, a negative: 8 bytes; 3 * log2(per_user) + 6 flops; log2(per_user) chained.

from cython.parallel cimport prange
from libc.stdint cimport INT32_MAX, int32_t, uint32_t, uint64_t

from rankbench.kernels.shared.checks cimport agree, within
from rankbench.kernels.shared.parallel cimport team
from rankbench.kernels.shared.rows cimport Pattern, longest_row
from rankbench.kernels.shared.draws cimport Stream, below, stream_of


def draw_negatives(*, Pattern positives, int n_items, uint64_t seed, int32_t[::1] out, int threads):
    """Fill `out` with a negative for each positive, by user; a user's positives ascend and are not all items.

    Each user has their own random stream, so no bit depends on the number of threads.
    """
    threads = team(threads)
    agree("negatives", out.shape[0], positives.columns.shape[0])
    within("n_items", n_items, longest_row(positives.view.indptr, positives.view.n) + 1, INT32_MAX)
    cdef Py_ssize_t user, first, n
    for user in prange(positives.view.n, nogil=True, schedule="dynamic", chunksize=64, num_threads=threads):
        first = positives.view.indptr[user]
        n = positives.view.indptr[user + 1] - first
        if n > 0:
            _draw(positives.view.columns + first, n, n_items, stream_of(seed, user), &out[first])


cdef void _draw(
    const int32_t *positives, Py_ssize_t n, Py_ssize_t n_items, Stream stream, int32_t *out
) noexcept nogil:
    """Draw a user's negatives: an index among the missing items, and then the item by bisection, in O(log n)."""
    cdef Py_ssize_t place
    for place in range(n):
        out[place] = _missing(positives, n, <int32_t> below(&stream, <uint32_t> (n_items - n)))


cdef inline int32_t _missing(const int32_t *positives, Py_ssize_t n, int32_t number) noexcept nogil:
    """The missing item with this number, counted from 0 in ascending order.

    positives[p] - p items are missing before the p-th positive, and this count never decreases with p. The first p
    with a count above `number` is the number of positives before the item. A step of the bisection adds
    half of the range or zero, without a branch: no processor could predict it, as the number is random.
    """
    cdef Py_ssize_t first = 0, half
    while n > 1:
        half = n // 2
        first += half & -<Py_ssize_t> (positives[first + half - 1] - (first + half - 1) <= number)
        n -= half
    first += positives[first] - first <= number
    return number + <int32_t> first
