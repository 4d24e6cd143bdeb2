"""Negatives for implicit feedback: for every positive a random item that is not a positive of the user.

Each user has their own random stream, so no bit depends on the number of threads. A user's positives ascend, and are
not all items.
"""

# Roof of draw_negatives, a negative: 20 bytes; 12 flops.

from cython.parallel cimport parallel, prange
from libc.stdint cimport INT32_MAX, UINT32_MAX, int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from rankbench.kernels.methods.pairwise cimport DescentFactors, FactorsView, margin_of
from rankbench.kernels.shared.arena cimport Arena, Scratch, ints, longs
from rankbench.kernels.shared.checks cimport above_ids, agree, within
from rankbench.kernels.shared.draws cimport Stream, below, draw_below, stream_of
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.powers cimport binary_log
from rankbench.kernels.shared.rows cimport Pattern, longest_row

cdef enum:
    _PATIENCE = 100  # draws among all positives, before a negative is drawn uniformly
    _TRIES = 30  # draws until a negative scores too high

cdef struct Own:
    # A user's positives, and how many items are none of them. These have numbers, counted from 0 as they ascend.
    Py_ssize_t user
    const int32_t *positives
    Py_ssize_t n
    Py_ssize_t missing
    int32_t *before  # of each positive: how many items are missing before it; behind the last one INT32_MAX
    int32_t *starts  # of each block of 2^shift numbers: how many positives are before the missing item of the first one
    int shift
    uint64_t *marks  # a bit for each item, 0 but while the user's positives are marked


def draw_negatives(
    *, Pattern positives, int n_items, uint64_t seed, int32_t[::1] out, int threads, bint popular=False
) -> None:
    """Fill `out` with a negative for each positive, by user; all items that are no positives are alike.

    With `popular` an item is as likely as it has positives, of all users together: it is the item of a positive that is
    drawn among all, again where it is one of the user's own. After many in vain it is drawn as without.
    """
    threads = team(threads)
    agree("negatives", out.shape[0], positives.columns.shape[0])
    cdef Py_ssize_t user, total = positives.columns.shape[0]
    cdef Py_ssize_t longest = longest_row(positives.view.indptr, positives.view.n)
    above_ids("n_items", n_items, positives.columns)
    within("n_items", n_items, longest + 1, INT32_MAX)
    if popular:
        within("positives", total, 0, UINT32_MAX)
    cdef Arena arena = Arena(NULL, 0)
    cdef Own own = _lay_out(&arena, longest, n_items if popular else 0)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        own = _lay_out(&arena, longest, n_items if popular else 0)
        for user in prange(positives.view.n, schedule="dynamic", chunksize=64):
            _take(&own, positives, user, n_items)
            if own.n > 0 and popular:
                _draw_popular(
                    &own, positives.view.columns, total, stream_of(seed, user), &out[positives.view.indptr[user]]
                )
            elif own.n > 0:
                _draw(&own, stream_of(seed, user), &out[positives.view.indptr[user]])


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
    cdef Py_ssize_t longest = longest_row(positives.view.indptr, positives.view.n)
    above_ids("items", n_items, positives.columns)
    within("items", n_items, longest + 1, INT32_MAX)
    cdef Arena arena = Arena(NULL, 0)
    cdef Own own = _lay_out(&arena, longest, 0)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        own = _lay_out(&arena, longest, 0)
        for user in prange(positives.view.n, schedule="dynamic", chunksize=16):
            _take(&own, positives, user, n_items)
            first = positives.view.indptr[user]
            if own.n > 0:
                _draw_violators(
                    &own, &factors.view, &wanted[first], stream_of(seed, user), &out[first], &weights[first]
                )


cdef Own _lay_out(Arena *arena, Py_ssize_t longest, Py_ssize_t n_marked) noexcept nogil:
    """Room for any user's positives, with bits for so many items."""
    cdef Own own
    cdef Py_ssize_t words = (n_marked + 63) // 64
    memset(&own, 0, sizeof(Own))
    own.before = ints(arena, longest + 1)
    own.starts = ints(arena, 2 * longest + 2)
    own.marks = <uint64_t *> longs(arena, words)
    if own.marks != NULL:
        memset(own.marks, 0, words * sizeof(uint64_t))
    return own


cdef void _take(Own *own, Pattern positives, Py_ssize_t user, Py_ssize_t n_items) noexcept nogil:
    """A user's positives."""
    cdef Py_ssize_t first = positives.view.indptr[user], n = positives.view.indptr[user + 1] - first
    own.user, own.positives, own.n, own.missing = user, positives.view.columns + first, n, n_items - n


cdef void _index(Own *own) noexcept nogil:
    """An index by which a missing item is found at once, with at most 2 n + 1 blocks of numbers."""
    cdef Py_ssize_t n = own.n, place, last
    own.shift = 0
    while own.missing >> own.shift > 2 * n:
        own.shift += 1
    last = (1 << own.shift) - 1
    memset(own.starts, 0, (2 * n + 2) * sizeof(int32_t))
    for place in range(n):
        own.before[place] = own.positives[place] - <int32_t> place
        own.starts[(own.before[place] + last) >> own.shift] += 1
    own.before[n] = INT32_MAX
    for place in range(1, (own.missing >> own.shift) + 1):
        own.starts[place] += own.starts[place - 1]


cdef inline void _mark(const Own *own, bint marked) noexcept nogil:
    """Set the bits of the positives, or clear them."""
    cdef Py_ssize_t place
    cdef int32_t item
    for place in range(own.n):
        item = own.positives[place]
        if marked:
            own.marks[item >> 6] |= <uint64_t> 1 << (item & 63)
        else:
            own.marks[item >> 6] = 0


cdef void _draw(Own *own, Stream stream, int32_t *out) noexcept nogil:
    """Draw a user's negatives, all items alike."""
    cdef Py_ssize_t place
    _index(own)
    draw_below(&stream, own.missing, 0, own.n, out)
    for place in range(own.n):
        out[place] = _missing_item(own, out[place])


cdef void _draw_popular(
    Own *own, const int32_t *every, Py_ssize_t total, Stream stream, int32_t *out
) noexcept nogil:
    """Draw a user's negatives among the positives of all users."""
    cdef Py_ssize_t place, _time
    cdef int32_t item = 0
    _mark(own, True)
    for place in range(own.n):
        for _time in range(_PATIENCE):
            item = every[below(&stream, <uint32_t> total)]
            if not own.marks[item >> 6] >> (item & 63) & 1:
                break
        else:
            _index(own)
            item = _any(own, &stream)
        out[place] = item
    _mark(own, False)


cdef void _draw_violators(
    Own *own, const FactorsView *factors, const uint8_t *wanted, Stream stream, int32_t *out, double *weights
) noexcept nogil:
    """Draw a user's negatives among those that score too high."""
    cdef Py_ssize_t place, times
    cdef double whole = binary_log(1.0 + <double> own.missing)
    cdef int32_t item = 0
    _index(own)
    for place in range(own.n):
        if not wanted[place]:
            continue
        weights[place] = 0.0
        for times in range(1, _TRIES + 1):
            item = _any(own, &stream)
            if margin_of(factors, own.user, own.positives[place], item) < 1.0:
                weights[place] = binary_log(1.0 + <double> own.missing / <double> times) / whole
                break
        out[place] = item


cdef inline int32_t _any(const Own *own, Stream *stream) noexcept nogil:
    """A negative, all items alike."""
    return _missing_item(own, <int32_t> below(stream, <uint32_t> own.missing))


cdef inline int32_t _missing_item(const Own *own, int32_t number) noexcept nogil:
    """The missing item with this number.

    Before the missing item are those positives before which at most so many items are missing. The index leaves few of
    them to be counted, mostly none, one or two: these without a branch, which could not be predicted.
    """
    cdef Py_ssize_t first = own.starts[number >> own.shift]
    first += own.before[first] <= number
    first += own.before[first] <= number
    while own.before[first] <= number:
        first += 1
    return number + <int32_t> first
