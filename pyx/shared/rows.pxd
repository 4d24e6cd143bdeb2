# The array arguments of kernels: the rows of a sparse matrix, and comparisons by user.
#
# Each class owns its arrays and checks that their lengths agree. `view` holds the same arrays as C pointers, for loops
# without the GIL; the pointer of an empty array is NULL.

from libc.stdint cimport int32_t, int64_t

cdef struct PatternView:
    Py_ssize_t n  # rows
    const int64_t *indptr
    const int32_t *columns

cdef struct SparseView:
    Py_ssize_t n  # rows
    const int64_t *indptr
    const int32_t *columns
    const double *values

cdef struct ComparisonView:
    Py_ssize_t n  # users
    const int64_t *indptr
    const int32_t *better
    const int32_t *worse


cdef class Pattern:
    cdef const int64_t[::1] indptr
    cdef const int32_t[::1] columns
    cdef PatternView view


cdef class SparseRows:
    cdef const int64_t[::1] indptr
    cdef const int32_t[::1] columns
    cdef const double[::1] values
    cdef SparseView view


cdef class ComparisonRows:
    cdef const int64_t[::1] indptr
    cdef const int32_t[::1] better
    cdef const int32_t[::1] worse
    cdef ComparisonView view


cdef Py_ssize_t count_rows(const int64_t[::1] indptr, Py_ssize_t entries) except -1


cdef inline const int32_t *first_id(const int32_t[::1] ids) noexcept nogil:
    """The address of the first id; NULL for an empty array."""
    return &ids[0] if ids.shape[0] > 0 else NULL


cdef inline const double *first_value(const double[::1] values) noexcept nogil:
    """The address of the first value; NULL for an empty array."""
    return &values[0] if values.shape[0] > 0 else NULL


cdef inline const double *first_row(const double[:, ::1] rows) noexcept nogil:
    """The address of the first row, NULL if there is none."""
    return &rows[0, 0] if rows.shape[0] > 0 and rows.shape[1] > 0 else NULL


cdef inline Py_ssize_t longest_row(const int64_t *indptr, Py_ssize_t n) noexcept nogil:
    """The largest number of entries in any of n rows."""
    cdef Py_ssize_t row, longest = 0
    for row in range(n):
        longest = max(longest, <Py_ssize_t> (indptr[row + 1] - indptr[row]))
    return longest
