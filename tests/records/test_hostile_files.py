"""A folder of results in which anybody may have put anything: one line each, and all else is still shown."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from helpers import TINY, ran, tiny

from rankbench.core.errors import UserError
from rankbench.records.codec import with_digest
from rankbench.records.store import ResultsFolder

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """A folder of results as a run leaves it."""
    folder = tmp_path_factory.mktemp("honest")
    ran(folder, TINY)
    return folder


@pytest.fixture
def out(honest, tmp_path):
    """A copy of it that may be spoilt."""
    return shutil.copytree(honest, tmp_path / "results")


def pipe(path):
    os.mkfifo(path)


def endless(path):
    path.symlink_to("/dev/zero")


def holes(path):
    with path.open("wb") as file:
        file.truncate(20 * 10**9)


def zeros(path):
    np.savez_compressed(path.with_suffix(".npz"), ndcg=np.zeros(60_000_000))


def folder(path):
    path.mkdir()


SPOILT = {"a pipe": pipe, "an endless device": endless, "a file of holes": holes, "a folder": folder}


def said(*words, limit=20):
    """The exit code and both outputs of a command, which has so many seconds and little memory."""
    limits = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)); "
    command = [sys.executable, "-c", f"{limits}from rankbench.cli import main; main()", *map(str, words)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("verb", "kinds"),
    [
        ("table", ["a pipe", "a file of holes"]),
        ("table", ["an endless device", "a folder"]),
        ("compare", ["an endless device"]),
        ("compare", ["a folder"]),
    ],
)
def test_what_is_no_result_is_one_line_each_and_all_else_is_shown(out, verb, kinds):
    paths = sorted((out / "tiny" / "cells").glob("sgd-*.json"))[: len(kinds)]
    for path, kind in zip(paths, kinds, strict=True):
        path.unlink()
        SPOILT[kind](path)
    code, shown, told = said(verb, "tiny", "--out", out)
    assert (code, told.count("\n")) == (0, len(kinds)) and all(path.name in told for path in paths)
    assert "global" in shown and "Traceback" not in told


@pytest.mark.trust
@pytest.mark.parametrize("spoil", [*SPOILT.values(), zeros], ids=[*SPOILT, "packed zeros"])
def test_what_are_no_values_of_users_is_one_line(out, spoil):
    path = next((out / "tiny" / "cells").glob("sgd-*.npz"))
    path.unlink()
    spoil(path)
    code, _, told = said("table", "tiny", "--out", out)
    assert code in (0, 1, 2) and "Traceback" not in told and told.count("\n") == 1 and path.name in told


def test_a_date_that_is_none_is_refused(out):
    path = next((out / "tiny" / "cells").glob("sgd-*.json"))
    text = path.read_text()
    before, _, rest = text.partition('"finished": "')
    path.write_text(with_digest(f'{before}"finished": "x"{rest.partition(chr(34))[2].rpartition(", ")[0]}}}'))
    told = []
    store = ResultsFolder(out, told.append).store("tiny")
    found = [store.load(cell) for cell in store.plans()[0].planned]
    assert sum(one is None for one in found) == 1 and "its date is none" in told[0]


def test_an_experiment_without_a_name_is_refused(tmp_path):
    (tmp_path / "...toml").write_text('title = "outside"')
    code, _, told = said("run", tmp_path / "...toml", "--out", tmp_path / "out")
    assert code == 2 and "has no name" in told and not (tmp_path / "plans").exists()


@pytest.mark.parametrize("name", ["", "..", "../outside", "/outside", "a\0b", "\ud800"])
def test_an_experiment_whose_name_leads_out_of_its_folder_is_refused(name):
    with pytest.raises(UserError, match="an experiment cannot be called"):
        tiny(name=name)
