"""Solvers of single rankings as scikit-learn regressors: `MPRank().fit(X, y).predict(X)`; needs the extra `sklearn`.

A regressor is a shell: its parameters are a solver's settings, its samples the items that one user rated.
What it predicts is a score, of which the solver's paper promises the order, or the differences, and not the
level. (Inheriting from scikit-learn's classes is what makes a class an estimator there.)
"""

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse

from rankbench.contract import Floats, Model
from rankbench.data.views import Ratings
from rankbench.harness.training import fit
from rankbench.models import KernelScores, Stumps, UserWeights
from rankbench.solvers import mprank, rankboost

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError('rankbench.sklearn needs scikit-learn: pip install "rankbench[sklearn]"') from error


class MPRank(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Magnitude-preserving ranking in closed form; the settings are those of `rankbench.MPRank`."""

    def __init__(
        self,
        C: float = 1.0,
        kernel: Literal["linear", "gaussian"] = "linear",
        width: float = 1.0,
        form: Literal["auto", "primal", "dual"] = "auto",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.width = width
        self.form = form

    def fit(self, X: Any, y: Any) -> Self:
        """Itself, with `model_`."""
        _fit(self, mprank.MPRank(self.C, self.kernel, self.width, self.form), X, y)
        return self

    def predict(self, X: Any) -> Floats:
        """A score per row, with the mean of the training targets."""
        return _predict(self, X)

    def __sklearn_tags__(self) -> Any:
        """It takes sparse X, too."""
        return _tags(super().__sklearn_tags__())


class RankBoost(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """RankBoost with thresholds on features, `n_rounds` of them; the other settings are those of `rankbench.RankBoost`.

    Its scores order the samples and say nothing of their targets' size.
    """

    def __init__(
        self,
        n_rounds: int = 100,
        rounds: Literal["all", "validated"] = "all",
        held_out: float = 0.25,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.rounds = rounds
        self.held_out = held_out
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Itself, with `model_`."""
        _fit(self, rankboost.RankBoost(self.rounds, self.held_out), X, y, self.n_rounds, self.random_state)
        return self

    def predict(self, X: Any) -> Floats:
        """A score per row."""
        return _predict(self, X)

    def __sklearn_tags__(self) -> Any:
        """It takes sparse X, too; R squared does not suit it."""
        return _tags(super().__sklearn_tags__(), poor_score=True)


def _fit(estimator: Any, solver: Any, X: Any, y: Any, steps: int = 1, random_state: Any = None) -> None:
    """Give the estimator the model that its solver makes of one user who rated all samples."""
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True, ensure_min_samples=2)
    samples = np.arange(len(y), dtype=np.int32)
    view = Ratings(np.array([0, len(y)]), samples, np.asarray(y, np.float64), len(y), X)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    estimator.model_ = fit(solver, view, steps=steps, seed=seed)
    estimator.solver_ = solver
    estimator.X_fit_ = view.item_features


def _predict(estimator: Any, X: Any) -> Floats:
    """The model's scores of new items."""
    check_is_fitted(estimator, "model_")
    X = validate_data(estimator, X, reset=False, accept_sparse="csr", dtype=np.float64)
    model: Model = estimator.model_
    if isinstance(model, KernelScores):
        return np.asarray(_kernel(estimator.solver_, X, estimator.X_fit_) @ model.coefficients + model.offsets[0])
    items = np.arange(X.shape[0], dtype=np.int32)
    return _of_items(model, scipy.sparse.csr_array(X) if scipy.sparse.issparse(X) else X).score(
        np.zeros(len(items), np.int32), items
    )


def _of_items(model: Model, X: Any) -> Model:
    """The same functions of features over other items."""
    if isinstance(model, UserWeights):
        return replace(model, features=X)
    assert isinstance(model, Stumps)
    return replace(model, item_features=X)


def _kernel(solver: Any, X: Any, others: Any) -> Floats:
    """The solver's kernel between the rows of X and the others."""
    return np.asarray(rbf_kernel(X, others, gamma=0.5 / solver.width**2))


def _tags(tags: Any, poor_score: bool = False) -> Any:
    """The tags of a regressor that takes sparse X."""
    tags.input_tags.sparse = True
    tags.regressor_tags.poor_score = poor_score
    return tags
