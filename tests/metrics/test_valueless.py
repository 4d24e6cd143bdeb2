"""A metric without a value for any user is known before anything is trained."""

import numpy as np
import pytest

from rankbench import Ratings
from rankbench.metrics import metric
from rankbench.metrics.evaluation import per_user, valueless
from rankbench.models import Factors

NAMES = [
    f"{name}{cut}[candidates=catalogue{relevant}]"
    for name, cut in (("recall", "@2"), ("precision", "@2"), ("map", ""), ("mrr", ""), ("auc", ""), ("ndcg", "@2"))
    for relevant in ("", ",relevant=any")
    if name != "ndcg" or not relevant
]


@pytest.mark.parametrize(
    "name",
    [
        *NAMES,
        "precision@2[candidates=catalogue,users=all]",
        "recall[candidates=catalogue,users=ordered]",
        "ndcg@2",
        "recall@2",
        "pairwise-error",
    ],
)
@pytest.mark.parametrize("value", [1.0, 5.0])
def test_what_is_said_without_a_model_is_what_evaluation_gives(name, value):
    train = Ratings.from_triples(np.array([0, 1, 1]), np.array([0, 0, 1]), np.full(3, value), 2, 4)
    test = Ratings.from_triples(np.array([0, 1]), np.array([1, 2]), np.full(2, value), 2, 4)
    record = metric(name)
    nothing = Factors(np.zeros((2, 1)), np.zeros((4, 1)))
    values = per_user(nothing, test, [record], train=train)[record.label]
    assert (valueless(record, test, train) is None) == (not np.isnan(values).all())


def test_where_a_user_has_an_order_every_metric_has_a_value():
    train = Ratings.from_triples(np.array([0]), np.array([0]), np.array([3.0]), 1, 4)
    test = Ratings.from_triples(np.array([0, 0]), np.array([1, 2]), np.array([1.0, 2.0]), 1, 4)
    assert valueless(metric("ndcg@2"), test, train) is None
