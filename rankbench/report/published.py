"""The numbers that stand beside measured ones: published in a paper, or computed from a formula."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankbench.experiments import Published
from rankbench.harness.records import Group, Study
from rankbench.names.grammar import written
from rankbench.report.study import groups, settings_of

LOOKALIKE = "lookalike:"  # the data sets that only have another set's shape


@dataclass(frozen=True)
class Beside:
    """A number beside a measured one, and what it was measured on."""

    value: float
    sd: float | None
    on: str  # the data set, by its name here
    elsewhere: bool  # that is not the data measured here
    computed: str  # by what, where nobody published the number
    remark: str  # what else was different

    @property
    def heading(self) -> str:
        """What to call it: published, with its data where that was not measured here, or computed."""
        if self.computed:
            return "computed"
        return f"published on {self.on}" if self.elsewhere else "published"


def beside(study: Study, group: Group, label: str) -> Beside | None:
    """The number to stand beside a group's metric; never one beside the scores on a lookalike."""
    if not study.experiment.published or group.data.entry == LOOKALIKE:
        return None
    settings = joined_settings(group)
    data, split = dict(group.data.settings), dict(group.split.settings)
    for entry in study.experiment.published:
        if (
            entry.metric == label
            and entry.solver.fits(group.solver.names, settings)
            and (entry.data is None or entry.data.fits(group.data.names, data))
            and (entry.split is None or entry.split.fits(group.split.names, split))
        ):
            return _beside(entry, group)
    return None


def remarks(study: Study) -> list[str]:
    """What a reader must know of these numbers: what was measured on other data, or otherwise, or computed."""
    found = [
        (number, group.data.written)
        for group in groups(study)
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
    """A group's settings: what all repetitions have, or what each of them has."""
    return {name: joined(values) for name, values in settings_of(group).items()}


def joined(values: list[Any]) -> Any:
    """What all repetitions have, or what each of them has: `10|30|10`."""
    return values[0] if all(value == values[0] for value in values) else "|".join(map(written, values))


def _beside(entry: Published, group: Group) -> Beside:
    elsewhere = entry.on is not None and not entry.on.fits(group.data.names, dict(group.data.settings))
    on = str(entry.on) if elsewhere else group.data.written
    return Beside(entry.value, entry.sd, on, elsewhere, entry.computed, entry.remark)
