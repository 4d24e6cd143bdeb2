# Weighted sums of some rows of a dense matrix, as many columns at a time as registers hold.

from libc.stdint cimport int32_t

from rankbench.kernels.shared.lanes cimport LANES

cdef extern from *:
    """
    typedef struct {
        const int32_t *columns;
        const double *values;
        Py_ssize_t n;
        const double *dense;
        Py_ssize_t width;
        int far;
        int add;
    } rankbench_chosen;

    #define RANKBENCH_AHEAD 8  /* rows that are asked for before they are needed */

    /* Sums in an array would be kept in memory, so each register has a name. */
    #define RANKBENCH_TWELVE(what) what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7) what(8) what(9) \\
        what(10) what(11)
    #define RANKBENCH_SUM(r) rankbench_lanes sum##r = {0}; \\
        if (r < registers && of->add) RANKBENCH_LOAD(sum##r, out + r * RANKBENCH_WIDTH);
    #define RANKBENCH_ADD(r) if (r < registers) { \\
        RANKBENCH_LOAD(a, row + r * RANKBENCH_WIDTH); \\
        sum##r += value * a; \\
    }
    #define RANKBENCH_WRITE(r) if (r < registers) RANKBENCH_STORE(out + r * RANKBENCH_WIDTH, sum##r);

    /* The sums for so many registers of columns, and for two more columns. */
    static inline __attribute__((always_inline)) void rankbench_sum_registers(
        const rankbench_chosen *of, Py_ssize_t start, double *out, const int registers, const int two
    ) {
        out += start;
        RANKBENCH_TWELVE(RANKBENCH_SUM)
        rankbench_lanes a;
        rankbench_two last = {0}, b;
        const double *dense = of->dense + start;
        if (two && of->add)
            memcpy(&last, out + registers * RANKBENCH_WIDTH, sizeof last);
        for (Py_ssize_t k = 0; k < of->n; k++) {
            const double *row = dense + of->columns[k] * of->width, value = of->values[k];
            if (of->far && k + RANKBENCH_AHEAD < of->n)
                for (int line = 0; line < (registers * RANKBENCH_WIDTH + 2 * two + 7) / 8; line++)
                    __builtin_prefetch(dense + of->columns[k + RANKBENCH_AHEAD] * of->width + 8 * line);
            RANKBENCH_TWELVE(RANKBENCH_ADD)
            if (two) {
                memcpy(&b, row + registers * RANKBENCH_WIDTH, sizeof b);
                last += value * b;
            }
        }
        RANKBENCH_TWELVE(RANKBENCH_WRITE)
        if (two)
            memcpy(out + registers * RANKBENCH_WIDTH, &last, sizeof last);
    }

    /* The same for as many columns from `start` on as there is room for; how many. */
    static Py_ssize_t rankbench_sum_columns(const rankbench_chosen *of, Py_ssize_t start, double *out) {
        const Py_ssize_t left = of->width - start, most = left / RANKBENCH_WIDTH, registers = most < 12 ? most : 12;
        const int two = left - registers * RANKBENCH_WIDTH >= 2 && left - registers * RANKBENCH_WIDTH < 4;
        double sum = of->add ? out[start] : 0.0;
        switch (2 * registers + two) {
            #define RANKBENCH_COLUMNS(registers) \\
            case 2 * registers: rankbench_sum_registers(of, start, out, registers, 0); break; \\
            case 2 * registers + 1: rankbench_sum_registers(of, start, out, registers, 1); break
            RANKBENCH_COLUMNS(1);
            RANKBENCH_COLUMNS(2);
            RANKBENCH_COLUMNS(3);
            RANKBENCH_COLUMNS(4);
            RANKBENCH_COLUMNS(5);
            RANKBENCH_COLUMNS(6);
            RANKBENCH_COLUMNS(7);
            RANKBENCH_COLUMNS(8);
            RANKBENCH_COLUMNS(9);
            RANKBENCH_COLUMNS(10);
            RANKBENCH_COLUMNS(11);
            RANKBENCH_COLUMNS(12);
        case 1:
            rankbench_sum_registers(of, start, out, 0, 1);
            break;
        default:
            for (Py_ssize_t k = 0; k < of->n; k++)
                sum += of->values[k] * of->dense[of->columns[k] * of->width + start];
            out[start] = sum;
            return 1;
        }
        return registers * RANKBENCH_WIDTH + 2 * two;
    }

    static void rankbench_sum_chosen(const rankbench_chosen *of, double *out) {
        Py_ssize_t start = 0;
        while (start < of->width)
            start += rankbench_sum_columns(of, start, out);
    }
    """
    ctypedef struct Chosen "rankbench_chosen":
        # Some rows of a dense matrix, by their numbers, and what each is times.
        const int32_t *columns
        const double *values
        Py_ssize_t n
        const double *dense
        Py_ssize_t width
        bint far  # beyond the caches: rows are asked for ahead
        bint add  # to what is there
    # out = sum_k values[k] dense[columns[k]], each number of it summed in the order of k
    void sum_chosen "rankbench_sum_chosen" (const Chosen *of, double *out) noexcept nogil
