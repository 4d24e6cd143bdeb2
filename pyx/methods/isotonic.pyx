"""Projections onto vectors that respect an order of ratings with a margin, for all users side by side.

z respects the order with margin eps if z_i + eps <= z_k for all rows i and k of a user of which k is rated higher.
Rows of equal rating form a block, and `depth` counts the blocks below a row's. Then z respects the order if
z_i + eps (depth_k - depth_i) <= z_k for every row i in a lower block than k. The nearest such z to x is found by
sorting x inside each block and projecting x - eps depth onto ascending sequences, by pooling adjacent violators (PAV).
"""

# Roof of project along strict orders, a row: 42 + 61 * pools bytes; 6 + 4 * pools flops.
# Roof of project along blocks, a row: 42 + 61 * pools bytes; 8 + 4 * pools flops.

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints, taken
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport count_rows, first_value, longest_row
from rankbench.kernels.shared.sorting cimport argsort

cdef struct User:
    # One user's problem.
    Py_ssize_t n
    int32_t *order
    const int32_t *depth
    const double *x
    const double *weights  # NULL: all ones
    double eps

cdef struct Memory:
    # Scratch memory of one thread.
    double *sums  # of the pools: weighted sums of x - eps depth
    double *masses
    int32_t *ends
    int32_t *spare  # room to sort
    char *heads  # per place in the order: what begins there

cdef enum Head:
    _NOTHING, _POOL, _SINGLE


cdef class Levels:
    """Each user's rows by ascending rating: order[p] is a row of the user, counted from 0, and depth[p] its depth.

    Those of user u stand at the places indptr[u] .. indptr[u + 1] - 1. Inside a block of equal rating any order will
    do; a projection leaves the rows of a block by ascending x, and has little to sort if x has changed little since
    the last one.
    """

    cdef const int64_t[::1] indptr
    cdef int32_t[::1] order
    cdef const int32_t[::1] depth
    cdef Py_ssize_t n_users

    def __init__(self, *, const int64_t[::1] indptr, int32_t[::1] order, const int32_t[::1] depth):
        """Take the arrays, without a copy."""
        if order.shape[0] != depth.shape[0]:
            raise ValueError(f"there are {order.shape[0]} rows in order but {depth.shape[0]} depths")
        self.n_users = count_rows(indptr, order.shape[0])
        self.indptr, self.order, self.depth = indptr, order, depth


def project(
    *, Levels levels, const double[::1] x, const double[::1] weights, double eps, double[::1] out, int threads
):
    """Write every user's projection to `out`, which may be `x` itself; no weights are all ones.

    Without weights no bit of the result depends on the order inside blocks that a former call has left. O(n log n)
    per user at most, O(n) where no two ratings are equal.
    """
    threads = team(threads)
    cdef Py_ssize_t n = levels.order.shape[0]
    if x.shape[0] != n or out.shape[0] != n or weights.shape[0] not in (0, n):
        raise ValueError(f"x, out and weights must have {n} rows")
    cdef const double *masses = first_value(weights)
    cdef Py_ssize_t user, row, longest = longest_row(&levels.indptr[0], levels.n_users)
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, longest)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out(&arena, longest)
        for user in prange(levels.n_users, schedule="dynamic", chunksize=64):
            row = levels.indptr[user]
            if levels.indptr[user + 1] > row:
                _project(_of_user(levels, user, &x[row], masses, eps), memory, &out[row])


cdef Memory _lay_out(Arena *arena, Py_ssize_t n) noexcept nogil:
    """Room for a user with n rows."""
    return Memory(
        floats(arena, n), floats(arena, n), ints(arena, n), ints(arena, n), <char *> taken(arena, n, sizeof(char))
    )


cdef inline User _of_user(
    Levels levels, Py_ssize_t user, const double *x, const double *masses, double eps
) noexcept nogil:
    """The problem of one user, with the user's own x and the weights of all users."""
    cdef Py_ssize_t first = levels.indptr[user]
    cdef User found = User(
        levels.indptr[user + 1] - first, &levels.order[first], &levels.depth[first], x, NULL, eps
    )
    if masses != NULL:
        found.weights = masses + first
    return found


cdef void _project(User user, Memory memory, double *out) noexcept nogil:
    """Project one user's rows: sort inside blocks, pool, write back."""
    cdef Py_ssize_t pools
    _arrange(user, memory.spare)
    if user.weights == NULL:
        pools = _pool(user, memory)
    else:
        pools = _pool_weighted(user, memory)
    _write(user, pools, memory, out)


cdef void _arrange(User user, int32_t *spare) noexcept nogil:
    """Put the rows in order of x where the depth is equal; quick where they are nearly so from the last time."""
    cdef Py_ssize_t place, first = 0
    cdef int falls = 0
    if user.depth[user.n - 1] == user.n - 1:
        return
    for place in range(1, user.n):
        falls |= (
            (user.x[user.order[place]] < user.x[user.order[place - 1]])
            & (user.depth[place] == user.depth[place - 1])
        )
    if not falls:
        return
    for place in range(1, user.n + 1):
        if place == user.n or user.depth[place] != user.depth[first]:
            if place - first > 1:
                argsort(user.x, user.order + first, spare, place - first)
            first = place


cdef Py_ssize_t _pool(User user, Memory memory) noexcept nogil:
    """Pool adjacent violators; how many pools are left.

    Invariant: the pools 0..top and the last one, held in `total` and `mass`, cover the rows seen so far,
    and their means ascend. Means are compared by products, so that a row costs no division. Equal means
    stay apart: what is in order already is not touched. O(n): every row is pooled at most once.
    """
    cdef Py_ssize_t place, top = 0
    cdef double total, mass, value
    cdef double *sums = memory.sums
    cdef double *masses = memory.masses
    total, mass = user.x[user.order[0]] - user.eps * user.depth[0], 1.0
    for place in range(1, user.n):
        value = user.x[user.order[place]] - user.eps * user.depth[place]
        if total <= value * mass:
            sums[top], masses[top], memory.ends[top] = total, mass, <int32_t> place
            top += 1
            total, mass = value, 1.0
        else:
            total += value
            mass += 1.0
            while top > 0 and sums[top - 1] * mass > total * masses[top - 1]:
                top -= 1
                total += sums[top]
                mass += masses[top]
    sums[top], masses[top], memory.ends[top] = total, mass, <int32_t> user.n
    return top + 1


cdef Py_ssize_t _pool_weighted(User user, Memory memory) noexcept nogil:
    """Pool adjacent violators with a weight for each row; how many pools are left.

    Invariant: the pools 0 .. top - 1 cover the rows before `place`, and their means ascend.
    """
    cdef Py_ssize_t place, top = 0
    cdef double total, mass
    cdef double *sums = memory.sums
    cdef double *masses = memory.masses
    for place in range(user.n):
        mass = user.weights[user.order[place]]
        total = mass * (user.x[user.order[place]] - user.eps * user.depth[place])
        while top > 0 and sums[top - 1] * mass > total * masses[top - 1]:
            top -= 1
            total += sums[top]
            mass += masses[top]
        sums[top], masses[top], memory.ends[top] = total, mass, <int32_t> (place + 1)
        top += 1
    return top


cdef void _write(User user, Py_ssize_t pools, Memory memory, double *out) noexcept nogil:
    """Write every row's pool mean with its margin put back; a row that is a pool by itself keeps its x to the bit.

    A pool's mean goes to its first row, and from there along the rows. That loop has no branch on where the next
    pool begins, which a processor could not predict.
    """
    cdef Py_ssize_t pool, row, place, start = 0
    cdef double mean = 0.0, found
    cdef bint single
    if user.n < 1:
        return  # which the compiler cannot know
    memset(memory.heads, _NOTHING, user.n)
    for pool in range(pools):
        single = memory.ends[pool] - start == 1
        place = user.order[start]
        mean = memory.sums[pool] / memory.masses[pool]
        out[place] = user.x[place] if single else mean
        memory.heads[start] = _SINGLE if single else _POOL
        start = memory.ends[pool]
    for row in range(user.n):
        found = out[user.order[row]]
        mean = found if memory.heads[row] else mean
        out[user.order[row]] = found if memory.heads[row] == _SINGLE else mean + user.eps * user.depth[row]
