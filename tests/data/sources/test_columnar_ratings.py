"""Parquet and Arrow files give the ratings that a text file of the same rows gives, and errors name the row."""

import gzip
import json
from codecs import BOM_UTF8
from decimal import Decimal

import numpy as np
import pandas
import pytest

import rankbench
from rankbench.arrays import mapped
from rankbench.arrays.mapped import home_of
from rankbench.arrays.npz import fingerprint
from rankbench.core.errors import UserError
from rankbench.data import DATASETS, load
from rankbench.data.sources import columnar
from rankbench.data.tables import json_lines
from rankbench.data.views import layout as views_module
from rankbench.own_data.naming import data_named

pytestmark = pytest.mark.usefixtures("folders")

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

USERS = ["zoe", "anna", "zoe", "bob", "anna", "zoe"]
ITEMS = [30, 7, 7, 12, 30, 12]
RATINGS = [5.0, 3.5, 1.0, 2.0, 4.0, 2.0]
TABLE = {"when": [1] * 6, "reviewer": USERS, "movieId": ITEMS, "stars": RATINGS}


def as_parquet(path, table, rows=2):
    parquet.write_table(pa.table(table), path, row_group_size=rows)


def as_arrow(path, table, rows=2):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, pa.table(table).schema) as writer:
        writer.write_table(pa.table(table), max_chunksize=rows)


def as_stream(path, table, rows=2):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, pa.table(table).schema) as writer:
        writer.write_table(pa.table(table), max_chunksize=rows)


def as_json(path, table, rows=2):
    lines = (pa.table(table) if isinstance(table, dict) else table).to_pylist()
    path.write_text("".join(f"{json.dumps(line, default=str)}\n" for line in lines))


WRITERS = {"parquet": as_parquet, "arrow": as_arrow, "stream": as_stream, "json": as_json}


def loaded(tmp_path, table, settings="", kind="parquet", rows=2):
    """The view of a file with these columns."""
    WRITERS[kind](tmp_path / "rows", table, rows)
    name = "parquet" if kind == "parquet" else "arrow"
    return rankbench.load(f"{name}:{tmp_path / 'rows'}{settings}")


def problem(tmp_path, table, settings="", kind="parquet"):
    """The error that a file with these columns gives, after the file's name."""
    with pytest.raises(UserError) as caught:
        loaded(tmp_path, table, settings, kind)
    text = str(caught.value)
    assert text.startswith(str(tmp_path / "rows")) and "\n" not in text
    return text.removeprefix(str(tmp_path / "rows")).lstrip(":, ")


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("rows", [1, 4, 100])
@pytest.mark.parametrize(("users", "items"), [(USERS, [str(item) for item in ITEMS]), ([9, -1, 9, 4, -1, 9], ITEMS)])
def test_the_view_is_that_of_a_text_file_with_the_same_rows(tmp_path, kind, rows, users, items):
    lines = [f"{user},{item},{rating}" for user, item, rating in zip(users, items, RATINGS, strict=True)]
    table = {**TABLE, "reviewer": users, "movieId": items}
    (tmp_path / "rows.csv").write_text("\n".join(["user,item,rating", *lines]))
    expected = rankbench.load(f"csv:{tmp_path / 'rows.csv'}")
    assert fingerprint(loaded(tmp_path, table, kind=kind, rows=rows)) == fingerprint(expected)
    again = rankbench.load(f"{'parquet' if kind == 'parquet' else 'arrow'}:{tmp_path / 'rows'}")  # from the cache
    assert fingerprint(again) == fingerprint(expected) and len(expected.user_ids) == 3


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_large_ids_far_apart_that_no_double_tells_from_their_neighbours_stay_apart(tmp_path, dtype):
    users = np.array([2**62 + 1, 2**62 + 2, 2**62 + 1, 5, 2**62, 2**62 + 1], dtype)
    found = loaded(tmp_path, {**TABLE, "reviewer": users})
    assert found.user_ids.tolist() == [5, 2**62, 2**62 + 1, 2**62 + 2]
    ids = found.user_ids[found.users].tolist(), found.item_ids[found.items].tolist(), found.values.tolist()
    assert sorted(zip(*ids, strict=True)) == sorted(zip(users.tolist(), ITEMS, RATINGS, strict=True))


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("by_user", [True, False])
def test_large_files_go_through_files_and_give_the_same(monkeypatch, tmp_path, kind, by_user):
    rng = np.random.default_rng(0)
    keys = rng.choice(40 * 30, 500, replace=False)
    users, items, ratings = keys // 30 * 3 - 20, keys % 30 + 1000, rng.integers(1, 6, 500).astype(np.float32)
    order = np.argsort(users, kind="stable") if by_user else slice(None)
    table = {"user": users[order], "item": items[order].astype(np.uint16), "rating": ratings[order]}
    whole = loaded(tmp_path, table, kind=kind, rows=70)
    monkeypatch.setattr(mapped, "LARGE", 200)
    for module in (mapped, views_module):
        monkeypatch.setattr(module, "PIECE", 37)
    monkeypatch.setattr(columnar, "_ROWS", 41)
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path / "another"))
    found = loaded(tmp_path, table, kind=kind, rows=70)
    assert fingerprint(found) == fingerprint(whole) and home_of(found.values) and not home_of(whole.values)
    ids = found.user_ids[found.users], found.item_ids[found.items]
    assert sorted(zip(*ids, found.values, strict=True)) == sorted(zip(users, items, ratings, strict=True))


def test_columns_are_chosen_as_in_text_files(tmp_path):
    table = {"a": ITEMS, "b": RATINGS, "c": USERS}
    named = loaded(tmp_path, table, "[user=c,item=a,rating=b]")
    numbered = loaded(tmp_path, table, "[user=3,item=1,rating=2]")
    assert fingerprint(named) == fingerprint(numbered) == fingerprint(loaded(tmp_path, TABLE))
    text = problem(tmp_path, table)
    assert text == (
        "the columns 'a', 'b', 'c' do not say which is which of user, item, rating: "
        "write [user=NAME,item=NAME,rating=NAME] after the path"
    )
    assert "no column of 'a', 'b', 'c' has this name" in problem(tmp_path, table, "[user=x,item=a,rating=b]")
    for names in (["user", "item"], ["user", "better", "worse"]):
        said = problem(tmp_path, dict(zip(names, (USERS, ITEMS, ITEMS), strict=False)))
        assert said.endswith("; comparisons, and items without ratings, are read from CSV or a DataFrame")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_ratings_may_be_decimals_as_databases_have_them(tmp_path, kind):
    stars = pa.array([Decimal(str(rating)) for rating in RATINGS], pa.decimal128(5, 2))
    found = loaded(tmp_path, {**TABLE, "stars": stars}, kind=kind)
    assert fingerprint(found) == fingerprint(loaded(tmp_path, TABLE, kind=kind))


def test_texts_with_few_distinct_values_may_come_as_a_dictionary(tmp_path):
    users = pa.DictionaryArray.from_arrays([2, 0, 2, 1, 0, 2], ["anna", "bob", "zoe", "nobody"])
    found = loaded(tmp_path, {**TABLE, "reviewer": users}, kind="arrow", rows=100)
    assert fingerprint(found) == fingerprint(loaded(tmp_path, TABLE, kind="arrow"))


@pytest.mark.skipif(not hasattr(pa, "string_view"), reason="this pyarrow knows no views of texts")
@pytest.mark.parametrize("kind", ["arrow", "stream"])
def test_texts_may_come_as_views_as_polars_writes_them(tmp_path, kind):
    found = loaded(tmp_path, {**TABLE, "reviewer": pa.array(USERS).cast(pa.string_view())}, kind=kind)
    assert fingerprint(found) == fingerprint(loaded(tmp_path, TABLE, kind=kind))


def test_of_a_repeated_pair_the_last_rating_counts_if_asked(tmp_path):
    table = {"user": [1, 2, 1, 1, 2], "item": [5, 5, 5, 6, 5], "rating": [1.0, 2.0, 3.0, 4.0, 5.0]}
    assert problem(tmp_path, table) == "row 3: user 1, item 5 is in row 1 already: keep one of the two rows"
    found = loaded(tmp_path, table, "[repeats=last]")
    assert found.values.tolist() == [3.0, 4.0, 5.0] and found.indptr.tolist() == [0, 2, 3]


def test_item_features_come_from_a_text_file(tmp_path):
    (tmp_path / "features.csv").write_text("item,length\n7,1\n12,2.5\n30,4\n")
    found = loaded(tmp_path, TABLE, f"[features={tmp_path / 'features.csv'}]")
    assert found.item_features.tolist() == [[1.0], [2.5], [4.0]] and found.feature_names.tolist() == ["length"]


@pytest.mark.parametrize("kind", WRITERS)
def test_true_and_false_are_one_and_zero_as_in_text(tmp_path, kind):
    found = loaded(tmp_path, {**TABLE, "stars": [True, False, True, True, False, True]}, kind=kind)
    assert sorted(found.values.tolist()) == [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"stars": [1.0, 2.0, None, 4.0, 5.0, 1.0]}, "row 3: the rating is missing"),
        ({"stars": [1.0, 2.0, 1.0, 4.0, np.nan, 1.0]}, "row 5: rating nan is out of range: must be finite"),
        ({"stars": ["1"] * 6}, "the rating is of type string: ratings must be numbers"),
        ({"movieId": [1.0] * 6}, "the item is of type double: ids must be whole numbers or texts"),
        ({"movieId": [1, 2, 3, 4, None, 5]}, "row 5: the item is missing"),
        ({"movieId": [None] * 6}, "row 1: the item is missing"),
        ({"stars": [None] * 6}, "row 1: the rating is missing"),
        ({"movieId": np.array([1, 2, 3, 2**63, 5, 6], np.uint64)}, "row 4: item '9223372036854775808' does not fit"),
        ({"reviewer": ["a", "b", "", "c", "d", "e"]}, "row 3: user '' is empty"),
        ({"reviewer": ["a", "b", "c", "d", "x" * 2000, "e"]}, "row 5: user 'xxxxxxx"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_row(tmp_path, kind, change, said):
    if kind == "json":  # which has no other numbers than these
        said = said.replace("rating nan is out of range: must be finite", "JSON is malformed: invalid character")
        said = "the values of 'movieId' are not all of one kind: " if "does not fit" in said else said
    assert problem(tmp_path, {**TABLE, **change}, kind=kind).startswith(said)


def test_ratings_off_the_scale_are_errors(tmp_path):
    assert problem(tmp_path, TABLE, "[low=1,high=4.5]") == "row 1: rating 5 is out of range: must be from 1 to 4.5"
    with pytest.raises(UserError, match="low=3 must be below high=2"):
        DATASETS.resolve("parquet:x[low=3,high=2]")


@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_without_rows_or_that_is_cut_is_one_line(tmp_path, kind):
    empty = pa.table(TABLE).slice(0, 0)
    assert problem(tmp_path, empty, kind=kind) == "holds no rows"
    WRITERS[kind](tmp_path / "rows", TABLE)
    (tmp_path / "rows").write_bytes((tmp_path / "rows").read_bytes()[:200])
    said = "rows(: row 4: Input data was truncated| cannot be read as Parquet or Arrow: )"
    with pytest.raises(UserError, match=said) as caught:
        rankbench.load(f"parquet:{tmp_path / 'rows'}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"user,item,rating\n1,2,3\n", b"PAR1", b"ARROW1", bytes(range(256)) * 40])
def test_a_file_of_another_kind_is_one_line(tmp_path, content):
    (tmp_path / "rows").write_bytes(content)
    with pytest.raises(UserError, match=r"rows(: holds no rows| cannot be read as Parquet or Arrow: )"):
        rankbench.load(f"arrow:{tmp_path / 'rows'}")


@pytest.mark.parametrize("ending", [".jsonl", ".json", ".ndjson", ".jsonl.gz"])
@pytest.mark.parametrize("start", [b"", b"\n \n", BOM_UTF8])
def test_lines_of_json_are_known_by_the_end_of_their_name(tmp_path, ending, start):
    as_json(tmp_path / "rows", TABLE)
    content = start + (tmp_path / "rows").read_bytes()
    path = tmp_path / f"rows{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    expected = fingerprint(loaded(tmp_path, TABLE))
    assert fingerprint(rankbench.load(path)) == fingerprint(load(data_named(str(path)))) == expected


def test_ratings_of_json_may_begin_as_whole_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "_LONGEST", 120)  # so that there are many pieces
    table = {"user": [*range(40), 40], "item": [1] * 41, "rating": [3] * 40 + [4.5], "text": ["x" * 20] * 41}
    lines = [{name: column[row] for name, column in table.items()} for row in range(41)]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert rankbench.load(tmp_path / "rows.jsonl").values.tolist() == [3.0] * 40 + [4.5]


@pytest.mark.parametrize("large", [1, 1 << 20])
def test_json_is_parsed_once_and_what_is_used_is_kept_in_memory_or_in_a_file(tmp_path, monkeypatch, large):
    monkeypatch.setattr(json_lines, "_LONGEST", 120)
    monkeypatch.setattr(mapped, "LARGE", large)
    monkeypatch.setattr(columnar, "columns_in", lambda *asked: parsed.append(asked[1]) or json_lines.columns_in(*asked))
    table, parsed = {**TABLE, "timestamp": [50, 30, 10, 20, 60, 40], "text": ["x" * 50] * 6}, []
    view = loaded(tmp_path, table, kind="json")
    assert fingerprint(view) == fingerprint(loaded(tmp_path, table, kind="parquet"))
    assert parsed == [["reviewer", "movieId", "stars", "timestamp"]]


def test_a_line_of_json_may_be_longer_than_a_piece_but_not_than_the_longest(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "_LONGEST", 120)
    lines = [{"user": 1, "item": n, "rating": n, "text": "x" * size} for n, size in enumerate((5, 100, 5, 70))]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n\r\n".join(map(json.dumps, lines)))
    assert rankbench.load(path).values.tolist() == [0, 1, 2, 3]
    path.write_text(json.dumps(lines[0] | {"text": "x" * 300}))
    with pytest.raises(UserError, match=r"rows\.jsonl: a line is longer than 120 bytes"):
        rankbench.load(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            '[{"user": 1, "item": 2, "rating": 3}]',
            ": holds a list in JSON; write a record on each line, in Python by pandas.read_json('rows.json').to_json("
            "'rows.jsonl', orient='records', lines=True)",
        ),
        (
            '{"user": 1, "item": 2, "rating": 3} {"user": 1, "item": 3, "rating": 3}',
            ": row 1: JSON is malformed: tr",
        ),
        ('{"user": 1, "item": 2, "rating": 3}\n{"user": 2}{"user": 3}', ": row 2: JSON is malformed: trailing"),
        ("{", ": row 1: Input data was truncated; write a record of JSON on each line"),
        ('{"user": 1, "item": 2, "rating": 3}\n\n{"user": 1,\n', ": row 2: Input data was truncated; write a record"),
        ('{"user": 1, "item": 2, "rating": 3}\n[1, 2]\n', ": row 2: Expected `object`, got `array`; write a record"),
        ('{"a": ' + 10**5 * "[" + 10**5 * "]" + "}", ": row 1: maximum recursion depth exceeded"),
        ('{"user": 1, "item": 2, "rating": 3}\n{"a": ' + 10**5 * "[" + 10**5 * "]" + "}", ": row 2: maximum recursion"),
        ('{"user": "\\ud800", "item": 2, "rating": 3}', ": row 1: JSON is malformed: unexpected end of"),
        ('{"user": 1, "item": 2}\n', ": the columns 'user', 'item' do not say which is which of user, item, rating"),
        (
            '{"user": 1, "item": 2, "rating": 3}\n{"user": "a", "item": 2, "rating": 3}',
            ": the values of 'user' are not",
        ),
        ('{"user": {"id": 1}, "item": 2, "rating": 3}\n', ": the user is of type struct<id: int64>: ids must be"),
        ('{"user": 1, "item": 2, "rating": 3}\n{"user": 1, "item": 3}\n', ": row 2: the rating is missing"),
    ],
)
def test_json_that_holds_no_ratings_is_one_line(tmp_path, content, said):
    path = tmp_path / "rows.json"
    path.write_text(content)
    with pytest.raises(UserError) as caught:
        rankbench.load(path)
    assert str(caught.value).startswith(f"{path}{said}") and "\n" not in str(caught.value)


def test_the_list_of_json_is_converted_by_the_command_that_is_told(here):
    pandas.DataFrame(TABLE).to_json("list.json", orient="records")
    with pytest.raises(UserError) as caught:
        rankbench.load("list.json")
    eval(str(caught.value).partition("in Python by ")[2], {"pandas": pandas})
    assert fingerprint(rankbench.load("rows.jsonl")) == fingerprint(loaded(here, TABLE))


def test_two_columns_of_the_name_of_a_role_are_one_line(tmp_path):
    table = pa.Table.from_arrays([pa.array(ITEMS), pa.array(ITEMS), pa.array(RATINGS)], names=["a", "a", "rating"])
    as_arrow(tmp_path / "rows", table)
    with pytest.raises(UserError, match="two columns have the name 'a', that of the user: rename one"):
        rankbench.load(f"arrow:{tmp_path / 'rows'}[user=1,item=2]")


def test_an_error_of_pyarrow_itself_is_cut_to_one_line(tmp_path, monkeypatch):
    def fail(path):
        raise pa.ArrowInvalid("something\nis " + "very " * 100 + "wrong")

    as_parquet(tmp_path / "rows", TABLE)
    monkeypatch.setattr(columnar, "_opened", fail)
    with pytest.raises(UserError, match="Parquet or Arrow: something is very very") as caught:
        rankbench.load(f"parquet:{tmp_path / 'rows'}")
    assert len(str(caught.value)) < 400


DATES = np.array([5, 3, 1, 2, 6, 4], "datetime64[D]")


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    ("column", "times"),
    [
        ([50, 30, 10, 20, 60, 40], [30, 60, 20, 10, 40, 50]),
        (pa.array(DATES.astype("datetime64[s]")), [86_400_000_000 * day for day in (3, 6, 2, 1, 4, 5)]),
        (pa.array(DATES), [86_400_000_000 * day for day in (3, 6, 2, 1, 4, 5)]),
        (
            [
                f"1970-01-0{day}T12:00:00{zone}"
                for day, zone in zip((5, 3, 1, 2, 6, 4), ["Z", "+00:00"] * 3, strict=True)
            ],
            [86_400_000_000 * day - 43_200_000_000 for day in (3, 6, 2, 1, 4, 5)],
        ),
        (["early"] * 6, None),
        ([50, 30, None, 20, 60, 40], None),
        ([50.0, 30.0, 10.0, 20.0, 60.0, 40.0], [30, 60, 20, 10, 40, 50]),
        ([50.0, 30.0, 10.5, 20.0, 60.0, 40.0], None),
    ],
)
def test_times_are_kept_where_every_row_has_one(tmp_path, kind, column, times):
    view = loaded(tmp_path, {**TABLE, "timestamp": column}, kind=kind)
    assert view.values.tolist() == [3.5, 4.0, 2.0, 1.0, 2.0, 5.0]
    assert (None if view.times is None else view.times.tolist()) == times


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    ("column", "why"),
    [
        (
            ["2020-01-31", "2020-01-30", "2020-02-01", "31/01/2020", "soon", ""],
            "row 4: the time '31/01/2020' cannot be read like the first one, '2020-01-31'",
        ),
        (["16"] * 6, ""),
        (["soon"] * 6, "row 1: the time 'soon' is neither a whole number nor a date such as"),
        ([50, 30, None, 20, 60, 40], "row 3: the time is missing"),
        ([50.0, 30.0, 10.5, 20.0, 60.0, 40.0], "row 3: the time '10.5' is neither a whole number nor a date such as"),
        ([50, 30, 10, 20, 60, 40], ""),
    ],
)
def test_the_first_row_without_a_time_that_can_be_read_is_named(tmp_path, kind, column, why):
    WRITERS[kind](tmp_path / "rows", {**TABLE, "timestamp": column})
    found = DATASETS.make(f"{'parquet' if kind == 'parquet' else 'arrow'}:{tmp_path / 'rows'}").untimed()
    assert found.startswith(f"{tmp_path / 'rows'}, {why}") if why else not found


def test_numbers_beyond_64_bits_are_no_times(tmp_path):
    column = pa.array(np.array([50, 30, 2**63, 20, 60, 40], np.uint64))
    assert loaded(tmp_path, {**TABLE, "timestamp": column}).times is None


@pytest.mark.parametrize("wrong", ["soon", 2**64, {"at": 5}])
def test_wrong_times_in_json_are_left_out_and_do_not_stop_the_reading(tmp_path, wrong):
    lines = [{"user": 1, "item": 2, "rating": 3, "time": 5}, {"user": 1, "item": 4, "rating": 5, "time": wrong}]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    view = rankbench.load(f"json:{tmp_path / 'rows.jsonl'}")
    assert view.values.tolist() == [3.0, 5.0] and view.times is None
    assert "rows.jsonl" in DATASETS.make(f"json:{tmp_path / 'rows.jsonl'}").untimed()
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps({**line, 'rating': wrong})}\n" for line in lines[1:]))
    with pytest.raises(UserError, match="rating"):
        rankbench.load(f"json:{tmp_path / 'rows.jsonl'}")
