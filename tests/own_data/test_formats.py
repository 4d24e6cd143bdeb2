"""The same ratings in other formats, or with their rows in another order: the same splits, trials and digits."""

from math import inf

import numpy as np
import pandas as pd
import pytest

import rankbench

pytestmark = pytest.mark.slow
ASKED = {"solver": ["mf[rank=2]", "sgd[rank=2]"], "trials": 2, "repetitions": 2, "metric": ["ndcg@10"], "time": inf}


def made():
    """Ratings of thirty users."""
    rng = np.random.default_rng(0)
    rows = [(user, item, int(rng.integers(1, 6))) for user in range(30) for item in rng.choice(60, 25, replace=False)]
    return pd.DataFrame(rows, columns=["user", "item", "rating"])


def digits(data, **changes):
    """What is measured: the settings that were chosen, and the value of each cell."""
    found = rankbench.on(data, **{**ASKED, **changes}).results()
    return found.drop(columns=["experiment", "data", "seconds", "peak_mb", "key"]).astype(str).values.tolist()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The digits of the ratings as CSV."""
    path = tmp_path_factory.mktemp("expected") / "ratings.csv"
    made().to_csv(path, index=False)
    return digits(path)


def semicolons(frame, path):
    frame.to_csv(path, index=False, sep=";")


def bare(frame, path):
    frame.to_csv(path, index=False, header=False)


def tabs(frame, path):
    frame.to_csv(path, index=False, sep="\t")


def other_columns(frame, path):
    frame[["rating", "user", "item"]].to_csv(path, index=False)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("write", [semicolons, bare, tabs, other_columns])
def test_text_in_any_form_gives_the_same_digits(tmp_path, expected, write):
    write(made(), tmp_path / "other.csv")
    assert digits(tmp_path / "other.csv") == expected


@pytest.mark.trust
def test_rows_in_another_order_give_the_same_digits(tmp_path, expected):
    made().sample(frac=1, random_state=1).to_csv(tmp_path / "shuffled.csv", index=False)
    assert digits(tmp_path / "shuffled.csv") == expected


@pytest.mark.trust
def test_a_frame_gives_the_same_digits(expected):
    assert digits(made().sample(frac=1, random_state=2)) == expected


@pytest.mark.trust
def test_columns_give_the_same_digits(tmp_path, expected):
    pytest.importorskip("pyarrow")
    made().sample(frac=1, random_state=3).to_parquet(tmp_path / "ratings.parquet", index=False)
    assert digits(tmp_path / "ratings.parquet") == expected


def test_other_ratings_give_other_digits(tmp_path, expected):
    frame = made()
    frame.loc[0, "rating"] = 1 + frame.loc[0, "rating"] % 5
    assert digits(frame) != expected
