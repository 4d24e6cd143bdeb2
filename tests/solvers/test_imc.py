"""Inductive matrix completion: half steps against NumPy's least squares, and what the model makes of features."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import scipy.sparse
from solvers.contract import SolverContract

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.data.synthetic import FeatureLowRank
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.kernels.methods import als
from rankbench.metrics import evaluate
from rankbench.solvers.imc import IMC


class TestIMC(SolverContract):
    solver = IMC(rank=2, lam=0.5)


class TestIMCOfPlainRatings(SolverContract):
    solver = IMC(rank=1, lam=5.0, centre="none", inner=2)


@pytest.fixture
def train() -> Ratings:
    return FeatureLowRank(users=12, items=30, features=6, rank=2, per_user=9).view(np.random.default_rng(1))


def centred(view: Ratings) -> Floats:
    """The ratings less each user's mean, one user at a time."""
    return np.concatenate([row - row.mean() for row in np.split(view.values, view.indptr[1:-1])])


def least_squares(design: Floats, values: Floats, lam: float) -> Floats:
    """The minimiser of |values - design w|^2 + lam |w|^2."""
    n = design.shape[1]
    stacked = np.vstack([design, np.sqrt(lam) * np.eye(n)])
    return np.linalg.lstsq(stacked, np.concatenate([values, np.zeros(n)]), rcond=None)[0]


@pytest.mark.parametrize("rank", [1, 3, 5])
@pytest.mark.parametrize("centre", ["user", "none"])
@pytest.mark.parametrize("sparse", [False, True])
def test_each_half_step_is_a_ridge_regression(rank, centre, sparse, train):
    values = centred(train) if centre == "user" else train.values
    x = train.item_features
    view = replace(train, item_features=scipy.sparse.csr_array(x)) if sparse else train
    steps = IMC(rank=rank, lam=0.7, centre=centre, inner=1000).steps(view, np.random.default_rng(0))
    basis = next(steps).model.basis.copy()
    for _ in range(2):
        users = next(steps).model.users.copy()
        for user in range(train.n_users):
            own = train.users == user
            expected = least_squares(x[train.items[own]] @ basis, values[own], 0.7)
            np.testing.assert_allclose(users[user], expected, rtol=1e-8, atol=1e-10)
        design = np.einsum("pd,pk->pdk", x[train.items], users[train.users]).reshape(len(train), -1)
        expected = least_squares(design, values, 0.7).reshape(basis.shape)
        basis = next(steps).model.basis.copy()
        np.testing.assert_allclose(basis, expected, rtol=1e-6, atol=1e-8)


def test_the_objective_is_the_formula(train):
    for step, _ in zip(IMC(rank=3, lam=0.4).steps(train, np.random.default_rng(0)), range(4), strict=False):
        model = step.model
        errors = centred(train) - model.score(train.users, train.items)
        size = np.square(model.users).sum() + np.square(model.basis).sum()
        assert step.objective() == pytest.approx(errors @ errors + 0.4 * size, rel=1e-12)


def test_it_ranks_items_that_nobody_rated():
    view = FeatureLowRank(users=150, items=200, features=10, rank=2, per_user=30).view(np.random.default_rng(2))
    unseen = view.items >= 150
    train, test = view.take(np.flatnonzero(~unseen)), view.take(np.flatnonzero(unseen))
    assert evaluate(fit(IMC(rank=2, lam=0.1), train, steps=30), test, ["pairwise-error"])["pairwise-error"] < 0.02


def test_who_has_no_order_says_nothing_and_is_told_nothing(train):
    flat = np.where(train.users == 3, 2.0, train.values)
    view = replace(train, values=flat)
    alone = view.take(np.flatnonzero((view.users != 3) & ~((view.users == 5) & (np.arange(len(view)) % 9 > 0))))
    for centre in ("user", "none"):
        solver = IMC(rank=2, centre=centre)
        model, without = fit(solver, view, steps=6), fit(solver, alone, steps=6)
        assert not model.users[3].any() and not without.users[[3, 5]].any()
        assert (without.score(np.array([3, 5]), np.array([0, 1])) == 0).all()
        silent = view.take(np.flatnonzero(view.users != 3))
        assert fit(solver, silent, steps=6).basis.tobytes() == model.basis.tobytes()


def test_a_rank_above_the_number_of_features_is_lowered_to_it(train):
    model, same = (fit(IMC(rank=rank), train) for rank in (9, 6))
    assert model.basis.tobytes() == same.basis.tobytes() and model.users.tobytes() == same.users.tobytes()


@pytest.mark.trust
@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
def test_fitted_constants_are_those_of_a_ridge_regression_without_a_penalty_on_them(train, sparse):
    x = train.item_features + 2.0  # features that are not centred, so that the mean rating is not the best constant
    view = replace(train, item_features=scipy.sparse.csr_array(x) if sparse else x)
    solver = IMC(rank=2, lam=0.7, centre="fitted", inner=1000)
    steps = [*islice(solver.steps(view, np.random.default_rng(0)), 0, 4000, 50)]
    objectives, model = [step.objective() for step in steps], steps[-1].model
    assert np.all(np.diff(objectives) <= 1e-12 * np.abs(objectives[:-1]))
    for user in range(view.n_users):
        own = view.users == user
        design = x[view.items[own]] @ model.basis
        centred_design, values = design - design.mean(axis=0), view.values[own] - view.values[own].mean()
        np.testing.assert_allclose(model.users[user], least_squares(centred_design, values, 0.7), rtol=1e-4, atol=1e-6)
    whole = np.concatenate([(x[view.items[view.users == user]] @ model.basis) @ model.users[user]
                            for user in range(view.n_users)])  # fmt: skip
    errors = centred(replace(view, values=view.values - whole))
    size = np.square(model.users).sum() + np.square(model.basis).sum()
    assert objectives[-1] == pytest.approx(errors @ errors + 0.7 * size, rel=1e-9)


def test_a_system_that_rounding_spoilt_is_named(train, monkeypatch):
    monkeypatch.setattr(als, "ridge", lambda **_: 7)  # the row that failed
    with pytest.raises(
        UserError, match=r"IMC: the system of user 7 has no finite solution: scale the features or raise lam"
    ):
        fit(IMC(rank=2), train, steps=3)


@pytest.mark.parametrize("users", [0, 1, 3, 10])
@pytest.mark.parametrize("sparse", [False, True])
def test_there_may_be_fewer_users_than_ranks(users, sparse):
    view = FeatureLowRank(users=max(users, 1), items=40, features=31, rank=2, per_user=9).view(np.random.default_rng(1))
    if users == 0:
        view = Ratings([0], [], [], 40, view.item_features)
    if sparse:
        view = replace(view, item_features=scipy.sparse.csr_array(view.item_features))
    steps = list(islice(IMC(rank=10, lam=0.1).steps(view, np.random.default_rng(0)), 8))
    objectives = np.array([step.objective() for step in steps])
    assert np.isfinite(objectives).all() and (np.diff(objectives) <= 1e-12 * objectives[:-1]).all()
    model = steps[-1].model
    assert (model.users.shape, model.basis.shape) == ((users, 10), (31, 10))
    assert not model.basis[:, users:].any()


@pytest.mark.parametrize("users", [2, 5])
def test_a_direction_that_the_ratings_do_not_give_is_no_rounding_error(users):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((2, 8)) * (rng.random((2, 8)) < 0.7)
        view = Ratings(np.arange(users + 1) * 2, [0, 1] * users, rng.permutation(2 * users) * 1.0, 2, x)
        models = []
        for features in (x, scipy.sparse.csr_array(x)):
            steps = IMC(rank=users, lam=0.7).steps(replace(view, item_features=features), np.random.default_rng(0))
            *_, step = islice(steps, 3)
            models.append(step.model.score_all(np.arange(users)))
        np.testing.assert_allclose(*models, atol=1e-10)


def test_columns_beyond_the_number_of_users_cost_no_fit():
    view = FeatureLowRank(users=3, items=40, features=31, rank=2, per_user=9).view(np.random.default_rng(1))
    few, many = (list(islice(IMC(rank=rank).steps(view, np.random.default_rng(0)), 60))[-1] for rank in (3, 10))
    assert many.objective() == pytest.approx(few.objective(), rel=1e-3)


def test_without_ratings_there_is_one_step_whatever_the_rank(train):
    silent = train.take(np.arange(0))
    for rank in (2, 9):
        (step,) = IMC(rank=rank).steps(silent, np.random.default_rng(0))
        assert step.model.basis.shape[1] == min(rank, 6) and not step.model.users.any()
