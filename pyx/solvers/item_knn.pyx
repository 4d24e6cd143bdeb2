"""The most similar items of each item, by the cosine of their columns with shrinkage.

Items are independent. The products of an item with all others are summed over its users in ascending order, by one
thread, so that no bit depends on the number of threads.
"""

# Roof of neighbours by products, a product: 12 bytes; 2 flops; 1 / 8 lines.
# Roof of neighbours by items met, an item met: 28 bytes; 6 flops.

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints
from rankbench.kernels.shared.checks cimport agree
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.ranked cimport Item, room_for_items, take_best
from rankbench.kernels.shared.rows cimport SparseRows, SparseView

cdef enum:
    _FEW = 4  # with fewer products than items / 4, only the items met are looked at

cdef struct Memory:
    # Scratch memory of one thread, for one item.
    double *products  # with the items met
    int32_t *met  # per item, 1 more than the last item that met it
    int32_t *others  # the items met
    double *similarities  # above 0
    double *signed_items  # of these, the items' numbers below 0: of equal similarities the highest comes first
    Item *best
    Item *scratch

cdef struct Measure:
    # How similarity is computed from an inner product.
    const double *norms
    double shrink

cdef struct Neighbours:
    # Of one item, best first.
    int32_t *items
    double *similarities
    Py_ssize_t room


def neighbours(
    *,
    SparseRows users,
    SparseRows items,
    const double[::1] norms,
    double shrink,
    int32_t[:, ::1] out,
    double[:, ::1] similarities,
    int threads,
):
    """Fill out[i] with the items of the highest similarity to i above 0, best first, and -1 behind them.

    The similarity of i and j is x_i . x_j / (norms[i] norms[j] + shrink); of equal ones the lower item comes first.
    `items` is the transpose of `users`. O(sum over users of entries^2 + items^2).
    """
    threads = team(threads)
    cdef Py_ssize_t n = items.view.n, item
    agree("norms", norms.shape[0], n)
    agree("rows of out", out.shape[0], n)
    agree("rows of similarities", similarities.shape[0], n)
    agree("columns of similarities", similarities.shape[1], out.shape[1])
    cdef Arena arena = Arena(NULL, 0)
    cdef Memory memory = _lay_out(&arena, n)
    cdef Scratch scratch = Scratch(arena.used, threads)
    if n == 0 or out.shape[1] == 0:
        return
    with nogil, parallel(num_threads=threads):
        arena = scratch.share(thread_id())
        memory = _lay_out(&arena, n)
        memset(memory.met, 0, n * sizeof(int32_t))
        for item in prange(n, schedule="dynamic"):
            _neighbours(
                &users.view, &items.view, Measure(&norms[0], shrink), <int32_t> item, memory,
                Neighbours(&out[item, 0], &similarities[item, 0], out.shape[1]),
            )


def gram(*, SparseRows users, SparseRows items, double[:, ::1] out, int threads):
    """Fill out[i, j] with x_i . x_j, the products of all columns; `items` is the transpose of `users`."""
    threads = team(threads)
    cdef Py_ssize_t n = items.view.n, item
    agree("rows of out", out.shape[0], n)
    agree("columns of out", out.shape[1], n)
    for item in prange(n, nogil=True, schedule="dynamic", num_threads=threads):
        _all_products(&users.view, &items.view, <int32_t> item, &out[item, 0])


cdef Memory _lay_out(Arena *arena, Py_ssize_t n) noexcept nogil:
    """Room for n items."""
    return Memory(
        floats(arena, n), ints(arena, n), ints(arena, n), floats(arena, n), floats(arena, n),
        room_for_items(arena, n), room_for_items(arena, n),
    )


cdef void _neighbours(
    const SparseView *users, const SparseView *items, Measure measure, int32_t item, Memory memory, Neighbours out
) noexcept nogil:
    """The neighbours of one item."""
    cdef bint many = _products_of(users, items, item) >= items.n // _FEW
    cdef Py_ssize_t met, place, count = 0
    cdef int32_t other
    if many:
        met = items.n
        _all_products(users, items, item, memory.products)
        for place in range(met):
            memory.products[place] /= measure.norms[item] * measure.norms[place] + measure.shrink
    else:
        met = _products(users, items, item, memory)
        for place in range(met):
            other = memory.others[place]
            memory.products[other] /= measure.norms[item] * measure.norms[other] + measure.shrink
    for place in range(met):
        other = <int32_t> place if many else memory.others[place]
        memory.similarities[count] = memory.products[other]
        memory.signed_items[count] = -<double> other
        count += (memory.products[other] > 0.0) & (other != item)
    if count > 0:
        count = take_best(memory.similarities, memory.signed_items, count, out.room, memory.best, memory.scratch)
        count = min(count, out.room)
    for place in range(count):
        out.items[place], out.similarities[place] = -<int32_t> memory.best[place].truth, memory.best[place].score
    for place in range(count, out.room):
        out.items[place], out.similarities[place] = -1, 0.0


cdef inline int64_t _products_of(const SparseView *users, const SparseView *items, int32_t item) noexcept nogil:
    """How many products of ratings there are of an item's users."""
    cdef Py_ssize_t row
    cdef int64_t found = 0
    for row in range(items.indptr[item], items.indptr[item + 1]):
        found += users.indptr[items.columns[row] + 1] - users.indptr[items.columns[row]]
    return found


cdef void _all_products(
    const SparseView *users, const SparseView *items, int32_t item, double *products
) noexcept nogil:
    """The inner products of an item's column with all columns."""
    cdef Py_ssize_t row, place, end
    cdef double value
    memset(products, 0, items.n * sizeof(double))
    for row in range(items.indptr[item], items.indptr[item + 1]):
        value = items.values[row]
        end = users.indptr[items.columns[row] + 1]
        for place in range(users.indptr[items.columns[row]], end):
            products[users.columns[place]] += value * users.values[place]


cdef Py_ssize_t _products(
    const SparseView *users, const SparseView *items, int32_t item, Memory memory
) noexcept nogil:
    """The inner products of an item's column with those that it shares a user with, itself too; how many they are."""
    cdef Py_ssize_t met = 0, row, place
    cdef int32_t other
    for row in range(items.indptr[item], items.indptr[item + 1]):
        for place in range(users.indptr[items.columns[row]], users.indptr[items.columns[row] + 1]):
            other = users.columns[place]
            if memory.met[other] != item + 1:
                memory.met[other] = item + 1
                memory.products[other] = 0.0
                memory.others[met] = other
                met += 1
            memory.products[other] += items.values[row] * users.values[place]
    return met
