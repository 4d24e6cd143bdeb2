# What kernels of metrics are asked for: which metrics, each with its cut and its threshold.

from libc.stdint cimport int32_t

cdef struct Request:
    int code
    Py_ssize_t cut  # places that count; 0: all
    double threshold  # the least truth that is relevant; eps of INSENSITIVE

cdef struct RequestView:
    Py_ssize_t n  # metrics
    const int32_t *codes
    const int32_t *cuts
    const double *thresholds
    const double *discounts  # by place


cdef class Requests:
    cdef const int32_t[::1] codes
    cdef const int32_t[::1] cuts
    cdef const double[::1] thresholds
    cdef const double[::1] discounts
    cdef RequestView view


cdef inline Request request_at(const RequestView *asked, Py_ssize_t m) noexcept nogil:
    """The m-th metric that is asked for."""
    return Request(asked.codes[m], asked.cuts[m], asked.thresholds[m])
