# Pairwise gradient descent on factors: its step size, and the step itself, whatever the loss.

cdef struct FactorsView:
    double *users
    double *items
    Py_ssize_t rank  # padded to whole lanes
    const double *user_shrink
    const double *item_shrink
    double step
    double decay


cdef class DescentFactors:
    cdef double[:, ::1] users
    cdef double[:, ::1] items
    cdef const double[::1] user_shrink
    cdef const double[::1] item_shrink
    cdef FactorsView view


cdef inline double step_size(const FactorsView *factors, double updates) noexcept nogil:
    """step / (1 + decay t) after t updates."""
    return factors.step / (1.0 + factors.decay * updates)


cdef inline void descend_on(
    const FactorsView *factors, Py_ssize_t user, Py_ssize_t better, Py_ssize_t worse, double eta, double g
) noexcept nogil:
    """One update: u = keep_u u - g (v - w);  v = keep_v v - g u;  w = keep_w w + g u, all from the old values.

    g is the step size eta times the slope of the loss at u . (v - w). A row keeps 1 - eta shrinkage of itself, and
    nothing where that is negative: otherwise a row of few comparisons would change its sign and grow with every update.
    """
    cdef double *u = factors.users + user * factors.rank
    cdef double *v = factors.items + better * factors.rank
    cdef double *w = factors.items + worse * factors.rank
    cdef double keep_u = max(0.0, 1.0 - eta * factors.user_shrink[user])
    cdef double keep_v = max(0.0, 1.0 - eta * factors.item_shrink[better])
    cdef double keep_w = max(0.0, 1.0 - eta * factors.item_shrink[worse])
    cdef Py_ssize_t k
    cdef double old_u, old_v, old_w
    for k in range(factors.rank):
        old_u, old_v, old_w = u[k], v[k], w[k]
        u[k] = keep_u * old_u - g * (old_v - old_w)
        v[k] = keep_v * old_v - g * old_u
        w[k] = keep_w * old_w + g * old_u
