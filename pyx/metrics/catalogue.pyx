"""Metrics of places with all items of the catalogue as candidates, from the scores of a block of users.

The catalogue is not sorted. Only the user's few held-out items are, and one pass over the scores counts for each of
them how many candidates have a higher score and how many have the same one. Each score is compared with a few held-out
ones, or searched among many: O(items x log held-out ones) per user.
"""

# Roof of per_user, a score: 8 bytes; 2 flops.

from cython.parallel cimport parallel, prange
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t

from rankbench.kernels.metrics.places cimport Depth, Places, deepened, enough_discounts, metric_of_places, of_places
from rankbench.kernels.metrics.requests cimport RequestView, Requests, request_at
from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, longs, taken
from rankbench.kernels.shared.counting cimport Sides, sides_of
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.ranked cimport Item, Tie, end_of_tie, highest_truths, known, room_for_items, sort_items
from rankbench.kernels.shared.rows cimport Pattern, SparseRows

cdef enum:
    _FIRST = 64  # scores before the first look at which marks still matter; twice as many before each further one ..
    _CHUNK = 1024  # .. up to so many
    _FEW = 32  # marks that are compared with every score sooner than they are searched

cdef struct Memory:
    # Scratch memory of one thread, for the held-out items of one user.
    Item *items  # best first
    Item *scratch
    Tie *ties
    double *highest  # truths, falling
    double *marks  # the scores of the ties, rising
    int64_t *above  # candidates with a score above this mark and below the next one
    int64_t *level  # candidates with the very score of this mark

cdef struct Rows:
    # Some items of one user, ascending.
    Py_ssize_t n
    const int32_t *items
    const double *truth  # NULL where it does not matter

cdef struct User:
    Py_ssize_t n_items  # of the catalogue
    const double *scores  # of all items
    Rows held_out
    Rows seen
    Py_ssize_t n_ties
    Memory memory


def per_user(
    *,
    const double[:, ::1] scores,
    const int32_t[::1] users,
    SparseRows held_out,
    Pattern seen,
    Requests requests,
    double[:, ::1] out,
    int threads,
):
    """Fill out[metric, user] for these users, who all have held-out items; row r of `scores` is that of users[r].

    Items seen are no candidates, unless they are held out. NaN scores rank behind all others.
    """
    threads = team(threads)
    if scores.shape[0] != users.shape[0] or held_out.view.n != seen.view.n:
        raise ValueError("there must be a row of scores for each of these users, and of items seen for every user")
    if out.shape[0] != requests.view.n or out.shape[1] != held_out.view.n:
        raise ValueError("there must be a row of `out` for each metric, and a column for every user")
    cdef Py_ssize_t longest = 0, place
    for place in range(users.shape[0]):
        longest = max(longest, held_out.view.indptr[users[place] + 1] - held_out.view.indptr[users[place]])
    cdef Depth depth = _depth(&requests.view)
    enough_discounts(requests, scores.shape[1])
    if requests.view.n == 0:
        return
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, longest)
    cdef Scratch scratch = Scratch(arena.used, threads)
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out(&arena, longest)
        for place in prange(users.shape[0], schedule="dynamic"):
            _measure(
                User(
                    scores.shape[1], &scores[place, 0],
                    _held_out(held_out, users[place]), _seen(seen, users[place]), 0, memory,
                ),
                &requests.view, depth, &out[0, users[place]], out.shape[1],
            )


cdef Memory _lay_out(Arena *arena, Py_ssize_t n) noexcept nogil:
    """Room for n held-out items."""
    return Memory(
        room_for_items(arena, n), room_for_items(arena, n),
        <Tie *> taken(arena, n, sizeof(Tie)), floats(arena, n), floats(arena, n), longs(arena, n), longs(arena, n),
    )


cdef Depth _depth(const RequestView *asked):
    """How far the metrics look; a ValueError if one of them is no metric of places."""
    cdef Depth depth = Depth(0, 0)
    cdef Py_ssize_t m
    for m in range(asked.n):
        if not of_places(asked.codes[m]):
            raise ValueError(f"the metric with the code {asked.codes[m]} does not depend on places alone")
        depth = deepened(depth, request_at(asked, m))
    return depth


cdef inline Rows _held_out(SparseRows rows, Py_ssize_t user) noexcept nogil:
    """The held-out items of one user."""
    cdef Py_ssize_t first = rows.view.indptr[user]
    return Rows(rows.view.indptr[user + 1] - first, rows.view.columns + first, rows.view.values + first)


cdef inline Rows _seen(Pattern rows, Py_ssize_t user) noexcept nogil:
    """The items that one user has seen."""
    cdef Py_ssize_t first = rows.view.indptr[user]
    return Rows(rows.view.indptr[user + 1] - first, rows.view.columns + first, NULL)


cdef void _measure(
    User user, const RequestView *asked, Depth depth, double *out, Py_ssize_t stride
) noexcept nogil:
    """Write one user's metrics to out[0], out[stride], ..."""
    cdef Places places = _prepare(&user, depth)
    cdef Py_ssize_t m
    for m in range(asked.n):
        out[m * stride] = metric_of_places(&places, request_at(asked, m), asked.discounts)


cdef Places _prepare(User *user, Depth depth) noexcept nogil:
    """Sort the held-out items and find the places of their ties among all candidates."""
    cdef Memory memory = user.memory
    cdef Rows held_out = user.held_out
    cdef Py_ssize_t i, candidates
    if depth.highest > 0:
        highest_truths(
            held_out.truth, held_out.n, min(depth.highest, held_out.n), memory.highest, <double *> memory.scratch
        )
    for i in range(held_out.n):
        memory.items[i] = Item(known(user.scores[held_out.items[i]]), known(held_out.truth[i]))
    sort_items(memory.items, memory.scratch, held_out.n)
    user.n_ties = _mark(&memory, held_out.n)
    candidates = user.n_items - _leave_out(user)
    _count(user, depth.places)
    _place(user)
    return Places(
        True, candidates, held_out.n, held_out.truth, memory.highest, memory.items, memory.ties, user.n_ties
    )


cdef Py_ssize_t _mark(Memory *memory, Py_ssize_t n) noexcept nogil:
    """Find the ties of n held-out items and their scores, rising; how many ties. Their places are still unknown."""
    cdef Py_ssize_t first = 0, end, count = 0, t
    while first < n:
        end = end_of_tie(memory.items, first, n)
        memory.ties[count] = Tie(0, 0, first, end)
        count += 1
        first = end
    for t in range(count):
        memory.marks[t] = memory.items[memory.ties[count - 1 - t].first].score
        memory.above[t] = 0
        memory.level[t] = 0
    return count


cdef inline void _note(const User *user, Py_ssize_t lowest, double score, int64_t weight) noexcept nogil:
    """Count a score between its two marks, or as level with a mark that it equals; none below `lowest` is looked at.

    A binary search. Invariant: the first mark that is not below the score, if there is one from `lowest` on, is
    among the n marks from `place` on.
    """
    cdef Py_ssize_t place = lowest, n = user.n_ties - lowest, half
    while n > 1:
        half = n // 2
        place += half * (user.memory.marks[place + half - 1] < score)
        n -= half
    if user.memory.marks[place] == score:
        user.memory.level[place] += weight
    elif user.memory.marks[place] < score:
        user.memory.above[place] += weight
    elif place > 0:
        user.memory.above[place - 1] += weight


cdef Py_ssize_t _leave_out(User *user) noexcept nogil:
    """Subtract the seen items that are not held out from the counts, before all items are added; how many they are."""
    cdef Rows held_out = user.held_out
    cdef Py_ssize_t i, place = 0, count = 0
    for i in range(user.seen.n):
        while place < held_out.n and held_out.items[place] < user.seen.items[i]:
            place += 1
        if place == held_out.n or held_out.items[place] != user.seen.items[i]:
            _note(user, 0, known(user.scores[user.seen.items[i]]), -1)
            count += 1
    return count


cdef void _count(const User *shared, Py_ssize_t furthest_place) noexcept nogil:
    """Count every item's score among the marks.

    A mark with as many candidates above it as there are places that matter cannot matter any more: scores below
    the lowest mark that still may are passed over, most of them soon. Nothing is left to count once no mark may.
    Invariant: for the marks from `lowest` on, `above` and `level` are right for the items before `first`.
    """
    cdef User user = shared[0]
    cdef Py_ssize_t first = 0, lowest = 0, chunk = _FIRST, n
    while first < user.n_items and lowest < user.n_ties:
        n = min(chunk, user.n_items - first)
        if user.n_ties - lowest <= _FEW:
            _compare_all(&user, lowest, user.scores + first, n)
        else:
            _search_all(&user, lowest, user.scores + first, n)
        first += n
        chunk = min(2 * chunk, <Py_ssize_t> _CHUNK)
        while lowest < user.n_ties and _above(&user, lowest) >= furthest_place:
            lowest += 1


cdef inline void _compare_all(const User *user, Py_ssize_t lowest, const double *scores, Py_ssize_t n) noexcept nogil:
    """Count these scores among the marks from `lowest` on, mark by mark."""
    cdef Py_ssize_t mark
    cdef Sides sides
    for mark in range(lowest, user.n_ties):
        sides = sides_of(scores, n, user.memory.marks[mark])
        if user.memory.marks[mark] == -INFINITY:
            sides.level = n - sides.above  # NaN is level with it, too
        user.memory.above[mark] += sides.above
        user.memory.level[mark] += sides.level
        if mark > lowest:
            user.memory.above[mark - 1] -= sides.above + sides.level


cdef inline void _search_all(const User *user, Py_ssize_t lowest, const double *scores, Py_ssize_t n) noexcept nogil:
    """Count these scores among the marks from `lowest` on, score by score."""
    cdef Py_ssize_t i
    cdef double score
    for i in range(n):
        score = known(scores[i])
        if score >= user.memory.marks[lowest]:
            _note(user, lowest, score, 1)


cdef inline int64_t _above(const User *user, Py_ssize_t mark) noexcept nogil:
    """How many candidates were counted above a mark."""
    cdef int64_t count = user.memory.above[mark]
    cdef Py_ssize_t t
    for t in range(mark + 1, user.n_ties):
        count += user.memory.above[t] + user.memory.level[t]
    return count


cdef void _place(User *user) noexcept nogil:
    """Give the ties their places, best first; those that cannot matter stand behind all places that do."""
    cdef int64_t above = 0
    cdef Py_ssize_t t, mark
    cdef Tie *tie
    for t in range(user.n_ties):
        mark = user.n_ties - 1 - t
        tie = &user.memory.ties[t]
        above += user.memory.above[mark]
        tie.place = above
        tie.size = max(user.memory.level[mark], tie.end - tie.first)
        above += user.memory.level[mark]
