"""Negatives for implicit feedback: for every positive a random item that is not a positive of the user."""

# Roof of draw_negatives, a negative: 8 bytes; 3 * log2(per_user) + 6 flops; log2(per_user) chained.

from cython.parallel cimport prange
from libc.math cimport log1p
from libc.stdint cimport INT32_MAX, UINT32_MAX, int32_t, uint8_t, uint32_t, uint64_t

from rankbench.kernels.methods.pairwise cimport DescentFactors, FactorsView, margin_of
from rankbench.kernels.shared.checks cimport agree, within
from rankbench.kernels.shared.parallel cimport team
from rankbench.kernels.shared.rows cimport Pattern, longest_row
from rankbench.kernels.shared.draws cimport Stream, below, stream_of

cdef enum:
    _PATIENCE = 100  # draws among all positives, before a negative is drawn uniformly
    _TRIES = 30  # draws until a negative scores too high

cdef struct Own:
    Py_ssize_t user
    const int32_t *positives
    Py_ssize_t n
    Py_ssize_t missing  # items that are none of them


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


def draw_popular(*, Pattern positives, int n_items, uint64_t seed, int32_t[::1] out, int threads):
    """As `draw_negatives`, but an item is as likely as it has positives, of all users together.

    It is the item of a positive that is drawn among all, again where it is one of the user's own. After many in vain
    the negative is drawn as by `draw_negatives`.
    """
    threads = team(threads)
    agree("negatives", out.shape[0], positives.columns.shape[0])
    within("n_items", n_items, longest_row(positives.view.indptr, positives.view.n) + 1, INT32_MAX)
    within("positives", positives.columns.shape[0], 0, UINT32_MAX)
    cdef Py_ssize_t user, first, n, total = positives.columns.shape[0]
    for user in prange(positives.view.n, nogil=True, schedule="dynamic", chunksize=64, num_threads=threads):
        first = positives.view.indptr[user]
        n = positives.view.indptr[user + 1] - first
        if n > 0:
            _draw_popular(positives.view.columns, total, first, n, n_items, stream_of(seed, user), &out[first])


def draw_violators(
    *, Pattern positives, DescentFactors factors, const uint8_t[::1] wanted, uint64_t seed, int32_t[::1] out,
    double[::1] weights, int threads
):
    """For each wanted positive a random negative whose score is above the positive's less 1, and a weight.

    Negatives are drawn as by `draw_negatives` until one is so, which after t draws of m missing items says that some
    m / t stand so high: the weight is log(1 + m / t) / log(1 + m). After many draws in vain the weight is 0.
    """
    threads = team(threads)
    cdef Py_ssize_t n_items = len(factors.items)
    agree("negatives", out.shape[0], positives.columns.shape[0])
    agree("weights", weights.shape[0], positives.columns.shape[0])
    agree("what is wanted", wanted.shape[0], positives.columns.shape[0])
    agree("users", len(factors.users), positives.view.n)
    within("items", n_items, longest_row(positives.view.indptr, positives.view.n) + 1, INT32_MAX)
    cdef Py_ssize_t user, first, n
    for user in prange(positives.view.n, nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        first = positives.view.indptr[user]
        n = positives.view.indptr[user + 1] - first
        if n > 0:
            _draw_violators(
                Own(user, positives.view.columns + first, n, n_items - n), &factors.view, &wanted[first],
                stream_of(seed, user), &out[first], &weights[first],
            )


cdef void _draw(
    const int32_t *positives, Py_ssize_t n, Py_ssize_t n_items, Stream stream, int32_t *out
) noexcept nogil:
    """Draw a user's negatives: an index among the missing items, and then the item by bisection, in O(log n)."""
    cdef Py_ssize_t place
    for place in range(n):
        out[place] = _missing(positives, n, <int32_t> below(&stream, <uint32_t> (n_items - n)))


cdef void _draw_popular(
    const int32_t *every, Py_ssize_t total, Py_ssize_t first, Py_ssize_t n, Py_ssize_t n_items, Stream stream,
    int32_t *out
) noexcept nogil:
    """Draw a user's negatives among all positives, whose own begin at `first`."""
    cdef Py_ssize_t place, _time
    cdef int32_t item = 0
    for place in range(n):
        for _time in range(_PATIENCE):
            item = every[below(&stream, <uint32_t> total)]
            if not _holds(every + first, n, item):
                break
        else:
            item = _missing(every + first, n, <int32_t> below(&stream, <uint32_t> (n_items - n)))
        out[place] = item


cdef void _draw_violators(
    Own own, const FactorsView *factors, const uint8_t *wanted, Stream stream, int32_t *out, double *weights
) noexcept nogil:
    """Draw a user's negatives among those that score too high."""
    cdef Py_ssize_t place, times
    cdef double whole = log1p(<double> own.missing)
    cdef int32_t item = 0
    for place in range(own.n):
        if not wanted[place]:
            continue
        weights[place] = 0.0
        for times in range(1, _TRIES + 1):
            item = _missing(own.positives, own.n, <int32_t> below(&stream, <uint32_t> own.missing))
            if margin_of(factors, own.user, own.positives[place], item) < 1.0:
                weights[place] = log1p(<double> own.missing / <double> times) / whole
                break
        out[place] = item


cdef inline bint _holds(const int32_t *ascending, Py_ssize_t n, int32_t item) noexcept nogil:
    """Whether the item is one of these."""
    cdef Py_ssize_t first = 0, half
    while n > 1:
        half = n // 2
        first += half & -<Py_ssize_t> (ascending[first + half] <= item)
        n -= half
    return ascending[first] == item


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
