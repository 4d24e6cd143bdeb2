"""Registries: entries, arguments, plug-ins, and when two names have the same identity."""

import sys
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from names.drawing import patient, values
from names.things import OWN_FILE, THINGS, Bare, Filed, Numbered, Optional, Shaped

from rankbench.core.errors import UserError
from rankbench.data import DATASETS
from rankbench.data.splits import SPLITS
from rankbench.names import (
    AddedLater,
    Limits,
    Registry,
    changed_settings,
    parse,
    settings_of,
    show,
    with_settings,
    without_folder,
    without_settings,
)
from rankbench.names.registry import class_at
from rankbench.solvers import SOLVERS

REGISTRIES = (SOLVERS, DATASETS, SPLITS)
EVERY_ENTRY = [pytest.param(registry, name, id=name) for registry in REGISTRIES for name in sorted(registry.entries)]


# ---- text -> record -> text, for everything that has a name ----


def settable(cls, name):
    """Settings that may be written in brackets, but not after a colon."""
    known = [f for f in fields(cls) if f.init]
    return known[1:] if name.endswith(":") else known


def value_of(field, hint):
    """A value of a field; a text that is set already may have a grammar of its own, so it stays."""
    return st.just(field.default) if hint is str and isinstance(field.default, str) else values(hint)


@st.composite
def names(draw, registry, key):
    """A name of an entry, with an argument if it needs one."""
    if not key.endswith(":"):
        return key
    cls = registry.find(key)
    hint = get_type_hints(cls, include_extras=True)[fields(cls)[0].name]
    return f"{key}{draw(values(hint))}"


@st.composite
def settings_drawn(draw, registry, name):
    """Some of the settings of an entry, drawn."""
    cls = registry.find(name)
    hints = get_type_hints(cls, include_extras=True)
    known = settable(cls, name if name in registry.entries else f"{name.partition(':')[0]}:")
    chosen = draw(st.lists(st.sampled_from(known), unique=True)) if known else []
    return {field.name: draw(value_of(field, hints[field.name])) for field in chosen}


@pytest.mark.slow
@settings(patient, max_examples=5)  # for each of 85 names
@given(st.data())
@pytest.mark.parametrize(("registry", "key"), EVERY_ENTRY)
def test_whatever_has_a_name_survives_being_written_and_read(registry, key, data):
    name = data.draw(names(registry, key))
    try:
        named = registry.resolve(show(name, data.draw(settings_drawn(registry, name))))
    except UserError:
        assume(False)  # settings that exclude each other
    record = named.record
    argument = {} if name == key else {fields(record)[0].name}
    for written in (settings_of(record), changed_settings(record)):
        text = show(name, {key: value for key, value in written.items() if key not in argument})
        again = registry.resolve(text)
        assert again.record == registry.make(text) == record
        assert again.identity == named.identity
    assert registry.resolve(named.identity).identity == registry.resolve(named.full).identity == named.identity


def test_a_negative_zero_has_the_identity_of_zero():
    assert SOLVERS.resolve("bpr[least=-0.0]").identity == SOLVERS.resolve("bpr[least=0]").identity
    assert SOLVERS.resolve("bpr", {"least": -0.0}).full == SOLVERS.resolve("bpr", {"least": 0.0}).full


@pytest.mark.parametrize(("registry", "key"), EVERY_ENTRY)
def test_whatever_has_a_name_can_be_made_by_it_alone(registry, key):
    if key.endswith(":"):
        pytest.skip(f"{key} needs an argument")
    record = registry.make(key)
    assert is_dataclass(record) and type(record).__dataclass_params__.frozen
    assert changed_settings(record) == {}
    assert key in registry.names() and key in registry.whole_names()


@pytest.mark.parametrize("name", sorted(SOLVERS.entries))
def test_every_solver_keeps_to_the_declarations(name):
    solver = SOLVERS.make(name)
    assert solver.version >= 1
    assert isinstance(solver.needs_features, bool)


# ---- names that are not there ----


@pytest.mark.parametrize(
    ("registry", "text", "message"),
    [
        (SOLVERS, "sgdd", "unknown solver 'sgdd'; did you mean 'sgd'? (rankbench list solvers)"),
        (
            DATASETS,
            "low-rnk[users=3]",
            "unknown data set 'low-rnk'; did you mean 'low-rank'? (rankbench list datasets)",
        ),
        (SPLITS, "entry", "unknown split 'entry'; did you mean 'entries'? (rankbench list splits)"),
        (SOLVERS, "sgd[rnak=3]", "unknown setting of sgd: 'rnak'; did you mean 'rank'?"),
        (SOLVERS, "sgd[rank=0]", "sgd: rank=0 is out of range: must be at least 1"),
        (SOLVERS, "mprank[kernel=gaussian,form=primal]", "mprank: form=primal needs kernel=linear"),
    ],
)
def test_a_name_that_is_not_there_comes_with_the_nearest(registry, text, message):
    with pytest.raises(UserError) as error:
        registry.make(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("file", "written"),
    [("r.csv", "csv:r.csv, or pairs:r.csv if it has"), ("r.jsonl.gz", "json:r.jsonl.gz"), ("r.pq", "parquet:r.pq")],
)
def test_a_file_without_its_kind_comes_with_the_name_to_write(here, file, written):
    (here / file).write_text("user,item,rating\n")
    with pytest.raises(UserError) as error:
        DATASETS.resolve(file)
    assert str(error.value).startswith(
        f"{file!r} is a file, and here its name needs its kind before it; write {written}"
    )


# ---- names with an argument ----


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("shaped:red", Shaped("red")),
        ("shaped:dark-green[size=7]", Shaped("dark-green", 7)),
        (" shaped: red [ size = 7 ] ", Shaped("red", 7)),
        ("filed:some/where/x.csv", Filed("some/where/x.csv")),
        ("filed:/a b/x.csv[labels=../y.csv]", Filed("/a b/x.csv", "../y.csv")),
        ("filed:c:x.csv", Filed("c:x.csv")),
        ("numbered:1e-3", Numbered(0.001)),
    ],
)
def test_what_stands_behind_a_colon_is_the_first_setting(text, record):
    assert THINGS.make(text) == record
    assert THINGS.knows(parse(text).name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shaped:red", "shaped:red[size=5]"),
        ("shaped:red[size=7]", "shaped:red[size=7]"),
        ("filed:some/where/x.csv", "filed:some/where/x.csv[size=5]"),  # there is no such file
        ("filed:x.csv[size=5]", "filed:x.csv[size=5]"),
        ("filed:/some/x.csv[labels=/else/y.csv]", "filed:/some/x.csv[labels=/else/y.csv,size=5]"),
        ("numbered:0.50", "numbered:0.5"),
        ("optional:none", "optional:none"),
        ("optional:3", "optional:3"),
    ],
)
def test_the_identity_holds_the_argument_once(text, expected):
    assert THINGS.resolve(text).identity == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("filed:some/where/x.csv[size=7]", ("filed:some/where/x.csv", "filed:x.csv")),
        ("filed:x.csv[labels=a/y.csv]", ("filed:x.csv", "filed:x.csv")),
        ("shaped:red", ("shaped:red", "shaped:red")),
        ("bare", ("bare", "bare")),
    ],
)
def test_what_has_a_file_in_its_name_goes_by_the_name_without_its_folder_too(text, names):
    assert THINGS.resolve(text).names == names


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("some/where/my.py:Mine", "my.py:Mine"),
        ("my.py:Mine", "my.py:Mine"),
        ("csv:/some/where/x.csv", "csv:x.csv"),
        ("lookalike:ml-20m", "lookalike:ml-20m"),
        ("ndcg@10", "ndcg@10"),
    ],
)
def test_a_name_is_short_without_its_folder(name, short):
    assert without_folder(name) == short


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shaped", "'shaped:' needs an argument after the colon: use shaped:KIND, with one of dark-green, red"),
        ("shaped:", "'shaped:' needs an argument after the colon: use shaped:KIND, with one of dark-green, red"),
        ("shaped: [size=3]", "thing 'shaped:' needs an argument after the colon"),
        ("filed", "thing 'filed:' needs an argument after the colon: use filed:PATH"),
        (
            "shaped:dark-gren",
            "unknown thing 'shaped:dark-gren'; did you mean 'shaped:dark-green'? known: dark-green, red",
        ),
        ("shaped:x", "unknown thing 'shaped:x'; known: dark-green, red"),
        ("shaped:red[kind=red]", "shaped:red: kind is already given after the colon: leave kind=red out"),
        ("shaped:red[size=0]", "shaped:red: size=0 is out of range: must be at least 1"),
        ("shaped:red[sise=1]", "unknown setting of shaped:red: 'sise'; did you mean 'size'"),
        ("numbered:much", "numbered:much: level=much is not of type float"),
        ("shapd:red", "unknown thing 'shapd:red'; did you mean 'shaped:KIND'? (rankbench list things)"),
        ("bare:x", "unknown thing 'bare:x'"),
        ("argued:x", "argued:x: Bare has no field for the argument 'x': add a field"),
    ],
)
def test_an_argument_that_is_not_there_or_wrong_is_said(text, message):
    with pytest.raises(UserError) as error:
        THINGS.make(text)
    assert message in str(error.value)


def test_names_that_need_an_argument_are_listed_with_a_gap():
    assert THINGS.names() == ["argued:VALUE", "bare", "filed:PATH", "numbered:LEVEL", "optional:LEVEL", "shaped:KIND"]
    assert THINGS.whole_names() == ["bare"]
    assert [THINGS.find(name) for name in THINGS.names()] == [Bare, Bare, Filed, Numbered, Optional, Shaped]
    assert not THINGS.knows("shaped") and not THINGS.knows("bare:x") and THINGS.knows("bare")


def test_data_sets_are_listed_with_their_gaps():
    assert "lookalike:NAME" in DATASETS.names() and "lookalike:NAME" not in DATASETS.whole_names()


# ---- what a name was found to mean ----


@pytest.mark.parametrize(
    ("registry", "text", "identity"),
    [
        (SOLVERS, "global", "global[lam=1,loss=squared-hinge]"),
        (SOLVERS, "bpr", "bpr[rank=10,lam=0.01,step=0.05,decay=0,parts=8]"),
        (
            SOLVERS,
            "sgd[rank=5]",
            "sgd[rank=5,lam=0.1,step=0.05,decay=1e-05,loss=squared-hinge,schedule=serial,parts=8]",
        ),
        (
            SOLVERS,
            "altsvm[lam=1e-3,schedule=partitioned,groups=4]",
            "altsvm[rank=10,lam=0.001,loss=squared-hinge,inner=1,schedule=partitioned,groups=4]",
        ),
        (
            SOLVERS,
            "mprank[kernel=gaussian,width=10]",
            "mprank[C=1,kernel=gaussian,width=10,degree=2,form=auto,choose=nothing]",
        ),
        (SOLVERS, "rmc[graphs=as-levels]", "rmc[lam=16,eps=1,graphs=as-levels,tolerance=1e-05]"),
        (SOLVERS, "smc[centred=false]", "smc[lam=16,centred=false,tolerance=1e-05]"),
        (DATASETS, "btl[comparisons=50]", "btl[users=300,items=200,rank=3,comparisons=50,scale=5]"),
        (DATASETS, "low-rank", "low-rank[users=300,items=200,rank=3,per_user=50,levels=5,noise=0.3]"),
        (DATASETS, "ml-1m[features=genres+titles]", "ml-1m[features=genres+titles]"),
        (DATASETS, "jester[parts=all]", "jester[parts=all]"),
        (
            DATASETS,
            "hetrec2011-ml-2k[edition=slice]",
            "hetrec2011-ml-2k[edition=slice,features=genres+directors]",
        ),
        (
            DATASETS,
            "lookalike:ml-20m[ratings=1000000]",
            "lookalike:ml-20m[share=1,ratings=1000000,features=false]",
        ),
        (DATASETS, "insteval", "insteval"),
        (SPLITS, "entries[validation=0.1,test=0.10]", "entries[test=0.1,validation=0.1]"),
        (SPLITS, "n-per-user[n=20]", "n-per-user[n=20,least=10]"),
        (SPLITS, "given-folds", "given-folds[least=1]"),
        (SPLITS, "leave-reviewer-out", "leave-reviewer-out[least=200,raters=10]"),
    ],
)
def test_identities_stay_what_stored_results_and_random_numbers_know(registry, text, identity):
    assert registry.resolve(text).identity == identity


def test_a_name_keeps_what_was_written_and_knows_all_else():
    named = SOLVERS.resolve(" sgd [ lam = 1e-1 , rank=5 ]")
    assert (named.written, named.name, named.entry, named.argument) == (
        " sgd [ lam = 1e-1 , rank=5 ]",
        "sgd",
        "sgd",
        "",
    )
    assert named.given == (("lam", "1e-1"), ("rank", "5"))
    assert (named.base, named.home) == ("sgd", "rankbench.solvers.sgd:SGD")
    assert (named.setting("rank"), named.setting("lam"), named.setting("no-such", 7)) == (5, 0.1, 7)
    assert named.full == named.identity
    assert named.record == SOLVERS.make("sgd[rank=5]")


def test_a_name_tells_what_was_chosen_for_it():
    named = SOLVERS.resolve("sgd[rank=5]")
    assert named.with_chosen(()) == "sgd[rank=5]"
    assert named.with_chosen((("lam", 1.0), ("rank", 6))) == "sgd[rank=6,lam=1]"
    assert THINGS.resolve("filed:x.csv").with_chosen((("labels", None),)) == "filed:x.csv[labels=none]"


def test_an_argument_is_known_by_the_entry_and_by_itself():
    named = THINGS.resolve("shaped:red[size=7]")
    assert (named.entry, named.argument, named.name) == ("shaped:", "red", "shaped:red")
    assert named.settings == (("kind", "red"), ("size", 7))
    assert named.full == "shaped:red[size=7]"


def test_settings_may_stand_beside_a_name():
    beside = SPLITS.resolve("n-per-user[least=2]", {"n": 5})
    assert beside.identity == SPLITS.resolve("n-per-user[n=5,least=2]").identity
    assert beside.written == "n-per-user[least=2]"
    with pytest.raises(UserError, match="unknown setting of n-per-user: 'm'"):
        SPLITS.resolve("n-per-user", {"m": 5})


def test_other_settings_make_another_identity_of_what_was_written():
    named = SOLVERS.resolve("sgd[rank=5]")
    changed = with_settings(named, {"lam": 2, "rank": 6})
    assert changed.identity == SOLVERS.resolve("sgd[rank=6,lam=2]").identity
    assert changed.record == SOLVERS.make("sgd[rank=6,lam=2]")
    assert (changed.written, changed.given) == (named.written, named.given)
    assert with_settings(named, {}) is named
    with pytest.raises(UserError, match="sgd: lam=-1 is out of range"):
        with_settings(named, {"lam": -1})


def test_settings_still_to_be_chosen_are_left_out():
    undecided = without_settings(SOLVERS.resolve("global"), ("lam",))
    assert undecided.settings == (("loss", "squared-hinge"),)


@dataclass(frozen=True)
class Tooled:
    """A record with something in it that cannot be written down."""

    tool: Any = field(default=Bare())
    several: tuple[Any, ...] = ()


TOOLED = Registry("tool", {"tooled": f"{__name__}:Tooled"}, "rankbench.tools", "")


@pytest.mark.parametrize("settings", [{}, {"tool": 1, "several": (Bare(),)}, {"tool": 1, "several": [1, Bare()]}])
def test_a_setting_that_cannot_be_written_down_is_an_error_of_one_line(settings):
    message = r"^tooled: (tool|several) holds a value of type Bare: a setting must be a number, a text, a bool"
    with pytest.raises(UserError, match=message) as error:
        TOOLED.resolve("tooled", settings)
    assert "\n" not in str(error.value)


def test_a_list_of_settings_is_kept_as_a_tuple():
    assert TOOLED.resolve("tooled", {"tool": None, "several": [1, "a"]}).settings == (
        ("tool", None),
        ("several", (1, "a")),
    )


# ---- plug-ins ----


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """An installed distribution that announces a solver of its own, and one by the name of ours."""
    (tmp_path / "mine_of_plugin.py").write_text(OWN_FILE)
    folder = tmp_path / "mine-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    announced = "[rankbench.solvers]\nmine-own = mine_of_plugin:Mine\nsgd = mine_of_plugin:Mine\n"
    announced += "mine-of: = mine_of_plugin:Mine\n"
    (folder / "entry_points.txt").write_text(announced)
    monkeypatch.syspath_prepend(tmp_path)


def test_a_plugin_is_found_listed_and_offered_as_the_nearest(plugin):
    assert settings_of(SOLVERS.make("mine-own[rank=5]")) == {"rank": 5}
    assert "mine-own" in SOLVERS.names()
    with pytest.raises(UserError, match="did you mean 'mine-own'"):
        SOLVERS.find("mine-won")


def test_a_plugin_may_take_an_argument(plugin):
    assert settings_of(SOLVERS.make("mine-of:7")) == {"rank": 7}
    assert "mine-of:RANK" in SOLVERS.names()


def test_a_plugin_is_of_its_own_kind_only(plugin):
    assert "mine-own" not in DATASETS.names()
    with pytest.raises(UserError, match="unknown data set 'mine-own'"):
        DATASETS.find("mine-own")


def test_of_two_plugins_with_one_name_the_first_on_the_path_counts(plugin, tmp_path, monkeypatch):
    folder = tmp_path / "later" / "other-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[rankbench.solvers]\nmine-own = nothing:Other\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder.parent)])
    assert SOLVERS.find("mine-own").__name__ == "Mine"


def test_a_plugin_cannot_take_a_name_of_the_house(plugin):
    assert SOLVERS.find("sgd").__name__ == "SGD"
    assert SOLVERS.names().count("sgd") == 1


def test_nothing_is_imported_before_it_is_asked_for():
    lazy = Registry("thing", {"absent": "rankbench.no_such_module:Thing"}, "rankbench.things", "")
    assert lazy.names() == ["absent"]
    with pytest.raises(UserError, match="no_such_module:Thing is not here"):
        lazy.find("absent")


@dataclass(frozen=True)
class Grown:
    """A record that got a second setting when results with the first one were already stored."""

    size: int = 5
    parts: Annotated[int, Limits(low=1), AddedLater()] = 1


def test_a_setting_added_later_changes_nothing_at_its_default():
    things = Registry("thing", {"grown": f"{__name__}:Grown"}, "none", "list")
    older, same, other = (things.resolve(text) for text in ("grown", "grown[parts=1]", "grown[parts=4]"))
    assert (older.identity, older.settings) == (same.identity, same.settings) == ("grown[size=5]", (("size", 5),))
    assert (other.identity, dict(other.settings)) == ("grown[size=5,parts=4]", {"size": 5, "parts": 4})
    assert same.record == Grown() and other.record == with_settings(older, {"parts": 4}).record == Grown(parts=4)


@pytest.mark.parametrize("home", ["rankbench.solvers.gone:SGD", "rankbench.solvers.sgd:Gone", "gone_package:SGD"])
def test_a_class_that_is_not_there_is_named_in_one_line(home):
    with pytest.raises(
        UserError, match=f"the class {home} is not here; install its package, or run again what names it"
    ):
        class_at(home)


def test_an_error_inside_the_module_of_a_class_is_not_hidden(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "needs_more.py").write_text("import needs\n")
    with pytest.raises(ModuleNotFoundError, match="No module named 'needs'"):
        class_at("needs_more:Thing")
    (tmp_path / "has_a_slip.py").write_text("import os\nos.no_such_function()\n")
    with pytest.raises(AttributeError, match="no_such_function"):
        class_at("has_a_slip:Thing")
