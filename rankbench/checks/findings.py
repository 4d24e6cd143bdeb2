"""Findings: what a check of a user's data or solver has seen, and what to do about it."""

from dataclasses import dataclass
from typing import Literal

from rankbench.core.texts import safe

Outcome = Literal["passed", "failed", "not applicable"]


@dataclass(frozen=True)
class Finding:
    """The outcome of one check: what was seen and, where it failed, the remedy."""

    name: str
    outcome: Outcome
    seen: str
    remedy: str = ""
    where: str = ""  # the line of the user's own file that an error comes from

    @property
    def bad(self) -> bool:
        """Whether the check failed."""
        return self.outcome == "failed"

    @property
    def line(self) -> str:
        """What was seen and the remedy in one line, safe to show."""
        said = f"{self.name}: {self.seen}" + (f" ({self.where})" if self.where else "")
        return safe(f"{said}; {self.remedy}" if self.remedy else said)


def passed(name: str, seen: str) -> Finding:
    """The finding of a check that found nothing wrong."""
    return Finding(name, "passed", seen)


def failed(name: str, seen: str, remedy: str, where: str = "") -> Finding:
    """The finding of a check that found something wrong."""
    return Finding(name, "failed", seen, remedy, where)


def not_applicable(name: str, why: str) -> Finding:
    """The finding of a check that says nothing here."""
    return Finding(name, "not applicable", why)
