"""The `[names]` of an experiment: what its solvers, data sets, splits, metrics and axes are called in figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from rankbench.core.errors import UserError, refuse_unknown
from rankbench.names import Checked


@dataclass(frozen=True)
class Names(Checked):
    """Names for people, by the text that the experiment has; what is not named gets a generated name."""

    solvers: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    splits: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    axes: Mapping[str, str] = field(default_factory=dict)  # by the setting on the axis: `n`, `seconds`, `threads`
    units: Mapping[str, str] = field(default_factory=dict)  # of a metric or an axis

    def __post_init__(self) -> None:
        super().__post_init__()
        for kind, names in vars(self).items():
            object.__setattr__(self, kind, MappingProxyType(dict(names)))


KINDS = tuple(f.name for f in fields(Names))


def read_names(file: str, table: object, known: Mapping[str, Mapping[str, str]]) -> Names:
    """The names in a `[names]` table; `known` has, for each kind, the texts of the experiment that may be named.

    A text may have several spellings, as `precision@5` and `precision@5[relevant=4]`: `known` has the one to keep.
    """
    if not isinstance(table, dict):
        raise UserError("[names] must be a table", subject=file)
    refuse_unknown(f"key in {file}: [names]", table, KINDS)
    return Names(**{kind: _named(file, kind, entries, known[kind]) for kind, entries in table.items()})


def _named(file: str, kind: str, entries: object, known: Mapping[str, str]) -> Mapping[str, str]:
    """The names of one kind, by the text that they stand for."""
    place = f"{file}: [names.{kind}]"
    if not isinstance(entries, dict):
        raise UserError(f"[names.{kind}] must be a table", subject=file)
    refuse_unknown(f"key in {place}", entries, known)
    for text, name in entries.items():
        if not isinstance(name, str) or not name.strip() or "\n" in name:
            raise UserError(f"the name of {text!r} must be a line of text, not {name!r}", subject=place)
    return {known[text]: name.strip() for text, name in entries.items()}
