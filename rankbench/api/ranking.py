"""Leaderboards from comparisons or rankings: `rank("votes.csv")`."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rankbench.leaderboards.leaderboard import Leaderboard, leaderboard_of
from rankbench.leaderboards.models import Choices, Intervals
from rankbench.leaderboards.sources.reading import Wanted, votes_of
from rankbench.leaderboards.uncertainty import RESAMPLES


def rank(
    data: Any,
    *,
    columns: Mapping[str, str] | None = None,
    model: str = "auto",
    by: str = "",
    covariate: str | Sequence[str] = (),
    side: bool = False,
    penalty: float | None = None,
    intervals: Intervals = "auto",
    clusters: Literal["auto", "judges", "comparisons"] = "auto",
    resamples: int = RESAMPLES,
    weigh_judges: bool = False,
    scale: Literal["log-odds", "elo"] = "log-odds",
    seed: int = 0,
) -> Leaderboard:
    """Rank items from comparisons or rankings by judges: scores with intervals, intervals of ranks, and tiers.

    Parameters
    ----------
    data : str, Path or DataFrame
        A table with a row for each comparison (winner and loser, or left, right and winner, which is left, right, tie
        or an item's name), with a column `ranking` of texts such as "a > b = c", or with judge, item and rank; as CSV,
        Parquet, JSON or a DataFrame. Or a file of PrefLib (soc, soi, toc, toi). Columns judge, count and weight are
        used if they are there.
    columns : dict, optional
        The names of columns by role, such as `{"judge": "worker"}`, where they are not the usual ones.
    model : str
        "bradley-terry", "davidson" or "rao-kupper" (which have ties), "plackett-luce" (for rankings), "counting",
        "win-rate", "eigen", "pagerank" or "elo"; by default Plackett-Luce for rankings without ties, Davidson where
        there are ties, else Bradley-Terry.
    by : str
        A column of categories, each of which gets a leaderboard of its own, too: `board.categories`.
    covariate : str or list of str
        Properties of the two sides, whose effect on the outcome is estimated beside the scores: "length" takes
        the difference of the columns length_left and length_right, or a column of differences of that name.
    side : bool
        Estimate the advantage of the left side, too.
    penalty : float, optional
        Add to each item half so many wins and half so many losses against an average item; by default 1 where some
        items cannot be compared or never lost or won, else 0.
    intervals : {"auto", "sandwich", "bootstrap", "none"}
        Robust errors (the default of all but "counting" and "elo"), or the bootstrap (the default of "counting");
        "elo" has none.
    clusters : {"auto", "judges", "comparisons"}
        What is drawn again: judges with all their votes, by default where they are known, or single comparisons.
    resamples : int
        The draws of a bootstrap.
    weigh_judges : bool
        Weigh each judge's votes by how well they agree with those of the others.
    scale : {"log-odds", "elo"}
        Scores as log odds against the average item, or 1000 + 400 / log(10) times that.
    seed : int
        The seed of all draws.

    Returns
    -------
    Leaderboard
        With the table as `frame`, sentences as `remarks`, and `judges()`, `next(50)`, `compare(other)`, `save(path)`.
    """
    properties = (covariate,) if isinstance(covariate, str) else tuple(covariate or ())
    votes = votes_of(data, columns, Wanted(by, properties))
    return leaderboard_of(
        votes, Choices(model, side, penalty, intervals, clusters, resamples, seed), scale, weigh_judges
    )
