"""Rivals of other packages: ratios of seconds paired by repetition, quality beside them, and who is absent and why."""

import re
from dataclasses import replace
from math import sqrt

import pytest
from helpers import MACHINE, altered, csv_rows, made_up_study, no_values, prepared, tiny

from rankbench import experiments
from rankbench.experiments.costs import Rivals
from rankbench.names import Pattern
from rankbench.records.cells import Skip
from rankbench.records.results import Point
from rankbench.records.store import ResultsFolder
from rankbench.report.analysis.rivals import COLUMNS, losses, matches, rival_sheet, rivals_to_csv
from rankbench.report.outline import outline
from rankbench.report.render.figures.series import drawing
from rankbench.report.render.page import page
from rankbench.report.sections import Section
from rankbench.solvers import SOLVERS

PACE = {"global": (1.0, 2.0, 3.0), "sgd": (4.0, 2.0, 6.0)}  # seconds of a step in each repetition
QUALITY = {"global": (0.2, 0.6, 0.8, 0.9), "sgd": (0.1, 0.4, 0.5, 0.6)}  # NDCG, of which higher is better
PAIR = (Rivals("global", "sgd"),)


@pytest.fixture
def study(tmp_path):
    """Makes a study of two rivals in two repetitions, with the paces and qualities above."""

    def made(rivals=PAIR, **changes):
        experiment = tiny(**{"metrics": ("ndcg@5",), "rivals": rivals, **changes})
        return made_up_study(tmp_path, experiment, curve=curve_of, arrays=no_values)

    return made


def curve_of(cell):
    pace, quality = PACE[cell.solver.name][cell.place.repetition], QUALITY[cell.solver.name]
    return tuple(Point(step, 10.0 * (step > 0) + pace * step, (quality[step],)) for step in range(4))


def changed(found, **changes):
    """The study with all results changed."""
    return altered(
        found, entries=tuple(replace(entry, result=replace(entry.result, **changes)) for entry in found.entries)
    )


def test_ratios_are_taken_within_each_repetition_and_leave_out_the_set_up(study):
    (match,) = matches(study())
    assert match.ratios == (4.0, 1.0) and match.metric == "ndcg@5"
    assert (match.ours.name, match.peer.name, match.left_out) == ("Global ranking", "SGD", "")
    assert match.ours.seconds == (13.0, 16.0) and match.ours.values == (0.9, 0.9)


def test_at_equal_quality_the_better_one_is_timed_where_it_is_as_good_as_the_worse_one(study):
    (match,) = matches(study())
    assert match.equal == ((10 + 3 * 4) / (10 + 1), (10 + 3 * 2) / (10 + 2))


def test_a_training_whose_start_is_as_good_already_has_no_time_to_equal_quality(study):
    found = study()
    flat = tuple(Point(step, 1.0 + step, (0.6,)) for step in range(4))
    sgd = [replace(entry, result=replace(entry.result, curve=flat)) if entry.cell.solver.name == "sgd" else entry
           for entry in found.entries]  # fmt: skip
    (match,) = matches(altered(found, entries=tuple(sgd)))
    assert match.equal == () and len(match.ratios) == 2


def test_steps_that_do_less_work_count_less_and_those_of_another_kind_not_at_all(study):
    (halves,) = matches(study((Rivals("global", "sgd", steps=2),)))
    assert halves.ratios == (2.0, 0.5)
    (other,) = matches(study((Rivals("global", "sgd", steps=0),)))
    assert other.ratios == () and len(other.equal) == 2


def test_a_solver_of_a_single_model_is_compared_by_its_whole_training(study):
    found = study()
    single = [replace(entry, result=replace(entry.result, curve=(Point(0, 26.0, (0.5,)),)))
              if entry.cell.solver.name == "sgd" else entry for entry in found.entries]  # fmt: skip
    (match,) = matches(altered(found, entries=tuple(single)))
    assert match.ratios == (26 / 13, 26 / 16) and match.equal == (26 / 11, 26 / 12)


def test_the_table_has_means_with_intervals_over_repetitions(study):
    (line,) = rival_sheet(study(repetitions=3)).lines
    half = 4.303 * sqrt(9 / 3)  # Student's with two degrees of freedom, of 13, 16 and 19
    assert line[:3] == ("low-rank ratings", "NDCG@5", "Global ranking")
    seconds = line[4].split(" ± ")
    assert float(seconds[0]) == 16.0 and float(seconds[1]) == pytest.approx(half, rel=1e-3)
    assert line[8] == "2.00" and line[-1] == ""


def test_the_csv_has_all_digits(study):
    (row,) = csv_rows(rivals_to_csv(study(repetitions=3)))
    assert tuple(row) == COLUMNS
    assert float(row["ratio"]) == pytest.approx(2.0) and row["repetitions"] == "3"
    assert float(row["ours_value"]) == 0.9 and float(row["ours_low"]) == 0.9


def test_two_repetitions_have_a_mean_and_no_interval(study):
    (line,) = rival_sheet(study()).lines
    assert line[4] == "14.500" and line[8:12] == ("2.00", "", "1.63", "")


def test_times_that_cannot_be_compared_are_left_out_and_disturbed_ones_marked(study):
    found = study()
    (contended,) = matches(changed(found, contended=True))
    assert contended.ratios == () and "undisturbed by other cells" in contended.left_out
    last = replace(found.entries[-1], result=replace(found.entries[-1].result, machine=replace(MACHINE, cpu="other")))
    (once,) = matches(altered(found, entries=(*found.entries[:-1], last)))
    assert once.ratios == (4.0,)
    assert rival_sheet(altered(found, entries=(*found.entries[:-1], last))).lines[0][8:10] == ("4.00", "")
    assert "*" in rival_sheet(changed(found, load=1.0)).lines[0][4]


def test_a_peer_that_is_not_installed_is_named_with_the_reason_and_the_others_stay(study):
    found = study((Rivals("global", "cornac-mf"), Rivals("global", "sgd"), Rivals("mf", "sgd")))
    place = found.entries[0].cell.place
    absent = SOLVERS.resolve("cornac-mf")
    skip = Skip(place.data, place.split, absent, "cornac-mf needs a package that is not installed", "pip install it")
    first, second, third = matches(altered(found, skips=(skip,)))
    assert first.left_out == "cornac-mf needs a package that is not installed; to get it: pip install it"
    assert first.peer.name == "MF of cornac" and first.ours.values and first.ratios == ()
    assert second.left_out == "" and second.ratios
    assert third.left_out == "mf has not run"
    assert rival_sheet(altered(found, skips=(skip,))).lines[0][-1] == first.left_out
    assert len(csv_rows(rivals_to_csv(found))) == 3


def test_a_rival_that_failed_is_named_with_the_reason(study):
    found = study()
    failed = [replace(entry, result=replace(entry.result, status="failed", reason="it broke"))
              if entry.cell.solver.name == "sgd" else entry for entry in found.entries]  # fmt: skip
    (match,) = matches(altered(found, entries=tuple(failed)))
    assert match.left_out == "sgd failed: it broke" and match.ratios == ()


def test_an_experiment_without_rivals_has_no_such_table(study):
    assert rival_sheet(study(())) is None and losses(study(())) == ""


def test_what_is_behind_is_told_by_the_means(study):
    turned = study((Rivals("sgd", "global"),))
    assert losses(turned).splitlines() == [
        "- NDCG@5: SGD beside Global ranking (low-rank ratings)",
        "- speed, the peer's seconds to equal quality over ours: SGD beside Global ranking (0.61 on low-rank ratings)",
    ]
    assert losses(study()) == "Nowhere, by the means."
    assert losses(study((Rivals("global", "cornac-mf"),))) == ""


def test_less_of_an_error_is_better(study):
    found = study(metrics=("pairwise-error",))
    assert losses(found).startswith("- pairwise error: Global ranking beside SGD (low-rank ratings)")


def test_a_report_tells_what_is_behind_before_anything_else(study):
    told = outline(Section(study(), "tiny"))[1]
    assert told.text == "Nowhere, by the means." and told.title.startswith("Where rankbench is behind, by the means")


def test_a_crowded_figure_has_a_panel_for_each_family_of_rivals(study):
    names = ("global[lam=1]", "global[lam=2]", "global[lam=3]", *(f"sgd[rank={rank}]" for rank in range(2, 9)))
    rivals = (Rivals("global[lam=1]", "sgd[rank=2]"), Rivals("global[lam=1]", "sgd[rank=3]"))
    found = study(rivals, solvers=names)
    drawn = drawing(found)
    assert len(drawn.panels) == 8 and len(drawn.panels[0].lines) == 3
    assert drawn.panels[0].title.endswith("Global ranking and its rivals")
    assert "Beside other packages" in page([Section(found, "peers", drawn)])


def test_the_repetitions_of_a_run_follow_each_other_with_all_solvers_in_each(tmp_path):
    run = prepared(tmp_path, tiny(repetitions=3, rivals=(Rivals("global", "sgd"),)))
    assert [cell.place.repetition for cell in run.pending] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", experiments.members("peers"))
def test_rivals_are_solvers_of_their_experiment_and_of_different_packages(name, full):
    found = experiments.load(name, full)
    homes = {SOLVERS.resolve(text).name: SOLVERS.resolve(text).home for text in found.solvers}
    for pair in found.rivals:
        assert ".peers." in homes[pair.peer.name] and ".peers." not in homes[pair.ours.name]
        assert pair.metric in ("", *found.metrics)
    bare = [{text.partition("[")[0] for text in texts} for texts in (found.solvers, found.tune.space)]
    assert bare[0] == bare[1]


def test_reasons_stand_under_a_heading_that_fits_what_is_compared():
    names = ("peers-ratings", "scaling-users", "park2015-table1")
    assert [experiments.load(name).differences_title for name in names] == [
        "Why the packages differ", "Differences from the theory", "Differences from the paper",
    ]  # fmt: skip


def test_every_solver_of_another_package_has_a_rival():
    found = [experiments.load(name) for name in experiments.members("peers")]
    assert {pair.peer.name for one in found for pair in one.rivals} == {
        name for name, home in SOLVERS.entries.items() if ".peers." in home
    }


def test_rivals_are_read_with_the_canonical_name_of_their_metric():
    text = 'title="t"\nabout="a"\ndata=["btl"]\nsplits=["entries"]\nsolvers=["sgd"]\nmetrics=["kendall"]\n'
    text += 'rivals = [{ours = "mf", peer = "cornac-mf", metric = "precision@3[relevant=4]", steps = 2}]\n'
    (pair,) = experiments.read("x", "x.toml", text).rivals
    assert pair == Rivals(Pattern("mf"), Pattern("cornac-mf"), "precision@3", 2)


@pytest.mark.slow
def test_without_any_peer_the_experiment_runs_and_says_what_is_left_out(cli, tmp_path, monkeypatch):
    monkeypatch.setattr("rankbench.core.packages.find_spec", lambda name: None)
    said = cli("run", "peers", "--out", tmp_path).out
    assert re.search("needs a package that is not installed; the same for .*xgboost", said)
    written = (tmp_path / "report" / "peers.md").read_text()
    assert "Beside other packages:" in written and "to get it: pip install lightfm-next" in written
    assert ResultsFolder(tmp_path, print).names() == ["peers-ratings", "peers-recall", "peers-top"]
