"""What comparisons lose under factors, user by user; the losses themselves stand in margins.pxd."""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t

from linalg cimport dot_difference
from margins cimport loss_of
from parallel cimport team

SQUARED_HINGE, HINGE, LOGISTIC = range(3)


def losses(
    int loss,
    const int64_t[::1] indptr,
    const int32_t[::1] better,
    const int32_t[::1] worse,
    const double[:, ::1] users,
    const double[:, ::1] items,
    double[::1] out,
    int threads,
):
    """Each user's sum of losses."""
    threads = team(threads)
    cdef Py_ssize_t user
    for user in prange(users.shape[0], nogil=True, schedule="dynamic", chunksize=16, num_threads=threads):
        out[user] = _user_loss(
            loss, indptr[user], indptr[user + 1], &better[0], &worse[0],
            &users[user, 0], &items[0, 0], users.shape[1],
        )


cdef double _user_loss(
    int loss, Py_ssize_t first, Py_ssize_t end, const int32_t *better, const int32_t *worse,
    const double *u, const double *items, Py_ssize_t rank,
) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t row
    for row in range(first, end):
        total += loss_of(loss, dot_difference(u, items + better[row] * rank, items + worse[row] * rank, rank))
    return total
