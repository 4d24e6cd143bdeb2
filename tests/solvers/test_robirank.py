"""RobiRank against its formulas: the closed form, the gradient of the robust loss, and what a run achieves."""

from itertools import islice

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from solvers.contract import SolverContract
from solvers.least import slopes_of

from rankbench.core.contract import Floats
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.kernels.methods.pairwise import DescentFactors
from rankbench.kernels.solvers import robirank as kernel
from rankbench.methods.factors import zero_rows
from rankbench.metrics import evaluate
from rankbench.solvers.robirank import RobiRank, wishes_of


class TestRobiRank(SolverContract):
    solver = RobiRank(rank=3)


class TestRobiRankInTheCatalogue(SolverContract):
    solver = RobiRank(rank=2, among="catalogue", draws=2, step=0.05)


each_kind = pytest.mark.parametrize("among", ["rated", "catalogue"])


@pytest.fixture
def ratings() -> Ratings:
    return LowRank(users=15, items=12, per_user=7).view(np.random.default_rng(0))


def terms(ratings: Ratings, among: str, users: Floats, items: Floats) -> tuple[Floats, Floats, list[tuple[int, int]]]:
    """Gain and t of every rated (user, item), by the definition."""
    gains, sums, pairs = [], [], []
    low, high = ratings.values.min(), ratings.values.max()
    for user, item, value in zip(ratings.users, ratings.items, ratings.values, strict=True):
        own = ratings.items[ratings.indptr[user] : ratings.indptr[user + 1]] if among == "rated" else range(len(items))
        margins = np.array([users[user] @ (items[item] - items[k]) for k in own if k != item])
        gains.append((2**value - 2**low) / (2**high - 2**low) if among == "rated" else 1.0)
        sums.append(np.log2(1 + 2.0**-margins).sum())
        pairs.append((user, item))
    return np.array(gains), np.array(sums), pairs


def robust(ratings: Ratings, among: str, users: Floats, items: Floats, lam: float) -> float:
    gains, sums, _ = terms(ratings, among, users, items)
    return gains @ np.log2(1 + sums) + lam / 2 * (np.square(users).sum() + np.square(items).sum())


# the loss


@each_kind
@pytest.mark.parametrize("threads", [1, 3])
def test_the_objective_is_the_formula_at_every_step(among, threads, ratings):
    for step in islice(RobiRank(rank=3, lam=0.4, among=among).steps(ratings, np.random.default_rng(0), threads), 4):
        expected = robust(ratings, among, step.model.users, step.model.items, 0.4)
        assert step.objective() == pytest.approx(expected, rel=1e-12)


@each_kind
def test_xi_minimises_the_linearised_loss_which_then_is_the_robust_one(among, ratings):
    model = next(RobiRank(rank=4, among=among).steps(ratings, np.random.default_rng(1))).model
    gains, sums, _ = terms(ratings, among, model.users, model.items)
    xi, losses = wishes_of(ratings, among).close(model.users, model.items, 2)
    for own, t in zip(xi, sums[gains > 0], strict=True):

        def linearised(x: float, t: float = t) -> float:
            return -np.log2(x) + (x * (1 + t) - 1) / np.log(2)

        best = minimize_scalar(linearised, bounds=(1e-6, 1.0), method="bounded", options={"xatol": 1e-10})
        assert own == pytest.approx(best.x, rel=1e-5)
        assert linearised(own) == pytest.approx(np.log2(1 + t), rel=1e-12)
    assert losses.sum() == pytest.approx(gains @ np.log2(1 + sums), rel=1e-12)


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 400.0])
def test_the_product_of_many_factors_is_their_sum_of_logarithms(scale):
    rng = np.random.default_rng(0)
    view = Ratings.from_triples(np.zeros(300, int), np.arange(300), np.arange(300) % 5, 1, 300)
    users, items = np.ones((1, 4)), np.zeros((300, 4))
    items[:, 0] = scale * rng.uniform(-0.5, 0.5, 300)
    wishes = wishes_of(view, "catalogue")
    xi, _ = wishes.close(users, items, 1)
    margins = items[:, :1] - items[None, :, 0]
    sums = (np.logaddexp(0, -margins * np.log(2)) / np.log(2)).sum(axis=1) - 1
    np.testing.assert_allclose(1 / xi, 1 + sums, rtol=1e-10)


def test_scores_too_far_apart_for_a_double_leave_numbers():
    view = Ratings.from_triples([0, 0, 0], [0, 1, 2], [1, 2, 3], 1, 3)
    xi, losses = wishes_of(view, "rated").close(np.array([[3000.0, 0, 0, 0]]), np.diag([1.0, 0, -1, 0])[:3], 1)
    assert np.isfinite(xi).all() and np.isfinite(losses).all() and losses[0] > 0


# the descent


@each_kind
def test_on_average_a_pass_of_tiny_steps_goes_down_the_gradient_of_the_robust_objective(among, ratings):
    size, lam = 1e-7, 2.0
    solver = RobiRank(rank=2, lam=lam, step=size, decay=0.0, draws=400, among=among)
    steps = solver.steps(ratings, np.random.default_rng(0))
    before = np.vstack([(model := next(steps).model).users, model.items])
    after = np.vstack([(model := next(steps).model).users, model.items])
    slope = slopes_of(lambda rows: robust(ratings, among, rows[:15], rows[15:], lam), before).reshape(before.shape)
    moved = (before - after) / size
    assert np.linalg.norm(moved - slope) < 0.03 * np.linalg.norm(slope)  # what is left is the draw


def test_with_one_competitor_there_is_nothing_to_draw_and_an_update_is_the_gradient():
    view = Ratings.from_triples([0, 0], [0, 1], [2, 1], 1, 2)
    steps = RobiRank(rank=2, lam=0.3, step=1e-6, decay=0.0, draws=1).steps(view, np.random.default_rng(3))
    before = np.vstack([(model := next(steps).model).users, model.items])
    after = np.vstack([(model := next(steps).model).users, model.items])
    slope = slopes_of(lambda rows: robust(view, "rated", rows[:1], rows[1:], 0.3), before)
    np.testing.assert_allclose(((before - after) / 1e-6).ravel(), slope, rtol=1e-5, atol=1e-5)


@pytest.fixture
def halves() -> tuple[Ratings, Ratings]:
    view = LowRank(users=200, items=80, per_user=40).view(np.random.default_rng(2))
    rows = np.arange(len(view))
    return view.take(rows[::2]), view.take(rows[1::2])


@pytest.mark.parametrize(
    ("solver", "data"),
    [
        (RobiRank(among="catalogue"), LowRank(users=200, items=900, per_user=40)),
        (RobiRank(lam=0.3, step=1.0), LowRank(users=150, items=400, per_user=160)),
    ],
    ids=["default steps among many items", "large steps among rated items"],
)
def test_steps_do_not_run_away(solver, data):
    """One drawn competitor stands for many: without a bound the objective grew to 1e130 within a few passes."""
    steps = islice(solver.steps(data.view(np.random.default_rng(0)), np.random.default_rng(0), 2), 16)
    objectives = [float(step.objective()) for step in steps]
    assert objectives[-1] < objectives[0] and max(objectives) < 1.1 * objectives[0]


@pytest.mark.parametrize("step", [0.03, 0.1, 0.3, 1.0, 1e9])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_an_update_changes_its_margin_by_at_most_1(scale, step):
    """One wish, one competitor and one draw: a pass is one update, and an endless step is taken to the bound."""
    view = Ratings.from_triples([0], [0], [1], 1, 2)
    rng = np.random.default_rng(1)
    for _ in range(20):
        users, items = (np.pad(rng.normal(size=(rows, 3)) * scale, ((0, 0), (0, 1))) for rows in (1, 2))
        wishes, before = wishes_of(view, "catalogue"), float(users[0] @ (items[0] - items[1]))
        kernel.descend(
            factors=DescentFactors(
                users=users,
                items=items,
                user_shrink=np.full(1, 1e-300),
                item_shrink=np.full(2, 1e-300),
                step=step,
                decay=0.0,
            ),
            wishes=wishes.rows,
            weights=np.ones(1),
            user_order=np.zeros(1, np.int32),
            draws=1,
            updates=0,
            seed=0,
        )
        change = users[0] @ (items[0] - items[1]) - before
        assert abs(change) <= 1 + 1e-9
        if step == 1e9 and 0 < before < 20:  # it reaches the bound, and its two parts have one sign
            assert change == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("items", [5, 30, 3000])
@pytest.mark.parametrize("step", [0.01, 1e9])
@pytest.mark.parametrize("rank", [1, 4, 9, 12])
def test_four_updates_at_once_have_the_bits_that_they_have_one_after_another(rank, step, items):
    """Each user has one wish: their turns are one update each, as are passes for one user each."""
    rng = np.random.default_rng(0)
    view = Ratings.from_triples(np.arange(401), rng.integers(items, size=401), np.ones(401), 401, items)
    start = zero_rows(401, rank), zero_rows(items, rank)
    for rows in start:
        rows[:, :rank] = rng.normal(size=(len(rows), rank))

    def moved(parts: list[Ratings]) -> list[bytes]:
        users, items = (rows.copy() for rows in start)
        factors = DescentFactors(
            users=users,
            items=items,
            user_shrink=np.full(len(users), 0.5),
            item_shrink=np.full(len(items), 0.5),
            step=step,
            decay=0.1,
        )
        for before, part in enumerate(parts):
            kernel.descend(
                factors=factors,
                wishes=wishes_of(part, "catalogue").rows,
                weights=np.ones(len(part)),
                user_order=np.arange(len(users), dtype=np.int32),
                draws=1,
                updates=before,
                seed=7,
            )
        return [users.tobytes(), items.tobytes()]

    assert moved([view]) == moved([view.take(np.array([row])) for row in range(len(view))])


def test_vectors_of_single_precision_are_refused():
    wishes = wishes_of(Ratings.from_triples([0], [0], [1], 1, 2), "catalogue")
    singles = [np.ones((rows, 8), np.float32) for rows in (1, 2)]
    factors = DescentFactors(
        users=singles[0], items=singles[1], user_shrink=np.ones(1), item_shrink=np.ones(2), step=1.0, decay=0.0
    )
    with pytest.raises(ValueError, match="must be of double precision"):
        kernel.descend(
            factors=factors,
            wishes=wishes.rows,
            weights=np.ones(1),
            user_order=np.zeros(1, np.int32),
            draws=1,
            updates=0,
            seed=0,
        )


def test_it_puts_the_best_first(halves):
    train, test = halves
    start, end = (evaluate(fit(RobiRank(rank=3), train, steps=n), test, ["ndcg@3"])["ndcg@3"] for n in (0, 40))
    assert end > start + 0.15


def test_who_rates_all_alike_ties_everything_and_who_rates_nothing_scores_nan():
    view = Ratings.from_triples([0, 0, 1, 1, 2], [0, 1, 0, 2, 1], [3, 1, 1, 1, 3], 4, 4)
    model = fit(RobiRank(rank=2), view, steps=3)
    assert model.score(np.array([1, 1, 2]), np.array([0, 2, 1])).tolist() == [0, 0, 0]
    assert np.isnan(model.score(np.array([3, 0]), np.array([0, 3]))).all()
    assert np.isfinite(model.score(np.array([0, 0]), np.array([0, 1]))).all()


def test_ratings_that_differ_by_rounding_alone_have_no_gain():
    values = np.array([1e-99, 2e-99])
    view = Ratings.from_triples([0, 0], [0, 1], values)
    assert len(wishes_of(view, "rated")) == 0
