"""Evaluating a model: speed compared with ranx, pytrec-eval and scipy, and the memory for a whole catalogue."""

import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytrec_eval
import ranx
from scipy.stats import kendalltau
from turns import Measure, Row, compared, per_second, seconds

from rankbench import load, split
from rankbench.core.contract import Floats, Ints
from rankbench.core.system import peak_bytes
from rankbench.data.views import Ratings
from rankbench.metrics import evaluate, per_user
from rankbench.models import Factors

_AGREEMENT = 1e-9


@dataclass(frozen=True)
class Given:
    """A model with precomputed scores of the held-out pairs."""

    scores: Floats

    def score(self, users: Ints, items: Ints) -> Floats:
        """The scores in the order of the held-out pairs."""
        return self.scores


def evaluation(repeats: int) -> Iterator[Row | Measure]:
    """Evaluation alone on one thread; scores and each library's input formats are made before the time is taken."""
    yield from _ndcg(repeats)
    yield from _kendall(repeats)
    yield from _whole_catalogue()


def _ndcg(repeats: int) -> Iterator[Row]:
    """NDCG of 70,000 users x 50 items; ranx has the gain 2^r - 1 like `ndcg`, trec_eval the gain r (`ndcg-linear`)."""
    ratings, scores = _rated(70_000, 50)
    model, count = Given(scores), ratings.n_users
    qrels, run = _as_ranx(ratings, scores)
    evaluator, trec_run = _as_trec(ratings, scores)
    peers = {
        "ranx": lambda: ranx.evaluate(qrels, run, "ndcg_burges@10", make_comparable=False, threads=1),
        "pytrec-eval": lambda: _mean(evaluator.evaluate(trec_run)),
    }
    for peer, name in {"ranx": "ndcg@10", "pytrec-eval": "ndcg-linear@10"}.items():
        _same(name, evaluate(model, ratings, [name])[name], peers[peer]())
        ours = per_second(lambda name=name: per_user(model, ratings, [name]), count)
        what = f"{name}, 70,000 users x 50 items : {peer}"
        yield compared(repeats, what, "users/s", 20.0, peer=per_second(peers[peer], count), ours=ours)


def _kendall(repeats: int) -> Iterator[Row]:
    """Kendall's tau of 6,040 users x 100 items with tied ratings, compared with a loop over scipy."""
    ratings, scores = _rated(6040, 100)
    rows, count = [slice(*ratings.indptr[user : user + 2]) for user in range(ratings.n_users)], ratings.n_users

    def loop() -> list[float]:
        return [kendalltau(ratings.values[row], scores[row]).statistic for row in rows]

    model = Given(scores)
    _same("kendall", evaluate(model, ratings, ["kendall"])["kendall"], float(np.mean(loop())))
    ours = per_second(lambda: per_user(model, ratings, ["kendall"]), count)
    what = "kendall, 6,040 users x 100 items : scipy loop"
    yield compared(repeats, what, "users/s", 50.0, peer=per_second(loop, count), ours=ours)


def _whole_catalogue() -> Iterator[Measure]:
    """All items as candidates for all users at MovieLens 20M's size, in a separate process."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        taken, peak = pool.apply(whole_catalogue)
    yield Measure("138,493 users x 27,278 items as candidates, two threads", "s", taken)
    yield Measure("the same, most memory of the whole process", "GiB", peak, at_most=1.0)


def whole_catalogue() -> tuple[float, float]:
    """The seconds, and the process's peak memory in GiB, including data and Python."""
    data = split(load("lookalike:ml-20m"), "leave-one-out")
    rng = np.random.default_rng(0)
    model = Factors(rng.standard_normal((138_493, 10)), rng.standard_normal((27_278, 10)))
    names = ["ndcg@10[candidates=catalogue]", "precision@100[candidates=catalogue]"]
    taken = seconds(lambda: evaluate(model, data.test, names, threads=2, train=data.train))
    return taken, peak_bytes() / 2**30


def _rated(users: int, per_user: int) -> tuple[Ratings, Floats]:
    """Random ratings from 1 to 5 of the first items, and scores without ties."""
    rng = np.random.default_rng(0)
    size = users * per_user
    indptr, items = np.arange(0, size + 1, per_user), np.tile(np.arange(per_user), users)
    values = rng.integers(1, 6, size).astype(float)
    return Ratings(indptr, items, values, per_user), rng.standard_normal(size)


def _as_ranx(ratings: Ratings, scores: Floats) -> tuple[ranx.Qrels, ranx.Run]:
    """The ratings and scores in ranx's format."""
    return ranx.Qrels(_nested(ratings, ratings.values.astype(int))), ranx.Run(_nested(ratings, scores))


def _as_trec(ratings: Ratings, scores: Floats) -> tuple[pytrec_eval.RelevanceEvaluator, dict[str, dict[str, float]]]:
    """The ratings and scores in pytrec-eval's format."""
    evaluator = pytrec_eval.RelevanceEvaluator(_nested(ratings, ratings.values.astype(int)), {"ndcg_cut.10"})
    return evaluator, _nested(ratings, scores)


def _nested(ratings: Ratings, values: Floats) -> dict[str, dict[str, float]]:
    """Values as nested dictionaries, user name -> item name -> value."""
    names = [str(item) for item in range(ratings.n_items)]
    table = values.reshape(ratings.n_users, -1).tolist()
    return {str(user): dict(zip(names, row, strict=True)) for user, row in enumerate(table)}


def _mean(results: dict[str, dict[str, float]]) -> float:
    """The mean over users of pytrec-eval's results."""
    return sum(record["ndcg_cut_10"] for record in results.values()) / len(results)


def _same(name: str, own: float, other: float) -> None:
    """Exit unless both give the same value."""
    if not abs(own - other) <= _AGREEMENT:
        raise SystemExit(f"{name} is {own} here and {other} there: their times would mean nothing")
