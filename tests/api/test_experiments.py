"""Experiments from Python: what is run, tuned and stored comes back as tables of pandas."""

from dataclasses import replace
from inspect import signature

import numpy as np
import pandas
import pytest
from helpers import SPACES, TINY, made_up, made_up_study, prepared, tiny

import rankbench
from rankbench.api.outcomes import Outcome
from rankbench.arrays.npz import fingerprint
from rankbench.cli import own, running
from rankbench.core.errors import UserError
from rankbench.data import load as load_data
from rankbench.data.splits import split
from rankbench.data.views import Comparisons, Ratings
from rankbench.experiments import Experiment
from rankbench.experiments.spaces import Tune
from rankbench.own_data.frames import handed, named
from rankbench.planning import materials

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A folder with the results of a tiny experiment."""
    folder = tmp_path_factory.mktemp("results")
    rankbench.run(TINY, out=folder)
    return folder


def test_a_run_gives_its_cells_and_runs_none_again(out):
    events = []
    found = rankbench.run(TINY, out=out, callback=events.append)
    assert events == [] and found.ok
    rankbench.run(TINY, solver="global", repetitions=1, out=out, rerun="all", timeout=None, callback=events.append)
    assert [event.kind for event in events] == ["start", "end"]
    found = rankbench.run(TINY, out=out)
    table = found.results()
    assert len(table) == 2 * 2 * 2 and set(table["status"]) == {"ok"}
    assert table["seconds"].gt(0).all() and table.groupby("key").size().tolist() == [2] * 4
    again = rankbench.results("tiny", out=out)
    pandas.testing.assert_frame_equal(again, table)
    pandas.testing.assert_frame_equal(rankbench.results(out=out), table)


def test_the_values_are_those_of_fit_and_evaluate_up_to_the_random_stream(out):
    """The global ranking draws nothing, so that it is the same model by hand."""
    table = rankbench.results("tiny", out=out).query("solver == 'global[lam=10]' and metric == 'ndcg@5'")
    for repetition, value in zip(table["repetition"], table["value"], strict=True):
        data = load_data(TINY.data[0], repetition=repetition)
        parts = split(data, TINY.splits[0], repetition=repetition)
        assert rankbench.evaluate(rankbench.fit("global[lam=10]", parts, steps=3), parts, "ndcg@5") == value


def test_the_tables_of_an_outcome_agree(out):
    found = rankbench.outcome("tiny", out=out)
    means = found.results().groupby(["solver", "metric"])["value"].mean()
    assert sorted(found.table()["measured"]) == pytest.approx(sorted(means))
    last = found.curves().groupby(["solver", "repetition", "metric"], sort=False)["value"].last()
    assert sorted(last) == sorted(found.results()["value"])
    seconds = found.curves().groupby(["solver", "repetition", "metric"], sort=False)["seconds"].last()
    assert sorted(seconds) == sorted(found.results()["seconds"])
    compared = rankbench.compare(found)
    pandas.testing.assert_frame_equal(compared, rankbench.compare("tiny", out=out))
    assert compared["difference"].tolist() == pytest.approx((compared["other"] - compared["one"]).tolist())
    best = means.xs("pairwise-error", level="metric").idxmin()
    assert found.best == best


def test_an_outcome_is_shown_as_its_table(out):
    found = rankbench.outcome("tiny", out=out)
    assert repr(found).startswith("tiny: 4 of 4 cells ended well\n| data | solver |")
    assert repr(found.study) == "Study(tiny: 4 of 4 cells, quick profile, seed 0)"
    result = found.study.results[0]
    assert repr(result).startswith(f"Result({result.cell.label}: ok, pairwise-error 0.") and "\n" not in repr(result)
    assert found._repr_html_().startswith("<table><caption>A tiny experiment</caption><thead><tr><th>data</th>")


def test_an_outcome_is_ok_only_if_every_cell_ended_well(tmp_path):
    made = prepared(tmp_path, TINY)
    made.open()
    for number, cell in enumerate(made.plan.cells):
        assert not Outcome(made.study()).ok
        made.keep(made_up(cell, 0.5 + number / 10), {})
    assert Outcome(made.study()).ok


def test_a_dry_run_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(materials, "KEPT", 0)  # bytes of splits in memory, beyond which a run has a scratch folder
    assert not rankbench.run(tiny(), dry_run=True, out=tmp_path / "out").ok
    assert not (tmp_path / "out").exists()


def test_what_cannot_run_is_shown_with_its_reason(tmp_path):
    found = rankbench.run(replace(TINY, solvers=("global", "frsvm", "imc")), repetitions=1, out=tmp_path)
    (line,) = (line for line in repr(found).splitlines() if line.startswith("skipped: low-rank"))
    assert line.endswith("frsvm needs item features, the data has none; the same for imc")
    assert found.best == "global"


def test_a_callback_is_told_of_each_cell_and_a_bar_goes_to_standard_error(tmp_path, capsys):
    events = []
    rankbench.run(TINY, solver="global", repetitions=1, out=tmp_path, callback=events.append)
    assert [event.kind for event in events] == ["start", "end"]
    rankbench.run(TINY, solver=["sgd"], repetitions=1, out=tmp_path, quiet=False)
    printed = capsys.readouterr()
    assert printed.out == "" and "tiny: 1 of 1 cells ended well" in printed.err


def test_tuning_gives_the_best_settings_as_a_name_that_fit_takes(tmp_path):
    space = {"lam": "1..100:log", "rank": [2, 3], "step": 0.1}
    found = rankbench.tune("sgd", TINY.data[0], space, trials=3, steps=2, widen=0, out=tmp_path)
    trials = found.trials()
    assert len(trials) == 3 and trials["chosen"].sum() == 1
    assert trials.loc[trials["value"].idxmin(), "chosen"]
    assert found.best.startswith("sgd[") and trials.loc[trials["chosen"], "settings"].item() in found.best
    rankbench.fit(found.best, rankbench.load(TINY.data[0]), steps=1)


def test_a_table_ratings_and_a_file_tune_alike(tmp_path):
    view = rankbench.load(TINY.data[0])
    frame = pandas.DataFrame({"user": view.users, "item": view.items, "rating": view.values})
    frame.to_csv(tmp_path / "mine.csv", index=False)
    found = [
        rankbench.tune("sgd", data, {"lam": [1.0, 10.0]}, trials=2, steps=2, out=tmp_path / str(number))
        for number, data in enumerate((frame, view, str(tmp_path / "mine.csv"), tmp_path / "mine.csv"))
    ]
    values = [one.trials()["value"].tolist() for one in found]
    assert values[0] == values[1] == values[2] == values[3]
    assert len({one.study.entries[0].cell.place.data.identity for one in found}) == 1  # it is the content that counts
    (file,) = (tmp_path / "0").glob("frame-*.csv")
    pandas.testing.assert_frame_equal(pandas.read_csv(file), frame, check_dtype=False)


def test_ratings_keep_ids_times_and_features_when_they_are_tuned_on(tmp_path):
    ids = np.array(["ann", "bob", "cat"])
    shared = {"user_ids": ids, "item_ids": np.array(["x", "y", "z"])}
    view = Ratings.from_triples(
        [0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 0, 2], [0.1 + 0.2, 2.0, 3.0, 1.0, 5.0, 4.0], 3, 3, np.eye(3), times=range(6),
        feature_names=np.array(["p", "q", "r"]), **shared,
    )  # fmt: skip
    given = handed(view, tmp_path)
    back = rankbench.load(given.name)
    assert fingerprint(back) == fingerprint(view)
    assert back.feature_names.tolist() == ["p", "q", "r"]
    pairs = Comparisons.from_triples(
        [0, 1, 1], [0, 1, 2], [1, 2, 0], 2, 3, user_ids=ids[:2], item_ids=shared["item_ids"]
    )
    again = rankbench.load(named(handed(pairs, tmp_path)))
    assert fingerprint(again) == fingerprint(pairs)


def test_a_table_with_a_text_that_no_file_can_hold_is_refused_in_one_line(tmp_path):
    table = pandas.DataFrame({"user": ["ann", "bo\ud800"], "item": [1, 2], "rating": [1.0, 2.0]}, dtype=object)
    with pytest.raises(UserError, match=r"the data holds '\\ud800', with a lone surrogate, which no file can hold"):
        handed(table, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_trials_of_a_tuned_experiment_are_a_table(tmp_path):
    tuned = replace(TINY, solvers=("global", "sgd"), tune=Tune(SPACES, "random", 2, "ndcg@5"), repetitions=1)
    found = rankbench.run(tuned, out=tmp_path, trials=3)
    assert len(found.trials()) == 6 and set(found.results()["chosen"]) != set(found.results()["solver"])


def test_results_are_written_as_a_file(out, tmp_path):
    table = rankbench.results("tiny", out=out, to=tmp_path / "all.csv")
    again = pandas.read_csv(tmp_path / "all.csv", keep_default_na=False)
    assert np.allclose(again["value"], table["value"]) and again.columns.tolist() == table.columns.tolist()
    with pytest.raises(UserError, match=r"all\.xls is no name of a table's file; end it in \.parquet or \.csv"):
        rankbench.results("tiny", out=out, to=tmp_path / "all.xls")
    with pytest.raises(UserError, match="cannot write"):
        rankbench.results("tiny", out=out, to=tmp_path / "nowhere" / "all.csv")


def test_results_are_written_as_parquet(out, tmp_path, monkeypatch):
    def without(self, path, index):
        raise ImportError("no pyarrow")

    monkeypatch.setattr(pandas.DataFrame, "to_parquet", without)
    with pytest.raises(UserError, match=r'writing Parquet needs pyarrow; pip install "rankbench\[parquet\]"'):
        rankbench.results("tiny", out=out, to=tmp_path / "all.parquet")
    monkeypatch.undo()
    pytest.importorskip("pyarrow")
    table = rankbench.results("tiny", out=out, to=tmp_path / "all.parquet")
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "all.parquet"), table)


def test_a_damaged_result_is_left_out_with_a_warning(tmp_path):
    rankbench.run(TINY, solver="global", repetitions=1, out=tmp_path)
    (path,) = (tmp_path / "tiny" / "cells").glob("*.json")
    path.write_text("{")
    with pytest.warns(UserWarning, match="cannot be read"):
        table = rankbench.results("tiny", out=tmp_path)
    assert set(table["status"]) == {"pending"} and table["value"].isna().all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda out: rankbench.run("park2015-tabel1"), "unknown experiment 'park2015-tabel1'; did you mean 'park2015-"),
        (lambda out: rankbench.run(5), "the experiment is a int; pass a name (rankbench list experiments) or the path"),
        (lambda out: rankbench.run(TINY, solver=[rankbench.SGD()]),
         "a SGD is no name; give names, such as "),
        (lambda out: rankbench.run(TINY, solver=5), "a int is no name; give names"),
        (lambda out: rankbench.run(TINY, solver="sdg"), "unknown solver 'sdg'; did you mean 'sgd'?"),
        (lambda out: rankbench.run(TINY, jobs=0), "jobs=0 is not valid; give a whole number of at least 1"),
        (lambda out: rankbench.run(TINY, timeout=0), "timeout=0 is not valid; give seconds above 0, or None"),
        (lambda out: rankbench.run(TINY, timeout="10m"), "timeout='10m' is not valid; give seconds above 0, or None"),
        (lambda out: rankbench.run(TINY, memory=0), "memory=0 is not valid; give bytes above 0, or None for no limit"),
        (lambda out: rankbench.run(TINY, wait=True), "wait is for one of several drivers; give it together"),
        (lambda out: rankbench.run(TINY, quiet=False, callback=print), "quiet=False and callback exclude each other"),
        (lambda out: rankbench.tune("sgd", 5, {"lam": [1.0]}, out=out),
         "a int is no data; give a DataFrame, ratings, the path of a file or the name of a data set"),
        (lambda out: rankbench.tune("sgd", "gone.csv", {"lam": [1.0]}, out=out), "no file 'gone.csv'; check the path"),
        (lambda out: rankbench.tune("sgd", pandas.DataFrame({"who": ["a", "b"], "what": [1, 2]}), {"lam": [1.0]},
                                    out=out), "no user has two held-out items with different ratings"),
        (lambda out: rankbench.tune(rankbench.SGD(), "low-rank", {"lam": [1.0]}, out=out),
         "the solver is a SGD; pass its name with its settings, such as 'sgd[rank=5]'"),
        (lambda out: rankbench.tune("sgd", "low-rank", ["lam"], out=out), "the space is a list; pass the values to"),
        (lambda out: rankbench.tune("sgd", TINY.data[0], {}, out=out), "nothing to tune: give the values to try"),
        (lambda out: rankbench.tune("frsvm", TINY.data[0], {"rank": [1, 2]}, out=out), "frsvm needs item features"),
        (lambda out: rankbench.results("tinny", out=out), "unknown experiment in "),
        (lambda out: rankbench.results(str(out), out=out), "is a folder, not an experiment; a folder of results is "
         "given by out="),
        (lambda out: rankbench.results(out=out / "nothing"), "no results under "),
        (lambda out: rankbench.results("tiny", seed=9, out=out), "tiny has no such run in "),
        (lambda out: rankbench.outcome("gone.toml", out=out), "unknown experiment in "),
    ],
)  # fmt: skip
def test_wrong_use_is_answered_in_one_line(out, call, message):
    with pytest.raises(UserError) as error:
        call(out)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_the_experiment_may_be_a_file(tmp_path, out):
    keys = ("title", "paper", "about", "data", "splits", "solvers", "metrics")
    lines = [
        f"{key} = {list(value) if isinstance(value := getattr(TINY, key), tuple) else repr(value)}" for key in keys
    ]
    path = tmp_path / "mine.toml"
    path.write_text("\n".join([*lines, "repetitions = 1"]))
    found = rankbench.run(str(path), solver="global", out=tmp_path / "results")
    assert isinstance(found.study.experiment, Experiment) and found.ok
    again = rankbench.outcome(str(path), out=tmp_path / "results")
    pandas.testing.assert_frame_equal(again.results(), found.results())


def test_data_with_times_runs_on_splits_by_time_folds_and_a_given_one(tmp_path):
    rng = np.random.default_rng(0)
    users, items = np.divmod(rng.choice(30 * 20, 300, replace=False), 20)
    table = pandas.DataFrame(
        {"user": users, "item": items, "rating": rng.integers(1, 6, 300), "time": rng.permutation(300)}
    )
    table.to_csv(tmp_path / "own.csv", index=False)
    data = rankbench.load(tmp_path / "own.csv")
    assert data.times is not None
    parts = np.where(rng.random(300) < 0.7, "train", "test")
    table.assign(part=parts)[["user", "item", "part"]].to_csv(tmp_path / "parts.csv", index=False)
    splits = ("temporal[test=0.3]", "leave-last-out[n=3]", "k-folds[k=2]", f"given[file={tmp_path / 'parts.csv'}]")
    tune = Tune({"sgd": {"lam": (1.0, 10.0)}}, "grid", 2, "pairwise-error", validation="temporal")
    own = replace(TINY, data=(f"csv:{tmp_path / 'own.csv'}",), splits=splits, solvers=("sgd[rank=2]",), tune=tune)
    found = rankbench.run(own, out=tmp_path / "results")
    assert found.ok and len(found.trials()) == 2 * 2 * len(splits)
    for entry in found.study.entries:
        place = entry.cell.place
        assert entry.result.split == rankbench.split(data, place.split.written, repetition=place.repetition).hash


def test_the_best_of_several_splits_is_asked_for_by_its_split(tmp_path):
    splits = ("n-per-user[n=8,least=5]", "n-per-user[n=9,least=5]")

    def value(cell):
        return 0.2 if (cell.place.split.written == splits[0]) == (cell.solver.name == "global") else 0.4

    found = Outcome(made_up_study(tmp_path, tiny(splits=splits, repetitions=1), value))
    with pytest.raises(
        UserError, match=r"values on different split cannot be compared.*; choose one with best_on\(split="
    ):
        found.best  # noqa: B018
    assert [found.best_on(split=split).partition("[")[0] for split in splits] == ["global", "sgd"]
    with pytest.raises(UserError, match="unknown split of tiny 'random'"):
        found.best_on(split="random")


@pytest.mark.parametrize(
    ("verb", "function", "renamed", "of_python"),
    [
        (running.run, rankbench.run, {"experiments": "experiment"}, {"callback"}),
        (running.tune, rankbench.tune, {}, set()),
        (own.on, rankbench.on, {"file": "data"}, set()),
    ],
)
def test_python_has_every_option_of_the_command_line_by_its_name(verb, function, renamed, of_python):
    line, python = (set(signature(one).parameters) - {"context"} for one in (verb, function))
    assert {renamed.get(name, name) for name in line} | of_python == python


def test_rank_has_the_options_of_the_command_line_but_for_what_it_prints_and_writes():
    line, python = (set(signature(one).parameters) for one in (own.rank, rankbench.rank))
    assert line - python == {"file", "judges", "propose", "against", "to"} and python - line == {"data", "columns"}


def test_judge_has_the_options_of_the_command_line_but_for_what_it_prints():
    line, python = (set(signature(one).parameters) for one in (own.judge, rankbench.judge))
    assert line - python == {"published", "quiet"} and not python - line
    assert "published" in signature(rankbench.conventions).parameters


@pytest.mark.slow
def test_a_driver_that_joins_others_may_write_the_report_too(tmp_path):
    rankbench.run(TINY, solver="global", repetitions=1, join=True, report=True, out=tmp_path)
    assert "tiny" in (tmp_path / "report" / "README.md").read_text()


@pytest.mark.parametrize("wrong", [True, None, 3, "fialed"])
def test_kinds_of_results_to_run_again_are_checked(tmp_path, wrong):
    with pytest.raises(UserError, match="unknown kind of results to run again"):
        rankbench.run(TINY, out=tmp_path, rerun=wrong)
