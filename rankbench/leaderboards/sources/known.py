"""Votes of data sets that rankbench knows by name: comparisons as they are, and a user's ratings as a ranking."""

import os
from pathlib import Path

import numpy as np

from rankbench.data import DATASETS, generator, load
from rankbench.data.synthetic.arena import Arena
from rankbench.data.views import Comparisons, Ratings
from rankbench.leaderboards import arenas
from rankbench.leaderboards.votes import LEFT, Groups, Names, Rankings, Votes, from_rankings


def is_known(text: str) -> bool:
    """Whether a text names a data set, and no file here."""
    name = text.partition("[")[0]
    return not os.path.exists(text) and not os.path.exists(name) and DATASETS.knows(name)


def votes_of(name: str) -> Votes | Path:
    """The votes of a data set; of one that is a table of votes, ties included, the path of that table."""
    named = DATASETS.resolve(name)
    if isinstance(named.record, Arena):
        return arenas.votes_of(named.record, named.record.seed_of(generator(named)))
    if hasattr(named.record, "votes"):
        own: Votes = named.record.votes()
        return own
    if hasattr(named.record, "table_of_votes"):
        path: Path = named.record.table_of_votes()
        return path
    view = load(name)
    return _of_comparisons(view) if isinstance(view, Comparisons) else _of_ratings(view)


def _of_comparisons(view: Comparisons) -> Votes:
    ones = np.ones(len(view))
    outcome = np.full(len(view), LEFT, np.int8)
    items = _names(view.item_ids, view.n_items)
    judges = Groups(_names(view.user_ids, view.n_users), view.users).take(np.full(len(view), True))
    return Votes(items, view.better, view.worse, outcome, ones, ones, judges, ordered=False)


def _of_ratings(view: Ratings) -> Votes:
    """A ranking by each user, from the highest rating to the lowest, with ties."""
    order = np.lexsort((view.items, -view.values, view.users))
    _, levels = np.unique(-view.values[order], return_inverse=True)
    own = Groups(_names(view.user_ids, view.n_users), np.arange(view.n_users, dtype=np.int32))
    rankings = Rankings(view.indptr, view.items[order])
    return from_rankings(_names(view.item_ids, view.n_items), rankings, levels.astype(np.int32), own)


def _names(ids: object, size: int) -> Names:
    found = np.arange(size) if ids is None else np.asarray(ids)
    return found.astype(str).astype(object)
