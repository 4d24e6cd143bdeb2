# Sorting without the GIL: stable, no allocation, O(n log n).

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy

from rankbench.kernels.shared.counting cimport distinct_places_of

cdef enum:
    RUN = 16
    MANY = 32


cdef inline void argsort(
    const double *keys, int32_t *order, int32_t *scratch, Py_ssize_t n
) noexcept nogil:
    """Arrange the indices in `order` so that keys[order] ascends; equal keys keep their order.

    What is nearly sorted is sorted by a few moves. Else runs of RUN are sorted, then merged pairwise from `source` into
    `target`, which doubles their length.
    """
    cdef Py_ssize_t start = 0, width = RUN
    cdef int32_t *source = order
    cdef int32_t *target = scratch
    cdef int32_t *swap
    cdef bint numbers = True  # none is NaN, which is neither below nor above anything
    if _sorted_by_few_moves(keys, order, n):
        return
    while start < n:
        numbers &= _sort_run(keys, order + start, min(<Py_ssize_t> RUN, n - start))
        start += RUN
    while width < n:
        start = 0
        while start < n:
            if numbers and n - start >= 2 * width and keys[source[start + width // 2]] > keys[source[start + width]]:
                _merge_halves(keys, source + start, target + start, width)
            else:
                _merge(keys, source + start, target + start, min(width, n - start), min(2 * width, n - start))
            start += 2 * width
        swap = source
        source = target
        target = swap
        width *= 2
    if source != order:
        memcpy(order, source, n * sizeof(int32_t))


cdef inline bint _sorted_by_few_moves(const double *keys, int32_t *order, Py_ssize_t n) noexcept nogil:
    """Sort by insertion, unless that takes about a third as many moves as indices; whether all is sorted. NaN never is.

    That is known early: each index adds 1 to what is left to be spent, each move by a place costs 3.
    """
    cdef Py_ssize_t i, j, left = 8
    cdef int32_t moving
    for i in range(1, n):
        moving, left, j = order[i], left + 1, i
        if keys[order[i - 1]] <= keys[moving]:
            continue
        while j > 0 and keys[order[j - 1]] > keys[moving]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = moving
        left -= 3 * (i - j)
        if left < 0 or i == j:
            return False
    return True


cdef inline bint _sort_run(const double *keys, int32_t *order, Py_ssize_t n) noexcept nogil:
    """Sort up to RUN indices, by counting if their keys all differ, else by insertion; whether no key is NaN."""
    cdef double falling[RUN]
    cdef int64_t place[RUN]
    cdef int32_t before[RUN]
    cdef Py_ssize_t i
    for i in range(n):
        before[i] = order[i]
        falling[i] = -keys[order[i]]
    for i in range(n, RUN):
        falling[i] = -INFINITY
    if distinct_places_of(falling, n, place):
        for i in range(n):
            order[place[i]] = before[i]
        return True
    _insertion_sort(keys, order, n)
    for i in range(n):
        if falling[i] != falling[i]:
            return False
    return True


cdef inline void _insertion_sort(const double *keys, int32_t *order, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef int32_t moving
    for i in range(1, n):
        moving = order[i]
        j = i
        while j > 0 and keys[order[j - 1]] > keys[moving]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = moving


cdef inline void _merge(
    const double *keys, const int32_t *source, int32_t *target, Py_ssize_t middle, Py_ssize_t n
) noexcept nogil:
    """Merge the sorted source[:middle] and source[middle:n]; on a tie the left one goes first."""
    cdef Py_ssize_t left = 0, right = middle, place
    for place in range(n):
        if right >= n or (left < middle and keys[source[left]] <= keys[source[right]]):
            target[place] = source[left]
            left += 1
        else:
            target[place] = source[right]
            right += 1


cdef inline void _merge_halves(
    const double *keys, const int32_t *source, int32_t *target, Py_ssize_t half
) noexcept nogil:
    """Merge two sorted halves of the same length, whose keys are mixed: from both ends at a time, without branches.

    Which half goes next is random there, so a branch would be mispredicted. Each end fills `half` places, and in so few
    steps neither half can be used up.
    """
    cdef Py_ssize_t place, left = 0, right = half, last_left = half - 1, last_right = 2 * half - 1
    cdef bint from_left, from_right
    for place in range(half):
        from_left = keys[source[left]] <= keys[source[right]]
        target[place] = source[left] if from_left else source[right]
        left += from_left
        right += not from_left
        from_right = keys[source[last_left]] <= keys[source[last_right]]
        target[2 * half - 1 - place] = source[last_right] if from_right else source[last_left]
        last_right -= from_right
        last_left -= not from_right


cdef inline void in_order(int32_t *order, Py_ssize_t n) noexcept nogil:
    """Fill `order` with 0 .. n-1."""
    cdef Py_ssize_t place
    for place in range(n):
        order[place] = <int32_t> place


cdef inline void sort32(int32_t *numbers, size_t n) noexcept nogil:
    """Sort the numbers in ascending order; by insertion if there are few."""
    cdef size_t i, place
    cdef int32_t moving
    if n > MANY:
        qsort(numbers, n, sizeof(int32_t), _compare32)
        return
    for i in range(1, n):
        moving = numbers[i]
        place = i
        while place > 0 and numbers[place - 1] > moving:
            numbers[place] = numbers[place - 1]
            place -= 1
        numbers[place] = moving


cdef inline int _compare32(const void *a, const void *b) noexcept nogil:
    cdef int32_t x = (<const int32_t *> a)[0], y = (<const int32_t *> b)[0]
    return (x > y) - (x < y)
