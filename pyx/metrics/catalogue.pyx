"""Metrics of places with the whole catalogue as candidates, from the scores of a block of users.

The catalogue is not sorted: the user's few held-out items are, and one pass over the scores counts for each
how many candidates stand above it and level with it, O(items x log held-out ones).
"""

from cython.parallel cimport parallel, prange
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankbench.kernels.metrics.codes cimport NDCG, NDCG_LINEAR
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.metrics.places cimport (
    Places,
    Request,
    furthest,
    metric_of_places,
)
from rankbench.kernels.metrics.ranked cimport Item, Tie, end_of_tie, highest_truths, sort_items

cdef enum:
    _CHUNK = 1024  # scores between two looks at who is still in the running

cdef struct User:
    # One user's held-out items and what is counted for them, in the thread's own memory.
    Places places
    Item *items  # best first
    Item *scratch
    Tie *ties
    double *highest
    double *marks  # the scores of the ties, rising
    int64_t *above  # candidates above the marks before this one and not above it
    int64_t *level  # candidates with this mark's very score

cdef enum:
    _BYTES = 2 * sizeof(Item) + sizeof(Tie) + 2 * sizeof(double) + 2 * sizeof(int64_t)

cdef struct Rows:
    # Some items of one user, ascending.
    Py_ssize_t n
    const int32_t *items
    const double *truth


def per_user(
    const double[:, ::1] scores,
    const int32_t[::1] users,
    const int64_t[::1] indptr,
    const int32_t[::1] items,
    const double[::1] truth,
    const int64_t[::1] seen_indptr,
    const int32_t[::1] seen_items,
    const int32_t[::1] codes,
    const int32_t[::1] cuts,
    const double[::1] thresholds,
    const double[::1] discounts,
    double[:, ::1] out,
    int threads,
):
    """Fill out[metric, user] for these users, who all have held-out items; a row of scores is one user's.

    Items seen are no candidates, unless they are held out. NaN scores stand behind all others.
    """
    threads = team(threads)
    cdef Py_ssize_t n_metrics = codes.shape[0], longest = 0, place, user, m
    for place in range(users.shape[0]):
        longest = max(longest, indptr[users[place] + 1] - indptr[users[place]])
    cdef char *memory = <char *> malloc(threads * (longest + 1) * _BYTES)
    cdef User *members = <User *> malloc(threads * sizeof(User))
    cdef Request *requests = <Request *> malloc((n_metrics + 1) * sizeof(Request))
    cdef User *member = members
    cdef Py_ssize_t furthest_place = 0, highest = 0
    try:
        if memory == NULL or members == NULL or requests == NULL:
            raise MemoryError
        for m in range(n_metrics):
            requests[m] = Request(codes[m], cuts[m], thresholds[m])
            furthest_place = max(furthest_place, furthest(requests[m]))
            if codes[m] == NDCG or codes[m] == NDCG_LINEAR:
                highest = max(highest, furthest(requests[m]))
        with nogil, parallel(num_threads=threads):
            member = &members[thread_id()]
            _lay_out(member, memory + thread_id() * (longest + 1) * _BYTES, longest + 1)
            for place in prange(users.shape[0], schedule="dynamic"):
                user = users[place]
                _prepare(
                    member, &scores[place, 0], scores.shape[1], _rows(indptr, items, truth, user),
                    _seen(seen_indptr, seen_items, user), furthest_place, highest,
                )
                for m in range(n_metrics):
                    out[m, user] = metric_of_places(&member.places, requests[m], &discounts[0])
    finally:
        free(memory)
        free(members)
        free(requests)


cdef Rows _rows(
    const int64_t[::1] indptr, const int32_t[::1] items, const double[::1] truth, Py_ssize_t user
) noexcept nogil:
    return Rows(indptr[user + 1] - indptr[user], &items[indptr[user]], &truth[indptr[user]])


cdef Rows _seen(const int64_t[::1] indptr, const int32_t[::1] items, Py_ssize_t user) noexcept nogil:
    if indptr[user + 1] == indptr[user]:
        return Rows(0, NULL, NULL)
    return Rows(indptr[user + 1] - indptr[user], &items[indptr[user]], NULL)


cdef void _lay_out(User *user, char *memory, Py_ssize_t n) noexcept nogil:
    """Hand a thread's memory to its user."""
    user.items = <Item *> memory
    user.scratch = user.items + n
    user.ties = <Tie *> (user.scratch + n)
    user.highest = <double *> (user.ties + n)
    user.marks = user.highest + n
    user.above = <int64_t *> (user.marks + n)
    user.level = user.above + n


cdef void _prepare(
    User *user, const double *scores, Py_ssize_t n_items, Rows held_out, Rows seen,
    Py_ssize_t furthest_place, Py_ssize_t highest,
) noexcept nogil:
    """Sort the held-out items and find their ties' places among all candidates."""
    cdef Py_ssize_t n = held_out.n, i, n_ties
    if highest > 0:
        highest_truths(held_out.truth, n, min(highest, n), user.highest, <double *> user.scratch)
    for i in range(n):
        user.items[i] = Item(_known(scores[held_out.items[i]]), held_out.truth[i])
    sort_items(user.items, user.scratch, n)
    n_ties = _mark(user, n)
    i = n_items - _leave_out(user, n_ties, scores, held_out, seen)
    _count(user, n_ties, scores, n_items, furthest_place)
    _place(user, n_ties)
    user.places = Places(True, i, n, held_out.truth, user.highest, user.items, user.ties, n_ties)


cdef inline double _known(double score) noexcept nogil:
    """The score, the least of all for NaN."""
    return score if score == score else -INFINITY


cdef Py_ssize_t _mark(User *user, Py_ssize_t n) noexcept nogil:
    """The ties of the held-out items, their places still open, and their scores, rising; how many there are."""
    cdef Py_ssize_t first = 0, end, count = 0, t
    while first < n:
        end = end_of_tie(user.items, first, n)
        user.ties[count] = Tie(0, 0, first, end)
        count += 1
        first = end
    for t in range(count):
        user.marks[t] = user.items[user.ties[count - 1 - t].first].score
        user.above[t] = 0
        user.level[t] = 0
    return count


cdef inline void _note(
    User *user, Py_ssize_t lowest, Py_ssize_t n_ties, double score, int64_t weight
) noexcept nogil:
    """Count a score between its two marks, and as level with the upper one where it is that."""
    cdef Py_ssize_t place = lowest, n = n_ties - lowest, half
    while n > 1:
        half = n // 2
        place += half * (user.marks[place + half - 1] < score)
        n -= half
    if user.marks[place] == score:
        user.level[place] += weight
    elif user.marks[place] < score:
        user.above[place] += weight
    elif place > 0:
        user.above[place - 1] += weight


cdef Py_ssize_t _leave_out(
    User *user, Py_ssize_t n_ties, const double *scores, Rows held_out, Rows seen
) noexcept nogil:
    """Count seen items down before all are counted up; those held out besides stay. How many are left out."""
    cdef Py_ssize_t i, place = 0, count = 0
    for i in range(seen.n):
        while place < held_out.n and held_out.items[place] < seen.items[i]:
            place += 1
        if place == held_out.n or held_out.items[place] != seen.items[i]:
            _note(user, 0, n_ties, _known(scores[seen.items[i]]), -1)
            count += 1
    return count


cdef void _count(
    User *user, Py_ssize_t n_ties, const double *scores, Py_ssize_t n_items, Py_ssize_t furthest_place
) noexcept nogil:
    """Count every item's score among the marks.

    A mark with as many candidates above it as there are places that matter is out of the running: scores
    below the lowest mark still in are passed over, most of them soon, and without any left nothing counts.
    """
    cdef Py_ssize_t i, first = 0, lowest = 0
    cdef double score
    while first < n_items and lowest < n_ties:
        for i in range(first, min(first + _CHUNK, n_items)):
            score = _known(scores[i])
            if score >= user.marks[lowest]:
                _note(user, lowest, n_ties, score, 1)
        first += _CHUNK
        while lowest < n_ties and _above(user, lowest, n_ties) >= furthest_place:
            lowest += 1


cdef inline int64_t _above(const User *user, Py_ssize_t mark, Py_ssize_t n_ties) noexcept nogil:
    """How many candidates were counted above a mark."""
    cdef int64_t count = user.above[mark]
    cdef Py_ssize_t t
    for t in range(mark + 1, n_ties):
        count += user.above[t] + user.level[t]
    return count


cdef void _place(User *user, Py_ssize_t n_ties) noexcept nogil:
    """Give the ties their places, best first. One that fell out of the running stands behind all that matter."""
    cdef int64_t above = 0
    cdef Py_ssize_t t, mark
    for t in range(n_ties):
        mark = n_ties - 1 - t
        above += user.above[mark]
        user.ties[t].place = above
        user.ties[t].size = max(user.level[mark], user.ties[t].end - user.ties[t].first)
        above += user.level[mark]
