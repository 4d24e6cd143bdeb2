"""Factorization machine: scores by the definition over all pairs of inputs, gradients by finite differences."""

from dataclasses import replace
from itertools import combinations, islice

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import check_grad
from solvers.contract import SolverContract, ratings

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.data.synthetic import FeatureLowRank
from rankbench.data.views import Comparisons, offer
from rankbench.execution.training import fit
from rankbench.features.matrix import features_of
from rankbench.methods.descent import descend
from rankbench.methods.entries import ComparedEntries
from rankbench.metrics import evaluate
from rankbench.solvers.fm import FM, Machine


class TestFM(SolverContract):
    solver = FM(rank=3)


class TestFMWithoutFeatures(SolverContract):
    solver = FM(rank=3, features="none", loss="squared-hinge")


USERS, ITEMS, FEATURES, RANK = 4, 7, 5, 3


def compared() -> Comparisons:
    """Some comparisons; the last user and the last item have none."""
    rng = np.random.default_rng(0)
    rows = np.array([(u, *rng.choice(ITEMS - 1, 2, replace=False)) for u in range(USERS - 1) for _ in range(6)])
    features = rng.standard_normal((ITEMS, FEATURES)) * (rng.random((ITEMS, FEATURES)) < 0.6)
    return Comparisons.from_triples(*rows.T, USERS, ITEMS, features)


def machine(loss: str = "logistic", features: str = "sparse") -> Machine:
    """A machine on these comparisons."""
    train = compared()
    matrix = train.item_features if features == "dense" else scipy.sparse.csr_array(train.item_features)
    given = None if features == "none" else features_of(matrix)
    return Machine(0.3, loss, ComparedEntries.of(train, 1), given)


def point(one: Machine) -> Floats:
    """Parameters of ordinary size."""
    size = len(one.start(np.random.default_rng(0), RANK))
    return 0.5 * np.random.default_rng(1).standard_normal(size)


def by_definition(x: Floats, features: Floats) -> Floats:
    """users x items: sum of weights and of all pairs of inputs, one by one (eq. 1 of the paper)."""
    n_features = features.shape[1]
    n = USERS + ITEMS + n_features
    vectors, weights = x[: n * RANK].reshape(n, RANK), np.concatenate([np.zeros(USERS), x[n * RANK :]])
    out = np.empty((USERS, ITEMS))
    for user in range(USERS):
        for item in range(ITEMS):
            z = np.zeros(n)
            z[user] = z[USERS + item] = 1.0
            z[USERS + ITEMS :] = features[item]
            pairs = sum(vectors[a] @ vectors[b] * z[a] * z[b] for a, b in combinations(range(n), 2))
            out[user, item] = weights @ z + pairs
    return out


@pytest.mark.parametrize("features", ["dense", "sparse", "none"])
def test_scores_are_those_of_the_definition(features):
    one = machine(features=features)
    x = point(one)
    given = np.zeros((ITEMS, 0)) if features == "none" else compared().item_features
    expected = by_definition(x, given)
    if features == "none":
        expected[:, -1] = np.nan  # the item without a comparison
    np.testing.assert_allclose(one.model(x).score_all(np.arange(USERS)), expected, atol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge", "smooth-hinge"])
@pytest.mark.parametrize("features", ["dense", "sparse", "none"])
def test_the_objective_is_the_losses_and_the_penalty_and_its_gradient_that_of_finite_differences(loss, features):
    one, train = machine(loss, features), compared()
    x = point(one)
    given = np.zeros((ITEMS, 0)) if features == "none" else train.item_features
    scores = by_definition(x, given)
    margins = scores[train.users, train.better] - scores[train.users, train.worse]
    losses = {
        "logistic": np.log1p(np.exp(-margins)),
        "squared-hinge": np.maximum(0, 1 - margins) ** 2,
        "smooth-hinge": np.where(margins < 0, 0.5 - margins, np.maximum(0, 1 - margins) ** 2 / 2),
    }[loss]
    value, gradient = one.objective(x)
    assert value == pytest.approx(losses.sum() + 0.15 * x @ x, rel=1e-12)
    error = check_grad(lambda y: one.objective(y)[0], lambda y: one.objective(y)[1], x)
    assert error < 1e-5 * np.linalg.norm(gradient)


def test_it_ends_where_the_gradient_is_zero():
    train = compared()
    one = Machine(0.3, "logistic", ComparedEntries.of(train, 1), features_of(train.item_features))
    points = list(islice(descend(one.objective, one.start(np.random.default_rng(0), 2)), 2000))
    assert len(points) < 2000
    assert np.linalg.norm(points[-1].gradient) < 1e-4 * np.linalg.norm(points[0].gradient)
    steps = list(islice(FM(rank=2, lam=0.3).steps(train, np.random.default_rng(0)), 2000))
    assert steps[-1].objective() == points[-1].value


def test_unseen_items_are_ranked_by_their_features():
    data = FeatureLowRank(users=60, items=80, features=6, rank=2, per_user=40, noise=0.0).view(np.random.default_rng(0))
    unseen = data.items >= 60
    train, test = data.where(~unseen), data.where(unseen)
    model = fit(FM(rank=4, lam=0.1), train, steps=60)
    assert evaluate(model, test, ["pairwise-error"])["pairwise-error"] < 0.2
    without = fit(FM(rank=4, lam=0.1, features="none"), train, steps=60)
    assert np.isnan(without.score(test.users, test.items)).all()


def test_a_user_without_comparisons_gets_the_order_of_the_items_own_terms():
    train = offer(FM(), ratings())
    model = fit(FM(rank=2), train, steps=5)
    assert (model.users[0, :-1] == 0).all() and model.users[0, -1] == 1.0
    assert np.isfinite(model.score_all(np.array([0]))).all()


def test_without_features_it_says_what_to_do():
    bare = replace(ratings().comparisons(), item_features=None)
    with pytest.raises(UserError, match="FM: features=given, but the data has none: give item features, or feat"):
        next(FM().steps(bare, np.random.default_rng(0)))


def test_ratings_are_learned_as_the_comparisons_they_imply():
    by_rating, by_pair = (fit(FM(rank=2), each, steps=3) for each in (ratings(), ratings().comparisons()))
    assert by_rating.users.tobytes() == by_pair.users.tobytes()


def test_without_comparisons_there_is_only_the_start():
    nothing = Comparisons.from_triples(*np.zeros((3, 0), int), USERS, ITEMS, np.eye(ITEMS))
    (step,) = islice(FM(rank=2).steps(nothing, np.random.default_rng(0)), 5)
    assert np.isfinite(step.model.items).all() and not step.model.users[:, :-1].any()
