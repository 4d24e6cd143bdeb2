"""The registry of solvers by name; each algorithm has a file of its own, and no solver imports another."""

from rankbench.contract import DECLARATIONS
from rankbench.names import Registry

SOLVERS = Registry(
    "solver",
    {
        "bpr": "rankbench.solvers.bpr:BPR",
        "convex-erm": "rankbench.solvers.convex_erm:ConvexERM",
        "ease": "rankbench.solvers.ease:EASE",
        "fm": "rankbench.solvers.fm:FM",
        "frsvm": "rankbench.solvers.frsvm:FRSVM",
        "altsvm": "rankbench.solvers.altsvm:AltSVM",
        "cofirank": "rankbench.solvers.cofirank:CofiRank",
        "global": "rankbench.solvers.global_ranking:GlobalRanking",
        "imc": "rankbench.solvers.imc:IMC",
        "item-knn": "rankbench.solvers.item_knn:ItemKNN",
        "lcr": "rankbench.solvers.lcr:LCR",
        "mf": "rankbench.solvers.mf:MF",
        "mprank": "rankbench.solvers.mprank:MPRank",
        "popularity": "rankbench.solvers.popularity:Popularity",
        "random": "rankbench.solvers.random_scores:Random",
        "rankboost": "rankbench.solvers.rankboost:RankBoost",
        "ranksvm-joint": "rankbench.solvers.ranksvm_joint:RankSVMJoint",
        "ranksvm-nuclear": "rankbench.solvers.ranksvm_nuclear:RankSVMNuclear",
        "ranksvm-separate": "rankbench.solvers.ranksvm_separate:RankSVMSeparate",
        "ranksvm-var": "rankbench.solvers.ranksvm_var:RankSVMVar",
        "rmc": "rankbench.solvers.rmc:RMC",
        "robirank": "rankbench.solvers.robirank:RobiRank",
        "sgd": "rankbench.solvers.sgd:SGD",
        "smc": "rankbench.solvers.smc:SMC",
        "svrank": "rankbench.solvers.svrank:SVRank",
        "cornac-bpr": "rankbench.solvers.peers.cornac_bpr:CornacBPR",
        "cornac-mf": "rankbench.solvers.peers.cornac_mf:CornacMF",
        "implicit-als": "rankbench.solvers.peers.implicit_als:ImplicitALS",
        "implicit-bpr": "rankbench.solvers.peers.implicit_bpr:ImplicitBPR",
        "lightgbm": "rankbench.solvers.peers.lightgbm_ranker:LightGBMRanker",
        "xgboost": "rankbench.solvers.peers.xgboost_ranker:XGBoostRanker",
    },
    "rankbench.solvers",
    "rankbench list solvers",
    needs=(*DECLARATIONS, "steps"),
)
