"""The nearest point that respects a partial order with a margin, certified by its duality gap.

    min_z 1/2 sum_i w_i (z_i - x_i)^2   such that   z_low + eps <= z_high for every edge (low, high)

With a multiplier a_e >= 0 per edge, w_i (z_i - x_i) = (M a)_i, the sum of the a of the edges that enter i
less those that leave it. A dual active-set method (Goldfarb and Idnani 1983) on trees: the edges held
tight make a forest, each of whose trees moves as one; a violated edge pulls its two trees towards
each other until it is tight too and joins them, and an edge whose multiplier falls to zero on the way
lets go. Every step raises the dual value, and the end is exact. It is PAV where the order is a chain.
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from rankbench.kernels.shared.parallel cimport team, thread_id

cdef double _TIGHT = 1e-13  # a violation below this, relative to the size of the numbers, is none

cdef enum:
    _PASSES = 10_000  # over the edges; a gap that is still too wide then is reported as it is

cdef struct User:
    # One user's problem, and the thread's own scratch.
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
    int32_t *tight  # per edge


def reduced(Py_ssize_t n, const int32_t[::1] low, const int32_t[::1] high, const int64_t[::1] starts):
    """Which edges a transitive reduction keeps: those that no longer path replaces.

    Nodes are numbered so that edges point to higher numbers; edges are grouped by `low`, and ascend in
    `high` within a group. O(m n / 64), with a bit per pair of nodes.
    """
    cdef Py_ssize_t words = (n + 63) // 64, node, edge, word
    kept = np.zeros(low.shape[0], np.uint8)
    cdef unsigned char[::1] keep = kept
    cdef uint64_t *above = <uint64_t *> calloc(max(n * words, 1), sizeof(uint64_t))
    cdef uint64_t *mine
    cdef uint64_t *theirs
    if above == NULL:
        raise MemoryError
    with nogil:
        for node in range(n - 1, -1, -1):
            mine = above + node * words
            for edge in range(starts[node], starts[node + 1]):
                if mine[high[edge] >> 6] >> (high[edge] & 63) & 1:
                    continue  # a path leads there already
                keep[edge] = 1
                theirs = above + high[edge] * words
                for word in range(words):
                    mine[word] |= theirs[word]
                mine[high[edge] >> 6] |= (<uint64_t> 1) << (high[edge] & 63)
    free(above)
    return kept.view(bool)


def topological(Py_ssize_t n, const int32_t[::1] high, const int64_t[::1] starts):
    """Every node's place in an order in which edges point up (Kahn), -1 for those behind a cycle.

    Edges are grouped by their lower node; O(n + m).
    """
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
    const int64_t[::1] indptr,
    const int64_t[::1] edge_indptr,
    const int32_t[::1] low,
    const int32_t[::1] high,
    const double[::1] x,
    const double[::1] weights,
    double eps,
    double[::1] duals,
    double[::1] out,
    double[::1] gaps,
    int threads,
):
    """Every user's projection, feasible to rounding, and its duality gap; `duals` start and end the search.

    Nodes are numbered within the user so that every edge points to a higher number; no weights are all
    ones.
    """
    threads = team(threads)
    cdef Py_ssize_t n_users = indptr.shape[0] - 1, user
    cdef Py_ssize_t nodes = np.diff(indptr).max(initial=0) + 1, edges = np.diff(edge_indptr).max(initial=0) + 1
    cdef Py_ssize_t room = 3 * nodes * sizeof(double) + (3 * nodes + 5 * edges + 1) * sizeof(int32_t)
    cdef bint weighted = weights.shape[0] > 0
    room += (-room) % sizeof(double)
    cdef char *memory = <char *> malloc(threads * room)
    cdef User *members = <User *> malloc(threads * sizeof(User))
    cdef User *member = members
    try:
        if memory == NULL or members == NULL:
            raise MemoryError
        with nogil, parallel(num_threads=threads):
            member = &members[thread_id()]
            _lay_out(member, memory + thread_id() * room, nodes, edges)
            for user in prange(n_users, schedule="dynamic", chunksize=1):
                member.n = indptr[user + 1] - indptr[user]
                member.m = edge_indptr[user + 1] - edge_indptr[user]
                member.eps = eps
                if member.n > 0:
                    member.x = &x[indptr[user]]
                    member.mass = &weights[indptr[user]] if weighted else NULL
                    if member.m > 0:
                        member.low, member.high = &low[edge_indptr[user]], &high[edge_indptr[user]]
                        member.dual = &duals[edge_indptr[user]]
                    gaps[user] = _solve(member, &out[indptr[user]])
    finally:
        free(memory)
        free(members)


cdef void _lay_out(User *user, char *memory, Py_ssize_t nodes, Py_ssize_t edges) noexcept nogil:
    user.z = <double *> memory
    user.load = user.z + nodes
    user.repaired = user.load + nodes
    user.queue = <int32_t *> (user.repaired + nodes)
    user.above = user.queue + nodes
    user.first = user.above + nodes
    user.next = user.first + nodes
    user.previous = user.next + 2 * edges
    user.tight = user.previous + 2 * edges


cdef double _solve(User *user, double *out) noexcept nogil:
    """Tighten violated edges, pass after pass, until none is left; the projection goes to `out`."""
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
    """Tighten every edge that is violated; whether one was."""
    cdef Py_ssize_t e
    cdef bint found = False
    for e in range(user.m):  # edges come by ascending lower end
        if not user.tight[e] and user.z[user.low[e]] + user.eps - user.z[user.high[e]] > tiny:
            _tighten(user, e)
            found = True
    return found


cdef inline double _mass(const User *user, Py_ssize_t node) noexcept nogil:
    return user.mass[node] if user.mass != NULL else 1.0


cdef void _start(User *user) noexcept nogil:
    """Begin at the forest that the given duals stand on, less the edges that pull the wrong way here."""
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
    cdef Py_ssize_t place, count = _gather(user, one, 0)
    for place in range(count):
        if user.queue[place] == other:
            return True
    return False


cdef void _settle(User *user) noexcept nogil:
    """For the forest as it is, the best position of each tree and the multipliers that hold it."""
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
    """The multipliers of a tree: what its subtrees are displaced by. Borrows `repaired`."""
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
    cdef Py_ssize_t edge = user.above[node]
    return user.low[edge] if user.high[edge] == node else user.high[edge]


cdef void _link(User *user, Py_ssize_t edge) noexcept nogil:
    """Hold an edge tight: put its slots at the head of its ends' lists."""
    cdef Py_ssize_t slot, node
    for slot in range(2 * edge, 2 * edge + 2):
        node = user.high[edge] if slot & 1 else user.low[edge]
        user.next[slot], user.previous[slot] = user.first[node], -1
        if user.first[node] >= 0:
            user.previous[user.first[node]] = <int32_t> slot
        user.first[node] = <int32_t> slot
    user.tight[edge] = 1


cdef void _unlink(User *user, Py_ssize_t edge) noexcept nogil:
    """Let an edge go."""
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
    """The tree of a node into queue[start:], parents before children; its end."""
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
    """The mass of every subtree of queue[start:end]."""
    cdef Py_ssize_t place
    for place in range(start, end):
        user.load[user.queue[place]] = _mass(user, user.queue[place])
    for place in range(end - 1, start, -1):
        user.load[_parent(user, user.queue[place])] += user.load[user.queue[place]]


cdef void _tighten(User *user, Py_ssize_t edge) noexcept nogil:
    """Raise the multiplier of a violated edge until it is tight, letting go of what falls to zero."""
    cdef Py_ssize_t low = user.low[edge], high = user.high[edge], middle, end, blocking
    cdef double step, full
    while True:
        middle = _gather(user, low, 0)
        if user.above[high] >= 0 and _among(user, high, middle):
            _take_over(user, edge)
            continue
        end = _gather(user, high, middle)
        _weigh(user, 0, middle)
        _weigh(user, middle, end)
        full = max(user.z[low] + user.eps - user.z[high], 0.0) / (1.0 / user.load[low] + 1.0 / user.load[high])
        blocking, step = -1, full
        blocking = _blocking(user, 0, middle, True, &step, blocking)
        blocking = _blocking(user, middle, end, False, &step, blocking)
        _move(user, 0, middle, -step / user.load[low])
        _move(user, middle, end, step / user.load[high])
        user.dual[edge] += step
        if blocking < 0:
            _link(user, edge)
            return
        _unlink(user, blocking)


cdef bint _among(const User *user, Py_ssize_t node, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t place
    for place in range(count):
        if user.queue[place] == node:
            return True
    return False


cdef Py_ssize_t _blocking(
    const User *user, Py_ssize_t start, Py_ssize_t end, bint falls, double *step, Py_ssize_t blocking
) noexcept nogil:
    """The edge whose multiplier is first at zero when the tree moves, if that is within `step`, which it cuts.

    A tree that falls releases edges that enter a subtree, one that rises those that leave it, each by
    the subtree's share of the tree's mass.
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


cdef void _take_over(User *user, Py_ssize_t edge) noexcept nogil:
    """Both ends hang on one tree: send force round the circle until an edge of it lets go.

    The queue holds the tree from the edge's low end. On the way down from its high end, edges that point
    to the node they are left from release what the new edge takes over.
    """
    cdef Py_ssize_t node = user.high[edge], blocking = -1
    cdef double step = INFINITY
    while user.above[node] >= 0:
        if _enters(user, node) and user.dual[user.above[node]] < step:
            step, blocking = max(user.dual[user.above[node]], 0.0), user.above[node]
        node = _parent(user, node)
    node = user.high[edge]
    while user.above[node] >= 0:
        user.dual[user.above[node]] += -step if _enters(user, node) else step
        node = _parent(user, node)
    user.dual[edge] += step
    _unlink(user, blocking)


cdef void _from_duals(User *user) noexcept nogil:
    """z = x + W^-1 M dual."""
    cdef Py_ssize_t i, e
    for i in range(user.n):
        user.z[i] = user.x[i]
    for e in range(user.m):
        user.z[user.high[e]] += user.dual[e] / _mass(user, user.high[e])
        user.z[user.low[e]] -= user.dual[e] / _mass(user, user.low[e])


cdef double _gap(User *user) noexcept nogil:
    """Primal less dual value; leaves the nearest feasible point found in `repaired`.

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
    return max(gap, 0.0)
