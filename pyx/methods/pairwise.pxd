# The step that pairwise descent on factors takes, whatever the loss.

cdef struct Move:
    double slope  # the step times the slope of the loss at u . (v - w)
    double keep_u  # 1 - the step times the penalty's share of this row
    double keep_v
    double keep_w


cdef inline void update(double *u, double *v, double *w, Py_ssize_t rank, Move move) noexcept nogil:
    """u = keep_u u - g (v - w);  v = keep_v v - g u;  w = keep_w w + g u: all from the old values, g the slope."""
    cdef Py_ssize_t k
    cdef double old_u, old_v, old_w
    for k in range(rank):
        old_u, old_v, old_w = u[k], v[k], w[k]
        u[k] = move.keep_u * old_u - move.slope * (old_v - old_w)
        v[k] = move.keep_v * old_v - move.slope * old_u
        w[k] = move.keep_w * old_w + move.slope * old_u
