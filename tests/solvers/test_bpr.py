"""BPR: uniform negatives, updates along the gradient, and good recommendations."""

from itertools import islice

import numpy as np
import pytest
from scipy.stats import chisquare
from solvers.contract import SolverContract

from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.kernels.methods import negatives as kernel
from rankbench.kernels.methods.pairwise import DescentFactors
from rankbench.kernels.methods.rotation import TaskRows, bucket
from rankbench.kernels.shared.losses import Loss
from rankbench.kernels.shared.rows import Pattern
from rankbench.kernels.solvers import sgd
from rankbench.methods.factors import padded
from rankbench.solvers.bpr import BPR, _Sampler, positives_of


class TestBPR(SolverContract):
    solver = BPR(rank=3, least=1.0, step=0.1)


class TestBPRFromEveryRating(SolverContract):
    solver = BPR(rank=2, parts=3)


class TestBPRInSinglePrecision(SolverContract):
    solver = BPR(rank=3, step=0.1, precision="single")


class TestBPRWithBiases(SolverContract):
    solver = BPR(rank=3, least=1.0, step=0.1, biases=True)


@pytest.mark.trust
class TestBPRWithBiasesInSinglePrecision(SolverContract):
    solver = BPR(rank=2, step=0.1, biases=True, precision="single")


class TestBPRAgainstPopularItems(SolverContract):
    solver = BPR(rank=3, least=1.0, step=0.1, negatives="popular")


class TestBPRByWARP(SolverContract):
    solver = BPR(rank=3, least=1.0, step=0.1, negatives="warp")


@pytest.mark.trust
class TestBPRByWARPInSinglePrecision(SolverContract):
    solver = BPR(rank=3, step=0.1, negatives="warp", biases=True, precision="single")


@pytest.fixture
def ratings() -> Ratings:
    """Two camps of users and two of items; half of what a user would choose is seen, and some of the rest."""
    rng = np.random.default_rng(0)
    liked = (np.arange(80)[:, None] < 40) == (np.arange(60)[None, :] < 30)
    seen = rng.random((80, 60)) < 0.5 * liked + 0.1 * ~liked
    users, items = np.nonzero(seen)
    return Ratings.from_triples(users, items, np.where(liked, 5.0, 1.0)[seen], 80, 60)


def test_single_precision_takes_the_same_steps_in_numbers_of_32_bits(ratings):
    both = [BPR(rank=5, precision=precision) for precision in ("double", "single")]
    steps = [islice(solver.steps(ratings, np.random.default_rng(3)), 4) for solver in both]
    for number, (double, single) in enumerate(zip(*steps, strict=True)):
        for exact, found in ((double.model.users, single.model.users), (double.model.items, single.model.items)):
            np.testing.assert_array_equal(found, found.astype(np.float32))
            np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-5)
            assert (found != exact).any()
        assert single.objective() == pytest.approx(double.objective(), rel=1e-5), number


# negatives


def draws(positives: list[int], n_items: int, times: int) -> np.ndarray:
    """What is drawn for a user with these positives, by users who are all alike."""
    indptr = np.arange(times + 1, dtype=np.int64) * len(positives)
    out = np.empty(times * len(positives), np.int32)
    rows = Pattern(indptr=indptr, columns=np.tile(np.array(positives, np.int32), times))
    kernel.draw_negatives(positives=rows, n_items=n_items, seed=7, out=out, threads=2)
    return out


@pytest.mark.parametrize("positives", [[0], [9], [0, 1, 2], [7, 8, 9], [1, 4, 5, 8], [0, 1, 2, 3, 5, 6, 7, 8, 9]])
def test_every_missing_item_is_as_likely_as_any_other_and_no_positive_is_drawn(positives):
    found, times = np.unique(draws(positives, 10, 4000), return_counts=True)
    assert sorted({*found, *positives}) == list(range(10)) and not set(found) & set(positives)
    assert len(times) == 1 or chisquare(times).pvalue > 0.001


def test_popular_items_are_drawn_as_often_as_they_have_positives():
    counts, times = [1, 2, 5, 10, 0], 3000  # of items 0 to 4; the last item is drawn never
    rest = np.repeat(np.arange(5), np.array(counts) * times)  # users with one positive
    columns = np.concatenate([np.tile([1, 3], times), rest]).astype(np.int32)
    indptr = np.concatenate([np.arange(times) * 2, np.arange(2 * times, len(columns) + 1)])
    out = np.empty(len(columns), np.int32)
    pattern = Pattern(indptr=indptr, columns=columns)
    kernel.draw_negatives(popular=True, positives=pattern, n_items=5, seed=7, out=out, threads=2)
    found = np.bincount(out[: 2 * times], minlength=5)
    assert found[[1, 3, 4]].tolist() == [0, 0, 0]
    # seven of ten draws among all are the user's own, and drawn again
    assert chisquare(found[[0, 2]], 2 * times * np.array([1, 5]) / 6).pvalue > 0.001


def test_where_only_the_users_own_items_are_popular_any_other_item_is_drawn():
    indptr, own = np.arange(0, 4001, 2), np.tile(np.array([0, 2], np.int32), 2000)
    out = np.empty(4000, np.int32)
    pattern = Pattern(indptr=indptr, columns=own)
    kernel.draw_negatives(popular=True, positives=pattern, n_items=4, seed=7, out=out, threads=1)
    assert chisquare(np.bincount(out, minlength=4)[[1, 3]]).pvalue > 0.001


def violators(scores: list[float], positive: int, times: int) -> tuple[np.ndarray, np.ndarray]:
    """What is drawn for so many users with these scores of all items and one positive, and the weights."""
    items = padded(np.array(scores)[:, None])
    factors = DescentFactors(
        users=padded(np.ones((times, 1))),
        items=items,
        user_shrink=np.ones(times),
        item_shrink=np.ones(len(items)),
        step=0.1,
        decay=0.0,
    )
    out, weights = np.full(times, -1, np.int32), np.full(times, -1.0)
    wanted = np.arange(times) % 4 > 0
    kernel.draw_violators(
        positives=Pattern(indptr=np.arange(times + 1), columns=np.full(times, positive, np.int32)),
        factors=factors,
        wanted=wanted.view(np.uint8),
        seed=5,
        out=out,
        weights=weights,
        threads=2,
    )
    assert (out[~wanted] == -1).all() and (weights[~wanted] == -1).all()
    return out[wanted], weights[wanted]


def test_warp_draws_items_that_score_above_the_positive_less_one_and_weighs_by_the_number_of_draws():
    out, weights = violators([0.5, 3.0, 2.5, 1.9, 1.0, 2.1], positive=1, times=8000)
    assert set(out) == {2, 5}  # of five missing items
    assert chisquare(np.bincount(out)[[2, 5]]).pvalue > 0.001
    draws = np.arange(1, 31)
    by_draws = np.log1p(5 / draws) / np.log1p(5)
    places = np.abs(weights[:, None] - by_draws).argmin(axis=1)
    np.testing.assert_allclose(weights, by_draws[places], rtol=1e-12)
    first = (places == 0).mean()  # two of five items are too high
    assert first == pytest.approx(0.4, abs=4 * np.sqrt(0.4 * 0.6 / len(weights)))


def test_warp_gives_no_weight_where_no_item_scores_too_high_and_all_of_it_where_every_one_does():
    assert not violators([0.0, 3.0, 2.0], positive=1, times=100)[1].any()
    out, weights = violators([9.0, 3.0, 2.1], positive=1, times=100)
    assert set(out) == {0, 2} and (weights == 1).all()


def test_a_weight_multiplies_the_slope_and_not_the_shrinkage():
    rng = np.random.default_rng(0)
    first = rng.standard_normal((1, 3)), rng.standard_normal((2, 3))
    found = []
    for weights in (None, np.array([1.0]), np.array([0.25]), np.array([0.0])):
        users, items = (padded(side) for side in first)
        factors = DescentFactors(
            users=users, items=items, user_shrink=np.ones(1), item_shrink=np.ones(2), step=0.1, decay=0.0
        )
        ids = [np.zeros(1, np.int32), np.zeros(1, np.int32), np.ones(1, np.int32)]
        rows = TaskRows(starts=np.array([0, 1]), users=ids[0], better=ids[1], worse=ids[2], weights=weights)
        sgd.rounds_pass(
            descent=sgd.Descent(factors=factors, loss=Loss.LOGISTIC),
            rows=rows,
            round_starts=np.array([0, 1]),
            tasks=np.zeros(1, np.int32),
            updates=np.zeros(1),
            seed=0,
            threads=1,
        )
        found.append(np.vstack([users, items])[:, :3])
    assert found[0].tobytes() == found[1].tobytes()
    shrunk = 0.9 * np.vstack(first)
    np.testing.assert_allclose(found[3], shrunk, rtol=1e-12)
    np.testing.assert_allclose(found[2] - shrunk, 0.25 * (found[0] - shrunk), rtol=1e-10)


def test_warp_visits_every_positive_once_in_a_pass(ratings):
    indptr, items = positives_of(ratings, None)
    sampler = _Sampler("warp", indptr, items, 60, np.random.default_rng(0), 1)
    first = _factors(80, 60)
    pairs = [rows for rows, _ in sampler.of_a_pass(first)]
    groups = np.zeros(80, np.int32), np.zeros(60, np.int32)
    visited = [  # all in one task
        column
        for rows in pairs
        for column in np.stack(bucket(
            comparisons=rows, user_group=groups[0], item_group=groups[1], pair_of=np.zeros((1, 1), np.int32), groups=1
        )[1:3], axis=1).tolist()
    ]  # fmt: skip
    assert len(pairs) == 8 and sorted(visited) == np.stack([ratings.users, items], axis=1).tolist()


def _factors(users: int, items: int) -> DescentFactors:
    """Random factors of these numbers of users and items."""
    rng = np.random.default_rng(0)
    sides = padded(rng.standard_normal((users, 2))), padded(rng.standard_normal((items, 2)))
    shrinks = np.ones(users), np.ones(items)
    return DescentFactors(
        users=sides[0], items=sides[1], user_shrink=shrinks[0], item_shrink=shrinks[1], step=0.1, decay=0.0
    )


def test_what_counts_as_positive(ratings):
    indptr, items = positives_of(ratings, None)
    assert indptr.tolist() == ratings.indptr.tolist() and items.tolist() == ratings.items.tolist()
    indptr, items = positives_of(ratings, 5.0)
    assert len(items) == (ratings.values >= 5).sum()
    for user in range(ratings.n_users):
        rows = slice(ratings.indptr[user], ratings.indptr[user + 1])
        expected = ratings.items[rows][ratings.values[rows] >= 5]
        assert items[indptr[user] : indptr[user + 1]].tolist() == expected.tolist()


def test_who_has_every_item_or_no_positive_ties_them_all_and_who_has_no_rating_scores_nan():
    view = Ratings.from_triples([0, 0, 0, 1, 2], [0, 1, 2, 1, 0], [3, 3, 3, 3, 1], 4, 3)
    model = fit(BPR(rank=2, least=2.0), view, steps=3)
    assert model.score(np.repeat([0, 2], 3), np.tile(np.arange(3), 2)).tolist() == [0] * 6
    assert np.isnan(model.score(np.array([3]), np.array([0]))).all()
    assert np.ptp(model.score(np.repeat(1, 3), np.arange(3))) > 0


# updates


@pytest.mark.parametrize(
    ("loss", "value", "slope"),
    [
        ("squared-hinge", lambda m: max(0, 1 - m) ** 2, lambda m: -2 * max(0, 1 - m)),
        ("smooth-hinge", lambda m: 0.5 - m if m < 0 else max(0, 1 - m) ** 2 / 2, lambda m: -min(1, max(0, 1 - m))),
        ("hinge", lambda m: max(0, 1 - m), lambda m: -1.0 * (m < 1)),
    ],
)
def test_objective_and_updates_are_of_the_loss_that_was_chosen(loss, value, slope):
    view = Ratings.from_triples([0], [0], [1.0], 1, 2)  # one positive, and one item that can be its negative
    steps = BPR(rank=2, lam=0.3, step=0.4, loss=loss).steps(view, np.random.default_rng(1))
    step = next(steps)
    for _ in range(12):
        rows = np.vstack([step.model.users, step.model.items])
        u, v, w = rows
        s = slope(u @ (v - w))
        assert step.objective() == pytest.approx(value(u @ (v - w)) + 0.15 * np.square(rows).sum(), rel=1e-12)
        moved = [u - 0.4 * (s * (v - w) + 0.3 * u), v - 0.4 * (s * u + 0.3 * v), w - 0.4 * (0.3 * w - s * u)]
        step = next(steps)
        np.testing.assert_allclose(np.vstack([step.model.users, step.model.items]), moved, rtol=1e-12)


@pytest.mark.parametrize("how", ["uniform", "popular", "warp"])
def test_steps_get_smaller_with_the_updates_of_all_passes(how):
    view = Ratings.from_triples([0], [0], [1.0], 1, 2)  # one positive, and one item that can be its negative
    steps = BPR(rank=2, lam=0.3, step=0.1, decay=0.5, negatives=how).steps(view, np.random.default_rng(1))
    model = next(steps).model
    for updates in range(4):
        u, (v, w) = model.users[0].copy(), model.items.copy()
        eta, slope = 0.1 / (1 + 0.5 * updates), -1 / (1 + np.exp(u @ (v - w)))
        assert u @ (v - w) < 1  # so that warp takes it, with all of its weight
        moved = [
            u - eta * (slope * (v - w) + 0.3 * u),
            v - eta * (slope * u + 0.3 * v),
            w - eta * (0.3 * w - slope * u),
        ]
        model = next(steps).model
        np.testing.assert_allclose(np.vstack([model.users, model.items]), moved, rtol=1e-12)


def pieces_of(model, rank):
    """U, V and the biases out of the rows (u, 1) and (v, b)."""
    known = model.users[~np.isnan(model.users[:, 0])]
    assert (known[:, rank:] == 1).all() and model.items.shape[1] == rank + 1
    return model.users[:, :rank].copy(), model.items[:, :rank].copy(), model.items[:, rank].copy()


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("rank", [2, 3, 4, 8])  # in rows of four numbers, and of eight
def test_with_biases_an_update_goes_down_the_gradient_of_all_but_the_constant(rank, precision):
    view = Ratings.from_triples([0], [0], [1.0], 9, 2)  # one positive, and one item that can be its negative
    exact = precision == "double"
    solver = BPR(rank=rank, lam=0.3, step=1e-3 if exact else 0.1, biases=True, precision=precision)
    steps = solver.steps(view, np.random.default_rng(3))
    model = next(steps).model
    users, items, biases = pieces_of(model, rank)
    assert (biases == 0).all()
    for _ in range(3):
        x = users[0] @ (items[0] - items[1]) + biases[0] - biases[1]
        slope, sign = -1 / (1 + np.exp(x)), np.array([1.0, -1.0])
        user_slope = slope * (items[0] - items[1]) + 0.3 * users[0]
        item_slope = slope * sign[:, None] * users[0] + 0.3 * items
        bias_slope = slope * sign + 0.3 * biases
        users = users - solver.step * user_slope
        items, biases = items - solver.step * item_slope, biases - solver.step * bias_slope
        found = pieces_of(next(steps).model, rank)
        for piece, expected in zip(found, (users, items, biases), strict=True):
            np.testing.assert_allclose(piece, expected, rtol=1e-12 if exact else 1e-5, atol=1e-14 if exact else 1e-6)


def test_with_biases_the_objective_has_their_penalty_and_none_of_the_constant():
    view = Ratings.from_triples([0, 1], [0, 1], [1.0, 1.0], 2, 2)
    for step in islice(BPR(rank=2, lam=0.5, biases=True).steps(view, np.random.default_rng(0)), 3):
        (u, s), (v, w), (b, c) = pieces_of(step.model, 2)
        size = 2 * (v @ v + w @ w + b * b + c * c) + u @ u + s @ s
        losses = np.logaddexp(0, -u @ (v - w) - b + c) + np.logaddexp(0, -s @ (w - v) + b - c)
        assert step.objective() == pytest.approx(losses + 0.25 * size, rel=1e-12)


def test_biases_tell_users_without_a_positive_what_is_popular():
    users, items = np.nonzero(np.random.default_rng(0).random((60, 20)) < np.linspace(0.9, 0.1, 20))
    values = np.full(len(users), 5.0)
    values[users == 7] = 1.0
    model = fit(BPR(rank=2, least=2.0, biases=True), Ratings.from_triples(users, items, values, 61, 20), steps=30)
    scores = model.score_all(np.array([7, 60]))
    assert np.corrcoef(scores[0], np.arange(20))[0, 1] < -0.9
    assert np.isnan(scores[1]).all()


def test_the_objective_is_the_sum_over_positives_and_negatives_kept_from_the_start():
    view = Ratings.from_triples([0, 1], [0, 1], [1.0, 1.0], 2, 2)
    for _, step in zip(range(3), BPR(rank=2, lam=0.5).steps(view, np.random.default_rng(0)), strict=False):
        (u, s), (v, w) = step.model.users, step.model.items
        size = sum(2 * np.square(row).sum() for row in (v, w)) + np.square(u).sum() + np.square(s).sum()
        losses = np.logaddexp(0, -u @ (v - w)) + np.logaddexp(0, -s @ (w - v))
        assert step.objective() == pytest.approx(losses + 0.25 * size, rel=1e-12)


@pytest.mark.parametrize("negatives", ["uniform", "popular", "warp"])
def test_new_negatives_of_a_pass_leave_those_of_the_objective_as_they_are(ratings, negatives):
    """With steps as short as these only other negatives could change the objective by much."""
    steps = BPR(rank=2, step=1e-12, negatives=negatives).steps(ratings, np.random.default_rng(0))
    values = [step.objective() for step in islice(steps, 4)]
    assert values == pytest.approx([values[0]] * 4, rel=1e-8)


@pytest.mark.trust
@pytest.mark.parametrize(("least", "how"), [(None, "uniform"), (5.0, "uniform"), (5.0, "popular"), (5.0, "warp")])
def test_it_recommends_what_users_would_choose(ratings, least, how):
    model = fit(BPR(rank=3, least=least, step=0.1, negatives=how), ratings, steps=30)
    scores = model.score(*(ids.ravel() for ids in np.indices((80, 60)))).reshape(80, 60)
    seen = np.zeros((80, 60), bool)
    seen[ratings.users, ratings.items] = True
    liked = (np.arange(80)[:, None] < 40) == (np.arange(60)[None, :] < 30)
    correct = [
        np.mean(row[own & ~used][:, None] > row[~own & ~used])
        for row, own, used in zip(scores, liked, seen, strict=True)
    ]
    assert np.mean(correct) > 0.9
