"""Each solver trained from start to end through the harness: its time and its peak memory."""

from rankbench.harness.training import fit

from .problems import PROBLEMS, parts, solver


class Fit:
    """A whole fit on one thread; its peak memory includes Python, NumPy and the data."""

    params = tuple(PROBLEMS)
    param_names = ("solver",)

    def setup(self, name: str) -> None:
        """Make the data, and train once to warm up memory and libraries."""
        self.problem = PROBLEMS[name]
        self.solver = solver(self.problem)
        self.train = parts(self.problem).train
        self._fit()

    def time_fit(self, name: str) -> None:
        """Seconds from the data to the last model."""
        self._fit()

    def peakmem_fit(self, name: str) -> None:
        """The largest resident size of the process."""
        self._fit()

    def _fit(self) -> None:
        fit(self.solver, self.train, steps=self.problem.steps, seed=0)
