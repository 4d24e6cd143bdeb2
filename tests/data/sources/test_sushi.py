"""Sushi: orders and scores, the ids of set A, features, and malformed files."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from data.sources.at_hand import REAL, needs, put, triples, view_of, words

from rankbench.core.errors import UserError
from rankbench.data.building import Counts
from rankbench.data.sources import sushi
from rankbench.data.sources.sushi import Sushi

at_hand = needs("sushi/sushi3a.5000.10.order", "sushi/sushi3b.5000.10.order", "sushi/sushi3.idata")

ITEMS = "".join(f"{kind}\tname\t{kind % 2}\t0\t{kind % 12}\t1.5\t2.5\t3.5\t0.25\n" for kind in range(100))
ORDER_A = "10 1\n0 10 5 0 3 4 6 9 8 1 7 2\n0 10 0 1 2 3 4 5 6 7 8 9\n"
ORDER_B = "100 1\n0 10 58 4 3 44 87 60 67 1 12 74\n0 10 99 98 97 96 95 94 93 92 91 90\n"


@pytest.fixture
def own(folders, monkeypatch):
    """Folders of our own, and counts that fit the small files."""
    monkeypatch.setattr(sushi, "_PEOPLE", 2)
    counts = {"a": Counts(20, 2, 10), "b": Counts(20, 2, 20), "scores": Counts(3, 2, 3)}
    monkeypatch.setattr(sushi, "_COUNTS", counts)


def test_the_best_kind_has_ten_and_ids_of_set_a_are_those_of_set_b(own):
    put("sushi", {"sushi3a.5000.10.order": ORDER_A, "sushi3.idata": ITEMS})
    view = view_of(Sushi(part="a"))
    assert view.item_ids.tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 26, 29]
    of_the_first = {item: value for user, item, value in triples(view) if user == 1}
    assert of_the_first == {6: 10, 0: 9, 3: 8, 4: 7, 7: 6, 29: 5, 26: 4, 1: 3, 8: 2, 2: 1}


def test_orders_of_ten_of_a_hundred(own):
    put("sushi", {"sushi3b.5000.10.order": ORDER_B, "sushi3.idata": ITEMS})
    view = view_of(Sushi())
    assert sorted(triples(view))[:2] == [(1, 1, 3.0), (1, 3, 8.0)]
    assert {item: value for user, item, value in triples(view) if user == 2}[99] == 10
    assert words(view, 3) == [
        "maki or not", "heaviness", "how often eaten", "price", "how often sold", "minor group 3",
    ]  # fmt: skip
    assert view_of(Sushi(features="none")).item_features is None


@pytest.mark.parametrize("packed", [False, True])
def test_scores_below_zero_are_none(own, packed):
    rows = [[-1] * 100, [-1] * 100]
    rows[0][7], rows[0][8], rows[1][9] = 4, 0, 2
    text = "".join(" ".join(map(str, row)) + "\n" for row in rows)
    name, content = ("sushi3b.5000.10.score", text) if not packed else (
        "sushi3b.5000.10.score.gz", gzip.compress(text.encode()))  # fmt: skip
    put("sushi", {name: content, "sushi3.idata": ITEMS})
    assert triples(view_of(Sushi(part="scores"))) == [(1, 7, 4.0), (1, 8, 0.0), (2, 9, 2.0)]


def test_a_heading_of_the_features_is_passed_over(own):
    put("sushi", {"sushi3b.5000.10.order": ORDER_B, "sushi3.idata": "#name style ...\n\n" + ITEMS})
    assert view_of(Sushi()).item_features.shape == (20, 18)


@pytest.mark.parametrize(
    ("order", "items", "message"),
    [
        (ORDER_B.replace("58", "xx"), ITEMS, "line 2: a field is no whole number"),
        (ORDER_B.replace("58", "4"), ITEMS, "line 2: a kind stands twice in the order"),
        (ORDER_B.replace("58", "100"), ITEMS, "line 2: not 12 numbers up to 99"),
        (ORDER_B.replace("0 10 99 98", "0 10 99"), ITEMS, "line 3: 11 fields where 12 are needed"),
        (ORDER_B + "0 10 1 2 3 4 5 6 7 8 9 10\n", ITEMS, "3 people, not 2"),
        (ORDER_B, ITEMS[: ITEMS.index("99\t")], "99 kinds of sushi, not 100"),
        (ORDER_B, ITEMS.replace("\t1.5", "\tx"), "line 1: not a kind of sushi"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(own, order, items, message):
    put("sushi", {"sushi3b.5000.10.order": order, "sushi3.idata": items})
    with pytest.raises(UserError, match=message):
        view_of(Sushi())


def test_what_is_missing_is_fetched_by_its_name(own):
    assert Sushi().origin.missing() == "rankbench data fetch sushi"
    assert Sushi(part="a").origin.missing() == "rankbench data fetch sushi[part=a]"


@at_hand
def test_the_real_orders(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKBENCH_CACHE", str(tmp_path))
    for part, items in (("a", 10), ("b", 100)):
        view = view_of(Sushi(part=part))
        assert (len(view), view.n_users, view.n_items) == (50_000, 5_000, items)
        assert (np.diff(view.indptr) == 10).all()
        rows = Path(REAL, "sushi", f"sushi3{part}.5000.10.order").read_text().split("\n")[1:5001]
        best = [int(row.split()[2]) for row in rows]
        kinds = [sushi._KINDS_OF_A[kind] if part == "a" else kind for kind in best]
        top = view.values == 10
        assert view.item_ids[view.items[top]].tolist() == kinds
