"""A choice tried on the data: whether its split leaves anything to measure, and anything to tune on."""

from dataclasses import replace

import numpy as np

from rankbench.core.errors import UserError
from rankbench.data import load
from rankbench.data.splits import SPLITS, VALIDATIONS, Split
from rankbench.data.views import Ratings, View
from rankbench.metrics import metric
from rankbench.names import Named
from rankbench.own_data.choosing import Choice, Wishes, choose
from rankbench.own_data.facts import Facts
from rankbench.own_data.naming import data_named
from rankbench.planning.materials import Materials
from rankbench.records.cells import Place


def choice_for(text: str, wishes: Wishes, materials: Materials | None = None) -> Choice:
    """The experiment that suits the data set or file that a user named; what is read and cut stays in the materials."""
    kept = materials or Materials(wishes.seed)
    named = data_named(text)
    if remedy := named.record.origin.missing():
        raise UserError(remedy)
    return _tried(choose(named, Facts.of(_loaded(named, kept)), wishes), kept)


def _tried(choice: Choice, materials: Materials) -> Choice:
    """The choice, without tuning if its validation part has nothing to measure; an error if the test part has not."""
    place = Place(choice.data, SPLITS.resolve(choice.protocol.split), 0)
    if not _measurable(choice, materials.split(place)):
        remedy = "give more ratings per user, or another --split (rankbench check shows what each keeps)"
        raise UserError(
            f"under {choice.protocol.split} no user of {choice.data.written} has an order to test", remedy=remedy
        )
    try:
        inner = materials.split(replace(place, validation=VALIDATIONS.resolve(choice.protocol.validation)))
    except UserError:
        return _untuned(choice)
    return choice if _measurable(choice, inner) else _untuned(choice)


def _measurable(choice: Choice, split: Split) -> bool:
    """Whether the held-out part orders items for some user, by ratings, comparisons or what the user has not seen.

    A metric over the whole catalogue sets every held-out item against all others.
    """
    test: View = split.test
    if all(metric(name).settings.candidates == "catalogue" for name in choice.protocol.metrics):
        return len(test) > 0
    if split.seen is not None or not isinstance(test, Ratings):
        return len(test) > 0
    return bool(np.any(test.has_order))


def _untuned(choice: Choice) -> Choice:
    """The choice with every solver at its own settings, because too few rows are left to tune on."""
    why = f"{choice.protocol.why}; too little is left of it to tune on, so every solver has its own settings"
    return replace(choice, spaces={solver: {} for solver in choice.solvers}, protocol=replace(choice.protocol, why=why))


def _loaded(named: Named, materials: Materials) -> View:
    """The view of a data set; if only repeated pairs are in the way, the error says how to keep the last of each."""
    try:
        return materials.view(named)
    except UserError as error:
        last = named.with_chosen((("repeats", "last"),))
        if named.setting("repeats") != "error" or not _loads(last):
            raise
        raise UserError(f"{error}, or name the data {last}, which keeps the last of each") from None


def _loads(text: str) -> bool:
    """Whether a data set can be loaded."""
    try:
        return len(load(text)) > 0
    except UserError:
        return False
