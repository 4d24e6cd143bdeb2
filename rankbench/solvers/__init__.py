"""Solvers: one file per algorithm, none of which imports another; this list is all that binds them."""

from rankbench.contract import DECLARATIONS
from rankbench.specs import Catalogue

SOLVERS = Catalogue(
    "solver",
    {
        "global": "rankbench.solvers.global_ranking:GlobalRanking",
        "mprank": "rankbench.solvers.mprank:MPRank",
        "sgd": "rankbench.solvers.sgd:SGD",
        "svrank": "rankbench.solvers.svrank:SVRank",
    },
    "rankbench.solvers",
    "rankbench list solvers",
    needs=(*DECLARATIONS, "steps"),
)
