"""Judges: how well each agrees with the leaderboard of the others, and votes weighed by that."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.leaderboards.models import Choices, Estimated, estimated
from rankbench.leaderboards.votes import LEFT, TIE, Groups, Votes

if TYPE_CHECKING:
    import pandas

_PULL = 4.0  # how strongly slopes are pulled to 1, as a curvature: that of some 16 comparisons of equal items
_STEPS = 50


@dataclass(frozen=True, eq=False)
class _Seen:
    """The votes beside the scores of the other judges."""

    judges: Groups
    amounts: Floats
    margins: Floats  # of the left item by the scores without this vote's judge
    won: Floats  # 1 if the left item won, 0.5 for a tie
    decided: Floats  # 1 unless it is a tie

    @classmethod
    def of(cls, votes: Votes, found: Estimated) -> "_Seen":
        """The margins by the scores without the judge of each vote: one Newton step from the fit of all."""
        fit, judges = found.fit, votes.judges
        if judges is None or len(judges.names) < 2:
            raise UserError("this needs a column that names the judge of each vote, and at least two judges",
                            remedy="name it: FILE[judge=NAME]")  # fmt: skip
        if fit is None:
            raise UserError(f"{found.model} says nothing about judges", remedy="take bradley-terry or davidson")
        gradients = fit.problem.by_group(fit.parameters, judges)
        scores = fit.scores + gradients @ fit.inverse[:, : votes.n_items]  # what a judge pulled them away from
        margins = scores[judges.codes, votes.left] - scores[judges.codes, votes.right]
        won = np.where(votes.outcome == LEFT, 1.0, np.where(votes.outcome == TIE, 0.5, 0.0))
        return cls(judges, votes.amounts, margins, won, (votes.outcome != TIE).astype(float))

    def totals(self, values: Floats) -> Floats:
        """The sum of a number of each vote by judge."""
        found: Floats = np.bincount(self.judges.codes, self.amounts * values, len(self.judges.names)).astype(float)
        return found

    def slopes(self) -> tuple[Floats, Floats]:
        """Each judge's slope and its standard error, by Newton's method for all judges side by side."""
        slopes = errors = np.ones(len(self.judges.names))
        for _ in range(_STEPS):
            p = expit(slopes[self.judges.codes] * self.margins)
            gradient = self.totals((p - self.won) * self.margins) + _PULL * (slopes - 1)
            curvature = self.totals(p * (1 - p) * self.margins**2) + _PULL
            step = np.clip(gradient / curvature, -1.0, 1.0)
            slopes, errors = slopes - step, 1 / np.sqrt(curvature)
            if np.abs(step).max() < 1e-10:
                break
        return slopes, errors


def judges_of(votes: Votes, found: Estimated) -> "pandas.DataFrame":
    """A row for each judge: comparisons, agreement with the others, and the slope of the judge's votes on their scores.

    `agreement` is the share of decided comparisons won by the item that the others rank higher, `expected` what it
    would be if the judge voted as the model says. A slope of 1 is a judge like the others, 0 one who votes at random,
    below 0 one who votes the other way round; slopes are pulled to 1 as by 16 comparisons of equal items.
    """
    import pandas  # noqa: PLC0415  slow to import

    seen = _Seen.of(votes, found)
    agree = np.where(seen.margins == 0, 0.5, (seen.margins > 0) == (seen.won > 0.5))
    likely = np.maximum(expit(seen.margins), expit(-seen.margins))
    with np.errstate(invalid="ignore"):
        shares = [seen.totals(values * seen.decided) / seen.totals(seen.decided) for values in (agree, likely)]
    slopes, errors = seen.slopes()
    columns = {"judge": seen.judges.names, "comparisons": seen.totals(np.ones(len(votes))), "agreement": shares[0],
               "expected": shares[1], "slope": slopes, "low": slopes - 1.96 * errors,
               "high": slopes + 1.96 * errors}  # fmt: skip
    return pandas.DataFrame(columns).sort_values("slope", kind="stable", ignore_index=True)


def weighed(votes: Votes, choices: Choices) -> tuple[Votes, Estimated]:
    """The votes with a judge's weight multiplied by the judge's slope, and the scores found with these weights.

    A judge whose slope is not above 0 counts nothing. With scores s and slopes a held apart both fits are convex.
    """
    first = estimated(votes, choices)
    seen = _Seen.of(votes, first)
    factors = np.maximum(seen.slopes()[0], 0.0)
    if not factors.any():
        raise UserError("no judge agrees with the others, so that no vote would count", remedy="do not weigh judges")
    kept = replace(votes, weights=votes.weights * factors[seen.judges.codes], rankings=None)
    silent = int((factors == 0).sum())
    if silent:
        kept = kept.where(kept.weights > 0)
    found = estimated(kept, replace(choices, model=first.model if first.model != "plackett-luce" else "bradley-terry"))
    remark = (
        "Each judge's votes are weighed by how well they agree with the others'; the weights come from the same votes, "
        "so that intervals are too narrow: where all items were equal, they held 87 % of the time"
    )
    whom = "1 judge who does not agree at all is" if silent == 1 else f"{silent} judges who do not agree at all are"
    remark += f"; {whom} left out" if silent else ""
    return kept, replace(found, remarks=(*found.remarks, remark))
