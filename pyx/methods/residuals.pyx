"""The sum of max(|r_j - r_i| - eps, 0) over all pairs of m residuals, rounded at its kink, without a list of pairs.

With t = |r_j - r_i| - eps a pair costs t^2 / (2 mu) for 0 <= t < mu and t - mu/2 beyond: it is `near` the
kink or `far` from it. For the residual at place k of the sorted ones, the pairs below it are far for the
places [0, far_below), near for [far_below, near_below); those above are near for [near_above, far_above) and
far from there on. All that is summed over pairs is had from these bounds and from sums of what lies before
a place, so that it costs O(m log m) for sorting and O(m) for the rest.
"""

import numpy as np

from libc.stdint cimport int32_t

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints
from rankbench.kernels.shared.checks cimport agree
from rankbench.kernels.shared.sorting cimport argsort, in_order

cdef struct Memory:
    # Scratch memory, a place of the sorted residuals each.
    double *ascending  # the residuals in order, less the one in the middle
    double *sums  # of those before the place
    double *squares  # the sum of their squares
    int32_t *sorting

cdef struct Loss:
    double rounded
    double exact
    double slack

cdef struct Window:
    # Neighbouring places start .. end - 1, and the sum of their rows.
    int32_t start
    int32_t end
    double *sum

cdef struct Matrix:
    const double *x
    Py_ssize_t columns
    const int32_t *order  # of the rows


def measure(
    *,
    const double[::1] r,
    double eps,
    double mu,
    int32_t[::1] order,
    int32_t[:, ::1] bounds,
    double[::1] gradient,
) -> tuple[float, float, float]:
    """The rounded loss, the loss, and the slack of the pairs' multipliers; r[order] ascends then.

    A pair's multiplier is b = t / mu where it is near and 1 where it is far, with the sign of r_j - r_i,
    and gradient_j = sum b_ij over all i. The slack, sum t (1 - b) over the near pairs, is how far the loss lies
    above gradient . r - eps sum |b|. `bounds` gets the four bounds of each place.
    """
    cdef Py_ssize_t m = r.shape[0]
    agree("places", order.shape[0], m)
    agree("rows of bounds", bounds.shape[0], m)
    agree("columns of bounds", bounds.shape[1], 4)
    agree("numbers of the gradient", gradient.shape[0], m)
    cdef Loss loss
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, m)
    cdef Scratch scratch = Scratch(arena.used, 1)
    if m == 0:
        return 0.0, 0.0, 0.0
    arena = scratch.share(0)
    memory = _lay_out(&arena, m)
    with nogil:
        in_order(&order[0], m)
        argsort(&r[0], &order[0], memory.sorting, m)
        _sum_up(&r[0], &order[0], m, memory)
        _bound(memory.ascending, m, eps, mu, &bounds[0, 0])
        loss = _add_pairs(memory, m, eps, mu, &bounds[0, 0], &order[0], &gradient[0])
    return loss.rounded, loss.exact, loss.slack


def near_laplacian_times(
    *, const int32_t[::1] order, const int32_t[:, ::1] bounds, const double[:, ::1] x
) -> Floats:
    """L x, L = the Laplacian of the graph whose edges are the near pairs; O(m) for each column.

    Invariant: `below` and `above` hold the sums of the rows of x in the two windows of near places, which
    only ever move up.
    """
    cdef Py_ssize_t m = x.shape[0], n = x.shape[1], place, column, row
    agree("places", order.shape[0], m)
    agree("rows of bounds", bounds.shape[0], m)
    agree("columns of bounds", bounds.shape[1], 4)
    cdef Matrix matrix
    cdef Window below, above
    result = np.empty((m, n))
    cdef double[:, ::1] out = result
    cdef double[:, ::1] sums = np.zeros((2, n))
    cdef double degree
    if m == 0 or n == 0:
        return result
    matrix = Matrix(&x[0, 0], n, &order[0])
    below, above = Window(0, 0, &sums[0, 0]), Window(0, 0, &sums[1, 0])
    with nogil:
        for place in range(m):
            _shift(&below, &matrix, bounds[place, 0], bounds[place, 1])
            _shift(&above, &matrix, bounds[place, 2], bounds[place, 3])
            degree = <double> (below.end - below.start + above.end - above.start)
            row = order[place]
            for column in range(n):
                out[row, column] = degree * x[row, column] - sums[0, column] - sums[1, column]
    return result


cdef Memory _lay_out(Arena *arena, Py_ssize_t m) noexcept nogil:
    """Room for m residuals."""
    return Memory(floats(arena, m), floats(arena, m + 1), floats(arena, m + 1), ints(arena, m))


cdef void _shift(Window *window, const Matrix *matrix, int32_t new_start, int32_t new_end) noexcept nogil:
    """Let the window hold the places new_start .. new_end - 1; empty, it is zero to the last bit."""
    cdef Py_ssize_t column, n = matrix.columns
    cdef double *total = window.sum
    cdef const double *row
    if new_start >= window.end:
        for column in range(n):
            total[column] = 0.0
        window.start = window.end = new_start
    while window.end < new_end:
        row = matrix.x + matrix.order[window.end] * n
        for column in range(n):
            total[column] += row[column]
        window.end += 1
    while window.start < new_start:
        row = matrix.x + matrix.order[window.start] * n
        for column in range(n):
            total[column] -= row[column]
        window.start += 1


cdef void _sum_up(const double *r, const int32_t *order, Py_ssize_t m, Memory memory) noexcept nogil:
    """The residuals in order, less the one in the middle, and the sums of them and their squares before each place."""
    cdef Py_ssize_t k
    cdef double middle = r[order[m // 2]]
    memory.sums[0] = memory.squares[0] = 0.0
    for k in range(m):
        memory.ascending[k] = r[order[k]] - middle
        memory.sums[k + 1] = memory.sums[k] + memory.ascending[k]
        memory.squares[k + 1] = memory.squares[k] + memory.ascending[k] * memory.ascending[k]


cdef void _bound(const double *r, Py_ssize_t m, double eps, double mu, int32_t *bounds) noexcept nogil:
    """The four bounds of each place; whether a pair is near or far is asked in the same words from both its ends."""
    cdef Py_ssize_t k
    cdef int32_t far_below = 0, near_below = 0, near_above = 0, far_above = 0
    for k in range(m):
        while far_below < k and r[k] - r[far_below] - eps >= mu:
            far_below += 1
        while near_below < k and r[k] - r[near_below] - eps >= 0.0:
            near_below += 1
        near_above = max(near_above, <int32_t> k + 1)
        while near_above < m and r[near_above] - r[k] - eps < 0.0:
            near_above += 1
        far_above = max(far_above, near_above)
        while far_above < m and r[far_above] - r[k] - eps < mu:
            far_above += 1
        bounds[4 * k] = far_below
        bounds[4 * k + 1] = near_below
        bounds[4 * k + 2] = near_above
        bounds[4 * k + 3] = far_above


cdef Loss _add_pairs(
    Memory memory, Py_ssize_t m, double eps, double mu, const int32_t *bounds, const int32_t *order, double *gradient
) noexcept nogil:
    """Losses and multipliers of all pairs, each at its upper end, and the gradient at both."""
    cdef double far, near, square, top, above
    cdef Loss loss = Loss(0.0, 0.0, 0.0)
    cdef const double *sums = memory.sums
    cdef const double *squares = memory.squares
    cdef Py_ssize_t k
    cdef const int32_t *bound
    for k in range(m):
        bound = bounds + 4 * k
        top = memory.ascending[k] - eps
        far = bound[0] * top - sums[bound[0]]
        near = (bound[1] - bound[0]) * top - (sums[bound[1]] - sums[bound[0]])
        square = (
            (bound[1] - bound[0]) * top * top - 2.0 * top * (sums[bound[1]] - sums[bound[0]])
            + (squares[bound[1]] - squares[bound[0]])
        )
        above = (sums[bound[3]] - sums[bound[2]]) - (bound[3] - bound[2]) * (memory.ascending[k] + eps)
        loss.rounded += far - 0.5 * mu * bound[0] + max(0.0, square) / (2.0 * mu)
        loss.exact += far + near
        loss.slack += max(0.0, near - max(0.0, square) / mu)
        gradient[order[k]] = (bound[0] - (m - bound[3])) + (near - above) / mu
    return loss
