# A small generator for each task of a parallel pass, so that what a task draws depends on its name alone
# and not on who runs it: SplitMix64 (Steele, Lea and Flood 2014), started from a seed and the task's number.

from libc.stdint cimport int32_t, uint32_t, uint64_t


cdef inline uint64_t mixed(uint64_t x) noexcept nogil:
    """The finaliser: every bit of x changes about half of the bits that come out."""
    x = (x ^ (x >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t> 0x94D049BB133111EB
    return x ^ (x >> 31)


cdef inline uint64_t stream_of(uint64_t seed, uint64_t number) noexcept nogil:
    """Where the stream of this task starts; neighbours start far from each other."""
    return mixed(seed + mixed(number + 1))


cdef inline uint32_t next_word(uint64_t *state) noexcept nogil:
    state[0] += <uint64_t> 0x9E3779B97F4A7C15
    return <uint32_t> (mixed(state[0]) >> 32)


cdef inline uint32_t even_below(uint64_t *state, uint32_t n) noexcept nogil:
    """An even draw from 0 .. n-1 (Lemire 2019: multiply, and reject the few that would be uneven)."""
    cdef uint64_t product = <uint64_t> next_word(state) * n
    cdef uint32_t rest = <uint32_t> product
    cdef uint32_t uneven
    if rest < n:
        uneven = (<uint32_t> 0 - n) % n
        while rest < uneven:
            product = <uint64_t> next_word(state) * n
            rest = <uint32_t> product
    return <uint32_t> (product >> 32)


cdef inline void shuffled(uint64_t *state, int32_t *order, Py_ssize_t n) noexcept nogil:
    """0 .. n-1 in random order (Fisher and Yates, inside out)."""
    cdef Py_ssize_t place, drawn
    for place in range(n):
        drawn = even_below(state, <uint32_t> (place + 1))
        order[place] = order[drawn]
        order[drawn] = <int32_t> place
