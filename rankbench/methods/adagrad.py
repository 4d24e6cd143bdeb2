"""Gradient descent by batches of users, with a step of its own for each number (AdaGrad, Duchi et al. 2011)."""

from dataclasses import dataclass, field

import numpy as np

from rankbench.core.contract import Floats, Ints


@dataclass(frozen=True, eq=False)
class AdaGrad:
    """Rows of numbers, each of which moves by -step g / sqrt(sum of its g^2 so far) along its derivative g."""

    rows: Floats
    step: float
    squares: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Start without any derivative."""
        object.__setattr__(self, "squares", np.zeros_like(self.rows))

    def move(self, chosen: Ints, slope: Floats) -> None:
        """Take the step of these rows, which differ; a number whose derivatives were all zero stays."""
        self.squares[chosen] += np.square(slope)
        roots = np.sqrt(self.squares[chosen])
        self.rows[chosen] -= self.step * np.divide(slope, roots, out=np.zeros_like(slope), where=roots > 0)
