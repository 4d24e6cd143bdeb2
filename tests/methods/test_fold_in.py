"""The kernel that fits single users: dense Newton steps on all pairs, written out, end at the same vectors."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.random import Generator

from rankbench.core.contract import Floats, Int32s
from rankbench.data.views import Ratings
from rankbench.kernels.methods import fold_in
from rankbench.kernels.shared.losses import Loss
from rankbench.kernels.shared.rows import Pattern
from rankbench.methods.factors import padded
from rankbench.methods.losses import CURVED, LOSSES
from rankbench.methods.pair_tasks import PairTasks

BY_CODE = {loss.code: loss for loss in LOSSES}
CURVED_LOSSES = pytest.mark.parametrize("loss", sorted(CURVED), ids=lambda loss: loss.name.lower())


def minimum(objective, size: int) -> Floats:
    """Where the gradient of a convex function vanishes, by Newton's method with halved steps, from zero on."""
    x = np.zeros(size)
    value, gradient, curvature = objective(x)
    for _ in range(200):
        step, length = np.linalg.solve(curvature, -gradient), 1.0
        while length > 1e-6 and objective(x + length * step)[0] > value:
            length /= 2
        x = x + length * step
        value, gradient, curvature = objective(x)
        if np.abs(step).max() < 1e-14 * max(1.0, np.abs(x).max()):
            break
    return x


def of_pairs(loss: Loss, items: Floats, offsets: Floats, pairs: list[tuple[int, int]], weight: float, lam: float):
    """The objective of a list of pairs, with its derivatives."""
    better, worse = np.array(pairs).T
    apart, shift, curve = items[better] - items[worse], offsets[better] - offsets[worse], BY_CODE[loss]

    def objective(x: Floats):
        margins = apart @ x + shift
        gradient = weight * apart.T @ curve.slope(margins) + lam * x
        curvature = weight * (apart.T * curve.curvature(margins)) @ apart + lam * np.eye(len(x))
        return weight * curve.value(margins).sum() + lam / 2 * x @ x, gradient, curvature

    return objective


def of_choice(items: Floats, offsets: Floats, own: Int32s, lam: float):
    """The objective of the choice of some items among all, with its derivatives."""

    def objective(x: Floats):
        scores = items @ x + offsets
        chances = np.exp(scores - scores.max())
        chances /= chances.sum()
        mean = chances @ items
        curvature = (items.T * chances) @ items - np.outer(mean, mean) + lam * np.eye(len(x))
        gradient = mean - items[own].mean(axis=0) + lam * x
        return lam / 2 * x @ x - np.log(chances[own]).mean(), gradient, curvature

    return objective


def fitted_pairs(ratings: Ratings, listed: bool, loss: Loss, items: Floats, offsets: Floats, weight=1.0, lam=1.0):
    """The vectors of the kernel for all pairs of the ratings, from zero on."""
    tasks = PairTasks.of(ratings.comparisons() if listed else ratings, 1, loss)
    users = np.zeros((ratings.n_users, padded(items).shape[1]))
    fold_in.pairs(
        tasks=tasks.pairs, items=padded(items), offsets=offsets, weight=weight, lam=lam, users=users, threads=1
    )
    return users[:, : items.shape[1]]


def fitted_positives(fit, own: Int32s, items: Floats, offsets: Floats, lam: float, **more) -> Floats:
    """The vector of the kernel for one user's positives, from zero on."""
    positives, users = Pattern(indptr=np.array([0, len(own)]), columns=own), np.zeros((1, padded(items).shape[1]))
    fit(positives=positives, items=padded(items), offsets=offsets, lam=lam, users=users, threads=1, **more)
    return users[0, : items.shape[1]]


def catalogue(rng: Generator, n: int, rank: int, size: float = 1.0) -> tuple[Floats, Floats]:
    """Vectors and offsets of items."""
    return size * rng.standard_normal((n, rank)), rng.standard_normal(n)


def pairs_with_all_others(own: Int32s, n: int) -> list[tuple[int, int]]:
    """Each positive with each other item."""
    return list(product(own.tolist(), sorted({*range(n)} - {*own.tolist()})))


@CURVED_LOSSES
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize(("n", "rank", "weight", "lam"), [(60, 16, 10.0, 1.0), (40, 5, 0.03, 0.2), (12, 30, 1e3, 1.0)])
def test_pairs_end_where_newton_does(loss, listed, n, rank, weight, lam):
    rng = np.random.default_rng(n)
    items, offsets = catalogue(rng, n, rank)
    ratings = Ratings(np.array([0, n]), np.arange(n), rng.integers(1, 6, n).astype(float), n)
    pairs = list(zip(ratings.comparisons().better.tolist(), ratings.comparisons().worse.tolist(), strict=True))
    found = fitted_pairs(ratings, listed, loss, items, offsets, weight, lam)[0]
    expected = minimum(of_pairs(loss, items, offsets, pairs, weight, lam), rank)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@CURVED_LOSSES
@pytest.mark.parametrize(("n", "count"), [(50, 1), (50, 7), (60, 45), (300, 120), (17, 16), (2, 1)])
@pytest.mark.parametrize("lam", [0.3, 1e-3])
def test_rivals_end_where_newton_does(loss, n, count, lam):
    rng = np.random.default_rng(n + count)
    items, offsets = catalogue(rng, n, 6, 0.5)
    own = np.sort(rng.choice(n, count, replace=False)).astype(np.int32)
    pairs = pairs_with_all_others(own, n)
    found = fitted_positives(partial(fold_in.rivals, loss=loss), own, items, offsets, lam)
    expected = minimum(of_pairs(loss, items, offsets, pairs, 1 / len(pairs), lam), 6)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize(("n", "count"), [(50, 1), (60, 45), (1500, 30), (9, 9), (1, 1)])
@pytest.mark.parametrize("lam", [0.3, 1e-3])
def test_choices_end_where_newton_does(n, count, lam):
    rng = np.random.default_rng(n + count)
    items, offsets = catalogue(rng, n, 6)
    own = np.sort(rng.choice(n, count, replace=False)).astype(np.int32)
    found = fitted_positives(fold_in.choices, own, items, offsets, lam)
    expected = minimum(of_choice(items, offsets, own, lam), 6)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * max(np.abs(expected).max(), 1e-3))


def test_scores_whose_squares_dwarf_the_loss_are_followed_to_the_end():
    """Almost all pairs are in order: the loss, a difference of large sums, does not show any more that it falls."""
    rng = np.random.default_rng(4)
    items, offsets = catalogue(rng, 250, 48, 2 / np.sqrt(48))[0], np.zeros(250)
    truth = items @ rng.standard_normal(48) + 0.05 * rng.standard_normal(250)
    values = np.digitize(truth, np.quantile(truth, [0.2, 0.4, 0.6, 0.8])).astype(float)
    ratings = Ratings(np.array([0, 250]), np.arange(250), values, 250)
    pairs = list(zip(ratings.comparisons().better.tolist(), ratings.comparisons().worse.tolist(), strict=True))
    found = fitted_pairs(ratings, False, Loss.SQUARED_HINGE, items, offsets, 10.0)[0]
    _, gradient, curvature = of_pairs(Loss.SQUARED_HINGE, items, offsets, pairs, 10.0, 1.0)(found)
    assert np.abs(np.linalg.solve(curvature, gradient)).max() < 1e-9 * np.abs(found).max()


def test_hundreds_of_steps_are_remembered_thirty_at_a_time():
    rng = np.random.default_rng(31)
    items, offsets = catalogue(rng, 600, 32, 3.8 / np.sqrt(32))
    own = np.sort(rng.choice(600, 5, replace=False)).astype(np.int32)
    found = fitted_positives(fold_in.choices, own, items, offsets, 2e-6)
    _, gradient, curvature = of_choice(items, offsets, own, 2e-6)(found)
    assert np.abs(np.linalg.solve(curvature, gradient)).max() < 1e-8 * np.abs(found).max()


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("lam", [3e-7, 1e-12, 1e-200])
def test_a_penalty_that_rounding_drowns_leaves_a_vector_that_orders_all_pairs(listed, lam):
    rng = np.random.default_rng(2)
    items, offsets = catalogue(rng, 9, 17, 0.2)[0], np.zeros(9)
    ratings = Ratings(np.array([0, 9]), np.arange(9), np.arange(9.0), 9)
    found = fitted_pairs(ratings, listed, Loss.SQUARED_HINGE, items, offsets, 700.0, lam)[0]
    np.testing.assert_array_less(0.999, np.diff(items @ found))
    own = np.array([2, 5], np.int32)
    found = fitted_positives(partial(fold_in.rivals, loss=Loss.SQUARED_HINGE), own, items, offsets, lam)
    assert np.delete(items @ found, own).max() < (items @ found)[own].min() - 0.99


def test_of_many_items_that_are_all_alike_some_stand_for_all():
    rng = np.random.default_rng(1)
    items, own = rng.standard_normal((6000, 4)), np.arange(5, dtype=np.int32)
    found = fitted_positives(fold_in.choices, own, items, np.zeros(6000), 0.1)
    expected = minimum(of_choice(items, np.zeros(6000), own, 0.1), 4)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("spread", [0.0, 30.0, 150.0, 1e4])
def test_scores_far_apart_have_no_overflow(spread):
    """Beyond 200 no powers are computed; up to there their products are finite."""
    rng = np.random.default_rng(3)
    items, offsets = catalogue(rng, 80, 4, 0.3)
    offsets = np.linspace(-spread / 2, spread / 2, 80)[rng.permutation(80)]
    own = np.sort(rng.choice(80, 50, replace=False)).astype(np.int32)
    pairs = pairs_with_all_others(own, 80)
    found = fitted_positives(partial(fold_in.rivals, loss=Loss.LOGISTIC), own, items, offsets, 0.01)
    expected = minimum(of_pairs(Loss.LOGISTIC, items, offsets, pairs, 1 / len(pairs), 0.01), 4)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    ratings = Ratings(np.array([0, 80]), np.arange(80), rng.integers(1, 6, 80).astype(float), 80)
    pairs = list(zip(ratings.comparisons().better.tolist(), ratings.comparisons().worse.tolist(), strict=True))
    found = fitted_pairs(ratings, True, Loss.LOGISTIC, items, offsets)[0]
    expected = minimum(of_pairs(Loss.LOGISTIC, items, offsets, pairs, 1.0, 1.0), 4)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_users_without_a_pair_stay_where_they_are():
    items, offsets = catalogue(np.random.default_rng(0), 5, 4)
    everything = Pattern(indptr=np.array([0, 0, 5]), columns=np.arange(5, dtype=np.int32))
    users = np.ones((2, 4))
    fold_in.rivals(
        positives=everything, items=items, offsets=offsets, loss=Loss.LOGISTIC, lam=1.0, users=users, threads=1
    )
    assert (users == 1).all()
    fold_in.choices(positives=everything, items=items, offsets=offsets, lam=1.0, users=users, threads=1)
    assert (users[0] == 1).all()
    assert (users[1] != 1).any()
    alike = Ratings(np.array([0, 0, 3]), np.arange(3), np.full(3, 2.0), 5)
    np.testing.assert_allclose(fitted_pairs(alike, False, Loss.SQUARED_HINGE, items, offsets), 0.0)


def test_vectors_that_are_no_numbers_give_none():
    items, offsets = catalogue(np.random.default_rng(0), 5, 4)
    items[2] = np.inf
    own = np.array([1], np.int32)
    assert np.isnan(fitted_positives(fold_in.choices, own, items, offsets, 1.0)).all()
    ratings = Ratings(np.array([0, 5]), np.arange(5), np.arange(5.0), 5)
    assert np.isnan(fitted_pairs(ratings, False, Loss.SQUARED_HINGE, items, offsets)).all()


@pytest.mark.parametrize("kernel", ["pairs", "rivals", "choices"])
def test_a_user_gets_the_same_bits_on_any_number_of_threads(kernel):
    rng = np.random.default_rng(5)
    items, offsets = catalogue(rng, 40, 8)
    indptr = np.arange(0, 20 * 31, 20)
    columns = np.concatenate([np.sort(rng.choice(40, 20, replace=False)) for _ in range(30)]).astype(np.int32)
    tasks = PairTasks.of(Ratings(indptr, columns, rng.integers(1, 4, 600).astype(float), 40), 1)
    of_kernel = {
        "pairs": {"tasks": tasks.pairs, "weight": 3.0},
        "rivals": {"positives": Pattern(indptr=indptr, columns=columns), "loss": Loss.LOGISTIC},
        "choices": {"positives": Pattern(indptr=indptr, columns=columns)},
    }
    found = []
    for threads in (1, 2, 5):
        users = np.zeros((30, 8))
        getattr(fold_in, kernel)(
            items=items, offsets=offsets, lam=0.1, users=users, threads=threads, **of_kernel[kernel]
        )
        found.append(users.tobytes())
    assert found[0] == found[1] == found[2]


def test_rows_that_are_not_padded_are_refused():
    own = Pattern(indptr=np.array([0, 1]), columns=np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="rows of 3 numbers are not padded"):
        fold_in.choices(
            positives=own, items=np.ones((2, 3)), offsets=np.zeros(2), lam=1.0, users=np.zeros((1, 3)), threads=1
        )
