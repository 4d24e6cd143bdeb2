"""Negatives for implicit feedback: for every positive a random item that is not a positive of the user.

Each user has their own random stream, so no bit depends on the number of threads. A user's positives ascend, and are
not all items.
"""

# Roof of draw_negatives, a negative: 8 bytes; 3 * log2(per_user) + 6 flops; log2(per_user) chained.

from cython.parallel cimport prange
from libc.math cimport log1p
from libc.stdint cimport INT32_MAX, UINT32_MAX, int32_t, uint8_t, uint32_t, uint64_t

from rankbench.kernels.methods.pairwise cimport DescentFactors, FactorsView, margin_of
from rankbench.kernels.shared.checks cimport agree, within
from rankbench.kernels.shared.draws cimport Stream, below, stream_of
from rankbench.kernels.shared.parallel cimport team
from rankbench.kernels.shared.rows cimport Pattern, longest_row

cdef enum:
    _PATIENCE = 100  # draws among all positives, before a negative is drawn uniformly
    _TRIES = 30  # draws until a negative scores too high

cdef struct Own:
    # A user's positives, and how many items are none of them.
    Py_ssize_t user
    const int32_t *positives
    Py_ssize_t n
    Py_ssize_t missing


def draw_negatives(
    *, Pattern positives, int n_items, uint64_t seed, int32_t[::1] out, int threads, bint popular=False
) -> None:
    """Fill `out` with a negative for each positive, by user; all items that are no positives are alike.

    With `popular` an item is as likely as it has positives, of all users together: it is the item of a positive that is
    drawn among all, again where it is one of the user's own. After many in vain it is drawn as without.
    """
    threads = team(threads)
    agree("negatives", out.shape[0], positives.columns.shape[0])
    within("n_items", n_items, longest_row(positives.view.indptr, positives.view.n) + 1, INT32_MAX)
    cdef Py_ssize_t user, total = positives.columns.shape[0]
    if popular:
        within("positives", total, 0, UINT32_MAX)
    cdef Own own
    for user in prange(positives.view.n, nogil=True, schedule="dynamic", chunksize=64, num_threads=threads):
        own = _of_user(positives, user, n_items)
        if own.n > 0 and popular:
            _draw_popular(own, positives.view.columns, total, stream_of(seed, user), &out[positives.view.indptr[user]])
        elif own.n > 0:
            _draw(own, stream_of(seed, user), &out[positives.view.indptr[user]])


def draw_violators(
    *, Pattern positives, DescentFactors factors, const uint8_t[::1] wanted, uint64_t seed, int32_t[::1] out,
    double[::1] weights, int threads
) -> None:
    """For each wanted positive a random negative whose score is above the positive's less 1, and a weight.

    Negatives are drawn as by `draw_negatives` until one is so, which after t draws of m missing items says that some
    m / t stand so high: the weight is log(1 + m / t) / log(1 + m). After many draws in vain the weight is 0.
    """
    threads = team(threads)
    cdef Py_ssize_t user, first, n_items = len(factors.items)
    agree("negatives", out.shape[0], positives.columns.shape[0])
    agree("weights", weights.shape[0], positives.columns.shape[0])
    agree("what is wanted", wanted.shape[0], positives.columns.shape[0])
    agree("users", len(factors.users), positives.view.n)
    within("items", n_items, longest_row(positives.view.indptr, positives.view.n) + 1, INT32_MAX)
    cdef Own own
    for user in prange(positives.view.n, nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        own = _of_user(positives, user, n_items)
        first = positives.view.indptr[user]
        if own.n > 0:
            _draw_violators(
                own, &factors.view, &wanted[first], stream_of(seed, user), &out[first], &weights[first]
            )


cdef inline Own _of_user(Pattern positives, Py_ssize_t user, Py_ssize_t n_items) noexcept nogil:
    """A user's positives."""
    cdef Py_ssize_t first = positives.view.indptr[user], n = positives.view.indptr[user + 1] - first
    return Own(user, positives.view.columns + first, n, n_items - n)


cdef void _draw(Own own, Stream stream, int32_t *out) noexcept nogil:
    """Draw a user's negatives, all items alike."""
    cdef Py_ssize_t place
    for place in range(own.n):
        out[place] = _any(&own, &stream)


cdef void _draw_popular(
    Own own, const int32_t *every, Py_ssize_t total, Stream stream, int32_t *out
) noexcept nogil:
    """Draw a user's negatives among the positives of all users."""
    cdef Py_ssize_t place, _time
    cdef int32_t item = 0
    for place in range(own.n):
        for _time in range(_PATIENCE):
            item = every[below(&stream, <uint32_t> total)]
            if not _holds(own.positives, own.n, item):
                break
        else:
            item = _any(&own, &stream)
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
            item = _any(&own, &stream)
            if margin_of(factors, own.user, own.positives[place], item) < 1.0:
                weights[place] = log1p(<double> own.missing / <double> times) / whole
                break
        out[place] = item


cdef inline int32_t _any(const Own *own, Stream *stream) noexcept nogil:
    """A negative: an index among the missing items, and then the item by bisection, in O(log n)."""
    return _missing(own.positives, own.n, <int32_t> below(stream, <uint32_t> own.missing))


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
