# Powers of e, four at a time: the C library has one at a time, which takes three times as long.
#
# With x = k ln 2 + r, |r| <= ln(2) / 2, e^x = 2^k e^r. The power of r is its Taylor series up to r^13, whose error is
# below 1e-17; the result is within two units in the last place. Sums and products alone give the same bits everywhere.
# Below -708 the power is that of -708, 3e-308, and above 709 that of 709.

cdef extern from *:
    """
    #include <string.h>

    typedef double rankbench_four_powers __attribute__((vector_size(32)));
    typedef long long rankbench_four_exponents __attribute__((vector_size(32)));

    static inline rankbench_four_powers rankbench_powers_of_four(rankbench_four_powers x) {
        const rankbench_four_powers low = {-708.0, -708.0, -708.0, -708.0}, high = {709.0, 709.0, 709.0, 709.0};
        rankbench_four_powers shifted, whole, r, even, odd, s;
        rankbench_four_exponents below = x < low, above = x > high;
        x = (rankbench_four_powers) (((rankbench_four_exponents) x & ~(below | above))
            | ((rankbench_four_exponents) low & below) | ((rankbench_four_exponents) high & above));
        shifted = x * 1.4426950408889634 + 6755399441055744.0;  /* 1.5 * 2^52: the last bits are k */
        whole = shifted - 6755399441055744.0;
        r = x - whole * 6.93147180369123816490e-01;  /* ln 2 in two parts; the product with the first one is exact */
        r = r - whole * 1.90821492927058770002e-10;
        s = r * r;
        even = (((((s * (1.0 / 479001600) + 1.0 / 3628800) * s + 1.0 / 40320) * s + 1.0 / 720) * s + 1.0 / 24) * s
            + 0.5) * s + 1.0;
        odd = (((((s * (1.0 / 6227020800) + 1.0 / 39916800) * s + 1.0 / 362880) * s + 1.0 / 5040) * s + 1.0 / 120) * s
            + 1.0 / 6) * s + 1.0;
        x = even + odd * r;
        return (rankbench_four_powers) ((rankbench_four_exponents) x + ((rankbench_four_exponents) shifted << 52));
    }

    static inline void rankbench_powers(const double *x, double less, Py_ssize_t n, double *out) {
        rankbench_four_powers four;
        Py_ssize_t k;
        for (k = 0; k + 4 <= n; k += 4) {
            memcpy(&four, x + k, sizeof four);
            four = rankbench_powers_of_four(four - less);
            memcpy(out + k, &four, sizeof four);
        }
        if (k < n) {
            double last[4] = {0.0};
            memcpy(last, x + k, (n - k) * sizeof(double));
            memcpy(&four, last, sizeof four);
            four = rankbench_powers_of_four(four - less);
            memcpy(last, &four, sizeof four);
            memcpy(out + k, last, (n - k) * sizeof(double));
        }
    }
    """
    # out = e^(x - less), for n numbers
    void powers "rankbench_powers" (const double *x, double less, Py_ssize_t n, double *out) noexcept nogil
