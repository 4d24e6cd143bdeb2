"""
Features, and items without ratings
=========================================

A solver that learns functions of item features can rank items that were not there in training.
"""

import matplotlib.pyplot as plt
import numpy as np

import rankbench

# %%
# Each item has features, and the tastes of all users are made of a few functions of them. The split leaves out whole
# items: no user has rated those that it tests on.

data = rankbench.load("feature-low-rank[users=100,items=200,features=20,rank=5,per_user=60]")
split = rankbench.split(data, "cold-items", seed=0)
print(data.item_features.shape)

# %%
# The joint RankSVM has one function for all users, the separate one a function for each, and ``frsvm`` a few that all
# users share.

solvers = ["ranksvm-joint", "ranksvm-separate", "frsvm[rank=5]"]
models = {name: rankbench.fit(name, split) for name in solvers}
right = {name: rankbench.evaluate(model, split, "pairwise-accuracy") for name, model in models.items()}
print(right)

# %%
# New items are added to a model by their features, and are then recommended as the others are.

rng = np.random.default_rng(0)
wider = models["frsvm[rank=5]"].with_items(rng.normal(size=(3, data.item_features.shape[1])))
print(wider.recommend(0, k=5))

# %%

figure, axes = plt.subplots(figsize=(5, 2.4), layout="constrained")
axes.barh(list(right), list(right.values()), height=0.5)
axes.invert_yaxis()
axes.axvline(0.5, color="grey", linestyle="--", label="at random")
axes.set(title="Pairs of unseen items in the right order", xlabel="accuracy (higher is better)", xlim=(0, 1))
axes.legend(loc="lower right")
plt.show()
