# The dual of a bundle method: weights of the planes below a convex loss, on the simplex.
#
# For min over w of lam/2 |w|^2 + max_t (a_t . w + b_t) it is max over beta of b . beta - |A' beta|^2 / (2 lam),
# and w = -A' beta / lam (Teo et al. 2010).


cdef inline double _curvature(
    const double *products, Py_ssize_t stride, Py_ssize_t s, Py_ssize_t t
) noexcept nogil:
    """|a_s - a_t|^2"""
    return products[s * stride + s] + products[t * stride + t] - 2.0 * products[s * stride + t]


cdef inline double weigh_planes(
    const double *products, Py_ssize_t stride, const double *offsets, double lam, Py_ssize_t n,
    double tolerance, double *beta, double *slopes,
) noexcept nogil:
    """Move weight to the plane that is most above the model from the one that gains most by it; the dual's value.

    products[s, t] = a_s . a_t; slopes is scratch. Invariant: slopes = products beta / lam - offsets, and
    beta stays on the simplex, so that whatever is returned is a lower bound.
    """
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
