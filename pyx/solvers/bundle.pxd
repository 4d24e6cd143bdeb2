# The dual problem of a bundle method (Teo et al. 2010): weights of the cutting planes below a convex loss, on the
# simplex, that is not negative and with sum 1.
#
# The problem is min over w of lam/2 |w|^2 + max_t (a_t . w + b_t), with a plane a_t . w + b_t for each t. Its dual is
# max over beta of b . beta - |A' beta|^2 / (2 lam), with the a_t as the rows of A, and w = -A' beta / lam.

cdef struct Planes:
    Py_ssize_t n
    const double *products  # products[s * stride + t] = a_s . a_t
    Py_ssize_t stride
    const double *offsets  # b
    double lam


cdef inline double _curvature(
    const double *products, Py_ssize_t stride, Py_ssize_t s, Py_ssize_t t
) noexcept nogil:
    """|a_s - a_t|^2."""
    return products[s * stride + s] + products[t * stride + t] - 2.0 * products[s * stride + t]


cdef inline double weigh_planes(
    const Planes *shared, double tolerance, double *beta, double *slopes
) noexcept nogil:
    """Improve the weights in `beta` until the dual's derivative is within `tolerance`; the dual's value.

    Each turn moves weight to the plane that is highest at the current w, from the plane for which the dual gains most.
    A turn costs O(n). Invariant: slopes = products beta / lam - offsets, and beta stays on the simplex, so that the
    value returned is a lower bound of the minimum. `slopes` is scratch memory for n values.
    """
    cdef Planes planes = shared[0]
    cdef Py_ssize_t n = planes.n, stride = planes.stride
    cdef const double *products = planes.products
    cdef const double *offsets = planes.offsets
    cdef double lam = planes.lam
    cdef Py_ssize_t s, t, up, down, _turn
    cdef double curvature, step, gain, worst, most, value = 0.0
    for s in range(n):
        slopes[s] = -offsets[s]
        for t in range(n):
            slopes[s] += products[s * stride + t] * beta[t] / lam
    for _turn in range(200 * n):
        up, down, worst, most = 0, -1, 0.0, 0.0
        for s in range(n):
            if slopes[s] < slopes[up]:
                up = s
        for s in range(n):
            gain = slopes[s] - slopes[up]
            if beta[s] > 0.0 and gain > 0.0:
                worst = max(worst, gain)
                curvature = max(_curvature(products, stride, up, s) / lam, 1e-300)
                if gain * gain > most * curvature:
                    most = gain * gain / curvature
                    down = s
        if worst <= tolerance or down < 0:
            break
        step = min(
            beta[down], (slopes[down] - slopes[up]) / max(_curvature(products, stride, up, down) / lam, 1e-300)
        )
        beta[up] += step
        beta[down] = max(0.0, beta[down] - step)
        for s in range(n):
            slopes[s] += step / lam * (products[s * stride + up] - products[s * stride + down])
    for s in range(n):
        value += beta[s] * (offsets[s] - 0.5 * (slopes[s] + offsets[s]))
    return value
