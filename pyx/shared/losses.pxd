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

from rankbench.kernels.shared.powers cimport logs_of_one_plus, power

cdef extern from *:
    """
    /* -|m|, and its power, which is zero where |m| is beyond 708. */
    static inline rankbench_lanes rankbench_away(rankbench_lanes margins) {
        return (rankbench_lanes) ((rankbench_flags) margins | (rankbench_flags) rankbench_all(-0.0));
    }

    static inline rankbench_lanes rankbench_decays_of(rankbench_lanes away, rankbench_exponents of) {
        return (rankbench_lanes) ((rankbench_flags) rankbench_powers_of(of) & ~(away < -708.0));
    }

    static inline double rankbench_decay(double margin) {
        const rankbench_lanes away = rankbench_away((rankbench_lanes) {margin});
        return rankbench_decays_of(away, rankbench_exponents_within(away))[0];
    }

    RANKBENCH_IN_HALVES(
        rankbench_all_decays, , , rankbench_exponents,
        rankbench_exponents_within(rankbench_away(x)), rankbench_decays_of(rankbench_away(x), half)
    )

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

    /* -1 / (1 + e^m) for two margins at a time. */
    static inline void rankbench_two_logistic_slopes(double first, double second, double *out) {
        const rankbench_lanes margins = {first, second}, power = rankbench_powers_of(rankbench_exponents_of(margins));
        const rankbench_lanes slopes = -1.0 / (1.0 + power);
        out[0] = slopes[0];
        out[1] = slopes[1];
    }

    #define RANKBENCH_MARGINS 64  /* that are looked at together, at most */

    typedef struct { const double *margins, *wins, *losses; } rankbench_outcomes;
    typedef struct { double values[RANKBENCH_MARGINS], slopes[RANKBENCH_MARGINS], curvatures[RANKBENCH_MARGINS]; }
        rankbench_parabolas;

    typedef struct { rankbench_lanes value, slope, curvature; } rankbench_parabola;

    static inline void rankbench_put(rankbench_parabolas *out, Py_ssize_t k, rankbench_parabola found) {
        RANKBENCH_STORE(out->values + k, found.value);
        RANKBENCH_STORE(out->slopes + k, found.slope);
        RANKBENCH_STORE(out->curvatures + k, found.curvature);
    }

    static const double __attribute__((unused))
        rankbench_once[RANKBENCH_MARGINS] = {[0 ... RANKBENCH_MARGINS - 1] = 1.0},
        rankbench_never[RANKBENCH_MARGINS] = {0.0};

    /* w L(m) + l L(-m) of the logistic loss, with both derivatives by m, from e^-|m| and the values ln(1 + e^-|m|).

       L' = -1 / (1 + e^m) and L'' = L'(m) L'(-m) are the same for wins and losses: one exponential gives all of them.
       There is room for whole registers of all but wins and losses. */
    static inline void rankbench_logistic_parabolas(
        rankbench_outcomes of, const double *decays, Py_ssize_t n, rankbench_parabolas *out
    ) {
        rankbench_lanes m, small, log;
        for (Py_ssize_t k = 0; k < n; k += RANKBENCH_WIDTH) {
            const rankbench_lanes wins = rankbench_some(of.wins + k, n - k);
            const rankbench_lanes losses = rankbench_some(of.losses + k, n - k), all = wins + losses;
            RANKBENCH_LOAD(m, of.margins + k);
            RANKBENCH_LOAD(small, decays + k);
            RANKBENCH_LOAD(log, out->values + k);
            const rankbench_lanes greater = 1.0 / (1.0 + small), lesser = small * greater;
            const rankbench_flags ahead = m > 0.0;
            const rankbench_lanes value = all * log + RANKBENCH_PICK(ahead, losses * m, wins * -m);
            const rankbench_lanes slope = RANKBENCH_PICK(
                ahead, losses * greater - wins * lesser, losses * lesser - wins * greater
            );
            const rankbench_lanes curvature = all * (lesser * greater);
            rankbench_put(out, k, (rankbench_parabola) {value, slope, curvature});
        }
    }

    /* The same of the squared hinge loss. */
    static inline void rankbench_squared_parabolas(rankbench_outcomes of, Py_ssize_t n, rankbench_parabolas *out) {
        const rankbench_lanes zero = {0.0};
        rankbench_lanes m;
        for (Py_ssize_t k = 0; k < n; k += RANKBENCH_WIDTH) {
            const rankbench_lanes wins = rankbench_some(of.wins + k, n - k);
            const rankbench_lanes losses = rankbench_some(of.losses + k, n - k);
            RANKBENCH_LOAD(m, of.margins + k);
            const rankbench_flags near = m < 1.0, far = m > -1.0;
            const rankbench_lanes won = RANKBENCH_PICK(near, 1.0 - m, zero), lost = RANKBENCH_PICK(far, 1.0 + m, zero);
            const rankbench_lanes value = wins * won * won + losses * lost * lost;
            const rankbench_lanes slope = 2.0 * (losses * lost - wins * won);
            const rankbench_lanes half = RANKBENCH_PICK(near, wins, zero) + RANKBENCH_PICK(far, losses, zero);
            rankbench_put(out, k, (rankbench_parabola) {value, slope, 2.0 * half});
        }
    }

    /* The hinge loss, or the smooth one, at some margins. */
    static inline rankbench_parabola rankbench_hinge(rankbench_lanes m, int smooth) {
        const rankbench_lanes zero = {0.0}, one = rankbench_all(1.0), missing = RANKBENCH_PICK(m < 1.0, 1.0 - m, zero);
        const rankbench_flags far = missing > 1.0, between = (m > 0.0) & (m < 1.0);
        if (!smooth)
            return (rankbench_parabola) {missing, RANKBENCH_PICK(m < 1.0, -one, zero), zero};
        return (rankbench_parabola) {
            RANKBENCH_PICK(far, missing - 0.5, 0.5 * missing * missing), -RANKBENCH_PICK(far, one, missing),
            RANKBENCH_PICK(between, one, zero)
        };
    }

    static inline void rankbench_hinge_losses(
        const double *margins, Py_ssize_t n, int smooth, int squared, double *values
    ) {
        for (Py_ssize_t k = 0; k < n; k += RANKBENCH_WIDTH) {
            const rankbench_lanes value = rankbench_hinge(rankbench_some(margins + k, n - k), smooth).value;
            rankbench_store_some(values + k, squared ? value * value : value, n - k);
        }
    }

    static inline void rankbench_hinge_tangents(
        const double *margins, Py_ssize_t n, int smooth, double *values, double *slopes
    ) {
        for (Py_ssize_t k = 0; k < n; k += RANKBENCH_WIDTH) {
            const rankbench_parabola found = rankbench_hinge(rankbench_some(margins + k, n - k), smooth);
            rankbench_store_some(values + k, found.value, n - k);
            rankbench_store_some(slopes + k, found.slope, n - k);
        }
    }

    /* w L(m) + l L(-m) of one of these, with both derivatives by m. */
    static inline void rankbench_hinge_parabolas(
        rankbench_outcomes of, Py_ssize_t n, int smooth, rankbench_parabolas *out
    ) {
        rankbench_lanes m;
        for (Py_ssize_t k = 0; k < n; k += RANKBENCH_WIDTH) {
            const rankbench_lanes wins = rankbench_some(of.wins + k, n - k);
            const rankbench_lanes losses = rankbench_some(of.losses + k, n - k);
            RANKBENCH_LOAD(m, of.margins + k);
            const rankbench_parabola won = rankbench_hinge(m, smooth), lost = rankbench_hinge(-m, smooth);
            const rankbench_lanes value = wins * won.value + losses * lost.value;
            const rankbench_lanes slope = wins * won.slope - losses * lost.slope;
            const rankbench_lanes curvature = wins * won.curvature + losses * lost.curvature;
            rankbench_put(out, k, (rankbench_parabola) {value, slope, curvature});
        }
    }
    """
    cdef enum:
        MARGINS "RANKBENCH_MARGINS"
    # e^-|m|, for a margin and for n of them: all that the logistic loss needs of it, with its sign
    double decay "rankbench_decay" (double margin) noexcept nogil
    void decays "rankbench_all_decays" (const double *margins, Py_ssize_t n, double *out) noexcept nogil
    void _logistic_slopes "rankbench_logistic_slopes" (
        const double *margins, const double *decays, Py_ssize_t n, double *out
    ) noexcept nogil
    # both have the bits of `slope_of`
    void two_logistic_slopes "rankbench_two_logistic_slopes" (double first, double second, double *out) noexcept nogil
    ctypedef struct Outcomes "rankbench_outcomes":
        const double *margins
        const double *wins  # against the opponent at this margin
        const double *losses
    ctypedef struct Parabolas "rankbench_parabolas":
        double values[MARGINS]
        double slopes[MARGINS]
        double curvatures[MARGINS]
    const double *ONCE "rankbench_once"  # wins and losses of outcomes that are one comparison each
    const double *NEVER "rankbench_never"
    void _logistic_parabolas "rankbench_logistic_parabolas" (
        Outcomes of, const double *decays, Py_ssize_t n, Parabolas *out
    ) noexcept nogil
    void _squared_parabolas "rankbench_squared_parabolas" (Outcomes of, Py_ssize_t n, Parabolas *out) noexcept nogil
    void _hinge_losses "rankbench_hinge_losses" (
        const double *margins, Py_ssize_t n, bint smooth, bint squared, double *values
    ) noexcept nogil
    void _hinge_tangents "rankbench_hinge_tangents" (
        const double *margins, Py_ssize_t n, bint smooth, double *values, double *slopes
    ) noexcept nogil
    void _hinge_parabolas "rankbench_hinge_parabolas" (
        Outcomes of, Py_ssize_t n, bint smooth, Parabolas *out
    ) noexcept nogil

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
        _hinge_losses(margins, n, loss == SMOOTH_HINGE, loss == SQUARED_HINGE, values)


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
        _hinge_tangents(margins, n, loss == SMOOTH_HINGE, values, slopes)


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


cdef inline void parabolas_of(
    Loss loss, Outcomes of, Py_ssize_t n, Py_ssize_t valued, Parabolas *out
) noexcept nogil:
    """w L(m) + l L(-m) of n outcomes, at most MARGINS, and both derivatives by m; the values before `valued` are zero.

    There is room for MARGINS margins.
    """
    cdef double small[MARGINS]
    cdef Py_ssize_t k
    if loss == LOGISTIC:
        decays(of.margins, n, small)
        logs_of_one_plus(small + valued, n - valued, out.values + valued)
        _logistic_parabolas(of, small, n, out)
    elif loss == SQUARED_HINGE:
        _squared_parabolas(of, n, out)
    else:
        _hinge_parabolas(of, n, loss == SMOOTH_HINGE, out)
    for k in range(valued):
        out.values[k] = 0.0


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
