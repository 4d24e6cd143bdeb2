"""One step of each solver, without the harness, on one thread."""

from collections.abc import Iterator

import numpy as np

from rankbench.core.contract import Step
from rankbench.data.views import offer

from .problems import PROBLEMS, parts, solver


class OneStep:
    """The step after the first one; a solver that has ended begins again."""

    params = tuple(PROBLEMS)
    param_names = ("solver",)
    number = 1  # each step starts where the last one ended

    def setup(self, name: str) -> None:
        """Make the data, and take the first step."""
        self.problem = PROBLEMS[name]
        self.solver = solver(self.problem)
        self.train = offer(self.solver, parts(self.problem).train)
        self.running = self._begin()
        self.time_step(name)

    def time_step(self, name: str) -> None:
        """From one model to the next."""
        if next(self.running, None) is None:
            self.running = self._begin()
            next(self.running)

    def _begin(self) -> Iterator[Step]:
        return iter(self.solver.steps(self.train, np.random.default_rng(0)))
