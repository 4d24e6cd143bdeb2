"""Global ranking against scikit-learn, finite differences and its own certificate."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.sparse import coo_array
from scipy.special import expit, xlogy
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from solvers.contract import SolverContract

from rankbench.core.contract import Floats, Ints, Step
from rankbench.data.synthetic import BTL
from rankbench.data.views import Comparisons, Ratings
from rankbench.kernels.solvers import global_ranking as kernel
from rankbench.methods.losses import CODES
from rankbench.models import ItemScores
from rankbench.solvers.global_ranking import GlobalRanking, _descend, _Problem

LOSSES = {
    "squared-hinge": lambda margins: np.maximum(0, 1 - margins) ** 2,
    "logistic": lambda margins: np.logaddexp(0, -margins),
}
each_loss = pytest.mark.parametrize("loss", list(LOSSES))


class TestGlobalRanking(SolverContract):
    solver = GlobalRanking(lam=0.5)


class TestGlobalRankingWithLogisticLoss(SolverContract):
    solver = GlobalRanking(lam=0.02, loss="logistic")


@pytest.fixture
def train() -> Comparisons:
    return BTL(users=20, items=15, comparisons=30).view(np.random.default_rng(1))


def last(solver: GlobalRanking, train: Comparisons) -> Step:
    *_, step = solver.steps(train, np.random.default_rng(0))
    return step


def ranked(solver: GlobalRanking, train: Comparisons) -> Floats:
    return last(solver, train).model.score(np.zeros(train.n_items, int), np.arange(train.n_items))


def objective(scores: Floats, train: Comparisons, loss: str, lam: float) -> float:
    return LOSSES[loss](scores[train.better] - scores[train.worse]).sum() + lam / 2 * scores @ scores


def classified(train: Comparisons) -> tuple[Floats, Floats]:
    """A row x_better - x_worse per comparison, every other one turned round: a classifier needs two classes."""
    signs = np.where(np.arange(len(train)) % 2, -1.0, 1.0)
    unit = np.eye(train.n_items)
    return signs[:, None] * (unit[train.better] - unit[train.worse]), signs


@pytest.mark.parametrize("lam", [0.01, 1.0, 30.0])
def test_the_logistic_loss_gives_the_scores_of_scikit_learn(train, lam):
    oracle = LogisticRegression(C=1 / lam, fit_intercept=False, solver="newton-cholesky", tol=1e-12)
    oracle.fit(*classified(train))
    np.testing.assert_allclose(ranked(GlobalRanking(lam, "logistic"), train), oracle.coef_[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("lam", [0.01, 1.0, 30.0])
def test_the_squared_hinge_gives_the_objective_of_scikit_learn(train, lam):
    oracle = LinearSVC(loss="squared_hinge", C=1 / lam, fit_intercept=False, dual=False, tol=1e-10, max_iter=10_000)
    oracle.fit(*classified(train))
    theirs = objective(oracle.coef_[0], train, "squared-hinge", lam)
    ours = last(GlobalRanking(lam), train).objective()
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert ours <= theirs * (1 + 1e-12)


@each_loss
def test_the_objective_is_the_formula_at_every_step(train, loss):
    for step in GlobalRanking(0.3, loss).steps(train, np.random.default_rng(0)):
        assert step.objective() == pytest.approx(objective(step.model.scores, train, loss, 0.3), rel=1e-12)


def dual(scores: Floats, train: Comparisons, loss: str, lam: float) -> float:
    """sum -L*(-a) - |sum a (x_better - x_worse)|^2 / (2 lam) at a = -L'(margin)."""
    margins = scores[train.better] - scores[train.worse]
    if loss == "squared-hinge":
        pulls = 2 * np.maximum(0, 1 - margins)
        conjugate = pulls**2 / 4 - pulls
    else:
        pulls = expit(-margins)
        conjugate = xlogy(pulls, pulls) + xlogy(1 - pulls, 1 - pulls)
    n = train.n_items
    combined = np.bincount(train.better, pulls, n) - np.bincount(train.worse, pulls, n)
    return float(-conjugate.sum() - combined @ combined / (2 * lam))


@each_loss
@pytest.mark.parametrize("lam", [0.3, 30.0])
def test_the_gap_is_the_objective_less_the_dual(train, loss, lam):
    for step in GlobalRanking(lam, loss).steps(train, np.random.default_rng(0)):
        expected = step.objective() - dual(step.model.scores, train, loss, lam)
        assert step.gap() == pytest.approx(expected, rel=1e-9, abs=1e-9)


@each_loss
@pytest.mark.parametrize("lam", [1e-12, 1e-8, 1e-4, 0.3, 1e4, 1e12])
def test_the_gap_closes(train, loss, lam):
    step = last(GlobalRanking(lam, loss), train)
    assert step.gap() <= 1e-10 * step.objective()


@each_loss
@pytest.mark.parametrize("lam", [1e-9, 1e-4])
def test_the_gap_closes_where_nothing_speaks_against_an_order(loss, lam):
    view = Comparisons.from_triples(np.zeros(30, int), np.arange(30), np.arange(1, 31))
    scores = ranked(GlobalRanking(lam, loss), view)
    assert (np.diff(scores) < 0).all()
    assert last(GlobalRanking(lam, loss), view).gap() <= 1e-10 * last(GlobalRanking(lam, loss), view).objective()


@pytest.mark.parametrize("seed", [22, 43, 345])
def test_the_gap_closes_where_an_item_beyond_the_hinge_is_drawn_to_zero(seed):
    values = np.random.default_rng(seed).permutation(40) * 1.0
    two_users = Ratings(np.array([0, 20, 40]), np.tile(np.arange(20, dtype=np.int32), 2), values, 20)
    step = last(GlobalRanking(lam=1e-8), two_users.comparisons())
    assert step.gap() <= 1e-10 * step.objective()


@each_loss
def test_a_warm_start_is_left_where_zeros_are_the_optimum(loss):
    contradicting = Comparisons.from_triples([0, 0], [0, 1], [1, 0])
    start = ItemScores(np.array([1.0, 3.0]))
    *_, end = GlobalRanking(loss=loss).steps_from(start, contradicting, np.random.default_rng(0))
    np.testing.assert_allclose(end.model.scores, 0.0, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_objective_falls_where_a_whole_newton_step_would_overshoot(seed):
    clear_cut = BTL(users=1, items=20, comparisons=19, scale=1000.0).view(np.random.default_rng(seed))
    steps = GlobalRanking(lam=0.01).steps(clear_cut, np.random.default_rng(0))
    objectives = [step.objective() for step in steps]
    assert len(objectives) > 2 and (np.diff(objectives) < 0).all()


@each_loss
def test_a_comparison_made_twice_counts_twice(train, loss):
    twice = Comparisons.from_triples(*(np.tile(x, 2) for x in (train.users, train.better, train.worse)))
    once, doubled = (ranked(GlobalRanking(lam, loss), view) for lam, view in ((30, train), (60, twice)))
    np.testing.assert_allclose(doubled, once, rtol=1e-8)
    assert np.abs(ranked(GlobalRanking(30, loss), twice) - once).max() > 1e-3


@each_loss
def test_contradictions_count_on_both_sides(loss):
    view = Comparisons.from_triples([0, 0, 1], [0, 0, 1], [1, 1, 0])
    winner, loser = ranked(GlobalRanking(0.1, loss), view)
    assert winner > loser
    level = Comparisons.from_triples([0, 1], [0, 1], [1, 0])
    np.testing.assert_allclose(ranked(GlobalRanking(0.1, loss), level), 0, atol=1e-12)


def test_an_item_that_nobody_compared_has_no_score(train):
    wider = Comparisons(train.indptr, train.better, train.worse, train.n_items + 1)
    scores = ranked(GlobalRanking(), wider)
    assert np.isnan(scores[-1])
    np.testing.assert_allclose(scores[:-1], ranked(GlobalRanking(), train), rtol=1e-12)


# the kernel


def tournament(train: Comparisons) -> kernel.Tournament:
    """The tournament of these comparisons."""
    return kernel.Tournament(better=train.better, worse=train.worse, n_items=train.n_items)


def swept(loss: str, train: Comparisons, scores: Floats, threads: int = 1) -> tuple[Floats, Floats, Floats, Floats]:
    """Losses, gradient and sum of curvatures per item, curvature per pair."""
    meets, totals = tournament(train), np.empty((3, train.n_items))
    curvature = np.empty(len(meets.arrays()[1]))
    kernel.sweep(loss=CODES[loss], tournament=meets, scores=scores, totals=totals, curvature=curvature, threads=threads)
    return totals[0], totals[1], totals[2], curvature


def hessian_times(train: Comparisons, curvature: Floats, direction: Floats) -> Floats:
    """The Hessian with these curvatures times a direction."""
    out = np.empty(train.n_items)
    kernel.curvature_times(tournament=tournament(train), curvature=curvature, direction=direction, out=out, threads=1)
    return out


def crowded(items: int, comparisons: int, seed: int) -> tuple[Ints, Ints]:
    """Better and worse items, the same pairs often and both ways round, the last item never."""
    rng = np.random.default_rng(seed)
    better = rng.integers(items - 1, size=comparisons).astype(np.int32)
    worse = ((better + rng.integers(1, items - 1, size=comparisons)) % (items - 1)).astype(np.int32)
    return better, worse


@pytest.mark.parametrize(("items", "comparisons"), [(3, 1), (3, 40), (9, 25), (60, 5000), (500, 800)])
def test_a_tournament_is_the_matrix_of_wins_beside_its_transpose(items, comparisons):
    better, worse = crowded(items, comparisons, items)
    indptr, opponents, wins, losses = kernel.Tournament(better=better, worse=worse, n_items=items).arrays()
    won = coo_array((np.ones(comparisons), (better, worse)), shape=(items, items)).toarray()
    rows = np.repeat(np.arange(items), np.diff(indptr))
    np.testing.assert_array_equal(np.stack([rows, opponents]), np.nonzero(won + won.T))
    np.testing.assert_array_equal(wins, won[rows, opponents])
    np.testing.assert_array_equal(losses, won.T[rows, opponents])


@pytest.fixture
def scores(train) -> Floats:
    return 2 * np.random.default_rng(2).standard_normal(train.n_items)


@each_loss
def test_the_gradient_is_that_of_finite_differences(train, scores, loss):
    expected = approx_fprime(scores, objective, 1e-7, train, loss, 0.0)
    np.testing.assert_allclose(swept(loss, train, scores)[1], expected, rtol=1e-4, atol=1e-4)


@each_loss
def test_the_hessian_times_a_direction_is_that_of_finite_differences(train, scores, loss):
    direction = np.random.default_rng(3).standard_normal(train.n_items)
    out = hessian_times(train, swept(loss, train, scores)[3], direction)
    ahead, behind = (swept(loss, train, scores + sign * 1e-6 * direction)[1] for sign in (1, -1))
    np.testing.assert_allclose(out, (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-5)


@each_loss
def test_the_diagonal_is_that_of_the_hessian(train, scores, loss):
    _, _, diagonal, curvature = swept(loss, train, scores)
    columns = np.stack([hessian_times(train, curvature, unit) for unit in np.eye(train.n_items)])
    np.testing.assert_allclose(diagonal, columns.diagonal(), rtol=1e-12)


@each_loss
@pytest.mark.parametrize("threads", [2, 3])
def test_a_sweep_gives_the_same_bytes_on_any_number_of_threads(loss, threads):
    train = BTL(users=40, items=120, comparisons=40).view(np.random.default_rng(5))
    scores = np.random.default_rng(6).standard_normal(train.n_items)
    for one, many in zip(swept(loss, train, scores), swept(loss, train, scores, threads), strict=True):
        assert one.tobytes() == many.tobytes()


@pytest.mark.parametrize("margin", [-800.0, -40.0, 0.0, 40.0, 800.0])
def test_the_logistic_loss_never_overflows(margin):
    view = Comparisons.from_triples([0], [0], [1])
    losses, gradient, _, curvature = swept("logistic", view, np.array([margin, 0.0]))
    assert losses[0] == pytest.approx(np.logaddexp(0, -margin), rel=1e-14)
    assert gradient[1] == pytest.approx(np.exp(-np.logaddexp(0, margin)), rel=1e-14)
    assert curvature[0] == pytest.approx(np.exp(-np.logaddexp(0, margin) - np.logaddexp(0, -margin)), rel=1e-13)


@each_loss
def test_without_comparisons_there_is_one_step_and_nothing_to_gain(loss):
    nothing = Comparisons(np.zeros(3, int), [], [], 50)
    for _ in range(3):
        np.full((3, 50), 7.0)  # memory that an unfilled array would show
        (step,) = GlobalRanking(0.3, loss).steps(nothing, np.random.default_rng(0))
        assert (step.objective(), step.gap()) == (0, 0)


@each_loss
def test_it_ends_where_no_length_of_a_step_is_accepted(train, loss, monkeypatch):
    monkeypatch.setattr(_Problem, "newton_direction", lambda *_: np.full(train.n_items, np.nan))
    (step,) = GlobalRanking(lam=0.5, loss=loss).steps(train, np.random.default_rng(0))
    assert not np.nan_to_num(step.model.scores).any()


@pytest.mark.parametrize(("gap", "accepted"), [(0.49, True), (0.51, False), (1.5, False)])
def test_a_step_that_leaves_the_objective_level_is_taken_only_if_the_gap_halves(gap, accepted, train, monkeypatch):
    problem = _Problem(train, CODES["squared-hinge"], 1.0, 1)
    point = problem.at(np.zeros(train.n_items))
    level = replace(point, gap=gap * point.gap)
    monkeypatch.setattr(problem, "at", lambda scores: level)
    assert _descend(problem, point, 1.0) is (level if accepted else None)
