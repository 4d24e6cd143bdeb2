"""Intervals, bold and what could be seen: from the values for each user that are stored beside results."""

import gc
from dataclasses import replace
from weakref import ref

import numpy as np
import pytest
from helpers import TINY, altered, around, made_up, made_up_study, ran, tiny

from rankbench.records.results import Counted, pairs_of
from rankbench.records.store import values_of
from rankbench.report.analysis.comparison import sheet_of as comparison_sheet
from rankbench.report.analysis.comparison import within
from rankbench.report.analysis.evidence import evidence, verdict_of
from rankbench.report.render.tables import VERDICTS, against_text, definitions, notes, sheet, to_csv, to_markdown
from rankbench.report.rows import rows
from rankbench.report.study import cached_by_study
from rankbench.statistics.decisions import BETTER, EQUAL, OPEN, WORSE

SOLVERS = ("global", "sgd[rank=2]", "sgd[rank=3]")


@pytest.fixture
def study(tmp_path):
    """Makes a study of made-up results: a value for each solver, and the values for each user that `arrays` makes."""

    def study_of(values=(0.5, 0.6, 0.7), arrays=around, made=made_up, repetitions=2, **changes):
        experiment = tiny(solvers=SOLVERS, repetitions=repetitions, **changes)
        by_name = dict(zip(SOLVERS, values, strict=True))
        return made_up_study(tmp_path, experiment, lambda cell: by_name[cell.solver.written], made=made, arrays=arrays)

    return study_of


@pytest.mark.parametrize("asked", [evidence, rows])
def test_what_is_asked_of_a_study_is_computed_once_however_many_others_are_asked_for_meanwhile(study, asked):
    first = study()
    studies = [first, *(replace(first, notes=(str(number),)) for number in range(6))]
    before = [asked(one) for one in studies]
    assert all(asked(one) is found for one, found in zip(studies, before, strict=True))
    assert len({id(found) for found in before}) == 7


@pytest.mark.slow
def test_answers_are_kept_no_longer_than_their_study(study):
    answers = cached_by_study(lambda study: {study.notes})
    one = replace(study(), notes=("gone",))
    gone = ref(answers(one))
    del one
    gc.collect()
    answers(study())
    assert gone() is None


def nothing(cell, value):
    """No values for users, as of results that an older version wrote."""
    return {}


def test_a_row_has_the_interval_of_its_mean_and_the_difference_from_the_best(study):
    found = {row.settings.partition(",")[0]: row for row in rows(study()) if row.metric == "ndcg@5"}
    for row in found.values():
        assert row.low < row.measured < row.high and row.high - row.low < 0.02
    best, second = found["rank=3"], found["rank=2"]
    assert best.best and best.bold and best.verdict == BETTER and best.rival == "sgd[rank=2]"
    assert not second.bold and second.verdict == WORSE and second.rival == "sgd[rank=3]" and second.p < 1e-3
    assert second.difference == pytest.approx(-0.1) and second.margin == pytest.approx(0.007)
    assert second.reason == "the same difference for every user" and second.chance == 0


def noisy(cell, value):
    """Values of 20 users in each repetition that every solver draws for itself."""
    rng = np.random.default_rng([cell.place.repetition, SOLVERS.index(cell.solver.written)])
    return {measure.label: value + 0.1 * rng.standard_normal(20) for measure in cell.measures}


def test_what_is_not_worse_than_the_best_is_bold_too(study):
    found = study((0.5, 0.7, 0.701), arrays=noisy, repetitions=3)
    table = sheet(found)
    column = table.headings.index("NDCG@5")
    assert {line for line, place in table.best if place == column} == {1, 2}
    told = [row for row in rows(found) if row.metric == "ndcg@5" and not row.bold]
    assert len(told) == 1 and told[0].verdict == WORSE
    assert told[0].difference_low < -0.2 < told[0].difference_high < 0
    (line,) = [line for line in notes(found) if "ndcg@5" in line]
    assert "1 of 2 verdicts on other solvers open against the best, with a margin of 0.007" in line
    assert "with 20 users and 3 repetitions a difference of 0." in line and "would show" in line and "needs" in line


def test_a_difference_of_nothing_has_no_minus(study):
    found = rows(study(arrays=noisy, repetitions=3))[0]
    alike = replace(found, best=True, verdict=OPEN, reason="alike", difference_low=-0.0, difference_high=-0.00001)
    assert against_text(alike) == "best, open, +0.0000 to +0.0000"


def test_the_note_names_what_the_nearest_open_verdict_needs(study):
    found = study((0.55, 0.59, 0.6), arrays=noisy, repetitions=3)
    needed = [
        verdict.decision.repetitions_needed for verdict in evidence(found)[place_of(found), "ndcg@5"].open.values()
    ]
    (line,) = [line for line in notes(found) if "ndcg@5" in line]
    assert len(needed) == 2 and f"the nearest to settle needs {min(filter(None, needed))} repetitions" in line


def place_of(study):
    """The identity of the only place of a study."""
    return study.groups[0].place.identity


def test_of_one_repetition_nothing_is_bold_and_a_note_says_so(study):
    found = study((0.5, 0.7, 0.701), arrays=noisy, repetitions=1)
    assert sheet(found).best == frozenset()
    said = notes(found)
    assert "Verdicts speak of what happens on this split." in said
    assert any(line.startswith("Of one repetition nothing is bold") for line in said)


def test_what_verdicts_speak_of_is_what_repetitions_draw_anew(study):
    assert "Verdicts speak of what happens on new data of this kind." in notes(study())


def test_a_margin_of_the_experiment_is_that_of_its_verdicts(study):
    found = study((0.5, 0.7, 0.701), margins=(("ndcg@5", 0.5),))
    words = {row.metric: {one.verdict for one in rows(found) if one.metric == row.metric} for row in rows(found)}
    assert words["ndcg@5"] == {EQUAL} and WORSE in words["pairwise-error"]
    assert "equal within 0.5" in "".join(text for line in sheet(found).lines for text in line)


def test_solvers_that_do_not_differ_are_equal(study):
    found = study((0.5, 0.5, 0.5))
    assert {row.verdict for row in rows(found)} == {EQUAL} and all(row.bold for row in rows(found))


def test_results_without_values_for_users_have_no_interval_and_nothing_in_bold(study):
    found = study(arrays=nothing)
    assert {(row.low, row.high, row.p, row.verdict, row.bold) for row in rows(found)} == {(None, None, None, "", False)}
    assert sheet(found).best == frozenset() and "against the best" not in sheet(found).headings
    assert VERDICTS not in definitions(found) and VERDICTS in definitions(study(values=(0.1, 0.2, 0.3)))


def test_one_solver_alone_is_not_bold_and_has_its_interval(study, tmp_path):
    found = made_up_study(tmp_path / "one", tiny(solvers=("global",)))
    assert sheet(found).best == frozenset() and all(row.low is not None for row in rows(found))
    assert not [line for line in notes(found) if "Verdicts" in line]


def test_an_average_over_pairs_is_weighed_by_its_pairs(study):
    label = "pairwise-error[average=pairs]"

    def weighed(cell, value):
        pairs = np.arange(1.0, 21.0)
        errors = value + 0.01 * np.linspace(-1, 1, 20)
        return {label: errors * pairs * 20 / pairs.sum(), pairs_of(label): pairs}

    found = study(arrays=weighed, metrics=(label,))
    group = found.groups[0]
    verdict = verdict_of(found, group, label)
    pairs = np.arange(1.0, 21.0)
    assert verdict.mean.mean == pytest.approx((0.5 + 0.01 * np.linspace(-1, 1, 20)) @ pairs / pairs.sum(), rel=1e-12)
    assert verdict.mean.high - verdict.mean.low < 0.01  # the plain values spread a hundred times as far


def test_an_average_over_pairs_whose_pairs_are_unknown_has_no_interval(study):
    found = study(metrics=("pairwise-error[average=pairs]",))
    assert {(row.low, row.bold) for row in rows(found)} == {(None, False)}


def test_repetitions_with_other_users_have_no_verdict(study):
    found = study(arrays=lambda cell, value: around(cell, value, users=20 + cell.place.repetition))
    entries = []
    for entry in found.entries:
        counted = (Counted(20 + entry.cell.place.repetition, 0),) * len(entry.cell.measures)
        entries.append(replace(entry, result=replace(entry.result, counted=counted)))
    assert not evidence(altered(found, entries=tuple(entries)))


def test_evidence_is_gathered_once_for_a_study(study):
    found = study()
    assert evidence(found) is evidence(found)


def test_stored_values_are_those_that_were_kept(study, tmp_path):
    found = study()
    cell = found.entries[0].cell
    stored, kept = values_of(tmp_path / "tiny" / "cells", cell), around(cell, 0.5)
    assert stored.keys() == kept.keys()
    assert all(stored[name].tobytes() == kept[name].tobytes() for name in kept)


@pytest.mark.parametrize("split", ["n-per-user[n=8,least=5]", "comparisons[n=20]"])
def test_a_run_stores_the_pairs_behind_an_average_over_pairs(tmp_path, split):
    label = "pairwise-error[average=pairs]"
    found = ran(tmp_path, tiny(metrics=(label,), splits=(split,), solvers=("global",), repetitions=1)).study()
    (result,) = found.results
    stored = values_of(tmp_path / "tiny" / "cells", result.cell)
    assert set(stored) == {label, pairs_of(label)} and stored[pairs_of(label)].max() > 1
    verdict = verdict_of(found, found.groups[0], label)
    assert verdict.mean.mean == pytest.approx(result.value(label), rel=1e-12)
    assert verdict.mean.low < verdict.mean.mean < verdict.mean.high


NOTHING = np.full(20, np.nan)
ODD = {
    "one user": lambda noise, value: noise[:1] + value,
    "a constant for each solver": lambda noise, value: np.full(20, value),
    "one constant for all": lambda noise, value: np.full(20, 0.5),
    "NaN for some users": lambda noise, value: np.where(np.arange(20) % 7 == int(10 * value), np.nan, noise + value),
    "NaN for all users of one solver": lambda noise, value: NOTHING if value > 0.6 else noise + value,
}  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("repetitions", [1, 3])
@pytest.mark.parametrize("kind", ODD)
def test_of_odd_values_tables_have_a_verdict_in_words_and_no_certainty_without_its_reason(study, kind, repetitions):
    def odd(cell, value):
        rng = np.random.default_rng([cell.place.repetition, int(10 * value)])
        return dict.fromkeys(TINY.metrics, ODD[kind](0.05 * rng.standard_normal(20), value))

    def counting(cell, value):
        return made_up(cell, value, counted=tuple(Counted(len(values), 0) for values in odd(cell, value).values()))

    found = study(repetitions=repetitions, arrays=odd, made=counting)
    for row in rows(found):
        if row.verdict:
            assert row.verdict in VERDICTS
            bounded = row.difference_low is not None and row.difference_low < row.difference_high
            assert bounded or row.reason
    table = sheet(found)
    column = table.headings.index("against the best")
    assert all(line[column] for line in table.lines) or "NaN" in kind
    assert ("the same " in str(table.lines)) is ("constant" in kind)
    assert notes(found) and comparison_sheet(within(found)).lines
    assert "Traceback" not in to_markdown(table) and to_csv(rows(found))


def test_the_interval_of_a_solver_alone_says_why_it_has_no_width(study):
    found = study(arrays=lambda cell, value: {measure.label: np.full(20, value) for measure in cell.measures})
    alone = altered(found, entries=tuple(entry for entry in found.entries if entry.cell.solver.name == "global"))
    assert "0.5000 to 0.5000 (all values are the same)" in sheet(alone).lines[0]
