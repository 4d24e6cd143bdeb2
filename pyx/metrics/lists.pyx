"""The items that a model may put on the first k places of each user's list, from the scores of a block of users.

Scores that tie at the end of the list leave several sets of items possible, each as likely as any other. So the
kernel gives every item of which the set is made its chance: 1 above the tie, and within it the number of places left
divided by the number of items. A list is found in one pass with a heap of the best k scores, O(items + hits x log k)
per user.
"""

import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport INFINITY
from libc.stdint cimport INT64_MAX, int32_t, int64_t

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats
from rankbench.kernels.shared.checks cimport agree, within
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.ranked cimport known
from rankbench.kernels.shared.rows cimport Pattern, PatternView

cdef struct Walk:
    # The items of one user that are left out of the list: those seen, unless they are held out. Both ascend.
    const int32_t *seen
    Py_ssize_t n_seen
    const int32_t *held_out
    Py_ssize_t n_held_out
    Py_ssize_t at  # the first item seen that was not looked at
    Py_ssize_t kept  # the first held-out item that is not below the last item seen

cdef struct End:
    # Where a list ends.
    double score  # the lowest on the list
    int64_t above  # candidates with a higher score
    int64_t level  # candidates with this score


cdef class Candidates:
    """The items that may stand on a user's list: all but those seen, and those held out, seen or not."""

    cdef PatternView seen
    cdef PatternView held_out
    cdef tuple owners

    def __init__(self, *, Pattern seen, Pattern held_out):
        """Take both patterns, without a copy; they have a row for every user."""
        agree("rows of held-out items", held_out.view.n, seen.view.n)
        self.seen, self.held_out, self.owners = seen.view, held_out.view, (seen, held_out)


def ends(
    *, const double[:, ::1] scores, const int32_t[::1] users, Candidates candidates, Py_ssize_t k, int threads
) -> tuple[Floats, Int64s]:
    """The lowest score on the list of k items of each of these users; row r of `scores` is that of users[r].

    Beside it, users x 2: how many candidates have a higher score, and how many have this one. A list with fewer
    candidates than k has all of them. NaN scores are one tie behind all others.
    """
    threads = team(threads)
    agree("rows of scores", scores.shape[0], users.shape[0])
    within("k", k, 1, INT64_MAX)
    found = np.full(users.shape[0], -np.inf), np.zeros((users.shape[0], 2), np.int64)
    cdef double[::1] lowest = found[0]
    cdef int64_t[:, ::1] counts = found[1]
    cdef Py_ssize_t row, size = min(k, scores.shape[1])
    if size == 0:
        return found
    cdef Arena arena = Arena(NULL, 0)
    cdef double *heap = floats(&arena, size)
    cdef Scratch scratch = Scratch(arena.used, threads)
    cdef End end
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        heap = floats(&arena, size)
        for row in prange(users.shape[0], schedule="dynamic"):
            end = _end(&scores[row, 0], scores.shape[1], _walk(candidates, users[row]), heap, size)
            lowest[row], counts[row, 0], counts[row, 1] = end.score, end.above, end.level
    return found


def members(
    *,
    const double[:, ::1] scores,
    const int32_t[::1] users,
    Candidates candidates,
    const double[::1] lowest,
    const int64_t[::1] indptr,
    int32_t[::1] items,
    int threads,
):
    """Fill in the candidates with at least the lowest score of each list: those of users[r] from indptr[r] on.

    They ascend. No more are written than indptr[r + 1] - indptr[r].
    """
    threads = team(threads)
    agree("rows of scores", scores.shape[0], users.shape[0])
    agree("lowest scores", lowest.shape[0], users.shape[0])
    agree("row pointers", indptr.shape[0], users.shape[0] + 1)
    agree("items of lists", items.shape[0], indptr[users.shape[0]])
    cdef Py_ssize_t row
    for row in prange(users.shape[0], nogil=True, schedule="dynamic", num_threads=threads):
        if indptr[row + 1] > indptr[row]:
            _members(
                &scores[row, 0], scores.shape[1], _walk(candidates, users[row]), lowest[row],
                &items[indptr[row]], indptr[row + 1] - indptr[row],
            )


cdef inline Walk _walk(Candidates candidates, Py_ssize_t user) noexcept nogil:
    """What is left out of one user's list."""
    cdef PatternView seen = candidates.seen, held_out = candidates.held_out
    return Walk(
        seen.columns + seen.indptr[user], seen.indptr[user + 1] - seen.indptr[user],
        held_out.columns + held_out.indptr[user], held_out.indptr[user + 1] - held_out.indptr[user], 0, 0,
    )


cdef inline Py_ssize_t _next_left_out(Walk *walk, Py_ssize_t n_items) noexcept nogil:
    """The next item that is left out; the number of items if there is none any more."""
    cdef int32_t item
    while walk.at < walk.n_seen:
        item = walk.seen[walk.at]
        walk.at += 1
        while walk.kept < walk.n_held_out and walk.held_out[walk.kept] < item:
            walk.kept += 1
        if walk.kept == walk.n_held_out or walk.held_out[walk.kept] != item:
            return item
    return n_items


cdef End _end(const double *scores, Py_ssize_t n_items, Walk walk, double *heap, Py_ssize_t k) noexcept nogil:
    """Where one user's list ends.

    Invariant: the heap, lowest first, holds the best `size` scores of the candidates before `first`, and above them
    none was dropped; `dropped` counts those that equal its lowest score.
    """
    cdef Py_ssize_t first = 0, stop, i, size = 0
    cdef double score
    cdef int64_t dropped = 0
    cdef End end = End(-INFINITY, 0, 0)
    while first < n_items:
        stop = _next_left_out(&walk, n_items)
        for i in range(first, stop):
            score = known(scores[i])
            if size < k:
                heap[size] = score
                size += 1
                _rise(heap, size - 1)
            elif score > heap[0]:
                end.score = heap[0]
                heap[0] = score
                _sink(heap, size)
                dropped = dropped + 1 if heap[0] == end.score else 0
            elif score == heap[0]:
                dropped += 1
        first = stop + 1
    if size > 0:
        end.score = heap[0]
        for i in range(size):
            end.above += heap[i] > end.score
        end.level = size - end.above + dropped
    return end


cdef inline void _rise(double *heap, Py_ssize_t place) noexcept nogil:
    """Move an entry up until the one above it is not higher."""
    cdef double moving = heap[place]
    while place > 0 and heap[(place - 1) // 2] > moving:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = moving


cdef inline void _sink(double *heap, Py_ssize_t size) noexcept nogil:
    """Move the first entry down until none below it is lower."""
    cdef double moving = heap[0]
    cdef Py_ssize_t place = 0, child = 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= moving:
            break
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = moving


cdef void _members(
    const double *scores, Py_ssize_t n_items, Walk walk, double lowest, int32_t *items, Py_ssize_t room
) noexcept nogil:
    """Write the candidates whose scores reach the lowest one of the list."""
    cdef Py_ssize_t first = 0, stop, i, count = 0
    while first < n_items:
        stop = _next_left_out(&walk, n_items)
        for i in range(first, stop):
            if count < room and known(scores[i]) >= lowest:
                items[count] = <int32_t> i
                count += 1
        first = stop + 1
