"""Origins: where a data set comes from, under which terms, and whether it is at hand."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Tell = Callable[[str, int, int | None], None]  # a file's name, bytes so far, bytes in all where known


@dataclass(frozen=True)
class Held:
    """A file at hand, and the SHA-256 it should have where somebody published one."""

    path: Path
    sha256: str | None


class Origin(Protocol):
    """Where a data set comes from."""

    @property
    def licence(self) -> str:
        """The terms, in one line."""
        ...

    @property
    def size(self) -> str:
        """Users, items and rows, in words."""
        ...

    @property
    def home(self) -> str:
        """Who made it and where it is published."""
        ...

    def missing(self) -> str | None:
        """The one command that would get the data, or None where it is at hand."""
        ...

    def held(self) -> list[Held]:
        """The files at hand."""
        ...

    def fetch(self, tell: Tell) -> None:
        """Get what is missing, or say in a UserError how a person can."""
        ...


@dataclass(frozen=True)
class Generated:
    """Made by us from random numbers: always at hand."""

    size: str
    home: str = "generated"
    licence: str = "none needed"

    def missing(self) -> None:
        """Nothing: it is generated."""

    def held(self) -> list[Held]:
        """No files."""
        return []

    def fetch(self, tell: Tell) -> None:
        """Nothing to do."""


@dataclass(frozen=True)
class Download:
    """A file as it is offered: its name, where it can be had, and its published hash."""

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None
