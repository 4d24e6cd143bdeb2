"""Times that stand in a file as texts."""

import datetime
import warnings

import numpy as np
import pandas
import pytest

from rankbench.api.comparing import audit
from rankbench.api.loading import load
from rankbench.core.errors import UserError
from rankbench.data.tables.times import as_times, first_unread, kind_of, settled, unread, whole


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1600102000", "digits"), ("1600102000.0", "floats"), ("1.600102e+18", "floats"), ("2020-01-31", "dates"),
        ("", "dates"), ("soon", "dates"), ("-5", "digits"), ("+5", "digits"), ("\u0662\u0660", "dates"),
        ("31/01/2020", "%d/%m/%Y"), ("1.2.2020 7:05", "%d.%m.%Y %H:%M"), ("31-1-2020T07:05:00", "%d-%m-%YT%H:%M:%S"),
        ("2020/1/31", "%Y/%m/%d"), ("31/01/20", "dates"), ("31/01-2020", "dates"),
    ],
)  # fmt: skip
def test_the_first_time_tells_how_they_are_written(text, kind):
    assert kind_of(text) == kind


def test_floats_are_the_whole_numbers_that_they_are():
    assert as_times(np.array(["16.0", "1.7e+01"]), "floats").tolist() == [16, 17]
    for wrong in (0.5, np.nan, np.inf, 2.0**63):
        with pytest.raises(ValueError, match="no whole number"):
            whole(np.array([1.0, wrong]))


@pytest.mark.parametrize("place", range(6))
def test_the_first_time_that_is_none_is_found_wherever_it_stands(place):
    texts = ["7"] * 5
    texts[place:] = ["x"] * (5 - place)
    assert first_unread(texts, "digits") == place


@pytest.mark.parametrize(
    "form", ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y %H:%M", "%Y/%m/%d", "%m-%d-%YT%H:%M:%S", "%Y.%m.%d %H:%M"]
)
def test_dates_of_other_kinds_are_those_of_strptime(form):
    rng = np.random.default_rng(0)
    moments = [
        datetime.datetime(1000, 1, 1) + datetime.timedelta(seconds=int(one)) for one in rng.integers(0, 2.8e11, 500)
    ]
    texts = [one.strftime(form.replace("%Y", f"{one.year:04d}")) for one in moments]
    found = settled(as_times(np.array(texts), kind_of(texts[0])))
    expected = np.array([datetime.datetime.strptime(text, form) for text in texts], "datetime64[us]")
    assert (found == expected.astype(np.int64)).all()


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["1/2/2020", "3/4/2020"], (0, "in the time '1/2/2020', as in all others, either number may be the day")),
        (["31/1/2020", "2/13/2020"], (1, "the time '2/13/2020' cannot be read like the first one, '31/1/2020'")),
        (["31/1/2020", "29/2/2021"], (1, "the time '29/2/2021' cannot be read like the first one, '31/1/2020'")),
        (["31/1/2020", "31//2020", "1/1/2/2020"], (1, "the time '31//2020' cannot be read like the first one")),
        (["31/1/2020", "1/1/2020 07:00"], (1, "the time '1/1/2020 07:00' cannot be read like")),
        (["31/1/2020", "99999999999999999999/1/2020"], (1, "the time '99999999999999999999/1/2020' cannot be read")),
        (["13/13/2020", "1/1/2020"], (0, "the time '13/13/2020' is neither")),
        (["2020/02/30"], (0, "the time '2020/02/30' is neither")),
        (["1/1/2020", "3/4/2020"], (1, "in the time '3/4/2020', as in all others, either number may be the day")),
        (["1/1/2020", "2/2/2020"], (0, "")),
        (["7", "1_000"], (1, "the time '1_000' cannot be read like the first one, '7'")),
        (["2020-01-31", "today"], (1, "the time 'today' cannot be read like the first one")),
        (["2020-01-31", ""], (1, "the time is missing")),
    ],
)
def test_it_is_said_which_time_cannot_be_read_and_why(texts, why):
    place, said = unread(texts, kind_of(texts[0]))
    assert place == why[0] and said.startswith(why[1]) and bool(said) == bool(why[1])
    if said:
        with pytest.raises((ValueError, OverflowError)):
            settled(as_times(np.array(texts), kind_of(texts[0])))


ALIKE = {
    "days first": ["31/01/2020", "01/02/2020", "03/04/2020"],
    "months first": ["01/31/2020", "02/01/2020", "03/04/2020"],
    "either": ["01/02/2020", "02/03/2020", "03/04/2020"],
    "slashes": ["2020/01/31", "2020/02/01", "2020/03/04"],
    "whole numbers": ["20200131", "20200201", "20200304"],
    "negative": ["-5", "3", "4"],
    "some with a zone": ["2020-01-31T00:00:00", "2020-02-01T00:00:00-05:00", "2020-03-04T00:00:00Z"],
    "nanoseconds": ["2020-01-31T00:00:00.123456789"] * 3,
    "a month": ["2020-01", "2020-02", "2020-03"],
    "missing": ["2020-01-31", "", "2020-03-04"],
    "words": ["2020-01-31", "today", "now"],
    "a named zone": ["2020-01-31 00:00:00 UTC"] * 3,
}


@pytest.mark.parametrize("texts", ALIKE.values(), ids=ALIKE)
def test_texts_of_times_mean_the_same_in_every_kind_of_table(tmp_path, texts):
    table = pandas.DataFrame({"user": ["a", "a", "b"], "item": ["x", "y", "x"], "rating": [1, 2, 3], "date": texts})
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    table.to_parquet(tmp_path / "a.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        times = [load(one).times for one in (table, *(tmp_path / f"a.{end}" for end in ("csv", "jsonl", "parquet")))]
    assert len({None if one is None else tuple(one.tolist()) for one in times}) == 1
    read = {"either", "missing", "words", "a named zone"}.isdisjoint(
        name for name, known in ALIKE.items() if known is texts
    )
    assert (times[0] is not None) == read
    if not read:
        for end in ("csv", "jsonl", "parquet"):
            assert "not all times can be read" in str(audit(tmp_path / f"a.{end}"))
        with pytest.raises(UserError, match=r"row \d: .*; convert it: pandas.to_datetime"):
            load(table, timestamp="date")


def test_parts_of_a_column_that_do_not_agree_are_no_times(tmp_path, monkeypatch):
    texts = ["31/01/2020", "01/02/2020", "02/28/2020"]
    table = pandas.DataFrame({"user": ["a", "a", "b"], "item": ["x", "y", "x"], "rating": [1, 2, 3], "date": texts})
    table.to_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr("rankbench.data.sources.columnar._ROWS", 2)
    assert load(tmp_path / "a.parquet").times is None
    assert "row 3: the time '02/28/2020' cannot be read like the first one" in str(audit(tmp_path / "a.parquet"))
