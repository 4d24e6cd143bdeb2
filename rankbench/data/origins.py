"""Origins: where a data set comes from, its licence, and whether it is available on this machine."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from rankbench.core.errors import UserError
from rankbench.data.files import Files
from rankbench.names.user_files import is_file, own_path

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
class OwnFile:
    """The origin of a user's own data: a file of rows and optionally a file of item features."""

    path: str
    features: str | None = None
    licence: str = "the owner's"
    package: str = ""  # an optional package that reads the file of rows, and the command that installs it
    install: str = ""

    @property
    def size(self) -> str:
        """The size of the file of rows, as text."""
        path = self._paths()[0]
        return f"{path.stat().st_size:,} bytes" if is_file(path) else "unknown: there is no such file"

    @property
    def home(self) -> str:
        """The path of the file of rows, as text."""
        return f"the user's own file {self.path}"

    def missing(self) -> str | None:
        """What to do about a missing file, or None if all files exist."""
        absent = [path for path in self._paths() if not is_file(path)]
        if absent:
            return f"no file {str(absent[0])!r}: check the path"
        lacking = self.package and find_spec(self.package) is None
        return f"reading {self.path} needs the package {self.package}: {self.install}" if lacking else None

    def held(self) -> list[Held]:
        """The files that exist, without published hashes."""
        return [Held(path, None) for path in self._paths() if is_file(path)]

    def fetch(self, tell: Tell) -> None:
        """Raise an error if a file is missing, since a user's file cannot be downloaded."""
        self.files("own")

    def files(self, name: str) -> Files:
        """The files, which must exist, under this name of the data set."""
        if reason := self.missing():
            raise UserError(reason)
        return Files(name, self._paths())

    def _paths(self) -> tuple[Path, ...]:
        return tuple(own_path(path) for path in (self.path, self.features) if path is not None)


@dataclass(frozen=True)
class Download:
    """A file to download: its name, its addresses and its published SHA-256."""

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None
