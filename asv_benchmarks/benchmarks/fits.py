"""Each solver trained from start to end through the harness: its time and its peak memory."""

import hashlib

from rankbench.arrays.npz import pack
from rankbench.core.contract import Model
from rankbench.execution.training import fit

from .problems import PROBLEMS, parts, solver


class Fit:
    """A whole fit on one thread; its peak memory includes Python, NumPy and the data."""

    params = tuple(PROBLEMS)
    param_names = ("solver",)

    def setup(self, name: str) -> None:
        """Make the data."""
        self.problem = PROBLEMS[name]
        self.solver = solver(self.problem)
        self.train = parts(self.problem).train

    def peakmem_fit(self, name: str) -> None:
        """The largest resident size of the process."""
        self.fit()

    def track_digest(self, name: str) -> int:
        """The first 48 bits of the digest of the model's arrays, which must not move."""
        return int(self.digest()[:12], 16)

    track_digest.unit = "digest"

    def digest(self) -> str:
        """The SHA-256 of the model's arrays, as hexadecimal digits."""
        found = hashlib.sha256()
        for name, array in sorted(pack(self.fit()).items()):
            found.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
        return found.hexdigest()

    def fit(self) -> Model:
        """The model after the problem's steps."""
        return fit(self.solver, self.train, steps=self.problem.steps, seed=0)


class WarmFit:
    """The time of a whole fit on one thread, after another one has warmed up memory and libraries."""

    params = Fit.params
    param_names = Fit.param_names

    def setup(self, name: str) -> None:
        """Make the data, and train once."""
        self.cold = Fit()
        self.cold.setup(name)
        self.cold.fit()

    def time_fit(self, name: str) -> None:
        """Seconds from the data to the last model."""
        self.cold.fit()
