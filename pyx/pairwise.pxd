# The step that pairwise descent on factors takes, whatever the loss.


cdef inline void update(
    double *u, double *v, double *w, Py_ssize_t rank, double g, double keep_u, double keep_v, double keep_w
) noexcept nogil:
    """u = keep_u u - g (v - w);  v = keep_v v - g u;  w = keep_w w + g u: all from the old values.

    g is the step times the slope of the loss at u . (v - w), keep is 1 - step times the penalty's share.
    """
    cdef Py_ssize_t k
    cdef double old_u, old_v, old_w
    for k in range(rank):
        old_u, old_v, old_w = u[k], v[k], w[k]
        u[k] = keep_u * old_u - g * (old_v - old_w)
        v[k] = keep_v * old_v - g * old_u
        w[k] = keep_w * old_w + g * old_u
