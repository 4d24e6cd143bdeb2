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

Otherwise: x is sorted inside each block, and v is projected onto ascending sequences, by PAV as well: four users side
by side, or four segments of one long vector, whose pools are then pooled.
"""

# Roof of project along strict orders, a row: 32 + 48 * pools bytes; 10 flops.
#   A row's x, place and depth are read once to pool it, and the latter two once more to write it; a pool is written and
#   read. Two flops lift a row, two compare it, two pool it, two compare the pool, and two write it.
# Roof of project along blocks, a row: 28 bytes; 15 flops.
#   A flop lifts it, two put it between its borders, and its block's two borders look at it twice each: a comparison, an
#   addition and a count.

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t
from libc.math cimport INFINITY
from libc.string cimport memmove

from rankbench.kernels.methods.pools cimport LOWEST, Pool, Sequence, begun, finish, merged, side_by_side
from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints, taken
from rankbench.kernels.shared.lanes cimport LANES, Beyond, sum_above, sum_below, total as sum_of
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport count_rows, first_value, longest_row
from rankbench.kernels.shared.sorting cimport argsort

cdef extern from *:
    """
    /* One loop over the rows of all blocks of a user, as loops over each small block would end unforeseen: */
    typedef int32_t rankbench_depths __attribute__((vector_size(4 * RANKBENCH_WIDTH)));

    /* x - eps depth at every place */
    static __attribute__((noinline)) void rankbench_lift(
        const double *x, const int32_t *order, const int32_t *depth, double eps, Py_ssize_t n, double *lifted
    ) {
        Py_ssize_t place = 0;
        for (; place + RANKBENCH_WIDTH <= n; place += RANKBENCH_WIDTH) {
            rankbench_lanes row;
            rankbench_depths depths;
            memcpy(&depths, depth + place, sizeof depths);
            for (int lane = 0; lane < RANKBENCH_WIDTH; lane++)
                row[lane] = x[order[place + lane]];
            row -= eps * __builtin_convertvector(depths, rankbench_lanes);
            RANKBENCH_STORE(lifted + place, row);
        }
        for (; place < n; place++)
            lifted[place] = x[order[place]] - eps * depth[place];
    }

    /* x, moved into the interval of its depth */
    static __attribute__((noinline)) void rankbench_move(
        const double *x, const int32_t *order, const int32_t *depth, const double *low, const double *high,
        Py_ssize_t n, double *out
    ) {
        for (Py_ssize_t place = 0; place < n; place++) {
            const double most = high[depth[place]], least = low[depth[place]], value = x[order[place]];
            const double moved = value < most ? value : most;
            out[order[place]] = moved > least ? moved : least;
        }
    }
    """
    void lift_rows "rankbench_lift" (
        const double *x, const int32_t *order, const int32_t *depth, double eps, Py_ssize_t n, double *lifted
    ) noexcept nogil
    void move_rows "rankbench_move" (
        const double *x, const int32_t *order, const int32_t *depth, const double *low, const double *high,
        Py_ssize_t n, double *out
    ) noexcept nogil

cdef struct LargeBlocks:
    # One user's blocks if these are large; n = 0: they are not.
    Py_ssize_t n
    const int32_t *ends
    double *borders  # above each block; of the last projection
    double *alone  # the same borders, of each two neighbouring blocks by themselves

cdef enum:
    SEGMENT = 1024  # rows of a long vector that are pooled by themselves first
    _SMALL = 24  # rows of a large block, on average, up to which there is one loop over all of a user's blocks

cdef struct Values:
    # What is projected, of all users.
    const double *x
    const double *weights  # NULL: all ones
    double eps
    double *out

cdef struct User:
    # One user's problem.
    Py_ssize_t n
    int32_t *order
    const int32_t *depth
    LargeBlocks blocks
    Values values

cdef struct Memory:
    # Scratch memory of one thread.
    Pool *pools  # of four users, or of four segments of a long vector
    int32_t *ends
    Pool *all_pools  # of a long vector
    int32_t *all_ends
    int32_t *spare  # room to sort
    double *lifted  # per place in the order: v = x - eps depth
    Common *commons

cdef struct Common:
    # Neighbouring borders that have one value: those above the blocks first .. last.
    Py_ssize_t first
    Py_ssize_t last
    double value


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

    Without weights the warm start that a former call has left changes no more than last digits, and those only where
    several borders between blocks are right but for rounding, as of values on a coarse grid. O(n log n) per user at
    most, O(n) where no two ratings are equal.
    """
    threads = team(threads)
    cdef Py_ssize_t n = levels.order.shape[0]
    if x.shape[0] != n or out.shape[0] != n or weights.shape[0] not in (0, n):
        raise ValueError(f"x, out and weights must have {n} rows")
    if not _none_is_below_zero(weights):
        raise ValueError("weights must not be below zero")
    cdef Values values = Values(first_value(x), first_value(weights), eps, NULL)
    if n:
        values.out = &out[0]
    cdef Py_ssize_t four, row, longest = longest_row(&levels.indptr[0], levels.n_users)
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, longest)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out(&arena, longest)
        for four in prange((levels.n_users + 3) // 4, schedule="dynamic", chunksize=16):
            _project_four(levels, 4 * four, values, memory)
            if less_x:
                for row in range(levels.indptr[4 * four], levels.indptr[min(4 * four + 4, levels.n_users)]):
                    out[row] -= x[row]


cdef bint _none_is_below_zero(const double[::1] weights) noexcept nogil:
    """Whether all means are above that of the lowest pool, so that no search for one below goes beyond it."""
    cdef Py_ssize_t row
    cdef double least = 0.0
    for row in range(weights.shape[0]):
        least = min(least, weights[row])
    return least == 0.0


cdef Memory _lay_out(Arena *arena, Py_ssize_t n) noexcept nogil:
    """Room for users with n rows at most."""
    cdef Py_ssize_t long_rows = n + 1 if n > SEGMENT else 0, rows = 4 * (min(n, SEGMENT) + 1) + 1
    return Memory(
        _pools(arena, rows), ints(arena, rows), _pools(arena, long_rows), ints(arena, long_rows), ints(arena, n),
        floats(arena, n + LANES), <Common *> taken(arena, n, sizeof(Common)),
    )


cdef inline Pool *_pools(Arena *arena, Py_ssize_t n) noexcept nogil:
    """Scratch memory for n pools."""
    return <Pool *> taken(arena, n, sizeof(Pool))


cdef inline User _of_user(Levels levels, Py_ssize_t user, Values values) noexcept nogil:
    """The problem of one user, with the values of all users."""
    cdef Py_ssize_t first = levels.indptr[user], block = levels.block_indptr[user]
    cdef LargeBlocks blocks = LargeBlocks(levels.block_indptr[user + 1] - block, NULL, NULL, NULL)
    if blocks.n:
        blocks = LargeBlocks(
            blocks.n, &levels.block_ends[block], &levels.borders[0, block], &levels.borders[1, block]
        )
    values.x += first
    values.out += first
    if values.weights != NULL:
        values.weights += first
    return User(levels.indptr[user + 1] - first, &levels.order[first], &levels.depth[first], blocks, values)


cdef void _project_four(Levels levels, Py_ssize_t first, Values values, Memory memory) noexcept nogil:
    """Project the rows of up to four users: large blocks by their borders; else sort inside blocks, and pool."""
    cdef Py_ssize_t k, n_pools, place = 1
    cdef User user
    cdef User users[4]
    cdef Sequence four[4]
    for k in range(4):  # before any rows are taken, as a long vector's are taken into the same memory
        users[k].n = 0
        if first + k < levels.n_users and levels.indptr[first + k + 1] > levels.indptr[first + k]:
            user = _of_user(levels, first + k, values)
            if not _projected_alone(user, memory):
                users[k] = user
    for k in range(4):
        if users[k].n:
            _take_rows(users[k], 0, users[k].n, &memory.pools[place])
        four[k] = begun(memory.pools, place, users[k].n)
        place += users[k].n + 1
    side_by_side(four, memory.pools, memory.ends)
    for k in range(4):
        if users[k].n:
            place = four[k].first
            n_pools = finish(four[k], memory.pools, memory.ends)
            _write(users[k], n_pools, &memory.pools[place], &memory.ends[place], place)


cdef bint _projected_alone(User user, Memory memory) noexcept nogil:
    """Put a user's rows in order, and project large blocks and long vectors; whether that was done."""
    if user.values.weights == NULL and user.blocks.n:
        _lift(user, memory.lifted)
        _find_borders(user, memory)
        _write_between(user, memory.lifted)
        return True
    _arrange(user, memory.spare)
    if user.n <= SEGMENT:
        return False
    _write(user, _pool_segments(user, memory), memory.all_pools + 1, memory.all_ends + 1, 0)
    return True


cdef void _arrange(User user, int32_t *spare) noexcept nogil:
    """Put the rows in order of x where the depth is equal; quick where they are nearly so from the last time."""
    cdef Py_ssize_t place, first = 0
    cdef int falls = 0
    if user.depth[user.n - 1] == user.n - 1:
        return
    for place in range(1, user.n):
        falls |= (
            (user.values.x[user.order[place]] < user.values.x[user.order[place - 1]])
            & (user.depth[place] == user.depth[place - 1])
        )
    if not falls:
        return
    for place in range(1, user.n + 1):
        if place == user.n or user.depth[place] != user.depth[first]:
            if place - first > 1:
                argsort(user.values.x, user.order + first, spare, place - first)
            first = place


cdef void _take_rows(User user, Py_ssize_t start, Py_ssize_t end, Pool *pools) noexcept nogil:
    """Make a pool of each row from start to end in the order, of its x - eps depth and its weight."""
    cdef Values values = user.values
    cdef Py_ssize_t place, row
    cdef double mass = 1.0
    for place in range(start, end):
        row = user.order[place]
        if values.weights != NULL:
            mass = values.weights[row]
        pools[place - start] = Pool(mass * (values.x[row] - values.eps * user.depth[place]), mass)


cdef Py_ssize_t _pool_segments(User user, Memory memory) noexcept nogil:
    """Pool a long vector into `all_pools`, from place 1 on: segments side by side, then their pools; how many are left.
    """
    cdef Py_ssize_t start = 0, rows, k, place, n_pools, top = 1
    cdef Sequence four[4]
    memory.all_pools[0] = LOWEST
    while start < user.n:
        rows = min(4 * SEGMENT, user.n - start)
        for k in range(4):
            place = k * rows // 4
            _take_rows(user, start + place, start + (k + 1) * rows // 4, &memory.pools[place + k + 1])
            four[k] = begun(memory.pools, place + k + 1, (k + 1) * rows // 4 - place)
        side_by_side(four, memory.pools, memory.ends)
        for k in range(4):
            n_pools = finish(four[k], memory.pools, memory.ends)
            top = _append(memory, four[k].first, n_pools, start - (k + 1), top)
        start += rows
    return top - 1


cdef Py_ssize_t _append(
    Memory memory, Py_ssize_t first, Py_ssize_t n_pools, Py_ssize_t shift, Py_ssize_t top
) noexcept nogil:
    """Append a segment's pools to all pools, and pool what they violate; the place after the last one.

    As a segment's own means ascend, nothing is left to pool behind its first pool that stays as it is.
    """
    cdef Py_ssize_t pool, before
    cdef bint in_order = False
    cdef Pool last
    for pool in range(first, first + n_pools):
        before = top
        last = memory.pools[pool] if in_order else merged(memory.pools[pool], memory.all_pools, &top)
        memory.all_pools[top] = last
        memory.all_ends[top] = <int32_t> (memory.ends[pool] + shift)
        in_order = top == before
        top += 1
    return top


cdef void _write(
    User user, Py_ssize_t n_pools, const Pool *pools, const int32_t *ends, Py_ssize_t before
) noexcept nogil:
    """Write every row's pool mean with its margin put back; a row that is a pool by itself keeps its x to the bit.

    The pools' rows begin at the place `before`, as `ends` counts them.
    """
    cdef Py_ssize_t pool, place, end, start = 0
    cdef Values values = user.values
    cdef double mean
    if n_pools == user.n:
        memmove(values.out, values.x, user.n * sizeof(double))
        return
    for pool in range(n_pools):
        end = ends[pool] - before
        if end == start + 1:
            values.out[user.order[start]] = values.x[user.order[start]]
        else:
            mean = pools[pool].total / pools[pool].mass
            for place in range(start, end):
                values.out[user.order[place]] = mean + values.eps * user.depth[place]
        start = end


# ---- few large blocks ----


cdef void _lift(User user, double *lifted) noexcept nogil:
    """Compute v = x - eps depth at every place."""
    cdef Py_ssize_t block, place, start = 0
    cdef double margin
    if user.n <= _SMALL * user.blocks.n:
        lift_rows(user.values.x, user.order, user.depth, user.values.eps, user.n, lifted)
        return
    for block in range(user.blocks.n):
        margin = user.values.eps * block
        for place in range(start, user.blocks.ends[block]):
            lifted[place] = user.values.x[user.order[place]] - margin
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


cdef void _write_between(User user, double *spare) noexcept nogil:
    """Write every row, moved into the interval between its block's borders; a row that is not moved keeps its x."""
    cdef Py_ssize_t block, place, row, start = 0
    cdef double *low = spare
    cdef double *high = spare + user.blocks.n
    cdef double least, most
    for block in range(user.blocks.n):
        low[block] = user.blocks.borders[block - 1] + user.values.eps * block if block else -INFINITY
        high[block] = user.blocks.borders[block] + user.values.eps * block if block + 1 < user.blocks.n else INFINITY
    if user.n <= _SMALL * user.blocks.n:
        move_rows(user.values.x, user.order, user.depth, low, high, user.n, user.values.out)
        return
    for block in range(user.blocks.n):
        least, most = low[block], high[block]
        for place in range(start, user.blocks.ends[block]):
            row = user.order[place]
            user.values.out[row] = max(least, min(most, user.values.x[row]))
        start = user.blocks.ends[block]
