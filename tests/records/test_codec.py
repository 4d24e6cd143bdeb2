"""The codec: every record survives JSON, and invalid JSON is refused with a one-line error."""

import json
import re
import types
from dataclasses import fields, replace
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest
from helpers import MACHINE, made_up, tiny, tuned
from hypothesis import given
from hypothesis import strategies as st

from rankbench.core.contract import Determinism
from rankbench.experiments import Curve, Experiment, Figure, Published
from rankbench.experiments.naming import Names
from rankbench.metrics import metric
from rankbench.names import Named
from rankbench.planning.plan import plan
from rankbench.records.cells import Cell, Measure, Place, Selection, Skip
from rankbench.records.codec import (
    Unreadable,
    decode,
    encode,
    parsed,
    plain,
    printable,
    revived,
    table_in,
    with_digest,
)
from rankbench.records.machines import Machine
from rankbench.records.plan_files import file_of, plan_of
from rankbench.records.results import Counted, Point, RankingFunction, Result, Weight


def same(value, back):
    """Whether two records are equal and of the same types, where NaN equals NaN."""
    return type(value) is type(back) and repr(value) == repr(back)


def cell(**changes):
    """The first cell of the tiny experiment, changed."""
    return replace(plan(tiny(), Selection(repetitions=1)).cells[0], **changes)


TRIAL = plan(tuned(), Selection(repetitions=1)).trials[0]
NAMED = TRIAL.solver
MEASURE = Measure.of(metric("ndcg@5[users=all]"))
FIGURE = Figure(kind="sweep", x="rank", by=("noise",), curves=(Curve("theory", (1, 2), (0.5, 1e300), "rank=2"),))
EXPERIMENT = tuned(
    figure=FIGURE,
    published=(Published("sgd[rank=2]", "ndcg@5", 0.5, sd=0.1, on="low-rank[rank=3]"),),
    threads=(1, 2),
    names=Names(solvers={"sgd[step=0.1]": "SGD"}, units={"ndcg@5": "points"}),
)
RECORDS = [
    NAMED,
    MEASURE,
    replace(MEASURE, source=NAMED),
    TRIAL.place,
    TRIAL,
    cell(determinism=Determinism.RACY, tuned=("lam", "rank")),
    cell(solver=replace(NAMED, settings=(("a", None), ("b", True), ("c", 1), ("d", 1.5), ("e", ("x", 2, None))))),
    replace(TRIAL, rung=2),
    Skip(NAMED, None, NAMED, "no \ud800 reason\n\x00\u2028", "do something", failed=True),
    Point(3, 0.1, (nan, inf, -inf, 5e-324, 1 / 3), objective=nan, gap=inf, bound=None),
    Counted(0, 10**12),
    RankingFunction((Weight("a feature", nan),), ()),
    MACHINE,
    replace(MACHINE, git=None, blas=(), packages=()),
    made_up(TRIAL, 0.5, functions=(RankingFunction((), (Weight("x", -1.0),)),), imported=("scipy",)),
    made_up(cell(), nan, status="diverged", reason="«?»", curve=(), counted=(), unscored=None, peak_mb=None, load=0.5),
    Selection(("sgd[rank=2]",), (), None, 3, 2, True, 5),
    EXPERIMENT,
]


@pytest.mark.parametrize("record", RECORDS, ids=[type(record).__name__ for record in RECORDS])
@pytest.mark.parametrize("indent", [1, None])
def test_every_record_comes_back_as_it_was(record, indent):
    text = encode(record, indent)
    json.loads(text, parse_constant=pytest.fail)
    text.encode("utf-8")
    back = decode(type(record), text)
    assert encode(back, indent) == text
    if not isinstance(record, Skip):  # whose text was no Unicode
        assert same(record, back)


def test_every_record_of_a_stored_file_is_tried_above():
    kinds = {Named, Measure, Place, Cell, Skip, Point, Counted, RankingFunction, Machine, Result, Experiment}
    assert kinds <= {type(record) for record in RECORDS}


def test_cells_come_back_out_of_a_plans_rows():
    made = plan(tuned(), Selection(repetitions=2))
    cells = (*made.planned, *plan(tiny(), Selection()).cells)
    made = replace(made, planned=cells, trials=(*made.trials, *(replace(trial, rung=1) for trial in made.trials)))
    back = plan_of(parsed(encode(vars(file_of(made)), None)))
    assert back == replace(made, searches=())
    assert [one.key for one in back.everything] == [one.key for one in made.everything]
    assert len({id(one.place) for one in back.everything}) == len({one.place for one in made.everything})


def test_rows_of_a_plan_may_lack_their_last_column():
    made = plan(tiny(), Selection())
    table = plain(file_of(made))
    for row in table["cells"]["cells"]:
        assert row.pop() == 0
    assert plan_of(parsed(json.dumps(table))) == made


texts = st.text(st.characters(), max_size=20)  # surrogates too
numbers = st.floats() | st.integers()
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
settings = st.lists(st.tuples(st.text(max_size=9), scalars | st.lists(scalars, max_size=3).map(tuple)), max_size=4)


@given(st.integers(0), numbers, st.lists(st.floats(), max_size=4), st.none() | st.floats())
def test_any_point_comes_back(step, seconds, values, objective):
    point = Point(step, float(seconds), tuple(values), objective, bound=objective)
    assert same(point, decode(Point, encode(point)))


@given(texts, texts, settings)
def test_any_name_comes_back_with_what_utf_8_cannot_hold_escaped(written, identity, values):
    named = replace(NAMED, written=written, identity=identity, settings=tuple(values))
    text = encode(named)
    text.encode("utf-8")
    back = decode(Named, text)
    assert back.written == printable(written) and encode(back) == text
    assert same(named.settings, back.settings) or not str(values).isascii()


@pytest.mark.parametrize("value", [inf, -inf, "inf", "nan", "-inf", "=nan", "==inf", "=", "none", "", ("nan", inf)])
def test_a_setting_that_is_infinite_and_one_that_only_reads_so_are_told_apart(value):
    named = replace(NAMED, settings=(("lam", value),))
    back = decode(Cell, encode(replace(TRIAL, solver=named)))
    assert same(back.solver.settings, named.settings) and back.key == replace(TRIAL, solver=named).key


@given(texts)
def test_what_is_printable_can_be_written_and_keeps_what_could_be(text):
    found = printable(text)
    assert found.encode("utf-8").decode("utf-8") == found == printable(found)
    if text.isascii():
        assert found == text


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (np.float32(2), 2.0),
        (np.float64("nan"), "nan"),
        (np.float32("-inf"), "-inf"),
        (np.int64(7), 7),
        (np.uint8(255), 255),
        (Fraction(1, 2), 0.5),
        (True, True),
        (None, None),
        (Determinism.RACY, Determinism.RACY.value),
        (((1, (2.5, ())), [3]), [[1, [2.5, []]], [3]]),
        (types.MappingProxyType({"a": (inf,)}), {"a": ["inf"]}),
        ("\udcff", "\\udcff"),
    ],
)
def test_numbers_of_any_kind_and_nested_values_are_written_plainly(value, written):
    found = plain(value)
    assert found == written and type(found) is type(written)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", np.ones(2), 1j, Point, lambda: 1])
def test_what_cannot_be_stored_is_said(value):
    with pytest.raises(TypeError, match="cannot be stored"):
        encode(value)


def test_numpys_numbers_in_records_come_back_as_pythons():
    point = Point(np.int32(3), np.float32(0.5), (np.float64(1.5),), bound=np.float32(2))
    back = decode(Point, encode(point))
    assert back == Point(3, 0.5, (1.5,), bound=2.0)
    assert type(back.step) is int and type(back.bound) is type(back.values[0]) is float


# ---- what is refused ----


def without(record, *path):
    """The record's plain values without what lies at a path."""
    return put(record, *path, value=None, drop=True)


def put(record, *path, value, drop=False):
    """The record's plain values with something else at a path."""
    table = plain(record)
    place = table
    for part in path[:-1]:
        place = place[part]
    if drop:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return table


RESULT = next(record for record in RECORDS if isinstance(record, Result) and record.functions)


@pytest.mark.parametrize("name", [field.name for field in fields(Result)])
def test_each_name_that_is_missing_is_named_unless_it_may_be(name):
    optional = ("prepare", "load", "imported", "trace", "stopped", "functions", "split", "model", "values", "start",
                "peaks")  # fmt: skip
    table = without(RESULT, name)
    if name in optional:
        assert isinstance(decode(Result, json.dumps(table)), Result)
    else:
        with pytest.raises(Unreadable, match=rf"^Result: Object missing required field `{name}`$"):
            decode(Result, json.dumps(table))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("unknown",), 1, "Result has an unknown 'unknown'"),
        (("cell", "unknown"), 1, "Cell has an unknown 'unknown'"),
        (("curve", 0, "extra"), 1, "Point has an unknown 'extra'"),
        (("status",), "fine", "Invalid enum value 'fine' - at `$.status`"),
        (("status",), None, "got `null` - at `$.status`"),
        (("status",), ["ok"], "got `array` - at `$.status`"),
        (("status",), {}, "got `object` - at `$.status`"),
        (("cell",), [], "Expected `object`, got `array` - at `$.cell`"),
        (("cell",), None, "Expected `object`, got `null` - at `$.cell`"),
        (("cell", "seed"), True, "Expected `int`, got `bool` - at `$.cell.seed`"),
        (("cell", "seed"), 1.0, "Expected `int`, got `float` - at `$.cell.seed`"),
        (("cell", "seed"), "1", "Expected `int`, got `str` - at `$.cell.seed`"),
        (("cell", "objective"), 1, "Expected `bool`, got `int` - at `$.cell.objective`"),
        (("cell", "determinism"), "unheard of", "Invalid enum value 'unheard of' - at `$.cell.determinism`"),
        (("cell", "determinism"), [], "got `array` - at `$.cell.determinism`"),
        (("cell", "solver", "written"), 3, "Expected `str`, got `int` - at `$.cell.solver.written`"),
        (("cell", "budget", "steps"), -1, "steps=-1 is out of range"),
        (("cell", "tuned"), "lam", "Expected `array`, got `str` - at `$.cell.tuned`"),
        (("cell", "solver", "settings", 0), ["lam"], "of length 2"),
        (("cell", "solver", "settings", 0), ["lam", 1, 2], "of length 2"),
        (("cell", "solver", "settings", 0), ["lam", {}], "a table where a single value belongs"),
        (("cell", "solver", "settings", 0), ["lam", [1, [{}]]], "a table where a single value belongs"),
        (("wall",), True, "Expected `float`, got `bool` - at `$.wall`"),
        (("wall",), "many", "Expected `float`, got `str` - at `$.wall`"),
        (("wall",), None, "Expected `float`, got `null` - at `$.wall`"),
        (("curve",), {}, "Expected `array`, got `object` - at `$.curve`"),
        (("curve", 0), 3, "Expected `object`, got `int`"),
        (("curve", 0, "values"), [1, "x"], "Expected `float`, got `str`"),
        (("curve", 0, "values"), [[1]], "Expected `float`, got `array`"),
        (("curve", 0, "step"), None, "Expected `int`, got `null`"),
        (("machine", "packages", 0), ["a", "b", "c"], "of length 2"),
        (("machine", "packages"), 7, "Expected `array`, got `int` - at `$.machine.packages`"),
        (("machine",), "a machine", "Expected `object`, got `str` - at `$.machine`"),
        (("machine", "packages"), {"numpy": "2"}, "Expected `array`, got `object`"),
        (("machine", "packages"), [["numpy"]], "of length 2"),
        (("functions", 0, "positive"), [["war", 2]], "Expected `object`, got `array`"),
        (("finished",), None, "Expected `str`, got `null` - at `$.finished`"),
        (("counted",), {}, "Expected `array`, got `object` - at `$.counted`"),
        (("functions",), [3], "Expected `object`, got `int`"),
        (("curve", 0, "seconds"), None, "Expected `float`, got `null`"),
        (("reason",), 3, "Expected `str | null`, got `int` - at `$.reason`"),
    ],
)
def test_what_is_no_result_is_refused_in_one_line(path, value, message):
    with pytest.raises(Unreadable, match=re.escape(message)) as error:
        revived(Result, parsed(json.dumps(put(RESULT, *path, value=value))))
    assert "\n" not in str(error.value) and len(str(error.value)) < 200


@pytest.mark.parametrize("value", [None, [], "x", 3, True, [{}]])
def test_what_is_no_table_is_no_record(value):
    with pytest.raises(Unreadable, match=r"^Result: Expected `object`, got"):
        revived(Result, value)


@pytest.mark.parametrize("text", ["", "{", "[1, 2", '{"a": }', "NaN2", "\x00", "[" * 100_000, '{"a":' * 100_000])
def test_what_is_no_json_is_refused_in_one_line(text):
    with pytest.raises(Unreadable, match=r"^no JSON") as error:
        parsed(text)
    assert "\n" not in str(error.value)


def test_a_setting_that_is_nested_too_deeply_is_refused():
    text = encode(RESULT).replace('"settings": [', '"settings": [["lam", ' + "[" * 20_000 + "]" * 20_000 + "], ", 1)
    with pytest.raises(Unreadable, match="no JSON: RecursionError"):
        parsed(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table["cells"].append([1, 2]), "a cell of the plan cannot be read"),
        (lambda table: table["cells"][0].extend([1, 1]), "a cell of the plan cannot be read"),
        (lambda table: table["cells"][0].__setitem__(0, 99), "a cell of the plan cannot be read"),
        (lambda table: table["cells"][0].__setitem__(0, "x"), "a cell of the plan cannot be read"),
        (lambda table: table["cells"][0].__setitem__(8, "unheard of"), "a cell of the plan cannot be read"),
        (lambda table: table["cells"].append(None), "got `null`"),
        (lambda table: table["cells"].append({}), "a table where a single value belongs"),
        (lambda table: table["names"].append({}), "missing required field `written`"),
    ],
)
def test_rows_of_a_plan_that_are_none_are_refused(change, message):
    table = plain(file_of(plan(tiny(), Selection())))
    change(table["cells"])
    with pytest.raises(Unreadable, match=message):
        plan_of(parsed(json.dumps(table)))


def test_tables_come_back_as_tables_that_cannot_be_changed():
    back = decode(Experiment, encode(EXPERIMENT))
    assert {type(back.tune.space["sgd"]), type(back.names.solvers)} == {types.MappingProxyType}
    with pytest.raises(Unreadable, match=r"Expected `object`, got `array` - at `\$.names.solvers`"):
        decode(Experiment, json.dumps(put(EXPERIMENT, "names", "solvers", value=[1])))


def test_lists_are_tuples_at_any_depth_that_records_have():
    nested = 0.5
    for _ in range(8):
        nested = (1, nested)
    text = json.dumps({"a": nested, "b": [[], {"c": []}]})
    for content in (text, text.encode()):
        assert parsed(content) == {"a": nested, "b": ((), {"c": ()})}
    assert parsed('{"a": ["=nan", "x", ["-inf"]]}') == {"a": ("nan", "x", (-inf,))}


def test_a_part_that_is_a_record_already_is_taken_as_it_is():
    table = parsed(encode(RESULT))
    assert revived(Result, {**table, "cell": RESULT.cell}).cell is RESULT.cell
    with pytest.raises(Unreadable, match=r"got `Machine` - at `\$.cell`"):
        revived(Result, {**table, "cell": RESULT.machine})


def test_entries_that_are_not_to_be_read_stay_as_they_were_written():
    text = with_digest('{"a": [1, "=nan"], "cell": {"b":  [nothing that matters, "inf"], "c": "nan"}}')
    with pytest.raises(Unreadable, match="no JSON"):
        table_in(text.encode(), unread=("cell",))
    text = with_digest('{"a": [1, "=nan"], "cell": {"b":  [2, "inf"], "c": "nan"}}')
    found = table_in(text.encode(), unread=("cell", "absent"))
    assert found == {"a": (1, "nan"), "cell": b'{"b":  [2, "inf"], "c": "nan"}'}
    assert table_in(text.encode(), unread=()) != found


@pytest.mark.parametrize("text", ["[1]", "1", "{", '{"cell": }', "[" * 10_000])
def test_what_is_no_table_is_refused_where_entries_are_not_to_be_read(text):
    with pytest.raises(Unreadable, match="no JSON"):
        table_in(text.encode(), unread=("cell",))
