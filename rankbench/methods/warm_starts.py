"""Models from which a solver goes on: checked against the data that it goes on with."""

import numpy as np

from rankbench.core.contract import Floats, Model
from rankbench.core.errors import UserError
from rankbench.models import Factors


def factors_of(model: Model, shape: tuple[int, int], solver: str) -> Factors:
    """The factors of a model that is to be a warm start, with zeros where it has none; an error if they do not fit."""
    if not isinstance(model, Factors):
        raise UserError(f"cannot go on from {type(model).__name__}, only from factors", subject=solver)
    check_sizes((len(model.users), len(model.items)), shape, solver)
    return Factors(without_gaps(model.users), without_gaps(model.items))


def check_sizes(found: tuple[int, int], shape: tuple[int, int], solver: str) -> None:
    """Raise an error unless the model has these numbers of users and items."""
    if found != shape:
        problem = f"cannot go on from a model of {found[0]} users and {found[1]} items with {shape[0]} and {shape[1]}"
        raise UserError(problem, remedy="give a model of the same training part", subject=solver)


def without_gaps(vectors: Floats) -> Floats:
    """The vectors, with zeros where the model has none."""
    return np.ascontiguousarray(np.nan_to_num(vectors, nan=0.0))
