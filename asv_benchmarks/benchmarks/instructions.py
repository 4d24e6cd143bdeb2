"""How many instructions each kernel and each step of a solver takes, which no other work on the machine changes.

Counting takes a minute or two for each commit, so `make bench` leaves it out: make bench BENCHMARKS=instructions.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "compare"))

from cases import cases
from counts import counted, missing
from trees import ONE_THREAD


class Instructions:
    """One call of each benchmark of kernels and steps, counted by callgrind."""

    params = tuple(cases())
    param_names = ("case",)
    timeout = 600.0  # seconds, in which all cases are counted

    def setup_cache(self) -> dict[str, int]:
        """Count all cases in one process, since valgrind takes seconds to begin."""
        return {} if missing() else counted({**os.environ, **ONE_THREAD}, list(self.params))

    def setup(self, found: dict[str, int], case: str) -> None:
        """Leave out what this commit lacks, and everything where there is no valgrind."""
        if case not in found:
            raise NotImplementedError

    def track_instructions(self, found: dict[str, int], case: str) -> int:
        """What was counted."""
        return found[case]

    track_instructions.unit = "instructions"
