"""Stored results and plans that are damaged in every way that we know: set aside with one line, and run again."""

import json
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
def stored(whole, tmp_path, monkeypatch):
    """A copy of that folder to damage, as the working folder."""
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results/tiny"


def put(*path, value):
    """A change of a JSON file: another value at this path."""

    def change(content):
        place = content
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def drop(*path):
    """A change of a JSON file: a key less."""

    def change(content):
        place = content
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return change


BYTES = {
    "cut": lambda text: text[: len(text) // 2],
    "no JSON": b"result",
    "a text": b'"x"',
    "utf-16": lambda text: text.decode().encode("utf-16"),
    "binary": bytes(range(256)),
    "too deep": b"[" * 200_000,
}
CHANGES = {
    "a key that is a list": put("key", value=[]),
    "a newer format": put("format", value=99),
    "an unknown status": put("status", value="good"),
    "a point without values": drop("curve", 0, "values"),
}
IN_PLAN = {
    "a seed that is a text": put("seed", value="x"),
    "an unknown key": put("more", value=1),
}


def damage(path, change):
    """Damage a file, by other bytes or by a change of its JSON."""
    if isinstance(change, bytes):
        path.write_bytes(change)
    else:
        path.write_bytes(change(path.read_bytes()))


def change_json(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def assert_set_aside_and_run_again(cli, path):
    """The next command names the file in one line, goes on without it, and a run will make it again."""
    (error,) = cli("table", "tiny", "--csv").err.splitlines()
    assert path.name in error and "set aside as" in error
    assert not path.exists() and len(error) < 1000
    lines, errors = cli("run", "tiny.toml", "--dry-run")
    assert errors == "" and lines.splitlines()[-1].startswith("tiny: 1 of 2 cells to run")


@pytest.mark.parametrize("change", BYTES.values(), ids=BYTES)
def test_a_result_of_wrong_bytes_is_set_aside(cli, stored, change):
    path = min((stored / "cells").glob("*.json"))
    damage(path, change)
    assert_set_aside_and_run_again(cli, path)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_edited_result_is_set_aside(cli, stored, change):
    path = min((stored / "cells").glob("*.json"))
    change_json(path, change)
    assert_set_aside_and_run_again(cli, path)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_status_of_an_edited_result_is_no_traceback(cli, stored, change):
    change_json(min((stored / "cells").glob("*.json")), change)
    said = cli("status")
    assert said.out and said.err.count("\n") <= 1


@pytest.mark.parametrize("change", [*BYTES.values(), *IN_PLAN.values()], ids=[*BYTES, *IN_PLAN])
def test_a_damaged_plan_is_set_aside_and_its_results_are_found_again(cli, stored, change):
    (path,) = (stored / "plans").iterdir()
    if change in IN_PLAN.values():
        change_json(path, change)
    else:
        damage(path, change)
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
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-100]),
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
