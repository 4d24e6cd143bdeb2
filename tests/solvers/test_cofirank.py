"""CofiRank's losses compared with assignment, pairs and differences; half steps with quadratic programs and ridge."""

from dataclasses import replace
from itertools import islice, pairwise, permutations

import clarabel
import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linear_sum_assignment, minimize
from solvers.contract import SolverContract, course

from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.core.streams import stream
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Ratings
from rankbench.kernels.shared.rows import SparseRows
from rankbench.kernels.solvers import cofirank as kernel
from rankbench.metrics import per_user
from rankbench.models import Factors
from rankbench.solvers.cofirank import CofiRank, Problem, items_half, users_half

LOSSES = ("ndcg", "ordinal", "regression")
every_loss = pytest.mark.parametrize("loss", LOSSES)


class TestCofiRank(SolverContract):
    solver = CofiRank(rank=3, lam=0.1, planes=12, tolerance=1e-2)


class TestCofiRankOrdinal(SolverContract):
    solver = CofiRank(rank=3, lam=0.1, loss="ordinal", planes=30, tolerance=1e-2)


class TestCofiRankRegression(SolverContract):
    solver = CofiRank(rank=3, lam=1.0, loss="regression", planes=30, tolerance=1e-2)


def one_user(values: Floats) -> Ratings:
    return Ratings(np.array([0, len(values)]), np.arange(len(values)), values, len(values))


def loss_of(view: Ratings, loss: str, scores: Floats, k: int = 10) -> tuple[float, Floats]:
    """The loss of one user's scores, given as items' vectors of length one, and its slopes."""
    losses, slopes = Problem.of(view, loss, k, 1.0, 1).losses(np.ones((1, 1)), scores[:, None].copy())
    return float(losses[0]), slopes


def weights_of(n: int) -> Floats:
    return np.arange(1.0, n + 1) ** -0.25


def gains_of(values: Floats, k: int) -> tuple[Floats, Floats]:
    """Each item's gain over the ideal DCG, and the discount of each position."""
    discounts = np.where(np.arange(len(values)) < k, 1 / np.log2(np.arange(len(values)) + 2.0), 0.0)
    gains = 2.0**values - 1
    ideal = np.sort(gains)[::-1] @ discounts
    return gains / (ideal or 1.0), discounts


def anchors_of(values: Floats) -> Floats:
    """The mean weight of the positions that an item has in the orders of falling rating."""
    positions = np.empty(len(values))
    positions[np.argsort(-values, kind="stable")] = weights_of(len(values))
    return np.array([positions[values == value].mean() for value in values])


# the losses


@pytest.mark.trust
@pytest.mark.parametrize("n", [1, 2, 5, 12, 60])
@pytest.mark.parametrize("k", [1, 3, 10, 100])
@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.1, 1.0, 30.0])
def test_the_ndcg_loss_is_the_best_assignment(n, k, scale):
    rng = np.random.default_rng([n, k, int(1000 * scale)])
    values = rng.integers(1, 6, n).astype(float)
    scores = scale * np.round(rng.standard_normal(n), 1)  # with ties
    gains, discounts = gains_of(values, k)
    worth = np.outer(weights_of(n), scores) - np.outer(discounts, gains)
    best = worth[linear_sum_assignment(worth, maximize=True)].sum()
    value, slopes = loss_of(one_user(values), "ndcg", scores, k)
    assert value == pytest.approx(1 + best - anchors_of(values) @ scores, rel=1e-11, abs=1e-12)
    order = np.argsort(-(slopes + anchors_of(values)))  # the order that the slope stands for is as good
    np.testing.assert_allclose(np.sort(slopes + anchors_of(values))[::-1], weights_of(n), rtol=1e-12)
    assert worth[np.arange(n), order].sum() == pytest.approx(best, rel=1e-11, abs=1e-12)


def check_the_order(weights: Floats, discounts: Floats, scores: Floats, gains: Floats) -> None:
    """Each item has one place, and the order is worth as much as the best assignment."""
    n, k = len(weights), len(discounts)
    rows = SparseRows(indptr=np.array([0, n]), columns=np.arange(n, dtype=np.int32), values=gains)
    given = {"anchors": np.zeros(n), "scales": np.zeros(1), "weights": weights, "discounts": discounts}
    problem = kernel.Problem(loss=kernel.Loss.NDCG, rows=rows, **given)
    value, slopes = np.empty(1), np.empty(n)
    user, items = np.ones((1, 1)), scores[:, None].copy()
    kernel.losses(problem=problem, users=user, factors=items, out=value, slopes=slopes, threads=1)
    worth = np.outer(weights, scores)
    worth[:k] -= np.outer(discounts, gains)
    best = worth[linear_sum_assignment(worth, maximize=True)].sum()
    assert value[0] == pytest.approx(best, rel=1e-12, abs=1e-12)
    np.testing.assert_array_equal(np.sort(slopes)[::-1], weights)


@pytest.mark.parametrize("ties", ["none", "scores", "all worths"])
def test_each_item_has_one_place_and_no_order_is_worth_more(ties):
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 7, 12, 20, 30, 60) * 50:
        k = int(rng.integers(1, n + 1))
        weights, discounts, gains = weights_of(n), np.linspace(1, 0.1, k), rng.random(n)
        scores = rng.standard_normal(n) * rng.choice([0.1, 1, 3])
        if ties != "none":
            scores, gains = np.round(scores, 1), rng.integers(0, 4, n) / 3
        if ties == "all worths":
            weights, discounts = np.arange(n, 0, -1.0), np.arange(k, 0, -1.0) / 4
        check_the_order(weights, discounts, scores, gains)


@pytest.mark.parametrize(
    ("scores", "gains", "discounts"),
    [
        ([-2.1, -4.2, -0.6, 2.4, 0.6], [0, 0, 1, 2, 0], [1, 0.55, 0.1]),
        ([0.4, -1.1, -0.2, -1.7, 0.1], [1, 2 / 3, 1, 0, 0], [1, 0.7, 0.4, 0.1]),
    ],
)
def test_an_item_may_lose_its_discounted_place_to_one_of_a_higher_score(scores, gains, discounts):
    check_the_order(np.linspace(1, 0.3, 5), *(np.array(numbers, float) for numbers in (discounts, scores, gains)))


@pytest.mark.parametrize("k", [1, 5, 10])
def test_the_ndcg_loss_bounds_what_is_lost_in_ndcg(k):
    rng = np.random.default_rng(k)
    for _ in range(50):
        values, scores = rng.integers(0, 5, 20).astype(float), rng.standard_normal(20) * rng.choice([0.01, 1, 10])
        model = Factors(np.ones((1, 1)), scores[:, None])
        ndcg = per_user(model, one_user(values), [f"ndcg@{k}"])[f"ndcg@{k}"][0]
        assert loss_of(one_user(values), "ndcg", scores, k)[0] >= 1 - ndcg - 1e-12


def test_scores_far_apart_in_the_right_order_lose_nothing():
    values = np.arange(8.0)
    assert loss_of(one_user(values), "ndcg", 100 * values)[0] == pytest.approx(0, abs=1e-10)
    assert loss_of(one_user(values), "ordinal", values)[0] == 0
    assert loss_of(one_user(values), "regression", values)[0] == 0


@pytest.mark.parametrize("seed", range(5))
def test_the_ordinal_loss_is_the_mean_hinge_over_listed_pairs(seed):
    rng = np.random.default_rng(seed)
    values, scores = rng.integers(1, 6, 25).astype(float), np.round(rng.standard_normal(25) * (seed + 0.5), 1)
    low, high = np.nonzero(values[:, None] < values[None, :])
    margins = 1 - (scores[high] - scores[low])
    value, slopes = loss_of(one_user(values), "ordinal", scores)
    assert value == pytest.approx(np.maximum(0, margins).mean(), rel=1e-12)
    counted = np.bincount(low[margins > 0], minlength=25) - np.bincount(high[margins > 0], minlength=25)
    np.testing.assert_allclose(slopes, counted / len(low), atol=1e-14)


@every_loss
def test_slopes_are_differences_and_lie_below(loss):
    rng = np.random.default_rng(2)
    view = one_user(rng.integers(1, 6, 15).astype(float))
    scores = rng.standard_normal(15)
    value, slopes = loss_of(view, loss, scores)
    for j in range(15):
        ahead, behind = (loss_of(view, loss, scores + sign * 1e-6 * np.eye(15)[j])[0] for sign in (1, -1))
        assert (ahead - behind) / 2e-6 == pytest.approx(slopes[j], abs=1e-5)
    for _ in range(20):
        other = scores + rng.standard_normal(15) * rng.choice([0.1, 1, 10])
        assert loss_of(view, loss, other)[0] >= value + slopes @ (other - scores) - 1e-10


def test_ratings_below_zero_and_beyond_all_powers_of_two_have_gains():
    scores = np.array([0.3, -0.2, 0.1])
    raised = loss_of(one_user(np.array([0.0, 2.0, 3.0])), "ndcg", scores)[0]
    assert loss_of(one_user(np.array([-1.0, 1.0, 2.0])), "ndcg", scores)[0] == pytest.approx(raised, rel=1e-14)
    assert np.isfinite(loss_of(one_user(np.array([1.0, 5000.0, 9000.0])), "ndcg", scores)[0])


# the halves

Plane = tuple[Floats, float]


def least_of_planes(groups: list[list[Plane]], lam: float, scales: Floats) -> float:
    """min over w of lam/2 |w|^2 + sum over groups of scale max over planes (a . w + b), as a quadratic program."""
    d, n = len(groups[0][0][0]), len(groups)
    rows = [(np.concatenate([a, -np.eye(n)[g]]), -b) for g, group in enumerate(groups) for a, b in group]
    quadratic = scipy.sparse.csc_matrix(scipy.sparse.diags(np.r_[np.full(d, lam), np.zeros(n)]))
    linear = np.r_[np.zeros(d), scales]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    matrix = scipy.sparse.csc_matrix(np.array([row for row, _ in rows]))
    bounds = np.array([bound for _, bound in rows])
    cones = [clarabel.NonnegativeConeT(len(rows))]
    return float(clarabel.DefaultSolver(quadratic, linear, matrix, bounds, cones, settings).solve().obj_val)


def planes_of(loss: str, values: Floats, jacobian: Floats, k: int) -> tuple[list[list[Plane]], list[float]]:
    """One user's loss as groups of planes in w, the scores being jacobian @ w; and each group's scale."""
    if loss == "ordinal":
        low, high = np.nonzero(values[:, None] < values[None, :])
        flat = np.zeros(jacobian.shape[1])
        groups = [[(flat, 0.0), (jacobian[i] - jacobian[j], 1.0)] for i, j in zip(low, high, strict=True)]
        return groups, [1 / len(low)] * len(low)
    gains, discounts = gains_of(values, k)
    anchors, weights = anchors_of(values), weights_of(len(values))
    group = []
    for order in permutations(range(len(values))):
        positions = np.argsort(order)
        group.append((jacobian.T @ (weights[positions] - anchors), 1 - discounts[positions] @ gains))
    return [group], [1.0]


@pytest.fixture(scope="module")
def small() -> tuple[Ratings, Floats, Floats]:
    """Six users of four or five ratings each, and a start."""
    rng = np.random.default_rng(3)
    rows = [np.sort(rng.choice(8, 4 + user % 2, replace=False)) for user in range(6)]
    users, items = np.repeat(np.arange(6), [len(row) for row in rows]), np.concatenate(rows)
    view = Ratings.from_triples(users, items, rng.permutation(np.arange(len(items)) % 5 + 1.0), 6, 8)
    return view, rng.standard_normal((6, 2)), rng.standard_normal((8, 2))


def weighed(slopes: Floats, offsets: Floats, lam: float, tolerance: float, start: Floats) -> tuple[Floats, float]:
    """The weights of planes from a start, and the bound that they give."""
    beta = start.copy()
    products = slopes @ slopes.T
    return beta, kernel.weigh(products=products, offsets=offsets, lam=lam, tolerance=tolerance, beta=beta)


def start_of(n: int, first: int = 0) -> Floats:
    return np.eye(n)[first]


@pytest.mark.parametrize("kind", ["few", "more than numbers", "means of others", "twice", "far apart", "flat"])
def test_the_weights_of_planes_are_those_of_a_quadratic_program(kind):
    rng = np.random.default_rng(11)
    for lam in (1e-3, 1.0, 1e3):
        n, d = (5, 8) if kind == "few" else (25, 6)
        slopes, offsets = rng.standard_normal((n, d)), rng.standard_normal(n)
        if kind == "means of others":
            shares = rng.dirichlet(np.ones(8), n - 8)
            slopes[8:], offsets[8:] = shares @ slopes[:8], shares @ offsets[:8] + rng.normal(0, 0.1, n - 8)
        if kind == "twice":
            slopes[12:24], offsets[12:24] = slopes[:12], offsets[:12]
        if kind == "far apart":
            slopes *= 10.0 ** rng.uniform(-3, 3, (n, 1))
        if kind == "flat":
            slopes[:] = 0.0
        expected = least_of_planes([list(zip(slopes, offsets, strict=True))], lam, np.ones(1))
        for start in (start_of(n), start_of(n, n - 1), np.full(n, 1 / n)):
            beta, bound = weighed(slopes, offsets, lam, 1e-9, start)
            assert (beta >= 0).all() and beta.sum() == pytest.approx(1, abs=1e-12)
            w = -slopes.T @ beta / lam
            value = lam / 2 * w @ w + (slopes @ w + offsets).max()
            scale = max(1.0, abs(value), lam / 2 * w @ w)
            assert bound == pytest.approx(offsets @ beta - lam / 2 * w @ w, abs=1e-11 * scale)
            assert value - bound <= 2e-9 * scale
            assert value == pytest.approx(expected, abs=1e-6 * scale)


def test_weights_go_on_from_where_they_were():
    rng = np.random.default_rng(3)
    slopes, offsets = rng.standard_normal((30, 5)), rng.standard_normal(30)
    beta, bound = weighed(slopes, offsets, 0.1, 1e-10, start_of(30))
    assert 1 < (beta > 0).sum() <= 6  # no more than one above the length of the slopes
    again, same = weighed(slopes, offsets, 0.1, 1e-10, beta)
    np.testing.assert_array_equal(again, beta)
    assert same == pytest.approx(bound, rel=1e-13)


@pytest.mark.parametrize("loss", ["ndcg", "ordinal"])
@pytest.mark.parametrize("lam", [0.01, 0.3])
def test_the_users_half_is_the_quadratic_programs(small, loss, lam):
    view, users, items = small
    half = users_half(Problem.of(view, loss, 3, lam, 1), users, items, 1e-7, 400)
    expected = 0.0
    for user in range(6):
        rows = slice(view.indptr[user], view.indptr[user + 1])
        groups, scales = planes_of(loss, view.values[rows], items[view.items[rows]], 3)
        expected += least_of_planes(groups, lam, np.array(scales))
    assert half.objective == pytest.approx(expected, rel=1e-6)
    assert half.gap <= 1e-7 * half.objective


@pytest.mark.parametrize("loss", ["ndcg", "ordinal"])
@pytest.mark.parametrize("lam", [0.1, 1.0])
def test_the_items_half_is_the_quadratic_program(small, loss, lam):
    view, users, items = small
    half = items_half(Problem.of(view, loss, 3, lam, 1), users, items, 1e-7, 400)
    groups, scales = [], []
    for user in range(6):
        rows = slice(view.indptr[user], view.indptr[user + 1])
        jacobian = np.zeros((len(view.values[rows]), 16))
        for position, item in enumerate(view.items[rows]):
            jacobian[position, 2 * item : 2 * item + 2] = users[user]
        more, scale = planes_of(loss, view.values[rows], jacobian, 3)
        groups, scales = groups + more, scales + scale
    assert half.objective == pytest.approx(least_of_planes(groups, lam, np.array(scales)), rel=1e-6)
    assert half.gap <= 1e-7 * half.objective


def test_the_halves_of_regression_are_what_a_smooth_minimiser_finds(small):
    view, users, items = small
    problem = Problem.of(view, "regression", 3, 0.5, 1)

    def squares(u: Floats, m: Floats) -> float:
        errors = np.einsum("rk,rk->r", u[view.users], m[view.items]) - view.values
        return float(0.5 * errors @ errors)

    by_user = minimize(lambda w: squares(w.reshape(6, 2), items) + 0.25 * w @ w, np.zeros(12), method="L-BFGS-B")
    by_item = minimize(lambda w: squares(users, w.reshape(8, 2)) + 0.25 * w @ w, np.zeros(16), method="L-BFGS-B")
    assert users_half(problem, users, items, 1e-6, 400).objective == pytest.approx(by_user.fun, rel=1e-5)
    assert items_half(problem, users, items, 1e-6, 400).objective == pytest.approx(by_item.fun, rel=1e-5)


@every_loss
@pytest.mark.parametrize("planes", [2, 5, 20])
def test_a_half_cut_short_still_says_how_far_it_may_be(small, loss, planes):
    view, users, items = small
    problem = Problem.of(view, loss, 3, 0.1, 1)
    for half in (users_half, items_half):
        short, long = (half(problem, users, items, 1e-6, most) for most in (planes, 400))
        assert long.objective - long.gap <= short.objective <= long.objective + short.gap + 1e-9
        assert short.objective >= long.objective - long.gap


@pytest.mark.parametrize("lam", [10.0, 0.1])
def test_least_squares_of_a_user_who_is_folded_in_are_exact(lam):
    rng = np.random.default_rng(5)
    items = rng.standard_normal((60, 12))
    view = Ratings([0, 30, 33, 33], np.r_[0:30, 7, 9, 50], rng.integers(1, 6, 33).astype(float), 60)
    solver = CofiRank(rank=12, loss="regression", lam=lam)
    found = solver.fold_in(Factors(np.zeros((1, 12)), items), view)
    for user in range(2):
        rows = slice(view.indptr[user], view.indptr[user + 1])
        design = items[view.items[rows]]
        expected = np.linalg.solve(design.T @ design + lam * np.eye(12), design.T @ view.values[rows])
        np.testing.assert_allclose(found.users[user], expected, rtol=0, atol=1e-10)
    assert np.isnan(found.users[2]).all()


def test_a_user_whose_system_has_no_finite_solution_is_named():
    view = Ratings([0, 1, 2], [0, 1], [1.0, 2.0], 2)
    items = np.array([[1.0], [1e200]])
    with pytest.raises(UserError, match="the system of user 1 has no finite solution"):
        CofiRank(rank=1, loss="regression").fold_in(Factors(np.zeros((1, 1)), items), view)


@pytest.mark.parametrize("loss", ["ndcg", "ordinal"])
def test_a_user_who_is_folded_in_is_at_the_minimum_from_any_start(loss):
    rng = np.random.default_rng(6)
    items = rng.standard_normal((60, 12)) * 0.3
    view = Ratings([0, 30, 38], np.r_[0:30, 7:15], rng.integers(1, 6, 38).astype(float), 60)
    found = CofiRank(rank=12, loss=loss, lam=0.3).fold_in(Factors(np.zeros((1, 12)), items), view)
    problem = Problem.of(view, loss, 10, 0.3, 1)
    other = users_half(problem, rng.standard_normal((2, 12)), items, 1e-13, 1000)
    np.testing.assert_allclose(found.users, other.point, rtol=0, atol=1e-9)


# the whole


@every_loss
def test_two_halves_bring_the_objective_down_and_to_what_they_say(loss):
    view = LowRank(users=30, items=40, per_user=12, rank=2).view(np.random.default_rng(0))
    solver = CofiRank(rank=3, lam=0.05, loss=loss, planes=60)
    problem = Problem.of(view, loss, solver.k, solver.lam, 1)
    steps = list(islice(solver.steps(view, stream(0)), 7))
    objectives = [step.objective() for step in steps]
    assert objectives[-1] < 0.8 * objectives[0]
    for step, objective in zip(steps, objectives, strict=True):
        assert problem.objective(step.model.users, step.model.items) == pytest.approx(objective, rel=1e-12)


@every_loss
def test_the_objective_is_that_of_the_model_shown(loss):
    view = Ratings([0, 3, 5, 7], [0, 1, 2, 0, 1, 1, 2], [1, 3, 5, 4, 4, 2, 5], n_items=3)  # the second has no order
    solver = CofiRank(rank=2, lam=0.05, loss=loss, planes=20)
    problem = Problem.of(view, loss, solver.k, solver.lam, 1)
    for step in islice(solver.steps(view, stream(0)), 4):
        expected = problem.objective(step.model.users, step.model.items)
        assert step.objective() == pytest.approx(expected, rel=1e-12)


@every_loss
def test_more_users_than_a_thread_takes_at_once_give_the_same_bytes(loss):
    view = LowRank(users=60, items=40, per_user=12, rank=2).view(np.random.default_rng(0))
    solver = CofiRank(rank=3, lam=0.05, loss=loss, planes=15)
    assert course(solver, view, 3) == course(solver, view, 1)


def test_the_order_of_equal_ratings_in_the_data_does_not_matter():
    view = LowRank(users=8, items=10, per_user=6, rank=2).view(np.random.default_rng(1))
    view = replace(view, values=np.round(view.values))
    turned = Ratings.from_triples(view.users, 9 - view.items, view.values, 8, 10)
    users, items = np.random.default_rng(0).standard_normal((2, 10, 2))
    one, other = Problem.of(view, "ndcg", 5, 1.0, 1), Problem.of(turned, "ndcg", 5, 1.0, 1)
    assert one.objective(users[:8], items) == pytest.approx(other.objective(users[:8], items[::-1].copy()), rel=1e-12)


def test_users_and_items_without_a_rating_score_nan():
    view = Ratings.from_triples([1, 1, 2], [0, 2, 2], [1.0, 2.0, 3.0], 4, 4)
    *_, step = islice(CofiRank(rank=2, lam=0.1).steps(view, stream(0)), 4)
    scores = step.model.score_all(np.arange(4))
    assert np.isfinite(scores[np.ix_([1, 2], [0, 2])]).all()
    assert np.isnan(scores[[0, 3]]).all() and np.isnan(scores[:, [1, 3]]).all()


@pytest.mark.parametrize("loss", list(kernel.Loss))
@pytest.mark.parametrize("number", [np.nan, np.inf, 1e200])
def test_scores_that_are_not_finite_have_no_loss_and_end(loss, number):
    rows = SparseRows(indptr=np.array([0, 3]), columns=np.arange(3, dtype=np.int32), values=np.array([0.0, 1.0, 2.0]))
    problem = kernel.Problem(
        loss=loss, rows=rows, anchors=np.ones(3), scales=np.ones(1), weights=np.ones(3), discounts=np.ones(2)
    )
    factors, out, slopes = np.array([[1.0], [number], [2.0]]), np.zeros(1), np.ones(3)
    kernel.losses(problem=problem, users=np.ones((1, 1)), factors=factors, out=out, slopes=slopes, threads=1)
    assert np.isnan(out).all() and (slopes == 0).all()
    found = kernel.users_half(
        problem=problem, users=np.ones((1, 1)), factors=factors, lam=1.0, tolerance=1e-3, most_planes=5, threads=1
    )
    assert np.isnan(found[0]).all()


def test_a_problem_of_numbers_that_are_not_finite_is_refused():
    rows = SparseRows(indptr=np.array([0, 1]), columns=np.zeros(1, np.int32), values=np.array([np.nan]))
    with pytest.raises(ValueError, match="must be numbers up to 1e"):
        kernel.Problem(
            loss=kernel.Loss.NDCG,
            rows=rows,
            anchors=np.ones(1),
            scales=np.ones(1),
            weights=np.ones(1),
            discounts=np.ones(1),
        )


def test_the_steps_end_where_two_halves_no_longer_lower_the_objective():
    train = LowRank(users=30, items=25, per_user=12).view(np.random.default_rng(0))
    solver = CofiRank(rank=3, lam=1.0, loss="regression", least_fall=1e-2)
    found = [step.objective() for step in solver.steps(train, stream(0))][2::2]
    falls = [1 - later / earlier for earlier, later in pairwise(found)]
    assert len(falls) > 1 and falls[-1] <= 1e-2 and all(fall > 1e-2 for fall in falls[:-1])


@every_loss
def test_equal_ratings_order_no_items_except_by_regression(loss):
    train = LowRank(users=30, items=25, per_user=12).view(np.random.default_rng(0))
    equal = np.where(train.users == 4, 3.0, train.values)
    with one_blas_thread():
        *_, last = islice(CofiRank(rank=3, lam=0.1, loss=loss).steps(replace(train, values=equal), stream(0)), 5)
        found = last.model.score(np.full(25, 4), np.arange(25))
        other = last.model.score(np.full(25, 5), np.arange(25))
    assert found.any() == (loss == "regression") and other.any()
