"""Stored results and plans that are damaged in every way that we know: set aside with one line, and run again."""

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from helpers import around, made_up, rankbench, store_in, tiny_toml
from wrong_input.no_files import a_folder, a_link_to_itself, a_link_to_nothing

from rankbench.experiments import load
from rankbench.planning.plan import plan
from rankbench.records.cells import Selection


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with an experiment and its results, two cells, as a run leaves them."""
    folder = tmp_path_factory.mktemp("whole")
    experiment = load(tiny_toml(folder, repetitions="1"))
    planned = plan(experiment, Selection())
    store = store_in(folder / "results", "tiny")
    store.open()
    for cell in planned.cells:
        store.save(made_up(cell, 0.5), around(cell, 0.5))
    store.write_plan(replace(planned, made="2026-01-02"))
    return folder


@pytest.fixture
def stored(whole, here):
    """A copy of that folder to damage, as the working folder."""
    shutil.copytree(whole, here, dirs_exist_ok=True)
    return here / "results/tiny"


def cut(path):
    """Keep the first half of a file; `records/test_store.py` has all kinds of damage."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_a_damaged_result_is_named_and_set_aside_and_a_run_will_make_it_again(cli, stored):
    path = min((stored / "cells").glob("*.json"))
    cut(path)
    (error,) = cli("table", "tiny", "--csv").err.splitlines()
    assert path.name in error and "set aside as" in error and len(error) < 1000
    assert not path.exists()
    lines, errors = cli("run", "tiny.toml", "--dry-run")
    assert errors == "" and lines.splitlines()[-1].startswith("tiny: 1 of 2 cells to run")


def test_the_status_of_a_damaged_result_is_no_traceback(cli, stored):
    cut(min((stored / "cells").glob("*.json")))
    said = cli("status")
    assert said.out and said.err.count("\n") <= 1


def test_a_damaged_plan_is_set_aside_and_its_results_are_found_again(cli, stored):
    (path,) = (stored / "plans").iterdir()
    cut(path)
    error, _ = cli("table", "tiny", code=2).err.splitlines()
    assert path.name in error and "set aside as" in error
    lines, errors = cli("run", "tiny.toml", "--dry-run")
    assert errors == "" and lines.splitlines()[-1].startswith("tiny: 0 of 2 cells to run")


@pytest.mark.parametrize("make", [a_folder, a_link_to_nothing, a_link_to_itself])
def test_a_result_that_is_no_file_is_no_traceback(cli, stored, make):
    path = min((stored / "cells").glob("*.json"))
    make(path)
    assert cli("table", "tiny").err.count("\n") <= 1
    cli("status")


def pickled(path):
    np.savez(path.open("wb"), ndcg=np.array([{"a": 1}], dtype=object), allow_pickle=True)


def short(path):
    with np.load(path) as file:
        arrays = {name: file[name][:3] for name in file.files}
    np.savez(path.open("wb"), **arrays)


def of_words(path):
    with np.load(path) as file:
        arrays = {name: np.array(["a"] * len(file[name])) for name in file.files}
    np.savez(path.open("wb"), **arrays)


def of_two_axes(path):
    with np.load(path) as file:
        arrays = {name: np.zeros((20, 2)) for name in file.files}
    np.savez(path.open("wb"), **arrays)


def of_other_names(path):
    np.savez(path.open("wb"), other=np.zeros(3))


VALUES = {
    "nothing": lambda path: path.write_bytes(b""),
    "cut": cut,
    "cut at the start": lambda path: path.write_bytes(path.read_bytes()[100:]),
    "no archive": lambda path: path.write_bytes(b"x" * 1000),
    "a wrong byte": lambda path: path.write_bytes(path.read_bytes().replace(b"NUMPY", b"NUMPX")),
    "gone": lambda path: path.unlink(),
    "a folder": a_folder,
    "a link to itself": a_link_to_itself,
    "pickled": pickled,
    "short": short,
    "words": of_words,
    "two axes": of_two_axes,
    "other names": of_other_names,
}


@pytest.mark.parametrize("damage_to", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("command", ["table", "compare"])
def test_damaged_values_of_users_are_no_traceback(monkeypatch, capsys, stored, damage_to, command):
    damage_to(min((stored / "cells").glob("*.npz")))
    code, said = rankbench(monkeypatch, command, "tiny"), capsys.readouterr()
    assert code in (0, 2) and said.err.count("\n") == (code > 0) and (said.out or said.err)
    assert said.err.startswith("rankbench: " * (code > 0)) and "Traceback" not in said.out


@pytest.mark.parametrize("name", ["cells", "plans", "claims", ""])
def test_a_file_where_a_folder_belongs_is_one_line(monkeypatch, capsys, stored, name):
    shutil.rmtree(stored / name, ignore_errors=True)
    (stored / name).write_text("a file") if name else stored.write_text("a file")
    code = rankbench(monkeypatch, "run", "tiny.toml", "-q", "--no-report", "-s", "global[lam=10]")
    said = capsys.readouterr()
    assert code in (0, 2) and said.err.count("\n") == (code > 0) and "Traceback" not in said.out
    assert os.path.exists(stored)
