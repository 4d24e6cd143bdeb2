# Candidates in falling order of score, such as one user's: pairs of score and truth, sorted without the GIL, in memory
# that the caller brings. Where items are chosen, their negative numbers stand as truths, so that ties go by number.

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint64_t

from rankbench.kernels.shared.arena cimport Arena, taken
from rankbench.kernels.shared.counting cimport (
    Level, Reached, count_bits, first_bit, level_below, pad, places_of, reaching, sort_chosen, sort_pairs,
    which_reach,
)

cdef enum:
    RUN = 16  # so many are sorted by counting (`places_of` has room for no more), longer lists by merging
    _BITS = 64  # scores that are compared with a threshold at a time
    LEVELS = 12  # so many different truths are few: found one after the other, and not by sorting

cdef struct Item:
    double score
    double truth

cdef struct Tie:
    # Candidates of one score: they share the places place .. place + size - 1, counted from 0.
    Py_ssize_t place
    Py_ssize_t size
    Py_ssize_t first  # the held-out ones among them are the items first .. end - 1
    Py_ssize_t end

ctypedef fused Sortable:
    Item
    double

# The sort below has no branch that depends on the numbers sorted: of random ones a processor would mispredict every
# second. Each of up to RUN numbers goes to the place that the count of those before it gives. None may be NaN: it would
# leave places empty.


cdef inline Item *room_for_items(Arena *arena, Py_ssize_t n) noexcept nogil:
    """Scratch memory for n items, and RUN more, so that no short loop need end at the last one."""
    return <Item *> taken(arena, n + RUN, sizeof(Item))


cdef inline double known(double number) noexcept nogil:
    """The number, the least of all for NaN."""
    return number if number == number else -INFINITY


cdef inline void sort_items(Item *items, Item *scratch, Py_ssize_t n) noexcept nogil:
    """Arrange items best first; equal scores by falling truth, so that the order of the input never shows."""
    cdef Py_ssize_t first = 0, end, i
    cdef bint ties = False
    if n <= RUN:
        sort_pairs(<double *> items, n)
        return
    sort_falling(items, scratch, n)
    for i in range(1, n):
        ties |= items[i].score == items[i - 1].score
    while ties and first < n:
        end = end_of_tie(items, first, n)
        if end - first > 1:
            for i in range(first, end):
                items[i] = Item(items[i].truth, items[i].score)
            sort_falling(items + first, scratch, end - first)
            for i in range(first, end):
                items[i] = Item(items[i].truth, items[i].score)
        first = end


cdef inline void sort_falling(Sortable *entries, Sortable *scratch, Py_ssize_t n) noexcept nogil:
    """Arrange the entries by falling key, O(n log n). Invariant: `source` holds sorted runs of `width`."""
    cdef Py_ssize_t start = 0, width = RUN
    cdef Sortable *source = scratch
    cdef Sortable *target = entries
    cdef Sortable *swap
    while start < n:
        _sort_run(entries + start, scratch + start, min(<Py_ssize_t> RUN, n - start))
        start += RUN
    while width < n:
        start = 0
        while start < n:
            merge_falling(source + start, target + start, min(width, n - start), min(2 * width, n - start))
            start += 2 * width
        swap = source
        source = target
        target = swap
        width *= 2
    if source != entries:
        for start in range(n):
            entries[start] = source[start]


cdef inline void _sort_run(Sortable *entries, Sortable *sorted_run, Py_ssize_t n) noexcept nogil:
    """Copy up to RUN entries in falling order of key; equal keys stay as they stood."""
    cdef double keys[RUN]
    cdef int64_t place[RUN]
    cdef Py_ssize_t i
    for i in range(n):
        keys[i] = _key(entries[i])
    pad(keys, n)
    places_of(keys, n, place)
    for i in range(n):
        sorted_run[place[i]] = entries[i]


cdef inline int64_t merge_falling(
    Sortable *source, Sortable *target, Py_ssize_t middle, Py_ssize_t n
) noexcept nogil:
    """Merge two falling runs; how many pairs of a left and a strictly higher right entry were exchanged."""
    cdef int64_t exchanges = 0
    cdef Py_ssize_t left = 0, right = middle, place = 0, from_right
    while left < middle and right < n:
        from_right = _key(source[right]) > _key(source[left])
        target[place] = source[left + from_right * (right - left)]
        exchanges += from_right * (middle - left)  # all that still wait on the left are lower
        left += 1 - from_right
        right += from_right
        place += 1
    while left < middle:
        target[place] = source[left]
        left += 1
        place += 1
    while right < n:
        target[place] = source[right]
        right += 1
        place += 1
    return exchanges


cdef inline double _key(Sortable entry) noexcept nogil:
    """What is sorted by: an item's score, a number itself."""
    if Sortable is Item:
        return entry.score
    else:
        return entry


cdef inline Py_ssize_t take_best(
    const double *scores, const double *truth, Py_ssize_t n, Py_ssize_t places, Item *items, Item *scratch
) noexcept nogil:
    """The items that can stand on the first `places` places, best first, whole ties; how many they are."""
    cdef double least = _threshold(scores, n, places) if n > RUN and places <= n // 2 else -INFINITY
    cdef Py_ssize_t first = 0, i, count = 0
    cdef uint64_t reached
    if n <= _BITS:
        reached = which_reach(scores, n, least)
        count = count_bits(reached)
        if 0 < count <= RUN:
            sort_chosen(scores, truth, reached, count, <double *> items)
            return count
        count = 0
    while first < n:
        reached = which_reach(scores + first, min(<Py_ssize_t> _BITS, n - first), least)
        while reached:
            i = first + first_bit(reached)
            reached &= reached - 1
            items[count] = Item(scores[i], truth[i])
            count += 1
        first += _BITS
    sort_items(items, scratch, count)
    return count


cdef inline double _threshold(const double *scores, Py_ssize_t n, Py_ssize_t places) noexcept nogil:
    """A score that at least `places` > 0 of the n > 0 reach, mostly not half as many more, or not more than RUN.

    It is sought between two scores, of which too many reach one and too few the other, at the mean of those between. At
    least one in eight of them must be decided on; where that fails (ties, outliers, infinities) too many are kept.
    """
    cdef double least = -INFINITY, mean
    cdef Reached many = reaching(scores, n, least), few = Reached(0.0, 0), reached
    cdef int64_t between = n, before
    while many.count > max(<Py_ssize_t> RUN, places + places // 2):
        mean = (many.sum - few.sum) / between
        reached = reaching(scores, n, mean)
        before, between = between, many.count - reached.count if reached.count < places else reached.count - few.count
        if 8 * between > 7 * before:
            break
        if reached.count < places:
            few = reached
        else:
            least, many = mean, reached
    return least


cdef inline Py_ssize_t find_ties(const Item *items, Py_ssize_t n, Py_ssize_t places, Tie *ties) noexcept nogil:
    """The ties of items, all candidates there are, as far as they begin on the first places; how many they are."""
    cdef Py_ssize_t first = 0, end, count = 0, tied = 0, last = min(n, places)
    for end in range(1, min(n, last + 1)):
        tied += items[end].score == items[end - 1].score
    if tied == 0:
        for first in range(last):
            ties[first] = Tie(first, 1, first, first + 1)
        return last
    while first < last:
        end = end_of_tie(items, first, n)
        ties[count] = Tie(first, end - first, first, end)
        count += 1
        first = end
    return count


cdef inline Py_ssize_t end_of_tie(const Item *items, Py_ssize_t first, Py_ssize_t n) noexcept nogil:
    """One beyond the last item that has the score of item `first`."""
    cdef Py_ssize_t end = first + 1
    while end < n and items[end].score == items[first].score:
        end += 1
    return end


cdef inline void highest_truths(
    const double *truth, Py_ssize_t n, Py_ssize_t places, double *highest, double *scratch
) noexcept nogil:
    """The `places` highest truths, falling: level by level, O(n) each, by sorting once they are many."""
    cdef Level level = Level(INFINITY, 0)
    cdef Py_ssize_t i, _level, filled = 0
    for _level in range(LEVELS):
        level = level_below(truth, n, level.value)
        for i in range(filled, places):  # more than there are, which does not wait for the count
            highest[i] = level.value
        filled += level.count
        if filled >= places:
            return
    for i in range(n):
        highest[i] = known(truth[i])
    sort_falling(highest, scratch, n)
