"""How long the full profiles of the package's experiments took when they were last reproduced."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Duration:
    """How many cells and trials an experiment's full profile had, and their seconds, had they run one at a time."""

    cells: int
    seconds: float
    processor: str

    def of(self, cells: int) -> float:
        """The seconds that so many of them would have taken."""
        return self.seconds / self.cells * cells


def reproduced(experiment: str) -> Duration | None:
    """How long the full profile took; None for an experiment that was not reproduced."""
    found = _found()
    own = found["experiments"].get(experiment)
    return Duration(**own, processor=found["processor"]) if own else None


@cache
def _found() -> Any:
    return json.loads(files(__package__).joinpath("durations.json").read_text(encoding="utf-8"))
