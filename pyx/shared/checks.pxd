# Checks of a kernel's arguments: once for each call, before any thread starts. Without them an array that is too short,
# or memory for too few items, would be read or written beyond its end. That ids and row pointers fit to each other is
# not checked. That arrays are aligned is checked in aligned.h.

from libc.stdint cimport INT32_MAX, int32_t, int64_t


cdef inline int agree(str what, Py_ssize_t found, Py_ssize_t needed) except -1:
    """A ValueError unless an argument has as many rows or columns as the others imply."""
    if found != needed:
        raise ValueError(f"{what}: {found} where {needed} are needed")
    return 0


cdef inline int within(str name, int64_t value, int64_t low, int64_t high) except -1:
    """A ValueError unless a number lies between two limits, or is one of them."""
    if not low <= value <= high:
        raise ValueError(f"{name}={value} is out of range: must be at least {low} and at most {high}")
    return 0


cdef inline int above_ids(str name, Py_ssize_t n, const int32_t[::1] ids) except -1:
    """A ValueError unless n, the number of what these ids stand for, is above all of them, and itself an id at most."""
    return within(name, n, <int64_t> highest_id(ids) + 1, INT32_MAX)


cdef inline int32_t highest_id(const int32_t[::1] ids) noexcept nogil:
    """The highest id, -1 if there is none."""
    cdef int32_t highest = -1
    cdef Py_ssize_t place
    for place in range(ids.shape[0]):
        highest = max(highest, ids[place])
    return highest
