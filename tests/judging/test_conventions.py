"""Conventions beside the tools they belong to, and published numbers whose convention is known."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from asked_tools import ASKED, CUT
from drawn_runs import Drawn, drawn, lists_of

import rankbench
from rankbench import Ratings, evaluate
from rankbench.core.errors import UserError
from rankbench.judging.conventions import METRICS, Ties, phrases
from rankbench.judging.published import conventions_of, printed_number
from rankbench.judging.rankings import Pool, pooled, ranked
from rankbench.judging.tools import JUDGE, TOOLS, USES, asked_of, metric_and_cut
from rankbench.judging.valuing import Evaluation
from rankbench.models import Factors

RECORDED = Path(__file__).with_name("answers_of_tools.json")
SEEDS = range(4)


def pool_of(one: Drawn) -> Pool:
    ranks = np.empty(len(one.ids), np.int64)
    ranks[np.argsort(one.ids)] = np.arange(len(one.ids))
    return pooled(one.run, one.truth, ranks)


def made_for(tool: str, seed: int) -> Drawn:
    """A run on which the tool's answers are defined: half of them with many ties where its order of ties is known."""
    asked = ASKED[tool]
    ties = seed % 2 == 1 and asked.tied is None
    return drawn(seed, steps=2 if ties else 10**6, odd=not asked.whole, whole=asked.whole)


def differences(tool: str, seed: int, cut: int | None, answers: dict[str, float]) -> dict[str, float]:
    """By call: how far our value is from the tool's own; every call of the tool must have been asked."""
    evaluation = Evaluation(pool_of(made_for(tool, seed)), cut)
    found = {}
    for use in USES:
        call = use.whole if cut is None else use.at
        if use.tool == tool and call:
            found[call] = abs(evaluation.value(use.convention) - answers[call])
    return found


def slowly(tool):
    """The tool as an argument of a test; ranx compiles itself when it is first called, for a minute and a half."""
    return pytest.param(tool, marks=pytest.mark.trust) if ASKED[tool].module == "ranx" else tool


@pytest.mark.parametrize("cut", [None, CUT])
@pytest.mark.parametrize("tool", [slowly(tool) for tool in ASKED])
def test_values_are_those_of_the_tool(tool, cut):
    pytest.importorskip(ASKED[tool].module)
    for seed in SEEDS:
        found = differences(tool, seed, cut, dict(ASKED[tool].ask(made_for(tool, seed), cut)))
        assert all(apart < 1e-12 for apart in found.values()), found


@pytest.mark.parametrize("tool", ASKED)
def test_values_are_those_that_the_tool_gave_once(tool):
    """Recorded where all tools were installed: PYTHONPATH=tests python tests/judging/test_conventions.py"""
    for key, answers in json.loads(RECORDED.read_text())[tool].items():
        seed, cut = key.split("@")
        found = differences(tool, int(seed), int(cut) if cut else None, answers)
        assert all(apart < 1e-12 for apart in found.values()), found


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_our_own_rows_are_what_evaluate_gives(seed, whole):
    """A model whose scores tie often, held-out ratings from 1 to 5, users without one, and one with equal ratings."""
    rng = np.random.default_rng(seed)
    users, items = 25, 15
    chosen = rng.random((users, items)) < 0.4
    chosen[3] = False
    held_out = chosen & (rng.random((users, items)) < 0.6)
    ratings = rng.integers(1, 6, (users, items)).astype(float)
    ratings[5], ratings[6] = 2.0, 5.0
    model = Factors(np.round(rng.normal(size=(users, 2))), np.round(rng.normal(size=(items, 2))))
    parts = [
        Ratings.from_triples(*np.nonzero(own), ratings[own], users, items) for own in (chosen & ~held_out, held_out)
    ]
    ranked_here = ~(chosen & ~held_out) if whole else held_out
    scores = model.score_all(np.arange(users))
    lists = [lists_of([(np.flatnonzero(own), table[user][own]) for user, own in enumerate(rows)])
             for rows, table in ((ranked_here, scores), (held_out, ratings))]  # fmt: skip
    evaluation = Evaluation(pooled(*lists, np.arange(items)), None)
    setting = "[candidates=catalogue]" if whole else ""
    for use in USES:
        if use.tool == "rankbench" and use.whole.endswith("]") == whole:
            for cut in (None, 3) if use.at else (None,):
                name = use.called(cut)
                assert name.endswith(setting)
                ours = evaluate(model, parts[1], [name], train=parts[0])[name]
                here = replace(evaluation, cut=cut).value(use.convention)
                assert here == pytest.approx(ours, abs=1e-12, nan_ok=True), name


def test_all_tools_but_elliot_and_our_own_were_asked():
    assert {*TOOLS} - {*ASKED} == {"Elliot", "rankbench", JUDGE}


def planted(seed: int) -> tuple[bool, int]:
    """Whether a tool's convention, drawn at random, is among those named for its number, and how many others are."""
    rng = np.random.default_rng(seed)
    one = drawn(seed, users=500, items=80, steps=int(rng.choice([4, 10**6])), levels=int(rng.choice([2, 5])))
    pool = pool_of(one)
    metric = str(rng.choice(METRICS))
    cut = None if metric == "auc" else int(rng.choice([5, 10, 20]))
    known = {use: Evaluation(pool, cut).value(use.convention) for use in USES
             if use.convention.metric == metric and use.called(cut)}  # fmt: skip
    use = rng.choice([use for use, value in known.items() if not np.isnan(value)])
    value = known[use]
    text = metric if cut is None else f"{metric}@{cut}"
    found = conventions_of(pool, text, f"{value:.3f}")
    right = [candidate.convention == use.convention for finding in found for candidate in finding.candidates]
    holds = [any(candidate.convention == use.convention for candidate in finding.candidates) for finding in found]
    return any(right), len(found) - sum(holds)


@pytest.mark.trust
def test_a_planted_convention_is_named():
    found = [planted(seed) for seed in range(20)]
    assert all(named for named, _ in found)
    assert np.mean([others for _, others in found]) <= 1


@pytest.mark.trust
def test_planted_conventions_are_named_in_two_hundred_draws():
    found = [planted(seed) for seed in range(200)]
    assert np.mean([named for named, _ in found]) >= 0.95
    assert np.mean([others for _, others in found]) <= 1


def test_the_nearest_values_come_first_and_of_equal_ones_those_of_tools():
    pool = pool_of(drawn(0))
    apart = [abs(found.value - 0.3) for found in conventions_of(pool, "ndcg@5", "0.3")]
    assert len(apart) > 2 and apart == sorted(apart)
    (nearest,) = conventions_of(pool, "recall@5", "0.0001")  # which no convention gives
    assert not nearest.fits and [candidate.of_tools for candidate in nearest.candidates] == [True, False]


def test_a_printed_number_stands_for_all_that_are_rounded_to_it():
    number = printed_number("0.3")
    assert all(map(number.fits, (0.25, 0.3, 0.35))) and not any(map(number.fits, (0.2499999, 0.3500001)))


@pytest.mark.parametrize("ties", [Ties.EXPECTED, Ties.GIVEN, Ties.TREC, Ties.ASCENDING, Ties.FIRST, Ties.LAST])
def test_the_order_of_a_file_changes_nothing_but_given_ties(ties):
    one = drawn(5, steps=2)
    order = np.lexsort((-one.run.values, one.run.owners))
    shuffled = Drawn(type(one.run)(one.run.indptr, one.run.items[order], one.run.values[order]), one.truth, one.ids)
    for use in USES:
        if use.convention.ties == ties and ties != Ties.GIVEN:
            values = [Evaluation(pool_of(each), 5).value(use.convention) for each in (one, shuffled)]
            assert values[0] == pytest.approx(values[1], abs=1e-13)
    whole, fast = (ranked(pool_of(each), USES[0].convention.candidates, ties) for each in (one, shuffled))
    assert np.array_equal(whole.owner, fast.owner)


@pytest.mark.trust
def test_expected_values_are_means_over_all_orders_of_a_tie():
    one = drawn(3, users=6, items=6, steps=1)
    exact = {use.called(3): Evaluation(pool_of(one), 3).value(use.convention) for use in USES if use.tool == JUDGE}
    rng, draws = np.random.default_rng(0), []
    for _ in range(1000):
        broken = one.run.values + 1e-9 * rng.random(len(one.run.values))
        of_draw = pool_of(Drawn(type(one.run)(one.run.indptr, one.run.items, broken), one.truth, one.ids))
        draws.append([Evaluation(of_draw, 3).value(use.convention) for use in USES if use.tool == JUDGE])
    spread = 4 * np.std(draws, axis=0) / np.sqrt(len(draws)) + 1e-12
    assert (np.abs(np.mean(draws, axis=0) - list(exact.values())) <= spread).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("abc", "is not a number"),
        ("1.2", "is not between 0 and 1"),
        ("-0.1", "is not between 0 and 1"),
        ("nan", "is not a number"),
        ("", "is not a number"),
    ],
)
def test_a_printed_number_is_one(text, said):
    with pytest.raises(UserError, match=said):
        printed_number(text)


def test_printed_digits_decide_what_fits():
    assert printed_number("0.38").fits(0.3849) and not printed_number("0.380").fits(0.3849)
    assert printed_number("0.380").fits(0.3804) and not printed_number("0.380").fits(0.3806)
    assert printed_number("38.2%").fits(0.3818) and printed_number(" .382 ").value == 0.382


def test_where_nothing_fits_the_nearest_value_is_given():
    found = conventions_of(pool_of(drawn(1)), "ndcg@5", "0.0001")
    assert len(found) == 1 and not found[0].fits


@pytest.mark.parametrize(
    ("tool", "text", "said"),
    [
        ("trec-eval", "ndcg@10", "did you mean 'trec_eval'"),
        ("ranx", "ndgc@10", "did you mean 'ndcg'"),
        ("ranx", "auc", "ranx does not compute auc"),
        (
            "RecBole",
            "mrr",
            "it computes auc, and hit-rate, map, mrr, ndcg, precision, recall with a cut-off such as @10",
        ),
        (
            "implicit",
            "mrr@5",
            "implicit does not compute mrr@5; it computes map, ndcg, precision with a cut-off such as @10",
        ),
        ("ranx", "ndcg@0", "whole number"),
        ("ranx", "ndcg@x", "whole number"),
        ("trec_eval", "hit-rate", "no tool computes hit-rate without a cut-off|does not compute"),
    ],
)
def test_a_wrong_tool_or_metric_is_named(tool, text, said):
    with pytest.raises(UserError, match=said):
        asked_of(tool, text, None)


def test_scores_that_a_tool_cannot_tell_apart_are_ties_and_no_warning():
    one = drawn(0)
    runs = [replace(one, run=type(one.run)(one.run.indptr, one.run.items, np.full_like(one.run.values, value)))
            for value in (1e300, 1.0)]  # fmt: skip
    assert np.array_equal(*(ranked(pool_of(run), USES[0].convention.candidates, Ties.TREC).owner for run in runs))


def test_a_metric_is_asked_for_by_its_general_name_or_the_tools_own():
    assert asked_of("trec_eval", "ndcg_cut_10", None).convention == asked_of("trec_eval", "ndcg@10", None).convention
    assert asked_of("ranx", "ndcg_burges@7", None).cut == 7
    assert asked_of(JUDGE, "recall@5", 3.0).convention.relevant == 3.0
    assert metric_and_cut("map") == ("map", None)


def test_a_definition_says_everything_that_decides_the_value():
    for use in USES:
        assert len({phrase.partition(":")[0] for phrase in phrases(use.convention)}) == len(phrases(use.convention))


if __name__ == "__main__":
    answers = {
        tool: {
            f"{seed}@{cut or ''}": {call: float(value) for call, value in asked.ask(made_for(tool, seed), cut).items()}
            for seed in (0, 1)
            for cut in (None, CUT)
        }
        for tool, asked in ASKED.items()
    }
    RECORDED.write_text(json.dumps(answers, indent=1) + "\n")


def test_the_conventions_of_a_number_are_a_table():
    run, truth = ({"u": {"a": 2.0, "b": 1.0}} for _ in range(2))
    found = rankbench.conventions(run, truth, "ndcg@2", "1.000")
    assert list(found.columns) == ["value", "fits", "conventions", "definition"] and found.fits.all()


def test_numbers_that_no_convention_can_give_are_refused(tmp_path):
    run = {"u": {"a": 2.0, "b": 1.0}}
    with pytest.raises(UserError, match="auc has no value on this run under any convention"):
        rankbench.conventions(run, {"u": {"a": 1, "b": 1}}, "auc", "0.5")
    with pytest.raises(UserError, match="no tool computes auc with a cut-off; write 'auc'"):
        rankbench.conventions(run, {"u": {"a": 1, "b": 0}}, "auc@10", "0.5")
    for seed in range(2):
        (tmp_path / f"{seed}.run").write_text("u Q0 a 1 2 t\n")
    with pytest.raises(UserError, match="is looked for in one run, and the pattern stands for several"):
        rankbench.conventions(f"{tmp_path}/{{seed}}.run", run, "map", "0.5")


def test_a_run_without_any_truth_has_no_relevances():
    lists = drawn(0, users=3, items=4).run
    nothing = type(lists)(np.zeros(4, np.int64), lists.items[:0], lists.values[:0])
    assert not pooled(lists, nothing, np.arange(4)).judged.any()


@pytest.mark.parametrize("metric", ["map", "ndcg"])
def test_relevant_items_of_a_tie_stand_first_or_last(metric):
    pool = pool_of(drawn(3, users=6, items=6, steps=1))  # all scores are equal
    usual = next(use.convention for use in USES if use.tool == JUDGE and use.convention.metric == metric)
    first, expected, last = (
        Evaluation(pool, 2).value(replace(usual, ties=ties)) for ties in (Ties.FIRST, Ties.EXPECTED, Ties.LAST)
    )
    assert first > expected > last
