"""The store and the machine: atomic files, damage that costs one file only, and fingerprints of comparable times."""

import errno
import json
import os
import pickle
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import MACHINE, TINY, around, made_up, prepared, ran, silent, store_in, tiny, tuned

from rankbench.arrays.npz import read_npz
from rankbench.core.errors import UserError
from rankbench.core.leftovers import HELD, partial_of
from rankbench.data import DATASETS
from rankbench.data.splits import SPLITS
from rankbench.execution import machine
from rankbench.experiments import Budget
from rankbench.experiments.spaces import Tune
from rankbench.planning.plan import plan
from rankbench.records import plan_files
from rankbench.records.cells import Selection, Skip
from rankbench.records.codec import Unreadable
from rankbench.records.machines import Machine
from rankbench.records.plans import Failure
from rankbench.records.store import FORMAT, ResultsFolder, Store, values_of, write_text
from rankbench.solvers import SOLVERS


def stored_plan(experiment=TINY, made="2026-01-02", **selection):
    """What is stored of an experiment's plan."""
    return replace(plan(experiment, Selection(**selection)), searches=(), made=made)


def opened(tmp_path, warn=silent):
    """A store with its folders."""
    store = Store(tmp_path / "tiny", warn)
    store.open()
    return store


def cells_of(stored):
    """The cells of a stored plan."""
    return list(stored.planned)


# ---- files ----


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    target = tmp_path / "file"
    write_text(target, "old")

    def broken(self, other):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", broken)
    with pytest.raises(OSError, match="No space"):
        write_text(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_a_killed_run_left_behind_is_cleared_and_a_running_ones_is_not(tmp_path):
    store = opened(tmp_path)
    dead = partial_of(store.folder / ".scratch")
    dead.mkdir()
    (dead / HELD).touch()
    with store.scratch() as alive, store.scratch() as scratch:
        assert Path(alive).parent == Path(scratch).parent == store.folder
        assert not dead.exists() and Path(alive).exists()
    assert not Path(scratch).exists() and not Path(alive).exists()


def test_a_metric_without_a_value_is_strict_json_in_the_file_and_nan_when_read(tmp_path):
    cell, store = plan(TINY, Selection()).cells[0], opened(tmp_path)
    result = made_up(cell, float("nan"), unscored=float("nan"))
    result = replace(result, curve=(replace(result.curve[0], objective=float("inf")),))
    store.save(result, {})
    json.loads(store.path(cell).read_text(), parse_constant=pytest.fail)
    back = store.load(cell)
    assert np.isnan(back.value("ndcg@5")) and np.isnan(back.curve[0].values[0])
    assert back.curve[0].objective == float("inf") and repr(back) == repr(result)


def test_a_failure_leaves_no_values_of_the_result_that_it_replaces(tmp_path):
    run = prepared(tmp_path, TINY)
    run.open()
    cell = run.plan.cells[0]
    run.keep(made_up(cell, 0.5), around(cell, 0.5))
    assert values_of(run.store.cells, cell)
    run.keep(made_up(cell, 0.5, status="timeout", reason="10 s", curve=(), counted=()), {})
    assert values_of(run.store.cells, cell) == {}


def test_a_result_says_its_format_and_its_key(tmp_path):
    cell, store = plan(TINY, Selection()).cells[0], opened(tmp_path)
    store.save(made_up(cell, 0.5), {})
    content = json.loads(store.path(cell).read_text())
    assert (content["format"], content["key"], content["cell"]["seed"]) == (FORMAT, cell.key, 0)
    assert store.path(cell).name == f"global-{cell.key[:16]}.json"


def test_results_of_one_machine_share_its_record_and_each_has_its_own_machine(tmp_path):
    cells, store, other = cells_of(stored_plan()), opened(tmp_path), replace(MACHINE, cpu="another")
    for cell, where in zip(cells, (MACHINE, MACHINE, other, MACHINE), strict=True):
        store.save(made_up(cell, 0.5, machine=where), {})
    reader = opened(tmp_path)
    machines = [reader.load(cell).machine for cell in cells]
    assert machines[0] is machines[1] and machines == [MACHINE, MACHINE, other, MACHINE]


def test_every_result_is_told_in_brief(tmp_path):
    cells, store = plan(TINY, Selection()).cells, opened(tmp_path)
    for cell, status in zip(cells, ("ok", "diverged", "failed", "timeout"), strict=True):
        store.save(made_up(cell, 0.5, status=status), {"ndcg@5": np.zeros(20)})
    found = {stored.name: stored for stored in store.summaries()}
    assert set(found) == {store.path(cell).name for cell in cells} == {file.name for file in store.files()}
    first = found[store.path(cells[1]).name]
    size = sum(path.stat().st_size for path in store.folder.rglob(f"{Path(first.name).stem}.*"))
    assert (first.status, first.seed, first.bytes) == ("diverged", 0, size)
    assert first.machine.startswith("a processor, 2 cores, Python 3.12.0")


def test_a_result_whose_cell_has_no_seed_is_set_aside_from_the_brief_list(tmp_path):
    told = []
    cells, store = plan(TINY, Selection()).cells, opened(tmp_path, told.append)
    for cell in cells:
        store.save(made_up(cell, 0.5), {})
    path = store.path(cells[0])
    path.write_text(json.dumps({**json.loads(path.read_text()), "cell": {"seed": "none"}}))
    assert {stored.name for stored in store.summaries()} == {store.path(cell).name for cell in cells[1:]}
    assert told == [f"{path} cannot be read (not a result: its cell has no seed): set aside as {path.name}.broken"]


def test_a_folder_of_results_names_what_is_in_it(tmp_path):
    folder = ResultsFolder(tmp_path, silent)
    assert folder.names() == [] and folder.store("tiny").plans() == [] and list(folder.store("tiny").files()) == []
    opened(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "file").touch()
    assert folder.names() == ["tiny"]


# ---- plans ----


def test_a_stored_plan_comes_back_as_it_was(tmp_path):
    store, stored = opened(tmp_path), stored_plan(tuned(), repetitions=1)
    assert store.plans() == []
    assert store.write_plan(stored) == stored
    assert store.plans() == [stored]
    failed = replace(stored_plan(), failures=tuple(Failure(cell, "why") for cell in stored_plan().planned))
    store.write_plan(failed)
    assert store.plans() == [failed]


def test_a_plan_that_another_driver_has_written_since_is_read(tmp_path):
    one, other = opened(tmp_path), opened(tmp_path)
    one.write_plan(stored_plan(made="1"))
    other.write_plan(stored_plan(made="2"))
    assert [found.made for found in one.plans()] == ["2"]
    one.plan_path(stored_plan()).unlink()
    assert one.plans() == []


def test_another_profile_or_seed_is_a_plan_of_its_own(tmp_path):
    store = opened(tmp_path)
    store.write_plan(stored_plan(made="2"))
    store.write_plan(stored_plan(made="1", seed=1, solvers=("sgd",)))
    store.write_plan(stored_plan(made="3", full=True, repetitions=1))
    assert [(found.profile, found.seed, len(found.planned)) for found in store.plans()] == [
        ("quick", 1, 2),
        ("quick", 0, 4),
        ("full", 0, 2),
    ]


def test_experiments_of_two_files_have_plans_of_their_own(tmp_path):
    store = opened(tmp_path)
    for source in ("", "/a/tiny.toml", "/b/tiny.toml"):
        store.write_plan(stored_plan(tiny(source=source)))
    assert sorted(found.experiment.source for found in store.plans()) == ["", "/a/tiny.toml", "/b/tiny.toml"]


def test_a_solver_that_was_changed_takes_the_slot_of_its_old_version(tmp_path):
    store, stored = opened(tmp_path), stored_plan()
    store.write_plan(stored)
    changed = tuple(replace(cell, version=cell.version + 1) for cell in cells_of(stored))
    store.write_plan(replace(stored, planned=changed))
    (found,) = store.plans()
    assert cells_of(found) == list(changed)


def test_a_solver_that_was_changed_keeps_its_place_among_the_others(tmp_path):
    store, stored = opened(tmp_path), stored_plan()
    store.write_plan(stored)
    first, *others = cells_of(stored)
    changed = replace(first, version=first.version + 1)
    repeated = [cell for cell in others if cell.line == first.line]  # of the old version, which leaves the plan
    store.write_plan(replace(stored, planned=(changed,)))
    (found,) = store.plans()
    assert cells_of(found) == [changed, *(cell for cell in others if cell not in repeated)]


EDITIONS = {
    "data": lambda cell: replace(cell, place=replace(cell.place, data=edited(cell.place.data))),
    "split": lambda cell: replace(cell, place=replace(cell.place, split=edited(cell.place.split))),
    "solver": lambda cell: replace(cell, solver=replace(cell.solver, base="sha256-0.py:Mine")),
    "version": lambda cell: replace(cell, version=cell.version + 1),
}


def edited(named):
    """The same name of another identity, as after an edit of the file that it stands for."""
    return replace(named, identity=f"{named.identity}x")


@pytest.mark.parametrize("part", EDITIONS)
def test_repetitions_of_an_older_edition_leave_the_plan_and_other_solvers_stay(tmp_path, part):
    grid = Tune({solver: {"lam": (1.0, 2.0, 3.0)} for solver in ("global", "sgd")}, "grid", trials=3)
    store, stored = opened(tmp_path), stored_plan(tuned(grid))
    store.write_plan(stored)
    ours = [cell for cell in cells_of(stored) if cell.solver.name == "sgd"]
    trials = [trial for trial in stored.trials if trial.solver.name == "sgd"]
    new, tried = EDITIONS[part](ours[0]), EDITIONS[part](trials[0])
    store.write_plan(replace(stored, planned=(new,), trials=(tried,)))
    (found,) = store.plans()
    assert [cell for cell in cells_of(found) if cell.solver.name == "sgd"] == [new]
    assert [cell.solver.name for cell in cells_of(found)].count("global") == 2
    assert [trial for trial in found.trials if trial.line == tried.line] == [tried]
    assert len(found.trials) == len(stored.trials) - 1  # the other repetition's with the same settings


def test_what_was_left_out_before_stays_left_out_until_it_is_there(tmp_path):
    store, stored = opened(tmp_path), stored_plan()
    here, gone = cells_of(stored)[0].place.data, DATASETS.resolve("btl")
    skips = (
        Skip(gone, None, None, "not at hand"),
        Skip(here, None, None, "was not at hand"),
        Skip(here, None, cells_of(stored)[0].solver, "needs more"),
    )
    store.write_plan(replace(stored, skips=skips))
    own = Skip(here, None, cells_of(stored)[0].solver, "needs more")
    assert store.write_plan(replace(stored, skips=(own,))).skips == (own, skips[0])


def test_a_solver_that_was_left_out_until_its_package_was_installed_is_left_out_no_more(tmp_path):
    store, stored = opened(tmp_path), stored_plan()
    cell = next(cell for cell in stored.planned if cell.solver.name == "sgd")
    missing = Skip(cell.place.data, cell.place.split, cell.solver, "needs a package", "install it")
    other = Skip(cell.place.data, cell.place.split, SOLVERS.resolve("svrank"), "needs features")
    elsewhere = replace(missing, split=SPLITS.resolve("entries[test=0.3]"))
    before = tuple(cell for cell in stored.planned if cell.solver.name != "sgd")
    store.write_plan(replace(stored, planned=before, trials=(), failures=(), skips=(missing, other, elsewhere)))
    assert store.write_plan(stored).skips == (other, elsewhere)


def test_another_measure_budget_or_tuning_is_another_question():
    stored = stored_plan(tuned())
    first, *others = stored.measures
    experiment = stored.experiment
    for other in (
        replace(stored, measures=(replace(first, version=9), *others)),
        replace(stored, measures=(replace(first, identity="other"), *others)),
        replace(stored, experiment=replace(experiment, budget=Budget(steps=9))),
        replace(stored, experiment=replace(experiment, every=9)),
        replace(stored, experiment=replace(experiment, objective=True)),
        replace(stored, experiment=replace(experiment, tune=replace(experiment.tune, trials=9))),
    ):
        assert not stored.asks_as(other)
    same = replace(stored, experiment=replace(experiment, title="x", about="y"), made="later")
    assert stored.asks_as(replace(same, measures=(replace(first, label="other", formula="other"), *others)))


def test_cells_of_earlier_runs_stay_while_the_question_is_the_same(tmp_path):
    store = opened(tmp_path)
    store.write_plan(stored_plan(solvers=("sgd",)))
    store.write_plan(stored_plan(tiny(title="Other", about="Other"), solvers=("global",)))
    (found,) = store.plans()
    assert {cell.solver.name for cell in cells_of(found)} == {"sgd", "global"} and found.experiment.title == "Other"
    for changes in ({"every": 2}, {"metrics": ("ndcg@5",)}, {"objective": True}):
        store.write_plan(stored_plan(tiny(**changes), solvers=("global",)))
        (found,) = store.plans()
        assert {cell.solver.name for cell in cells_of(found)} == {"global"}


# ---- damage ----


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The tiny experiment, run once."""
    out = tmp_path_factory.mktemp("reference")
    return out, ran(out)


def cut_to(share):
    """Cut a file to this share of its bytes."""
    return lambda path: path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def holding(content):
    """Put something else into a file."""
    return lambda path: path.write_bytes(content if isinstance(content, bytes) else content.encode())


def changing(change):
    """Change the table in a file."""

    def damage(path):
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return damage


def a_folder(path):
    """Put a folder with a file in it in a file's place."""
    path.unlink()
    path.mkdir()
    (path / "inside").touch()


def a_loop(path):
    """Put a link to itself in a file's place."""
    path.unlink()
    path.symlink_to(path.name)


ANY = {
    "cut short": cut_to(0.1),
    "cut in the middle": cut_to(0.5),
    "cut by a letter": lambda path: path.write_bytes(path.read_bytes().rstrip()[:-1]),
    "empty": holding(""),
    "no UTF-8": holding(b'{"format": "\xff\xfe"}'),
    "utf-16": lambda path: path.write_bytes(path.read_text().encode("utf-16")),
    "a pickle": holding(pickle.dumps({"a": 1})),
    "a text": holding('"x"'),
    "no JSON": holding("result"),
    "all bytes": holding(bytes(range(256))),
    "only zeros": holding(b"\0" * 4096),
    "deep lists": holding("[" * 100_000),
    "deep tables": holding('{"a":' * 100_000),
    "two tables": lambda path: path.write_text(path.read_text() * 2),
    "a folder": a_folder,
    "a loop of links": a_loop,
    "a list": holding("[]"),
    "null": holding("null"),
    "a NaN": holding("NaN"),
    "a number": holding("1" * 10_000),
    "an empty table": holding("{}"),
    "only a format": holding('{"format": 3}'),
    "only an old format": holding('{"format": 2}'),
    "a very old format": changing(lambda content: content.update(format=1)),
    "no number as its format": changing(lambda content: content.update(format="3")),
    "true as its format": changing(lambda content: content.update(format=True)),
    "an unknown name": changing(lambda content: content.update(unknown=1)),
}
OF_CELLS = {
    "an old format": changing(lambda content: content.update(format=2)),
    "another key": changing(lambda content: content.update(key="0" * 64)),
    "a key that is a list": changing(lambda content: content.update(key=[])),
    "no key": changing(lambda content: content.pop("key")),
    "an unknown status": changing(lambda content: content.update(status="fine")),
    "a status that is a list": changing(lambda content: content.update(status=["ok"])),
    "no status": changing(lambda content: content.pop("status")),
    "no machine": changing(lambda content: content.pop("machine")),
    "no curve": changing(lambda content: content.pop("curve")),
    "a point that is a list": changing(lambda content: content.update(curve=[[1, 2]])),
    "a step that is NaN": changing(lambda content: content["curve"][0].update(step=float("nan"))),
    "a point without values": changing(lambda content: content["curve"][0].pop("values")),
    "values that are a table": changing(lambda content: content["curve"][0].update(values={})),
    "a wall that is a text": changing(lambda content: content.update(wall="long")),
    "a contended that is a number": changing(lambda content: content.update(contended=0)),
    "packages that are a table": changing(lambda content: content["machine"].update(packages={"numpy": "2"})),
    "cores that are true": changing(lambda content: content["machine"].update(cores=True)),
    "a NaN that is no JSON": changing(lambda content: content["curve"][-1].update(values=[float("nan"), 1])),
    "fewer values than metrics": changing(lambda content: content["curve"][-1].update(values=[0.5])),
}
OF_PLANS = {
    "an unknown profile": changing(lambda content: content.update(profile="small")),
    "no seed": changing(lambda content: content.pop("seed")),
    "a seed that is a text": changing(lambda content: content.update(seed="x")),
    "no experiment": changing(lambda content: content.pop("experiment")),
    "an experiment of no repetitions": changing(lambda content: content["experiment"].update(repetitions=0)),
    "solvers that are a text": changing(lambda content: content["experiment"].update(solvers="sgd")),
    "an experiment that is a list": changing(lambda content: content.update(experiment=[])),
    "names that are numbers": changing(lambda content: content["cells"].update(names=[3])),
    "no names": changing(lambda content: content["cells"].update(names=[])),
    "a promise that is unknown": changing(lambda content: content["cells"]["cells"][0].__setitem__(8, "maybe")),
    "cells that are a list": changing(lambda content: content.update(cells=[])),
    "a row that is too short": changing(lambda content: content["cells"]["cells"][0].__delitem__(slice(-2, None))),
    "a row of numbers that lead nowhere": changing(lambda content: content["cells"]["cells"][0].__setitem__(0, 999)),
    "a row of a wrong type": changing(lambda content: content["cells"]["cells"][0].__setitem__(6, "x")),
    "a row that is a table": changing(lambda content: content["cells"]["cells"].append({})),
    "a name without its identity": changing(lambda content: content["cells"]["names"][0].pop("identity")),
    "a measure that is null": changing(lambda content: content.update(measures=[None])),
    "a failure that is a number": changing(lambda content: content["failures"].__setitem__(0, 1)),
}
NEWER = {
    "a newer format": changing(lambda content: content.update(format=FORMAT + 1)),
    "a much newer format": holding('{"format": 99}'),
}
DAMAGE = [
    *(("cells", name, damage) for name, damage in (ANY | OF_CELLS | NEWER).items()),
    *(("plans", name, damage) for name, damage in (ANY | OF_PLANS | NEWER).items()),
]
every_damage = pytest.mark.parametrize(
    ("part", "name", "damage"), DAMAGE, ids=[f"{part}-{name}".replace(" ", "-") for part, name, _ in DAMAGE]
)


def damaged(reference, tmp_path, part, damage):
    """A copy of the reference with one file of it damaged: that file, and the cell whose result it is."""
    out, run = reference
    shutil.copytree(out, tmp_path / "out")
    cell = run.plan.cells[2]
    path = Store(tmp_path / "out/tiny", silent).path(cell)
    if part == "plans":
        (path,) = (tmp_path / "out/tiny/plans").iterdir()
    damage(path)
    return path, cell


def look(out, cells):
    """What a reader finds: the plans and results, and what it was warned of."""
    warnings: list[str] = []
    store = Store(out / "tiny", warnings.append)
    return store.plans(), [store.load(cell) for cell in cells], warnings


@pytest.mark.slow
@every_damage
def test_a_damaged_file_is_set_aside_in_one_line_and_made_anew(reference, tmp_path, part, name, damage):
    _, run = reference
    path, cell = damaged(reference, tmp_path, part, damage)
    cells = run.plan.cells
    plans, results, warnings = look(tmp_path / "out", cells)
    ending = "newer" if name in NEWER else "broken"
    (warning,) = warnings
    assert (
        warning.startswith(f"{path} cannot be read (") and "\n" not in warning and len(warning) < len(str(path)) + 300
    )
    assert warning.endswith(f": set aside as {path.name}.{ending}")
    assert os.path.lexists(f"{path}.{ending}") and not os.path.lexists(path)
    if part == "plans":
        assert plans == [] and results == [run.result(one) for one in cells]
    else:
        assert len(plans) == 1
        assert results == [None if one == cell else run.result(one) for one in cells]
    assert store_in(tmp_path / "out").set_aside() == [f"{path.name}.{ending}"]

    started: list[str] = []
    again = ran(tmp_path / "out", tell=lambda event: started.append(event.cell.key) if event.kind == "start" else None)
    assert started == ([] if part == "plans" else [cell.key])
    assert [again.result(one).curve[-1].values for one in cells] == [run.result(one).curve[-1].values for one in cells]
    (found,) = store_in(tmp_path / "out").plans()
    assert cells_of(found) == list(cells)
    assert look(tmp_path / "out", cells)[-1] == []


@every_damage
def test_a_damaged_file_that_cannot_be_moved_is_left_out_in_one_line(
    reference, tmp_path, monkeypatch, part, name, damage
):
    _, run = reference
    path, cell = damaged(reference, tmp_path, part, damage)

    def refused(self, target):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "replace", refused)
    plans, results, (warning,) = look(tmp_path / "out", run.plan.cells)
    assert warning.startswith(f"{path} cannot be read (") and warning.endswith("): left out: Read-only file system")
    assert len(plans) == (part == "cells")
    assert results == [None if part == "cells" and one == cell else run.result(one) for one in run.plan.cells]
    assert os.path.lexists(path)


@pytest.mark.parametrize(("name", "damage"), (ANY | OF_CELLS | NEWER).items())
def test_damage_costs_no_more_than_its_own_line_where_all_results_are_listed(reference, tmp_path, name, damage):
    path, _ = damaged(reference, tmp_path, "cells", damage)
    warnings: list[str] = []
    found = list(Store(tmp_path / "out/tiny", warnings.append).summaries())
    others = {file.name for file in (tmp_path / "out/tiny/cells").glob("*.json")} - {path.name}
    assert len(others) == 3 and others <= {stored.name for stored in found}
    assert len(found) + len(warnings) == 4


def test_what_was_set_aside_before_may_be_in_the_way(reference, tmp_path):
    _, run = reference
    path, cell = damaged(reference, tmp_path, "cells", holding("{"))
    a_place = path.with_name(f"{path.name}.broken")
    a_place.touch()
    a_folder(a_place)
    _, results, (warning,) = look(tmp_path / "out", run.plan.cells)
    assert warning.endswith(f"): left out: {a_place.name} is in the way") and results.count(None) == 1
    assert ran(tmp_path / "out").result(cell).status == "ok"
    assert look(tmp_path / "out", run.plan.cells)[1].count(None) == 0


def test_a_file_is_set_aside_over_one_that_was_before(reference, tmp_path):
    _, run = reference
    path, _ = damaged(reference, tmp_path, "cells", holding("{"))
    path.with_name(f"{path.name}.broken").write_text("earlier")
    look(tmp_path / "out", run.plan.cells)
    assert path.with_name(f"{path.name}.broken").read_text() == "{"


@pytest.mark.slow
@pytest.mark.parametrize("damage", [cut_to(0.5), holding(""), holding(b"PK\x03\x04" * 9), a_loop, Path.unlink])
def test_damaged_values_of_users_cost_no_result_and_are_replaced_when_it_is_made_anew(reference, tmp_path, damage):
    _, run = reference
    path, cell = damaged(reference, tmp_path, "cells", lambda path: damage(path.with_suffix(".npz")))
    _, results, warnings = look(tmp_path / "out", run.plan.cells)
    assert results == [run.result(one) for one in run.plan.cells] and warnings == []
    assert len(list(store_in(tmp_path / "out").summaries())) == 4
    with pytest.raises((UserError, OSError), match=path.stem):
        read_npz(path.with_suffix(".npz"))
    ran(tmp_path / "out", rerun="all")
    assert np.nanmean(read_npz(path.with_suffix(".npz"))["ndcg@5"]) == run.result(cell).value("ndcg@5")


def test_folders_that_are_files_are_one_line(tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny/cells").touch()
    run = prepared(tmp_path, TINY, Selection(repetitions=1))
    assert len(run.pending) == 2 and run.store.plans() == [] and list(run.store.files()) == []
    with pytest.raises(UserError, match=r"cannot write to .*/tiny: .*; choose another folder with --out"):
        run.open()


# ---- the machine ----


def test_the_machine_says_all_that_decides_a_time():
    found = machine.describe()
    assert found.usable_cores >= 1 and found.compiler
    for package in ("rankbench", "numpy", "scipy"):
        assert found.version(package)[0].isdigit()
    assert found.version("nothing-of-this-name") == "absent"
    assert found.blas, "no BLAS was found"
    assert found == machine.describe() and isinstance(found, Machine)


def test_the_fingerprint_follows_what_decides_times_only():
    same = replace(MACHINE, git="other", system="other", memory_gib=1.0, kernels="other")
    assert same.fingerprint == MACHINE.fingerprint
    changes = {"cpu": "other", "cores": 99, "usable_cores": 99, "python": "other", "blas": ("other",), "native": True}
    changes |= {"compiler": "other", "openmp": 1, "debug": True, "packages": (("numpy", "1"), ("scipy", "1.16.0"))}
    changes |= {"level": "x86-64-v4"}
    for name, value in changes.items():
        assert replace(MACHINE, **{name: value}).fingerprint != MACHINE.fingerprint, name


def test_the_basis_follows_what_may_change_the_last_digits_only():
    same = replace(MACHINE, git="other", cores=99, python="other", compiler="other", system="Linux 7 x86_64")
    assert same.basis == MACHINE.basis
    changes = {"kernels": "other", "cpu": "other", "blas": ("other",), "system": "Linux 6 aarch64", "packages": ()}
    for name, value in changes.items():
        assert replace(MACHINE, **{name: value}).basis != MACHINE.basis, name


def test_fingerprints_are_those_of_results_from_before():
    assert MACHINE.fingerprint == "99f124631781"


def test_two_drivers_that_write_a_plan_at_once_lose_none_of_their_cells(tmp_path, monkeypatch):
    one, other = (prepared(tmp_path, TINY, Selection(solvers=(name,), repetitions=1)) for name in ("global", "sgd"))
    beside = threading.Thread(target=other.open)
    read = Store._read_plan

    def read_slowly(self, path, like=None):
        found = read(self, path, like)
        if self is one.store:
            beside.start()
            beside.join(0.3)  # without a lock it would have written by then, and its cells would be lost
        return found

    monkeypatch.setattr(Store, "_read_plan", read_slowly)
    one.open()
    beside.join()
    monkeypatch.undo()
    (plan,) = store_in(tmp_path).plans()
    assert {cell.solver.name for cell in plan.planned} == {"global", "sgd"}


def test_an_interrupt_while_the_folder_is_tried_is_not_lost(tmp_path, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store_in(tmp_path).open()


def test_a_stored_plan_is_the_known_one_only_where_both_are_equal(tmp_path):
    run = prepared(tmp_path, tuned())
    run.open()
    content, plan = run.store._read(run.store.plan_path(run.plan)), replace(run.plan, made="never")
    found = plan_files.plan_of(content, plan)
    assert found.planned is plan.planned and found.trials is plan.trials and not found.searches
    assert found == plan_files.plan_of(content) and found.made == content["made"] != plan.made
    first, *rest = plan.planned
    for other in (
        replace(plan, planned=(replace(first, split_hash="another"), *rest)),
        replace(plan, trials=plan.trials[1:]),
        replace(plan, failures=(Failure(first, "all trials failed"),)),
        replace(plan, experiment=replace(plan.experiment, title="another")),
    ):
        found = plan_files.plan_of(content, other)
        assert found == plan_files.plan_of(content) and found.planned is not other.planned


def test_a_stored_plan_has_its_cells_before_its_trials(tmp_path):
    run = prepared(tmp_path, tuned())
    run.open()
    content = run.store._read(run.store.plan_path(run.plan))
    assert plan_files.plan_of(content).everything == run.plan.everything
    with pytest.raises(Unreadable, match="its cells are not those of a plan, each once, and then its trials"):
        plan_files.plan_of({**content, "failures": [*content["failures"], ""]})
