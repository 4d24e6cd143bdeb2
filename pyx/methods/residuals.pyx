"""The loss sum max(|r_j - r_i| - eps, 0) over all pairs of m residuals, rounded at its kink, without a list of pairs.

With t = |r_j - r_i| - eps a pair costs t^2 / (2 mu) for 0 <= t < mu and t - mu/2 beyond: it is `near` the
kink or `far` from it. For the residual at place k of the sorted ones, the pairs below it are far for the
places [0, far_below), near for [far_below, near_below); those above are near for [near_above, far_above) and
far from there on. All that is summed over pairs is had from these bounds and from sums of what lies before
a place, so that it costs O(m log m) for sorting and O(m) for the rest.
"""

import numpy as np

from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc

from rankbench.kernels.shared.sorting cimport argsort


def measure(
    const double[::1] r, double eps, double mu, int32_t[::1] order, int32_t[:, ::1] bounds, double[::1] gradient
):
    """The rounded loss, the loss, and the slack of the pairs' multipliers; r[order] ascends then.

    A pair's multiplier is b = t / mu where it is near and 1 where it is far, with the sign of r_j - r_i,
    and gradient_j = sum b_ij over all i. The slack, sum t (1 - b) over the near pairs, is how far the loss lies
    above gradient . r - eps sum |b|. `bounds` gets the four bounds of each place.
    """
    cdef Py_ssize_t m = r.shape[0], k
    cdef double *memory = <double *> malloc((2 * (m + 1) + m) * sizeof(double))
    cdef double *sums = memory
    cdef double *squares = memory + m + 1
    cdef double *ascending = squares + m + 1
    cdef double found[3]
    if memory == NULL:
        raise MemoryError
    with nogil:
        for k in range(m):
            order[k] = <int32_t> k
        argsort(&r[0] if m else NULL, &order[0] if m else NULL, <int32_t *> memory, m)
        _sum_up(&r[0] if m else NULL, &order[0] if m else NULL, m, ascending, sums, squares)
        _bound(ascending, m, eps, mu, &bounds[0, 0] if m else NULL)
        _add_pairs(
            ascending, sums, squares, m, eps, mu, &bounds[0, 0] if m else NULL, &order[0] if m else NULL,
            &gradient[0] if m else NULL, found,
        )
    free(memory)
    return found[0], found[1], found[2]


def near_laplacian_times(const int32_t[::1] order, const int32_t[:, ::1] bounds, const double[:, ::1] x):
    """L x, L = the Laplacian of the graph whose edges are the near pairs; O(m) for each column.

    Invariant: `below` and `above` hold the sums of the rows of x in the two windows of near places, which
    only ever move up.
    """
    cdef Py_ssize_t m = x.shape[0], n = x.shape[1], place, column, row
    cdef int32_t low[4]
    result = np.empty((m, n))
    cdef double[:, ::1] out = result
    cdef double[::1] below = np.zeros(n), above = np.zeros(n)
    cdef double degree
    if m == 0 or n == 0:
        return result
    low[0] = low[1] = low[2] = low[3] = 0
    with nogil:
        for place in range(m):
            _shift(&below[0], &x[0, 0], n, &order[0], low, low + 1, bounds[place, 0], bounds[place, 1])
            _shift(&above[0], &x[0, 0], n, &order[0], low + 2, low + 3, bounds[place, 2], bounds[place, 3])
            degree = <double> (low[1] - low[0] + low[3] - low[2])
            row = order[place]
            for column in range(n):
                out[row, column] = degree * x[row, column] - below[column] - above[column]
    return result


cdef void _shift(
    double *window, const double *x, Py_ssize_t n, const int32_t *order,
    int32_t *start, int32_t *end, int32_t new_start, int32_t new_end,
) noexcept nogil:
    """Let the window hold the places new_start .. new_end - 1; empty, it is zero to the last bit."""
    cdef Py_ssize_t column
    cdef const double *row
    if new_start >= end[0]:
        for column in range(n):
            window[column] = 0.0
        start[0] = end[0] = new_start
    while end[0] < new_end:
        row = x + order[end[0]] * n
        for column in range(n):
            window[column] += row[column]
        end[0] += 1
    while start[0] < new_start:
        row = x + order[start[0]] * n
        for column in range(n):
            window[column] -= row[column]
        start[0] += 1


cdef void _sum_up(
    const double *r, const int32_t *order, Py_ssize_t m, double *ascending, double *sums, double *squares
) noexcept nogil:
    """The residuals in order, less the one in the middle, and the sums of them and their squares before each place."""
    cdef Py_ssize_t k
    cdef double middle = r[order[m // 2]] if m > 0 else 0.0
    sums[0] = squares[0] = 0.0
    for k in range(m):
        ascending[k] = r[order[k]] - middle
        sums[k + 1] = sums[k] + ascending[k]
        squares[k + 1] = squares[k] + ascending[k] * ascending[k]


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


cdef void _add_pairs(
    const double *r, const double *sums, const double *squares, Py_ssize_t m, double eps, double mu,
    const int32_t *bounds, const int32_t *order, double *gradient, double *found,
) noexcept nogil:
    """Losses and multipliers of all pairs, each at its upper end, and the gradient at both."""
    cdef double rounded = 0.0, loss = 0.0, slack = 0.0, far, near, square, top, above
    cdef Py_ssize_t k
    cdef const int32_t *bound
    for k in range(m):
        bound = bounds + 4 * k
        top = r[k] - eps
        far = bound[0] * top - sums[bound[0]]
        near = (bound[1] - bound[0]) * top - (sums[bound[1]] - sums[bound[0]])
        square = (
            (bound[1] - bound[0]) * top * top - 2.0 * top * (sums[bound[1]] - sums[bound[0]])
            + (squares[bound[1]] - squares[bound[0]])
        )
        above = (sums[bound[3]] - sums[bound[2]]) - (bound[3] - bound[2]) * (r[k] + eps)
        rounded += far - 0.5 * mu * bound[0] + max(0.0, square) / (2.0 * mu)
        loss += far + near
        slack += max(0.0, near - max(0.0, square) / mu)
        gradient[order[k]] = (bound[0] - (m - bound[3])) + (near - above) / mu
    found[0], found[1], found[2] = rounded, loss, slack
