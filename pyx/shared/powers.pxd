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

    /* A number x = k ln 2 + r whose power is taken: the last bits of `shifted` are k. */
    typedef struct { rankbench_lanes r, shifted; } rankbench_exponents;

    /* Of numbers from -708 to 709. */
    static inline rankbench_exponents rankbench_exponents_within(rankbench_lanes x) {
        const rankbench_lanes shifted = x * 1.4426950408889634 + RANKBENCH_SHIFT, whole = shifted - RANKBENCH_SHIFT;
        rankbench_lanes r = x - whole * 6.93147180369123816490e-01;  /* ln 2 in two parts: the first product is exact */
        r = r - whole * 1.90821492927058770002e-10;
        return (rankbench_exponents) {r, shifted};
    }

    static inline rankbench_exponents rankbench_exponents_of(rankbench_lanes x) {
        return rankbench_exponents_within(rankbench_at_most(709.0, rankbench_at_least(-708.0, x)));
    }

    /* For the power of two: of x ln 2, x being from -500 to 500. */
    static inline rankbench_exponents rankbench_exponents_of_two_within(rankbench_lanes x) {
        const rankbench_lanes shifted = x + RANKBENCH_SHIFT;
        return (rankbench_exponents) {(x - (shifted - RANKBENCH_SHIFT)) * RANKBENCH_LN_2, shifted};
    }

    static inline rankbench_exponents rankbench_exponents_of_two(rankbench_lanes x) {
        return rankbench_exponents_of_two_within(rankbench_at_most(500.0, rankbench_at_least(-500.0, x)));
    }

    static inline rankbench_lanes rankbench_powers_of(rankbench_exponents of) {
        rankbench_lanes r = of.r, s = r * r, q = s * s, even, odd, x;
        even = (1.0 / 2 + s * (1.0 / 24)) + q * (1.0 / 720 + s * (1.0 / 40320))
            + q * q * (1.0 / 3628800 + s * (1.0 / 479001600));
        odd = (1.0 / 6 + s * (1.0 / 120)) + q * (1.0 / 5040 + s * (1.0 / 362880))
            + q * q * (1.0 / 39916800 + s * (1.0 / 6227020800));
        x = 1.0 + (r + (s * even + r * s * odd));
        return (rankbench_lanes) ((rankbench_flags) x + ((rankbench_flags) of.shifted << 52));
    }

    static inline rankbench_flags rankbench_halved(rankbench_lanes y) {
        return y > 0.41421356237309503;
    }

    /* z and s = z / (2 + z) of ln(1 + y). */
    typedef struct { rankbench_lanes z, s; } rankbench_quotients;

    static inline rankbench_quotients rankbench_quotients_of(rankbench_lanes y) {
        const rankbench_lanes z = RANKBENCH_PICK(rankbench_halved(y), (y - 1.0) * 0.5, y);
        return (rankbench_quotients) {z, z / (2.0 + z)};
    }

    static inline rankbench_lanes rankbench_logs_of_one_plus(rankbench_lanes y, rankbench_quotients of) {
        const rankbench_lanes z = of.z, s = of.s, half = 0.5 * z * z, t = s * s, q = t * t;
        const rankbench_lanes even = (2.0 / 3 + q * (2.0 / 7) + q * q * (2.0 / 11 + q * (2.0 / 15)))
            + q * q * (q * q) * (2.0 / 19 + q * (2.0 / 23));
        const rankbench_lanes odd = (2.0 / 5 + q * (2.0 / 9) + q * q * (2.0 / 13 + q * (2.0 / 17)))
            + q * q * (q * q) * (2.0 / 21);
        const rankbench_lanes log = z - (half - s * (half + t * (even + t * odd)));
        return RANKBENCH_PICK(rankbench_halved(y), log + RANKBENCH_LN_2, log);
    }

    /* y of x = 2^k (1 + y). */
    static inline rankbench_lanes rankbench_mantissas(rankbench_lanes x) {
        return (rankbench_lanes) (((rankbench_bits) x & 0xfffffffffffff) | 0x3ff0000000000000) - 1.0;
    }

    static inline rankbench_lanes rankbench_binary_logs_of(rankbench_lanes x, rankbench_quotients of) {
        const rankbench_lanes shifted = (rankbench_lanes) ((rankbench_bits) x >> 52 | 0x4330000000000000);
        const rankbench_lanes whole = shifted - (0x1p52 + 1023.0), unknown = x - x;  /* zero; NaN if x is not finite */
        return (whole + unknown) + rankbench_logs_of_one_plus(rankbench_mantissas(x), of) * 1.4426950408889634;
    }

    static inline rankbench_lanes rankbench_binary_logs(rankbench_lanes x) {
        return rankbench_binary_logs_of(x, rankbench_quotients_of(rankbench_mantissas(x)));
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
            return rankbench_powers_of(rankbench_exponents_within((rankbench_lanes) {x}))[0];
        return rankbench_powers_of(rankbench_exponents_of((rankbench_lanes) {x}))[0];
    }

    static inline double rankbench_power_of_two(double x) {
        if (x >= -500.0 && x <= 500.0)
            return rankbench_powers_of(rankbench_exponents_of_two_within((rankbench_lanes) {x}))[0];
        return rankbench_powers_of(rankbench_exponents_of_two((rankbench_lanes) {x}))[0];
    }

    static inline double rankbench_binary_log(double x) {
        return rankbench_binary_logs((rankbench_lanes) {x, 1.0})[0];
    }

    #define RANKBENCH_TOGETHER 16  /* numbers that are worked on side by side */
    #define RANKBENCH_COMMA ,

    /* Defines a function of n numbers x in two halves: `first` gives a `half` of each, and `second` what is asked for.

       The terms of a series wait for each other. A processor has room for the instructions of two or three series that
       do, which is not enough to keep it busy; with so many first halves before their second ones it has work. */
    #define RANKBENCH_IN_HALVES(name, parameter, argument, type, first, second) \\
        static __attribute__((noinline)) void name##_together(const double *from, parameter double *out) { \\
            type halves[RANKBENCH_TOGETHER / RANKBENCH_WIDTH]; \\
            rankbench_lanes x; \\
            for (int k = 0; k < RANKBENCH_TOGETHER; k += RANKBENCH_WIDTH) { \\
                RANKBENCH_LOAD(x, from + k); \\
                halves[k / RANKBENCH_WIDTH] = first; \\
            } \\
            for (int k = 0; k < RANKBENCH_TOGETHER; k += RANKBENCH_WIDTH) { \\
                const type half = halves[k / RANKBENCH_WIDTH]; \\
                RANKBENCH_LOAD(x, from + k); \\
                x = second; \\
                RANKBENCH_STORE(out + k, x); \\
            } \\
        } \\
        static inline void name(const double *from, parameter Py_ssize_t n, double *out) { \\
            Py_ssize_t k = 0; \\
            for (; k + RANKBENCH_TOGETHER <= n; k += RANKBENCH_TOGETHER) \\
                name##_together(from + k, argument out + k); \\
            for (; k < n; k += RANKBENCH_WIDTH) { \\
                const rankbench_lanes x = rankbench_some(from + k, n - k); \\
                const type half = first; \\
                rankbench_store_some(out + k, second, n - k); \\
            } \\
        }

    RANKBENCH_IN_HALVES(
        rankbench_powers, double less RANKBENCH_COMMA, less RANKBENCH_COMMA,
        rankbench_exponents, rankbench_exponents_of(x - less), rankbench_powers_of(half)
    )
    RANKBENCH_IN_HALVES(
        rankbench_all_powers_of_two, double less RANKBENCH_COMMA, less RANKBENCH_COMMA,
        rankbench_exponents, rankbench_exponents_of_two(x - less), rankbench_powers_of(half)
    )
    RANKBENCH_IN_HALVES(
        rankbench_sigmoids, , , rankbench_exponents, rankbench_exponents_of(-x), 1.0 / (1.0 + rankbench_powers_of(half))
    )
    RANKBENCH_IN_HALVES(
        rankbench_all_logs_of_one_plus, , ,
        rankbench_quotients, rankbench_quotients_of(x), rankbench_logs_of_one_plus(x, half)
    )
    RANKBENCH_IN_HALVES(
        rankbench_all_binary_logs, , ,
        rankbench_quotients, rankbench_quotients_of(rankbench_mantissas(x)), rankbench_binary_logs_of(x, half)
    )
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
