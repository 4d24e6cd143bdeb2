"""Solvers, splits and metrics for scikit-learn: regressors, rankers with queries, and recommenders; extra `sklearn`."""

try:
    import sklearn as _found  # noqa: F401
except ImportError as error:
    raise ImportError('rankbench.sklearn needs scikit-learn: pip install "rankbench[sklearn]"') from error

from rankbench.sklearn.recommenders import ProtocolSplit, Recommender, scorer
from rankbench.sklearn.regressors import MPRank, RankBoost, RankSVM, SVRank

__all__ = ["MPRank", "ProtocolSplit", "RankBoost", "RankSVM", "Recommender", "SVRank", "scorer"]
