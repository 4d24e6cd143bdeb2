"""Solvers compared two by two: within an experiment, and each with itself in two results folders."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import MACHINE, around, csv_rows, made_up, prepared, silent, tiny

from rankbench.records.cells import Selection
from rankbench.records.store import ResultsFolder
from rankbench.report.analysis.comparison import COLUMNS, _counted, between, sheet_of, to_csv, within
from rankbench.report.study import study
from rankbench.statistics.decisions import BETTER, EQUAL, OPEN, WORSE
from rankbench.statistics.samples import Sample

pytestmark = pytest.mark.slow

VALUES = {"global": 0.5, "sgd": 0.6, "mf": 0.6}


def kept(out, values=None, arrays=around, solvers=("global", "sgd", "mf"), changes=None, seed=0, **of_experiment):
    """The study of made-up results in a folder, read back from it."""
    run = prepared(out, tiny(solvers=solvers, **of_experiment), Selection(seed=seed))
    run.open()
    for cell in run.plan.cells:
        value = (VALUES | (values or {}))[cell.solver.name]
        run.keep(made_up(cell, value, **(changes or {}).get(cell.solver.name, {})), arrays(cell, value))
    return study(ResultsFolder(out, silent), "tiny")


def shaken(cell, value):
    """Values that differ from user to user and from solver to solver, around the same mean."""
    rng = np.random.default_rng([cell.place.repetition, len(cell.solver.name)])
    return {measure.label: value + 0.1 * rng.standard_normal(20) for measure in cell.measures}


def test_each_two_solvers_are_compared_by_each_metrics_direction(tmp_path):
    found = {(one.first, one.second, one.metric): one for one in within(kept(tmp_path))}
    assert len(found) == 3 * 2
    assert found["global", "sgd", "ndcg@5"].verdict == BETTER
    assert found["global", "sgd", "pairwise-error"].verdict == WORSE  # a larger error
    alike = found["sgd", "mf", "ndcg@5"]
    assert (alike.verdict, alike.difference, alike.p) == (EQUAL, 0, 1)
    assert (alike.wins, alike.ties, alike.losses) == (0, 20, 0)
    higher = found["global", "sgd", "ndcg@5"]
    assert higher.difference == pytest.approx(0.1) and (higher.wins, higher.losses) == (20, 0)
    assert found["global", "sgd", "pairwise-error"].wins == 0
    assert higher.low <= higher.difference <= higher.high


def test_what_chance_explains_is_no_difference(tmp_path):
    found = within(kept(tmp_path, {"global": 0.5, "sgd": 0.5, "mf": 0.5}, shaken))
    assert {one.verdict for one in found} == {OPEN}


def test_p_values_are_adjusted_for_the_number_of_comparisons(tmp_path):
    def drifting(cell, value):
        rng = np.random.default_rng([5, len(cell.solver.name)])
        return {measure.label: value + 0.04 * rng.standard_normal(20) for measure in cell.measures}

    two = within(kept(tmp_path / "two", {"sgd": 0.52}, drifting, ("global", "sgd"), repetitions=1))
    three = within(kept(tmp_path / "three", {"sgd": 0.52, "mf": 0.51}, drifting, repetitions=1))
    alone, among = (next(one for one in found if one.metric == "ndcg@5") for found in (two, three))
    assert (alone.first, alone.second) == (among.first, among.second) == ("global", "sgd")
    assert alone.p < among.p and alone.low > among.low


def test_a_margin_replaces_those_of_the_experiment(tmp_path):
    assert {one.verdict for one in within(kept(tmp_path), margin=0.5)} == {EQUAL}
    assert {one.margin for one in within(kept(tmp_path), margin=0.5)} == {0.5}


def test_speeds_are_compared_within_one_machine_only(tmp_path):
    slow = {"curve": tuple(replace(point, seconds=2 * point.seconds) for point in curve_of(tmp_path / "a"))}
    (one,) = {line.speed for line in within(kept(tmp_path / "b", changes={"global": slow}, solvers=("global", "sgd")))}
    assert one == pytest.approx(2.0)
    other = {"machine": replace(MACHINE, cpu="another")}
    found = within(kept(tmp_path / "c", changes={"global": other}, solvers=("global", "sgd")))
    assert {line.speed for line in found} == {None}


def curve_of(out):
    """A made-up curve."""
    return kept(out, solvers=("sgd",)).entries[0].result.curve


def test_two_folders_are_compared_solver_by_solver(tmp_path):
    before, after = kept(tmp_path / "before"), kept(tmp_path / "after", {"sgd": 0.4}, solvers=("global", "sgd"))
    found = {(one.first, one.metric): one.verdict for one in between(before, after, ("before", "after"))}
    assert found == {
        ("global in before", "pairwise-error"): EQUAL, ("global in before", "ndcg@5"): EQUAL,
        ("sgd in before", "pairwise-error"): BETTER, ("sgd in before", "ndcg@5"): WORSE,
    }  # fmt: skip


def test_a_difference_of_nothing_has_no_minus(tmp_path):
    one = replace(within(kept(tmp_path))[0], difference=-0.0, low=-0.00001, high=-0.0)
    shown = sheet_of([replace(one, p=0.0004)]).lines[0]
    assert "< 0.001" in shown and "0.001" in sheet_of([replace(one, p=0.001)]).lines[0]
    assert "+0.0000" in shown and "+0.0000 to +0.0000" in shown


def test_what_differs_is_bold_and_the_csv_holds_every_digit(tmp_path):
    found = within(kept(tmp_path))
    table = sheet_of(found)
    bold = {table.lines[line][column] for line, column in table.best}
    assert any(line[-1].startswith("equal within") for line in table.lines)
    assert bold == {BETTER, WORSE} and len(table.headings) == len(table.lines[0]) == len(table.numeric)
    back = csv_rows(to_csv(found))
    assert [float(line["difference"]) for line in back] == [one.difference for one in found]
    assert [line["verdict"] for line in back] == [one.verdict for one in found]


def test_the_verb_compares_an_experiment_or_two_folders(cli, tmp_path):
    kept(tmp_path / "one")
    kept(tmp_path / "other", {"sgd": 0.4})
    one, other = tmp_path / "one", tmp_path / "other"
    assert "tiny: each two solvers, user by user" in cli("compare", "tiny", "--out", one).out
    columns = "experiment,data,split,first,second,metric,one,other,difference,low,high,p"
    assert cli("compare", "tiny", "--out", one, "--csv").out.startswith(columns)
    cli("compare", one, one, "--fail-if-worse")
    cli("compare", one, other)
    assert "**worse**" in cli("compare", one, other, "--fail-if-worse", code=1).out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("one", "empty"), "no experiment in common"),
        (("bare", "bare"), "nothing to compare"),
    ],
)
def test_wrong_use_is_one_line(cli, here, words, line):
    kept(here / "one")
    kept(here / "bare", arrays=lambda cell, value: {})
    (here / "empty").mkdir()
    assert line in cli.refuses("compare", *words)


SPLITS = ("n-per-user[n=8,least=5]", "n-per-user[n=9,least=5]")


def test_comparisons_on_several_splits_say_on_which(tmp_path):
    found = within(kept(tmp_path, splits=SPLITS))
    assert len(found) == 2 * 3 * 2
    assert [one.split for one in found] == [SPLITS[0]] * 6 + [SPLITS[1]] * 6
    assert sheet_of(found).headings[:3] == ("data", "split", "metric")
    assert {line[:2] for line in sheet_of(found).lines} == {(found[0].data, split) for split in SPLITS}
    lines = csv_rows(to_csv(found))
    assert [(line["data"], line["split"]) for line in lines] == [(one.data, one.split) for one in found]
    assert list(lines[0]) == list(COLUMNS) == list(found[0].record)


def test_on_no_common_repetition_nobody_wins():
    assert _counted(Sample.of({0: np.zeros(3)}), Sample.of({1: np.ones(3)}), 1.0) == (0, 0, 0)
