"""The strongest features of basic ranking functions: which are stored, and in which order."""

import numpy as np
import pytest
import scipy.sparse

from rankbench.core.contract import RankingFunctions
from rankbench.execution.strongest_features import COLUMNS, SHOWN, leading_functions
from rankbench.models import MODELS, Factors, FeatureFactors
from rankbench.records.results import RankingFunction, Weight

NAMES = np.array(["drama", "war", "comedy", "noir"])
WEIGHTS = [[0.5, 3.0], [2.0, 0.0], [-1.0, -4.0], [-0.25, 1.0]]


def model(users):
    return FeatureFactors(np.array(users, float), np.array(WEIGHTS), np.eye(4))


def weights(**named):
    return tuple(Weight(feature, weight) for feature, weight in named.items())


def test_the_strongest_features_of_either_sign_come_first():
    first, second = leading_functions(model([[1, 1], [1, 0]]), NAMES)
    assert first == RankingFunction(weights(war=2.0, drama=0.5), weights(comedy=-1.0, noir=-0.25))
    assert second == RankingFunction(weights(drama=3.0, noir=1.0), weights(comedy=-4.0))


def test_a_function_is_shown_with_the_sign_that_the_mean_user_gives_it():
    first, second = leading_functions(model([[-1, 1], [-2, 0]]), NAMES)
    assert first.positive == weights(comedy=1.0, noir=0.25)
    assert second.positive == weights(drama=3.0, noir=1.0)


def test_no_more_than_so_many_features_and_functions_are_kept():
    names = np.array([f"word {number}" for number in range(100)])
    wide = FeatureFactors(np.ones((1, 30)), np.repeat(np.arange(100.0)[:, None] - 50, 30, axis=1), np.eye(100))
    found = leading_functions(wide, names)
    assert len(found) == COLUMNS
    assert [len(found[0].positive), len(found[0].negative)] == [SHOWN, SHOWN]
    assert (found[0].positive[0], found[0].negative[0]) == (Weight("word 99", 49.0), Weight("word 0", -50.0))


@pytest.mark.parametrize(
    ("kind", "names"), [(model([[1, 1]]), None), (Factors(np.ones((1, 1)), np.ones((4, 1))), NAMES)]
)
def test_without_names_or_basic_functions_there_is_nothing_to_show(kind, names):
    assert leading_functions(kind, names) == ()


def test_a_model_of_ones_own_is_shown_too():
    class Linear:
        """A single function, which the mean user turns round."""

        def score(self, users, items):
            return -np.eye(4)[items] @ WEIGHTS[0]

        def ranking_functions(self):
            return np.array(WEIGHTS)[:, :1], np.array([-0.5])

    (found,) = leading_functions(Linear(), NAMES)
    assert found == RankingFunction(weights(comedy=1.0, noir=0.25), weights(war=-2.0, drama=-0.5))


def test_feature_factors_alone_of_our_models_have_ranking_functions():
    assert [name for name, cls in MODELS.items() if issubclass(cls, RankingFunctions)] == ["FeatureFactors"]


def test_a_models_functions_make_its_scores():
    users = np.random.default_rng(0).standard_normal((3, 2))
    for features in (np.eye(4), scipy.sparse.csr_array(np.eye(4))):
        functions, mean_user = FeatureFactors(users, np.array(WEIGHTS), features).ranking_functions()
        own = FeatureFactors(users, np.array(WEIGHTS), features).score_all(np.arange(3))
        np.testing.assert_allclose(own.mean(axis=0), features @ functions @ mean_user)
