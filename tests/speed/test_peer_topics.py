"""The scripts that compare with other libraries, asv_benchmarks/peers: every data set that they name can be had."""

import ast
import json
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rankbench.data import DATASETS
from rankbench.data.synthetic import LowRank

PEERS = Path(__file__).parents[2] / "asv_benchmarks" / "peers"
LOADS = ("load", "make", "resolve", "_at_hand")
NAME = re.compile(r"[a-z][a-z0-9-]*(:[\w.-]+)?(\[[^\]]*\])?")


def data_names(text):
    """The texts of a program that name a data set: with settings or an argument anywhere, alone only where it loads."""
    tree = list(ast.walk(ast.parse(text)))
    loaded = {first for node in tree if isinstance(node, ast.Call) and called(node) in LOADS for first in node.args[:1]}
    texts = {node.value for node in tree if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    alone = {node.value for node in loaded if isinstance(node, ast.Constant)}
    return sorted(one for one in texts if names_data(one) and (one in alone or not one.replace("-", "").isalnum()))


def called(node):
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def names_data(text):
    base, colon, argument = text.partition("[")[0].partition(":")
    known = f"{base}:" in DATASETS.entries and argument if colon else base in DATASETS.whole_names()
    return bool(NAME.fullmatch(text) and known)


NAMED = sorted({(path.name, name) for path in PEERS.glob("*.py") for name in data_names(path.read_text())})


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_every_data_set_that_a_topic_names_exists(file, name):
    record = DATASETS.make(name)
    assert record.origin.missing() is None or guards_against_absence(PEERS / file, name)


def guards_against_absence(path, name):
    """Whether the file asks for what is missing of this data set before it loads it."""
    text = path.read_text()
    return f'DATASETS.make("{name}").origin.missing()' in text or f'_at_hand("{name}"' in text


def test_a_name_that_does_not_exist_is_seen():
    assert data_names('load("lookalike:ml-1m"); load("sgd[rank=3]"); load("btl[users=3]"); "btl is a generator"') == [
        "btl[users=3]",
        "lookalike:ml-1m",
    ]


@pytest.fixture
def topics(monkeypatch):
    """The main module of the scripts, which import each other by their bare names."""
    monkeypatch.syspath_prepend(str(PEERS))
    for name in ("turns", "rmc"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return runpy.run_path(str(PEERS / "__main__.py"), run_name="topics")


def test_without_movielens_rmc_is_measured_on_generated_data_of_its_size(topics, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("RANKBENCH_DATA", str(tmp_path))
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    assert "rmc" in topics["TOPICS"]
    import rmc

    name = rmc._at_hand("ml-100k")
    said = capsys.readouterr().out
    assert name in said and "ml-100k is not at hand" in said
    assert DATASETS.make(name).origin.missing() is None


def test_the_schedules_are_compared_whether_or_not_metis_is_there(topics, monkeypatch):
    """With names in place of the other packages, which this part does not call."""
    for module, name in (("cornac.models", "BPR"), ("implicit.bpr", "BayesianPersonalizedRanking")):
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{name: object}))
    monkeypatch.delitem(sys.modules, "pair_updates", raising=False)
    import pair_updates

    rng = np.random.default_rng(0)
    comparisons = LowRank(users=70, items=70, per_user=10).view(rng).comparisons(5, rng)
    rows = list(pair_updates._two_threads(comparisons, 1))
    assert {"rank 10: sgd tournament, 2 threads : 1", "rank 64: sgd hogwild : serial, 1 thread"} <= {
        r.what for r in rows
    }


def test_measurements_are_saved_without_the_libraries_that_are_missing(topics, monkeypatch, tmp_path):
    monkeypatch.setitem(topics["save"].__globals__, "LIBRARIES", ("numpy", "no-such-package"))
    topics["save"](tmp_path / "rows.json", [__import__("turns").Measure("a number", "s", 1.0)])
    saved = json.loads((tmp_path / "rows.json").read_text())
    assert saved["rows"][0]["what"] == "a number" and "numpy" in saved["versions"]
    assert saved["versions"]["no-such-package"] is None


def test_a_topic_whose_library_is_missing_is_told_in_a_line_and_does_not_stop_the_others(topics, monkeypatch, capsys):
    row = __import__("turns").Measure("a number", "s", 1.0)

    def rows_of(topic, repeats):
        if topic == "rmc":
            raise ModuleNotFoundError("No module named 'cornac'", name="cornac")
        return [row]

    monkeypatch.setitem(topics["main"].__globals__, "rows_of", rows_of)
    monkeypatch.setattr(sys, "argv", ["peers", "rmc", "isotonic"])
    topics["main"]()
    said = capsys.readouterr().out
    assert "rmc is left out: No module named 'cornac'" in said and "a number" in said
