# When a line search is worth its trials, and when one of its steps is accepted (Armijo's condition).

from libc.math cimport fabs

cdef extern from *:
    """
    #define RANKBENCH_SUFFICIENT 1e-4
    #define RANKBENCH_HIDDEN 0x1p-46
    """
    const double SUFFICIENT "RANKBENCH_SUFFICIENT"  # the share of the decrease promised by the slope
    const double HIDDEN "RANKBENCH_HIDDEN"  # of a value: what the rounding errors of a sum of many numbers hide


cdef inline bint sufficient(double value, double start, double length, double slope) noexcept nogil:
    """As `sufficient` in rankbench/methods/line_search.py: whether a step has decreased a function sufficiently."""
    return value < start + SUFFICIENT * length * slope


cdef inline bint promising(double slope, double value) noexcept nogil:
    """As `promising` in rankbench/methods/line_search.py: whether a value can show the decrease of a step."""
    return slope < -HIDDEN * fabs(value)


cdef inline bint level(double change, double value) noexcept nogil:
    """As `level` in rankbench/methods/line_search.py: whether rounding errors alone may have raised a value."""
    return change <= HIDDEN * fabs(value)
