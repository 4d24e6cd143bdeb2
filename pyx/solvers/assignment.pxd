# The order of n items that is worth most: an assignment problem whose matrix is never formed.
#
# Item t at place l is worth weight_l f_t - discount_l gain_t, and only the first k places have a discount.
# Without discounts the best order is by falling f, and the dual variables (prices) of that order are known in closed
# form. So the places from k on start out matched, and each of the first k is added by a shortest augmenting path
# (Jonker and Volgenant 1987; Crouse 2016): O(k n^2) at worst instead of O(n^3).

from libc.math cimport INFINITY
from libc.stdint cimport int32_t

from rankbench.kernels.shared.arena cimport Arena, floats, ints
from rankbench.kernels.shared.sorting cimport argsort, in_order

cdef struct Assignment:
    Py_ssize_t n
    Py_ssize_t k
    const double *weights  # by place, falling and positive
    const double *discounts  # of the first k places
    double *f  # by item, items by falling f from here on
    double *gains
    double *item_prices
    double *place_prices
    double *distances
    int32_t *place_of
    int32_t *item_of
    int32_t *before  # the place from which the shortest path reaches an item
    int32_t *left  # items that the search has not reached yet
    int32_t *order


cdef inline Assignment lay_out_assignment(
    Arena *arena, Py_ssize_t longest, const double *weights, const double *discounts, Py_ssize_t k
) noexcept nogil:
    """Room for an assignment of up to `longest` items to places with these weights, of which k have a discount."""
    return Assignment(
        0, k, weights, discounts, floats(arena, longest), floats(arena, longest), floats(arena, longest),
        floats(arena, longest), floats(arena, longest), ints(arena, longest), ints(arena, longest),
        ints(arena, longest), ints(arena, longest), ints(arena, longest),
    )


cdef inline void best_places(
    Assignment *a, const double *f, const double *gains, Py_ssize_t n, int32_t *places
) noexcept nogil:
    """Write each item's place in the order that is worth most to `places`; if k exceeds n, n counts instead."""
    cdef Py_ssize_t k = min(a.k, n), t, place
    a.n = n
    in_order(a.order, n)
    for t in range(n):
        a.distances[t] = -f[t]
    argsort(a.distances, a.order, a.left, n)
    for t in range(n):
        a.f[t] = f[a.order[t]]
        a.gains[t] = gains[a.order[t]]
        a.place_of[t] = -1
    a.item_prices[n - 1] = 0.0
    for t in range(n - 2, -1, -1):
        a.item_prices[t] = a.item_prices[t + 1] + a.weights[t + 1] * (a.f[t] - a.f[t + 1])
    for t in range(k, n):
        a.place_prices[t] = a.weights[t] * a.f[t] - a.item_prices[t]
        a.place_of[t] = <int32_t> t
        a.item_of[t] = <int32_t> t
    for place in range(k):
        _add_place(a, <int32_t> place)
    for t in range(n):
        places[a.order[t]] = a.place_of[t]


cdef inline void _add_place(Assignment *a, int32_t added) noexcept nogil:
    """Match one place more, along the shortest path from it to an item that is free.

    Invariant: item price + place price >= worth for every item and place, with equality for matched ones.
    """
    cdef Py_ssize_t n_left = a.n, nearest, j
    cdef int32_t place = added, t = -1
    cdef double far = 0.0
    in_order(a.left, a.n)
    for j in range(a.n):
        a.distances[j] = INFINITY
    a.place_prices[added] = 0.0
    while True:
        nearest = _relax(a, place, far, n_left)
        t = a.left[nearest]
        far = a.distances[t]
        n_left -= 1
        a.left[nearest] = a.left[n_left]
        a.left[n_left] = t  # what was reached stands behind what is left
        if a.place_of[t] < 0:
            break
        place = a.place_of[t]
    a.place_prices[added] -= far
    for j in range(n_left + 1, a.n):
        t = a.left[j]
        a.place_prices[a.place_of[t]] -= far - a.distances[t]
        a.item_prices[t] += far - a.distances[t]
    t = a.left[n_left]
    while True:
        place = a.before[t]
        a.place_of[t] = place
        if place == added:
            a.item_of[place] = t
            return
        j = a.item_of[place]
        a.item_of[place] = t
        t = <int32_t> j


cdef inline Py_ssize_t _relax(
    Assignment *a, int32_t place, double far, Py_ssize_t n_left
) noexcept nogil:
    """Extend the paths from this place; which of the items that are left is nearest, a free one on a tie.

    Invariant: distances[t] is the length of the shortest path found to item t, of which before[t] is the last place.
    """
    cdef double weight = a.weights[place], discount = a.discounts[place] if place < min(a.k, a.n) else 0.0
    cdef double start = far + a.place_prices[place], distance, least = INFINITY
    cdef Py_ssize_t j, nearest = 0
    cdef int32_t t
    for j in range(n_left):
        t = a.left[j]
        distance = start + a.item_prices[t] - weight * a.f[t] + discount * a.gains[t]
        if distance < a.distances[t]:
            a.distances[t] = distance
            a.before[t] = place
        if a.distances[t] < least or (a.distances[t] == least and a.place_of[t] < 0):
            least = a.distances[t]
            nearest = j
    return nearest
