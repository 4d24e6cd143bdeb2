"""The most similar items of each item, by the cosine of their columns with shrinkage.

Items are independent. The products of an item with all others are summed over its users in ascending order, by one
thread, so that no bit depends on the number of threads.
"""

# Roof of neighbours by products, a product: 12 bytes; 2 flops; 1 / 8 lines.
# Roof of neighbours by items met, an item met: 28 bytes; 2 * log2(met) + 4 flops.

from cython.parallel cimport parallel, prange
from libc.stdint cimport int32_t
from libc.string cimport memset

from rankbench.kernels.shared.arena cimport Arena, Scratch, floats, ints
from rankbench.kernels.shared.checks cimport agree
from rankbench.kernels.shared.parallel cimport team, thread_id
from rankbench.kernels.shared.rows cimport SparseRows, SparseView
from rankbench.kernels.shared.sorting cimport argsort, sort32

cdef struct Memory:
    # Scratch memory of one thread, for one item.
    double *products  # with the items met
    double *keys  # minus the similarities of the items met
    int32_t *met  # per item, 1 more than the last item that met it
    int32_t *others  # the items met, ascending
    int32_t *order
    int32_t *scratch

cdef struct Measure:
    # How similarity is computed from an inner product.
    const double *norms
    double shrink

cdef struct Row:
    # Where the neighbours of one item are written.
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
    `items` is the transpose of `users`. O(sum over users of entries^2), and O(items met x log) for the order.
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
                Row(&out[item, 0], &similarities[item, 0], out.shape[1]),
            )


cdef Memory _lay_out(Arena *arena, Py_ssize_t n) noexcept nogil:
    """Room for n items."""
    return Memory(floats(arena, n), floats(arena, n), ints(arena, n), ints(arena, n), ints(arena, n), ints(arena, n))


cdef void _neighbours(
    const SparseView *users, const SparseView *items, Measure measure, int32_t item, Memory memory, Row out
) noexcept nogil:
    """The neighbours of one item."""
    cdef Py_ssize_t met = _products(users, items, item, memory), found = 0, place
    cdef double similarity
    sort32(memory.others, met)
    for place in range(met):
        similarity = memory.products[memory.others[place]]
        if similarity > 0.0:
            similarity = similarity / (
                measure.norms[item] * measure.norms[memory.others[place]] + measure.shrink
            )
            memory.keys[found] = -similarity
            memory.others[found] = memory.others[place]
            memory.order[found] = <int32_t> found
            found += 1
    argsort(memory.keys, memory.order, memory.scratch, found)
    for place in range(out.room):
        out.items[place] = memory.others[memory.order[place]] if place < found else -1
        out.similarities[place] = -memory.keys[memory.order[place]] if place < found else 0.0


cdef Py_ssize_t _products(
    const SparseView *users, const SparseView *items, int32_t item, Memory memory
) noexcept nogil:
    """The inner products of an item's column with those of the items that it shares a user with; how many they are."""
    cdef Py_ssize_t met = 0, row, place
    cdef int32_t other
    for row in range(items.indptr[item], items.indptr[item + 1]):
        for place in range(users.indptr[items.columns[row]], users.indptr[items.columns[row] + 1]):
            other = users.columns[place]
            if other == item:
                continue
            if memory.met[other] != item + 1:
                memory.met[other] = item + 1
                memory.products[other] = 0.0
                memory.others[met] = other
                met += 1
            memory.products[other] += items.values[row] * users.values[place]
    return met
