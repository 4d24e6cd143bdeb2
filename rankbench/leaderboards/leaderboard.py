"""A leaderboard: items by score, with intervals of scores and ranks, tiers, and what to know about the comparisons."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankbench.core.amounts import amount
from rankbench.core.contract import Floats, Int64s
from rankbench.core.errors import UserError, writing_to
from rankbench.core.texts import html, safe
from rankbench.leaderboards.by_judge import judges_of, weighed
from rankbench.leaderboards.fits.likelihoods import LIKELIHOODS
from rankbench.leaderboards.models import Choices, Estimated, estimated
from rankbench.leaderboards.proposing import proposals
from rankbench.leaderboards.ranks import Ranks, ranks_of
from rankbench.leaderboards.uncertainty import DRAWS, root, students
from rankbench.leaderboards.votes import LEFT, TIE, Votes
from rankbench.report.render.tables import Sheet, csv_text, to_latex, to_markdown

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

SCALES = ("log-odds", "elo")
_ELO = 400 / log(10)  # points for a log odds of 1
_ELO_MEAN = 1000.0
ENDINGS = (".csv", ".md", ".tex", ".html", ".png", ".pdf", ".svg")


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """Items ranked from votes; `frame` is the table, `remarks` what a reader has to know.

    Scores of models of outcomes are log odds relative to the average item: with a difference of d the better item wins
    against the other one with odds of e^d. On the scale `elo` they are 1000 + 400/log(10) times that.
    """

    votes: Votes
    estimated: Estimated
    scale: str = "log-odds"
    categories: Mapping[str, "Leaderboard"] = field(default_factory=dict)  # leaderboards of parts of the votes

    @property
    def scores(self) -> Floats:
        """The scores on the chosen scale, in the order of `votes.items`."""
        return self._scaled(self.estimated.scores)

    @property
    def title(self) -> str:
        """The name of the model."""
        return self.estimated.title

    @cached_property
    def ranks(self) -> Ranks | None:
        """The ranks with their intervals; None without intervals of scores."""
        found = self.estimated
        return None if found.spread is None else ranks_of(found.scores, found.spread)

    @cached_property
    def order(self) -> Int64s:
        """The items from the first to the last."""
        return np.argsort(-self.estimated.scores, kind="stable")

    @cached_property
    def frame(self) -> "pandas.DataFrame":
        """The table: a row for each item, the best first, with all digits."""
        import pandas  # noqa: PLC0415  slow to import

        columns: dict[str, object] = {
            "rank": np.arange(1, self.votes.n_items + 1),
            "item": self.votes.items[self.order],
        }
        columns["score"] = self.scores[self.order]
        if self.estimated.spread is not None and self.ranks is not None:
            low, high = (self._scaled(ends) for ends in self.estimated.spread.interval(self.estimated.scores))
            own = self.ranks
            beside = {"low": low, "high": high, "rank_low": own.low, "rank_high": own.high, "tier": own.tier,
                      "first": own.first}  # fmt: skip
            columns |= {name: values[self.order] for name, values in beside.items()}
        columns |= {name: values[self.order] for name, values in self._counts().items()}
        return pandas.DataFrame(columns)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on the votes, the model, the intervals, and what holds the scores back."""
        votes, found = self.votes, self.estimated
        said = [self._counted()]
        said += self._effects()
        if found.spread is not None:
            said.append(found.spread.words)
        return (*said, *found.remarks, *self._unbalanced(votes))

    @property
    def wins(self) -> "pandas.DataFrame":
        """How often each item (row) won against each other one (column), ties being half a win of each."""
        import pandas  # noqa: PLC0415  slow to import

        names = self.votes.items[self.order]
        return pandas.DataFrame(self.estimated.wins[np.ix_(self.order, self.order)], names, names)

    def judges(self) -> "pandas.DataFrame":
        """How each judge votes beside the others: comparisons, agreement, and the slope on the others' scores."""
        return judges_of(self.votes, self.estimated)

    def next(self, number: int = 50) -> "pandas.DataFrame":
        """So many comparisons to ask for next, those first that say most about what is open."""
        return proposals(self.votes, self.estimated, number)

    def compare(self, other: "Leaderboard") -> "pandas.DataFrame":
        """The scores here and on another leaderboard, with the interval of each difference for all items together.

        Both are taken relative to the mean of the items that are on both. Judges of the same name are the same judges,
        whose influences on the two scores are subtracted before they are squared.
        """
        return _compared(self, other)

    def plot(self) -> "Figure":
        """A figure of the scores with their intervals."""
        from rankbench.leaderboards import showing  # noqa: PLC0415  imports matplotlib

        return showing.intervals_figure(self.frame, self._axis)

    def plot_wins(self) -> "Figure":
        """A figure of the share of comparisons that each item won against each other one."""
        from rankbench.leaderboards import showing  # noqa: PLC0415  imports matplotlib

        return showing.wins_figure(self.wins)

    def to_csv(self) -> str:
        """The table as CSV with all digits."""
        return csv_text(list(self.frame.columns), self.frame.itertuples(index=False))

    def to_html(self, title: str = "Leaderboard") -> str:
        """A page in one file: this leaderboard, those of its categories, their figures, and the judges."""
        from rankbench.leaderboards import showing  # noqa: PLC0415  imports matplotlib

        votes = self.votes
        several = votes.judges is not None and len(votes.judges.names) > 1 and self.estimated.fit is not None
        boards = {"": self, **self.categories}
        return showing.page(title, boards, {"Judges": sheet_of(self.judges())} if several else {})

    def save(self, path: str | Path, title: str = "Leaderboard") -> None:
        """Write it in the form that the ending says: csv, md, tex, html, or the figure as png, pdf or svg."""
        place = Path(path)
        if place.suffix not in ENDINGS:
            raise UserError(f"{place} has no ending of a leaderboard", remedy=f"known: {', '.join(ENDINGS)}")
        with writing_to(place, "choose another file"):
            if place.suffix in (".png", ".pdf", ".svg"):
                from rankbench.leaderboards import showing  # noqa: PLC0415  imports matplotlib

                place.write_bytes(showing.written(self.plot(), place.suffix[1:]))
                return
            place.write_text(self._written(place.suffix, title), encoding="utf-8")

    def _written(self, ending: str, title: str) -> str:
        if ending == ".csv":
            return self.to_csv()
        if ending == ".html":
            return self.to_html(title)
        return to_latex(self.sheet) if ending == ".tex" else f"{self!r}\n"

    @property
    def sheet(self) -> Sheet:
        """The table for display; the items of the first tier are bold."""
        frame: Any = self.frame  # whose rows have other types than pandas' stubs say
        digits = 3 if self.scale == "log-odds" or not self._has_scale else 0
        ranked = self.ranks is not None
        headings = ["rank", "item", "score", *(["95 %", "ranks", "tier", "first"] if ranked else []), "won", "lost",
                    "tied"]  # fmt: skip
        headings += ["judges"] if "judges" in frame else []
        lines = []
        for row in frame.itertuples(index=False):
            line = [str(row.rank), str(row.item), _number(row.score, digits)]
            if ranked:
                ranks = str(row.rank_low) if row.rank_low == row.rank_high else f"{row.rank_low} to {row.rank_high}"
                interval = f"{_number(row.low, digits)} to {_number(row.high, digits)}"
                line += [interval, ranks, str(row.tier), f"{row.first:.0%}"]
            line += [_number(value, 0) for value in (row.won, row.lost, row.tied)]
            line += [f"{row.judges:.0%}"] if "judges" in frame else []
            lines.append(tuple(line))
        best = frozenset((place, 1) for place, tier in enumerate(frame["tier"]) if tier == 1) if ranked else frozenset()
        numeric = tuple(heading != "item" for heading in headings)
        return Sheet(tuple(headings), numeric, tuple(lines), best)

    def __repr__(self) -> str:
        return "\n".join([to_markdown(self.sheet), *(safe(f"{line}.") for line in self.remarks)])

    def _repr_html_(self) -> str:
        import pandas  # noqa: PLC0415  slow to import

        shown = pandas.DataFrame(list(self.sheet.lines), columns=list(self.sheet.headings))
        return shown.to_html(index=False) + "".join(f"<p>{html(line)}.</p>" for line in self.remarks)

    @property
    def _has_scale(self) -> bool:
        return self.estimated.fit is not None

    @property
    def _axis(self) -> str:
        if not self._has_scale:
            return self.title
        return "score on Elo's scale" if self.scale == "elo" else "score (log odds)"

    def _scaled(self, scores: Floats) -> Floats:
        return _ELO_MEAN + _ELO * scores if self.scale == "elo" and self._has_scale else scores

    def _counts(self) -> dict[str, Any]:
        """Won, lost and tied comparisons of each item, and the share of judges who compared it."""
        votes, n = self.votes, self.votes.n_items
        tied = votes.outcome == TIE
        left_won = votes.outcome == LEFT
        winner = np.where(left_won, votes.left, votes.right)
        loser = np.where(left_won, votes.right, votes.left)
        amounts = votes.amounts
        found = {
            "won": np.bincount(winner[~tied], amounts[~tied], n),
            "lost": np.bincount(loser[~tied], amounts[~tied], n),
            "tied": np.bincount(votes.left[tied], amounts[tied], n) + np.bincount(votes.right[tied], amounts[tied], n),
        }
        if votes.judges is not None and len(votes.judges.names) > 1:
            seen = np.zeros((len(votes.judges.names), n), bool)
            for side in (votes.left, votes.right):
                seen[votes.judges.codes, side] = True
            found["judges"] = seen.mean(axis=0)
        return found

    def _counted(self) -> str:
        """What the votes are, in a sentence."""
        votes = self.votes
        number = votes.counts.sum()
        ties = votes.counts[votes.outcome == TIE].sum() / number
        judges = "" if votes.judges is None else f" by {amount(len(votes.judges.names), 'judge')}"
        what = "comparison" if number == 1 else "comparisons"
        return f"{number:,.0f} {what} of {votes.n_items:,} items{judges}, {ties:.1%} of them tied"

    def _effects(self) -> list[str]:
        """What the parameters beside the scores say."""
        found, told = self.estimated, []
        for name, value in found.fit.beside.items() if found.fit is not None else ():
            if name == "left side":
                told.append(f"The left side has odds of {np.exp(value):.2f} against an equal item on the right")
            elif name == "ties":
                chance = float(LIKELIHOODS[found.model].chances(np.zeros(1), value)[TIE, 0])
                told.append(f"Two equal items tie with a chance of {chance:.0%}")
            else:
                told.append(f"A standard deviation more of {name} multiplies the odds by {np.exp(value):.2f}")
        return told

    def _unbalanced(self, votes: Votes) -> list[str]:
        """A remark for scores that grow with the number of comparisons, where items have different numbers."""
        if self.estimated.model not in ("counting", "eigen", "pagerank"):
            return []
        numbers = self.estimated.wins.sum(axis=0) + self.estimated.wins.sum(axis=1)
        if numbers.min() * 1.2 >= numbers.max():
            return []
        return [
            f"This score grows with the number of comparisons, which goes from {numbers.min():,.0f} to "
            f"{numbers.max():,.0f}: a likelihood's scores do not"
        ]


def sheet_of(frame: "pandas.DataFrame") -> Sheet:
    """Any table of texts and numbers, for display."""
    numeric = tuple(kind.kind in "if" for kind in frame.dtypes)
    lines = [
        tuple(f"{value:.3g}" if isinstance(value, float) else str(value) for value in row)
        for row in frame.itertuples(index=False)
    ]
    return Sheet(tuple(str(name).replace("_", " ") for name in frame.columns), numeric, tuple(lines), frozenset())


def leaderboard_of(votes: Votes, choices: Choices, scale: str = "log-odds", weigh_judges: bool = False) -> Leaderboard:
    """The leaderboard of these votes, and of each of their categories."""
    if scale not in SCALES:
        raise UserError(f"unknown scale {scale!r}", remedy=f"known: {', '.join(SCALES)}")
    whole = weighed(votes, choices) if weigh_judges else (votes, estimated(votes, choices))
    parts: dict[str, Leaderboard] = {}
    for name, own in votes.by_category().items():
        try:
            parts[name] = leaderboard_of(own, choices, scale, weigh_judges)
        except UserError as error:
            raise error.within(f"category {name!r}") from None
    return Leaderboard(*whole, scale, parts)


def _compared(one: Leaderboard, other: Leaderboard) -> "pandas.DataFrame":
    """The items of both boards with the difference of their scores, as `Leaderboard.compare` says."""
    import pandas  # noqa: PLC0415  slow to import
    from scipy.stats import kendalltau  # noqa: PLC0415  slow to import

    names, left, right = np.intersect1d(one.votes.items, other.votes.items, return_indices=True)
    if len(names) < 2:
        raise UserError("the two leaderboards share fewer than two items, so that nothing can be compared")
    spreads = one.estimated.spread, other.estimated.spread
    if spreads[0] is None or spreads[1] is None or not (one._has_scale and other._has_scale):
        raise UserError("leaderboards are compared by scores of a model with intervals", remedy="take bradley-terry")
    if one.estimated.model != other.estimated.model:
        raise UserError(
            f"scores of {one.title} and of {other.title} are in different units", remedy="give both the same model"
        )
    first, second = one.estimated.scores[left], other.estimated.scores[right]
    first, second = first - first.mean(), second - second.mean()
    errors, reach = _errors_of_difference(one, other, left, right)
    difference = second - first
    low, high = difference - reach * errors, difference + reach * errors
    words = np.where(low > 0, "higher", np.where(high < 0, "lower", "open"))
    frame = pandas.DataFrame(
        {"item": names, "score": first, "other": second, "difference": difference, "low": low, "high": high,
         "verdict": words}
    )  # fmt: skip
    frame.attrs["kendall"] = float(kendalltau(first, second).statistic)
    return frame.sort_values("score", ascending=False, kind="stable", ignore_index=True)


def _errors_of_difference(one: Leaderboard, other: Leaderboard, left: Int64s, right: Int64s) -> tuple[Floats, float]:
    """The standard errors of the differences of scores, and how many of them reach over all items in 95 % of draws."""
    influences = _influences(one, left), _influences(other, right)
    if influences[0] is not None and influences[1] is not None:
        nothing = np.zeros(len(left))
        judges = sorted({*influences[0], *influences[1]})
        apart = np.stack([influences[1].get(name, nothing) - influences[0].get(name, nothing) for name in judges])
        freedom = min(_freedom(one), _freedom(other))
        drawn = students(np.random.default_rng(0), DRAWS, len(left), freedom) @ root(apart.T @ apart)
        errors = np.sqrt((apart**2).sum(axis=0))
    else:
        first, second = _deviations(one, left), _deviations(other, right)
        size = min(len(first), len(second))
        drawn = first[:size] - second[:size][::-1]  # in another order, since equal seeds give equal draws
        errors = drawn.std(axis=0)
    scaled = np.divide(np.abs(drawn), errors, out=np.zeros_like(drawn), where=errors > 0)
    return errors, float(np.quantile(scaled.max(axis=1), 0.95))


def _freedom(board: Leaderboard) -> float:
    return np.inf if board.estimated.spread is None else board.estimated.spread.freedom


def _influences(board: Leaderboard, places: Int64s) -> dict[str, Floats] | None:
    """The influence of each judge by name on the scores of these items relative to their mean."""
    judges, spread = board.votes.judges, board.estimated.spread
    if judges is None or spread is None or spread.influences is None:
        return None
    own = spread.influences[:, places]
    return dict(zip(map(str, judges.names), own - own.mean(axis=1, keepdims=True), strict=True))


def _deviations(board: Leaderboard, places: Int64s) -> Floats:
    """Draws of what the scores of these items may be off by, relative to their mean."""
    assert board.estimated.spread is not None
    own = board.estimated.spread.deviations[:, places]
    centred: Floats = own - own.mean(axis=1, keepdims=True)
    return centred


def _number(value: float, digits: int) -> str:
    """A number with so many digits behind the point."""
    return f"{value:,.{digits}f}"
