"""The highest resident memory of this process, stage by stage."""

from rankbench.core import system
from rankbench.records.results import STAGES, Peak, Stage


class PeakMemory:
    """Measures the highest resident memory of each stage; a stage that runs several times has the highest of all."""

    def __init__(self) -> None:
        self._found: dict[Stage, float] = {}
        system.restart_peak()

    def note(self, stage: Stage) -> float:
        """End a stage and begin the next; returns the megabytes of the one that ends."""
        megabytes = system.peak_bytes() / 1e6
        self.at_least(stage, megabytes)
        system.restart_peak()
        return megabytes

    def at_least(self, stage: Stage, megabytes: float) -> None:
        """Raise the peak of a stage to that of another process that took part in it."""
        self._found[stage] = max(self._found.get(stage, 0.0), megabytes)

    @property
    def peaks(self) -> tuple[Peak, ...]:
        """The stages that ended, in the order of `STAGES`."""
        return tuple(Peak(stage, self._found[stage]) for stage in STAGES if stage in self._found)
