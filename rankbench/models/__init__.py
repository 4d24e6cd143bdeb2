"""Models: small frozen records of arrays that score pairs, and are saved and loaded without pickle."""

from rankbench.models.baselines import HashedScores, ItemScores
from rankbench.models.factors import BlendedFactors, Factors, FeatureFactors
from rankbench.models.files import FEATURES, MODELS, arrays_in, load, save, unpacked, unsound
from rankbench.models.item_weights import ItemWeights
from rankbench.models.kernel_expansions import KernelExpansion, KernelScores
from rankbench.models.of_features import Stumps, UserWeights
from rankbench.models.scattered import ScatteredFactors, ScatteredFeatureFactors, ScatteredUsers

__all__ = [
    "FEATURES",
    "MODELS",
    "BlendedFactors",
    "Factors",
    "FeatureFactors",
    "HashedScores",
    "ItemScores",
    "ItemWeights",
    "KernelExpansion",
    "KernelScores",
    "ScatteredFactors",
    "ScatteredFeatureFactors",
    "ScatteredUsers",
    "Stumps",
    "UserWeights",
    "arrays_in",
    "load",
    "save",
    "unpacked",
    "unsound",
]
