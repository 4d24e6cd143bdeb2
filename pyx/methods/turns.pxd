# Users who take turns in a descent. The updates of one user wait for each other; those of four users that share no item
# are computed side by side, with the bits that they have one after another.

from libc.stdint cimport int32_t

from rankbench.kernels.shared.powers cimport power

cdef extern from *:
    """
    #define RANKBENCH_SEATS 4

    /* An update of each of four users. */
    typedef struct {
        char *rows[3][RANKBENCH_SEATS];
        double shrinks[3][RANKBENCH_SEATS], kept[3][RANKBENCH_SEATS];
        double etas[RANKBENCH_SEATS], lengths[RANKBENCH_SEATS];
        int32_t ring[3 * RANKBENCH_SEATS];
    } rankbench_turn;

    /* Whether no item is in two updates. In the ring of four better and four worse items, an item is opposite the other
       one of its own update, and all that are at most three places apart are of different updates. */
    static inline int rankbench_apart(const int32_t *ring) {
        typedef int32_t ids __attribute__((vector_size(16)));
        typedef long long words __attribute__((vector_size(16)));
        ids same = {0}, here, there;
        for (int half = 0; half < 8; half += 4) {
            memcpy(&here, ring + half, sizeof here);
            for (int k = 1; k < 4; k++) {
                memcpy(&there, ring + half + k, sizeof there);
                same |= here == there;
            }
        }
        return !(((words) same)[0] | ((words) same)[1]);
    }

    /* u . (v - w) of each, with the bits of `dot_difference`. */
    static inline void rankbench_margins(const rankbench_turn *turn, Py_ssize_t n, double *out) {
        const double *const *u = (const double *const *) turn->rows[0];
        const double *const *v = (const double *const *) turn->rows[1];
        const double *const *w = (const double *const *) turn->rows[2];
        rankbench_four a = {0}, b = {0}, c = {0}, d = {0};
        for (Py_ssize_t k = 0; k < n; k += 4) {
            rankbench_add_difference(&a, u[0] + k, v[0] + k, w[0] + k);
            rankbench_add_difference(&b, u[1] + k, v[1] + k, w[1] + k);
            rankbench_add_difference(&c, u[2] + k, v[2] + k, w[2] + k);
            rankbench_add_difference(&d, u[3] + k, v[3] + k, w[3] + k);
        }
        rankbench_sums_of_four(a, b, c, d, out);
    }

    /* The step sizes eta = step / (1 + decay t) after t updates, and of each row the share max(0, 1 - eta shrinkage)
       that is kept. */
    static inline void rankbench_size(rankbench_turn *turn, double step, double decay, double updates) {
        static const double after[RANKBENCH_SEATS] = {0.0, 1.0, 2.0, 3.0};
        rankbench_lanes eta, kept;
        for (Py_ssize_t k = 0; k < RANKBENCH_SEATS; k += RANKBENCH_WIDTH) {
            RANKBENCH_LOAD(eta, after + k);
            eta = step / (1.0 + decay * (updates + eta));
            RANKBENCH_STORE(turn->etas + k, eta);
            for (int row = 0; row < 3; row++) {
                RANKBENCH_LOAD(kept, turn->shrinks[row] + k);
                kept = 1.0 - eta * kept;
                kept = RANKBENCH_PICK(kept > 0.0, kept, rankbench_all(0.0));
                RANKBENCH_STORE(turn->kept[row] + k, kept);
            }
        }
    }
    """
    enum:
        SEATS "RANKBENCH_SEATS"  # users who take turns
    ctypedef struct Turn "rankbench_turn":
        char *rows[3][SEATS]  # of the user, the better item and the worse item
        double shrinks[3][SEATS]  # of these rows
        double kept[3][SEATS]  # the shares that remain of them
        double etas[SEATS]  # the step sizes
        double lengths[SEATS]  # the step sizes times the slopes
        int32_t ring[3 * SEATS]  # the better items, the worse ones, and the better ones again
    bint apart "rankbench_apart" (const int32_t *ring) noexcept nogil
    void margins_of_four "rankbench_margins" (const Turn *turn, Py_ssize_t n, double *out) noexcept nogil
    void size_four "rankbench_size" (Turn *turn, double step, double decay, double updates) noexcept nogil
