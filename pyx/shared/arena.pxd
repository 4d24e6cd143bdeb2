# Scratch memory of kernels: one block for each thread; the same function computes its size and lays it out.
#
# Each kernel has one function that lays out its scratch memory:
#
#     cdef Memory lay_out(Arena *arena, Py_ssize_t longest) noexcept nogil:
#         return Memory(floats(arena, longest), ints(arena, 2 * longest))
#
# It is first called with an empty arena, which only counts bytes and returns NULL, and then by each thread with
# the thread's own share of the memory:
#
#     cdef Arena arena = Arena(NULL, 0)
#     lay_out(&arena, longest)
#     cdef Scratch scratch = Scratch(arena.used, threads)
#     with nogil, parallel(num_threads=threads):
#         arena = scratch.share(thread_id())
#         memory = lay_out(&arena, longest)
#
# The block is a NumPy array that is released with the `Scratch`, so nothing is freed by hand, and NumPy raises the
# MemoryError. Its contents are undefined.

from libc.stdint cimport int32_t, int64_t

cpdef enum:
    LINE = 64  # bytes of a cache line: every array starts a new line, so that threads never share a line

cdef extern from *:
    """
    #define RANKBENCH_MOST ((size_t) PY_SSIZE_T_MAX / 128 * 64)
    """
    const size_t _MOST "RANKBENCH_MOST"  # bytes, which no machine has: what would be more is counted as so much

cdef struct Arena:
    char *start  # NULL: count bytes only
    size_t used  # bytes handed out so far, a multiple of LINE


cdef inline void *taken(Arena *arena, Py_ssize_t n, size_t size) noexcept nogil:
    """The next n elements of this size; NULL from an arena that only counts."""
    cdef char *found = NULL if arena.start == NULL else arena.start + arena.used
    if <size_t> n > (_MOST - arena.used) // size:  # a negative n too
        arena.used = _MOST
    else:
        arena.used = min(_MOST, arena.used + (<size_t> n * size + LINE - 1) // LINE * LINE)
    return found


cdef inline double *floats(Arena *arena, Py_ssize_t n) noexcept nogil:
    """Scratch memory for n doubles."""
    return <double *> taken(arena, n, sizeof(double))


cdef inline int32_t *ints(Arena *arena, Py_ssize_t n) noexcept nogil:
    """Scratch memory for n 32-bit integers."""
    return <int32_t *> taken(arena, n, sizeof(int32_t))


cdef inline int64_t *longs(Arena *arena, Py_ssize_t n) noexcept nogil:
    """Scratch memory for n 64-bit integers."""
    return <int64_t *> taken(arena, n, sizeof(int64_t))


cdef class Scratch:
    cdef object block  # the NumPy array that owns the memory
    cdef char *start
    cdef size_t size  # bytes of one share

    cdef Arena share(self, int thread) noexcept nogil
