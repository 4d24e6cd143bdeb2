"""Every solver of ratings as a scikit-learn estimator of (user, item) pairs, with rankbench's splits and metrics.

    search = GridSearchCV(Recommender("mf"), {"rank": [3, 10], "lam": [1, 10]}, cv=Protocol("per-user"),
                          scoring=scorer("ndcg@10"))
    search.fit(pairs, ratings)

Pairs are two columns, of users and of items, with ids of any one type; y has a rating for each.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from rankbench.core.contract import Flags, Floats, Ints, Solver
from rankbench.core.errors import UserError
from rankbench.data.splits import split
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.metrics import evaluate, metric
from rankbench.solvers import SOLVERS

_UNKNOWN = -1  # of a user or an item that was not trained on


class Recommender(BaseEstimator):  # type: ignore[misc]
    """A solver by its name, with its settings as parameters: `Recommender("mf", rank=5, lam=3.0, steps=20)`.

    X has two columns, of users and of items, and y a rating for each pair. `predict` gives the score of each pair,
    which orders the items of one user, and NaN for users and items that were not trained on. After `fit` there are
    `model_`, `users_` and `items_`.
    """

    def __init__(self, solver: str = "mf", steps: int = 20, random_state: Any = None, **settings: Any) -> None:
        self.solver = solver
        self.steps = steps
        self.random_state = random_state
        self.settings = settings

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The solver's name, `steps`, `random_state`, and all settings of this solver."""
        made: Any = self._made()
        settings = {field.name: getattr(made, field.name) for field in fields(made) if field.init}
        return {"solver": self.solver, "steps": self.steps, "random_state": self.random_state, **settings}

    def set_params(self, **params: Any) -> Self:
        """Set any of `get_params`; another solver begins with its own defaults."""
        if params.get("solver", self.solver) != self.solver:
            self.settings = {}
        for name, value in params.items():
            if name in ("solver", "steps", "random_state"):
                setattr(self, name, value)
            else:
                self.settings = self.settings | {name: value}
        self._made()
        return self

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Train on these ratings, and return the estimator."""
        self.users_, self.items_, view = _coded(X, y)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.model_ = fit(self._made(), view, steps=self.steps, seed=seed)
        return self

    def predict(self, X: npt.ArrayLike) -> Floats:
        """The score of each pair; NaN where the user or the item was not trained on."""
        check_is_fitted(self, "model_")
        users, items, known = self.places(X)
        scores = np.full(len(known), np.nan)
        scores[known] = self.model_.score(users, items)
        return scores

    def places(self, X: npt.ArrayLike) -> tuple[Ints, Ints, Flags]:
        """The users and items of the pairs that were trained on, by their places there, and which pairs these are."""
        asked_users, asked_items = _columns(X)
        users, items = _places(self.users_, asked_users), _places(self.items_, asked_items)
        known = (users != _UNKNOWN) & (items != _UNKNOWN)
        return users[known], items[known], known

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """The share of pairs of a user's items that are put in the right order, on average over users."""
        return scorer("pairwise-accuracy")(self, X, y)

    def _made(self) -> Solver:
        made: Solver = SOLVERS.find(self.solver)(**self.settings)
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def scorer(name: str) -> Callable[[Recommender, npt.ArrayLike, npt.ArrayLike], float]:
    """A metric by its name, for `scoring=`; of a metric of which less is better, its negative.

    Pairs of users and items that were not trained on are left out.
    """
    sign = 1.0 if metric(name).better == "higher" else -1.0

    def score(estimator: Recommender, X: npt.ArrayLike, y: npt.ArrayLike) -> float:
        users, items, known = estimator.places(X)
        sizes = len(estimator.users_), len(estimator.items_)
        held_out = Ratings.from_triples(users, items, _ratings(X, y)[known], *sizes)
        return sign * next(iter(evaluate(estimator.model_, held_out, [name]).values()))

    return score


class Protocol:
    """A split by its name as a cross-validator, for `cv=`: a fold is a repetition of the split.

    Splits that draw comparisons have no rows to give, and are refused.
    """

    def __init__(self, protocol: str = "per-user[test=0.2]", repetitions: int = 3, seed: int = 0) -> None:
        self.protocol, self.repetitions, self.seed = protocol, repetitions, seed

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of repetitions."""
        return self.repetitions

    def split(self, X: npt.ArrayLike, y: npt.ArrayLike, groups: Any = None) -> Iterator[tuple[Ints, Ints]]:
        """The rows that train and those that are held out, of each repetition."""
        _, _, view = _coded(X, y)
        order = np.lexsort([np.unique(column, return_inverse=True)[1] for column in reversed(_columns(X))])
        pairs = view.users.astype(np.int64) * view.n_items + view.items
        for repetition in range(self.repetitions):
            parts = split(view, self.protocol, seed=self.seed, repetition=repetition)
            if not (isinstance(parts.train, Ratings) and isinstance(parts.test, Ratings)):
                raise UserError(
                    f"{self.protocol} draws comparisons, which are no rows of X", remedy="take a split of ratings"
                )
            train, test = (
                order[np.searchsorted(pairs, part.users.astype(np.int64) * view.n_items + part.items)]
                for part in (parts.train, parts.test)
            )
            yield train, test


def _columns(X: npt.ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The users and the items of all pairs."""
    table = X if isinstance(X, pd.DataFrame) else np.asarray(X)
    if table.ndim != 2 or table.shape[1] != 2:
        raise UserError(f"X has the shape {table.shape}", remedy="give two columns, of users and of items")
    if isinstance(table, pd.DataFrame):  # whose columns may be of different types
        return table.iloc[:, 0].to_numpy(), table.iloc[:, 1].to_numpy()
    return table[:, 0], table[:, 1]


def _ratings(X: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """The ratings, one for each pair."""
    check_consistent_length(X, y)
    return np.asarray(column_or_1d(y), np.float64)


def _coded(X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[Any], Ratings]:
    """The ids of users and of items, ascending, and the ratings with their places for ids."""
    (users, of_users), (items, of_items) = (np.unique(column, return_inverse=True) for column in _columns(X))
    return users, items, Ratings.from_triples(of_users, of_items, _ratings(X, y), len(users), len(items))


def _places(known: npt.NDArray[Any], asked: npt.NDArray[Any]) -> Ints:
    """The place of each id among the known ones, ascending; -1 for others."""
    found = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return np.where(known[found] == asked, found, _UNKNOWN)
