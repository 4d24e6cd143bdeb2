"""The sum of each user's losses of comparisons under factors; shared/losses.pxd has the losses."""

from cython.parallel cimport prange

from rankbench.kernels.shared.checks cimport agree
from rankbench.kernels.shared.lanes cimport dot_differences_at
from rankbench.kernels.shared.losses cimport MARGINS, Loss, known_loss, losses_of
from rankbench.kernels.shared.parallel cimport team
from rankbench.kernels.shared.rows cimport ComparisonRows


def losses(
    *,
    Loss loss,
    ComparisonRows comparisons,
    const double[:, ::1] users,
    const double[:, ::1] items,
    double[::1] out,
    int threads,
):
    """Fill `out` with each user's sum of losses; rows of users and items are padded to whole lanes."""
    threads = team(threads)
    known_loss(loss)
    agree("users", users.shape[0], comparisons.view.n)
    agree("sums of losses", out.shape[0], users.shape[0])
    agree("columns of items", items.shape[1], users.shape[1])
    cdef Py_ssize_t user
    for user in prange(users.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        out[user] = _user_loss(loss, comparisons, user, &users[user, 0], &items[0, 0], users.shape[1])


cdef double _user_loss(
    Loss loss, ComparisonRows comparisons, Py_ssize_t user, const double *u, const double *items, Py_ssize_t rank
) noexcept nogil:
    """The losses of one user's comparisons, some at a time, summed in their order."""
    cdef double margins[MARGINS]
    cdef double total = 0.0
    cdef Py_ssize_t first = comparisons.view.indptr[user], end = comparisons.view.indptr[user + 1], count, k
    while first < end:
        count = min(<Py_ssize_t> MARGINS, end - first)
        dot_differences_at(
            u, items, comparisons.view.better + first, comparisons.view.worse + first, count, rank, margins
        )
        losses_of(loss, margins, count, margins)
        for k in range(count):
            total += margins[k]
        first += count
    return total
