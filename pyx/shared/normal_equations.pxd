# Normal equations, (sum v v^T + penalties) x = sum y v: their sums, and their solution by Cholesky.
#
# Four rows of the matrix and some of its columns at a time stay in registers while all vectors go by. To factor four
# rows, the products of the factor's rows above them are taken off in the same way. Each number is summed in the order
# of the vectors, without fused operations, so that its bits depend neither on the processor nor on its BLAS.

from libc.stdint cimport int32_t
from libc.string cimport memset

from rankbench.kernels.shared.arena cimport Arena, floats
from rankbench.kernels.shared.lanes cimport LANES

cdef enum:
    BLOCK = 64  # vectors to gather at a time: they stay in the caches near the processor

cdef extern from *:
    """
    #include <math.h>
    #include <string.h>
    #ifdef __SSE2__
    #include <immintrin.h>
    #endif

    typedef struct {
        double *matrix;     /* width rows: the upper triangle of a symmetric matrix, then its factor */
        double *right;      /* the right side, then the solution */
        Py_ssize_t unknowns;
        Py_ssize_t width;   /* the unknowns, rounded up to whole lanes, which are zero */
        Py_ssize_t stride;  /* from one row of the matrix to the next, and from one vector to the next */
    } rankbench_equations;

    typedef struct {
        const double *first;
        const double *values; /* of each, what it is times on the right side */
        Py_ssize_t n;
    } rankbench_vectors;

    #define RANKBENCH_PANEL 32 /* rows of a factor that are taken off all others while they are in the caches */

    #define RANKBENCH_ADD(sum, term) (sum = less ? sum - (term) : sum + (term))

    /* Adds the vectors' products with themselves to four rows and to as many columns as one or `two` times the lanes,
       or with `less` takes them off; where the diagonal is among them, also values times vectors on the right side. */
    static inline __attribute__((always_inline)) void rankbench_tile(
        const rankbench_equations *to, rankbench_vectors vectors, Py_ssize_t row, Py_ssize_t column, int two, int four,
        int less
    ) {
        double *first = to->matrix + row * to->stride + column, *second = first + to->stride;
        double *third = second + to->stride, *fourth = third + to->stride, *right = to->right + row;
        const double *v = vectors.first;
        const int diagonal = row == column, both = diagonal && RANKBENCH_WIDTH == 2; /* the right side of four rows */
        rankbench_lanes a, b, c = {0}, d = {0}, e = {0}, f = {0}, g = {0}, h = {0}, r = {0}, s = {0}, near, far;
        RANKBENCH_LOAD(a, first);
        RANKBENCH_LOAD(b, second);
        if (four) {
            RANKBENCH_LOAD(c, third);
            RANKBENCH_LOAD(d, fourth);
        }
        if (diagonal)
            RANKBENCH_LOAD(r, right);
        if (two) {
            RANKBENCH_LOAD(e, first + RANKBENCH_WIDTH);
            RANKBENCH_LOAD(f, second + RANKBENCH_WIDTH);
            if (four) {
                RANKBENCH_LOAD(g, third + RANKBENCH_WIDTH);
                RANKBENCH_LOAD(h, fourth + RANKBENCH_WIDTH);
            }
            if (both)
                RANKBENCH_LOAD(s, right + RANKBENCH_WIDTH);
        }
        for (Py_ssize_t i = 0; i < vectors.n; i++, v += to->stride) {
            RANKBENCH_LOAD(near, v + column);
            RANKBENCH_ADD(a, v[row] * near);
            RANKBENCH_ADD(b, v[row + 1] * near);
            if (four) {
                RANKBENCH_ADD(c, v[row + 2] * near);
                RANKBENCH_ADD(d, v[row + 3] * near);
            }
            if (diagonal)
                RANKBENCH_ADD(r, vectors.values[i] * near);
            if (two) {
                RANKBENCH_LOAD(far, v + column + RANKBENCH_WIDTH);
                RANKBENCH_ADD(e, v[row] * far);
                RANKBENCH_ADD(f, v[row + 1] * far);
                if (four) {
                    RANKBENCH_ADD(g, v[row + 2] * far);
                    RANKBENCH_ADD(h, v[row + 3] * far);
                }
                if (both)
                    RANKBENCH_ADD(s, vectors.values[i] * far);
            }
        }
        RANKBENCH_STORE(first, a);
        RANKBENCH_STORE(second, b);
        if (four) {
            RANKBENCH_STORE(third, c);
            RANKBENCH_STORE(fourth, d);
        }
        if (diagonal)
            RANKBENCH_STORE(right, r);
        if (two) {
            RANKBENCH_STORE(first + RANKBENCH_WIDTH, e);
            RANKBENCH_STORE(second + RANKBENCH_WIDTH, f);
            if (four) {
                RANKBENCH_STORE(third + RANKBENCH_WIDTH, g);
                RANKBENCH_STORE(fourth + RANKBENCH_WIDTH, h);
            }
            if (both)
                RANKBENCH_STORE(right + RANKBENCH_WIDTH, s);
        }
    }

    /* The four rows from `row` on, from their diagonal on, and their right side. */
    static inline __attribute__((always_inline)) void rankbench_band(
        const rankbench_equations *to, rankbench_vectors vectors, Py_ssize_t row, int less
    ) {
        Py_ssize_t column = row + RANKBENCH_WIDTH;
        if (row + 2 >= to->unknowns) {
            rankbench_tile(to, vectors, row, row, RANKBENCH_WIDTH == 2, 0, less);
            return;
        }
        if ((to->width - row) % (2 * RANKBENCH_WIDTH) == 0) {
            rankbench_tile(to, vectors, row, row, 1, 1, less);
            column += RANKBENCH_WIDTH;
        } else
            rankbench_tile(to, vectors, row, row, 0, 1, less);
        for (; column < to->width; column += 2 * RANKBENCH_WIDTH)
            rankbench_tile(to, vectors, row, column, 1, 1, less);
    }

    typedef struct { const int32_t *rows; Py_ssize_t n, apart; } rankbench_chosen;

    /* n numbers of each chosen row, of which `rest` are left over from whole lanes, and zeros up to whole lanes. */
    static inline __attribute__((always_inline)) void rankbench_gather_lanes(
        const double *vectors, rankbench_chosen chosen, Py_ssize_t n, const int rest, double *out, Py_ssize_t stride
    ) {
        for (Py_ssize_t i = 0; i < chosen.n; i++, out += stride) {
            const double *numbers = vectors + chosen.rows[i] * chosen.apart;
            rankbench_lanes lanes;
            Py_ssize_t k = 0;
            for (; k < n - rest; k += RANKBENCH_WIDTH) {
                RANKBENCH_LOAD(lanes, numbers + k);
                RANKBENCH_STORE(out + k, lanes);
            }
            if (rest) {
                const rankbench_two single = {numbers[k + rest - 1]}, zeros = {0.0};
                rankbench_two left = single, right = rest == 3 ? single : zeros; /* stored as whole registers */
                if (rest > 1)
                    memcpy(&left, numbers + k, sizeof left);
                memcpy(out + k, &left, sizeof left);
                memcpy(out + k + 2, &right, sizeof right);
            }
        }
    }

    static inline void rankbench_gather(
        const double *vectors, rankbench_chosen chosen, Py_ssize_t n, double *out, Py_ssize_t stride
    ) {
        switch (n % 4) {
            case 0: rankbench_gather_lanes(vectors, chosen, n, 0, out, stride); break;
            case 1: rankbench_gather_lanes(vectors, chosen, n, 1, out, stride); break;
            case 2: rankbench_gather_lanes(vectors, chosen, n, 2, out, stride); break;
            case 3: rankbench_gather_lanes(vectors, chosen, n, 3, out, stride); break;
        }
    }

    #if RANKBENCH_WIDTH == 4
    /* The first four rows and the last two or four, from their diagonal on, in four columns each. Either alone has so
       few sums that a vector's products would wait for the additions of the one before. */
    static inline __attribute__((always_inline)) void rankbench_add_corners(
        const rankbench_equations *to, rankbench_vectors vectors, const int four
    ) {
        const Py_ssize_t last = to->width - 4, stride = to->stride;
        double *first = to->matrix, *second = to->matrix + last * stride + last, *right = to->right;
        const double *v = vectors.first;
        rankbench_lanes a, b, c, d, e, f, g = {0}, h = {0}, r, s, near, far;
        RANKBENCH_LOAD(a, first);
        RANKBENCH_LOAD(b, first + stride);
        RANKBENCH_LOAD(c, first + 2 * stride);
        RANKBENCH_LOAD(d, first + 3 * stride);
        RANKBENCH_LOAD(r, right);
        RANKBENCH_LOAD(e, second);
        RANKBENCH_LOAD(f, second + stride);
        if (four) {
            RANKBENCH_LOAD(g, second + 2 * stride);
            RANKBENCH_LOAD(h, second + 3 * stride);
        }
        RANKBENCH_LOAD(s, right + last);
        for (Py_ssize_t i = 0; i < vectors.n; i++, v += stride) {
            RANKBENCH_LOAD(near, v);
            RANKBENCH_LOAD(far, v + last);
            a += v[0] * near;
            b += v[1] * near;
            c += v[2] * near;
            d += v[3] * near;
            r += vectors.values[i] * near;
            e += v[last] * far;
            f += v[last + 1] * far;
            if (four) {
                g += v[last + 2] * far;
                h += v[last + 3] * far;
            }
            s += vectors.values[i] * far;
        }
        RANKBENCH_STORE(first, a);
        RANKBENCH_STORE(first + stride, b);
        RANKBENCH_STORE(first + 2 * stride, c);
        RANKBENCH_STORE(first + 3 * stride, d);
        RANKBENCH_STORE(right, r);
        RANKBENCH_STORE(second, e);
        RANKBENCH_STORE(second + stride, f);
        if (four) {
            RANKBENCH_STORE(second + 2 * stride, g);
            RANKBENCH_STORE(second + 3 * stride, h);
        }
        RANKBENCH_STORE(right + last, s);
    }
    #endif

    static void rankbench_add_products(const rankbench_equations *to, rankbench_vectors vectors) {
        Py_ssize_t row = 0, end = to->width;
    #if RANKBENCH_WIDTH == 4
        if (end % 8 == 4 && end > 4) {
            if (to->unknowns + 2 <= end)
                rankbench_add_corners(to, vectors, 0);
            else
                rankbench_add_corners(to, vectors, 1);
            for (Py_ssize_t column = 4; column < end; column += 8)
                rankbench_tile(to, vectors, 0, column, 1, 1, 0);
            row += 4;
            end -= 4;
        }
    #endif
        for (; row < end; row += 4)
            rankbench_band(to, vectors, row, 0);
    }

    /* One row of the factor, divided by the root of its pivot, and taken off the rows below it in its band. */
    static inline int rankbench_eliminate(const rankbench_equations *of, Py_ssize_t row, Py_ssize_t end) {
        const Py_ssize_t begin = row & ~(Py_ssize_t) 3;
        double *at = of->matrix + row * of->stride, *other;
        const double pivot = at[row], scale = 1.0 / sqrt(pivot);
        rankbench_lanes own, theirs;
        if (!(pivot > 0.0))
            return 1;
        for (Py_ssize_t column = begin; column < of->width; column += RANKBENCH_WIDTH) {
            RANKBENCH_LOAD(own, at + column);
            own *= scale;
            RANKBENCH_STORE(at + column, own);
        }
        of->right[row] *= scale;
        for (Py_ssize_t below = row + 1; below < end; below++) {
            const double factor = at[below];
            other = of->matrix + below * of->stride;
            for (Py_ssize_t column = begin; column < of->width; column += RANKBENCH_WIDTH) {
                RANKBENCH_LOAD(own, at + column);
                RANKBENCH_LOAD(theirs, other + column);
                theirs -= factor * own;
                RANKBENCH_STORE(other + column, theirs);
            }
            of->right[below] -= factor * of->right[row];
        }
        at[row] = scale;
        return 0;
    }

    static int rankbench_solve_equations(const rankbench_equations *of) {
        const Py_ssize_t unknowns = of->unknowns;
        for (Py_ssize_t panel = 0; panel < unknowns; panel += RANKBENCH_PANEL) {
            rankbench_vectors above = {of->matrix + panel * of->stride, of->right + panel, 0};
            for (Py_ssize_t band = panel; band < unknowns; band += 4) {
                rankbench_band(of, above, band, 1);
                if (above.n < RANKBENCH_PANEL) {
                    const Py_ssize_t end = band + 4 < unknowns ? band + 4 : unknowns;
                    for (Py_ssize_t row = band; row < end; row++)
                        if (rankbench_eliminate(of, row, end))
                            return 1;
                    above.n += 4;
                }
            }
        }
        for (Py_ssize_t row = unknowns - 1; row >= 0; row--) {
            const double found = of->right[row] *= of->matrix[row * of->stride + row];
            for (Py_ssize_t above = 0; above < row; above++)
                of->right[above] -= of->matrix[above * of->stride + row] * found;
        }
        return 0;
    }

    #define RANKBENCH_FOUR 4   /* systems that are solved side by side, each in a lane of its own */
    #define RANKBENCH_SMALL 24 /* unknowns of which four systems stay in the caches nearest to the processor */

    static inline rankbench_lanes rankbench_roots(rankbench_lanes numbers) {
    #ifdef __AVX__
        return _mm256_sqrt_pd(numbers);
    #elif defined(__SSE2__)
        return _mm_sqrt_pd(numbers);
    #else
        for (int k = 0; k < RANKBENCH_WIDTH; k++)
            numbers[k] = sqrt(numbers[k]);
        return numbers;
    #endif
    }

    typedef rankbench_lanes rankbench_numbers[RANKBENCH_SMALL][RANKBENCH_SMALL + 1]; /* of some systems, one a lane */

    /* Takes the products of the factors' rows above off some numbers of a row. */
    static inline __attribute__((always_inline)) void rankbench_take_off(
        rankbench_numbers numbers, Py_ssize_t row, Py_ssize_t column, int columns
    ) {
        rankbench_lanes left[4];
        int k;
        for (k = 0; k < columns; k++)
            left[k] = numbers[row][column + k];
        for (Py_ssize_t above = 0; above < row; above++) {
            const rankbench_lanes factor = numbers[above][row];
            for (k = 0; k < columns; k++)
                left[k] -= factor * numbers[above][column + k];
        }
        for (k = 0; k < columns; k++)
            numbers[row][column + k] = left[k];
    }

    /* Makes a row of the factors of some systems, from its diagonal on, and of their right sides. */
    static inline void rankbench_factor_row(rankbench_numbers numbers, Py_ssize_t row, Py_ssize_t unknowns) {
        rankbench_lanes *own = numbers[row];
        Py_ssize_t column = row;
        for (; column + 3 <= unknowns; column += 4)
            rankbench_take_off(numbers, row, column, 4);
        for (; column <= unknowns; column++)
            rankbench_take_off(numbers, row, column, 1);
        own[row] = 1.0 / rankbench_roots(own[row]);
        for (column = row + 1; column <= unknowns; column++)
            own[column] *= own[row];
    }

    /* Solves small systems of as many unknowns, one in each lane. */
    static inline void rankbench_solve_lanes(const rankbench_equations *of) {
        rankbench_numbers numbers;
        rankbench_lanes found;
        const Py_ssize_t unknowns = of->unknowns, stride = of->stride;
        int k;
        for (Py_ssize_t row = 0; row < unknowns; row++) {
            for (Py_ssize_t column = row; column < unknowns; column++)
                for (k = 0; k < RANKBENCH_WIDTH; k++)
                    numbers[row][column][k] = of[k].matrix[row * stride + column];
            for (k = 0; k < RANKBENCH_WIDTH; k++)
                numbers[row][unknowns][k] = of[k].right[row];
        }
        for (Py_ssize_t row = 0; row < unknowns; row++)
            rankbench_factor_row(numbers, row, unknowns);
        for (Py_ssize_t row = unknowns - 1; row >= 0; row--) {
            found = numbers[row][unknowns] * numbers[row][row];
            for (Py_ssize_t above = 0; above < row; above++)
                numbers[above][unknowns] -= numbers[above][row] * found;
            for (k = 0; k < RANKBENCH_WIDTH; k++)
                of[k].right[row] = found[k];
        }
    }

    /* Solves four small systems of as many unknowns with the bits that each has alone. Where a pivot is not above zero,
       its root is zero or NaN, and the solution is not finite. */
    static void rankbench_solve_four(const rankbench_equations *of) {
        for (int k = 0; k < RANKBENCH_FOUR; k += RANKBENCH_WIDTH)
            rankbench_solve_lanes(of + k);
    }
    """
    cdef enum:
        FOUR "RANKBENCH_FOUR"
        SMALL "RANKBENCH_SMALL"

    ctypedef struct Equations "rankbench_equations":
        double *matrix
        double *right
        Py_ssize_t unknowns
        Py_ssize_t width
        Py_ssize_t stride

    ctypedef struct Vectors "rankbench_vectors":
        const double *first
        const double *values
        Py_ssize_t n

    ctypedef struct Chosen "rankbench_chosen":
        const int32_t *rows
        Py_ssize_t n
        Py_ssize_t apart  # from one row to the next

    void gather "rankbench_gather" (
        const double *vectors, Chosen chosen, Py_ssize_t n, double *out, Py_ssize_t stride
    ) noexcept nogil
    void add_products "rankbench_add_products" (const Equations *to, Vectors vectors) noexcept nogil
    int solve_equations "rankbench_solve_equations" (const Equations *of) noexcept nogil
    void solve_four "rankbench_solve_four" (const Equations *of) noexcept nogil


cdef inline Py_ssize_t whole_lanes(Py_ssize_t unknowns) noexcept nogil:
    """The unknowns, rounded up to whole lanes."""
    return (unknowns + LANES - 1) // LANES * LANES


cdef inline Py_ssize_t stride_of(Py_ssize_t unknowns) noexcept nogil:
    """How far apart rows and vectors lie: not at multiples of 512 bytes, which would share few sets of a cache."""
    cdef Py_ssize_t width = whole_lanes(unknowns)
    return width + 8 if width % 64 == 0 else width


cdef inline Equations room_for(Arena *arena, Py_ssize_t unknowns) noexcept nogil:
    """Memory for equations of up to so many unknowns."""
    cdef Py_ssize_t width = whole_lanes(unknowns), stride = stride_of(unknowns)
    return Equations(floats(arena, width * stride), floats(arena, width), unknowns, width, stride)


cdef inline void clear(Equations *equations, Py_ssize_t unknowns) noexcept nogil:
    """Make all sums zero, of so many unknowns."""
    equations.unknowns = unknowns
    equations.width = whole_lanes(unknowns)
    equations.stride = stride_of(unknowns)
    memset(equations.matrix, 0, equations.width * equations.stride * sizeof(double))
    memset(equations.right, 0, equations.width * sizeof(double))
