"""Intervals and tests over users, at the size of MovieLens 1M."""

import numpy as np

from rankbench.statistics import Sample, verdicts
from rankbench.statistics.verdicts import intervals


class Verdicts:
    """6,040 users: ten metrics of one solver, and twenty solvers with five repetitions each."""

    def setup(self) -> None:
        """Draw the values for each user."""
        rng = np.random.default_rng(0)
        self.metrics = [Sample.of({0: rng.random(6040)}) for _ in range(10)]
        self.solvers = {str(number): Sample.of(dict(enumerate(rng.random((5, 6040))))) for number in range(20)}

    def time_intervals(self) -> None:
        """Compute the intervals of ten metrics."""
        intervals(self.metrics)

    def time_verdicts(self) -> None:
        """Compute the intervals of twenty solvers, and test each against the best."""
        verdicts(self.solvers, "higher")
