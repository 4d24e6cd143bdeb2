# The few BLAS and LAPACK calls that are faster than a loop, for row-major matrices.
#
# BLAS runs on one thread per call (see rankbench.core.blas), so that the bits depend on the input alone and parallel
# kernels can call it from all their threads.

from scipy.linalg.cython_blas cimport dgemm, dsyrk
from scipy.linalg.cython_lapack cimport dpotrf, dpotrs, dsyevd


cdef inline void multiply_transposed(
    const double *a, const double *b, double *out, int rows, int columns, int inner, int out_stride
) noexcept nogil:
    """out (rows x columns) = a (rows x inner) b^T, b being columns x inner."""
    cdef char transposed = b'T', plain = b'N'
    cdef double one = 1.0, zero = 0.0
    dgemm(
        &transposed, &plain, &columns, &rows, &inner, &one,
        <double *> b, &inner, <double *> a, &inner, &zero, out, &out_stride,
    )


cdef inline void add_gram(const double *a, double *out, int rows, int columns) noexcept nogil:
    """out (columns x columns, upper triangle) += a^T a, a being rows x columns."""
    cdef char lower = b'L', plain = b'N'
    cdef double one = 1.0
    dsyrk(&lower, &plain, &columns, &rows, &one, <double *> a, &columns, &one, out, &columns)


cdef inline void multiply(
    const double *a, const double *b, double *out, int rows, int columns, int inner
) noexcept nogil:
    """out (rows x columns) = a (rows x inner) b (inner x columns)."""
    cdef char plain = b'N'
    cdef double one = 1.0, zero = 0.0
    dgemm(
        &plain, &plain, &columns, &rows, &inner, &one,
        <double *> b, &columns, <double *> a, &inner, &zero, out, &columns,
    )


cdef inline void multiply_from_left(
    const double *a, const double *b, double *out, int rows, int columns, int inner, int a_stride
) noexcept nogil:
    """out (rows x columns) = a^T b, a being inner x rows in rows of a_stride, b inner x columns."""
    cdef char transposed = b'T', plain = b'N'
    cdef double one = 1.0, zero = 0.0
    dgemm(
        &plain, &transposed, &columns, &rows, &inner, &one,
        <double *> b, &columns, <double *> a, &a_stride, &zero, out, &columns,
    )


cdef inline int factor_positive(double *a, int n) noexcept nogil:
    """Replace the upper triangle of a symmetric positive definite a by its Cholesky factor; 0, or an error code."""
    cdef char lower = b'L'
    cdef int info = 0
    dpotrf(&lower, &n, a, &n, &info)
    return info


cdef inline void solve_factored(const double *factor, double *x, int n) noexcept nogil:
    """Solve a x = x in place, given what `factor_positive` made of a."""
    cdef char lower = b'L'
    cdef int one = 1, info = 0
    dpotrs(&lower, &n, &one, <double *> factor, &n, x, &n, &info)


cdef inline Py_ssize_t spectrum_work(Py_ssize_t n) noexcept nogil:
    """The number of doubles of scratch memory that `spectrum` needs."""
    return (1 + 6 * n + 2 * n * n) + (3 + 5 * n)


cdef inline int spectrum(double *a, double *values, double *work, int n) noexcept nogil:
    """Fill in the ascending eigenvalues, and replace the symmetric a by its eigenvectors as rows; 0, or an error."""
    cdef char vectors = b'V', lower = b'L'
    cdef int info = 0, size = 1 + 6 * n + 2 * n * n, integers = 3 + 5 * n
    dsyevd(&vectors, &lower, &n, a, &n, values, work, &size, <int *> (work + size), &integers, &info)
    return info
