"""
Recommendations for one user
============================

A model keeps the ids of its data, so that it can be asked in them.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import rankbench

# %%
# A table of ratings with names: those who like one kind of film dislike the other.

rng = np.random.default_rng(0)
kinds = np.arange(30) % 2  # even films are comedies, odd ones westerns
rows = []
for number in range(90):
    likes = number % 2
    for film in rng.choice(30, size=14, replace=False):
        rating = 4.2 - 2 * (kinds[film] != likes) + 0.5 * rng.normal()
        name = f"{('comedy', 'western')[kinds[film]]} {film // 2 + 1}"
        rows.append((f"user {number}", name, float(np.clip(np.round(rating), 1, 5))))
table = pd.DataFrame(rows, columns=["user", "item", "rating"])
table.head()

# %%
# The whole table trains here, since nothing is measured.

model = rankbench.fit("mf[rank=2,lam=1]", rankbench.load(table))
model.recommend("user 7", k=5).round(2)

# %%
# Films that the user has rated are left out of recommendations; ``rank`` has them, too.

ranked = model.rank("user 7")
rated = set(table.item[table.user == "user 7"])
colours = ["tab:blue" if name in rated else "tab:orange" for name in ranked["item"]]

figure, axes = plt.subplots(figsize=(5, 5), layout="constrained")
axes.barh(ranked["item"], ranked["score"], color=colours)
axes.invert_yaxis()
axes.tick_params("y", labelsize=7)
axes.set(title="All films by their scores for user 7", xlabel="score")
axes.bar(0, 0, color="tab:blue", label="rated by the user")
axes.bar(0, 0, color="tab:orange", label="can be recommended")
axes.legend(loc="lower right")
plt.show()
