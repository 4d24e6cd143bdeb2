"""Every solver of ratings as a scikit-learn estimator of (user, item) pairs, with rankbench's splits and metrics.

    search = GridSearchCV(Recommender("mf"), {"rank": [3, 10], "lam": [1, 10]}, cv=ProtocolSplit("per-user"),
                          scoring=scorer("ndcg@10"))
    search.fit(pairs, ratings)

Pairs are two columns, of users and of items, with numbers or texts as ids; y has a rating for each.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from rankbench.arrays.distinct import places_among
from rankbench.core.contract import Flags, Floats, Ints, Solver
from rankbench.core.errors import UserError, unknown
from rankbench.data.splits import split
from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.metrics import evaluate, metric
from rankbench.solvers import SOLVERS

_UNKNOWN = -1  # of a user or an item that was not trained on
_OWN = ("solver", "steps", "random_state")
Ids = npt.NDArray[Any]


class Recommender(BaseEstimator):  # type: ignore[misc]
    """A solver by its name, with its settings as parameters: `Recommender("mf", rank=5, lam=3.0, steps=20)`.

    X has two columns, of users and of items, and y a rating for each pair. `predict` gives the score of each pair,
    which orders the items of one user, and NaN for users and items that were not trained on. Settings are checked by
    `fit`, after which there are `model_`, `users_`, `items_` and the ratings, `train_`.
    """

    def __init__(self, solver: str = "mf", steps: int = 20, random_state: Any = None, **settings: Any) -> None:
        self.solver = solver
        self.steps = steps
        self.random_state = random_state
        self.settings = settings

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The solver's name, `steps`, `random_state`, and all settings of this solver, if there is such a solver."""
        return {name: getattr(self, name) for name in _OWN} | (_defaults(self.solver) or {}) | self.settings

    def set_params(self, **params: Any) -> Self:
        """Set any of `get_params`; another solver begins with its own defaults."""
        solver = params.get("solver", self.solver)
        settings = {name: value for name, value in params.items() if name not in _OWN}
        _refuse_unknown(solver, settings)
        self.settings = (self.settings if str(solver) == str(self.solver) else {}) | settings
        for name in params.keys() - settings.keys():
            setattr(self, name, params[name])
        return self

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Train on these ratings, and return the estimator."""
        users, items, view, _ = _coded(X, y)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        _refuse_unknown(self.solver, self.settings)
        solver: Solver = SOLVERS.find(str(self.solver))(**self.settings)
        model = fit(solver, view, steps=self.steps, seed=seed)
        self.users_, self.items_, self.model_, self.train_ = users, items, model, view  # all of it, or nothing
        return self

    def predict(self, X: npt.ArrayLike) -> Floats:
        """The score of each pair; NaN where the user or the item was not trained on."""
        users, items, known = self.places(X)
        scores = np.full(len(known), np.nan)
        scores[known] = self.model_.score(users, items)
        return scores

    def places(self, X: npt.ArrayLike) -> tuple[Ints, Ints, Flags]:
        """The users and items of the pairs that were trained on, by their places there, and which pairs these are."""
        check_is_fitted(self)
        asked_users, asked_items = _columns(X)
        users, items = _places("users", self.users_, asked_users), _places("items", self.items_, asked_items)
        known = (users != _UNKNOWN) & (items != _UNKNOWN)
        return users[known], items[known], known

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """The share of pairs of a user's items that are put in the right order, on average over users."""
        return scorer("pairwise-accuracy")(self, X, y)


def _defaults(solver: str) -> dict[str, Any] | None:
    """The settings of a solver with their defaults; None if there is no solver of this name."""
    try:
        settings = fields(SOLVERS.find(str(solver)))
    except UserError:
        return None
    return {one.name: one.default for one in settings if one.init and one.default is not MISSING}


def _refuse_unknown(solver: str, settings: Mapping[str, Any]) -> None:
    """An error for a setting that the solver does not have; nothing is known of a solver that there is not."""
    if isinstance(solver, str) and solver.endswith("]"):
        name = solver.partition("[")[0]
        problem = f"the solver {solver!r} has settings in its name"
        raise UserError(problem, remedy=f"pass settings as parameters: Recommender({name!r}, ...)")
    known = _defaults(solver)
    if known is not None:
        for name in settings.keys() - known.keys():
            raise unknown(f"setting of {solver}:", name, known)


def scorer(name: str) -> Callable[[BaseEstimator, npt.ArrayLike, npt.ArrayLike], float]:
    """A metric by its name, for `scoring=`; of a metric of which less is better, its negative.

    Pairs of users and items that were not trained on are left out. The recommender may stand at the end of a pipeline,
    or in a search.
    """
    sign = 1.0 if metric(name).better == "higher" else -1.0

    def score(estimator: BaseEstimator, X: npt.ArrayLike, y: npt.ArrayLike) -> float:
        made, pairs = _within(estimator, X)
        users, items, known = made.places(pairs)
        if not known.any():
            raise UserError("none of these pairs is of a user and an item that were trained on")
        held_out = Ratings.from_triples(users, items, _ratings(X, y)[known], len(made.users_), len(made.items_))
        return sign * next(iter(evaluate(made.model_, held_out, [name], train=made.train_).values()))

    return score


def _within(estimator: Any, X: npt.ArrayLike) -> tuple[Recommender, npt.ArrayLike]:
    """The recommender at the end of searches and pipelines, and the pairs as it gets them."""
    while not isinstance(estimator, Recommender):
        if isinstance(estimator, Pipeline):
            X = estimator[:-1].transform(X) if len(estimator) > 1 else X
            estimator = estimator[-1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            raise UserError(f"scorer measures a Recommender, not a {type(estimator).__name__}")
    return estimator, X


class ProtocolSplit:
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
        _, _, view, order = _coded(X, y)
        pairs = _numbers(view)
        for repetition in range(self.repetitions):
            parts = split(view, self.protocol, seed=self.seed, repetition=repetition)
            if not (isinstance(parts.train, Ratings) and isinstance(parts.test, Ratings)):
                raise UserError(
                    f"{self.protocol} draws comparisons, which are no rows of X", remedy="take a split of ratings"
                )
            train, test = (order[np.searchsorted(pairs, _numbers(part))] for part in (parts.train, parts.test))
            yield train, test


def _numbers(view: Ratings) -> Ints:
    """A number for each pair of a user and an item, ascending."""
    return view.users.astype(np.int64) * view.n_items + view.items


def _columns(X: npt.ArrayLike) -> tuple[Ids, Ids]:
    """The users and the items of all pairs, each column all numbers or all texts."""
    if isinstance(X, pd.DataFrame):  # whose columns may be of different types
        table = X
    else:
        table = check_array(X, dtype=None, ensure_min_samples=1, ensure_all_finite=False)
    if table.shape[1] != 2:
        raise UserError(f"X has the shape {table.shape}", remedy="give two columns, of users and of items")
    columns = (table.iloc[:, 0], table.iloc[:, 1]) if isinstance(table, pd.DataFrame) else table.T
    users, items = (_ids(name, np.asarray(column)) for name, column in zip(("users", "items"), columns, strict=True))
    return users, items


def _ids(name: str, column: Ids) -> Ids:
    """The ids as numbers or as texts; an error where one is missing or of another type."""
    if pd.isna(column).any():
        raise UserError(f"ids of {name} contain NaN or None", remedy="leave these rows out")
    if column.dtype.kind in "biuf":
        return column
    kinds = {type(one) for one in column.tolist()}
    if kinds == {str}:
        return column.astype(str)
    if all(issubclass(kind, int | float) for kind in kinds):
        return np.array(column.tolist())
    raise UserError(f"ids of {name} are {' and '.join(sorted(kind.__name__ for kind in kinds))}",
                    remedy="give numbers, or texts")  # fmt: skip


def _ratings(X: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """The ratings, one for each pair."""
    check_consistent_length(X, y)
    return np.asarray(column_or_1d(y), np.float64)


def _coded(X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Ids, Ids, Ratings, Ints]:
    """The ids of users and of items, ascending, the ratings with their places for ids, and the row of X of each."""
    columns = _columns(X)
    if not len(columns[0]):
        raise UserError("X has no rows")
    (users, of_users), (items, of_items) = (np.unique(column, return_inverse=True) for column in columns)
    order = np.lexsort((of_items, of_users))
    repeated = (np.diff(of_users[order]) == 0) & (np.diff(of_items[order]) == 0)
    if repeated.any():
        row = order[repeated.argmax()]
        problem = f"user {users[of_users[row]]} rates item {items[of_items[row]]} twice"
        raise UserError(problem, remedy="keep one of the two rows")
    view = Ratings.from_triples(of_users, of_items, _ratings(X, y), len(users), len(items))
    return users, items, view, order


def _places(name: str, known: Ids, asked: Ids) -> Ints:
    """The place of each id among the known ones, ascending; -1 for others."""
    if (known.dtype.kind == "U") != (asked.dtype.kind == "U"):
        one, other = asked.tolist()[0], known.tolist()[0]
        raise UserError(f"ids of {name} are like {one!r}, and those trained on are like {other!r}")
    places, there = places_among(known, asked)
    return np.where(there, places, _UNKNOWN)
