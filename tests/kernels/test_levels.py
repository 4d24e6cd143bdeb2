"""Kernels that are built for several instruction sets give the same bytes with each of them."""

import hashlib
import json
import os
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from house.test_versions import CASES, absent, problem

import rankbench
from rankbench.core.blas import one_blas_thread
from rankbench.core.streams import stream
from rankbench.data import load
from rankbench.data.splits import Split, split
from rankbench.data.views import offer
from rankbench.execution.machine import describe
from rankbench.kernels import LEVEL, LEVELS, build_info, level
from rankbench.solvers import SOLVERS

FOLDER = Path(__file__).parents[1]
LONGER = (  # vectors longer than a register of any level, with and without a rest
    "altsvm[rank=64]",
    "altsvm[rank=21,loss=hinge]",
    "bpr[rank=64]",
    "bpr[rank=21,decay=0.01]",
    "cofirank[rank=21,planes=4]",
    "frsvm[rank=64,features=none]",
    "frsvm[rank=21,features=none,partitions=3]",
    "fm[rank=21,features=none]",
    "lcr[rank=21,anchors=3]",
    "mf[rank=64]",
    "mf[rank=21]",
    "rmc[rank=21]",
    "robirank[rank=21]",
    "sgd[rank=64]",
    "sgd[rank=21,loss=logistic]",
)
ANYWHERE = (  # solvers whose bits depend neither on BLAS nor on the vectors of NumPy and of the C library
    "altsvm",
    "bpr",
    "ials",
    "item-knn",
    "mf",
    "popularity",
    "random",
    "ranksvm-separate",
    "rankboost",
    "robirank",
    "rp3beta",
    "sgd",
    "slim",
    "sqlrank",
)
PROCESSORS = (  # what a process is told of its processor
    {"OPENBLAS_CORETYPE": "Haswell"},
    {"OPENBLAS_CORETYPE": "Prescott"},
    {"NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX"},
    {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F"},
)
WIDER = ("ranksvm-joint", "ranksvm-separate", "ranksvm-var", "svrank")  # which learn from rows of features


def scores() -> dict[str, str]:
    """By solver, a hash of what its model says of every user and item after some steps."""
    longer = split(load("low-rank[users=60,items=80,per_user=40]"), "n-per-user[n=20,least=5]")
    given = {f"{text} on {name}": (text, problem(name)) for name, texts in CASES.items() for text in texts}
    given |= {text: (text, longer) for text in LONGER}
    wider = split(load("feature-low-rank[users=20,items=60,features=21,rank=3,per_user=20]"), "entries[test=0.2]")
    given |= {text: (text, wider) for text in WIDER}
    with one_blas_thread():
        return {name: scores_of(text, parts) for name, (text, parts) in given.items() if not absent(text)}


def scores_of(text: str, parts: Split) -> str:
    """A hash of the scores of one solver's model, for single pairs and for whole users."""
    solver, train = SOLVERS.make(text), parts.train
    for step in islice(solver.steps(offer(solver, train), stream(0, "levels")), 5):
        model = step.model
    users, items = np.divmod(np.arange(train.n_users * train.n_items), train.n_items)
    told = hashlib.sha256(model.score(users, items).tobytes())
    told.update(model.score_all(np.arange(train.n_users)).tobytes())
    return told.hexdigest()


def at(name: str, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Python with this command, the kernels of this level, and more variables of its environment."""
    source = str(Path(rankbench.__file__).parents[1])
    environment = {**os.environ, "RANKBENCH_LEVEL": name, "PYTHONPATH": os.pathsep.join((source, str(FOLDER))), **more}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEVELS)
def test_every_solver_gives_the_same_bytes_at_every_level(name):
    there = at(name, __file__)
    assert there.returncode == 0, there.stderr
    told = json.loads(there.stdout)
    assert told.pop("level") == name
    here = scores()
    assert {text: here[text] == told.get(text) for text in here} == dict.fromkeys(here, True)


@pytest.mark.trust
def test_these_solvers_give_the_same_bytes_on_every_kind_of_processor():
    told = scores()
    names = {text: re.match(r"[\w-]+", text)[0] for text in told}
    here = {text: told[text] for text, name in names.items() if name in ANYWHERE}
    assert {names[text] for text in here} == set(ANYWHERE)
    for processor in PROCESSORS:
        there = at(LEVEL, __file__, **processor)
        assert there.returncode == 0, there.stderr
        found = json.loads(there.stdout)
        assert {text: found[text] == here[text] for text in here} == dict.fromkeys(here, True), processor


def test_kernels_take_no_powers_and_logarithms_from_the_c_library():
    taken = {
        (path.stem, name.strip())
        for path in sorted((FOLDER.parent / "pyx").rglob("*.p[yx][xd]"))
        for names in re.findall(r"from libc\.math cimport (.+)", path.read_text())
        for name in names.split(",")
    }
    exact = {"INFINITY", "NAN", "fabs", "fmin", "isfinite", "isinf", "ldexp", "rint", "sqrt"}  # on every processor
    rounded, with_blas = {("altsvm", "log2")}, {("gram", "exp")}  # to a whole number; the Gaussian kernel
    assert {one for one in taken if one[1] not in exact} == rounded | with_blas


def test_the_fastest_level_is_chosen_and_told(monkeypatch):
    monkeypatch.delenv("RANKBENCH_LEVEL", raising=False)
    assert level.choose(LEVELS) == LEVELS[0]
    assert describe().level == LEVEL


def test_levels_that_the_processor_lacks_are_not_used():
    assert level.usable(lambda level: False) == ["baseline"]
    assert level.usable(lambda level: True)[-1] == "baseline"


def test_of_several_levels_the_fastest_that_the_processor_has_comes_first(monkeypatch, tmp_path):
    for name in ("x86-64-v3", "x86-64-v4"):
        (tmp_path / name / "solvers").mkdir(parents=True)
        (tmp_path / name / "solvers" / "sgd.so").touch()
    monkeypatch.setattr(level, "_FOLDER", tmp_path)
    assert level.usable(lambda level: True) == ["x86-64-v4", "x86-64-v3", "baseline"]
    assert level.usable(lambda level: level == "x86-64-v3") == ["x86-64-v3", "baseline"]


def test_names_that_are_no_level_are_not_what_a_processor_has():
    assert not build_info.processor_has(level="x86-64-v9") and not build_info.processor_has(level="")


@pytest.mark.slow
def test_a_level_that_is_not_there_is_refused_in_one_line():
    found = at("x86-64-v9", "-m", "rankbench", "doctor")
    assert found.returncode == 2 and found.stderr.count("\n") == 1, found.stderr
    assert "RANKBENCH_LEVEL='x86-64-v9' is not built here, or not for this processor; unset it, or choo" in found.stderr


def test_kernels_of_the_level_are_imported_where_there_are_any():
    there = at(LEVEL, "-c", "import rankbench.kernels.solvers.altsvm as kernel; print(kernel.__file__)")
    assert (f"levels/{LEVEL}" in there.stdout) == (LEVEL != level.BASELINE), there


if __name__ == "__main__":
    print(json.dumps({"level": LEVEL, **scores()}))
