"""What the values of users and repetitions say of each solver of a group: its mean's interval, and its verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import nan
from typing import TypeVar

import numpy as np

from rankbench.core.contract import Floats
from rankbench.core.errors import UserError
from rankbench.statistics.decisions import WORSE, Decision, foreseen, pairwise, ranked, undecided
from rankbench.statistics.estimates import Estimate, mean_of_users
from rankbench.statistics.samples import Sample, common, shared_by

Key = TypeVar("Key")
Range = tuple[float, float]


@dataclass(frozen=True)
class Verdict:
    """One solver of a group: its mean, and what is said of it against the best other one."""

    mean: Estimate
    decision: Decision
    rival: object  # the key of the solver that it is held against; None without one
    best: bool  # its mean is the best one
    alone: bool  # there is no other solver to compare with
    first: tuple[float, float, float]  # the chance to come first in a new draw, with its 95 % interval
    tier: int  # 1 for those that are not told from the best, 2 for those not told from the best of the rest, ...

    @property
    def bold(self) -> bool:
        """Whether it is not worse than the best by several repetitions, and there are others."""
        decision = self.decision
        return not self.alone and decision.difference.repetitions > 1 and (self.best or decision.word != WORSE)


def verdicts(samples: Mapping[Key, Sample], better: str, margin: float | None = None, limits: Range | None = None
             ) -> dict[Key, Verdict]:  # fmt: skip
    """The verdict on each solver of a group; `better` is `higher` or `lower`, `limits` are those of the metric.

    Solvers are compared on the repetitions that most of them have; those with others are open.
    """
    known, shared = _with_values(samples), compared_on(samples)
    if not known:
        return {}
    whole = [name for name, sample in known.items() if set(shared) <= set(sample.repetitions)]
    values, weights = _stacked([known[name].only(shared) for name in whole])
    found = ranked(values, better, margin, weights, limits)
    decisions = dict(zip(whole, found.decisions, strict=True))
    compared = len(whole) > min(1, len(known) - 1)  # one beside others that lack a repetition is not
    first = dict(zip(whole, found.first, strict=True)) if compared else {}
    tiers = {whole[place]: number for number, tier in enumerate(found.tiers, 1) for place in tier}
    return {
        name: Verdict(
            mean_of_users(samples[name].values, samples[name].weights, limits),
            (decision := decisions.get(name) or undecided(_lacking(sample, shared), margin or 0.0)),
            whole[decision.rival] if decision.rival >= 0 else None,
            best=found.best >= 0 and name == whole[found.best],
            alone=len(known) < 2,
            first=first.get(name, (nan, 0.0, 1.0)),
            tier=tiers.get(name, 0),
        )
        for name, sample in known.items()
    }


def compared_on(samples: Mapping[Key, Sample]) -> tuple[int, ...]:
    """The repetitions that the verdicts on these solvers rest on."""
    return common(_with_values(samples))


def between(samples: Mapping[Key, Sample], better: str, margin: float | None = None, limits: Range | None = None,
            families: int = 1) -> dict[tuple[Key, Key], Decision]:  # fmt: skip
    """The decision on each solver against each one before it, over the repetitions that both have.

    Groups whose errors are to add up to 5 % are as many `families`.
    """
    names = list(samples)
    shared = shared_by(samples.values())
    if len(names) > 2 and any(samples[name].repetitions != shared for name in names):
        found: dict[tuple[Key, Key], Decision] = {}
        for first, two in combinations(names, 2):
            of_two = {first: samples[first], two: samples[two]}
            found |= between(of_two, better, margin, limits, families * len(names) * (len(names) - 1) // 2)
        return found
    values, weights = _stacked([samples[name].only(shared) for name in names])
    decisions = pairwise(values, better, margin, weights, limits, families=families)
    return {(names[two], names[first]): decision for (two, first), decision in decisions.items()}


def power(
    samples: Mapping[Key, Sample], better: str, counts: Sequence[int], limits: Range | None = None
) -> list[float]:
    """For each number of repetitions, the difference from the best that would show with a probability of .8."""
    known, shared = _with_values(samples), compared_on(samples)
    whole = [sample.only(shared) for sample in known.values() if set(shared) <= set(sample.repetitions)]
    values, weights = _stacked(whole)
    return foreseen(values, better, counts, weights, limits)


def _with_values(samples: Mapping[Key, Sample]) -> dict[Key, Sample]:
    """The samples that have values, each without the repetitions in which it has none."""
    found = {name: sample.with_values() for name, sample in samples.items()}
    return {name: sample for name, sample in found.items() if sample.repetitions}


def _stacked(samples: list[Sample]) -> tuple[Floats, Floats]:
    """The values and the weights of samples with the same repetitions, solvers x repetitions x users."""
    if len({sample.values.shape[1] for sample in samples}) > 1:
        counts = " and ".join(str(number) for number in sorted({sample.values.shape[1] for sample in samples}))
        raise UserError(f"solvers are compared user by user, but they have values of {counts} users",
                        remedy="compare runs with the same data, split and seed")  # fmt: skip
    shape = (0, 0, 0)
    return (np.stack([sample.values for sample in samples]) if samples else np.zeros(shape),
            np.stack([sample.weights for sample in samples]) if samples else np.zeros(shape))  # fmt: skip


def _lacking(sample: Sample, shared: tuple[int, ...]) -> str:
    """Why a solver is not compared: the repetitions that it lacks."""
    lost = [str(number) for number in shared if number not in sample.repetitions]
    return f"it has no value in {'repetition' if len(lost) == 1 else 'repetitions'} {', '.join(lost)}"
