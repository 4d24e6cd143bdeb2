"""Pieces of a report that are made on all cores are those that are made one after the other."""

import pytest
from helpers import made_up_run, no_values, silent, tiny

from rankbench.records.store import ResultsFolder
from rankbench.report import apart, writing
from rankbench.report.apart import shares
from rankbench.report.writing import write_report


def results(folder, count=5):
    """As many stored runs of the tiny experiment under names of their own."""
    for number in range(count):
        values = tuple(0.5 + 0.01 * number + 0.02 * place for place in range(4))
        made_up_run(folder, tiny(name=f"tiny-{number}"), values, arrays=no_values)
    return ResultsFolder(folder, silent)


def files(folder):
    """Everything that a report wrote."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.trust
def test_on_all_cores_the_same_is_written_as_on_one(tmp_path, monkeypatch):
    stored = results(tmp_path / "results")
    made = []
    for cores in (1, 3):
        monkeypatch.setattr(apart, "usable_cores", lambda cores=cores: cores)
        write_report(stored, silent, tmp_path / str(cores))
        made.append(files(tmp_path / str(cores)))
    assert made[0] == made[1]
    assert len(made[0]) > 20


@pytest.mark.slow
def test_pieces_that_no_process_keeps_are_made_by_the_caller(tmp_path, monkeypatch):
    monkeypatch.setattr(apart, "usable_cores", lambda: 2)
    results(tmp_path / "results")
    broken = next((tmp_path / "results" / "tiny-2" / "cells").glob("*.json"))
    broken.write_text("{")
    told: list[str] = []
    write_report(ResultsFolder(tmp_path / "results", told.append), told.append, tmp_path / "report", page=False)
    assert any(broken.name in line for line in told)
    assert (tmp_path / "report" / "tables" / "tiny-2.csv").is_file()


@pytest.mark.slow
def test_processes_keep_the_pieces_so_that_the_caller_makes_none(tmp_path, monkeypatch):
    monkeypatch.setattr(apart, "usable_cores", lambda: 2)
    made = []
    monkeypatch.setattr(writing, "_made", lambda wanted, *others: made.append(wanted.name))
    write_report(results(tmp_path / "results"), silent, tmp_path / "report", page=False)
    assert made == []


def test_a_process_reports_no_problem(tmp_path):
    """Neither a run that is gone nor a folder that cannot be written to: the caller meets them again and says so."""
    results(tmp_path / "results", 1)
    (tmp_path / "file").touch()
    for folder, name in ((tmp_path, "gone"), (tmp_path / "file", "tiny-0")):
        writing._made_here(tmp_path / "results", folder, [name], False)


@pytest.mark.parametrize(("costs", "count"), [({"a": 5, "b": 1, "c": 4, "d": 0}, 2), ({"a": 1}, 3), ({}, 2)])
def test_shares_are_of_about_the_same_work(costs, count):
    found = shares(costs, count)
    assert sorted(name for part in found for name in part) == sorted(costs)
    sums = [sum(costs[name] for name in part) for part in found]
    assert len(found) == min(count, len(costs))
    assert len(sums) < 2 or max(sums) - min(sums) <= max(costs.values())
