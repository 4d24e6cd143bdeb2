"""Stored results and plans that are damaged in every way that we know: set aside with one line, and run again."""

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from helpers import around, made_up, rankbench, store_in, tiny_toml

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


def said(monkeypatch, capsys, *arguments):
    """The exit code, and the lines on both outputs, none of them a traceback."""
    code = rankbench(monkeypatch, *arguments)
    printed = capsys.readouterr()
    assert "Traceback" not in printed.out + printed.err
    return code, printed.out.splitlines(), printed.err.splitlines()


def assert_set_aside_and_run_again(monkeypatch, capsys, path):
    """The next command names the file in one line, goes on without it, and a run will make it again."""
    code, _, errors = said(monkeypatch, capsys, "table", "tiny", "--csv")
    assert code == 0 and len(errors) == 1 and path.name in errors[0] and "set aside as" in errors[0]
    assert not path.exists() and len(errors[0]) < 1000
    code, lines, errors = said(monkeypatch, capsys, "run", "tiny.toml", "--dry-run")
    assert code == 0 and not errors
    assert lines[-1].startswith("tiny: 1 of 2 cells to run")


@pytest.mark.parametrize("change", BYTES.values(), ids=BYTES)
def test_a_result_of_wrong_bytes_is_set_aside(monkeypatch, capsys, stored, change):
    path = min((stored / "cells").glob("*.json"))
    damage(path, change)
    assert_set_aside_and_run_again(monkeypatch, capsys, path)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_edited_result_is_set_aside(monkeypatch, capsys, stored, change):
    path = min((stored / "cells").glob("*.json"))
    change_json(path, change)
    assert_set_aside_and_run_again(monkeypatch, capsys, path)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_status_of_an_edited_result_is_no_traceback(monkeypatch, capsys, stored, change):
    change_json(min((stored / "cells").glob("*.json")), change)
    code, lines, errors = said(monkeypatch, capsys, "status")
    assert code == 0 and lines and len(errors) <= 1


@pytest.mark.parametrize("change", [*BYTES.values(), *IN_PLAN.values()], ids=[*BYTES, *IN_PLAN])
def test_a_damaged_plan_is_set_aside_and_its_results_are_found_again(monkeypatch, capsys, stored, change):
    (path,) = (stored / "plans").iterdir()
    if change in IN_PLAN.values():
        change_json(path, change)
    else:
        damage(path, change)
    code, _, errors = said(monkeypatch, capsys, "table", "tiny")
    assert code == 2 and len(errors) == 2 and path.name in errors[0] and "set aside as" in errors[0]
    code, lines, errors = said(monkeypatch, capsys, "run", "tiny.toml", "--dry-run")
    assert code == 0 and not errors and lines[-1].startswith("tiny: 0 of 2 cells to run")


def a_folder(path):
    path.unlink()
    path.mkdir()


def a_link_to_nothing(path):
    path.unlink()
    path.symlink_to("nowhere")


def a_link_to_itself(path):
    path.unlink()
    path.symlink_to(path.name)


@pytest.mark.parametrize("make", [a_folder, a_link_to_nothing, a_link_to_itself])
def test_a_result_that_is_no_file_is_no_traceback(monkeypatch, capsys, stored, make):
    path = min((stored / "cells").glob("*.json"))
    make(path)
    code, _, errors = said(monkeypatch, capsys, "table", "tiny")
    assert code == 0 and len(errors) <= 1
    assert said(monkeypatch, capsys, "status")[0] == 0


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
    code, lines, errors = said(monkeypatch, capsys, command, "tiny")
    assert code in (0, 2) and len(errors) == (code > 0) and (lines or errors)
    assert all(line.startswith("rankbench: ") for line in errors)


@pytest.mark.parametrize("name", ["cells", "plans", "claims", ""])
def test_a_file_where_a_folder_belongs_is_one_line(monkeypatch, capsys, stored, name):
    shutil.rmtree(stored / name, ignore_errors=True)
    (stored / name).write_text("a file") if name else stored.write_text("a file")
    code, _, errors = said(monkeypatch, capsys, "run", "tiny.toml", "-q", "--no-report", "-s", "global[lam=10]")
    assert code in (0, 2) and len(errors) == (code > 0)
    assert os.path.exists(stored)
