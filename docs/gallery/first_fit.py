"""
A first fit and its evaluation
==============================

Ratings are loaded and split, two solvers are trained, and both are measured on the held-out ratings of each user.
"""

import matplotlib.pyplot as plt

import rankbench

# %%
# The data is generated: 200 users whose tastes have few dimensions. ``rankbench.load`` also takes a DataFrame, a path
# or the name of a published data set. Thirty ratings of each user train, and the others are held out.

data = rankbench.load("low-rank[users=200]")
split = rankbench.split(data, "n-per-user", n=30, seed=0)
print(split)

# %%
# ``fit`` takes a solver by its name, with settings in brackets. The global ranking has one order for all users.

models = {
    "global": rankbench.fit("global[lam=10]", split),
    "sgd": rankbench.fit("sgd[rank=5,lam=100]", split, steps=20),
}
errors = {name: rankbench.evaluate(model, split, "pairwise-error") for name, model in models.items()}
print(errors)

# %%
# A model that scored at random would be wrong on half of the pairs.

figure, axes = plt.subplots(figsize=(5, 2.2), layout="constrained")
axes.barh(list(errors), list(errors.values()), height=0.5)
axes.axvline(0.5, color="grey", linestyle="--", label="at random")
axes.set(title="Held-out pairs in the wrong order", xlabel="pairwise error (lower is better)")
axes.legend()
plt.show()
