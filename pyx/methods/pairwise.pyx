"""The factors of users and items that pairwise gradient descent changes in place."""

from rankbench.kernels.shared.rows cimport first_row, first_value


cdef class DescentFactors:
    """Factors with the shrinkage of each row and the step size, which is step / (1 + decay t) after t updates.

    Rows of `users` and `items` are padded with zeros to whole lanes. A shrinkage is lam over the number of comparisons
    that the row takes part in.
    """

    def __init__(
        self,
        *,
        double[:, ::1] users,
        double[:, ::1] items,
        const double[::1] user_shrink,
        const double[::1] item_shrink,
        double step,
        double decay,
    ):
        """Take the arrays, without a copy."""
        if users.shape[1] != items.shape[1]:
            raise ValueError(f"users have rank {users.shape[1]}, items have rank {items.shape[1]}")
        if users.shape[0] != user_shrink.shape[0] or items.shape[0] != item_shrink.shape[0]:
            raise ValueError("there must be one shrinkage for each user and each item")
        self.users, self.items, self.user_shrink, self.item_shrink = users, items, user_shrink, item_shrink
        self.view = FactorsView(
            first_row(users), first_row(items), users.shape[1],
            first_value(user_shrink), first_value(item_shrink), step, decay,
        )
