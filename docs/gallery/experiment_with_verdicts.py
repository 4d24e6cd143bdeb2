"""
An experiment and its verdicts
==============================

An experiment is a TOML file. Each combination of data, split, solver and repetition is trained in a process of its own,
and its result is stored, so that a second run only adds what is missing.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import rankbench

# %%
# Three repetitions, with two trials for each solver that has something to tune.

TEXT = """
title = "Three solvers on generated ratings"
about = "Does a model for each user help at fifteen ratings?"
data = ["low-rank[users=100,items=80,per_user=50]"]
splits = ["n-per-user[n=15,least=10]"]
solvers = ["popularity", "global", "sgd[rank=5]"]
metrics = ["ndcg@10", "pairwise-error"]
repetitions = 3

[budget]
steps = 8

[tune]
trials = 2
validation = "entries[test=0.2]"

[tune.space.popularity]

[tune.space.global]
lam = {low = 1, high = 100, scale = "log"}

[tune.space.sgd]
lam = {low = 10, high = 1000, scale = "log"}
"""

folder = TemporaryDirectory()
path = Path(folder.name) / "mine.toml"
path.write_text(TEXT)
outcome = rankbench.run(str(path), out=Path(folder.name) / "results")

# %%
# Bold means not worse than the best. Each solver is held against the best other one, with the interval of their
# difference over new users, splits and starts.

outcome

# %%
# ``compare`` has each two solvers, with a verdict on the second one.

pairs = outcome.compare()
pairs[["first", "second", "metric", "difference", "low", "high", "margin", "verdict"]].round(4)

# %%
# The settings that the trials chose are part of the name of the best solver, which ``rankbench.fit`` takes.

print(outcome.best)

# %%
# ``table`` has the means with their intervals as numbers, for a figure of one's own.

table = outcome.table()
ndcg = table[table.metric == "ndcg@10"]
figure, axes = plt.subplots(figsize=(5, 2.4), layout="constrained")
sides = [ndcg.measured - ndcg.low, ndcg.high - ndcg.measured]
axes.errorbar(ndcg.measured, ndcg.solver, xerr=sides, fmt="o", capsize=4)
axes.invert_yaxis()
axes.margins(y=0.3)
axes.set(title="Means over 100 users, with 95 % intervals", xlabel="NDCG@10 (higher is better)")
plt.show()
folder.cleanup()
