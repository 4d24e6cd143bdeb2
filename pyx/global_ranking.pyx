"""Loss, gradient, curvature and duality gap of one score per item, item by item.

Comparisons are gathered beforehand into a symmetric CSR matrix: row j lists each opponent k once, with
how often j won and lost against it. Then each item sums its own row, threads share nothing, and the
cost is the number of distinct pairs, however often they were compared.
"""

from cython.parallel cimport prange
from libc.math cimport exp, log1p
from libc.stdint cimport int32_t, int64_t

SQUARED_HINGE, LOGISTIC = range(2)

cdef enum Loss:
    _SQUARED_HINGE, _LOGISTIC

cdef struct Point:
    # A loss at a margin m: L(m), a = -L'(m), L''(m), and -L*(-a), its share of the dual.
    double loss
    double pull
    double curvature
    double dual


def sweep(
    int loss,
    const int64_t[::1] indptr,
    const int32_t[::1] opponents,
    const double[::1] wins,
    const double[::1] losses,
    const double[::1] scores,
    double[::1] loss_out,
    double[::1] dual_out,
    double[::1] gradient_out,
    double[::1] curvature_out,
    int threads,
):
    """One pass over the pairs: per item its share of loss, dual and gradient, per pair the curvature."""
    cdef Py_ssize_t item
    for item in prange(scores.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        _sweep_item(
            loss, item, &indptr[0], &opponents[0], &wins[0], &losses[0], &scores[0],
            &loss_out[0], &dual_out[0], &gradient_out[0], &curvature_out[0],
        )


def curvature_times(
    const int64_t[::1] indptr,
    const int32_t[::1] opponents,
    const double[::1] curvature,
    const double[::1] direction,
    double[::1] out,
    int threads,
):
    """out_j = sum_k c_jk (p_j - p_k): the data's Hessian times a direction."""
    cdef Py_ssize_t item
    for item in prange(out.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        out[item] = _curvature_times(item, &indptr[0], &opponents[0], &curvature[0], &direction[0])


cdef void _sweep_item(
    int loss, Py_ssize_t item, const int64_t *indptr, const int32_t *opponents,
    const double *wins, const double *losses, const double *scores,
    double *loss_out, double *dual_out, double *gradient_out, double *curvature_out,
) noexcept nogil:
    """Loss and dual are counted on the winner's side only, the gradient on both."""
    cdef double total = 0.0, dual = 0.0, gradient = 0.0, margin
    cdef Point won, lost
    cdef Py_ssize_t edge
    for edge in range(indptr[item], indptr[item + 1]):
        margin = scores[item] - scores[opponents[edge]]
        won = _squared_hinge(margin) if loss == _SQUARED_HINGE else _logistic(margin)
        lost = _squared_hinge(-margin) if loss == _SQUARED_HINGE else _logistic(-margin)
        total += wins[edge] * won.loss
        dual += wins[edge] * won.dual
        gradient += losses[edge] * lost.pull - wins[edge] * won.pull
        curvature_out[edge] = wins[edge] * won.curvature + losses[edge] * lost.curvature
    loss_out[item] = total
    dual_out[item] = dual
    gradient_out[item] = gradient


cdef double _curvature_times(
    Py_ssize_t item, const int64_t *indptr, const int32_t *opponents,
    const double *curvature, const double *direction,
) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t edge
    for edge in range(indptr[item], indptr[item + 1]):
        total += curvature[edge] * (direction[item] - direction[opponents[edge]])
    return total


cdef Point _squared_hinge(double margin) noexcept nogil:
    """L = max(0, 1 - m)^2; a = 2 max(0, 1 - m); -L*(-a) = a - a^2 / 4."""
    cdef double missing = max(0.0, 1.0 - margin)
    return Point(
        missing * missing, 2.0 * missing, 2.0 if missing > 0.0 else 0.0, 2.0 * missing - missing * missing
    )


cdef Point _logistic(double margin) noexcept nogil:
    """L = log(1 + e^-m); a = 1 / (1 + e^m); -L*(-a) = the entropy of a, which is L + a m."""
    cdef double small = exp(-abs(margin))
    cdef double loss = log1p(small) + max(0.0, -margin)
    cdef double pull = (small if margin > 0.0 else 1.0) / (1.0 + small)
    return Point(loss, pull, small / ((1.0 + small) * (1.0 + small)), loss + pull * margin)
