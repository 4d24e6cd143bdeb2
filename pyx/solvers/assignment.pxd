# The order of n items that is worth most: an assignment problem whose matrix is never formed.
#
# Item t at place l is worth weight_l f_t - discount_l gain_t, and only the first k places have a discount.
# Without discounts the best order is by falling f. They come in place by place, and each changes the best order along
# one shortest path (Jonker and Volgenant 1987). The places that have no discount yet, the rest, hold their items by
# falling f, whichever these are: so what it costs if one of them leaves and another comes follows from running sums,
# and paths lead over the places with a discount alone. O(k^2 n), where a general assignment problem is O(n^3).
#
# With weights w_l and scores f_l at the places of the rest: if the item at j leaves and one with score f comes in at
# i > j, those between move up, and the rest gains w_i f - w_j f_j + sum_{j < l <= i} (w_{l-1} - w_l) f_l; if it comes
# in at i <= j, they move down, and the rest gains w_i f - w_j f_j + sum_{i <= l < j} (w_{l+1} - w_l) f_l.

from libc.math cimport INFINITY
from libc.stdint cimport INT32_MAX, int32_t

from rankbench.kernels.shared.arena cimport Arena, floats, ints
from rankbench.kernels.shared.sorting cimport argsort, in_order

cdef enum:
    SIDE_BY_SIDE = 8  # places whose items are looked for in one pass

cdef struct Assignment:
    Py_ssize_t n
    Py_ssize_t k
    const double *weights  # by place, falling and positive
    const double *discounts  # of the first k places
    # by item, items by falling f:
    int32_t *order
    int32_t *place_of
    double *scores
    double *item_gains
    # by place:
    int32_t *item_of
    double *f  # score and gain of its item
    double *gains
    double *rises  # of the rest: what it gains if this item leaves and those behind move up, up to a constant
    double *falls  # ... and if those before it move down
    double *before  # the most of a place's worth of an item of the rest and what the rest gains by it, up to here
    double *behind  # ... and from here on
    # by place with a discount:
    int32_t *next_item  # what it gets on the path
    int32_t *entries  # where in the rest its item would stand
    int32_t *previous  # the place from which the shortest path comes
    int32_t *following  # the place to which it goes
    int32_t *reached
    double *prices
    double *distances
    double *lengths


cdef extern from *:
    """
    #include <string.h>

    typedef double rankbench_two __attribute__((vector_size(16)));
    typedef long long rankbench_masks __attribute__((vector_size(16)));

    /* best[lane] = max over places of weights[lane] f - discounts[lane] gain + change, in eight lanes. */
    static inline void rankbench_highest(
        const double *weights, const double *discounts, const double *f, const double *gains, const double *changes,
        Py_ssize_t first, Py_ssize_t last, double *best
    ) {
        rankbench_two most[4], weight[4], discount[4], worth;
        rankbench_masks above;
        Py_ssize_t place;
        int part;
        for (part = 0; part < 8; part++)
            best[part] = -INFINITY;
        memcpy(most, best, sizeof most);
        memcpy(weight, weights, sizeof weight);
        memcpy(discount, discounts, sizeof discount);
        for (place = first; place < last; place++)
            for (part = 0; part < 4; part++) {
                worth = weight[part] * f[place] - discount[part] * gains[place] + changes[place];
                above = worth > most[part];
                most[part] = (rankbench_two) (
                    ((rankbench_masks) worth & above) | ((rankbench_masks) most[part] & ~above)
                );
            }
        memcpy(best, most, sizeof most);
    }
    """
    void _highest "rankbench_highest" (
        const double *weights, const double *discounts, const double *f, const double *gains, const double *changes,
        Py_ssize_t first, Py_ssize_t last, double *best
    ) noexcept nogil


cdef inline Assignment lay_out_assignment(
    Arena *arena, Py_ssize_t longest, const double *weights, const double *discounts, Py_ssize_t k
) noexcept nogil:
    """Room for an assignment of up to `longest` items to places with these weights, of which k have a discount."""
    return Assignment(
        0, k, weights, discounts, ints(arena, longest), ints(arena, longest), floats(arena, longest),
        floats(arena, longest), ints(arena, longest), floats(arena, longest), floats(arena, longest),
        floats(arena, longest), floats(arena, longest), floats(arena, longest), floats(arena, longest),
        ints(arena, k), ints(arena, k), ints(arena, k), ints(arena, k), ints(arena, k), floats(arena, k),
        floats(arena, k), floats(arena, k),
    )


cdef inline void best_places(
    Assignment *a, const double *f, const double *gains, Py_ssize_t n, int32_t *places
) noexcept nogil:
    """Write each item's place in the order that is worth most to `places`; if k exceeds n, n counts instead."""
    cdef Py_ssize_t t, place
    a.n = n
    in_order(a.order, n)
    for t in range(n):
        a.before[t] = -f[t]
    argsort(a.before, a.order, a.item_of, n)
    for t in range(n):
        a.scores[t] = f[a.order[t]]
        a.item_gains[t] = gains[a.order[t]]
        _put(a, t, t)
    _sum_moves(a, 0)
    for place in range(min(a.k, n)):
        _add_discount(a, place)
    for t in range(n):
        places[a.order[t]] = a.place_of[t]


cdef inline void _put(Assignment *a, Py_ssize_t item, Py_ssize_t place) noexcept nogil:
    """Let this place hold the item."""
    a.place_of[item] = <int32_t> place
    a.item_of[place] = <int32_t> item
    a.f[place] = a.scores[item]
    a.gains[place] = a.item_gains[item]


cdef inline void _sum_moves(Assignment *a, Py_ssize_t first) noexcept nogil:
    """Fill in what the rest gains by moves, for the rest from place `first` on."""
    cdef double rise = 0.0, fall = 0.0
    cdef Py_ssize_t place
    for place in range(first, a.n):
        if place > first:
            rise += (a.weights[place - 1] - a.weights[place]) * a.f[place]
            fall += (a.weights[place] - a.weights[place - 1]) * a.f[place - 1]
        a.rises[place] = -a.weights[place] * a.f[place] - rise
        a.falls[place] = fall - a.weights[place] * a.f[place]


cdef inline void _add_discount(Assignment *a, Py_ssize_t added) noexcept nogil:
    """Give the next place its discount, and change the order along the shortest path that ends with its item.

    Invariant: length(x, y) - price_x + price_y >= 0 for all places x and y with a discount, where the length is what
    is lost when x gets y's item, or one of the rest, which then gets y's item.
    """
    cdef Py_ssize_t x = added, nearest, y
    cdef double start = 0.0, length
    _find_entries(a, added)
    a.prices[added] = _least_price(a, added)
    for y in range(added + 1):
        a.distances[y] = INFINITY
        a.reached[y] = 0
    while True:
        _measure(a, x, added)
        nearest = added
        for y in range(added, -1, -1):
            if a.reached[y]:
                continue
            length = start + a.lengths[y] + a.prices[y]
            if length < a.distances[y]:
                a.distances[y] = length
                a.previous[y] = <int32_t> x
            if a.distances[y] < a.distances[nearest]:
                nearest = y
        if nearest == added:
            break
        x = nearest
        a.reached[x] = 1
        start = a.distances[x] - a.prices[x]
    for y in range(added):
        if a.reached[y]:
            a.prices[y] += a.distances[added] - a.distances[y]
    a.prices[added] = a.distances[added]
    _follow(a, <int32_t> added)


cdef inline void _find_entries(Assignment *a, Py_ssize_t added) noexcept nogil:
    """Find where in the rest, behind the place `added`, the item of each place with a discount would stand."""
    cdef Py_ssize_t y, x
    cdef int32_t behind
    for y in range(added + 1):
        behind = 0
        for x in range(added + 1):
            behind += a.item_of[x] > a.item_of[y]
        a.entries[y] = a.item_of[y] + behind + 1


cdef inline double _least_price(Assignment *a, Py_ssize_t added) noexcept nogil:
    """The least price of a place that keeps the invariant, as one whose item others may get."""
    cdef double weights[SIDE_BY_SIDE]
    cdef double discounts[SIDE_BY_SIDE]
    cdef double best[SIDE_BY_SIDE]
    cdef Py_ssize_t block, lane, x, first = added + 1
    cdef double own = a.weights[added] * a.f[added], price = -INFINITY, change = 0.0, worth
    if added == 0:
        return 0.0
    if first < a.n:
        change = a.weights[first] * (a.f[added] - a.f[first]) - a.falls[first]
    for block in range((added - 1) // SIDE_BY_SIDE + 1):
        for lane in range(SIDE_BY_SIDE):
            x = min(block * SIDE_BY_SIDE + lane, added - 1)
            weights[lane], discounts[lane] = a.weights[x], a.discounts[x]
        _highest(weights, discounts, a.f, a.gains, a.falls, first, a.n, best)
        for lane in range(SIDE_BY_SIDE):
            x = min(block * SIDE_BY_SIDE + lane, added - 1)
            worth = max(best[lane] + change, weights[lane] * a.f[added] - discounts[lane] * a.gains[added])
            price = max(price, a.prices[x] + worth - own)
    return price


cdef inline void _measure(Assignment *a, Py_ssize_t x, Py_ssize_t added) noexcept nogil:
    """Fill `lengths`: what is lost when place x gets y's item, or one of the rest, and the rest y's.

    The place `added` loses as one without a discount.
    """
    cdef double weight = a.weights[x], discount = a.discounts[x], worth, own, up = -INFINITY, down = -INFINITY
    cdef Py_ssize_t first = added + 1, y, place, at
    for place in range(first, a.n):
        a.before[place] = weight * a.f[place] - discount * a.gains[place] + a.rises[place]
        a.behind[place] = weight * a.f[place] - discount * a.gains[place] + a.falls[place]
    for place in range(first, a.n):
        at = a.n + first - 1 - place
        up = a.before[place] if a.before[place] > up else up
        down = a.behind[at] if a.behind[at] > down else down
        a.before[place] = up
        a.behind[at] = down
    for y in range(first):
        at = a.entries[y]
        worth = weight * a.f[y] - discount * a.gains[y]
        if at > first:
            worth = max(worth, a.before[at - 1] + (a.weights[at - 1] * (a.f[y] - a.f[at - 1]) - a.rises[at - 1]))
        if at < a.n:
            worth = max(worth, a.behind[at] + (a.weights[at] * (a.f[y] - a.f[at]) - a.falls[at]))
        own = a.weights[y] * a.f[y]
        if y != added:
            own -= a.discounts[y] * a.gains[y]
        a.lengths[y] = own - worth


cdef inline void _follow(Assignment *a, int32_t added) noexcept nogil:
    """Give each place on the shortest path its next item; the path ends where it began, with the item of `added`."""
    cdef int32_t x, y = added, t, place = added + 1
    cdef bint moved = False
    while True:
        x = a.previous[y]
        a.following[x] = y
        a.next_item[x] = _best_item(a, x, y, added + 1)
        moved = moved or a.next_item[x] != a.item_of[y]
        y = x
        if y == added:
            break
    while True:  # where rounding made two places on the path take the same item, the first goes on as the last would
        y = a.following[x]
        while y != added:
            if a.next_item[y] == a.next_item[x]:
                a.following[x] = a.following[y]
            y = a.following[y]
        a.place_of[a.item_of[x]] = INT32_MAX
        x = a.following[x]
        if x == added:
            break
    while True:
        _put(a, a.next_item[x], x)
        x = a.following[x]
        if x == added:
            break
    if moved:
        for t in range(a.n):
            if a.place_of[t] > added:
                _put(a, t, place)
                place += 1
        _sum_moves(a, added + 1)


cdef inline int32_t _best_item(Assignment *a, int32_t x, int32_t y, Py_ssize_t first) noexcept nogil:
    """The item that place x gets if the item of y goes to x, or to the rest, which starts at place `first`."""
    cdef double weight = a.weights[x], discount = a.discounts[x], change = 0.0, worth
    cdef double best = weight * a.f[y] - discount * a.gains[y]
    cdef Py_ssize_t at = a.entries[y], place
    cdef int32_t item = a.item_of[y]
    if at > first:
        change = a.weights[at - 1] * (a.f[y] - a.f[at - 1]) - a.rises[at - 1]
    for place in range(first, at):
        worth = weight * a.f[place] - discount * a.gains[place] + a.rises[place] + change
        if worth > best:
            best = worth
            item = a.item_of[place]
    if at < a.n:
        change = a.weights[at] * (a.f[y] - a.f[at]) - a.falls[at]
    for place in range(at, a.n):
        worth = weight * a.f[place] - discount * a.gains[place] + a.falls[place] + change
        if worth > best:
            best = worth
            item = a.item_of[place]
    return item
