"""Scores that are sums of weighted decision stumps, each a threshold on one feature of an item."""

from cython.parallel cimport prange
from libc.stdint cimport int32_t

from rankbench.kernels.shared.checks cimport agree
from rankbench.kernels.shared.parallel cimport team


cdef class Stumps:
    """Decision stumps on the features of items, with a row of `values` for each item.

    Row r scores an item by offsets[r] plus the weights[r, t] of all t for which features[r, t] of the item is above
    cuts[r, t]. Several users may share a row.
    """

    cdef const double[:, ::1] values
    cdef const int32_t[:, :] features
    cdef const double[:, :] cuts
    cdef const double[:, :] weights
    cdef const double[::1] offsets

    def __init__(
        self,
        *,
        const double[:, ::1] values,
        const int32_t[:, :] features,
        const double[:, :] cuts,
        const double[:, :] weights,
        const double[::1] offsets,
    ):
        """Take the arrays, without a copy."""
        if not features.shape[0] == cuts.shape[0] == weights.shape[0] == offsets.shape[0]:
            raise ValueError("features, cuts, weights and offsets must have as many rows")
        if not features.shape[1] == cuts.shape[1] == weights.shape[1]:
            raise ValueError("each stump must have a feature, a cut and a weight")
        self.values, self.features, self.cuts, self.weights, self.offsets = values, features, cuts, weights, offsets


def score(*, Stumps stumps, const int32_t[::1] rows, const int32_t[::1] items, double[::1] out):
    """Fill out[p] with the score of items[p] by row rows[p] of the stumps, in O(stumps of a row)."""
    agree("items", items.shape[0], rows.shape[0])
    agree("scores", out.shape[0], rows.shape[0])
    cdef const double[:, ::1] values = stumps.values
    cdef const int32_t[:, :] features = stumps.features
    cdef const double[:, :] cuts = stumps.cuts, weights = stumps.weights
    cdef const double[::1] offsets = stumps.offsets
    cdef Py_ssize_t pair
    with nogil:
        for pair in range(rows.shape[0]):
            out[pair] = _score(values, features, cuts, weights, offsets, rows[pair], items[pair])


def score_all(*, Stumps stumps, const int32_t[::1] rows, double[:, ::1] out, int threads):
    """Fill out[a, j] with the score of item j by row rows[a] of the stumps."""
    threads = team(threads)
    cdef const double[:, ::1] values = stumps.values
    cdef const int32_t[:, :] features = stumps.features
    cdef const double[:, :] cuts = stumps.cuts, weights = stumps.weights
    cdef const double[::1] offsets = stumps.offsets
    cdef Py_ssize_t n = values.shape[0], cell
    agree("rows of out", out.shape[0], rows.shape[0])
    agree("columns of out", out.shape[1], n)
    for cell in prange(rows.shape[0] * n, nogil=True, schedule="static", num_threads=threads):
        out[cell // n, cell % n] = _score(values, features, cuts, weights, offsets, rows[cell // n], cell % n)


cdef inline double _score(
    const double[:, ::1] values, const int32_t[:, :] features, const double[:, :] cuts,
    const double[:, :] weights, const double[::1] offsets, Py_ssize_t row, Py_ssize_t item,
) noexcept nogil:
    """The offset plus the weights of the stumps whose cuts the item is above, in their order.

    It takes loose arrays, which a loop over pairs keeps in registers.
    """
    cdef double sum_ = offsets[row]
    cdef Py_ssize_t t
    for t in range(features.shape[1]):
        sum_ += weights[row, t] if values[item, features[row, t]] > cuts[row, t] else 0.0
    return sum_
