"""Comparisons sorted into tasks; a task has the comparisons of a few users between a few items."""

# Roof of bucket, a comparison: 28 bytes; 4 flops.

import numpy as np

from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t

from rankbench.kernels.shared.checks cimport agree, highest_id, within
from rankbench.kernels.shared.rows cimport ComparisonRows, count_rows

from rankbench.arrays.mapped import empty


cdef class TaskRows:
    """Comparisons by task: task t holds the users and items of the rows from starts[t] to starts[t + 1]."""

    def __init__(
        self,
        *,
        const int64_t[::1] starts,
        const int32_t[::1] users,
        const int32_t[::1] better,
        const int32_t[::1] worse,
        const double[::1] weights=None,
    ):
        """Take the arrays, without a copy; a weight multiplies the slope of the row's loss."""
        count_rows(starts, users.shape[0])
        if not users.shape[0] == better.shape[0] == worse.shape[0]:
            raise ValueError("each row of a task must have a user, a better item and a worse one")
        if weights is not None:
            agree("weights", weights.shape[0], users.shape[0])
        self.starts, self.users, self.better, self.worse, self.weights = starts, users, better, worse, weights


def bucket(
    *,
    ComparisonRows comparisons,
    const int32_t[::1] user_group,
    const int32_t[::1] item_group,
    const int32_t[:, ::1] pair_of,
    int groups,
    const double[::1] weights=None,
    int32_t[::1] room=None,
) -> tuple[Int64s, Int32s, Int32s, Int32s, Floats | None]:
    """The comparisons sorted by task, stably; a task is a pair of item groups and a user group.

    Task pair_of[a, b] * groups + c holds the comparisons of items of the groups a and b by users of group
    c. Returns the start of each task; and of each row the user, better item, worse item, and weight if there are any.
    The first three numbers of a row are written to `room` if that is given: memory that was used before is faster.
    """
    cdef int64_t of_items = np.max(pair_of, initial=0) + 1
    agree("users with a group", user_group.shape[0], comparisons.view.n)
    within("groups", groups, max(1, <int64_t> highest_id(user_group) + 1), INT32_MAX // of_items)
    cdef const int64_t[::1] indptr = comparisons.indptr
    cdef const int32_t[::1] better = comparisons.better, worse = comparisons.worse
    if room is not None:
        within("numbers of room", room.shape[0], 3 * better.shape[0], INT64_MAX)
    cdef Py_ssize_t n = better.shape[0], tasks = (np.max(pair_of, initial=-1) + 1) * groups
    cdef Py_ssize_t user, row, place
    cdef int32_t task
    starts = np.zeros(tasks + 1, np.int64)
    cdef int32_t[::1] task_of = empty(n, np.int32)
    columns = (empty(3 * n, np.int32) if room is None else np.asarray(room)[: 3 * n]).reshape(3, n)
    cursors = np.empty(tasks, np.int64)
    if weights is not None:
        agree("weights", weights.shape[0], n)
    by_task = None if weights is None else np.empty(n)
    cdef double[::1] row_weight = by_task
    cdef int64_t[::1] start = starts, cursor = cursors
    cdef int32_t[::1] row_user = columns[0], row_better = columns[1], row_worse = columns[2]
    with nogil:
        for user in range(indptr.shape[0] - 1):
            for row in range(indptr[user], indptr[user + 1]):
                task = pair_of[item_group[better[row]], item_group[worse[row]]] * groups + user_group[user]
                task_of[row] = task
                start[task + 1] += 1
        for task in range(tasks):
            start[task + 1] += start[task]
            cursor[task] = start[task]
        for user in range(indptr.shape[0] - 1):
            for row in range(indptr[user], indptr[user + 1]):
                place = cursor[task_of[row]]
                cursor[task_of[row]] = place + 1
                row_user[place] = <int32_t> user
                row_better[place] = better[row]
                row_worse[place] = worse[row]
                if weights is not None:
                    row_weight[place] = weights[row]
    return starts, *columns, by_task
