# Looking up single entries of sparse rows.

from libc.stdint cimport int32_t, int64_t

from rankbench.kernels.shared.rows cimport SparseView


cdef inline double entry_at(const SparseView *rows, Py_ssize_t row, int32_t column) noexcept nogil:
    """The entry of a row, whose columns ascend, at a column; 0 where there is none. O(log entries).

    Invariant: an entry of the column, if there is any, is among the n from `first` on. No branch depends on what is
    compared, since it could not be predicted.
    """
    cdef int64_t first = rows.indptr[row], n = rows.indptr[row + 1] - first, half
    while n > 1:
        half = n >> 1
        first += half * (rows.columns[first + half - 1] < column)
        n -= half
    return rows.values[first] if n and rows.columns[first] == column else 0.0
