"""Sparse plus low-rank matrices compared with SciPy's sparse and NumPy's dense ones."""

import tracemalloc
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pytest
import scipy.sparse

from rankbench.core.contract import Floats
from rankbench.methods import completion as methods
from rankbench.methods.completion import Completion, Descent, LowRankMatrix, Pull, descend, norm
from rankbench.methods.entries import Entries, Sparse

pytestmark = pytest.mark.usefixtures("as_in_the_harness")


@dataclass(frozen=True, eq=False)
class To:
    """The half squared distance from these values."""

    values: Floats

    def pull(self, x):
        return self.values - x

    def measure(self, x):
        way = self.values - x
        return Pull(way, way @ way / 2, way @ self.values)


def problem(rows=40, columns=30, density=0.3, threads=1, seed=0):
    """Which entries are observed, their values, and the same as a matrix of SciPy's."""
    matrix = scipy.sparse.random_array((rows, columns), density=density, rng=seed, format="csr")
    matrix.data -= 0.3
    observed = Entries.of(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), columns, threads)
    return observed, matrix.data, matrix


@pytest.mark.parametrize("width", [1, 7, 8, 21])
def test_products_are_those_of_scipy_with_the_same_bits_on_any_number_of_threads(width):
    rng = np.random.default_rng(0)
    right, left = rng.standard_normal((30, width)), rng.standard_normal((40, width))
    prints = []
    for threads in (1, 2, 3):
        observed, values, matrix = problem(threads=threads)
        sparse = observed.holding(values)
        np.testing.assert_allclose(sparse.times(right), matrix @ right, atol=1e-12)
        np.testing.assert_allclose(sparse.transposed_times(left), matrix.T @ left, atol=1e-12)
        low = LowRankMatrix(left, np.arange(1.0, width + 1), right)
        dense = (left * low.values) @ right.T
        np.testing.assert_allclose(low.at(observed), dense[matrix.nonzero()], atol=1e-10)
        prints.append(
            (sparse.times(right).tobytes(), sparse.transposed_times(left).tobytes(), low.at(observed).tobytes())
        )
    assert prints[0] == prints[1] == prints[2]


@pytest.mark.parametrize("block_bytes", [methods._BLOCK_BYTES, 1000])
@pytest.mark.parametrize("shape", [(40, 30), (30, 40), (1, 30), (40, 1), (2, 50), (200, 300)])
def test_the_norm_is_the_largest_singular_value_and_never_less(monkeypatch, shape, block_bytes):
    monkeypatch.setattr(methods, "_BLOCK_BYTES", block_bytes)
    observed, values, matrix = problem(*shape, density=0.6)
    exact = np.linalg.norm(matrix.toarray(), 2)
    assert exact * (1 - 1e-13) <= norm(observed.holding(values)) <= exact * (1 + 1e-11)


def test_the_norm_of_many_users_and_items_is_bounded_without_their_inner_products(monkeypatch):
    observed, values, matrix = problem(200, 150)
    _, exact, right = np.linalg.svd(matrix.toarray())
    monkeypatch.setattr(methods, "_LARGE", 149)
    monkeypatch.setattr(methods, "_squared", lambda sparse: pytest.fail("the inner products were computed"))
    assert exact[0] * (1 - 1e-13) <= norm(observed.holding(values), near=right[:3].T) <= exact[0] * (1 + 1e-2)


def test_the_norm_is_near_where_the_largest_value_comes_twice_and_the_basis_has_only_one_of_its_vectors(monkeypatch):
    block = np.ones((100, 100)) + 1e-3 * np.random.default_rng(0).standard_normal((100, 100))
    matrix = scipy.sparse.block_array([[block, None], [None, block]], format="csr")
    observed = Entries.of(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), 200, 1)
    monkeypatch.setattr(methods, "_LARGE", 199)
    exact = np.linalg.norm(block, 2)
    assert exact * (1 - 1e-13) <= norm(observed.holding(matrix.data)) <= exact * (1 + 2e-5)


@pytest.mark.parametrize(
    ("shape", "density", "cheap"),
    [((32, 5000), 1e-4, True), ((60, 5000), 1e-3, False), ((60, 5000), 1e-2, True), ((1500, 1600), 0.05, True)],
)
def test_inner_products_are_computed_where_their_cost_is_small_beside_the_entries(shape, density, cheap):
    observed, values, _ = problem(*shape, density=density)
    assert methods._squares_are_cheap(observed.holding(values)) == cheap


def test_inner_products_of_low_rank_matrices():
    rng = np.random.default_rng(0)
    one, other = (LowRankMatrix(*(rng.standard_normal(size) for size in ((40, k), k, (30, k)))) for k in (3, 5))
    dense = [(m.users * m.values) @ m.items.T for m in (one, other)]
    assert one.inner(other) == pytest.approx((dense[0] * dense[1]).sum())


def test_above_the_largest_penalty_nothing_is_left_and_just_below_something():
    observed, values, matrix = problem()
    completion = Completion(observed, To(values))
    edge = completion.largest
    assert edge == pytest.approx(np.linalg.norm(matrix.toarray(), 2))
    above, below = (list(completion.descent(edge * k, np.random.default_rng(0)))[-1] for k in (1.001, 0.999))
    assert (above.matrix.rank, below.matrix.rank) == (0, 1)
    assert completion.gap(edge * 1.001, above) == pytest.approx(0, abs=1e-9)


@pytest.mark.trust
def test_warm_starts_take_fewer_steps_than_cold_ones():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 50))
    seen = rng.random((60, 50)) < 0.3
    matrix = scipy.sparse.csr_array(truth * seen)
    observed = Entries.of(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), 50, 1)
    completion = Completion(observed, To(matrix.data), tolerance=1e-6)
    lams = completion.largest * np.geomspace(0.1, 0.02, 8)
    rng, warm, end = np.random.default_rng(0), [], None
    for lam in lams:
        points = list(completion.descent(lam, rng, end))
        warm.append(len(points))
        end = points[-1]
        assert completion.gap(lam, end) <= 1e-6 * completion.objective(lam, end)
    cold = [len(list(completion.descent(lam, np.random.default_rng(0)))) for lam in lams]
    assert warm[0] == cold[0]  # the first has no warm start
    assert sum(warm) < 0.8 * sum(cold)


def test_the_rank_grows_as_far_as_is_needed_and_no_further_than_allowed():
    observed, values, _ = problem(density=0.9)
    free = list(islice(descend(observed, To(values), 0.05, np.random.default_rng(0)), 60))[-1]
    bound = list(islice(descend(observed, To(values), 0.05, np.random.default_rng(0), most=4), 60))[-1]
    assert free.matrix.rank > 20
    assert bound.matrix.rank == 4


def test_the_momentum_points_uphill_where_the_dense_matrices_say_so(monkeypatch):
    def checked(moved, new, new_now):
        now, before, there = (
            matrix.users * matrix.values @ matrix.items.T for matrix in (moved.now, moved.before, new)
        )
        y = (1 + moved.beta) * now - moved.beta * before
        told = uphill(moved, new, new_now)
        assert told == pytest.approx(((y - there) * (there - now)).sum(), rel=1e-9, abs=1e-9)
        seen.append((moved.beta > 0, told > 0))
        return told

    uphill, seen = methods.Moved.uphill, []
    monkeypatch.setattr(methods.Moved, "uphill", checked)
    observed, values, _ = problem()
    list(islice(descend(observed, To(values), 0.01, np.random.default_rng(0)), 200))
    assert {(False, False), (True, False), (True, True)} <= set(seen)


def test_nothing_as_large_as_users_times_items_is_ever_made():
    """30,000 x 30,000 values would take 7 GB."""
    rng = np.random.default_rng(0)
    cells = np.unique(rng.integers(30_000**2, size=60_000))
    indptr = np.searchsorted(cells // 30_000, np.arange(30_001))
    observed = Entries.of(indptr.astype(np.int64), (cells % 30_000).astype(np.int32), 30_000, 1)
    tracemalloc.start()
    completion = Completion(observed, To(rng.standard_normal(len(cells))))
    point = next(descend(observed, completion.target, 4.0, rng))
    assert 0 < completion.gap(4.0, point) < np.inf
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()


@pytest.mark.trust
def test_a_continuation_ends_at_the_same_optimum():
    observed, values, _ = problem()
    completion = Completion(observed, To(values), tolerance=1e-9)
    lam = 0.03 * completion.largest
    ends = [list(way(lam, np.random.default_rng(0)))[-1] for way in (completion.descent, completion.continuation)]
    cold, continued = (completion.objective(lam, end) for end in ends)
    assert continued == pytest.approx(cold, rel=1e-8)


def test_whether_a_descent_has_converged_is_decided_as_by_the_gap():
    observed, values, _ = problem(80, 60, seed=4)
    for tolerance in (1e-1, 1e-2, 1e-4):
        completion = Completion(observed, To(values), tolerance=tolerance)
        lam = 0.2 * completion.largest
        decided = [
            (
                completion.converged(lam, point),
                replace(completion).gap(lam, point) <= tolerance * completion.objective(lam, point),  # knows no gap yet
            )
            for point in islice(descend(observed, To(values), lam, np.random.default_rng(0)), 40)
        ]
        assert all(one == other for one, other in decided)
        assert {one for one, _ in decided} == {True, False}


@pytest.mark.parametrize(("users", "items"), [(1, 10), (3, 7), (8, 18)])
def test_a_descent_ends_where_few_items_have_entries(users, items):
    rng = np.random.default_rng(0)
    indptr, columns = np.arange(users + 1) * items, np.tile(np.arange(items, dtype=np.int32), users)
    observed, values = Entries.of(indptr, columns, 20, 1), rng.standard_normal(users * items)
    norm_of_all = np.linalg.norm(values.reshape(users, items), 2)
    assert methods._glance(observed.holding(values)) == pytest.approx(norm_of_all, rel=1e-6)
    completion = Completion(observed, To(values))
    assert len(list(islice(completion.descent(0.1 * completion.largest, rng), 200))) < 200


def test_a_check_that_fails_costs_less_than_a_step(monkeypatch):
    observed, values, _ = problem(400, 300, seed=4)
    completion = Completion(observed, To(values), tolerance=1e-6)
    lam = 0.05 * completion.largest
    columns = []
    product = Sparse._product
    monkeypatch.setattr(
        Sparse,
        "_product",
        lambda self, rows, n, dense: (columns.append(dense.shape[1]), product(self, rows, n, dense))[1],
    )
    points = list(islice(descend(observed, To(values), lam, np.random.default_rng(0)), 11))
    steps = sum(columns)
    last_step = sum(columns[-2:])
    columns.clear()
    assert not completion.converged(lam, points[-1])
    assert sum(columns) <= last_step < steps


def test_norms_that_are_known_are_not_computed_again(monkeypatch):
    observed, values, _ = problem()
    completion = Completion(observed, To(values), tolerance=1e-4)
    asked = []
    monkeypatch.setattr(
        "rankbench.methods.completion.norm", lambda *of, **near: asked.append(near) or norm(*of, **near)
    )
    lam = completion.penalty(1.0, 0.1)
    end = list(completion.continuation(lam, np.random.default_rng(0)))[-1]
    so_far = len(asked)
    gaps = [completion.gap(lam, end) for _ in range(2)]
    completion.gap(lam, Descent.zero(observed))
    assert len(asked) == so_far and [near for near in asked if not near] == [{}]  # the largest penalty, once
    assert gaps[0] == gaps[1] == replace(completion).gap(lam, end)
    assert completion.gap(2 * lam, end) != gaps[0]


def test_the_gap_of_zero_is_that_of_the_formula():
    observed, values, matrix = problem()
    completion, lam = Completion(observed, To(values)), 2.0
    scale = lam / np.linalg.norm(matrix.toarray(), 2)  # the best feasible multiple of the pull, which is the values
    assert 0 < scale < 1
    expected = (0.5 - scale + scale**2 / 2) * values @ values
    assert completion.gap(lam, Descent.zero(observed)) == pytest.approx(expected, rel=1e-6)


def test_a_penalty_may_be_a_share_of_the_largest_one():
    observed, values, _ = problem()
    completion = Completion(observed, To(values))
    assert completion.penalty(3.0, None) == 3.0
    assert completion.penalty(3.0, 0.25) == 0.25 * completion.largest


def test_the_largest_singular_value_of_zeros_is_zero():
    entries = Entries.of(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), 2, 1)
    assert norm(entries.holding(np.zeros(3)), np.zeros((2, 1))) == 0.0


def test_a_norm_that_arpack_does_not_find_is_bounded_by_that_of_all_entries(monkeypatch):
    observed, values, matrix = problem(rows=200, columns=150)

    def lost(*arguments, **options):
        raise scipy.sparse.linalg.ArpackNoConvergence("lost", np.array([]), np.array([]))

    monkeypatch.setattr(scipy.sparse.linalg, "eigsh", lost)
    monkeypatch.setattr(methods, "_LARGE", 149)
    largest = np.linalg.norm(matrix.toarray(), 2)
    assert largest <= norm(observed.holding(values)) <= np.sqrt(2) * np.linalg.norm(matrix.toarray())


def test_where_every_entry_is_met_the_gap_is_the_penalty():
    observed, _, _ = problem()
    rng = np.random.default_rng(0)
    (left, _), (right, _) = (np.linalg.qr(rng.standard_normal((size, 2))) for size in (40, 30))
    matrix = LowRankMatrix(left, np.array([3.0, 2.0]), right)
    met = matrix.at(observed)
    assert Completion(observed, To(met)).gap(0.5, Descent(matrix, met)) == 2.5
