"""What measured means say: intervals, paired tests and effect sizes over users.

Rankings over data sets are in `rankbench.statistics.across`, which takes SciPy's statistics a while to load.
"""

from rankbench.statistics.samples import Sample
from rankbench.statistics.verdicts import Contrast, Interval, Verdict, contrast, contrasts, verdicts

__all__ = ["Contrast", "Interval", "Sample", "Verdict", "contrast", "contrasts", "verdicts"]
