"""What measured means say: intervals, paired tests and effect sizes over users, and ranks over data sets."""

from rankbench.statistics.across import Ranking, ranking
from rankbench.statistics.samples import Sample
from rankbench.statistics.verdicts import Contrast, Interval, Verdict, contrast, verdicts

__all__ = ["Contrast", "Interval", "Ranking", "Sample", "Verdict", "contrast", "ranking", "verdicts"]
