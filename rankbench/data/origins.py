"""Origins: where a data set comes from, its licence, and whether it is available on this machine."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

INSTALL = 'pip install "rankbench[data]"'
Tell = Callable[[str, int, int | None], None]  # progress: a file's name, bytes so far, total bytes if known


@dataclass(frozen=True)
class Held:
    """A file on this machine, and its published SHA-256 if there is one."""

    path: Path
    sha256: str | None


class Origin(Protocol):
    """The origin of a data set: its licence, size and home, and how to get it."""

    @property
    def licence(self) -> str:
        """The licence, in one line."""
        ...

    @property
    def size(self) -> str:
        """Users, items and rows, in words."""
        ...

    @property
    def home(self) -> str:
        """The authors of the data set and where it is published."""
        ...

    def missing(self) -> str | None:
        """The command that gets the data, or None if it is available."""
        ...

    def held(self) -> list[Held]:
        """The data set's files on this machine."""
        ...

    def fetch(self, tell: Tell) -> None:
        """Download missing files, or raise an error that says how to get them by hand."""
        ...


@dataclass(frozen=True)
class Generated:
    """The origin of generated data, which is always available."""

    size: str
    home: str = "generated"
    licence: str = "none needed"

    def missing(self) -> None:
        """None, because generated data is never missing."""

    def held(self) -> list[Held]:
        """No files."""
        return []

    def fetch(self, tell: Tell) -> None:
        """Do nothing, because generated data needs no files."""


@dataclass(frozen=True)
class Download:
    """A file to download: its name, its addresses and its published SHA-256."""

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None
