"""Projections onto orders compared with three other libraries, on orders, ties, weights and graphs from hypothesis."""

import re
from itertools import pairwise

import clarabel
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, reject
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression
from sklearn.isotonic import IsotonicRegression

from rankbench.core.errors import UserError
from rankbench.kernels.methods import isotonic as kernel
from rankbench.kernels.methods import partial_order as dag
from rankbench.methods.isotonic import Blocks, OrderGraphs, project_blocks, project_dag, project_total

FLOATS = st.floats(-50, 50, allow_nan=False)
EPS = st.sampled_from([1e-3, 0.5, 1.0, 3.0])


def quadratic_program(x, edges, eps, weights=None):
    """The squared distance of the nearest point by somebody else's interior points: a dual and a primal value.

    It is asked for the way from x with the largest violation as the unit, since its tolerances are absolute.
    Where it does not reach a tolerance it stops far away, and a wider one is asked for.
    """
    n, m = len(x), len(edges)
    missing = eps - (x[edges[:, 1]] - x[edges[:, 0]])
    unit = max(missing.max(initial=0.0), 0.0)
    if unit == 0.0:
        return 0.0, 0.0
    signs, rows = np.repeat([1.0, -1.0], m), np.tile(np.arange(m), 2)
    order = scipy.sparse.csc_matrix((signs, (rows, edges.T.ravel())), shape=(m, n))
    quadratic = scipy.sparse.diags(np.ones(n) if weights is None else weights, format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for tolerance in (1e-12, 1e-11, 1e-10, 1e-9, 1e-8):
        settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = tolerance
        cone = [clarabel.NonnegativeConeT(m)]
        solved = clarabel.DefaultSolver(quadratic, np.zeros(n), order, -missing / unit, cone, settings).solve()
        if str(solved.status) == "Solved":
            return solved.obj_val_dual * unit**2, solved.obj_val * unit**2
    return reject()  # the oracle reaches no tolerance here; hypothesis complains if that happens often


def assert_nearest(z, x, edges, eps, weights=None):
    """As far as the oracle can tell, and to a relative 1e-8 where it can tell that."""
    assert (z[edges[:, 1]] - z[edges[:, 0]] >= eps - 1e-9).all()
    low, high = quadratic_program(x, edges, eps, weights)
    assert low * (1 - 1e-8) - 1e-15 <= distance(z, x, weights) <= high * (1 + 1e-8) + 1e-15


def normal(random, n):
    """Random normal numbers; `random.gauss` of hypothesis may give 1e308."""
    return np.random.default_rng(random.getrandbits(32)).normal(0, 5, n)


def distance(z, x, weights=None):
    return 0.5 * float((np.square(z - x) * (1 if weights is None else weights)).sum())


def all_pairs(y):
    """Every (lower, higher) pair of the ratings."""
    return np.argwhere(y[:, None] < y[None, :])


@st.composite
def graphs(draw):
    """A random partial order under random names, with repeated edges."""
    n = draw(st.integers(2, 12))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] != pair[1])
    edges = np.sort(np.array(draw(st.lists(pairs, min_size=1, max_size=30))), axis=1)
    names = np.array(draw(st.permutations(range(n))))
    return np.array(draw(st.lists(FLOATS, min_size=n, max_size=n))), names[edges]


@st.composite
def rated(draw):
    """Values, ratings with ties, weights."""
    n = draw(st.integers(1, 15))
    x, y = (draw(st.lists(strategy, min_size=n, max_size=n)) for strategy in (FLOATS, st.integers(1, 4)))
    weights = draw(st.lists(st.floats(0.1, 10), min_size=n, max_size=n))
    return np.array(x), np.array(y, float), np.array(weights)


# ---- total orders ----


@given(rated(), EPS)
def test_total_orders_agree_with_scipy_and_scikit_learn(problem, eps):
    x, _, weights = problem
    margins = eps * np.arange(len(x))
    expected = isotonic_regression(x - margins, weights=weights).x + margins
    np.testing.assert_allclose(project_total(x, eps, weights=weights), expected, rtol=1e-9, atol=1e-9)
    other = IsotonicRegression().fit_transform(np.arange(len(x)), x - margins, sample_weight=weights) + margins
    np.testing.assert_allclose(project_total(x, eps, weights=weights), other, rtol=1e-6, atol=1e-6)
    plain = isotonic_regression(x - margins).x + margins
    np.testing.assert_allclose(project_total(x, eps), plain, rtol=1e-9, atol=1e-9)


def test_what_is_in_order_already_stays_as_it_is():
    x = np.array([-3.0, 0.0, 1.5, 9.0])
    assert project_total(x, 1.5).tolist() == x.tolist()


# ---- blocks ----


@given(rated(), EPS)
def test_blocks_agree_with_the_quadratic_program(problem, eps):
    x, y, weights = problem
    edges = all_pairs(y)
    if len(edges) == 0:
        assert project_blocks(x, y, eps).tolist() == x.tolist()
        return
    for masses in (None, weights):
        assert_nearest(project_blocks(x, y, eps, weights=masses), x, edges, eps, masses)


def test_two_blocks_by_hand():
    z = project_blocks(np.array([3.0, 0.0, 1.0]), np.array([1.0, 1.0, 2.0]), 1.0)
    np.testing.assert_allclose(z, [1.5, 0.0, 2.5])  # 3 and 1 meet half way, a margin apart; 0 is free


def test_in_place_gives_the_same_bits():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(200), rng.integers(1, 6, 200).astype(float)
    expected = project_blocks(x, y)
    found = project_blocks(x, y, out=x)
    assert found is x
    assert found.tobytes() == expected.tobytes()


@st.composite
def large_blocks(draw):
    """Values, of which many are equal, and ratings of few levels, so that a block has eight rows or more on average."""
    levels = draw(st.integers(1, 5))
    n = draw(st.integers(8 * levels, 12 * levels + 5))
    values = draw(st.sampled_from([FLOATS, st.integers(-3, 3).map(float), st.just(0.0)]))
    y = draw(st.lists(st.integers(1, levels), min_size=n, max_size=n))
    return np.array(draw(st.lists(values, min_size=n, max_size=n))), np.array(y, float)


@given(large_blocks(), EPS)
def test_large_blocks_agree_with_scipy(problem, eps):
    x, y = problem
    order, depth = np.lexsort((x, y)), np.unique(y, return_inverse=True)[1]
    expected = np.empty_like(x)
    expected[order] = isotonic_regression((x - eps * depth)[order]).x
    expected += eps * depth
    np.testing.assert_allclose(project_blocks(x, y, eps), expected, rtol=1e-9, atol=1e-9)


@given(large_blocks(), EPS, st.randoms(use_true_random=False))
def test_large_blocks_have_the_same_bits_from_any_start_and_twice(problem, eps, random):
    x, y = problem
    blocks = Blocks.of(np.array([0, len(x)]), y)
    fresh = blocks.project(x, eps)
    assert blocks.project(x, eps).tobytes() == fresh.tobytes()
    blocks.project(normal(random, len(x)), eps)
    assert blocks.project(x, eps).tobytes() == fresh.tobytes()
    assert blocks.way(x, eps).tobytes() == (fresh - x).tobytes()


def test_blocks_are_large_from_eight_rows_on_average():
    y = np.concatenate([np.repeat([1.0, 2.0], 8), np.repeat([1.0, 2.0], [8, 7]), np.full(8, 3.0), np.full(9, 3.0)])
    blocks = Blocks.of(np.array([0, 16, 31, 39, 39, 48]), y)
    indptr, ends = blocks._large()
    assert indptr.tolist() == [0, 2, 2, 3, 3, 4] and ends.tolist() == [8, 16, 8, 9]
    x = np.random.default_rng(0).standard_normal(48)
    alone = [project_blocks(x[a:b], y[a:b]) for a, b in pairwise(blocks.indptr) if b > a]
    assert blocks.project(x).tobytes() == np.concatenate(alone).tobytes()


def test_users_with_large_blocks_stand_beside_users_with_small_ones_and_none():
    rng = np.random.default_rng(5)
    sizes = [0, 40, 3, 0, 9, 60, 1, 0]
    y = np.concatenate([rng.integers(1, 1 + (2 if n >= 40 else max(n, 1)), n) for n in sizes]).astype(float)
    x, indptr = rng.standard_normal(len(y)), np.concatenate([[0], np.cumsum(sizes)])
    alone = [project_blocks(x[a:b], y[a:b]) for a, b in pairwise(indptr) if b > a]
    for threads in (1, 3):
        assert Blocks.of(indptr, y).project(x, threads=threads).tobytes() == np.concatenate(alone).tobytes()


def strict(sizes, seed, slope):
    """Users of these sizes with ratings of which no two are equal, and values that ascend by `slope` on average."""
    rng, indptr = np.random.default_rng(seed), np.concatenate([[0], np.cumsum(sizes)])
    y = rng.permutation(indptr[-1]).astype(float)
    x, weights = rng.standard_normal(len(y)), rng.uniform(0.1, 10, len(y))
    for a, b in pairwise(indptr):
        x[a:b] += slope * y[a:b].argsort().argsort()
    return indptr, y, x, weights


@pytest.mark.parametrize("slope", [-1.0, 0.9, 1.0, 1.5, 9.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_users_side_by_side_have_the_bits_of_each_alone(slope, weighted):
    sizes = [40, 40, 40, 40, 0, 1, 30, 2, 70, 1, 1, 1, 1, 35, 20, 1024, 50, 3000, 60]
    indptr, y, x, masses = strict(sizes, 3, slope)
    weights = masses if weighted else None
    alone = [
        project_blocks(x[a:b], y[a:b], weights=masses[a:b] if weighted else None) for a, b in pairwise(indptr) if b > a
    ]
    for threads in (1, 3):
        found = Blocks.of(indptr, y).project(x, weights=weights, threads=threads)
        assert found.tobytes() == np.concatenate(alone).tobytes()


def test_each_users_way_is_the_projection_minus_x():
    indptr, y, x, _ = strict([40, 0, 30, 50, 1, 20, 60, 45, 10], 8, 1.0)
    blocks = Blocks.of(indptr, y)
    assert blocks.way(x, threads=2).tobytes() == (blocks.project(x) - x).tobytes()


@pytest.mark.parametrize("n", [3, 30])
def test_equal_means_stay_apart(n):
    """Pooled, three times 0.1 would be 0.30000000000000004 / 3."""
    indptr, y = np.arange(6) * n, np.tile(np.arange(n, dtype=float), 5)
    for users in (1, 5):
        x = np.full(users * n, 0.1)
        assert Blocks.of(indptr[: users + 1], y[: len(x)]).project(x, 1e-300).tolist() == x.tolist()


@pytest.mark.parametrize("n", [1024, 1025, 4096, 4097, 9001])
@pytest.mark.parametrize("slope", [-1.0, 0.0, 0.99, 1.0, 1.5, 3.0, 9.0])
def test_long_vectors_agree_with_scipy(n, slope):
    _, y, x, weights = strict([n], n, slope)
    for masses in (None, weights):
        order, expected = y.argsort(), np.empty(n)
        margins = np.arange(n)
        known = None if masses is None else masses[order]
        expected[order] = isotonic_regression(x[order] - margins, weights=known).x + margins
        np.testing.assert_allclose(project_blocks(x, y, weights=masses), expected, rtol=1e-12, atol=1e-10)


def test_rows_that_are_pools_by_themselves_keep_their_bits_in_long_vectors():
    x = np.random.default_rng(0).standard_normal(5000) + 9.0 * np.arange(5000)
    x[4000] = x[3999]
    found = project_total(x)
    assert np.flatnonzero(found != x).tolist() == [3999, 4000]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"depth": np.zeros(3, np.int32)}, "there are 4 rows in order but 3 depths"),
        ({"block_indptr": np.array([0, 1, 1])}, "blocks are of 2 users but the rows of 1"),
        ({"borders": np.zeros((2, 3))}, "borders must have 2 rows of 1 blocks"),
    ],
)
def test_the_kernel_refuses_blocks_that_do_not_fit_together(changed, message):
    arrays = {
        "indptr": np.array([0, 4]),
        "order": np.arange(4, dtype=np.int32),
        "depth": np.zeros(4, np.int32),
        "block_indptr": np.array([0, 1]),
        "block_ends": np.array([4], np.int32),
        "borders": np.zeros((2, 1)),
    }
    with pytest.raises(ValueError, match=message):
        kernel.Levels(**arrays | changed)


@given(rated(), st.randoms(use_true_random=False))
def test_earlier_projections_leave_no_trace(problem, random):
    x, y, weights = problem
    blocks = Blocks.of(np.array([0, len(x)]), y)
    blocks.project(normal(random, len(x)))
    assert blocks.project(x).tobytes() == project_blocks(x, y).tobytes()
    alone = project_blocks(x, y, weights=weights)
    np.testing.assert_allclose(blocks.project(x, weights=weights), alone, rtol=1e-12, atol=1e-12)


def test_users_without_order_keep_their_values_to_the_bit():
    x = np.random.default_rng(0).standard_normal(50)
    x[10:20] = 0.1
    assert project_blocks(x, np.ones(50)).tobytes() == x.tobytes()


# ---- partial orders ----


def test_the_papers_recipe_is_not_the_projection():
    """a -> b -> c and d -> c with eps 1: x violates nothing, so nothing may move."""
    edges = np.array([[0, 1], [1, 2], [3, 2]])
    found = project_dag(np.array([0.0, 1.0, 2.0, 1.0]), edges)
    assert found.z.tolist() == [0.0, 1.0, 2.0, 1.0]
    assert found.gap == 0.0


@given(graphs(), EPS)
def test_partial_orders_agree_with_the_quadratic_program(problem, eps):
    x, edges = problem
    found = project_dag(x, edges, eps)
    assert_nearest(found.z, x, edges, eps)
    assert 0 <= found.gap <= 1e-9 * distance(found.z, x) + 1e-13


@given(graphs(), EPS, st.randoms(use_true_random=False))
def test_weighted_partial_orders_agree_with_the_quadratic_program(problem, eps, random):
    x, edges = problem
    weights = np.array([random.uniform(0.1, 10) for _ in x])
    found = project_dag(x, edges, eps, weights=weights)
    assert_nearest(found.z, x, edges, eps, weights)
    assert 0 <= found.gap <= 1e-9 * distance(found.z, x, weights) + 1e-12


@given(graphs(), EPS, st.randoms(use_true_random=False))
def test_a_warm_start_ends_at_the_same_point(problem, eps, random):
    x, edges = problem
    earlier = project_dag(x + normal(random, len(x)), edges, eps)
    warm, cold = project_dag(x, edges, eps, duals=earlier.duals), project_dag(x, edges, eps)
    np.testing.assert_allclose(warm.z, cold.z, rtol=1e-9, atol=1e-9)


@given(rated(), EPS)
def test_a_chain_is_a_total_order_and_blocks_are_a_graph(problem, eps):
    x, y, _ = problem
    chain = np.column_stack([np.arange(len(x) - 1), np.arange(1, len(x))])
    np.testing.assert_allclose(project_dag(x, chain, eps).z, project_total(x, eps), rtol=1e-9, atol=1e-9)
    by_graph = project_dag(x, all_pairs(y), eps).z
    np.testing.assert_allclose(by_graph, project_blocks(x, y, eps), rtol=1e-9, atol=1e-9)


def test_duals_that_make_a_circle_of_edges_are_no_trouble():
    """Warm starts come from the caller: 0-1, 0-2, 1-3, 2-3 all positive hold one edge too many."""
    edges = np.array([[0, 1], [0, 2], [1, 3], [2, 3]])
    x = np.array([5.0, 1.0, 2.0, -4.0])
    warm = project_dag(x, edges, duals=np.full(4, 3.0))
    np.testing.assert_allclose(warm.z, project_dag(x, edges).z, atol=1e-12)
    assert warm.gap <= 1e-12


def test_the_reduction_drops_what_paths_already_say():
    edges = np.array([[0, 1], [1, 2], [0, 2], [0, 2]])
    orders = OrderGraphs.of(np.array([0, 3]), np.array([0, 4]), edges[:, 0], edges[:, 1])
    assert orders.n_edges == 2


def test_a_large_partial_order_is_exact():
    rng = np.random.default_rng(0)
    ends = np.sort(rng.integers(300, size=(3000, 2)), axis=1)
    edges = rng.permutation(300)[ends[ends[:, 0] != ends[:, 1]]]
    x = 10 * rng.standard_normal(300)
    found = project_dag(x, edges)
    assert found.gap <= 1e-11 * distance(found.z, x)
    assert_nearest(found.z, x, edges, 1.0)


# ---- many users at once ----


@pytest.fixture
def batch():
    """Users of all lengths, an empty one among them."""
    rng = np.random.default_rng(1)
    counts = np.array([5, 0, 1, 40, 200, 3, 17])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return indptr, rng.standard_normal(indptr[-1]), rng.integers(1, 6, indptr[-1]).astype(float)


def test_a_batch_of_blocks_is_each_user_alone(batch):
    indptr, x, y = batch
    alone = [project_blocks(x[a:b], y[a:b]) for a, b in pairwise(indptr)]
    together = [Blocks.of(indptr, y).project(x, threads=threads) for threads in (1, 2, 3)]
    assert together[0].tobytes() == np.concatenate(alone).tobytes()
    assert together[0].tobytes() == together[1].tobytes() == together[2].tobytes()


def test_a_batch_of_partial_orders_is_each_user_alone(batch):
    indptr, x, y = batch
    edges = [all_pairs(y[a:b])[::7] for a, b in pairwise(indptr)]
    edge_indptr = np.concatenate([[0], np.cumsum([len(one) for one in edges])])
    orders = OrderGraphs.of(indptr, edge_indptr, *np.concatenate(edges).T)
    alone = [project_dag(x[a:b], one).z for (a, b), one in zip(pairwise(indptr), edges, strict=True)]
    results = [orders.project(x, threads=threads) for threads in (1, 2, 3)]
    assert results[0][0].tobytes() == np.concatenate(alone).tobytes()
    assert all(z.tobytes() == results[0][0].tobytes() for z, _ in results)
    assert (results[0][1] <= 1e-11 * (1 + distance(results[0][0], x))).all()


def test_a_user_without_edges_is_free():
    x = np.array([3.0, 1.0, 2.0])
    orders = OrderGraphs.of(np.array([0, 3]), np.array([0, 0]), np.empty(0, int), np.empty(0, int))
    assert orders.project(x)[0].tolist() == x.tolist()
    assert project_dag(x, np.empty((0, 2), int)).z.tolist() == x.tolist()


# ---- bad input ----


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 1], [1, 2], [2, 0]], "the order of user 0 contains a cycle"),
        ([[1, 1]], "an edge from 1 to itself"),
        ([[0, 3]], "an edge at 3: nodes run from 0 to 2"),
        ([[-1, 2]], "an edge at -1"),
        ([[0.5, 2.0]], "not float64"),
    ],
)
def test_bad_edges_are_named(edges, message):
    with pytest.raises(UserError, match=message):
        project_dag(np.zeros(3), np.array(edges))


def test_the_circle_is_named_node_by_node():
    with pytest.raises(UserError, match=r"cycle: (3 < 1 < 4 < 3|1 < 4 < 3 < 1|4 < 3 < 1 < 4)"):
        project_dag(np.zeros(5), np.array([[3, 1], [1, 4], [4, 3], [0, 2]]))


@pytest.mark.parametrize("eps", [0.0, -1.0, float("nan")])
def test_a_margin_must_be_positive(eps):
    with pytest.raises(UserError, match=r"eps=.* is out of range"):
        project_total(np.zeros(3), eps)


@pytest.mark.parametrize("value", [1e308, -1e31])
def test_numbers_that_would_overflow_are_refused(value):
    edges = np.array([[0, 1]])
    with pytest.raises(UserError, match=rf"x holds {re.escape(f'{value:g}')}: must be within 1e\+30, scale it"):
        project_dag(np.array([0.0, value]), edges)
    for eps in (np.inf, 1e31):
        with pytest.raises(UserError, match=r"eps=.* is out of range: must be above 0 and at most 1e\+30"):
            project_dag(np.zeros(2), edges, eps)
    for weight in (1e-300, 1e31):
        with pytest.raises(UserError, match=r"weight .* is out of range: must be above 0, from 1e-30 to 1e\+30"):
            project_dag(np.zeros(2), edges, weights=np.array([1.0, weight]))


@pytest.mark.parametrize("value", [1e30, -1e30])
def test_the_largest_numbers_have_finite_multipliers(value):
    found = project_dag(np.array([value, -value]), np.array([[0, 1]]))
    assert np.isfinite([*found.z, *found.duals, found.gap]).all()
    assert found.z[0] <= found.z[1]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_must_be_finite(value):
    with pytest.raises(UserError, match=r"x\[1\] is (nan|-?inf): must be finite"):
        project_total(np.array([0.0, value]))


def test_lengths_weights_and_targets_are_checked():
    with pytest.raises(UserError, match="y has shape"):
        project_blocks(np.zeros(3), np.zeros(2))
    with pytest.raises(UserError, match="weight 0 is out of range"):
        project_total(np.zeros(2), weights=np.array([1.0, 0.0]))
    with pytest.raises(UserError, match="out must be a contiguous vector"):
        project_total(np.zeros(2), out=np.zeros(2, np.float32))


@pytest.mark.parametrize("seed", range(5))
def test_a_kernel_whose_numbers_overflow_ends_and_says_that_its_gap_is_infinite(seed):
    rng, n = np.random.default_rng(seed), 40
    edges = np.sort(rng.integers(0, n, (200, 2)), axis=1)
    edges = edges[edges[:, 0] < edges[:, 1]]
    orders = OrderGraphs.of(np.array([0, n]), np.array([0, len(edges)]), edges[:, 0], edges[:, 1])
    x, weights, out = rng.standard_normal(n), rng.uniform(0.5, 2, n), np.empty(n)
    weights[::3] = 1e308  # which the functions of rankbench.methods.isotonic refuse
    duals = np.zeros(orders.n_edges)
    gaps = dag.project(graphs=orders.graphs, x=x, weights=weights, eps=1.0, duals=duals, out=out, threads=1)
    assert gaps.tolist() == [np.inf]


def test_the_kernel_refuses_weights_below_zero():
    """The mean of such a pool may be below that of every pool before it, even of the one that ends the search."""
    levels = Blocks.of(np.array([0, 3]), np.array([1.0, 2.0, 3.0])).levels
    call = {"levels": levels, "x": np.zeros(3), "eps": 0.0, "out": np.empty(3), "threads": 1}
    with pytest.raises(ValueError, match="weights must not be below zero"):
        kernel.project(weights=np.array([1.0, -5e-324, 1.0]), **call)
    kernel.project(weights=np.array([1.0, 0.0, 1.0]), **call)
