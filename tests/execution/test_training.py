"""Training: only the solver's `next()` is timed, and the budget ends training at the right step."""

import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import count, islice
from typing import Any, ClassVar

import numpy as np
import pytest

from rankbench.core.contract import Determinism, Step
from rankbench.core.errors import UserError
from rankbench.core.streams import stream
from rankbench.data.views import Comparisons, Ratings
from rankbench.execution.training import checkpoints, fit
from rankbench.experiments import Budget
from rankbench.models import ItemScores
from rankbench.solvers.mprank import MPRank
from rankbench.solvers.sgd import SGD

TRAIN = Ratings([0, 3, 5], [0, 1, 2, 1, 3], [1.0, 2.0, 3.0, 5.0, 4.0], 4, np.eye(4))
EVER = 10**6  # more steps than any test takes


@dataclass
class Clock:
    """A clock that moves only when it is told to."""

    now: float = 0.0

    def __call__(self):
        """The time."""
        return self.now

    def pass_time(self, seconds):
        """Move on."""
        self.now += seconds


def training(clock, seconds, objectives=None):
    """Steps that take so long each; evaluating an objective takes 1000 seconds more."""
    for index, took in enumerate(seconds):
        clock.pass_time(took)
        yield Step(ItemScores(np.full(4, float(index))), objective(clock, objectives, index))


def objective(clock, objectives, index):
    """The objective of a step, slow to compute; None where there is none."""
    if objectives is None:
        return None

    def value():
        clock.pass_time(1000)
        return objectives[index]

    return value


def walk(budget, seconds, objectives=None):
    """Every checkpoint, with 100 seconds of evaluation after each."""
    clock, passed = Clock(), []
    for checkpoint in checkpoints(training(clock, seconds, objectives), budget, clock):
        clock.pass_time(100)
        passed.append(checkpoint)
    return passed


def test_time_counts_inside_next_and_nowhere_else():
    passed = walk(Budget(steps=3, tolerance=1e-9), [5, 1, 2, 4, 8], objectives=[9, 8, 7, 6, 5])
    assert [checkpoint.seconds for checkpoint in passed] == [5, 6, 8, 12]


def test_checkpoints_are_numbered_from_the_start_and_carry_their_step():
    passed = walk(Budget(steps=3), [1] * 9)
    assert [checkpoint.index for checkpoint in passed] == [0, 1, 2, 3]
    assert [checkpoint.step.model.scores[0] for checkpoint in passed] == [0, 1, 2, 3]


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_so_many_steps_are_taken_beyond_the_start(steps):
    passed = walk(Budget(steps=steps), [1] * 20)
    assert [checkpoint.spent for checkpoint in passed] == [False] * steps + [True]


@pytest.mark.parametrize(("seconds", "length"), [(0.5, 1), (3, 3), (3.5, 4), (100, 6)])
def test_the_step_that_fills_the_seconds_is_the_last_and_is_still_scored(seconds, length):
    passed = walk(Budget(steps=None, seconds=seconds), [1] * 6)
    assert len(passed) == length
    assert passed[-1].spent == (seconds < 100)
    assert not any(checkpoint.spent for checkpoint in passed[:-1])


@pytest.mark.parametrize(
    ("tolerance", "length"),
    [(0.5, 2), (0.1, 3), (0.01, 4), (1e-9, 6)],
)
def test_the_tolerance_is_on_the_relative_change_of_the_objective_either_way(tolerance, length):
    objectives = [100.0, 60.0, 66.0, 65.5, 64.0, 60.0]  # moves by 40, 10, 0.8, 2.3 and 6 per cent
    passed = walk(Budget(steps=None, tolerance=tolerance), [1] * 6, objectives)
    assert len(passed) == length
    assert passed[-1].spent == (length < 6)


def test_an_objective_that_stands_still_at_zero_has_settled():
    assert len(walk(Budget(steps=None, tolerance=1e-3), [1] * 6, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0])) == 3


def test_without_an_objective_a_tolerance_ends_nothing():
    assert [checkpoint.spent for checkpoint in walk(Budget(steps=4, tolerance=1e9), [1] * 9)] == [False] * 4 + [True]


def test_a_tolerance_alone_is_refused_where_it_would_never_end():
    assert len(walk(Budget(steps=None, tolerance=1e-3), [1])) == 1  # a closed form ends by itself
    with pytest.raises(UserError, match="add steps or seconds"):
        walk(Budget(steps=None, tolerance=1e-3), [1] * 9)


def test_without_a_tolerance_only_the_first_objective_is_computed():
    clock = Clock()
    assert len(list(checkpoints(training(clock, [1] * 5, [1.0] * 5), Budget(steps=3), clock))) == 4
    assert clock.now == 1004


def test_a_solver_that_ends_by_itself_ends_the_walk_with_the_budget_unspent():
    assert [checkpoint.spent for checkpoint in walk(Budget(steps=9), [1, 1])] == [False, False]


def test_a_step_names_the_packages_that_it_imported_and_no_part_of_one_that_was_there(tmp_path, monkeypatch):
    for name in ("brought", "brought/part", "known", "known/part", "_private"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    import_module("known")

    def steps():
        yield Step(ItemScores(np.zeros(1)))
        for name in ("known.part", "_private", "brought.part"):
            import_module(name)
        yield Step(ItemScores(np.zeros(1)))
        yield Step(ItemScores(np.zeros(1)))

    assert [one.imported for one in checkpoints(steps(), Budget(steps=2))] == [(), ("brought",), ()]
    for name in [one for one in sys.modules if one.partition(".")[0] in ("brought", "known", "_private")]:
        del sys.modules[name]


def test_whichever_budget_is_spent_first_ends_the_walk():
    assert len(walk(Budget(steps=5, seconds=3), [1] * 9)) == 3
    assert len(walk(Budget(steps=1, seconds=3), [1] * 9)) == 2


def test_no_step_is_asked_for_before_it_is_wanted_or_after_the_end():
    clock = Clock()
    steps = training(clock, [1] * 9)
    walked = checkpoints(steps, Budget(steps=2), clock)
    assert clock.now == 0
    next(walked)
    assert clock.now == 1
    assert len(list(walked)) == 2
    assert inspect.getgeneratorstate(steps) == "GEN_SUSPENDED"
    assert clock.now == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": None}, "a budget needs steps, seconds or a tolerance: some solvers never stop by themselves"),
        ({"steps": -1}, "steps=-1 is out of range: must be at least 0"),
        ({"steps": 1.5}, "steps=1.5 is not of type int"),
        ({"seconds": 0}, "seconds=0 is out of range: must be above 0"),
        ({"tolerance": 0}, "tolerance=0 is out of range: must be above 0"),
        ({"seconds": float("nan")}, "seconds=nan is out of range"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(settings, message):
    with pytest.raises(UserError, match=message):
        Budget(**settings)
    with pytest.raises(UserError, match=message):
        fit(SGD(), TRAIN, **settings)


# ---- fit ----


@dataclass(frozen=True)
class Recorder:
    """A solver that notes what it was handed and counts its steps."""

    handed: list[Any] = field(default_factory=list, hash=False)
    length: int = EVER
    growth: float = 0.5
    learns_from: ClassVar[Any] = Comparisons
    needs_features: ClassVar[bool] = False
    determinism: ClassVar[Determinism] = Determinism.EXACT
    version: ClassVar[int] = 1

    def steps(self, train: Any, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """Models that say how many came before them, with objectives that grow, or halve."""
        self.handed.append((train, rng.random(), threads))
        for index in islice(count(), self.length):
            yield Step(ItemScores(np.full(4, float(index))), lambda index=index: self.growth**index + 1)


def last(model):
    """How many steps came before this model."""
    return model.scores[0]


def by_hand(solver, train, steps, seed):
    """The model after so many steps, with no budget and no clock."""
    walk = solver.steps(train, stream(seed, "fit", type(solver).__name__))
    return next(islice(walk, steps, None)).model


@pytest.mark.parametrize(("steps", "seed"), [(0, 0), (3, 0), (3, 5)])
def test_fit_is_the_loop_that_one_would_write_by_hand(steps, seed):
    solver = SGD(rank=3)
    ours, theirs = fit(solver, TRAIN, steps=steps, seed=seed), by_hand(solver, TRAIN.comparisons(), steps, seed)
    assert (ours.users.tobytes(), ours.items.tobytes()) == (theirs.users.tobytes(), theirs.items.tobytes())


def test_fit_takes_twenty_steps_unless_told_otherwise():
    assert last(fit(Recorder(), TRAIN)) == 20
    assert last(fit(Recorder(), TRAIN, steps=4)) == 4
    assert last(fit(Recorder(length=3), TRAIN)) == 2


def test_fit_stops_at_a_tolerance_or_after_seconds():
    assert last(fit(Recorder(), TRAIN, steps=None, tolerance=0.06)) == 4  # 1.125 -> 1.0625
    assert last(fit(Recorder(), TRAIN, steps=None, seconds=1e-4)) < EVER - 1


def test_another_seed_gives_another_model():
    one, again, other = (fit(SGD(rank=2), TRAIN, steps=1, seed=seed).users.tobytes() for seed in (1, 1, 2))
    assert one == again != other


def test_fit_hands_over_what_was_declared_and_the_threads():
    solver = Recorder()
    fit(solver, TRAIN, threads=3)
    ((train, _, threads),) = solver.handed
    assert isinstance(train, Comparisons) and train.item_features is None
    assert threads == 3


def test_data_that_does_not_suit_the_solver_is_refused():
    with pytest.raises(UserError, match="MPRank learns from ratings"):
        fit(MPRank(), TRAIN.comparisons())


def test_a_solver_that_yields_nothing_is_said():
    with pytest.raises(UserError, match="Recorder yielded no model"):
        fit(Recorder(length=0), TRAIN)


def test_a_model_is_refused_if_its_objective_rose_a_thousandfold_above_the_first():
    growing = Recorder(growth=11.0)
    assert last(fit(growing, TRAIN, steps=2)) == 2
    with pytest.raises(UserError, match=r"Recorder diverged: its objective rose from 2 to 1.*smaller step"):
        fit(growing, TRAIN, steps=4)
