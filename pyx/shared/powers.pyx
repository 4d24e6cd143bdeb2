"""Powers and logarithms as kernels compute them, several at a time; powers.pxd has the series."""

from rankbench.kernels.shared.checks cimport agree


def exponentials(*, const double[::1] values, double less, double[::1] out):
    """Fill `out` with e to the power of each value less a number."""
    agree("out", out.shape[0], values.shape[0])
    if values.shape[0] > 0:
        powers(&values[0], less, values.shape[0], &out[0])


def exponentials_of_two(*, const double[::1] values, double less, double[::1] out):
    """Fill `out` with 2 to the power of each value less a number."""
    agree("out", out.shape[0], values.shape[0])
    if values.shape[0] > 0:
        powers_of_two(&values[0], less, values.shape[0], &out[0])


def logarithms(*, const double[::1] values, double[::1] out):
    """Fill `out` with ln(1 + y) of each value y from 0 to 1."""
    agree("out", out.shape[0], values.shape[0])
    if values.shape[0] > 0:
        logs_of_one_plus(&values[0], values.shape[0], &out[0])


def binary_logarithms(*, const double[::1] values, double[::1] out):
    """Fill `out` with log2(x) of each value x above 0, to three units in the last place where x is 1 or more."""
    agree("out", out.shape[0], values.shape[0])
    if values.shape[0] > 0:
        binary_logs(&values[0], values.shape[0], &out[0])


def powers_to(*, const double[::1] values, double power, double[::1] out):
    """Fill `out` with each value, which is 1 or more, to a power."""
    agree("out", out.shape[0], values.shape[0])
    cdef Py_ssize_t k
    for k in range(values.shape[0]):
        out[k] = raised(values[k], power)
