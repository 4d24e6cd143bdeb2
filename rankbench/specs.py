"""Names with settings, `name[key=value,...]`: one grammar for solvers, data sets, splits and metrics.

Everything that can be named so is a frozen dataclass whose fields are its settings. This module
reads such names, builds the record, checks types and limits, and writes the name back. A name may
hold an argument, `lookalike:ml-20m` or `csv:ratings.csv`: what stands behind the colon is the value
of the record's first field.
"""

import importlib
import importlib.util
import re
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from rankbench.errors import UserError, unknown

_GRAMMAR = re.compile(r"(?P<name>[^\[\]]+?)(?:\[(?P<settings>[^\[\]]*)\])?")
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class Limits:
    """The range of a number, to stand in `Annotated[float, Limits(above=0)]`."""

    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None

    def allow(self, value: float) -> bool:
        """Whether the value lies in the range; NaN lies in none."""
        return (
            (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        parts = (("at least", self.low), ("at most", self.high), ("above", self.above), ("below", self.below))
        return " and ".join(f"{word} {limit:g}" for word, limit in parts if limit is not None)


@dataclass(frozen=True)
class Spec:
    """A name and the settings that stood beside it, still as they were written."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def parse(text: str) -> Spec:
    """Take `name[key=value,...]` apart."""
    match = _GRAMMAR.fullmatch(text.strip())
    if not match:
        raise UserError(f"cannot read {text!r}: expected name or name[key=value,...]")
    settings: dict[str, str] = {}
    for part in filter(None, (match["settings"] or "").split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise UserError(f"cannot read {part!r} in {text!r}: expected key=value")
        if key in settings:
            raise UserError(f"{key!r} is set twice in {text!r}")
        settings[key] = value
    return Spec(match["name"].strip(), settings)


def show_value(value: Any) -> str:
    """A setting as it is written: `1` for 1.0, `true` for True."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def show_settings(settings: Mapping[str, Any]) -> str:
    """`key=value,key=value`, None left out."""
    return ",".join(f"{key}={show_value(value)}" for key, value in settings.items() if value is not None)


def show(name: str, settings: Mapping[str, Any]) -> str:
    """The inverse of `parse`."""
    return f"{name}[{shown}]" if (shown := show_settings(settings)) else name


def without_folder(text: str) -> str:
    """A name without the folders of a user's own files: results must not depend on where these lie."""
    spec = parse(text)
    return show(_last_part(spec.name), _last_parts(spec.name, spec.settings))


def canonical(text: str, record: Any) -> str:
    """The name with all of the record's settings, however it was written; an argument stands in the name alone."""
    name, settings = parse(text).name, settings_of(record)
    if _has_argument(name) and (first := _first_field(type(record))):
        name = f"{_key(name)}{show_value(settings.pop(first))}"
    return show(_last_part(name), _last_parts(name, settings))


def _has_argument(name: str) -> bool:
    """Whether a colon parts the name from an argument; `path/to/file.py:Class` is all name."""
    return ":" in name and ".py:" not in name


def _key(name: str) -> str:
    """What a catalogue lists the name under: `csv:` for `csv:ratings.csv`."""
    return f"{name.partition(':')[0]}:" if _has_argument(name) else name


def _last_part(name: str) -> str:
    """The name without the folder of the file in it: `csv:ratings.csv` for `csv:my/ratings.csv`."""
    if _has_argument(name):
        return _key(name) + _argument(name).rsplit("/", 1)[-1]
    return name.rsplit("/", 1)[-1] if ".py:" in name else name


def _last_parts(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings; beside an argument, which may be a file, further files among them without their folders."""
    if not _has_argument(name):
        return dict(settings)
    return {key: value.rsplit("/", 1)[-1] if isinstance(value, str) else value for key, value in settings.items()}


def _argument(name: str) -> str:
    """What stands behind the colon."""
    return name.partition(":")[2].strip()


def _first_field(cls: type) -> str | None:
    """The setting that takes what stands behind the colon of a name."""
    return next((f.name for f in fields(cls) if f.init), None) if is_dataclass(cls) else None


def settings_of(record: Any) -> dict[str, Any]:
    """All settings of a record, defaults included."""
    return {f.name: getattr(record, f.name) for f in fields(record) if f.init}


def changed_settings(record: Any) -> dict[str, Any]:
    """The settings that differ from their defaults."""
    return {f.name: getattr(record, f.name) for f in fields(record) if getattr(record, f.name) != f.default}


def build(cls: type, settings: Mapping[str, Any], name: str) -> Any:
    """A record of this class; strings are read by the field's type, everything is checked."""
    if not (isinstance(cls, type) and is_dataclass(cls)):
        raise UserError(f"{name} is no dataclass, whose fields are the settings: put @dataclass(frozen=True) above it")
    known = {f.name for f in fields(cls) if f.init}
    hints = get_type_hints(cls, include_extras=True)
    values = {}
    for key, value in settings.items():
        if key not in known:
            raise unknown(f"setting of {name}:", key, known) if known else UserError(f"{name} has no settings: {key!r}")
        values[key] = _convert(value, hints[key], f"{name}: {key}")
    try:
        return cls(**values)
    except UserError as error:
        raise UserError(str(error).replace(cls.__name__, name, 1)) from None
    except TypeError as error:
        raise UserError(f"{name}: {error}") from None


def check(record: Any) -> None:
    """Check every field against its type and its limits; for a record's `__post_init__`."""
    cls = type(record)
    hints = get_type_hints(cls, include_extras=True)
    for f in fields(cls):
        value = _convert(getattr(record, f.name), hints[f.name], f"{cls.__name__}: {f.name}")
        object.__setattr__(record, f.name, value)


def _convert(value: Any, hint: Any, where: str) -> Any:
    """The value as the hint wants it, or an error that says what was wanted."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        converted = _convert(value, inner, where)
        for limits in (note for note in notes if isinstance(note, Limits)):
            if converted is not None and not limits.allow(converted):
                raise UserError(f"{where}={show_value(converted)} is out of range: must be {limits}")
        return converted
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise unknown(f"value of {where}:", str(value), map(str, get_args(hint)))
        return value
    if get_origin(hint) in (Union, types.UnionType):
        return _convert_optional(value, hint, where)
    return _convert_plain(value, hint, where)


def _convert_optional(value: Any, hint: Any, where: str) -> Any:
    if value is None or value == "none":
        return None
    (inner,) = (arg for arg in get_args(hint) if arg is not type(None))
    return _convert(value, inner, where)


def _convert_plain(value: Any, hint: Any, where: str) -> Any:
    """Read an int, float, bool or str; a bool is no number and 1.5 is no int."""
    try:
        if hint is bool and not isinstance(value, bool):
            return _BOOLEANS[value]
        if hint is int and not isinstance(value, str) and (isinstance(value, bool) or value != int(value)):
            raise ValueError
        if hint is float and isinstance(value, bool):
            raise ValueError
        return hint(value) if hint in (int, float, str) else value
    except (ValueError, TypeError, KeyError, OverflowError):
        raise UserError(f"{where}={value} is not of type {hint.__name__}") from None


@dataclass(frozen=True)
class Catalogue:
    """Where the names of one kind lead: the house's own, installed plug-ins, and files of the user."""

    kind: str
    entries: Mapping[str, str]  # name -> "module:Class", imported only when asked for
    group: str  # the entry-point group that plug-ins announce themselves under
    remedy: str  # the command that lists the names
    needs: tuple[str, ...] = ()  # what a record of this kind must have

    def names(self) -> list[str]:
        """Every name that can be asked for, plug-ins included; `csv:PATH` where one needs an argument."""
        return sorted(self._placeholder(key) if key.endswith(":") else key for key in self._keys())

    def whole_names(self) -> list[str]:
        """The names that need no argument: each makes a record as it stands."""
        return sorted(key for key in self._keys() if not key.endswith(":"))

    def knows(self, name: str) -> bool:
        """Whether something of this kind has the name, or takes what stands behind its colon."""
        return _key(name) in self._keys()

    def find(self, name: str) -> type:
        """The class behind a name: one of ours, a plug-in's, or `path/to/file.py:Class`."""
        if ".py:" in name:
            path, _, attribute = name.rpartition(":")
            return _from_file(path, attribute, self.kind)
        key = _key(name)
        if key in self.entries:
            module, _, attribute = self.entries[key].partition(":")
            return getattr(importlib.import_module(module), attribute)  # type: ignore[no-any-return]
        for point in entry_points(group=self.group, name=key):
            return point.load()  # type: ignore[no-any-return]
        if f"{name}:" in self._keys():
            raise self._without_argument(f"{name}:")
        raise unknown(self.kind, name, self.names(), self.remedy)

    def fits(self, name: str) -> bool:
        """Whether the class behind a name says all that this kind must."""
        return all(getattr(self.find(name), need, None) is not None for need in self.needs)

    def make(self, text: str) -> Any:
        """The record that `name[key=value,...]` describes."""
        spec = parse(text)
        cls = self.find(spec.name)
        settings = self._with_argument(spec, cls) if _has_argument(spec.name) else spec.settings
        record = build(cls, settings, spec.name)
        if absent := [need for need in self.needs if getattr(record, need, None) is None]:
            raise UserError(f"{self.kind} {text!r} does not say its {', '.join(absent)}: {self.kind}s must")
        return record

    def _keys(self) -> set[str]:
        """What names lead somewhere; one that ends in a colon needs an argument."""
        return {*self.entries, *(point.name for point in entry_points(group=self.group))}

    def _placeholder(self, key: str) -> str:
        return key + (_first_field(self.find(key)) or "value").upper()

    def _with_argument(self, spec: Spec, cls: type) -> dict[str, Any]:
        """The settings, and among them what stands behind the colon."""
        key, argument, first = _key(spec.name), _argument(spec.name), _first_field(cls)
        if not argument:
            raise self._without_argument(key)
        if first is None:
            raise UserError(f"{spec.name}: {cls.__name__} has no setting that could take {argument!r}: give it a field")
        if first in spec.settings:
            raise UserError(
                f"{spec.name}: {first} stands behind the colon already: leave {first}={spec.settings[first]} out"
            )
        known = _choices(cls, first)
        if known and argument not in known:
            nearest = get_close_matches(argument, known, n=1, cutoff=0.5)
            hint = f"did you mean {key + nearest[0]!r}? " if nearest else ""
            raise UserError(f"unknown {self.kind} {key + argument!r}; {hint}known: {', '.join(known)}")
        return {first: argument, **spec.settings}

    def _without_argument(self, key: str) -> UserError:
        cls = self.find(key)
        first = _first_field(cls)
        known = _choices(cls, first) if first else []
        which = f", with one of {', '.join(known)}" if known else ""
        return UserError(f"{self.kind} {key!r} needs something behind the colon: write {self._placeholder(key)}{which}")


def _choices(cls: type, name: str) -> list[str]:
    """The values that a field of few values may take, sorted; empty where it may take any."""
    hint = get_type_hints(cls, include_extras=True)[name]
    return sorted(map(str, get_args(hint))) if get_origin(hint) is Literal else []


def _from_file(path: str, attribute: str, kind: str) -> type:
    """A class out of a user's own Python file."""
    file = Path(path).resolve()
    if not file.is_file():
        raise UserError(f"no file {path!r} to take the {kind} {attribute!r} from")
    module_spec = importlib.util.spec_from_file_location(f"rankbench_user_{file.stem}", file)
    assert module_spec and module_spec.loader
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[module_spec.name] = module  # dataclasses look their module up by name
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"cannot import {path}: {type(error).__name__}: {error}") from error
    if attribute not in vars(module):
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        raise unknown(f"{kind} in {path}:", attribute, classes)
    return vars(module)[attribute]  # type: ignore[no-any-return]
