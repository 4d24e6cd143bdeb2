# Random numbers from the caller's NumPy generator, drawn without the GIL.
#
#     cdef bitgen_t *bits = bit_generator(rng)
#     with rng.bit_generator.lock, nogil:
#         place = below(bits, n)

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport uint32_t, uint64_t
from numpy.random cimport bitgen_t


cdef inline bitgen_t *bit_generator(rng) except NULL:
    """The C side of a numpy.random.Generator; hold `rng.bit_generator.lock` while drawing."""
    return <bitgen_t *> PyCapsule_GetPointer(rng.bit_generator.capsule, "BitGenerator")


cdef inline uint32_t below(bitgen_t *bits, uint32_t n) noexcept nogil:
    """An even draw from 0 .. n-1 (Lemire 2019: multiply, and reject the few that would be uneven)."""
    cdef uint64_t product = <uint64_t> bits.next_uint32(bits.state) * n
    cdef uint32_t rest = <uint32_t> product
    cdef uint32_t uneven
    if rest < n:
        uneven = (<uint32_t> 0 - n) % n
        while rest < uneven:
            product = <uint64_t> bits.next_uint32(bits.state) * n
            rest = <uint32_t> product
    return <uint32_t> (product >> 32)
