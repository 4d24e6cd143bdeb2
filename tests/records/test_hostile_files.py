"""Results and names of experiments that cannot be, in a folder in which anybody may have put anything."""

import pytest
from helpers import made_up_run, tiny

from rankbench.core.errors import UserError
from rankbench.records.codec import with_digest
from rankbench.records.store import ResultsFolder


def test_a_date_that_is_none_is_refused(tmp_path):
    out = made_up_run(tmp_path).store.folder.parent
    path = next((out / "tiny" / "cells").glob("sgd-*.json"))
    text = path.read_text()
    before, _, rest = text.partition('"finished": "')
    path.write_text(with_digest(f'{before}"finished": "x"{rest.partition(chr(34))[2].rpartition(", ")[0]}}}'))
    told = []
    store = ResultsFolder(out, told.append).store("tiny")
    found = [store.load(cell) for cell in store.plans()[0].planned]
    assert sum(one is None for one in found) == 1 and "its date is none" in told[0]


def test_an_experiment_without_a_name_is_refused(cli, tmp_path):
    (tmp_path / "...toml").write_text('title = "outside"')
    assert "has no name" in cli.refuses("run", tmp_path / "...toml", "--out", tmp_path / "out")
    assert not (tmp_path / "plans").exists()


@pytest.mark.parametrize("name", ["", "..", "../outside", "/outside", "a\0b", "\ud800"])
def test_an_experiment_whose_name_leads_out_of_its_folder_is_refused(name):
    with pytest.raises(UserError, match="an experiment cannot be called"):
        tiny(name=name)
