"""The files of a data set: loose, compressed, or inside an archive that is read in place.

Archives are never unpacked to disk, so malicious paths inside an archive do no harm.
"""

import gzip
import hashlib
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from rankbench.data.cache import cache_folder
from rankbench.errors import UserError

_DAMAGED = (zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error)


@dataclass(frozen=True)
class File:
    """One file, which may be a member of an archive."""

    path: Path
    member: str | None = None

    def __str__(self) -> str:
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The content as a stream of bytes, decompressed; a damaged archive is an error that names it."""
        try:
            if self.member:
                with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as stream:
                    yield stream
            elif self.path.suffix == ".gz":
                with gzip.open(self.path) as stream:
                    yield cast(IO[bytes], stream)
            else:
                with self.path.open("rb") as stream:
                    yield stream
        except _DAMAGED as error:
            raise UserError(f"{self} is cut or damaged ({error}): get the file again") from error
        except OSError as error:
            raise UserError(f"cannot read {self}: {error.strerror or error}") from error

    def read(self) -> bytes:
        """The whole content."""
        with self.open() as stream:
            return stream.read()


@dataclass(frozen=True)
class Files:
    """All files in the folders of one data set; if a name occurs twice, the first folder wins."""

    name: str
    paths: tuple[Path, ...]
    remedy: str = ""  # the command that gets missing files

    @classmethod
    def of(cls, name: str, remedy: str = "") -> "Files":
        """The files in the folders of this data set, and archives of its name beside these folders."""
        found: list[Path] = []
        for folder in folders(name):
            found += sorted(folder.parent.glob(f"{name}.*")) if folder.parent.is_dir() else []
            found += sorted(path for path in folder.rglob("*")) if folder.is_dir() else []
        paths = tuple(path for path in found if path.is_file() and path.suffix != ".partial")
        return cls(name, paths, remedy)

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return self._find(name) is not None

    def find(self, *names: str) -> File:
        """The file with the first of these names that exists."""
        for name in names:
            if found := self._find(name):
                return found
        where = " or ".join(str(folder) for folder in folders(self.name))
        remedy = f": {self.remedy}" if self.remedy else ""
        raise UserError(f"{self.name}: no file {' or '.join(names)} in {where}{remedy}")

    def matching(self, pattern: str) -> list[File]:
        """All loose files with a name that matches the pattern."""
        return [File(path) for path in self.paths if path.match(pattern)]

    def stamp(self) -> str:
        """A digest of every file's path, size and time of change."""
        digest = hashlib.sha256()
        for path in self.paths:
            about = path.stat()
            digest.update(f"{path} {about.st_size} {about.st_mtime_ns} {about.st_ino}\n".encode())
        return digest.hexdigest()

    def _find(self, name: str) -> File | None:
        for path in self.paths:
            if path.name == name:
                return File(path)
        for path in self.paths:
            if path.suffix == ".zip" and (member := _member(path, name)):
                return File(path, member)
        return None


def folders(name: str) -> tuple[Path, ...]:
    """The folders that are searched for a data set's files: first in `RANKBENCH_DATA`, then in the cache."""
    own = os.environ.get("RANKBENCH_DATA")
    return (*((Path(own) / name,) if own else ()), cache_folder() / "data" / name)


def _member(path: Path, name: str) -> str | None:
    """The member of an archive with this file name, in any folder, or None."""
    try:
        with zipfile.ZipFile(path) as archive:
            members: list[Any] = archive.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} is cut or damaged ({error}): get the file again") from error
    return next((member for member in members if member.rsplit("/", 1)[-1] == name), None)
