"""What measured means say: intervals and verdicts over users and repetitions.

Rankings over data sets are in `rankbench.statistics.over_data`, which takes SciPy's statistics a while to load.
"""

from rankbench.statistics.samples import Sample, shared_by
from rankbench.statistics.verdicts import Verdict, between, compared_on, power, verdicts

__all__ = ["Sample", "Verdict", "between", "compared_on", "power", "shared_by", "verdicts"]
