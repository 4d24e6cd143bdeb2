"""Shares of the variance: what each source brings, as far as runs tell it apart, with intervals that cover."""

import numpy as np
import pytest

from rankbench.statistics.estimates import table_of
from rankbench.statistics.sources import Redrawn, shares
from rankbench.statistics.variation import freedom_of_squares

ALL = ("splits", "search", "start")
TRUE = {"users": 1.0, "splits": 2.0, "search": 0.5, "start": 1.5}
APART = {
    "all of them": ([ALL], {("users",), ("search", "splits", "start")}),
    "the start": ([ALL, ("start",)], {("users",), ("start",), ("search", "splits")}),
    "each": ([ALL, *((source,) for source in ALL)], {("users",), *((source,) for source in ALL), ()}),
    "one inside the other": (
        [ALL, ("start",), ("search", "start")],
        {("users",), ("start",), ("search",), ("splits",)},
    ),
    "two that overlap": (
        [ALL, ("search", "start"), ("splits", "start")],
        {("users",), ("splits",), ("search", "start")},
    ),
}  # fmt: skip


def run(rng, sources, repetitions, users=50, true=TRUE):
    """A run whose mean has these variances; what is not drawn anew is the same in all repetitions."""
    table = rng.normal(0, (true["users"] * users) ** 0.5, users) + rng.normal(0, 0.01, (repetitions, users))
    for source in ALL:
        moved = rng.normal(0, true[source] ** 0.5, (repetitions, 1))
        table = table + (moved if source in sources else moved[:1])
    return Redrawn(frozenset(sources), table)


def true_share(sources, true=TRUE):
    """The share that these sources have."""
    return sum(true[source] for source in sources) / sum(true.values())


@pytest.mark.parametrize("which", APART)
def test_runs_tell_apart_what_they_draw_anew(which):
    sets, parts = APART[which]
    rng = np.random.default_rng(1)
    found = shares([run(rng, sources, 2000, users=200) for sources in sets])
    assert {one.sources for one in found} == parts
    for one in found:
        assert one.share == pytest.approx(true_share(one.sources), abs=0.06)
        assert one.low <= one.share <= one.high


def test_sources_that_do_more_together_are_said_to():
    rng = np.random.default_rng(2)
    alone = [run(rng, (source,), 3000) for source in ALL]
    whole = run(rng, ALL, 3000)
    more = Redrawn(whole.sources, whole.table + rng.normal(0, 2.0, (3000, 1)))
    together = next(one for one in shares([more, *alone]) if not one.sources)
    assert together.share == pytest.approx(4 / 9, abs=0.06) and together.low > 0.3


def test_degrees_of_freedom_are_those_of_the_repetitions():
    rng = np.random.default_rng(3)
    found = {one.sources: one for one in shares([run(rng, ALL, 5), run(rng, ("start",), 9)])}
    assert found["start",].freedom == 8 and found["search", "splits"].freedom < 5
    assert 40 < found["users",].freedom <= 49


def test_shares_of_users_who_weigh_unequally_are_covered():
    rng, held = np.random.default_rng(5), 0
    for _ in range(200):
        weights = np.broadcast_to(np.ceil(rng.lognormal(3, 1.2, 100)), (5, 100))
        values = rng.normal(0, 0.5, 100) + rng.normal(0, 0.14, (5, 1)) + rng.normal(size=(5, 100))
        squares = float((weights[0] ** 2).sum() / weights[0].sum() ** 2)
        true = 0.25 * squares / (0.25 * squares + 0.14**2 + squares)
        run = Redrawn(frozenset(ALL), table_of(values, weights)[0], freedom_of_squares(values, weights))
        found = next(one for one in shares([run]) if one.sources == ("users",))
        held += found.low <= true <= found.high
    assert held / 200 > 0.92  # it was .77


def test_degrees_of_freedom_of_a_variance_are_fewer_where_users_weigh_unequally():
    values = np.array([[1.0, 2.0, 3.0, np.nan]])
    assert freedom_of_squares(values, np.array([[1.0, 1.0, 2.0, 9.0]])) == pytest.approx(36 / 18)
    assert freedom_of_squares(values, np.array([[2.0, 2.0, 2.0, 9.0]])) == 0
    assert freedom_of_squares(values[:, :0], values[:, :0]) == 0


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [Redrawn(frozenset(ALL), np.ones((1, 5)))],  # one repetition
        [Redrawn(frozenset(ALL), np.ones((5, 1)))],  # one user
        [Redrawn(frozenset(), np.ones((5, 5)))],  # nothing is drawn anew
        [Redrawn(frozenset(ALL), np.ones((5, 5)))],  # nothing varies
        [Redrawn(frozenset(ALL), np.zeros((0, 0)))],
    ],
)
def test_where_nothing_is_known_there_are_no_shares(runs):
    assert shares(runs) == []


def test_what_draws_nothing_has_no_share():
    rng = np.random.default_rng(4)
    still = Redrawn(frozenset({"start"}), np.tile(rng.normal(size=50), (5, 1)))
    start = next(one for one in shares([run(rng, ALL, 5), still]) if one.sources == ("start",))
    assert (start.variance, start.share, start.low, start.high) == (0, 0, 0, 0)


@pytest.mark.one_in(5)
@pytest.mark.slow
@pytest.mark.parametrize("repetitions", [3, 10])
@pytest.mark.parametrize("which", ["all of them", "the start", "each"])
@pytest.mark.parametrize("variances", [{}, {"users": 20.0}, {"start": 20.0}])
def test_the_intervals_of_200_redraws_cover(which, repetitions, variances):
    held, true = {}, {**TRUE, **variances}
    for redraw in range(200):
        rng = np.random.default_rng((redraw, repetitions))
        for one in shares([run(rng, sources, repetitions, true=true) for sources in APART[which][0]]):
            held.setdefault(one.sources, []).append(one.low <= true_share(one.sources, true) <= one.high)
    for sources, found in held.items():
        assert np.mean(found) >= 0.90, sources  # 0.95 less three errors of 200 draws
