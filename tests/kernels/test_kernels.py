"""Functions that the kernels share: random draws, sorting, kernel matrices, and empty input."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import combinations, pairwise
from threading import Lock
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from drawing import Word, below, shuffled, visits
from scipy.stats import chisquare
from sklearn.metrics.pairwise import rbf_kernel

from rankbench.core.contract import Floats, Ints
from rankbench.kernels.data import pairs
from rankbench.kernels.methods import margins
from rankbench.kernels.methods.pairwise import DescentFactors
from rankbench.kernels.metrics import evaluation as metrics
from rankbench.kernels.metrics.codes import Code
from rankbench.kernels.metrics.requests import Requests
from rankbench.kernels.models import gram, scoring
from rankbench.kernels.shared.losses import Loss
from rankbench.kernels.shared.rows import ComparisonRows, SparseRows
from rankbench.kernels.solvers import global_ranking, mprank, sgd

NO_IDS, NO_VALUES = np.zeros(0, np.int32), np.zeros(0)


def indptr_of(counts: Any) -> Ints:
    """Where the rows of users with so many rows each begin and end."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


# random draws, seen in the order in which a pass of SGD visits its rows


def descent_of(users: Floats, items: Floats, shrinks: Any, step: float, decay: float) -> sgd.Descent:
    """Descent on the logistic loss."""
    user_shrink, item_shrink = shrinks
    factors = DescentFactors(
        users=users,
        items=items,
        user_shrink=user_shrink,
        item_shrink=item_shrink,
        step=step,
        decay=decay,
    )
    return sgd.Descent(factors=factors, loss=Loss.LOGISTIC)


def visited(counts: Any, rng: Any) -> Ints:
    """The rows in the order of their visits.

    Row r compares the items 2r and 2r + 1, both at 1, for users at 0: so users stay there and items
    only shrink, by a step that falls with each update and so tells its number.
    """
    n = int(np.sum(counts))
    users, items = np.zeros((len(counts), 4)), np.ones((2 * n, 4))
    better, worse = np.arange(2 * n, dtype=np.int32).reshape(n, 2).T.copy()
    shrinks = np.zeros(len(counts)), np.full(2 * n, 0.5)
    descent = descent_of(users, items, shrinks, 1.0, 1.0)
    rows = ComparisonRows(indptr=indptr_of(counts), better=better, worse=worse)
    sgd.serial_pass(descent=descent, comparisons=rows, updates=0, rng=rng)
    updates = np.rint(0.5 / (1 - items[::2, 0]) - 1).astype(int)
    np.testing.assert_array_equal(np.sort(updates), np.arange(n))
    return np.argsort(updates)


def words(seed: int) -> Word:
    """The 32-bit words of a PCG64, low half first."""
    raw = np.random.PCG64(seed).random_raw(5000)
    return iter(np.stack([raw & 0xFFFFFFFF, raw >> 32], axis=1).ravel().tolist()).__next__


def test_the_stream_of_draws_is_golden():
    word, sizes = words(2024), (2, 3, 10, 100, 1000, 10**6, 2**31, 2**32 - 1)
    assert [below(word, n) for n in sizes] == [0, 2, 0, 21, 317, 309452, 1951374834, 3433680738]
    assert shuffled(words(2024), 10) == [2, 7, 0, 4, 5, 6, 9, 3, 1, 8]
    assert visited([10], np.random.Generator(np.random.PCG64(2024))).tolist() == [8, 1, 0, 3, 9, 5, 7, 4, 2, 6]


@pytest.mark.parametrize("counts", [[1], [10], [1] * 10, [3, 0, 5, 1], [4, 9, 0, 2, 30, 1, 7], [100] * 40])
def test_a_pass_draws_its_order_from_the_stream(counts):
    order = [indptr_of(counts)[user] + row for user, row in visits(words(7), counts)]
    assert visited(counts, np.random.Generator(np.random.PCG64(7))).tolist() == order


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_every_order_is_as_likely_as_any_other(n):
    order = visited([n] * 24_000, np.random.default_rng(0))
    order = order[np.argsort(order // n, kind="stable")].reshape(-1, n) % n
    _, times = np.unique(order, axis=0, return_counts=True)
    assert len(times) == np.prod(np.arange(1, n + 1))
    assert chisquare(times).pvalue > 0.001


def scripted(words: list[int]) -> Any:
    """A stand-in for a generator, whose 32-bit words are these."""
    name = ctypes.c_char_p(b"BitGenerator")
    next_word = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(lambda _: words.pop(0))
    bitgen = (ctypes.c_void_p * 5)(None, None, ctypes.cast(next_word, ctypes.c_void_p), None, None)
    new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    capsule = new_capsule(ctypes.addressof(bitgen), name, None)
    return SimpleNamespace(bit_generator=SimpleNamespace(capsule=capsule, lock=Lock()), kept=(name, next_word, bitgen))


@pytest.mark.parametrize(
    ("words", "order"),
    [
        ([0, 2**31, 0, 9], [1, 0, 2]),  # 2^32 mod 3 = 1 word of the 2^32 is one too many for three
        ([0, 0, 0, 1, 0, 9], [0, 1, 2]),
        ([2**32 - 1, 2**32 - 1, 9], [2, 0, 1]),
    ],
)
def test_the_words_that_would_make_a_draw_uneven_are_rejected(words, order):
    left = [7, 7, *words]  # the first two are the seed of the users' streams
    assert visited([1, 1, 1], scripted(left)).tolist() == order
    assert left == []


# pairs and sorting


def ragged(largest: int, levels: int) -> tuple[Ints, Floats]:
    """Users with 0, 1, ... ratings of a few levels."""
    indptr = indptr_of(np.arange(largest + 1))
    return indptr, np.random.default_rng(levels).integers(levels, size=indptr[-1]).astype(float)


def strictly_above(values: Floats) -> Any:
    """Row a, column b: whether a's value is above b's."""
    return values[:, None] > values[None, :]


@pytest.mark.parametrize("levels", [1, 2, 5, 1000])
def test_strict_pairs_are_counted_like_by_brute_force(levels):
    indptr, values = ragged(200, levels)
    ratings = SparseRows(indptr=indptr, columns=np.zeros(len(values), np.int32), values=values)
    expected = [strictly_above(values[a:b]).sum() for a, b in pairwise(indptr)]
    np.testing.assert_array_equal(pairs.count(ratings=ratings), expected)


def requests(codes: Sequence[int], places: int) -> Requests:
    """These metrics without a cut."""
    n = len(codes)
    return Requests(
        codes=np.array(codes, np.int32), cuts=np.zeros(n, np.int32), thresholds=np.zeros(n), discounts=np.ones(places)
    )


@pytest.mark.parametrize("levels", [1, 2, 5, 1000])
def test_sorting_is_stable(levels):
    """A pair is wrong where scores exchange it: an unstable sort by truth would invent exchanges."""
    indptr, truth = ragged(200, levels)
    scores = np.random.default_rng(1).integers(levels, size=len(truth)).astype(float)
    rated = metrics.RatedScores(indptr=indptr, truth=truth, scores=scores)
    (found,) = metrics.per_user(test=rated, requests=requests([Code.PAIRWISE_ERROR], 201), threads=1)
    for user, (first, end) in enumerate(pairwise(indptr)):
        above, score = strictly_above(truth[first:end]), scores[first:end]
        wrong = (above & (score[:, None] < score)).sum() + 0.5 * (above & (score[:, None] == score)).sum()
        expected = wrong / above.sum() if above.any() else np.nan
        np.testing.assert_allclose(found[user], expected, rtol=1e-14)


def list_pairs(values: list[float], limit: int, users: int, seed: int = 0) -> Any:
    """The listed pairs of `users` users who all rate alike: users x (pairs x (better, worse))."""
    items, all_values = np.tile(np.arange(len(values), dtype=np.int32), users), np.tile(values, users)
    ratings = SparseRows(indptr=indptr_of([len(values)] * users), columns=items, values=all_values)
    counts = pairs.count(ratings=ratings)
    kept = np.minimum(counts, limit)
    rng = np.random.default_rng(seed)
    columns = pairs.list_pairs(ratings=ratings, counts=counts, out_indptr=indptr_of(kept), rng=rng)
    return np.stack(columns, axis=1).reshape(users, -1, 2)


def test_all_pairs_are_listed_in_order():
    values = [2.0, 1.0, 2.0, 3.0, 1.0]
    expected = np.argwhere(strictly_above(np.array(values)))
    for listed in list_pairs(values, limit=100, users=3):
        np.testing.assert_array_equal(listed, expected)


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_every_sample_of_pairs_is_as_likely_as_any_other(limit):
    values = [2.0, 1.0, 3.0, 1.0]  # five strict pairs
    everything = np.argwhere(strictly_above(np.array(values))).tolist()
    listed = list_pairs(values, limit, users=10_000)
    samples, times = np.unique(listed.reshape(len(listed), -1), axis=0, return_counts=True)
    possible = [np.ravel(sample).tolist() for sample in combinations(everything, limit)]
    assert sorted(samples.tolist()) == sorted(possible)
    assert chisquare(times).pvalue > 0.001


# kernel matrices


def features(n: int, width: int = 7) -> Floats:
    return np.random.default_rng(n).standard_normal((n, width))


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 300])
def test_the_linear_kernel_is_that_of_numpy(n):
    x = features(n)
    np.testing.assert_allclose(gram.linear(features=x, threads=2), x @ x.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 300])
@pytest.mark.parametrize("width", [0.3, 2.0, 50.0])
def test_the_gaussian_kernel_is_that_of_scikit_learn(n, width):
    products = gram.linear(features=features(n), threads=1)
    gram.gaussian(products=products, width=width, threads=2)
    np.testing.assert_allclose(products, rbf_kernel(features(n), gamma=1 / (2 * width**2)), rtol=1e-11, atol=1e-12)
    assert (np.diagonal(products) == 1).all() and products.max() <= 1


@pytest.mark.parametrize("threads", [2, 3])
def test_kernel_matrices_are_the_same_bytes_on_any_number_of_threads(threads):
    one, many = (gram.linear(features=features(500, 40), threads=n) for n in (1, threads))
    assert one.tobytes() == many.tobytes()
    gram.gaussian(products=one, width=5.0, threads=1)
    gram.gaussian(products=many, width=5.0, threads=threads)
    assert one.tobytes() == many.tobytes()


def test_an_expansion_is_a_sum_over_the_users_items():
    matrix, rng = gram.linear(features=features(9), threads=1), np.random.default_rng(0)
    items = np.array([0, 4, 1, 5, 8], np.int32)
    coefficients, offsets, out = rng.standard_normal(5), rng.standard_normal(3), np.empty(27)
    users, asked = (ids.ravel().astype(np.int32) for ids in np.indices((3, 9)))
    gram.expand(
        gram=matrix,
        coefficients=SparseRows(indptr=indptr_of([2, 0, 3]), columns=items, values=coefficients),
        offsets=offsets,
        users=users,
        asked=asked,
        order=rng.permutation(27),
        out=out,
    )
    dense = np.zeros((3, 9))
    dense[np.repeat(np.arange(3), [2, 0, 3]), items] = coefficients
    np.testing.assert_allclose(out, (dense @ matrix + offsets[:, None]).ravel(), rtol=1e-12, atol=1e-12)


# empty input


@pytest.mark.parametrize("users", [0, 1, 3])
def test_users_without_ratings_have_no_pairs(users):
    indptr = indptr_of([0] * users)
    ratings, rng = SparseRows(indptr=indptr, columns=NO_IDS, values=NO_VALUES), np.random.default_rng(0)
    counts = pairs.count(ratings=ratings)
    assert counts.tolist() == [0] * users
    better, worse = pairs.list_pairs(ratings=ratings, counts=counts, out_indptr=indptr, rng=rng)
    assert len(better) == len(worse) == 0


@pytest.mark.parametrize("users", [0, 1, 3])
@pytest.mark.parametrize("wanted", [0, 6])
def test_metrics_without_users_or_ratings_or_metrics_are_empty(users, wanted):
    nothing = metrics.RatedScores(indptr=indptr_of([0] * users), truth=NO_VALUES, scores=NO_VALUES)
    values = metrics.per_user(test=nothing, requests=requests(range(wanted), 1), threads=2)
    assert values.shape == (wanted, users)
    assert np.isnan(values).all()


def test_no_metric_of_users_with_ratings_is_no_row():
    rated = metrics.RatedScores(indptr=indptr_of([2]), truth=np.array([1.0, 2.0]), scores=np.zeros(2))
    assert metrics.per_user(test=rated, requests=requests([], 3), threads=2).shape == (0, 1)


@pytest.mark.parametrize("users", [0, 3])
def test_no_user_to_solve_for_is_no_failure(users):
    ratings = SparseRows(indptr=indptr_of([0] * users), columns=NO_IDS, values=NO_VALUES)
    matrix, C, nothing = np.ones((2, 2)), np.ones(users), NO_VALUES.copy()
    offsets, weights = np.full(users, 7.0), np.zeros((users, 2))
    by_dual = mprank.dual(
        gram=matrix, ratings=ratings, users=NO_IDS, C=C, coefficients=nothing, offsets=offsets, threads=2
    )
    by_primal = mprank.primal(
        features=matrix, ratings=ratings, users=NO_IDS, C=C, weights=weights, offsets=offsets, threads=2
    )
    assert by_dual == by_primal == -1
    assert (offsets == 7).all() and not weights.any()


@pytest.mark.parametrize("users", [0, 3])
def test_no_user_to_measure_is_no_failure(users):
    ratings = SparseRows(indptr=indptr_of([0] * users), columns=NO_IDS, values=NO_VALUES)
    matrix, C, errors = np.ones((2, 2)), np.ones(2), np.zeros((users, 2))
    for primal in (False, True):
        failed = mprank.path(matrix=matrix, ratings=ratings, users=NO_IDS, C=C, errors=errors, primal=primal, threads=2)
        assert failed == -1
    assert not errors.any()


def test_a_pass_without_users_moves_nothing_and_loses_nothing():
    rows = ComparisonRows(indptr=indptr_of([]), better=NO_IDS, worse=NO_IDS)
    users, items = np.ones((0, 4)), np.ones((2, 4))
    descent = descent_of(users, items, (NO_VALUES, np.zeros(2)), 1.0, 0.0)
    sgd.serial_pass(descent=descent, comparisons=rows, updates=0, rng=np.random.default_rng(0))
    margins.losses(loss=Loss.LOGISTIC, comparisons=rows, users=users, items=items, out=NO_VALUES.copy(), threads=2)
    assert (items == 1).all()


def test_users_without_comparisons_are_not_moved_and_lose_nothing():
    better, worse = np.array([0], np.int32), np.array([1], np.int32)
    rows = ComparisonRows(indptr=indptr_of([0, 1, 0]), better=better, worse=worse)
    users, items, losses = np.ones((3, 4)), np.eye(2, 4), np.ones(3)
    descent = descent_of(users, items, (np.ones(3), np.ones(2)), 0.1, 0.0)
    sgd.serial_pass(descent=descent, comparisons=rows, updates=0, rng=np.random.default_rng(0))
    margins.losses(loss=Loss.LOGISTIC, comparisons=rows, users=users, items=items, out=losses, threads=2)
    assert (users[[0, 2]] == 1).all() and not (users[1] == 1).any()
    assert (losses[[0, 2]] == 0).all() and losses[1] > 0


def test_items_that_never_met_have_no_loss_and_no_gradient():
    better, worse = np.array([0, 0, 2], np.int32), np.array([2, 2, 0], np.int32)
    meets = global_ranking.Tournament(better=better, worse=worse, n_items=3)
    totals, curvature, out = np.ones((3, 3)), np.zeros(2), np.ones(3)
    global_ranking.sweep(
        loss=Loss.LOGISTIC, tournament=meets, scores=np.zeros(3), totals=totals, curvature=curvature, threads=2
    )
    assert not totals[:, 1].any() and totals[1:, [0, 2]].all() and totals[0, 0] > 0
    global_ranking.curvature_times(tournament=meets, curvature=curvature, direction=np.arange(3.0), out=out, threads=2)
    assert out[1] == 0 and out[[0, 2]].all()


def test_items_without_a_comparison_have_no_loss_and_no_gradient():
    meets = global_ranking.Tournament(better=NO_IDS, worse=NO_IDS, n_items=3)
    totals, out = np.ones((3, 3)), np.ones(3)
    global_ranking.sweep(
        loss=Loss.LOGISTIC, tournament=meets, scores=np.zeros(3), totals=totals, curvature=NO_VALUES, threads=2
    )
    global_ranking.curvature_times(tournament=meets, curvature=NO_VALUES, direction=np.arange(3.0), out=out, threads=2)
    assert not totals.any() and not out.any()


def test_kernel_matrices_without_items_or_features_are_empty_or_zero():
    assert gram.linear(features=np.zeros((0, 3)), threads=2).shape == (0, 0)
    assert gram.linear(features=np.zeros((3, 0)), threads=2).tolist() == [[0] * 3] * 3
    gram.gaussian(products=np.zeros((0, 0)), width=1.0, threads=2)
    out = np.empty(0)
    gram.expand(
        gram=np.ones((1, 1)),
        coefficients=SparseRows(indptr=indptr_of([0]), columns=NO_IDS, values=NO_VALUES),
        offsets=np.zeros(1),
        users=NO_IDS,
        asked=NO_IDS,
        order=NO_IDS.astype(np.int64),
        out=out,
    )
    assert len(out) == 0


@pytest.mark.parametrize(("theirs", "found"), [({}, "passive"), ({"OMP_WAIT_POLICY": "active"}, "active")])
def test_threads_that_wait_sleep_unless_somebody_wants_otherwise(theirs, found):
    bare = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    code = "import rankbench.kernels.solvers.sgd, os; print(os.environ['OMP_WAIT_POLICY'])"
    printed = subprocess.run(
        [sys.executable, "-c", code], env=bare | theirs, capture_output=True, check=True, text=True
    )
    assert printed.stdout.strip() == found


@pytest.mark.parametrize("columns", [1, 4, 7, 8, 9, 24, 64, 65])
@pytest.mark.parametrize("rows", [1, 2, 4, 9])
def test_products_with_few_or_many_rows_and_columns_have_the_bits_of_pairs(rows, columns):
    """One row alone and four side by side, whole panels of columns and parts of one, add up in the same order."""
    rng = np.random.default_rng(rows * 100 + columns)
    for rank in (1, 5, 33):
        table, right = rng.standard_normal((12, rank)), rng.standard_normal((columns, rank))
        chosen = rng.integers(0, 12, rows).astype(np.int32)
        out, pairs = np.empty((rows, columns)), np.empty(rows * columns)
        scoring.products(rows=table, chosen=chosen, columns=right, out=out, threads=2)
        asked = np.tile(np.arange(columns, dtype=np.int32), rows)
        scoring.pairs(rows=table, chosen=np.repeat(chosen, columns), columns=right, asked=asked, out=pairs)
        np.testing.assert_array_equal(out.ravel(), pairs)
        np.testing.assert_allclose(out, table[chosen] @ right.T, rtol=1e-12, atol=1e-12)
