"""Projections onto vectors that respect an order of ratings with a margin, for all users side by side.

z respects the order with margin eps if z_i + eps <= z_k for all rows i and k of a user of which k is rated higher.
Rows of equal rating form a block, and `depth` counts the blocks below a row's. Then z respects the order if
z_i + eps (depth_k - depth_i) <= z_k for every row i in a lower block than k. With v = x - eps depth and w = z - eps
depth this says that no w of a lower block is above one of a higher block. The nearest such w to v is found in two ways.

Few large blocks: between every two neighbouring blocks there is a border t, the borders ascend, and w is v moved into
the interval between the borders of its block. So the borders minimise a sum of convex functions of one border each,

    f(t) = sum over the block below of max(0, v - t)^2 + sum over the block above of max(0, t - v)^2,

by pooling adjacent violators (PAV): borders that would descend become one border of their common function. A border
alone is found by Newton's method: t is the mean of the v that it moves, which is repeated until these are the same.

Otherwise: x is sorted inside each block, and v is projected onto ascending sequences, by PAV as well.
"""

# Roof of project along strict orders, a row: 42 + 61 * pools bytes; 6 + 4 * pools flops.
# Roof of project along blocks, a row: 28 bytes; 15 flops.
#   A flop lifts it, two put it between its borders, and its block's two borders look at it twice each: a comparison, an
#   addition and a count.

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t
from libc.math cimport INFINITY
from libc.string cimport memset

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints, taken
from rankbench.kernels.shared.lanes cimport Beyond, sum_above, sum_below, total as sum_of
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport count_rows, first_value, longest_row
from rankbench.kernels.shared.sorting cimport argsort

cdef struct LargeBlocks:
    # One user's blocks if these are large; n = 0: they are not.
    Py_ssize_t n
    const int32_t *ends
    double *borders  # above each block; of the last projection
    double *alone  # the same borders, of each two neighbouring blocks by themselves

cdef struct User:
    # One user's problem.
    Py_ssize_t n
    int32_t *order
    const int32_t *depth
    LargeBlocks blocks
    const double *x
    const double *weights  # NULL: all ones
    double eps

cdef struct Memory:
    # Scratch memory of one thread.
    double *sums  # of the pools: weighted sums of x - eps depth
    double *masses
    int32_t *ends  # of the pools
    int32_t *spare  # room to sort
    char *heads  # per place in the order: what begins there
    double *lifted  # per place in the order: v = x - eps depth
    Common *commons

cdef struct Common:
    # Neighbouring borders that have one value: those above the blocks first .. last.
    Py_ssize_t first
    Py_ssize_t last
    double value

cdef enum Head:
    _NOTHING, _POOL, _SINGLE


cdef class Levels:
    """Each user's rows by ascending rating: order[p] is a row of the user, counted from 0, and depth[p] its depth.

    Those of user u stand at the places indptr[u] .. indptr[u + 1] - 1. Inside a block of equal rating any order will
    do. Of users who are to be projected by borders, the blocks end at the places block_ends[b], counted from the user's
    first, for b from block_indptr[u] on; the other users have no b. The last projection is a warm start for the next
    one, which has little to do if x has changed little: it leaves the borders above the blocks in borders[0], those of
    each two blocks by themselves in borders[1] (both NaN at first), and the rows of other users by ascending x.
    """

    cdef const int64_t[::1] indptr
    cdef int32_t[::1] order
    cdef const int32_t[::1] depth
    cdef const int64_t[::1] block_indptr
    cdef const int32_t[::1] block_ends
    cdef double[:, ::1] borders
    cdef Py_ssize_t n_users

    def __init__(
        self,
        *,
        const int64_t[::1] indptr,
        int32_t[::1] order,
        const int32_t[::1] depth,
        const int64_t[::1] block_indptr,
        const int32_t[::1] block_ends,
        double[:, ::1] borders,
    ):
        """Take the arrays, without a copy."""
        if order.shape[0] != depth.shape[0]:
            raise ValueError(f"there are {order.shape[0]} rows in order but {depth.shape[0]} depths")
        self.n_users = count_rows(indptr, order.shape[0])
        if count_rows(block_indptr, block_ends.shape[0]) != self.n_users:
            raise ValueError(f"blocks are of {block_indptr.shape[0] - 1} users but the rows of {self.n_users}")
        if borders.shape[0] != 2 or borders.shape[1] != block_ends.shape[0]:
            raise ValueError(f"borders must have 2 rows of {block_ends.shape[0]} blocks")
        self.indptr, self.order, self.depth = indptr, order, depth
        self.block_indptr, self.block_ends, self.borders = block_indptr, block_ends, borders


def project(
    *,
    Levels levels,
    const double[::1] x,
    const double[::1] weights,
    double eps,
    double[::1] out,
    int threads,
    bint less_x=False,
):
    """Write every user's projection to `out`, which may be `x` itself; no weights are all ones.

    With `less_x`, write the projection minus x; then `out` must be another array than `x`.

    Without weights no bit of the result depends on the warm start that a former call has left. O(n log n) per user
    at most, O(n) where no two ratings are equal.
    """
    threads = team(threads)
    cdef Py_ssize_t n = levels.order.shape[0]
    if x.shape[0] != n or out.shape[0] != n or weights.shape[0] not in (0, n):
        raise ValueError(f"x, out and weights must have {n} rows")
    cdef const double *masses = first_value(weights)
    cdef Py_ssize_t user, row, place, longest = longest_row(&levels.indptr[0], levels.n_users)
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
                if less_x:
                    for place in range(row, levels.indptr[user + 1]):
                        out[place] -= x[place]


cdef Memory _lay_out(Arena *arena, Py_ssize_t n) noexcept nogil:
    """Room for a user with n rows."""
    return Memory(
        floats(arena, n), floats(arena, n), ints(arena, n), ints(arena, n), <char *> taken(arena, n, sizeof(char)),
        floats(arena, n), <Common *> taken(arena, n, sizeof(Common)),
    )


cdef inline User _of_user(
    Levels levels, Py_ssize_t user, const double *x, const double *masses, double eps
) noexcept nogil:
    """The problem of one user, with the user's own x and the weights of all users."""
    cdef Py_ssize_t first = levels.indptr[user]
    cdef User found = User(
        levels.indptr[user + 1] - first, &levels.order[first], &levels.depth[first],
        LargeBlocks(0, NULL, NULL, NULL), x, NULL, eps,
    )
    cdef Py_ssize_t block = levels.block_indptr[user], n_blocks = levels.block_indptr[user + 1] - block
    if n_blocks:
        found.blocks = LargeBlocks(
            n_blocks, &levels.block_ends[block], &levels.borders[0, block], &levels.borders[1, block]
        )
    if masses != NULL:
        found.weights = masses + first
    return found


cdef void _project(User user, Memory memory, double *out) noexcept nogil:
    """Project one user's rows: find the borders of large blocks; else sort inside blocks, and pool."""
    cdef Py_ssize_t pools
    if user.weights == NULL and user.blocks.n:
        _lift(user, memory.lifted)
        _find_borders(user, memory)
        _write_between(user, out)
        return
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


# ---- few large blocks ----


cdef void _lift(User user, double *lifted) noexcept nogil:
    """Compute v = x - eps depth at every place."""
    cdef Py_ssize_t block, place, start = 0
    cdef double margin
    for block in range(user.blocks.n):
        margin = user.eps * block
        for place in range(start, user.blocks.ends[block]):
            lifted[place] = user.x[user.order[place]] - margin
        start = user.blocks.ends[block]


cdef void _find_borders(User user, Memory memory) noexcept nogil:
    """Find the border above each block but the last, by pooling borders that would descend."""
    cdef Py_ssize_t border, top = 0, common
    cdef Common *commons = memory.commons
    for border in range(user.blocks.n - 1):
        user.blocks.alone[border] = _border(user, memory.lifted, border, border, user.blocks.alone[border])
        commons[top] = Common(border, border, user.blocks.alone[border])
        top += 1
        while top > 1 and commons[top - 2].value > commons[top - 1].value:
            top -= 1
            commons[top - 1].last = commons[top].last
            commons[top - 1].value = _border(
                user, memory.lifted, commons[top - 1].first, commons[top].last, user.blocks.borders[border]
            )
    for common in range(top):
        for border in range(commons[common].first, commons[common].last + 1):
            user.blocks.borders[border] = commons[common].value


cdef double _border(
    User user, const double *v, Py_ssize_t first, Py_ssize_t last, double start
) noexcept nogil:
    """The common value of the borders above the blocks first .. last, sought from `start` on.

    It is the mean of what it moves: all v of the blocks between, those of the first block that are larger, and those
    of the block above the last that are smaller. Where Newton's method leaves the interval in which the solution is
    known to be, the interval is halved. Where nothing is to be moved, any value that moves nothing will do.
    """
    cdef Py_ssize_t lower = user.blocks.ends[first - 1] if first else 0
    cdef Py_ssize_t inner = user.blocks.ends[first], upper = user.blocks.ends[last], end = user.blocks.ends[last + 1]
    cdef double between = sum_of(v + inner, upper - inner), low = -INFINITY, high = INFINITY, mean, count
    cdef Beyond above, below
    if start != start:  # NaN: not known yet
        start = 0.5 * (v[lower] + v[upper])
    while True:
        above = sum_above(v + lower, inner - lower, start)
        below = sum_below(v + upper, end - upper, start)
        count = above.count + (upper - inner) + below.count
        if count == 0:
            return start
        mean = ((above.total + between) + below.total) / count
        if mean > start:
            low = start
        elif mean < start:
            high = start
        else:
            return start
        if not low < mean < high:
            mean = 0.5 * (low + high)
            if not low < mean < high:
                return start
        start = mean


cdef void _write_between(User user, double *out) noexcept nogil:
    """Write every row, moved into the interval between its block's borders; a row that is not moved keeps its x."""
    cdef Py_ssize_t block, place, row, start = 0
    cdef double low, high
    for block in range(user.blocks.n):
        low = user.blocks.borders[block - 1] + user.eps * block if block else -INFINITY
        high = user.blocks.borders[block] + user.eps * block if block + 1 < user.blocks.n else INFINITY
        for place in range(start, user.blocks.ends[block]):
            row = user.order[place]
            out[row] = max(low, min(high, user.x[row]))
        start = user.blocks.ends[block]
