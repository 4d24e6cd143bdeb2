"""One grammar for all names: what is written can be read, what is wrong is said, what is checked stays checked."""

from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rankbench.data import DATASETS
from rankbench.data.splits import SPLITS
from rankbench.errors import UserError, unknown
from rankbench.names import (
    Limits,
    Registry,
    build,
    canonical,
    changed_settings,
    check,
    parse,
    settings_of,
    show,
    show_value,
    without_folder,
)
from rankbench.solvers import SOLVERS

patient = settings(deadline=None)  # a slow machine is no failure

CATALOGUES = (SOLVERS, DATASETS, SPLITS)
EVERY_ENTRY = [pytest.param(catalogue, name, id=name) for catalogue in CATALOGUES for name in sorted(catalogue.entries)]


@dataclass(frozen=True)
class Everything:
    """One setting of each type."""

    count: Annotated[int, Limits(low=1, high=9)] = 3
    amount: Annotated[float, Limits(above=0, below=2)] = 1.0
    limit: Annotated[int, Limits(low=1)] | None = None
    flag: bool = False
    kind: Literal["red", "green"] = "red"
    text: str = "abc"
    free: float = 0.0
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class Bare:
    """No settings at all."""


# ---- the grammar ----


@pytest.mark.parametrize(
    ("text", "name", "written"),
    [
        ("sgd", "sgd", {}),
        ("sgd[]", "sgd", {}),
        ("sgd[rank=3]", "sgd", {"rank": "3"}),
        ("  sgd [ rank = 3 , lam=0.1 ] ", "sgd", {"rank": "3", "lam": "0.1"}),
        ("dir/my.py:Mine[a=b c]", "dir/my.py:Mine", {"a": "b c"}),
        ("ndcg@10", "ndcg@10", {}),
    ],
)
def test_a_name_is_taken_apart(text, name, written):
    spec = parse(text)
    assert (spec.name, spec.settings) == (name, written)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read ''"),
        ("   ", "cannot read"),
        ("[rank=3]", "expected name or name"),
        ("sgd[rank=3", "expected name or name"),
        ("sgd]", "expected name or name"),
        ("sgd[rank=3]x", "expected name or name"),
        ("sgd[[rank=3]]", "expected name or name"),
        ("sgd[rank]", r"cannot read 'rank' in 'sgd\[rank\]': expected key=value"),
        ("sgd[rank=]", "cannot read 'rank='"),
        ("sgd[=3]", "cannot read '=3'"),
        ("sgd[ ]", "expected key=value"),
        ("sgd[rank=3,rank=4]", r"'rank' is set twice in 'sgd\[rank=3,rank=4\]'"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_shows_it(text, message):
    with pytest.raises(UserError, match=message):
        parse(text)


PLAIN = st.text(st.characters(categories=["L", "N"], include_characters="-_./@:"), min_size=1, max_size=12)


@patient
@given(PLAIN, st.dictionaries(PLAIN, PLAIN, max_size=4))
def test_show_is_the_inverse_of_parse(name, written):
    spec = parse(show(name, written))
    assert (spec.name, spec.settings) == (name, written)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1"),
        (0.1, "0.1"),
        (1e-5, "1e-05"),
        (1e300, "1e+300"),
        (3, "3"),
        (True, "true"),
        (False, "false"),
        ("a", "a"),
    ],
)
def test_a_setting_is_shown_as_it_is_written(value, shown):
    assert show_value(value) == shown


@patient
@given(st.floats(allow_nan=False))
@example(1e22)
def test_a_number_survives_being_shown(value):
    assert float(show_value(value)) == value


# ---- text -> record -> text, for everything that has a name ----


def numbers(plain, limits):
    """Ints or floats within limits, open borders kept out."""
    low = [limit for limits_ in limits for limit in (limits_.low, limits_.above) if limit is not None]
    high = [limit for limits_ in limits for limit in (limits_.high, limits_.below) if limit is not None]
    low, high = max(low, default=None), min(high, default=None)
    if plain is int:
        drawn = st.integers(low, high)
    else:
        drawn = st.floats(low, high, allow_nan=False, allow_infinity=False)
    return drawn.filter(lambda value: all(limits_.allow(value) for limits_ in limits))


def values(hint):
    """What may stand in a field of this type."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        limits = [note for note in notes if isinstance(note, Limits)]
        return numbers(inner, limits) if inner in (int, float) else values(inner)
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) in (Union, type(int | None)):
        return st.one_of(*(st.none() if arg is type(None) else values(arg) for arg in get_args(hint)))
    return {bool: st.booleans(), str: PLAIN, int: st.integers(), float: st.floats(allow_nan=False)}[hint]


def settable(cls, name):
    """What may be written in brackets behind a name; what stands behind its colon may not."""
    known = [f for f in fields(cls) if f.init]
    return known[1:] if name.endswith(":") else known


def value_of(field, hint):
    """A value of a field; a text that is set already may have a grammar of its own, so it stays."""
    return st.just(field.default) if hint is str and isinstance(field.default, str) else values(hint)


@st.composite
def names(draw, catalogue, key):
    """A name of an entry, with an argument if it needs one."""
    if not key.endswith(":"):
        return key
    cls = catalogue.find(key)
    hint = get_type_hints(cls, include_extras=True)[fields(cls)[0].name]
    return f"{key}{draw(values(hint))}"


@st.composite
def settings_drawn(draw, catalogue, name):
    """Some of the settings of an entry, drawn."""
    cls = catalogue.find(name)
    hints = get_type_hints(cls, include_extras=True)
    known = settable(cls, name if name in catalogue.entries else f"{name.partition(':')[0]}:")
    chosen = draw(st.lists(st.sampled_from(known), unique=True)) if known else []
    return {field.name: draw(value_of(field, hints[field.name])) for field in chosen}


@patient
@given(st.data())
@pytest.mark.parametrize(("catalogue", "key"), EVERY_ENTRY)
def test_whatever_has_a_name_survives_being_written_and_read(catalogue, key, data):
    name = data.draw(names(catalogue, key))
    try:
        record = catalogue.make(show(name, data.draw(settings_drawn(catalogue, name))))
    except UserError:
        assume(False)  # settings that exclude each other
    argument = {} if name == key else {fields(record)[0].name}
    for written in (settings_of(record), changed_settings(record)):
        text = show(name, {key: value for key, value in written.items() if key not in argument})
        assert catalogue.make(text) == record
        assert canonical(text, catalogue.make(text)) == canonical(name, record)


@pytest.mark.parametrize(("catalogue", "key"), EVERY_ENTRY)
def test_whatever_has_a_name_can_be_made_by_it_alone(catalogue, key):
    if key.endswith(":"):
        pytest.skip(f"{key} needs an argument")
    record = catalogue.make(key)
    assert is_dataclass(record) and type(record).__dataclass_params__.frozen
    assert changed_settings(record) == {}
    assert key in catalogue.names() and key in catalogue.whole_names()


@pytest.mark.parametrize("name", sorted(SOLVERS.entries))
def test_every_solver_keeps_to_the_declarations(name):
    solver = SOLVERS.make(name)
    assert solver.version >= 1
    assert isinstance(solver.needs_features, bool)


@patient
@given(st.data())
def test_a_record_of_every_type_survives_being_written_and_read(data):
    hints = get_type_hints(Everything, include_extras=True)
    chosen = {f.name: data.draw(values(hints[f.name])) for f in fields(Everything)}
    record = build(Everything, chosen, "everything")
    assert settings_of(record) == chosen
    assert build(Everything, parse(show("everything", chosen)).settings, "everything") == record


# ---- types and limits ----


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"count": "7"}, 7),
        ({"count": 7.0}, 7),
        ({"count": np.int64(7)}, 7),
        ({"amount": "1e-3"}, 0.001),
        ({"amount": 1}, 1.0),
        ({"amount": np.float32(0.5)}, 0.5),
        ({"limit": "none"}, None),
        ({"limit": None}, None),
        ({"limit": "5"}, 5),
        ({"flag": "true"}, True),
        ({"flag": "false"}, False),
        ({"kind": "green"}, "green"),
        ({"text": "x"}, "x"),
        ({"free": "inf"}, np.inf),
    ],
)
def test_a_setting_is_read_by_its_type(settings, expected):
    (key,) = settings
    value = getattr(build(Everything, settings, "thing"), key)
    assert value == expected and type(value) is type(expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"count": "1.5"}, "thing: count=1.5 is not of type int"),
        ({"count": 1.5}, "thing: count=1.5 is not of type int"),
        ({"count": True}, "thing: count=True is not of type int"),
        ({"count": "many"}, "thing: count=many is not of type int"),
        ({"count": None}, "thing: count=None is not of type int"),
        ({"count": float("inf")}, "thing: count=inf is not of type int"),
        ({"count": 0}, "thing: count=0 is out of range: must be at least 1 and at most 9"),
        ({"count": "10"}, "thing: count=10 is out of range"),
        ({"amount": "much"}, "thing: amount=much is not of type float"),
        ({"amount": True}, "thing: amount=True is not of type float"),
        ({"amount": 0}, "thing: amount=0 is out of range: must be above 0 and below 2"),
        ({"amount": 2.0}, "thing: amount=2 is out of range"),
        ({"amount": "nan"}, "thing: amount=nan is out of range"),
        ({"limit": 0}, "thing: limit=0 is out of range: must be at least 1"),
        ({"flag": "yes"}, "thing: flag=yes is not of type bool"),
        ({"flag": 1}, "thing: flag=1 is not of type bool"),
        ({"kind": "gren"}, "unknown value of thing: kind: 'gren'; did you mean 'green'"),
        ({"kind": "x"}, "known: green, red"),
        ({"cuont": 3}, "unknown setting of thing: 'cuont'; did you mean 'count'"),
        ({"version": 2}, "unknown setting of thing: 'version'"),
    ],
)
def test_a_wrong_setting_names_the_thing_the_value_and_the_remedy(settings, message):
    with pytest.raises(UserError) as error:
        build(Everything, settings, "thing")
    assert message in str(error.value)


def test_a_record_made_by_hand_is_checked_too():
    assert Everything(count="4").count == 4
    with pytest.raises(UserError, match="Everything: count=0 is out of range"):
        Everything(count=0)


def test_what_has_no_settings_takes_none():
    assert build(Bare, {}, "bare") == Bare()
    with pytest.raises(UserError, match="bare has no settings: 'x'"):
        build(Bare, {"x": 1}, "bare")


def test_a_setting_without_default_that_is_not_given_is_named():
    @dataclass(frozen=True)
    class Demanding:
        must: int

    with pytest.raises(UserError, match=r"thing: .*missing.*'must'"):
        build(Demanding, {}, "thing")


@patient
@given(st.floats(allow_nan=False), st.sampled_from(["low", "high", "above", "below"]), st.floats(allow_nan=False))
def test_limits_allow_what_they_say(limit, side, value):
    allowed = {"low": value >= limit, "high": value <= limit, "above": value > limit, "below": value < limit}
    limits = Limits(**{side: limit})
    assert limits.allow(value) == allowed[side]
    assert not limits.allow(float("nan"))
    assert str(limits).startswith({"low": "at least", "high": "at most"}.get(side, side))


# ---- names that are not there ----


@pytest.mark.parametrize(
    ("catalogue", "text", "message"),
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
def test_a_name_that_is_not_there_comes_with_the_nearest(catalogue, text, message):
    with pytest.raises(UserError) as error:
        catalogue.make(text)
    assert message in str(error.value)


def test_a_name_near_to_none_comes_with_all():
    assert str(unknown("fruit", "zzz", ["pear", "apple"])) == "unknown fruit 'zzz'; known: apple, pear"


# ---- names with an argument ----


@dataclass(frozen=True)
class Shaped:
    """A record whose first field has few values."""

    kind: Literal["red", "dark-green"]
    size: Annotated[int, Limits(low=1)] = 5

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class Filed:
    """A record whose first field is a path, and that may have another file."""

    path: str
    labels: str | None = None
    size: int = 5


@dataclass(frozen=True)
class Numbered:
    """A record whose first field is a number."""

    level: Annotated[float, Limits(above=0)]


THINGS = Registry(
    "thing",
    {
        **{f"{name}:": f"{__name__}:{name.title()}" for name in ("shaped", "filed", "numbered")},
        "bare": f"{__name__}:Bare",
        "argued:": f"{__name__}:Bare",
    },
    "rankbench.things",
    "rankbench list things",
)


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
        ("filed:some/where/x.csv", "filed:x.csv[size=5]"),
        ("filed:x.csv[size=5]", "filed:x.csv[size=5]"),
        ("filed:/some/where/x.csv[labels=/else/where/y.csv]", "filed:x.csv[labels=y.csv,size=5]"),
        ("numbered:0.50", "numbered:0.5"),
    ],
)
def test_the_canonical_name_holds_the_argument_once_and_no_folder(text, expected):
    assert canonical(text, THINGS.make(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("filed:some/where/x.csv[size=7]", "filed:x.csv[size=7]"),
        ("filed:x.csv[labels=a/y.csv]", "filed:x.csv[labels=y.csv]"),
        ("shaped:red", "shaped:red"),
        ("some/where/my.py:Mine[a=b/c]", "my.py:Mine[a=b/c]"),
        ("ndcg@10", "ndcg@10"),
    ],
)
def test_a_name_for_people_has_no_folder(text, expected):
    assert without_folder(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shaped", "thing 'shaped:' needs something behind the colon: write shaped:KIND, with one of dark-green, red"),
        ("shaped:", "thing 'shaped:' needs something behind the colon: write shaped:KIND, with one of dark-green, red"),
        ("shaped: [size=3]", "thing 'shaped:' needs something behind the colon"),
        ("filed", "thing 'filed:' needs something behind the colon: write filed:PATH"),
        (
            "shaped:dark-gren",
            "unknown thing 'shaped:dark-gren'; did you mean 'shaped:dark-green'? known: dark-green, red",
        ),
        ("shaped:x", "unknown thing 'shaped:x'; known: dark-green, red"),
        ("shaped:red[kind=red]", "shaped:red: kind stands behind the colon already: leave kind=red out"),
        ("shaped:red[size=0]", "shaped:red: size=0 is out of range: must be at least 1"),
        ("shaped:red[sise=1]", "unknown setting of shaped:red: 'sise'; did you mean 'size'"),
        ("numbered:much", "numbered:much: level=much is not of type float"),
        ("shapd:red", "unknown thing 'shapd:red'; did you mean 'shaped:KIND'? (rankbench list things)"),
        ("bare:x", "unknown thing 'bare:x'"),
        ("argued:x", "argued:x: Bare has no setting that could take 'x': give it a field"),
    ],
)
def test_an_argument_that_is_not_there_or_wrong_is_said(text, message):
    with pytest.raises(UserError) as error:
        THINGS.make(text)
    assert message in str(error.value)


def test_names_that_need_an_argument_are_listed_with_a_gap():
    assert THINGS.names() == ["argued:VALUE", "bare", "filed:PATH", "numbered:LEVEL", "shaped:KIND"]
    assert THINGS.whole_names() == ["bare"]
    assert [THINGS.find(name) for name in THINGS.names()] == [Bare, Bare, Filed, Numbered, Shaped]
    assert not THINGS.knows("shaped") and not THINGS.knows("bare:x") and THINGS.knows("bare")


def test_data_sets_are_listed_with_their_gaps():
    assert "lookalike:NAME" in DATASETS.names() and "lookalike:NAME" not in DATASETS.whole_names()
    assert canonical("lookalike:ml-20m[ratings=1000000]", DATASETS.make("lookalike:ml-20m[ratings=1000000]")) == (
        "lookalike:ml-20m[share=1,ratings=1000000,features=false]"
    )


# ---- a user's own file ----

OWN_FILE = """
from dataclasses import dataclass
from typing import ClassVar
from rankbench import Determinism, Ratings
from rankbench.names import check

@dataclass(frozen=True)
class Undeclared:
    rank: int = 3
    def __post_init__(self):
        check(self)

@dataclass(frozen=True)
class Mine(Undeclared):
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1
    def steps(self, train, rng, threads=1):
        yield

class Plain:
    pass

def function():
    pass
"""


@pytest.fixture
def own_file(tmp_path):
    """A Python file with a record of the user's own."""
    path = tmp_path / "mine.py"
    path.write_text(OWN_FILE)
    return path


def test_a_class_comes_out_of_a_file_of_the_users_own(own_file, monkeypatch):
    record = SOLVERS.make(f"{own_file}:Mine[rank=7]")
    assert (type(record).__name__, settings_of(record)) == ("Mine", {"rank": 7})
    monkeypatch.chdir(own_file.parent)
    assert settings_of(SOLVERS.make("mine.py:Mine")) == {"rank": 3}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Mien", r"unknown solver in .*mine\.py: 'Mien'; did you mean 'Mine'"),
        ("Mine[rnak=3]", r"unknown setting of .*mine\.py:Mine: 'rnak'; did you mean 'rank'"),
        ("Mine[rank=x]", r"mine\.py:Mine: rank=x is not of type int"),
        ("Plain", r"mine\.py:Plain is no dataclass"),
        ("Plain[rank=3]", r"mine\.py:Plain is no dataclass"),
        ("function", r"mine\.py:function is no dataclass"),
    ],
)
def test_what_a_file_of_the_users_own_lacks_is_said(own_file, name, message):
    with pytest.raises(UserError, match=message):
        SOLVERS.make(f"{own_file}:{name}")


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(UserError, match=r"no file '.*absent\.py' to take the solver 'Mine' from"):
        SOLVERS.make(f"{tmp_path}/absent.py:Mine")


@pytest.mark.parametrize(("text", "cause"), [("import nowhere", "ModuleNotFoundError"), ("1 +", "SyntaxError")])
def test_a_file_that_cannot_be_imported_says_why(tmp_path, text, cause):
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(UserError, match=rf"cannot import .*broken\.py: {cause}: "):
        SOLVERS.make(f"{tmp_path}/broken.py:Mine")


def test_a_solver_that_declares_nothing_is_told_what_to_say(own_file):
    with pytest.raises(UserError, match="does not say its learns_from, needs_features, determinism, version, steps"):
        SOLVERS.make(f"{own_file}:Undeclared")


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


def test_a_plugin_cannot_take_a_name_of_the_house(plugin):
    assert SOLVERS.find("sgd").__name__ == "SGD"
    assert SOLVERS.names().count("sgd") == 1


def test_nothing_is_imported_before_it_is_asked_for():
    lazy = Registry("thing", {"absent": "rankbench.no_such_module:Thing"}, "rankbench.things", "")
    assert lazy.names() == ["absent"]
    with pytest.raises(ModuleNotFoundError):
        lazy.find("absent")
