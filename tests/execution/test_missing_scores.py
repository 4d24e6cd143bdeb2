"""Held-out items that a model does not score: how many they are, and whether it was trained on them."""

import numpy as np
import pytest

from rankbench.data.views import Comparisons, Ratings, layout
from rankbench.execution.worker import without_score


class Table:
    """A model with a score for each user and item."""

    def __init__(self, scores):
        self.scores = scores

    def score(self, users, items):
        return self.scores[users, items]


@pytest.fixture(params=[7, 1 << 22], ids=["in blocks", "at once"])
def blocks_of(request, monkeypatch):
    """Rows are looked at seven at a time, or all together."""
    monkeypatch.setattr(layout, "PIECE", request.param)


def triples(seed, n_users, n_items, share):
    rng = np.random.default_rng(seed)
    users, items = np.divmod(np.flatnonzero(rng.random(n_users * n_items) < share), n_items)
    return rng, users, items


@pytest.mark.parametrize("kind", ["ratings", "comparisons"])
def test_missing_scores_are_counted_and_those_that_should_be_there_are_an_error(blocks_of, kind):
    rng, users, items = triples(0, 20, 15, 0.5)
    kept = (users % 5 > 0) & (items < 12)  # the others are in no training row
    alike = users[kept & (items == 11)][0]  # the ratings of one user are equal; and nobody else has rated item 11
    kept &= (items < 11) | (users == alike)
    values = np.where(users == alike, 3.0, rng.integers(1, 4, len(users)))
    scores = np.where((rng.random((20, 15)) < 0.2) | (np.arange(15) == 11), np.nan, 0.0)
    if kind == "ratings":
        train = Ratings.from_triples(users[kept], items[kept], values[kept], 20, 15)
        test = Ratings.from_triples(users, items, values, 20, 15)
        columns = [test.items]
        learned = [
            (u, i) for u, i in zip(users[kept], items[kept], strict=True) if len(set(values[kept & (users == u)])) > 1
        ]
    else:
        train = Comparisons.from_triples(users[kept], items[kept], (items[kept] + 1) % 12, 20, 15)
        test = Comparisons.from_triples(users, items, (items + 1) % 15, 20, 15)
        columns = [test.better, test.worse]
        learned = [(u, i) for u, one in zip(users[kept], items[kept], strict=True) for i in (one, (one + 1) % 12)]
    known_users, known_items = ({pair[side] for pair in learned} for side in (0, 1))
    share, reason = without_score(Table(scores), test, train)
    missing = [np.isnan(scores[test.users, column]) for column in columns]
    lost = sum(
        (user in known_users) and (item in known_items)
        for column, nan in zip(columns, missing, strict=True)
        for user, item in zip(test.users[nan], column[nan], strict=True)
    )
    assert share == np.mean([nan.mean() for nan in missing]) and 0 < share < 1
    assert reason == f"NaN for {lost} held-out pairs whose user and item it was trained on" and lost < np.sum(missing)


def test_a_model_that_scores_all_it_was_trained_on_is_well(blocks_of):
    _, users, items = triples(1, 20, 15, 0.4)
    known = (users < 10) & (items < 10)
    train = Comparisons.from_triples(users[known], items[known], (items[known] + 1) % 10, 20, 15)
    test = Comparisons.from_triples(users, items, (items + 1) % 15, 20, 15)
    scores = np.where((np.arange(20) < 10)[:, None] & (np.arange(15) < 10), 1.0, np.nan)
    share, reason = without_score(Table(scores), test, train)
    assert reason is None and share == np.mean(np.isnan(scores[test.users, [test.better, test.worse]]))
