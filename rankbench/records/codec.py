"""Dataclasses as JSON and back, with strict checks when reading, and the digest that ends each stored table."""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from math import inf, isfinite, isnan, nan
from numbers import Integral, Real
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from rankbench.core.contract import Dataclass

T = TypeVar("T", bound=Dataclass)
_DIGEST, _DIGITS, _END = ', "sha256": "', 64, '"}\n'  # how a table ends
_NOT_FINITE = {"nan": nan, "inf": inf, "-inf": -inf}
_ENTRIES = msgspec.json.Decoder(dict[str, msgspec.Raw])
_DEEPEST = 10  # levels of lists and tables in lists and tables; records have fewer


class Unreadable(ValueError):
    """The stored JSON does not match the dataclass that it should describe."""


def encode(record: object, indent: int | None = 1) -> str:
    """A dataclass as strict JSON text (NaN and infinity become strings); `indent=None` gives one line."""
    line = json.dumps(plain(record), allow_nan=False)
    return line if indent is None else msgspec.json.format(line, indent=indent)  # `dumps` indents many times slower


def plain(value: object) -> Any:
    """The value converted to dictionaries, lists, strings, finite numbers, booleans and None."""
    kind: type[Any] = type(value)
    return value if kind in _WHOLE else _writer(kind)(value)  # type: ignore[arg-type]  # types have hashes


@cache
def _writer(kind: type) -> Callable[[Any], Any]:
    """What converts the values of a type."""
    if not issubclass(kind, type) and (found := [written for base, written in _WRITERS if issubclass(kind, base)]):
        return found[0]
    if is_dataclass(kind):
        names = _names(kind)
        return lambda record: {name: plain(getattr(record, name)) for name in names}
    raise TypeError(f"a {kind.__name__} cannot be stored")


def decode(cls: type[T], text: str) -> T:
    """The object of class `cls` that a JSON text describes."""
    return revived(cls, parsed(text))


def parsed(text: str | bytes) -> Any:
    """The value of a JSON text, with tuples for lists; what is not JSON, or nested too deeply, is unreadable."""
    try:
        content = text if isinstance(text, bytes) else text.encode()
        found = _decoder().decode(content)
        return _read(found) if b'nan"' in content or b'inf"' in content else found  # the ends of `_NOT_FINITE`
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise Unreadable(f"no JSON: {type(error).__name__}: {error}") from None


def _parts(content: bytes) -> dict[str, msgspec.Raw]:
    """The entries of a JSON table as they are written."""
    try:
        return _ENTRIES.decode(content)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise Unreadable(f"no JSON: {type(error).__name__}: {error}") from None


def revived(cls: type[T], value: object) -> T:
    """The object of class `cls` that a parsed value describes; unknown or missing names and wrong types are refused.

    A part that is a record already is taken as it is.
    """
    try:
        _refuse_unknown(cls, value)
        return msgspec.convert(value, cls)
    except msgspec.ValidationError as error:
        raise Unreadable(f"{cls.__name__}: {error}") from None


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


_WHOLE = frozenset({int, bool, type(None)})
_NESTED = frozenset({tuple, dict})
_NUMBERS = _WHOLE | {float}  # which JSON has as they are
_WRITERS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (  # a boolean is an integer too, so it comes before
    (bool, lambda value: value),
    (str, _plain_text),
    (Enum, lambda value: value.value),
    (Integral, int),
    (Real, _plain_number),
    (Mapping, lambda value: {printable(str(key)): plain(entry) for key, entry in value.items()}),
    (tuple | list, lambda value: [entry if type(entry) in _WHOLE else plain(entry) for entry in value]),
)


@cache
def _names(cls: type[Dataclass]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


@cache
def _decoder() -> "msgspec.json.Decoder[Any]":
    """A reader of any JSON that makes tuples of lists."""
    kind: Any = Any
    for _ in range(_DEEPEST):
        kind = None | bool | int | float | str | tuple[kind, ...] | dict[str, kind]
    return msgspec.json.Decoder(kind)


def _read(value: Any) -> Any:
    """A value of JSON with the numbers and texts that `plain` had to write as other texts."""
    kind = type(value)
    if kind is tuple:
        return tuple([entry if type(entry) in _NUMBERS else _read(entry) for entry in value])
    if kind is dict:
        return {name: entry if type(entry) in _NUMBERS else _read(entry) for name, entry in value.items()}
    if kind is str and value[-3:] in ("nan", "inf") and value.lstrip("=") in _NOT_FINITE:
        return value[1:] if value[0] == "=" else _NOT_FINITE[value]
    return value


def _refuse_unknown(cls: type[Dataclass], value: object) -> None:
    """Raise an error if a table has a name that its class has no field for, which msgspec would pass over."""
    if type(value) is tuple:
        for entry in value:
            if type(entry) in _NESTED:
                _refuse_unknown(cls, entry)
    elif type(value) is dict:
        names, inner = _classes_within(cls)
        if not names >= value.keys():
            raise Unreadable(f"{cls.__name__} has an unknown {min(map(str, value.keys() - names))!r}")
        for name, below in inner:
            if part := value.get(name):
                _refuse_unknown(below, part)


class _Single:
    """Stands for the class of a setting's value, in which a table has no place."""


@cache
def _classes_within(cls: Any) -> tuple[frozenset[str], tuple[tuple[str, Any], ...]]:
    """The fields of a class, and with each the dataclass inside its type, where it has one; no table is looked into."""
    if cls is _Single:
        raise Unreadable("a table where a single value belongs")
    hints, names = get_type_hints(cls), _names(cls)
    found = ((name, _class_within(hints[name])) for name in names)
    return frozenset(names), tuple((name, below) for name, below in found if below is not None)


def _class_within(hint: Any) -> Any:
    if hint is Any:
        return _Single
    if isinstance(hint, type) and is_dataclass(hint):
        return hint
    if get_origin(hint) in (Mapping, dict):
        return None
    found = [inner for part in get_args(hint) if (inner := _class_within(part)) is not None]
    return found[0] if found else None


def with_digest(text: str) -> str:
    """A JSON table's text with the SHA-256 of what stands before it as its last entry."""
    before = text[:-1].rstrip()
    digest = hashlib.sha256(before.encode("utf-8", "backslashreplace")).hexdigest()
    return f"{before}{_DIGEST}{digest}{_END}"


def digest_in(content: bytes) -> tuple[bytes, str] | None:
    """What stands before the digest of a table, and the digest; None if the table does not end with one."""
    start = len(content) - _DIGITS - len(_END)
    before, mark = content[: start - len(_DIGEST)], content[start - len(_DIGEST) : start]
    if mark != _DIGEST.encode() or not content.endswith(_END.encode()):
        return None
    return before, content[start:][:_DIGITS].decode("ascii", "replace")


def table_in(content: bytes, unread: Collection[str] = ()) -> dict[str, Any]:
    """The JSON table in a file's bytes without its digest, which must be that of the bytes where there is one.

    The entries with the names `unread` stay the bytes of their JSON, which is faster than to read them.
    """
    found = digest_in(content)
    if found and hashlib.sha256(found[0]).hexdigest() != found[1]:
        raise Unreadable("it was changed after it was written: its SHA-256 is another one")
    apart: dict[str, bytes] = {}
    if unread:
        parts = _parts(content)
        apart = {name: bytes(parts.pop(name)) for name in unread if name in parts}
        content = msgspec.json.encode(parts)
    table = parsed(content)
    if not isinstance(table, dict):
        raise Unreadable("not a table")
    table.pop("sha256", None)
    return table | apart
