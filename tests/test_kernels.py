"""Functions that the kernels share: random draws, sorting, kernel matrices, and empty input."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare
from sklearn.metrics.pairwise import rbf_kernel

from rankbench import kernels
from rankbench.contract import Floats, Ints
from rankbench.kernels.data import pairs
from rankbench.kernels.methods import margins
from rankbench.kernels.metrics import evaluation as metrics
from rankbench.kernels.models import gram
from rankbench.kernels.solvers import global_ranking, mprank, sgd

FOLDER = Path(kernels.__file__).parent
MODULES = sorted(path.name.split(".")[0] for path in FOLDER.glob("*.so"))
NO_IDS, NO_VALUES = np.zeros(0, np.int32), np.zeros(0)


def indptr_of(counts: Any) -> Ints:
    """Where the rows of users with so many rows each begin and end."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


# random draws, seen in the order in which a pass of SGD visits its rows


def visited(counts: Any, rng: Any) -> Ints:
    """The rows in the order of their visits.

    Row r compares the items 2r and 2r + 1, both at 1, for users at 0: so users stay there and items
    only shrink, by a step that falls with each update and so tells its number.
    """
    n = int(np.sum(counts))
    users, items = np.zeros((len(counts), 4)), np.ones((2 * n, 4))
    better, worse = np.arange(2 * n, dtype=np.int32).reshape(n, 2).T.copy()
    shrinks = np.zeros(len(counts)), np.full(2 * n, 0.5)
    sgd.serial_pass(margins.LOGISTIC, indptr_of(counts), better, worse, users, items, *shrinks, 1.0, 1.0, 0, rng)
    updates = np.rint(0.5 / (1 - items[::2, 0]) - 1).astype(int)
    np.testing.assert_array_equal(np.sort(updates), np.arange(n))
    return np.argsort(updates)


class Words:
    """The 32-bit words of a PCG64, low half first, and what is drawn with them."""

    def __init__(self, seed: int) -> None:
        raw = np.random.PCG64(seed).random_raw(5000)
        self.left = iter(np.stack([raw & 0xFFFFFFFF, raw >> 32], axis=1).ravel().tolist())

    def below(self, n: int) -> int:
        """An even draw from 0 .. n-1 (Lemire 2019)."""
        while True:
            high, low = divmod(next(self.left) * n, 2**32)
            if low >= 2**32 % n:
                return high

    def shuffled(self, n: int) -> Iterator[int]:
        """0 .. n-1 in random order, each drawn when it is asked for (Fisher and Yates)."""
        order = list(range(n))
        for index in range(n):
            drawn = index + self.below(n - index)
            order[index], order[drawn] = order[drawn], order[index]
            yield order[index]

    def visited(self, counts: Any) -> list[int]:
        """Users in random order, and each one's rows in random order."""
        return [
            indptr_of(counts)[user] + row for user in self.shuffled(len(counts)) for row in self.shuffled(counts[user])
        ]


def test_the_stream_of_draws_is_golden():
    words, sizes = Words(2024), (2, 3, 10, 100, 1000, 10**6, 2**31, 2**32 - 1)
    assert [words.below(n) for n in sizes] == [0, 2, 0, 21, 317, 309452, 1951374834, 3433680738]
    assert list(Words(2024).shuffled(10)) == [2, 7, 0, 4, 5, 6, 9, 3, 1, 8]
    assert visited([10], np.random.Generator(np.random.PCG64(2024))).tolist() == [6, 1, 3, 5, 2, 9, 4, 0, 7, 8]


@pytest.mark.parametrize("counts", [[1], [10], [1] * 10, [3, 0, 5, 1], [100] * 40])
def test_a_pass_draws_its_order_from_the_stream(counts):
    assert visited(counts, np.random.Generator(np.random.PCG64(7))).tolist() == Words(7).visited(counts)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_every_order_is_as_likely_as_any_other(n):
    order = visited([n] * 24_000, np.random.default_rng(0)).reshape(-1, n) % n
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
        ([9, 0, 2**31, 0, 9], [1, 0, 2]),  # 2^32 mod 3 = 1 word of the 2^32 is one too many for three
        ([9, 0, 0, 0, 1, 0, 9], [0, 1, 2]),
        ([9, 2**32 - 1, 2**32 - 1, 9], [2, 0, 1]),
    ],
)
def test_the_words_that_would_make_a_draw_uneven_are_rejected(words, order):
    assert visited([3], scripted(words)).tolist() == order
    assert words == []


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
    expected = [strictly_above(values[a:b]).sum() for a, b in pairwise(indptr)]
    np.testing.assert_array_equal(pairs.count(indptr, values), expected)


@pytest.mark.parametrize("levels", [1, 2, 5, 1000])
def test_sorting_is_stable(levels):
    """A pair is wrong where scores exchange it: an unstable sort by truth would invent exchanges."""
    indptr, truth = ragged(200, levels)
    scores = np.random.default_rng(1).integers(levels, size=len(truth)).astype(float)
    request = np.array([metrics.PAIRWISE_ERROR], np.int32), np.zeros(1, np.int32), np.zeros(1)
    (found,) = metrics.per_user(indptr, truth, scores, *request, np.ones(201), 1)
    for user, (first, end) in enumerate(pairwise(indptr)):
        above, score = strictly_above(truth[first:end]), scores[first:end]
        wrong = (above & (score[:, None] < score)).sum() + 0.5 * (above & (score[:, None] == score)).sum()
        expected = wrong / above.sum() if above.any() else np.nan
        np.testing.assert_allclose(found[user], expected, rtol=1e-14)


def list_pairs(values: list[float], limit: int, users: int, seed: int = 0) -> Any:
    """The listed pairs of `users` users who all rate alike: users x (pairs x (better, worse))."""
    indptr = indptr_of([len(values)] * users)
    items, all_values = np.tile(np.arange(len(values), dtype=np.int32), users), np.tile(values, users)
    counts = pairs.count(indptr, all_values)
    kept = np.minimum(counts, limit)
    rng = np.random.default_rng(seed)
    columns = pairs.list_pairs(indptr, items, all_values, counts, indptr_of(kept), rng)
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
    np.testing.assert_allclose(gram.linear(x, 2), x @ x.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 300])
@pytest.mark.parametrize("width", [0.3, 2.0, 50.0])
def test_the_gaussian_kernel_is_that_of_scikit_learn(n, width):
    products = gram.linear(features(n), 1)
    gram.gaussian(products, width, 2)
    np.testing.assert_allclose(products, rbf_kernel(features(n), gamma=1 / (2 * width**2)), rtol=1e-11, atol=1e-12)
    assert (np.diagonal(products) == 1).all() and products.max() <= 1


@pytest.mark.parametrize("threads", [2, 3])
def test_kernel_matrices_are_the_same_bytes_on_any_number_of_threads(threads):
    one, many = gram.linear(features(500, 40), 1), gram.linear(features(500, 40), threads)
    assert one.tobytes() == many.tobytes()
    gram.gaussian(one, 5.0, 1)
    gram.gaussian(many, 5.0, threads)
    assert one.tobytes() == many.tobytes()


def test_an_expansion_is_a_sum_over_the_users_items():
    matrix, rng = gram.linear(features(9), 1), np.random.default_rng(0)
    indptr, items = indptr_of([2, 0, 3]), np.array([0, 4, 1, 5, 8], np.int32)
    coefficients, offsets, out = rng.standard_normal(5), rng.standard_normal(3), np.empty(27)
    users, asked = (ids.ravel().astype(np.int32) for ids in np.indices((3, 9)))
    gram.expand(matrix, indptr, items, coefficients, offsets, users, asked, rng.permutation(27), out)
    dense = np.zeros((3, 9))
    dense[np.repeat(np.arange(3), [2, 0, 3]), items] = coefficients
    np.testing.assert_allclose(out, (dense @ matrix + offsets[:, None]).ravel(), rtol=1e-12, atol=1e-12)


# empty input


@pytest.mark.parametrize("users", [0, 1, 3])
def test_users_without_ratings_have_no_pairs(users):
    indptr = indptr_of([0] * users)
    counts = pairs.count(indptr, NO_VALUES)
    assert counts.tolist() == [0] * users
    better, worse = pairs.list_pairs(indptr, NO_IDS, NO_VALUES, counts, indptr, np.random.default_rng(0))
    assert len(better) == len(worse) == 0


@pytest.mark.parametrize("users", [0, 1, 3])
@pytest.mark.parametrize("wanted", [0, 6])
def test_metrics_without_users_or_ratings_or_metrics_are_empty(users, wanted):
    request = np.arange(wanted, dtype=np.int32), np.zeros(wanted, np.int32), np.zeros(wanted)
    values = metrics.per_user(indptr_of([0] * users), NO_VALUES, NO_VALUES, *request, np.ones(1), 2)
    assert values.shape == (wanted, users)
    assert np.isnan(values).all()


def test_no_metric_of_users_with_ratings_is_no_row():
    nothing = NO_IDS, NO_IDS, NO_VALUES
    assert metrics.per_user(indptr_of([2]), np.array([1.0, 2.0]), np.zeros(2), *nothing, np.ones(3), 2).shape == (0, 1)


@pytest.mark.parametrize("solve", [mprank.dual, mprank.primal])
@pytest.mark.parametrize("users", [0, 3])
def test_no_user_to_solve_for_is_no_failure(solve, users):
    coefficients = np.zeros((users, 2)) if solve is mprank.primal else NO_VALUES
    matrix, offsets = np.ones((2, 2)), np.full(users, 7.0)
    assert (
        solve(matrix, indptr_of([0] * users), NO_IDS, NO_VALUES, NO_IDS, np.ones(users), coefficients, offsets, 2) == -1
    )
    assert (offsets == 7).all() and not coefficients.any()


def test_a_pass_without_users_moves_nothing_and_loses_nothing():
    rows, items, zeros = (indptr_of([]), NO_IDS, NO_IDS), np.ones((2, 4)), np.zeros(2)
    users = np.ones((0, 4))
    sgd.serial_pass(margins.LOGISTIC, *rows, users, items, NO_VALUES, zeros, 1.0, 0.0, 0, np.random.default_rng(0))
    margins.losses(margins.LOGISTIC, *rows, users, items, NO_VALUES.copy(), 2)
    assert (items == 1).all()


def test_users_without_comparisons_are_not_moved_and_lose_nothing():
    rows = indptr_of([0, 1, 0]), np.array([0], np.int32), np.array([1], np.int32)
    users, items, losses = np.ones((3, 4)), np.eye(2, 4), np.ones(3)
    shrinks = np.ones(3), np.ones(2)
    sgd.serial_pass(margins.LOGISTIC, *rows, users, items, *shrinks, 0.1, 0.0, 0, np.random.default_rng(0))
    margins.losses(margins.LOGISTIC, *rows, users, items, losses, 2)
    assert (users[[0, 2]] == 1).all() and not (users[1] == 1).any()
    assert (losses[[0, 2]] == 0).all() and losses[1] > 0


def test_items_that_never_met_have_no_loss_and_no_gradient():
    rows = indptr_of([1, 0, 1]), np.array([2, 0], np.int32)
    outs, curvature, wins = np.ones((3, 3)), np.zeros(2), np.array([2.0, 1.0])
    global_ranking.sweep(global_ranking.LOGISTIC, *rows, wins, wins[::-1].copy(), np.zeros(3), *outs, curvature, 2)
    assert not outs[:, 1].any() and outs[1:, [0, 2]].all() and outs[0, 0] > 0
    global_ranking.curvature_times(*rows, curvature, np.arange(3.0), outs[0], 2)
    assert outs[0, 1] == 0 and outs[0, [0, 2]].all()


def test_kernel_matrices_without_items_or_features_are_empty_or_zero():
    assert gram.linear(np.zeros((0, 3)), 2).shape == (0, 0)
    assert gram.linear(np.zeros((3, 0)), 2).tolist() == [[0] * 3] * 3
    gram.gaussian(np.zeros((0, 0)), 1.0, 2)
    out = np.empty(0)
    gram.expand(
        np.ones((1, 1)), indptr_of([0]), NO_IDS, NO_VALUES, np.zeros(1), NO_IDS, NO_IDS, NO_IDS.astype(np.int64), out
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
