# The loss sum max(|r_j - r_i| - eps, 0) over all pairs of m sorted residuals, in O(m).

from libc.stdint cimport int32_t


cdef inline double pair_loss(const double *r, const int32_t *order, Py_ssize_t m, double eps) noexcept nogil:
    """The sum of max(|r_j - r_i| - eps, 0) over all pairs, where r[order] ascends.

    Invariant: `below` residuals are more than eps below the current one, and `sum` is the sum of their differences
    from the least residual, so that residuals far from zero lose no digits.
    """
    cdef double loss = 0.0, sum = 0.0, least = r[order[0]] if m > 0 else 0.0, here
    cdef Py_ssize_t place, below = 0
    for place in range(m):
        here = r[order[place]]
        while below < place and here - r[order[below]] > eps:
            sum += r[order[below]] - least
            below += 1
        loss += below * (here - least - eps) - sum
    return loss
