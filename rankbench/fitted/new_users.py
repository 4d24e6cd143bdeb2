"""Users who were not trained on: their ratings as a model takes them, and the solver that fits them, by its name."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankbench.core.contract import Flags, FoldsIn, Ints
from rankbench.core.errors import UserError
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.names import settings_of, show
from rankbench.names.grammar import written
from rankbench.solvers import SOLVERS


def as_ratings(given: View | Mapping[Any, float]) -> View:
    """The ratings or comparisons themselves, or the ratings of one user by the item's id."""
    if isinstance(given, View):
        return given
    if not isinstance(given, Mapping):
        remedy = "pass what rankbench.load returns, or a dictionary of one user's ratings by the item's id"
        raise UserError(f"the ratings are a {type(given).__name__}", remedy=remedy)
    if not given:
        raise UserError("there is no rating", remedy="give at least one")
    try:
        values = np.array(list(given.values()), np.float64)
    except (TypeError, ValueError):
        raise UserError("a rating is no number", remedy='give numbers by the item\'s id: {"Heat": 4.5}') from None
    count = len(given)
    return Ratings(
        np.array([0, count]), np.arange(count, dtype=np.int32), values, count, item_ids=np.array(list(given))
    )


def renumbered(ratings: View, numbers: Ints, known: Flags, n_items: int) -> View:
    """The rows of known items, with the items numbered as in another catalogue; an error if none is known."""
    sides = (ratings.items,) if isinstance(ratings, Ratings) else (ratings.better, ratings.worse)
    kept = np.logical_and.reduce([known[side] for side in sides])
    if len(ratings) and not kept.any():
        ids = sides[0] if ratings.item_ids is None else ratings.item_ids
        what = "ratings, such as" if isinstance(ratings, Ratings) else "comparisons on both sides, such as"
        raise UserError(f"the model knows no item of these {what} {ids.tolist()[0]!r}")
    if not isinstance(ratings, Ratings):
        better, worse = (numbers[side[kept]] for side in sides)
        return Comparisons.from_triples(
            ratings.users[kept], better, worse, ratings.n_users, n_items, user_ids=ratings.user_ids
        )
    columns = (ratings.users[kept], numbers[ratings.items[kept]], ratings.values[kept])
    return Ratings.from_triples(*columns, ratings.n_users, n_items, user_ids=ratings.user_ids)


def name_of(solver: Any) -> str | None:
    """The name of a built-in solver with all its settings, from which `named` makes it; None if it has no name."""
    home = f"{type(solver).__module__}:{type(solver).__qualname__}"
    for name, place in SOLVERS.entries.items():
        if place == home:
            return show(name, {key: written(value) for key, value in settings_of(solver).items()})
    return None


def named(text: str) -> FoldsIn:
    """The built-in solver of this name, as it stands in a file; no other code is imported for it."""
    if text.partition("[")[0] not in SOLVERS.entries:
        raise UserError(f"{text:.60} is no solver of rankbench")
    found = SOLVERS.make(text)
    if not isinstance(found, FoldsIn):
        raise UserError(f"{text:.60} fits no further users")
    return found
