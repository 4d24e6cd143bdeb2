"""The block of scratch memory that the threads of a kernel share out; how it is used stands in arena.pxd."""

import numpy as np

from libc.stdint cimport uint8_t


cdef class Scratch:
    """Memory for so many threads, `size` bytes for each, released together with this object."""

    def __cinit__(self, size_t size, int threads):
        """Reserve the memory, and raise MemoryError where there is not enough of it."""
        cdef uint8_t[::1] block
        cdef size_t off
        self.block = np.empty(size * threads + LINE, np.uint8)
        block = self.block
        off = <size_t> &block[0] % LINE
        self.start = <char *> &block[0] + (LINE - off) % LINE
        self.size = size

    cdef Arena share(self, int thread) noexcept nogil:
        """The part of one thread, nothing of it handed out yet."""
        return Arena(self.start + <size_t> thread * self.size, 0)
