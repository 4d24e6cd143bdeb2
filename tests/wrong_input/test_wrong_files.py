"""Files of ratings, comparisons and features that are wrong in every way that we know: one line names file and line."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest
from helpers import tiny_toml
from wrong_input.no_files import a_folder, a_link_to_itself, a_link_to_nothing, a_pipe

GOOD = "user,item,rating\n1,10,4.5\n1,20,3\n7,10,1\n"
BARE = "1,10,4.5\n1,20,3\n7,10,1\n"
TEXT = "user,item,rating\nanna,b-1,4.5\nanna,x,3\nbo,b-1,1\n"


def zipped(text):
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("own.csv", text)
    return whole.getvalue()


def tarred(text):
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        about = tarfile.TarInfo("own.csv")
        about.size = len(text)
        archive.addfile(about, io.BytesIO(text.encode()))
    return whole.getvalue()


HEADERS = {
    "no rating": ("user,item,timestamp\n1,2,3\n", "line 1: the header 'user', 'item', 'timestamp'"),
    "no user": ("item,rating,timestamp\n1,2,3\n", "does not say which column is which"),
    "no item": ("user,rating,timestamp\n1,2,3\n", "does not say which column is which"),
    "unknown names": (
        "a,b,c\n1,2,3\n",
        "line 1: the header 'a', 'b', 'c' does not say which column is which of user, item, rating: write "
        "csv:PATH[user=NAME,item=NAME,rating=NAME], or header=no if this is a row",
    ),
    "unknown names among known": ("user,thing,rating\n1,2,3\n", "user=NAME,item=NAME,rating=NAME"),
    "two users": ("user,userId,item,rating\n1,2,3,4\n", "does not say"),
    "two items": ("user,movieId,isbn,rating\n1,2,3,4\n", "does not say"),
    "two ratings": ("user,item,rating,score\n1,2,3,4\n", "does not say"),
    "the same name twice": ("user,item,rating,rating\n1,2,3,4\n", "does not say"),
    "names of one letter": ("u,i,r\n1,2,3\n", "'u', 'i', 'r'"),
    "texts and no header": ("anna,b-1,good\n1,10,4\n", "or header=no if this is a row"),
    "another language": ("Nutzer,Artikel,Note\n1,2,3\n", "'Nutzer', 'Artikel', 'Note'"),
    "a title above": ("My ratings\nuser,item,rating\n1,2,3\n", "line 1: no comma, tab, semicolon or ::"),
    "two headers": (GOOD + GOOD, "line 5: rating 'rating' is no number"),
    "a header at the end": (BARE + "user,item,rating\n", "line 4: "),
    "a header alone": ("user,item,rating\n", "holds no rows"),
    "half a header": ("user,item\n1,2\n", "line 1: no comma"),
    "a header of another separator": ("user;item;rating\n1,2,3\n", "line 2: 1 fields where 3 are needed"),
    "names like numbers and words": ("1,2,rating\n1,2,3\n", "line 1: rating 'rating' is no number"),
    "a header of blanks": (" , , \n1,2,3\n", "does not say"),
    "a header of empty names": (",,\n1,2,3\n", "does not say"),
    "a very long header": (",".join(f"column{n}" for n in range(500)) + "\n", "'column0', 'column1'"),
    "R's row names": ("user,item,rating\n1,anna,b,3\n2,anna,c,4\n", "line 2: "),
    "more fields than names": (GOOD + "8,8,8,8\n", "line 5: 4 fields where the header has 3"),
    "a title with commas": ("user,title,item,rating\n1,a,2,3\n1,Oh, 3, 4,5\n", "line 3: 5 fields"),
}
ENCODINGS = {
    "latin-1 in the header": (
        "user,größe,rating\n".encode("latin-1"),
        "not utf-8 (byte 0xf6): save it as UTF-8",
    ),
    "latin-1 below": (TEXT.encode() + "anna,größe,3\n".encode("latin-1"), "line 5: not utf-8"),
    "cp1252 quotes": (TEXT.encode() + b"anna,\x93x\x94,3\n", "line 5: not utf-8 (byte 0x93)"),
    "utf-16": (GOOD.encode("utf-16"), "line 1: not utf-8"),
    "utf-16-le without a mark": (GOOD.encode("utf-16-le"), "line 1: control character"),
    "utf-16-be without a mark": (GOOD.encode("utf-16-be"), "line 1: control character"),
    "utf-32": (GOOD.encode("utf-32"), "line 1: not utf-8"),
    "half a letter at the end": (TEXT.encode() + "anna,ö,3".encode()[:6], "line 5: "),
    "a surrogate": (TEXT.encode() + b"anna,\xed\xa0\x80,3\n", "line 5: not utf-8"),
    "an overlong letter": (TEXT.encode() + b"anna,\xc0\xaf,3\n", "line 5: not utf-8"),
    "utf-7 marks only": (b"+/v8-user\n", "line 1: no comma"),
    "EBCDIC": (GOOD.encode("cp500"), "line 1: "),
}
CONTROLS = {
    f"{name} {where}": (GOOD + row.format(letter), "line 5: ")
    for name, letter in {"NUL": "\0", "escape": "\x1b", "delete": "\x7f", "backspace": "\b", "C1": "\x9b"}.items()
    for where, row in {"in an id": "9,1{}0,4\n", "in a rating": "9,10,{}4\n", "in text": "x,y{},4\n"}.items()
} | {
    f"{name} where nothing is read": (
        f"user,item,rating,x\n1,10,4.5,y\n9,10,4,a{letter}b\n",
        "line 3: control character",
    )
    for name, letter in {"NUL": "\0", "escape": "\x1b", "C1": "\x85"}.items()
}
QUOTES = {
    "a quote not closed": (GOOD + '"9,10,4\n', "line 5: "),
    "a quote not closed in further text": ('user,item,rating,x\n1,10,4,"a\n1,11,4,b\n', "own.csv cannot be read"),
    "a quote around a rating in words": (GOOD + '"9","10","four"\n', "line 5: rating 'four' is no number"),
    "quotes of a word processor": (GOOD + "9,10,“4”\n", "line 5: rating '“4”' is no number"),
    "single quotes": (GOOD + "9,10,'4'\n", "line 5: rating \"'4'\" is no number"),
    "a field too long for the reader": (GOOD + f'9,x,4x,"{"y" * 200_000}"\n', "line 5: field larger than"),
    "a separator in quotes": (GOOD + '"9,10,4"\n', "line 5: 1 fields where 3 are needed"),
}
NUMBERS = {
    f"a rating {shown}": (GOOD + f"9,10,{text}\n", f"line 5: rating {shown}")
    for text, shown in {
        "": "''", " ": "' '", "nan": "'nan' is no number", "NaN": "'NaN' is no number", "inf": "inf is out of range",
        "-inf": "-inf is out of range", "1e999": "inf is out of range", "good": "'good'", "4/5": "'4/5'",
        "4_0": "'4_0'",
        "0x4": "'0x4'", "４": "'４' is not written", "٤": "'٤'", "4.5.1": "'4.5.1'", "4-": "'4-'", "--4": "'--4'",
        "1e": "'1e'", "None": "'None'", "NULL": "'NULL'", "true": "'true'", "★★★": "'★★★'", "4 stars": "'4 stars'",
        "$4": "'$4'", "4%": "'4%'", "½": "'½'", "1+1j": "'1+1j'", "NA": "'NA'", "infinity!": "'infinity!'",
    }.items()
}  # fmt: skip
ROWS = {
    "nothing": ("", "own.csv holds no rows"),
    "blank lines": ("\n\r\n  \n\n", "own.csv holds no rows"),
    "a byte order mark alone": ("\ufeff", "own.csv holds no rows"),
    "one letter": ("x", "line 1: no comma"),
    "one number": ("7\n", "line 1: no comma"),
    "two fields": ("1,2\n3,4\n", "line 1: no comma, tab, semicolon or :: cuts '1,2'"),
    "spaces between": ("1 2 3\n", "line 1: no comma, tab, semicolon or :: cuts '1 2 3' into user, item, rating"),
    "pipes between": ("1|2|3\n", "set sep"),
    "a row cut short": (GOOD + "9,10\n", "line 5: 2 fields where 3 are needed"),
    "a row cut short among old-Mac lines": ((GOOD + "9,10\n").replace("\n", "\r"), "line 5: 2 fields"),
    "a row of text cut short": (TEXT + "bo,x\n", "line 5: 2 fields where 3 are needed"),
    "a comment at the end": (GOOD + "# the end\n", "line 5: 1 fields where 3 are needed"),
    "another separator below": (GOOD + "9;10;4\n", "line 5: 1 fields where 3 are needed"),
    "a decimal comma": ("1;2;3,5\n1;3;4,0\n", "rating '3,5' is no number: write a decimal point"),
    "a decimal comma in quotes": (GOOD + '9,10,"3,5"\n', "line 5: rating '3,5' is no number: write a decimal point"),
    "no user": (GOOD + ",10,4\n", "line 5: user '' is empty"),
    "no item": (GOOD + "9,,4\n", "line 5: item '' is empty"),
    "no user among texts": (TEXT + ",x,4\n", "line 5: user '' is empty"),
    "a pair twice": (GOOD + "1,10,2\n", "line 5: user 1, item 10 is on line 2 already"),
    "a pair of texts twice": (TEXT + "bo,b-1,5\n", "line 5: user bo, item b-1 is on line 4 already"),
    "an id of a thousand letters and one": (
        TEXT + f"anna,{'x' * 1001},4\n",
        "has 1,001 characters: at most 1,000",
    ),
    "a line of many megabytes": ("1,2,3" + "x" * (1 << 23), "line 1: longer than 4,194,304 bytes"),
    "JSON": ('{"user": 1, "item": 2, "rating": 3}\n', "line 1: "),
    "HTML": ("<!DOCTYPE html>\n<html><body>Not found</body></html>\n", "line 1: no comma"),
    "XML": ("<?xml version='1.0'?>\n<ratings/>\n", "line 1: no comma"),
    "a pickle": (b"\x80\x04\x95\x0c\x00\x00\x00", "line 1: not utf-8"),
    "a PDF": (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", "line 2: not utf-8"),
    "an executable": (b"\x7fELF\x02\x01\x01\x00\n", "line 1: control character"),
    "SQL": ("INSERT INTO ratings VALUES (1, 2, 3);\n", "line 1: "),
    "a sparse matrix of svmlight": ("1 1:0.5 2:1\n", "line 1: no comma"),
}
PACKED = {
    "gzip under a wrong name": ("own.csv", gzip.compress(GOOD.encode()), "own.csv is compressed (gzip)"),
    "a zip": ("own.zip", zipped(GOOD), "own.zip is compressed (zip)"),
    "bzip2": ("own.csv.bz2", bz2.compress(GOOD.encode()), "is compressed (bzip2)"),
    "xz": ("own.csv.xz", lzma.compress(GOOD.encode()), "is compressed (xz)"),
    "zstd": ("own.csv.zst", b"\x28\xb5\x2f\xfd\x04\x00", "is compressed (zstd)"),
    "a tar": ("own.tar", tarred(GOOD), "line 1: control character"),
    "no gzip at all": ("own.csv.gz", GOOD.encode(), "own.csv.gz is cut or damaged"),
    "gzip cut": ("own.csv.gz", gzip.compress(GOOD.encode() * 100)[:-20], "own.csv.gz is cut or damaged"),
    "gzip with a wrong checksum": ("own.csv.gz", gzip.compress(GOOD.encode())[:-8] + bytes(8), "is cut or damaged"),
    "gzip with wrong bytes": ("own.csv.gz", gzip.compress(GOOD.encode())[:15] + b"\xff" * 40, "is cut or damaged"),
    "gzip of nothing": ("own.csv.gz", gzip.compress(b""), "own.csv.gz holds no rows"),
    "gzip in gzip": ("own.csv.gz", gzip.compress(gzip.compress(GOOD.encode())), "is compressed (gzip)"),
    "a tar in gzip": ("own.csv.gz", gzip.compress(tarred(GOOD)), "line 1: control character"),
    "an empty gzip": ("own.csv.gz", b"", "own.csv.gz holds no rows"),
    "two bytes of gzip": ("own.csv.gz", b"\x1f\x8b", "own.csv.gz is cut or damaged"),
}
PAIRS = {
    "unknown names": ("a,b,c\n1,2,3\n", "pairs:PATH[user=NAME,better=NAME,worse=NAME]"),
    "ratings": ("user,item,rating\nanna,b,c\n", "line 1: the header 'user', 'item', 'rating'"),
    "two winners": ("user,better,winner,worse\n1,2,3,4\n", "does not say"),
    "an item against itself": ("1,2,2\n", "line 1: item 2 is compared with itself: take the row out"),
    "a text against itself": ("bo,b,b\n", "line 1: item b is compared with itself"),
    "a row cut short": ("1,2,3\n1,2\n", "line 2: 2 fields where 3 are needed"),
    "a row of texts cut short": ("bo,b,c\nbo,b\n", "line 2: 2 fields where 3 are needed: 'bo,b'"),
    "a first row cut short": ("1,20\n1,2,3\n", "no comma, tab, semicolon or :: cuts '1,20' into user, better"),
    "no winner": ("user,better,worse\n1,2,3\n1,,2\n", "line 3: better '' is empty"),
    "no loser": ("user,better,worse\nbo,b,\n", "line 2: worse '' is empty"),
    "NUL": ("user,better,worse\nbo,b\0,c\n", "line 2: "),
    "nothing": ("", "own.csv holds no rows"),
    "a header alone": ("user,better,worse\n", "own.csv holds no rows"),
    "latin-1": ("bo,b,ö\n".encode("latin-1"), "line 1: not utf-8"),
    "a field too many": ("user,better,worse\n1,2,3\n1,2,3,4\n", "line 3: 4 fields where the header has 3"),
}
FEATURES = {
    "an item without a row": ("item,year\n10,2001\n", "has no row for item 20"),
    "a row cut short": ("item,a,b\n10,1,2\n20,1\n", "line 3: 2 fields where 3 are needed"),
    "a row too long": ("item,a\n10,1\n20,1,2\n", "line 3: 3 fields where 2 are needed"),
    "a word": ("item,a\n10,1\n20,old\n", "line 3: feature 'old' is no number"),
    "full-width digits": ("item,a\n10,1\n20,４\n", "line 3: feature '４' is not written with the digits"),
    "underscores": ("item,a\n10,1\n20,1_0\n", "line 3: feature '1_0' is no number"),
    "nan": ("item,a\n10,1\n20,nan\n", "line 3: feature 'nan' is not finite"),
    "overflow": ("item,a\n10,1\n20,1e999\n", "line 3: feature '1e999' is not finite"),
    "an item twice": ("item,a\n10,1\n20,1\n10,1\n", "line 4: item 10 is on line 2 already"),
    "the item is not first": ("year,movieId\n2001,10\n", "line 1: 'movieId' must be the first column"),
    "leading zeros": ("item,a\n010,1\n20,1\n", "has no row for item 10"),
    "no feature": ("10\n20\n", "line 1: no comma, tab, semicolon or :: cuts '10' into item, feature"),
    "nothing": ("", "features.csv holds no rows"),
    "NUL": ("item,a\0\n10,1\n", "line 1: control character"),
    "latin-1": ("item,größe\n".encode("latin-1"), "line 1: not utf-8"),
}
RATINGS = {**HEADERS, **ENCODINGS, **CONTROLS, **QUOTES, **NUMBERS, **ROWS}


@pytest.fixture
def answer(cli, monkeypatch, here):
    """What the command line says of a file with this content, as data by this name."""
    monkeypatch.setenv("RANKBENCH_CACHE", str(here / "cache"))
    toml = tiny_toml(here)

    def said(content, data="csv:own.csv", file="own.csv"):
        (here / file).write_bytes(content if isinstance(content, bytes) else content.encode())
        return cli.refuses("run", toml, "-d", data, "--dry-run", "--out", "out")

    return said


@pytest.mark.parametrize(("content", "fragment"), RATINGS.values(), ids=RATINGS)
def test_wrong_ratings_are_one_line_that_names_the_file_and_the_line(answer, content, fragment):
    found = answer(content)
    assert "own.csv" in found and fragment in found


@pytest.mark.parametrize(("file", "content", "fragment"), PACKED.values(), ids=PACKED)
def test_a_wrong_archive_is_named(answer, file, content, fragment):
    found = answer(content, f"csv:{file}", file)
    assert file in found and fragment in found


@pytest.mark.parametrize(("content", "fragment"), PAIRS.values(), ids=PAIRS)
def test_wrong_comparisons_are_one_line_that_names_the_file_and_the_line(answer, content, fragment):
    found = answer(content, "pairs:own.csv")
    assert "own.csv" in found and fragment in found


@pytest.mark.parametrize(("content", "fragment"), FEATURES.values(), ids=FEATURES)
def test_wrong_features_are_one_line_that_names_the_file_and_the_line(answer, tmp_path, content, fragment):
    (tmp_path / "own.csv").write_text(GOOD)
    found = answer(content, "csv:own.csv[features=features.csv]", "features.csv")
    assert "features.csv" in found and fragment in found


@pytest.mark.parametrize("make", [a_folder, a_pipe, a_link_to_nothing, a_link_to_itself])
@pytest.mark.parametrize("kind", ["csv", "pairs"])
def test_what_is_no_file_is_named(cli, here, make, kind):
    make(here / "thing.csv")
    found = cli.refuses("run", tiny_toml(here), "-d", f"{kind}:thing.csv", "--dry-run")
    assert "no file 'thing.csv': check the path" in found
