"""Powers of e as kernels compute them, four at a time; powers.pxd has the series."""

from rankbench.kernels.shared.checks cimport agree


def exponentials(*, const double[::1] values, double less, double[::1] out):
    """Fill `out` with e to the power of each value less a number."""
    agree("out", out.shape[0], values.shape[0])
    if values.shape[0] > 0:
        powers(&values[0], less, values.shape[0], &out[0])
