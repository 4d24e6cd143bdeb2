"""What a run shows at its end is kept, and made again as soon as something that it is made of has changed."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import around, made_up, prepared, ran, store_in, tiny, tuned

from rankbench.records.cells import Selection
from rankbench.report import shown as kept


@pytest.fixture
def show(tmp_path, monkeypatch):
    """Shows a run that finds its results stored; returns what is shown and whether it was made."""
    made, sheet = [], kept.sheet
    monkeypatch.setattr(kept, "sheet", lambda study: made.append(study) or sheet(study))

    def of(**selection):
        run = prepared(tmp_path, tiny(), Selection(**selection))
        run.open()
        made.clear()
        return kept.shown(run.store, run.study()), bool(made)

    run = prepared(tmp_path, tiny())
    run.open()
    for cell in run.plan.cells:
        run.keep(made_up(cell, 0.5), around(cell, 0.5))
    return of


def file_in(folder):
    (found,) = (folder / "tiny" / "shown").iterdir()
    return found


def test_what_nothing_has_changed_is_shown_again_and_not_made(show):
    first, made = show()
    assert made and first.sheet.lines and first.lines and "0.5" in str(first.sheet)
    assert show() == (first, False)


def test_a_changed_result_is_shown(show, tmp_path):
    show()
    run = prepared(tmp_path, tiny())
    cell = run.plan.cells[0]
    run.store.save(made_up(cell, 0.8125, finished="2026-01-03T03:04:05+00:00"), around(cell, 0.8125))
    found, made = show()
    assert made and "0.6562" in str(found.sheet)  # the mean of .5 and .8125


def test_a_result_that_changes_while_it_is_shown_is_shown_the_next_time(show, tmp_path, monkeypatch):
    run = prepared(tmp_path, tiny())
    cell, score = run.plan.cells[0], kept.score_of

    def meanwhile(study):
        run.store.save(made_up(cell, 0.8125, finished="2026-01-03T03:04:05+00:00"), around(cell, 0.8125))
        return score(study)

    monkeypatch.setattr(kept, "score_of", meanwhile)
    show()
    found, made = show()
    assert made and "0.6562" in str(found.sheet)


@pytest.mark.slow
def test_what_is_tuned_is_kept_too(tmp_path, monkeypatch):
    run = ran(tmp_path, tuned(repetitions=1))
    first = kept.shown(run.store, run.study())
    again = prepared(tmp_path, tuned(repetitions=1))
    again.open()
    monkeypatch.delattr(kept, "sheet")  # nothing can be made any more
    assert kept.shown(again.store, again.study()) == first


def test_changed_values_for_users_are_noticed(show, tmp_path):
    show()
    next((tmp_path / "tiny" / "cells").glob("*.npz")).touch()
    assert show()[1]


def test_a_result_that_was_replaced_since_it_was_read_is_not_kept_as_what_was_read(show, tmp_path):
    """Another driver may write a result after this run has read the one before it."""
    run = prepared(tmp_path, tiny())
    run.open()
    cell = run.plan.cells[0]
    run.store.save(made_up(cell, 0.8125, finished="2026-01-03T03:04:05+00:00"), around(cell, 0.8125))
    before = kept.shown(run.store, run.study())
    found, made = show()
    assert made and found != before


def test_other_source_code_makes_it_again(show, monkeypatch):
    show()
    monkeypatch.setattr(kept.pieces, "_program", lambda: "other")
    assert show()[1]


@pytest.mark.parametrize("spoil", [
    lambda text: "", lambda text: "{", lambda text: "[]", lambda text: text.replace("0.5000", "0.6000"),
    lambda text: json.dumps(json.loads(text) | {"digest": "0" * 64}),
])  # fmt: skip
def test_a_file_that_was_changed_is_made_again(show, tmp_path, spoil):
    first, _ = show()
    file = file_in(tmp_path)
    whole = file.read_text()
    assert spoil(whole) != whole
    file.write_text(spoil(whole))
    assert show() == (first, True)
    assert file.read_text() == whole


def test_a_part_of_what_is_planned_is_shown_and_not_kept(show, tmp_path):
    whole, _ = show()
    part, made = show(solvers=("global",))
    assert made and part.sheet.lines != whole.sheet.lines
    assert show() == (whole, False)


def test_it_is_shown_where_nothing_can_be_written(show, tmp_path):
    (tmp_path / "tiny" / "shown").write_text("in the way")
    found, made = show()
    assert made and show() == (found, True)


def test_an_idle_run_leaves_the_plan_as_it_is(show, tmp_path):
    (path,) = (tmp_path / "tiny" / "plans").iterdir()
    before = path.read_bytes()
    show()
    assert path.read_bytes() == before


def test_a_run_that_has_something_to_do_writes_the_plan_with_its_date(show, tmp_path):
    (path,) = (tmp_path / "tiny" / "plans").iterdir()
    before = path.read_bytes()
    run = prepared(tmp_path, tiny())
    run.store.path(run.plan.cells[0]).unlink()
    show()
    assert path.read_bytes() != before


def test_an_idle_run_of_an_older_plan_makes_it_the_most_recent_one(show, tmp_path):
    prepared(tmp_path, tiny(), Selection(seed=1)).open()
    assert store_in(tmp_path).plans()[-1].seed == 1
    show()
    assert store_in(tmp_path).plans()[-1].seed == 0


def test_a_changed_description_is_written(show, tmp_path):
    prepared(tmp_path, tiny(title="Another title")).open()
    (plan,) = store_in(tmp_path).plans()
    assert plan.experiment == replace(tiny(), title="Another title")


@pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_is_not_waited_for(show, tmp_path, put):
    first, _ = show()
    file = file_in(tmp_path)
    file.unlink()
    put(file)
    assert show() == (first, True)
