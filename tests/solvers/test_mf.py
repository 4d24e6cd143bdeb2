"""Matrix factorization by alternating least squares: each half step against NumPy's ridge regression."""

from itertools import islice

import numpy as np
import pytest
from solvers.contract import SolverContract

from rankbench.core.contract import Floats, Ints
from rankbench.core.errors import UserError
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.metrics import evaluate
from rankbench.solvers.mf import MF


class TestMF(SolverContract):
    solver = MF(rank=3, lam=2.0)


class TestMFOfPlainRatings(SolverContract):
    solver = MF(rank=5, lam=2.0, centre="none")


class TestMFByConjugateGradients(SolverContract):
    solver = MF(rank=5, lam=2.0, inner=3)


@pytest.fixture
def train() -> Ratings:
    return LowRank(users=15, items=11, rank=2, per_user=7).view(np.random.default_rng(1))


def centred(view: Ratings) -> Floats:
    """The ratings less each user's mean, one user at a time."""
    return np.concatenate([row - row.mean() for row in np.split(view.values, view.indptr[1:-1])])


def ridge(rows: Ints, columns: Ints, values: Floats, vectors: Floats, n_rows: int, lam: float) -> Floats:
    """Each row's minimiser of |values - vectors u|^2 + lam |u|^2, as least squares with the penalty stacked below."""
    rank = vectors.shape[1]
    out = np.full((n_rows, rank), np.nan)
    for row in np.unique(rows):
        own = rows == row
        stacked = np.vstack([vectors[columns[own]], np.sqrt(lam) * np.eye(rank)])
        out[row] = np.linalg.lstsq(stacked, np.concatenate([values[own], np.zeros(rank)]), rcond=None)[0]
    return out


@pytest.mark.parametrize("rank", [1, 3, 24, 25, 30])
@pytest.mark.parametrize("centre", ["user", "none"])
def test_each_half_step_is_a_ridge_regression_per_row(rank, centre, train):
    values = centred(train) if centre == "user" else train.values
    steps = MF(rank=rank, lam=0.7, centre=centre).steps(train, np.random.default_rng(0))
    items = next(steps).model.items.copy()
    for _ in range(3):
        expected = ridge(train.users, train.items, values, items, train.n_users, 0.7)
        model = next(steps).model
        np.testing.assert_allclose(model.users, expected, rtol=1e-9, atol=1e-10)
        users = model.users.copy()
        items = next(steps).model.items.copy()
        np.testing.assert_allclose(
            items, ridge(train.items, train.users, values, users, train.n_items, 0.7), rtol=1e-9, atol=1e-10
        )


@pytest.mark.parametrize("rank", [1, 3, 4, 7, 30])
def test_as_many_conjugate_gradients_as_unknowns_solve_the_ridge_regressions(rank, train):
    steps = MF(rank=rank, lam=0.7, inner=2 * rank).steps(train, np.random.default_rng(0))
    items = next(steps).model.items.copy()
    users = next(steps).model.users.copy()
    np.testing.assert_allclose(users, ridge(train.users, train.items, centred(train), items, 15, 0.7), rtol=1e-7)
    expected = ridge(train.items, train.users, centred(train), users, train.n_items, 0.7)
    np.testing.assert_allclose(next(steps).model.items, expected, rtol=1e-7)


def test_one_conjugate_gradient_is_the_best_step_down_the_gradient(train):
    steps = MF(rank=3, lam=0.7, inner=1).steps(train, np.random.default_rng(0))
    items = next(steps).model.items.copy()
    users = next(steps).model.users  # from zeros, the first gradient is the vectors' sum, weighted by the ratings
    for user, values in enumerate(np.split(centred(train), train.indptr[1:-1])):
        vectors = items[train.items[train.indptr[user] : train.indptr[user + 1]]]
        down = vectors.T @ values
        length = down @ down / (down @ (vectors.T @ (vectors @ down) + 0.7 * down))
        np.testing.assert_allclose(users[user], length * down, rtol=1e-10)


def test_few_conjugate_gradients_come_to_the_same_objective(train):
    ends = []
    for inner in (None, 2):
        steps = MF(rank=3, lam=2.0, inner=inner).steps(train, np.random.default_rng(0))
        *_, last = islice(steps, 400)
        ends.append(last.objective())
    assert ends[1] == pytest.approx(ends[0], rel=1e-6)


def test_a_row_longer_than_a_block_is_summed_whole():
    view = LowRank(users=3, items=700, rank=2, per_user=600).view(np.random.default_rng(1))
    for rank in (4, 30):
        steps = MF(rank=rank).steps(view, np.random.default_rng(0))
        items = next(steps).model.items.copy()
        expected = ridge(view.users, view.items, centred(view), items, 3, 1.0)
        np.testing.assert_allclose(next(steps).model.users, expected, rtol=1e-8, atol=1e-10)


def test_the_objective_is_the_formula(train):
    for step, _ in zip(MF(rank=3, lam=0.4).steps(train, np.random.default_rng(0)), range(4), strict=False):
        errors = centred(train) - step.model.score(train.users, train.items)
        size = np.nansum(step.model.users**2) + np.nansum(step.model.items**2)
        assert step.objective() == pytest.approx(errors @ errors + 0.4 * size, rel=1e-12)


def test_it_learns_low_rank_scores_of_items_seen_elsewhere():
    view = LowRank(users=200, items=60, rank=2, per_user=40).view(np.random.default_rng(2))
    rows = np.arange(len(view))
    train, test = view.take(rows[rows % 4 > 0]), view.take(rows[rows % 4 == 0])
    assert evaluate(fit(MF(rank=2, lam=0.1), train, steps=20), test, ["pairwise-error"])["pairwise-error"] < 0.2


def test_who_has_no_order_says_nothing_and_is_told_nothing():
    values = [1, 5, 3, 3, 2, 4, 2, 1, 2]
    view = Ratings.from_triples([0, 0, 1, 1, 2, 4, 4, 5, 5], [0, 1, 0, 1, 2, 0, 3, 0, 1], values, 6, 5)
    for centre in ("user", "none"):
        scores = fit(MF(rank=2, lam=0.1, centre=centre), view, steps=6).score
        assert (scores(np.array([1, 1]), np.array([0, 3])) == 0).all()  # all alike
        assert scores(np.array([2]), np.array([0]))[0] == 0  # one rating
        assert (scores(np.array([0, 2]), np.array([2, 2])) == 0).all()  # rated by nobody with an order
        unseen = scores(np.array([0, 1, 3]), np.array([4, 4, 0]))  # rated by nobody, twice; nobody
        assert np.isnan(unseen).all()
        silent = np.isin(view.users, [1, 2])
        without = fit(MF(rank=2, lam=0.1, centre=centre), view.take(np.flatnonzero(~silent)), steps=6).score
        heard = np.array([0, 4, 5]), np.array([0, 3, 1])
        assert (scores(*heard) == without(*heard)).all()


def test_where_all_ratings_of_all_users_are_equal_everything_scores_zero():
    view = Ratings.from_triples([0, 0, 1, 1], [0, 1, 0, 2], [3.0] * 4)
    for step in MF(rank=2).steps(view, np.random.default_rng(0)):
        assert (step.model.score(*np.indices((2, 3)).reshape(2, -1)) == 0).all()
        assert step.objective() == 0


def test_a_system_that_rounding_spoilt_is_named():
    view = Ratings.from_triples([0, 0, 1, 1], [0, 1, 0, 1], [1e29, 2e29, 3, 4])
    with pytest.raises(
        UserError, match=r"MF: the system of item 0 has no finite solution: scale the ratings or raise lam"
    ):
        fit(MF(rank=2), view, steps=4)


def test_conjugate_gradients_that_have_no_digits_left_end(train):
    """Many more iterations than unknowns: a direction made of rounding errors once grew until it was not finite."""
    exact, iterated = (run_of(MF(rank=3, lam=0.5, inner=inner), train) for inner in (None, 200))
    np.testing.assert_allclose(iterated, exact, rtol=1e-6)


def run_of(solver: MF, train: Ratings) -> Floats:
    """The scores of the training rows after many steps."""
    *_, step = islice(solver.steps(train, np.random.default_rng(0)), 300)
    return step.model.score(train.users, train.items)
