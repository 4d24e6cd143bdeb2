"""Projections onto orders with a margin, many users at once: PAV after a sort inside blocks of equals.

A user's rows stand in `order`, by ascending rating; `depth` counts the blocks of equal rating below a
row. The nearest z with z_i + eps (depth_k - depth_i) <= z_k for every row i in a lower block than k is
found by sorting x inside each block and projecting x - eps depth onto ascending sequences.
"""

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.sorting cimport argsort

cdef struct Scratch:
    # A thread's own memory, as long as the longest user.
    double *sums
    double *masses
    int32_t *ends  # of the pools
    int32_t *spare
    char *heads  # per row in that order: what begins there

cdef enum:
    _BYTES = 2 * sizeof(double) + 2 * sizeof(int32_t) + 8  # per row, of which 7 keep the doubles aligned

cdef enum Head:
    _NOTHING, _POOL, _SINGLE


def project(
    const int64_t[::1] indptr,
    int32_t[::1] order,
    const int32_t[::1] depth,
    const double[::1] x,
    const double[::1] weights,
    double eps,
    double[::1] out,
    int threads,
):
    """Every user's projection into `out`, which may be `x` itself; no weights are all ones.

    `order` is left by x inside blocks. Without weights no bit of the result depends on what it was.
    O(n log n) per user at most, O(n) where no two ratings are equal.
    """
    threads = team(threads)
    cdef Py_ssize_t n_users = indptr.shape[0] - 1, user, row, longest = 1
    cdef bint weighted = weights.shape[0] > 0
    for user in range(n_users):
        longest = max(longest, indptr[user + 1] - indptr[user])
    cdef char *memory = <char *> malloc(threads * longest * _BYTES)
    cdef Scratch *scratches = <Scratch *> malloc(threads * sizeof(Scratch))
    cdef Scratch *scratch = scratches
    try:
        if memory == NULL or scratches == NULL:
            raise MemoryError
        with nogil, parallel(num_threads=threads):
            scratch = &scratches[thread_id()]
            _lay_out(scratch, memory + thread_id() * longest * _BYTES, longest)
            for user in prange(n_users, schedule="dynamic", chunksize=64):
                row = indptr[user]
                if indptr[user + 1] > row:
                    _project(
                        &order[row], &depth[row], &x[row], &weights[row] if weighted else NULL,
                        eps, &out[row], indptr[user + 1] - row, scratch,
                    )
    finally:
        free(memory)
        free(scratches)


cdef void _lay_out(Scratch *scratch, char *memory, Py_ssize_t n) noexcept nogil:
    scratch.sums = <double *> memory
    scratch.masses = scratch.sums + n
    scratch.ends = <int32_t *> (scratch.masses + n)
    scratch.spare = scratch.ends + n
    scratch.heads = <char *> (scratch.spare + n)


cdef void _project(
    int32_t *order, const int32_t *depth, const double *x, const double *weights,
    double eps, double *out, Py_ssize_t n, Scratch *scratch,
) noexcept nogil:
    """One user: arrange, pool, write back."""
    cdef Py_ssize_t pools
    _arrange(order, depth, x, n, scratch.spare)
    if weights == NULL:
        pools = _pool(order, depth, x, eps, n, scratch)
    else:
        pools = _pool_weighted(order, depth, x, weights, eps, n, scratch)
    _write(order, depth, x, eps, n, pools, out, scratch)


cdef void _arrange(int32_t *order, const int32_t *depth, const double *x, Py_ssize_t n, int32_t *spare) noexcept nogil:
    """Put the rows in order of x where the depth is equal; quick where they are nearly so from the last time."""
    cdef Py_ssize_t place, first = 0
    cdef int falls = 0
    if depth[n - 1] == n - 1:
        return
    for place in range(1, n):
        falls |= (x[order[place]] < x[order[place - 1]]) & (depth[place] == depth[place - 1])
    if not falls:
        return
    for place in range(1, n + 1):
        if place == n or depth[place] != depth[first]:
            if place - first > 1:
                argsort(x, order + first, spare, place - first)
            first = place


cdef Py_ssize_t _pool(
    const int32_t *places, const int32_t *depth, const double *x, double eps, Py_ssize_t n, Scratch *scratch
) noexcept nogil:
    """Pool adjacent violators; how many pools are left.

    Invariant: the pools 0..top and the last one, held in `total` and `mass`, cover the rows seen so far,
    and their means ascend. Means are compared by products, so that a row costs no division. Equal means
    stay apart: what is in order already is not touched. O(n): every row is pooled at most once.
    """
    cdef Py_ssize_t place, top = 0
    cdef double total, mass, value
    cdef double *sums = scratch.sums
    cdef double *masses = scratch.masses
    total, mass = x[places[0]] - eps * depth[0], 1.0
    for place in range(1, n):
        value = x[places[place]] - eps * depth[place]
        if total <= value * mass:
            sums[top], masses[top], scratch.ends[top] = total, mass, <int32_t> place
            top += 1
            total, mass = value, 1.0
        else:
            total += value
            mass += 1.0
            while top > 0 and sums[top - 1] * mass > total * masses[top - 1]:
                top -= 1
                total += sums[top]
                mass += masses[top]
    sums[top], masses[top], scratch.ends[top] = total, mass, <int32_t> n
    return top + 1


cdef Py_ssize_t _pool_weighted(
    const int32_t *places, const int32_t *depth, const double *x, const double *weights,
    double eps, Py_ssize_t n, Scratch *scratch,
) noexcept nogil:
    """The same with a weight per row."""
    cdef Py_ssize_t place, top = 0
    cdef double total, mass
    cdef double *sums = scratch.sums
    cdef double *masses = scratch.masses
    for place in range(n):
        mass = weights[places[place]]
        total = mass * (x[places[place]] - eps * depth[place])
        while top > 0 and sums[top - 1] * mass > total * masses[top - 1]:
            top -= 1
            total += sums[top]
            mass += masses[top]
        sums[top], masses[top], scratch.ends[top] = total, mass, <int32_t> (place + 1)
        top += 1
    return top


cdef void _write(
    const int32_t *places, const int32_t *depth, const double *x, double eps,
    Py_ssize_t n, Py_ssize_t pools, double *out, Scratch *scratch,
) noexcept nogil:
    """Every row's pool mean with its margin put back; a row that is a pool by itself keeps its x to the bit.

    A pool's mean goes to its first row and from there along the rows, without a branch on where the
    next pool begins: no processor foretells that.
    """
    cdef Py_ssize_t pool, row, place, start = 0
    cdef double mean = 0.0, found
    cdef bint single
    if n < 1:
        return  # which the compiler cannot know
    memset(scratch.heads, _NOTHING, n)
    for pool in range(pools):
        single = scratch.ends[pool] - start == 1
        place = places[start]
        mean = scratch.sums[pool] / scratch.masses[pool]
        out[place] = x[place] if single else mean
        scratch.heads[start] = _SINGLE if single else _POOL
        start = scratch.ends[pool]
    for row in range(n):
        found = out[places[row]]
        mean = found if scratch.heads[row] else mean
        out[places[row]] = found if scratch.heads[row] == _SINGLE else mean + eps * depth[row]
