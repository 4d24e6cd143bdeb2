"""`rankbench on`: the experiment that it chooses, the answer, and `init`, which writes the same experiment."""

import re
import shlex
from dataclasses import replace
from math import inf
from time import monotonic

import numpy as np
import pandas
import pytest
from helpers import FAILED, SOLVER_HEAD, absent_data, made_up_study, prepared, tiny, with_solver

from rankbench import experiments
from rankbench.api.anytime import cores
from rankbench.api.comparing import audit, on
from rankbench.api.loading import load
from rankbench.api.session import Session
from rankbench.core.errors import UserError
from rankbench.data.splits import SPLITS, cut
from rankbench.data.views import Comparisons, Ratings
from rankbench.execution.isolation import Caps
from rankbench.execution.run import Conditions
from rankbench.experiments import Budget
from rankbench.own_data import fitting_choice
from rankbench.own_data.choosing import Wishes, choose, protocol_of, space_of
from rankbench.own_data.contestants import contestants
from rankbench.own_data.experiment_file import experiment_of, name_of, text_of
from rankbench.own_data.facts import Facts
from rankbench.own_data.fitting_choice import choice_for
from rankbench.own_data.naming import data_named
from rankbench.own_data.users_kept import Kept
from rankbench.planning.materials import Materials
from rankbench.report.render.answer import answer, answer_sheet, failures

CATALOGUE = ("robirank[among=catalogue]", "sqlrank[unrated=3]")
RNG = np.random.default_rng(0)
FEW = ("-s", "mf[rank=2]", "-r", "3", "--trials", "2", "--no-report", "-j", "2", "--time", "none")


def written(folder, name="ratings.csv", users=12, each=12, items=30, header="user,item,rating", letter=","):
    """The path of a file of ratings, in which every user likes items of a higher number."""
    rng = np.random.default_rng(1)
    lines = [header.replace(",", letter)] if header else []
    for user in range(users):
        for item in sorted(rng.choice(items, each, replace=False).tolist()):
            lines.append(letter.join([f"u{user}", f"i{item}", str(1 + 4 * item // items)]))
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def of_counts(*counts, low=1.0):
    """Facts about users with these numbers of ratings."""
    users = np.repeat(np.arange(len(counts)), counts)
    items = np.concatenate([np.arange(count) for count in counts])
    return Facts.of(Ratings.from_triples(users, items, low + items % 5.0, len(counts), max(counts)))


@pytest.mark.parametrize(
    ("counts", "split"),
    [
        ([100] * 8, "per-user[test=0.2]"),
        ([8] * 4, "per-user[test=0.2]"),
        ([8, 8, 7, 7], "per-user[test=0.2]"),
        ([8, 7, 7, 7], "per-user[test=0.5]"),
        ([12, 4, 4, 3], "per-user[test=0.5]"),
        ([2, 2, 2, 1], "entries[test=0.5]"),
    ],
)
def test_the_split_of_ratings_follows_from_how_many_each_user_has(counts, split):
    found = protocol_of(of_counts(*counts), Wishes())
    assert found.split == split and found.why


@pytest.mark.parametrize(("rows", "validation"), [(10, "per-user[test=0.2]"), (9, "per-user[test=0.4]")])
def test_seven_tenths_of_each_users_rows_train_and_two_or_more_are_tested_and_validated(rows, validation):
    view = Ratings.from_triples(
        np.repeat(np.arange(4), rows), np.tile(np.arange(rows), 4), np.arange(4 * rows), 4, rows
    )
    protocol = protocol_of(Facts.of(view), Wishes())
    assert protocol.validation == validation
    outer = cut(view, SPLITS.resolve(protocol.split), 0, 0)
    inner = cut(outer.train, SPLITS.resolve(validation), 0, 0)
    assert (np.diff(outer.train.indptr) >= 0.7 * rows).all()
    assert min(np.diff(outer.test.indptr).min(), np.diff(inner.test.indptr).min()) >= 2


def test_a_scale_without_use_for_ndcg_is_measured_by_the_order_alone():
    assert protocol_of(of_counts(*[100] * 8), Wishes()).metrics == ("ndcg@10", "pairwise-error")
    assert protocol_of(of_counts(*[100] * 8, low=0.0), Wishes()).metrics == ("ndcg@10", "pairwise-error")
    assert protocol_of(of_counts(*[100] * 8, low=-3.0), Wishes()).metrics == ("kendall", "pairwise-error")
    assert protocol_of(of_counts(*[100] * 8, low=50.0), Wishes()).metrics == ("kendall", "pairwise-error")


def test_ratings_of_which_the_only_user_with_several_gives_the_same_are_without_an_order():
    assert Facts.of(Ratings.from_triples([0, 0, 1], [0, 1, 0], [3.0, 3.0, 4.0], 2, 2)).kind == "positives"
    assert Facts.of(Ratings.from_triples([0, 0, 1], [0, 1, 0], [3.0, 2.0, 4.0], 2, 2)).kind == "ratings"


def test_pairs_get_solvers_that_learn_from_pairs_and_positives_the_binary_split():
    users = np.repeat(np.arange(4), 10)
    pairs = Facts.of(Comparisons.from_triples(users, np.arange(40) % 5, 5 + np.arange(40) % 7))
    assert pairs.kind == "comparisons" and protocol_of(pairs, Wishes()).split == "per-user[test=0.2]"
    chosen = choose(data_named("btl"), pairs, Wishes())
    assert chosen.solvers == ("random", "global", "sgd", "altsvm", "rmc", "convex-erm", "lcr")
    clicks = Facts.of(Ratings.from_triples(users, np.tile(np.arange(10), 4), np.ones(40), 4, 20))
    assert clicks.kind == "positives" and protocol_of(clicks, Wishes()).split == "binary[C=200]"
    chosen = choose(data_named("btl"), clicks, Wishes())
    cheap = ("random", "popularity", "global", "bpr[biases=true]", "item-knn", "rp3beta", "ease", "ials", "softmax")
    cheap = (*cheap, "slim", "sgd", "altsvm")
    assert chosen.solvers == (*cheap, *CATALOGUE, "convex-erm", "lcr")
    assert "mf, rmc, smc, cofirank fit the values of ratings, which are alike here" in chosen.left_out


@pytest.mark.parametrize(
    ("better", "worse", "cyclic"),
    [([0, 1, 2], [1, 2, 0], True), ([0, 1], [1, 0], True), ([0, 1, 0], [1, 2, 2], False), ([0, 0], [1, 1], False)],
)
def test_a_solver_of_partial_orders_is_left_out_where_comparisons_contradict_each_other(better, worse, cyclic):
    one = Facts.of(Comparisons.from_triples([0] * len(better), better, worse, 2, 3))
    apart = Facts.of(Comparisons.from_triples([0, 1], [0, 1], [1, 0], 2, 2))  # two users may well disagree
    assert (one.cyclic, apart.cyclic) == (cyclic, False)
    found = contestants(one, ())
    assert ("rmc" in found.solvers) == (not cyclic)
    assert any("without a contradiction such as a > b > c > a" in line for line in found.left_out) == cyclic


def test_a_split_that_was_asked_for_has_the_validation_part_that_suits_it():
    facts = of_counts(*[100] * 8)
    binary = protocol_of(facts, Wishes(split="binary[C=10]"))
    assert binary.validation == "again" and all("candidates=catalogue" in name for name in binary.metrics)
    assert protocol_of(facts, Wishes(split="binary", metrics=("auc",))).metrics == ("auc",)
    assert protocol_of(facts, Wishes(split="leave-one-out")).validation == "entries[test=0.2]"


def test_every_solver_that_can_learn_from_the_data_takes_part_and_others_are_left_out_with_a_reason():
    facts = of_counts(*[40] * 8)
    bare, rich = (choose(data_named("btl"), one, Wishes()) for one in (facts, replace(facts, features=True)))
    assert bare.solvers[:5] == ("random", "popularity", "global", "mf", "sgd") and bare.solvers[-1] == "lcr"
    assert {"rmc", "smc", "robirank", "convex-erm", "cofirank"} < set(bare.solvers)
    assert (
        "bpr, item-knn, rp3beta, ease, ials, softmax, slim learn which items were rated, and not how" in bare.left_out
    )
    assert any("need item features (features=FILE in brackets)" in line for line in bare.left_out)
    assert {"frsvm", "imc", "mprank", "svrank", "rankboost", "ranksvm-nuclear"} <= set(rich.solvers)
    assert len(rich.left_out) == 1 and "lcr" in text_of(bare) and "# Left out: bpr, item-knn" in text_of(bare)


def test_solvers_whose_work_is_too_much_for_the_data_are_left_out():
    many = of_counts(*[4000] * 8)
    left = choose(data_named("btl"), many, Wishes()).left_out
    assert any("list up to 63,984,000 comparisons" in line and "sgd" in line for line in left)
    wide = replace(of_counts(*[10] * 4), kind="positives", items=6000)
    assert "ease, slim are quadratic in the items, 6,000 here" in choose(data_named("btl"), wide, Wishes()).left_out


def test_solvers_that_are_asked_for_are_compared_with_the_floors_that_can_learn_from_the_data():
    chosen = choose(data_named("btl"), of_counts(*[40] * 8), Wishes(solvers=("sgd[lam=3]", "global")))
    assert chosen.solvers == ("random", "popularity", "global", "sgd[lam=3]") and chosen.left_out == ()


def test_vectors_are_tried_that_are_shorter_than_the_sides_of_the_matrix():
    def longest(*counts):
        return choose(data_named("btl"), of_counts(*counts), Wishes()).spaces["mf"]["rank"].high

    assert longest(*[20] * 8) == 3 and longest(*[200] * 100) == 25 and longest(*[200] * 400) == 32


@pytest.mark.parametrize(("rows", "users", "draws"), [(10, 4, 200), (100, 4, 1000), (100, 50_000, 100)])
def test_the_comparisons_that_are_drawn_from_positives_are_limited(rows, users, draws):
    clicks = replace(of_counts(*[rows] * 4), kind="positives", users=users)
    assert protocol_of(clicks, Wishes()).split == f"binary[C={draws}]"


def test_trainings_end_by_patience_and_ranges_widen():
    chosen = choose(data_named("low-rank"), of_counts(*[100] * 8), Wishes())
    experiment = experiment_of(chosen)
    assert experiment.budget == Budget(steps=100, patience=5) and experiment.repetitions == 5
    assert (experiment.tune.trials, experiment.tune.widen, experiment.tune.draws) == (8, 4, "sobol")
    assert set(experiment.tune.space) == set(chosen.solvers)


def test_what_a_user_has_set_is_not_tuned_and_penalties_of_sums_grow_with_the_comparisons():
    facts = of_counts(*[100] * 8)
    protocol = protocol_of(facts, Wishes())
    assert set(space_of("sgd[lam=3]", facts, protocol)) == {"rank"}
    assert set(space_of("mf", facts, protocol)) == {"rank", "lam", "biases"}
    assert set(space_of("bpr[biases=true]", facts, protocol)) == {"rank", "lam", "step"}
    assert set(space_of("smc", facts, protocol)) == {"share"} and space_of("popularity", facts, protocol) == {}
    assert space_of("sgd", facts, protocol)["lam"].high == 32_000  # ten times 80 * 79 / 2
    fewer = protocol_of(facts, Wishes(split="n-per-user[n=20]"))
    assert space_of("sgd", facts, fewer)["lam"].high == 1900
    low, high = (getattr(space_of("ranksvm-joint", facts, protocol)["C"], end) for end in ("low", "high"))
    assert (low, high) == (0.01, 100.0)


@pytest.mark.slow
def test_the_file_of_a_choice_reads_as_the_experiment_that_runs(tmp_path):
    path = written(tmp_path)
    choice = choice_for(str(path), Wishes())
    assert name_of(choice) == "on-ratings"
    file = tmp_path / "on-ratings.toml"
    file.write_text(text_of(choice))
    loaded = experiments.load(str(file))
    assert loaded.paper == "" and loaded.origin == "No paper"
    keys = [cell.key for cell in prepared(tmp_path / "one", loaded).plan.trials]
    assert keys == [cell.key for cell in prepared(tmp_path / "two", experiment_of(choice)).plan.trials]


@pytest.mark.slow
def test_the_commands_that_are_printed_run_as_they_stand(cli, here):
    """Of a run into another folder than the usual one, whose name has a blank."""
    written(here)
    shown = cli("on", "ratings.csv", *FEW[:2], "-r1", "--trials", "1", "-o", "my results").out
    shown += cli("status", "-o", "my results").out
    followed = r"(?: lists them| leaves out|[;)\n])"
    commands = re.findall(rf"(rankbench (?:init|table|compare|recommend) [^;)\n]*?){followed}", shown)
    assert {shlex.split(command)[1] for command in commands} >= {"init", "table", "recommend"}
    for command in commands:
        cli(*shlex.split(command)[1:])


@pytest.mark.slow
def test_on_prints_the_answer_and_init_and_run_give_the_same_numbers(cli, here):
    written(here)
    shown = cli("on", "ratings.csv", *FEW).out
    assert "split: per-user[test=0.2]: a fifth of each user's ratings, drawn at random, is held out" in shown
    assert "so far, " in shown
    assert "users: all 12 users are tested" in shown and "has the best NDCG@10: " in shown
    assert "| solver | chosen | NDCG@10 | 95 % | verdict | pairwise error |" in shown
    again = shlex.split(shown.rpartition("to change it: ")[2])
    assert again == ["rankbench", "init", "ratings.csv", "-s", "mf[rank=2]", "--trials", "2", "-r", "3"]
    report = ("--report", "-o", "results", "--seed=0")
    shown = cli("on", "ratings.csv", *FEW[:6], "-j", "2", *report).out
    assert f"report: {here / 'results' / 'report' / 'index.html'}\n" in shown
    assert shlex.split(shown.rpartition("to change it: ")[2]) == again
    assert cli(*again[1:]).out == "on-ratings.toml: run it with rankbench run on-ratings.toml\n"
    said = cli("run", "on-ratings.toml", "--no-report", "-j", "2").out
    assert "on-ratings: 12 of 12 cells are stored already" in said
    assert "on-ratings.toml exists already; choose another file with --to" in cli.refuses(*again[1:])


def test_what_looks_wrong_in_the_data_is_noted_and_a_stopped_comparison_says_how_to_go_on(cli, monkeypatch, here):
    def stopped(self, *arguments):
        raise KeyboardInterrupt

    path = written(here)
    path.write_text(path.read_text() + "".join(f"alone,j{item},3\n" for item in range(9)))
    monkeypatch.setattr("rankbench.execution.run.Run.execute", stopped)
    told = cli("on", "ratings.csv", *FEW, code=130)
    assert "note: constant users: 1 of 13 users rate all their items alike" in told.out.replace("\n", " ")
    assert "resume with: rankbench on ratings.csv" in told.err and "to change it" not in told.out


@pytest.mark.slow
def test_a_solver_that_fails_is_named_with_its_own_line_and_the_others_stand(cli, here):
    written(here)
    with_solver(here, "raise ValueError('no luck')")
    told = cli("on", "ratings.csv", "-s", "mine.py:Mine", "--no-report", "-q", "--time", "none", code=1)
    assert "mine.py:Mine: failed: its only trial did not end well: failed, ValueError: no luck (mine.py" in told.err
    assert "raise ValueError('no luck')" in told.err
    assert "| global †" in told.out and "has the best NDCG@10" in told.out and "| mine.py:Mine † |" in told.out


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("user,item,rating\n1,2,3\n", "csv:FILE"),
        ("judge;winner;loser\n1;2;3\n", "pairs:FILE"),
        ("anna,this,that\nbo,that,this\n", "pairs:FILE"),
        ("user,item\n1,2\n", "csv:FILE[positive=true]"),
        ("1\t2\n1\t3\n", "csv:FILE[positive=true]"),
        ("user,item,timestamp\n1,2,1400000000\n", "csv:FILE[positive=true]"),
        ("1::2::3::978300760\n", "csv:FILE"),
        ("user,item,points\n1,2,3\n", "csv:FILE"),
        ("anna,this,good\nbo,that,bad\n", "csv:FILE"),
        ("", "csv:FILE"),
    ],
)
def test_the_kind_of_a_file_follows_from_its_first_lines(tmp_path, text, name):
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert data_named(str(path)).with_chosen(()).replace(str(path), "FILE") == name


def test_rows_without_ratings_count_once_as_positives(tmp_path):
    path = tmp_path / "clicks.csv"
    path.write_text("user,item\nanna,x\nanna,x\nanna,y\nbo,x\n")
    view = data_named(str(path)).record.view(RNG)
    assert len(view) == 3 and (view.values == 1).all()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (None, "no file 'a.csv'; check the path, or the name of a data set (rankbench list datasets)"),
        ("", "a.csv holds no rows"),
        ("user,item,rating\n1,2,3\n", "csv:a.csv has 1 row: too few to train and to test on; give more data"),
        ("user,item,rating\n1,2,good\n", "a.csv, line 2: rating 'good' is no number"),
        (
            "user,item,rating\n1,2,3\n1,2,4\n",
            "a.csv, line 3: user 1, item 2 is on line 2 already: keep one of the two rows, or name the data "
            "csv:a.csv[repeats=last], which keeps the last of each",
        ),
        (
            "user,item,rating\n" + "".join(f"{user},{user},{user}\n" for user in range(9)),
            "under entries[test=0.5] no user of csv:a.csv has an order to test",
        ),
    ],
)
def test_data_that_nothing_can_be_compared_on_is_refused_in_one_line(cli, here, text, line):
    if text is not None:
        (here / "a.csv").write_text(text)
    assert line in cli.refuses("on", "a.csv")


@pytest.mark.parametrize("path", ["a[1].csv", "b[x=1]/a.csv"])
def test_a_path_with_brackets_is_said_to_have_them(cli, here, path):
    (here / path).parent.mkdir(exist_ok=True)
    (here / path).write_text("user,item,rating\n1,2,3\n")
    assert f"the path '{path}' has brackets, which hold settings here; rename it" in cli.refuses("on", path)


def test_too_little_to_tune_on_leaves_every_solver_its_own_settings(tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("user,item,rating\n" + "".join(f"{u},{i},{1 + (u + i) % 5}\n" for u in range(9) for i in range(4)))
    choice = choice_for(str(path), Wishes())
    assert not choice.is_tuned and experiment_of(choice).tune is None
    assert experiment_of(choice).budget == Budget(steps=100)
    assert "too little is left of it to tune on" in choice.protocol.why


def test_the_users_that_a_split_leaves_out_are_counted_and_some_are_named():
    found = Kept(20, 17, 0, 4, ("anna", "bo", "cy"))
    assert found.text == "17 of 20 users are tested; 3 with at most 4 rows are left out: anna, bo, cy"
    assert Kept(20, 17, 3, 1, ("anna",)).text.endswith("3 with at most 1 row train but are not tested: anna, ...")
    assert Kept(20, 17, 1, 0, ("anna",)).text.endswith("; 3 are not tested, of whom 1 train: anna, ...")
    assert Kept(2, 1, 0, 1, ("bo",)).text == "1 of 2 users is tested; 1 with at most 1 row is left out: bo"
    assert Kept(2, 2, 0, 0, ()).text == "all 2 users are tested"
    assert Kept(1, 1, 0, 0, ()).text == "the only user is tested"


@pytest.mark.parametrize(
    ("split", "end"),
    [
        ("new-users[known=0,test=0.25]", "5 of 20 users are tested; 15 train but are not tested: "),
        ("n-per-user[n=5,least=5]", "15 of 20 users are tested; 5 with at most 4 rows are left out: u0, "),
    ],
)
def test_users_are_said_to_have_few_rows_only_where_that_has_decided(tmp_path, split, end):
    path = tmp_path / "ratings.csv"
    rows = [(user, item) for user in range(20) for item in range(14 if "new" in split or user > 4 else 4)]
    path.write_text("user,item,rating\n" + "".join(f"u{u},i{i},{1 + (u + i) % 5}\n" for u, i in rows))
    view = load(str(path))
    assert Kept.by(cut(view, SPLITS.resolve(split), 0, 0), view).text.startswith(end)


@pytest.mark.slow
def test_a_data_frame_is_compared_on_from_python(tmp_path):
    frame = pandas.read_csv(written(tmp_path))
    found = on(frame, solver=["mf[rank=2]"], trials=2, repetitions=2, time=inf, out=tmp_path / "out", report=True)
    assert (tmp_path / "out" / "report" / "index.html").exists()
    first = next(iter(found.frame["solver"])).removesuffix(" †")
    assert first in found.answer and found.best.partition("[")[0] == first.partition("[")[0] and found.failures == ()
    assert "[tune]" in found.experiment and "| solver |" in str(found)
    again = on(
        load(frame), solver=["mf[rank=2]"], trials=2, repetitions=2, time=inf
    )  # split otherwise, since the rows stand in another order
    assert len(again.frame) == len(found.frame) and again.failures == () and found.missing == ""
    assert len(again.compare()) == len(found.compare()) > 0  # the folder of `again` is there as long as it is
    assert "<th>verdict</th>" in found._repr_html_() and f"<p>{found.answer}.</p>" in found._repr_html_()


def test_texts_of_a_data_frame_may_hold_ends_of_lines():
    table = pandas.DataFrame(
        {"user": ["a\rb"] * 3 + ["a\r\nb", "c\n", '"'], "item": list("xyzxyz"), "rating": [1, 2, 3] * 2}
    )
    found = audit(table).view
    assert (
        found.user_ids.tolist() == load(table).user_ids.tolist()
        and found.values.tolist() == load(table).values.tolist()
    )


def test_an_error_in_a_data_frame_is_about_the_data_frame():
    frame = pandas.DataFrame({"user": [1, 1], "item": [1, 2], "rating": [3, None]})
    said = (
        r"^the DataFrame as CSV, line 3: rating '' is no number \(of 2 ratings 1 missing \(''\)\); leave such rows out"
    )
    with pytest.raises(UserError, match=said):
        on(frame)


def test_a_comparison_from_python_has_the_time_limit_the_seed_and_the_jobs_that_follow_from_its_settings(
    monkeypatch, tmp_path
):
    class Asked(Exception):
        pass

    def prepared(session, experiment, materials):
        raise Asked(session.selection.seed, session.conditions)

    path = str(written(tmp_path))
    monkeypatch.setattr(Session, "prepared", prepared)
    with pytest.raises(Asked) as asked:
        on(path, solver=["popularity"], time=100.0, seed=7, jobs=2, timeout=50.0)
    seed, conditions = asked.value.args
    assert seed == 7 and 90 < conditions.deadline - monotonic() < 100
    assert replace(conditions, deadline=None) == Conditions(2, Caps(50.0), frozenset({"failed"}))
    with pytest.raises(Asked) as asked:
        on(path, solver=["popularity"], time=inf)
    assert asked.value.args[1].deadline is None and asked.value.args[1].jobs == cores()
    with pytest.raises(Asked) as asked:
        on(path, solver=["popularity"])
    assert 50 < asked.value.args[1].deadline - monotonic() < 60


@pytest.mark.slow
def test_results_of_a_folder_are_kept_and_reused(tmp_path):
    path, out = written(tmp_path), tmp_path / "out"
    asked = {"solver": "popularity", "out": out, "repetitions": 2, "time": inf}
    first = on(str(path), **asked)
    files = sorted(file.name for file in out.glob("on-ratings/cells/*.json"))
    assert len(files) >= 2 * ((8 + 1) + 2 * 2) and repr(on(path, **asked)) == repr(first)
    assert sorted(file.name for file in out.glob("on-ratings/cells/*.json")) == files
    on(pandas.read_csv(path), **asked)
    (kept,) = out.glob("frame-*.csv")
    assert pandas.read_csv(kept).equals(pandas.read_csv(path)) and (out / f"on-{kept.stem}").is_dir()


def test_a_setting_with_a_small_range_is_not_tuned_outside_of_it(tmp_path):
    check = "\n    def __post_init__(self): check(self)"
    (tmp_path / "mine.py").write_text(
        SOLVER_HEAD.replace('mode: str = "ok"', f"lam: Annotated[float, Limits(low=0.5)] = 1.0{check}")
        .replace("import Comparisons", "import UserError, Comparisons")
        .replace("import os", "from typing import Annotated\nfrom rankbench.names import Limits, check\nimport os")
    )
    facts = of_counts(*[100] * 8)
    assert space_of(f"{tmp_path / 'mine.py'}:Mine", facts, protocol_of(facts, Wishes())) == {}


def test_data_that_is_not_at_hand_says_how_to_get_it(cli, tmp_path):
    for command in ("on", "check"):
        assert "ask its owner" in cli.refuses(command, absent_data(tmp_path))


def test_a_validation_part_that_cannot_be_cut_leaves_nothing_to_tune_on(tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("user,item,rating\n" + "".join(f"1,{item},{1 + item % 2}\n" for item in range(5)))
    choice = choice_for(str(path), Wishes(split="n-per-user[n=1,least=2]"))
    assert not choice.is_tuned


@pytest.mark.parametrize("header", ["user,better,worse", "user,item"])
def test_pairs_and_clicks_are_tuned(tmp_path, header):
    path = tmp_path / "own.csv"
    width = header.count(",") + 1
    rows = {",".join([str(u), str(i), str(i + 1)][:width]) for u in range(9) for i in range(u % 3, 12, 2)}
    path.write_text("\n".join([header, *sorted(rows)]) + "\n")
    choice = choice_for(str(path), Wishes())
    assert experiment_of(choice).tune is not None and all(choice.spaces[name] for name in ("global",))


def test_a_file_that_is_no_text_is_named_by_the_reading_of_its_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("user,item\n1,2\n".encode("utf-16"))
    assert data_named(str(path)).entry == "csv:"


def test_an_experiment_file_that_cannot_be_written_is_named(cli, tmp_path):
    path = tmp_path / "nowhere" / "x.toml"
    said = cli.refuses("init", written(tmp_path), "--to", path)
    assert f"cannot write to {path}: No such file or directory" in said


def studied(folder, value=0.5, **changes):
    """A study with made-up results of two solvers."""
    return made_up_study(folder, tiny(repetitions=1), (value, value + 0.2), **changes)


def test_the_answer_names_the_best_and_what_the_users_tell(tmp_path):
    said = "global[lam=10] has the best pairwise error: 0.2500, 95 % 0.2471 to 0.2529"
    assert answer(studied(tmp_path)) == f"{said}; on this split it is better than all others"
    lines = answer_sheet(studied(tmp_path / "two")).lines
    assert [(line[0], line[4]) for line in lines] == [("global[lam=10]", "best"), ("sgd[rank=2]", "worse, p < 0.001")]


@pytest.mark.parametrize(("gap", "near"), [(0.004, True), (0.02, False)])
def test_a_floor_that_is_within_the_margin_of_the_best_is_named(tmp_path, gap, near):
    values = {"sgd": 0.8, "global": 0.8 + gap}
    said = answer(made_up_study(tmp_path, tiny(repetitions=2), lambda cell: values[cell.solver.name]))
    assert said.startswith("sgd[rank=2] has the best pairwise error")
    assert ("global[lam=10], which knows nothing of single users, is within the margin of 0.004" in said) == near


def test_without_a_result_the_answer_says_so(tmp_path):
    study = studied(tmp_path, **FAILED)
    assert answer(study) == "no solver has a result"
    assert failures(study) == ["global[lam=10]: failed: boom", "sgd[rank=2]: failed: boom"]
    assert [line[4] for line in answer_sheet(study).lines] == ["failed", "failed"]


def test_a_solver_that_does_not_suit_the_data_is_left_out_and_one_alone_has_no_rival(tmp_path):
    found = made_up_study(tmp_path, tiny(repetitions=1, solvers=("global[lam=10]", "frsvm")))
    assert failures(found) == ["left out: frsvm needs item features, the data has none"]
    assert answer(found).endswith("there is no other solver to compare it with")
    assert answer_sheet(found).lines[0][4] == ""


@pytest.mark.parametrize(
    ("data", "more", "line"),
    [
        (3, {}, "a int is no data; give a DataFrame, ratings, the path of a file or the name of a data set"),
        ("btl", {"report": True}, "report=True needs a folder; give out"),
        ("btl", {"solver": [3]}, "a int is no name; give names"),
        ("btl", {"metric": 3}, "a int is no name; give names"),
        ("btl", {"time": "5m"}, "time='5m' is not valid; give seconds above 0"),
        ("btl", {"time": float("nan")}, "time=nan is not valid; give seconds above 0"),
        ("btl", {"time": -1}, "time=-1 is not valid; give seconds above 0"),
    ],
)
def test_wrong_uses_from_python_are_refused_in_one_line(data, more, line):
    with pytest.raises(UserError, match=r"\w") as caught:
        on(data, **more)
    assert line in str(caught.value)


def test_data_with_other_settings_is_another_experiment_with_a_name_of_its_own(here):
    path = written(here, "semi.csv")
    (here / "items.csv").write_text("item,year\n" + "".join(f"i{item},{item}\n" for item in range(30)))
    names = [name_of(choice_for(f"{path}{given}", Wishes())) for given in ("", "[features=items.csv]")]
    assert names == ["on-semi", "on-semi-features-items-csv"]
    long = name_of(choice_for(str(written(here, f"{'long' * 30}.csv")), Wishes()))
    assert long.startswith("on-longlong") and len(long) < 80


def test_the_split_is_tried_with_the_seed_that_is_asked_for(tmp_path, monkeypatch):
    seeds = []
    monkeypatch.setattr(fitting_choice, "Materials", lambda seed: seeds.append(seed) or Materials(seed))
    choice_for(str(written(tmp_path)), Wishes(seed=7))
    assert seeds == [7]


@pytest.mark.parametrize("split", ["leave-last-out", "temporal"])
def test_clicks_are_tested_on_splits_by_time_by_metrics_over_the_catalogue(tmp_path, split):
    rng = np.random.default_rng(3)
    lines = ["user,item,timestamp"]
    for user in range(20):
        chosen = rng.choice(30, 8, replace=False)
        lines += [f"u{user},i{item},{100 * place + user}" for place, item in enumerate(chosen)]
    path = tmp_path / "clicks.csv"
    path.write_text("\n".join(lines) + "\n")
    choice = choice_for(str(path), Wishes(split=split))
    assert choice.protocol.split == split
    assert all("candidates=catalogue" in name for name in choice.protocol.metrics)
    learners = ("bpr[biases=true]", "item-knn", "rp3beta", "ease", "ials", "softmax", "slim", *CATALOGUE)
    assert choice.solvers == ("random", "popularity", *learners)
    assert any("which only --split binary draws here" in line and "sgd" in line for line in choice.left_out)


def test_the_margin_is_written_into_the_experiment(tmp_path):
    choice = choice_for(str(written(tmp_path)), Wishes(margin=0.01))
    assert experiment_of(choice).margins == ((choice.protocol.metrics[0], 0.01),)


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ({"margin": "x"}, "margin=x is not of type float"),
        ({"margin": True}, "margin=True is not of type float"),
        ({"margin": 0}, "margin=0 is out of range: must be above 0 and below inf"),
        ({"margin": float("nan")}, "margin=nan is out of range"),
        ({"trials": "x"}, "trials=x is not of type int"),
        ({"repetitions": True}, "repetitions=True is not of type int"),
        ({"split": None}, "unknown split 'None'"),
        ({"time": True}, "time=True is not valid"),
        ({"memory": True}, "memory=True is not valid"),
    ],
)
def test_wrong_arguments_are_refused_by_their_names(tmp_path, how, line):
    with pytest.raises(UserError) as told:
        on(str(written(tmp_path)), out=tmp_path / "out", **how)
    assert str(told.value).startswith(line)


def test_numbers_of_numpy_are_numbers(tmp_path):
    how = {"margin": 0.01, "seed": 1, "trials": 1, "repetitions": 2, "time": 60, "timeout": 60, "jobs": 1}
    of_numpy = {name: np.asarray(value)[()] for name, value in how.items()} | {"margin": np.float64(0.01)}
    found = [on(str(written(tmp_path)), solver=["global"], **one) for one in (how, of_numpy)]
    assert [one.experiment for one in found] == [found[0].experiment] * 2 and found[0].answer == found[1].answer
