"""The factors of users and items that pairwise gradient descent changes in place."""

import numpy as np

from rankbench.kernels.shared.checks cimport agree
from rankbench.kernels.shared.lanes cimport LANES, SINGLE_LANES
from rankbench.kernels.shared.rows cimport first_value


cdef class DescentFactors:
    """Factors with the shrinkage of each row and the step size, which is step / (1 + decay t) after t updates.

    `users` and `items` are both arrays of doubles or both of floats, and their rows are padded with zeros to whole
    lanes. A shrinkage is lam over the number of comparisons that the row takes part in. With `held`, the number at this
    place of each user's row stays 1, so that the items have biases there.
    """

    def __init__(
        self,
        *,
        users: "Floats | Float32s",
        items: "Floats | Float32s",
        const double[::1] user_shrink,
        const double[::1] item_shrink,
        double step,
        double decay,
        Py_ssize_t held = -1,
    ):
        """Take the arrays, without a copy."""
        cdef bint single = users.dtype == np.float32
        cdef char *first_user = _first(users, single)
        cdef char *first_item = _first(items, single)
        agree("columns of items", items.shape[1], users.shape[1])
        if users.shape[1] % (SINGLE_LANES if single else LANES):
            raise ValueError(f"rows of {users.shape[1]} numbers are not padded to whole lanes")
        if held >= users.shape[1]:
            raise ValueError(f"rows of {users.shape[1]} numbers have none at place {held}")
        if users.shape[0] != user_shrink.shape[0] or items.shape[0] != item_shrink.shape[0]:
            raise ValueError("there must be one shrinkage for each user and each item")
        self.users, self.items, self.user_shrink, self.item_shrink = users, items, user_shrink, item_shrink
        self.view = FactorsView(
            first_user, first_item, users.shape[1] * users.itemsize, users.shape[1], single, held,
            Rates(first_value(user_shrink), first_value(item_shrink), step, decay),
        )


cdef char *_first(object rows, bint single) except? NULL:
    """The address of the first number of these rows, or NULL if there are none; an error if they are not such rows."""
    cdef double[:, ::1] doubles
    cdef float[:, ::1] singles
    if single:
        singles = rows
        return <char *> &singles[0, 0] if singles.shape[0] and singles.shape[1] else NULL
    doubles = rows
    return <char *> &doubles[0, 0] if doubles.shape[0] and doubles.shape[1] else NULL
