"""Registries that map names to classes: built-in entries, installed plug-ins and the user's own files."""

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cached_property, lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal, Protocol, get_args, get_origin, get_type_hints, runtime_checkable

from rankbench.core.contract import Dataclass
from rankbench.core.errors import UserError, unknown
from rankbench.names.checking import build, settings_of
from rankbench.names.grammar import Pattern, Settings, Spec, parse, show, show_value
from rankbench.names.user_files import class_from_file, digest_of, is_file, is_from_file, own_path, without_folder


@runtime_checkable
class ReadsFiles(Protocol):
    """Optional protocol of a record with settings that are file paths; results identify such files by content."""

    paths: tuple[str, ...]  # the names of those settings


@dataclass(frozen=True)
class Named:
    """A name resolved to a class and all its settings, so that the name is parsed only once.

    Two `Named` objects mean the same thing exactly if their identities are equal. The identity of a user's own file
    contains the SHA-256 of its content: editing the file changes the identity, and moving the file does not.
    """

    written: str  # the text as the user wrote it
    name: str  # without the settings: `sgd`, `csv:my/ratings.csv`, `my/solver.py:Mine`
    given: Settings  # the settings that the user wrote, as text
    settings: Settings  # all settings, defaults included
    base: str  # the identity without the settings
    identity: str
    home: str  # location of the class: `module:Class` or `/path/to/file.py:Class`

    @property
    def record(self) -> Any:
        """The object that the name means, made from the class and the settings."""
        return _record(self.home, self.base, self.settings)

    @property
    def names(self) -> tuple[str, str]:
        """The names by which a pattern may refer to it: with and without the folder of its file."""
        return self.name, without_folder(self.name)

    def fits(self, pattern: Pattern) -> bool:
        """Whether a pattern matches it."""
        return pattern.fits(self.names, dict(self.settings))

    @cached_property
    def full(self) -> str:
        """The name with all its settings, for display; files are shown by their paths."""
        settings = self.settings[1:] if self.argument else self.settings
        return show(self.name, dict(settings))

    @property
    def is_own_file(self) -> bool:
        """Whether it is a user's own file of data, which its identity knows by the SHA-256 of its bytes."""
        return "sha256-" in self.identity and not is_from_file(self.home)

    @property
    def entry(self) -> str:
        """The registry's key for the name: `csv:` for `csv:ratings.csv`."""
        return _key(self.name)

    @property
    def argument(self) -> str:
        """The argument after the colon of the name, or an empty string."""
        return _argument(self.name)

    def with_chosen(self, chosen: Settings) -> str:
        """The name as the user wrote it, plus the settings that tuning chose."""
        shown = {name: "none" if value is None else value for name, value in chosen}
        return show(self.name, {**dict(self.given), **shown}) if shown else self.written

    def setting(self, name: str, default: object = None) -> Any:
        """The value of a setting."""
        return dict(self.settings).get(name, default)


@dataclass(frozen=True)
class Registry:
    """The names of one kind (such as solvers) with their classes; a class is imported on first use."""

    kind: str
    entries: Mapping[str, str]  # name -> "module:Class"
    group: str  # the entry-point group of plug-ins
    remedy: str  # the command that lists the names
    needs: tuple[str, ...] = ()  # the attributes that a record of this kind must have

    def names(self) -> list[str]:
        """All names, plug-ins included; a name that needs an argument is listed like `csv:PATH`."""
        return sorted(self._placeholder(key) if key.endswith(":") else key for key in self._keys())

    def whole_names(self) -> list[str]:
        """The names that need no argument after a colon."""
        return sorted(key for key in self._keys() if not key.endswith(":"))

    def knows(self, name: str) -> bool:
        """Whether the registry has the name, or the part before its colon."""
        return _key(name) in self._keys()

    def offers(self, home: str) -> bool:
        """Whether a location `module:Class` is that of a built-in entry or of an installed plug-in."""
        return home in (*self.entries.values(), *self._plugins.values())

    def find(self, name: str) -> type:
        """The class of a name: built in, from a plug-in, or from a user's file (`path/to/file.py:Class`)."""
        return class_at(self._home(name), self.kind)

    def fits(self, name: str) -> bool:
        """Whether the class of a name has all attributes that this kind needs."""
        return all(getattr(self.find(name), need, None) is not None for need in self.needs)

    def make(self, text: str) -> Any:
        """The record that `name[key=value,...]` describes; files that it reads are not looked at."""
        spec, record, _ = self._described(text, {})
        _frozen(settings_of(record), spec.name)
        return record

    def resolve(self, text: str, more: Mapping[str, Any] | None = None) -> Named:
        """The `Named` of a text `name[key=value,...]`, with additional settings from `more`."""
        return _named(text, *self._described(text, more or {}))

    def _described(self, text: str, more: Mapping[str, Any]) -> tuple[Spec, Any, str]:
        """What a text says, the record that it describes, and where its class is."""
        spec = parse(text)
        home = self._home(spec.name)
        cls = class_at(home, self.kind)
        settings = self._with_argument(spec, cls) if _has_argument(spec.name) else spec.settings
        record = build(cls, {**settings, **more}, spec.name)
        if absent := [need for need in self.needs if getattr(record, need, None) is None]:
            raise UserError(f"{self.kind} {text!r} has no {', '.join(absent)}: every {self.kind} needs one")
        return spec, record, home

    def _home(self, name: str) -> str:
        """The location of a name's class, `module:Class` or `/path/to/file.py:Class`."""
        if is_from_file(name):
            path, _, attribute = name.rpartition(":")
            class_from_file(name, self.kind)  # so that an error quotes the path as the user wrote it
            return f"{Path(path).resolve()}:{attribute}"
        if found := {**self._plugins, **self.entries}.get(_key(name)):
            return found
        if f"{name}:" in self._keys():
            raise self._without_argument(f"{name}:")
        if name.endswith(".py"):
            raise UserError(
                f"{name!r} names a file but no class in it",
                remedy=f"write {name}:NAME, where NAME is the {self.kind}'s class",
            )
        raise self.absent(name)

    def absent(self, name: str) -> UserError:
        """The error for a name that the registry does not have."""
        return unknown(self.kind, name, self.names(), self.remedy)

    def _keys(self) -> set[str]:
        """All keys of the registry, plug-ins included; a key that ends in a colon needs an argument."""
        return {*self.entries, *self._plugins}

    @property
    def _plugins(self) -> dict[str, str]:
        """The names that installed packages announce, with their locations `module:Class`."""
        return announced(self.group, tuple(sys.path))

    def _placeholder(self, key: str) -> str:
        return key + (_first_field(self.find(key)) or "value").upper()

    def _with_argument(self, spec: Spec, cls: type) -> dict[str, Any]:
        """The settings of a name, including the argument after the colon."""
        key, argument, first = _key(spec.name), _argument(spec.name), _first_field(cls)
        if not argument:
            raise self._without_argument(key)
        if first is None:
            raise UserError(f"{spec.name}: {cls.__name__} has no field for the argument {argument!r}: add a field")
        if first in spec.settings:
            raise UserError(
                f"{spec.name}: {first} is already given after the colon: leave {first}={spec.settings[first]} out"
            )
        known = _choices(cls, first)
        if known and argument not in known:
            nearest = get_close_matches(argument, known, n=1, cutoff=0.5)
            hint = f"did you mean {key + nearest[0]!r}? " if nearest else ""
            raise UserError(f"unknown {self.kind} {key + argument!r}", remedy=f"{hint}known: {', '.join(known)}")
        return {first: argument, **spec.settings}

    def _without_argument(self, key: str) -> UserError:
        cls = self.find(key)
        first = _first_field(cls)
        known = _choices(cls, first) if first else []
        which = f", with one of {', '.join(known)}" if known else ""
        return UserError(f"{self.kind} {key!r} needs an argument after the colon: use {self._placeholder(key)}{which}")


@lru_cache(maxsize=16)
def announced(group: str, path: tuple[str, ...]) -> dict[str, str]:
    """The entry points of a group with their values, of one name the first on this path of Python.

    All packages on the path are read for it, so it is done once: what is installed later is seen by new processes.
    """
    return {point.name: point.value for point in reversed(list(entry_points(group=group)))}


def class_at(home: str, kind: str = "class") -> type:
    """The class at `module:Class` or `/path/to/file.py:Class`."""
    if is_from_file(home):
        return class_from_file(home, kind)
    module, _, attribute = home.partition(":")
    try:
        found: type | None = getattr(importlib.import_module(module), attribute, None)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):  # the module is there, and one that it imports is not
            raise
        found = None
    if found is None:
        raise UserError(f"the class {home} is not here", remedy="install its package, or run again what names it")
    return found


def with_settings(named: Named, settings: Mapping[str, Any]) -> Named:
    """The same `Named` with other values of these settings; the text as the user wrote it is kept."""
    if not settings:
        return named
    record = build(class_at(named.home), {**dict(named.settings), **settings}, named.name)
    return _named(named.written, Spec(named.name, dict(named.given)), record, named.home)


def without_settings(named: Named, names: tuple[str, ...]) -> Named:
    """The same `Named` without these settings, because tuning has not chosen their values yet."""
    return replace(named, settings=tuple((name, value) for name, value in named.settings if name not in names))


@lru_cache(maxsize=1024)
def _record(home: str, base: str, settings: Settings) -> Any:
    """The object with these settings; an error if the user's file has changed since its name was resolved."""
    if is_from_file(home) and base != _base(home, home):
        raise UserError(f"{home.rpartition(':')[0]} changed while it was in use: run again")
    return build(class_at(home), dict(settings), home.rpartition(":")[2])


def _named(written: str, spec: Spec, record: Dataclass, home: str) -> Named:
    name = spec.name
    settings = _frozen(settings_of(record), name)
    base = _base(name, home)
    told = {key: value for key, value in settings.items() if value is not None}
    for key in record.paths if isinstance(record, ReadsFiles) else ():
        told |= {key: _content(told[key])} if key in told else {}
    identity_name = base
    if _has_argument(name) and (first := _first_field(type(record))):
        argument = told.pop(first, None)
        identity_name = f"{_key(name)}{'none' if argument is None else show_value(argument)}"
    given = tuple(spec.settings.items())
    return Named(written, name, given, tuple(settings.items()), base, show(identity_name, told), home)


def _frozen(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The settings with tuples in place of lists; a value of a type that cannot be stored is an error."""
    found = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    for key, value in found.items():
        for part in value if isinstance(value, tuple) else (value,):
            if not isinstance(part, bool | int | float | str | None):
                kind = type(part).__name__
                problem = f"{key} holds a value of type {kind}: a setting must be a number, a text, a boolean or none"
                raise UserError(problem, subject=name)
    return found


def _base(name: str, home: str) -> str:
    """The identity without settings; for a class in a user's file, the file's SHA-256 and the class's name."""
    if not is_from_file(home):
        return name
    path, _, attribute = home.rpartition(":")
    return f"sha256-{digest_of(Path(path))}.py:{attribute}"


def _content(path: str) -> str:
    """The digest of the file at this path, or the path itself if there is no such file."""
    file = own_path(path)
    return f"sha256-{digest_of(file)}" if is_file(file) else path


def _has_argument(name: str) -> bool:
    """Whether the name has an argument after a colon; `path/to/file.py:Class` has none."""
    return ":" in name and not is_from_file(name)


def _key(name: str) -> str:
    """The registry's key for the name: `csv:` for `csv:ratings.csv`."""
    return f"{name.partition(':')[0]}:" if _has_argument(name) else name


def _argument(name: str) -> str:
    """The argument after the colon of a name, or an empty string."""
    return name.partition(":")[2].strip() if _has_argument(name) else ""


def _first_field(cls: type) -> str | None:
    """The first field of a dataclass, which takes the argument after the colon of a name."""
    return next((f.name for f in fields(cls) if f.init), None) if is_dataclass(cls) else None


def _choices(cls: type, name: str) -> list[str]:
    """The sorted values of a `Literal` field, or an empty list if the field has another type."""
    hint = get_type_hints(cls, include_extras=True)[name]
    return sorted(map(str, get_args(hint))) if get_origin(hint) is Literal else []
