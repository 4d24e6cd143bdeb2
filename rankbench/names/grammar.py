"""The grammar of names, `name[key=value,...]`: reading one, and writing one back."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rankbench.errors import UserError

Settings = tuple[tuple[str, Any], ...]  # names and values in their order; a dictionary that cannot change
_GRAMMAR = re.compile(r"(?P<name>[^\[\]]+?)(?:\[(?P<settings>[^\[\]]*)\])?")


@dataclass(frozen=True)
class Spec:
    """A name and the settings that stood beside it, still as they were written."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pattern:
    """A name, and the settings that something of this name must have to be meant by it."""

    name: str
    settings: Settings = ()

    def __str__(self) -> str:
        return show(self.name, dict(self.settings))

    @classmethod
    def read(cls, text: str) -> "Pattern":
        """The pattern that a text describes: `sgd[rank=5]` means every sgd of rank 5."""
        spec = parse(text)
        return cls(spec.name, tuple(spec.settings.items()))

    def fits(self, names: Iterable[str], settings: Mapping[str, Any]) -> bool:
        """Whether something is meant that has these names and settings."""
        return self.name in names and self.agrees(settings)

    def agrees(self, settings: Mapping[str, Any]) -> bool:
        """Whether every setting that the pattern mentions has this value."""
        return all(key in settings and _alike(written(settings[key]), value) for key, value in self.settings)


def parse(text: str) -> Spec:
    """Take `name[key=value,...]` apart."""
    match = _GRAMMAR.fullmatch(text.strip())
    if not match:
        raise UserError(f"cannot read {text!r}: expected name or name[key=value,...]")
    return Spec(match["name"].strip(), read_settings(match["settings"] or "", text))


def read_settings(text: str, whole: str = "") -> dict[str, str]:
    """Take `key=value,key=value` apart; errors quote the whole text that it stood in."""
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
    """A setting as it is written: `1` for 1.0, `true` for True."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def written(value: object) -> str:
    """The same, with `none` for None."""
    return "none" if value is None else show_value(value)


def _alike(text: str, other: str) -> bool:
    """Whether two settings as they are written say the same: the same text, or the same number."""
    try:
        return text == other or float(text) == float(other)
    except ValueError:
        return False


def show_settings(settings: Mapping[str, Any]) -> str:
    """`key=value,key=value`, None left out."""
    return ",".join(f"{key}={show_value(value)}" for key, value in settings.items() if value is not None)


def show(name: str, settings: Mapping[str, Any]) -> str:
    """The inverse of `parse`."""
    return f"{name}[{shown}]" if (shown := show_settings(settings)) else name
