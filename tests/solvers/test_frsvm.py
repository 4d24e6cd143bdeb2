"""Factorization RankSVM: the contract, and its objective and optimum against scipy and plain NumPy."""

import tracemalloc
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import minimize
from solvers.contract import InParts, SolverContract, ratings

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.data.synthetic import FeatureLowRank
from rankbench.data.views import Ratings, View, offer
from rankbench.distributed.in_process import InProcess
from rankbench.execution.training import fit
from rankbench.kernels.methods import entries
from rankbench.kernels.shared.rows import Pattern, SparseRows
from rankbench.kernels.solvers import frsvm as kernel
from rankbench.methods.losses import CODES, LOSSES
from rankbench.methods.pair_tasks import PairTasks
from rankbench.solvers import frsvm
from rankbench.solvers.frsvm import FRSVM


class TestFRSVM(SolverContract):
    solver = FRSVM(rank=2)


class TestWithoutFeatures(SolverContract):
    solver = FRSVM(rank=3, C=0.1, features="none", fallback="mean")

    def test_features_are_withheld_unless_declared(self):
        assert offer(self.solver, ratings()).item_features is None


class TestLogistic(SolverContract):
    solver = FRSVM(rank=2, loss="logistic")


class TestFRSVMInParts(InParts, SolverContract):
    solver = FRSVM(rank=2, partitions=2)


@pytest.mark.trust
class TestFRSVMInPartsWithoutFeatures(InParts, SolverContract):
    solver = FRSVM(rank=3, C=0.1, features="none", fallback="mean", start="random", newton=2, partitions=2)


def small(**settings) -> Ratings:
    """Continuous ratings of low rank in the features."""
    wanted = {"users": 40, "items": 60, "features": 6, "rank": 2, "per_user": 12} | settings
    return FeatureLowRank(**wanted).view(np.random.default_rng(5))


def run(solver: FRSVM, train: View, steps: int, threads: int = 1):
    """The start and the last of so many steps, each as (U, V, objective)."""
    shown = []
    with one_blas_thread():
        for step in islice(solver.steps(train, np.random.default_rng(1), threads), steps + 1):
            model = step.model
            basis = model.basis if solver.needs_features else model.items
            shown.append((np.nan_to_num(basis), model.users.copy(), step.objective()))
    return shown[0], shown[-1]


def by_hand(solver: FRSVM, train: View, basis: Floats, users: Floats) -> tuple[float, Floats, Floats]:
    """Eq. (2) and its gradients over listed pairs, in NumPy."""
    pairs = train if not isinstance(train, Ratings) else train.comparisons()
    features = np.eye(train.n_items) if not solver.needs_features else train.item_features
    features = features.toarray() if scipy.sparse.issparse(features) else features
    differences = features[pairs.better] - features[pairs.worse]
    projected = differences @ basis
    loss = next(one for one in LOSSES if one.name == solver.loss)
    margins = (projected * users[pairs.users]).sum(axis=1)
    value = solver.C * loss.value(margins).sum() + ((basis**2).sum() + (users**2).sum()) / 2
    pull = solver.C * loss.slope(margins)[:, None]
    users_gradient = users.copy()
    np.add.at(users_gradient, pairs.users, pull * projected)
    return value, basis + differences.T @ (pull * users[pairs.users]), users_gradient


VIEWS = {
    "continuous": small,
    "levels": lambda: replace(small(), values=np.round(small().values / 8)),
    "comparisons": lambda: small().comparisons(),
    "drawn comparisons": lambda: small(pairs=30),
    "sparse": lambda: replace(
        small(),
        item_features=scipy.sparse.csr_array(np.where(np.abs(small().item_features) > 0.7, small().item_features, 0)),
    ),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("features", ["given", "none"])
@pytest.mark.parametrize("loss", ["squared-hinge", "logistic"])
def test_the_objective_is_that_of_the_paper(view, features, loss):
    solver, train = FRSVM(rank=3, C=0.3, features=features, loss=loss), VIEWS[view]()
    for basis, users, objective in run(solver, train, 3):
        np.testing.assert_allclose(objective, by_hand(solver, train, basis, users)[0], rtol=1e-10)


def lbfgs(solver: FRSVM, train: View, basis: Floats, users: Floats) -> float:
    """The objective at which scipy's L-BFGS ends, from the same start."""

    def value(flat: Floats) -> tuple[float, Floats]:
        found, *gradients = by_hand(
            solver, train, flat[: basis.size].reshape(basis.shape), flat[basis.size :].reshape(users.shape)
        )
        return found, np.concatenate([part.ravel() for part in gradients])

    start = np.concatenate([basis.ravel(), users.ravel()])
    options = {"maxiter": 1000, "maxfun": 2000, "ftol": 1e-10, "gtol": 1e-6}
    return float(minimize(value, start, jac=True, method="L-BFGS-B", options=options).fun)


@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("view", "loss"), [*((view, "squared-hinge") for view in VIEWS), ("levels", "logistic"), ("sparse", "logistic")]
)
def test_it_ends_where_lbfgs_ends_from_the_same_start(view, loss):
    solver, train = FRSVM(rank=3, C=0.3, start="random", loss=loss), VIEWS[view]()
    (basis, users, _), (_, _, objective) = run(solver, train, 300)
    assert objective <= 1.001 * lbfgs(solver, train, basis, users)


@pytest.mark.slow
def test_without_features_it_ends_where_nothing_falls_any_more():
    solver, train = FRSVM(rank=2, C=0.3, features="none", cg=30), VIEWS["levels"]()
    (basis, users, _), (last_basis, last_users, _) = run(solver, train, 200)
    before, after = (
        np.hypot(*map(np.linalg.norm, by_hand(solver, train, *point)[1:]))
        for point in ((basis, users), (last_basis, last_users))
    )
    assert after < 1e-3 * before


@pytest.mark.parametrize("partitions", [1, 3])
def test_steps_end_where_the_objective_cannot_show_a_fall(partitions):
    """Line searches among rounding errors would take many times as long as the steps before them."""
    solver, train = FRSVM(rank=2, C=0.3, loss="logistic", partitions=partitions), VIEWS["drawn comparisons"]()
    steps = solver.steps(train, np.random.default_rng(0))
    objectives = [step.objective() for step in islice(steps, 2000)]
    assert 10 < len(objectives) < 2000
    assert objectives[-1] == pytest.approx(objectives[-2], rel=1e-13)
    _, (basis, users, _) = run(solver, train, 2000)
    _, of_basis, of_users = by_hand(solver, train, basis, users)
    assert max(np.abs(of_basis).max(), np.abs(of_users).max()) < 1e-6 < np.abs(users).max()


@pytest.mark.parametrize("loss", ["squared-hinge", "logistic"])
@pytest.mark.parametrize("view", ["continuous", "levels", "drawn comparisons"])
def test_the_step_over_the_tasks_solves_a_rank_svm_for_each(view, loss):
    """With U fixed the problem is convex: there is no gradient left once every v is at its best."""
    train = VIEWS[view]()
    tasks, basis = PairTasks.of(train, 1, CODES[loss]), np.zeros((6, 4))
    basis[:, :3] = np.random.default_rng(0).standard_normal((6, 3))
    users = np.zeros((tasks.n_tasks, 4))
    factors = train.item_features @ basis
    method = kernel.TruncatedNewton(C=0.3, steps=30, cg=60, forcing=1e-3)
    once = kernel.TruncatedNewton(C=0.3, steps=1, cg=1, forcing=1e-3)
    for step in (once, method):
        moved = kernel.users_step(tasks=tasks.pairs, method=step, factors=factors, users=users, threads=2)
        assert 0.9 * tasks.paired.sum() < moved <= tasks.paired.sum()
    _, _, gradient = by_hand(FRSVM(C=0.3, loss=loss), train, basis, users)
    assert np.abs(gradient).max() < 1e-7 and np.abs(users).max() > 0.1
    again = users.copy()
    assert kernel.users_step(tasks=tasks.pairs, method=method, factors=factors, users=again, threads=2) == 0
    np.testing.assert_allclose(again, users, rtol=0, atol=1e-7)


def test_the_basis_is_orthogonal_and_falls_in_importance():
    _, (basis, users, _) = run(FRSVM(rank=4), small(), 5)
    grams = basis.T @ basis, users.T @ users
    np.testing.assert_allclose(grams[0], grams[1], atol=1e-8 * grams[0].max())
    np.testing.assert_allclose(grams[0], np.diag(np.diag(grams[0])), atol=1e-8 * grams[0].max())
    assert (np.diff(np.diag(grams[0])) <= 0).all()


def test_features_that_are_the_identity_are_no_features():
    train = small()
    given = replace(train, item_features=scipy.sparse.csr_array(np.eye(train.n_items)))
    one, other = (run(FRSVM(rank=3, features=kind), given, 4)[1] for kind in ("given", "none"))
    met = train.comparisons()
    scores = [users @ basis.T for basis, users, _ in (one, other)]
    ids = met.users, met.better
    np.testing.assert_allclose(scores[0][ids], scores[1][ids], rtol=1e-6, atol=1e-8)


def test_unseen_items_are_scored_by_their_features():
    train = small()
    unseen = int(np.flatnonzero(np.bincount(train.items[train.indptr[1] :], minlength=60))[0])
    kept = np.flatnonzero(train.items != unseen)
    with one_blas_thread():
        model = list(islice(FRSVM(rank=2).steps(train.take(kept), np.random.default_rng(0)), 30))[-1].model
    rows = np.flatnonzero(train.items == unseen)
    scores = model.score(train.users[rows], train.items[rows])
    assert np.isfinite(scores).all()
    assert np.corrcoef(scores, train.values[rows])[0, 1] > 0.7


@pytest.mark.parametrize("levels", [5, 0])
def test_pairs_of_ratings_are_never_listed(levels):
    """Two tasks of 20,000 ratings imply 400 million pairs, whose ids alone would take 3 GB."""
    rng, n = np.random.default_rng(0), 20_000
    values = rng.integers(levels, size=2 * n) if levels else rng.standard_normal(2 * n)
    train = Ratings(np.array([0, n, 2 * n]), np.tile(np.arange(n, dtype=np.int32), 2), values, n)
    solver = FRSVM(rank=2, C=1e-4, features="none")
    tracemalloc.start()
    try:
        (_, _, before), (_, _, after) = run(solver, train, 1)
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()
    assert after < before


# what cannot be learned from


def lonely() -> Ratings:
    """Task 0 has one rating, task 1 rates all alike, task 2 none, task 3 has an order."""
    features = np.random.default_rng(0).standard_normal((5, 2))
    return Ratings.from_triples([0, 1, 1, 3, 3, 3], [0, 1, 2, 0, 1, 2], [1, 2, 2, 1, 2, 3], 4, 5, features)


@pytest.mark.parametrize("features", ["given", "none"])
def test_a_task_without_a_pair_ties_all_items_or_takes_the_others_mean(features):
    scores = {}
    for fallback in ("zero", "mean"):
        _, (_, users, _) = run(FRSVM(rank=2, features=features, fallback=fallback), lonely(), 5)
        scores[fallback] = users
    assert not scores["zero"][:3].any() and scores["zero"][3].any()
    np.testing.assert_array_equal(scores["mean"][:3], np.tile(scores["mean"][3], (3, 1)))


def test_a_task_without_a_pair_changes_nothing():
    alone = lonely().take(np.array([3, 4, 5]))
    one, other = (run(FRSVM(rank=1), view, 5)[1] for view in (lonely(), alone))
    np.testing.assert_allclose(one[0], other[0], rtol=1e-9)
    assert one[2] == pytest.approx(other[2], rel=1e-9)


def test_items_in_no_pair_score_nan_without_features():
    with one_blas_thread():
        *_, last = islice(FRSVM(rank=2, features="none").steps(lonely(), np.random.default_rng(0)), 3)
    assert np.isnan(last.model.score(np.array([3, 3]), np.array([3, 4]))).all()
    assert np.isfinite(last.model.score(np.array([3, 3]), np.array([0, 2]))).all()


def test_a_rank_above_the_number_of_features_is_lowered_to_it():
    model, same = (fit(FRSVM(rank=rank), lonely(), steps=3) for rank in (3, 2))
    assert model.basis.shape[1] == 2
    assert model.basis.tobytes() == same.basis.tobytes() and model.users.tobytes() == same.users.tobytes()


def test_features_that_are_missing_are_asked_for():
    with pytest.raises(UserError, match="features=given, but the data has none: give item features, or features=none"):
        next(FRSVM(rank=2).steps(replace(lonely(), item_features=None), np.random.default_rng(0)))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 127, 129, 300])
def test_products_with_the_features_are_those_of_numpy(n, threads):
    rng = np.random.default_rng(n)
    features = rng.standard_normal((n, 40)) * (rng.random((n, 40)) < 0.3)
    matrix, back = rng.standard_normal((40, 8)), rng.standard_normal((n, 8))
    sparse = scipy.sparse.csr_array(features)
    rows = SparseRows(
        indptr=sparse.indptr.astype(np.int64), columns=sparse.indices.astype(np.int32), values=sparse.data
    )
    outs = np.empty((3, n, 8))
    with one_blas_thread():
        kernel.dense_times(features=features, matrix=matrix, out=outs[0], threads=threads)
        entries.times(matrix=rows, dense=matrix, out=outs[1], threads=threads)
        for out in outs[:2]:
            np.testing.assert_allclose(out, features @ matrix, atol=1e-12)
        if n:
            other = np.empty((40, 8))
            kernel.transposed_times(features=features, matrix=back, out=other, threads=threads)
            np.testing.assert_allclose(other, features.T @ back, atol=1e-11)


@pytest.mark.parametrize("partitions", [1, 3])
def test_the_spectral_start_has_scores_of_standard_deviation_1_about_their_mean(partitions):
    """All users put item 0 above the others that they have rated."""
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(30), 4)
    items = np.concatenate([np.append(0, 1 + rng.permutation(9)[:3]) for _ in range(30)])
    values = np.where(items == 0, 5.0, rng.integers(1, 3, 120))
    view = Ratings.from_triples(users, items, values, 30, 10)
    solver = FRSVM(rank=1, features="none", partitions=partitions)
    scores = next(iter(solver.steps(view, np.random.default_rng(0)))).model.score(view.users, view.items)
    assert scores.mean() > 0.3 and scores.std() == pytest.approx(1)


# users in parts


def from_the_same_start(solver: FRSVM, train: View, epochs: int) -> tuple[list[float], list[float]]:
    """The objectives of as many epochs with the users in one part and in several, from the same U and V."""
    made_fits, executors = [], (InProcess(), InProcess())
    for number, executor in zip((1, solver.partitions), executors, strict=True):
        whole = replace(solver, partitions=number)
        made_fits.append(frsvm._Fit(whole, executor, train, 1, np.random.default_rng(0)))
    basis = made_fits[0].spectral()
    (users,) = made_fits[0].model(basis).users.pieces()
    executors[1].ask(put, {part: (users[slice(*ends)],) for part, ends in enumerate(pairwise(made_fits[1].edges))})
    found = []
    for made in made_fits:
        now, objectives = basis.copy(), []
        for _ in range(epochs):
            now, _ = made.epoch(now)
            objectives.append(made.objective(now))
        found.append(objectives)
    return found[0], found[1]


def put(part, users):
    """Give a part's users these vectors."""
    part.users[:, : users.shape[1]] = users


@pytest.mark.trust
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("features", ["given", "none"])
@pytest.mark.parametrize("partitions", [2, 7])
@pytest.mark.parametrize("loss", ["squared-hinge", "logistic"])
def test_with_users_in_parts_every_epoch_does_what_it_does_without(view, features, partitions, loss):
    solver = FRSVM(rank=3, C=0.3, features=features, newton=2, partitions=partitions, loss=loss)
    with one_blas_thread():
        whole, parts = from_the_same_start(solver, VIEWS[view](), 5)
    np.testing.assert_allclose(parts, whole, rtol=1e-8)


def test_features_as_many_as_items_stay_with_the_driver():
    wide = small(features=80)
    with one_blas_thread():
        whole, parts = from_the_same_start(FRSVM(rank=3, C=0.3, partitions=3), wide, 3)
    np.testing.assert_allclose(parts, whole, rtol=1e-8)


@pytest.mark.parametrize("view", ["levels", "comparisons"])
def test_a_rank_above_that_of_the_product_keeps_the_product(view):
    """A weak fit, whose smaller singular values vanish: balancing must not amplify rounding errors."""
    solver = FRSVM(rank=5, C=1e-4, partitions=3)
    with one_blas_thread():
        objectives = [step.objective() for step in islice(solver.steps(VIEWS[view](), np.random.default_rng(0)), 60)]
    assert (np.diff(objectives) <= 1e-12 * np.abs(objectives[:-1])).all()


def test_more_parts_than_users_are_refused():
    with pytest.raises(UserError, match="FRSVM: partitions=41 is above the number of users, 40; lower partitions"):
        next(FRSVM(rank=2, partitions=41).steps(small(), np.random.default_rng(0)))


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_by_item_change_no_bit(monkeypatch, threads):
    """Sums of long vectors, of items that are met often: made item by item, of the same terms in the same order."""
    train, solver = small(items=20, per_user=15), FRSVM(rank=29, C=0.1, features="none")
    found, tiles, made = [], [], kernel.ItemBlocks
    monkeypatch.setattr(kernel, "ItemBlocks", lambda **given: tiles.append(given["tile"]) or made(**given))
    for wide in (1000, 32):
        monkeypatch.setattr(frsvm, "_WIDE", wide)
        found.append(run(solver, train, 3, threads)[1])
    assert tiles[0] == 0 < tiles[1]
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_by_item_need_items_that_ascend():
    """Else an item would be looked for in the wrong block, and counted beyond the end of it."""
    rows = Pattern(indptr=np.array([0, 2, 4]), columns=np.array([0, 3, 3, 0], np.int32))
    with pytest.raises(ValueError, match="the items of a task must ascend"):
        kernel.ItemBlocks(rows=rows, n_items=4, width=2, tile=1)


@pytest.mark.parametrize("tile", [0, 1, 4, 9, 100])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 12, 16, 20, 24, 28, 31, 32, 36, 48, 52, 67])
def test_users_times_weights_are_added_up_by_items_in_the_order_of_the_tasks(width, tile):
    rng = np.random.default_rng(width)
    met = rng.random((9, 11)) < 0.6
    users, items = np.nonzero(met)
    weights = rng.standard_normal(len(items)) * rng.integers(0, 3, len(items))
    vectors, out, expected = rng.standard_normal((9, width)), np.full((11, width), np.nan), np.zeros((11, width))
    indptr = np.concatenate([[0], np.cumsum(met.sum(axis=1))])
    pattern = Pattern(indptr=indptr, columns=items.astype(np.int32))
    blocks = kernel.ItemBlocks(rows=pattern, n_items=11, width=4, tile=tile)
    kernel.scatter(blocks=blocks, weights=weights, users=vectors, out=out, threads=2)
    for user, item, weight in zip(users, items, weights, strict=True):
        expected[item] += weight * vectors[user]
    np.testing.assert_array_equal(out, expected)
