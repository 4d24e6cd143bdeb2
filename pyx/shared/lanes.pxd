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

    #ifdef __AVX__
    #define RANKBENCH_WIDTH 4
    #else
    #define RANKBENCH_WIDTH 2  /* longer vectors would not stay in registers */
    #endif

    typedef double rankbench_lanes __attribute__((vector_size(8 * RANKBENCH_WIDTH)));
    typedef double rankbench_two __attribute__((vector_size(16)));

    #define RANKBENCH_LOAD(lanes, from) memcpy(&(lanes), from, sizeof(rankbench_lanes))
    #define RANKBENCH_STORE(to, lanes) memcpy(to, &(lanes), sizeof(rankbench_lanes))

    #if RANKBENCH_WIDTH == 4  /* four of the eight lanes of two vectors */
    #ifdef __clang__
    #define RANKBENCH_OF_TWO(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
    #else
    typedef long long rankbench_places __attribute__((vector_size(32)));
    #define RANKBENCH_OF_TWO(a, b, i, j, k, l) __builtin_shuffle(a, b, (rankbench_places) {i, j, k, l})
    #endif
    #endif

    #define RANKBENCH_PARTS (4 / RANKBENCH_WIDTH)
    typedef struct { rankbench_lanes part[RANKBENCH_PARTS]; } rankbench_four;

    static inline void rankbench_add_product(rankbench_four *sum, const double *x, const double *y) {
        rankbench_lanes a, b;
        for (int part = 0; part < RANKBENCH_PARTS; part++) {
            RANKBENCH_LOAD(a, x + part * RANKBENCH_WIDTH);
            RANKBENCH_LOAD(b, y + part * RANKBENCH_WIDTH);
            sum->part[part] += a * b;
        }
    }

    static inline void rankbench_add_difference(
        rankbench_four *sum, const double *x, const double *y, const double *z
    ) {
        rankbench_lanes a, b, c;
        for (int part = 0; part < RANKBENCH_PARTS; part++) {
            RANKBENCH_LOAD(a, x + part * RANKBENCH_WIDTH);
            RANKBENCH_LOAD(b, y + part * RANKBENCH_WIDTH);
            RANKBENCH_LOAD(c, z + part * RANKBENCH_WIDTH);
            sum->part[part] += a * (b - c);
        }
    }

    static inline void rankbench_add_square(rankbench_four *sum, const double *y, const double *z) {
        rankbench_lanes b, c;
        for (int part = 0; part < RANKBENCH_PARTS; part++) {
            RANKBENCH_LOAD(b, y + part * RANKBENCH_WIDTH);
            RANKBENCH_LOAD(c, z + part * RANKBENCH_WIDTH);
            sum->part[part] += (b - c) * (b - c);
        }
    }

    /* (first + second) + (third + fourth) lane */
    static inline double rankbench_sum_of_four(rankbench_four sum) {
    #if RANKBENCH_WIDTH == 4
        return (sum.part[0][0] + sum.part[0][1]) + (sum.part[0][2] + sum.part[0][3]);
    #else
        return (sum.part[0][0] + sum.part[0][1]) + (sum.part[1][0] + sum.part[1][1]);
    #endif
    }

    /* (first + second) + (third + fourth) lane of `even`, to which `odd` is added first */
    static inline double rankbench_sum_of_eight(rankbench_four even, rankbench_four odd) {
        for (int part = 0; part < RANKBENCH_PARTS; part++)
            even.part[part] += odd.part[part];
        return rankbench_sum_of_four(even);
    }

    /* Of each of four sums, (its first + second lane) + (third + fourth). */
    static inline void rankbench_sums_of_four(
        rankbench_four a, rankbench_four b, rankbench_four c, rankbench_four d, double *out
    ) {
    #if RANKBENCH_WIDTH == 4
        const rankbench_lanes *one = a.part, *two = b.part, *three = c.part, *four = d.part;
        const rankbench_lanes first = RANKBENCH_OF_TWO(*one, *two, 0, 4, 2, 6) +
            RANKBENCH_OF_TWO(*one, *two, 1, 5, 3, 7);
        const rankbench_lanes second = RANKBENCH_OF_TWO(*three, *four, 0, 4, 2, 6) +
            RANKBENCH_OF_TWO(*three, *four, 1, 5, 3, 7);
        const rankbench_lanes all = RANKBENCH_OF_TWO(first, second, 0, 1, 4, 5) +
            RANKBENCH_OF_TWO(first, second, 2, 3, 6, 7);
        RANKBENCH_STORE(out, all);
    #else
        out[0] = rankbench_sum_of_four(a);
        out[1] = rankbench_sum_of_four(b);
        out[2] = rankbench_sum_of_four(c);
        out[3] = rankbench_sum_of_four(d);
    #endif
    }

    /* Sums of four lanes for each of four rows; x is loaded once for all of them. */
    static inline void rankbench_dot_four(
        const double *x, const double *const *rows, Py_ssize_t n, double *out
    ) {
        const double *first = rows[0], *second = rows[1], *third = rows[2], *fourth = rows[3];
        rankbench_four a = {0}, b = {0}, c = {0}, d = {0};
        for (Py_ssize_t k = 0; k < n; k += 4) {
            rankbench_add_product(&a, x + k, first + k);
            rankbench_add_product(&b, x + k, second + k);
            rankbench_add_product(&c, x + k, third + k);
            rankbench_add_product(&d, x + k, fourth + k);
        }
        rankbench_sums_of_four(a, b, c, d, out);
    }

    /* Sums of four lanes of x . (y - z) for each of four pairs of rows. */
    static inline void rankbench_dot_four_differences(
        const double *x, const double *const *y, const double *const *z, Py_ssize_t n, double *out
    ) {
        rankbench_four a = {0}, b = {0}, c = {0}, d = {0};
        for (Py_ssize_t k = 0; k < n; k += 4) {
            rankbench_add_difference(&a, x + k, y[0] + k, z[0] + k);
            rankbench_add_difference(&b, x + k, y[1] + k, z[1] + k);
            rankbench_add_difference(&c, x + k, y[2] + k, z[2] + k);
            rankbench_add_difference(&d, x + k, y[3] + k, z[3] + k);
        }
        rankbench_sums_of_four(a, b, c, d, out);
    }

    static inline double rankbench_dot_difference(const double *x, const double *y, const double *z, Py_ssize_t n) {
        rankbench_four sum = {0};
        for (Py_ssize_t k = 0; k < n; k += 4)
            rankbench_add_difference(&sum, x + k, y + k, z + k);
        return rankbench_sum_of_four(sum);
    }

    /* Two sums are kept, of every other four terms, so that an addition need not wait for the one just before it. */
    static inline double rankbench_long_dot_difference(
        const double *x, const double *y, const double *z, Py_ssize_t n
    ) {
        rankbench_four even = {0}, odd = {0};
        Py_ssize_t k;
        for (k = 0; k + 8 <= n; k += 8) {
            rankbench_add_difference(&even, x + k, y + k, z + k);
            rankbench_add_difference(&odd, x + k + 4, y + k + 4, z + k + 4);
        }
        if (k < n)
            rankbench_add_difference(&even, x + k, y + k, z + k);
        return rankbench_sum_of_eight(even, odd);
    }

    static inline rankbench_difference rankbench_of_long_difference(
        const double *x, const double *y, const double *z, Py_ssize_t n
    ) {
        rankbench_four even = {0}, odd = {0}, even_square = {0}, odd_square = {0};
        rankbench_difference found;
        Py_ssize_t k;
        for (k = 0; k + 8 <= n; k += 8) {
            rankbench_add_difference(&even, x + k, y + k, z + k);
            rankbench_add_difference(&odd, x + k + 4, y + k + 4, z + k + 4);
            rankbench_add_square(&even_square, y + k, z + k);
            rankbench_add_square(&odd_square, y + k + 4, z + k + 4);
        }
        if (k < n) {
            rankbench_add_difference(&even, x + k, y + k, z + k);
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
    void _dot_four_differences "rankbench_dot_four_differences" (
        const double *x, const double *const *y, const double *const *z, Py_ssize_t n, double *out
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
    """The same for the rows at these places.

    Rows that are `far`, beyond the caches, are asked for ahead: their first two lines, after which the processor reads
    on by itself.
    """
    cdef Py_ssize_t row, ahead, whole = count - count % 4
    cdef const double *four[4]
    for row in range(0, whole, 4):
        for ahead in range(row + 4, min(row + 8, count) if far else 0):
            read_ahead(rows + at[ahead] * n, min(n, 16))
        four[0], four[1], four[2], four[3] = (
            rows + at[row] * n, rows + at[row + 1] * n, rows + at[row + 2] * n, rows + at[row + 3] * n
        )
        _dot_four(x, <const double *const *> four, n, out + row)
    for row in range(whole, count):
        out[row] = dot(x, rows + at[row] * n, n)


cdef extern from *:
    """
    #define RANKBENCH_TILE 8 /* vectors of a row that are worked on at a time, and stay in registers */

    /* So many vectors of `out` are the same columns' sums of x_i row_i, four rows at a time. */
    static inline __attribute__((always_inline)) void rankbench_sum_tile(
        const double *x, const double *rows, Py_ssize_t count, Py_ssize_t n, double *out, const int vectors
    ) {
        rankbench_lanes sums[RANKBENCH_TILE] = {{0}}, a, b, c, d;
        Py_ssize_t i = 0;
        for (; i + 4 <= count; i += 4, rows += 4 * n)
            for (int k = 0; k < vectors; k++) {
                RANKBENCH_LOAD(a, rows + k * RANKBENCH_WIDTH);
                RANKBENCH_LOAD(b, rows + n + k * RANKBENCH_WIDTH);
                RANKBENCH_LOAD(c, rows + 2 * n + k * RANKBENCH_WIDTH);
                RANKBENCH_LOAD(d, rows + 3 * n + k * RANKBENCH_WIDTH);
                sums[k] += (x[i] * a + x[i + 1] * b) + (x[i + 2] * c + x[i + 3] * d);
            }
        for (; i < count; i++, rows += n)
            for (int k = 0; k < vectors; k++) {
                RANKBENCH_LOAD(a, rows + k * RANKBENCH_WIDTH);
                sums[k] += x[i] * a;
            }
        for (int k = 0; k < vectors; k++)
            RANKBENCH_STORE(out + k * RANKBENCH_WIDTH, sums[k]);
    }

    /* Adds x_i times so many vectors of `row` to the same columns of the rows at these places. */
    static inline __attribute__((always_inline)) void rankbench_add_tile(
        const double *x, const double *row, const int32_t *at, Py_ssize_t count, Py_ssize_t n, double *rows,
        const int vectors
    ) {
        rankbench_lanes own[RANKBENCH_TILE], sum;
        for (int k = 0; k < vectors; k++)
            RANKBENCH_LOAD(own[k], row + k * RANKBENCH_WIDTH);
        for (Py_ssize_t i = 0; i < count; i++)
            if (x[i] != 0.0)
                for (int k = 0; k < vectors; k++) {
                    double *to = rows + at[i] * n + k * RANKBENCH_WIDTH;
                    RANKBENCH_LOAD(sum, to);
                    sum += x[i] * own[k];
                    RANKBENCH_STORE(to, sum);
                }
    }

    #define RANKBENCH_IN_TILES(tile, n, ...) do { \
        Py_ssize_t k = 0; \
        for (; k + RANKBENCH_TILE * RANKBENCH_WIDTH <= n; k += RANKBENCH_TILE * RANKBENCH_WIDTH) \
            tile(__VA_ARGS__, RANKBENCH_TILE); \
        switch ((n - k) / RANKBENCH_WIDTH) { \
            case 1: tile(__VA_ARGS__, 1); break; \
            case 2: tile(__VA_ARGS__, 2); break; \
            case 3: tile(__VA_ARGS__, 3); break; \
            case 4: tile(__VA_ARGS__, 4); break; \
            case 5: tile(__VA_ARGS__, 5); break; \
            case 6: tile(__VA_ARGS__, 6); break; \
            case 7: tile(__VA_ARGS__, 7); break; \
        } \
    } while (0)

    static void rankbench_sum_rows(
        const double *x, const double *rows, Py_ssize_t count, Py_ssize_t n, double *out
    ) {
        RANKBENCH_IN_TILES(rankbench_sum_tile, n, x, rows + k, count, n, out + k);
    }

    static void rankbench_add_to_rows(
        const double *x, const double *row, const int32_t *at, Py_ssize_t count, Py_ssize_t n, double *rows
    ) {
        RANKBENCH_IN_TILES(rankbench_add_tile, n, x, row + k, at, count, n, rows + k);
        for (Py_ssize_t i = 0; n % RANKBENCH_WIDTH && i < count; i++)
            if (x[i] != 0.0)
                for (Py_ssize_t k = n - n % RANKBENCH_WIDTH; k < n; k++)
                    rows[at[i] * n + k] += x[i] * row[k];
    }
    """
    # out = sum_i x_i row_i over `count` rows of n numbers, four rows at a time; for n a multiple of 4
    void sum_rows "rankbench_sum_rows" (
        const double *x, const double *rows, Py_ssize_t count, Py_ssize_t n, double *out
    ) noexcept nogil
    # x_i times a row of n numbers is added to the row at each of `count` places
    void add_to_rows "rankbench_add_to_rows" (
        const double *x, const double *row, const int32_t *at, Py_ssize_t count, Py_ssize_t n, double *rows
    ) noexcept nogil


cdef inline double dot_difference(
    const double *x, const double *y, const double *z, Py_ssize_t n
) noexcept nogil:
    """sum_k x_k (y_k - z_k), for n a multiple of 4."""
    return _dot_difference(x, y, z, n)


cdef inline void dot_differences_at(
    const double *x, const double *rows, const int32_t *y, const int32_t *z, Py_ssize_t count, Py_ssize_t n,
    double *out,
) noexcept nogil:
    """The `dot_difference` of x with the rows at each of `count` pairs of places, four pairs at a time; same bits."""
    cdef Py_ssize_t pair, k, whole = count - count % 4
    cdef const double *left[4]
    cdef const double *right[4]
    for pair in range(0, whole, 4):
        for k in range(4):
            left[k], right[k] = rows + y[pair + k] * n, rows + z[pair + k] * n
        _dot_four_differences(x, <const double *const *> left, <const double *const *> right, n, out + pair)
    for pair in range(whole, count):
        out[pair] = dot_difference(x, rows + y[pair] * n, rows + z[pair] * n, n)


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
    #ifdef __SSE2__
    #include <immintrin.h>
    #endif
    typedef struct { double total; Py_ssize_t count; } rankbench_beyond;

    /* Compilers do not turn these sums over some of the elements into vector instructions by themselves. */
    typedef long long rankbench_flags __attribute__((vector_size(8 * RANKBENCH_WIDTH)));  /* all bits set: true */

    static inline int rankbench_any(rankbench_flags flags) {
    #if defined(__AVX__)
        return _mm256_movemask_pd((__m256d) flags);
    #elif defined(__SSE2__)
        return _mm_movemask_pd((__m128d) flags);
    #else
        int any = 0;
        for (int lane = 0; lane < RANKBENCH_WIDTH; lane++)
            any |= flags[lane] != 0;
        return any;
    #endif
    }

    static const long long rankbench_there[8] = {-1, -1, -1, -1, 0, 0, 0, 0};

    static inline rankbench_beyond rankbench_sum(const double *x, Py_ssize_t n, double limit, int above) {
        const rankbench_lanes limits = limit - (rankbench_lanes) {0};
        rankbench_four sums = {0}, rest;
        rankbench_flags counts = {0};
        rankbench_beyond found = {0.0, 0};
        Py_ssize_t k, whole = n - n % 4;
        for (k = 0; k < whole; k += 4)
            for (int part = 0; part < RANKBENCH_PARTS; part++) {
                rankbench_lanes v;
                RANKBENCH_LOAD(v, x + k + part * RANKBENCH_WIDTH);
                rankbench_flags chosen = above ? v > limits : v < limits;
                sums.part[part] += (rankbench_lanes) ((rankbench_flags) v & chosen);
                counts -= chosen;
            }
        found.total = rankbench_sum_of_four(sums);
        for (int part = 0; part < RANKBENCH_PARTS; part++) {  /* the rest, which is looked at without a branch */
            rankbench_lanes v;
            rankbench_flags there;
            RANKBENCH_LOAD(v, x + whole + part * RANKBENCH_WIDTH);
            memcpy(&there, rankbench_there + 4 - (n - whole) + part * RANKBENCH_WIDTH, sizeof there);
            rankbench_flags chosen = (above ? v > limits : v < limits) & there;
            rest.part[part] = (rankbench_lanes) ((rankbench_flags) v & chosen);
            counts -= chosen;
        }
        for (k = 0; k < 3; k++)
            found.total += rest.part[k / RANKBENCH_WIDTH][k % RANKBENCH_WIDTH];
        for (k = 0; k < RANKBENCH_WIDTH; k++)
            found.count += counts[k];
        return found;
    }
    """
    ctypedef struct Beyond "rankbench_beyond":
        double total
        Py_ssize_t count
    Beyond _sum "rankbench_sum" (const double *x, Py_ssize_t n, double limit, bint above) noexcept nogil


cdef inline Beyond sum_above(const double *x, Py_ssize_t n, double limit) noexcept nogil:
    """The sum of the x above a limit, and how many they are: whole lanes first, then the remaining terms in order.

    Some numbers after the last one are read too, four at most, which do not count.
    """
    return _sum(x, n, limit, True)


cdef inline Beyond sum_below(const double *x, Py_ssize_t n, double limit) noexcept nogil:
    """The sum of the x below a limit, and how many they are, as sum_above does."""
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
       Compilers write the instruction only if told that the processor has it; x86-64 processors without it skip it.
       They leave out calls of functions that do nothing but prefetch, unless the instruction is given by name. */
    #ifdef __x86_64__
    #define rankbench_fetch(address) __asm__ volatile("prefetchw %0" : : "m" (*(const char *) (address)))
    #define rankbench_read_ahead(address) __asm__ volatile("prefetcht0 %0" : : "m" (*(const char *) (address)))
    #else
    #define rankbench_fetch(address) __builtin_prefetch((address), 1)
    #define rankbench_read_ahead(address) __builtin_prefetch((address), 0)
    #endif
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
