"""Least squares on all pairs, rated or not: each half step against dense normal equations over the whole matrix."""

from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np
import pytest
from solvers.contract import SolverContract
from solvers.least import least_below
from solvers.problems import few_ratings
from solvers.two_groups import gain

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.models import Factors
from rankbench.solvers.ials import IALS


class TestIALS(SolverContract):
    solver = IALS(rank=3, lam=0.05)


class TestIALSByConjugateGradients(SolverContract):
    solver = IALS(rank=5, lam=0.05, inner=2)


class TestIALSByBlocks(SolverContract):
    solver = IALS(rank=5, lam=0.05, block=2)


train = pytest.fixture(few_ratings)


def rated(train: Ratings) -> Floats:
    """users x items: 1 where there is a rating."""
    out = np.zeros((train.n_users, train.n_items))
    out[train.users, train.items] = 1.0
    return out


def penalties(solver: IALS, x: Floats) -> Floats:
    """The penalty of each row of a matrix of ones where it is rated."""
    return solver.lam * (x.sum(axis=1) + solver.unrated * (x.sum(axis=0) > 0).sum()) ** solver.power


def half(solver: IALS, x: Floats, fixed: Floats) -> Floats:
    """Each row's minimiser with every pair written out: where it is rated, of weight 1 + unrated."""
    found = []
    for row, penalty in zip(x, penalties(solver, x), strict=True):
        normal = (fixed * (row + solver.unrated)[:, None]).T @ fixed + penalty * np.eye(fixed.shape[1])
        found.append(np.linalg.solve(normal, fixed.T @ row))
    return np.array(found)


def value(solver: IALS, x: Floats, users: Floats, items: Floats) -> float:
    """The formula of the docstring."""
    scores = users @ items.T
    size = penalties(solver, x) @ (users**2).sum(axis=1) + penalties(solver, x.T) @ (items**2).sum(axis=1)
    return (x * (1 - scores) ** 2).sum() + solver.unrated * (scores**2).sum() + size


SETTINGS = pytest.mark.parametrize(
    "solver",
    [
        IALS(rank=3, lam=0.02),
        IALS(rank=1, lam=0.2, power=0.0),
        IALS(rank=30, lam=0.1, unrated=0.7, power=0.5),
        IALS(rank=3, lam=0.02, inner=30),
        IALS(rank=3, lam=0.02, block=3),
        IALS(rank=30, lam=0.1, unrated=0.7, power=0.5, block=64),
        IALS(rank=5, lam=0.1, block=2, inner=200),
    ],
    ids=repr,
)


@SETTINGS
def test_half_steps_are_those_of_all_pairs_and_the_objective_is_the_formula(solver, train):
    x, steps = rated(train), solver.steps(train, np.random.default_rng(0))
    items = np.nan_to_num(next(steps).model.items)
    for _ in range(3):
        step = next(steps)
        users = np.nan_to_num(step.model.users)
        np.testing.assert_allclose(users, half(solver, x, items), rtol=1e-8, atol=1e-10)
        assert step.objective() == pytest.approx(value(solver, x, users, items), rel=1e-12)
        step = next(steps)
        items = np.nan_to_num(step.model.items)
        np.testing.assert_allclose(items, half(solver, x.T, users), rtol=1e-8, atol=1e-10)
        assert step.objective() == pytest.approx(value(solver, x, users, items), rel=1e-12)


def test_another_optimiser_finds_nothing_below_the_end(train):
    solver, x = IALS(rank=2, lam=0.02), rated(train)
    *_, end = islice(solver.steps(train, np.random.default_rng(0)), 1000)
    found = least_below(partial(value, solver, x), np.nan_to_num(end.model.users), np.nan_to_num(end.model.items))
    assert found == pytest.approx(end.objective(), rel=1e-8)


@pytest.mark.parametrize("block", [1, 2, 4, 25])
def test_a_block_is_solved_for_while_the_other_numbers_stay(block, train):
    solver, x = IALS(rank=30, lam=0.1, unrated=0.3, block=block), rated(train)
    steps, users = solver.steps(train, np.random.default_rng(0)), np.zeros((15, 30))
    for _ in range(3):
        items = np.nan_to_num(next(steps).model.items)
        for u, row, penalty in zip(users, x, penalties(solver, x), strict=True):
            normal = (items * (row + solver.unrated)[:, None]).T @ items + penalty * np.eye(30)
            for first in range(0, 30 if row.any() else 0, block):
                part = slice(first, first + block)
                u[part] += np.linalg.solve(normal[part, part], (items.T @ row - normal @ u)[part])
        np.testing.assert_allclose(np.nan_to_num(next(steps).model.users), users, rtol=1e-8, atol=1e-10)


def test_few_conjugate_gradients_come_to_the_same_objective(train):
    ends = []
    for inner in (None, 1):
        *_, last = islice(IALS(rank=3, lam=0.02, inner=inner).steps(train, np.random.default_rng(0)), 600)
        ends.append(last.objective())
    assert ends[1] == pytest.approx(ends[0], rel=1e-6)


def test_what_is_not_known_has_no_score_and_what_is_below_the_least_rating_does_not_count(train):
    scores = fit(IALS(rank=2, lam=0.02), train, steps=6).score_all(np.arange(15))
    assert np.isnan(scores[:, 0]).all() and np.isnan(scores[14]).all() and not np.isnan(scores[:14, 1:]).any()
    least = float(np.median(train.values))
    moved = replace(train, values=np.where(train.values < least, least - 9.0, 7e9))
    solver = IALS(rank=2, lam=0.02, least=least)
    above, other = (fit(solver, one, steps=6).score_all(np.arange(15)) for one in (train, moved))
    assert above.tobytes() == other.tobytes()
    nothing = list(IALS(rank=2, least=1e9).steps(train, np.random.default_rng(0)))
    assert len(nothing) == 1 and (nothing[0].model.score(train.users, train.items) == 0).all()


def test_a_system_without_a_finite_solution_is_named(train):
    solver = IALS(rank=2)
    model = Factors(np.zeros((15, 2)), np.full((train.n_items, 2), 1e200))
    with pytest.raises(UserError, match=r"IALS: the system of user \d+ has no finite solution: raise lam"):
        solver.fold_in(model, train)


def test_it_finds_what_users_took_better_than_popularity():
    assert gain(IALS(rank=2, lam=0.01), 10) > 0.1
