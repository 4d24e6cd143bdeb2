"""Runs of other tools judged: values, verdicts, coverage, repetitions, storage, and what is refused."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
from asked_tools import ranx, scikit_learn, trec_eval_c
from data.sources.at_hand import needs
from drawn_runs import drawn

import rankbench
from rankbench.core.errors import UserError
from rankbench.judging import gathering
from rankbench.judging.subjects import GivenMetric


def frames(seed=0, users=60, **how):
    """A run and its truth as DataFrames, and the same as they were drawn."""
    one = drawn(seed, users=users, **how)
    found = []
    for lists in (one.run, one.truth):
        owners = [f"u{user}" for user in lists.owners]
        found.append(pandas.DataFrame({"user": owners, "item": one.ids[lists.items], "score": lists.values}))
    return found[0], found[1].rename(columns={"score": "relevance"}), one


def better(truth, noise, seed=0):
    """A run that follows the truth as far as the noise leaves it."""
    rng = np.random.default_rng(seed)
    return truth.assign(score=truth.relevance + noise * rng.normal(size=len(truth)))[["user", "item", "score"]]


def measured(found, label):
    return found.results().set_index("metric").value[label]


@pytest.mark.parametrize(
    ("ask", "tool"),
    [
        (trec_eval_c, "trec_eval -c"),
        (scikit_learn, "scikit-learn"),
        pytest.param(ranx, "ranx", marks=pytest.mark.trust),  # it compiles itself for more than a minute
    ],
)
def test_values_are_those_of_the_tool(ask, tool):
    pytest.importorskip({"trec_eval -c": "pytrec_eval", "ranx": "ranx", "scikit-learn": "sklearn"}[tool])
    for seed in range(3):
        run, truth, one = frames(seed, steps=3 if tool == "trec_eval -c" else 10**6)
        calls = {"trec_eval -c": ("ndcg_cut_5", "P_5", "recall_5", "map_cut_5"), "ranx": ("ndcg@5", "map@5", "mrr@5"),
                 "scikit-learn": ("ndcg_score(k=5)",)}[tool]  # fmt: skip
        found = rankbench.judge({"mine": run}, truth, metric=calls, convention=tool)
        answers = ask(one, 5)
        for call in calls:
            assert measured(found, call) == pytest.approx(answers[call.replace("5", "K")], abs=1e-12)


def test_the_order_of_rows_and_the_form_of_files_change_no_digit(tmp_path):
    run, truth, _ = frames(1, steps=2)
    one = rankbench.judge({"mine": run}, truth)
    other = run.sample(frac=1, random_state=0)
    other.to_csv(tmp_path / "mine.csv", index=False)
    truth.sample(frac=1, random_state=1).to_csv(tmp_path / "truth.csv", index=False)
    two = rankbench.judge(str(tmp_path / "mine.csv"), str(tmp_path / "truth.csv"))
    assert one.results().value.tolist() == two.results().value.tolist()
    assert one.study.results[0].split == two.study.results[0].split


@pytest.mark.slow
def test_long_runs_in_parts_and_in_files_change_no_digit(monkeypatch, tmp_path):
    run, truth, _ = frames(2, users=300, steps=1)
    run = pandas.concat([run.iloc[::2], run.iloc[1::2]])  # no user stands in one place
    other, tool = better(truth, 1), "LensKit"  # by which ties stand in the order of the file
    run.to_csv(tmp_path / "a.csv", index=False)
    runs = {"a": tmp_path / "a.csv", "b": other}
    whole = rankbench.judge(runs, truth, convention=tool)
    monkeypatch.setattr(gathering, "_HELD", 1000)  # so that the last rows stay in memory
    monkeypatch.setattr(gathering, "_TOGETHER", 100)
    monkeypatch.setattr("rankbench.judging.text_files.ROWS", 64)
    parts = rankbench.judge(runs, truth, convention=tool)
    assert whole.table().to_dict() == parts.table().to_dict()


def test_a_better_run_is_called_better_and_an_equal_one_is_not():
    truth = frames(3, users=300)[1]
    found = rankbench.judge(
        {"good": better(truth, 0.5), "bad": better(truth, 8), "alike": better(truth, 0.5, 1)}, truth
    )
    verdicts = found.compare().query("metric == 'ndcg@10'").set_index(["first", "second"]).verdict
    assert verdicts["good", "bad"] == "worse" and verdicts["good", "alike"] in ("open", "equal")
    assert "with these runs it is" in found.answer and found.study.is_judged
    assert found.table().strength.eq("fixed settings").all()


def test_repetitions_of_a_pattern_are_paired_by_what_stands_in_the_braces(tmp_path):
    truth = frames(4, users=100)[1]
    truth.to_csv(tmp_path / "truth.csv", index=False)
    for seed in (1, 2, 10):
        for name, noise in (("a", 0.5), ("b", 6)):
            better(truth, noise, seed).to_csv(tmp_path / f"{name}-{seed}.csv", index=False)
    found = rankbench.judge([f"{tmp_path}/a-{{seed}}.csv", f"best={tmp_path}/b-{{seed}}.csv"], f"{tmp_path}/truth.csv")
    assert sorted(set(found.results().solver)) == ["a", "best"]
    assert found.results().query("metric == 'map'").groupby("solver").repetition.apply(list)["a"] == [0, 1, 2]
    assert "with new starts on this split" in found.answer
    listed = rankbench.judge({"a": [better(truth, 0.5, seed) for seed in (1, 2, 10)]}, truth)
    mine = found.results().query("solver == 'a'").value.tolist()
    assert listed.results().value.tolist() == mine


def test_each_repetition_may_have_its_own_truth(tmp_path):
    for fold in (1, 2):
        truth = frames(fold, users=100)[1]
        truth.to_csv(tmp_path / f"truth-{fold}.csv", index=False)
        better(truth, 1, fold).to_csv(tmp_path / f"a-{fold}.csv", index=False)
        better(truth, 4, fold).to_csv(tmp_path / f"b-{fold}.csv", index=False)
    found = rankbench.judge([f"{tmp_path}/a-{{f}}.csv", f"{tmp_path}/b-{{f}}.csv"], f"{tmp_path}/truth-{{f}}.csv")
    assert "on new splits" in found.answer
    with pytest.raises(UserError, match="has no file for '3'"):
        better(truth, 1).to_csv(tmp_path / "a-3.csv", index=False)
        rankbench.judge([f"{tmp_path}/a-{{f}}.csv"], f"{tmp_path}/truth-{{f}}.csv")


def test_coverage_is_said_before_the_numbers():
    run, truth, _ = frames(5, steps=2)
    found = rankbench.judge({"mine": run}, truth)
    assert any("users of whom the truth has nothing" in line for line in found.coverage)
    assert any("of its scores tie" in line for line in found.coverage)
    missing = rankbench.judge({"mine": run[run.user != "u0"]}, truth).coverage[-1]
    known = set(truth.user)
    assert f"mine: {len(known & set(run.user) - {'u0'})} of {len(known)} users of the truth" in missing
    assert repr(found).count(found.coverage[0]) == 1


def test_a_run_may_hold_the_truth_in_a_column_of_its_own(tmp_path):
    truth = frames(6)[1]
    both = better(truth, 1).assign(rating=truth.relevance)
    both.to_csv(tmp_path / "mine.csv", index=False)
    alone = rankbench.judge({"mine": both})
    assert measured(alone, "map") == measured(rankbench.judge({"mine": better(truth, 1)}, truth), "map")
    assert measured(rankbench.judge(tmp_path / "mine.csv"), "map") == pytest.approx(measured(alone, "map"), abs=1e-15)
    with pytest.raises(UserError, match="no truth to judge by"):
        rankbench.judge({"mine": better(truth, 1)})


def test_weights_of_users_give_the_tools_mean():
    run, truth, _ = frames(7, whole=True, odd=False, steps=10**6)
    found = rankbench.judge({"mine": run, "other": better(truth, 2)}, truth, metric=("GAUC",), convention="RecBole")
    pairs = found.study.groups[0]
    frame = truth.merge(run, how="outer", on=["user", "item"]).assign(hit=lambda t: t.relevance.notna())
    values, weights = [], []
    for _, own in frame.groupby("user"):
        right = own.score[own.hit].to_numpy()[:, None] - own.score[~own.hit].to_numpy()
        values.append(np.mean((right > 0) + 0.5 * (right == 0)))
        weights.append(own.hit.sum())
    assert pairs.good[0].value("GAUC") == pytest.approx(np.average(values, weights=weights), abs=1e-12)


@pytest.mark.slow
def test_judged_runs_are_stored_shown_compared_archived_and_verified(cli, here):
    truth = frames(8, users=80)[1]
    truth.to_csv("test.csv", index=False)
    for name, noise in (("good", 0.5), ("bad", 8)):
        better(truth, noise).to_csv(f"{name}.csv", index=False)

    def said(*words, code=0):
        return "".join(cli(*words, code=code))

    told = said("judge", "good.csv", "bad.csv", "--truth", "test.csv", "--metric", "ndcg@5", "--metric", "map")
    assert "good has the best ndcg@5" in told and "| run | ndcg@5 |" in told and "better than all others" in told
    assert "| test | ndcg@5 | good" in said("compare", "judge-test")
    assert "truth:test" in said("table", "judge-test", "--csv")
    assert "2 of 2 cells are stored" in said("status")
    assert "other tools wrote these runs" in said("verify", "judge-test")
    said("archive", "judge-test", "--to", "judged.zip")
    assert "0 of 0 cells came out the same" in said("verify", "judged.zip")
    refused = said("model", "judge-test", "--best", "--to", "m.npz", code=2)
    assert "another tool trained good: only its scores are here" in refused
    assert "good" in said("table", "judged.zip")
    page = Path("results/report/index.html").read_text()
    assert "Runs judged by test" in page and "rankbench judge good.csv bad.csv --truth test.csv" in page
    assert "held-out items" not in Path("results/report/judge.md").read_text()
    assert "no convention gives 0.0001" in said(
        "judge", "good.csv", "--truth", "test.csv", "--metric", "map@5", "--published", "0.0001", code=1
    )
    value = rankbench.judge("good.csv", "test.csv", metric="ndcg@5", convention="ranx").results().value[0]
    named = said("judge", "good.csv", "--truth", "test.csv", "--metric", "ndcg@5", "--published", f"{value:.4f}")
    assert "ranx ndcg@5" in named
    assert "name it: --metric ndcg@10" in said("judge", "good.csv", "--published", "0.1", code=2)
    told = said("judge", "bad.csv", "--truth", "test.csv", "--no-report")
    assert "good" not in said("table", "judge-test")


TRUTH = {"u": {"a": 1, "b": 0}, "v": {"a": 2}}


@pytest.mark.parametrize(
    ("runs", "truth", "how", "said"),
    [
        ({"m": {"x": {"a": 1}}}, TRUTH, {}, "no user of 'm' is in the truth: users here are 'x', there 'u', 'v'"),
        ({"m": {"U": {"a": 1}}}, TRUTH, {}, "write the ids alike in both"),
        ({"m": {"u": {"z": 1}}}, TRUTH, {}, "no item of 'm' is in the truth"),
        ({}, TRUTH, {}, "there is no run to judge"),
        ({"m": []}, TRUTH, {}, "'m' has no repetition"),
        ([], TRUTH, {}, "runs are paths, or a dictionary"),
        (TRUTH, TRUTH, {}, "dictionary of dictionaries"),
        ({"m": TRUTH}, TRUTH, {"metric": ("map", "map")}, "asked for twice"),
        (
            {"m": TRUTH},
            TRUTH,
            {"metric": "map", "relevant": 3.0},
            "counts items from relevance 3 on, and the highest is 2",
        ),
        ({"m": TRUTH}, TRUTH, {"metric": "map", "relevant": float("nan")}, "relevant=nan is out of range: must be"),
        ({"m": TRUTH}, TRUTH, {"relevant": float("inf")}, "relevant=inf is out of range: must be a finite number"),
        ({"m": TRUTH}, TRUTH, {"metric": "nope"}, "unknown metric 'nope'"),
        ({"m": TRUTH}, TRUTH, {"convention": "trek"}, "unknown convention 'trek'"),
        ({"m": TRUTH}, TRUTH, {"margin": -1.0}, "margin=-1 is out of range"),
        ({"m": TRUTH}, TRUTH, {"margin": "x"}, "margin='x' is not valid; give a number above 0"),
        ({"m": TRUTH}, TRUTH, {"relevant": "x"}, "relevant='x' is not valid; give a number"),
        ({"m": TRUTH}, TRUTH, {"name": 3}, "results cannot be stored under the name 3"),
        ({"m": TRUTH}, TRUTH, {"name": "../x"}, "cannot be stored under the name"),
        ({"m": TRUTH}, TRUTH, {"report": True}, "report=True needs a folder"),
        ("missing-{seed}.run", TRUTH, {}, "no file fits missing-{seed}.run"),
        ("missing.run", TRUTH, {}, "missing.run is not here"),
        (300 * "x", TRUTH, {}, "x is not here"),
        (300 * "x" + "/{seed}.run", TRUTH, {}, "no file fits"),
        ("{a}-{b}.run", TRUTH, {}, "has 2 patterns in braces"),
        ("{seed}/a.run", TRUTH, {}, "a pattern in braces stands in the name of a file, not of a folder"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_a_line(runs, truth, how, said):
    with pytest.raises(UserError) as error:
        rankbench.judge(runs, truth, **how)
    assert said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("rows", [2, 1000])
def test_two_scores_for_one_item_are_named_with_both_lines(tmp_path, monkeypatch, rows):
    monkeypatch.setattr("rankbench.judging.text_files.ROWS", rows)
    path = tmp_path / "m.csv"
    path.write_text("user,item,score\nu,a,1\nv,a,2\n\nu,a,3\n")
    with pytest.raises(UserError, match=r"m.csv, line 2 and line 5: user 'u' has two scores for item 'a'"):
        rankbench.judge(path, TRUTH)
    truth = tmp_path / "t.qrels"
    truth.write_text("u 0 a 1\nu 0 a 0\n")
    with pytest.raises(UserError, match=r"t.qrels, line 1 and line 2: user 'u' has two relevances for item 'a'"):
        rankbench.judge({"m": TRUTH}, truth)


def test_a_run_with_fewer_repetitions_than_the_truth_says_so():
    truth = frames(0, users=40)[1]
    runs = {"both": [better(truth, 1), better(truth, 1, 1)], "one": [better(truth, 1)]}
    assert "one has 1 of 2 repetitions" in rankbench.judge(runs, truth, metric="map").coverage


@pytest.mark.slow
def test_the_report_of_judged_runs_is_written_where_it_is_asked_for(tmp_path):
    rankbench.judge({"m": TRUTH}, TRUTH, metric="map", out=tmp_path, report=True)
    assert "| m " in (tmp_path / "report" / "judge.md").read_text()


def test_stored_values_are_not_evaluated_again():
    assert np.isnan(GivenMetric("map", "as a tool defines it").of_user(np.ones(2), np.ones(2)))


def test_nothing_is_stored_unless_all_runs_can_be_judged(tmp_path):
    with pytest.raises(UserError):
        rankbench.judge({"good": TRUTH, "bad": {"x": {"y": 1}}}, TRUTH, out=tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_two_files_of_one_name_need_names(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.csv").write_text("u,a,1\n")
    paths = [str(tmp_path / folder / "model.csv") for folder in ("a", "b")]
    with pytest.raises(UserError, match="two runs are called 'model'; give them names: NAME=PATH"):
        rankbench.judge(paths, TRUTH)
    assert len(rankbench.judge([f"one={paths[0]}", f"two={paths[1]}"], TRUTH).study.groups) == 2


@pytest.mark.slow
def test_a_million_tied_scores_are_judged_and_said():
    users, items = 1000, 1000
    run = pandas.DataFrame({"user": np.repeat(np.arange(users), items), "item": np.tile(np.arange(items), users),
                            "score": 1.0})  # fmt: skip
    truth = pandas.DataFrame({"user": np.arange(users), "item": np.arange(users) % items})
    found = rankbench.judge({"tied": run}, truth, metric=("recall@10", "mrr"))
    assert "100 % of its scores tie" in found.coverage[-1]
    assert measured(found, "recall@10") == pytest.approx(10 / items, abs=1e-12)
    assert measured(found, "mrr") == pytest.approx(np.mean(1 / np.arange(1, items + 1)), abs=1e-12)


def test_negative_relevances_gain_nothing_and_are_said():
    found = rankbench.judge({"m": {"u": {"a": 2, "b": 1}}}, {"u": {"a": -1, "b": 1}}, metric="ndcg-linear@10")
    assert "1 negative ones gain nothing" in found.coverage[0]
    assert measured(found, "ndcg-linear@10") == pytest.approx(1 / np.log2(3), abs=1e-12)


@pytest.mark.slow
def test_what_recommend_writes_is_judged(here):
    rng = np.random.default_rng(0)
    rows = rng.permutation(sorted({(int(user), int(item)) for user, item in rng.integers(0, [30, 20], (500, 2))}))
    table = pandas.DataFrame(rows, columns=["user", "item"]).assign(rating=rng.integers(1, 6, len(rows)))
    table[:200].to_csv("ratings.csv", index=False)
    rankbench.save(rankbench.fit("popularity", rankbench.load("csv:ratings.csv")), "model.npz")
    words = [sys.executable, "-m", "rankbench", "recommend", "model.npz", "-k", "20", "--to", "top.csv"]
    subprocess.run(words, check=True, capture_output=True)
    found = rankbench.judge("top.csv", table[200:], metric="recall@20")
    assert measured(found, "recall@20") > 0.9


@needs("ml-100k/u.data", "ml-100k/u.item", "ml-100k/u.genre")
def test_on_movielens_values_are_those_of_other_tools():
    pytest.importorskip("pytrec_eval")
    data = rankbench.load("ml-100k")
    parts = rankbench.split(data, "n-per-user[n=20]")
    model = rankbench.fit("popularity", parts)
    top = model.recommend(k=100)
    truth = parts.test
    rows = pandas.DataFrame(
        {"user": truth.user_ids[truth.users], "item": truth.item_ids[truth.items], "rating": truth.values}
    )
    calls = ("ndcg_cut_5", "P_5", "recall_5", "map_cut_5", "success_5")
    found = rankbench.judge({"popular": top}, rows, metric=calls, convention="trec_eval -c", relevant=1.0)

    def nested(table, column, kind):
        return {str(user): dict(zip(own.item.astype(str), own[column].map(kind), strict=True))
                for user, own in table.groupby("user")}  # fmt: skip

    import pytrec_eval

    measures = {"ndcg_cut.5", "P.5", "recall.5", "map_cut.5", "success.5"}
    evaluator = pytrec_eval.RelevanceEvaluator(nested(rows, "rating", int), measures)
    answers = evaluator.evaluate(nested(top, "score", float))
    users = rows.user.nunique()
    for call in calls:
        theirs = sum(own[call] for own in answers.values()) / users
        assert measured(found, call) == pytest.approx(theirs, abs=1e-12)


def test_only_the_order_of_scores_matters():
    run, truth, _ = frames(9)
    small = run.assign(score=run.score / 1000)
    values = [rankbench.judge({"mine": one}, truth).results().value.tolist() for one in (run, small)]
    assert values[0] == values[1]
    found = rankbench.judge({"mine": {"u": {"a": 0.1, "b": 0.2}}}, {"u": {"b": 1}}, metric="mrr")
    assert measured(found, "mrr") == 1.0


def test_users_without_anything_to_gain_are_left_out_also_if_they_are_missing():
    truth = {"u": {"a": 1}, "v": {"a": 0, "b": 0}, "w": {"b": 0}, "x": {"b": 1}}
    found = rankbench.judge({"m": {"u": {"a": 2}, "v": {"a": 1}}}, truth, metric=("ndcg@10", "recall@10"))
    assert found.results().value.tolist() == [0.5, 0.5]  # of u and x, who is missing
    assert found.table().users.tolist() == [2, 2]


def test_users_met_in_a_later_run_alone_count_where_the_tool_counts_them():
    truth, first = {"u": {"a": 1}}, {"u": {"a": 1}}
    runs = {"first": first, "later": {**first, "z": {"a": 1}}}
    found = rankbench.judge(runs, truth, metric="hit-rate@5", convention="LensKit")
    assert found.results().value.tolist() == [1.0, 0.5]


def test_one_run_is_not_sent_to_a_comparison_that_it_does_not_have(cli, here):
    truth = frames(8, users=20)[1]
    truth.to_csv("test.csv", index=False)
    for name in ("one", "other"):
        better(truth, 1).to_csv(f"{name}.csv", index=False)
    words = ("--truth", "test.csv", "--metric", "map", "--no-report")
    alone = cli("judge", "one.csv", *words).out
    assert "; there is no other run to compare it with." in alone
    assert "every number: rankbench table judge-test --csv" in alone and "rankbench compare" not in alone
    assert "all pairs: rankbench compare judge-test; every number: " in cli("judge", "one.csv", "other.csv", *words).out
