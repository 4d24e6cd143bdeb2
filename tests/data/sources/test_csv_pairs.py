"""A user's own comparisons: headers above numbers and above text, repeated rows, and malformed lines."""

import gzip

import numpy as np
import pytest
from data.sources.at_hand import lines, refusal, view_of

from rankbench.arrays.npz import fingerprint
from rankbench.data.sources import csv_pairs
from rankbench.data.sources.csv_pairs import OwnPairs

pytestmark = pytest.mark.usefixtures("folders")

ROWS = [(1, 10, 20), (1, 20, 30), (7, 30, 10)]
TEXTS = [("anna", "b", "c"), ("anna", "c", "d"), ("bo", "d", "b")]
SEPARATORS = {"comma": ",", "tab": "\t", "semicolon": ";", "double-colon": "::"}


def rows_of(view):
    """The rows of a view by the file's own ids."""
    columns = view.user_ids[view.users], view.item_ids[view.better], view.item_ids[view.worse]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def refused(path, **settings):
    """The message about a file."""
    return refusal(OwnPairs(path, **settings))


@pytest.mark.parametrize("rows", [ROWS, TEXTS], ids=["integers", "texts"])
@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("separator", SEPARATORS)
def test_any_separator_with_or_without_header(write, separator, header, rows):
    letter = SEPARATORS[separator]
    path = write(lines(rows, letter, letter.join(["User", "better", "worse"]) + "\n" if header else ""))
    assert rows_of(view_of(OwnPairs(path))) == rows
    assert rows_of(view_of(OwnPairs(path, separator=separator))) == rows


def test_a_header_of_usual_names_decides_which_column_is_which(write):
    swapped = [(worse, user, better) for user, better, worse in ROWS]
    assert rows_of(view_of(OwnPairs(write(lines(ROWS, header="judge,winner,loser\n"))))) == ROWS
    assert rows_of(view_of(OwnPairs(write(lines(TEXTS, header="judge,winner,loser\n"), "b.csv")))) == TEXTS
    assert rows_of(view_of(OwnPairs(write(lines(swapped, header="Loser,User ID,better_item\n"), "c.csv")))) == ROWS


def test_a_header_that_does_not_say_which_is_which_is_shown_with_the_syntax(write):
    path = write(lines(ROWS, header="who,first,second\n"))
    found = refused(path)
    assert "line 1: the header 'who', 'first', 'second' does not say which column is which" in found
    assert "pairs:PATH[user=NAME,better=NAME,worse=NAME]" in found
    assert rows_of(view_of(OwnPairs(path, user="who", better="first", worse="second"))) == ROWS
    assert "does not say" in refused(write(lines(TEXTS, header="judge,first,second\n"), "b.csv"))
    assert ("judge", "b", "c") in rows_of(view_of(OwnPairs(write("judge,b,c\n", "c.csv"), header="no")))


def test_items_are_numbered_together_whichever_side_they_stand_on(write):
    view = view_of(OwnPairs(write("5,30,2\n5,9,1\n")))
    assert view.item_ids.tolist() == [1, 2, 9, 30]
    assert (view.n_users, view.n_items, len(view)) == (1, 4, 2)
    assert (view.better.tolist(), view.worse.tolist()) == ([2, 3], [0, 1])


def test_a_comparison_may_be_made_twice_and_the_other_way_round(write):
    rows = [(1, 10, 20), (1, 10, 20), (1, 20, 10)]
    assert rows_of(view_of(OwnPairs(write(lines(rows))))) == rows


def test_a_gzipped_file_with_further_columns(write):
    rows = [(*row, "2024-01-01", index) for index, row in enumerate(ROWS)]
    assert rows_of(view_of(OwnPairs(write(gzip.compress(lines(rows).encode()), "own.csv.gz")))) == ROWS


def test_features_are_matched_by_item(write):
    features = write("item,size\n30,3\n20,2\n10,1\n99,9\n", "features.csv")
    view = view_of(OwnPairs(write(lines(ROWS)), features=features))
    assert view.item_features.tolist() == [[1], [2], [3]]
    assert view.feature_names.tolist() == ["size"]
    assert "has no row for item 20" in refused(write(lines(ROWS)), features=write("item,size\n30,3\n10,1\n", "few.csv"))


def test_the_second_load_comes_from_the_cache(write, monkeypatch):
    source = OwnPairs(write(lines(TEXTS)))
    first = fingerprint(view_of(source))
    monkeypatch.setattr(csv_pairs, "read_own", None)
    assert fingerprint(source.view(np.random.default_rng(1))) == first


# ---- what is refused ----

HEAD = lines(ROWS, header="user,better,worse\n")


def test_no_setting_is_advised_that_comparisons_do_not_have(write):
    assert refusal(OwnPairs(write(lines(TEXTS) + "bo,b,\n"))).endswith("line 4: worse '' is empty")


def test_ids_that_are_no_integers_are_named_where_integers_are_asked_for(write):
    assert refused(write(HEAD + "1,x,20\n"), ids="integer").endswith("line 5: better 'x' is no whole number")
    assert refused(write(HEAD + "1,20,99999999999999999999\n"), ids="integer").endswith("does not fit into 64 bits")
