"""Which users a split keeps, and which it leaves out."""

from dataclasses import dataclass

import numpy as np

from rankbench.data.splits import Split
from rankbench.data.views import View
from rankbench.data.views.layout import called

_SHOWN = 5  # users that are named


@dataclass(frozen=True)
class Kept:
    """How many of the users a split trains and tests on, and some of those that it does not test on."""

    users: int
    trained: int
    tested: int
    most: int  # the largest number of rows of a user who is not tested; 0 if all are
    untested: tuple[str, ...]  # ids of the first users who are not tested

    @classmethod
    def by(cls, split: Split, view: View) -> "Kept":
        """The users that a split of a view keeps."""
        trained, tested = (np.diff(part.indptr) > 0 for part in (split.train, split.test))
        without = np.flatnonzero(~tested)
        most = int(np.diff(view.indptr)[without].max(initial=0))
        shown = tuple(str(one) for one in called(without[:_SHOWN], view.user_ids).tolist())
        return cls(view.n_users, int(trained.sum()), int(tested.sum()), most, shown)

    @property
    def text(self) -> str:
        """Who is kept and who is left out, in one line."""
        if self.tested == self.users:
            return f"all {self.users:,} users are tested"
        left = self.users - self.tested
        more = ", ..." if left > len(self.untested) else ""
        what = "train but are not tested" if self.trained == self.users else "are left out"
        who = f"{', '.join(self.untested)}{more}"
        whom = f"{left:,} with at most {self.most} {'row' if self.most == 1 else 'rows'}"
        return f"{self.tested:,} of {self.users:,} users are tested; {whom} {what}: {who}"
