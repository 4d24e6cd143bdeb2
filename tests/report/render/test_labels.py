"""Names for people: those that an experiment gives, and those made from classes and settings."""

import json
from dataclasses import replace

import pytest
from helpers import made_up_run, prepared, store_in, tiny, with_solver

from rankbench import experiments
from rankbench.core.errors import UserError
from rankbench.data import DATASETS
from rankbench.experiments import Figure, read
from rankbench.experiments.naming import Names
from rankbench.report.render.labels import (
    _said,
    axis_label,
    class_title,
    data_labels,
    data_title,
    metric_axis,
    metric_labels,
    setting_label,
    solver_labels,
    split_labels,
)
from rankbench.report.render.tables import definitions, sheet, to_latex

HEAD = (
    'title="t"\npaper="p"\nabout="a"\ndata=["btl"]\nsplits=["n-per-user[n=8]"]\nsolvers=["sgd[rank=2]"]\n'
    'metrics=["kendall", "precision@3[relevant=4]"]\nfigure={kind="sweep", x="n"}\n'
)
OTHER = "[full]\nsolvers = ['mf']\n"


@pytest.fixture
def study(tmp_path):
    """Makes the study of a tiny experiment, changed; its cells have not run."""
    return lambda **changes: prepared(tmp_path, tiny(**changes)).study()


def test_a_solver_is_called_by_the_settings_that_tell_it_from_its_namesakes(study):
    solvers = ("sgd[rank=2,lam=3]", "sgd[rank=3,lam=3]", "sgd[rank=3,lam=3,schedule=tournament]", "global[lam=10]")
    assert list(solver_labels(study(solvers=solvers)).values()) == [
        "SGD, rank 2", "SGD, rank 3", "SGD, rank 3, tournament", "Global ranking",
    ]  # fmt: skip


def test_a_given_name_comes_before_a_generated_one_and_is_not_used_twice(study):
    names = Names(solvers={"sgd[rank=2]": "descent"})
    found = solver_labels(study(solvers=("sgd[rank=2]", "sgd[rank=3]"), names=names))
    assert list(found.values()) == ["descent", "SGD, rank 3"]
    same = Names(solvers={"sgd[rank=2]": "descent", "sgd[rank=3]": "descent"})
    found = solver_labels(study(solvers=("sgd[rank=2]", "sgd[rank=3]"), names=same))
    assert list(found.values()) == ["sgd[rank=2]", "sgd[rank=3]"]


def test_a_users_own_solver_is_called_by_its_class_and_its_file_is_not_read(study, tmp_path):
    own = with_solver(tmp_path, "pass")
    found = study(solvers=(own, "global"))
    (tmp_path / "mine.py").unlink()
    assert list(solver_labels(found).values()) == ["Mine", "Global ranking"]


def test_data_sets_and_splits_are_called_by_what_tells_them_apart(study):
    data = ("low-rank[users=20,items=30,per_user=20]", "low-rank[users=20,items=31,per_user=20]")
    splits = ("n-per-user[n=8,least=5]", "n-per-user[n=9,least=5]")
    found = study(data=data, splits=splits)
    assert list(data_labels(found).values()) == ["low-rank ratings, 30 items", "low-rank ratings, 31 items"]
    assert list(split_labels(found).values()) == ["8 ratings per user", "9 ratings per user"]


def test_metrics_of_one_name_are_told_apart_and_others_are_not_explained(study):
    metrics = ("pairwise-accuracy[pairs=both]", "pairwise-accuracy", "ndcg-linear@5", "kendall")
    assert list(metric_labels(study(metrics=metrics)).values()) == [
        "pairwise accuracy (all pairs with a held-out item)", "pairwise accuracy (held-out pairs)",
        "NDCG@5 with linear gains", "Kendall's τ",
    ]  # fmt: skip
    assert list(metric_labels(study(metrics=("cost-svr[part=gap]",))).values()) == [
        "ε-insensitive cost (held-out less training)"
    ]


def test_axes_have_units_and_say_which_end_is_better(study):
    names = Names(metrics={"ndcg@5": "gain"}, axes={"n": "ratings per user"}, units={"ndcg@5": "points"})
    found = study(names=names, figure=Figure("sweep", x="n"))
    assert metric_axis(found, "ndcg@5") == "gain (points)\n(higher is better)"
    assert metric_axis(found, "pairwise-error") == "pairwise error\n(lower is better)"
    assert [axis_label(found, name) for name in ("n", "seconds", "step")] == [
        "ratings per user", "training time (s)", "step",
    ]  # fmt: skip
    assert [setting_label(found, name, 2) for name in ("n", "rank", "users")] == [
        "ratings per user: 2", "rank 2", "2 users",
    ]  # fmt: skip


def test_the_names_of_a_file_are_read_for_both_profiles():
    text = HEAD + OTHER + '[names.solvers]\n"sgd[rank=2]" = "SGD"\nmf = "ALS"\n[names.metrics]\nkendall = "tau"\n'
    text += '"precision@3[relevant=4]" = "hits"\n[names.units]\nn = "ratings"\n'
    for full in (False, True):
        found = read("x", "x.toml", text, full).names
        assert (found.solvers, found.units) == ({"sgd[rank=2]": "SGD", "mf": "ALS"}, {"n": "ratings"})
        assert found.metrics == {"kendall": "tau", "precision@3": "hits"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[names]\nsolver = {}", r"x.toml: \[names\] 'solver'; did you mean 'solvers'"),
        ("[names.solvers]\nsgd = 'SGD'", r"x.toml: \[names.solvers\] 'sgd'; known: sgd\[rank=2\]"),
        ("[names.axes]\nseconds = 's'", r"x.toml: \[names.axes\] 'seconds'; known: n"),
        ("[names.metrics]\nndcg = 's'", r"x.toml: \[names.metrics\] 'ndcg'; known: kendall"),
        ("[names.data]\nbtl = 3", r"x.toml: \[names.data\]: the name of 'btl' must be a line of text, not 3"),
        ("[names.data]\nbtl = ' '", "the name of 'btl' must be a line of text, not ' '"),
        ("[names]\ndata = 3", r"x.toml: \[names.data\] must be a table"),
        ("[full]\nnames = {}", r"x.toml: \[full\] 'names'"),
    ],
)
def test_a_name_for_what_the_experiment_does_not_have_is_refused(text, message):
    with pytest.raises(UserError, match=message):
        read("x", "x.toml", f"{HEAD}{text}\n")


def test_names_that_are_no_table_are_refused():
    with pytest.raises(UserError, match=r"x.toml: \[names\] must be a table"):
        read("x", "x.toml", f"names = 3\n{HEAD}")


def test_names_are_stored_with_the_plan_and_plans_without_them_are_still_read(tmp_path):
    made_up_run(tmp_path, tiny(names=Names(solvers={"sgd[rank=2]": "SGD!"})))
    store = store_in(tmp_path)
    assert [plan.experiment.names.solvers for plan in store.plans()] == [{"sgd[rank=2]": "SGD!"}]
    (path,) = [path for path in tmp_path.rglob("*.json") if '"profile"' in path.read_text()]
    content = json.loads(path.read_text())
    del content["experiment"]["names"]
    path.write_text(json.dumps(content))
    assert [plan.experiment.names for plan in store.plans()] == [Names()]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("name", experiments.names())
def test_every_experiment_of_the_package_has_names_without_brackets(name, full):
    found = experiments.load(name, full)
    for names in vars(found.names).values():
        assert not any("[" in text or "=" in text.replace(" = ", "") for text in names.values())


def test_a_heading_is_the_metrics_name_and_its_definition_says_how_to_write_it(study):
    found = study(metrics=("kendall", "misranking"))
    assert sheet(found).headings[2:4] == ("Kendall's τ", "misranking")
    assert r"Kendall's $\tau$" in to_latex(sheet(found))
    told, plain, _ = definitions(found)
    assert told.startswith("*Kendall's τ* (`kendall`): ") and plain.startswith("*misranking*: ")


def test_yes_or_no_settings_are_said_in_words_and_what_is_no_longer_installed_by_its_name():
    assert (_said("exact_zeros", True), _said("exact_zeros", False)) == ("exact zeros", "not exact zeros")
    assert data_title("gone-plugin[size=3]") == "gone-plugin[size=3]"
    named = replace(DATASETS.resolve("low-rank"), home="gone_package.module:Gone")
    assert class_title(named) == "Gone"
