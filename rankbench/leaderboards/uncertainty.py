"""How far scores would be from these with other judges, or with other comparisons by the same ones."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit, stdtrit

from rankbench.core.amounts import amount
from rankbench.core.contract import Flags, Floats
from rankbench.core.errors import UserError
from rankbench.leaderboards.fits.fitting import Fit, refitted
from rankbench.leaderboards.votes import Groups

DRAWS = 2000  # of scores, for what is said of ranks
RESAMPLES = 1000
ROUNDING = 1e-12  # of scores and of their errors
_BLOCK = 1 << 22  # numbers in a block of draws
_FEW = 10  # judges below which a remark is made


@dataclass(frozen=True, eq=False)
class Spread:
    """The uncertainty of all scores together.

    `deviations` (draw x item) are draws of what a score may be off by, `errors` the standard errors, `reach` by how
    many of them an interval of 95 % goes to each side; a bootstrap has its intervals from its own quantiles.
    """

    of: str  # what was taken to be drawn again: "judges", or "comparisons"
    method: str  # "sandwich" or "bootstrap"
    groups: int  # how many of them there are
    errors: Floats
    deviations: Floats
    reach: float
    covariance: Floats | None = None
    influences: Floats | None = None  # of each judge on each score, whose squares sum to the variances
    freedom: float = np.inf  # degrees of freedom of the errors
    low: Floats | None = None
    high: Floats | None = None

    def interval(self, scores: Floats) -> tuple[Floats, Floats]:
        """The 95 % interval of each score."""
        if self.low is not None and self.high is not None:
            return self.low, self.high
        return scores - self.reach * self.errors, scores + self.reach * self.errors

    @cached_property
    def differences(self) -> Floats:
        """The standard error of the difference of each two scores."""
        covariance = self.covariance
        if covariance is None:
            centred = self.deviations - self.deviations.mean(axis=0)
            covariance = centred.T @ centred / (len(centred) - 1)
        return np.sqrt(of_differences(covariance))

    @property
    def words(self) -> str:
        """How the intervals were found, in words."""
        judges = amount(self.groups, "judge")
        what = {"judges": judges, "comparisons": "single comparisons", "rankings": "single rankings"}
        how = {"sandwich": "robust (sandwich) errors", "bootstrap": f"{len(self.deviations):,} bootstrap draws"}
        are_few = self.of == "judges" and self.groups < _FEW
        few = f"; {judges} {'is' if self.groups == 1 else 'are'} few, so that the intervals are rough"
        return f"95 % intervals by {how[self.method]} over {what[self.of]}{few if are_few else ''}"


def sandwich(fit: Fit, groups: Groups | None, single: str, seed: int, loose: Flags | None = None) -> Spread:
    """Errors that hold whatever the spread of the votes is: H^-1 (sum of g g') H^-1, with g the gradient of a judge.

    Votes of one judge are taken together, since they are not independent; without judges each vote is one of its own.
    A judge's gradient is divided by 1 - the judge's share of the votes, which is what leaving this judge out would
    change (the jackknife of clusters) if all had compared the same pairs. Intervals use Student's t with J - 1 degrees
    of freedom, J = (sum of n)^2 / (sum of n^2) for judges with n votes each: some with most of the votes are few.
    """
    n = fit.problem.n_items
    centring = np.eye(n) - 1 / n
    inverse = centring @ fit.inverse[:n]
    extra = _of_penalty(fit, centring, loose)
    if groups is None:
        return of_singles(inverse @ fit.problem.own_squares(fit.parameters) @ inverse.T + extra, single, seed)
    found = of_judges(-(fit.problem.by_group(fit.parameters, groups) @ inverse.T), groups, extra, seed)
    return replace(found, influences=None) if fit.penalty else found


def of_singles(covariance: Floats, single: str, seed: int) -> Spread:
    """The spread of scores with this covariance, where each comparison or ranking is one of its own."""
    deviations = students(np.random.default_rng(seed), DRAWS, len(covariance), np.inf) @ root(covariance)
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return Spread(single, "sandwich", 0, errors, deviations, stdtrit(np.inf, 0.975), covariance)


def of_judges(influences: Floats, groups: Groups, extra: Floats, seed: int) -> Spread:
    """The spread of scores on which each judge has such an influence; `extra` is added to the covariance."""
    sizes = groups.sizes
    freedom = max(2.0, sizes.sum() ** 2 / (sizes**2).sum()) - 1
    left = np.maximum(1 - sizes / sizes.sum(), 0.5)  # more than half the votes are no sample of judges any more
    influences = influences / left[:, None]
    covariance = influences.T @ influences + extra
    deviations = students(np.random.default_rng(seed), DRAWS, len(covariance), freedom) @ root(covariance)
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return Spread("judges", "sandwich", len(groups.names), errors, deviations, stdtrit(freedom, 0.975), covariance,
                  influences, freedom)  # fmt: skip


def _of_penalty(fit: Fit, centring: Floats, loose: Flags | None) -> Floats:
    """What a penalty adds to the covariance: its own curvature, and for loose items the inverse Hessian.

    The votes on an item that never lost fit a high score without an error, so that their squared gradients say nothing
    about how high it may be.
    """
    n = fit.problem.n_items
    if not fit.penalty:
        return np.zeros((n, n))
    p = expit(fit.parameters[:n])
    own = centring @ fit.inverse[:n, :n]
    items = centring * (np.zeros(n) if loose is None else loose)
    found: Floats = (own * (fit.penalty * p * (1 - p))) @ own.T + items @ fit.inverse[:n, :n] @ items.T
    return found


def bootstrap(fit: Fit, groups: Groups | None, single: str, seed: int, draws: int = RESAMPLES) -> Spread:
    """Scores found again with random weights of judges: exponential ones, so that no judge's votes are lost whole.

    D. B. Rubin (1981), The Bayesian bootstrap; M. A. Newton and A. E. Raftery (1994) for likelihoods.
    """
    reweighted = fit.problem.reweighted(groups)
    rng, n = np.random.default_rng(seed), fit.problem.n_items
    size = max(1, min(64, _BLOCK // max(1, reweighted.size)))

    def block(count: int) -> Floats:
        scores = refitted(fit, reweighted, reweighted.draw(rng, count))[:n].T
        centred: Floats = scores - scores.mean(axis=1, keepdims=True)
        return centred

    return resampled(block, fit.scores, draws, size, "judges" if groups is not None else single,
                     0 if groups is None else len(groups.names))  # fmt: skip


def resampled(block: Callable[[int], Floats], scores: Floats, draws: int, size: int, of: str, groups: int) -> Spread:
    """The spread of scores that `block` draws again, so many (draw x item) at a call."""
    if draws < 20:
        raise UserError(f"{draws} resamples are too few for an interval", remedy="take 200 or more")
    counts = [min(size, draws - low) for low in range(0, draws, size)]
    drawn = np.concatenate([block(count) for count in counts])
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
    deviations = drawn - scores
    return Spread(of, "bootstrap", groups, drawn.std(axis=0, ddof=1), deviations, stdtrit(np.inf, 0.975), low=low,
                  high=high)  # fmt: skip


def students(rng: np.random.Generator, draws: int, size: int, freedom: float) -> Floats:
    """Normal numbers (draw x size), each draw divided by the root of a chi-square over its degrees of freedom."""
    normals: Floats = rng.standard_normal((draws, size))
    if np.isfinite(freedom):
        normals /= np.sqrt(rng.chisquare(freedom, draws) / freedom)[:, None]
    return normals


def of_differences(covariance: Floats) -> Floats:
    """The variance of the difference of each two scores, from the covariance of all."""
    own = np.diag(covariance)
    found: Floats = np.maximum(own[:, None] + own - 2 * covariance, 0.0)
    return found


def root(covariance: Floats) -> Floats:
    """A matrix R with R' R the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    found: Floats = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return found
