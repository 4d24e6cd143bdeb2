"""Passes of coordinate descent on sparse, nonnegative weights between items, with a duality gap for each item.

The weights to one item are a problem of their own (a nonnegative elastic net), so items are independent: each is solved
by one thread in a fixed order, and no bit depends on the number of threads.
"""

from cython.parallel cimport prange

from rankbench.kernels.shared.checks cimport agree
from rankbench.kernels.shared.parallel cimport team

cdef struct Column:
    # The problem of one item.
    Py_ssize_t item
    Py_ssize_t n
    const double *gram  # all of X^T X
    double *weights  # w, by the item that the weight comes from
    double *slopes  # X^T (x_j - X w)
    double l1
    double lam


def sweep(
    *, const double[:, ::1] gram, double[:, ::1] weights, double[:, ::1] slopes, double l1, double lam, int threads
):
    """Minimise by each weight once; `weights` and `slopes` have a row for each scored item.

    For item j, w minimises 1/2 |x_j - X w|^2 + lam/2 |w|^2 + l1 sum w over w >= 0 with w_j = 0. Slopes are the rows of
    X^T (x_j - X w), and follow.
    """
    threads = team(threads)
    cdef Py_ssize_t n = _size(gram, weights, slopes), item
    for item in prange(n, nogil=True, schedule="dynamic", num_threads=threads):
        _pass(Column(item, n, &gram[0, 0], &weights[item, 0], &slopes[item, 0], l1, lam))


def measure(
    *,
    const double[:, ::1] gram,
    double[:, ::1] weights,
    double[:, ::1] slopes,
    double l1,
    double lam,
    double[:, ::1] out,
    int threads,
):
    """Fill each row of `out` with an item's objective, and how far it may be above its minimum, the duality gap."""
    threads = team(threads)
    cdef Py_ssize_t n = _size(gram, weights, slopes), item
    agree("rows of out", out.shape[0], n)
    agree("columns of out", out.shape[1], 2)
    for item in prange(n, nogil=True, schedule="static", num_threads=threads):
        _measure(
            Column(item, n, &gram[0, 0], &weights[item, 0], &slopes[item, 0], l1, lam), &out[item, 0], &out[item, 1]
        )


cdef Py_ssize_t _size(const double[:, ::1] gram, double[:, ::1] weights, double[:, ::1] slopes) except -1:
    """The number of items, which all tables have in both directions."""
    cdef Py_ssize_t n = gram.shape[0]
    agree("columns of gram", gram.shape[1], n)
    agree("rows of weights", weights.shape[0], n)
    agree("columns of weights", weights.shape[1], n)
    agree("rows of slopes", slopes.shape[0], n)
    agree("columns of slopes", slopes.shape[1], n)
    return n


cdef void _pass(Column column) noexcept nogil:
    """Minimise by each weight to one item once, in the order of the catalogue."""
    cdef Py_ssize_t other, place
    cdef double before, after, change
    cdef const double *row
    for other in range(column.n):
        before = column.weights[other]
        if before == 0.0 and column.slopes[other] <= column.l1:
            continue
        row = column.gram + other * column.n
        # w_i = (x_i . (x_j - X w) + |x_i|^2 w_i - l1)_+ / (|x_i|^2 + lam)
        after = (column.slopes[other] + row[other] * before - column.l1) / (row[other] + column.lam)
        if after < 0.0 or other == column.item:
            after = 0.0
        change = after - before
        if change == 0.0:
            continue
        column.weights[other] = after
        for place in range(column.n):
            column.slopes[place] -= change * row[place]


cdef void _measure(Column column, double *objective, double *gap) noexcept nogil:
    """The objective, and how far it may be above its minimum.

    With the rows sqrt(lam) I below X the penalty of squares is part of the error r. The dual value of s r is
    s x_j . r - s^2/2 |r|^2, for a scale s with s (x_i . r - lam w_i) <= l1 for all i; of such s from 0 on the best one
    is taken.
    """
    cdef double fitted = 0.0, explained = 0.0, squares = 0.0, total = 0.0, highest = 0.0, slope, scale = 1.0
    cdef const double *target = column.gram + column.item * column.n
    cdef Py_ssize_t other
    for other in range(column.n):
        if other == column.item:
            continue
        slope = column.slopes[other] - column.lam * column.weights[other]
        highest = max(highest, slope)
        if column.weights[other] != 0.0:
            fitted += column.weights[other] * target[other]
            explained += column.weights[other] * column.slopes[other]
            squares += column.weights[other] * column.weights[other]
            total += column.weights[other]
    cdef double along = target[column.item] - fitted  # x_j . (x_j - X w)
    cdef double error = along - explained + column.lam * squares  # |r|^2
    objective[0] = 0.5 * error + column.l1 * total
    if error > 0.0:
        scale = max(0.0, along / error)
    if highest > 0.0:
        scale = min(scale, column.l1 / highest)
    gap[0] = max(0.0, objective[0] - scale * (along - 0.5 * scale * error))
