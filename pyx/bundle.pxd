# The dual of a bundle method: weights of the planes below a convex loss, on the simplex.
#
# For min over w of lam/2 |w|^2 + max_t (a_t . w + b_t) it is max over beta of b . beta - |A' beta|^2 / (2 lam),
# and w = -A' beta / lam (Teo et al. 2010).


cdef inline double weigh_planes(
    const double *products, Py_ssize_t stride, const double *offsets, double lam, Py_ssize_t n,
    double tolerance, double *beta, double *slopes,
) noexcept nogil:
    """Move weight between the two planes that gain most by it, until none gains; the dual's value, a lower bound.

    products[s, t] = a_s . a_t; slopes is scratch. Invariant: slopes = products beta / lam - offsets, and
    beta stays on the simplex, so that whatever is returned is a lower bound.
    """
    cdef Py_ssize_t s, t, up, down, turn
    cdef double curvature, step, value = 0.0
    for s in range(n):
        slopes[s] = -offsets[s]
        for t in range(n):
            slopes[s] += products[s * stride + t] * beta[t] / lam
    for turn in range(200 * n):
        up, down = 0, -1
        for s in range(n):
            if slopes[s] < slopes[up]:
                up = s
            if beta[s] > 0.0 and (down < 0 or slopes[s] > slopes[down]):
                down = s
        if slopes[down] - slopes[up] <= tolerance:
            break
        curvature = (
            products[up * stride + up] + products[down * stride + down] - 2.0 * products[up * stride + down]
        ) / lam
        step = beta[down]
        if curvature > 0.0:
            step = min(step, (slopes[down] - slopes[up]) / curvature)
        beta[up] += step
        beta[down] = max(0.0, beta[down] - step)
        for s in range(n):
            slopes[s] += step / lam * (products[s * stride + up] - products[s * stride + down])
    for s in range(n):
        value += beta[s] * (offsets[s] - 0.5 * (slopes[s] + offsets[s]))
    return value
