"""A user's own ratings: every separator, with and without a header, both kinds of ids, features, malformed lines."""

import gzip
import os
import warnings

import pandas
import pytest
from data.sources.at_hand import lines, refusal, triples, view_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rankbench
from rankbench.arrays.npz import fingerprint
from rankbench.core.errors import UserError
from rankbench.data import DATASETS, files
from rankbench.data.sources import csv_ratings
from rankbench.data.sources.csv_ratings import OwnRatings

pytestmark = pytest.mark.usefixtures("folders")

ROWS = [(1, 10, 4.5), (1, 20, 3.0), (7, 10, 1.0)]
TEXTS = [("anna", "b-1", 4.5), ("anna", "x", 3.0), ("bo", "b-1", 1.0)]
SEPARATORS = {"comma": ",", "tab": "\t", "semicolon": ";", "double-colon": "::"}


def refused(path, **settings):
    """The message about a file."""
    return refusal(OwnRatings(path, **settings))


# ---- what is read ----


@pytest.mark.parametrize("rows", [ROWS, TEXTS], ids=["integers", "texts"])
@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("separator", SEPARATORS)
def test_any_separator_with_or_without_header(write, separator, asked, header, rows):
    letter = SEPARATORS[separator]
    path = write(lines(rows, letter, letter.join(["userId", "movieId", "rating"]) + "\n" if header else ""))
    view = view_of(OwnRatings(path, separator=separator if asked else "auto"))
    assert triples(view) == rows
    assert view.user_ids.dtype.kind == ("U" if rows is TEXTS else "i")


@pytest.mark.parametrize("separator", SEPARATORS)
def test_further_columns_are_nothing(write, separator):
    letter = SEPARATORS[separator]
    rows = [(*row, "964982703", "a remark" * index) for index, row in enumerate(ROWS)]
    header = letter.join(["user", "item", "rating", "time", "remark"]) + "\n"
    assert triples(view_of(OwnRatings(write(lines(rows, letter, header))))) == ROWS
    assert triples(view_of(OwnRatings(write(lines(rows, letter), "bare.csv")))) == ROWS


def test_a_gzipped_file_with_windows_line_ends_blank_lines_and_a_spreadsheets_mark(write):
    text = "\ufeff\r\n" + lines(ROWS, header="user,item,rating\n").replace("\n", "\r\n\r\n")
    assert triples(view_of(OwnRatings(write(gzip.compress(text.encode()), "own.csv.gz")))) == ROWS
    assert triples(view_of(OwnRatings(write("\ufeff" + lines(ROWS))))) == ROWS


def test_quotes_hold_a_separator_together(write):
    rows = '"Smith, Anna","a ""b""; c",4.5\nbo,x,3\n'
    assert triples(view_of(OwnRatings(write(rows)))) == [("Smith, Anna", 'a "b"; c', 4.5), ("bo", "x", 3.0)]


def test_a_separator_may_stand_within_an_id_of_another(write):
    assert triples(view_of(OwnRatings(write("a,b\tc;d\t5\n")))) == [("a,b", "c;d", 5.0)]
    assert triples(view_of(OwnRatings(write("a:b::c,d::5\n", "b.csv")))) == [("a:b", "c,d", 5.0)]


def test_ids_are_integers_only_if_all_are_or_that_is_asked_for(write):
    mixed = lines([(1, 10, 4), (2, "x", 3), ("007", 10, 5)])
    assert triples(view_of(OwnRatings(write(mixed)))) == [("007", "10", 5.0), ("1", "10", 4.0), ("2", "x", 3.0)]
    assert refused(write(mixed), ids="integer").endswith("own.csv, line 2: item 'x' is no whole number")
    assert triples(view_of(OwnRatings(write(lines(ROWS)), ids="text")))[0] == ("1", "10", 4.5)


def test_ids_that_overflow_are_texts_unless_integers_are_asked_for(write):
    path = write("99999999999999999999,1,5\n")
    assert triples(view_of(OwnRatings(path))) == [("99999999999999999999", "1", 5.0)]
    assert refused(path, ids="integer").endswith("line 1: user '99999999999999999999' does not fit into 64 bits")


def test_a_header_can_be_asserted_or_denied(write):
    assert len(view_of(OwnRatings(write("1,2,3\n4,5,1\n"), header="yes"))) == 1
    assert refused(write("user,item,rating\n1,2,3\n"), header="no").endswith("line 1: rating 'rating' is no number")


# ---- the header ----

SAME = [(7, 1, 10, 4.5), (8, 1, 20, 3.0), (9, 7, 10, 1.0)]  # timestamp, user, item, rating
ORDERS = {
    "item,user,rating": (2, 1, 3),
    "movieId,userId,rating": (2, 1, 3),
    "user,item,timestamp,rating": (1, 2, 0, 3),
    "timestamp,User-ID,ISBN,Book-Rating": (0, 1, 2, 3),
    '"Stars","asin","reviewer_id"': (3, 2, 1),
    ",user,item,rating": (0, 1, 2, 3),
    "reviewTime,overall,product_id,customer_id,1995": (0, 3, 2, 1, 0),
    "# user,item,rating": (1, 2, 3),
}


@pytest.mark.parametrize("header", ORDERS)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_names_in_the_header_decide_which_column_is_which(write, header, separator):
    rows = [tuple(row[column] for column in ORDERS[header]) for row in SAME]
    path = write(lines(rows, separator, header.replace(",", separator) + "\n"))
    assert triples(view_of(OwnRatings(path))) == ROWS


def test_columns_are_chosen_by_name_or_number(write):
    path = write("points|who|what|user\n4.5|1|10|x\n3|1|20|x\n1|7|10|x\n")
    assert triples(view_of(OwnRatings(path, user="who", item="WHAT", rating="points", sep="|"))) == ROWS
    assert triples(view_of(OwnRatings(path, user="2", item="3", rating="1", sep="|"))) == ROWS
    bare = write("4.5;x;1;10\n3;x;1;20\n1;x;7;10\n", "bare.csv")
    assert triples(view_of(OwnRatings(bare, user="3", item="4", rating="1"))) == ROWS
    half = write("rating,who,item\n4.5,1,10\n3,1,20\n1,7,10\n", "half.csv")
    assert triples(view_of(OwnRatings(half, user="who"))) == ROWS
    assert "user=nobody: no column of 'rating', 'who', 'item' has this name or number" in refused(half, user="nobody")
    assert "must be different columns" in refused(half, user="who", item="2")
    assert "no column for the item" in refused(bare, user="3")
    assert "give their numbers" in refused(half, user="who", header="no")


def test_the_settings_of_a_name_choose_columns_and_leave_older_names_as_they_were(write):
    path = write("points;who;what\n4.5;1;10\n3;1;20\n1;7;10\n")
    view = rankbench.load(f"csv:{path}[user=who,item=what,rating=points,sep=;]")
    assert triples(view) == ROWS
    content = DATASETS.resolve(f"csv:{path}").identity.partition("[")[2]
    assert content == "separator=auto,header=auto,ids=auto,repeats=error]"


@pytest.mark.slow
def test_ids_with_leading_zeros_stay_apart_from_those_without(write):
    assert triples(view_of(OwnRatings(write("007,1,5\n7,1,3\n")))) == [("007", "1", 5.0), ("7", "1", 3.0)]
    padded = "1,10,4.5,0123\n1,20,3,05\n7,10,1,00\n"  # zeros in a column that is not read change nothing
    assert triples(view_of(OwnRatings(write(padded, "b.csv")))) == ROWS
    far = "".join(f"{user},1,0.5\n" for user in range(200_000)) + "0199999,1,3\n"
    assert view_of(OwnRatings(write(far, "c.csv"))).n_users == 200_001
    assert len(view_of(OwnRatings(write("007,1,5\n", "d.csv"), ids="integer"))) == 1


@pytest.mark.slow
def test_a_control_character_is_found_far_behind_the_lines_that_are_read_first(write):
    many = "".join(f"{user}::1::5\n" for user in range(100_000))
    assert "line 100001: control character" in refused(write(many + "1::2::3::\x1b\n"))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_with_every_kind_of_end(write, end):
    text = lines(ROWS, header="user,item,rating\n").replace("\n", end)
    assert triples(view_of(OwnRatings(write(text)))) == ROWS
    assert "line 5: rating 'x' is no number" in refused(write(text + f"8,8,x{end}"))


def test_a_quoted_field_may_hold_line_ends_and_lines_are_still_counted(write):
    text = 'user,item,rating,remark\n1,10,4.5,"two\nlines"\n1,20,3,"a ""quote"""\n7,10,1,\n'
    assert triples(view_of(OwnRatings(write(text)))) == ROWS
    assert "line 6: rating 'x' is no number" in refused(write(text + "8,8,x,\n"))


def test_an_id_that_python_would_read_and_pandas_not_is_named(write):
    head = "user,item,rating\n1,2,3\n"
    assert "line 3: item '３' is not written with the digits 0 to 9" in refused(write(head + "1,３,4\n"), ids="integer")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rated=st.dictionaries(
        st.tuples(st.integers(-(2**63) + 1, 2**63 - 1), st.integers(0, 50)),
        st.floats(-(2.0**99), 2.0**99, width=32),
        min_size=1,
        max_size=30,
    ),
    separator=st.sampled_from(list(SEPARATORS.values())),
)
def test_what_was_written_is_read_to_the_last_bit(write, rated, separator):
    rows = [(user, item, value) for (user, item), value in rated.items()]
    view = OwnRatings(write(lines(rows, separator)))._parse(
        OwnRatings(write(lines(rows, separator))).origin.files("csv")
    )
    assert triples(view) == sorted(rows)


def test_repeats_are_an_error_unless_the_last_is_to_win(write):
    path = write(lines([*ROWS, (1, 10, 2.0)], header="user,item,rating\n"))
    assert refused(path).endswith("own.csv, line 5: user 1, item 10 is on line 2 already: keep one of the two rows")
    assert triples(view_of(OwnRatings(path, repeats="last")))[0] == (1, 10, 2.0)


@pytest.mark.parametrize(
    ("users", "ids"),
    [
        (["9007199254740993.0", "9007199254740992.0"], ["9007199254740992.0", "9007199254740993.0"]),
        (["9007199254740993", "9007199254740992"], [2**53, 2**53 + 1]),
        (["9007199254740994", "9007199254740996"], [2**53 + 2, 2**53 + 4]),
        (["-9007199254740993.0", "7"], ["-9007199254740993.0", "7"]),
        (["9223372036854775807", "1"], [1, 2**63 - 1]),
        (["7.0", "8"], [7, 8]),
    ],
)
def test_ids_that_are_written_as_floats_are_not_rounded(write, users, ids):
    view = view_of(OwnRatings(write("user,item,rating\n" + "".join(f"{user},1,3\n" for user in users))))
    assert view.user_ids.tolist() == ids


# ---- cells that hold no rating ----

MESSY = "user,item,rating\n" + 'a,x,5\na,y,3\nb,x,\nb,y,n/a\nc,x,"4,5"\nc,y,2\nd,x,NaN\n'


def test_ratings_that_cannot_be_read_are_counted_once_with_what_helps(write):
    found = refused(write(MESSY))
    assert found.endswith(
        "own.csv, line 4: rating '' is no number (of 7 ratings 3 missing ('', 'n/a', 'NaN') and 1 written with a comma "
        "('4,5')); write missing=drop,decimal=comma in brackets to read the others"
    )
    commas = write("1;2;3\n1;3;4,5\n2;2;1,0\n", "b.csv")
    assert refused(commas).endswith(
        "(of 3 ratings 2 written with a comma ('4,5', '1,0')); write decimal=comma in brackets"
    )
    plays = refused(write('user,item,rating\na,x,"1,234"\na,y,87\nb,x,"12,000"\n', "plays.csv"))
    assert plays.endswith("take the commas out if they part thousands, else write decimal=comma in brackets")
    words = "".join(f"a,{number},{word}\n" for number, word in enumerate(["-", "?", "NA", "null", "4"]))
    assert "of 5 ratings 4 missing ('-', '?', 'NA', ...)" in refused(write("user,item,rating\n" + words, "c.csv"))
    assert refused(write("user,item,rating\n" + "a,b,good\n", "d.csv")).endswith("rating 'good' is no number")


def test_a_setting_that_is_given_is_no_remedy_and_the_line_is_named_that_it_cannot_read(write):
    both = write("user;item;rating\na;x;4.5\nb;x;4,5\n")
    assert "line 2: rating '4.5' has a point: with decimal=comma" in refused(both, decimal="comma")
    thousands = refused(write("user;item;rating\na;x;1.234,5\n", "b.csv"), decimal="comma")
    assert "line 2: rating '1.234,5' has a point" in thousands and "brackets" not in thousands
    blanks = write("user,item,rating\na,x,5\na,y, \nb,x, NA\n", "c.csv")
    assert "of 3 ratings 2 missing" in refused(blanks)
    assert len(view_of(OwnRatings(blanks, missing="drop"))) == 1
    assert refused(write("user,item,rating\na,x,good\na,y,\n", "d.csv")).endswith("'good' is no number")


def test_rows_without_an_id_are_counted_with_the_others_and_left_out_with_them(write):
    rows = "user,item,rating\n1,10,5\n1,,3\n2,20,\n,10,2\n2,10,4\n"
    assert refused(write(rows)).endswith(
        "line 3: item '' is empty (of 5 ratings 1 missing ('') and 2 without a user or an item); write missing=drop in "
        "brackets to read the others"
    )
    own = OwnRatings(write(rows), missing="drop")
    assert triples(view_of(own)) == [(1, 10, 5.0), (2, 10, 4.0)] and own.rows().dropped == 3  # ids are integers
    texts = OwnRatings(write(rows.replace("2,10,4", "a,10,4\n7,010,3"), "b.csv"), missing="drop")
    assert triples(view_of(texts)) == [("1", "10", 5.0), ("7", "010", 3.0), ("a", "10", 4.0)]
    padded = OwnRatings(write(rows.replace("2,10,4", "2,010,4"), "c.csv"), missing="drop")
    assert triples(view_of(padded)) == [("1", "10", 5.0), ("2", "010", 4.0)]
    assert refused(write("user,item,rating\na,x,5\n,x,4\n", "d.csv")).endswith(
        "line 3: user '' is empty (of 2 ratings 1 without a user or an item); write missing=drop in brackets to read "
        "the others"
    )
    clicks = write("user,item\na,x\na,na\nb,\n", "g.csv")
    assert refused(clicks, positive=True).endswith(
        "line 4: item '' is empty (of 3 rows 1 without a user or an item); write missing=drop in brackets to read the "
        "others"
    )
    kept = view_of(OwnRatings(clicks, positive=True, missing="drop"))
    assert triples(kept) == [("a", "na", 1.0), ("a", "x", 1.0)]  # only a rating may be spelled na
    assert triples(
        view_of(OwnRatings(write(rows.replace("2,10,4", "2,010,4"), "e.csv"), missing="drop", ids="integer"))
    ) == [
        (1, 10, 5.0),
        (2, 10, 4.0),
    ]
    wrong = refused(write(rows + "b,10,1\n", "h.csv"), missing="drop", ids="integer")
    assert wrong.endswith("line 7: user 'b' is no whole number")
    late = OwnRatings(write(rows + "2,10,\n2,30,wrong\n", "f.csv"), missing="drop")
    assert "line 8: rating 'wrong' is no number" in refusal(late)


def test_rows_without_a_rating_are_left_out_if_asked_and_counted(write):
    own = OwnRatings(write(MESSY), missing="drop", decimal="comma")
    assert triples(view_of(own)) == [("a", "x", 5.0), ("a", "y", 3.0), ("c", "x", 4.5), ("c", "y", 2.0)]
    assert own.rows().dropped == 3
    assert own.rows().line_of(2) == 6
    assert "line 6: rating '4,5' is no number" in refused(write(MESSY), missing="drop")
    assert "line 4: rating '' is no number" in refused(write(MESSY), decimal="comma")
    assert "line 9: rating 'good' is no number" in refused(write(MESSY + "e,x,good\n"), missing="drop", decimal="comma")
    assert "is out of range" in refused(write(MESSY + "e,x,inf\n"), missing="drop", decimal="comma")


@given(st.floats(-(2.0**99), 2.0**99).filter(lambda value: value != 0))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_numbers_with_a_decimal_comma_are_read_to_the_last_bit(write, value):
    path = write("user;item;rating\n1;2;" + repr(value).replace(".", ",") + "\n")
    assert OwnRatings(path, decimal="comma").rows().values.tolist() == [value]


def test_a_table_with_a_column_per_item_is_refused_with_the_command_that_makes_it_long(write, tmp_path):
    path = write(";x;y;z\na;5;3;\nb;1;;2\nc;;4;5\n", "wide.csv")
    found = refused(path)
    command = found.partition("If it has a column per item, make it long: ")[2]
    assert command.startswith("pandas.read_csv(PATH, index_col=0, sep=';')")
    eval(
        command.replace("PATH", repr(path)).replace('"long.csv"', repr(str(tmp_path / "long.csv"))), {"pandas": pandas}
    )
    long = view_of(OwnRatings(str(tmp_path / "long.csv")))
    assert triples(long)[:3] == [("a", "x", 5.0), ("a", "y", 3.0), ("b", "x", 1.0)]
    assert len(long) == 6
    assert "make it long" in refused(write(",w,x,y,z\na,5,3,1,2\n", "full.csv"))
    assert "make it long" not in refused(write("points,who,what\n4.5,1,10\n", "long.csv"))


@pytest.mark.parametrize("name", ["a.xlsx", "A.XLS", "a.ods"])
def test_a_workbook_is_refused_with_the_command_that_converts_it(write, name):
    found = refused(write(b"PK\x03\x04 and so on", name))
    assert f"pandas.read_excel({name!r}).to_csv('{name[0]}.csv', index=False), which needs openpyxl" in found


# ---- the scale ----


def test_ratings_outside_the_scale_are_named(write):
    path = write(lines(ROWS, header="user,item,rating\n"))
    assert len(view_of(OwnRatings(path, low=1, high=4.5))) == 3
    assert refused(path, low=1, high=4).endswith("line 2: rating 4.5 is out of range: must be from 1 to 4")
    assert refused(path, high=4).endswith("line 2: rating 4.5 is out of range: must be at most 4")
    assert refused(path, low=2).endswith("line 4: rating 1 is out of range: must be at least 2")
    assert refused(write("1,2,inf\n")).endswith("line 1: rating inf is out of range: must be finite")
    with pytest.raises(UserError, match="low=5 must be below high=1"):
        OwnRatings(path, low=5, high=1)


# ---- features ----

FEATURES = "item,year,length\n20,1999,1.5\n10,2001,2\n30,1950,0.5\n"


def test_features_are_matched_by_item(write):
    view = view_of(OwnRatings(write(lines(ROWS)), features=write(FEATURES, "features.csv")))
    assert view.feature_names.tolist() == ["year", "length"]
    assert view.item_ids.tolist() == [10, 20]
    assert view.item_features.tolist() == [[2001, 2], [1999, 1.5]]


def test_features_of_items_with_texts_for_ids_and_no_header(write):
    view = view_of(OwnRatings(write(lines(TEXTS)), features=write("x;1;2\nb-1;3;4\n", "features.csv")))
    assert view.feature_names.tolist() == ["f1", "f2"]
    assert view.item_features.tolist() == [[3, 4], [1, 2]]


# ---- the cache ----


def test_the_second_load_comes_from_the_cache_until_a_file_or_a_setting_changes(write, monkeypatch):
    features = write(FEATURES, "features.csv")
    source = OwnRatings(write(lines(ROWS)), features=features)
    first = fingerprint(view_of(source))
    with monkeypatch.context() as patch:
        patch.setattr(csv_ratings, "read_own", None)
        assert fingerprint(view_of(source)) == first
    with open(features, "a") as file:
        file.write("40,1,1\n")
    os.utime(features, ns=(1, 1))
    with monkeypatch.context() as patch:
        patch.setattr(csv_ratings, "read_own", None)
        with pytest.raises(TypeError):
            view_of(source)
    write(lines([*ROWS, (9, 10, 5.0)]))
    assert len(view_of(source)) == 4
    assert view_of(OwnRatings(source.path, ids="text")).user_ids.dtype.kind == "U"


# ---- the origin ----


def test_where_it_comes_from(write, tmp_path):
    path = write(lines(ROWS))
    origin = OwnRatings(path, features=str(tmp_path / "none.csv")).origin
    assert origin.missing() == f"no file {str(tmp_path / 'none.csv')!r}: check the path"
    assert [(held.path.name, held.sha256) for held in origin.held()] == [("own.csv", None)]
    assert OwnRatings(path).origin.missing() is None
    assert OwnRatings(path).origin.fetch(lambda name, done, total: None) is None
    assert (origin.licence, origin.size) == ("the owner's", "27 bytes")
    assert origin.home == f"the user's own file {path}"


def test_a_path_may_begin_at_home(write, monkeypatch, tmp_path):
    write(lines(ROWS))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert triples(view_of(OwnRatings("~/own.csv"))) == ROWS


# ---- what is refused ----


def test_a_file_that_unpacks_beyond_the_limit_stops_there(write, monkeypatch):
    rows = "".join(f"{user},1,5\n" for user in range(150_000)).encode()
    path = write(gzip.compress(rows), "own.csv.gz")
    monkeypatch.setenv("RANKBENCH_UNPACKED", "1M")
    assert "own.csv.gz unpacks to more than 1,000,000 bytes" in refused(path)
    monkeypatch.setenv("RANKBENCH_UNPACKED", "2M")
    assert len(view_of(OwnRatings(path))) == 150_000
    monkeypatch.setenv("RANKBENCH_UNPACKED", "lots")
    assert "RANKBENCH_UNPACKED='lots' cannot be read; write it like 500M or 50G" in refused(path, ids="text")
    monkeypatch.delenv("RANKBENCH_UNPACKED")
    monkeypatch.setattr(files, "_FREE", 1000)
    assert "unpacks to more than" in refused(write(gzip.compress(b"1,2,3\n" * 500_000), "bomb.csv.gz"))


def test_a_separator_that_is_set_wrongly_is_named(write):
    assert "own.csv, line 1: 1 fields where 3 are needed: '1,10,4.5'" in refused(write(lines(ROWS)), separator="tab")


@pytest.mark.parametrize(
    ("word", "letter"), [("comma", ","), ("tab", "\t"), ("semicolon", ";"), ("double-colon", "::")]
)
def test_sep_takes_every_word_that_its_older_name_takes(write, word, letter):
    path = write(lines(ROWS, letter))
    assert triples(view_of(OwnRatings(path, sep=word))) == triples(view_of(OwnRatings(path, separator=word))) == ROWS


def test_names_with_either_form_of_the_separator_keep_their_identities(write):
    path = write(lines(ROWS, ";"))
    told = {
        text: DATASETS.resolve(f"csv:{path}[{text}]").identity.partition("[")[2]
        for text in ("sep=;", "separator=semicolon")
    }
    assert told == {
        "sep=;": "separator=auto,header=auto,ids=auto,repeats=error,sep=;]",
        "separator=semicolon": "separator=semicolon,header=auto,ids=auto,repeats=error]",
    }


def test_a_name_that_two_columns_have_is_refused(write):
    path = write("who;what;who;points\n1;2;3;4\n")
    assert "user=who: 2 columns of 'who', 'what', 'who', 'points' have this name" in refused(path, user="who", sep=";")


# ---- times ----


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("user,item,rating,timestamp\n2,1,3,964982703\n1,1,4,964982704\n", [964982704, 964982703]),
        ("date;user;item;rating\n1970-01-01;2;1;3\n1970-01-02 00:00:01;1;1;4\n", [86_401_000_000, 0]),
        ("user,item,rating,date\n2,1,3,1970-01-01T00:00:00Z\n1,1,4,1970-01-02T02:00:01+02:00\n", [86_401_000_000, 0]),
        ("user,item,rating,timestamp\n2,1,3,1600102000.0\n1,1,4,1600102001.0\n", [1600102001, 1600102000]),
        ("2,1,3,1600102000.0\n1,1,4,1600102001.0\n", [1600102001, 1600102000]),
        ("user,item,rating,timestamp\n2,1,3,1600102000.5\n1,1,4,1600102001.0\n", None),
        ("2\t1\t3\t964982703\n1\t1\t4\t964982704\n", [964982704, 964982703]),
        ("2::1::3::964982703\n1::1::4::964982704\n", [964982704, 964982703]),
        ("2,1,3,7\n1,1,4,8\n", None),  # small numbers without a header may be anything
        ("user,item,rating,timestamp\n2,1,3,964982703\n1,1,4,\n", None),  # a time is missing
        ("user,item,rating,time\n2,1,3,early\n1,1,4,late\n", None),
        ("user,item,rating,time,date\n2,1,3,1,2\n1,1,4,1,2\n", None),  # which of both?
        ("user,item,rating,timestamp\n2,1,3,2020-01-01\n1,1,4,NaT\n", None),
    ],
)
def test_times_are_read_where_every_row_has_one(tmp_path, text, times):
    path = tmp_path / "ratings.csv"
    path.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        view = rankbench.load(f"csv:{path}")
    assert view.values.tolist() == [4.0, 3.0]
    assert (None if view.times is None else view.times.tolist()) == times


@pytest.mark.parametrize(
    ("times", "why"),
    [
        (["1600102000", "1600102001"], ""),
        (
            ["31/01/2020", "2020-02-01"],
            "line 3: the time '2020-02-01' cannot be read like the first one, '31/01/2020'",
        ),
        (['"Jan 31, 2020"', "2020-02-01"], "line 2: the time 'Jan 31, 2020' is neither a whole number nor a date"),
        (["2020-01-31", "01/02/2020"], "line 3: the time '01/02/2020' cannot be read like the first one, '2020-01-31'"),
        (["2020-01-31", "NaT"], "line 3: the time is missing"),
        (["2020-01-31T12:00Z", ""], "line 3: the time is missing"),
        (["16", "soon"], "line 3: the time 'soon' cannot be read like the first one, '16'"),
        (["16.0", "17.5"], "line 3: the time '17.5' cannot be read like the first one, '16.0'"),
    ],
)
def test_the_first_line_without_a_time_that_can_be_read_is_named(tmp_path, times, why):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating,timestamp\n" + "".join(f"1,{i},3,{time}\n" for i, time in enumerate(times)))
    found = DATASETS.make(f"csv:{path}").untimed()
    assert found.startswith(f"{path}, {why}") if why else not found
    path.write_text("user,item,rating\n1,2,3\n")
    assert DATASETS.make(f"csv:{path}").untimed() == ""


def test_times_of_repeated_rows_are_those_of_the_rows_that_are_kept(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating,timestamp\n1,1,3,10\n1,1,4,20\n1,2,5,15\n")
    assert rankbench.load(f"csv:{path}[repeats=last]").times.tolist() == [20, 15]


def test_a_wrong_rating_beside_wrong_times_is_still_named_by_its_line(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating,timestamp\n1,1,3,10\n1,2,good,late\n")
    with pytest.raises(UserError, match="line 3: rating 'good' is no number"):
        rankbench.load(f"csv:{path}")


def test_of_a_file_that_gets_worse_the_first_error_is_told_alone(write):
    said = refused(write("user,item,rating\n1,2,\n3\n"))
    assert "line 2: rating '' is no number" in said and "of" not in said.partition("no number")[2]
