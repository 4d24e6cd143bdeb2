"""
Two solvers, with an interval of their difference
=================================================

Which of two solvers is better is decided by users and repetitions: each of them compares the two.
"""

from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

import rankbench

# %%
# Generated ratings stand in for the data of a published experiment, whose splits, metrics and tuning stay.

with TemporaryDirectory() as folder:
    outcome = rankbench.run(
        "park2015-table1",
        solver=["altsvm[rank=10]", "sgd[rank=10]"],
        data="low-rank[users=60,per_user=130]",
        repetitions=3,
        out=folder,
    )
    pairs = outcome.compare()
ndcg = pairs[pairs.metric == "ndcg@10"]
columns = ["data", "difference", "low", "high", "chance", "wins", "losses", "verdict", "settled_by"]
print(ndcg[columns].round(4).to_string())

# %%
# An interval that holds zero leaves the question open. Users and splits are the same for both solvers, so the interval
# of the difference is narrower than those of the two means.

figure, axes = plt.subplots(figsize=(5.5, 2.6), layout="constrained")
labels = [f"{n} ratings per user" for n in (20, 50, 100)]
axes.errorbar(
    ndcg.difference,
    labels,
    xerr=[ndcg.difference - ndcg.low, ndcg.high - ndcg.difference],
    fmt="o",
    capsize=4,
)
axes.axvline(0, color="grey", linestyle="--")
axes.invert_yaxis()
axes.margins(y=0.3)
axes.set(title="NDCG@10 of sgd less that of altsvm, 95 % interval", xlabel="difference (right of zero: sgd is better)")
plt.show()
