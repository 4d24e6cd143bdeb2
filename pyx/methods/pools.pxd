# Pooling adjacent violators (PAV), for four sequences of rows side by side.

# A sequence is an array of pools: at first each of its rows is a pool by itself. They are taken one by one, and where
# the mean of a pool is above that of the next one, the two become one. The pools so far stand at the beginning of the
# array, in the places of rows that they contain. Means are compared by products, so that a row costs no division, and
# equal means stay apart: what is in order already is not touched. O(n), as every row is pooled at most once.

# Whether two pools become one cannot be predicted, but each step can do both: the last two become one, or the next row
# is taken. Such a step has no branch, but waits for the one before; those of four sequences do not wait for each other.

from libc.stdint cimport int32_t

from rankbench.kernels.shared.lanes cimport LANES

cdef extern from *:
    """
    #include <math.h>
    #include <string.h>

    typedef struct { double total, mass; } rankbench_pool;  /* the weighted sum of its rows, and their weights' */
    typedef struct {
        Py_ssize_t first, end;  /* the places of its rows */
        Py_ssize_t next;  /* the first row that has not been taken */
        Py_ssize_t top;  /* the place of the last pool */
        rankbench_pool last;  /* which is not written yet */
    } rankbench_sequence;

    static const rankbench_pool rankbench_lowest = {-INFINITY, 1.0};  /* below all others */

    typedef long long rankbench_truths __attribute__((vector_size(16)));  /* all bits set: true */

    /* `top` counts the doubles before the last pool: addresses are made of it, and of nothing else, without a shift. */
    static inline __attribute__((always_inline)) void rankbench_step(
        rankbench_two *last, Py_ssize_t *top, Py_ssize_t *next, double *pools, int32_t *ends
    ) {
        rankbench_two below, row;
        memcpy(&below, pools + *top - 2, sizeof below);
        memcpy(&row, pools + 2 * *next, sizeof row);
        const rankbench_two products = (rankbench_two) {(*last)[1], (*last)[0]} * below;
        const rankbench_two higher = {products[0], products[0]}, lower = {products[1], products[1]};
        const rankbench_truths falls = higher > lower;
        memcpy(pools + *top, last, sizeof *last);
        *(int32_t *) ((char *) ends + 2 * *top) = (int32_t) *next;
        *last = (rankbench_two) ((falls & (rankbench_truths) (*last + below)) | (~falls & (rankbench_truths) row));
        *top += 2 + 4 * (Py_ssize_t) falls[0];
        *next += 1 + (Py_ssize_t) falls[0];
    }

    /* In an array these would be kept in memory, so those of each sequence have names. */
    #define RANKBENCH_EACH(what) what(0) what(1) what(2) what(3)
    #define RANKBENCH_BEGUN(k) rankbench_two last##k; \
        Py_ssize_t top##k = 2 * four[k].top, next##k = four[k].next; \
        memcpy(&last##k, &four[k].last, sizeof last##k);
    #define RANKBENCH_LEFT(k) left = left < four[k].end - next##k ? left : four[k].end - next##k;
    #define RANKBENCH_STEP(k) rankbench_step(&last##k, &top##k, &next##k, (double *) pools, ends);
    #define RANKBENCH_END(k) four[k].top = top##k / 2; \
        four[k].next = next##k; \
        memcpy(&four[k].last, &last##k, sizeof last##k);

    /* Takes rows of all four sequences, until one of them has no more. */
    static __attribute__((noinline)) void rankbench_side_by_side(
        rankbench_sequence *four, rankbench_pool *pools, int32_t *ends
    ) {
        RANKBENCH_EACH(RANKBENCH_BEGUN)
        for (;;) {
            Py_ssize_t left = PY_SSIZE_T_MAX;
            RANKBENCH_EACH(RANKBENCH_LEFT)
            if (left < 1)
                break;
            for (; left; left--) {  /* each takes one row at most */
                RANKBENCH_EACH(RANKBENCH_STEP)
            }
        }
        RANKBENCH_EACH(RANKBENCH_END)
    }
    """
    ctypedef struct Pool "rankbench_pool":
        double total
        double mass
    ctypedef struct Sequence "rankbench_sequence":
        Py_ssize_t first
        Py_ssize_t end
        Py_ssize_t next
        Py_ssize_t top
        Pool last
    const Pool LOWEST "rankbench_lowest"
    void side_by_side "rankbench_side_by_side" (Sequence *four, Pool *pools, int32_t *ends) noexcept nogil


cdef inline Sequence begun(Pool *pools, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    """The sequence of the n rows from `first` on; the place before it takes a pool that lies below all others."""
    pools[first - 1] = LOWEST
    return Sequence(first, first + n, first + 1, first, pools[first])


cdef inline Pool merged(Pool last, const Pool *pools, Py_ssize_t *top) noexcept nogil:
    """The last pool with those before the place `top` whose means are above it; `top` then is the place for it."""
    while pools[top[0] - 1].total * last.mass > last.total * pools[top[0] - 1].mass:
        top[0] -= 1
        last = Pool(last.total + pools[top[0]].total, last.mass + pools[top[0]].mass)
    return last


cdef inline Py_ssize_t finish(Sequence rows, Pool *pools, int32_t *ends) noexcept nogil:
    """Take the sequence's other rows; how many pools it has in the end.

    A pool's rows end before the place in `ends`, and begin where those of the pool before it end.
    """
    cdef Py_ssize_t place, top = rows.top
    cdef Pool row, last
    if rows.end == rows.first:
        return 0
    last = merged(rows.last, pools, &top)
    for place in range(rows.next, rows.end):
        row = pools[place]
        if last.total * row.mass <= row.total * last.mass:
            pools[top], ends[top] = last, <int32_t> place
            top += 1
            last = row
        else:
            last = merged(Pool(last.total + row.total, last.mass + row.mass), pools, &top)
    pools[top], ends[top] = last, <int32_t> rows.end
    return top + 1 - rows.first
