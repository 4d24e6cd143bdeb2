"""For tuning: validation parts that are made by the experiment's own split."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.data.splits import CannotCut, Split
from rankbench.data.views import View


@dataclass(frozen=True)
class OwnValidation:
    """Tuning's validation part is the one that the split itself leaves out: `validation = "own"` in `[tune]`.

    It is no split of a data set: only a split with a validation part, such as entries[validation=0.1], has one.
    """

    title: ClassVar = "the split's own validation part"
    version: ClassVar[int] = 1

    def cut(self, view: View, rng: np.random.Generator, repetition: int) -> Split:
        """Refuse a data set."""
        raise CannotCut('is for tuning only, as in `validation = "own"`')

    def of(self, split: Split) -> Split:
        """The training part of a split with its validation part as the held-out part."""
        if split.validation is None:
            raise CannotCut('has no validation part for `validation = "own"`: use entries[validation=0.1]')
        return Split(split.train, split.validation)


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
