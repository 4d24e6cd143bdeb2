"""Sums of weighted thresholds on features: weight[u, t] where feature[u, t] of an item is above cut[u, t]."""

from cython.parallel cimport prange
from libc.stdint cimport int32_t

from rankbench.kernels.shared.parallel cimport team


def score(
    const double[:, ::1] values,
    const int32_t[:, :] features,
    const double[:, :] cuts,
    const double[:, :] weights,
    const double[::1] offsets,
    const int32_t[::1] users,
    const int32_t[::1] items,
    double[::1] out,
):
    """The score of each pair of a user and an item, whose features are a row of `values`."""
    cdef Py_ssize_t pair
    with nogil:
        for pair in range(users.shape[0]):
            out[pair] = _score(values, features, cuts, weights, offsets, users[pair], items[pair])


def score_all(
    const double[:, ::1] values,
    const int32_t[:, :] features,
    const double[:, :] cuts,
    const double[:, :] weights,
    const double[::1] offsets,
    const int32_t[::1] users,
    double[:, ::1] out,
    int threads,
):
    """The scores of all items for each of these users."""
    threads = team(threads)
    cdef Py_ssize_t n = values.shape[0], cell
    for cell in prange(users.shape[0] * n, nogil=True, schedule="static", num_threads=threads):
        out[cell // n, cell % n] = _score(
            values, features, cuts, weights, offsets, users[cell // n], cell % n
        )


cdef inline double _score(
    const double[:, ::1] values, const int32_t[:, :] features, const double[:, :] cuts,
    const double[:, :] weights, const double[::1] offsets, Py_ssize_t user, Py_ssize_t item,
) noexcept nogil:
    cdef double sum_ = offsets[user]
    cdef Py_ssize_t t
    for t in range(features.shape[1]):
        sum_ += weights[user, t] if values[item, features[user, t]] > cuts[user, t] else 0.0
    return sum_
