"""The nearest point that respects a partial order with a margin, certified by its duality gap.

    min_z 1/2 sum_i w_i (z_i - x_i)^2   such that   z_low + eps <= z_high for every edge (low, high)

With a multiplier a_e >= 0 per edge, w_i (z_i - x_i) = (M a)_i, the sum of the a of the edges that enter i less those
that leave it. The method is a dual active-set method (Goldfarb and Idnani 1983) on trees. The active edges, whose
constraints hold with equality, form a forest, and the nodes of a tree move together. A violated edge moves its two
trees towards each other until its constraint holds, and then joins them; an edge whose multiplier falls to zero on the
way leaves the forest. Every step raises the dual value, and the end is exact up to rounding. Where the order is a
chain, this is pooling adjacent violators (PAV).
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints
from rankbench.kernels.shared.checks cimport agree
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport count_rows, first_id, first_value, longest_row

cdef double _TIGHT = 1e-13  # a violation below this, relative to the size of the numbers, is none

cdef enum:
    _PASSES = 10_000  # over the edges; a gap that is still too wide then is reported as it is

cdef struct User:
    # One user's problem, and the scratch memory of the thread that solves it.
    Py_ssize_t n, m
    const int32_t *low
    const int32_t *high
    const double *x
    const double *mass  # per node; NULL: all ones
    double eps
    double *dual
    double *z
    double *load  # per node: the mass of its subtree
    double *repaired  # per node
    int32_t *queue  # nodes of the trees at hand, roots first
    int32_t *above  # per node: the edge to its parent, -1 for a root
    int32_t *first  # per node: its first slot; edge e has slot 2 e at its low end, 2 e + 1 at its high one
    int32_t *next  # per slot, -1 at the end
    int32_t *previous
    int32_t *tight  # per edge: whether it is in the forest

cdef struct GraphView:
    Py_ssize_t n_users
    const int64_t *indptr
    const int64_t *edge_indptr
    const int32_t *low
    const int32_t *high

cdef struct Problem:
    # All users' problems.
    GraphView graphs
    const double *x
    const double *mass  # NULL: all ones
    double eps
    double *dual
    double *out


cdef class Graphs:
    """Each user's partial order as a graph: user u has the edges low[e] < high[e], e from edge_indptr[u] on.

    Its nodes are numbered within the user, so that every edge points to a higher number; there are
    indptr[u + 1] - indptr[u] of them. A user's edges come by ascending lower end.
    """

    cdef const int64_t[::1] indptr
    cdef const int64_t[::1] edge_indptr
    cdef const int32_t[::1] low
    cdef const int32_t[::1] high
    cdef GraphView view

    def __init__(
        self,
        *,
        const int64_t[::1] indptr,
        const int64_t[::1] edge_indptr,
        const int32_t[::1] low,
        const int32_t[::1] high,
    ):
        """Take the arrays, without a copy."""
        if low.shape[0] != high.shape[0]:
            raise ValueError(f"there are {low.shape[0]} lower ends of edges but {high.shape[0]} higher ones")
        cdef Py_ssize_t n_users = count_rows(edge_indptr, low.shape[0])
        if indptr.shape[0] != edge_indptr.shape[0]:
            raise ValueError("nodes and edges must be of as many users")
        self.indptr, self.edge_indptr, self.low, self.high = indptr, edge_indptr, low, high
        self.view = GraphView(n_users, &indptr[0], &edge_indptr[0], first_id(low), first_id(high))


def reduced(*, Py_ssize_t n, const int32_t[::1] low, const int32_t[::1] high, const int64_t[::1] starts) -> Flags:
    """Which edges a transitive reduction keeps: those that no longer path replaces.

    Nodes are numbered so that edges point to higher numbers; edges are grouped by `low`, and ascend in
    `high` within a group. O(m n / 64), with a bit per pair of nodes.
    Invariant: the bits of each node that has been visited say to which nodes a path leads from there.
    """
    agree("higher ends", high.shape[0], low.shape[0])
    agree("nodes", count_rows(starts, low.shape[0]), n)
    cdef Py_ssize_t words = (n + 63) // 64, node, edge, word
    kept = np.zeros(low.shape[0], np.uint8)
    cdef unsigned char[::1] keep = kept
    cdef uint64_t[::1] above = np.zeros(max(n * words, 1), np.uint64)
    cdef uint64_t *mine
    cdef uint64_t *theirs
    with nogil:
        for node in range(n - 1, -1, -1):
            mine = &above[0] + node * words
            for edge in range(starts[node], starts[node + 1]):
                if mine[high[edge] >> 6] >> (high[edge] & 63) & 1:
                    continue  # a path leads there already
                keep[edge] = 1
                theirs = &above[0] + high[edge] * words
                for word in range(words):
                    mine[word] |= theirs[word]
                mine[high[edge] >> 6] |= (<uint64_t> 1) << (high[edge] & 63)
    return kept.view(bool)


def topological(*, Py_ssize_t n, const int32_t[::1] high, const int64_t[::1] starts) -> Int32s:
    """Every node's place in an order in which edges point up, -1 for those behind a cycle; O(n + m) (Kahn 1962).

    Edges are grouped by their lower node. Invariant: the queue holds the nodes that no edge enters from a node
    without a place, and waiting[node] counts the edges that do.
    """
    agree("nodes", count_rows(starts, high.shape[0]), n)
    places = np.full(n, -1, np.int32)
    cdef int32_t[::1] place = places
    cdef int32_t[::1] waiting = np.bincount(high, minlength=n).astype(np.int32)
    cdef int32_t[::1] queue = np.empty(n, np.int32)
    cdef Py_ssize_t node, edge, head = 0, tail = 0
    with nogil:
        for node in range(n):
            if waiting[node] == 0:
                queue[tail] = <int32_t> node
                tail += 1
        while head < tail:
            node = queue[head]
            place[node] = <int32_t> head
            head += 1
            for edge in range(starts[node], starts[node + 1]):
                waiting[high[edge]] -= 1
                if waiting[high[edge]] == 0:
                    queue[tail] = high[edge]
                    tail += 1
    return places


def project(
    *,
    Graphs graphs,
    const double[::1] x,
    const double[::1] weights,
    double eps,
    double[::1] duals,
    double[::1] out,
    int threads,
) -> Floats:
    """Write every user's projection to `out`, feasible up to rounding; the duality gap of each.

    The search starts from the multipliers in `duals`, and leaves there those that it has found. No weights are all
    ones.
    """
    threads = team(threads)
    cdef GraphView view = graphs.view
    cdef Py_ssize_t user, n = view.indptr[view.n_users]
    if x.shape[0] != n or out.shape[0] != n or weights.shape[0] not in (0, n):
        raise ValueError(f"x, out and weights must have {n} rows")
    if duals.shape[0] != graphs.low.shape[0]:
        raise ValueError("there must be a multiplier for each edge")
    found = np.zeros(view.n_users)
    cdef double[::1] gaps = found
    cdef Problem problem = Problem(view, first_value(x), first_value(weights), eps, NULL, NULL)
    if n > 0:
        problem.out = &out[0]
    if duals.shape[0] > 0:
        problem.dual = &duals[0]
    cdef Py_ssize_t nodes = longest_row(view.indptr, view.n_users)
    cdef Py_ssize_t edges = longest_row(view.edge_indptr, view.n_users)
    cdef Arena arena = Arena(NULL, 0)
    cdef User member = _lay_out(&arena, nodes, edges)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        member = _lay_out(&arena, nodes, edges)
        for user in prange(view.n_users, schedule="dynamic", chunksize=1):
            if view.indptr[user + 1] > view.indptr[user]:
                gaps[user] = _project(&problem, user, member)
    return found


cdef User _lay_out(Arena *arena, Py_ssize_t nodes, Py_ssize_t edges) noexcept nogil:
    """Room for a user with so many nodes and edges, who has no problem yet."""
    cdef User user
    memset(&user, 0, sizeof(User))
    user.z, user.load, user.repaired = floats(arena, nodes), floats(arena, nodes), floats(arena, nodes)
    user.queue, user.above, user.first = ints(arena, nodes), ints(arena, nodes), ints(arena, nodes)
    user.next, user.previous, user.tight = ints(arena, 2 * edges), ints(arena, 2 * edges), ints(arena, edges)
    return user


cdef double _project(const Problem *problem, Py_ssize_t number, User user) noexcept nogil:
    """Solve one user's problem in the memory of `user`; the duality gap."""
    cdef GraphView graphs = problem.graphs
    cdef Py_ssize_t first = graphs.indptr[number], edge = graphs.edge_indptr[number]
    user.n, user.m = graphs.indptr[number + 1] - first, graphs.edge_indptr[number + 1] - edge
    user.low, user.high, user.dual = graphs.low + edge, graphs.high + edge, problem.dual + edge
    user.x, user.mass, user.eps = problem.x + first, NULL, problem.eps
    if problem.mass != NULL:
        user.mass = problem.mass + first
    return _solve(&user, problem.out + first)


cdef double _solve(User *user, double *out) noexcept nogil:
    """Tighten violated edges, pass after pass, until none is left, and write the projection to `out`; the gap."""
    cdef Py_ssize_t _turn, i, e
    cdef double size = 1.0
    for i in range(user.n):
        size = max(size, abs(user.x[i]))
    _start(user)
    for _turn in range(_PASSES):
        if not _pass(user, _TIGHT * (size + user.eps)):
            break
    _settle(user)  # anew, without what rounding added up on the way
    for e in range(user.m):
        user.dual[e] = max(user.dual[e], 0.0)
    _from_duals(user)
    cdef double gap = _gap(user)
    for i in range(user.n):
        out[i] = user.repaired[i]
    return gap


cdef bint _pass(User *user, double tiny) noexcept nogil:
    """Tighten every edge that is violated; whether one was, and the numbers are not too large to go on."""
    cdef Py_ssize_t e
    cdef bint found = False
    for e in range(user.m):  # edges come by ascending lower end
        if not user.tight[e] and user.z[user.low[e]] + user.eps - user.z[user.high[e]] > tiny:
            if not _tighten(user, e):
                return False
            found = True
    return found


cdef inline double _mass(const User *user, Py_ssize_t node) noexcept nogil:
    """The weight of a node."""
    return user.mass[node] if user.mass != NULL else 1.0


cdef void _start(User *user) noexcept nogil:
    """Begin at the forest of the edges whose given multipliers are positive, less those that turn negative here."""
    cdef Py_ssize_t i, e
    cdef bint again = True
    for i in range(user.n):
        user.first[i] = -1
    for e in range(user.m):
        user.tight[e] = 0
    for e in range(user.m):
        if user.dual[e] > 0.0 and not _connected(user, user.low[e], user.high[e]):
            _link(user, e)
    while again:
        _settle(user)
        again = False
        for e in range(user.m):
            if user.tight[e] and user.dual[e] < 0.0:
                _unlink(user, e)
                again = True
            elif not user.tight[e]:
                user.dual[e] = 0.0


cdef bint _connected(User *user, Py_ssize_t one, Py_ssize_t other) noexcept nogil:
    """Whether two nodes are in the same tree."""
    cdef Py_ssize_t place, count = _gather(user, one, 0)
    for place in range(count):
        if user.queue[place] == other:
            return True
    return False


cdef void _settle(User *user) noexcept nogil:
    """Put each tree of the forest at its best position, and give its edges the multipliers that go with it."""
    cdef Py_ssize_t root, place, count, node
    cdef double total
    for root in range(user.n):
        user.load[root] = -1.0
    for root in range(user.n):
        if user.load[root] >= 0.0:
            continue  # in a tree that is settled
        count = _gather(user, root, 0)
        user.z[root], total = 0.0, 0.0
        for place in range(count):
            node = user.queue[place]
            if place > 0:
                user.z[node] = user.z[_parent(user, node)] + (user.eps if _enters(user, node) else -user.eps)
            total += _mass(user, node) * (user.x[node] - user.z[node])
        _weigh(user, 0, count)
        for place in range(count):
            user.z[user.queue[place]] += total / user.load[root]
        _pull(user, count)


cdef void _pull(User *user, Py_ssize_t count) noexcept nogil:
    """Set the multipliers of a tree: an edge's is the force on the subtree below it. Overwrites `repaired`."""
    cdef Py_ssize_t place, node
    for place in range(count):
        node = user.queue[place]
        user.repaired[node] = _mass(user, node) * (user.z[node] - user.x[node])
    for place in range(count - 1, 0, -1):
        node = user.queue[place]
        user.dual[user.above[node]] = user.repaired[node] if _enters(user, node) else -user.repaired[node]
        user.repaired[_parent(user, node)] += user.repaired[node]


cdef inline bint _enters(const User *user, Py_ssize_t node) noexcept nogil:
    """Whether the edge from a node's parent points to the node."""
    return user.high[user.above[node]] == node


cdef inline Py_ssize_t _parent(const User *user, Py_ssize_t node) noexcept nogil:
    """The node at the other end of the edge to a node's parent."""
    cdef Py_ssize_t edge = user.above[node]
    return user.low[edge] if user.high[edge] == node else user.high[edge]


cdef void _link(User *user, Py_ssize_t edge) noexcept nogil:
    """Add an edge to the forest: put its slots at the head of its ends' lists."""
    cdef Py_ssize_t slot, node
    for slot in range(2 * edge, 2 * edge + 2):
        node = user.high[edge] if slot & 1 else user.low[edge]
        user.next[slot], user.previous[slot] = user.first[node], -1
        if user.first[node] >= 0:
            user.previous[user.first[node]] = <int32_t> slot
        user.first[node] = <int32_t> slot
    user.tight[edge] = 1


cdef void _unlink(User *user, Py_ssize_t edge) noexcept nogil:
    """Remove an edge from the forest."""
    cdef Py_ssize_t slot, node
    for slot in range(2 * edge, 2 * edge + 2):
        node = user.high[edge] if slot & 1 else user.low[edge]
        if user.next[slot] >= 0:
            user.previous[user.next[slot]] = user.previous[slot]
        if user.previous[slot] >= 0:
            user.next[user.previous[slot]] = user.next[slot]
        else:
            user.first[node] = user.next[slot]
    user.tight[edge] = 0
    user.dual[edge] = 0.0


cdef Py_ssize_t _gather(User *user, Py_ssize_t root, Py_ssize_t start) noexcept nogil:
    """Write the tree of a node to queue[start:], parents before children; its end."""
    cdef Py_ssize_t place = start, end = start + 1, node, other
    cdef int32_t slot
    user.queue[start], user.above[root] = <int32_t> root, -1
    while place < end:
        node = user.queue[place]
        slot = user.first[node]
        while slot >= 0:
            if slot >> 1 != user.above[node]:
                other = user.low[slot >> 1] if slot & 1 else user.high[slot >> 1]
                user.above[other] = slot >> 1
                user.queue[end] = <int32_t> other
                end += 1
            slot = user.next[slot]
        place += 1
    return end


cdef void _weigh(User *user, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
    """Set the load of every node of queue[start:end] to the mass of its subtree."""
    cdef Py_ssize_t place
    for place in range(start, end):
        user.load[user.queue[place]] = _mass(user, user.queue[place])
    for place in range(end - 1, start, -1):
        user.load[_parent(user, user.queue[place])] += user.load[user.queue[place]]


cdef bint _tighten(User *user, Py_ssize_t edge) noexcept nogil:
    """Raise the multiplier of a violated edge until it is tight; edges whose multipliers fall to zero are removed.

    It ends, since every round but the last removes an edge; False if the numbers are too large to compute with.

    Invariant: the tree of the low end stands in queue[:middle], that of the high end in queue[middle:end].
    """
    cdef Py_ssize_t low = user.low[edge], high = user.high[edge], middle, end, blocking
    cdef double step, full
    while True:
        middle = _gather(user, low, 0)
        if user.above[high] >= 0 and _among(user, high, middle):
            if not _take_over(user, edge):
                return False
            continue
        end = _gather(user, high, middle)
        _weigh(user, 0, middle)
        _weigh(user, middle, end)
        full = max(user.z[low] + user.eps - user.z[high], 0.0) / (1.0 / user.load[low] + 1.0 / user.load[high])
        if not isfinite(full):
            return False
        blocking, step = -1, full
        blocking = _blocking(user, 0, middle, True, &step, blocking)
        blocking = _blocking(user, middle, end, False, &step, blocking)
        _move(user, 0, middle, -step / user.load[low])
        _move(user, middle, end, step / user.load[high])
        user.dual[edge] += step
        if blocking < 0:
            _link(user, edge)
            return True
        _unlink(user, blocking)


cdef bint _among(const User *user, Py_ssize_t node, Py_ssize_t count) noexcept nogil:
    """Whether a node is in queue[:count]."""
    cdef Py_ssize_t place
    for place in range(count):
        if user.queue[place] == node:
            return True
    return False


cdef Py_ssize_t _blocking(
    const User *user, Py_ssize_t start, Py_ssize_t end, bint falls, double *step, Py_ssize_t blocking
) noexcept nogil:
    """The edge whose multiplier is first at zero when the tree moves, else `blocking`; `step` is cut to there.

    A tree that falls lowers the multipliers of edges that enter a subtree, one that rises those of edges that leave
    it, each by the subtree's share of the tree's mass.
    """
    cdef Py_ssize_t place, node
    cdef double reach, whole = user.load[user.queue[start]]
    for place in range(start + 1, end):
        node = user.queue[place]
        if _enters(user, node) == falls:
            reach = user.dual[user.above[node]] * whole / user.load[node]
            if reach < step[0]:
                step[0], blocking = max(reach, 0.0), user.above[node]
    return blocking


cdef void _move(User *user, Py_ssize_t start, Py_ssize_t end, double shift) noexcept nogil:
    """Move a tree, and its multipliers with it."""
    cdef Py_ssize_t place, node
    for place in range(start, end):
        node = user.queue[place]
        user.z[node] += shift
        if place > start:
            user.dual[user.above[node]] += user.load[node] * (shift if _enters(user, node) else -shift)


cdef bint _take_over(User *user, Py_ssize_t edge) noexcept nogil:
    """Raise the multiplier of an edge both of whose ends are in one tree, until an edge of the cycle falls to zero.

    The queue holds the tree with the edge's low end as its root. On the path from the high end to the root, an edge
    that enters the node from its parent loses what the new edge gains; one that leaves the node gains as much.
    False if no multiplier on the path is a number.
    """
    cdef Py_ssize_t node = user.high[edge], blocking = -1
    cdef double step = INFINITY
    while user.above[node] >= 0:
        if _enters(user, node) and user.dual[user.above[node]] < step:
            step, blocking = max(user.dual[user.above[node]], 0.0), user.above[node]
        node = _parent(user, node)
    if blocking < 0:
        return False
    node = user.high[edge]
    while user.above[node] >= 0:
        user.dual[user.above[node]] += -step if _enters(user, node) else step
        node = _parent(user, node)
    user.dual[edge] += step
    _unlink(user, blocking)
    return True


cdef void _from_duals(User *user) noexcept nogil:
    """z = x + W^-1 M dual."""
    cdef Py_ssize_t i, e
    for i in range(user.n):
        user.z[i] = user.x[i]
    for e in range(user.m):
        user.z[user.high[e]] += user.dual[e] / _mass(user, user.high[e])
        user.z[user.low[e]] -= user.dual[e] / _mass(user, user.low[e])


cdef double _gap(User *user) noexcept nogil:
    """Primal less dual value, infinite if it is no number; leaves the nearest feasible point found in `repaired`.

    Pushing values up along the order makes a feasible point, pushing them down another; their middle is
    feasible too, for the set is convex, and lies nearer.
    """
    cdef Py_ssize_t i, e
    cdef double gap = 0.0, change
    cdef double *up = user.repaired
    cdef double *down = user.load
    for i in range(user.n):
        up[i], down[i] = user.z[i], user.z[i]
    for e in range(user.m):  # edges come by ascending lower end
        up[user.high[e]] = max(up[user.high[e]], up[user.low[e]] + user.eps)
    for e in range(user.m - 1, -1, -1):
        down[user.low[e]] = min(down[user.low[e]], down[user.high[e]] - user.eps)
    for i in range(user.n):
        user.repaired[i] = 0.5 * (up[i] + down[i])
        change = user.repaired[i] - user.x[i]
        gap += 0.5 * _mass(user, i) * change * change
        change = user.z[i] - user.x[i]
        gap += 0.5 * _mass(user, i) * change * change
    for e in range(user.m):
        gap -= user.dual[e] * (user.eps - user.x[user.high[e]] + user.x[user.low[e]])
    return max(gap, 0.0) if gap == gap else INFINITY
