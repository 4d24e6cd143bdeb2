"""Solvers of single rankings as scikit-learn regressors: `MPRank().fit(X, y).predict(X)`.

The parameters of a regressor are the solver's settings; its samples are the items that one user rated, or for RankSVM
those of several queries. It predicts scores: depending on the solver, their order or their differences are meaningful,
but not their level. (Inheriting from scikit-learn's classes is what makes a class a scikit-learn estimator.)
"""

from dataclasses import replace
from inspect import signature
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.utils import Tags, check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from rankbench.core.contract import Floats
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.features.matrix import Matrix
from rankbench.models import Stumps, UserWeights
from rankbench.solvers import SOLVERS, mprank, svrank
from rankbench.solvers.ranksvm_joint import RankSVMJoint

Kernel = Literal["linear", "gaussian", "polynomial", "precomputed"]
Samples: TypeAlias = npt.ArrayLike | scipy.sparse.sparray | scipy.sparse.spmatrix
RandomState: TypeAlias = int | np.random.RandomState | None


class _Regressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What the regressors have in common; those without a kernel make scores of which only the order is meaningful."""

    def predict(self, X: Samples) -> Floats:
        """A score per row of X; with a kernel, the scores of the training samples have the mean of the targets."""
        check_is_fitted(self, "model_")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        model: Any = self.model_
        if isinstance(model, UserWeights | Stumps):
            table = scipy.sparse.csr_array(X) if scipy.sparse.issparse(X) else X
            items = np.arange(X.shape[0], dtype=np.int32)
            changed = {"features" if isinstance(model, UserWeights) else "item_features": table}
            return replace(model, **changed).score(np.zeros(len(items), np.int32), items)
        gram = _kernel(self.solver_, X, self.X_fit_)
        scores: Floats = np.asarray(gram @ model.coefficients).ravel() + model.offsets[0]
        return scores

    def __sklearn_tags__(self) -> Tags:
        """The tags of a regressor that accepts sparse X, and kernel matrices with kernel=precomputed."""
        tags = super().__sklearn_tags__()
        kernel = getattr(self, "kernel", None)
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = kernel == "precomputed"
        tags.regressor_tags.poor_score = kernel is None  # no good R squared is to be expected
        return tags


class MPRank(_Regressor):
    """Magnitude-preserving ranking in closed form; the settings are those of `rankbench.MPRank`.

    With kernel=precomputed, X is the kernel between samples; in `predict` it is the kernel between new samples
    and training samples.
    """

    def __init__(
        self,
        C: float = 1.0,
        kernel: Kernel = "linear",
        width: float = 1.0,
        degree: int = 2,
        form: Literal["auto", "primal", "dual"] = "auto",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.width = width
        self.degree = degree
        self.form = form

    def fit(self, X: Samples, y: npt.ArrayLike) -> Self:
        """Train on X and y, and return the estimator, which then has `model_`."""
        _fit(self, "mprank", X, y)
        return self


class SVRank(_Regressor):
    """Magnitude-preserving ranking with an eps-insensitive loss; the other settings are those of `rankbench.SVRank`.

    Training ends at a relative duality gap of `tolerance`, or after `max_steps` steps. With kernel=precomputed, X
    is the kernel between samples; in `predict` it is the kernel between new samples and training samples.
    """

    def __init__(
        self,
        C: float = 1.0,
        eps: float = 0.1,
        kernel: Kernel = "linear",
        width: float = 1.0,
        degree: int = 2,
        form: Literal["auto", "pairs", "residuals"] = "auto",
        tolerance: float = 1e-5,
        max_steps: int = 10_000,
    ) -> None:
        self.C = C
        self.eps = eps
        self.kernel = kernel
        self.width = width
        self.degree = degree
        self.form = form
        self.tolerance = tolerance
        self.max_steps = max_steps

    def fit(self, X: Samples, y: npt.ArrayLike) -> Self:
        """Train on X and y, and return the estimator, which then has `model_`."""
        _fit(self, "svrank", X, y, self.max_steps)
        return self


class RankBoost(_Regressor):
    """RankBoost with `n_rounds` thresholds on features; the other settings are those of `rankbench.RankBoost`.

    Only the order of its scores is meaningful, not their size.
    """

    def __init__(
        self,
        n_rounds: int = 100,
        rounds: Literal["all", "validated"] = "all",
        held_out: float = 0.25,
        random_state: RandomState = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.rounds = rounds
        self.held_out = held_out
        self.random_state = random_state

    def fit(self, X: Samples, y: npt.ArrayLike) -> Self:
        """Train on X and y, and return the estimator, which then has `model_`."""
        _fit(self, "rankboost", X, y, self.n_rounds, self.random_state)
        return self


class RankSVM(_Regressor):
    """A linear function that orders the samples of each query: squared hinge over pairs, to its optimum.

    Its loss counts all pairs of samples of one query with different targets; without queries all samples are of one.
    Only the order of its scores within a query is meaningful. The settings are those of `rankbench.RankSVMJoint`; after
    `fit` there is `coef_`.
    """

    def __init__(self, C: float = 1.0, max_steps: int = 100) -> None:
        self.C = C
        self.max_steps = max_steps

    def fit(self, X: Samples, y: npt.ArrayLike, qid: npt.ArrayLike | None = None) -> Self:
        """Train on X and y, of which rows with the same `qid` are of one query; return the estimator."""
        table, targets = _validated(self, X, y)
        count, width = table.shape
        queries = np.zeros(count) if qid is None else column_or_1d(qid)
        check_consistent_length(targets, queries)
        users = np.unique(queries, return_inverse=True)[1]
        # Items that nobody rated change nothing; those with one feature of 1 get the weight of this feature as score.
        stacked = scipy.sparse.vstack([table, scipy.sparse.eye_array(width)], format="csr")
        features = stacked if scipy.sparse.issparse(table) else stacked.toarray()
        view = Ratings.from_triples(users, np.arange(count), targets, None, count + width, features)
        model: Any = fit(RankSVMJoint(self.C), view, steps=self.max_steps)
        self.coef_ = model.scores[count:]
        return self

    def predict(self, X: Samples) -> Floats:
        """A score per row of X."""
        check_is_fitted(self, "coef_")
        return np.asarray(validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64) @ self.coef_)


def _fit(
    estimator: _Regressor, name: str, X: Samples, y: npt.ArrayLike, steps: int = 1, random_state: RandomState = None
) -> None:
    """Train the solver on one user who rated all samples, and store the model in the estimator."""
    solver = SOLVERS.find(name)(**_settings(estimator))
    table, targets = _validated(estimator, X, y)
    samples = np.arange(len(targets), dtype=np.int32)
    view = Ratings(np.array([0, len(targets)]), samples, targets, len(targets), table)
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    estimator.model_ = fit(solver, view, steps=steps, seed=seed)
    estimator.solver_ = solver
    estimator.X_fit_ = view.item_features


def _validated(estimator: BaseEstimator, X: Samples, y: npt.ArrayLike) -> tuple[Any, Floats]:
    """The samples and their targets as scikit-learn checks them."""
    table, targets = validate_data(
        estimator, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True, ensure_min_samples=2
    )
    return table, np.asarray(targets)


def _settings(estimator: _Regressor) -> dict[str, Any]:
    """The estimator's parameters that are settings of the solver and differ from their defaults."""
    defaults = {name: parameter.default for name, parameter in signature(type(estimator)).parameters.items()}
    own = ("n_rounds", "max_steps", "random_state")
    given = estimator.get_params(deep=False)
    return {name: value for name, value in given.items() if name not in own and value != defaults[name]}


def _kernel(solver: mprank.MPRank | svrank.SVRank, X: Matrix, others: Matrix) -> Matrix:
    """The solver's kernel between the rows of X and the rows of `others`."""
    if solver.kernel == "precomputed":
        return X
    if solver.kernel == "polynomial":
        return polynomial_kernel(X, others, degree=solver.degree, gamma=solver.width**-2, coef0=1)
    return rbf_kernel(X, others, gamma=0.5 / solver.width**2)
