"""Fast solvers for learning to rank from preferences, and a harness that reproduces the papers' numbers."""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {  # each module is imported on first use, which keeps `import rankbench` fast
    "AltSVM": "rankbench.solvers.altsvm",
    "Answer": "rankbench.api.comparing",
    "BPR": "rankbench.solvers.bpr",
    "BlendedFactors": "rankbench.models",
    "CofiRank": "rankbench.solvers.cofirank",
    "Comparisons": "rankbench.data.views",
    "ConvexERM": "rankbench.solvers.convex_erm",
    "CornacBPR": "rankbench.solvers.peers.cornac_bpr",
    "CornacEASE": "rankbench.solvers.peers.cornac_ease",
    "CornacMF": "rankbench.solvers.peers.cornac_mf",
    "Determinism": "rankbench.core.contract",
    "EASE": "rankbench.solvers.ease",
    "FM": "rankbench.solvers.fm",
    "FRSVM": "rankbench.solvers.frsvm",
    "Factors": "rankbench.models",
    "FeatureFactors": "rankbench.models",
    "Fitted": "rankbench.fitted",
    "Generated": "rankbench.data.origins",
    "GlobalRanking": "rankbench.solvers.global_ranking",
    "HashedScores": "rankbench.models",
    "IALS": "rankbench.solvers.ials",
    "IMC": "rankbench.solvers.imc",
    "ImplicitALS": "rankbench.solvers.peers.implicit_als",
    "ImplicitBPR": "rankbench.solvers.peers.implicit_bpr",
    "ItemKNN": "rankbench.solvers.item_knn",
    "ItemScores": "rankbench.models",
    "ItemWeights": "rankbench.models",
    "KernelExpansion": "rankbench.models",
    "KernelScores": "rankbench.models",
    "LCR": "rankbench.solvers.lcr",
    "LIBLINEAR": "rankbench.solvers.peers.liblinear",
    "LensKitMF": "rankbench.solvers.peers.lenskit_mf",
    "Leaderboard": "rankbench.leaderboards.leaderboard",
    "LightFM": "rankbench.solvers.peers.lightfm",
    "LightGBMRanker": "rankbench.solvers.peers.lightgbm_ranker",
    "MF": "rankbench.solvers.mf",
    "MPRank": "rankbench.solvers.mprank",
    "Model": "rankbench.core.contract",
    "Outcome": "rankbench.api.outcomes",
    "OwnMetric": "rankbench.core.contract",
    "Popularity": "rankbench.solvers.popularity",
    "Progress": "rankbench.api.progress",
    "Publication": "rankbench.data.publications",
    "RMC": "rankbench.solvers.rmc",
    "RP3Beta": "rankbench.solvers.rp3beta",
    "Random": "rankbench.solvers.random_scores",
    "RankBoost": "rankbench.solvers.rankboost",
    "RankSVMJoint": "rankbench.solvers.ranksvm_joint",
    "RankSVMNuclear": "rankbench.solvers.ranksvm_nuclear",
    "RankSVMSeparate": "rankbench.solvers.ranksvm_separate",
    "RankSVMVar": "rankbench.solvers.ranksvm_var",
    "Ratings": "rankbench.data.views",
    "Reliability": "rankbench.api.reliability",
    "RobiRank": "rankbench.solvers.robirank",
    "SGD": "rankbench.solvers.sgd",
    "SLIM": "rankbench.solvers.slim",
    "SMC": "rankbench.solvers.smc",
    "SVRank": "rankbench.solvers.svrank",
    "Softmax": "rankbench.solvers.softmax",
    "Solver": "rankbench.core.contract",
    "Split": "rankbench.data.splits",
    "Step": "rankbench.core.contract",
    "Stumps": "rankbench.models",
    "Unfinished": "rankbench.core.errors",
    "UserError": "rankbench.core.errors",
    "UserWeights": "rankbench.models",
    "XGBoostRanker": "rankbench.solvers.peers.xgboost_ranker",
    "audit": "rankbench.api.comparing",
    "compare": "rankbench.api.outcomes",
    "conventions": "rankbench.api.judging",
    "evaluate": "rankbench.api.fitting",
    "fit": "rankbench.api.fitting",
    "judge": "rankbench.api.judging",
    "load": "rankbench.api.loading",
    "on": "rankbench.api.comparing",
    "outcome": "rankbench.api.outcomes",
    "rank": "rankbench.api.ranking",
    "recommend": "rankbench.api.fitting",
    "reliability": "rankbench.api.reliability",
    "results": "rankbench.api.outcomes",
    "run": "rankbench.api.experiments",
    "save": "rankbench.api.fitting",
    "split": "rankbench.api.fitting",
    "tune": "rankbench.api.experiments",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605  a list made from the table above


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rankbench' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
