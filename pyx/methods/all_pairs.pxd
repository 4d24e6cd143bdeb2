# The loss over the pairs of one task: its value, gradient and Hessian-vector product by the task's scores.
#
# Pairs are either all strictly ordered pairs of the task's ratings, which are never listed, and whose loss is the
# squared hinge; or a list, with any smooth loss.
#
# Let q be the scores, and a pair (j over k) be active where q_j - q_k < 1. The partners of k above it are
# its active j, a_k of them; those of j below it are its active k, b_j of them. With the Laplacian of the
# active pairs, (H q)_i = (a_i + b_i) q_i - sum of the partners' q, and with balance_i = a_i - b_i:
#
#   loss     = sum over active (1 - q_j + q_k)^2 = sum_i a_i + 2 balance . q + q . H q
#   gradient = 2 (balance + H q)
#   Hessian times p = 2 H p
#
# So counts and sums over partners are all there is to compute. Sorted by score, the candidates above an item
# are the ranks below high, those below it the ranks from low on: two windows that slide as the scores grow.
# Of the items in a window those of a higher (lower) level count. With few levels a table holds, for each
# rank and level, the sum over all earlier items of at least that level: O(n levels), without a branch. With
# many, a Fenwick tree over the levels holds the items of the window: O(n log levels). Where the ranks are the bits of
# a word, items are counted by words in place of the table: O(n).

from libc.stdint cimport int32_t, int64_t, uint64_t

from rankbench.kernels.shared.arena cimport Arena, floats, ints
from rankbench.kernels.shared.lanes cimport LANES, _read_ahead, read_ahead
from rankbench.kernels.shared.losses cimport (
    MARGINS, NEVER, ONCE, SQUARED_HINGE, Loss, Outcomes, Parabolas, curvatures_of, parabolas_of,
)
from rankbench.kernels.shared.rows cimport ComparisonRows, Pattern
from rankbench.kernels.shared.sorting cimport argsort

cdef enum:
    _FEW = 16  # up to so many levels the table is faster than the tree, however long the task
    _SOME = 64  # up to so many it is, while the table stays in cache
    _CACHED = 1 << 15  # doubles of a table that does
    _NARROW = 12  # numbers in a row of the table, up to which it is filled faster than its items are counted by bits
    _BITS = 63  # of a word, in which one more than all that are counted can be written

cdef extern from *:
    """
    #include <string.h>

    /* from place 63 - y on: 1 for the levels up to y, 0 for those above */
    static const double rankbench_steps[132] = {
        1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,
        1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1
    };

    /* Fills the table of up to ten levels. As the stride is a constant, the sums stay in registers. */
    static inline __attribute__((always_inline)) void rankbench_fill_at(
        const int32_t *order, const int32_t *level, const double *p, Py_ssize_t n, double *table,
        const Py_ssize_t stride
    ) {
        rankbench_two sums[6] = {{0}}, steps;
        Py_ssize_t rank, y;
        double value = 1.0;
        memset(table, 0, stride * sizeof *table);
        for (rank = 0; rank < n; rank++) {
            const double *step = rankbench_steps + 63 - level[order[rank]];
            if (p)
                value = p[order[rank]];
            table += stride;
            for (y = 0; y < stride / 2; y++) {
                memcpy(&steps, step + 2 * y, sizeof steps);
                sums[y] += value * steps;
                memcpy(table + 2 * y, &sums[y], sizeof sums[y]);
            }
        }
    }

    /* Sums in an array would be kept in memory, so each register has a name; some are left of sixteen. */
    #define RANKBENCH_SUMS 12
    #define RANKBENCH_EACH(what) \\
        what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7) what(8) what(9) what(10) what(11)
    #define RANKBENCH_START(r) rankbench_lanes sum##r = {0}; \\
        if (r < vectors) RANKBENCH_STORE(table + r * RANKBENCH_WIDTH, sum##r);
    #define RANKBENCH_GO_ON(r) if (r < vectors) { \\
        RANKBENCH_LOAD(step, steps + r * RANKBENCH_WIDTH); \\
        sum##r += value * step; \\
        RANKBENCH_STORE(table + r * RANKBENCH_WIDTH, sum##r); \\
    }

    typedef struct {
        const int32_t *order, *level;
        const double *p;
        Py_ssize_t n;
    } rankbench_ranked;

    /* Fills so many vectors of each row, from this column on. */
    static inline __attribute__((always_inline)) void rankbench_fill_columns(
        rankbench_ranked of, double *table, Py_ssize_t stride, Py_ssize_t from, const int vectors
    ) {
        rankbench_lanes step;
        double value = 1.0;
        table += from;
        RANKBENCH_EACH(RANKBENCH_START)
        for (Py_ssize_t rank = 0; rank < of.n; rank++) {
            const double *steps = rankbench_steps + 63 - of.level[of.order[rank]] + from;
            if (of.p)
                value = of.p[of.order[rank]];
            table += stride;
            RANKBENCH_EACH(RANKBENCH_GO_ON)
        }
    }

    static void rankbench_fill_many(rankbench_ranked of, double *table, Py_ssize_t stride) {
    #define RANKBENCH_FILLED(vectors) case vectors: rankbench_fill_columns(of, table, stride, from, vectors); break
        Py_ssize_t left = stride / RANKBENCH_WIDTH, parts = (left + RANKBENCH_SUMS - 1) / RANKBENCH_SUMS, from, vectors;
        for (from = 0; parts > 0; parts--, left -= vectors, from += vectors * RANKBENCH_WIDTH)
            switch (vectors = (left + parts - 1) / parts) {
                RANKBENCH_FILLED(1);
                RANKBENCH_FILLED(2);
                RANKBENCH_FILLED(3);
                RANKBENCH_FILLED(4);
                RANKBENCH_FILLED(5);
                RANKBENCH_FILLED(6);
                RANKBENCH_FILLED(7);
                RANKBENCH_FILLED(8);
                RANKBENCH_FILLED(9);
                RANKBENCH_FILLED(10);
                RANKBENCH_FILLED(11);
                default: rankbench_fill_columns(of, table, stride, from, RANKBENCH_SUMS);
            }
    }

    static inline void rankbench_fill(
        const int32_t *order, const int32_t *level, const double *p, Py_ssize_t n, double *table, Py_ssize_t stride
    ) {
    #define RANKBENCH_CASE(stride) case stride: rankbench_fill_at(order, level, p, n, table, stride); return
        switch (stride) {
            RANKBENCH_CASE(2);
            RANKBENCH_CASE(4);
            RANKBENCH_CASE(6);
            RANKBENCH_CASE(8);
            RANKBENCH_CASE(10);
            RANKBENCH_CASE(12);
        }
        rankbench_fill_many((rankbench_ranked) {order, level, p, n}, table, stride);
    }

    typedef int64_t rankbench_wholes __attribute__((vector_size(8 * RANKBENCH_WIDTH)));

    /* Integers that compare as the doubles do, none of them -0; instead of NaN this one. */
    static inline rankbench_wholes rankbench_whole(rankbench_lanes x, int64_t no_number) {
        const rankbench_wholes missing = (rankbench_wholes) (x != x), negative = (rankbench_wholes) (x < 0.0);
        return (((rankbench_wholes) x ^ (negative & INT64_MAX)) & ~missing) | (missing & no_number);
    }

    /* Integers of the scores in this order such that lower[i] < upper[j] where score i < score j + 1, which NaN never
       is. The last lanes repeat the last score. */
    static inline void rankbench_whole_ends(
        const double *scores, const int32_t *order, Py_ssize_t n, int64_t *lower, int64_t *upper
    ) {
        rankbench_lanes score;
        rankbench_wholes whole;
        for (Py_ssize_t i = 0; i < n; i += RANKBENCH_WIDTH) {
            for (int k = 0; k < RANKBENCH_WIDTH; k++)
                score[k] = scores[order[i + k < n ? i + k : n - 1]];
            whole = rankbench_whole(score + 0.0, INT64_MAX);
            RANKBENCH_STORE(lower + i, whole);
            whole = rankbench_whole(score + 1.0, INT64_MIN);
            RANKBENCH_STORE(upper + i, whole);
        }
    }
    """
    # table[rank, y] = sum of p, or of ones, over the items before that rank of level at least y
    void _fill "rankbench_fill" (
        const int32_t *order, const int32_t *level, const double *p, Py_ssize_t n, double *table, Py_ssize_t stride
    ) noexcept nogil
    void _whole_ends "rankbench_whole_ends" (
        const double *scores, const int32_t *order, Py_ssize_t n, int64_t *lower, int64_t *upper
    ) noexcept nogil
    int _ones "__builtin_popcountll" (uint64_t word) noexcept nogil

cdef struct Task:
    Py_ssize_t n  # items
    int levels  # distinct ratings; 0: the pairs are listed
    const int32_t *level  # of each item, 0 .. levels - 1
    Py_ssize_t pairs
    const int32_t *better  # places of items in the task
    const int32_t *worse
    Loss loss  # of listed pairs
    bint followed  # whether the next task's rows stand behind this one's in all arrays

cdef struct Windows:
    int32_t *order  # places of items, by score
    int32_t *high  # of each item: ranks below it hold a score less than its own + 1
    int32_t *low  # ranks from it on hold a score greater than its own - 1

cdef struct Partners:
    # Sums over an item's partners.
    double above
    double below

cdef struct PairMemory:
    # Scratch memory for the pairs of one task at a time.
    double *above
    double *below
    double *centred
    double *sums  # table or tree
    int32_t *sorting

cdef struct TaskPairsView:
    # The rows of all tasks, one after the other.
    Py_ssize_t n  # tasks
    const int64_t *indptr
    const int32_t *items
    const int32_t *level
    const int32_t *levels  # NULL: the pairs are listed
    const int64_t *pair_indptr
    const int32_t *better
    const int32_t *worse
    Py_ssize_t longest  # the largest number of rows of a task
    Py_ssize_t sums  # the largest number of doubles of a task's table or tree
    Loss loss  # of listed pairs


cdef class TaskPairs:
    cdef Pattern rows
    cdef const int32_t[::1] level
    cdef const int32_t[::1] levels
    cdef ComparisonRows listed
    cdef TaskPairsView view


cdef inline Task task_of(const TaskPairsView *tasks, Py_ssize_t number) noexcept nogil:
    """One task's share of the rows and pairs."""
    cdef int64_t first = tasks.indptr[number], pair
    if tasks.levels != NULL:
        return Task(
            tasks.indptr[number + 1] - first, tasks.levels[number], tasks.level + first,
            0, NULL, NULL, SQUARED_HINGE, False,
        )
    pair = tasks.pair_indptr[number]
    return Task(
        tasks.indptr[number + 1] - first, 0, NULL,
        tasks.pair_indptr[number + 1] - pair, tasks.better + pair, tasks.worse + pair, tasks.loss, False,
    )


cdef inline PairMemory lay_out_pairs(Arena *arena, const TaskPairsView *tasks) noexcept nogil:
    """Room for the pairs of any of the tasks."""
    cdef Py_ssize_t longest = tasks.longest
    return PairMemory(
        floats(arena, longest), floats(arena, longest), floats(arena, longest), floats(arena, tasks.sums),
        ints(arena, longest),
    )


cdef inline Windows lay_out_windows(Arena *arena, Py_ssize_t longest) noexcept nogil:
    """Room for the windows of a task of so many items."""
    return Windows(ints(arena, longest), ints(arena, longest), ints(arena, longest))


cdef inline double evaluate(
    const Task *task, const double *scores, Windows windows, double *degree, double *slope, PairMemory *memory
) noexcept nogil:
    """The loss; slope becomes balance + H q, half its gradient, degree a + b; windows are set for `curve`.

    windows.order comes in as any order, sorts fastest from a nearly right one, and is not used for listed pairs.
    """
    if task.levels == 0:
        return _evaluate_listed(task, scores, degree, slope)
    return _evaluate_all(task, scores, windows, degree, slope, memory)


cdef inline void curve(
    const Task *task, const double *scores, Windows windows, const double *degree, const double *direction,
    double *out, PairMemory *memory,
) noexcept nogil:
    """out = H p, half the Hessian at these scores times a direction."""
    cdef Py_ssize_t i, first
    if task.levels == 0:
        _curve_listed(task, scores, direction, out)
        return
    cdef Partners partners
    cdef Py_ssize_t by_row = _window_sums(task, windows, direction, memory)
    for first in range(0, task.n, 16):
        if task.followed:
            _read_next(task, windows, degree, direction, out, first)
        for i in range(first, min(first + 16, task.n)):
            partners = _partners(task, windows, memory, by_row, i)
            out[i] = degree[i] * direction[i] - (partners.above + partners.below)


cdef inline double _evaluate_all(
    const Task *task, const double *scores, Windows windows, double *degree, double *slope, PairMemory *memory
) noexcept nogil:
    """Scores count from their median, which loses fewer digits and changes nothing else."""
    cdef Py_ssize_t i, first, n = task.n
    cdef Py_ssize_t by_row
    cdef Partners partners
    cdef double loss, balance, median
    if n == 0:
        return 0.0
    _arrange(scores, windows, memory, n)
    median = scores[windows.order[n // 2]]
    for i in range(n):
        memory.centred[i] = scores[i] - median
    loss = _count(task, windows, degree, slope, memory)
    by_row = _window_sums(task, windows, memory.centred, memory)
    for first in range(0, n, 16):
        if task.followed:
            _read_next(task, windows, degree, scores, slope, first)
        for i in range(first, min(first + 16, n)):
            partners = _partners(task, windows, memory, by_row, i)
            balance = slope[i]
            slope[i] = balance + (degree[i] * memory.centred[i] - (partners.above + partners.below))
            loss += memory.centred[i] * (balance + slope[i])
    return max(loss, 0.0)


cdef inline void _read_next(
    const Task *task, Windows windows, const double *degree, const double *numbers, const double *found, Py_ssize_t row
) noexcept nogil:
    """Prefetch what the next task has in place of these 16 rows: in all arrays its rows stand behind this task's."""
    cdef Py_ssize_t next_row = row + task.n
    _read_ahead(task.level + next_row)
    _read_ahead(windows.order + next_row)
    _read_ahead(windows.high + next_row)
    _read_ahead(windows.low + next_row)
    read_ahead(degree + next_row, 16)
    read_ahead(numbers + next_row, 16)
    read_ahead(found + next_row, 16)


cdef inline double _evaluate_listed(
    const Task *task, const double *scores, double *degree, double *slope
) noexcept nogil:
    """The same pair by pair: what a pair adds to the gradient and to the degrees is kept per item; O(pairs).

    Slope and degree are half of what the derivatives of the losses add up to.
    """
    cdef Parabolas halves
    cdef Py_ssize_t first = 0, count, k
    cdef double loss = 0.0
    cdef const int32_t *better = task.better
    cdef const int32_t *worse = task.worse
    for k in range(task.n):
        degree[k] = slope[k] = 0.0
    while first < task.pairs:
        count = _half_parabolas(task, scores, first, &halves)
        for k in range(count):
            loss += halves.values[k]
            slope[better[first + k]] += halves.slopes[k]
            slope[worse[first + k]] -= halves.slopes[k]
            degree[better[first + k]] += halves.curvatures[k]
            degree[worse[first + k]] += halves.curvatures[k]
        first += count
    return loss


cdef inline Py_ssize_t _half_parabolas(
    const Task *task, const double *scores, Py_ssize_t first, Parabolas *out
) noexcept nogil:
    """The losses of some pairs with half their slopes and curvatures by the margin; of how many."""
    cdef double margins[MARGINS]
    cdef double missing
    cdef Py_ssize_t count = min(<Py_ssize_t> MARGINS, task.pairs - first), k
    cdef const int32_t *better = task.better + first
    cdef const int32_t *worse = task.worse + first
    if task.loss == SQUARED_HINGE:
        for k in range(count):
            missing = max(0.0, 1.0 - scores[better[k]] + scores[worse[k]])
            out.values[k], out.slopes[k], out.curvatures[k] = missing * missing, -missing, missing > 0.0
        return count
    for k in range(count):
        margins[k] = scores[better[k]] - scores[worse[k]]
    parabolas_of(task.loss, Outcomes(&margins[0], ONCE, NEVER), count, 0, out)
    for k in range(count):
        out.slopes[k] *= 0.5
        out.curvatures[k] *= 0.5
    return count


cdef inline void _curve_listed(
    const Task *task, const double *scores, const double *direction, double *out
) noexcept nogil:
    """out = H p, summed pair by pair; O(pairs)."""
    cdef double halves[MARGINS]
    cdef Py_ssize_t first = 0, count, k
    cdef double change
    cdef const int32_t *better = task.better
    cdef const int32_t *worse = task.worse
    for k in range(task.n):
        out[k] = 0.0
    while first < task.pairs:
        count = _half_curvatures(task, scores, first, halves)
        for k in range(count):
            change = halves[k] * (direction[better[first + k]] - direction[worse[first + k]])
            out[better[first + k]] += change
            out[worse[first + k]] -= change
        first += count


cdef inline Py_ssize_t _half_curvatures(
    const Task *task, const double *scores, Py_ssize_t first, double *out
) noexcept nogil:
    """Half the curvatures of the losses of some pairs by the margin; of how many."""
    cdef Py_ssize_t count = min(<Py_ssize_t> MARGINS, task.pairs - first), k
    cdef const int32_t *better = task.better + first
    cdef const int32_t *worse = task.worse + first
    if task.loss == SQUARED_HINGE:
        for k in range(count):
            out[k] = 1.0 - scores[better[k]] + scores[worse[k]] > 0.0
        return count
    for k in range(count):
        out[k] = scores[better[k]] - scores[worse[k]]
    curvatures_of(task.loss, out, count, out)
    for k in range(count):
        out[k] *= 0.5
    return count


cdef inline void _arrange(const double *scores, Windows windows, PairMemory *memory, Py_ssize_t n) noexcept nogil:
    """Sort, and find both ends of the windows.

    An item's `high` is the number of scores below its own plus 1, and its `low` the number of scores that plus 1 are at
    most its own. Both are known when the sorted scores are merged with the sorted scores plus 1. `low` is at most the
    item's rank, also where scores are so large that adding 1 changes nothing. Integers are compared in place of the
    scores, in half the time.
    """
    cdef int64_t *lower = <int64_t *> memory.above
    cdef int64_t *upper = <int64_t *> memory.below
    argsort(scores, windows.order, memory.sorting, n)
    _whole_ends(scores, windows.order, n, lower, upper)
    _merge_windows(lower, upper, windows, n)


cdef inline void _merge_windows(
    const int64_t *scores, const int64_t *raised, Windows windows, Py_ssize_t n
) noexcept nogil:
    """Merge the scores with the scores plus 1; each step takes one of either, without a branch.

    A step has to wait for the one before, so the merge goes from both ends at a time. First those are set aside that
    lie below all others plus 1, or plus 1 above all others.
    """
    cdef Py_ssize_t low = 0, high = 0, last_low = n, last_high = n, rank
    cdef bint lower
    while high < n and scores[high] < raised[0]:
        windows.low[windows.order[high]] = 0
        high += 1
    while last_low > 0 and scores[n - 1] < raised[last_low - 1]:
        last_low -= 1
        windows.high[windows.order[last_low]] = <int32_t> n
    while last_high - high > 1 and last_low - low > 1:
        lower = scores[high] < raised[low]
        windows.low[windows.order[high]] = <int32_t> min(low, high)
        windows.high[windows.order[low]] = <int32_t> high
        high += lower
        low += not lower
        lower = scores[last_high - 1] < raised[last_low - 1]
        windows.low[windows.order[last_high - 1]] = <int32_t> min(last_low, last_high - 1)
        windows.high[windows.order[last_low - 1]] = <int32_t> last_high
        last_low -= lower
        last_high -= not lower
    while high < last_high and low < last_low:
        lower = scores[high] < raised[low]
        windows.low[windows.order[high]] = <int32_t> min(low, high)
        windows.high[windows.order[low]] = <int32_t> high
        high += lower
        low += not lower
    for rank in range(high, last_high):
        windows.low[windows.order[rank]] = <int32_t> min(last_low, rank)
    for rank in range(low, last_low):
        windows.high[windows.order[rank]] = <int32_t> last_high


cdef inline Py_ssize_t _window_sums(
    const Task *task, Windows windows, const double *p, PairMemory *memory
) noexcept nogil:
    """Sum p over all windows, as `_partners` looks it up; p = NULL counts. The table's stride, or 0 without a table."""
    cdef Py_ssize_t stride = _stride(task.levels)
    if not _by_table(task.n, task.levels):
        _sums_by_tree(task, windows, p, memory.above, memory.below, memory.sums)
        return 0
    _fill(windows.order, task.level, p, task.n, memory.sums, stride)
    return stride


cdef inline Partners _partners(
    const Task *task, Windows windows, const PairMemory *memory, Py_ssize_t stride, Py_ssize_t item
) noexcept nogil:
    """The sums over an item's partners above and below.

    Above an item of level y: table[high, y + 1]. Below it: the items from low on of level less than y.
    """
    cdef const double *end
    cdef const double *start
    cdef Py_ssize_t y
    if stride == 0:
        return Partners(memory.above[item], memory.below[item])
    y = task.level[item]
    end = memory.sums + task.n * stride
    start = memory.sums + windows.low[item] * stride
    return Partners(
        memory.sums[windows.high[item] * stride + y + 1], (end[0] - end[y]) - (start[0] - start[y])
    )


cdef inline Py_ssize_t sums_size(Py_ssize_t n, int levels) noexcept nogil:
    """How many doubles the table or the tree of a task takes."""
    return (n + 1) * _stride(levels) if _by_table(n, levels) else levels + 1


cdef inline bint _by_table(Py_ssize_t n, int levels) noexcept nogil:
    """Whether sums come from a table; else they come from a tree."""
    return levels <= _FEW or (levels <= _SOME and (n + 1) * ((levels + 2) & ~1) <= _CACHED)


cdef inline Py_ssize_t _stride(int levels) noexcept nogil:
    """A row of the table: a sum per level and a zero behind them, rounded up to two numbers, a wide one to four."""
    return (levels + 2) & ~1 if levels < _NARROW else (levels + LANES) & ~(LANES - 1)


cdef inline double _count(
    const Task *task, Windows windows, double *degree, double *balance, PairMemory *memory
) noexcept nogil:
    """How many pairs are active; of each item a + b and a - b."""
    cdef Py_ssize_t item, by_row
    cdef Partners partners
    cdef double pairs = 0.0
    if _stride(task.levels) > _NARROW and max(task.n, task.levels) <= _BITS:
        return <double> _count_by_bits(task, windows, degree, balance)
    by_row = _window_sums(task, windows, NULL, memory)
    for item in range(task.n):
        partners = _partners(task, windows, memory, by_row, item)
        degree[item] = partners.above + partners.below
        balance[item] = partners.above - partners.below
        pairs += partners.above
    return pairs


cdef inline int _count_by_bits(const Task *task, Windows windows, double *degree, double *balance) noexcept nogil:
    """The same, where each rank is a bit of a word; at_least[y] has those of the items of level at least y."""
    cdef uint64_t at_least[_BITS + 1]
    cdef Py_ssize_t rank, item, y
    cdef int above, below, pairs = 0
    for y in range(task.levels + 1):
        at_least[y] = 0
    for rank in range(task.n):
        at_least[task.level[windows.order[rank]]] |= <uint64_t> 1 << rank
    for y in range(task.levels - 1, 0, -1):
        at_least[y - 1] |= at_least[y]
    for item in range(task.n):
        y = task.level[item]
        above = _ones(at_least[y + 1] & _first_bits(windows.high[item]))
        below = _ones(at_least[0] & ~at_least[y] & ~_first_bits(windows.low[item]))
        degree[item], balance[item] = above + below, above - below
        pairs += above
    return pairs


cdef inline uint64_t _first_bits(int32_t n) noexcept nogil:
    """The lowest n bits of a word, 0 <= n <= _BITS."""
    return (<uint64_t> 1 << n) - 1


cdef inline void _sums_by_tree(
    const Task *task, Windows windows, const double *p, double *above, double *below, double *tree
) noexcept nogil:
    """Two walks, up and down, that put every item into the tree as its window reaches it.

    Invariant: on the way up the tree holds the items of the ranks below `reached`, on the way down those from there on.
    """
    cdef Py_ssize_t rank
    cdef int32_t item, entering, reached = 0
    _clear(tree, task.levels)
    for rank in range(task.n):
        item = windows.order[rank]
        while reached < windows.high[item]:
            entering = windows.order[reached]
            _add(tree, task.levels, task.levels - 1 - task.level[entering], 1.0 if p == NULL else p[entering])
            reached += 1
        above[item] = _sum_before(tree, task.levels - 1 - task.level[item])
    _clear(tree, task.levels)
    reached = <int32_t> task.n
    for rank in range(task.n - 1, -1, -1):
        item = windows.order[rank]
        while reached > windows.low[item]:
            reached -= 1
            entering = windows.order[reached]
            _add(tree, task.levels, task.level[entering], 1.0 if p == NULL else p[entering])
        below[item] = _sum_before(tree, task.level[item])


cdef inline void _clear(double *tree, int levels) noexcept nogil:
    """An empty tree."""
    cdef int node
    for node in range(levels + 1):
        tree[node] = 0.0


cdef inline void _add(double *tree, int levels, int level, double value) noexcept nogil:
    """Node i of a Fenwick tree holds the sum over the levels from i - (i & -i) to i - 1."""
    cdef int node = level + 1
    while node <= levels:
        tree[node] += value
        node += node & -node


cdef inline double _sum_before(const double *tree, int level) noexcept nogil:
    """The sum over the levels before this one."""
    cdef double found = 0.0
    cdef int node = level
    while node > 0:
        found += tree[node]
        node &= node - 1
    return found
