"""The loss of lists under the permutation model of Plackett and Luce, and its derivatives by the scores.

An item is drawn before the others of its list that are left with a chance in proportion to exp(m), where m is its score
or the sigmoid of it. With T_t the sum of exp(m) over the places from t on, the loss of a list is sum_t ln T_t - m_t,
and its derivative by m_t is exp(m_t) sum_{r <= t} 1 / T_r - 1.
"""

# Roof of list_slopes, an entry: 24 bytes; 135 flops.

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport INFINITY
from libc.stdint cimport INT32_MAX, int32_t, int64_t

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints
from rankbench.kernels.shared.checks cimport above_ids, agree, within
from rankbench.kernels.shared.lanes cimport read_ahead
from rankbench.kernels.shared.losses cimport decays
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.powers cimport LN_2, binary_logs, sigmoids
from rankbench.kernels.shared.rows cimport count_rows, first_row, first_value, longest_row
from rankbench.kernels.shared.sorting cimport argsort, in_order

cdef extern from *:
    """
    static inline void rankbench_divide(const double *x, const double *y, Py_ssize_t n, double *out) {
        for (Py_ssize_t k = 0; k < n; k += RANKBENCH_WIDTH)
            rankbench_store_some(out + k, rankbench_some(x + k, n - k) / rankbench_some(y + k, n - k), n - k);
    }
    """
    # out = x / y, for n numbers
    void _divide "rankbench_divide" (const double *x, const double *y, Py_ssize_t n, double *out) noexcept nogil

cdef struct Ties:
    # Scratch memory of one thread, a number for each place of a group.
    int32_t *order
    int32_t *scratch

cdef enum:
    BLOCK = 16  # places that are worked on side by side

cdef struct Memory:
    # Scratch memory of one thread, a number for each place of a list.
    double *sigmoids  # of the scores, where these are m_t
    double *shares  # e^(m_t - the highest m from t on), and then e^m_t / T_t
    double *steps  # e^-|m_t - the highest m behind it|, then T_{t + 1} / T_t, and then sum_{r <= t} T_t / T_r
    double *sums  # T_t / e^(the highest m from t on)
    double *behind  # T_{t + 1} / e^(the highest m from t on)


def list_slopes(
    *, const int64_t[::1] indptr, const double[::1] scores, bint sigmoid, double[::1] losses, double[::1] slopes,
    int threads
) -> None:
    """Fill in the loss of each list, whose scores are in the order of its items, and the derivative by each score."""
    threads = team(threads)
    count_rows(indptr, scores.shape[0])
    agree("slopes", slopes.shape[0], scores.shape[0])
    agree("losses", losses.shape[0], indptr.shape[0] - 1)
    cdef Py_ssize_t number, first, n, longest = longest_row(&indptr[0], losses.shape[0])
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, longest)
    cdef Scratch scratch = Scratch(arena.used, threads)
    first, n = 0, 0  # private to each thread
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out(&arena, longest)
        for number in prange(losses.shape[0], schedule="dynamic", chunksize=64):
            first = indptr[number]
            n = indptr[number + 1] - first
            losses[number] = 0.0
            if n > 0:
                losses[number] = _of_list(&scores[first], n, sigmoid, memory, &slopes[first])


def order_ties(*, const int64_t[::1] groups, const double[::1] keys, int64_t[::1] out, int threads) -> None:
    """Fill in the places of each group, groups[g] to groups[g + 1], by ascending key; equal keys keep their order."""
    threads = team(threads)
    count_rows(groups, keys.shape[0])
    agree("places", out.shape[0], keys.shape[0])
    cdef Py_ssize_t group, longest = longest_row(&groups[0], groups.shape[0] - 1)
    within("the longest group", longest, 0, INT32_MAX)
    cdef Arena arena = Arena(NULL, 0)
    cdef Ties ties = _lay_out_ties(&arena, longest)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        ties = _lay_out_ties(&arena, longest)
        for group in prange(groups.shape[0] - 1, schedule="dynamic", chunksize=64):
            _order_group(groups[group], groups[group + 1] - groups[group], first_value(keys), ties, out)


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


cdef Ties _lay_out_ties(Arena *arena, Py_ssize_t longest) noexcept nogil:
    """Room for a group of so many places."""
    return Ties(ints(arena, longest), ints(arena, longest))


cdef inline void _order_group(
    int64_t first, Py_ssize_t n, const double *keys, Ties ties, int64_t[::1] out
) noexcept nogil:
    """The places of one group by ascending key."""
    cdef Py_ssize_t k
    in_order(ties.order, n)
    argsort(keys + first, ties.order, ties.scratch, n)
    for k in range(n):
        out[first + k] = first + ties.order[k]


cdef Memory _lay_out(Arena *arena, Py_ssize_t longest) noexcept nogil:
    """Room for a list of so many places."""
    return Memory(
        floats(arena, longest), floats(arena, longest), floats(arena, longest), floats(arena, longest),
        floats(arena, longest),
    )


cdef double _of_list(
    const double *scores, Py_ssize_t n, bint sigmoid, Memory memory, double *slopes
) noexcept nogil:
    """The loss of a list, and the slopes: e^m_t / T_t times sum_{r <= t} T_t / T_r, less 1.

    The slopes are written from the first on alone: other orders keep the processor waiting for their memory.
    """
    cdef const double *m = scores
    cdef double loss
    cdef Py_ssize_t place
    if sigmoid:
        sigmoids(scores, n, memory.sigmoids)
        m = memory.sigmoids
    else:
        read_ahead(scores, n)  # which are read from the end on
    loss = _sum_from_the_end(m, n, memory)
    loss = _sum_from_the_start(n, memory, loss)
    for place in range(n):
        slopes[place] = memory.shares[place] * memory.steps[place] - 1.0
        if sigmoid:
            slopes[place] *= m[place] * (1.0 - m[place])
    return loss


cdef inline double _sum_from_the_end(const double *m, Py_ssize_t n, Memory memory) noexcept nogil:
    """Fill in e^m_t / e^(the highest m from t on), and the sums; returns sum_t (the highest m from t on) - m_t.

    Powers are taken of differences from the highest m so far alone, so that nothing overflows. While the sums of a
    block wait for each other, the powers of the block before it and the differences of the one before that are found.
    """
    cdef double highest = -INFINITY, behind = 0.0, beyond = 0.0, peak = -INFINITY, own, exponent
    cdef Py_ssize_t last = (n - 1) // BLOCK * BLOCK, first = last, second, third, place
    while first > -3 * BLOCK:
        second, third = first + BLOCK, first + 2 * BLOCK
        if first >= 0:
            for place in range(min(n, second) - 1, first - 1, -1):
                own = m[place]
                memory.steps[place] = own - peak
                peak = max(peak, own)
        if 0 <= second <= last:
            decays(memory.steps + second, min(n, third) - second, memory.steps + second)
        for place in range(min(n, third + BLOCK) - 1, third - 1, -1):
            own, exponent = memory.steps[place], m[place]
            if exponent > highest:
                own, behind, highest = 1.0, behind * own, exponent
            memory.behind[place] = behind
            behind += own
            memory.shares[place] = own
            memory.sums[place] = behind
            beyond += highest - exponent
        first -= BLOCK
    return beyond


cdef inline double _sum_from_the_start(Py_ssize_t n, Memory memory, double loss) noexcept nogil:
    """Divide the shares by T_t, and put sum_{r <= t} T_t / T_r in the place of the steps; returns the loss, given what
    is beyond its logarithms.

    While the sums of a block wait for each other, the quotients and the logarithms of the next one are found.
    """
    cdef double ahead = 0.0, step
    cdef Py_ssize_t next_ = 0, count, place
    while next_ < n + BLOCK:
        if next_ < n:
            count = min(n - next_, <Py_ssize_t> BLOCK)
            _divide(memory.shares + next_, memory.sums + next_, count, memory.shares + next_)
            _divide(memory.behind + next_, memory.sums + next_, count, memory.steps + next_)
            binary_logs(memory.sums + next_, count, memory.sums + next_)
        for place in range(max(0, next_ - BLOCK), min(n, next_)):
            loss += LN_2 * memory.sums[place]
            step = memory.steps[place]
            ahead = 1.0 + ahead
            memory.steps[place] = ahead
            ahead *= step
        next_ += BLOCK
    return loss
