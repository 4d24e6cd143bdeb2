"""Paths of penalties: trials start from the model of the trial before, and interruptions change nothing."""

from dataclasses import replace
from statistics import median

import pytest
from helpers import prepared, ran, store_in, tiny

from rankbench.core.errors import UserError
from rankbench.execution.forecast import estimate
from rankbench.experiments.spaces import Tune
from rankbench.planning.plan import plan
from rankbench.planning.warm_starts import Paths
from rankbench.records.cells import Selection

ALONG = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from rankbench import Determinism, ItemScores, Ratings, Step

@dataclass(frozen=True)
class Along:
    lam: float = 1.0
    rank: int = 2
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1
    path: ClassVar = {{"lam": "{direction}"}}

    def steps(self, train, rng, threads=1):
        yield Step(ItemScores(np.arange(train.n_items) + self.lam))

    def steps_from(self, model, train, rng, threads=1):
        yield Step(ItemScores(model.scores * np.linspace(-1, 1, train.n_items) + self.lam))
"""
SPACE = {"lam": (1.0, 30.0, 4.0), "rank": (2, 3)}


def along(folder, direction="falls", space=SPACE, trials=6):
    """The tiny experiment with a search of a solver that can start from another penalty's model."""
    folder.mkdir(exist_ok=True)
    (folder / "along.py").write_text(ALONG.format(direction=direction))
    name = f"{folder / 'along.py'}:Along"
    return tiny(solvers=(name,), tune=Tune({name: space}, trials=trials, metric="ndcg@5"))


def told(run):
    """Each trial's repetition, rank and penalty, with the penalty of the trial that it started from and its values."""
    results = {trial.key: run.result(trial) for trial in run.plan.trials}
    found = {}
    for trial in run.plan.trials:
        result = results[trial.key]
        start = results[result.start].cell.solver.setting("lam") if result.start else None
        place = (trial.place.repetition, trial.solver.setting("rank"), trial.solver.setting("lam"))
        found[place] = (start, result.model, result.curve[-1].values)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("direction", "starts"), [("falls", {30.0: None, 4.0: 30.0, 1.0: 4.0}), ("rises", {1.0: None, 4.0: 1.0, 30.0: 4.0})]
)
def test_each_trial_starts_from_the_model_of_the_next_stronger_penalty(tmp_path, direction, starts):
    run = ran(tmp_path / "out", along(tmp_path, direction))
    found = told(run)
    assert len(found) == 12
    for (_, _, lam), (start, model, _) in found.items():
        assert start == starts[lam] and model
    assert not list(run.store.starts.iterdir())
    assert all(run.result(cell).start == "" for cell in run.plan.cells)


def test_trials_start_from_models_of_their_own_split_and_other_settings(tmp_path):
    made = plan(along(tmp_path), Selection())
    paths = Paths(made.searches, tmp_path / "starts")
    for trial in made.trials:
        if before := paths.before(trial):
            assert before.place == trial.place and before.solver.setting("rank") == trial.solver.setting("rank")
    ordered = paths.ordered(made.trials)
    assert sorted(trial.key for trial in ordered) == sorted(trial.key for trial in made.trials)
    assert all(ordered.index(before) < place for place, trial in enumerate(ordered) if (before := paths.before(trial)))


def test_keys_do_not_depend_on_the_start_and_two_tuned_penalties_make_no_path(tmp_path):
    experiment = along(tmp_path)
    made = plan(experiment, Selection())
    (name,) = experiment.tune.space
    without = (tmp_path / "along.py").read_text().replace('{"lam": "falls"}', '{"lam": "falls", "rank": "rises"}')
    (tmp_path / "along.py").write_text(without)
    both = plan(experiment, Selection())
    paths = Paths(both.searches, tmp_path)
    assert not any(paths.before(trial) for trial in both.trials)
    assert [trial.slot for trial in both.trials] == [trial.slot for trial in made.trials] and name


def stopped_after(number):
    """A listener that stops the run, as Ctrl-C does, after so many cells have ended."""
    ended = []

    def tell(event):
        ended.extend([event] if event.kind == "end" else [])
        if len(ended) == number:
            raise KeyboardInterrupt

    return tell


@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3, 5, 11])
def test_an_interrupted_search_gives_the_bits_of_one_that_was_not(tmp_path, number):
    experiment = along(tmp_path)
    whole = ran(tmp_path / "whole", experiment)
    with pytest.raises(KeyboardInterrupt):
        ran(tmp_path / "out", experiment, tell=stopped_after(number))
    again = ran(tmp_path / "out", experiment)
    assert told(again) == told(whole)
    assert not list(again.store.starts.iterdir())


@pytest.mark.slow
def test_several_at_a_time_give_the_same_as_one_after_the_other(tmp_path):
    experiment = along(tmp_path)
    assert told(ran(tmp_path / "two", experiment, jobs=3)) == told(ran(tmp_path / "one", experiment))


def test_after_a_trial_that_failed_the_next_starts_from_the_one_before_it(tmp_path):
    experiment = along(tmp_path, space={"lam": (1.0, 30.0, 4.0)}, trials=3)
    text = (tmp_path / "along.py").read_text()
    (tmp_path / "along.py").write_text(
        text.replace("yield Step(ItemScores(model", "assert self.lam != 4; yield Step(ItemScores(model")
    )
    found = ran(tmp_path / "out", replace(experiment, repetitions=1))
    by_lam = {trial.solver.setting("lam"): found.result(trial) for trial in found.plan.trials}
    assert by_lam[4.0].status == "failed"
    assert by_lam[1.0].start == by_lam[30.0].key


def test_a_trial_without_the_model_before_it_starts_from_nothing(tmp_path):
    experiment = along(tmp_path, space={"lam": (1.0, 30.0)}, trials=2)
    first = ran(tmp_path / "out", experiment)
    weakest = next(trial for trial in first.plan.trials if trial.solver.setting("lam") == 1.0)
    store_in(tmp_path / "out").path(weakest).unlink()
    again = ran(tmp_path / "out", experiment)
    assert first.result(weakest).start and not again.result(weakest).start


@pytest.mark.slow
def test_an_estimate_knows_that_trials_of_a_path_follow_each_other(tmp_path):
    """However many run at a time: as long as a search's trials one by one, and then a cell."""
    experiment = along(tmp_path)
    ran(tmp_path / "out", experiment)
    run = prepared(tmp_path / "out", experiment, rerun="all", jobs=50)
    usual = median(run.result(cell).wall for cell in (*run.plan.cells, *run.plan.trials))
    seconds, unknown = estimate(run)
    assert unknown == 0 and (3 + 1) * usual <= seconds < (12 + 2) * usual


@pytest.mark.slow
def test_a_model_for_which_there_is_no_room_ends_the_run_in_one_line(tmp_path):
    run = prepared(tmp_path / "out", along(tmp_path / "files"))
    run.open()
    run.store.starts.touch()  # in place of the folder
    with pytest.raises(UserError, match=r"cannot write to .*starts: File exists; "):
        run.execute()
    run.store.starts.unlink()
    run.execute()
    assert len(run.study().results) == len(run.plan.cells)
