"""Ranges that widen while the best value is the outermost one that was tried."""

from dataclasses import replace
from math import log

import pytest
from helpers import made_up, prepared, tuned

from rankbench.core.errors import UserError
from rankbench.experiments.spaces import Range, Tune, described
from rankbench.names import with_settings
from rankbench.planning.widening import FACTOR, Widening, further, outermost, rounds_of, widening
from rankbench.records.cells import Selection
from rankbench.solvers import SOLVERS

SPACE = {"global": {"lam": Range(1.0, 1000.0, "log")}}
ONCE = Selection(repetitions=1, solvers=("global",))


def by_hand(out, value, space=SPACE, **changes):
    """The values of `lam` of a search whose trials get these values, in the order in which they are tried."""
    name = next(iter(space))
    tune = Tune(space, trials=4, metric="ndcg@5", **{"widen": 3, **changes})
    run = prepared(out, tuned(tune, solvers=(name,)), replace(ONCE, solvers=(name,)))
    run.open()
    tried = []
    while pending := run.pending_trials:
        tried += pending
        for trial in pending:
            run.keep(made_up(trial, 2 * value(trial.solver)), {})
        run.plan = run._settled(run.plan)
    return tried


def lam(solver):
    return solver.setting("lam")


def test_trials_go_beyond_the_lowest_value_while_it_is_the_best(tmp_path):
    tried = [lam(cell.solver) for cell in by_hand(tmp_path, lambda solver: -lam(solver))]
    assert len(tried) == 7 and all(1 <= one <= 1000 for one in tried[:4])
    lowest = min(tried[:4])
    assert tried[4:] == pytest.approx([lowest / FACTOR, lowest / FACTOR**2, lowest / FACTOR**3], rel=0.01)


def test_trials_go_beyond_the_highest_value_until_one_is_worse(tmp_path):
    tried = [lam(cell.solver) for cell in by_hand(tmp_path, lambda solver: -abs(log(lam(solver) / 2500)))]
    highest = max(tried[:4])
    assert 300 < highest < 1000 and tried[4:5] == pytest.approx([FACTOR * highest], rel=0.01)
    assert len(tried) in (5, 6)


def test_a_best_value_between_others_ends_the_search_and_no_round_asks_for_none(tmp_path):
    tried = by_hand(tmp_path / "one", lambda solver: -abs(log(lam(solver) / 30)))
    assert len(tried) == 4
    assert len(by_hand(tmp_path / "two", lambda solver: -lam(solver), widen=0)) == 4


def test_each_setting_widens_by_itself_beside_the_best_values_of_the_others(tmp_path):
    space = {"sgd": {"lam": Range(0.1, 100.0, "log"), "rank": Range(2, 8, "log")}}
    tried = by_hand(tmp_path, lambda solver: lam(solver) + 1000 * solver.setting("rank"), space, widen=1)
    best = max((cell.solver for cell in tried[:4]), key=lambda solver: (solver.setting("rank"), lam(solver)))
    longer = [cell.solver for cell in tried[4:] if cell.solver.setting("rank") > best.setting("rank")]
    assert [(lam(one), one.setting("rank")) for one in longer] == [(lam(best), 2 * best.setting("rank"))]


def test_what_follows_is_the_same_for_an_interrupted_search(tmp_path):
    tried = by_hand(tmp_path, lambda solver: -lam(solver))
    rule = Widening(SPACE["global"], 4, 3)
    results = [made_up(cell, -2 * lam(cell.solver)) for cell in tried]
    for known in range(4, 7):
        assert [lam(one.solver) for one in rule.more(tried[:known], results[:known])] == [lam(tried[known].solver)]
    assert rule.more(tried, results) == () and rule.most == 7


def test_without_a_trial_that_ended_well_nothing_follows(tmp_path):
    tried = by_hand(tmp_path, lambda solver: -lam(solver))[:4]
    failed = [made_up(cell, 0.0, status="failed", reason="no", curve=(), counted=()) for cell in tried]
    assert Widening(SPACE["global"], 4, 3).more(tried, failed) == ()


@pytest.mark.parametrize(
    ("name", "setting", "values", "side", "expected"),
    [
        ("sgd", {"lam": 10.0}, Range(1.0, 100.0, "log"), 1, 50.0),
        ("sgd", {"lam": 10.0}, Range(1.0, 100.0), 1, 109.0),
        ("sgd", {"rank": 4}, Range(2, 8, "log"), -1, 2),
        ("sgd", {"rank": 1}, Range(2, 8, "log"), -1, None),
        ("sgd", {"rank": 4}, Range(2, 8), 1, 10),
        ("smc", {"share": 0.8}, Range(0.1, 0.9, "log"), 1, None),  # a share is at most 1
        ("sgd", {"rank": 6000}, Range(2, 8, "log"), 1, None),  # as long as the solver allows
    ],
)
def test_a_value_beyond_is_a_factor_or_a_width_away_within_the_limits_of_the_solver(
    name, setting, values, side, expected
):
    ((key, _),) = setting.items()
    found = further(with_settings(SOLVERS.resolve(name), setting), key, values, side)
    assert (None if found is None else found.setting(key)) == expected


@pytest.mark.parametrize(
    ("best", "others", "sides"),
    [
        (1.0, (10.0, 100.0), [-1]),
        (100.0, (1.0, 10.0), [1]),
        (10.0, (1.0, 100.0), []),
        (1.5, (1.0, 100.0), [-1]),  # next to the lowest one
        (2.0, (1.0, 100.0), []),
        (90.0, (60.0, 100.0), []),  # by differences, as the ratio is small
        (97.0, (60.0, 100.0), [1]),
        (7.0, (7.0, 7.0), []),
    ],
)
def test_next_to_the_end_is_within_an_eighth_of_what_was_tried(tmp_path, best, others, sides):
    trial = by_hand(tmp_path, lambda solver: -lam(solver))[0]
    cells = [replace(trial, solver=with_settings(trial.solver, {"lam": value})) for value in (best, *others)]
    assert list(outermost(cells[0], cells, "lam")) == sides


def test_lists_and_single_trials_do_not_widen():
    assert widening({"lam": (1.0, 2.0)}, 4, 3) is None and widening(SPACE["global"], 1, 3) is None
    assert widening(SPACE["global"], 4, 0) is None


def test_widening_is_said_and_goes_with_random_and_grid_only():
    assert "while the best value is the outermost one tried, one more beyond it, up to 3 times" in described(
        Tune(SPACE, widen=3), ["ndcg@5"]
    )
    assert "outermost" not in described(Tune(SPACE), ["ndcg@5"])
    assert [rounds_of(method) for method in ("random", "grid", "tpe", "halving")] == [4, 4, 0, 0]
    assert rounds_of("random", 0) == 0 and rounds_of("tpe", 2) == 2
    with pytest.raises(UserError, match='widen goes with method = "random" or "grid", not with "tpe"'):
        Tune(SPACE, "tpe", widen=1).fitted(("global",))
