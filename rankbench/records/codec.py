"""Conversion of dataclasses to JSON and back, with strict checks of names and types when reading."""

import collections.abc
import json
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from math import inf, isfinite, isnan, nan
from numbers import Integral, Real
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from rankbench.core.contract import Dataclass

T = TypeVar("T", bound=Dataclass)
Read = Callable[[Any], Any]
_NOT_FINITE = {"nan": nan, "inf": inf, "-inf": -inf}


class Unreadable(ValueError):
    """The stored JSON does not match the dataclass that it should describe."""


def encode(record: object, indent: int | None = 1) -> str:
    """A dataclass as strict JSON text (NaN and infinity become strings); `indent=None` gives one line."""
    return json.dumps(plain(record), indent=indent, allow_nan=False)


def plain(value: object) -> Any:
    """The value converted to dictionaries, lists, strings, finite numbers, booleans and None."""
    if type(value) in _PLAIN:  # most values by far
        return _plain_text(value) if type(value) is str else value
    for kind, written in _WRITERS:
        if isinstance(value, kind):
            return written(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in _names(type(value))}
    raise TypeError(f"a {type(value).__name__} cannot be stored")


def decode(cls: type[T], text: str) -> T:
    """The object of class `cls` that a JSON text describes."""
    return revived(cls, parsed(text))


def parsed(text: str) -> Any:
    """The value of a JSON text; text that is not JSON, or is nested too deeply, is unreadable."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"no JSON: {type(error).__name__}: {error}") from None


def revived(cls: type[T], value: object, **known: object) -> T:
    """The object of class `cls` that plain values describe; unknown or missing names and wrong types are refused.

    Fields in `known` are used as given and must not be among the plain values.
    """
    try:
        return _fields_read(cls, value, known) if known else _reader(cls)(value)
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, Unreadable) else Unreadable(str(error)) from None


def printable(text: str) -> str:
    """The text with all characters escaped that UTF-8 cannot encode."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _plain_number(number: Real) -> float | str:
    """The number, or the string `nan`, `inf` or `-inf`, which JSON has no numbers for."""
    value = float(number)
    if isfinite(value):
        return value
    return "nan" if isnan(value) else "inf" if value > 0 else "-inf"


def _plain_text(text: str) -> str:
    """The text, escaped if needed, with the mark `=` in front if it could be mistaken for NaN or infinity."""
    found = text if text.isascii() else printable(text)  # `isascii` is fast: it need not look at the letters
    return f"={found}" if found.lstrip("=") in _NOT_FINITE else found


def _unmarked(text: str) -> str:
    return text.removeprefix("=") if text.lstrip("=") in _NOT_FINITE else text


_PLAIN = frozenset({str, int, bool, type(None)})
_WRITERS: tuple[tuple[Any, Read], ...] = (  # a boolean is an integer too, so it comes before
    (bool | None, lambda value: value),
    (str, _plain_text),
    (Enum, lambda value: value.value),
    (Integral, int),
    (Real, _plain_number),
    (Mapping, lambda value: {printable(str(key)): plain(entry) for key, entry in value.items()}),
    (tuple | list, lambda value: [plain(entry) for entry in value]),
)


@cache
def _names(cls: type[Dataclass]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


@cache
def _reader(hint: object) -> Read:
    """A function that converts plain values to a value of the hinted type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in _MAKERS:
        return _MAKERS[origin](arguments)
    if isinstance(hint, type) and is_dataclass(hint):
        return _record(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    return _READERS[hint]


def _record(cls: type[Dataclass]) -> Read:
    """A function that makes an object of class `cls` from a dictionary of its fields."""
    return lambda value: _fields_read(cls, value, {})


def _fields_read(cls: type[T], value: object, known: Mapping[str, object]) -> T:
    """An object of class `cls` made from a dictionary of its fields and the fields in `known`."""
    if not isinstance(value, dict):
        raise Unreadable(f"{cls.__name__} is not a table")
    readers, needed = _fields_of(cls)
    if not value.keys() <= readers.keys() or (known and not known.keys().isdisjoint(value)):
        unknown = value.keys() - (readers.keys() - known.keys())
        raise Unreadable(f"{cls.__name__} has an unknown {min(map(str, unknown))!r}")
    if not needed <= value.keys() and (missing := needed - value.keys() - known.keys()):
        raise Unreadable(f"{cls.__name__} has no {min(missing)!r}")
    return cls(**{name: readers[name](entry) for name, entry in value.items()}, **known)


@cache
def _fields_of(cls: type[Dataclass]) -> tuple[Mapping[str, Read], frozenset[str]]:
    """For each field of a class the function that reads it, and the names of the required fields."""
    hints = get_type_hints(cls, include_extras=True)
    needed = frozenset(f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING)
    return {f.name: _reader(hints[f.name]) for f in fields(cls)}, needed


def _tuple(arguments: tuple[Any, ...]) -> Read:
    """A function that makes a tuple from a list: of any length with one type, or with one value per type."""
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        each = _reader(arguments[0])
        return lambda value: tuple([each(entry) for entry in _list(value)])
    readers = [_reader(argument) for argument in arguments]

    def read(value: object) -> Any:
        found = _list(value)
        if len(found) != len(readers):
            raise Unreadable(f"expected {len(readers)} values, not {len(found)}")
        return tuple([each(entry) for each, entry in zip(readers, found, strict=True)])

    return read


def _mapping(argument: object) -> Read:
    each = _reader(argument)

    def read(value: object) -> Any:
        if not isinstance(value, dict):
            raise Unreadable(f"expected a table, not {value!r:.60}")
        return types.MappingProxyType({key: each(entry) for key, entry in value.items()})

    return read


def _union(arguments: tuple[Any, ...]) -> Read:
    """A function that reads a value as the first of several types that accepts it."""
    others = [argument for argument in arguments if argument is not type(None)]
    readers = [_reader(argument) for argument in others]
    optional = len(others) < len(arguments)

    def read(value: object) -> Any:
        if value is None and optional:
            return None
        for attempt in readers[:-1]:
            try:
                return attempt(value)
            except (Unreadable, TypeError):
                continue
        return readers[-1](value)

    return read


def _one_of(choices: tuple[Any, ...]) -> Read:
    def read(value: object) -> Any:
        if value not in choices:
            raise Unreadable(f"{value!r:.60} is none of {', '.join(map(str, choices))}")
        return value

    return read


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise Unreadable(f"expected a list, not {value!r:.60}")
    return value


def _scalar(value: object) -> Any:
    """A number, string, boolean or None, or a tuple of such values from a list."""
    if isinstance(value, list):
        return tuple(_scalar(entry) for entry in value)
    if isinstance(value, dict):
        raise Unreadable("a table where a single value belongs")
    if isinstance(value, str):
        return _NOT_FINITE[value] if value in _NOT_FINITE else _unmarked(value)
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Unreadable(f"expected a text, not {value!r:.60}")
    return _unmarked(value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise Unreadable(f"expected true or false, not {value!r:.60}")
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Unreadable(f"expected a whole number, not {value!r:.60}")
    return value


def _number(value: object) -> float:
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise Unreadable(f"expected a number, not {value!r:.60}")
    return float(value)


_READERS: Mapping[Any, Read] = types.MappingProxyType(
    {str: _text, bool: _boolean, int: _whole, float: _number, Any: _scalar, object: _scalar}
)
_MAKERS: Mapping[Any, Callable[[tuple[Any, ...]], Read]] = types.MappingProxyType(
    {
        Annotated: lambda arguments: _reader(arguments[0]),
        Literal: _one_of,
        Union: _union,
        types.UnionType: _union,
        tuple: _tuple,
        collections.abc.Mapping: lambda arguments: _mapping(arguments[1]),
    }
)
