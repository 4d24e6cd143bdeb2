# When a step of a line search is accepted (Armijo's condition).

cdef extern from *:
    """
    #define RANKBENCH_SUFFICIENT 1e-4
    """
    const double SUFFICIENT "RANKBENCH_SUFFICIENT"  # the share of the decrease promised by the slope


cdef inline bint sufficient(double value, double start, double length, double slope) noexcept nogil:
    """As `sufficient` in rankbench/methods/line_search.py: whether a step has decreased a function sufficiently."""
    return value < start + SUFFICIENT * length * slope
