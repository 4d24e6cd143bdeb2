"""RankBoost against a version that lists every pair and tries every threshold, and against its own claims."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from solvers.contract import SolverContract, course, ratings

from rankbench.core.contract import Floats, Ints
from rankbench.core.errors import UserError
from rankbench.core.streams import stream
from rankbench.data.synthetic import Magnitudes
from rankbench.data.views import Ratings, offer
from rankbench.metrics import evaluate
from rankbench.models import Stumps
from rankbench.solvers.rankboost import RankBoost, _best_rounds


class TestRankBoost(SolverContract):
    solver = RankBoost()


class TestRankBoostValidated(SolverContract):
    solver = RankBoost(rounds="validated", held_out=0.3)


# every pair, listed


def pairs_of(values: Floats) -> tuple[Ints, Ints]:
    """(lower, higher) of all strict pairs."""
    return np.nonzero(values[:, None] < values[None, :])


def explicit_round(x: Floats, values: Floats, weights: Floats) -> dict[tuple[int, float], float]:
    """r of every threshold, from a weight per pair."""
    low, high = pairs_of(values)
    found = {}
    for feature in range(x.shape[1]):
        levels = np.unique(x[:, feature])
        for cut in (levels[1:] + levels[:-1]) / 2:
            above = (x[:, feature] > cut).astype(float)
            found[feature, cut] = float(weights @ (above[high] - above[low]))
    return found


def assert_rounds_are_those_of_listed_pairs(x: Floats, values: Floats, rounds: int) -> None:
    """Each round's threshold has the largest |r|, its weight is alpha(r), and the loss is the pairs' mean."""
    low, high = pairs_of(values)
    weights = np.full(len(low), 1 / len(low))
    product = 1.0
    view = Ratings([0, len(values)], np.arange(len(values)), values, len(values), x)
    steps = RankBoost().steps(view, stream(0))
    assert next(steps).objective() == pytest.approx(1.0, rel=1e-14)
    last = False
    for index, step in enumerate(islice(steps, rounds)):
        assert not last
        model = step.model
        chosen = int(model.features[0, index]), float(model.cuts[0, index])
        tried = explicit_round(x, values, weights)
        r = tried[chosen]
        assert abs(r) == pytest.approx(max(map(abs, tried.values())), abs=1e-11)
        last = index == 0 and abs(r) > 1 - 1e-9
        limit = 1 - 0.5 / len(low)
        alpha = 0.5 * np.log((1 + np.clip(r, -limit, limit)) / (1 - np.clip(r, -limit, limit)))
        assert model.weights[0, index] == pytest.approx(alpha, rel=1e-9, abs=1e-11)
        f = (x[:, chosen[0]] > chosen[1]).astype(float)
        weights = weights * np.exp(model.weights[0, index] * (f[low] - f[high]))
        product *= weights.sum()
        weights /= weights.sum()
        assert step.objective() == pytest.approx(product, rel=1e-10)


@pytest.mark.parametrize("kind", ["continuous", "ratings", "mostly alike", "signed and sparse"])
@pytest.mark.parametrize("seed", range(3))
def test_factored_weights_are_those_of_listed_pairs(kind, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((24, 5))
    if kind == "ratings":
        x = np.round(x)
    elif kind == "mostly alike":
        x = np.where(rng.random(x.shape) < 0.3, np.round(2 * x), 3.0)
    elif kind == "signed and sparse":
        x = np.where(rng.random(x.shape) < 0.3, np.round(2 * x), 0.0)
    values = np.round(x @ rng.standard_normal(5) + rng.standard_normal(24))
    assert_rounds_are_those_of_listed_pairs(x, values, 15)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_small_problem_is_boosted_as_with_listed_pairs(data):
    n, columns = data.draw(st.integers(2, 8)), data.draw(st.integers(1, 3))
    level = st.integers(-2, 2).map(float)
    x = np.array(data.draw(st.lists(level, min_size=n * columns, max_size=n * columns))).reshape(n, columns)
    values = np.array(data.draw(st.lists(level, min_size=n, max_size=n)))
    if len(np.unique(values)) > 1:
        assert_rounds_are_those_of_listed_pairs(x, values, 5)


def test_rounds_are_those_of_listed_pairs_where_powers_of_scores_overflow():
    """Two thresholds part three levels: they are raised in turn, until the scores are 1,400 apart and more."""
    levels = np.repeat([0.0, 1.0, 2.0], 3)
    x = np.column_stack([levels > 0, levels > 1, np.tile([0, 1, 1], 3)]).astype(float)
    assert_rounds_are_those_of_listed_pairs(x, levels, 2200)
    view = Ratings([0, 9], np.arange(9), levels, 9, x)
    *_, last = islice(RankBoost().steps(view, stream(0)), 2201)
    scores = last.model.score(np.zeros(9, int), np.arange(9))
    assert scores.max() - scores.min() > 1400


def test_it_ends_where_no_threshold_helps():
    x = np.array([[0.0], [1.0], [0.0], [1.0]])
    view = Ratings([0, 4], np.arange(4), np.array([1.0, 1.0, 2.0, 2.0]), 4, x)
    assert len(list(RankBoost().steps(view, stream(0)))) == 1  # r = 0: nothing beyond the start


def test_a_first_threshold_with_every_pair_right_is_the_only_one():
    x = np.array([[0.0, 2.0], [1.0, 1.0], [1.0, 3.0], [0.0, 0.0]])
    users, items = np.repeat([0, 1], 4), np.tile(np.arange(4), 2)
    view = Ratings.from_triples(users, items, np.array([5.0, 4.0, 4.0, 5.0, 1.0, 2.0, 3.0, 4.0]), item_features=x)
    *_, step = islice(RankBoost().steps(view, stream(0)), 11)
    assert np.count_nonzero(step.model.weights, axis=1).tolist() == [1, 10, 0, 0]
    assert step.model.score(np.zeros(4, int), np.arange(4)).tolist() == [
        0.0,
        -np.arctanh(7 / 8),
        -np.arctanh(7 / 8),
        0.0,
    ]


def test_thousands_of_rounds_on_separable_data_stay_finite():
    values = np.arange(60) // 20.0
    view = Ratings([0, 60], np.arange(60), values, 60, values[:, None])
    for step in islice(RankBoost().steps(view, stream(0)), 4000):
        last = step
    scores = last.model.score(np.zeros(60, np.int32), np.arange(60))
    assert scores.max() - scores.min() > 2000  # e to the power of that is no number
    assert np.isfinite(scores).all() and (np.diff(scores)[values[1:] > values[:-1]] > 0).all()
    assert 0 <= last.objective() < 1e-200


# features, dense or sparse, ratings or numbers far apart


def test_sparse_features_give_the_same_model_as_dense_ones():
    view = ratings()
    thin = np.where(np.abs(view.item_features) > 1, np.round(view.item_features), 0.0)
    dense = offer(RankBoost(), replace(view, item_features=thin))
    sparse = offer(RankBoost(), replace(view, item_features=scipy.sparse.csr_array(thin)))
    *_, one = islice(RankBoost().steps(dense, stream(0)), 20)
    *_, other = islice(RankBoost().steps(sparse, stream(0)), 20)
    pairs = np.indices((view.n_users, view.n_items), np.int32).reshape(2, -1)
    assert one.model.score(*pairs).tobytes() == other.model.score(*pairs).tobytes()
    assert one.model.score_all(np.arange(view.n_users)).tobytes() == other.model.score(*pairs).tobytes()


@pytest.mark.parametrize("low", [0.0, -1.0, 1e29, -5e-324])
def test_a_cut_parts_neighbouring_numbers(low):
    high = np.nextafter(low, np.inf)
    view = Ratings([0, 2], np.arange(2), np.array([1.0, 2.0]), 2, np.array([[low], [high]]))
    _, step = islice(RankBoost().steps(view, stream(0)), 2)
    scores = step.model.score(np.zeros(2, np.int32), np.arange(2))
    assert scores[1] > scores[0]


def test_items_that_nobody_rated_are_ranked():
    x = np.linspace(0, 1, 50)[:, None]
    rated = np.arange(0, 50, 2)
    view = Ratings([0, 25], rated, np.round(5 * x[rated, 0]), 50, x)
    *_, step = islice(RankBoost().steps(view, stream(0)), 30)
    unseen = step.model.score(np.zeros(25, np.int32), rated + 1)
    assert (np.diff(unseen) >= 0).all() and unseen[-1] > unseen[0]


# rounds chosen on held-out ratings


def noisy() -> Ratings:
    """Few ratings and many features that say nothing: boosting soon learns noise."""
    rng = np.random.default_rng(11)
    x = rng.standard_normal((400, 30))
    users, n = np.repeat(np.arange(30), 30), 900
    items = np.concatenate([rng.choice(400, 30, replace=False) for _ in range(30)])
    return Ratings.from_triples(users, items, np.round(x[items, 0] + 1.5 * rng.standard_normal(n)), 30, 400, x)


def test_validated_rounds_are_a_beginning_of_all_rounds_and_never_more():
    every = [step.model.weights.copy() for step in islice(RankBoost().steps(noisy(), stream(0)), 40)]
    kept = [step.model for step in islice(RankBoost(rounds="validated").steps(noisy(), stream(0)), 40)]
    counts = [model.weights.shape[1] for model in kept]
    assert all(count <= made for made, count in enumerate(counts))
    assert counts == sorted(counts) and 0 < counts[-1] < 39
    assert kept[-1].weights.tobytes() == every[-1][:, : counts[-1]].tobytes()


@pytest.mark.parametrize(("ties", "metric"), [("half", "pairwise-error"), ("wrong", "misranking")])
def test_validated_rounds_have_the_fewest_misorderings_in_what_was_held_back(ties, metric):
    from rankbench.solvers.rankboost import _hold_back

    view, solver = noisy(), RankBoost(rounds="validated", ties=ties)
    part, held = _hold_back(view, solver.held_out, stream(0))
    errors = [evaluate(step.model, held, [metric])[metric] for step in islice(RankBoost().steps(part, stream(0)), 40)]
    *_, last = islice(solver.steps(view, stream(0)), 40)
    assert last.model.weights.shape[1] == int(np.argmin(errors))


def test_a_share_of_each_users_ratings_is_held_back():
    from rankbench.solvers.rankboost import _hold_back

    view = offer(RankBoost(), ratings())
    part, held = _hold_back(view, 0.3, stream(1))
    assert np.diff(held.indptr).tolist() == [int(0.3 * n) for n in np.diff(view.indptr)]
    together = np.sort(np.concatenate([part.users * view.n_items + part.items, held.users * view.n_items + held.items]))
    assert together.tolist() == (view.users * view.n_items + view.items).tolist()


def test_with_nothing_to_validate_on_all_rounds_are_kept():
    view = Ratings([0, 3], np.arange(3), np.array([1.0, 2.0, 3.0]), 3, np.arange(3.0)[:, None])
    steps = [step.model.weights.shape[1] for step in islice(RankBoost(rounds="validated").steps(view, stream(0)), 5)]
    assert steps == list(range(5))


# who cannot be ranked


def test_users_with_fewer_than_two_ratings_score_nan_and_those_without_an_order_zero():
    x = np.array([[1.0], [2.0], [3.0], [3.0]])
    view = Ratings.from_triples(
        [1, 2, 2, 3, 3, 4, 4], [0, 0, 1, 2, 3, 0, 2], [3.0, 4.0, 4.0, 1.0, 2.0, 1.0, 2.0], 5, 4, x
    )
    *_, step = islice(RankBoost().steps(view, stream(0)), 5)
    scores = step.model.score_all(np.arange(5))
    assert np.isnan(scores[:2]).all()  # no rating, one rating
    assert (scores[2] == 0).all()  # ratings all alike
    assert (scores[3] == 0).all()  # items all alike
    assert scores[4, 2] > scores[4, 0]


def test_nan_is_refused_before_it_gets_here():
    x = np.ones((2, 1))
    with pytest.raises(UserError, match="rating 1 is nan: ratings must be finite"):
        Ratings([0, 2], np.arange(2), np.array([1.0, np.nan]), 2, x)
    with pytest.raises(UserError, match="item features hold NaN or infinite values: fill or drop them first"):
        Ratings([0, 2], np.arange(2), np.array([1.0, 2.0]), 2, np.array([[1.0], [np.nan]]))


# bits


@pytest.mark.parametrize("threads", [2, 3])
def test_one_user_in_many_chunks_gives_the_same_bytes_on_any_number_of_threads(threads):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3000, 150))  # enough that several threads are woken
    values = np.round(x[:, 0] + rng.standard_normal(3000))
    view = Ratings([0, 3000], np.arange(3000), values, 3000, x)
    assert course(RankBoost(), view, threads) == course(RankBoost(), view, 1)


def test_it_learns_magnitudes_it_never_saw():
    view = Magnitudes(users=20, items=200, features=4, per_user=60).view(np.random.default_rng(0))
    train, test = (view.take(np.arange(len(view))[np.arange(len(view)) % 2 == part]) for part in (0, 1))
    *_, step = islice(RankBoost().steps(train, stream(0)), 60)
    assert isinstance(step.model, Stumps)
    assert evaluate(step.model, test, ["pairwise-error"])["pairwise-error"] < 0.38  # 0.32 by MPRank


def test_validated_rounds_stay_where_what_is_left_to_train_on_has_no_threshold_to_offer():
    alike, apart = np.zeros((4, 1)), np.arange(4.0)[:, None]
    train, held = (Ratings([0, 4], np.arange(4), np.arange(4.0), 4, features) for features in (alike, apart))
    assert list(islice(_best_rounds(train, held, "half", 1), 5)) == [0] * 5
