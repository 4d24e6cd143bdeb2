"""Trained models in files of plain arrays, with the ids, what users have seen, and the solver."""

from pathlib import Path

import numpy as np

from rankbench import models
from rankbench.arrays import soundness
from rankbench.arrays.npz import Arrays
from rankbench.core.contract import Model, Scattered
from rankbench.core.errors import UserError
from rankbench.fitted import new_users
from rankbench.fitted.model import Fitted
from rankbench.fitted.seen import Seen

_USERS, _ITEMS = "ids.users", "ids.items"  # arrays in a file; no field of a model is so named
_SEEN = ("seen.indptr", "seen.items", "seen.n_items")
_SOLVER, _SLOPE = "solver", "slope"


def save(model: Model, path: str | Path) -> None:
    """Write a model to an npz file of plain arrays; if it is `Fitted`, with its ids and what users have seen."""
    plain: Model = model.model if isinstance(model, Fitted) else model
    plain = plain.gathered() if isinstance(plain, Scattered) else plain
    beside = _beside(model) if isinstance(model, Fitted) else {}
    if models.MODELS.get(type(plain).__name__) is not type(plain):
        problem = f"a {type(plain).__name__} cannot be saved"
        raise UserError(problem, remedy=f"only models of rankbench can: {', '.join(models.MODELS)}")
    models.save(plain, path, **beside)


def load(path: str | Path) -> Fitted:
    """Read a model that `save` wrote, with its ids and what users have seen, if the file has them."""
    arrays = models.arrays_in(path)
    model = models.unpacked(path, arrays)
    parts, slope = [arrays[name] for name in _SEEN if name in arrays], arrays.get(_SLOPE, np.array(1.0))
    try:
        solver = new_users.named(str(arrays[_SOLVER])) if _SOLVER in arrays else None
        soundness.numbers(_SLOPE, slope)
        for count in parts[2:]:
            soundness.ids(_SEEN[2], count, 1 << 31)
        seen = Seen(parts[0], parts[1], int(parts[2])) if len(parts) == len(_SEEN) else None
        found = Fitted(model, arrays.get(_USERS), arrays.get(_ITEMS), seen, solver, float(slope))
        found.validate()
    except UserError as error:
        raise models.unsound(path, error) from None
    return found


def _beside(model: Fitted) -> Arrays:
    """The arrays that stand in a file beside those of the model."""
    seen = () if model.seen is None else (model.seen.indptr, model.seen.items, model.seen.n_items)
    for one in (model.users, model.items):
        one.check_writable()
    ids = {_USERS: model.user_ids, _ITEMS: model.item_ids}
    solver = None if model.solver is None else new_users.name_of(model.solver)
    slope = None if model.slope == 1 else model.slope
    values = dict(zip(_SEEN, seen, strict=False)) | ids | {_SOLVER: solver, _SLOPE: slope}
    return {name: np.asarray(value) for name, value in values.items() if value is not None}
