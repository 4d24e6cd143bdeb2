"""Scratch memory for the threads of a kernel; arena.pxd describes how it is used."""

import numpy as np

from libc.stdint cimport uint8_t

from rankbench.kernels.shared.checks cimport within
from rankbench.kernels.shared.parallel cimport MOST_THREADS

cdef extern from *:
    const Py_ssize_t PY_SSIZE_T_MAX


cdef class Scratch:
    """Scratch memory of `size` bytes for each thread, released with this object."""

    def __cinit__(self, size_t size, int threads):
        """Allocate the memory, or raise MemoryError; a ValueError without a thread."""
        cdef uint8_t[::1] block
        cdef size_t off
        within("threads", threads, 1, MOST_THREADS)
        if size > <size_t> (PY_SSIZE_T_MAX - LINE) // <size_t> threads:
            raise MemoryError(f"{threads} threads with {size} bytes of scratch memory each")
        self.block = np.empty(size * threads + LINE, np.uint8)
        block = self.block
        off = <size_t> &block[0] % LINE
        self.start = <char *> &block[0] + (LINE - off) % LINE
        self.size = size

    cdef Arena share(self, int thread) noexcept nogil:
        """The memory of one thread, as an unused arena."""
        return Arena(self.start + <size_t> thread * self.size, 0)
