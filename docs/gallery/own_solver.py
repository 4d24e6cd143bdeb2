"""
A solver of your own
====================

A solver is a frozen dataclass of settings with a method ``steps`` that yields models.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import rankbench
from rankbench import Determinism, ItemScores, Ratings, Step

# %%
# This one ranks items by their mean rating. An item with few ratings has its mean shrunk towards the mean of all.


@dataclass(frozen=True)
class Means:
    """Ranks items by mean rating, shrunk towards the mean of all ratings."""

    shrinkage: float = 5.0
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1  # raise it when the results change

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """The only model: one score for each item."""
        count = np.bincount(train.items, minlength=train.n_items)
        total = np.bincount(train.items, train.values, train.n_items)
        yield Step(ItemScores((total + self.shrinkage * train.values.mean()) / (count + self.shrinkage)))


# %%
# It is trained and measured as any other solver, here on items of different quality, of which some are rated often and
# most are rated by few. In a file of its own, ``means.py``, it is ``means.py:Means`` on the command line, and
# ``rankbench check means.py:Means`` looks for mistakes.

rng = np.random.default_rng(0)
quality, fame = rng.normal(size=300), rng.dirichlet(np.full(300, 0.5))
rows = [
    (user, item) for user in range(80) for item in rng.choice(300, size=40, replace=False, p=0.9 * fame + 0.1 / 300)
]
table = pd.DataFrame(rows, columns=["user", "item"])
table["rating"] = np.clip(np.round(3 + quality[table["item"]] + rng.normal(size=len(table))), 1, 5)

split = rankbench.split(rankbench.load(table), "n-per-user", n=10, seed=0)
solvers = {
    "means": Means(shrinkage=5.0),
    "popularity": "popularity",
    "random": "random",
}
found = {name: rankbench.evaluate(rankbench.fit(solver, split), split, "ndcg@10") for name, solver in solvers.items()}

figure, axes = plt.subplots(figsize=(5, 2.4), layout="constrained")
axes.barh(list(found), list(found.values()), height=0.5)
axes.invert_yaxis()
axes.set(title="Held-out ratings, 80 users", xlabel="NDCG@10 (higher is better)")
plt.show()
