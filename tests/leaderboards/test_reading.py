"""Votes from files and tables of many shapes; what is wrong with them is said with its place."""

import gzip
import json

import numpy as np
import pandas
import pytest

from rankbench.core.errors import UserError
from rankbench.leaderboards.sources.reading import Wanted, votes_of
from rankbench.leaderboards.votes import LEFT, RIGHT, TIE

FRAME = pandas.DataFrame(
    {"left": ["a", "b", "c"], "right": ["b", "c", "a"], "winner": ["left", "right", "tie"], "judge": [7, 8, 7]}
)


def told(votes):
    """The votes as texts."""
    names = votes.items
    return [
        (names[a], names[b], int(outcome)) for a, b, outcome in zip(votes.left, votes.right, votes.outcome, strict=True)
    ]


SAME = [("a", "b", LEFT), ("b", "c", RIGHT), ("c", "a", TIE)]


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet", "json", "jsonl"])
def test_files_of_all_kinds_give_the_same_votes(tmp_path, ending):
    path = tmp_path / f"votes.{ending}"
    if ending == "parquet":
        pytest.importorskip("pyarrow")
        FRAME.to_parquet(path)
    elif ending == "json":
        path.write_text(json.dumps(FRAME.to_dict("records")))
    elif ending == "jsonl":
        FRAME.to_json(path, orient="records", lines=True)
    elif ending == "csv.gz":
        path.write_bytes(gzip.compress(FRAME.to_csv(index=False).encode()))
    else:
        FRAME.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    votes = votes_of(path)
    assert told(votes) == SAME == told(votes_of(FRAME))
    assert votes.judges.names.tolist() == ["7", "8"] and votes.judges.codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "winner",
    [
        ["left", "right", "tie"], ["Left", "RIGHT", "draw"], ["model_a", "model_b", "tie (bothbad)"],
        ["A", "B", "both"], [1, 2, 0], ["1", "0", "0.5"], [1, -1, 0], [1.0, 0.0, 0.5],
    ],
)  # fmt: skip
def test_winners_may_be_words_numbers_or_names(winner):
    assert told(votes_of(FRAME.assign(winner=winner))) == SAME


def named(left, right, winner):
    """The outcomes of a table."""
    return [row[2] for row in told(votes_of(pandas.DataFrame({"left": left, "right": right, "winner": winner})))]


def test_names_of_items_go_before_words_for_sides():
    """Items may be called a, b, 1 or 2, and stand on either side."""
    assert named(["b", "c", "a"], ["a", "b", "c"], ["a", "c", "tie"]) == [RIGHT, LEFT, TIE]
    assert named([2, 3, 1], [1, 2, 3], [1, 3, 3]) == [RIGHT, LEFT, RIGHT]
    assert named(["a", "c"], ["b", "d"], ["left", "d"]) == [LEFT, RIGHT]


@pytest.mark.parametrize(("items", "winner"), [("ba", ["a", "b"]), ([2, 1], [1, 2])])
def test_a_winner_that_may_be_an_item_or_a_side_is_refused(items, winner):
    with pytest.raises(UserError, match=r"row 1: the winner .* may be the name of an item or that of a side"):
        named([items[0]] * 2, [items[1]] * 2, winner)


def test_zeros_and_ones_are_the_left_items_score():
    assert told(votes_of(FRAME.assign(winner=[1, 0, 1]))) == [("a", "b", LEFT), ("b", "c", RIGHT), ("c", "a", LEFT)]


def test_ids_that_are_numbers_are_one_however_they_are_written():
    votes = votes_of(pandas.DataFrame({"winner": [1.0, 2.0, np.inf], "loser": [2.0, 3.5, 1.0]}))
    assert votes.items.tolist() == ["1", "2", "3.5", "inf"]


def test_winners_and_losers():
    votes = votes_of(pandas.DataFrame({"winner": ["a", "b"], "loser": ["b", "c"]}))
    assert told(votes) == [("a", "b", LEFT), ("b", "c", LEFT)]
    assert votes.judges is None and not votes.ordered


def test_other_names_of_columns_are_given(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("who,one,two,best\nu,a,b,left\nv,b,c,right\nu,c,a,tie\n")
    asked = {"judge": "who", "left": "one", "right": "two", "winner": "best"}
    settings = ",".join(f"{role}={name}" for role, name in asked.items())
    assert told(votes_of(path, asked)) == SAME == told(votes_of(f"{path}[{settings}]"))


def test_arena_style_records():
    records = [
        {"model_a": "x", "model_b": "y", "winner": "model_b", "conversation": [1, 2], "turn": 1},
        {"model_a": "y", "model_b": "z", "winner": "tie (bothbad)", "conversation": [], "turn": 1},
    ]
    assert told(votes_of(pandas.DataFrame(records))) == [("x", "y", RIGHT), ("y", "z", TIE)]


def test_counts_and_weights():
    votes = votes_of(FRAME.assign(count=[2, 0, 1], weight=[0.5, 1, 2]))
    assert told(votes) == [SAME[0], SAME[2]]
    assert votes.amounts.tolist() == [1.0, 2.0]
    assert votes.items.tolist() == ["a", "b", "c"]


def test_covariates_are_differences_in_standard_deviations():
    frame = FRAME.assign(length_left=[1, 5, 3], length_right=[3, 1, 2], turn=[0, 1, 0])
    votes = votes_of(frame, wanted=Wanted(covariates=("length", "turn")))
    difference = np.array([-2, 4, 1.0])
    assert votes.covariates[:, 0] == pytest.approx(difference / difference.std())
    assert votes.covariates[:, 1] == pytest.approx(np.array([0, 1, 0]) / np.std([0, 1, 0]))


@pytest.mark.parametrize(
    ("left", "right", "ends"),
    [("winner", "loser", ("winner", "loser")), ("home", "away", ("left", "right")), ("model_a", "model_b", ("a", "b")),
     ("model_a", "model_b", ("left", "right"))],
)  # fmt: skip
def test_properties_of_the_sides_have_the_ends_of_the_columns_of_items(left, right, ends):
    rows = {left: ["a", "b", "c"], right: ["b", "c", "a"], f"size_{ends[0]}": [1, 5, 3], f"size_{ends[1]}": [3, 1, 2]}
    frame = pandas.DataFrame(rows if left == "winner" else {**rows, "result": ["left", "right", "left"]})
    roles = {} if left == "winner" else {"left": left, "right": right, "winner": "result"}
    difference = votes_of(frame, roles, Wanted(covariates=("size",))).covariates[:, 0]
    assert difference == pytest.approx(np.array([-2, 4, 1]) / np.std([-2, 4, 1]))


def test_a_property_that_is_no_number_is_refused_with_its_place():
    with pytest.raises(UserError, match="the table, row 2: turn is no number"):
        votes_of(FRAME.assign(turn=[0, np.nan, 1]), wanted=Wanted(covariates=("turn",)))


def test_votes_are_taken_as_they_are():
    votes = votes_of(FRAME)
    assert votes_of(votes) is votes


def test_categories():
    votes = votes_of(FRAME.assign(topic=["x", "y", "x"]), wanted=Wanted(by="topic"))
    parts = votes.by_category()
    assert {name: told(part) for name, part in parts.items()} == {"x": [SAME[0], SAME[2]], "y": [SAME[1]]}
    assert parts["y"].items.tolist() == ["b", "c"]


def test_rankings_as_texts():
    votes = votes_of(pandas.DataFrame({"judge": ["u", "v"], "ranking": ["a > b = c", "c>a"]}))
    assert sorted(told(votes)) == sorted([("a", "b", LEFT), ("a", "c", LEFT), ("b", "c", TIE), ("c", "a", LEFT)])
    assert votes.rankings.tied and votes.judges.names.tolist() == ["u", "v"]


def test_rankings_with_a_row_for_each_item():
    frame = pandas.DataFrame({"judge": list("uvuvu"), "item": list("aabbc"), "rank": [1, 2, 2, 1, 2]})
    votes = votes_of(frame)
    assert sorted(told(votes)) == sorted([("a", "b", LEFT), ("a", "c", LEFT), ("b", "c", TIE), ("b", "a", LEFT)])
    assert votes.judges.names[votes.judges.codes].tolist().count("u") == 3


def test_rankings_are_repeated_by_their_counts():
    frame = pandas.DataFrame({"ranking": ["a > b", "b > a", "a > b > c"], "count": [3, 0, 1]})
    votes = votes_of(frame)
    assert sorted(told(votes)) == sorted([("a", "b", LEFT)] * 4 + [("a", "c", LEFT), ("b", "c", LEFT)])
    assert len(votes.judges.names) == 4
    judged = votes_of(frame.assign(judge=["u", "v", "u"]))
    assert judged.judges.names[judged.judges.codes].tolist() == ["u"] * 6


RANKINGS = pandas.DataFrame({"judge": ["u", "v"], "ranking": ["a > b", "b > a"], "topic": ["x", "y"]})
RANKS = pandas.DataFrame({"judge": ["u", "u"], "item": ["a", "b"], "rank": [1, 2]})


@pytest.mark.parametrize(
    ("data", "wanted", "message"),
    [
        (RANKINGS, Wanted(by="topic"), r"has no categories \(topic\)"),
        (RANKS, Wanted(covariates=("length",)), r"has no covariates \(length\)"),
        ("btl[users=5,items=4,comparisons=3,rank=1]", Wanted(by="topic"), r"has no categories \(topic\)"),
        (RANKINGS.assign(weight=1), Wanted(), "rankings have no weight"),
        (RANKS.assign(count=1), Wanted(), "rankings have no count"),
    ],
)
def test_what_rankings_have_not_is_refused_and_not_passed_over(data, wanted, message):
    with pytest.raises(UserError, match=message):
        votes_of(data, wanted=wanted)


def test_columns_that_are_given_go_before_usual_names():
    frame = FRAME.assign(best=["c", "a", "b"], worst=["a", "b", "c"])
    votes = votes_of(frame, {"winner": "best", "loser": "worst"})
    assert told(votes) == [("c", "a", LEFT), ("a", "b", LEFT), ("b", "c", LEFT)]


NEW = "# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: ham\n# ALTERNATIVE NAME 2: egg\n# ALTERNATIVE NAME 3: jam\n"
OLD = "3\n1,ham\n2,egg\n3,jam\n3,3,2\n"


@pytest.mark.parametrize(("head", "after"), [(NEW, ":"), (OLD, ",")])
def test_files_of_preflib_in_both_forms(tmp_path, head, after):
    path = tmp_path / "votes.toc"
    path.write_text(f"{head}2{after} 1,{{2,3}}\n1{after} 3,1\n")
    votes = votes_of(path)
    assert sorted(told(votes)) == sorted(
        [("ham", "egg", LEFT), ("ham", "jam", LEFT), ("egg", "jam", TIE)] * 2 + [("jam", "ham", LEFT)]
    )
    assert len(votes.judges.names) == 3


BAD = [
    ({"winner": ["left", "nobody", "tie"]}, "row 2: the winner is 'nobody', which is neither side"),
    ({"winner": ["left", None, "tie"]}, "row 2: the winner is missing"),
    ({"winner": [1, 3, 0]}, "row 1: the winner is '0', '1', '3'"),
    ({"right": ["a", "c", "a"]}, "row 1: 'a' is compared with itself"),
    ({"judge": [7, None, 7]}, "row 2: the judge is missing"),
    ({"left": ["a", "", "c"]}, "row 2: the left is missing"),
    ({"count": [1, -1, 1]}, "row 2: the count is not a whole number from 0 on"),
    ({"count": [1, 1.5, 1]}, "row 2: the count is not a whole number"),
    ({"weight": [1, np.inf, 1]}, "row 2: the weight is not a number from 0 on"),
]


@pytest.mark.parametrize("name", ["votes.csv.gz", "votes.soc"])
def test_a_packed_file_that_is_damaged_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(b"winner,loser")[:10] + b"\xff" * 50)
    with pytest.raises(UserError, match=rf"{name} is no text: Error -3 while decompressing data"):
        votes_of(tmp_path / name)


def test_a_file_of_preflib_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "votes.soc").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"votes\.soc is no text: "):
        votes_of(tmp_path / "votes.soc")


@pytest.mark.parametrize("role", ["count", "weight"])
def test_votes_of_which_none_counts_are_refused(role):
    with pytest.raises(UserError, match=f"^the table has no row that counts: each has {role} 0$"):
        votes_of(FRAME.assign(**{role: 0}))


@pytest.mark.parametrize(("change", "message"), BAD)
def test_what_is_wrong_is_said_with_its_place(change, message):
    with pytest.raises(UserError) as error:
        votes_of(FRAME.assign(**change))
    assert message in str(error.value) and str(error.value).startswith("the table, row")


def test_lines_of_a_file_are_counted_from_its_heading(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("winner,loser\na,b\nc,c\n")
    with pytest.raises(UserError, match="line 3: 'c' is compared with itself"):
        votes_of(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no heading"),
        ("\n", "has no heading"),
        ("x,y\n1,2\n", "has no comparisons: its columns are x, y"),
        ("winner,loser\n", "has no rows"),
        ("winner,loser\na,b,c\n", "more fields than its heading"),
        ("winner,loser\na,b\na,b,c\n", "cannot be read"),
        ("winner,loser\n\xff\xfe", "is no text"),
        ("judge,ranking\nu,a > > b\n", "line 2: a place in the ranking is empty"),
        ("judge,ranking\nu,a > b > a\n", "line 2: 'a' stands twice in the ranking"),
        ("judge,ranking\nu,a\n", "no ranking has two items"),
        ("item,rank\na,1\n", "no column says whose ranking"),
        ("judge,item,rank\nu,a,1\nu,a,2\n", "line 3: 'a' stands twice in the ranking of 'u'"),
        ("judge,item,rank\nu,a,first\n", "line 2: the rank is no number"),
        ('[{"winner": 1}', "is no JSON"),
        ("{}", "holds no list of records"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, text, message):
    path = tmp_path / "votes.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=message.replace("[", r"\[")):
        votes_of(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\n", "is no file of PrefLib"),
        (NEW, "has no orders"),
        (NEW + "1: 1,9\n", "line 5: there is no alternative '9'"),
        (NEW + "1; 1,2\n", "line 5 is no order of PrefLib"),
        (NEW + "1: 3,{1,2\n", "line 5 is no order of PrefLib"),
        (NEW + "1: 3,{1,{2}}\n", "line 5 is no order of PrefLib"),
        (NEW + "999999999: 1,2\n", "has over 10,000,000 rankings"),
        (NEW + "1: 1,2,1\n", "line 5: 'ham' stands twice"),
    ],
)
def test_bad_files_of_preflib(tmp_path, text, message):
    path = tmp_path / "votes.soc"
    path.write_text(text)
    with pytest.raises(UserError, match=message):
        votes_of(path)


def test_unknown_columns_and_settings_are_named():
    with pytest.raises(UserError, match="has no column 'who'"):
        votes_of(FRAME, {"judge": "who"})
    with pytest.raises(UserError, match="unknown setting 'users'"):
        votes_of(FRAME, {"users": "judge"})
    with pytest.raises(UserError, match="neither a column 'length' nor length_left"):
        votes_of(FRAME, wanted=Wanted(covariates=("length",)))
    with pytest.raises(UserError, match="turn is 1 in all rows"):
        votes_of(FRAME.assign(turn=1), wanted=Wanted(covariates=("turn",)))
    with pytest.raises(UserError, match="nor length_a and length_b nor length_left and length_right"):
        votes_of(FRAME.rename(columns={"left": "model_a", "right": "model_b"}), wanted=Wanted(covariates=("length",)))
    with pytest.raises(UserError, match="has no column 'topic'"):
        votes_of(FRAME, wanted=Wanted(by="topic"))
    with pytest.raises(UserError, match="is not here"):
        votes_of("nowhere.csv")
    with pytest.raises(UserError, match="is not here"):
        votes_of(300 * "x" + ".csv")


@pytest.mark.parametrize("lines", [False, True])
def test_json_may_begin_with_a_byte_order_mark(tmp_path, lines):
    path = tmp_path / "votes.json"
    path.write_text(FRAME.to_json(orient="records", lines=lines), encoding="utf-8-sig")
    assert votes_of(path).items.tolist() == votes_of(FRAME).items.tolist()


def test_numbers_are_ids_as_they_are_written(tmp_path):
    """pandas takes 01 and 1 for the same number."""
    path = tmp_path / "votes.csv"
    path.write_text("winner,loser,judge,count\n01,1,007,2\n1,10,7,1\n")
    votes = votes_of(path)
    assert votes.items.tolist() == ["01", "1", "10"]
    assert votes.judges.names.tolist() == ["007", "7"]
    assert votes.counts.tolist() == [2, 1]
