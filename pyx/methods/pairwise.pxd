# Pairwise gradient descent on factors in double or single precision: its step size, and the step itself, whatever the
# loss.

from rankbench.kernels.shared.lanes cimport dot_difference, dot_difference_of_singles, fetch, fetch_both

cdef extern from *:
    """
    #include <string.h>
    typedef struct { double user, better, worse; } rankbench_keep;

    /* Whole registers are loaded before any is stored, so that compilers need not ask whether the rows overlap. */
    #define RANKBENCH_LANES(number) typedef number lanes __attribute__((vector_size(8 * RANKBENCH_WIDTH)));
    #define RANKBENCH_MOVE(name, number) \\
        static inline void name(number *u, number *v, number *w, rankbench_keep keep, double slope, Py_ssize_t n) { \\
            RANKBENCH_LANES(number) \\
            const number keep_u = (number) keep.user, keep_v = (number) keep.better, keep_w = (number) keep.worse; \\
            const number g = (number) slope; \\
            lanes old_u, old_v, old_w, new_u, new_v, new_w; \\
            Py_ssize_t k; \\
            for (k = 0; k < n; k += (Py_ssize_t) (sizeof(lanes) / sizeof(number))) { \\
                memcpy(&old_u, u + k, sizeof(lanes)); \\
                memcpy(&old_v, v + k, sizeof(lanes)); \\
                memcpy(&old_w, w + k, sizeof(lanes)); \\
                new_u = keep_u * old_u - g * (old_v - old_w); \\
                new_v = keep_v * old_v - g * old_u; \\
                new_w = keep_w * old_w + g * old_u; \\
                memcpy(u + k, &new_u, sizeof(lanes)); \\
                memcpy(v + k, &new_v, sizeof(lanes)); \\
                memcpy(w + k, &new_w, sizeof(lanes)); \\
            } \\
        }
    RANKBENCH_MOVE(rankbench_move_doubles, double)
    RANKBENCH_MOVE(rankbench_move_floats, float)
    """
    ctypedef struct Keep "rankbench_keep":
        # The shares that remain of the old user, the better item and the worse item.
        double user
        double better
        double worse
    void move_doubles "rankbench_move_doubles" (
        double *u, double *v, double *w, Keep keep, double slope, Py_ssize_t n
    ) noexcept nogil
    void _move_floats "rankbench_move_floats" (
        float *u, float *v, float *w, Keep keep, double slope, Py_ssize_t n
    ) noexcept nogil

cdef struct Rates:
    const double *user_shrink
    const double *item_shrink
    double step
    double decay

cdef struct FactorsView:
    # Row r of the users begins at users + r * row; its numbers are floats if `single`, else doubles.
    char *users
    char *items
    Py_ssize_t row  # bytes
    Py_ssize_t rank  # padded to whole lanes
    bint single
    Py_ssize_t held  # the place in the users' rows that stays 1, against the items' biases; -1 if there is none
    Rates rates


cdef class DescentFactors:
    cdef readonly object users
    cdef readonly object items
    cdef const double[::1] user_shrink
    cdef const double[::1] item_shrink
    cdef FactorsView view


cdef inline double step_size(const FactorsView *factors, double updates) noexcept nogil:
    """step / (1 + decay t) after t updates."""
    return factors.rates.step / (1.0 + factors.rates.decay * updates)


cdef inline double margin_of(
    const FactorsView *factors, Py_ssize_t user, Py_ssize_t better, Py_ssize_t worse
) noexcept nogil:
    """u . (v - w), summed in the precision of the factors."""
    cdef const char *u = factors.users + user * factors.row
    cdef const char *v = factors.items + better * factors.row
    cdef const char *w = factors.items + worse * factors.row
    if factors.single:
        return dot_difference_of_singles(<const float *> u, <const float *> v, <const float *> w, factors.rank)
    return dot_difference(<const double *> u, <const double *> v, <const double *> w, factors.rank)


cdef inline void fetch_user(const FactorsView *factors, Py_ssize_t user) noexcept nogil:
    """Prefetch the row of a user that will soon be updated."""
    fetch(<double *> (factors.users + user * factors.row), factors.row // sizeof(double))


cdef inline void fetch_items(const FactorsView *factors, Py_ssize_t better, Py_ssize_t worse) noexcept nogil:
    """Prefetch the rows of two items that will soon be updated."""
    fetch_both(
        <double *> (factors.items + better * factors.row), <double *> (factors.items + worse * factors.row),
        factors.row // sizeof(double),
    )


cdef inline void descend_on(
    const FactorsView *factors, Py_ssize_t user, Py_ssize_t better, Py_ssize_t worse, double eta, double g
) noexcept nogil:
    """One update: u = keep_u u - g (v - w);  v = keep_v v - g u;  w = keep_w w + g u, all from the old values.

    g is the step size eta times the slope of the loss at u . (v - w). A row keeps 1 - eta shrinkage of itself, and
    nothing where that is negative: otherwise a row of few comparisons would change its sign and grow with every update.
    The user's number that is held is 1 before and after.
    """
    cdef char *u = factors.users + user * factors.row
    cdef char *v = factors.items + better * factors.row
    cdef char *w = factors.items + worse * factors.row
    cdef Keep keep = Keep(
        max(0.0, 1.0 - eta * factors.rates.user_shrink[user]),
        max(0.0, 1.0 - eta * factors.rates.item_shrink[better]),
        max(0.0, 1.0 - eta * factors.rates.item_shrink[worse]),
    )
    if factors.single:
        _move_floats(<float *> u, <float *> v, <float *> w, keep, g, factors.rank)
        if factors.held >= 0:
            (<float *> u)[factors.held] = 1.0
    else:
        move_doubles(<double *> u, <double *> v, <double *> w, keep, g, factors.rank)
        if factors.held >= 0:
            (<double *> u)[factors.held] = 1.0
