"""Checks of settings against their types; the settings of a record are the annotated fields of its dataclass."""

import types
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from functools import cache
from operator import index
from typing import Annotated, Any, ClassVar, Literal, Self, SupportsIndex, Union, get_args, get_origin, get_type_hints

from rankbench.core.contract import Dataclass
from rankbench.core.errors import UserError, unknown
from rankbench.core.texts import error_words
from rankbench.names.grammar import show_value

_BOOLEANS: Mapping[object, bool] = {"true": True, "false": False}
_READERS: Mapping[type, Callable[[Any], Any]] = {int: int, float: float, str: str}


@dataclass(frozen=True)
class Limits:
    """The allowed range of a number, used as `Annotated[float, Limits(above=0)]`."""

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
        return " and ".join(f"{word} {show_value(limit)}" for word, limit in parts if limit is not None)


@dataclass(frozen=True)
class AddedLater:
    """Marks a setting that was added when results were already stored, as `Annotated[int, AddedLater()]`.

    At its default the setting is left out of names, identities and keys, so that these results stay valid.
    """


THREADS = Limits(low=1, high=1024)  # the kernels have the same limit: each thread has memory of its own
REPETITIONS = Limits(low=1, high=10_000)  # a plan holds every cell in memory, and so with the trials of a search
TRIALS = Limits(low=1, high=10_000)
STEPS = Limits(low=0, high=1_000_000)  # a curve has a point for each


def checked_threads(threads: SupportsIndex) -> int:
    """The number of threads as a plain integer, or an error if it is not a valid number of threads.

    Every public function that trains, scores or evaluates calls this first.
    """
    truth = isinstance(threads, bool) or str(getattr(threads, "dtype", "")) == "bool"  # an index in older NumPy
    try:
        number = None if truth else index(threads)
    except TypeError:
        number = None
    if number is None or not THREADS.allow(number):
        raise UserError(f"threads={threads!r} is not valid", remedy="give a whole number from 1 to 1024")
    return number


@cache
def hints_of(cls: type) -> Mapping[str, Any]:
    """The type hints of a record's fields, including `Annotated` notes."""
    return get_type_hints(cls, include_extras=True)


def settings_of(record: Dataclass) -> dict[str, Any]:
    """All settings of a record, defaults included, but for the defaults of settings that were added later."""
    hints = hints_of(type(record))
    told = [f for f in fields(record) if f.init and not _untold(hints[f.name], getattr(record, f.name) == f.default)]
    return {f.name: getattr(record, f.name) for f in told}


def _untold(hint: object, at_default: bool) -> bool:
    return at_default and AddedLater() in getattr(hint, "__metadata__", ())


def changed_settings(record: Dataclass) -> dict[str, Any]:
    """The settings that differ from their defaults."""
    return {f.name: getattr(record, f.name) for f in fields(record) if getattr(record, f.name) != f.default}


def build(cls: type, settings: Mapping[str, Any], name: str) -> Any:
    """An object of this dataclass made from settings; strings are converted to the field's type, all is checked."""
    if not (isinstance(cls, type) and is_dataclass(cls)):
        raise UserError(f"{name} is not a dataclass: put @dataclass(frozen=True) above it, its fields are the settings")
    known = {f.name for f in fields(cls) if f.init}
    hints = hints_of(cls)
    values = {}
    for key, value in settings.items():
        if key not in known:
            raise unknown(f"setting of {name}:", key, known) if known else UserError(f"{name} has no settings: {key!r}")
        values[key] = _convert(value, hints[key], name, key)
    try:
        return cls(**values)
    except UserError as error:
        raise error.within(name, instead_of=cls.__name__) from None
    except TypeError as error:
        raise UserError(error_words(error), subject=name) from None


def check(record: Dataclass) -> None:
    """Check every field of a record against its type and limits; call this in `__post_init__`."""
    cls = type(record)
    hints = hints_of(cls)
    for f in fields(cls):
        value = _convert(getattr(record, f.name), hints[f.name], cls.__name__, f.name)
        object.__setattr__(record, f.name, value)


class Checked:
    """A record, a frozen dataclass, whose settings are checked against their types and limits when it is made.

    It is a parameter as scikit-learn wants them: `clone` returns the record itself, which cannot change.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __post_init__(self) -> None:
        check(self)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings by name, as scikit-learn asks for them."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}

    def __sklearn_clone__(self) -> Self:
        return self


def _convert(value: object, hint: object, subject: str, key: str) -> Any:
    """The value converted to the hinted type, or an error that says what was expected."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        converted = _convert(value, inner, subject, key)
        for limits in (note for note in notes if isinstance(note, Limits)):
            if converted is not None and not limits.allow(converted):
                problem = f"{key}={show_value(converted)} is out of range: must be {limits}"
                raise UserError(problem, subject=subject)
        return converted
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise unknown(f"value of {key}:", str(value), map(str, get_args(hint))).about(subject)
        return value
    if get_origin(hint) in (Union, types.UnionType):
        return _convert_optional(value, hint, subject, key)
    return _convert_plain(value, hint, subject, key) if isinstance(hint, type) else value


def _convert_optional(value: object, hint: object, subject: str, key: str) -> Any:
    if value is None or value == "none":
        return None
    (inner,) = (arg for arg in get_args(hint) if arg is not type(None))
    return _convert(value, inner, subject, key)


def _convert_plain(value: object, hint: type, subject: str, key: str) -> Any:
    """The value as an int, float, bool or str; a bool is not accepted as a number, nor 1.5 as an int."""
    try:
        if hint is bool and not isinstance(value, bool):
            return _BOOLEANS[value]
        if hint in (int, float) and isinstance(value, bool):
            raise ValueError
        found = _READERS[hint](value) if hint in _READERS else value
        if hint is int and not isinstance(value, str) and value != found:
            raise ValueError
        return found
    except (ValueError, TypeError, KeyError, OverflowError):
        raise UserError(f"{key}={value!s:.60} is not of type {hint.__name__}", subject=subject) from None
