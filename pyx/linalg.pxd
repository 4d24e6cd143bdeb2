# Vectors of doubles, inline. A sum runs in a fixed number of lanes that are added up in a fixed
# order, so that its bits depend neither on the compiler's vector width nor on the machine.

# There are four lanes: rows of factors are padded with zeros to a multiple of 4, and no loop has a tail.


cdef inline double dot(const double *x, const double *y, Py_ssize_t n) noexcept nogil:
    """sum_k x_k y_k, for n a multiple of 4."""
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0
    cdef Py_ssize_t k
    for k in range(0, n, 4):
        a += x[k] * y[k]
        b += x[k + 1] * y[k + 1]
        c += x[k + 2] * y[k + 2]
        d += x[k + 3] * y[k + 3]
    return (a + b) + (c + d)


cdef inline double dot_difference(
    const double *x, const double *y, const double *z, Py_ssize_t n
) noexcept nogil:
    """sum_k x_k (y_k - z_k), for n a multiple of 4."""
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0
    cdef Py_ssize_t k
    for k in range(0, n, 4):
        a += x[k] * (y[k] - z[k])
        b += x[k + 1] * (y[k + 1] - z[k + 1])
        c += x[k + 2] * (y[k + 2] - z[k + 2])
        d += x[k + 3] * (y[k + 3] - z[k + 3])
    return (a + b) + (c + d)


cdef inline double total(const double *x, Py_ssize_t n) noexcept nogil:
    """sum_k x_k, in order, for any n."""
    cdef double s = 0.0
    cdef Py_ssize_t k
    for k in range(n):
        s += x[k]
    return s
