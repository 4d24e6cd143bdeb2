# The losses of a comparison by its margin, u . (v - w).

from libc.math cimport exp, log1p

cdef enum Loss:
    _SQUARED_HINGE, _HINGE, _LOGISTIC


cdef inline double loss_of(int loss, double margin) noexcept nogil:
    """h^2 or h with h = max(0, 1 - m); log(1 + e^-m) without overflow."""
    cdef double missing = max(0.0, 1.0 - margin)
    if loss == _SQUARED_HINGE:
        return missing * missing
    if loss == _HINGE:
        return missing
    return log1p(exp(-abs(margin))) + max(0.0, -margin)
