# Powers of e and logarithms near one, several at a time: the C library has one at a time, which takes several times as
# long, and its last bits depend on the processor. Sums, products and quotients alone give the same bits everywhere.
#
# With x = k ln 2 + r, |r| <= ln(2) / 2, e^x = 2^k e^r. The power of r is its Taylor series up to r^13, whose error is
# below 1e-17; the result is within one unit in the last place. Below -708 the power is that of -708, 3e-308, and above
# 709 that of 709.
#
# For 0 <= y <= 1, ln(1 + y) is ln(1 + z) with z = y or, if y > sqrt(2) - 1, ln 2 + ln(1 + z) with z = (y - 1) / 2. With
# s = z / (2 + z), ln(1 + z) = 2 artanh(s) = z - z^2 / 2 + s (z^2 / 2 + 2 s^2 / 3 + 2 s^4 / 5 + ...). As |s| <= 0.172,
# the terms up to s^22 leave an error below 1e-17; the result is within two units in the last place.

from rankbench.kernels.shared.lanes cimport LANES

cdef extern from *:
    """
    #include <string.h>

    #define RANKBENCH_PICK(mask, yes, no) \\
        ((rankbench_lanes) (((rankbench_flags) (yes) & (mask)) | ((rankbench_flags) (no) & ~(mask))))

    static inline rankbench_lanes rankbench_all(double x) {
        return x - (rankbench_lanes) {0.0};
    }

    /* Powers of numbers from -708 to 709. */
    static inline rankbench_lanes rankbench_powers_within(rankbench_lanes x) {
        rankbench_lanes shifted, whole, r, s, q, even, odd;
        shifted = x * 1.4426950408889634 + 6755399441055744.0;  /* 1.5 * 2^52: the last bits are k */
        whole = shifted - 6755399441055744.0;
        r = x - whole * 6.93147180369123816490e-01;  /* ln 2 in two parts; the product with the first one is exact */
        r = r - whole * 1.90821492927058770002e-10;
        s = r * r;
        q = s * s;
        even = (1.0 / 2 + s * (1.0 / 24)) + q * (1.0 / 720 + s * (1.0 / 40320))
            + q * q * (1.0 / 3628800 + s * (1.0 / 479001600));
        odd = (1.0 / 6 + s * (1.0 / 120)) + q * (1.0 / 5040 + s * (1.0 / 362880))
            + q * q * (1.0 / 39916800 + s * (1.0 / 6227020800));
        x = 1.0 + (r + (s * even + r * s * odd));
        return (rankbench_lanes) ((rankbench_flags) x + ((rankbench_flags) shifted << 52));
    }

    static inline rankbench_lanes rankbench_powers_of(rankbench_lanes x) {
        x = RANKBENCH_PICK(x < -708.0, rankbench_all(-708.0), x);
        return rankbench_powers_within(RANKBENCH_PICK(x > 709.0, rankbench_all(709.0), x));
    }

    static inline rankbench_lanes rankbench_logs_of_one_plus(rankbench_lanes y) {
        const rankbench_flags large = y > 0.41421356237309503;
        const rankbench_lanes z = RANKBENCH_PICK(large, (y - 1.0) * 0.5, y), half = 0.5 * z * z, s = z / (2.0 + z);
        const rankbench_lanes t = s * s, q = t * t;
        const rankbench_lanes even = (2.0 / 3 + q * (2.0 / 7) + q * q * (2.0 / 11 + q * (2.0 / 15)))
            + q * q * (q * q) * (2.0 / 19 + q * (2.0 / 23));
        const rankbench_lanes odd = (2.0 / 5 + q * (2.0 / 9) + q * q * (2.0 / 13 + q * (2.0 / 17)))
            + q * q * (q * q) * (2.0 / 21);
        const rankbench_lanes log = z - (half - s * (half + t * (even + t * odd)));
        return RANKBENCH_PICK(large, log + 0.6931471805599453, log);
    }

    /* The first n > 0 numbers of a register, as far as it goes; what is missing is zero. */
    static inline rankbench_lanes rankbench_some(const double *x, Py_ssize_t n) {
        rankbench_lanes lanes = {0.0};
        if (n >= RANKBENCH_WIDTH) {
            RANKBENCH_LOAD(lanes, x);
            return lanes;
        }
        lanes[0] = x[0];
        for (int lane = 1; lane < RANKBENCH_WIDTH - 1; lane++)
            lanes[lane] = lane < n ? x[lane] : 0.0;
        return lanes;
    }

    static inline void rankbench_store_some(double *out, rankbench_lanes lanes, Py_ssize_t n) {
        if (n >= RANKBENCH_WIDTH) {
            RANKBENCH_STORE(out, lanes);
            return;
        }
        out[0] = lanes[0];
        for (int lane = 1; lane < RANKBENCH_WIDTH - 1; lane++)
            if (lane < n)
                out[lane] = lanes[lane];
    }

    static inline double rankbench_power(double x) {
        if (x >= -708.0 && x <= 709.0)  /* a branch that is foreseen takes no time */
            return rankbench_powers_within((rankbench_lanes) {x})[0];
        return rankbench_powers_of((rankbench_lanes) {x})[0];
    }

    static inline void rankbench_powers(const double *x, double less, Py_ssize_t n, double *out) {
        for (Py_ssize_t k = 0; k < n; k += RANKBENCH_WIDTH)
            rankbench_store_some(out + k, rankbench_powers_of(rankbench_some(x + k, n - k) - less), n - k);
    }

    static inline void rankbench_all_logs_of_one_plus(const double *y, Py_ssize_t n, double *out) {
        for (Py_ssize_t k = 0; k < n; k += RANKBENCH_WIDTH)
            rankbench_store_some(out + k, rankbench_logs_of_one_plus(rankbench_some(y + k, n - k)), n - k);
    }
    """
    double power "rankbench_power" (double x) noexcept nogil  # e^x
    # out = e^(x - less), and out = ln(1 + y) for y from 0 to 1, for n numbers
    void powers "rankbench_powers" (const double *x, double less, Py_ssize_t n, double *out) noexcept nogil
    void logs_of_one_plus "rankbench_all_logs_of_one_plus" (const double *y, Py_ssize_t n, double *out) noexcept nogil
