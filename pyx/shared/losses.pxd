# The losses of a comparison by its margin m, the score of the better item less that of the worse one.
#
#   squared hinge   max(0, 1 - m)^2
#   hinge           max(0, 1 - m)
#   logistic        log(1 + e^-m), without overflow
#   smooth hinge    1/2 - m below 0, (1 - m)^2 / 2 up to 1, 0 from there on
#
# All kernels take the losses of margins from here. A new loss needs a name in `Loss`, a branch in each function below,
# and a record in rankbench/methods/losses.py.

from libc.math cimport NAN, exp, fabs, log1p
from libc.stdint cimport int64_t

cpdef enum Loss:
    SQUARED_HINGE
    HINGE
    LOGISTIC
    SMOOTH_HINGE


cdef inline int known_loss(Loss loss) except -1:
    """A ValueError unless a loss has this code: what takes a code from Python calls this first."""
    if loss not in (SQUARED_HINGE, HINGE, LOGISTIC, SMOOTH_HINGE):
        raise ValueError(f"loss={<int64_t> loss} is the code of no loss")
    return 0


cdef struct Tangent:
    double value
    double slope

cdef struct Parabola:
    double value
    double slope
    double curvature


cdef inline double loss_of(Loss loss, double margin) noexcept nogil:
    """The loss at this margin."""
    cdef double missing = max(0.0, 1.0 - margin)
    if loss == SQUARED_HINGE:
        return missing * missing
    if loss == HINGE:
        return missing
    if loss == SMOOTH_HINGE:
        return missing - 0.5 if missing > 1.0 else 0.5 * missing * missing
    if loss == LOGISTIC:
        return log1p(exp(-abs(margin))) + max(0.0, -margin)
    return NAN  # no loss


cdef inline double slope_of(Loss loss, double margin) noexcept nogil:
    """The derivative at this margin, without a branch that depends on the margin."""
    cdef double missing = 1.0 - margin
    if loss == SQUARED_HINGE:
        return -(missing + fabs(missing))  # = -2 max(0, 1 - m), exactly
    if loss == HINGE:
        return -1.0 if missing > 0.0 else 0.0
    if loss == SMOOTH_HINGE:
        return -min(1.0, max(0.0, missing))
    if loss == LOGISTIC:
        return -1.0 / (1.0 + exp(margin))
    return NAN  # no loss


cdef inline Tangent tangent_of(Loss loss, double margin) noexcept nogil:
    """The loss and its derivative, which share the exponential."""
    cdef double slope, small
    if loss == LOGISTIC:
        small = exp(-abs(margin))
        return Tangent(log1p(small) + max(0.0, -margin), -(small if margin > 0.0 else 1.0) / (1.0 + small))
    if loss == SQUARED_HINGE:
        slope = -2.0 * max(0.0, 1.0 - margin)
        return Tangent(0.25 * slope * slope, slope)
    if loss == SMOOTH_HINGE:
        slope = -min(1.0, max(0.0, 1.0 - margin))
        return Tangent(-slope * (1.0 - margin) - 0.5 * slope * slope, slope)
    return Tangent(loss_of(loss, margin), slope_of(loss, margin))


cdef inline double curvature_of(Loss loss, double margin) noexcept nogil:
    """The second derivative at this margin; 0 for the hinge."""
    cdef double small
    if loss == SQUARED_HINGE:
        return 2.0 if margin < 1.0 else 0.0
    if loss == HINGE:
        return 0.0
    if loss == SMOOTH_HINGE:
        return 1.0 if 0.0 < margin < 1.0 else 0.0
    if loss == LOGISTIC:
        small = exp(-abs(margin))
        return small / ((1.0 + small) * (1.0 + small))
    return NAN  # no loss


cdef inline Parabola parabola_of(
    Loss loss, double margin, double wins, double losses, bint with_value
) noexcept nogil:
    """w L(m) + l L(-m) for w wins and l losses against the same opponent, with both derivatives by m.

    For the logistic loss L' = -1 / (1 + e^m) and L'' = L'(m) L'(-m), the same for wins and losses: one exponential
    gives all of them. The value needs a logarithm more, and is 0 unless it is requested.
    """
    cdef double small, greater, lesser, won, lost, value = 0.0
    cdef Tangent of_win, of_loss
    if loss == LOGISTIC:
        small = exp(-abs(margin))
        greater = 1.0 / (1.0 + small)
        lesser = small * greater
        if with_value:
            value = (wins + losses) * log1p(small) + (losses if margin > 0.0 else wins) * abs(margin)
        return Parabola(
            value, losses * greater - wins * lesser if margin > 0.0 else losses * lesser - wins * greater,
            (wins + losses) * (lesser * greater),
        )
    if loss == SQUARED_HINGE:
        won, lost = max(0.0, 1.0 - margin), max(0.0, 1.0 + margin)
        return Parabola(
            wins * won * won + losses * lost * lost, 2.0 * (losses * lost - wins * won),
            2.0 * ((wins if won > 0.0 else 0.0) + (losses if lost > 0.0 else 0.0)),
        )
    of_win, of_loss = tangent_of(loss, margin), tangent_of(loss, -margin)
    return Parabola(
        wins * of_win.value + losses * of_loss.value, wins * of_win.slope - losses * of_loss.slope,
        wins * curvature_of(loss, margin) + losses * curvature_of(loss, -margin),
    )
