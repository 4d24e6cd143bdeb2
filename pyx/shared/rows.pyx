"""Rows of sparse matrices, and comparisons by user, as kernels take them."""

from rankbench.kernels.shared.checks cimport agree


cdef Py_ssize_t count_rows(const int64_t[::1] indptr, Py_ssize_t entries) except -1:
    """The number of rows of `indptr`; a ValueError if it does not fit the number of entries."""
    if indptr.shape[0] == 0 or indptr[0] != 0 or indptr[indptr.shape[0] - 1] != entries:
        raise ValueError(f"indptr must start with 0 and end with the number of entries, {entries}")
    return indptr.shape[0] - 1


cdef class Pattern:
    """The pattern of a sparse matrix: row r has entries in columns[indptr[r]:indptr[r + 1]]."""

    def __init__(self, *, const int64_t[::1] indptr, const int32_t[::1] columns):
        """Take the arrays, without a copy."""
        self.indptr, self.columns = indptr, columns
        self.view = PatternView(count_rows(indptr, columns.shape[0]), &indptr[0], first_id(columns))


cdef class SparseRows:
    """A sparse matrix by its rows (CSR): row r holds `values` in `columns`, from indptr[r] to indptr[r + 1]."""

    def __init__(self, *, const int64_t[::1] indptr, const int32_t[::1] columns, const double[::1] values):
        """Take the arrays, without a copy."""
        agree("values", values.shape[0], columns.shape[0])
        self.indptr, self.columns, self.values = indptr, columns, values
        self.view = SparseView(
            count_rows(indptr, columns.shape[0]), &indptr[0], first_id(columns), first_value(values)
        )


cdef class ComparisonRows:
    """Comparisons by user: user u prefers item better[c] to item worse[c], for c from indptr[u] to indptr[u + 1]."""

    def __init__(self, *, const int64_t[::1] indptr, const int32_t[::1] better, const int32_t[::1] worse):
        """Take the arrays, without a copy."""
        agree("worse items", worse.shape[0], better.shape[0])
        self.indptr, self.better, self.worse = indptr, better, worse
        self.view = ComparisonView(
            count_rows(indptr, better.shape[0]), &indptr[0], first_id(better), first_id(worse)
        )
