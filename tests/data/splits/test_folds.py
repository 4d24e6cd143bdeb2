"""The split by published folds: which fold is tested, and which users are kept."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from data.splits.small import cut_or_skip, patient, per_user, ratings, rows_of, rows_of_users
from hypothesis import given
from hypothesis import strategies as st

from rankbench.core.errors import UserError
from rankbench.data.splits import split
from rankbench.data.views import Ratings


@patient
@given(ratings(folds=4), st.integers(0, 3), st.integers(0, 8))
def test_a_repetition_tests_its_fold_and_trains_on_all_else_of_whoever_has_enough_in_every_fold(view, r, least):
    parts = cut_or_skip(view, f"given-folds[least={least}]", repetition=r)
    in_folds = [view.take(np.flatnonzero(view.folds == fold)) for fold in (1, 2, 3, 4)]
    enough = np.min([per_user(view) - per_user(fold) for fold in in_folds], axis=0) >= least
    assert rows_of(parts.test) == rows_of_users(in_folds[r], enough)
    assert rows_of(parts.train) + rows_of(parts.test) == rows_of_users(view, enough)


@patient
@given(ratings(folds=4), st.integers(1, 4))
def test_a_fold_can_be_named_instead_whatever_the_repetition(view, fold):
    expected = cut_or_skip(view, "given-folds", repetition=fold - 1)
    assert split(view, f"given-folds[fold={fold}]", repetition=7).hash == expected.hash


THREE = Ratings([0, 3, 6], [0, 1, 2, 0, 1, 2], [1.0, 2, 3, 1, 2, 3], 3, folds=[1, 2, 3, 1, 2, 3])


def test_more_repetitions_than_folds_are_an_error_that_says_how_many_there_are():
    with pytest.raises(UserError, match=r"asks for fold 4, but 3 folds were published: ask for at most 3 repetitions"):
        split(THREE, "given-folds", repetition=3)


def test_data_without_folds_is_an_error():
    for folds in (None, np.zeros(6, int)):
        with pytest.raises(UserError, match=r"given-folds\[least=1\] needs published folds, and this data has none"):
            split(replace(THREE, folds=folds), "given-folds")


# ---- MovieLens 100K ----


@pytest.fixture(scope="module")
def ml_100k():
    """The published files, read here with nothing of ours: the view, and the rows of u1..u5.base and .test."""
    folder = Path(os.environ.get("RANKBENCH_DATA", ""), "ml-100k")
    if "RANKBENCH_DATA" not in os.environ or not (folder / "u.data").is_file():
        pytest.skip("RANKBENCH_DATA names no folder with ml-100k/u.data")
    files = {name: np.loadtxt(folder / name, int)[:, :3] for name in ["u.data"] + [
        f"u{fold}.{part}" for fold in range(1, 6) for part in ("base", "test")]}  # fmt: skip
    fold_of = {(u, i): fold for fold in range(1, 6) for u, i, _ in files[f"u{fold}.test"].tolist()}
    users, items, values = files["u.data"].T
    folds = [fold_of[pair] for pair in zip(users.tolist(), items.tolist(), strict=True)]
    return Ratings.from_triples(users - 1, items - 1, values, folds=folds), files


@pytest.mark.parametrize("fold", range(1, 6))
def test_the_folds_of_movielens_100k_are_its_files(ml_100k, fold):
    view, files = ml_100k
    parts = split(view, "given-folds", repetition=fold - 1)
    for part, name in ((parts.train, "base"), (parts.test, "test")):
        published = files[f"u{fold}.{name}"]
        expected = published[np.lexsort((published[:, 1], published[:, 0]))]
        np.testing.assert_array_equal(np.stack([part.users + 1, part.items + 1, part.values], axis=1), expected)


def test_923_users_of_movielens_100k_have_ten_ratings_in_every_training_part(ml_100k):
    view, files = ml_100k
    counts = [np.bincount(files[f"u{fold}.base"][:, 0] - 1, minlength=943) for fold in range(1, 6)]
    enough = np.min(counts, axis=0) >= 10
    assert enough.sum() == 923  # Gunasekar et al. 2016, section 6
    for repetition in range(5):
        parts = split(view, "given-folds[least=10]", repetition=repetition)
        assert (per_user(parts.train) > 0).tolist() == enough.tolist()
        assert not per_user(parts.test)[~enough].any()


@patient
@given(ratings(), st.integers(2, 5), st.sampled_from(["rows", "user"]))
def test_drawn_folds_partition_the_rows(view, k, per):
    parts = [cut_or_skip(view, f"k-folds[k={k},per={per}]", repetition=r) for r in range(k)]
    assert sum((rows_of(part.test) for part in parts), Counter()) == rows_of(view)
    assert all(rows_of(part.train) + rows_of(part.test) == rows_of(view) for part in parts)
    sizes = [len(part.test) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    if per == "user":
        counts = np.array([per_user(part.test) for part in parts])
        assert (counts.max(axis=0) - counts.min(axis=0) <= 1).all()


def test_there_are_as_many_repetitions_as_drawn_folds():
    with pytest.raises(UserError, match=r"asks for fold 3 of 2: ask for at most 2 repetitions"):
        split(THREE, "k-folds[k=2]", repetition=2)
