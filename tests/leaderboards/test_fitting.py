"""Scores at the minimum: against finite differences, SciPy's minimiser, other packages and what others recorded."""

from dataclasses import replace

import numpy as np
import pytest
from drawn_votes import drawn, drawn_rankings, votes_from
from scipy.optimize import minimize

from rankbench.core.errors import UserError
from rankbench.leaderboards.fits import fitting, pairs, problems
from rankbench.leaderboards.fits.fitting import fitted, refitted
from rankbench.leaderboards.fits.likelihoods import LIKELIHOODS
from rankbench.leaderboards.fits.pairs import pairs_of
from rankbench.leaderboards.fits.problems import OfPairs, OfRankings, Point, with_penalty
from rankbench.leaderboards.votes import Rankings, from_rankings

MODELS = sorted(LIKELIHOODS)


def problem_of(name, votes=None, side=True, covariates=False):
    votes = drawn() if votes is None else votes
    if covariates:
        x = np.random.default_rng(5).normal(size=(len(votes), 2))
        votes = replace(votes, covariates=x, covariate_names=("a", "b"))
    model = LIKELIHOODS[name]
    names = ("side",) * side + ("a", "b") * covariates + ("ties",) * model.has_ties
    return OfPairs(pairs_of(votes, side), model, names)


def some_point(problem):
    z = np.random.default_rng(3).normal(size=len(problem.start)) * 0.4
    z[-1] = abs(z[-1]) + 0.3
    return z


PROBLEMS = [(name, covariates) for name in MODELS for covariates in (False, True)]


@pytest.mark.parametrize(("name", "covariates"), [*PROBLEMS, ("plackett-luce", False)])
@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_derivatives_are_those_of_the_objective(name, covariates, penalty):
    votes, _ = drawn_rankings()
    problem = OfRankings(6, votes.rankings) if name == "plackett-luce" else problem_of(name, covariates=covariates)
    z, step = some_point(problem), 1e-5

    def at(where):
        return with_penalty(problem.at(where), where, problem.n_items, penalty)

    moves = step * np.eye(len(z))
    gradient = np.array([(at(z + move).value - at(z - move).value) / (2 * step) for move in moves])
    hessian = np.array([(at(z + move).gradient - at(z - move).gradient) / (2 * step) for move in moves])
    found = at(z)
    assert found.gradient == pytest.approx(gradient, rel=1e-6, abs=1e-5)
    fixed = np.zeros_like(hessian)
    fixed[: problem.n_items, : problem.n_items] = (penalty == 0) / problem.n_items
    assert found.hessian - fixed == pytest.approx(hessian, rel=1e-6, abs=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_slopes_of_many_fits_side_by_side_are_those_of_one(name):
    problem = problem_of(name, covariates=True)
    z = some_point(problem)
    seen = problem.pairs.seen[..., None]
    assert problem.gradients(z[:, None], seen)[:, 0] == pytest.approx(problem.at(z).gradient, abs=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_chances_sum_to_one_and_are_those_of_the_losses(name):
    model, m = LIKELIHOODS[name], np.linspace(-30, 30, 61)
    chances = model.chances(m, 0.7)
    assert chances.sum(axis=0) == pytest.approx(1)
    kept = [0, 1, 2] if model.has_ties else [0, 1]
    assert np.exp(-model.terms(m, 0.7).loss[kept]) == pytest.approx(chances[kept], rel=1e-6, abs=1e-15)


@pytest.mark.parametrize(("name", "covariates"), [*PROBLEMS, ("plackett-luce", False)])
def test_the_fit_is_the_minimum_that_scipy_finds(name, covariates):
    votes, _ = drawn_rankings()
    problem = OfRankings(6, votes.rankings) if name == "plackett-luce" else problem_of(name, covariates=covariates)
    fit = fitted(problem)
    other = minimize(
        lambda z: (problem.at(z).value, problem.at(z).gradient), problem.start, jac=True, method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    assert fit.objective <= other.fun + 1e-9
    own = other.x[: problem.n_items]
    assert fit.scores == pytest.approx(own - own.mean(), abs=2e-4)
    assert fit.gap < 1e-15 * max(1.0, fit.objective)
    assert fit.scores.mean() == pytest.approx(0, abs=1e-12)


def test_expected_wins_are_the_wins_that_were_seen():
    votes = drawn(ties=False)
    problem = problem_of("bradley-terry", votes, side=False)
    fit = fitted(problem)
    m, _ = problem.margins(fit.parameters)
    expected = problem.model.chances(m, 0.0) * problem.pairs.seen.sum(axis=0)
    wins = [np.bincount(problem.pairs.left, one[0], 6) + np.bincount(problem.pairs.right, one[1], 6)
            for one in (expected, problem.pairs.seen)]  # fmt: skip
    assert wins[0] == pytest.approx(wins[1], rel=1e-9)


def test_a_ranking_of_two_is_a_comparison():
    rows = [(0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (0, 1)]
    votes = votes_from([(*row, 0) for row in rows])
    rankings = Rankings(np.arange(0, 13, 2), np.array(rows, np.int32).ravel())
    ranked = from_rankings(votes.items, rankings, np.tile([0, 1], 6).astype(np.int32), None)
    one, other = fitted(problem_of("bradley-terry", votes, side=False)), fitted(OfRankings(3, ranked.rankings))
    assert one.scores == pytest.approx(other.scores, abs=1e-10)
    assert one.objective == pytest.approx(other.objective)


def test_plackett_and_luces_losses_are_the_chances_of_the_choices():
    votes, orders = drawn_rankings()
    s = np.linspace(1, -1, 6)
    loss = 0.0
    for order in orders:
        for place in range(len(order) - 1):
            e = np.exp(s[order[place:]])
            loss -= np.log(e[0] / e.sum())
    assert OfRankings(6, votes.rankings).at(s).value == pytest.approx(loss)


def test_a_vote_counted_thrice_is_three_votes():
    rows = [(0, 1, 0), (1, 2, 0), (2, 0, 0), (1, 0, 0), (0, 2, 2)]
    one = fitted(problem_of("davidson", votes_from(rows, counts=[3, 1, 2, 1, 1]), side=False))
    repeated = [row for row, count in zip(rows, [3, 1, 2, 1, 1], strict=True) for _ in range(count)]
    other = fitted(problem_of("davidson", votes_from(repeated), side=False))
    assert one.parameters == pytest.approx(other.parameters, abs=1e-10)


def test_turning_a_comparison_round_changes_nothing_without_a_side():
    rows = [(0, 1, 0), (1, 2, 0), (2, 0, 0), (1, 0, 2)]
    turned = [(right, left, {0: 1, 1: 0, 2: 2}[outcome]) for left, right, outcome in rows]
    both = [fitted(problem_of("davidson", votes_from(one), side=False)).parameters for one in (rows, turned)]
    assert both[0] == pytest.approx(both[1], abs=1e-12)


def test_the_advantage_of_a_side_is_found():
    rng = np.random.default_rng(0)
    left = rng.integers(5, size=20_000)
    right = (left + rng.integers(1, 5, 20_000)) % 5
    won = rng.random(20_000) < 1 / (1 + np.exp(-(0.5 * (right - left) + 0.7)))
    votes = votes_from(list(zip(left, right, np.where(won, 0, 1), strict=True)))
    fit = fitted(problem_of("bradley-terry", votes))
    assert fit.beside["side"] == pytest.approx(0.7, abs=0.06)
    assert fit.scores == pytest.approx([1, 0.5, 0, -0.5, -1], abs=0.06)


def test_without_a_finite_minimum_nothing_is_pretended():
    votes = votes_from([(0, 1, 0), (1, 2, 0)])
    with pytest.raises(UserError, match="do not settle"):
        fitted(problem_of("bradley-terry", votes, side=False))
    assert np.isfinite(fitted(problem_of("bradley-terry", votes, side=False), 1.0).scores).all()


def test_a_penalty_is_half_a_win_and_half_a_loss_against_an_item_of_score_zero():
    votes = votes_from([(0, 1, 0), (1, 2, 0)])
    fit = fitted(problem_of("bradley-terry", votes, side=False), 2.0)
    rows = [(0, 1), (1, 2)]

    def value(s):
        lost = sum(np.log1p(np.exp(s[worse] - s[better])) for better, worse in rows)
        return lost + sum(np.log1p(np.exp(-x)) + np.log1p(np.exp(x)) for x in s)

    assert fit.objective == pytest.approx(minimize(value, np.zeros(3)).fun, rel=1e-8)


@pytest.mark.parametrize("name", [*MODELS, "plackett-luce"])
def test_a_refit_with_other_weights_is_a_fit_of_the_weighed_votes(name):
    if name == "plackett-luce":
        votes, _ = drawn_rankings(size=60)
        problem = OfRankings(6, votes.rankings)
    else:
        votes = drawn()
        problem = problem_of(name, votes, side=False)
    reweighted = problem.reweighted(votes.judges)
    weights = np.random.default_rng(7).standard_exponential((reweighted.size, 3))
    found = refitted(fitted(problem), reweighted, reweighted.draw(np.random.default_rng(7), 3))
    for draw in range(3):
        if name == "plackett-luce":
            value = _weighed_rankings(problem, weights[:, draw])
            assert np.abs(value(found[:, draw])).max() < 1e-4
        else:
            weighed = replace(votes, weights=weights[votes.judges.codes, draw])
            assert found[:, draw] == pytest.approx(fitted(problem_of(name, weighed, side=False)).parameters, abs=1e-5)


def _weighed_rankings(problem, weights):
    """The gradient of the losses of rankings, each with a weight."""

    def gradient(s):
        out = np.zeros_like(s)
        for number, weight in enumerate(weights):
            order = problem.rankings.members[problem.rankings.indptr[number] : problem.rankings.indptr[number + 1]]
            for place in range(len(order) - 1):
                e = np.exp(s[order[place:]])
                out[order[place:]] += weight * e / e.sum()
                out[order[place]] -= weight
        return out

    return gradient


def test_choix_finds_the_same_scores():
    choix = pytest.importorskip("choix")
    votes = drawn(ties=False)
    data = [
        (a, b) if outcome == 0 else (b, a) for a, b, outcome in zip(votes.left, votes.right, votes.outcome, strict=True)
    ]
    fit = fitted(problem_of("bradley-terry", votes, side=False))
    assert fit.scores == pytest.approx(choix.ilsr_pairwise(6, data, tol=1e-12), abs=1e-7)
    ranked, orders = drawn_rankings()
    lists = [order.tolist() for order in orders if len(order) > 1]
    theirs = choix.ilsr_rankings(6, lists, tol=1e-12)
    assert fitted(OfRankings(6, ranked.rankings)).scores == pytest.approx(theirs, abs=1e-7)


def test_evalica_finds_the_same_scores():
    evalica = pytest.importorskip("evalica")
    votes = drawn()
    winners = [(evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw)[outcome] for outcome in votes.outcome]
    sides = votes.items[votes.left].tolist(), votes.items[votes.right].tolist()
    for name, function in (("bradley-terry", evalica.bradley_terry), ("davidson", evalica.newman)):
        theirs = np.log(function(*sides, winners, tolerance=1e-14, limit=100_000).scores[votes.items].to_numpy())
        assert fitted(problem_of(name, votes, side=False)).scores == pytest.approx(theirs - theirs.mean(), abs=1e-8)


def test_squares_and_weights_of_single_rankings_are_those_of_their_gradients():
    votes, orders = drawn_rankings()
    problem, n = OfRankings(votes.n_items, votes.rankings), len(orders)
    z, single = some_point(problem), problem.reweighted(None)
    gradients = single.gradients(np.repeat(z[:, None], n, axis=1), np.eye(n))
    np.testing.assert_allclose(gradients.sum(axis=1), problem.at(z).gradient, atol=1e-12)
    np.testing.assert_allclose(problem.own_squares(z), gradients @ gradients.T, atol=1e-12)
    assert single.draw(np.random.default_rng(0), 3).shape == (n, 3)


@pytest.mark.parametrize("at_once", [1, 100, 10**6])
def test_gradients_of_many_draws_have_the_bits_of_each_alone(monkeypatch, at_once):
    monkeypatch.setattr(problems, "_AT_ONCE", at_once)
    votes, orders = drawn_rankings()
    single, rng = OfRankings(votes.n_items, votes.rankings).reweighted(None), np.random.default_rng(2)
    z, weights = rng.normal(size=(votes.n_items, 7)), rng.exponential(size=(len(orders), 7))
    alone = [single.gradients(z[:, [draw]], weights[:, [draw]]) for draw in range(7)]
    assert single.gradients(z, weights).tobytes() == np.hstack(alone).tobytes()


def test_a_minimum_that_cannot_be_found_is_refused():
    class Saddle:
        n_items, start, names = 2, np.zeros(2), ()

        def at(self, z):
            return Point(float(z @ z), z, -np.eye(2))

    with pytest.raises(UserError, match="the scores do not settle"):
        fitted(Saddle())


def test_where_no_length_of_a_step_lowers_the_objective_nothing_moves():
    class Rising:
        n_items, start, names = 2, np.zeros(2), ()

        def at(self, z):
            return Point(float(np.abs(z).sum()), np.array([1.0, -1.0]), np.eye(2))

    problem = Rising()
    start = problem.at(problem.start)
    z, point = fitting._next(problem, 0.0, problem.start, start, np.array([-1.0, 1.0]))
    assert z is problem.start and point is start


def test_many_cells_are_numbered_as_few_are(monkeypatch):
    keys = np.random.default_rng(0).integers(0, 50, 200)
    few = pairs._rows_of(keys, 50)
    monkeypatch.setattr(pairs, "_DENSE", 0)
    for one, other in zip(few, pairs._rows_of(keys, 50), strict=True):
        np.testing.assert_array_equal(one, other)
