# Uniform draws of integers without the GIL. They use raw bits and integer arithmetic only, so that the numbers are the
# same on every machine and with every version of NumPy, which guarantees the bits of its generators.
#
# There are two sources of bits: the caller's NumPy generator, and a separate stream for each task of a parallel pass,
# so that the numbers of a task depend on the task alone and not on the thread that runs it (SplitMix64; Steele, Lea
# and Flood 2014).
#
#     cdef bitgen_t *bits = bit_generator(rng)                 cdef Stream stream = stream_of(seed, task)
#     with rng.bit_generator.lock, nogil:
#         place = below(bits, n)                               place = below(&stream, n)

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset
from numpy.random cimport bitgen_t

cdef struct Stream:
    uint64_t state

ctypedef fused Bits:
    bitgen_t
    Stream


cdef inline bitgen_t *bit_generator(rng) except NULL:
    """The C side of a numpy.random.Generator; hold `rng.bit_generator.lock` while drawing."""
    return <bitgen_t *> PyCapsule_GetPointer(rng.bit_generator.capsule, "BitGenerator")


cdef inline uint64_t mixed(uint64_t x) noexcept nogil:
    """SplitMix64's finaliser: flipping any bit of x flips about half of the bits of the result."""
    x = (x ^ (x >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t> 0x94D049BB133111EB
    return x ^ (x >> 31)


cdef inline Stream stream_of(uint64_t seed, uint64_t number) noexcept nogil:
    """The stream of the task with this number; streams with adjacent numbers start far from each other."""
    return Stream(mixed(seed + mixed(number + 1)))


cdef inline uint32_t next_word(Bits *bits) noexcept nogil:
    """The next 32 random bits."""
    if Bits is bitgen_t:
        return bits.next_uint32(bits.state)
    else:
        bits.state += <uint64_t> 0x9E3779B97F4A7C15
        return <uint32_t> (mixed(bits.state) >> 32)


cdef inline uint32_t below(Bits *bits, uint32_t n) noexcept nogil:
    """A uniform draw from 0 .. n-1 (Lemire 2019: multiply, and reject the few words that would bias it)."""
    cdef uint64_t product = <uint64_t> next_word(bits) * n
    cdef uint32_t rest = <uint32_t> product
    cdef uint32_t uneven
    if rest < n:
        uneven = (<uint32_t> 0 - n) % n
        while rest < uneven:
            product = <uint64_t> next_word(bits) * n
            rest = <uint32_t> product
    return <uint32_t> (product >> 32)


cdef inline uint64_t below64(bitgen_t *bits, uint64_t n) noexcept nogil:
    """A uniform draw from 0 .. n-1 for n beyond 32 bits: reject the first 2^64 mod n words, and take the remainder.

    Lemire's method would need a product of 128 bits, which not every compiler has, and published splits depend on
    these draws.
    """
    cdef uint64_t drawn = bits.next_uint64(bits.state)
    cdef uint64_t uneven
    if drawn < n:
        uneven = (<uint64_t> 0 - n) % n
        while drawn < uneven:
            drawn = bits.next_uint64(bits.state)
    return drawn % n


cdef inline int32_t draw_next(Bits *bits, int32_t *order, Py_ssize_t place, Py_ssize_t n) noexcept nogil:
    """One step of a Fisher-Yates shuffle: exchange order[place] with a uniform draw from order[place:n]."""
    cdef Py_ssize_t drawn = place + below(bits, <uint32_t> (n - place))
    cdef int32_t chosen = order[drawn]
    order[drawn] = order[place]
    order[place] = chosen
    return chosen


cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #ifdef __AVX2__
    #include <immintrin.h>
    #endif

    /* Draws below bound, bound + by, ..., four at a time, where the processor has registers for that; returns how many.
       There are none if one of them would be rejected, which is rare. */
    static inline ptrdiff_t rankbench_draw_fours(uint64_t *state, int64_t bound, int by, ptrdiff_t n, int32_t *out) {
        ptrdiff_t k = 0;
    #ifdef __AVX2__
        typedef uint64_t words __attribute__((vector_size(32)));
        const uint64_t odd = 0x9E3779B97F4A7C15, apart = 4 * (int64_t) by;
        const __m256i upper = _mm256_setr_epi32(1, 3, 5, 7, 1, 3, 5, 7); /* halves of the products */
        words states = *state + odd * (words) {1, 2, 3, 4}, bounds = bound + (int64_t) by * (words) {0, 1, 2, 3};
        words x, product, rejected = {0};
        for (; k + 4 <= n; k += 4, states += 4 * odd, bounds += apart) {
            x = (states ^ states >> 30) * 0xBF58476D1CE4E5B9;
            x = (x ^ x >> 27) * 0x94D049BB133111EB;
            x = (x ^ x >> 31) >> 32;
            product = (words) _mm256_mul_epu32((__m256i) x, (__m256i) bounds);
            rejected |= (product & 0xffffffff) - bounds; /* negative where the lower half is below the bound */
            const __m256i drawn = _mm256_permutevar8x32_epi32((__m256i) product, upper);
            _mm_storeu_si128((__m128i *) (out + k), _mm256_castsi256_si128(drawn));
        }
        if (_mm256_movemask_pd((__m256d) rejected))
            return 0;
        *state += odd * (uint64_t) k;
    #endif
        return k;
    }
    """
    Py_ssize_t _draw_fours "rankbench_draw_fours" (
        uint64_t *state, int64_t bound, int by, Py_ssize_t n, int32_t *out
    ) noexcept nogil


cdef inline void draw_below(Stream *stream, Py_ssize_t bound, int by, Py_ssize_t n, int32_t *out) noexcept nogil:
    """Uniform draws below bound, bound + by, bound + 2 by, ...: n of them, as `below` draws them one after another."""
    cdef Py_ssize_t k
    for k in range(_draw_fours(&stream.state, bound, by, n, out), n):
        out[k] = <int32_t> below(stream, <uint32_t> (bound + k * by))


cdef inline void shuffled(Stream *stream, int32_t *order, Py_ssize_t n) noexcept nogil:
    """Fill `order` with 0 .. n-1 in random order (Fisher and Yates, inside out)."""
    cdef Py_ssize_t place, drawn
    draw_below(stream, 1, 1, n, order)
    for place in range(n):
        drawn = order[place]
        order[place] = order[drawn]
        order[drawn] = <int32_t> place


cdef inline size_t table_size(int64_t k) noexcept nogil:
    """The number of slots in the hash table of `draw_subset`: a third is filled, and probing never passes the end."""
    return 3 * <size_t> k + 1


cdef inline void draw_subset(bitgen_t *bits, int64_t n, int64_t k, int64_t *table, int64_t *out) noexcept nogil:
    """k different numbers of 0 .. n-1, ascending; every subset is equally likely. O(k) on average.

    Floyd's algorithm (Bentley and Floyd 1987): if the drawn number has been taken already, the largest number of the
    current range is taken instead. The hash table of taken numbers has table_size(k) slots. A number's slot
    grows with the number, so that the table is almost sorted when it is read in order.
    """
    cdef double slots = 2.0 * <double> k / <double> n
    cdef size_t size = table_size(k), slot
    cdef int64_t i, drawn, filled = 0
    memset(table, -1, size * sizeof(int64_t))
    for i in range(k):
        drawn = <int64_t> below64(bits, <uint64_t> (n - k + i + 1))
        if not _is_new(table, slots, drawn):
            _is_new(table, slots, n - k + i)
    for slot in range(size):
        if table[slot] >= 0:
            out[filled] = table[slot]
            filled += 1
    for i in range(1, k):
        drawn = out[i]
        filled = i
        while filled > 0 and out[filled - 1] > drawn:
            out[filled] = out[filled - 1]
            filled -= 1
        out[filled] = drawn


cdef inline bint _is_new(int64_t *table, double slots, int64_t number) noexcept nogil:
    """Add the number to the table; whether it was not in the table before."""
    cdef size_t slot = <size_t> (slots * <double> number)
    while table[slot] >= 0:
        if table[slot] == number:
            return False
        slot += 1
    table[slot] = number
    return True
