# Sorting without the GIL: stable, no allocation, O(n log n).

from libc.stdint cimport int32_t
from libc.stdlib cimport qsort

cdef enum:
    RUN = 16
    MANY = 32


cdef inline void argsort(
    const double *keys, int32_t *order, int32_t *scratch, Py_ssize_t n
) noexcept nogil:
    """Arrange the indices in `order` so that keys[order] ascends; equal keys keep their order.

    Runs of RUN are sorted by insertion, then merged pairwise from `source` into
    `target`, which doubles their length.
    """
    cdef Py_ssize_t start = 0, width = RUN
    cdef int32_t *source = order
    cdef int32_t *target = scratch
    cdef int32_t *swap
    while start < n:
        _insertion_sort(keys, order + start, min(<Py_ssize_t> RUN, n - start))
        start += RUN
    while width < n:
        start = 0
        while start < n:
            _merge(keys, source + start, target + start, min(width, n - start), min(2 * width, n - start))
            start += 2 * width
        swap = source
        source = target
        target = swap
        width *= 2
    if source != order:
        for start in range(n):
            order[start] = source[start]


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
