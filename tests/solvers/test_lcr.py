"""Local collaborative ranking against its formula, a dense decomposition, and the convex problem that it contains."""

from itertools import islice

import numpy as np
import pytest
from solvers.contract import SolverContract
from solvers.least import slopes_of

from rankbench.core.contract import Floats, Step
from rankbench.data.synthetic import BTL
from rankbench.data.views import Comparisons
from rankbench.metrics import evaluate
from rankbench.solvers.convex_erm import ConvexERM
from rankbench.solvers.lcr import LCR

pytestmark = pytest.mark.usefixtures("as_in_the_harness")


class TestLCR(SolverContract):
    solver = LCR(rank=3, anchors=6)


class TestLCRWithoutAnchors(SolverContract):
    solver = LCR(rank=4, anchors=0, lam=2.0)


@pytest.fixture
def train() -> Comparisons:
    return BTL(users=14, items=9, comparisons=15).view(np.random.default_rng(1))


def ran(solver: LCR, train: Comparisons, steps: int) -> list[Step]:
    return list(islice(solver.steps(train, np.random.default_rng(0)), steps))


def parts(step: Step, rank: int) -> tuple[Floats, Floats]:
    """U_t and V_t out of the blend, users x models x rank and items x models x rank."""
    model, found = step.model, []
    for rows, weights in ((model.users, model.user_weights), (model.items, model.item_weights)):
        spread = weights[:, :, None]
        whole = rows.reshape(len(rows), -1, rank)
        found.append(np.divide(whole, spread, out=np.zeros_like(whole), where=spread > 0))
    return found[0], found[1]


def objective(users: Floats, items: Floats, step: Step, train: Comparisons, lam: float) -> float:
    """The docstring's formula, model by model."""

    def scores(i: Floats) -> Floats:
        u, above, below = train.users, 0.0, 0.0
        for t in range(users.shape[1]):
            weight = step.model.user_weights[u, t] * step.model.item_weights[i, t]
            above = above + weight * (users[u, t] * items[i, t]).sum(axis=1)
            below = below + weight
        return above / below

    risk = np.logaddexp(0, scores(train.worse) - scores(train.better)).sum()
    return float(risk + lam / 2 * (np.square(users).sum() + np.square(items).sum()))


def test_the_objective_is_the_formula_at_every_step(train):
    for step in ran(LCR(rank=2, anchors=5, lam=0.3), train, 6):
        assert step.objective() == pytest.approx(objective(*parts(step, 2), step, train, 0.3), rel=1e-12)


def test_the_solution_is_stationary(train):
    step = ran(LCR(rank=2, anchors=3, lam=0.5), train, 3000)[-1]
    users, items = parts(step, 2)
    within = (np.repeat(step.model.user_weights, 2).ravel() > 0, np.repeat(step.model.item_weights, 2).ravel() > 0)
    slope = slopes_of(lambda *sides: objective(*sides, step, train, 0.5), users, items, step=1e-6)
    assert np.abs(slope[np.concatenate(within)]).max() < 1e-3


def test_without_anchors_and_of_full_rank_it_solves_the_convex_problem(train):
    """lam/2 (|U|^2 + |V|^2) at its least is lam |X|_*: the same X is best under a bound of its nuclear norm."""
    lam = 1.5
    step = ran(LCR(rank=9, anchors=0, lam=lam), train, 3000)[-1]
    scores = step.model.score_all(np.arange(14)).reshape(14, 9)
    size = np.linalg.norm(scores, "nuc")
    *_, bounded = islice(ConvexERM(size**2 / (14 * 9)).steps(train, np.random.default_rng(0)), 300)
    assert size > 1
    assert step.objective() - lam * size == pytest.approx(bounded.objective(), rel=1e-6)


# anchors and kernels


def angles(factors: Floats, home: int) -> Floats:
    directions = factors / np.linalg.norm(factors, axis=1, keepdims=True)
    return np.arccos(np.clip(directions @ directions[home], -1, 1))


def test_weights_are_kernels_of_the_angles_to_an_anchor(train):
    model = ran(LCR(rank=1, anchors=8, width=1.4, everywhere=0.25, prior_rank=9), train, 1)[0].model
    won = np.zeros((14, 9))
    np.add.at(won, (train.users, train.better), 1)
    np.add.at(won, (train.users, train.worse), -1)
    won /= np.linalg.norm(won, axis=1, keepdims=True)
    left, sizes, right = np.linalg.svd(won, full_matrices=False)
    sides = (left * np.sqrt(sizes), model.user_weights), (right.T * np.sqrt(sizes), model.item_weights)
    met = np.zeros((14, 9), bool)
    met[train.users, train.better] = met[train.users, train.worse] = True
    for anchor in range(8):
        homes = [int(np.argmax(weights[:, anchor])) for _, weights in sides]
        assert met[tuple(homes)]
        for (factors, weights), home in zip(sides, homes, strict=True):
            expected = np.maximum(0, 1 - (angles(factors, home) / 1.4) ** 2)
            np.testing.assert_allclose(weights[:, anchor], expected, atol=1e-6)
    assert (model.user_weights[:, :8] == 0).any() and ((0 < model.user_weights) & (model.user_weights < 1)).any()
    np.testing.assert_allclose(np.outer(model.user_weights[:, 8], model.item_weights[:, 8]), 0.25)


def test_out_of_reach_of_a_model_its_factors_are_nothing(train):
    model = ran(LCR(rank=2, anchors=4, width=0.3), train, 5)[-1].model
    beyond = np.repeat(model.user_weights == 0, 2, axis=1)
    assert beyond.any() and not model.users[beyond].any() and model.users[~beyond].all()


def test_anchors_find_tastes_that_one_model_of_that_rank_cannot():
    train = BTL(users=120, items=60, rank=4, comparisons=120).view(np.random.default_rng(6))
    test = BTL(users=120, items=60, rank=4, comparisons=120).view(np.random.default_rng(6))
    errors = [
        evaluate(ran(LCR(rank=1, anchors=anchors, width=2.0, lam=2.0), train, 60)[-1].model, test, ["pairwise-error"])
        for anchors in (0, 12)
    ]
    assert errors[1]["pairwise-error"] < errors[0]["pairwise-error"] - 0.02


def test_whoever_won_as_often_as_lost_is_near_to_no_anchor():
    train = Comparisons.from_triples([0, 0, 1, 1], [0, 1, 0, 2], [1, 0, 2, 1])
    model = ran(LCR(rank=1, anchors=3, width=3.0), train, 2)[-1].model
    assert not model.user_weights[0, :3].any() and model.user_weights[1, :3].any()
    assert np.isfinite(model.score([0, 0], [0, 1])).all()
