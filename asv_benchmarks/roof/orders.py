"""Cases of projections onto orders, of losses over all pairs, of small systems, and of measuring rankings."""

from functools import partial

import numpy as np
import rankboost as boosting
from benchmarks import kernels as small
from ready import DOUBLE, Ready, case, factors, part, pools_of, ratings, steps_of, tasks

from rankbench.kernels.metrics import catalogue
from rankbench.kernels.metrics.codes import Code
from rankbench.kernels.metrics.requests import Requests
from rankbench.kernels.models import scoring
from rankbench.kernels.shared.rows import Pattern, SparseRows
from rankbench.kernels.solvers import svrank
from rankbench.methods.isotonic import Blocks
from rankbench.methods.pair_tasks import PairTasks, TaskFeatures
from rankbench.methods.tasks import checked_features
from rankbench.solvers.rankboost import RankBoost

# ---- projections ----


@case("isotonic vector of 1e7", "row", "55 instructions: a row takes two steps, of which each waits for the one before")
def _strict(share: float) -> Ready:
    """One long vector with noise onto a total order."""
    n = part(10_000_000, share)
    x = np.random.default_rng(0).standard_normal(n) + np.arange(n)
    blocks, out = Blocks(np.array([0, n]), np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32)), np.empty(n)
    sizes = {"pools": pools_of(blocks, x)}
    counts = {"pyx/methods/isotonic.pyx: project along strict orders": n}
    return Ready(lambda: blocks.project(x, out=out), n, counts, sizes, 26 * n)


@case(
    "isotonic batch, 10,000 x 100",
    "row",
    "45 instructions and 0.4 mispredicted branches: each sum over two blocks of a user waits for the one before",
)
def _batch(share: float) -> Ready:
    """10,000 users with 100 ratings of five levels each; the borders are known from the last projection."""
    users, items = part(10_000, share), 100
    rng = np.random.default_rng(0)
    values = np.sort(rng.integers(1, 6, (users, items)), axis=1).astype(np.float64).ravel()
    x = rng.standard_normal(len(values)) + 0.5 * values
    blocks, out = Blocks.of(np.arange(users + 1) * items, values), np.empty_like(x)
    n = len(x)
    counts = {"pyx/methods/isotonic.pyx: project along blocks": n}
    return Ready(lambda: blocks.project(x, out=out), n, counts, {}, 24 * n)


# ---- losses over all pairs ----


@case(
    "all pairs, five levels: loss and slope",
    "rating",
    "two sums over windows, and a merge of integers for their ends, of which each step waits for the one before",
    curved=False,
)
@case(
    "all pairs, five levels: Hessian times a direction",
    "rating",
    "a table of sums is written, six for each rating, and looked up four times",
    curved=True,
)
def _pair_losses(share: float, curved: bool) -> Ready:
    """The loss and slope of all pairs of ratings of five levels, or the Hessian times a direction."""
    train, rng = ratings(share), np.random.default_rng(0)
    pairs, scores = PairTasks.of(train, 1), rng.standard_normal(len(train))
    at, direction, n = pairs.at(scores), rng.standard_normal(len(train)), len(train)
    windows, sums = at.windows, np.empty((2, n))
    name = "curve_all" if curved else "evaluate_all"
    call = (lambda: at.curve(direction)) if curved else (lambda: pairs.at(scores, windows, sums))
    return Ready(call, n, {f"pyx/methods/all_pairs.pyx: {name}": n}, {"levels": 5}, 56 * n)


@case(
    "ranksvm objective",
    "rating",
    "195 instructions for the loss over pairs, and features of an item that lie beyond the second cache",
    what="objective",
)
@case("ranksvm gradient", "rating", "295 instructions and 1 mispredicted branch", what="gradient")
@case(
    "ranksvm Hessian times a direction",
    "rating",
    "755 instructions and 3 mispredicted branches, two thirds of them in the products with the features",
    what="Hessian times a direction",
)
def _ranksvm(share: float, what: str) -> Ready:
    """Objective, gradient or Hessian times a direction, of all tasks."""
    train = tasks(share)
    pairs = PairTasks.of(train, 1)
    design = TaskFeatures(pairs, checked_features(train.item_features))
    weights = np.random.default_rng(0).standard_normal((train.n_users, design.d)) / 8
    at, n = pairs.at(design.scores(weights)), len(train)
    levels = n / train.n_users  # all ratings differ
    calls = {
        "objective": lambda: pairs.at(design.scores(weights), at.windows.copy()),
        "gradient": lambda: design.sums(at.slope),
        "Hessian times a direction": lambda: design.sums(at.curve(design.scores(weights))),
    }
    kernels = {
        "objective": ("ranksvm.pyx: scores", "all_pairs.pyx: evaluate_all"),
        "gradient": ("ranksvm.pyx: sums",),
        "Hessian times a direction": ("ranksvm.pyx: scores", "all_pairs.pyx: curve_all", "ranksvm.pyx: sums"),
    }
    counts = {f"pyx/methods/{name}": n for name in kernels[what]}
    sizes = {"features": design.d, "levels": levels}
    return Ready(calls[what], n, counts, sizes, 60 * n, train.item_features.nbytes)


@case(
    "rankboost round",
    "entry",
    "each addition to a sum waits for the one before; on real users' short runs the sums of several runs overlap",
)
def _rankboost(share: float) -> Ready:
    """A round on 10,000 rows with 300 features without ties."""
    rows, features = part(10_000, share), 300
    call, _ = steps_of(RankBoost(), boosting.problem(rows, features, False))
    entries = (rows - 1) * features
    counts = {
        "pyx/solvers/rankboost.pyx: boost by entries": entries,
        "pyx/solvers/rankboost.pyx: boost by rows": rows,
    }
    return Ready(call, entries, counts, {}, 4 * entries, DOUBLE * rows)


@case(
    "global sweep, logistic",
    "entry",
    "the series of a power and of a logarithm wait for each of their terms, and there are two divisions",
    curved=False,
)
@case("global curvature times", "entry", curved=True)
def _global(share: float, curved: bool) -> Ready:
    made = small.Global()
    made.setup()
    entries = 600 * 599
    name = "curvature_times" if curved else "sweep"
    call = made.time_curvature_times if curved else made.time_sweep
    return Ready(call, entries, {f"pyx/solvers/global_ranking.pyx: {name}": entries}, {}, 28 * entries)


# ---- small systems ----


@case("mprank dual, m = 100", "user", form="dual")
@case("mprank primal, 32 features", "user", form="primal")
def _mprank(share: float, form: str) -> Ready:
    made = small.MPRank()
    made.setup()
    call = made.time_dual if form == "dual" else made.time_primal
    streamed = (made.gram if form == "dual" else made.features).nbytes
    return Ready(call, 100, {f"pyx/solvers/mprank.pyx: {form}": 100}, {"m": 100, "n": 32}, streamed)


@case("svrank pass over pairs, m = 100", "visit")
def _svrank(share: float) -> Ready:
    """A round: a pass over all pairs, and ten over those that move; C is so large that all of them do."""
    users, m = part(50, share), 100
    rng = np.random.default_rng(0)
    features = rng.standard_normal((500, 32)) / np.sqrt(32)
    chosen = np.concatenate([np.sort(rng.choice(500, m, replace=False)) for _ in range(users)]).astype(np.int32)
    rated = SparseRows(indptr=np.arange(users + 1) * m, columns=chosen, values=rng.standard_normal(users * m))
    gram, pairs = features @ features.T, m * (m - 1) // 2
    functions = svrank.Functions(
        coefficients=np.zeros(users * m), offsets=np.zeros(users), primal=np.zeros(users), gap=np.zeros(users)
    )
    problem = svrank.PairProblem(C=1e9, eps=0.0, tolerance=0.0, rounds=1)

    def call() -> None:
        """A round from zero."""
        starts = np.arange(users, dtype=np.int64) * pairs
        svrank.pair_rounds(
            problem=problem,
            gram=gram,
            ratings=rated,
            users=np.arange(users, dtype=np.int32),
            duals=svrank.PairDuals(starts=starts, values=np.zeros(users * pairs)),
            functions=functions,
            threads=1,
        )

    visits = 11 * users * pairs
    return Ready(call, visits, {"pyx/solvers/svrank.pyx: pair_rounds": visits}, {"m": m}, DOUBLE * m**2)


# ---- measuring rankings ----


@case(
    "ndcg@10, 50 items",
    "rating",
    "46 instructions and 0.2 mispredicted branches: each sum that seeks the ten best waits for the one before",
    metric="NDCG",
)
@case(
    "kendall, 50 items",
    "rating",
    "120 instructions and 1.2 mispredicted branches: all pairs are compared, in loops that are short",
    metric="KENDALL",
)
def _metric(share: float, metric: str) -> Ready:
    made = small.Metrics()
    made.setup(metric)
    n = 100_000
    counts = {f"pyx/metrics/evaluation.pyx: per_user of {metric.lower()}": n}
    sizes = {"ratings": 50, "levels": 5}
    return Ready(lambda: made.time_per_user(metric), n, counts, sizes, 16 * n)


@case("catalogue scores, rank 10", "score", "35 instructions and 0.2 mispredicted branches", rank=10)
@case("catalogue scores, rank 64", "score", rank=64)
def _scores(share: float, rank: int) -> Ready:
    """The scores of a block of users for the whole catalogue."""
    users, items = part(256, share), 27_278
    rng = np.random.default_rng(0)
    rows, columns = rng.standard_normal((users, rank)), rng.standard_normal((items, rank))
    out, chosen = np.empty((users, items)), np.arange(users, dtype=np.int32)
    n = users * items
    counts = {"pyx/models/scoring.pyx: products": n}
    call = partial(scoring.products, rows=rows, chosen=chosen, columns=columns, out=out, threads=1)
    return Ready(call, n, counts, {"rank": rank}, out.nbytes)


@case("scores of ratings, rank 10", "score", rank=10)
@case(
    "scores of ratings, rank 64",
    "score",
    "106 instructions, of which 32 turn products such that each score is summed in order",
    rank=64,
)
def _scores_of_pairs(share: float, rank: int) -> Ready:
    """The score of every rating, user by user."""
    train = ratings(share)
    users, items = factors(train.n_users, rank), factors(train.n_items, rank, 1)
    out, owners = np.empty(len(train)), train.users.astype(np.int32)
    n = len(train)
    call = partial(scoring.pairs, rows=users, chosen=owners, columns=items, asked=train.items, out=out)
    return Ready(call, n, {"pyx/models/scoring.pyx: pairs": n}, {"rank": items.shape[1]}, 16 * n, items.nbytes)


@case("catalogue metric from scores", "score", "1.9 instructions, which wait for the scores")
def _catalogue(share: float) -> Ready:
    """NDCG without a cut of a held-out item of each user among the whole catalogue, from the scores.

    With a cut, most scores are not looked at.
    """
    users, items = part(256, share), 27_278
    rng = np.random.default_rng(0)
    scores, out = rng.standard_normal((users, items)), np.empty((1, users))
    held = SparseRows(
        indptr=np.arange(users + 1), columns=rng.integers(items, size=users).astype(np.int32), values=np.ones(users)
    )
    seen = Pattern(indptr=np.zeros(users + 1, np.int64), columns=np.zeros(0, np.int32))
    asked = Requests(
        codes=np.array([Code.NDCG], np.int32),
        cuts=np.array([items], np.int32),
        thresholds=np.zeros(1),
        discounts=1 / np.log2(2 + np.arange(items + 1)),
    )
    chosen, n = np.arange(users, dtype=np.int32), scores.size
    of_users = partial(catalogue.per_user, scores=scores, users=chosen, out=out, threads=1)
    call = partial(of_users, held_out=held, seen=seen, requests=asked)
    return Ready(call, n, {"pyx/metrics/catalogue.pyx: per_user": n}, {}, scores.nbytes)
