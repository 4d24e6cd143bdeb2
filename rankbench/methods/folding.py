"""What solvers check before they fit users who were not trained on to the items of a model."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from rankbench.arrays.distinct import distinct
from rankbench.arrays.npz import as_kernels_take
from rankbench.core.contract import Floats, Model
from rankbench.core.errors import UserError
from rankbench.data.views import Ratings, View
from rankbench.models import Factors, FeatureFactors

T = TypeVar("T")
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
    items: Floats = as_kernels_take(own(model, Factors).items, np.float64)
    check_items(ratings, len(items))
    if items.shape[1] != width:
        raise UserError(f"the model's vectors have {items.shape[1]} numbers, and the solver's {width}")
    return items


def with_vectors(known: FeatureFactors | Factors, view: View, threads: int) -> tuple[View, Floats]:
    """The rows on items of which the model knows something, with these items numbered anew, and their vectors."""
    sides = (view.items,) if isinstance(view, Ratings) else (view.better, view.worse)
    check_items(view, known.features.shape[0] if isinstance(known, FeatureFactors) else len(known.items))
    used = distinct(np.concatenate(sides))
    vectors = known.items(used, threads) if isinstance(known, FeatureFactors) else known.items[used]
    fine = ~np.isnan(vectors).any(axis=1)
    numbers = np.full(view.n_items, -1, np.int32)
    numbers[used[fine]] = np.arange(fine.sum(), dtype=np.int32)
    mask = np.ones(len(view), bool)
    for side in sides:
        mask &= numbers[side] >= 0
    view = view if mask.all() else view.where(mask)
    if isinstance(view, Ratings):
        view = replace(view, items=numbers[view.items], n_items=len(vectors[fine]), **_BARE)
    else:
        columns: dict[str, Any] = {"better": numbers[view.better], "worse": numbers[view.worse]}
        view = replace(view, n_items=len(vectors[fine]), **columns, **_BARE)
    return view, np.ascontiguousarray(vectors[fine], np.float64)
