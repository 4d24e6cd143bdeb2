"""Reference numbers for measured ones: published in a paper, or computed from a formula."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankbench.experiments import PER_STEP, TIMES, Published
from rankbench.names import Named
from rankbench.names.grammar import written
from rankbench.records.studies import Group, Study
from rankbench.report.study import settings_of

LOOKALIKE = "lookalike:"  # generated data sets that have only the shape of a real one


@dataclass(frozen=True)
class Beside:
    """A reference number for a measured one, and the data set that it belongs to."""

    value: float
    sd: float | None
    on: str  # the data set, by its name in rankbench
    elsewhere: bool  # whether that is a different data set from the one measured here
    computed: str  # the formula, if the number is computed and not published
    remark: str  # other differences

    @property
    def heading(self) -> str:
        """The heading of the number: `published`, `published on DATA` for other data, or `computed`."""
        if self.computed:
            return "computed"
        return f"published on {self.on}" if self.elsewhere else "published"


def beside(study: Study, group: Group, label: str) -> Beside | None:
    """The reference number for a group's metric, speed-up or seconds, or None; lookalike data never has one."""
    entry = _entry(study, group, label)
    if entry is None:
        return None
    elsewhere = entry.on is not None and not group.data.fits(entry.on)
    on = str(entry.on) if elsewhere else group.data.written
    return Beside(entry.value, entry.sd, on, elsewhere, entry.computed, entry.remark)


def _entry(study: Study, group: Group, label: str) -> Published | None:
    """The first entry that is about this group's metric."""
    if not study.experiment.published or group.data.entry == LOOKALIKE:
        return None
    settings = joined_settings(group)
    for entry in study.experiment.published:
        if (
            entry.metric == label
            and entry.threads in (None, group.threads)
            and entry.solver.fits(group.solver.names, settings)
            and entry.is_about(group.data, group.split)
        ):
            return entry
    return None


def is_variant(study: Study, group: Group, label: str) -> bool:
    """Whether a solver that the experiment lists before it has the same published number beside it.

    The first of them is the reproduction of that number, and the others are variants.
    """
    entry = _entry(study, group, label)
    here = (one for one in study.groups if one.place.identity == group.place.identity and one.threads == group.threads)
    return entry is not None and next(one for one in here if _entry(study, one, label) is entry).key != group.key


def without_measurement(study: Study, data: Named) -> list[Published]:
    """The numbers that were published on this data set, which is not at hand, and that stand beside no other."""
    labels = (*(measure.label for measure in study.measures), *TIMES, PER_STEP)
    shown = [_entry(study, group, label) for group in study.groups for label in labels]
    return [
        entry
        for entry in study.experiment.published
        if (home := entry.on or entry.data) and data.fits(home) and entry not in shown
    ]


def remarks(study: Study) -> list[str]:
    """Notes on the reference numbers: which were measured on other data or in another way, or are computed."""
    found = [
        (number, group.data.written)
        for group in study.groups
        for measure in study.measures
        if (number := beside(study, group, measure.label))
    ]
    elsewhere: dict[str, list[str]] = {}
    for number, data in found:
        if number.elsewhere:
            elsewhere.setdefault(number.on, []).append(data)
    lines = [
        f"Published on {on}, measured here on {', '.join(dict.fromkeys(data))}: for orientation only."
        for on, data in sorted(elsewhere.items())
    ]
    lines += [f"Published {remark}." for remark in sorted({number.remark for number, _ in found if number.remark})]
    return lines + [f"Computed: {how}." for how in sorted({number.computed for number, _ in found if number.computed})]


def joined_settings(group: Group) -> Mapping[str, object]:
    """A group's settings; a value that differs between repetitions becomes `10|30|10`."""
    return {name: joined(values) for name, values in settings_of(group).items()}


def joined(values: list[Any]) -> Any:
    """The common value of all repetitions, or the values joined as `10|30|10` if they differ."""
    return values[0] if all(value == values[0] for value in values) else "|".join(map(written, values))
