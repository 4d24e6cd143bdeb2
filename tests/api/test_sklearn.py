"""scikit-learn's own estimator checks, and the models behind the regressors."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.sklearn import MPRank, RankBoost
from rankbench.solvers import mprank, rankboost


@pytest.mark.slow
@parametrize_with_checks(
    [
        MPRank(C=100.0),
        MPRank(C=100.0, form="dual"),
        MPRank(C=100.0, kernel="gaussian", width=2.0),
        RankBoost(n_rounds=10),
        RankBoost(n_rounds=10, rounds="validated", random_state=0),
    ]
)
def test_scikit_learn_takes_it_for_an_estimator(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def problem():
    """Samples, targets, and samples never seen."""
    X, y = make_regression(80, 6, noise=3.0, random_state=0)
    return X[:60], y[:60] / 20, X[60:]


def as_one_user(X, y, new):
    """The view in which one user rated the samples and knows of the new ones."""
    return Ratings([0, len(y)], np.arange(len(y)), y, len(y) + len(new), np.vstack([X, new]))


@pytest.mark.parametrize(
    ("shell", "solver", "steps"),
    [
        (MPRank(C=3.0), mprank.MPRank(C=3.0), 1),
        (MPRank(C=3.0, form="dual"), mprank.MPRank(C=3.0, form="dual"), 1),
        (MPRank(C=3.0, kernel="gaussian", width=2.0), mprank.MPRank(C=3.0, kernel="gaussian", width=2.0), 1),
        (RankBoost(n_rounds=25), rankboost.RankBoost(), 25),
    ],
)
def test_new_samples_score_as_items_that_the_solver_knew_of_but_that_nobody_rated(problem, shell, solver, steps):
    X, y, new = problem
    model = fit(solver, as_one_user(X, y, new), steps=steps)
    expected = model.score(np.zeros(20, np.int32), np.arange(60, 80))
    np.testing.assert_allclose(shell.fit(X, y).predict(new), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("estimator", [MPRank(), MPRank(kernel="gaussian"), RankBoost(n_rounds=5)])
def test_sparse_samples_score_as_dense_ones(problem, estimator):
    X, y, new = problem
    thin, thin_new = (np.where(np.abs(part) > 1, part, 0.0) for part in (X, new))
    dense = clone(estimator).fit(thin, y).predict(thin_new)
    sparse = clone(estimator).fit(scipy.sparse.csr_array(thin), y).predict(scipy.sparse.csr_array(thin_new))
    np.testing.assert_allclose(sparse, dense, rtol=1e-10)


def test_what_was_set_after_fitting_changes_no_prediction(problem):
    X, y, new = problem
    fitted = MPRank(kernel="gaussian", width=2.0).fit(X, y)
    before = fitted.predict(new)
    assert fitted.set_params(width=0.1).predict(new).tobytes() == before.tobytes()


def test_it_can_be_searched_in_a_pipeline(problem):
    X, y, _ = problem
    search = GridSearchCV(make_pipeline(StandardScaler(), MPRank()), {"mprank__C": [1e-3, 1e3]}, cv=3).fit(X, y)
    assert search.best_params_ == {"mprank__C": 1e3}


def test_the_same_random_state_gives_the_same_rounds(problem):
    X, y, new = problem
    one, same = (RankBoost(rounds="validated", random_state=3).fit(X, y).predict(new) for _ in range(2))
    assert one.tobytes() == same.tobytes()


# what is refused


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (MPRank(C=0.0), "MPRank: C=0 is out of range"),
        (MPRank(kernel="gaussian", width=-1.0), "MPRank: width=-1 is out of range"),
        (MPRank(kernel="cubic"), "MPRank: unknown value of kernel: 'cubic'"),
        (RankBoost(held_out=1.0), "RankBoost: held_out=1 is out of range"),
    ],
)
def test_a_bad_setting_is_named_when_it_is_fitted(problem, estimator, message):
    X, y, _ = problem
    with pytest.raises(UserError, match=message):
        estimator.fit(X, y)


@pytest.mark.parametrize("estimator", [MPRank(), RankBoost()])
def test_one_sample_has_no_order(estimator):
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        estimator.fit([[1.0]], [1.0])


def test_targets_or_features_all_alike_score_alike():
    X = np.arange(4.0)[:, None]
    np.testing.assert_allclose(MPRank().fit(X, [3.0] * 4).predict(X), 3.0)
    np.testing.assert_allclose(MPRank().fit(np.ones((4, 1)), np.arange(4.0)).predict(X[:1]), 1.5)
    assert (RankBoost().fit(X, [3.0] * 4).predict(X) == 0).all()
    assert (RankBoost().fit(np.ones((4, 1)), np.arange(4.0)).predict(X) == 0).all()


def test_without_scikit_learn_the_extra_is_named():
    code = "import sys; sys.modules['sklearn'] = None; import rankbench.sklearn"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert run.stderr.splitlines()[-1] == (
        'ImportError: rankbench.sklearn needs scikit-learn: pip install "rankbench[sklearn]"'
    )
