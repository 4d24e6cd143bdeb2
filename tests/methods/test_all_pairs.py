"""All pairs in near-linear time, compared with listed pairs, NumPy sums, finite differences and scikit-learn."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from rankbench.core.contract import Floats, Ints
from rankbench.data.views import Ratings
from rankbench.kernels.methods import all_pairs as kernel
from rankbench.kernels.shared.rows import Pattern
from rankbench.methods.losses import CODES, LOSSES
from rankbench.methods.pair_tasks import PairTasks

Evaluation = tuple[Floats, Floats, Floats]


def tied(levels: int, largest: int = 60, seed: int = 0) -> tuple[Ratings, Floats, Floats]:
    """Tasks of 0, 1, 2, ... ratings of so many levels (0: continuous), with scores, some of which tie, and a direction.

    Ties lie exactly at a margin of one too, where a pair stops being active. The two last tasks are so
    long that their sums are kept in a tree, unless levels are few.
    """
    rng = np.random.default_rng(seed)
    counts = np.array([*range(largest), *([] if largest < 60 else [130, 1200])])
    items = np.concatenate([np.arange(n) for n in counts]).astype(np.int32)
    values = rng.integers(levels, size=len(items)).astype(float) if levels else rng.standard_normal(len(items))
    ratings = Ratings(np.concatenate([[0], np.cumsum(counts)]), items, values, int(counts.max()))
    scores = np.where(
        rng.random(len(items)) < 0.5, rng.integers(-8, 8, len(items)) / 4, rng.standard_normal(len(items))
    )
    return ratings, scores, rng.standard_normal(len(items))


def near_linear(ratings: Ratings, scores: Floats, direction: Floats, threads: int = 1) -> Evaluation:
    """Loss per task, gradient and Hessian times direction, without listing a pair."""
    found = PairTasks.of(ratings, threads).at(scores)
    return found.losses, found.slope, found.curve(direction)


def explicit(ratings: Ratings, scores: Floats, direction: Floats, threads: int = 1) -> Evaluation:
    """The same with every pair listed; zero for whoever is in no pair."""
    tasks = PairTasks.of(ratings.comparisons(), threads)
    rows = rows_of(ratings, tasks.indptr, tasks.items)
    found = tasks.at(scores[rows])
    gradient, product = np.zeros((2, len(ratings)))
    gradient[rows], product[rows] = found.slope, found.curve(direction[rows])
    return found.losses, gradient, product


def rows_of(ratings: Ratings, starts: Ints, items: Ints) -> Ints:
    """The rows of the ratings that hold these items of each task."""
    keys = ratings.users.astype(np.int64) * ratings.n_items + ratings.items
    asked = np.repeat(np.arange(ratings.n_users), np.diff(starts)) * ratings.n_items + items
    return np.searchsorted(keys, asked)


def by_hand(ratings: Ratings, scores: Floats, direction: Floats) -> Evaluation:
    """The sums as the formula has them, task by task over an n x n table."""
    losses, gradient, product = np.zeros(ratings.n_users), np.zeros(len(ratings)), np.zeros(len(ratings))
    for task, (first, end) in enumerate(pairwise(ratings.indptr)):
        own = slice(first, end)
        values, q, p = ratings.values[own], scores[own], direction[own]
        missing = np.where(values[:, None] > values, np.maximum(0, 1 - (q[:, None] - q)), 0)
        losses[task] = (missing**2).sum()
        gradient[own] = 2 * (missing.sum(axis=0) - missing.sum(axis=1))
        active = missing > 0
        changes = active * (p[:, None] - p)
        product[own] = 2 * (changes.sum(axis=1) - changes.sum(axis=0))
    return losses, gradient, product


def assert_alike(one: Evaluation, other: Evaluation, size: float = 1.0) -> None:
    """Equal to 1e-10 of the largest, and to 1e-13 of the size of a direction, whose terms may cancel."""
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(b).max(initial=0) + 1e-13 * size)


@pytest.mark.parametrize("levels", [1, 2, 5, 10, 15, 16, 17, 30, 63, 64, 65, 0])
def test_near_linear_explicit_and_plain_sums_agree(levels):
    case = tied(levels)
    assert_alike(near_linear(*case), by_hand(*case))
    assert_alike(explicit(*case), by_hand(*case))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 25), st.integers(-12, 12), st.floats(-1e3, 1e3, width=32)), min_size=1, max_size=50
    ),
    st.sampled_from([0.0, 1e6]),
)
def test_near_linear_agrees_with_plain_sums_whatever_the_ties(rows, offset):
    values, quarters, direction = (np.array(column, float) for column in zip(*rows, strict=True))
    ratings = Ratings(np.array([0, len(rows)]), np.arange(len(rows)), values, len(rows))
    scores = quarters / 4
    found = near_linear(ratings, scores + offset, direction)
    assert_alike(found, by_hand(ratings, scores, direction))


@pytest.mark.parametrize("levels", [4, 40, 0])
@pytest.mark.parametrize("evaluate", [near_linear, explicit])
def test_gradient_and_product_are_those_of_finite_differences(levels, evaluate):
    ratings, _, direction = tied(levels, largest=25, seed=1)
    scores = np.random.default_rng(2).standard_normal(len(ratings))
    gradient = evaluate(ratings, scores, direction)[1]
    differences = approx_fprime(scores, lambda q: evaluate(ratings, q, direction)[0].sum(), 1e-6)
    np.testing.assert_allclose(gradient, differences, atol=1e-3)
    step = 1e-9  # the loss is piecewise quadratic: no pair changes sides in so short a step
    moved = evaluate(ratings, scores + step * direction, direction)[1]
    np.testing.assert_allclose(evaluate(ratings, scores, direction)[2], (moved - gradient) / step, atol=1e-4)


@pytest.mark.parametrize("name", ["logistic", "smooth-hinge"])
def test_other_losses_are_summed_over_listed_pairs(name):
    loss = next(one for one in LOSSES if one.name == name)
    ratings, scores, direction = tied(5)
    pairs, tasks = ratings.comparisons(), PairTasks.of(ratings, 2, loss.code)
    rows = rows_of(ratings, tasks.indptr, tasks.items)
    found = tasks.at(scores[rows])
    better, worse = (rows_of_items(ratings, pairs.users, items) for items in (pairs.better, pairs.worse))
    margins, change = (values[better] - values[worse] for values in (scores, direction))
    losses = np.bincount(pairs.users, loss.value(margins), ratings.n_users)
    gradient, product = (
        np.bincount(better, values, len(ratings)) - np.bincount(worse, values, len(ratings))
        for values in (loss.slope(margins), loss.curvature(margins) * change)
    )
    assert_alike((found.losses, found.slope, found.curve(direction[rows])), (losses, gradient[rows], product[rows]))


def rows_of_items(ratings, users, items):
    """The rows of the ratings of these users and items."""
    keys = ratings.users.astype(np.int64) * ratings.n_items + ratings.items
    return np.searchsorted(keys, users.astype(np.int64) * ratings.n_items + items)


def test_pairs_that_are_not_listed_have_the_squared_hinge():
    ratings, *_ = tied(5)
    level, levels = kernel.rank_values(ratings=ratings.rows, threads=1)
    rows = Pattern(indptr=ratings.indptr, columns=ratings.items)
    with pytest.raises(ValueError, match="have the squared hinge"):
        kernel.TaskPairs(rows=rows, level=level, levels=levels, loss=CODES["logistic"])
    with pytest.raises(ValueError, match="is the code of no loss"):
        kernel.TaskPairs(rows=rows, level=level, levels=levels, loss=99)


@pytest.mark.parametrize("evaluate", [near_linear, explicit])
def test_the_bits_do_not_depend_on_the_number_of_threads(evaluate):
    case = tied(5)
    one = b"".join(part.tobytes() for part in evaluate(*case))
    for threads in (2, 3):
        assert b"".join(part.tobytes() for part in evaluate(*case, threads=threads)) == one


def test_levels_are_dense_ranks():
    ratings, _, _ = tied(30)
    level, levels = kernel.rank_values(ratings=ratings.rows, threads=2)
    for task, (first, end) in enumerate(pairwise(ratings.indptr)):
        distinct, expected = np.unique(ratings.values[first:end], return_inverse=True)
        assert levels[task] == len(distinct)
        np.testing.assert_array_equal(level[first:end], expected)


def test_pairs_are_placed_among_the_items_of_their_task():
    pairs = tied(3)[0].comparisons()
    starts, items, better, worse = kernel.place_pairs(comparisons=pairs.rows, n_items=pairs.n_items)
    offsets = starts[pairs.users]
    np.testing.assert_array_equal(items[offsets + better], pairs.better)
    np.testing.assert_array_equal(items[offsets + worse], pairs.worse)
    for task, (first, end) in enumerate(pairwise(pairs.indptr)):
        met = np.union1d(pairs.better[first:end], pairs.worse[first:end])
        np.testing.assert_array_equal(items[starts[task] : starts[task + 1]], met)


@pytest.mark.parametrize("tasks", [0, 3])
def test_tasks_without_ratings_lose_nothing(tasks):
    ratings = Ratings(np.zeros(tasks + 1, int), [], [], 4)
    nothing = np.empty(0)
    for evaluate in (near_linear, explicit):
        losses, gradient, product = evaluate(ratings, nothing, nothing)
        assert losses.tolist() == [0.0] * tasks
        assert len(gradient) == len(product) == 0


def arranged(values: Floats, scores: Floats, before: Ints) -> tuple[Ints, Ints, Ints]:
    """The order, and the ends of the windows, of one task whose rows stood in another order before."""
    tasks = PairTasks.of(Ratings(np.array([0, len(values)]), np.arange(len(values)), values, len(values)), 1)
    order, high, low = tasks.at(scores, np.array([before, *np.zeros((2, len(values)))], np.int32)).windows
    return order, high, low


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 300), st.integers(0, 2**31), st.sampled_from([0.0, 0.01, 0.3, np.inf]), st.booleans())
def test_rows_are_sorted_stably_from_any_order_and_windows_are_those_of_the_definition(n, seed, moved, tied):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-20, 20, n) / 8.0 if tied else rng.standard_normal(n)
    before = rng.permutation(n) if np.isinf(moved) else np.argsort(scores + moved * rng.standard_normal(n))
    order, high, low = arranged(rng.integers(0, 5, n).astype(float), scores, before)
    np.testing.assert_array_equal(order, before[np.argsort(scores[before], kind="stable")])
    np.testing.assert_array_equal(high, np.searchsorted(np.sort(scores), scores + 1.0, "left"))
    np.testing.assert_array_equal(low, np.searchsorted(np.sort(scores) + 1.0, scores, "right"))


@pytest.mark.parametrize("odd", [1e300, -1e300, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
@pytest.mark.parametrize("n", [15, 16, 64, 200])
def test_scores_of_any_size_leave_every_row_in_its_place_and_no_window_outside(n, share, odd):
    rng = np.random.default_rng(n)
    scores = np.where(rng.random(n) < share, odd, rng.standard_normal(n))
    order, high, low = arranged(rng.integers(0, 5, n).astype(float), scores, rng.permutation(n))
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    assert low.min() >= 0 and high.max() <= n
    rank = np.argsort(order)
    assert np.all(low <= rank)
    if not np.isnan(odd):
        np.testing.assert_array_equal(high, np.searchsorted(np.sort(scores), scores + 1.0, "left"))


@pytest.mark.parametrize("levels", [2, 5, 0])
def test_the_sign_of_zero_does_not_matter(levels):
    ratings, scores, direction = tied(levels)
    negative = np.where(scores == 0, -0.0, scores)
    assert np.signbit(negative[scores == 0]).all() and (scores == 0).any()
    for one, other in zip(
        near_linear(ratings, scores, direction), near_linear(ratings, negative, direction), strict=True
    ):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("levels", [2, 5, 0])
def test_the_sign_of_a_score_that_is_no_number_does_not_matter(levels):
    ratings, scores, _ = tied(levels)
    unknown = np.random.default_rng(1).random(len(scores)) < 0.05
    windows = [
        PairTasks.of(ratings, 1).at(np.where(unknown, value, scores)).windows.copy()
        for value in (np.nan, np.copysign(np.nan, -1.0))
    ]
    np.testing.assert_array_equal(*windows)


def test_a_score_that_is_no_number_is_in_no_window():
    ratings = Ratings(np.array([0, 2]), np.array([0, 1], np.int32), np.array([1.0, 2.0]), 2)
    _, high, low = PairTasks.of(ratings, 1).at(np.array([0.5, np.nan])).windows
    assert high[0] == 1 and low[1] == 1
