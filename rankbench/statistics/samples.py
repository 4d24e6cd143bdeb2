"""The per-user values behind a measured mean, and what each user contributes to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankbench.core.contract import Flags, Floats
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
    anew: bool = False  # each repetition has other users, as its data is drawn anew

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
        rows = [self.repetitions.index(number) for number in repetitions]
        return replace(self, values=self.values[rows], weights=self.weights[rows], repetitions=repetitions)

    def apart(self, of: int) -> "Sample":
        """The same with a column for each user of each of `of` repetitions, whose users are then different ones."""
        values = np.full((len(self.repetitions), of, self.values.shape[1]), np.nan)
        weights = np.ones_like(values)
        rows = np.arange(len(self.repetitions))
        values[rows, self.repetitions], weights[rows, self.repetitions] = self.values, self.weights
        columns = (len(rows), -1)
        return replace(self, values=values.reshape(columns), weights=weights.reshape(columns), anew=False)

    @property
    def counted(self) -> Flags:
        """Which users the metric counts, in each repetition."""
        return ~np.isnan(self.values)

    @property
    def n_users(self) -> int:
        """How many users the metric counts in at least one repetition."""
        return int(self.counted.any(axis=0).sum())

    def masses(self) -> tuple[Floats, Floats]:
        """The numerator and the denominator that each user adds to the mean of each repetition.

        If every repetition has users of its own, as where each leaves out another one, the repetitions are joined into
        one row with the same mean: users could not be resampled within a repetition that has one.
        """
        weights = np.where(self.counted, self.weights, 0.0)
        if len(weights) > 1 and self.counted.sum(axis=0).max(initial=0) <= 1:
            totals = weights.sum(axis=1, keepdims=True)
            shares = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0)
            return (np.where(self.counted, self.values, 0.0) * shares).sum(axis=0)[None], shares.sum(axis=0)[None]
        return np.where(self.counted, self.values, 0.0) * weights, weights

    def mean(self) -> float:
        """The measured mean; NaN if no user counts in a repetition."""
        numerators, denominators = self.masses()
        with np.errstate(invalid="ignore"):
            return float((numerators.sum(axis=1) / denominators.sum(axis=1)).mean())

    def influences(self) -> Floats:
        """How far the mean would move if a user counted a little more: its derivative by each user's weight."""
        numerators, denominators = self.masses()
        totals = denominators.sum(axis=1, keepdims=True)
        means = numerators.sum(axis=1, keepdims=True) / totals
        moved: Floats = ((numerators - means * denominators) / totals).mean(axis=0)
        return moved


def spread(samples: Sequence[Sample]) -> list[Sample]:
    """The samples, those of data drawn anew with columns of their own for the users of each repetition."""
    of = 1 + max((number for sample in samples for number in sample.repetitions), default=0)
    return [sample.apart(of) if sample.anew else sample for sample in samples]


def paired(one: Sample, other: Sample) -> Floats:
    """What each user adds to the difference of two means, over the users and repetitions that both samples count.

    A user's repetitions are added up, so that they stay together when users are resampled or exchanged.
    """
    common = tuple(number for number in one.repetitions if number in other.repetitions)
    one, other = one.only(common), other.only(common)
    if one.values.shape[1] != other.values.shape[1]:
        raise UserError(
            f"two solvers are compared user by user, but one has values of {one.values.shape[1]} users and the other "
            f"of {other.values.shape[1]}",
            remedy="compare runs with the same data, split and seed",
        )
    if not common:
        return np.zeros(0)
    both = one.counted & other.counted
    weights = np.where(both, one.weights, 0.0)
    differences = np.where(both, one.values - other.values, 0.0) * weights
    totals = weights.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(differences, totals, out=np.zeros_like(differences), where=totals > 0).mean(axis=0)
    return shares[both.any(axis=0)]
