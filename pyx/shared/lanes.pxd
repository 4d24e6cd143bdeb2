# Vectors of doubles, inline. A sum runs in a fixed number of lanes that are added up in a fixed
# order, so that its bits depend neither on the compiler's vector width nor on the machine.

# Rows of factors are padded with zeros, to a multiple of 4 doubles or of 8 floats, so that no loop has a remainder.

from libc.stdint cimport int32_t

cpdef enum:
    LANES = 4
    SINGLE_LANES = 8

cdef inline double dot(const double *x, const double *y, Py_ssize_t n) noexcept nogil:
    """sum_k x_k y_k, for n a multiple of 4."""
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0
    cdef Py_ssize_t k
    for k in range(0, n, 4):
        a += x[k] * y[k]
        b += x[k + 1] * y[k + 1]
        c += x[k + 2] * y[k + 2]
        d += x[k + 3] * y[k + 3]
    return (a + b) + (c + d)


cdef extern from *:
    """
    #include <string.h>

    typedef struct { double product, square; } rankbench_difference;

    typedef double rankbench_four __attribute__((vector_size(32)));

    /* A sum of four lanes for each of four rows; x is loaded once for all of them. */
    static inline void rankbench_dot_four(
        const double *x, const double *const *rows, Py_ssize_t n, double *out
    ) {
        const double *first = rows[0], *second = rows[1], *third = rows[2], *fourth = rows[3];
        rankbench_four a = {0}, b = {0}, c = {0}, d = {0}, shared, v, w, y, z;
        Py_ssize_t k;
        for (k = 0; k < n; k += 4) {
            memcpy(&shared, x + k, sizeof shared);
            memcpy(&v, first + k, sizeof v);
            memcpy(&w, second + k, sizeof w);
            memcpy(&y, third + k, sizeof y);
            memcpy(&z, fourth + k, sizeof z);
            a += shared * v;
            b += shared * w;
            c += shared * y;
            d += shared * z;
        }
        out[0] = (a[0] + a[1]) + (a[2] + a[3]);
        out[1] = (b[0] + b[1]) + (b[2] + b[3]);
        out[2] = (c[0] + c[1]) + (c[2] + c[3]);
        out[3] = (d[0] + d[1]) + (d[2] + d[3]);
    }

    static inline double rankbench_dot_difference(const double *x, const double *y, const double *z, Py_ssize_t n) {
        rankbench_four sum = {0}, a, b, c;
        Py_ssize_t k;
        for (k = 0; k < n; k += 4) {
            memcpy(&a, x + k, sizeof a);
            memcpy(&b, y + k, sizeof b);
            memcpy(&c, z + k, sizeof c);
            sum += a * (b - c);
        }
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }

    static inline void rankbench_add_product(
        rankbench_four *product, const double *x, const double *y, const double *z
    ) {
        rankbench_four a, b, c;
        memcpy(&a, x, sizeof a);
        memcpy(&b, y, sizeof b);
        memcpy(&c, z, sizeof c);
        *product += a * (b - c);
    }

    static inline void rankbench_add_square(rankbench_four *square, const double *y, const double *z) {
        rankbench_four b, c;
        memcpy(&b, y, sizeof b);
        memcpy(&c, z, sizeof c);
        *square += (b - c) * (b - c);
    }

    static inline double rankbench_sum_of_eight(rankbench_four even, rankbench_four odd) {
        even += odd;
        return (even[0] + even[1]) + (even[2] + even[3]);
    }

    /* Two sums are kept, of every other four terms, so that an addition need not wait for the one just before it. */
    static inline double rankbench_long_dot_difference(
        const double *x, const double *y, const double *z, Py_ssize_t n
    ) {
        rankbench_four even = {0}, odd = {0};
        Py_ssize_t k;
        for (k = 0; k + 8 <= n; k += 8) {
            rankbench_add_product(&even, x + k, y + k, z + k);
            rankbench_add_product(&odd, x + k + 4, y + k + 4, z + k + 4);
        }
        if (k < n)
            rankbench_add_product(&even, x + k, y + k, z + k);
        return rankbench_sum_of_eight(even, odd);
    }

    static inline rankbench_difference rankbench_of_long_difference(
        const double *x, const double *y, const double *z, Py_ssize_t n
    ) {
        rankbench_four even = {0}, odd = {0}, even_square = {0}, odd_square = {0};
        rankbench_difference found;
        Py_ssize_t k;
        for (k = 0; k + 8 <= n; k += 8) {
            rankbench_add_product(&even, x + k, y + k, z + k);
            rankbench_add_product(&odd, x + k + 4, y + k + 4, z + k + 4);
            rankbench_add_square(&even_square, y + k, z + k);
            rankbench_add_square(&odd_square, y + k + 4, z + k + 4);
        }
        if (k < n) {
            rankbench_add_product(&even, x + k, y + k, z + k);
            rankbench_add_square(&even_square, y + k, z + k);
        }
        found.product = rankbench_sum_of_eight(even, odd);
        found.square = rankbench_sum_of_eight(even_square, odd_square);
        return found;
    }
    """
    void _dot_four "rankbench_dot_four" (
        const double *x, const double *const *rows, Py_ssize_t n, double *out
    ) noexcept nogil
    double _dot_difference "rankbench_dot_difference" (
        const double *x, const double *y, const double *z, Py_ssize_t n
    ) noexcept nogil
    double _long_dot_difference "rankbench_long_dot_difference" (
        const double *x, const double *y, const double *z, Py_ssize_t n
    ) noexcept nogil
    ctypedef struct Difference "rankbench_difference":
        double product  # x . (y - z)
        double square  # |y - z|^2
    Difference _of_long_difference "rankbench_of_long_difference" (
        const double *x, const double *y, const double *z, Py_ssize_t n
    ) noexcept nogil


cdef inline void dot_rows(
    const double *x, const double *rows, Py_ssize_t count, Py_ssize_t n, double *out
) noexcept nogil:
    """The `dot` of x with each of `count` rows, with the same bits; of four rows at a time, so that no sum waits."""
    cdef Py_ssize_t row, whole = count - count % 4
    cdef const double *four[4]
    for row in range(0, whole, 4):
        four[0], four[1], four[2], four[3] = (
            rows + row * n, rows + (row + 1) * n, rows + (row + 2) * n, rows + (row + 3) * n
        )
        _dot_four(x, <const double *const *> four, n, out + row)
    for row in range(whole, count):
        out[row] = dot(x, rows + row * n, n)


cdef inline void dot_rows_at(
    const double *x, const double *rows, const int32_t *at, Py_ssize_t count, Py_ssize_t n, bint far, double *out
) noexcept nogil:
    """The same for the rows at these places, which are asked for ahead where they are `far`, beyond the caches."""
    cdef Py_ssize_t row, ahead, whole = count - count % 4
    cdef const double *four[4]
    for row in range(0, whole, 4):
        for ahead in range(row + 4, min(row + 8, count) if far else 0):
            read_ahead(rows + at[ahead] * n, n)
        four[0], four[1], four[2], four[3] = (
            rows + at[row] * n, rows + at[row + 1] * n, rows + at[row + 2] * n, rows + at[row + 3] * n
        )
        _dot_four(x, <const double *const *> four, n, out + row)
    for row in range(whole, count):
        out[row] = dot(x, rows + at[row] * n, n)


cdef inline void sum_rows(
    const double *x, const double *rows, Py_ssize_t count, Py_ssize_t n, double *out
) noexcept nogil:
    """out = sum_i x_i row_i over `count` rows of n numbers, four rows at a time."""
    cdef Py_ssize_t i, k, whole = count - count % 4
    cdef const double *row = rows
    cdef double a, b, c, d
    for k in range(n):
        out[k] = 0.0
    for i in range(0, whole, 4):
        a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
        for k in range(n):
            out[k] += (a * row[k] + b * row[n + k]) + (c * row[2 * n + k] + d * row[3 * n + k])
        row += 4 * n
    for i in range(whole, count):
        a = x[i]
        for k in range(n):
            out[k] += a * row[k]
        row += n


cdef inline double dot_difference(
    const double *x, const double *y, const double *z, Py_ssize_t n
) noexcept nogil:
    """sum_k x_k (y_k - z_k), for n a multiple of 4."""
    return _dot_difference(x, y, z, n)


cdef inline double long_dot_difference(
    const double *x, const double *y, const double *z, Py_ssize_t n
) noexcept nogil:
    """sum_k x_k (y_k - z_k) in eight lanes, so that long rows wait less for additions; for n a multiple of 4."""
    return _long_dot_difference(x, y, z, n)


cdef inline Difference of_long_difference(
    const double *x, const double *y, const double *z, Py_ssize_t n
) noexcept nogil:
    """Both x . (y - z), with the bits of `long_dot_difference`, and |y - z|^2, in one loop; for n a multiple of 4."""
    return _of_long_difference(x, y, z, n)


cdef extern from *:
    """
    #include <string.h>

    /* Two sums are kept, of every other eight terms, so that an addition need not wait for the one just before it. */
    typedef float rankbench_floats __attribute__((vector_size(32)));
    typedef float rankbench_half __attribute__((vector_size(16)));

    static inline void rankbench_add(rankbench_floats *sum, const float *x, const float *y, const float *z) {
        rankbench_floats a, b, c;
        memcpy(&a, x, sizeof a);
        memcpy(&b, y, sizeof b);
        memcpy(&c, z, sizeof c);
        *sum += a * (b - c);
    }

    static inline float rankbench_dot_difference_of_floats(
        const float *x, const float *y, const float *z, Py_ssize_t n
    ) {
        rankbench_floats even = {0}, odd = {0};
        rankbench_half low, high;
        Py_ssize_t k;
        for (k = 0; k + 16 <= n; k += 16) {
            rankbench_add(&even, x + k, y + k, z + k);
            rankbench_add(&odd, x + k + 8, y + k + 8, z + k + 8);
        }
        if (k < n)
            rankbench_add(&even, x + k, y + k, z + k);
        even += odd;
        memcpy(&low, &even, sizeof low);
        memcpy(&high, (const char *) &even + sizeof low, sizeof high);
        low += high;
        return (low[0] + low[2]) + (low[1] + low[3]);
    }
    """
    float _dot_difference_of_singles "rankbench_dot_difference_of_floats" (
        const float *x, const float *y, const float *z, Py_ssize_t n
    ) noexcept nogil


cdef inline float dot_difference_of_singles(
    const float *x, const float *y, const float *z, Py_ssize_t n
) noexcept nogil:
    """sum_k x_k (y_k - z_k) in single precision, for n a multiple of 8, in sixteen lanes."""
    return _dot_difference_of_singles(x, y, z, n)


cdef inline double dot_any(const double *x, const double *y, Py_ssize_t n) noexcept nogil:
    """sum_k x_k y_k, for any n: whole lanes first, then what is left, in order; the bits of `dot` for whole lanes."""
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0, rest = 0.0
    cdef Py_ssize_t k, whole = n - n % 4
    for k in range(0, whole, 4):
        a += x[k] * y[k]
        b += x[k + 1] * y[k + 1]
        c += x[k + 2] * y[k + 2]
        d += x[k + 3] * y[k + 3]
    for k in range(whole, n):
        rest += x[k] * y[k]
    return ((a + b) + (c + d)) + rest


cdef inline double total(const double *x, Py_ssize_t n) noexcept nogil:
    """sum_k x_k, for any n: whole lanes first, then the remaining terms in order."""
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0, rest = 0.0
    cdef Py_ssize_t k, whole = n - n % 4
    for k in range(0, whole, 4):
        a += x[k]
        b += x[k + 1]
        c += x[k + 2]
        d += x[k + 3]
    for k in range(whole, n):
        rest += x[k]
    return ((a + b) + (c + d)) + rest


cdef extern from *:
    """
    #include <string.h>
    typedef struct { double total; Py_ssize_t count; } rankbench_beyond;

    /* Compilers do not turn these sums over some of the elements into vector instructions by themselves. */
    typedef double rankbench_doubles __attribute__((vector_size(16)));
    typedef long long rankbench_flags __attribute__((vector_size(16)));  /* all bits set: true */

    static inline rankbench_beyond rankbench_sum(const double *x, Py_ssize_t n, double limit, int above) {
        rankbench_doubles first = {0.0, 0.0}, second = {0.0, 0.0}, limits = {limit, limit}, v, w;
        rankbench_flags counts = {0, 0}, chosen, others;
        rankbench_beyond found;
        Py_ssize_t k, whole = n - n % 4;
        for (k = 0; k < whole; k += 4) {
            memcpy(&v, x + k, sizeof v);
            memcpy(&w, x + k + 2, sizeof w);
            chosen = above ? v > limits : v < limits;
            others = above ? w > limits : w < limits;
            first += (rankbench_doubles) ((rankbench_flags) v & chosen);
            second += (rankbench_doubles) ((rankbench_flags) w & others);
            counts -= chosen + others;
        }
        found.total = (first[0] + first[1]) + (second[0] + second[1]);
        found.count = counts[0] + counts[1];
        for (k = whole; k < n; k++) {
            int chosen = above ? x[k] > limit : x[k] < limit;
            found.total += chosen ? x[k] : 0.0;
            found.count += chosen;
        }
        return found;
    }
    """
    ctypedef struct Beyond "rankbench_beyond":
        double total
        Py_ssize_t count
    Beyond _sum "rankbench_sum" (const double *x, Py_ssize_t n, double limit, bint above) noexcept nogil


cdef inline Beyond sum_above(const double *x, Py_ssize_t n, double limit) noexcept nogil:
    """The sum of the x above a limit, and how many they are: whole lanes first, then the remaining terms in order."""
    return _sum(x, n, limit, True)


cdef inline Beyond sum_below(const double *x, Py_ssize_t n, double limit) noexcept nogil:
    """The sum of the x below a limit, and how many they are: whole lanes first, then the remaining terms in order."""
    return _sum(x, n, limit, False)


cdef inline double dot_at(const double *x, const double *y, const int32_t *at, Py_ssize_t n) noexcept nogil:
    """sum_k x_k y_at[k], for any n: whole lanes first, then the remaining terms in order."""
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0, rest = 0.0
    cdef Py_ssize_t k, whole = n - n % 4
    for k in range(0, whole, 4):
        a += x[k] * y[at[k]]
        b += x[k + 1] * y[at[k + 1]]
        c += x[k + 2] * y[at[k + 2]]
        d += x[k + 3] * y[at[k + 3]]
    for k in range(whole, n):
        rest += x[k] * y[at[k]]
    return ((a + b) + (c + d)) + rest


cdef extern from *:
    """
    /* Without prefetchw a line arrives shared with the other cores, and the first write to it waits for them again.
       Compilers write the instruction only if told that the processor has it; x86-64 processors without it skip it. */
    #ifdef __x86_64__
    #define rankbench_fetch(address) __asm__ volatile("prefetchw %0" : : "m" (*(const char *) (address)))
    #else
    #define rankbench_fetch(address) __builtin_prefetch((address), 1)
    #endif
    #define rankbench_read_ahead(address) __builtin_prefetch((address), 0)
    """
    void _fetch "rankbench_fetch" (const void *address) noexcept nogil
    void _read_ahead "rankbench_read_ahead" (const void *address) noexcept nogil


cdef inline void fetch(double *row, Py_ssize_t n) noexcept nogil:
    """Prefetch a row that will soon be written; a hint that changes no bit."""
    cdef Py_ssize_t k
    for k in range(0, n, 8):  # a cache line holds 8
        _fetch(row + k)


cdef inline void fetch_both(double *one, double *other, Py_ssize_t n) noexcept nogil:
    """Prefetch two rows that will soon be written."""
    cdef Py_ssize_t k
    for k in range(0, n, 8):
        _fetch(one + k)
        _fetch(other + k)


cdef inline void read_ahead(const double *row, Py_ssize_t n) noexcept nogil:
    """Prefetch a row that will only be read, so that other threads may keep their cached copies."""
    cdef Py_ssize_t k
    for k in range(0, n, 8):
        _read_ahead(row + k)
