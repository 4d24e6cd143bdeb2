"""Which convention is that? The conventions under which a run has a published number, to its printed digits."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from rankbench.core.errors import UserError
from rankbench.judging.conventions import Convention, differences, one_step_from, phrases
from rankbench.judging.rankings import Pool
from rankbench.judging.tools import Use, metric_and_cut, uses_of
from rankbench.judging.valuing import Evaluation

_EQUAL = 1e-9  # values that differ by less are one answer: on this data the conventions cannot be distinguished
_LEVELS = 10  # so many of the relevances in the truth are tried as the lowest one that counts
_NUMBER = re.compile(r"\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*(?P<percent>%?)\s*", re.ASCII)


@dataclass(frozen=True)
class PrintedNumber:
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
class ValueOfRun:
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


def printed_number(text: str) -> PrintedNumber:
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
    return PrintedNumber(float(number), float(Decimal(5).scaleb(exponent - 1)))


def conventions_of(pool: Pool, metric: str, published: str) -> list[ValueOfRun]:
    """The values of a run that are the published number to its digits, each with the conventions that give it.

    Where none of the tools gives it, conventions that are one step from a tool's are tried; where none of those does,
    the one nearest value is given.
    """
    wanted = printed_number(published)
    name, cut = metric_and_cut(metric)
    uses, evaluation = uses_of(name, cut), Evaluation(pool, cut)
    levels = tuple(np.unique(pool.relevance[pool.relevance > 0])[:_LEVELS].tolist())
    tools = _by_convention((use.convention, use) for use in uses)
    found = _values(evaluation, tools, wanted)
    if not any(one.fits for one in found):
        near = _by_convention((changed, use) for use in uses for changed in one_step_from(use.convention, levels))
        found = _values(evaluation, near | tools, wanted)
    if not found:
        raise UserError(
            f"{metric} has no value on this run under any convention", remedy="compare its users with the truth's"
        )
    found.sort(key=lambda one: abs(one.value - wanted.value))
    return [one for one in found if one.fits] or found[:1]


def _by_convention(pairs: Iterable[tuple[Convention, Use]]) -> dict[Convention, tuple[Use, ...]]:
    """By convention the uses that it stands beside."""
    found: dict[Convention, tuple[Use, ...]] = {}
    for convention, use in pairs:
        found[convention] = (*found.get(convention, ()), use)
    return found


def _values(
    evaluation: Evaluation, tried: Mapping[Convention, tuple[Use, ...]], wanted: PrintedNumber
) -> list[ValueOfRun]:
    """The values under these conventions; those that are equal but for rounding are one."""
    candidates = sorted((Candidate(*one) for one in tried.items()), key=lambda one: not one.of_tools)
    values = np.array([evaluation.value(candidate.convention) for candidate in candidates])
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    groups = np.split(order, np.flatnonzero(np.diff(values[order]) > _EQUAL) + 1) if len(order) else []
    found = []
    for group in groups:
        own = tuple(candidates[number] for number in sorted(group))  # tools come first
        fits = any(wanted.fits(values[number]) for number in group)
        found.append(ValueOfRun(float(values[group].mean()), fits, own, evaluation.cut))
    return found
