"""Ranking metrics: their definitions, and the evaluation of a model by them; RULES holds the common conventions."""

from rankbench.metrics.evaluation import PerUser, evaluate, mean, measure, per_user, unusable, valueless
from rankbench.metrics.records import METRICS, OWN_METRICS, RULES, Metric, metric, own_metric

__all__ = [
    "METRICS",
    "OWN_METRICS",
    "RULES",
    "Metric",
    "PerUser",
    "evaluate",
    "mean",
    "measure",
    "metric",
    "own_metric",
    "per_user",
    "unusable",
    "valueless",
]
