"""What solvers check before they fit users who were not trained on to the items of a model."""

from typing import TypeVar

import numpy as np

from rankbench.arrays.npz import as_kernels_take
from rankbench.core.contract import Floats, Model
from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.models import Factors

T = TypeVar("T")


def own(model: Model, kind: type[T]) -> T:
    """The model as one of this kind; an error if another solver made it."""
    if not isinstance(model, kind):
        problem = f"the model is a {type(model).__name__}, and the solver makes {kind.__name__}"
        raise UserError(problem, remedy="fit it again")
    return model


def check_items(ratings: Ratings, n_items: int) -> None:
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
