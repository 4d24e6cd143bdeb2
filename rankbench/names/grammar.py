"""The grammar of names, `name[key=value,...]`: parsing and formatting."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rankbench.core.errors import UserError

Settings = tuple[tuple[str, Any], ...]  # (name, value) pairs in order: an immutable dictionary
_GRAMMAR = re.compile(r"(?P<name>[^\[\]]+?)(?:\[(?P<settings>[^\[\]]*)\])?")


@dataclass(frozen=True)
class Spec:
    """A parsed name with its settings, whose values are not converted yet."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pattern:
    """A name and some settings; it matches everything of this name with these values of the settings."""

    name: str
    settings: Settings = ()

    def __str__(self) -> str:
        return show(self.name, dict(self.settings))

    @classmethod
    def read(cls, text: str) -> "Pattern":
        """The pattern parsed from a text: `sgd[rank=5]` matches every sgd of rank 5."""
        spec = parse(text)
        return cls(spec.name, tuple(spec.settings.items()))

    def fits(self, names: Iterable[str], settings: Mapping[str, Any]) -> bool:
        """Whether the pattern matches something with these names and settings."""
        return self.name in names and self.agrees(settings)

    def agrees(self, settings: Mapping[str, Any]) -> bool:
        """Whether `settings` has the pattern's value for every setting in the pattern."""
        return all(key in settings and _alike(written(settings[key]), value) for key, value in self.settings)


def parse(text: str) -> Spec:
    """The name and the settings in `name[key=value,...]`."""
    match = _GRAMMAR.fullmatch(text.strip())
    if not match:
        raise UserError(f"cannot read {text!r}: expected name or name[key=value,...]")
    return Spec(match["name"].strip(), read_settings(match["settings"] or "", text))


def read_settings(text: str, whole: str = "") -> dict[str, str]:
    """The settings in `key=value,key=value`; errors quote `whole`, the complete text."""
    settings: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise UserError(f"cannot read {part!r} in {whole or text!r}: expected key=value")
        if key in settings:
            raise UserError(f"{key!r} is set twice in {whole or text!r}")
        settings[key] = value
    return settings


def show_value(value: object) -> str:
    """A setting's value as text: `1` for 1.0, `true` for True."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value + 0.0).removesuffix(".0")  # -0.0 equals 0.0 and is written like it
    return str(value)


def written(value: object) -> str:
    """A setting's value as text, with `none` for None."""
    return "none" if value is None else show_value(value)


def _alike(text: str, other: str) -> bool:
    """Whether two values given as text are equal: the same text, or the same number."""
    try:
        return text == other or float(text) == float(other)
    except ValueError:
        return False


def show_settings(settings: Mapping[str, Any]) -> str:
    """Settings as text, `key=value,key=value`; settings that are None are left out."""
    return ",".join(f"{key}={show_value(value)}" for key, value in settings.items() if value is not None)


def show(name: str, settings: Mapping[str, Any]) -> str:
    """A name with its settings as text; the inverse of `parse`."""
    return f"{name}[{shown}]" if (shown := show_settings(settings)) else name
