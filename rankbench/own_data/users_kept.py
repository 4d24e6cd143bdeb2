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
    tested: int
    training: int  # of the users who are not tested, those who train
    most: int  # rows of a user who is not tested, if they all have fewer than each one who is; else 0
    untested: tuple[str, ...]  # ids of the first users who are not tested

    @classmethod
    def by(cls, split: Split, view: View) -> "Kept":
        """The users that a split of a view keeps."""
        trained, tested = (np.diff(part.indptr) > 0 for part in (split.train, split.test))
        without, rows = np.flatnonzero(~tested), np.diff(view.indptr)
        most = int(rows[without].max(initial=0))
        shown = tuple(str(one) for one in called(without[:_SHOWN], view.user_ids).tolist())
        few = (rows[tested] > most).all()  # else something other than few rows has decided, such as a draw
        return cls(view.n_users, int(tested.sum()), int(trained[without].sum()), most if few else 0, shown)

    @property
    def text(self) -> str:
        """Who is kept and who is left out, in one line."""
        left, one = self.users - self.tested, self.users == 1
        if not left:
            return "the only user is tested" if one else f"all {self.users:,} users are tested"
        more = ", ..." if left > len(self.untested) else ""
        who = f"{', '.join(self.untested)}{more}"
        rows = f" with at most {self.most} {'row' if self.most == 1 else 'rows'}" if self.most else ""
        are, train = ("is", "trains") if left == 1 else ("are", "train")
        what = f"{are} not tested, of whom {self.training:,} train"
        if self.training in (0, left):
            what = f"{train} but {are} not tested" if self.training else f"{are} left out"
        whole = f"{self.tested:,} of {self.users:,} {'user' if one else 'users'} {'is' if self.tested == 1 else 'are'}"
        return f"{whole} tested; {left:,}{rows} {what}: {who}"
