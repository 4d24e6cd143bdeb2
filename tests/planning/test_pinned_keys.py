"""Keys of cells must not change, because stored results are found by their keys.

pinned_keys.json has, for every experiment in its quick profile, the key of its first cell, or of its first trial
if it tunes, which all of them do on grids. pinned_defaults.json has every solver with its default settings, which are
a part of each key. pinned_homes.json has the module of each class that stored results name: it must not move.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import tuned

from rankbench import experiments
from rankbench.data import DATASETS
from rankbench.data.splits import SPLITS, VALIDATIONS
from rankbench.planning.plan import plan
from rankbench.records.cells import Selection
from rankbench.solvers import SOLVERS

PINS, DEFAULTS, HOMES = (
    json.loads(Path(__file__).with_name(f"pinned_{what}.json").read_text(encoding="utf-8"))
    for what in ("keys", "defaults", "homes")
)


def test_every_experiment_has_its_key_pinned():
    assert set(PINS) == set(experiments.names())


@pytest.mark.parametrize("name", PINS)
def test_an_experiments_first_key_is_what_it_was(name):
    experiment = experiments.load(name)
    first = experiment.data[0]
    if remedy := DATASETS.make(first).origin.missing():
        pytest.skip(f"{first} is not at hand: {remedy}")
    small = replace(experiment, data=(first,), splits=experiment.splits[:1])
    found = plan(small, Selection(solvers=experiment.solvers[:1], repetitions=1))
    (cell, *_) = found.trials or found.cells
    assert cell.key == PINS[name]


def test_the_keys_of_random_trials_are_what_they_were():
    made = plan(tuned(), Selection())
    assert [search.trials[0].key[:10] for search in made.searches] == [
        *("65447b5595", "774b32e91d"),  # of the first repetition
        *("7b835a560e", "0d8a0681a5"),  # of the second one, which draws other candidates
    ]


def test_the_defaults_of_every_solver_are_what_they_were():
    assert {name: SOLVERS.resolve(name).identity for name in SOLVERS.names()} == DEFAULTS


def test_classes_that_stored_results_name_stay_in_their_modules():
    kinds = {"solvers": SOLVERS, "data": DATASETS, "splits": SPLITS, "validations": VALIDATIONS}
    assert {kind: dict(registry.entries) for kind, registry in kinds.items()} == HOMES
