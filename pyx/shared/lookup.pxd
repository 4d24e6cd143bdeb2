# Looking up single entries of sparse rows.

from libc.stdint cimport int32_t, int64_t

from rankbench.kernels.shared.rows cimport SparseView


cdef inline double entry_at(const SparseView *rows, Py_ssize_t row, int32_t column) noexcept nogil:
    """The entry of a row, whose columns ascend, at a column; 0 where there is none. O(log entries).

    Invariant: an entry of the column, if there is any, is in low .. high - 1.
    """
    cdef int64_t low = rows.indptr[row], high = rows.indptr[row + 1], middle
    while low < high:
        middle = (low + high) // 2
        if rows.columns[middle] < column:
            low = middle + 1
        else:
            high = middle
    return rows.values[low] if low < rows.indptr[row + 1] and rows.columns[low] == column else 0.0
