# Powers and logarithms, several at a time: the C library has one at a time, which takes several times as long, and its
# last bits depend on the processor. Sums, products and quotients alone give the same bits everywhere.
#
# With x = k ln 2 + r, |r| <= ln(2) / 2, e^x = 2^k e^r. The power of r is its Taylor series up to r^13, whose error is
# below 1e-17; the result is within one unit in the last place. Below -708 the power is that of -708, 3e-308, and above
# 709 that of 709.
#
# For 0 <= y <= 1, ln(1 + y) is ln(1 + z) with z = y or, if y > sqrt(2) - 1, ln 2 + ln(1 + z) with z = (y - 1) / 2. With
# s = z / (2 + z), ln(1 + z) = 2 artanh(s) = z - z^2 / 2 + s (z^2 / 2 + 2 s^2 / 3 + 2 s^4 / 5 + ...). As |s| <= 0.172,
# the terms up to s^22 leave an error below 1e-17; the result is within two units in the last place.
#
# Powers of two are the same with r = (x - k) ln 2, of -500 below -500 and of 500 above 500. For x = 2^k (1 + y) >= 1
# with 0 <= y < 1, log2(x) = k + ln(1 + y) / ln 2, within three units in the last place.

from rankbench.kernels.shared.lanes cimport LANES

cdef extern from *:
    """
    #include <string.h>

    #define RANKBENCH_PICK(mask, yes, no) \\
        ((rankbench_lanes) (((rankbench_flags) (yes) & (mask)) | ((rankbench_flags) (no) & ~(mask))))

    #define RANKBENCH_LN_2 0.6931471805599453
    #define RANKBENCH_SHIFT 6755399441055744.0 /* 1.5 * 2^52: the last bits of a sum with it are the nearest integer */

    typedef unsigned long long rankbench_bits __attribute__((vector_size(8 * RANKBENCH_WIDTH)));

    static inline rankbench_lanes rankbench_all(double x) {
        return x - (rankbench_lanes) {0.0};
    }

    /* The numbers, or the limit where they are beyond it; NaN stays. Compilers do not see one instruction in PICK. */
    static inline rankbench_lanes rankbench_at_least(double limit, rankbench_lanes x) {
    #if defined(__AVX__)
        return _mm256_max_pd(rankbench_all(limit), x);
    #elif defined(__SSE2__)
        return _mm_max_pd(rankbench_all(limit), x);
    #else
        return RANKBENCH_PICK(x < limit, rankbench_all(limit), x);
    #endif
    }

    static inline rankbench_lanes rankbench_at_most(double limit, rankbench_lanes x) {
    #if defined(__AVX__)
        return _mm256_min_pd(rankbench_all(limit), x);
    #elif defined(__SSE2__)
        return _mm_min_pd(rankbench_all(limit), x);
    #else
        return RANKBENCH_PICK(x > limit, rankbench_all(limit), x);
    #endif
    }

    /* 2^k e^r, k being the last bits of `shifted`. */
    static inline rankbench_lanes rankbench_scaled_powers(rankbench_lanes r, rankbench_lanes shifted) {
        rankbench_lanes s = r * r, q = s * s, even, odd, x;
        even = (1.0 / 2 + s * (1.0 / 24)) + q * (1.0 / 720 + s * (1.0 / 40320))
            + q * q * (1.0 / 3628800 + s * (1.0 / 479001600));
        odd = (1.0 / 6 + s * (1.0 / 120)) + q * (1.0 / 5040 + s * (1.0 / 362880))
            + q * q * (1.0 / 39916800 + s * (1.0 / 6227020800));
        x = 1.0 + (r + (s * even + r * s * odd));
        return (rankbench_lanes) ((rankbench_flags) x + ((rankbench_flags) shifted << 52));
    }

    /* Powers of numbers from -708 to 709. */
    static inline rankbench_lanes rankbench_powers_within(rankbench_lanes x) {
        const rankbench_lanes shifted = x * 1.4426950408889634 + RANKBENCH_SHIFT, whole = shifted - RANKBENCH_SHIFT;
        rankbench_lanes r = x - whole * 6.93147180369123816490e-01;  /* ln 2 in two parts: the first product is exact */
        r = r - whole * 1.90821492927058770002e-10;
        return rankbench_scaled_powers(r, shifted);
    }

    static inline rankbench_lanes rankbench_powers_of(rankbench_lanes x) {
        return rankbench_powers_within(rankbench_at_most(709.0, rankbench_at_least(-708.0, x)));
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
        return RANKBENCH_PICK(large, log + RANKBENCH_LN_2, log);
    }

    static inline rankbench_lanes rankbench_powers_of_two(rankbench_lanes x) {
        x = rankbench_at_most(500.0, rankbench_at_least(-500.0, x));
        const rankbench_lanes shifted = x + RANKBENCH_SHIFT;
        return rankbench_scaled_powers((x - (shifted - RANKBENCH_SHIFT)) * RANKBENCH_LN_2, shifted);
    }

    static inline rankbench_lanes rankbench_binary_logs(rankbench_lanes x) {
        const rankbench_bits bits = (rankbench_bits) x;
        const rankbench_lanes whole = (rankbench_lanes) (bits >> 52 | 0x4330000000000000) - (0x1p52 + 1023.0);
        const rankbench_lanes y = (rankbench_lanes) ((bits & 0xfffffffffffff) | 0x3ff0000000000000) - 1.0;
        const rankbench_lanes unknown = x - x;  /* zero, or NaN if x is not finite */
        return (whole + unknown) + rankbench_logs_of_one_plus(y) * 1.4426950408889634;
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

    static inline void rankbench_sigmoids(const double *x, Py_ssize_t n, double *out) {
        for (Py_ssize_t k = 0; k < n; k += RANKBENCH_WIDTH) {
            const rankbench_lanes power = rankbench_powers_of(-rankbench_some(x + k, n - k));
            rankbench_store_some(out + k, 1.0 / (1.0 + power), n - k);
        }
    }

    static inline double rankbench_power_of_two(double x) {
        return rankbench_powers_of_two((rankbench_lanes) {x})[0];
    }

    static inline double rankbench_binary_log(double x) {
        return rankbench_binary_logs((rankbench_lanes) {x, 1.0})[0];
    }

    static inline void rankbench_all_powers_of_two(const double *x, double less, Py_ssize_t n, double *out) {
        for (Py_ssize_t k = 0; k < n; k += RANKBENCH_WIDTH)
            rankbench_store_some(out + k, rankbench_powers_of_two(rankbench_some(x + k, n - k) - less), n - k);
    }

    static inline void rankbench_all_binary_logs(const double *x, Py_ssize_t n, double *out) {
        for (Py_ssize_t k = 0; k < n; k += RANKBENCH_WIDTH)
            rankbench_store_some(out + k, rankbench_binary_logs(rankbench_some(x + k, n - k)), n - k);
    }

    static inline void rankbench_all_logs_of_one_plus(const double *y, Py_ssize_t n, double *out) {
        for (Py_ssize_t k = 0; k < n; k += RANKBENCH_WIDTH)
            rankbench_store_some(out + k, rankbench_logs_of_one_plus(rankbench_some(y + k, n - k)), n - k);
    }
    """
    const double LN_2 "RANKBENCH_LN_2"
    double power "rankbench_power" (double x) noexcept nogil  # e^x
    double power_of_two "rankbench_power_of_two" (double x) noexcept nogil
    double binary_log "rankbench_binary_log" (double x) noexcept nogil  # log2(x) for x >= 1; below 1 less exactly
    # for n numbers: out = 2^(x - less), out = log2(x) for x >= 1, out = e^(x - less), out = ln(1 + y) for 0 <= y <= 1
    void powers_of_two "rankbench_all_powers_of_two" (
        const double *x, double less, Py_ssize_t n, double *out
    ) noexcept nogil
    void binary_logs "rankbench_all_binary_logs" (const double *x, Py_ssize_t n, double *out) noexcept nogil
    void powers "rankbench_powers" (const double *x, double less, Py_ssize_t n, double *out) noexcept nogil
    void sigmoids "rankbench_sigmoids" (const double *x, Py_ssize_t n, double *out) noexcept nogil
    void logs_of_one_plus "rankbench_all_logs_of_one_plus" (const double *y, Py_ssize_t n, double *out) noexcept nogil


cdef inline double raised(double x, double power) noexcept nogil:
    """x^power, for x >= 1, within some units in the last place; exactly for the powers 0 and 1."""
    return x if power == 1.0 else power_of_two(power * binary_log(x))


cdef inline double log_of_one_plus(double y) noexcept nogil:
    """ln(1 + y) for y >= 0."""
    cdef double small = y
    if y > 1.0:
        return LN_2 * binary_log(1.0 + y)
    logs_of_one_plus(&small, 1, &small)
    return small
