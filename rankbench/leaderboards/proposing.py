"""Which comparisons to ask for next: those that say most about differences that are still open."""

from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, ndtr

from rankbench.core.errors import UserError
from rankbench.leaderboards.models import Estimated
from rankbench.leaderboards.uncertainty import of_differences
from rankbench.leaderboards.votes import Votes

if TYPE_CHECKING:
    import pandas

_MOST = 1_000_000  # comparisons; with the answers to fewer, others are worth asking
_ALIKE = 100  # of so many comparisons before it, one more of a pair is proposed at once
_NOTHING = 1e-9  # of a wrong order, which is too little to ask for


def proposals(votes: Votes, found: Estimated, number: int) -> "pandas.DataFrame":
    """So many comparisons, one after the other, each with the chance that the order of its two items is wrong today.

    The sum of that chance over all pairs (c, d), of the normal distribution at -gap/error, is to fall most. A
    comparison of a and b with information i = p (1 - p) lowers the variance of c - d by
    i cov(c - d, a - b)^2 / (1 + i var(a - b)). With w the derivatives of the chances by their variances, L their
    Laplacian and V the covariance of all scores, the sum falls to first order by i / (1 + i var(a - b)) times
    (e_a - e_b)' V L V (e_a - e_b): one product of matrices for all pairs. Then the covariance is what it would be
    with that comparison. Of very many, each pair that is found gets a hundredth of those before it, so that their
    number costs little. There are fewer if the others would settle nothing.
    """
    import pandas  # noqa: PLC0415  slow to import

    if not (isinstance(number, Integral) and 1 <= number <= _MOST):
        raise UserError(f"{number} comparisons cannot be proposed: it must be at least 1 and at most {_MOST}")
    if found.fit is None:
        raise UserError(f"{found.model} has no errors to propose comparisons by", remedy="take bradley-terry")
    if found.spread is None or found.spread.covariance is None:
        raise UserError("comparisons are proposed by robust errors", remedy="take sandwich for the intervals")
    scores, covariance = found.scores, found.spread.covariance.copy()
    margins = scores[:, None] - scores
    information = expit(margins) * expit(-margins)
    rows: list[tuple[object, object, float]] = []
    while len(rows) < number:
        variances = of_differences(covariance)
        errors = np.sqrt(np.where(variances > 0, variances, np.inf))
        gaps = np.abs(margins) / errors
        weights = np.exp(-(gaps**2) / 2) * gaps / errors**2
        laplacian = np.diag(weights.sum(axis=1)) - weights
        gain = information / (1 + information * variances) * of_differences(covariance @ laplacian @ covariance)
        a, b = np.unravel_index(int(np.triu(gain, 1).argmax()), gain.shape)
        if gain[a, b] < _NOTHING:
            break
        times = min(max(1, len(rows) // _ALIKE), number - len(rows))
        better, worse = (a, b) if margins[a, b] >= 0 else (b, a)
        rows += [(votes.items[better], votes.items[worse], float(ndtr(-gaps[a, b])))] * times
        along = covariance[:, a] - covariance[:, b]
        told = times * information[a, b]
        covariance -= np.outer(along, along) * told / (1 + told * variances[a, b])
    return pandas.DataFrame(rows, columns=["left", "right", "may_be_wrong"])
