"""The models of a leaderboard by name: what turns votes into scores with their uncertainty."""

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Literal

import numpy as np

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError, unknown
from rankbench.core.streams import checked_seed
from rankbench.leaderboards import table_errors
from rankbench.leaderboards.connections import Connections
from rankbench.leaderboards.fits import classical
from rankbench.leaderboards.fits.fitting import Fit, fitted
from rankbench.leaderboards.fits.likelihoods import LIKELIHOODS, BradleyTerry
from rankbench.leaderboards.fits.pairs import Pairs, pairs_of
from rankbench.leaderboards.fits.problems import OfPairs, OfRankings, Problem
from rankbench.leaderboards.uncertainty import RESAMPLES, ROUNDING, Spread, bootstrap, resampled, sandwich
from rankbench.leaderboards.votes import TIE, Groups, Votes

Intervals = Literal["auto", "sandwich", "bootstrap", "none"]
MODELS = (*LIKELIHOODS, "plackett-luce", *classical.OF_TABLES, "elo")
_MOST_ITEMS = 5_000
_PENALTY = 1.0
_NOT_DRAWN = (
    "A bootstrap cannot draw votes that were not cast: intervals and ranks of items that never lost or never won are "
    "too narrow"
)
_RARE = 10  # comparisons of an item
_OFTEN = 100  # comparisons of a pair, or of an item, from which a bootstrap of shares can be trusted


@dataclass(frozen=True)
class Choices:
    """How scores and intervals are to be found."""

    model: str = "auto"
    side: bool = False  # whether the left side may have an advantage
    penalty: float | None = None  # of comparisons that each item won and lost by half; by default where it is needed
    intervals: Intervals = "auto"
    clusters: Literal["auto", "judges", "comparisons"] = "auto"
    resamples: int = RESAMPLES
    seed: int = 0

    def __post_init__(self) -> None:
        if self.model not in ("auto", *MODELS):
            raise unknown("model", self.model, MODELS)
        for name, value, known in (
            ("intervals", self.intervals, ("auto", "sandwich", "bootstrap", "none")),
            ("clusters", self.clusters, ("auto", "judges", "comparisons")),
        ):
            if value not in known:
                raise unknown(name, value, known)
        self._check_numbers()

    def _check_numbers(self) -> None:
        """Refuse numbers that are none, or out of range."""
        if self.penalty is not None and not isinstance(self.penalty, Real):
            raise UserError(f"penalty={self.penalty!r} is not valid", remedy="give a number of at least 0")
        for name, value in (("resamples", self.resamples), ("seed", self.seed)):
            if not isinstance(value, Integral):
                raise UserError(f"{name}={value!r} is not valid", remedy="give a whole number")
        checked_seed(self.seed)
        if not isinstance(self.side, bool | np.bool_):
            raise UserError(f"side={self.side!r} is not valid", remedy="give True or False")
        if self.penalty is not None and not 0 <= self.penalty < np.inf:
            raise UserError(f"penalty={self.penalty:g} is out of range: must be at least 0")
        if self.resamples < 20:
            raise UserError(f"resamples={self.resamples} is out of range: must be at least 20")


@dataclass(frozen=True, eq=False)
class Estimated:
    """The scores of all items, with their spread and what a reader has to know."""

    model: str
    title: str
    scores: Floats
    spread: Spread | None
    fit: Fit | None
    wins: Floats  # how often each item won against each other one, ties being half a win of each
    remarks: tuple[str, ...]


def estimated(votes: Votes, choices: Choices) -> Estimated:
    """The scores under the chosen model; `auto` takes one by what there is: rankings, ties, or wins alone."""
    if votes.n_items > _MOST_ITEMS:
        raise UserError(
            f"{votes.n_items:,} items are more than a leaderboard holds, which is {_MOST_ITEMS:,}",
            remedy="take the solver `global` (rankbench on), which gives scores without intervals",
        )
    pairs = pairs_of(votes, choices.side)
    wins = classical.table_of(pairs, pairs.seen)
    connections = Connections.of(wins)
    name = choices.model if choices.model != "auto" else _usual(votes)
    groups, few = _groups(votes, choices)
    found = _of_likelihood if name in LIKELIHOODS or name == "plackett-luce" else _of_table
    remarks = [*connections.remarks(votes.items), *few, *_rarely_compared(wins)]
    estimate = found(votes, pairs, name, groups, choices, (wins, connections, remarks))
    return replace(estimate, remarks=(*estimate.remarks, *_without_width(estimate)))


def _without_width(found: Estimated) -> list[str]:
    """A remark if some intervals have no width, which is no certainty."""
    if found.spread is None:
        return []
    low, high = found.spread.interval(found.scores)
    number = int((high - low <= ROUNDING * np.maximum(1.0, np.abs(found.scores))).sum())
    intervals = "1 interval has" if number == 1 else f"{number} intervals have"
    return [f"{intervals} no width, which is no certainty: nothing in the votes shows how others would differ, such as "
            "where all are ties, or those of each judge cancel out"] if number else []  # fmt: skip


def _rarely_compared(wins: Floats) -> list[str]:
    """A remark if some items have so few comparisons that no interval can be trusted."""
    rare = int(((wins + wins.T).sum(axis=1) < _RARE).sum())
    items = "1 item has" if rare == 1 else f"{rare} items have"
    return [f"{items} fewer than {_RARE} comparisons: intervals and ranks are rough there"] if rare else []


def _rarely_drawn(name: str, pairs: Pairs, wins: Floats) -> list[str]:
    """A remark if a bootstrap of these scores is too narrow for so few comparisons."""
    if name == "win-rate" and pairs.seen.sum(axis=0).min() < _OFTEN:
        return [f"Some pairs have fewer than {_OFTEN} comparisons, whose shares hardly vary in a bootstrap: intervals "
                "and ranks are too narrow; leave intervals to their default"]  # fmt: skip
    if name in ("pagerank", "eigen") and (wins + wins.T).sum(axis=1).min() < _OFTEN:
        return [f"Some items have fewer than {_OFTEN} comparisons, too few for a bootstrap of {name}: where all items "
                "were equal, it told some apart in 7 to 19 % of leaderboards; leave intervals to "
                "their default"]  # fmt: skip
    return []


_Facts = tuple[Floats, Connections, list[str]]


def _usual(votes: Votes) -> str:
    """The model that suits: Plackett-Luce for rankings without ties, Davidson with ties, else Bradley-Terry."""
    if votes.rankings is not None and not votes.rankings.tied and votes.covariates is None:
        return "plackett-luce"
    ties = votes.outcome == TIE
    return "davidson" if ties.any() and not ties.all() else "bradley-terry"


def _groups(votes: Votes, choices: Choices) -> tuple[Groups | None, list[str]]:
    """The groups of votes that are drawn together, and a remark if judges were to be them but cannot."""
    wanted = choices.clusters
    if wanted == "comparisons" or votes.judges is None:
        if wanted == "judges":
            raise UserError("no column says who judged, so that judges cannot be drawn again",
                            remedy="name it: FILE[judge=NAME]")  # fmt: skip
        return None, []
    if len(votes.judges.names) < 2:
        return None, [
            "All votes are of one judge: the intervals say how they would change with other votes of this one"
        ]
    return votes.judges, []


def _of_likelihood(
    votes: Votes, pairs: Pairs, name: str, groups: Groups | None, choices: Choices, facts: _Facts
) -> Estimated:
    """The scores that maximise a likelihood."""
    wins, connections, remarks = facts
    problem = _problem(votes, pairs, name, choices)
    needed = 0.0 if connections.bounded else _PENALTY
    penalty = needed if choices.penalty is None else choices.penalty
    if penalty == 0 and not connections.bounded:
        raise UserError(f"without a penalty the scores have no finite values: {'; '.join(remarks)}",
                        remedy="leave penalty to its default")  # fmt: skip
    if penalty:
        remarks.append(
            f"The scores are penalised: {penalty / 2:g} comparisons won and {penalty / 2:g} lost against an average "
            "item were added to each item"
        )
    fit = fitted(problem, penalty)
    single = "rankings" if name == "plackett-luce" else "comparisons"
    spread = None
    if choices.intervals == "bootstrap":
        spread = bootstrap(fit, groups, single, choices.seed, choices.resamples)
        remarks += [] if connections.bounded else [_NOT_DRAWN]
    elif choices.intervals != "none":
        spread = sandwich(fit, groups, single, choices.seed, connections.loose)
    title = "Plackett-Luce" if name == "plackett-luce" else LIKELIHOODS[name].title
    return Estimated(name, title, fit.scores, spread, fit, wins, tuple(remarks))


def _problem(votes: Votes, pairs: Pairs, name: str, choices: Choices) -> Problem:
    """The objective of a model, or an error if the votes do not suit it."""
    if name == "plackett-luce":
        if votes.rankings is None or votes.rankings.tied:
            what = "there are none" if votes.rankings is None else "some of these have ties"
            raise UserError(f"plackett-luce needs rankings without ties, and {what}", remedy="take davidson")
        if choices.side or votes.covariates is not None:
            raise UserError("plackett-luce takes no advantage of a side and no covariates", remedy="take bradley-terry")
        return OfRankings(votes.n_items, votes.rankings)
    if choices.side and not votes.ordered:
        raise UserError(
            "the advantage of a side needs columns left and right: winner and loser do not say who was where"
        )
    model = LIKELIHOODS[name]
    ties = pairs.seen[TIE].sum()
    if model.has_ties and (ties == 0 or ties == pairs.seen.sum()):
        raise UserError(f"{name} has a chance of ties, and {'no' if ties == 0 else 'every'} comparison is a tie",
                        remedy="take bradley-terry")  # fmt: skip
    names = (*(["left side"] if choices.side else []), *votes.covariate_names, *(["ties"] if model.has_ties else []))
    return OfPairs(pairs, model, names)


def _of_table(
    votes: Votes, pairs: Pairs, name: str, groups: Groups | None, choices: Choices, facts: _Facts
) -> Estimated:
    """Scores that are no maximum of a likelihood; numbers of wins have the intervals of a bootstrap."""
    wins, connections, remarks = facts
    if choices.side or votes.covariates is not None:
        raise UserError(
            f"{name} takes no advantage of a side and no covariates", remedy="take bradley-terry or davidson"
        )
    if choices.intervals == "sandwich" and name not in table_errors.SLOPES:
        raise UserError(f"{name} has no robust errors, since it maximises no likelihood", remedy="take bootstrap")
    if name == "elo":
        remarks.append("Elo's ratings depend on the order of the rows, and have no interval here")
        return Estimated(name, "Elo", classical.elo(votes), None, None, wins, tuple(remarks))
    score = classical.OF_TABLES[name]
    scores, spread = score(wins), None
    if name in table_errors.SLOPES and choices.intervals in ("auto", "sandwich"):
        spread = table_errors.spread_of(pairs, name, scores, groups, choices.seed)
    elif choices.intervals != "none":
        reweighted = OfPairs(pairs, BradleyTerry()).reweighted(groups)
        block = classical.redrawn(pairs, reweighted, score, np.random.default_rng(choices.seed))
        of, number = ("comparisons", 0) if groups is None else ("judges", len(groups.names))
        spread = resampled(block, scores, choices.resamples, 32, of, number)
        remarks += [] if connections.bounded else [_NOT_DRAWN]
        remarks += _rarely_drawn(name, pairs, wins)
    if name == "eigen" and not scores.any():
        remarks.append("No two items beat each other, not even by way of others: the eigenvector is 0; take pagerank")
    title = {"counting": "Number of wins", "win-rate": "Mean share of wins", "eigen": "Eigenvector",
             "pagerank": "PageRank"}[name]  # fmt: skip
    return Estimated(name, title, scores, spread, None, wins, tuple(remarks))
