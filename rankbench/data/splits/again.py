"""For tuning: a validation part that is cut as the test part was."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.data.splits import CannotCut, Split
from rankbench.data.views import View


@dataclass(frozen=True)
class AppliedAgain:
    """Tuning's validation part is cut from the training part by the experiment's own split: `validation = "again"`.

    Where the training part is comparisons that were drawn from ratings, as with binary, the split is applied again to
    the training ratings, so that a held-out part of them is searched for in the whole catalogue, as in the test.
    """

    title: ClassVar = "the split applied again"
    version: ClassVar[int] = 1

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Refuse a data set."""
        raise CannotCut('is for tuning only, as in `validation = "again"`')

    def source(self, split: Split) -> View:
        """What the split is applied to: the training ratings that comparisons were drawn from, or the training part."""
        part: View = split.train if split.seen is None else split.seen
        return part
