"""What measured means say: intervals and verdicts over users and repetitions.

Rankings over data sets are in `rankbench.statistics.over_data`, which takes SciPy's statistics a while to load.
"""

from rankbench.statistics.samples import Sample
from rankbench.statistics.verdicts import Verdict, between, power, verdicts

__all__ = ["Sample", "Verdict", "between", "power", "verdicts"]
