"""The experiments of the package: each is read strictly, and each can run."""

import tomllib
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from helpers import tiny_toml

from rankbench import experiments
from rankbench.core.errors import UserError
from rankbench.data import DATASETS
from rankbench.data.splits import SPLITS
from rankbench.experiments import TIMES, Curve, Figure
from rankbench.experiments.usual_spaces import PENALTIES
from rankbench.solvers import SOLVERS


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", experiments.names())
def test_every_name_in_an_experiment_is_known(name, full):
    found = experiments.load(name, full)
    for text in found.data:
        DATASETS.make(text)
    for text in found.splits:
        SPLITS.make(text)
    for text in found.solvers:
        SOLVERS.make(text)
    assert found.about.strip() and found.paper and found.figure.metric in ("", *found.metrics)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", experiments.names())
def test_every_published_number_names_a_solver_a_split_a_metric_and_data_of_the_experiment(name, full):
    found = experiments.load(name, full)
    whole = experiments.load(name, full=True)  # the quick profile may leave some out
    solvers, data = {*found.solvers, *whole.solvers}, {*found.data, *whole.data}
    for entry in found.published:
        known = (*found.metrics, experiments.PER_STEP)
        assert entry.metric in known or (entry.metric in TIMES and entry.threads in found.threads)
        assert any(means(entry.solver, SOLVERS, text) for text in solvers)
        assert entry.split is None or any(means(entry.split, SPLITS, text) for text in found.splits)
        assert entry.data is None or any(means(entry.data, DATASETS, text) for text in data)
        assert entry.on is None or DATASETS.resolve(str(entry.on))


def means(pattern, registry, text):
    """Whether the pattern, with the settings that it mentions, is the name that somebody wrote."""
    named = registry.resolve(text)
    return pattern.fits(named.names, dict(named.given))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", experiments.names())
def test_where_only_seconds_are_compared_one_cell_runs_at_a_time(name, full):
    found = experiments.load(name, full)
    phrases = ("Only seconds and memory", "nothing is tuned, since only the time is of interest")
    text = " ".join(found.about.split()).lower()
    if any(phrase.lower() in text for phrase in phrases):
        assert found.timed


@pytest.mark.parametrize("name", experiments.names())
def test_what_a_figure_is_said_to_show_is_in_the_experiment(name):
    quick, full = (experiments.load(name, profile) for profile in (False, True))
    for pattern in full.figure.solvers:
        assert any(SOLVERS.resolve(one).fits(pattern) for one in (*quick.solvers, *full.solvers)), pattern
    for pattern in full.figure.data:
        assert any(DATASETS.resolve(one).fits(pattern) for one in full.data), pattern


@pytest.mark.parametrize(("kind", "name"), [("solvers", "sgdd"), ("data", "low-rang[users=5]")])
def test_a_figure_of_what_the_experiment_does_not_have_is_refused(kind, name):
    text = (files("rankbench.experiments") / "cortes2007-bounds.toml").read_text()
    text = text.replace("[figure]", f'[figure]\n{kind} = ["{name}"]', 1)
    with pytest.raises(UserError, match=rf"unknown name in x.toml: \[figure\] {kind} '{name.partition('[')[0]}'"):
        experiments.read("x", "x.toml", text)


def test_full_replaces_what_it_names_and_nothing_else():
    quick, full = (experiments.load("park2015-table1", flag) for flag in (False, True))
    table = tomllib.loads(files("rankbench.experiments").joinpath("park2015-table1.toml").read_text())
    assert full.repetitions == table["full"]["repetitions"] != quick.repetitions
    assert (full.splits, full.metrics) == (quick.splits, quick.metrics)


def test_a_budget_that_names_seconds_has_no_steps_of_its_own():
    text = 'title="t"\npaper="p"\nabout="a"\ndata=["btl"]\nsplits=["entries"]\nsolvers=["sgd"]\nmetrics=["kendall"]\n'
    found = experiments.read("x", "x.toml", text + "[budget]\nseconds = 2\n")
    assert (found.budget.steps, found.budget.seconds) == (None, 2.0)


TEXT = 'title="t"\npaper="p"\nabout="a"\ndata=["btl"]\nsplits=["entries"]\nsolvers=["sgd"]\nmetrics=["kendall"]\n'


def test_threads_may_be_an_axis():
    assert experiments.read("x", "x.toml", TEXT + "threads = [4, 1, 2, 1]\n").threads == (1, 2, 4)


@pytest.mark.parametrize("value", ["2", "[0, 1]", "[1.5]", "[true]", '["two"]'])
def test_threads_that_are_no_numbers_are_refused(value):
    with pytest.raises(UserError, match=r"x.toml: threads must be a list of numbers of at least 1: threads = \[1, 2"):
        experiments.read("x", "x.toml", TEXT + f"threads = {value}\n")


def test_more_threads_than_any_machine_has_are_refused():
    with pytest.raises(UserError, match=r"x.toml: threads=1025 is out of range: must be at least 1 and at most 1024"):
        experiments.read("x", "x.toml", TEXT + "threads = [1, 1025]\n")


def test_a_metric_is_stored_under_its_canonical_name():
    text = 'title="t"\npaper="p"\nabout="a"\ndata=["btl"]\nsplits=["entries"]\nsolvers=["sgd"]\n'
    found = experiments.read("x", "x.toml", text + 'metrics=["precision@3[relevant=4]"]\n')
    assert found.metrics == ("precision@3",)


def test_an_unknown_key_of_the_full_profile_is_named():
    text = 'title="t"\n[full]\nrepetition = 3\n'
    with pytest.raises(UserError, match=r"\[full\] 'repetition'; did you mean 'repetitions'"):
        experiments.read("x", "x.toml", text)


TUNED = [(name, full) for name in experiments.names() for full in (False, True) if experiments.load(name, full).tune]


@pytest.mark.parametrize(("name", "full"), TUNED)
def test_a_tuned_experiment_gives_every_solver_as_many_trials(name, full):
    found = experiments.load(name, full)
    rng = np.random.default_rng(0)
    trials = {text: len(found.tune.candidates(text, rng)) for text in found.solvers if found.tune.space_of(text)}
    assert set(trials.values()) == {found.tune.trials}


@pytest.mark.parametrize("name", [name for name, full in TUNED if full])
def test_the_full_profile_tries_penalties_far_enough_apart_that_its_rows_are_not_marked(name):
    tune = experiments.load(name, full=True).tune
    for solver, space in tune.space.items():
        for penalty in space.keys() & set(PENALTIES):
            tried = space[penalty] if isinstance(space[penalty], tuple) else (space[penalty].low, space[penalty].high)
            assert max(tried) >= 30 * min(tried), f"{solver}: {penalty}"


def test_curves_beside_a_figure_that_has_no_place_for_them_are_refused():
    with pytest.raises(UserError, match="curves need kind=sweep or kind=speedup, not kind=bars"):
        Figure("bars", curves=(Curve("theory", [8, 9], [0.3, 0.2]),))


def test_an_experiment_file_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    def sealed(path, most):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "mine.toml").touch()
    monkeypatch.setattr(experiments, "content", sealed)
    with pytest.raises(UserError, match=r"^mine\.toml: cannot be read: Permission denied$"):
        experiments.load(str(tmp_path / "mine.toml"))


def test_margins_are_numbers_above_0_by_metric(tmp_path):
    text = Path(tiny_toml(tmp_path)).read_text()
    path = tmp_path / "margins.toml"
    path.write_text(f'{text}\n[margins]\n"ndcg@5" = 0.005\n')
    assert experiments.load(str(path)).margins == (("ndcg@5", 0.005),)
    path.write_text(f'{text}\n[margins]\n"ndcg@5" = 0\n')
    with pytest.raises(UserError, match=r"\[margins\] must be numbers above 0 by metric"):
        experiments.load(str(path))
