"""
A metric of your own
====================

A metric is a frozen dataclass with a method ``of_user``: from the scores and ratings of one user's held-out items to a
number. The mean over users is taken by rankbench.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import matplotlib.pyplot as plt
import numpy as np

import rankbench

# %%
# How much worse are the recommended items than the best ones that the user could have got?


@dataclass(frozen=True)
class Regret:
    """The mean rating of the user's best items less that of the items with the highest scores."""

    places: int = 5
    definition: ClassVar[str] = (
        "mean of the k highest held-out ratings less that of the k items with the highest scores"
    )
    better: ClassVar[Literal["lower"]] = "lower"
    limits: ClassVar[tuple[float, float]] = (0, 4)
    version: ClassVar[int] = 1  # raise it when the values change

    def of_user(self, scores: np.ndarray, ratings: np.ndarray) -> float:
        """The value for one user; NaN leaves out a user with too few held-out items."""
        if len(ratings) < self.places:
            return np.nan
        shown = ratings[(-scores).argsort(kind="stable")[: self.places]]
        return float(np.sort(ratings)[-self.places :].mean() - shown.mean())


# %%
# ``evaluate`` takes the record beside the names of built-in metrics.

data = rankbench.load("low-rank[users=200]")
split = rankbench.split(data, "n-per-user", n=30, seed=0)
model = rankbench.fit("sgd[rank=5,lam=100]", split)
print(rankbench.evaluate(model, split, [Regret(places=5), "ndcg@5"]))

# %%
# The more items are shown, the less it matters which of them are ranked first.

places = [1, 2, 5, 10, 20]
floor = rankbench.fit("popularity", split)
figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
for name, one, marker in (("sgd", model, "o"), ("popularity", floor, "s")):
    values = [rankbench.evaluate(one, split, Regret(places=k)) for k in places]
    axes.plot(places, values, marker=marker, label=name)
axes.set(
    title="Regret of the recommended items", xlabel="items shown", ylabel="regret\n(lower is better)", ylim=(0, None)
)
axes.legend()
plt.show()
