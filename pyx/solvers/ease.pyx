"""Weights of EASE to each item from a few other items alone: a ridge regression for each item.

Items are independent, and each is one thread's, so that no bit depends on the number of threads.
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t

from rankbench.kernels.shared.arena cimport Arena, Scratch
from rankbench.kernels.shared.checks cimport agree
from rankbench.kernels.shared.lookup cimport entry_at
from rankbench.kernels.shared.normal_equations cimport Equations, clear, room_for, solve_equations
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport SparseRows, SparseView, longest_row


def restricted(*, SparseRows gram, SparseRows neighbours, double lam, double[::1] out, int threads) -> int:
    """Fill `out` with a weight for each entry of `neighbours`, whose row i has the items that may predict item i.

    The weights w of item i minimise |x_i - sum_j w_j x_j|^2 + lam |w|^2 over its neighbours j. `gram` has the products
    of all columns x; the columns of its rows ascend. Returns the first item whose system was not solved in finite
    numbers, or -1. An item with m neighbours costs m^3 / 3 flops, and m^2 / 2 searches in a row of `gram`.
    """
    threads = team(threads)
    cdef Py_ssize_t n = neighbours.view.n, item
    agree("rows of gram", gram.view.n, n)
    agree("out", out.shape[0], neighbours.view.indptr[n])
    cdef Py_ssize_t most = longest_row(neighbours.view.indptr, n)
    cdef int32_t[::1] failed = np.zeros(n, np.int32)
    cdef Arena arena = Arena(NULL, 0)
    cdef Equations system = room_for(&arena, most)
    cdef Scratch scratch = Scratch(arena.used, threads)
    if out.shape[0] == 0:
        return -1
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        system = room_for(&arena, most)
        for item in prange(n, schedule="dynamic"):
            failed[item] = _weights(&gram.view, &neighbours.view, item, lam, &system, &out[0])
    return int(np.flatnonzero(failed)[0]) if np.any(failed) else -1


cdef int _weights(
    const SparseView *gram, const SparseView *neighbours, Py_ssize_t item, double lam, Equations *system, double *out
) noexcept nogil:
    """The weights to one item, written where its neighbours stand; returns whether that failed."""
    cdef int64_t first = neighbours.indptr[item]
    cdef Py_ssize_t n = neighbours.indptr[item + 1] - first, a, b
    cdef const int32_t *own = neighbours.columns + first
    if n == 0:
        return 0
    clear(system, n)
    for a in range(n):
        system.right[a] = entry_at(gram, own[a], <int32_t> item)
        for b in range(a, n):
            system.matrix[a * system.stride + b] = entry_at(gram, own[a], own[b])
        system.matrix[a * system.stride + a] += lam
    if solve_equations(system):
        return 1
    for a in range(n):
        out[first + a] = system.right[a]
        if not isfinite(out[first + a]):
            return 1
    return 0
