"""Solvers: one file per algorithm, none of which imports another; this list is all that binds them."""

from rankbench.contract import DECLARATIONS
from rankbench.specs import Catalogue

SOLVERS = Catalogue(
    "solver",
    {
        "global": "rankbench.solvers.global_ranking:GlobalRanking",
        "imc": "rankbench.solvers.imc:IMC",
        "mf": "rankbench.solvers.mf:MF",
        "mprank": "rankbench.solvers.mprank:MPRank",
        "ranksvm-joint": "rankbench.solvers.ranksvm_joint:RankSVMJoint",
        "ranksvm-nuclear": "rankbench.solvers.ranksvm_nuclear:RankSVMNuclear",
        "ranksvm-separate": "rankbench.solvers.ranksvm_separate:RankSVMSeparate",
        "ranksvm-var": "rankbench.solvers.ranksvm_var:RankSVMVar",
        "sgd": "rankbench.solvers.sgd:SGD",
    },
    "rankbench.solvers",
    "rankbench list solvers",
    needs=(*DECLARATIONS, "steps"),
)
