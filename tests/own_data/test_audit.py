"""`rankbench check FILE`: each check finds what it is for, and passes on data without it."""

import io
from functools import partial

import numpy as np
import pandas
import pytest
from rich.console import Console

from rankbench.api.comparing import audit
from rankbench.checks.findings import failed, passed
from rankbench.cli.printer import show_findings
from rankbench.data import load
from rankbench.own_data.auditing import CHECKS, _is_time, _subject, audited, hints, splits_sheet
from rankbench.own_data.naming import data_named

HEADER = "user,item,rating\n"
GOOD = "".join(f"{user},{item},{1 + (user + item) % 5}\n" for user in range(12) for item in range(12))


def finding(folder, text, name, settings=""):
    """The finding of this name about a file with this text."""
    path = folder / "own.csv"
    path.write_text(text)
    found = audited(f"{path}{settings}")
    (one,) = (one for one in found.findings if one.name == name)
    return one


def test_good_data_passes_every_check(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(HEADER + GOOD)
    found = audited(str(path))
    assert len(found.findings) == 1 + len(CHECKS) and not any(one.bad for one in found.findings)
    assert found.about.endswith("12 users, 12 items, 144 ratings, values from 1 to 5; 12 to 12 a user, median 12")


TIMES = HEADER + "".join(f"{u},{i},{1400000000 + 1000 * u + i}\n" for u in range(4) for i in range(9))
IDS = HEADER + "".join(f"{u},{i},{(i + u) % 200}\n" for u in range(2) for i in range(200))
BY_ITEM = HEADER + "".join(f"{u},{i},{1 + (u + i) % 5}\n" for i in range(9) for u in range(40))
FOUND = {
    "times for ratings": (
        TIMES,
        "columns",
        "the ratings look like times: 1400000000",
        "say which column is the rating: rating=NAME",
    ),
    "ids for ratings": (IDS, "columns", "the ratings look like ids of items: 200 whole numbers", "write pairs:FILE"),
    "swapped": (BY_ITEM, "columns", "rows of an item stand together (98% of them)", "write user=NAME,item=NAME"),
    "case": (HEADER + "anna,x,1\nAnna,y,2\n", "spellings", "'Anna' and 'anna' are two ids", "spell them alike"),
    "blanks": (HEADER + 'anna,x,1\n"anna ",y,2\n', "spellings", "are two ids", "spell them alike"),
    "repeated": (HEADER + "1,2,3\n1,2,4\n", "duplicates", "1 rows repeat a pair", "[repeats=last]"),
    "contrary": (
        "user,better,worse\n1,2,3\n1,3,2\n1,4,5\n1,4,5\n",
        "duplicates",
        "2 comparisons come with their contrary by the same user, 1 are repeated",
        "no order agrees",
    ),
    "constant": (
        HEADER + "1,2,3\n1,3,3\n2,2,1\n2,3,5\n",
        "constant users",
        "1 of 2 users rate all",
        "leave these users",
    ),
    "single rows": (HEADER + "1,2,3\n2,2,3\n2,3,4\n", "few rows", "1 of 2 users have a single row", "cannot test them"),
    "rare items": (HEADER + "1,2,3\n1,3,4\n2,4,3\n2,5,4\n", "rare items", "4 of 4 items occur", "features=FILE"),
}


@pytest.mark.parametrize("case", FOUND)
def test_each_check_finds_what_it_is_for(tmp_path, case):
    text, name, seen, remedy = FOUND[case]
    one = finding(tmp_path, text, name)
    assert one.bad and seen in one.seen and remedy in one.remedy


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "jsonl.gz"])
@pytest.mark.parametrize("case", [case for case in FOUND if case != "contrary"])
def test_of_rows_in_columns_each_check_finds_what_it_finds_of_text(tmp_path, case, ending):
    pytest.importorskip("pyarrow")
    text, name, *_ = FOUND[case]
    path, frame = tmp_path / f"own.{ending}", pandas.read_csv(io.StringIO(text))
    frame.to_parquet(path) if ending == "parquet" else frame.to_json(path, orient="records", lines=True)
    (one,) = (one for one in audited(str(path)).findings if one.name == name)
    assert one.bad and one.seen == finding(tmp_path, text, name).seen


def test_how_columns_are_read_is_told(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "own.jsonl"
    path.write_text('{"who": "a", "film": 7, "points": 3}\n{"who": "b", "film": 8, "points": 4.5}\n')
    first, *_ = audited(f"{path}[user=who,item=film,rating=points]").findings
    assert first.seen == "2 rows, user in column 'who', item in column 'film', rating in column 'points'; ids are texts"


def in_time(stamp=lambda number: str(1_400_000_000 + 86_400 * number)):
    """Ratings with times that rise with the item's number."""
    rows = (f"{u},{i},{1 + (u + i) % 5},{stamp(i)}\n" for u in range(9) for i in range(30))
    return "user,item,rating,timestamp\n" + "".join(rows)


@pytest.mark.parametrize("stamp", [lambda n: str(10**9 + n), lambda n: f"2020-03-{n + 1:02d}", str])
def test_a_random_split_that_tests_on_the_past_is_found_with_numbers_and_dates(tmp_path, stamp):
    one = finding(tmp_path, in_time(stamp=stamp), "time")
    assert one.bad and "under per-user[test=0.2], " in one.seen and "split by time" in one.remedy


def test_the_audit_recommends_a_split_in_time_that_has_something_to_test(tmp_path):
    rows = (f"{u},{i},{1 + (u + i) % 5},{1_000_000 + 1000 * u + i}\n" for u in range(5) for i in range(30))
    one = finding(tmp_path, "user,item,rating,timestamp\n" + "".join(rows), "time")
    assert one.bad and "--split leave-last-out" in one.remedy
    assert "--split temporal" in finding(tmp_path, in_time(), "time").remedy


def test_a_time_that_cannot_be_read_is_named(tmp_path):
    one = finding(tmp_path, "user,item,rating,date\n1,2,3,2020-01-01\n1,3,4,31/01/2020\n", "time")
    assert one.outcome == "not applicable" and "own.csv, line 3: the time '31/01/2020' cannot be read" in one.seen
    assert "comparisons have no times" in finding(tmp_path, "user,better,worse\n1,2,3\n", "time").seen


def test_nobody_who_splits_by_time_is_told_to(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(in_time())
    data = data_named(str(path))
    view = load(data)
    assert [one.name for one in hints(data, 0, view, "entries[test=0.2]")] == ["time"]
    assert hints(data, 0, view, "temporal") == hints(data, 0, view, "leave-last-out") == []


def test_rows_of_one_time_have_no_past(tmp_path):
    one = finding(tmp_path, in_time(stamp=lambda n: "1400000000"), "time")
    assert one.outcome == "passed" and "0% of the held-out rows" in one.seen


def test_times_that_cannot_be_read_are_told(tmp_path):
    one = finding(tmp_path, in_time(stamp=lambda n: "yesterday" if n == 3 else "2020-03-01"), "time")
    assert one.outcome == "not applicable" and "not all times can be read: " in one.seen and "line 5: " in one.seen


def test_times_are_looked_at_without_a_header_too(tmp_path):
    rows = in_time(stamp=lambda n: str(10**9 + n)).partition("\n")[2]
    assert finding(tmp_path, rows, "time").bad
    assert finding(tmp_path, rows.replace(",1000", ",x1000"), "time").outcome == "not applicable"


def test_numbers_that_look_like_times():
    assert _is_time(_array(1.4e9, 1.5e9)) and _is_time(_array(1.4e12, 1.5e12))
    assert not _is_time(_array(1.0, 5.0)) and not _is_time(_array(1.4e9, 5.0)) and not _is_time(_array())


def _array(*values):
    return np.array(values, float)


def test_pairs_and_known_data_sets_are_audited_as_far_as_checks_apply(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("user,better,worse\n" + "".join(f"{u},{i},{i + 1}\n" for u in range(9) for i in range(9)))
    assert not any(one.bad for one in audited(str(path)).findings)
    outcomes = {one.name: one.outcome for one in audited("low-rank[users=20,items=30,per_user=20]").findings}
    assert outcomes["columns"] == outcomes["duplicates"] == outcomes["time"] == "not applicable"


def test_time_is_looked_at_for_clicks_and_for_data_sets_by_name_too(tmp_path):
    rows = "".join(f"{u},{i},{1_400_000_000 + i}\n" for u in range(9) for i in range(9))
    assert finding(tmp_path, f"user,item,timestamp\n{rows}", "time").bad
    one = finding(tmp_path, "user,item,rating,timestamp\n1,2,3,4\n", "time")
    assert one.outcome == "not applicable" and "leaves nothing to" in one.seen


def test_rows_of_a_large_file_are_looked_at_only_if_asked(tmp_path, monkeypatch):
    path = tmp_path / "own.csv"
    path.write_text(HEADER + GOOD.replace("\n1,", "\nann,").replace("\n2,", "\nAnn,"))
    data = data_named(str(path))
    assert [one.name for one in hints(data, 0, load(data))] == ["spellings"]
    monkeypatch.setattr("rankbench.own_data.auditing._LARGE", 100)
    assert hints(data, 0, load(data)) == []
    path.write_text(in_time())
    again = data_named(str(path))
    assert [one.name for one in hints(again, 0, load(again))] == ["time"]


def test_a_data_frame_is_audited_from_python(tmp_path):
    frame = pandas.DataFrame({"user": [1, 1, 2], "item": [1, 1, 2], "rating": [3, 4, 5]})
    shown = str(audit(frame))
    assert shown.startswith("the DataFrame as CSV: 2 users, 2 items, 2 ratings")
    assert "failed: duplicates: 1 rows repeat a pair of a user and an item; keep the last of each, as" in shown
    empty = str(audit(frame.iloc[:0]))
    assert "readable: the DataFrame as CSV holds no rows" in empty and "/" not in empty
    undated = str(audit(frame.assign(date=["2020-01-01", "soon", "soon"])))
    assert "not all times can be read: the DataFrame as CSV, line 3: the time 'soon'" in undated


def test_a_further_column_of_texts_is_no_time(tmp_path):
    assert finding(tmp_path, "1,2,3,a\n1,3,4,b\n", "time").outcome == "not applicable"


def test_a_finding_in_one_line():
    assert failed("a", "seen", "do it", "x.py, line 1").line == "a: seen (x.py, line 1); do it"
    assert passed("a", "seen").line == "a: seen"


def test_on_a_terminal_lines_are_folded_and_indented(monkeypatch, capsys):
    terminal = partial(Console, force_terminal=True, width=40)
    monkeypatch.setattr("rankbench.cli.printer.Console", terminal)
    show_findings([failed("a", "what was seen is a rather long sentence", "so is the remedy, which is even longer")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["FAILED a: what was seen is a rather long", "       sentence"]
    assert lines[2:] == ["       so is the remedy, which is even", "       longer"]


def test_clicks_are_audited_without_ratings(tmp_path):
    one = finding(tmp_path, "user,item\n1,2\n1,2\n1,3\n2,3\n", "duplicates")
    assert one.outcome == "passed" and one.seen == "1 repeated rows, which count once"
    assert finding(tmp_path, "user,item\n1,2\n1,3\n2,3\n", "constant users").outcome == "not applicable"


def test_repeats_that_are_allowed_are_no_finding(tmp_path):
    one = finding(tmp_path, HEADER + "1,2,3\n1,2,4\n1,3,4\n", "duplicates", "[repeats=last]")
    assert one.outcome == "passed" and "the last rating is kept" in one.seen


def test_what_each_split_keeps(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text(HEADER + GOOD + "99,1,2\n")
    view = _subject(data_named(str(path)), 0).view
    lines = {line[0]: line[1:] for line in splits_sheet(view, 0).lines}
    assert lines["n-per-user[n=5,least=5]"] == ("12", "1", "60", "84")
    assert lines["n-per-user[n=20,least=10]"] == ("0", "13", "", "")
    assert lines["leave-one-out"] == ("12", "1", "133", "12")


def test_the_command_prints_marks_and_the_table_and_its_exit_code_says_if_anything_was_found(cli, here):
    (here / "own.csv").write_text(HEADER + GOOD)
    shown = cli("check", "own.csv").out
    assert "ok     duplicates: every pair of a user and an item occurs once" in shown
    assert "-      time: there is no column of times" in shown and "| leave-one-out | 12 | 0 |" in shown
    (here / "own.csv").write_text(HEADER + GOOD + "1,1,1\n")
    shown = cli("check", "own.csv", code=1).out
    assert "FAILED duplicates: 1 rows repeat a pair of a user and an item\n       keep the last of each:" in shown
    (here / "own.csv").write_text(HEADER + "1,1,good\n")
    said = cli("check", "own.csv", code=1).out
    assert said.splitlines()[1] == "FAILED readable: own.csv, line 2: rating 'good' is no number"
