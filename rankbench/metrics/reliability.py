"""Whether a model's chances can be believed: of comparisons it gives the chance p, about a share p should come so.

A model gives the item that it scores higher by d the chance 1 / (1 + e^-d). Scores of another scale, as those of
solvers with a hinge loss are, are multiplied by a slope first, which is found on held-out comparisons.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from rankbench.core.contract import Floats, Int32s, Model
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons
from rankbench.metrics.rows import scores_of
from rankbench.statistics.estimates import mean_of_users

_STEPS = 100  # of Newton's method for the slope
_CONVERGED = 1e-12


@dataclass(frozen=True)
class Bin:
    """Comparisons of similar chances, and how many of them the item with the higher score won."""

    low: float  # the bin takes chances from `low` up to `high`
    high: float
    comparisons: int
    chance: float  # the mean
    share: float  # of wins of the items with the higher scores
    share_low: float  # its 95 % interval, over users
    share_high: float


def gaps_of(model: Model, test: Comparisons) -> Floats:
    """The better item's score less the worse one's, for each comparison; NaN where a score is not finite."""
    users = test.users
    return gaps(scores_of(model, users, test.better), scores_of(model, users, test.worse))


def gaps(better: Floats, worse: Floats) -> Floats:
    """The better item's score less the worse one's; NaN where a score is not finite."""
    finite = np.isfinite(better) & np.isfinite(worse)
    found = np.full(len(better), np.nan)
    found[finite] = better[finite] - worse[finite]
    return found


def log_losses(gaps: Floats) -> Floats:
    """log(1 + e^-gap) of each comparison."""
    found = np.full(len(gaps), np.nan)
    np.logaddexp(0.0, -gaps, out=found, where=~np.isnan(gaps))
    return found


def squared_errors(gaps: Floats) -> Floats:
    """The square of the chance of what did not come, 1 / (1 + e^gap), of each comparison."""
    found: Floats = np.square(expit(-gaps))
    return found


LOSSES: dict[str, Callable[[Floats], Floats]] = {"log-loss": log_losses, "brier": squared_errors}  # by their metrics


def bins_of(gaps: Floats, users: Int32s, n_users: int, count: int) -> Iterator[Bin]:
    """The comparisons by the chance of the item with the higher score, in bins of equal width from 1/2 to 1.

    A comparison of equal scores counts half a win. Bins without a comparison are left out.
    """
    chances = expit(np.abs(gaps))
    won = np.where(gaps == 0, 0.5, gaps > 0)
    edges = np.linspace(0.5, 1.0, count + 1)
    places = np.minimum(np.searchsorted(edges, chances, side="right") - 1, count - 1)
    for place in np.unique(places[~np.isnan(gaps)]):
        rows = (places == place) & ~np.isnan(gaps)
        sizes = np.bincount(users[rows], minlength=n_users).astype(np.float64)
        with np.errstate(invalid="ignore"):
            shares = np.bincount(users[rows], won[rows], n_users) / sizes
        found = mean_of_users(shares[None], sizes[None], (0.0, 1.0))
        yield Bin(
            float(edges[place]), float(edges[place + 1]), int(rows.sum()), float(chances[rows].mean()),
            found.mean, found.low, found.high,
        )  # fmt: skip


def slope_of(gaps: Floats) -> float:
    """What the scores are to be multiplied by, so that their chances make the comparisons most likely.

    min_a sum log(1 + e^(-a gap)) is convex, with a curvature that falls as a > 0 grows: so Newton's method from 0 never
    passes the minimum, and ends at it to rounding.
    """
    known = gaps[~np.isnan(gaps)]
    size = float(np.abs(known).mean()) if len(known) else 0.0
    if size == 0:
        raise UserError("the model scores both items of every comparison alike, so that chances cannot be fitted")
    scaled = known / size
    if scaled.sum() <= 0:
        remedy = "give comparisons of the kind that it was fitted to"
        raise UserError("the model's scores do not agree with these comparisons", remedy=remedy)
    slope = 0.0
    for _ in range(_STEPS):
        wrong = expit(-slope * scaled)
        fall, curvature = float(scaled @ wrong), float(np.square(scaled) @ (wrong * (1 - wrong)))
        step = fall / curvature
        slope += step
        if step <= _CONVERGED * slope:
            return slope / size
    raise UserError(
        "the model's scores agree with all of these comparisons, so that no chance below 1 can be fitted",
        remedy="give more comparisons, which were not used in training",
    )
