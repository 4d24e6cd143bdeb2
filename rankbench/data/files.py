"""The files of a data set: loose, compressed, or inside an archive that is read in place.

Archives are never unpacked to disk, so malicious paths inside an archive do no harm. What a compressed file unpacks to
has a limit, because a small file can unpack to more than the memory holds.
"""

import gzip
import hashlib
import io
import lzma
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from rankbench.core.errors import UserError
from rankbench.core.regular import opened

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_DAMAGED = (zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)
_MOST = 20 * 10**9  # bytes that a file may unpack to: ten times the largest published set, Netflix' 2 GB
_RATIO, _FREE = 100, 256 * 10**6  # text packs to a tenth: a file that unpacks to 100 times its size holds no ratings
_BUFFER = 1 << 20  # bytes


@dataclass(frozen=True)
class File:
    """One file, which may be a member of an archive."""

    path: Path
    member: str | None = None

    def __str__(self) -> str:
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    @property
    def is_packed(self) -> bool:
        """Whether the file is compressed, or part of an archive."""
        return self.member is not None or self.path.suffix == ".gz"

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The content as a stream of bytes, decompressed; a damaged archive is an error that names it."""
        try:
            if self.member:
                with (
                    opened(self.path) as packed,
                    zipfile.ZipFile(packed) as archive,
                    _entry(archive, self.member) as stream,
                ):
                    yield _limited(stream, self, archive.getinfo(self.member).compress_size)
            elif self.is_packed:
                with opened(self.path) as packed, gzip.open(packed) as stream:
                    yield _limited(cast(IO[bytes], stream), self, self.path.stat().st_size)
            else:
                with opened(self.path) as stream:
                    yield stream
        except _DAMAGED as error:
            raise UserError(f"{self} is cut or damaged ({error}): get the file again") from error
        except OSError as error:
            raise UserError(f"cannot read {self}: {error.strerror or error}") from error

    def read(self) -> bytes:
        """The whole content."""
        with self.open() as stream:
            return stream.read()


class _Limited(io.RawIOBase):
    """A stream of unpacked bytes that ends with an error once there are too many of them."""

    def __init__(self, stream: IO[bytes], file: File, limit: int) -> None:
        self.stream, self.file, self.limit, self.left = stream, file, limit, limit

    def readable(self) -> bool:
        """True: the stream can be read."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read the next bytes into the buffer; returns how many."""
        room = memoryview(buffer)
        piece = self.stream.read(len(room))
        self.left -= len(piece)
        if self.left < 0:
            problem = f"{self.file} unpacks to more than {self.limit:,} bytes"
            raise UserError(problem, remedy="if it is right, allow more: RANKBENCH_UNPACKED=50G")
        room[: len(piece)] = piece
        return len(piece)


def _limited(stream: IO[bytes], file: File, packed: int) -> IO[bytes]:
    """The stream with the limit that RANKBENCH_UNPACKED sets, or with one that suits its packed size."""
    limit = unpacked_limit() or min(_MOST, max(_FREE, _RATIO * packed))
    return io.BufferedReader(_Limited(stream, file, limit), _BUFFER)


def unpacked_limit() -> int | None:
    """The bytes in RANKBENCH_UNPACKED, written like 500M or 50G; None if it is not set."""
    text = os.environ.get("RANKBENCH_UNPACKED", "")
    match = re.fullmatch(r"([0-9]{1,9})([MG])", text)
    if text and not (match and int(match[1])):
        raise UserError(f"RANKBENCH_UNPACKED={text[:60]!r} cannot be read", remedy="write it like 500M or 50G")
    return int(match[1]) * {"M": 10**6, "G": 10**9}[match[2]] if match else None


def _entry(archive: zipfile.ZipFile, member: str) -> IO[bytes]:
    """A member of an archive, opened; an error if it is encrypted or packed in an unknown way."""
    try:
        return archive.open(member)
    except RuntimeError as error:  # NotImplementedError is one too
        raise UserError(f"{archive.filename}/{member} cannot be read ({error}): unpack it by hand") from None


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


def cache_folder() -> Path:
    """The folder `RANKBENCH_CACHE`, or the platform's default cache folder for rankbench."""
    if folder := os.environ.get("RANKBENCH_CACHE"):
        return Path(folder)
    usual = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(usual), "rankbench")


def folders(name: str) -> tuple[Path, ...]:
    """The folders that are searched for a data set's files: first in `RANKBENCH_DATA`, then in the cache."""
    own = os.environ.get("RANKBENCH_DATA")
    return (*((Path(own) / name,) if own else ()), cache_folder() / "data" / name)


def _member(path: Path, name: str) -> str | None:
    """The member of an archive with this file name, in any folder, or None."""
    try:
        with opened(path) as packed, zipfile.ZipFile(packed) as archive:
            members: list[Any] = archive.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} is cut or damaged ({error}): get the file again") from error
    return next((member for member in members if member.rsplit("/", 1)[-1] == name), None)
