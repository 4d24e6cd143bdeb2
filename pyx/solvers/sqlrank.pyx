"""The loss of lists under the permutation model of Plackett and Luce, and its derivatives by the scores.

An item is drawn before the others of its list that are left with a chance in proportion to exp(m), where m is its score
or the sigmoid of it. With T_t the sum of exp(m) over the places from t on, the loss of a list is sum_t ln T_t - m_t,
and its derivative by m_t is exp(m_t) sum_{r <= t} 1 / T_r - 1.
"""

# Roof of list_slopes, an entry: 24 bytes; 20 flops; 6 calls.

import numpy as np

from cython.parallel cimport prange
from libc.math cimport INFINITY, exp, fabs, log1p
from libc.stdint cimport INT32_MAX, int32_t, int64_t

from rankbench.kernels.shared.checks cimport above_ids, agree, within
from rankbench.kernels.shared.parallel cimport team
from rankbench.kernels.shared.rows cimport count_rows, first_row


def list_slopes(
    *, const int64_t[::1] indptr, const double[::1] scores, bint sigmoid, double[::1] losses, double[::1] slopes,
    int threads
) -> None:
    """Fill in the loss of each list, whose scores are in the order of its items, and the derivative by each score."""
    threads = team(threads)
    count_rows(indptr, scores.shape[0])
    agree("slopes", slopes.shape[0], scores.shape[0])
    agree("losses", losses.shape[0], indptr.shape[0] - 1)
    cdef Py_ssize_t number, first, n
    for number in prange(losses.shape[0], nogil=True, schedule="dynamic", chunksize=64, num_threads=threads):
        first = indptr[number]
        n = indptr[number + 1] - first
        losses[number] = 0.0
        if n > 0:
            losses[number] = _of_list(&scores[first], n, sigmoid, &slopes[first])


def means_to_the_end(
    *, const int32_t[::1] places, int64_t length, const double[::1] weights, const double[::1] shares,
    const double[:, ::1] vectors, double[:, ::1] out
) -> None:
    """Fill in, for each place of each list, share x (the sum of weight x vector over it and the places after it).

    The lists are of one length, one after the other; `places` are rows of `vectors`.
    """
    above_ids("rows of vectors", vectors.shape[0], places)
    within("length", length, 1, INT32_MAX)
    agree("weights", weights.shape[0], places.shape[0])
    agree("shares", shares.shape[0], places.shape[0])
    agree("rows of out", out.shape[0], places.shape[0])
    agree("columns of out", out.shape[1], vectors.shape[1])
    cdef Py_ssize_t entry, k, rank = vectors.shape[1]
    cdef const double *vector
    cdef double[::1] total = np.zeros(rank)
    with nogil:
        for entry in range(places.shape[0] - 1, -1, -1):
            if (entry + 1) % length == 0:
                total[:] = 0.0
            vector = first_row(vectors) + places[entry] * rank
            for k in range(rank):
                total[k] += weights[entry] * vector[k]
                out[entry, k] = shares[entry] * total[k]


cdef double _of_list(const double *scores, Py_ssize_t n, bint sigmoid, double *slopes) noexcept nogil:
    """The loss of a list. Only differences from l_t = ln T_t are taken, which never rises, so that nothing overflows.

    `slopes` holds l until it holds the derivatives. Their sum over r is kept as a_t = sum_{r <= t} exp(l_t - l_r).
    """
    cdef double loss = 0.0, ahead = 0.0, later = -INFINITY, m, own
    cdef Py_ssize_t place
    for place in range(n - 1, -1, -1):
        m = _exponent(scores[place], sigmoid)
        later = max(m, later) + log1p(exp(-fabs(m - later)))
        loss += later - m
        slopes[place] = later
    for place in range(n):
        m, own = _exponent(scores[place], sigmoid), slopes[place]
        ahead = 1.0 + ahead * exp(own - later)
        later = own
        slopes[place] = (exp(m - own) * ahead - 1.0) * (m * (1.0 - m) if sigmoid else 1.0)
    return loss


cdef inline double _exponent(double score, bint sigmoid) noexcept nogil:
    """The score, or its sigmoid."""
    return 1.0 / (1.0 + exp(-score)) if sigmoid else score
