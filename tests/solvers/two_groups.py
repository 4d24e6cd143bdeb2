"""Users of two groups, each of which takes items of its own half of the catalogue: popularity does not help there."""

from typing import Any

import numpy as np

from rankbench.data.views import Ratings
from rankbench.execution.training import fit
from rankbench.metrics import evaluate
from rankbench.solvers.popularity import Popularity

_RECALL = "recall@10[candidates=catalogue,relevant=1]"


def gain(solver: Any, steps: int) -> float:
    """By how much a solver's recall@10 on held-out items is above that of popularity."""
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(200), 12)
    items = np.concatenate([rng.choice(30, 12, replace=False) + 30 * (user % 2) for user in range(200)])
    rows, held = Ratings.from_triples(users, items, np.ones(len(users)), 200, 60), np.arange(len(users)) % 4 == 0
    train, test = rows.where(~held), rows.where(held)
    ours, floor = (evaluate(fit(one, train, steps=number), test, [_RECALL], train=train)[_RECALL]
                   for one, number in ((solver, steps), (Popularity(), 1)))  # fmt: skip
    return float(ours - floor)
