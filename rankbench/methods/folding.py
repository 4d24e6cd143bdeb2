"""What solvers check before they fit users who were not trained on to the items of a model."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from rankbench.arrays.distinct import distinct
from rankbench.arrays.npz import as_kernels_take
from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Flags, Floats, Model
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.kernels.methods import als, fold_in
from rankbench.kernels.shared.losses import Loss
from rankbench.kernels.shared.rows import SparseRows
from rankbench.methods.factors import padded, zero_rows
from rankbench.methods.losses import CURVED, NAMES
from rankbench.methods.pair_tasks import PairTasks
from rankbench.models import Factors, FeatureFactors, UserWeights

T = TypeVar("T")
Rows = TypeVar("Rows", Ratings, Comparisons, View)
_BARE: dict[str, Any] = {"item_features": None, "feature_names": None, "user_ids": None, "item_ids": None}


def own(model: Model, kind: type[T]) -> T:
    """The model as one of this kind; an error if another solver made it."""
    if not isinstance(model, kind):
        problem = f"the model is a {type(model).__name__}, and the solver makes {kind.__name__}"
        raise UserError(problem, remedy="fit it again")
    return model


def check_items(ratings: View, n_items: int) -> None:
    """Raise an error unless the ratings are of a catalogue of so many items."""
    if ratings.n_items != n_items:
        raise UserError(f"the ratings are of {ratings.n_items} items, and the model of {n_items}")


def vectors_of_items(model: Model, ratings: Ratings, width: int) -> Floats:
    """The items' vectors of this model, as long as the solver's are."""
    return as_kernels_take(_checked_vectors(model, ratings, width), np.float64)


def vectors_and_numbers(model: Model, ratings: Ratings, rank: int, biased: bool) -> tuple[Floats, Floats]:
    """The same as `fold_in` takes them: vectors of this rank, padded, and the number behind each, or 0."""
    return _split(_checked_vectors(model, ratings, rank + biased), biased)


def _checked_vectors(model: Model, ratings: Ratings, width: int) -> Floats:
    items = own(model, Factors).items
    check_items(ratings, len(items))
    if items.shape[1] != width:
        raise UserError(f"the model's vectors have {items.shape[1]} numbers, and the solver's {width}")
    return items


def _split(items: Floats, biased: bool) -> tuple[Floats, Floats]:
    """The vectors, padded, and what stands behind them."""
    if biased:
        return padded(items[:, :-1]), np.ascontiguousarray(items[:, -1])
    return padded(items), np.zeros(len(items))


def check_curved(loss: Loss) -> None:
    """Raise an error for a loss that is not curved wherever a pair costs something."""
    if loss not in CURVED:
        problem = f"fold_in needs second derivatives, and those of loss={NAMES[loss]} are 0 for pairs far out of order"
        raise UserError(problem, remedy="train with loss=squared-hinge")


def users_of_pairs(
    known: FeatureFactors | Factors, view: View, loss: Loss, C: float, threads: int, *, biased: bool = False
) -> tuple[Floats, Flags]:
    """Each user's minimum of C sum of the losses of their pairs + 1/2 |u|^2, to eight digits, and who has a pair.

    With `biased` the last number of an item's vector is added to its scores.
    """
    check_curved(loss)
    view, vectors = with_vectors(known, view, threads)
    tasks, rank = PairTasks.of(view, threads, loss), vectors.shape[1] - biased
    items, numbers = _split(vectors, biased)
    users = zero_rows(view.n_users, rank)
    with one_blas_thread():
        fold_in.pairs(tasks=tasks.pairs, items=items, offsets=numbers, weight=C, lam=1.0, users=users, threads=threads)
    return np.ascontiguousarray(users[:, :rank]), tasks.paired


def alone(model: Model, view: View, loss: Loss, C: float, threads: int) -> Factors:
    """The model of these users with `users_of_pairs`; NaN for users without a pair."""
    known = own(model, Factors)
    users, paired = users_of_pairs(known, view, loss, C, threads)
    users[~paired] = np.nan
    return Factors(users, known.items)


def with_features(model: Model, view: Rows) -> Rows:
    """The rows with the features of the model's items, for solvers that train each user alone."""
    known = own(model, UserWeights)
    check_items(view, known.features.shape[0])
    return replace(view, item_features=known.features)


def penalised(model: Model) -> tuple[Factors, Floats]:
    """The factors with what the numbers of a user's vector cost; an error if the model does not say this."""
    known = own(model, Factors)
    if known.penalties is None:
        raise UserError(
            "the model does not say what a user's vector costs, as older ones do not", remedy="fit it again"
        )
    return known, known.penalties


def ridge(rated: Ratings, vectors: Floats, penalties: Floats, threads: int, solver: str) -> Floats:
    """Each user's least squares: the minimum of sum (rating - u . v)^2 + sum_k penalties[k] u_k^2."""
    rows = SparseRows(indptr=rated.indptr, columns=rated.items, values=rated.values)
    users = np.zeros((rated.n_users, vectors.shape[1]))
    failed = als.ridge(rows=rows, vectors=vectors, penalties=als.Ridge(each=penalties), out=users, threads=threads)
    if failed >= 0:
        problem = f"the system of user {failed} has no finite solution: scale the ratings or raise lam"
        raise UserError(problem, subject=solver)
    return users


def with_vectors(
    known: FeatureFactors | Factors, view: Rows, threads: int, *, zeros: bool = True
) -> tuple[Rows, Floats]:
    """The rows on items of which the model knows something, with these items numbered anew, and their vectors.

    Without `zeros`, a vector of zeros says nothing of its item.
    """
    sides = ("items",) if isinstance(view, Ratings) else ("better", "worse")
    check_items(view, known.features.shape[0] if isinstance(known, FeatureFactors) else len(known.items))
    used = distinct(np.concatenate([getattr(view, side) for side in sides]))
    vectors = known.items(used, threads) if isinstance(known, FeatureFactors) else known.items[used]
    fine = ~np.isnan(vectors).any(axis=1)
    if not zeros:
        fine &= vectors.any(axis=1)
    numbers = np.full(view.n_items, -1, np.int32)
    numbers[used[fine]] = np.arange(fine.sum(), dtype=np.int32)
    mask = np.logical_and.reduce([numbers[getattr(view, side)] >= 0 for side in sides])
    view = view if mask.all() else view.where(mask)
    columns: dict[str, Any] = {side: numbers[getattr(view, side)] for side in sides}
    found = np.ascontiguousarray(vectors[fine], np.float64)
    return replace(view, n_items=len(found), **columns, **_BARE), found
