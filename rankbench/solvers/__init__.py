"""Solvers: one file per algorithm, none of which imports another; this list is all that binds them."""

from rankbench.contract import DECLARATIONS
from rankbench.specs import Catalogue

SOLVERS = Catalogue(
    "solver",
    {
        "bpr": "rankbench.solvers.bpr:BPR",
        "convex-erm": "rankbench.solvers.convex_erm:ConvexERM",
        "global": "rankbench.solvers.global_ranking:GlobalRanking",
        "lcr": "rankbench.solvers.lcr:LCR",
        "mprank": "rankbench.solvers.mprank:MPRank",
        "rankboost": "rankbench.solvers.rankboost:RankBoost",
        "rmc": "rankbench.solvers.rmc:RMC",
        "sgd": "rankbench.solvers.sgd:SGD",
        "smc": "rankbench.solvers.smc:SMC",
    },
    "rankbench.solvers",
    "rankbench list solvers",
    needs=(*DECLARATIONS, "steps"),
)
