"""Solvers: one file per algorithm, none of which imports another; this list is all that binds them."""

from rankbench.contract import DECLARATIONS
from rankbench.specs import Catalogue

SOLVERS = Catalogue(
    "solver",
    {
        "cofirank": "rankbench.solvers.cofirank:CofiRank",
        "global": "rankbench.solvers.global_ranking:GlobalRanking",
        "mprank": "rankbench.solvers.mprank:MPRank",
        "rankboost": "rankbench.solvers.rankboost:RankBoost",
        "sgd": "rankbench.solvers.sgd:SGD",
    },
    "rankbench.solvers",
    "rankbench list solvers",
    needs=(*DECLARATIONS, "steps"),
)
