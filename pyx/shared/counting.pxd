# Counting in lanes: what comparisons of numbers with each other give, without a branch that depends on the numbers.
# Counts are exact, so that neither the width of the lanes nor the order of counting shows in them.

from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    """
    #include <math.h>
    #include <stdint.h>
    #include <string.h>

    #ifdef __AVX__
    #include <immintrin.h>
    #define RANKBENCH_WIDTH 4
    #define RANKBENCH_PLACES {0, 1, 2, 3}
    #define RANKBENCH_HIGHER _mm256_max_pd
    #define RANKBENCH_MASK _mm256_movemask_pd
    #else
    #define RANKBENCH_WIDTH 2
    #define RANKBENCH_PLACES {0, 1}
    #ifdef __SSE2__
    #include <emmintrin.h>
    #define RANKBENCH_HIGHER _mm_max_pd
    #define RANKBENCH_MASK _mm_movemask_pd
    #endif
    #endif
    typedef double rankbench_row __attribute__((vector_size(8 * RANKBENCH_WIDTH)));
    typedef int64_t rankbench_marks __attribute__((vector_size(8 * RANKBENCH_WIDTH)));  /* -1: true */
    typedef struct { int64_t same_truth, same_score, same_both, wrong; } rankbench_pairs;
    typedef struct { rankbench_marks same_truth, same_score, same_both, wrong; } rankbench_pair_lanes;
    typedef struct { int64_t above, level; } rankbench_sides;
    typedef struct { double sum; int64_t count; } rankbench_reached;
    typedef struct { double value; int64_t count; } rankbench_level;

    static inline int64_t rankbench_counted(rankbench_marks lanes) {
        int64_t sum = 0;
        for (int k = 0; k < RANKBENCH_WIDTH; k++)
            sum -= lanes[k];
        return sum;
    }

    /* Add up the pairs of one rating with a row of others, as far as these are marked. */
    static inline void rankbench_add_pairs(
        rankbench_pair_lanes *sums, const double *truths, const double *scores, rankbench_row truth,
        rankbench_row score, rankbench_marks marked
    ) {
        rankbench_row x, y;
        memcpy(&x, truths, sizeof x);
        memcpy(&y, scores, sizeof y);
        rankbench_marks truth_ties = (x == truth) & marked, score_ties = (y == score) & marked;
        sums->same_truth += truth_ties;
        sums->same_score += score_ties;
        sums->same_both += truth_ties & score_ties;
        sums->wrong += ((x > truth) ^ (y > score)) & marked & ~(truth_ties | score_ties);
    }

    /* All pairs of n ratings: each with those before it, of which the first few, if they fill no row, come first. */
    static inline rankbench_pairs rankbench_count_pairs(const double *truth, const double *score, Py_ssize_t n) {
        const rankbench_marks all = (rankbench_marks) {0} - 1, places = RANKBENCH_PLACES;
        rankbench_pair_lanes sums = {{0}, {0}, {0}, {0}};
        double first[2][RANKBENCH_WIDTH] = {{0}, {0}};  /* so that no row goes beyond a short list */
        Py_ssize_t i, j;
        for (i = 0; i < n && i < RANKBENCH_WIDTH; i++) {
            first[0][i] = truth[i];
            first[1][i] = score[i];
        }
        for (i = 1; i < n; i++) {
            rankbench_row x = truth[i] - (rankbench_row) {0}, y = score[i] - (rankbench_row) {0};
            j = i % RANKBENCH_WIDTH;
            if (j)
                rankbench_add_pairs(&sums, first[0], first[1], x, y, places < (int64_t) j - (rankbench_marks) {0});
            for (; j < i; j += RANKBENCH_WIDTH)
                rankbench_add_pairs(&sums, truth + j, score + j, x, y, all);
        }
        return (rankbench_pairs) {
            rankbench_counted(sums.same_truth), rankbench_counted(sums.same_score),
            rankbench_counted(sums.same_both), rankbench_counted(sums.wrong)
        };
    }

    /* How many of x are above a limit, and how many equal it. */
    static inline rankbench_sides rankbench_sides_of(const double *x, Py_ssize_t n, double limit) {
        const rankbench_row limits = limit - (rankbench_row) {0};
        rankbench_marks above = {0}, level = {0};
        Py_ssize_t i, whole = n - n % RANKBENCH_WIDTH;
        for (i = 0; i < whole; i += RANKBENCH_WIDTH) {
            rankbench_row v;
            memcpy(&v, x + i, sizeof v);
            above += v > limits;
            level += v == limits;
        }
        rankbench_sides found = {rankbench_counted(above), rankbench_counted(level)};
        for (; i < n; i++) {
            found.above += x[i] > limit;
            found.level += x[i] == limit;
        }
        return found;
    }

    /* The sum of the numbers among x that reach a limit, and how many these are. */
    static inline rankbench_reached rankbench_reaching(const double *x, Py_ssize_t n, double limit) {
        const rankbench_row limits = limit - (rankbench_row) {0};
        rankbench_row v, sums[2] = {{0}};
        rankbench_marks counts = {0}, reached;
        rankbench_reached found = {0.0, 0};
        Py_ssize_t i, whole = n - n % (2 * RANKBENCH_WIDTH);
        for (i = 0; i < whole; i += 2 * RANKBENCH_WIDTH)
            for (int half = 0; half < 2; half++) {
                memcpy(&v, x + i + half * RANKBENCH_WIDTH, sizeof v);
                reached = v >= limits;
                sums[half] += (rankbench_row) ((rankbench_marks) v & reached);
                counts += reached;
            }
        if (i + RANKBENCH_WIDTH <= n) {
            memcpy(&v, x + i, sizeof v);
            reached = v >= limits;
            sums[0] += (rankbench_row) ((rankbench_marks) v & reached);
            counts += reached;
            i += RANKBENCH_WIDTH;
        }
        sums[0] += sums[1];
        for (int lane = 0; lane < RANKBENCH_WIDTH; lane += 2)
            found.sum += sums[0][lane] + sums[0][lane + 1];
        found.count = rankbench_counted(counts);
        for (; i < n; i++) {
            found.sum += x[i] >= limit ? x[i] : 0.0;
            found.count += x[i] >= limit;
        }
        return found;
    }

    /* Which of n <= 64 numbers reach a limit: bit i is that of x[i]. */
    static inline uint64_t rankbench_which_reach(const double *x, Py_ssize_t n, double limit) {
        uint64_t bits = 0;
        Py_ssize_t i = 0;
    #ifdef RANKBENCH_MASK
        const rankbench_row limits = limit - (rankbench_row) {0};
        rankbench_row v;
        for (; i + RANKBENCH_WIDTH <= n; i += RANKBENCH_WIDTH) {
            memcpy(&v, x + i, sizeof v);
            bits |= (uint64_t) RANKBENCH_MASK((rankbench_row) (v >= limits)) << i;
        }
        if (i && i < n) {  /* some of the last ones once more */
            i = n - RANKBENCH_WIDTH;
            memcpy(&v, x + i, sizeof v);
            return bits | (uint64_t) RANKBENCH_MASK((rankbench_row) (v >= limits)) << i;
        }
    #endif
        for (; i < n; i++)
            bits |= (uint64_t) (x[i] >= limit) << i;
        return bits;
    }

    /* The highest of x below a bound, and how many equal it; -infinity and none where there is none. */
    static inline rankbench_level rankbench_level_below(const double *x, Py_ssize_t n, double bound) {
        rankbench_level found = {-INFINITY, 0};
        Py_ssize_t i = 0;
    #ifdef RANKBENCH_HIGHER
        const rankbench_row bounds = bound - (rankbench_row) {0}, none = -INFINITY - (rankbench_row) {0};
        rankbench_row v, higher, highest = none;
        rankbench_marks counts = {0};
        for (; i + RANKBENCH_WIDTH <= n; i += RANKBENCH_WIDTH) {
            memcpy(&v, x + i, sizeof v);
            const rankbench_marks below = v < bounds;
            v = (rankbench_row) (((rankbench_marks) v & below) | ((rankbench_marks) none & ~below));
            higher = RANKBENCH_HIGHER(highest, v);
            counts = (counts & (higher == highest)) - (higher == v);
            highest = higher;
        }
        for (int lane = 0; lane < RANKBENCH_WIDTH; lane++)
            found.value = highest[lane] > found.value ? highest[lane] : found.value;
        found.count = -rankbench_counted(counts & (highest == found.value - (rankbench_row) {0}));
    #endif
        for (; i < n; i++) {
            const double v = x[i] < bound ? x[i] : -INFINITY;
            found.count = (v > found.value ? 0 : found.count) + (v >= found.value);
            found.value = v > found.value ? v : found.value;
        }
        found.count = found.value > -INFINITY ? found.count : 0;
        return found;
    }

    #define RANKBENCH_RUN 16

    /* Pads n keys to RUN with -infinity, so that no loop over them ends after an unforeseen number. */
    static inline void rankbench_pad(double *keys, Py_ssize_t n) {
        const rankbench_row low = -INFINITY - (rankbench_row) {0}, numbers = RANKBENCH_PLACES;
        for (int k = 0; k < RANKBENCH_RUN; k += RANKBENCH_WIDTH) {
            rankbench_row row;
            memcpy(&row, keys + k, sizeof row);
            const rankbench_marks there = numbers < (double) (n - k) - (rankbench_row) {0};
            row = (rankbench_row) (((rankbench_marks) row & there) | ((rankbench_marks) low & ~there));
            memcpy(keys + k, &row, sizeof row);
        }
    }

    /* The place of each of n keys, padded to `room`, if they fall; that of the padding is n. Whether the keys all
       differ, none of them NaN or -infinity: else some have places that others have too. */
    static inline __attribute__((always_inline)) int rankbench_distinct_places_in(
        const double *keys, Py_ssize_t n, Py_ssize_t looked_at, const int room, int64_t *places
    ) {
        rankbench_marks higher[RANKBENCH_RUN / RANKBENCH_WIDTH] = {{0}}, sums = {0};
        for (Py_ssize_t j = 0; j < looked_at; j++) {
            const rankbench_row key = keys[j] - (rankbench_row) {0};
            for (int k = 0; k < room / RANKBENCH_WIDTH; k++) {
                rankbench_row row;
                memcpy(&row, keys + k * RANKBENCH_WIDTH, sizeof row);
                higher[k] -= key > row;
            }
        }
        for (int k = 0; k < room / RANKBENCH_WIDTH; k++)
            sums -= higher[k];
        memcpy(places, higher, room * sizeof *places);
        return 2 * rankbench_counted(sums) == n * (2 * room - n - 1);
    }

    static inline int rankbench_distinct_places_of(const double *keys, Py_ssize_t n, int64_t *places) {
        return rankbench_distinct_places_in(keys, n, n, RANKBENCH_RUN, places);
    }

    /* The same if equal keys stay as they stood and none is NaN. */
    static inline void rankbench_places_of(const double *keys, Py_ssize_t n, int64_t *places) {
        if (!rankbench_distinct_places_of(keys, n, places))
            for (Py_ssize_t j = 0; j < n; j++)
                for (Py_ssize_t i = j + 1; i < n; i++)
                    places[i] += keys[i] == keys[j];
    }

    /* Gives equal keys among n, none of them NaN, places of their own: that with the higher second key comes first, or
       that which stands first. */
    static __attribute__((noinline)) void rankbench_break_ties(
        const double *keys, const double *second, Py_ssize_t n, int64_t *places
    ) {
        for (Py_ssize_t j = 0; j < n; j++)
            for (Py_ssize_t i = j + 1; i < n; i++) {
                const int64_t tie = keys[i] == keys[j], in_order = tie & (second[j] >= second[i]);
                places[i] += in_order;
                places[j] += tie - in_order;
            }
        for (Py_ssize_t i = n; i < RANKBENCH_RUN; i++)
            places[i] = n;
    }

    /* Writes n > 0 pairs of a key, which is not NaN, and a second one: falling keys, and falling second ones of equal
       keys. They are those at the bits of `chosen`, or, of the `own` ones, the first n. There must be room for RUN. */
    static inline __attribute__((always_inline)) void rankbench_sort_in(
        const double *keys, const double *second, uint64_t chosen, const int own, Py_ssize_t n, double *pairs,
        const int room
    ) {
        const rankbench_row low = -INFINITY - (rankbench_row) {0}, numbers = RANKBENCH_PLACES;
        double taken[2][RANKBENCH_RUN];
        int64_t places[RANKBENCH_RUN];
        for (int k = 0; k < room; k += RANKBENCH_WIDTH) {
            const rankbench_marks there = numbers < (double) (n - k) - (rankbench_row) {0};
            rankbench_row row = {0}, rest = {0};
            for (int lane = 0; lane < RANKBENCH_WIDTH; lane++) {
                const int at = own ? 2 * (k + lane) : __builtin_ctzll(chosen);
                const uint64_t others = chosen & (chosen - 1);
                row[lane] = keys[at];
                rest[lane] = second[at];
                chosen = others ? others : chosen;
            }
            row = (rankbench_row) (((rankbench_marks) row & there) | ((rankbench_marks) low & ~there));
            rest = (rankbench_row) (((rankbench_marks) rest & there) | ((rankbench_marks) low & ~there));
            memcpy(taken[0] + k, &row, sizeof row);
            memcpy(taken[1] + k, &rest, sizeof rest);
        }
        if (!rankbench_distinct_places_in(taken[0], n, room, room, places))
            rankbench_break_ties(taken[0], taken[1], n, places);
        for (int i = 0; i < room; i++) {
            pairs[2 * places[i]] = taken[0][i];
            pairs[2 * places[i] + 1] = taken[1][i];
        }
    }

    #define RANKBENCH_SORT_FEW(...) do { \
        if (n > 12) \
            rankbench_sort_in(__VA_ARGS__, n, pairs, 16); \
        else if (n > 8) \
            rankbench_sort_in(__VA_ARGS__, n, pairs, 12); \
        else if (n > 4) \
            rankbench_sort_in(__VA_ARGS__, n, pairs, 8); \
        else \
            rankbench_sort_in(__VA_ARGS__, n, pairs, 4); \
    } while (0)

    static __attribute__((noinline)) void rankbench_sort_chosen(
        const double *keys, const double *second, uint64_t chosen, Py_ssize_t n, double *pairs
    ) {
        RANKBENCH_SORT_FEW(keys, second, chosen, 0);
    }

    static __attribute__((noinline)) void rankbench_sort_pairs(double *pairs, Py_ssize_t n) {
        RANKBENCH_SORT_FEW(pairs, pairs + 1, 0, 1);
    }
    """
    const Py_ssize_t WIDTH "RANKBENCH_WIDTH"  # doubles in a row of lanes
    ctypedef struct PairCounts "rankbench_pairs":
        # Numbers of unordered pairs: of one truth, of one score, of both, and those that truth and score order apart.
        int64_t same_truth
        int64_t same_score
        int64_t same_both
        int64_t wrong
    PairCounts count_pairs "rankbench_count_pairs" (
        const double *truth, const double *score, Py_ssize_t n
    ) noexcept nogil
    ctypedef struct Sides "rankbench_sides":
        int64_t above
        int64_t level
    Sides sides_of "rankbench_sides_of" (const double *x, Py_ssize_t n, double limit) noexcept nogil
    ctypedef struct Reached "rankbench_reached":
        double sum
        int64_t count
    Reached reaching "rankbench_reaching" (const double *x, Py_ssize_t n, double limit) noexcept nogil
    uint64_t which_reach "rankbench_which_reach" (const double *x, Py_ssize_t n, double limit) noexcept nogil
    int first_bit "__builtin_ctzll" (uint64_t bits) noexcept nogil
    int count_bits "__builtin_popcountll" (uint64_t bits) noexcept nogil
    ctypedef struct Level "rankbench_level":
        double value
        int64_t count
    Level level_below "rankbench_level_below" (const double *x, Py_ssize_t n, double bound) noexcept nogil
    void pad "rankbench_pad" (double *keys, Py_ssize_t n) noexcept nogil
    bint distinct_places_of "rankbench_distinct_places_of" (
        const double *keys, Py_ssize_t n, int64_t *places
    ) noexcept nogil
    void places_of "rankbench_places_of" (const double *keys, Py_ssize_t n, int64_t *places) noexcept nogil
    void sort_chosen "rankbench_sort_chosen" (
        const double *keys, const double *second, uint64_t chosen, Py_ssize_t n, double *pairs
    ) noexcept nogil
    void sort_pairs "rankbench_sort_pairs" (double *pairs, Py_ssize_t n) noexcept nogil
