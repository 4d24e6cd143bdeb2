"""Data, splits and models are shown on one line, and as small tables in notebooks."""

from html.parser import HTMLParser

import numpy as np
import pytest
from models.test_models import EXAMPLES, every_model

import rankbench
from rankbench.data.views import Comparisons, Ratings
from rankbench.fitted import Fitted
from rankbench.models import ScatteredFactors, ScatteredFeatureFactors, ScatteredUsers

RATINGS = Ratings.from_triples(
    [0, 0, 1], [0, 1, 2], [1.0, 4.5, 2.0], item_features=np.eye(3), user_ids=["a<b", "c"], item_ids=[7, 8, 9]
)


class Cells(HTMLParser):
    """The texts of all cells of an HTML table; every tag that is opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.open = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells.append(data)


def test_a_view_is_shown_by_its_sizes():
    sizes = "users: 2 like 'a<b', items: 3 like 7"
    assert repr(RATINGS) == f"Ratings({sizes}, ratings: 3 from 1 to 4.5, item features: 3)"
    assert repr(RATINGS.comparisons()) == f"Comparisons({sizes}, comparisons: 1, item features: 3)"
    assert repr(Ratings([0], [], [], 0)) == "Ratings(users: 0, items: 0, ratings: 0)"
    assert repr(Comparisons([0], [], [], 0)) == "Comparisons(users: 0, items: 0, comparisons: 0)"


def test_a_notebook_shows_a_table_with_the_same_facts():
    cells = [
        "Ratings",
        "users",
        "2 like 'a<b'",
        "items",
        "3 like 7",
        "ratings",
        "3 from 1 to 4.5",
        "item features",
        "3",
    ]
    assert Cells(RATINGS._repr_html_()).cells == cells
    assert "comparisons" in Cells(RATINGS.comparisons()._repr_html_()).cells


@every_model
def test_a_model_of_any_size_is_shown_on_one_line(name):
    shown = repr(EXAMPLES[name])
    assert shown.startswith(type(EXAMPLES[name]).__name__) and "\n" not in shown and len(shown) < 300
    assert Cells(EXAMPLES[name]._repr_html_()).cells[0] == type(EXAMPLES[name]).__name__


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Factors", "Factors(users=float64[3 x 4], items=float64[5 x 4])"),
        ("UserWeights, sparse",
         "UserWeights(features=sparse float64[5 x 4], weights=float64[3 x 4], offsets=float64[3])"),
    ],
)  # fmt: skip
def test_arrays_are_shown_by_their_types_and_shapes(name, text):
    assert repr(EXAMPLES[name]) == text


def test_a_split_and_a_fitted_model_are_shown_by_their_parts():
    split = rankbench.split(RATINGS, "per-user", test=0.5)
    assert repr(split) == f"Split(train={split.train!r}, test={split.test!r})"
    assert Cells(split._repr_html_()).cells == ["Split", "train", repr(split.train), "test", repr(split.test)]
    model = Fitted(EXAMPLES["ItemScores"], np.array(["a", "b"]), np.arange(5))
    assert repr(model) == "Fitted(ItemScores(scores=float64[5]), 2 users like 'a', 5 items like 0)"
    assert Cells(model._repr_html_()).cells[:2] == ["Fitted", "model"]


def test_a_model_whose_users_are_in_other_processes_is_shown_without_asking_for_them():
    users = ScatteredUsers(None, np.array([0, 4, 6]), None, 2)
    shown = "users=ScatteredUsers(6 x 2 in 2 parts)"
    assert repr(ScatteredFactors(users, np.ones((5, 2)))) == f"ScatteredFactors({shown}, items=float64[5 x 2])"
    both = ScatteredFeatureFactors(users, np.ones((3, 2)), np.ones((5, 3)))
    assert repr(both) == f"ScatteredFeatureFactors({shown}, basis=float64[3 x 2], features=float64[5 x 3])"
