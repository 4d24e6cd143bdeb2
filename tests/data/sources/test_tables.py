"""Text files to views: every supported format, and errors that name the file and the line."""

import csv
import gzip
import io
import re
import zipfile
from dataclasses import replace

import numpy as np
import pandas
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from rankbench.core.errors import UserError
from rankbench.data import building
from rankbench.data.building import Counts, expect, numbered, ratings
from rankbench.data.features import Features, decade, kinds, title_words
from rankbench.data.files import File
from rankbench.data.tables import identified, lines, parsing, read, records
from rankbench.data.tables.layout import Layout
from rankbench.data.tables.watched import Seen, Watched, has_leading_zeros

CSV = Layout()
STARS = Layout(scale=(0.5, 5), step=0.5)
NAMED = Layout(text_ids=True)
PAIRS = Layout(names=("user", "better", "worse"), valued=False)


@pytest.fixture
def write(tmp_path):
    """Writes a file; returns it as sources find it."""

    def written(content, name="rows.csv", member=None):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return File(path, member)

    return written


def columns(rows):
    """What was read, as plain lists."""
    values = [] if rows.values is None else [rows.values.tolist()]
    return [column.tolist() for column in rows.ids] + values


def assert_refused(file, layout, message, build=lambda rows: rows):
    """Reading must fail with one line that begins with the file's name and holds the message."""
    with pytest.raises(UserError, match=re.escape(message)) as error:
        build(read(file, layout))
    assert str(error.value).startswith(str(file)) and "\n" not in str(error.value)


def outcome(file, layout):
    """What was read, or the error's text."""
    try:
        rows = read(file, layout)
    except UserError as error:
        return str(error)
    return [*columns(rows), rows.times if rows.times is None else rows.times.tolist(), rows.dropped, rows.padded]


# ---- large files, in pieces ----


@pytest.fixture
def in_pieces(monkeypatch):
    """Lets pandas parse a file in pieces of so many bytes, by three threads; gives the pieces as they came."""
    seen, cut = [], parsing.pieces_of

    def noted(*given):
        for piece in cut(*given):
            seen.append(bytes(piece))
            yield piece

    def of(size):
        seen.clear()
        monkeypatch.setattr(parsing, "_PIECE", size)
        monkeypatch.setattr(parsing, "pieces_of", noted)
        monkeypatch.setattr(parsing, "plain", lambda *_: None)
        monkeypatch.setattr(parsing, "usable_cores", lambda: 3)
        return seen

    return of


ROWS = "".join(f"{row % 7},{row * row % 11},{row % 5},{row + 9}\n" for row in range(60))
STRICT = Layout(strict=True, quoted=True, width=4, header=1, time=3)


@pytest.mark.parametrize(
    ("content", "layout"),
    [
        (ROWS, CSV),
        (ROWS, Layout(time=3)),
        (ROWS.rstrip("\n"), CSV),
        (ROWS.replace("\n", "\r\n"), CSV),
        (ROWS.replace("\n", "\n" * 200), CSV),
        (ROWS.replace(",", "::"), Layout(separator="::", time=3)),
        ("\ufeffuser,item,rating,time\n" + ROWS, STRICT),
        ("user,item,rating,time\n" + ROWS + "003,1,2,9\n", STRICT),
        ("user,item,rating,time\n" + ROWS + '1,2,3,"x",5\n', Layout(strict=True, width=4, header=1)),
        (ROWS, Layout(text_ids=True)),
        (ROWS.replace("\n3,", "\nsomebody with a longer name,"), Layout(text_ids=True)),
        (ROWS.replace(",2,", ",,"), Layout(drop_missing=True, text_ids=True)),
    ],
)
def test_in_pieces_a_file_holds_what_it_holds_as_a_whole(write, in_pieces, content, layout):
    file = write(content)
    as_a_whole = outcome(file, layout)
    pieces = in_pieces(64)
    assert outcome(file, layout) == as_a_whole and isinstance(as_a_whole, list)
    assert len(pieces) > 5 and b"".join(pieces) == content.encode()
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])


@pytest.mark.parametrize(
    ("content", "layout"),
    [
        ('"a\nb",1,2\n' * 40, Layout(text_ids=True, quoted=True)),
        ("a,1,2\n" * 40 + '"a\nb",1,2', Layout(text_ids=True, quoted=True)),
        ("a\\\nb,1,2\n" * 40, Layout(text_ids=True, quoted=True, escape="\\")),
        (ROWS.replace("\n", "\r"), CSV),
        (ROWS + "\ufeff" + ROWS, Layout(text_ids=True)),
    ],
    ids=["quotes", "late quotes", "escapes", "old Macs", "a mark amid the file"],
)
def test_where_a_row_may_go_on_in_another_piece_the_file_is_parsed_as_a_whole(write, in_pieces, content, layout):
    file = write(content)
    as_a_whole = outcome(file, layout)
    for size in range(30, 90, 3):
        in_pieces(size)
        assert outcome(file, layout) == as_a_whole


@pytest.mark.slow
@given(st.text('01,\n\r"x\x00\x01 \ufeff', max_size=300), st.integers(8, 60), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_in_pieces_any_text_reads_or_fails_as_it_does_as_a_whole(tmp_path_factory, text, size, strict, quoted):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(("1,0,1\n" * 9 + text + "\n" + "0,1,0\n" * 9).encode())
    layout, file = Layout(strict=strict, quoted=quoted), File(path, None)
    with pytest.MonkeyPatch.context() as own:
        own.setattr(parsing, "plain", lambda *_: None)
        as_a_whole = outcome(file, layout)
        own.setattr(parsing, "_PIECE", size)
        own.setattr(parsing, "usable_cores", lambda: 2)
        assert outcome(file, layout) == as_a_whole


@pytest.mark.parametrize("kind", ["zeros", "controls", "padded", "quotes"])
def test_what_one_of_two_pieces_holds_both_hold_together(kind):
    one = replace(Seen(separators=2), **{kind: True})
    together = replace(one, separators=5)
    assert one.followed_by(Seen(separators=3)) == Seen(separators=3).followed_by(one) == together


def test_no_more_pieces_wait_in_memory_than_are_parsed_at_a_time(write, in_pieces, monkeypatch):
    file, seen, ahead, part = write(ROWS), in_pieces(16), [], parsing._part

    def noted(stream, layout):
        ahead.append(len(seen) - len(ahead))
        return part(stream, layout)

    monkeypatch.setattr(parsing, "_part", noted)
    assert len(read(file, CSV).values) == 60 and len(seen) > 30
    assert max(ahead) <= 3 + 2  # threads; one more waits, and one has just been read


def test_a_packed_file_is_parsed_in_pieces_too(write, in_pieces):
    file = write(gzip.compress(ROWS.encode()), "rows.csv.gz")
    as_a_whole = outcome(file, CSV)
    pieces = in_pieces(64)
    assert outcome(file, CSV) == as_a_whole and len(pieces) > 5


@pytest.mark.parametrize("wrong", ["1,2,x\n", "1\n", "1,2,9\n", "1,2,3,4,5\n", "1,2\x01,3\n"])
def test_a_mistake_in_a_late_piece_is_named_by_its_line(write, in_pieces, wrong):
    file = write("a,b,c,d\n" + ROWS + wrong + ROWS)
    layout = Layout(strict=True, width=4, header=1, scale=(0, 5))
    as_a_whole = outcome(file, layout)
    in_pieces(64)
    assert outcome(file, layout) == as_a_whole and ", line 62: " in as_a_whole


def test_a_large_file_without_rows_is_refused(write, in_pieces):
    in_pieces(8)
    assert_refused(write("\n" * 99), CSV, "holds no rows")


# ---- what is read ----


@pytest.mark.parametrize(
    ("content", "layout"),
    [
        ("1,20,3.5\n7,10,4\n", CSV),
        ("1,20,3.5\n7,10,4", CSV),
        ("1,20,3.5\r\n7,10,4\r\n", CSV),
        ("\n1,20,3.5\n\n   \n7,10,4\n\n", CSV),
        ("\ufeff1,20,3.5\n7,10,4\n", CSV),
        ("1,20,3.5,\n7,10,4,,,note\n", CSV),
        ("u,i,r\n1,20,3.5\n7,10,4\n", Layout(header=1)),
        ("% bip\n% weighted\n1,20,3.5\n7,10,4\n", Layout(header=2)),
        ("1\t20\t3.5\n7\t10\t4\n", Layout(separator="\t")),
        ("1::20::3.5\n7::10::4\n", Layout(separator="::")),
        ("1::20::3.5::978300760\r\n7::10::4::978300761\r\n", Layout(separator="::")),
        ('"1";"20";"3.5"\n"7";"10";"4"\n', Layout(separator=";", quoted=True)),
        ("3.5,x,20,1\n4,y,10,7\n", Layout(fields=(3, 2, 0))),
        ("1,20,3.5,a\x00b\n7,10,4,c\n", CSV),
        ("1,20,3.5,é\n7,10,4,è\n".encode("latin-1"), Layout(encoding="latin-1")),
    ],
)
def test_the_same_rows_written_in_many_ways(write, content, layout):
    assert columns(read(write(content), layout)) == [[1, 7], [20, 10], [3.5, 4]]


def test_names_may_be_ids_and_quotes_may_hide_separators_and_quotes(write):
    text = '"ann";"a;b";"1"\nbob;"say ""hi""";2\n'
    layout = Layout(separator=";", text_ids=True, quoted=True)
    assert columns(read(write(text), layout)) == [["ann", "bob"], ["a;b", 'say "hi"'], [1, 2]]
    assert columns(read(write("an'n,\"b,1\n"), NAMED)) == [["an'n"], ['"b'], [1]]  # unquoted: a quote is a letter
    assert columns(read(write("NA,null,1\nnan,007,2\n"), NAMED)) == [["NA", "nan"], ["null", "007"], [1, 2]]


def test_comparisons_have_no_value(write):
    assert columns(read(write("1,2,3\n1,3,4\n"), PAIRS)) == [[1, 1], [2, 3], [3, 4]]


def test_ids_of_64_bits_and_numbers_to_the_last_bit(write):
    text = f"{2**63 - 1},-{2**63},0.1\n0,1,-9.95\n0,2,5e-324\n0,3,1.7976931348623157e308\n"
    users, items, values = columns(read(write(text), CSV))
    assert (users[0], items[0]) == (2**63 - 1, -(2**63))
    assert values == [0.1, -9.95, 5e-324, 1.7976931348623157e308]


@pytest.mark.slow
def test_rows_beyond_the_first_of_many_pieces_are_read_and_checked_too(write):
    rows = [f"{row},{row % 7},{row % 5 + 1}\n" for row in range(150_000)]
    users, items, values = columns(read(write("".join(rows)), CSV))
    assert users == list(range(150_000))
    assert (items[140_000], values[140_000]) == (140_000 % 7, 140_000 % 5 + 1)
    rows[140_000] = f"{BIG},1,1\n"
    assert_refused(write("".join(rows)), CSV, f"line 140001: user '{BIG}' does not fit into 64 bits")
    names = [f"{'u' * (1 + row // 50_000)},{row},1\n" for row in range(150_000)]
    assert columns(read(write("".join(names)), NAMED))[0][::50_000] == ["u", "uu", "uuu"]


@pytest.mark.parametrize("seed", range(3))
def test_numbers_are_read_as_python_reads_them(write, seed):
    values = np.random.default_rng(seed).standard_normal(2_000) * 10.0 ** np.arange(-100, 100).repeat(10)
    text = "".join(f"{user},0,{value!r}\n" for user, value in enumerate(values.tolist()))
    np.testing.assert_array_equal(read(write(text), CSV).values, values)


def test_archives_are_read_as_what_they_hold(write):
    text, whole = b"1,2,3\n4,5,6\n", io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("a/b/rows.csv", text)
    expected = columns(read(write(text), CSV))
    assert columns(read(write(gzip.compress(text), "rows.csv.gz"), CSV)) == expected
    assert columns(read(write(whole.getvalue(), "all.zip", "a/b/rows.csv"), CSV)) == expected


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples."""
    return tmp_path_factory.mktemp("written")


TRIPLES = st.lists(
    st.tuples(st.integers(0, 2**40), st.integers(-5, 60), st.integers(1, 10)),
    min_size=1,
    max_size=30,
    unique_by=lambda row: row[:2],
)


@pytest.mark.slow
@settings(max_examples=40)
@given(TRIPLES, st.sampled_from([",", "\t", "::", ";"]), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_what_is_written_is_what_is_read(folder, rows, separator, end):
    path = folder / "rows"
    path.write_text("".join(f"{u}{separator}{i}{separator}{v / 2}{end}" for u, i, v in rows), newline="")
    layout = Layout(separator=separator, scale=(0.5, 5), step=0.5)
    view = ratings(read(File(path), layout))
    table = pandas.DataFrame(rows, columns=["u", "i", "v"]).sort_values(["u", "i"])
    np.testing.assert_array_equal(view.user_ids[view.users], table["u"])
    np.testing.assert_array_equal(view.item_ids[view.items], table["i"])
    np.testing.assert_array_equal(view.values, table["v"] / 2)
    assert view.user_ids.tolist() == sorted(set(table["u"])) and view.item_ids.tolist() == sorted(set(table["i"]))


def test_a_separator_of_two_letters_is_seen_where_they_arrive_one_at_a_time():
    class Slow(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 1))

    watched, found = Watched(Slow(b"1::20:::3"), Layout(separator="::")), b""
    while piece := watched.read(16):
        found += piece
    assert found == b"1\x1f20\x1f:3"


# ---- what is refused ----

TWO = "1,2,3\n1,4,5\n"
BIG = 2**63
MISTAKES = {
    "too few fields": (CSV, TWO + "1,5\n", "line 3: 2 fields where 3 are needed: '1,5'"),
    "too few fields at once": (CSV, "1,5\n" + TWO, "line 1: 2 fields where 3 are needed: '1,5'"),
    "too few fields after blank lines": (CSV, "1,2,3\n\n   \n1,5\n", "line 4: 2 fields where 3 are needed: '1,5'"),
    "too few fields below a header": (Layout(header=1), "u,i,r\n1,5\n", "line 2: 2 fields where 3 are needed"),
    "too few fields, CRLF": (CSV, "1,2,3\r\n1,5\r\n", "line 2: 2 fields where 3 are needed: '1,5'"),
    "too few names": (NAMED, "a,b,1\na\n", "line 2: 1 fields where 3 are needed: 'a'"),
    "too few of a pair": (Layout(valued=False, text_ids=True), "a,b,c\na,b\n", "line 2: 2 fields where 3 are needed"),
    "too few of ::": (Layout(separator="::"), "1::2::3\n1::2\n", "line 2: 2 fields where 3 are needed: '1::2'"),
    "one : for ::": (Layout(separator="::"), "1::2::3\n1:4:5:6:7\n", "line 2: 1 fields where 3 are needed"),
    "three : for ::": (Layout(separator="::"), "1::2::3\n1:::4::5\n", "line 2: item ':4' is no whole number"),
    "a separator of another kind": (Layout(separator="\t"), TWO, "line 1: 1 fields where 3 are needed: '1,2,3'"),
    "an open quote": (Layout(quoted=True), '1,2,3\n"1,2,3\n1,4,5\n', "line 2: 1 fields where 3 are needed"),
    "a header where none is said": (CSV, "user,item,rating\n" + TWO, "line 1: user 'user' is no whole number"),
    "an id that overflows": (CSV, TWO + f"{BIG},5,6\n", f"line 3: user '{BIG}' does not fit into 64 bits"),
    "an id that underflows": (CSV, TWO + f"1,{-BIG - 1},6\n", f"line 3: item '{-BIG - 1}' does not fit into 64 bits"),
    "nothing but ids that overflow": (CSV, f"{BIG},5,6\n", f"line 1: user '{BIG}' does not fit into 64 bits"),
    "an id of twenty digits": (CSV, TWO + "99999999999999999999,5,6\n", "does not fit into 64 bits"),
    "an id with a fraction": (CSV, TWO + "1.5,5,6\n", "line 3: user '1.5' is no whole number"),
    "a name for an id": (CSV, TWO + "1,b7,6\n", "line 3: item 'b7' is no whole number"),
    "a name for a comparison's item": (PAIRS, "1,2,3\n1,2,x\n", "line 2: worse 'x' is no whole number"),
    "an empty id": (CSV, TWO + ",5,6\n", "line 3: user '' is no whole number"),
    "an empty name": (NAMED, "a,b,1\na,,1\n", "line 2: item '' is empty"),
    "an id with a thousands mark": (CSV, TWO + "1_000,5,6\n", "line 3: user '1_000' is no whole number"),
    "a quoted id where none is said": (CSV, '"1",2,3\n', "line 1: user '\"1\"' is no whole number"),
    "a word for a rating": (CSV, TWO + "1,5,good\n", "line 3: rating 'good' is no number"),
    "an empty rating": (CSV, TWO + "1,5,\n", "line 3: rating '' is no number"),
    "a missing rating": (CSV, TWO + "1,5,NA\n", "line 3: rating 'NA' is no number"),
    "not a number": (CSV, TWO + "1,5,nan\n", "line 3: rating 'nan' is no number"),
    "a decimal comma": (Layout(separator=";"), "1;2;3,5\n", "line 1: rating '3,5' is no number"),
    "a rating with a thousands mark": (CSV, TWO + "1,5,1_0\n", "line 3: rating '1_0' is no number"),
    "infinity": (CSV, TWO + "1,5,inf\n", "line 3: rating inf is out of range: must be finite"),
    "a rating that overflows": (CSV, TWO + "1,5,-1e999\n", "line 3: rating -inf is out of range: must be finite"),
    "below the scale": (STARS, "1,2,3\n1,4,0\n", "line 2: rating 0 is out of range: must be from 0.5 to 5"),
    "above the scale": (STARS, "1,2,3\n\n1,4,5.5\n", "line 3: rating 5.5 is out of range: must be from 0.5 to 5"),
    "infinity above a line with too few fields": (CSV, "1,5,inf\n1,5\n", "line 1: rating inf is out of range: must be"),
    "infinity off a scale": (Layout(scale=(0, np.inf)), "1,2,inf\n", "line 1: rating inf is out of range: must be at"),
    "between two steps": (
        STARS,
        "1,2,3\n1,4,3.7\n",
        "rating 3.7 is out of range: must be from 0.5 to 5 in steps of 0.5",
    ),
    "below an open scale": (Layout(scale=(0, np.inf)), "1,2,-3\n", "rating -3 is out of range: must be at least 0"),
    "above an open scale": (Layout(scale=(-np.inf, 5)), "1,2,6\n", "rating 6 is out of range: must be at most 5"),
    "Latin-1 for UTF-8": (CSV, TWO.encode() + b"1,\xe9,6\n", "line 3: not utf-8 (byte 0xe9)"),
    "Latin-1 for UTF-8 in a name": (NAMED, b"a,b,1\na,caf\xe9,1\n", "line 2: not utf-8 (byte 0xe9)"),
    "UTF-16": (CSV, TWO.encode("utf-16"), "line 1: not utf-8 (byte 0xff)"),
    "zeros where a disk failed": (CSV, TWO.encode() + bytes(9), "line 3: 1 fields where 3 are needed"),
    "a zero in a number": (CSV, b"1,2,3\n1,4\x00,5\n", "line 2: item '4\\x00' is no whole number"),
    "a zero at the end of a number": (CSV, b"1,2,3\n1,4,5\x00\n", "line 2: rating '5\\x00' is no number"),
    "a zero in a name": (NAMED, b"a,b,1\na,c\x00d,1\n", "line 2: item 'c\\x00d' holds a zero byte"),
    "a zero in a file of ::": (Layout(separator="::"), b"1::2\x00::3\n", "line 1: item '2\\x00' is no whole number"),
    "ends of lines that are not ours": (STARS, "1,2,3\r1,4,9\r", "line 2: rating 9 is out of range"),
    "nothing": (CSV, "", "holds no rows"),
    "nothing but blank lines": (CSV, "\n\r\n\n", "holds no rows"),
    "nothing but a header": (Layout(header=1), "u,i,r\n", "holds no rows"),
}


@pytest.mark.parametrize(("layout", "content", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_with_its_file_and_line(write, layout, content, message):
    assert_refused(write(content), layout, message)


@pytest.mark.parametrize("mistake", ["too few fields", "an id that overflows", "above the scale", "UTF-16", "nothing"])
def test_a_mistake_in_an_archive_is_named_as_well(write, mistake):
    layout, content, message = MISTAKES[mistake]
    content = content if isinstance(content, bytes) else content.encode()
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("a/rows.csv", content)
    assert_refused(write(gzip.compress(content), "rows.csv.gz"), layout, message)
    assert_refused(write(whole.getvalue(), "all.zip", "a/rows.csv"), layout, message)


# ---- what is damaged ----

LONG = b"".join(b"%d,%d,3\n" % (row, row % 7) for row in range(30_000))


def test_a_cut_or_changed_gz_is_named(write):
    packed = gzip.compress(LONG)
    middle = len(packed) // 2
    changed = packed[:middle] + bytes([packed[middle] ^ 255]) + packed[middle + 1 :]
    for content in (packed[:-1], packed[:middle], packed[:5], changed, LONG):
        with pytest.raises(UserError, match=r"rows\.csv\.gz is cut or damaged \(.+\): get the file again"):
            read(write(content, "rows.csv.gz"), CSV)


def test_a_cut_or_changed_zip_is_named(write):
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/rows.csv", LONG)
    packed = whole.getvalue()
    middle = len(packed) // 2
    changed = packed[:middle] + bytes([packed[middle] ^ 255]) + packed[middle + 1 :]
    for content in (packed[:-30], packed[:middle], changed, LONG, b""):
        with pytest.raises(UserError, match=r"all\.zip/a/rows\.csv is cut or damaged \(.+\): get the file again"):
            read(write(content, "all.zip", "a/rows.csv"), CSV)


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(UserError, match=r"cannot read .*absent\.csv: No such file or directory"):
        read(File(tmp_path / "absent.csv"), CSV)
    with pytest.raises(UserError, match=r"cannot read .*: Is a directory"):
        read(File(tmp_path), CSV)


# ---- small files ----


def test_lines_keep_their_numbers(write):
    assert list(lines(write("a\r\n\n  \nb \n"))) == [(1, "a"), (4, "b ")]
    with pytest.raises(UserError, match=r"line 2: not utf-8 \(byte 0xe9\)"):
        list(lines(write(b"ok\n\xe9\n")))
    assert list(lines(write(b"\xe9\n"), "latin-1")) == [(1, "é")]


def test_records_are_what_the_csv_module_reads(write):
    text = 'h\n1,"a, b","say ""x"""\n2,c,d\n'
    found = list(records(write(text), ",", 3, header=1, quoted=True))
    assert found == list(zip([2, 3], list(csv.reader(io.StringIO(text)))[1:], strict=True))
    with pytest.raises(UserError, match=r"line 3: 3 fields where 4 are needed: '2,c,d'"):
        list(records(write("1,2,3,4\n\n2,c,d\n"), ",", 4))


def test_the_id_of_a_record_must_be_a_whole_number(write):
    file = write("7|a\n\nx|b\n")
    found = identified(records(file, "|", 2), file)
    assert next(found) == (7, ["7", "a"])
    with pytest.raises(UserError, match=r"rows\.csv, line 3: id 'x' is no whole number"):
        next(found)


# ---- from rows to views ----


@pytest.mark.parametrize("low", [0, -3, 60_000_000])
@pytest.mark.parametrize("kind", [np.int64, np.str_])
def test_ids_are_numbered_in_their_order(low, kind):
    ids = (low + np.random.default_rng(0).integers(0, 50, 300)).astype(kind)
    distinct, codes = np.unique(ids, return_inverse=True)
    found, numbers = numbered(ids)
    assert found.tolist() == distinct.tolist() and numbers.tolist() == codes.tolist()


REPEATED = "1,20,3\n2,20,1\n\n1,20,5\n1,10,2\n2,20,4\n"


def test_a_repeated_pair_is_named_with_both_lines(write):
    message = "line 4: user 1, item 20 is on line 1 already: keep one of the two rows"
    assert_refused(write(REPEATED), CSV, message, ratings)
    message = "line 3: user ann, item x is on line 2 already"
    assert_refused(write("bob,x,3\nann,x,3\nann,x,3\n"), NAMED, message, ratings)


def test_the_last_of_a_repeated_pair_wins_where_the_source_says_so(write):
    folds = np.array([1, 2, 3, 4, 5], np.int8)
    view = ratings(read(write(REPEATED), CSV), repeats="last", folds=folds)
    assert view.user_ids[view.users].tolist() == [1, 1, 2]
    assert view.item_ids[view.items].tolist() == [10, 20, 20]
    assert (view.values.tolist(), view.folds.tolist()) == ([2, 5, 4], [4, 3, 5])


def test_folds_follow_their_rows(write):
    view = ratings(read(write("2,1,4\n1,9,3\n1,2,5\n"), CSV), folds=np.array([3, 2, 1], np.int8))
    assert (view.values.tolist(), view.folds.tolist()) == ([5, 3, 4], [1, 2, 3])


def test_some_rows_still_know_their_lines(write):
    rows = read(write("u,i,r\n1,1,0\n\n1,2,3\n1,3,0\n1,2,4\n"), Layout(header=1))
    with pytest.raises(UserError, match="line 6: user 1, item 2 is on line 4 already"):
        ratings(rows.take(np.flatnonzero(rows.values)))


def test_counts_that_differ_are_refused_by_name(write):
    view = ratings(read(write("1,1,5\n2,1,4\n2,2,4\n"), CSV))
    expect(view, Counts(3, 2, 2), "mine")
    for counts in (Counts(4, 2, 2), Counts(3, 1, 2), Counts(3, 2, 1)):
        with pytest.raises(UserError) as error:
            expect(view, counts, "mine")
        found = "mine holds 2 users, 2 items, 3 ratings where"
        assert str(error.value) == f"{found} {counts} were published: the files are cut or another edition"


# ---- features ----


def test_features_are_the_words_of_the_items_that_are_there(write):
    words = {"genres": {1: ["War", "Drama"], 3: ["Drama"], 9: ["Western"]}, "years": {3: ["1990s"]}}
    view = ratings(read(write("5,1,1\n5,2,1\n6,3,1\n"), CSV), Features(words))
    assert view.feature_names.tolist() == ["genres:Drama", "genres:War", "years:1990s"]
    assert view.item_features.tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 1]]
    with pytest.raises(UserError, match="no item has any genres: leave these features out"):
        ratings(read(write("5,4,1\n"), CSV), Features({"genres": words["genres"]}))


def test_many_features_are_sparse_and_the_same():
    rng = np.random.default_rng(0)
    table = {item: [f"w{word:03d}" for word in rng.integers(0, 300, 5)] for item in range(80)}
    block = Features({"titles": table}).of(np.arange(80))
    assert scipy.sparse.issparse(block.matrix) and block.matrix.shape[1] > 100
    expected = pandas.Series(table).str.join("|").str.get_dummies("|")
    np.testing.assert_array_equal(block.matrix.toarray(), expected)
    assert block.names.tolist() == [f"titles:{word}" for word in expected]


def test_titles_are_words_and_a_decade():
    assert title_words("Alien³: Director's Cut_2 (1992)") == ["alien³", "director", "s", "cut", "2"]
    assert title_words("2001: A Space Odyssey (1968) ") == ["2001", "a", "space", "odyssey"]
    assert decade("2001: A Space Odyssey (1968) ") == ["1960s"]
    assert decade("Fawlty Towers (1975-1979)") == decade("Hyena Road") == []


def test_kinds_are_asked_for_by_name():
    assert kinds("titles+genres+titles", ("genres", "titles")) == ("titles", "genres")
    assert kinds("none", ("genres",)) == ()
    for text in ("actors", "genres+", "", "none+genres"):
        with pytest.raises(UserError, match="choose from genres, titles, joined by \\+, or none"):
            kinds(text, ("genres", "titles"))


def test_wide_ids_are_not_numbered_by_a_table_of_their_size(monkeypatch):
    monkeypatch.setattr(building.np, "zeros", lambda *size: pytest.fail("a table of a thousand million places"))
    assert numbered(np.array([10**9, 5, 10**9]))[0].tolist() == [5, 10**9]


@pytest.mark.parametrize("block", [b"1,07,1\n", b"12,07,1\n", b"1,7\n07,1\n", b"1,17\n07,1\n", b'"1","07"\n'])
def test_leading_zeros_are_found_wherever_their_field_begins(block):
    assert has_leading_zeros(block, ord(","))
    assert not has_leading_zeros(block.replace(b"07", b"70"), ord(","))
    assert not has_leading_zeros(block.replace(b"07", b"0"), ord(","))
