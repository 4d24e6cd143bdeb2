"""
A training curve
================

A callback is told after each step what the model is so far. What it does meanwhile is not part of the training time.
"""

import matplotlib.pyplot as plt

import rankbench

data = rankbench.load("low-rank[users=200]")
split = rankbench.split(data, "n-per-user", n=12, seed=0)

# %%
# The callback measures each model on the held-out pairs. If it returned True, the training would end.

errors = []


def measure(progress: rankbench.Progress) -> None:
    """Keep the error on the held-out pairs after a step."""
    errors.append((progress.step, rankbench.evaluate(progress.model, split, "pairwise-error")))


curves = {}
for penalty in (0.1, 30):
    errors.clear()
    rankbench.fit(f"sgd[rank=5,lam={penalty}]", split, steps=20, callback=measure)
    curves[penalty] = list(errors)

# %%
# With a small penalty the model learns the few training ratings by heart, and little about the others.

figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
for marker, (penalty, points) in zip("os", curves.items(), strict=True):
    axes.plot(*zip(*points, strict=True), marker=marker, label=f"lam = {penalty}")
axes.set(title="Error after each pass over the data", xlabel="step", ylabel="pairwise error\n(lower is better)")
axes.legend()
plt.show()
