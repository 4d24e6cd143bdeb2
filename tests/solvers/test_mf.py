"""Matrix factorization by alternating least squares: each half step against NumPy's ridge regression."""

from itertools import islice

import numpy as np
import pytest
from solvers.contract import SolverContract
from solvers.least import least_below

from rankbench.core.contract import Floats, Ints
from rankbench.core.errors import UserError
from rankbench.data.synthetic import LowRank
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.metrics import evaluate
from rankbench.models import Factors
from rankbench.solvers.mf import MF


class TestMF(SolverContract):
    solver = MF(rank=3, lam=2.0)


class TestMFOfPlainRatings(SolverContract):
    solver = MF(rank=5, lam=2.0, centre="none")


class TestMFByConjugateGradients(SolverContract):
    solver = MF(rank=5, lam=2.0, inner=3)


class TestMFWithBiases(SolverContract):
    solver = MF(rank=3, lam=2.0, biases=0.7, centre="none")


class TestMFWithBiasesByConjugateGradients(SolverContract):
    solver = MF(rank=3, lam=2.0, biases=0.7, inner=3)


class TestMFWithScaledPenalties(SolverContract):
    solver = MF(rank=3, lam=0.7, biases=0.3, power=0.5)


@pytest.fixture
def train() -> Ratings:
    return LowRank(users=15, items=11, rank=2, per_user=7).view(np.random.default_rng(1))


def centred(view: Ratings) -> Floats:
    """The ratings less each user's mean, one user at a time."""
    return np.concatenate([row - row.mean() for row in np.split(view.values, view.indptr[1:-1])])


def ridge(rows: Ints, columns: Ints, values: Floats, vectors: Floats, n_rows: int, lam: float) -> Floats:
    """Each row's minimiser of |values - vectors u|^2 + lam |u|^2, as least squares with the penalty stacked below."""
    rank = vectors.shape[1]
    out = np.full((n_rows, rank), np.nan)
    for row in np.unique(rows):
        own = rows == row
        stacked = np.vstack([vectors[columns[own]], np.sqrt(lam) * np.eye(rank)])
        out[row] = np.linalg.lstsq(stacked, np.concatenate([values[own], np.zeros(rank)]), rcond=None)[0]
    return out


@pytest.mark.parametrize("rank", [1, 3, 24, 25, 30])
@pytest.mark.parametrize("centre", ["user", "none"])
def test_each_half_step_is_a_ridge_regression_per_row(rank, centre, train):
    values = centred(train) if centre == "user" else train.values
    steps = MF(rank=rank, lam=0.7, centre=centre).steps(train, np.random.default_rng(0))
    items = next(steps).model.items.copy()
    for _ in range(3):
        expected = ridge(train.users, train.items, values, items, train.n_users, 0.7)
        model = next(steps).model
        np.testing.assert_allclose(model.users, expected, rtol=1e-9, atol=1e-10)
        users = model.users.copy()
        items = next(steps).model.items.copy()
        np.testing.assert_allclose(
            items, ridge(train.items, train.users, values, users, train.n_items, 0.7), rtol=1e-9, atol=1e-10
        )


@pytest.mark.parametrize("rank", [1, 3, 4, 7, 30])
def test_as_many_conjugate_gradients_as_unknowns_solve_the_ridge_regressions(rank, train):
    steps = MF(rank=rank, lam=0.7, inner=2 * rank).steps(train, np.random.default_rng(0))
    items = next(steps).model.items.copy()
    users = next(steps).model.users.copy()
    np.testing.assert_allclose(users, ridge(train.users, train.items, centred(train), items, 15, 0.7), rtol=1e-7)
    expected = ridge(train.items, train.users, centred(train), users, train.n_items, 0.7)
    np.testing.assert_allclose(next(steps).model.items, expected, rtol=1e-7)


def test_one_conjugate_gradient_is_the_best_step_down_the_gradient(train):
    steps = MF(rank=3, lam=0.7, inner=1).steps(train, np.random.default_rng(0))
    items = next(steps).model.items.copy()
    users = next(steps).model.users  # from zeros, the first gradient is the vectors' sum, weighted by the ratings
    for user, values in enumerate(np.split(centred(train), train.indptr[1:-1])):
        vectors = items[train.items[train.indptr[user] : train.indptr[user + 1]]]
        down = vectors.T @ values
        length = down @ down / (down @ (vectors.T @ (vectors @ down) + 0.7 * down))
        np.testing.assert_allclose(users[user], length * down, rtol=1e-10)


def test_few_conjugate_gradients_come_to_the_same_objective(train):
    ends = []
    for inner in (None, 2):
        steps = MF(rank=3, lam=2.0, inner=inner).steps(train, np.random.default_rng(0))
        *_, last = islice(steps, 400)
        ends.append(last.objective())
    assert ends[1] == pytest.approx(ends[0], rel=1e-6)


def test_a_row_longer_than_a_block_is_summed_whole():
    view = LowRank(users=3, items=700, rank=2, per_user=600).view(np.random.default_rng(1))
    for rank in (4, 30):
        steps = MF(rank=rank).steps(view, np.random.default_rng(0))
        items = next(steps).model.items.copy()
        expected = ridge(view.users, view.items, centred(view), items, 3, 1.0)
        np.testing.assert_allclose(next(steps).model.users, expected, rtol=1e-8, atol=1e-10)


def test_the_objective_is_the_formula(train):
    for step, _ in zip(MF(rank=3, lam=0.4).steps(train, np.random.default_rng(0)), range(4), strict=False):
        errors = centred(train) - step.model.score(train.users, train.items)
        size = np.nansum(step.model.users**2) + np.nansum(step.model.items**2)
        assert step.objective() == pytest.approx(errors @ errors + 0.4 * size, rel=1e-12)


def test_it_learns_low_rank_scores_of_items_seen_elsewhere():
    view = LowRank(users=200, items=60, rank=2, per_user=40).view(np.random.default_rng(2))
    rows = np.arange(len(view))
    train, test = view.take(rows[rows % 4 > 0]), view.take(rows[rows % 4 == 0])
    assert evaluate(fit(MF(rank=2, lam=0.1), train, steps=20), test, ["pairwise-error"])["pairwise-error"] < 0.2


def test_who_has_no_order_says_nothing_and_is_told_nothing():
    values = [1, 5, 3, 3, 2, 4, 2, 1, 2]
    view = Ratings.from_triples([0, 0, 1, 1, 2, 4, 4, 5, 5], [0, 1, 0, 1, 2, 0, 3, 0, 1], values, 6, 5)
    for centre in ("user", "none"):
        scores = fit(MF(rank=2, lam=0.1, centre=centre), view, steps=6).score
        assert (scores(np.array([1, 1]), np.array([0, 3])) == 0).all()  # all alike
        assert scores(np.array([2]), np.array([0]))[0] == 0  # one rating
        assert (scores(np.array([0, 2]), np.array([2, 2])) == 0).all()  # rated by nobody with an order
        unseen = scores(np.array([0, 1, 3]), np.array([4, 4, 0]))  # rated by nobody, twice; nobody
        assert np.isnan(unseen).all()
        silent = np.isin(view.users, [1, 2])
        without = fit(MF(rank=2, lam=0.1, centre=centre), view.take(np.flatnonzero(~silent)), steps=6).score
        heard = np.array([0, 4, 5]), np.array([0, 3, 1])
        assert (scores(*heard) == without(*heard)).all()


def test_where_all_ratings_of_all_users_are_equal_everything_scores_zero():
    view = Ratings.from_triples([0, 0, 1, 1], [0, 1, 0, 2], [3.0] * 4)
    for step in MF(rank=2).steps(view, np.random.default_rng(0)):
        assert (step.model.score(*np.indices((2, 3)).reshape(2, -1)) == 0).all()
        assert step.objective() == 0


def test_a_system_that_rounding_spoilt_is_named():
    view = Ratings.from_triples([0, 0, 1, 1], [0, 1, 0, 1], [1e29, 2e29, 3, 4])
    with pytest.raises(
        UserError, match=r"MF: the system of item 0 has no finite solution: scale the ratings or raise lam"
    ):
        fit(MF(rank=2), view, steps=4)


def test_conjugate_gradients_that_have_no_digits_left_end(train):
    """Many more iterations than unknowns: a direction made of rounding errors once grew until it was not finite."""
    exact, iterated = (run_of(MF(rank=3, lam=0.5, inner=inner), train) for inner in (None, 200))
    np.testing.assert_allclose(iterated, exact, rtol=1e-6)


# biases


def biased_half(
    rows: Ints, columns: Ints, values: Floats, fixed: tuple[Floats, Floats], power: float = 0.0
) -> tuple[Floats, Floats]:
    """Each row's vector and bias by a dense solve, given those of the other side; lam is 0.7, biases 0.2."""
    vectors, left = fixed[0], values - fixed[1][columns]
    found = []
    for row in range(rows.max() + 1):
        own = rows == row
        design = np.column_stack([vectors[columns[own]], np.ones(own.sum())])
        penalties = own.sum() ** power * np.diag([0.7] * vectors.shape[1] + [0.2])
        found.append(np.linalg.solve(design.T @ design + penalties, design.T @ left[own]))
    return np.array(found)[:, :-1], np.array(found)[:, -1]


def pieces_of(model: Factors, rank: int, mean: float) -> tuple[Floats, Floats, Floats, Floats]:
    """U, b, V and c out of the rows (u, b, 1) and (v, 1, mu + c)."""
    assert (model.users[:, rank + 1] == 1).all()
    assert (model.items[:, rank] == 1).all()
    users, items = model.users.copy(), model.items.copy()
    return users[:, :rank], users[:, rank], items[:, :rank], items[:, rank + 1] - mean


def biased_objective(solver: MF, train: Ratings, values: Floats, pieces: tuple[Floats, ...]) -> float:
    """The formula of the docstring, with the mean of the values."""
    users, b, items, c = pieces
    fitted = np.einsum("ij,ij->i", users[train.users], items[train.items]) + b[train.users] + c[train.items]
    errors = values - values.mean() - fitted
    return errors @ errors + solver.lam * ((users**2).sum() + (items**2).sum()) + solver.biases * (b @ b + c @ c)


@pytest.mark.parametrize("rank", [1, 3, 22, 23, 30])
@pytest.mark.parametrize("centre", ["user", "none"])
@pytest.mark.parametrize("inner", [None, 80])
def test_biases_and_vectors_are_fitted_together(rank, centre, inner, train):
    values = centred(train) if centre == "user" else train.values
    mean = values.mean()
    steps = MF(rank=rank, lam=0.7, biases=0.2, centre=centre, inner=inner).steps(train, np.random.default_rng(0))
    model = next(steps).model
    np.testing.assert_allclose(model.score(train.users, train.items), mean, atol=1e-12)
    of_items = pieces_of(model, rank, mean)[2:]
    for _ in range(3):
        expected = biased_half(train.users, train.items, values - mean, of_items)
        of_users = pieces_of(next(steps).model, rank, mean)[:2]
        close(of_users, expected)
        expected = biased_half(train.items, train.users, values - mean, of_users)
        of_items = pieces_of(next(steps).model, rank, mean)[2:]
        close(of_items, expected)


@pytest.mark.parametrize("power", [0.5, 1.0, 1.7])
@pytest.mark.parametrize("inner", [None, 80])
def test_penalties_grow_with_a_power_of_the_number_of_ratings(power, inner, train):
    kept = train.where((train.users + train.items) % 4 > 0)  # users with different numbers of ratings
    assert len(set(np.diff(kept.indptr))) > 1
    mean = kept.values.mean()
    solver = MF(rank=3, lam=0.7, biases=0.2, centre="none", inner=inner, power=power)
    steps = solver.steps(kept, np.random.default_rng(0))
    of_items = pieces_of(next(steps).model, 3, mean)[2:]
    of_users = pieces_of(next(steps).model, 3, mean)[:2]
    close(of_users, biased_half(kept.users, kept.items, kept.values - mean, of_items, power))
    step = next(steps)
    of_items = pieces_of(step.model, 3, mean)[2:]
    close(of_items, biased_half(kept.items, kept.users, kept.values - mean, of_users, power))
    n_users, n_items = (np.bincount(rows) ** power for rows in (kept.users, kept.items))
    sizes = [(vectors**2).sum(axis=1) * 0.7 + bias**2 * 0.2 for vectors, bias in (of_users, of_items)]
    more = (n_users - 1) @ sizes[0] + (n_items - 1) @ sizes[1]
    plain = biased_objective(solver, kept, kept.values, (*of_users, *of_items))
    assert step.objective() == pytest.approx(plain + more, rel=1e-12)


def test_a_power_of_one_is_a_penalty_for_each_rating(train):
    solver = MF(rank=2, lam=0.3, centre="none", power=1.0)
    *_, step = islice(solver.steps(train, np.random.default_rng(0)), 6)
    users, items = step.model.users[train.users], step.model.items[train.items]
    errors = train.values - (users * items).sum(axis=1)
    assert step.objective() == pytest.approx((errors**2 + 0.3 * ((users**2) + (items**2)).sum(axis=1)).sum(), rel=1e-12)


def close(found: tuple[Floats, ...], expected: tuple[Floats, ...]) -> None:
    """Vectors and biases are what they should be."""
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


def test_after_a_half_step_the_slope_along_its_block_is_zero(train):
    solver, mean = MF(rank=2, lam=0.7, biases=0.2, centre="none"), train.values.mean()
    for number, step in enumerate(islice(solver.steps(train, np.random.default_rng(0)), 1, 7)):
        pieces = pieces_of(step.model, 2, mean)
        moved = pieces[:2] if number % 2 == 0 else pieces[2:]
        assert step.objective() == pytest.approx(biased_objective(solver, train, train.values, pieces), rel=1e-12)
        for piece in moved:
            for place in np.ndindex(piece.shape):
                assert slope(solver, train, pieces, piece, place) < 1e-5


def slope(solver: MF, train: Ratings, pieces: tuple[Floats, ...], piece: Floats, place: tuple[int, ...]) -> float:
    """The size of the objective's slope along one number of one of the pieces, by a central difference."""
    was, values = piece[place], []
    for step in (1e-4, -1e-4):
        piece[place] = was + step
        values.append(biased_objective(solver, train, train.values, pieces))
    piece[place] = was
    return abs(values[0] - values[1]) / 2e-4


def test_another_optimiser_finds_nothing_below_the_end(train):
    solver, mean = MF(rank=2, lam=2.0, biases=0.5, centre="none"), train.values.mean()
    *_, end = islice(solver.steps(train, np.random.default_rng(0)), 1000)
    pieces = pieces_of(end.model, 2, mean)

    def objective(*parts: Floats) -> float:
        return biased_objective(solver, train, train.values, parts)

    assert objective(*pieces) == pytest.approx(end.objective(), rel=1e-12)
    assert least_below(objective, *pieces) == pytest.approx(end.objective(), rel=1e-8)


@pytest.mark.parametrize("inner", [None, 3])
def test_biases_under_a_huge_penalty_are_none(inner, train):
    # less the users' means, the mean is zero with and without biases
    plain, tied = (run_of(MF(rank=3, lam=2.0, inner=inner, biases=biases), train) for biases in (None, 1e12))
    np.testing.assert_allclose(tied, plain, atol=1e-6)


def test_with_biases_users_who_rate_all_alike_are_told_their_level():
    view = Ratings.from_triples([0, 0, 0, 1, 1, 2, 3], [0, 1, 2, 0, 1, 2, 0], [1, 5, 3, 5, 5, 1, 5], 5, 4)
    scores = fit(MF(rank=2, lam=1.0, biases=0.01, centre="none"), view, steps=40).score
    assert scores(np.array([1, 3]), np.array([1, 0])) == pytest.approx([5, 5], abs=0.5)
    assert np.isnan(scores(np.array([4, 0]), np.array([0, 3]))).all()  # no training row
    silent = fit(MF(rank=2, lam=1.0, biases=0.01), view, steps=40).score  # less their means they say nothing
    items = np.arange(3)
    assert (silent(np.full(3, 1), items) == silent(np.full(3, 2), items)).all()


def run_of(solver: MF, train: Ratings) -> Floats:
    """The scores of the training rows after many steps."""
    *_, step = islice(solver.steps(train, np.random.default_rng(0)), 300)
    return step.model.score(train.users, train.items)
