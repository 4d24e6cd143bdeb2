"""Generated arenas follow their model: chances of outcomes, tastes of low rank, busy judges, and equal seeds."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from rankbench.core.errors import UserError
from rankbench.data.synthetic.arena import LEFT, RIGHT, TIE, Arena
from rankbench.leaderboards.arenas import limit, votes_of
from rankbench.leaderboards.leaderboard import leaderboard_of
from rankbench.leaderboards.models import Choices

FEATURED = Arena(items=12, judges=40, comparisons=20_000, features=6, rank=2, taste=0.8)


def test_outcomes_have_the_chances_of_davidsons_model():
    arena = Arena(items=6, judges=5, comparisons=200_000, quality=0.7, taste=0.0, side=0.4, ties=-0.5)
    found = arena.drawn(3)
    m = arena.qualities(3)[found.left] - arena.qualities(3)[found.right] + 0.4
    np.testing.assert_allclose(found.margins, m, rtol=1e-12)
    weights = np.stack([np.exp(m / 2), np.exp(-m / 2), np.full_like(m, np.exp(-0.5))])
    expected = (weights / weights.sum(axis=0)).mean(axis=1)
    shares = [np.mean(found.outcome == kind) for kind in (LEFT, RIGHT, TIE)]
    np.testing.assert_allclose(shares, expected, atol=4 * 0.5 / np.sqrt(200_000))
    strong = m > np.median(m)
    won = found.outcome[strong & (found.outcome != TIE)] == LEFT
    assert won.mean() == pytest.approx(expit(m[strong & (found.outcome != TIE)]).mean(), abs=0.01)


def test_the_view_has_what_is_no_tie():
    rng = np.random.default_rng(0)
    seed = FEATURED.seed_of(np.random.default_rng(0))
    view, found = FEATURED.view(rng), FEATURED.drawn(seed)
    assert len(view) == (found.outcome != TIE).sum() < 20_000
    np.testing.assert_array_equal(view.item_features, FEATURED.embeddings(seed))
    first = np.flatnonzero((found.outcome == RIGHT) & (found.judges == 0))[0]
    own = slice(view.indptr[0], view.indptr[1])
    pairs = set(zip(view.better[own].tolist(), view.worse[own].tolist(), strict=True))
    assert (found.right[first], found.left[first]) in pairs
    assert replace(FEATURED, features=0).view(np.random.default_rng(0)).item_features is None


def test_judges_differ_in_directions_of_the_features_alone():
    """Margins without the quality are, for each judge, linear in the features with weights of rank 2."""
    found, x = FEATURED.drawn(1), FEATURED.embeddings(1)
    q = FEATURED.qualities(1)
    rest = found.margins - (q[found.left] - q[found.right])
    apart = x[found.left] - x[found.right]
    weights = np.array([
        np.linalg.lstsq(apart[found.judges == judge], rest[found.judges == judge], rcond=None)[0] for judge in range(40)
    ])  # fmt: skip
    np.testing.assert_allclose((weights[found.judges] * apart).sum(axis=1), rest, atol=1e-9)
    assert np.linalg.matrix_rank(weights, tol=1e-6) == 2


def test_tastes_and_qualities_have_their_spread():
    arena = Arena(items=400, judges=10, comparisons=10, features=30, rank=3, quality=2.0, taste=0.5)
    spreads = [np.sqrt(np.square(arena.loadings(seed)).sum(axis=1).mean()) for seed in range(20)]
    assert np.mean(spreads) == pytest.approx(0.5, rel=0.05)
    assert np.mean([arena.qualities(seed).std() for seed in range(40)]) == pytest.approx(2.0, rel=0.1)


def test_another_draw_has_the_same_items_and_other_judges():
    one, again, other = FEATURED.drawn(5), FEATURED.drawn(5), FEATURED.drawn(5, 1)
    np.testing.assert_array_equal(one.margins, again.margins)
    assert (one.margins != other.margins).any()
    assert (Arena(busy=0).drawn(0).judges != Arena(busy=3).drawn(0).judges).any()


def test_a_longer_answer_gains_and_the_votes_say_how_long():
    arena = Arena(items=5, judges=50, comparisons=40_000, taste=0.0, length=0.5, side=-0.3)
    board = leaderboard_of(votes_of(arena, 0), Choices(side=True))
    found = board.estimated.fit.beside
    assert found["length"] == pytest.approx(0.5, abs=0.05)
    assert found["left side"] == pytest.approx(-0.3, abs=0.05)


@pytest.mark.parametrize("arena", [FEATURED, Arena(items=8, judges=300, comparisons=60_000, taste=0.8)])
def test_the_limit_is_what_many_judges_tend_to(arena):
    many = replace(arena, judges=20_000, comparisons=400_000)
    board = leaderboard_of(votes_of(many, 2), Choices("davidson", intervals="none"))
    np.testing.assert_allclose(board.estimated.scores, limit(many, 2, "davidson"), atol=0.05)


@pytest.mark.parametrize("settings", [{"items": 1}, {"judges": 0}, {"taste": -1.0}, {"side": np.nan}, {"rank": 0}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(UserError, match=next(iter(settings))):
        Arena(**settings)
