# The update step of pairwise gradient descent on factors, for any loss.

cdef struct Move:
    double slope  # the step size times the slope of the loss at u . (v - w)
    double keep_u  # 1 - the step size times the row's share of the penalty
    double keep_v
    double keep_w


cdef inline void update(double *u, double *v, double *w, Py_ssize_t rank, Move move) noexcept nogil:
    """Update u = keep_u u - g (v - w);  v = keep_v v - g u;  w = keep_w w + g u: from the old values, g = slope."""
    cdef Py_ssize_t k
    cdef double old_u, old_v, old_w
    for k in range(rank):
        old_u, old_v, old_w = u[k], v[k], w[k]
        u[k] = move.keep_u * old_u - move.slope * (old_v - old_w)
        v[k] = move.keep_v * old_v - move.slope * old_u
        w[k] = move.keep_w * old_w + move.slope * old_u
