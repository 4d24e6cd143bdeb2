"""Uses of the package that between them call every kernel, on small random data of odd shapes."""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse

from rankbench.core.contract import Solver
from rankbench.core.errors import UserError
from rankbench.data.splits import SPLITS
from rankbench.data.views import Ratings, offer
from rankbench.distributed.in_process import InProcess
from rankbench.kernels import build_info, level
from rankbench.kernels.data import plain_rows
from rankbench.kernels.models import gram, scoring
from rankbench.kernels.shared.powers import binary_logarithms, exponentials, exponentials_of_two, logarithms, powers_to
from rankbench.kernels.shared.rows import SparseRows
from rankbench.kernels.solvers import cofirank
from rankbench.methods.isotonic import OrderGraphs, project_blocks
from rankbench.metrics import METRICS, measure, unusable
from rankbench.metrics.records import metric
from rankbench.models import Factors
from rankbench.solvers import SOLVERS
from rankbench.solvers.altsvm import AltSVM, Machines
from rankbench.solvers.mprank import MPRank, left_out

Use = Callable[[Ratings, np.random.Generator], None]

SIZES = (1, 2, 3, 5, 7, 13, 17, 31, 67, 131)  # more users than a block of any parallel loop
STEPS = 3
SETTINGS = (  # new ones at the end: the data of a trial follow from the place of its use
    "altsvm[rank=3]",
    "altsvm[rank=1,loss=hinge,groups=3,inner=2]",
    "altsvm[rank=5,schedule=random]",
    "altsvm[rank=2,schedule=hogwild]",
    "bpr[rank=3,parts=3]",
    "bpr[rank=1,least=3]",
    "bpr[rank=4,biases=true]",
    "bpr[rank=3,negatives=popular]",
    "bpr[rank=3,negatives=warp]",
    "cofirank[rank=2,planes=9]",
    "cofirank[rank=1,loss=ordinal,planes=5]",
    "cofirank[rank=3,loss=regression,planes=5]",
    "convex-erm",
    "convex-erm[loss=smooth-hinge,corrections=1]",
    "ease",
    "fm[rank=2]",
    "fm[rank=3,features=none,loss=squared-hinge]",
    "frsvm[rank=1]",
    "frsvm[rank=2,start=random,features=none]",
    "global",
    "global[loss=logistic]",
    "imc[rank=1,inner=2]",
    "item-knn[neighbours=3]",
    "item-knn[values=centred,shrink=0]",
    "lcr[rank=1,anchors=2,prior_rank=1]",
    "mf[rank=3]",
    "mf[rank=1,biases=2]",
    "mf[rank=3,inner=2]",
    "mf[rank=2,inner=2,biases=2]",
    "mf[rank=2,power=0.5]",
    "ials[rank=3]",
    "sqlrank[rank=3]",
    "sqlrank[rank=3,link=identity,unrated=1]",
    "ials[rank=5,inner=2]",
    "mprank",
    "mprank[form=dual]",
    "mprank[kernel=gaussian]",
    "mprank[form=primal,choose=C-per-user]",
    "mprank[kernel=polynomial,choose=C-for-all]",
    "rankboost",
    "rankboost[rounds=validated]",
    "ranksvm-joint",
    "ranksvm-nuclear",
    "ranksvm-separate",
    "ranksvm-var",
    "rmc",
    "rmc[graphs=as-levels]",
    "robirank[rank=3]",
    "robirank[rank=1,among=catalogue,draws=2]",
    "sgd[rank=3]",
    "sgd[rank=2,schedule=tournament,parts=3]",
    "sgd[rank=4,schedule=hogwild,loss=logistic]",
    "sgd[rank=9,precision=single]",
    "slim[l1=0.1]",
    "smc[rank=1]",
    "svrank[form=pairs]",
    "svrank[form=residuals]",
    "svrank[kernel=gaussian,form=pairs]",
    "ease[neighbours=3]",
    "ials[rank=5,block=2]",
    "frsvm[rank=29,features=none]",
)


def random_ratings(rng: np.random.Generator, shape: tuple[int, int, int] | None = None) -> Ratings:
    """Ratings of odd shapes with features, dense or sparse; some users have none, or all equal.

    `shape` has the numbers of users, items and features; without it they are drawn.
    """
    n_users, n_items, n_features = shape or (int(rng.choice(SIZES)) for _ in range(3))
    rated = rng.random((n_users, n_items)) < rng.choice([0.0, 0.1, 0.5, 1.0], (n_users, 1), p=[0.1, 0.3, 0.4, 0.2])
    users, items = np.nonzero(rated)
    features: Any = rng.standard_normal((n_items, n_features)) * (rng.random((n_items, n_features)) < 0.7)
    features[0, 0] = 1.0  # not all zero
    if rng.integers(2):
        features = scipy.sparse.csr_array(features)
    values = rng.integers(1, 6, len(users)).astype(float)
    return Ratings.from_triples(users, items, values, n_users, n_items, features)


def _training(text: str) -> Use:
    """A few steps of a solver with their objectives, gaps and scores."""

    def train(ratings: Ratings, rng: np.random.Generator) -> None:
        solver: Solver = SOLVERS.make(text)
        both = isinstance(solver.learns_from, tuple)
        try:
            view = offer(solver, ratings.comparisons() if both and rng.integers(2) else ratings)
            for step in islice(solver.steps(view, rng), STEPS):
                _look(step, ratings)
        except UserError:
            return  # data too small for the settings

    train.__name__ = text
    return train


def _look(step: Any, ratings: Ratings) -> None:
    """Ask a step for all that it can tell."""
    for ask in (step.objective, step.gap):
        if ask is not None:
            ask()
    step.model.score(ratings.users, ratings.items)
    if hasattr(step.model, "score_all"):
        step.model.score_all(np.arange(ratings.n_users), 2)


def metrics(ratings: Ratings, rng: np.random.Generator) -> None:
    """Every metric of a random model, with the held-out items or the whole catalogue as candidates."""
    halves = rng.integers(2, size=len(ratings)) == 0
    train, test = ratings.take(np.flatnonzero(halves)), ratings.take(np.flatnonzero(~halves))
    model = Factors(rng.standard_normal((ratings.n_users, 2)), rng.standard_normal((ratings.n_items, 2)).round())
    names = [*METRICS, "pairwise-error[pairs=both]", "pairwise-error[pairs=test-train,average=pairs]"]
    names += [f"{name}@3[candidates=catalogue]" for name in ("ndcg", "precision", "recall")] + [
        "auc[candidates=catalogue]"
    ]
    measure(model, test, [name for name in names if unusable(metric(name), test, train) is None], 2, train)


def splits(ratings: Ratings, rng: np.random.Generator) -> None:
    """The splits that draw by a kernel."""
    for text in ("binary[C=3]", "comparisons[n=20]", "n-per-user[n=2]", "entries", "leave-one-out", "per-user"):
        try:
            SPLITS.make(text).cut(ratings, rng, 0)
        except UserError:
            continue


def pairs(ratings: Ratings, rng: np.random.Generator) -> None:
    """All comparisons, and some."""
    ratings.comparisons()
    ratings.comparisons(3, rng)


def orders(ratings: Ratings, rng: np.random.Generator) -> None:
    """Projections onto the orders of random graphs and of ratings."""
    n = len(ratings)
    project_blocks(rng.standard_normal(n), ratings.values, weights=rng.uniform(0.5, 2, n))
    counts = np.diff(ratings.indptr)
    ends = [np.sort(rng.integers(0, max(2, size), (size, 2)), axis=1) for size in counts]
    kept = [own[own[:, 0] < own[:, 1]] if size > 1 else own[:0] for own, size in zip(ends, counts, strict=True)]
    edges, edge_indptr = np.concatenate(kept), np.concatenate([[0], np.cumsum([len(own) for own in kept])])
    graphs = OrderGraphs.of(ratings.indptr, edge_indptr, edges[:, 0], edges[:, 1])
    graphs.project(rng.standard_normal(n), weights=rng.uniform(0.5, 2, n))


def machines(ratings: Ratings, rng: np.random.Generator) -> None:
    """The certificates of AltSVM's halves."""
    state = Machines(AltSVM(rank=1), InProcess(), ratings.comparisons(), rng, 1)
    if len(state.train):
        state.fit_items()
        state.gap("items")
        state.gap("users")


def leaving_out(ratings: Ratings, rng: np.random.Generator) -> None:
    """The errors of leaving out each rating, in both forms."""
    for form in ("primal", "dual"):
        left_out(MPRank(form=form), ratings, np.array([0.1, 1.0]))


def levels(ratings: Ratings, rng: np.random.Generator) -> None:
    """The question which instruction sets the processor has."""
    assert level.usable(build_info.processor_has)


def gram_matrices(ratings: Ratings, rng: np.random.Generator) -> None:
    """Matrices of kernel functions, of dense and sparse features."""
    sparse = scipy.sparse.csr_array(ratings.item_features)
    rows = SparseRows(
        indptr=sparse.indptr.astype(np.int64), columns=sparse.indices.astype(np.int32), values=sparse.data
    )
    turned = scipy.sparse.csr_array(sparse.T)
    columns = SparseRows(
        indptr=turned.indptr.astype(np.int64), columns=turned.indices.astype(np.int32), values=turned.data
    )
    products = gram.linear(features=sparse.toarray(), threads=2)
    gram.linear(features=sparse.toarray(), threads=2, whole=False)
    gram.gaussian(products=products.copy(), width=1.0, threads=2)
    gram.sparse_gaussian(rows=rows, columns=columns, width=1.0, threads=2)
    chosen = rng.integers(0, ratings.n_items, 5).astype(np.int32)
    out = np.empty((5, ratings.n_items))
    scoring.products(rows=sparse.toarray(), chosen=chosen, columns=sparse.toarray(), out=out, threads=2)


def bundles(ratings: Ratings, rng: np.random.Generator) -> None:
    """The weights of planes that the users' half of CofiRank computes inside its kernel."""
    n = int(rng.choice([1, 2, 3, 7, 20]))
    planes = rng.standard_normal((n, 4))
    cofirank.weigh(
        products=planes @ planes.T, offsets=rng.standard_normal(n), lam=1.0, tolerance=1e-6, beta=np.full(n, 1 / n)
    )


def withheld(ratings: Ratings, rng: np.random.Generator) -> None:
    """Solvers on data without any rating."""
    empty = replace(
        ratings, indptr=np.zeros(ratings.n_users + 1, int), items=ratings.items[:0], values=ratings.values[:0]
    )
    for text in SETTINGS:
        _training(text)(empty, rng)


def newcomers(ratings: Ratings, rng: np.random.Generator) -> None:
    """Users whom a model was not trained on, by each loss of their own."""
    for text in (
        "bpr[rank=3]",
        "bpr[rank=2,biases=true,loss=squared-hinge]",
        "softmax[rank=3]",
        "sgd[rank=2]",
        "fm[rank=3]",
        "sqlrank[rank=3]",
    ):
        solver: Any = SOLVERS.make(text)
        try:
            step = next(iter(solver.steps(offer(solver, ratings), rng)))
            solver.fold_in(step.model, ratings, 2)
        except UserError:
            continue


def powers(ratings: Ratings, rng: np.random.Generator) -> None:
    """Powers of e, which other kernels compute inside."""
    exponentials(values=ratings.values, less=3.0, out=np.empty(len(ratings)))
    exponentials_of_two(values=ratings.values, less=3.0, out=np.empty(len(ratings)))
    logarithms(values=np.linspace(0.0, 1.0, 9), out=np.empty(9))
    binary_logarithms(values=np.linspace(1.0, 9.0, 9), out=np.empty(9))
    powers_to(values=np.linspace(1.0, 9.0, 9), power=0.3, out=np.empty(9))


def plain_tables(ratings: Ratings, rng: np.random.Generator) -> None:
    """The bytes of a table, of plain numbers or with one changed, and with or without room for all rows."""
    table = zip(ratings.users.tolist(), ratings.items.tolist(), ratings.values.tolist(), strict=True)
    text = np.frombuffer("".join(f"{user},x,{item},{value:.3g}\n" for user, item, value in table).encode(), np.uint8)
    fields, room = np.array([0, plain_rows.Field.UNUSED, 1, plain_rows.Field.VALUE], np.int8), max(1, len(ratings) - 1)
    for letter in b"\n,-.7\xff":
        changed = np.append(text, np.frombuffer(b"1,,2,3\n", np.uint8))
        changed[rng.integers(len(changed) - 1)] = letter
        for rows in (room, room + 9):
            whole = [np.empty(rows, np.int64) for _ in range(2)]
            plain_rows.read(
                text=changed,
                fields=fields,
                separator=b",",
                point=b".",
                numbers=whole,
                values=np.empty(rows),
                text_places=[np.empty(rows, np.int64)] * (letter % 2),
            )


OTHERS: tuple[Use, ...] = (
    metrics,
    splits,
    pairs,
    orders,
    machines,
    leaving_out,
    levels,
    gram_matrices,
    bundles,
    withheld,
    newcomers,
    powers,
    plain_tables,
)
USES: tuple[Use, ...] = (*map(_training, SETTINGS), *OTHERS)
