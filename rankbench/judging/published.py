"""Which convention is that? The conventions under which a run has a published number, to its printed digits."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from rankbench.core.errors import UserError
from rankbench.judging.conventions import Convention, differences, one_step_from, phrases
from rankbench.judging.rankings import Pool
from rankbench.judging.tools import Use, metric_and_cut, uses_of
from rankbench.judging.valuing import Evaluation

_EQUAL = 1e-9  # values that differ by less are one answer: on this data the conventions cannot be told apart
_LEVELS = 10  # so many of the relevances in the truth are tried as the lowest one that counts
_NUMBER = re.compile(r"\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*(?P<percent>%?)\s*", re.ASCII)


@dataclass(frozen=True)
class Published:
    """A number as it was printed: all values between its limits are rounded to it."""

    value: float
    half_unit: float  # half of a unit of its last digit

    def fits(self, value: float) -> bool:
        """Whether a value is printed so."""
        return abs(value - self.value) <= self.half_unit * (1 + 1e-9)


@dataclass(frozen=True)
class Candidate:
    """A convention that was tried: that of these tools, or one step from the first of them."""

    convention: Convention
    uses: tuple[Use, ...]

    @property
    def of_tools(self) -> bool:
        """Whether a tool evaluates so, without any change."""
        return self.uses[0].convention == self.convention

    def name(self, cut: int | None) -> str:
        """The tools that evaluate so, or the nearest one and what is changed."""
        if self.of_tools:
            return ", ".join(use.written(cut) for use in self.uses)
        changes = differences(self.convention, self.uses[0].convention)
        return f"as {self.uses[0].written(cut)}, but {'; '.join(changes)}"


@dataclass(frozen=True)
class Finding:
    """A value of the run, and the conventions that give it: those of tools first."""

    value: float
    fits: bool  # whether it is the published number to its printed digits
    candidates: tuple[Candidate, ...]
    cut: int | None

    @property
    def names(self) -> list[str]:
        """What gives this value: the tools that do, or the changes to tools if none does as it is."""
        of_tools = [candidate for candidate in self.candidates if candidate.of_tools]
        return [candidate.name(self.cut) for candidate in of_tools or self.candidates]

    @property
    def definition(self) -> str:
        """The first of the conventions in words."""
        return "; ".join(phrases(self.candidates[0].convention))


def published_number(text: str) -> Published:
    """The number in a text such as `0.3817` or `38.17%`."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise UserError(
            f"the published number {text!r} is not a number", remedy="write it as printed: 0.3817 or 38.17%"
        )
    number = Decimal(match["number"]).scaleb(-2 if match["percent"] else 0)
    exponent = number.as_tuple().exponent
    if not 0 <= number <= 1 or not isinstance(exponent, int):
        raise UserError(
            f"the published number {text!r} is not between 0 and 1, as every metric here is",
            remedy="write percentages with their sign: 38.17%",
        )
    return Published(float(number), float(Decimal(5).scaleb(exponent - 1)))


def conventions_of(pool: Pool, metric: str, published: str) -> list[Finding]:
    """The values of a run that are the published number to its digits, each with the conventions that give it.

    Where none of the tools gives it, conventions that are one step from a tool's are tried; where none of those does,
    the one nearest value is given.
    """
    wanted = published_number(published)
    name, cut = metric_and_cut(metric)
    found = _findings(pool, _tried(pool, uses_of(name, cut)), cut, wanted)
    if not found:
        raise UserError(
            f"{metric} has no value on this run under any convention", remedy="compare its users with the truth's"
        )
    found.sort(key=lambda finding: (not finding.candidates[0].of_tools, abs(finding.value - wanted.value)))
    fitting = [finding for finding in found if finding.fits]
    of_tools = [finding for finding in fitting if finding.candidates[0].of_tools]
    return of_tools or fitting or [min(found, key=lambda finding: abs(finding.value - wanted.value))]


def _tried(pool: Pool, uses: Sequence[Use]) -> list[Candidate]:
    """The conventions of the uses, and then those one step from them, each once."""
    levels = tuple(np.unique(pool.relevance[pool.relevance > 0])[:_LEVELS].tolist())
    tools: dict[Convention, tuple[Use, ...]] = {}
    for use in uses:
        tools[use.convention] = (*tools.get(use.convention, ()), use)
    near: dict[Convention, tuple[Use, ...]] = {}
    for use in uses:
        for changed in one_step_from(use.convention, levels):
            if changed not in tools:
                near[changed] = (*near.get(changed, ()), use)
    return [Candidate(convention, found) for convention, found in (tools | near).items()]


def _findings(pool: Pool, tried: Sequence[Candidate], cut: int | None, wanted: Published) -> list[Finding]:
    """The candidates by their values; values that are equal but for rounding are one finding."""
    evaluation = Evaluation(pool, cut)
    values = np.array([evaluation.value(candidate.convention) for candidate in tried])
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    groups = np.split(order, np.flatnonzero(np.diff(values[order]) > _EQUAL) + 1) if len(order) else []
    found = []
    for group in groups:
        own = [tried[number] for number in sorted(group)]  # tools come first
        value = float(values[group].mean())
        found.append(Finding(value, any(wanted.fits(values[number]) for number in group), tuple(own), cut))
    return found
