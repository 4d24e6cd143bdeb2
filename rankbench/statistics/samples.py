"""The values for each repetition and user behind a measured mean."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError


@dataclass(frozen=True, eq=False)
class Sample:
    """A metric of one solver: a value for each repetition and user, NaN where the metric does not count the user.

    The measured mean is the mean over repetitions of each repetition's mean over users. Where the metric is an average
    over pairs, `weights` are each user's numbers of pairs, and the mean over users is the weighted one.
    """

    values: Floats  # repetitions x users
    weights: Floats  # repetitions x users; 1 for an average over users
    repetitions: tuple[int, ...]

    @classmethod
    def of(cls, values: Mapping[int, Floats], weights: Mapping[int, Floats] | None = None) -> "Sample":
        """The sample of an array of values for each repetition; the users must be the same in all of them."""
        if not values or len({len(one) for one in values.values()}) > 1:
            raise UserError("a sample needs at least one repetition, and the same users in each")
        table = np.array(list(values.values()), np.float64)
        known = np.ones_like(table) if weights is None else np.array([weights[number] for number in values])
        return cls(table, known, tuple(values))

    def only(self, repetitions: tuple[int, ...]) -> "Sample":
        """The sample of these repetitions, in this order."""
        places = {number: row for row, number in enumerate(self.repetitions)}
        rows = [places[number] for number in repetitions]
        return replace(self, values=self.values[rows], weights=self.weights[rows], repetitions=repetitions)

    def with_values(self) -> "Sample":
        """The sample of the repetitions in which some user has a value."""
        known = np.isfinite(self.values) & (self.weights > 0)
        return self.only(tuple(number for number, row in zip(self.repetitions, known, strict=True) if row.any()))

    def mean(self) -> float:
        """The measured mean; NaN if no user counts in a repetition."""
        weights = np.where(np.isnan(self.values), 0.0, self.weights)
        totals = (np.nan_to_num(self.values) * weights).sum(axis=1)
        with np.errstate(invalid="ignore"):
            return float((totals / weights.sum(axis=1)).mean())


def shared_by(samples: Iterable[Sample]) -> tuple[int, ...]:
    """The repetitions that all of the samples have."""
    first, *others = samples
    known = [frozenset(one.repetitions) for one in others]
    return tuple(number for number in first.repetitions if all(number in one for one in known))


def common(samples: Mapping[Any, Sample]) -> tuple[int, ...]:
    """The repetitions of most of the samples."""
    return of_most([sample.repetitions for sample in samples.values()])


def of_most(sets: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The repetitions that are most frequent as a whole; of those that are as frequent, the largest number of them."""
    return max(sets, key=lambda one: (sets.count(one), len(one)), default=())
