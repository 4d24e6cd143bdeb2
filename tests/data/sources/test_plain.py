"""Files of plain numbers are read as pandas reads them, to the last bit, and all others are left to pandas."""

import gzip
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbench.core.errors import UserError
from rankbench.data.files import File
from rankbench.data.tables import parsing, plain, read
from rankbench.data.tables.layout import Layout
from rankbench.data.tables.texts import Coded
from rankbench.data.tables.watched import Seen
from rankbench.kernels.data import plain_rows

CSV = Layout()
TIMED = Layout(time=3)
OWN = Layout(strict=True, quoted=True, width=4, header=1, time=3)
NAMED = Layout(text_ids=True)
PAIRS = Layout(names=("user", "better", "worse"), valued=False)
ROWS = "".join(f"{row % 7},{row * row % 11},{row % 5 - 2}.{row % 3}5,{row + 10**9}\n" for row in range(60))
HEAD = "user,item,rating,time\n"
LARGEST = 2**63 - 1


@pytest.fixture
def write(write):
    """Writes a file; returns it as sources find it."""
    return lambda content, name="rows.csv": File(Path(write(content, name)))


@pytest.fixture(params=[24, 64, plain._PIECE])
def piece(request, monkeypatch):
    """The bytes of a piece that a thread reads, of which there are three."""
    monkeypatch.setattr(plain, "_PIECE", request.param)
    monkeypatch.setattr(plain, "usable_cores", lambda: 3)
    return request.param


def by_pandas(file, layout):
    """What pandas reads, and what it does not notice in the file."""
    return parsing._parsed(file, layout)


def in_bytes(column):
    """The types and the bytes of a column."""
    parts = [column.texts, column.codes] if isinstance(column, Coded) else [column]
    return [(part.dtype, part.tobytes()) for part in parts]


def assert_same(file, layout):
    """A plain file must be read as pandas reads it, in each bit, and what else it holds must be the same."""
    found, expected = plain.plain(file, layout), by_pandas(file, layout)
    assert found is not None
    (columns, seen), (columns_of_pandas, seen_by_pandas) = found, expected
    assert list(map(in_bytes, columns)) == list(map(in_bytes, columns_of_pandas))
    assert seen == seen_by_pandas if layout.strict else seen_by_pandas == Seen()


@pytest.mark.parametrize(
    ("content", "layout"),
    [
        (ROWS, TIMED),
        (ROWS.rstrip("\n"), TIMED),
        (ROWS.replace("\n", "\r\n"), TIMED),
        ("1,2,3,4\n" + "\n\r\n\n", TIMED),
        (HEAD + ROWS, Layout(header=1, time=3)),
        (HEAD + ROWS, Layout(header=1, fields=(3, 0, 2))),
        (HEAD.replace("\n", "\r\n\r\n") + ROWS, Layout(header=2)),
        ("\ufeff" + HEAD + ROWS, Layout(header=1, encoding="utf-8-sig")),
        (ROWS.replace(",", "::"), Layout(separator="::", time=3)),
        (ROWS.replace(",", "\t"), Layout(separator="\t")),
        (ROWS.replace(",", ";").replace(".", ","), Layout(separator=";", decimal=",")),
        (ROWS, Layout(fields=(1, 0, 2))),
        (ROWS, Layout(fields=(0, 3, 2), drop_missing=True)),
        (ROWS.replace("-", "").replace(".", ","), PAIRS),
        (ROWS, NAMED),
        (ROWS.replace("\n3,", "\na longer name,"), Layout(text_ids=True, time=3)),
        (ROWS.replace(",", "::"), Layout(text_ids=True, separator="::", strict=True)),
        ("007,x y,3\n7, x,3\nNA,#~,3\n" * 40, NAMED),
        ("".join(f"{row * row % 9973},{row},3\n" for row in range(2000)), NAMED),
        (f"1,{'a' * 999},3\n" * 2 + f"1,{'a' * 1000},3\n", NAMED),
        (ROWS.replace("\n", ",a title: #7\tx,,\n"), TIMED),
        (ROWS.replace(".", ",.,"), CSV),
        (f"{LARGEST},0,0,-5\n" * 9, CSV),
        ("1,2,-0,3\n1,3,-0.0,3\n" * 9, CSV),
        ("1,2,123456789012345,3\n1,3,1.00000000000001,3\n" * 9, CSV),
    ],
)
def test_a_plain_file_is_read_as_pandas_reads_it(write, piece, content, layout):
    file = write(content)
    above = sum(map(len, content.encode().splitlines(keepends=True)[: layout.header]))
    if above + max(map(len, content.splitlines())) >= piece:
        pytest.skip("a line or the header fills a piece")
    assert_same(file, layout)


def test_of_a_users_own_file_its_header_may_be_quoted_and_its_separators_are_counted(write):
    assert_same(write(HEAD + ROWS), OWN)
    columns, seen = plain.plain(write('"user","the item",rating,time\n' + ROWS), OWN)
    assert len(columns[0]) == 60 and seen.quotes and seen.separators == 3 * 61


NOT_PLAIN = {
    "no rows": ("", CSV),
    "only blank lines": ("\n\n", CSV),
    "only a header": (HEAD, Layout(header=1)),
    "less than its header": (HEAD, Layout(header=3)),
    "a blank line between": (ROWS + "\n" + ROWS, CSV),
    "a negative id": (ROWS + "-1,2,3,4\n", CSV),
    "an id with a sign": (ROWS + "+1,2,3,4\n", CSV),
    "an id with a point": (ROWS + "1.0,2,3,4\n", CSV),
    "an id with a leading zero": (ROWS + "01,2,3,4\n", CSV),
    "an id beyond 64 bits": (ROWS + f"{LARGEST + 1},2,3,4\n", CSV),
    "an id of twenty digits": (ROWS + "1" * 20 + ",2,3,4\n", CSV),
    "an id of twenty-four digits, which is 0 in 64 bits": (ROWS + f"{2**64 * 10000},2,3,4\n", CSV),
    "an empty id": (ROWS + ",2,3,4\n", CSV),
    "a blank": (ROWS + "1, 2,3,4\n", CSV),
    "a letter": (ROWS + "1,x2,3,4\n", CSV),
    "a letter behind an id": (ROWS + "1,2x,3,4\n", CSV),
    "an exponent": (ROWS + "1,2,3e1,4\n", CSV),
    "an empty value": (ROWS + "1,2,,4\n", CSV),
    "a missing value": (ROWS + "1,2,.,4\n", Layout(drop_missing=True)),
    "a value without digits before its point": (ROWS + "1,2,.5,4\n", CSV),
    "a value without digits behind its point": (ROWS + "1,2,5.,4\n", CSV),
    "a value of two points": (ROWS + "1,2,5.5.5,4\n", CSV),
    "a value of two signs": (ROWS + "1,2,--5,4\n", CSV),
    "a value of sixteen digits": (ROWS + "1,2,1.000000000000001,4\n", CSV),
    "a value of seventeen digits": (ROWS + "1,2,10000000000000001,4\n", CSV),
    "a value with a leading zero": (ROWS + "1,2,05,4\n", CSV),
    "a decimal comma": (ROWS.replace(",", ";") + "1;2;3,5;4\n", Layout(separator=";")),
    "a point beside decimal commas": (ROWS.replace(",", ";"), Layout(separator=";", decimal=",")),
    "a quoted id": (ROWS + '"1",2,3,4\n', Layout(quoted=True)),
    "a quoted name": (ROWS + '1,2,3,"x"\n', Layout(quoted=True)),
    "a name beyond ASCII": (ROWS + "1,2,3,\xe9\n", CSV),
    "a control character": (ROWS + "1,2,3,\x01\n", CSV),
    "a zero byte": (ROWS + "1,2,3,\0\n", CSV),
    "too few fields": (ROWS + "1,2\n", CSV),
    "fewer fields than others": (ROWS + "1,2,3\n", CSV),
    "more fields than others": (ROWS + "1,2,3,4,5\n", CSV),
    "pieces of rows of two widths": ("1,2,3,4\n" * 12 + "1,2,3\n" * 16, CSV),
    "a byte order mark": ("\ufeff" + ROWS, CSV),
    "a mark amid the file": (ROWS + "\ufeff" + ROWS, CSV),
    "ends of lines of old Macs": (ROWS.replace("\n", "\r"), CSV),
    "a carriage return": (ROWS + "1,2,3,4\r5\n", CSV),
    "an old Mac's header": ("a\rb\n" + ROWS, Layout(header=1)),
    "an open quote in the header": ('"a,b\n' + ROWS, Layout(header=1)),
    "a zero byte in the header": ("a\0b\n" + ROWS, Layout(header=1)),
    "a control character in the header": ("a\x85b\n" + ROWS, Layout(header=1)),
    "a text beyond ASCII": (ROWS + "1,\xe9,3,4\n", NAMED),
    "a text with a quote": (ROWS + '1,"a",3,4\n', NAMED),
    "an empty text": (ROWS + "1,,3,4\n", NAMED),
    "a text with a control character": (ROWS + "1,a\x7f,3,4\n", NAMED),
    "escapes": (ROWS, Layout(escape="\\")),
    "dates": (ROWS, Layout(time=3, times="dates")),
    "one column in two roles": (ROWS, Layout(fields=(0, 0, 2))),
    "one column as item and time": (ROWS, Layout(time=1)),
    "a line that is longer than a piece": ("1,2,3,4\n" * 9 + "1,2,3," + "x" * 200 + "\n", CSV),
}


@pytest.mark.parametrize(("content", "layout"), NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_what_is_not_plain_is_left_to_pandas(write, monkeypatch, content, layout):
    for size in (48, 96):
        monkeypatch.setattr(plain, "_PIECE", size)
        assert plain.plain(write(content), layout) is None


@pytest.mark.slow
@given(
    st.text('019.,-\n\r"x ', max_size=200),
    st.integers(24, 90),
    st.booleans(),
    st.sampled_from([CSV, TIMED, PAIRS, NAMED]),
)
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_as_pandas_reads_it_or_not_at_all(tmp_path_factory, text, size, strict, layout):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(("1,0,1,9\n" * 9 + text + "\n").encode())
    layout = replace(layout, strict=strict)
    with pytest.MonkeyPatch.context() as own:
        own.setattr(plain, "_PIECE", size)
        if plain.plain(File(path), layout) is not None:
            assert_same(File(path), layout)


def test_values_are_read_to_the_last_bit(write):
    """Against Python, on all numbers of decimals, also where a product with a power of ten would be wrong."""
    rng = np.random.default_rng(0)
    texts = [f"{rng.integers(10**15)}" for _ in range(2000)]
    texts = [str(int(text[: 1 + row % 15])) for row, text in enumerate(texts)]
    texts = [f"{text[:-cut] or '0'}.{text[-cut:]}" if (cut := row % 14) else text for row, text in enumerate(texts)]
    columns, _ = plain.plain(write("".join(f"1,{row},{text}\n" for row, text in enumerate(texts))), CSV)
    assert columns[2].tolist() == list(map(float, texts)) and len(set(texts)) > 1000


def test_a_packed_file_is_read_into_room_that_grows(write, piece):
    file = write(gzip.compress((ROWS * 40).encode()), "rows.csv.gz")
    if piece >= 64:
        assert_same(file, TIMED)


def test_rows_that_become_shorter_find_room_too(write, monkeypatch):
    monkeypatch.setattr(plain, "_PIECE", 64)
    file = write("1000000,1000000,1.5\n" * 9 + "1,2,3\n" * 500)
    assert_same(file, CSV)


def test_no_more_of_a_file_is_in_memory_than_is_read_at_a_time(write, monkeypatch):
    made = []
    monkeypatch.setattr(plain, "_PIECE", 64)
    monkeypatch.setattr(plain, "usable_cores", lambda: 3)
    monkeypatch.setattr(plain, "bytearray", lambda size: made.append(size) or bytearray(size), raising=False)
    assert len(read(write(ROWS * 100), CSV).values) == 6000
    assert made == [128] * 5  # three are parsed, one more waits, and one is being read


def test_the_rest_of_a_file_is_not_read_once_a_piece_is_not_plain(write, monkeypatch):
    monkeypatch.setattr(plain, "_PIECE", 64)
    seen, of = [], plain.pieces_of

    def noted(*given):
        for piece in of(*given):
            seen.append(len(piece))
            yield piece

    monkeypatch.setattr(plain, "pieces_of", noted)
    assert plain.plain(write(ROWS + "x,1,2,3\n" + ROWS * 1000), CSV) is None
    assert len(seen) < 200


def test_a_plain_file_is_read_without_pandas_which_is_slow_to_import(write):
    code = f"import rankbench, sys; rankbench.load('csv:{write(HEAD + ROWS).path}[repeats=last]'); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "pandas" not in modules and "rankbench.kernels.data.plain_rows" in modules


LATE = {
    "an id that is none": ("1,x,3,4\n", "line 63: item 'x' is no whole number"),
    "a rating that is none": ("1,2,,4\n", "line 63: rating '' is no number"),
    "too few fields": ("1,2\n", "line 63: 2 fields where 3 are needed"),
    "a byte that is not UTF-8": (b"1,\xe9,3,4\n", "line 63: not utf-8"),
    "a control character": ("1,2,3,\x01\n", "line 63: control character"),
    "an infinite rating": ("1,2,inf,4\n", "line 63: rating inf is out of range"),
}


@pytest.mark.parametrize("blank", ["", "\n", "\r\n"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
@pytest.mark.parametrize(("mistake", "message"), LATE.values(), ids=LATE)
def test_a_late_mistake_is_looked_for_behind_what_is_plain(write, monkeypatch, mistake, message, name, blank):
    monkeypatch.setattr(plain, "_PIECE", 64)
    content = (HEAD + blank + ROWS).encode() + (mistake if isinstance(mistake, bytes) else mistake.encode()) * 2
    file = write(gzip.compress(content) if name.endswith("gz") else content, name)
    layout = Layout(strict=True, header=1 + bool(blank), width=4)
    message = message.replace("63", str(62 + bool(blank)))
    size, lines = plain.plain_start(file, layout)
    assert 50 < lines <= 60 + layout.header and content[:size].count(b"\n") == lines
    with pytest.raises(UserError, match=message):
        read(file, layout)


@pytest.mark.parametrize("layout", [CSV, Layout(escape="\\")])
def test_nothing_is_plain_at_the_start_of_a_file_that_begins_otherwise(write, layout):
    assert plain.plain_start(write("x,1,2,3\n" + ROWS), layout) == (0, 0)
    assert plain.plain_start(write(""), layout) == plain.plain_start(write("1,2,3"), layout) == (0, 0)


def kernel(text, **others):
    """The kernel's answer about a text whose rows are a whole number and a value, with room for two rows."""
    right = {
        "text": np.frombuffer(text, np.uint8),
        "fields": np.array([0, -1], np.int8),
        "separator": b",",
        "point": b".",
        "numbers": [np.zeros(2, np.int64)],
        "values": np.zeros(2),
        "text_places": [],
    }
    return plain_rows.read(**right | others)[:2]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"1,2\n", (1, 2)),
        (b"1,2\r\n\n3,4.5\r\n", (2, 2)),
        (b"1,2,x\n1,2,~\t\n", (2, 3)),
        (b"1,2\n1,2,3\n", (0, None)),
        (b"1,2,3\n1,2\n", (0, None)),
        (b"1,2\n1,2\n1,2\n", (0, None)),
        (b"1\n", (0, None)),
        (b"1,2x\n", (0, None)),
        (b"1x,2\n", (0, None)),
        (b"1,2,\x7f\n", (0, None)),
        (b"%d,2\n" % (2**64 + 5), (0, None)),
        (b"%d,2\n" % 2**63, (0, None)),
    ],
)
def test_the_kernel_tells_how_many_rows_of_how_many_fields_there_are(text, found):
    rows, width = kernel(text)
    assert (rows, width if rows else None) == found


def test_a_row_does_not_begin_in_the_middle_of_a_line():
    fields = np.array([-1, 0], np.int8)
    assert kernel(b"5,3\n-2,4\n", fields=fields) == (2, 2)
    assert kernel(b"5,3-2,4\n", fields=fields)[0] == 0


def test_a_text_may_have_a_thousand_letters():
    places = {"text_places": [np.zeros(2, np.int64)]}
    assert kernel(b"%s,2\n" % (b"a" * 1000), **places) == (1, 2)
    assert kernel(b"%s,2\n" % (b"a" * 1001), **places)[0] == 0


def test_of_a_separator_of_two_letters_both_must_stand_there():
    assert kernel(b"1::2\n", separator=b"::") == (1, 2)
    assert kernel(b"1:;2\n", separator=b"::")[0] == kernel(b"1:2\n", separator=b"::")[0] == 0


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"text_places": [np.zeros(2, np.int64)] * 2}, "columns of texts=2 is out of range"),
        ({"text_places": [np.zeros(1, np.int64)]}, "places of texts: 1 where 2 are needed"),
        ({"text": b"1,2"}, "line end"),
        ({"text": b""}, "line end"),
        ({"fields": np.zeros(0, np.int8)}, "must be a field"),
        ({"values": np.zeros(0), "numbers": [np.zeros(0, np.int64)]}, "room for a row"),
        ({"values": np.zeros(3)}, "whole numbers: 2 where 3 are needed"),
        ({"fields": np.array([0, 1], np.int8)}, "field=1 is out of range"),
        ({"fields": np.array([-3], np.int8)}, "field=-3 is out of range"),
        ({"numbers": [np.zeros(2, np.int64)] * 9}, "columns=9 is out of range"),
        ({"separator": b""}, "letters of the separator=0"),
        ({"separator": b":::"}, "letters of the separator=3"),
        ({"separator": b"\n"}, "line end, a digit or a sign"),
        ({"separator": b":5"}, "line end, a digit or a sign"),
        ({"point": b""}, "letters of the point: 0 where 1 are needed"),
        ({"point": b"\r"}, "line end, a digit or a sign"),
    ],
)
def test_the_kernel_refuses_what_would_be_read_or_written_beyond_its_end(wrong, problem):
    with pytest.raises(ValueError, match=problem):
        kernel(**{"text": b"1,2\n"} | wrong)
