"""Users who get no recommendation since the model gives them no score; the model is a `Fitted`, which imports this."""

import warnings
from typing import Any

import numpy as np

from rankbench.core.contract import Flags, Ints
from rankbench.core.texts import safe

_BLOCK = 1 << 20  # scores in memory at a time
_SHOWN = 3  # users who are named


def warn_of(model: Any, users: Any, items: Any, seen: bool, served: Any) -> None:
    """Warn of users without a score, in the name of the caller's caller."""
    if said := told(model, users, items, seen, served):
        warnings.warn(said, stacklevel=3)


def told(model: Any, users: Any, items: Any, seen: bool, served: Any) -> str:
    """What is said of the asked users who are not among the served ones, as their scores are NaN; else nothing.

    Users who lack a recommendation only because they have seen all items are not meant.
    """
    asked = model.users.everyone() if users is None else np.unique(model.users.numbers(users))
    left = asked[~np.isin(asked, model.users.numbers(served))].astype(np.int32)
    among = np.arange(model.n_items) if items is None else model.items.numbers(items)
    size = max(1, _BLOCK // max(1, model.n_items))
    blocks = (left[first : first + size] for first in range(0, len(left), size))
    found = [block[_have_unknown(model, block, among, seen)] for block in blocks]
    unknown = model.users.named(np.concatenate([left[:0], *found])).tolist()
    if not unknown:
        return ""
    names = ", ".join(safe(str(one)) for one in unknown[:_SHOWN]) + (", ..." if len(unknown) > _SHOWN else "")
    count = f"{len(unknown):,} of {len(asked):,} users"
    return f"{count} without a recommendation, as the model has no score for them (NaN): {names}"


def _have_unknown(model: Any, users: Ints, among: Ints, seen: bool) -> Flags:
    """Which of these users have an item that they may get and that has no score for them."""
    scores = np.array(model.score_all(users))
    if not seen and model.seen is not None:
        model.seen.bar(scores, users)
    return np.asarray(np.isnan(scores[:, among]).any(axis=1))
