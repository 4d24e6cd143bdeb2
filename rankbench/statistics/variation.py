"""Where a mean varies from: its users, its repetitions (split, search and start drawn together), and both crossed.

A mean over users, a ratio of sums and a difference of either are made linear first, so that each is the plain mean of
a table repetitions x users. Its variance is then the sum of what the users and what the repetitions bring, by the
mean squares of a crossed design; cells are counted with the repetitions, as two or three of these, which lie close
by chance, would else seem to bring nothing. An interval reaches between two: the sum of the squared reaches of both
parts, each with its own degrees of freedom (Howe 1974), which covers 96 to 99 % with three repetitions, and
Satterthwaite's single number of degrees, which covers 92 to 96 %. A bootstrap of both is slower and covers no better.
Users who weigh unequally have the degrees of freedom of their effective number (Kish 1965).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import fdtri, ndtr, stdtrit

from rankbench.core.contract import Flags, Floats, Ints

_SEVERAL = 20  # degrees of freedom, of which it is worth looking for equal ones
_UNUSUAL, _OF_TWO = 0.65, 0.4  # of pairs that vary alike, so many vary less than what is taken for unusual
FEWEST = 3  # repetitions to estimate what they add with: of two, 95 % intervals cover 92 % where repetitions matter


@dataclass(frozen=True, eq=False)
class Variation:
    """The means of one or more tables, and the variance that users and repetitions bring to each."""

    mean: Floats
    by_user: Floats  # the variance of the mean as users are drawn again; with one repetition, with their cells
    by_repetition: Floats  # the variance as repetitions are drawn again with their cells, zero with one repetition
    by_cell: Floats  # the variance of a single cell beyond user and repetition
    skewness: Floats  # of the mean, from the users' own
    users: int
    repetitions: int
    freedom: Ints | int = 0  # degrees of the variance by repetition; 0 stands for one fewer than there are repetitions
    pooled: int = 0  # those of all solvers' together; 0 where there is one
    unequal: float = 0.0  # degrees of the variance by user where users weigh unequally; 0 stands for users - 1

    @property
    def error(self) -> Floats:
        """The standard error of each mean."""
        return np.asarray(np.sqrt(self.by_user + self.by_repetition))

    @property
    def repetition_share(self) -> Floats:
        """The share of each mean's variance that repetitions bring."""
        whole = self.by_user + self.by_repetition
        return np.divide(self.by_repetition, whole, out=np.zeros_like(whole), where=whole > 0)

    def reach(self, z: float | Floats) -> Floats:
        """How far an interval reaches to each side that a normal mean of known variance would have at z errors."""
        if self.repetitions < 2:
            return np.asarray(np.sqrt(self.by_user) * student(self.of_users, z))
        cells = self.by_cell / (self.users * self.repetitions)
        return reach_of(self.by_user, self.by_repetition, cells, self.of_users, self.degrees, z, self.repetitions)

    @property
    def of_users(self) -> float:
        """The degrees of freedom of the variance by user."""
        return self.unequal or self.users - 1

    @property
    def degrees(self) -> Ints:
        """The degrees of freedom of the variance by repetition."""
        given = np.asarray(self.freedom)
        return np.where(given > 0, given, self.repetitions - 1)

    def normal_deviate(self) -> Floats:
        """The z at which the reach is the size of the mean: 1.96 stands for p = .05, two-sided."""
        size = np.abs(self.mean)
        low, high = np.zeros_like(size), np.full_like(size, 12.0)
        if self.users < 2:
            return low
        for _ in range(40):
            middle = (low + high) / 2
            inside = self.reach(middle) < size
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        return np.where(size > 0, low, 0.0)

    def at(self, users: int, repetitions: int) -> "Variation":
        """The same sources of variation with other numbers of users and repetitions."""
        alone = np.maximum(self.by_repetition * self.repetitions - self.by_cell / self.users, 0.0)
        of_repetition = (alone + self.by_cell / users) / repetitions
        none = np.zeros_like(self.mean)
        more = np.asarray(self.freedom) * (repetitions - 1) // max(self.repetitions - 1, 1)
        of_user = self.by_user * self.users / users
        pooled = self.pooled * (repetitions - 1) // max(self.repetitions - 1, 1)
        unequal = self.unequal * (users - 1) / max(self.users - 1, 1)
        return Variation(
            self.mean, of_user, of_repetition, self.by_cell, none, users, repetitions, more, pooled, unequal
        )  # fmt: skip


def reach_of(by_user: Floats, by_repetition: Floats, by_cell: Floats, of_users: float, of_repetitions: Ints,
             z: float | Floats, repetitions: int) -> Floats:  # fmt: skip
    """How far an interval reaches, by the two variances with their degrees of freedom; see `Variation.reach`.

    What cells bring to the mean was taken from the variance by user, whose error is still that of both together.
    """
    howe = by_user * student(of_users, z) ** 2 + by_repetition * student(of_repetitions, z) ** 2
    if repetitions < FEWEST:
        return np.asarray(np.sqrt(howe))
    whole = by_user + by_repetition
    taken = (by_user + by_cell) ** 2 / of_users + by_repetition**2 / of_repetitions
    freedom = np.divide(whole**2, taken, out=np.full(np.shape(whole), float(of_users)), where=taken > 0)
    freedom = np.maximum(freedom, np.minimum(of_users, of_repetitions))
    return np.asarray(np.sqrt((howe + whole * student(freedom, z) ** 2) / 2))


def steady(own: Floats, pooled: Floats, alone: int, together: int) -> Flags:
    """Where a variance by repetition is no larger than chance lets it be, if all solvers vary alike.

    That of two repetitions is known worst, so that less of it is taken for unusual.
    """
    if alone < 1:
        return np.zeros(np.shape(own), bool)
    return np.asarray(own <= pooled * fdtri(alone, together, _OF_TWO if alone == 1 else _UNUSUAL))


def student(freedom: float | Ints | Floats, z: float | Floats) -> Floats:
    """The quantile of Student's distribution at the level where the normal one has z."""
    level = ndtr(-np.asarray(z, np.float64))
    if level.ndim == 0 and np.size(freedom) > _SEVERAL and np.issubdtype(np.asarray(freedom).dtype, np.integer):
        few, places = np.unique(freedom, return_inverse=True)  # an inverse takes long, and most degrees are alike
        return np.asarray(-stdtrit(few, level))[places]
    return np.asarray(-stdtrit(freedom, level))


def linear(values: Floats, weights: Floats | None = None) -> Floats:
    """The table whose plain means over users are the (weighted) means of the last axis; NaN users add nothing."""
    counted = ~np.isnan(values)
    known = np.where(counted, 1.0 if weights is None else weights, 0.0)
    filled = np.where(counted, values, 0.0)
    totals = known.sum(axis=-1, keepdims=True)
    larger = 1.0 if weights is None else _leverage(_of_users(values, weights))[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (known * filled).sum(axis=-1, keepdims=True) / totals
        return np.asarray(means + larger * values.shape[-1] * known * (filled - means) / totals)


def freedom_of(values: Floats, weights: Floats | None) -> float:
    """The degrees of freedom of the variance by user of `linear`'s table where users weigh unequally, else 0."""
    return 0.0 if weights is None else _leverage(_of_users(values, weights))[1]


def freedom_of_squares(values: Floats, weights: Floats) -> float:
    """The degrees of freedom of the variance by user itself where users weigh unequally, else 0.

    They are fewer than those of a mean's interval, as the squares of users who weigh much make up most of the variance.
    """
    weigh = _of_users(values, weights)
    square = weigh[weigh > 0] ** 2
    return 0.0 if len(set(square)) < 2 else max(float(square.sum() ** 2 / (square**2).sum()), 1.0)


def _of_users(values: Floats, weights: Floats) -> Floats:
    """What each user weighs on average, where it has a value."""
    counted = ~np.isnan(values)
    axes = tuple(range(values.ndim - 1))
    total, times = np.where(counted, weights, 0.0).sum(axis=axes), counted.sum(axis=axes)
    return np.asarray(np.divide(total, times, out=np.zeros(len(total)), where=times > 0))


def _leverage(weights: Floats) -> tuple[float, float]:
    """By what the residuals of a weighted mean are to be enlarged, and the degrees of freedom of its variance.

    A user that weighs much pulls the mean to itself, so that its residual comes out small. Where the values vary alike,
    the variance is right on average with the first number. The degrees are one fewer than Kish's effective number of
    users. Those by Satterthwaite's rule are fewer still and cover too much, as a large residual goes with a large
    error. Equal weights give 1, and 0, which stands for one degree fewer than there are users.
    """
    n, total = len(weights), float(weights.sum())
    if n < 2 or total <= 0 or np.ptp(weights) == 0 or (weights > 0).sum() < 2:
        return 1.0, 0.0
    share = weights / total
    square = share**2
    whole = float(square.sum())
    seen = float((square * (1 - 2 * share + whole)).sum())
    return float(np.sqrt(whole / seen * (n - 1) / n)), max(1 / whole - 1, 1.0)


def variation(table: Floats, unequal: float = 0.0) -> Variation:
    """The variation of the means of tables ... x repetitions x users, as `linear` returns them, and `freedom_of`."""
    *_, repetitions, users = table.shape
    of_users, of_repetitions = table.mean(axis=-2), table.mean(axis=-1)
    mean = of_users.mean(axis=-1)
    moved = of_users - mean[..., None]
    more = max(users - 1, 1)
    by_user = (moved**2).sum(axis=-1) / more / users  # with a share of the cells, which the repetitions have too
    cube = (1 + 6 / users) * (moved**3).sum(axis=-1) / (users * more * max(users - 2, 1))  # of few it comes out small
    by_cell, by_repetition = np.zeros_like(mean), np.zeros_like(mean)
    if repetitions > 1:
        ends = of_repetitions - mean[..., None]
        rest = table - of_users[..., None, :] - ends[..., None]
        by_cell = (rest**2).sum(axis=(-1, -2)) / (more * (repetitions - 1))
        by_user = np.maximum(by_user - by_cell / users / repetitions, 0.0)
        by_repetition = (ends**2).sum(axis=-1) / (repetitions - 1) / repetitions
    error = np.sqrt(by_user + by_repetition)
    skewness = np.divide(cube, error**3, out=np.zeros_like(cube), where=error > 0)
    return Variation(mean, by_user, by_repetition, by_cell, skewness, users, repetitions, unequal=unequal)


@dataclass(frozen=True, eq=False)
class Together:
    """Several solvers on the same users and repetitions: their means and how these vary together."""

    means: Floats
    by_user: Floats  # covariances, solvers x solvers
    by_repetition: Floats  # of a single repetition, with its cells
    by_cell: Floats
    users: int
    repetitions: int
    unequal: float = 0.0  # as of a `Variation`

    @property
    def of_users(self) -> float:
        """The degrees of freedom of the variances by user."""
        return self.unequal or self.users - 1

    @property
    def common(self) -> float:
        """The variance of one repetition that each solver has to itself, on average; half of that of a difference."""
        k = len(self.means)
        return max(float(_of_pairs(self.by_repetition).sum()) / (2 * k * max(k - 1, 1)), 0.0)

    def differences(self) -> Variation:
        """The variation of each solver minus each other one, solvers x solvers.

        What repetitions bring to a difference is at least what they bring to all of them on average: of three
        repetitions alone it comes out as nothing for some pair, which is then taken for a clear one. A pair that
        varies unusually much has its own degrees of freedom.
        """
        mean = self.means[:, None] - self.means
        by_user, own, by_cell = (_of_pairs(each) for each in (self.by_user, self.by_repetition, self.by_cell))
        alone, together = self.repetitions - 1, (self.repetitions - 1) * max(len(mean) - 1, 1)
        pooled = np.where((by_user > 0) | (by_cell > 0), 2 * self.common, 0.0)  # identical models have nothing to vary
        single = np.maximum(own, pooled)
        freedom = np.where(steady(own, pooled, alone, together), together, alone)
        return Variation(
            mean, np.maximum(by_user, 0.0), single / self.repetitions, by_cell, np.zeros_like(mean), self.users,
            self.repetitions, freedom, together, self.unequal,
        )  # fmt: skip

    def covariances(self, repetitions: int) -> Floats:
        """The covariances of the means of so many repetitions."""
        return np.asarray(self.by_user + self.by_repetition / repetitions)


def together(table: Floats, unequal: float = 0.0) -> Together:
    """How the means of solvers x repetitions x users vary together."""
    _, repetitions, users = table.shape
    of_users, of_repetitions = table.mean(axis=1), table.mean(axis=2)
    means = of_users.mean(axis=1)
    more = max(users - 1, 1)
    moved = of_users - means[:, None]
    by_user = moved @ moved.T / more / users
    by_repetition, by_cell = np.zeros_like(by_user), np.zeros_like(by_user)
    if repetitions > 1:
        ends = of_repetitions - means[:, None]
        rest = (table - of_users[:, None] - ends[..., None]).reshape(len(table), -1)
        by_cell = rest @ rest.T / (more * (repetitions - 1))
        by_repetition = ends @ ends.T / (repetitions - 1)
        by_user -= by_cell / users / repetitions
    return Together(means, by_user, by_repetition, by_cell, users, repetitions, unequal)


def _of_pairs(covariances: Floats) -> Floats:
    """The variances of all differences; those that are zero but for rounding are zero."""
    own = np.diag(covariances)
    found = own[:, None] + own - 2 * covariances
    return np.where(np.abs(found) <= 1e-13 * np.abs(own[:, None] + own), 0.0, found)
