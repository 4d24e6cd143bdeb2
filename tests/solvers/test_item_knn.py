"""Item kNN: cosines with shrinkage, the best neighbours of each item, and their weighted sum."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity
from solvers.contract import SolverContract, ratings

from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.solvers.ease import EASE
from rankbench.solvers.item_knn import ItemKNN


class TestItemKNN(SolverContract):
    solver = ItemKNN(neighbours=10)


class TestItemKNNOfCentredRatings(SolverContract):
    solver = ItemKNN(neighbours=50, shrink=1.0, values="centred")


def table(train: Ratings, values: str, least: float = -np.inf) -> np.ndarray:
    """users x items: what each rating counts."""
    kept = train.values >= least
    sums, counts = (np.bincount(train.users[kept], w, train.n_users) for w in (train.values[kept], None))
    counted = {
        "binary": np.ones(len(train)),
        "ratings": train.values,
        "centred": train.values - (sums / np.maximum(1, counts))[train.users],
    }[values]
    out = np.zeros((train.n_users, train.n_items))
    out[train.users[kept], train.items[kept]] = counted[kept]
    return out


def by_formula(x: np.ndarray, neighbours: int, shrink: float) -> np.ndarray:
    """The scores of all pairs, by the definition, from dense matrices."""
    norms = np.sqrt((x**2).sum(axis=0))
    similarity = x.T @ x / np.maximum(np.outer(norms, norms) + shrink, 1e-300)
    np.fill_diagonal(similarity, 0)
    similarity = np.round(similarity, 14)  # so that equal ones are equal here too
    for row in similarity:
        row[np.argsort(-row, kind="stable")[neighbours:]] = 0
    return x @ np.maximum(similarity, 0).T


@pytest.mark.parametrize("values", ["binary", "ratings", "centred"])
@pytest.mark.parametrize(("neighbours", "shrink", "least"), [(1, 0.0, None), (7, 10.0, None), (1000, 3.0, 1.0)])
def test_scores_are_those_of_the_definition(values, neighbours, shrink, least):
    train = ratings()
    model = fit(ItemKNN(neighbours, shrink, values, least), train)
    expected = by_formula(table(train, values, -np.inf if least is None else least), neighbours, shrink)
    rated = np.bincount(train.items, minlength=train.n_items) > 0
    scores = model.score_all(np.arange(train.n_users), 2)
    np.testing.assert_allclose(scores[:, rated], expected[:, rated], atol=1e-9)
    assert np.isnan(scores[:, ~rated]).all() and not rated.all()


@pytest.mark.parametrize("n_items", [6, 60, 3000])
def test_scores_are_those_of_the_definition_however_few_items_share_a_user(n_items):
    """Of items with few products only those met are looked at, else all."""
    rng = np.random.default_rng(n_items)
    items = np.concatenate([np.sort(rng.choice(n_items, 5, replace=False)) for _ in range(30)]).astype(np.int32)
    train = Ratings(np.arange(0, 151, 5), items, rng.integers(1, 6, 150).astype(float), n_items)
    scores = fit(ItemKNN(3, 1.0, "centred"), train).score_all(np.arange(30), 2)
    rated = np.bincount(items, minlength=n_items) > 0
    np.testing.assert_allclose(scores[:, rated], by_formula(table(train, "centred"), 3, 1.0)[:, rated], atol=1e-9)


def test_without_shrinkage_a_similarity_is_the_cosine():
    train = ratings()
    model = fit(ItemKNN(neighbours=1000, shrink=0.0), train)
    rated = np.unique(train.items)
    cosines = cosine_similarity(table(train, "binary")[:, rated].T)
    np.fill_diagonal(cosines, 0)
    np.testing.assert_allclose(model.weights.toarray(), cosines, atol=1e-14)


def test_a_user_gets_more_of_what_the_neighbours_chose():
    users, items = [0, 0, 1, 1, 2, 3, 3, 4], [0, 1, 0, 1, 0, 2, 3, 2]
    train = Ratings.from_triples(np.array(users), np.array(items), np.ones(8), 5, 5)
    model = fit(ItemKNN(shrink=0.0), train)
    of_user_2, of_user_4 = model.score_all(np.array([2, 4]))
    assert of_user_2[1] > of_user_2[2] == of_user_2[3] == 0
    assert of_user_4[3] > of_user_4[0] == of_user_4[1] == 0
    assert np.isnan(of_user_2[4])


def test_one_item_has_no_neighbours():
    train = Ratings.from_triples(np.array([0, 1]), np.array([0, 0]), np.array([1.0, 2.0]), 2, 1)
    assert (fit(ItemKNN(), train).score(np.array([0, 1]), np.array([0, 0])) == 0).all()


@pytest.mark.parametrize("solver", [ItemKNN(neighbours=3), EASE()])
def test_data_with_ids_and_items_that_are_not_trained_on_is_learned_from(solver):
    users, items = [0, 0, 1, 1, 2, 2], [0, 3, 0, 3, 3, 4]
    view = Ratings.from_triples(users, items, [1.0, 2, 3, 4, 5, 1], 3, 6)
    named = replace(view, user_ids=np.array(["a", "b", "c"]), item_ids=np.array([f"i{item}" for item in range(6)]))
    (step, bare) = (next(solver.steps(one, np.random.default_rng(0))) for one in (named, view))
    everyone, everything = np.repeat(np.arange(3), 6), np.tile(np.arange(6), 3)
    assert step.model.score(everyone, everything).tobytes() == bare.model.score(everyone, everything).tobytes()
