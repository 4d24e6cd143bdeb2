"""RankSVMs, jointly, separately and with a shared part, against scikit-learn's LinearSVC on listed differences."""

from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from solvers.contract import SolverContract
from solvers.problems import few_tasks

from rankbench.api.fitting import split
from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Floats, Step
from rankbench.data.synthetic import FeatureLowRank
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.execution.training import fit
from rankbench.methods import newton, task_inverses
from rankbench.methods.pair_tasks import PairTasks
from rankbench.methods.tasks import checked_features
from rankbench.metrics import evaluate
from rankbench.solvers import ranksvm_var
from rankbench.solvers.ranksvm_joint import RankSVMJoint
from rankbench.solvers.ranksvm_separate import RankSVMSeparate
from rankbench.solvers.ranksvm_var import RankSVMVar


class TestRankSVMJoint(SolverContract):
    solver = RankSVMJoint(C=0.1)


class TestRankSVMJointLogistic(SolverContract):
    solver = RankSVMJoint(C=0.1, loss="logistic")


class TestRankSVMSeparate(SolverContract):
    solver = RankSVMSeparate(C=0.1)


class TestRankSVMVar(SolverContract):
    solver = RankSVMVar(C=0.1, shared=0.5, private=2.0)


@pytest.fixture(params=["levels", "continuous", "comparisons", "sparse", "sparse comparisons"])
def train(request) -> View:
    return few_tasks(request.param)


def pairs_of(view: View) -> Comparisons:
    return view if isinstance(view, Comparisons) else view.comparisons()


def dense(view: View) -> Floats:
    features: Any = view.item_features
    return features.toarray() if scipy.sparse.issparse(features) else features


def differences(view: View) -> Floats:
    """A row per pair: the better item's features less the worse one's."""
    pairs = pairs_of(view)
    return dense(view)[pairs.better] - dense(view)[pairs.worse]


def svc(rows: Floats, C: float) -> Floats:
    """scikit-learn's weights: half the rows turned round, as it wants two classes."""
    signs = np.where(np.arange(len(rows)) % 2, -1, 1)
    machine = LinearSVC(C=C, loss="squared_hinge", fit_intercept=False, tol=1e-10, max_iter=100_000, dual=False)
    return machine.fit(rows * signs[:, None], signs).coef_[0]


def value(weights: Floats, rows: Floats, C: float) -> float:
    """1/2 |w|^2 + C sum max(0, 1 - w . row)^2"""
    return 0.5 * weights @ weights + C * np.square(np.maximum(0, 1 - rows @ weights)).sum()


def last(solver: Any, view: View, threads: int = 1) -> Step:
    """Where the solver ends."""
    with one_blas_thread():
        *_, step = solver.steps(view, np.random.default_rng(0), threads)
    return step


def stacked(view: View, solver: RankSVMVar) -> Floats:
    """The differences in the coordinates sqrt(shared) w, sqrt(private) v_1, v_2, ..."""
    rows, tasks = differences(view), pairs_of(view).users
    private = np.zeros((len(rows), view.n_users, rows.shape[1]))
    private[np.arange(len(rows)), tasks] = rows / np.sqrt(solver.private)
    return np.hstack([rows / np.sqrt(solver.shared), private.reshape(len(rows), -1)])


C = pytest.mark.parametrize("C", [0.01, 1.0, 30.0])


@pytest.mark.parametrize(
    ("seed", "solver"),
    [
        (81, RankSVMJoint(C=100.0)),
        (30, RankSVMVar(C=100.0)),
        (89, RankSVMVar(C=100.0)),
        (31, RankSVMSeparate(C=100.0)),
        (39, RankSVMSeparate(C=100.0)),
    ],
)
def test_features_of_hundreds_do_not_end_the_descent_before_the_optimum(seed, solver):
    # Steps that are halved end before a pair that is right by less than they see (81, 30, 31), and directions with a
    # small residual turn in the valley where all pairs are right (89), or no length of them is good (39).
    rng = np.random.default_rng(seed)
    features, values = rng.standard_normal((8, 4)) * 500, rng.integers(1, 4, 16).astype(float)
    train = Ratings.from_triples(np.repeat([0, 1], 8), np.tile(np.arange(8), 2), values, 2, 8, features)
    *_, step = islice(solver.steps(train, np.random.default_rng(0)), 30)
    assert step.gap() <= 1e-9 * step.objective()


def test_features_of_thousands_take_few_steps():
    features = np.array([[-1103, -2007, -282, 1315], [-2195, 198, -1077, -935], [1259, -655, 375, -389.0]])
    features = np.vstack([features, [-1103, -1038, -527, -345]])
    train = Ratings(np.array([0, 4]), np.arange(4, dtype=np.int32), np.array([2.0, 2, 1, 2]), 4, features)
    *_, step = islice(RankSVMJoint(C=0.05).steps(train, np.random.default_rng(0)), 10)
    assert step.gap() <= 1e-9 * step.objective()


@C
def test_jointly_is_one_svm_over_all_differences(C, train):
    step = last(RankSVMJoint(C=C), train)
    rows = differences(train)
    expected = svc(rows, C)
    assert step.objective() == pytest.approx(value(expected, rows, C), rel=1e-8)
    np.testing.assert_allclose(step.model.scores, dense(train) @ expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [RankSVMSeparate, RankSVMVar])
def test_with_the_logistic_loss_it_ends_where_lbfgs_ends_and_its_gap_says_how_near_that_is(kind, train):
    """The unknowns are sqrt(shared) w, sqrt(private) v_1, ...; without a shared part all w_i one after the other."""
    rows = stacked(train, RankSVMVar(shared=1e9 if kind is RankSVMSeparate else 1.0))

    def objective(x: Floats) -> tuple[float, Floats]:
        margins = rows @ x
        return 0.5 * (x @ x + np.logaddexp(0, -margins).sum()), x - 0.5 * rows.T @ (1 / (1 + np.exp(margins)))

    best = minimize(objective, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 5000}).fun
    step = last(kind(C=0.5, loss="logistic"), train)
    assert step.objective() == pytest.approx(best, rel=1e-4)
    assert step.objective() <= best * (1 + 1e-7) and step.gap() <= 1e-9 * best


@pytest.mark.trust
@pytest.mark.parametrize("C", [0.001, 100.0, 10_000.0])
@pytest.mark.parametrize("kind", [RankSVMSeparate, RankSVMVar])
def test_the_gap_of_the_logistic_loss_vanishes_for_small_and_large_weights(kind, C, train):
    step = last(kind(C=C, loss="logistic"), train)
    assert step.gap() <= 1e-10 * step.objective()


@C
def test_jointly_with_the_logistic_loss_it_is_a_logistic_regression_over_all_differences(C, train):
    """scikit-learn's, with half the rows turned round; the gap bounds how far the objective is from theirs."""
    rows = differences(train)
    signs = np.where(np.arange(len(rows)) % 2, -1, 1)
    theirs = LogisticRegression(C=C, fit_intercept=False, tol=1e-12, max_iter=100_000, solver="newton-cg")
    expected = theirs.fit(rows * signs[:, None], signs).coef_[0]
    least = 0.5 * expected @ expected + C * np.logaddexp(0, -rows @ expected).sum()
    with one_blas_thread():
        steps = list(RankSVMJoint(C=C, loss="logistic").steps(train, np.random.default_rng(0), 1))
    assert steps[-1].objective() == pytest.approx(least, rel=1e-9)
    assert steps[-1].gap() <= 1e-12 * least
    assert all(step.objective() - least <= step.gap() + 1e-9 * least for step in steps)
    assert steps[0].gap() == pytest.approx(0.5 * np.square(C / 2 * rows.sum(axis=0)).sum())  # half the squared gradient
    np.testing.assert_allclose(steps[-1].model.scores, dense(train) @ expected, rtol=1e-4, atol=1e-4)


@C
def test_separately_is_an_svm_per_task(C, train):
    step = last(RankSVMSeparate(C=C), train)
    rows, tasks = differences(train), pairs_of(train).users
    expected = np.array([svc(rows[tasks == task], C) for task in range(train.n_users)])
    total = sum(value(expected[task], rows[tasks == task], C) for task in range(train.n_users))
    assert step.objective() == pytest.approx(total, rel=1e-8)
    np.testing.assert_allclose(step.model.weights, expected, rtol=1e-4, atol=1e-4)


@C
@pytest.mark.parametrize(("shared", "private"), [(1.0, 1.0), (0.1, 3.0), (5.0, 0.2)])
def test_with_a_shared_part_it_is_an_svm_over_stacked_coordinates(C, shared, private, train):
    solver = RankSVMVar(C=C, shared=shared, private=private)
    step = last(solver, train)
    rows = stacked(train, solver)
    assert step.objective() == pytest.approx(value(svc(rows, C), rows, C), rel=1e-7)


@pytest.fixture(scope="module")
def of_pages() -> dict[type, View]:
    """The data on the page of each solver."""

    def cut(how: str, **sizes: int) -> View:
        made = FeatureLowRank(features=20, rank=5, **sizes).view(np.random.default_rng(1))
        return split(made, how).train

    return {
        RankSVMJoint: cut("n-per-user[n=25]", users=100, items=300, per_user=40),
        RankSVMSeparate: cut("items-per-task[n=40,test=20]", users=60, items=500, per_user=200),
        RankSVMVar: cut("n-per-user[n=45]", users=30, items=150, per_user=60),
    }


@pytest.mark.one_in(5)
@pytest.mark.slow
@pytest.mark.parametrize("kind", [RankSVMJoint, RankSVMSeparate, RankSVMVar])
@pytest.mark.parametrize("C", [0.001, 1.0, 100.0, 10_000.0])
def test_training_ends_at_the_gap_that_the_page_promises(kind, C, of_pages):
    """At a large C the last digits of the objective no longer show that it falls, while the gap is still 1e-6 of it."""
    step = last(kind(C=C), of_pages[kind])
    assert step.gap() <= 1e-12 * step.objective()


def test_a_step_that_leaves_the_objective_level_is_taken_if_the_gap_halves(monkeypatch, of_pages):
    monkeypatch.setattr(newton, "sufficient", lambda change, *rest: change < -1.0)
    monkeypatch.setattr(newton, "_ROUNDING", np.inf)  # every step that gains less counts as level
    steps = list(RankSVMVar().steps(of_pages[RankSVMVar], np.random.default_rng(0)))
    level = [(a.gap(), b.gap()) for a, b in pairwise(steps) if b.objective() > a.objective() - 1]
    assert level and all(after <= before / 2 for before, after in level)
    assert steps[-1].gap() <= 1e-12 * steps[-1].objective()


@pytest.mark.parametrize("solver", [RankSVMJoint(C=2.0), RankSVMSeparate(C=2.0), RankSVMVar(C=2.0, shared=0.3)])
def test_objective_and_gap_are_those_of_the_double_sum_at_every_step(solver, train):
    best = last(solver, train).objective()
    for step in solver.steps(train, np.random.default_rng(0)):
        pairs = pairs_of(train)
        ahead = step.model.score(pairs.users, pairs.better) - step.model.score(pairs.users, pairs.worse)
        losses = 2.0 * np.square(np.maximum(0, 1 - ahead)).sum()
        assert step.objective() >= losses * (1 - 1e-12)
        assert step.objective() - best <= step.gap() * (1 + 1e-9) + 1e-10 * best
    assert step.gap() <= 1e-8 * step.objective()


def with_few_features_each(seed: int = 0) -> View:
    """Ratings of items that have three of forty features each, so that tasks lack most features."""
    rng = np.random.default_rng(seed)
    features = scipy.sparse.csr_array(np.where(rng.random((60, 40)) < 0.08, rng.standard_normal((60, 40)), 0.0))
    users, items = np.repeat(np.arange(30), 6), np.concatenate([rng.permutation(60)[:6] for _ in range(30)])
    values = rng.integers(1, 6, 180).astype(float)
    return Ratings.from_triples(users, items, values, n_users=30, n_items=60, item_features=features)


@pytest.mark.parametrize("listed", [False, True])
def test_deviations_are_unknown_only_where_a_tasks_items_have_the_feature(listed):
    view = with_few_features_each()
    view = view.comparisons() if listed else view
    solver = RankSVMVar(C=2.0, shared=0.3)
    sparse = [last(solver, view, threads) for threads in (1, 2, 3)]
    assert len({step.model.weights.tobytes() for step in sparse}) == 1
    whole = last(solver, replace(view, item_features=dense(view)))
    assert sparse[0].objective() == pytest.approx(whole.objective(), rel=1e-10)
    np.testing.assert_allclose(sparse[0].model.weights, whole.model.weights, atol=1e-6)
    pairs = pairs_of(view)
    has = np.zeros((view.n_users, 40), bool)
    np.logical_or.at(has, pairs.users, (dense(view)[pairs.better] != 0) | (dense(view)[pairs.worse] != 0))
    weights = sparse[0].model.weights
    shared = np.array([weights[~has[:, feature], feature][0] for feature in range(40)])
    assert has.mean() < 0.5 and (weights == shared)[~has].all() and not (weights == shared)[has].all()


def with_words(seed: int = 0) -> View:
    """Ratings of items with words: a few that many items have, and many that few have."""
    rng = np.random.default_rng(seed)
    common, rare = rng.random((300, 10)) < 0.3, rng.random((300, 400)) < 0.01
    features = scipy.sparse.csr_array(np.hstack([common, rare]).astype(float))
    users, items = np.repeat(np.arange(40), 60), np.concatenate([rng.permutation(300)[:60] for _ in range(40)])
    values = rng.integers(1, 6, 2400).astype(float)
    return Ratings.from_triples(users, items, values, n_users=40, n_items=300, item_features=features)


@pytest.mark.trust
@pytest.mark.parametrize(("shared", "private"), [(1.0, 1.0), (0.1, 2.0)])
def test_the_stronger_preconditioner_saves_most_conjugate_gradients_and_ends_at_the_same_minimum(
    shared, private, monkeypatch
):
    solver, view, counts = RankSVMVar(C=0.3, shared=shared, private=private), with_words(), []
    direction = newton._direction

    def counted(*args: Any) -> tuple[Floats, int]:
        found, taken = direction(*args)
        counts[-1] += taken
        return found, taken

    monkeypatch.setattr(newton, "_direction", counted)
    ends = []
    for many in (0, 30, 10**6):
        monkeypatch.setattr(newton, "_MANY", many)
        counts.append(0)
        ends.append(last(solver, view))
    always, once_needed, never = counts
    assert always < never / 3 and once_needed < never / 2
    for end in ends[:2]:
        assert end.objective() == pytest.approx(ends[2].objective(), rel=1e-10)
    assert all(end.gap() <= 1e-12 * end.objective() for end in ends)


@pytest.mark.parametrize(("shared", "private"), [(1.0, 1.0), (0.1, 2.0), (30.0, 0.5)])
def test_the_stronger_preconditioner_is_an_inverse_where_each_task_has_one_feature(shared, private):
    """Then no two features meet in a task, the shared part's system is a diagonal, and random signs give it exactly."""
    rng = np.random.default_rng(0)
    rows, feature_of_task = np.repeat(np.arange(6), 4), np.array([0, 1, 2, 0, 1, 0])
    items = scipy.sparse.csr_array((rng.standard_normal(24), (np.arange(24), feature_of_task[rows])), shape=(24, 3))
    values = np.tile([1.0, 2.0, 3.0, 4.0], 6)
    view = Ratings.from_triples(rows, np.arange(24), values, n_users=6, n_items=24, item_features=items)
    places = ranksvm_var._Support.of(PairTasks.of(view, 1), checked_features(view.item_features))
    h = rng.random(24)
    laplacian = np.diag(h)
    for task in range(6):
        own = np.where(rows == task, h, 0.0)
        laplacian -= np.outer(own, own) / own.sum()
    joined = np.hstack([items.toarray() / np.sqrt(shared), places.matrix.toarray() / np.sqrt(private)])
    right = rng.standard_normal(joined.shape[1])
    found = ranksvm_var._coupled(places, h, shared, private)(right)
    hessian = np.eye(joined.shape[1]) + joined.T @ laplacian @ joined
    np.testing.assert_allclose(found, np.linalg.solve(hessian, right), atol=1e-10)


def test_extreme_penalties_leave_jointly_or_separately(train):
    scores = [
        last(solver, train).model.score(*np.indices((train.n_users, train.n_items)).reshape(2, -1))
        for solver in (RankSVMJoint(C=0.5), RankSVMVar(C=0.5, private=1e7))
    ]
    np.testing.assert_allclose(*scores, atol=1e-4)
    weights = [last(solver, train).model.weights for solver in (RankSVMSeparate(C=0.5), RankSVMVar(C=0.5, shared=1e7))]
    np.testing.assert_allclose(*weights, atol=1e-4)


def test_separately_ends_where_rounding_errors_hide_how_the_objective_falls():
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((10, 8)) < 0.6)
    view = Ratings.from_triples(users, items, rng.integers(1, 6, len(users)).astype(float), 10, 8)
    for scale in (1e3, 1e5, 1e6):
        features = scale * np.random.default_rng(0).standard_normal((8, 3))
        steps = list(islice(RankSVMSeparate().steps(replace(view, item_features=features), rng), 100))
        assert len(steps) < 30
        assert steps[-1].gap() <= 1e-9 * steps[-1].objective()


def test_ratings_and_their_listed_pairs_give_the_same():
    view = FeatureLowRank(users=20, items=60, features=7, rank=2, per_user=40).view(np.random.default_rng(1))
    for solver in (RankSVMJoint(C=0.1), RankSVMSeparate(C=0.1), RankSVMVar(C=0.1)):
        implicit, listed = last(solver, view), last(solver, view.comparisons())
        assert implicit.objective() == pytest.approx(listed.objective(), rel=1e-10)


def test_separately_and_jointly_do_on_low_rank_data_what_the_paper_saw():
    view = FeatureLowRank(users=60, items=2000).view(np.random.default_rng(0))
    held_out = np.arange(len(view)) % 61 >= 41
    train, test = view.take(np.flatnonzero(~held_out)), view.take(np.flatnonzero(held_out))
    accuracy = {
        type(solver): evaluate(fit(solver, train, steps=20), test, ["pairwise-accuracy[pairs=both]"], train=train)
        for solver in (RankSVMJoint(), RankSVMSeparate())
    }
    assert list(accuracy[RankSVMSeparate].values()) == [pytest.approx(0.83, abs=0.02)]
    assert list(accuracy[RankSVMJoint].values()) == [pytest.approx(0.55, abs=0.05)]


@pytest.mark.parametrize("solver", [RankSVMJoint(), RankSVMSeparate(), RankSVMVar()])
def test_tasks_without_order_contribute_nothing_and_have_their_fallback(solver):
    view = FeatureLowRank(users=8, items=30, features=3, rank=2, per_user=9).view(np.random.default_rng(1))
    flat = replace(view, values=np.where(view.users == 3, 2.0, view.values))
    single = flat.take(np.flatnonzero((view.users != 5) | (np.arange(len(view)) % 9 == 0)))
    silent = single.take(np.flatnonzero((single.users != 3) & (single.users != 5)))
    with_them, without = last(solver, single), last(solver, silent)
    every = np.indices((8, 30)).reshape(2, -1)
    np.testing.assert_array_equal(with_them.model.score(*every), without.model.score(*every))
    assert with_them.objective() == pytest.approx(without.objective(), rel=1e-14)
    told = with_them.model.score(*every).reshape(8, 30)[[3, 5]]
    assert (told[0] == told[1]).all()
    assert told.any() == (not isinstance(solver, RankSVMSeparate))


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("solver", [RankSVMJoint(), RankSVMSeparate(), RankSVMVar()])
def test_many_tasks_give_the_same_bytes_on_any_number_of_threads(solver, threads):
    many = FeatureLowRank(users=40, items=50, features=6, rank=2, per_user=15).view(np.random.default_rng(0))
    one, more = (fit(solver, many, steps=2, threads=n) for n in (1, threads))
    every = np.indices((40, 50)).reshape(2, -1)
    assert one.score(*every).tobytes() == more.score(*every).tobytes()


@pytest.mark.trust
def test_the_stronger_preconditioner_is_positive_where_a_diagonal_is_estimated_below_zero():
    view = with_words()
    places = ranksvm_var._Support.of(PairTasks.of(view, 1), checked_features(view.item_features))
    solve = ranksvm_var._coupled(places, np.full(len(view), 5.0), 1e-4, 1.0)
    unit = np.eye(places.d, places.d + places.size)
    assert all(row @ solve(row) > 0 for row in unit)


@pytest.mark.trust
@pytest.mark.parametrize("threads", [2, 3])
def test_the_stronger_preconditioner_gives_the_same_bytes_on_any_number_of_threads(threads, monkeypatch):
    monkeypatch.setattr(newton, "_MANY", 0)
    one, more = (fit(RankSVMVar(C=0.3), with_words(), steps=5, threads=n) for n in (1, threads))
    assert one.weights.tobytes() == more.weights.tobytes()


def test_where_the_stronger_preconditioner_would_be_too_large_the_weaker_one_is_used(monkeypatch):
    with_it = last(RankSVMVar(C=0.3), with_words())
    monkeypatch.setattr(newton, "_MANY", 0)
    monkeypatch.setattr(task_inverses, "_LARGEST", 0)
    without = last(RankSVMVar(C=0.3), with_words())
    assert without.objective() == pytest.approx(with_it.objective(), rel=1e-10)


def test_it_ends_where_no_length_of_a_step_is_accepted(train, monkeypatch):
    monkeypatch.setattr(newton, "_direction", lambda point, linear, C, most, share: (np.full(linear.size, np.nan), 0))
    (step,) = RankSVMJoint(C=0.1).steps(train, np.random.default_rng(0))
    assert step.gap() > 0 and not step.model.score(np.arange(8), np.arange(8)).any()
