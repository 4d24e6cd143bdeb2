"""Leaderboards compared with evalica and choix: two million comparisons of 200 items, and resamples over judges."""

from collections.abc import Iterator

import choix
import evalica
import numpy as np
import pandas
from turns import Measure, Row, compared, per_second, seconds

import rankbench
from rankbench.data.synthetic.arena import Arena
from rankbench.leaderboards.arenas import votes_of
from rankbench.leaderboards.fits.fitting import fitted
from rankbench.leaderboards.fits.likelihoods import LIKELIHOODS
from rankbench.leaderboards.fits.pairs import pairs_of
from rankbench.leaderboards.fits.problems import OfPairs

_ARENA = Arena(items=200, judges=5_000, comparisons=2_000_000, taste=0.3)
_AGREEMENT = 1e-5  # evalica stops at a change of 1e-6
_RESAMPLES = 1_000


def leaderboards(repeats: int) -> Iterator[Row | Measure]:
    """A fit from a table in memory, and a bootstrap over judges."""
    votes = votes_of(_ARENA, 0)
    frame = pandas.DataFrame({side: votes.items[codes] for side, codes in
                              (("left", votes.left), ("right", votes.right))}, dtype="str")  # fmt: skip
    frame["winner"] = pandas.Series(np.array(["left", "right", "tie"])[votes.outcome], dtype="str")
    winners = [(evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw)[outcome] for outcome in votes.outcome]
    _, _, index = evalica.indexing(frame["left"], frame["right"])

    def theirs() -> pandas.Series:
        return evalica.bradley_terry(frame["left"], frame["right"], winners, index=index).scores

    def ours() -> rankbench.Leaderboard:
        return rankbench.rank(frame, model="bradley-terry", intervals="none")

    board = ours()
    logs = np.log(theirs()[board.votes.items].to_numpy())
    _agree("evalica", board.estimated.scores, logs - logs.mean())
    what, runs = "Bradley-Terry, 2M comparisons", {"peer": per_second(theirs), "ours": per_second(ours)}
    yield (row := compared(repeats, f"{what} : evalica with its index", "fits/s", 1.0, **runs))
    yield Measure(f"{what}, from a table", "s", float(1 / np.median(row.ours)), at_most=0.3)
    yield _dense(repeats)
    frame["judge"] = votes.judges.codes if votes.judges is not None else 0
    whole = seconds(lambda: rankbench.rank(frame, model="bradley-terry", intervals="bootstrap", resamples=_RESAMPLES))
    yield Measure(f"{_RESAMPLES:,} resamples over 5,000 judges, 2M comparisons", "s", whole, at_most=10.0)


def _dense(repeats: int) -> Row:
    """The fit alone, from the table of wins."""
    votes = votes_of(_ARENA, 0)
    wins = np.zeros((votes.n_items,) * 2)
    decided = votes.outcome < 2
    left_won = votes.outcome == 0
    winner, loser = np.where(left_won, votes.left, votes.right), np.where(left_won, votes.right, votes.left)
    np.add.at(wins, (winner[decided], loser[decided]), 1.0)
    upper = np.triu_indices(len(wins), 1)
    table = pandas.DataFrame(
        {
            "left": np.concatenate([upper[0], upper[0]]), "right": np.concatenate([upper[1], upper[1]]),
            "winner": np.repeat(["left", "right"], len(upper[0])),
            "count": np.concatenate([wins[upper], wins.T[upper]]).astype(int),
        }
    )  # fmt: skip

    def theirs() -> np.ndarray:
        return choix.ilsr_pairwise_dense(wins, tol=1e-8)

    board = rankbench.rank(table, model="bradley-terry", intervals="none")
    problem = OfPairs(pairs_of(board.votes), LIKELIHOODS["bradley-terry"])
    order = np.argsort(board.votes.items.astype(int))
    _agree("choix", fitted(problem).scores[order], theirs())
    runs = {"peer": per_second(theirs), "ours": per_second(lambda: fitted(problem))}
    return compared(repeats, "Bradley-Terry of 200 items, the fit : choix, ILSR", "fits/s", None, **runs)


def _agree(peer: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Stop unless both give the same scores."""
    if (worst := np.abs(ours - theirs).max()) > _AGREEMENT:
        raise SystemExit(f"{peer} has other scores than rankbench: {worst:.1e} apart")
