# When a step of a line search is accepted (Armijo's condition).

cdef extern from *:
    """
    #define RANKBENCH_SUFFICIENT 1e-4
    """
    const double SUFFICIENT "RANKBENCH_SUFFICIENT"  # the share of the decrease promised by the slope
