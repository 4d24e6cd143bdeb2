"""Intervals and verdicts at the size of MovieLens 1M."""

import numpy as np

from rankbench.statistics import Sample, between, verdicts


class Verdicts:
    """6,040 users: twenty solvers with five repetitions each."""

    def setup(self) -> None:
        """Draw the values for each user."""
        rng = np.random.default_rng(0)
        self.solvers = {str(number): Sample.of(dict(enumerate(rng.random((5, 6040))))) for number in range(20)}

    def time_verdicts(self) -> None:
        """Compute the intervals of twenty solvers, and hold each against the best."""
        verdicts(self.solvers, "higher", limits=(0.0, 1.0))

    def time_pairs(self) -> None:
        """Hold each two of them against each other."""
        between(self.solvers, "higher", limits=(0.0, 1.0))
