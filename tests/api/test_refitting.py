"""The best solver of a comparison trained again on all rows."""

import numpy as np
import pytest
from helpers import prepared, ran, tiny

from rankbench.api.refitting import kept_model, refitted
from rankbench.core.leftovers import partial_of
from rankbench.data.views import Ratings
from rankbench.execution.retraining import best_of
from rankbench.experiments import Budget
from rankbench.fitted import load
from rankbench.planning.materials import Materials

pytestmark = pytest.mark.slow


def test_the_winner_learns_from_all_rows_with_its_settings_and_steps_and_knows_what_users_have(tmp_path):
    study = ran(tmp_path, tiny(repetitions=1)).study()
    cell = best_of(study.groups, study.measures[0], {}).cell
    view = Materials(0).view(cell.place.data)
    left = partial_of(tmp_path / "best.npz")  # by one that was killed
    left.touch()
    line = kept_model(study, view, tmp_path / "best.npz")
    assert not left.exists()
    assert f"{cell.solver_text}, trained on all {len(view):,} rows" in line and "rankbench recommend" in line
    model = load(tmp_path / "best.npz")
    assert len(model.seen.items) == len(view)
    top = model.recommend(0, k=view.n_items)
    assert set(top["item"]).isdisjoint(view.items[view.indptr[0] : view.indptr[1]].tolist())
    again = refitted(study, view)[1]
    assert np.array_equal(model.score_all(np.arange(3, dtype=np.int32)), again.score_all(np.arange(3, dtype=np.int32)))


def test_the_kept_winner_takes_users_who_were_not_trained_on(tmp_path):
    study = ran(tmp_path, tiny(solvers=("mf[rank=2,lam=1]",), repetitions=1)).study()
    view = Materials(0).view(study.groups[0].data)
    kept_model(study, view, tmp_path / "best.npz")
    assert len(load(tmp_path / "best.npz").fold_in({0: 5.0, 1: 1.0}).recommend()) > 0


def test_comparisons_that_a_split_draws_are_drawn_from_all_rows(tmp_path):
    experiment = tiny(
        splits=("binary[C=20]",), metrics=("ndcg@5[candidates=catalogue]",), repetitions=1, budget=Budget(steps=2)
    )
    study = ran(tmp_path, experiment).study()
    view = Materials(0).view(study.groups[0].data)
    model = refitted(study, view)[1]
    assert isinstance(view, Ratings) and len(model.seen.items) == len(view)


def test_why_no_model_is_kept_is_told(tmp_path):
    study = ran(tmp_path / "out", tiny(repetitions=1)).study()
    view = Materials(0).view(study.groups[0].data)
    line = kept_model(study, view, tmp_path / "nowhere" / "best.npz")
    assert line.startswith("no model is kept: cannot write")
    empty = prepared(tmp_path / "new", tiny(repetitions=1)).study()
    assert kept_model(empty, view, tmp_path / "a.npz").startswith("no model is kept: no cell")
