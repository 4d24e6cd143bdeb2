"""Synthetic data sets from the papers' generative models."""

from rankbench.data.synthetic.cheng import FeatureLowRank
from rankbench.data.synthetic.cortes import Magnitudes
from rankbench.data.synthetic.gunasekar import LowRank, Monotone, PartialOrders
from rankbench.data.synthetic.lookalike import Lookalike
from rankbench.data.synthetic.park import BTL

__all__ = ["BTL", "FeatureLowRank", "Lookalike", "LowRank", "Magnitudes", "Monotone", "PartialOrders"]
