"""Loss, gradient and curvature of one score per item, item by item.

Comparisons are gathered beforehand into a symmetric CSR matrix: row j lists each opponent k once, with
how often j won and lost against it. Then each item sums its own row, threads share nothing, and the
cost is the number of distinct pairs, however often they were compared.
"""

import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankbench.kernels.shared.losses cimport Loss, Parabola, parabola_of
from rankbench.kernels.shared.parallel cimport team


def tournament(const int32_t[::1] better, const int32_t[::1] worse, Py_ssize_t n_items):
    """indptr, opponents, wins and losses: each item's opponents in ascending order, each one once.

    Both sides of every comparison are laid out opponent by opponent; reading them so, each item meets
    its opponents in order. A first reading counts the different ones, a second fills the rows. Cost and
    scratch memory are linear: 8 bytes per comparison.
    """
    cdef Py_ssize_t n = better.shape[0], item
    cdef int64_t[::1] starts = np.zeros(n_items + 1, np.int64), indptr = np.zeros(n_items + 1, np.int64)
    cdef int32_t *sides = <int32_t *> malloc((2 * n + n_items + 1) * sizeof(int32_t))
    cdef int32_t *last = sides + 2 * n
    cdef int32_t[::1] opponents
    cdef double[::1] wins, losses
    if sides == NULL:
        raise MemoryError
    with nogil:
        _lay_out(better, worse, starts, sides)
        _count_opponents(starts, sides, last, indptr)
    try:
        opponents = np.empty(indptr[n_items], np.int32)
        wins, losses = np.zeros(indptr[n_items]), np.zeros(indptr[n_items])
        with nogil:
            _fill_rows(starts, sides, last, indptr, opponents, wins, losses)
    finally:
        free(sides)
    for item in range(n_items, 0, -1):  # filling moved each row's place on to its end
        indptr[item] = indptr[item - 1]
    indptr[0] = 0
    return np.asarray(indptr), np.asarray(opponents), np.asarray(wins), np.asarray(losses)


def sweep(
    Loss loss,
    const int64_t[::1] indptr,
    const int32_t[::1] opponents,
    const double[::1] wins,
    const double[::1] losses,
    const double[::1] scores,
    double[::1] loss_out,
    double[::1] gradient_out,
    double[::1] diagonal_out,
    double[::1] curvature_out,
    int threads,
):
    """One pass over the pairs: per item its share of the loss, the gradient and its sum of curvatures; these per pair.

    The diagonal of the losses' Hessian is that sum of curvatures.
    """
    threads = team(threads)
    cdef Py_ssize_t item
    for item in prange(scores.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        _sweep_item(
            loss, item, &indptr[0], &opponents[0], &wins[0], &losses[0], &scores[0],
            &loss_out[0], &gradient_out[0], &diagonal_out[0], &curvature_out[0],
        )


def curvature_times(
    const int64_t[::1] indptr,
    const int32_t[::1] opponents,
    const double[::1] curvature,
    const double[::1] direction,
    double[::1] out,
    int threads,
):
    """out_j = sum_k c_jk (p_j - p_k): the data's Hessian times a direction."""
    threads = team(threads)
    cdef Py_ssize_t item
    for item in prange(out.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        out[item] = _curvature_times(item, &indptr[0], &opponents[0], &curvature[0], &direction[0])


cdef void _lay_out(
    const int32_t[::1] better, const int32_t[::1] worse, int64_t[::1] starts, int32_t *sides
) noexcept nogil:
    """sides[starts[k]:starts[k + 1]] are those who met k: j where j won, ~j where j lost."""
    cdef Py_ssize_t row, item, n_items = starts.shape[0] - 1
    for row in range(better.shape[0]):
        starts[better[row]] += 1
        starts[worse[row]] += 1
    for item in range(1, n_items + 1):  # starts[k] becomes the end of k's part, and moves down as it is filled
        starts[item] += starts[item - 1]
    for row in range(better.shape[0] - 1, -1, -1):
        starts[worse[row]] -= 1
        sides[starts[worse[row]]] = better[row]
        starts[better[row]] -= 1
        sides[starts[better[row]]] = ~worse[row]


cdef inline int32_t _met(int32_t side) noexcept nogil:
    return side if side >= 0 else ~side


cdef void _count_opponents(
    const int64_t[::1] starts, const int32_t *sides, int32_t *last, int64_t[::1] indptr
) noexcept nogil:
    """indptr of the rows; last[j] is the opponent that j met last, while opponents pass in ascending order."""
    cdef Py_ssize_t item, place, n_items = starts.shape[0] - 1
    cdef int32_t met
    for item in range(n_items):
        last[item] = -1
    for item in range(n_items):
        for place in range(starts[item], starts[item + 1]):
            met = _met(sides[place])
            if last[met] != item:
                last[met] = <int32_t> item
                indptr[met + 1] += 1
    for item in range(n_items):
        indptr[item + 1] += indptr[item]
        last[item] = -1


cdef void _fill_rows(
    const int64_t[::1] starts, const int32_t *sides, int32_t *last, int64_t[::1] indptr,
    int32_t[::1] opponents, double[::1] wins, double[::1] losses,
) noexcept nogil:
    """The rows; indptr[j] moves from the start of j's row to its end."""
    cdef Py_ssize_t item, place, n_items = starts.shape[0] - 1
    cdef int32_t met
    for item in range(n_items):
        for place in range(starts[item], starts[item + 1]):
            met = _met(sides[place])
            if last[met] != item:
                last[met] = <int32_t> item
                opponents[indptr[met]] = <int32_t> item
                indptr[met] += 1
            if sides[place] >= 0:
                wins[indptr[met] - 1] += 1.0
            else:
                losses[indptr[met] - 1] += 1.0


cdef void _sweep_item(
    Loss loss, Py_ssize_t item, const int64_t *indptr, const int32_t *opponents,
    const double *wins, const double *losses, const double *scores,
    double *loss_out, double *gradient_out, double *diagonal_out, double *curvature_out,
) noexcept nogil:
    """Each pair's loss is counted once, by the item with the lower number; the gradient on both sides."""
    cdef double total = 0.0, gradient = 0.0, diagonal = 0.0, margin
    cdef bint counts
    cdef Parabola pair
    cdef Py_ssize_t edge
    for edge in range(indptr[item], indptr[item + 1]):
        margin = scores[item] - scores[opponents[edge]]
        counts = opponents[edge] > item
        pair = parabola_of(loss, margin, wins[edge], losses[edge], counts)
        if counts:
            total += pair.value
        gradient += pair.slope
        diagonal += pair.curvature
        curvature_out[edge] = pair.curvature
    loss_out[item] = total
    gradient_out[item] = gradient
    diagonal_out[item] = diagonal


cdef double _curvature_times(
    Py_ssize_t item, const int64_t *indptr, const int32_t *opponents,
    const double *curvature, const double *direction,
) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t edge
    for edge in range(indptr[item], indptr[item + 1]):
        total += curvature[edge] * (direction[item] - direction[opponents[edge]])
    return total
