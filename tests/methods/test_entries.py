"""Losses, slopes and products on compared entries, checked against dense matrices."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from rankbench.data.synthetic import BTL
from rankbench.data.views import Comparisons
from rankbench.kernels.methods import entries as kernel
from rankbench.kernels.shared.rows import ComparisonRows, Pattern
from rankbench.methods.entries import ComparedEntries, Entries
from rankbench.methods.losses import CODES

FORMULAS = {
    "logistic": lambda margins: np.logaddexp(0, -margins),
    "squared-hinge": lambda margins: np.maximum(0, 1 - margins) ** 2,
    "smooth-hinge": lambda margins: np.where(margins < 0, 0.5 - margins, np.maximum(0, 1 - margins) ** 2 / 2),
}
ONE = np.zeros(1, np.int32)
each_loss = pytest.mark.parametrize("loss", list(FORMULAS))


@pytest.fixture
def train() -> Comparisons:
    """Comparisons that repeat and contradict each other; user 3 has none, item 8 neither."""
    rng = np.random.default_rng(0)
    users, better = rng.permutation(np.repeat([0, 1, 2, 4], 12)), rng.integers(8, size=48)
    return Comparisons.from_triples(users, better, (better + rng.integers(1, 8, size=48)) % 8, 5, 9)


def users_of(entries: Entries):
    return np.repeat(np.arange(entries.shape[0]), np.diff(entries.indptr))


def test_every_pair_that_is_compared_is_an_entry_once(train):
    entries = ComparedEntries.of(train, 1).entries
    _, _, better, worse = kernel.gather(comparisons=train.rows, n_items=train.n_items)
    named = set(zip(train.users, train.better, strict=True)) | set(zip(train.users, train.worse, strict=True))
    listed = list(zip(users_of(entries), entries.items, strict=True))
    assert len(listed) == len(named) and set(listed) == named
    firsts = np.repeat(entries.indptr[:-1], np.diff(train.indptr))
    np.testing.assert_array_equal(entries.items[firsts + better], train.better)
    np.testing.assert_array_equal(entries.items[firsts + worse], train.worse)
    np.testing.assert_array_equal(entries.seen[0], [0, 1, 2, 4])
    np.testing.assert_array_equal(entries.seen[1], np.unique([train.better, train.worse]))


@each_loss
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_losses_are_those_of_the_formula_and_slopes_those_of_finite_differences(train, loss, scale):
    compared = ComparedEntries.of(train, 1)
    entries = compared.entries
    scores = scale * np.random.default_rng(1).standard_normal(len(entries))
    table = np.zeros(entries.shape)
    table[users_of(entries), entries.items] = scores
    margins = table[train.users, train.better] - table[train.users, train.worse]
    value, slopes = compared.slopes(loss, scores)
    assert value == pytest.approx(FORMULAS[loss](margins).sum(), rel=1e-12)
    expected = approx_fprime(scores, lambda x: compared.slopes(loss, x)[0], 1e-7)
    np.testing.assert_allclose(slopes, expected, rtol=1e-4, atol=1e-4)


@each_loss
@pytest.mark.parametrize("n", [63, 64, 65, 150])
def test_a_user_may_have_any_number_of_comparisons(loss, n):
    """Margins are looked at 64 at a time."""
    rng = np.random.default_rng(n)
    better = rng.integers(8, size=n)
    all_ = Comparisons.from_triples(np.zeros(n, int), better, (better + rng.integers(1, 8, size=n)) % 8, 1, 8)
    scores = rng.standard_normal(8)
    compared = ComparedEntries.of(all_, 1)
    value, slopes = compared.slopes(loss, scores[compared.entries.items])
    losses, expected = [], np.zeros(8)
    for one, other in zip(all_.better, all_.worse, strict=True):
        alone = ComparedEntries.of(Comparisons.from_triples([0], [one], [other], 1, 8), 1)
        found, along = alone.slopes(loss, scores[alone.entries.items])
        losses.append(found)
        expected[alone.entries.items] += along
    assert value == pytest.approx(sum(losses), rel=1e-12)
    np.testing.assert_allclose(slopes, expected[compared.entries.items], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("margin", [1e-9, 3.0, 40.0, 100.0, 700.0])
def test_the_logistic_loss_has_all_its_digits_far_out(margin):
    compared = ComparedEntries.of(Comparisons.from_triples([0], [1], [0]), 1)
    power = np.exp(-np.longdouble(margin))
    for scores, loss, slope in (
        ([margin, 0.0], np.log1p(power), -power / (1 + power)),
        ([0.0, margin], np.log1p(power) + margin, -1 / (1 + power)),
    ):
        value, slopes = compared.slopes("logistic", np.array(scores))
        assert value == pytest.approx(float(loss), rel=1e-15, abs=0.0)
        assert slopes.tolist() == pytest.approx([float(slope), -float(slope)], rel=1e-15, abs=0.0)


@each_loss
@pytest.mark.parametrize("margin", [-800.0, -1.0, 0.0, 1.0, 800.0])
def test_no_margin_is_too_great(loss, margin):
    compared = ComparedEntries.of(Comparisons.from_triples([0], [1], [0]), 1)
    value, slopes = compared.slopes(loss, np.array([margin, 0.0]))
    assert value == pytest.approx(float(FORMULAS[loss](np.array(margin))), rel=1e-14)
    assert np.isfinite(slopes).all() and slopes.sum() == 0


@pytest.mark.parametrize("rank", [1, 3, 4, 9])
def test_products_are_those_of_matrices(train, rank):
    entries, rng = ComparedEntries.of(train, 2).entries, np.random.default_rng(2)
    users, items = rng.standard_normal((5, rank)), rng.standard_normal((9, rank))
    weights = rng.standard_normal(len(entries.items))
    sparse = entries.holding(weights)
    matrix = sparse.matrix().toarray()
    np.testing.assert_allclose(sparse.times(items), matrix @ items, atol=1e-12)
    np.testing.assert_allclose(sparse.transposed_times(users), matrix.T @ users, atol=1e-12)
    expected = (users @ items.T)[users_of(entries), entries.items]
    np.testing.assert_allclose(entries.inner_products(users, items), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("places", "n_out", "refused"), [([0, 3, 1], 3, "values=3"), ([0, 1], 3, "places: 2"), ([0, 1, 2], 4, "out: 4")]
)
def test_values_are_arranged_at_places_that_there_are_alone(places, n_out, refused):
    with pytest.raises(ValueError, match=refused):
        kernel.arrange(values=np.zeros(3), places=np.array(places, np.int32), out=np.zeros(n_out), threads=1)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_no_bit(threads):
    train, rng = BTL(users=100, items=50, comparisons=40).view(np.random.default_rng(3)), np.random.default_rng(4)
    users, items = rng.standard_normal((100, 7)), rng.standard_normal((50, 7))
    results = []
    for compared in (ComparedEntries.of(train, 1), ComparedEntries.of(train, threads)):
        scores = compared.entries.inner_products(users, items)
        value, slopes = compared.slopes("logistic", scores)
        sparse = compared.entries.holding(slopes)
        results.append((value, scores, slopes, sparse.times(items), sparse.transposed_times(users)))
    for one, many in zip(*results, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(many).tobytes()


@each_loss
@pytest.mark.parametrize("rank", [1, 4, 7, 40])
@pytest.mark.parametrize("threads", [1, 2])
def test_gradients_have_the_bits_of_their_steps(loss, rank, threads):
    train, rng = BTL(users=100, items=50, comparisons=40).view(np.random.default_rng(3)), np.random.default_rng(4)
    users, items = rng.standard_normal((100, rank)), rng.standard_normal((50, rank))
    compared = ComparedEntries.of(train, threads)
    value, of_users, of_items = compared.gradients(loss, users, items)
    expected, slopes = compared.slopes(loss, compared.entries.inner_products(users, items))
    sparse = compared.entries.holding(slopes)
    assert value == expected
    assert of_users[:, :rank].tobytes() == sparse.times(items).tobytes()
    assert of_items[:, :rank].tobytes() == sparse.transposed_times(users).tobytes()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("users", "items"), [(0, 0), (3, 4), (3, 0)])
def test_without_comparisons_everything_is_nothing(users, items, threads):
    compared = ComparedEntries.of(Comparisons(np.zeros(users + 1, int), [], [], items), threads)
    assert compared.slopes("logistic", np.zeros(0))[0] == 0
    assert compared.entries.inner_products(np.ones((users, 2)), np.ones((items, 2))).shape == (0,)
    nothing = compared.entries.holding(np.zeros(0))
    np.testing.assert_array_equal(nothing.times(np.ones((items, 2))), np.zeros((users, 2)))
    np.testing.assert_array_equal(nothing.transposed_times(np.ones((users, 2))), np.zeros((items, 2)))
    value, of_users, of_items = compared.gradients("logistic", np.ones((users, 2)), np.ones((items, 2)))
    assert value == 0 and (len(of_users), len(of_items)) == (users, items)
    assert not of_users.any() and not of_items.any()


@pytest.mark.parametrize(
    ("wrong", "refused"),
    [
        ({"users": np.ones((2, 6))}, "rows of 6 numbers are not padded to whole lanes"),
        ({"users": np.ones((2, 0))}, "rows of 0 numbers are not padded"),
        ({"users": np.ones((3, 4))}, "rows of users: 3 where 2"),
        ({"items": np.ones((3, 8))}, "columns of items: 8 where 4"),
        ({"items": np.ones((1, 4))}, "rows of items=1 is out of range"),
        (
            {"comparisons": ComparisonRows(indptr=np.array([0, 1]), better=ONE, worse=ONE)},
            "with comparisons: 1 where 2",
        ),
        ({"out": {"losses": np.zeros(3), "users": np.zeros((3, 4))}}, "derivatives of users: 3 where 2"),
        ({"out": {"users": np.zeros((3, 4))}}, "losses: 2 where 3"),
        ({"out": {"items": np.zeros((3, 8))}}, "columns of items: 8 where 4"),
        ({"out": {"users": np.zeros((2, 8)), "items": np.zeros((3, 8))}}, "columns of derivatives: 8 where 4"),
        ({"out": {"items": np.zeros((4, 4))}}, "derivatives of items: 4 where 3"),
        ({"out": {"slopes": np.zeros(3)}}, "slopes: 3 where 4"),
    ],
)
def test_gradients_of_arrays_that_do_not_fit_are_refused(wrong, refused):
    out = {"losses": np.zeros(2), "users": np.zeros((2, 4)), "items": np.zeros((3, 4)), "slopes": np.zeros(0)}
    given = {
        "loss": CODES["logistic"],
        "entries": Pattern(indptr=np.array([0, 2, 4]), columns=np.array([0, 1, 1, 2], np.int32)),
        "comparisons": ComparisonRows(
            indptr=np.array([0, 1, 2]), better=np.zeros(2, np.int32), worse=np.ones(2, np.int32)
        ),
        "users": np.ones((2, 4)),
        "items": np.ones((3, 4)),
        "threads": 1,
    }
    for slopes in (np.zeros(0), np.zeros(4)):
        kernel.gradients(**given, out=kernel.Derivatives(**out | {"slopes": slopes}))
    with pytest.raises(ValueError, match=refused):
        kernel.gradients(**given | wrong | {"out": kernel.Derivatives(**out | wrong.get("out", {}))})
