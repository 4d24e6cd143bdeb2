# Comparisons sorted by task, for loops over the rows of one task.

from libc.stdint cimport int32_t, int64_t


cdef class TaskRows:
    cdef const int64_t[::1] starts
    cdef const int32_t[::1] users
    cdef const int32_t[::1] better
    cdef const int32_t[::1] worse
    cdef const double[::1] weights  # None: each row has the weight 1
