# The losses of a comparison by its margin m, the score of the better item less that of the worse one.
#
#   squared hinge   max(0, 1 - m)^2
#   hinge           max(0, 1 - m)
#   logistic        log(1 + e^-m), without overflow
#   smooth hinge    1/2 - m below 0, (1 - m)^2 / 2 up to 1, 0 from there on
#
# All kernels take the losses of margins from here. A new loss needs a name in `Loss`, a branch in each function below,
# and a record in rankbench/methods/losses.py.

from libc.math cimport NAN, fabs
from libc.stdint cimport int64_t

from rankbench.kernels.shared.powers cimport log_of_one_plus, logs_of_one_plus, power

cdef extern from *:
    """
    /* e^-|m|, which is zero where |m| is beyond 708. */
    static inline rankbench_lanes rankbench_decays(rankbench_lanes margins) {
        const rankbench_lanes away = RANKBENCH_PICK(margins > 0.0, -margins, margins);
        return RANKBENCH_PICK(away < -708.0, rankbench_all(0.0), rankbench_powers_of(away));
    }

    static inline double rankbench_decay(double margin) {
        return rankbench_decays((rankbench_lanes) {margin})[0];
    }

    static inline void rankbench_all_decays(const double *margins, Py_ssize_t n, double *out) {
        for (Py_ssize_t k = 0; k < n; k += RANKBENCH_WIDTH)
            rankbench_store_some(out + k, rankbench_decays(rankbench_some(margins + k, n - k)), n - k);
    }

    /* The derivative of the logistic loss at n margins, with their e^-|m|. */
    static inline void rankbench_logistic_slopes(
        const double *margins, const double *decays, Py_ssize_t n, double *out
    ) {
        for (Py_ssize_t k = 0; k < n; k += RANKBENCH_WIDTH) {
            const rankbench_lanes m = rankbench_some(margins + k, n - k), small = rankbench_some(decays + k, n - k);
            const rankbench_lanes above = RANKBENCH_PICK(m > 0.0, small, rankbench_all(1.0));
            rankbench_store_some(out + k, -above / (1.0 + small), n - k);
        }
    }
    """
    # e^-|m|, for a margin and for n of them: all that the logistic loss needs of it, with its sign
    double decay "rankbench_decay" (double margin) noexcept nogil
    void decays "rankbench_all_decays" (const double *margins, Py_ssize_t n, double *out) noexcept nogil
    void _logistic_slopes "rankbench_logistic_slopes" (
        const double *margins, const double *decays, Py_ssize_t n, double *out
    ) noexcept nogil

cpdef enum:
    MARGINS = 64  # that are looked at together, at most

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
        return log_of_one_plus(decay(margin)) + max(0.0, -margin)
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
        return -1.0 / (1.0 + power(margin))
    return NAN  # no loss


cdef inline void losses_of(Loss loss, const double *margins, Py_ssize_t n, double *values) noexcept nogil:
    """The losses at n margins, at most MARGINS."""
    cdef double small[MARGINS]
    cdef Py_ssize_t k
    if loss == LOGISTIC:
        decays(margins, n, small)
        logs_of_one_plus(small, n, small)
        for k in range(n):
            values[k] = small[k] + max(0.0, -margins[k])
    else:
        for k in range(n):
            values[k] = loss_of(loss, margins[k])


cdef inline void tangents_of(
    Loss loss, const double *margins, Py_ssize_t n, double *values, double *slopes
) noexcept nogil:
    """The losses at n margins, at most MARGINS, and their derivatives."""
    cdef double small[MARGINS]
    cdef Py_ssize_t k
    if loss == LOGISTIC:
        decays(margins, n, small)
        _logistic_slopes(margins, small, n, slopes)
        logs_of_one_plus(small, n, values)
        for k in range(n):
            values[k] += max(0.0, -margins[k])
    elif loss == SQUARED_HINGE:
        for k in range(n):
            slopes[k] = -((1.0 - margins[k]) + fabs(1.0 - margins[k]))  # without a branch, so several at a time
            values[k] = 0.25 * slopes[k] * slopes[k]
    else:
        for k in range(n):
            values[k], slopes[k] = loss_of(loss, margins[k]), slope_of(loss, margins[k])


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
        small = decay(margin)
        return small / ((1.0 + small) * (1.0 + small))
    return NAN  # no loss


cdef inline Parabola parabola_of(Loss loss, double margin, double wins, double losses) noexcept nogil:
    """w L(m) + l L(-m) for w wins and l losses against the same opponent, with both derivatives by m."""
    cdef double small, won, lost
    if loss == LOGISTIC:
        small = decay(margin)
        return logistic_parabola(margin, wins, losses, small, log_of_one_plus(small))
    if loss == SQUARED_HINGE:
        won, lost = max(0.0, 1.0 - margin), max(0.0, 1.0 + margin)
        return Parabola(
            wins * won * won + losses * lost * lost, 2.0 * (losses * lost - wins * won),
            2.0 * ((wins if won > 0.0 else 0.0) + (losses if lost > 0.0 else 0.0)),
        )
    return Parabola(
        wins * loss_of(loss, margin) + losses * loss_of(loss, -margin),
        wins * slope_of(loss, margin) - losses * slope_of(loss, -margin),
        wins * curvature_of(loss, margin) + losses * curvature_of(loss, -margin),
    )


cdef inline Parabola logistic_parabola(
    double margin, double wins, double losses, double small, double log
) noexcept nogil:
    """The same for the logistic loss, with small = e^-|m| and log = ln(1 + small).

    L' = -1 / (1 + e^m) and L'' = L'(m) L'(-m) are the same for wins and losses: one exponential gives all of them.
    """
    cdef double greater = 1.0 / (1.0 + small), lesser = small * greater
    return Parabola(
        (wins + losses) * log + (losses if margin > 0.0 else wins) * abs(margin),
        losses * greater - wins * lesser if margin > 0.0 else losses * lesser - wins * greater,
        (wins + losses) * (lesser * greater),
    )


cdef inline void parabolas_of(Loss loss, const double *margins, Py_ssize_t n, Parabola *out) noexcept nogil:
    """The losses at n margins, at most MARGINS, with both derivatives."""
    cdef double small[MARGINS]
    cdef double logs[MARGINS]
    cdef Py_ssize_t k
    if loss == LOGISTIC:
        decays(margins, n, small)
        logs_of_one_plus(small, n, logs)
        for k in range(n):
            out[k] = logistic_parabola(margins[k], 1.0, 0.0, small[k], logs[k])
    else:
        for k in range(n):
            out[k] = parabola_of(loss, margins[k], 1.0, 0.0)


cdef inline void curvatures_of(Loss loss, const double *margins, Py_ssize_t n, double *out) noexcept nogil:
    """The second derivatives at n margins; `out` may be `margins` itself."""
    cdef Py_ssize_t k
    if loss == LOGISTIC:
        decays(margins, n, out)
        for k in range(n):
            out[k] = out[k] / ((1.0 + out[k]) * (1.0 + out[k]))
    else:
        for k in range(n):
            out[k] = curvature_of(loss, margins[k])
