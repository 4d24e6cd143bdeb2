# Even draws without the GIL, from the raw bits of the caller's generator and in integers only: NumPy
# promises the bits for ever, and so the draws are the same on every machine and under every version.

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from numpy.random cimport bitgen_t

cdef enum:
    MANY = 32


cdef inline uint64_t below64(bitgen_t *bits, uint64_t n) noexcept nogil:
    """An even draw from 0 .. n-1: the first 2^64 mod n numbers are rejected, the others share out evenly."""
    cdef uint64_t drawn = bits.next_uint64(bits.state)
    cdef uint64_t uneven
    if drawn < n:
        uneven = (<uint64_t> 0 - n) % n
        while drawn < uneven:
            drawn = bits.next_uint64(bits.state)
    return drawn % n


cdef inline size_t table_size(int64_t k) noexcept nogil:
    """Room for `draw_subset`: every third place is taken, and nobody is pushed over the end."""
    return 3 * <size_t> k + 1


cdef inline void draw_subset(bitgen_t *bits, int64_t n, int64_t k, int64_t *table, int64_t *out) noexcept nogil:
    """k different numbers of 0 .. n-1, ascending; every subset is as likely as any other, in O(k).

    Floyd's algorithm (Bentley and Floyd 1987): a number that is taken already stands for the last one that
    may be drawn at all. The table of what is taken has table_size(k) places. A number's place in it rises
    with the number, so that reading the table out leaves next to nothing to sort.
    """
    cdef double places = 2.0 * <double> k / <double> n
    cdef size_t size = table_size(k), place
    cdef int64_t i, drawn, filled = 0
    memset(table, -1, size * sizeof(int64_t))
    for i in range(k):
        drawn = <int64_t> below64(bits, <uint64_t> (n - k + i + 1))
        if not _is_new(table, places, drawn):
            _is_new(table, places, n - k + i)
    for place in range(size):
        if table[place] >= 0:
            out[filled] = table[place]
            filled += 1
    for i in range(1, k):
        drawn = out[i]
        filled = i
        while filled > 0 and out[filled - 1] > drawn:
            out[filled] = out[filled - 1]
            filled -= 1
        out[filled] = drawn


cdef inline bint _is_new(int64_t *table, double places, int64_t number) noexcept nogil:
    """Whether the table did not hold the number; it does now."""
    cdef size_t place = <size_t> (places * <double> number)
    while table[place] >= 0:
        if table[place] == number:
            return False
        place += 1
    table[place] = number
    return True


cdef inline void sort32(int32_t *numbers, size_t n) noexcept nogil:
    """Arrange the numbers so that they ascend; few, as they mostly are, by insertion."""
    cdef size_t i, place
    cdef int32_t moving
    if n > MANY:
        qsort(numbers, n, sizeof(int32_t), _compare32)
        return
    for i in range(1, n):
        moving = numbers[i]
        place = i
        while place > 0 and numbers[place - 1] > moving:
            numbers[place] = numbers[place - 1]
            place -= 1
        numbers[place] = moving


cdef inline int _compare32(const void *a, const void *b) noexcept nogil:
    cdef int32_t x = (<const int32_t *> a)[0], y = (<const int32_t *> b)[0]
    return (x > y) - (x < y)
