"""Archives of results: one zip file that is opened only after it has been checked.

An archive may come from a stranger. Its names must be plain relative paths, its entries plain files, and its sizes
within `Largest`, by what it declares and by what really comes out. Every file must have the SHA-256 that the metadata
in `ro-crate-metadata.json` declare. Nothing in it is ever run: a solver of the user's own is named by its hash, and
taken from the reader's own file if that is the same; every other class must be one of the installed package.

The same files always give the same archive: the entries are sorted, and have a fixed date. (The compressed bytes are
those of the zlib at hand; another version of zlib may compress differently.)
"""

import errno
import hashlib
import json
import re
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import unquote

from rankbench.core import regular
from rankbench.core.errors import UserError
from rankbench.core.leftovers import HeldFolder, replacing
from rankbench.data import DATASETS
from rankbench.data.splits import VALIDATIONS
from rankbench.metrics import OWN_METRICS
from rankbench.names.user_files import is_from_file
from rankbench.records.cells import JUDGED
from rankbench.records.codec import Unreadable, parsed
from rankbench.solvers import SOLVERS

METADATA = "ro-crate-metadata.json"
SIGNATURE = "ro-crate-metadata.json.sig"  # of the metadata, if the author has signed them
_UNDESCRIBED = frozenset({METADATA, SIGNATURE})
RESULTS = "results"  # the folder in an archive that is a folder of results
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, struct.error)
_KINDS = (SOLVERS, DATASETS, VALIDATIONS, OWN_METRICS)
_DATE = (1980, 1, 1, 0, 0, 0)
_PREFIX = "rankbench-archive"
_CHUNK = 1 << 20
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.I)  # names that mean devices on some systems
_LONGEST = 400  # letters of a path
_RATIO, _SMALL = 100, 256 << 20  # results pack to a tenth; and bytes that any archive may unpack to
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LETTERS = re.compile(r"[^\x00-\x1f\x7f\\:*?\"<>|]+")


@dataclass(frozen=True)
class Largest:
    """What an archive may hold at most."""

    files: int = 200_000
    size: int = 8 * 2**30  # bytes, unpacked


def sha256_of(content: bytes | Path) -> str:
    """The SHA-256 of bytes, or of a file's bytes."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with regular.opened(content) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(path: Path, files: Mapping[str, bytes | Path]) -> None:
    """Write an archive of these files by their names in it; it appears under its name once it is complete."""
    if path.exists():
        raise UserError(f"{path} exists already: choose another file with --to, or remove it first")
    for name in files:
        if problem := _problem(zipfile.ZipInfo(name), set()):
            raise UserError(f"{name} cannot be put into an archive: {problem}")
    try:
        with replacing(path) as partial, zipfile.ZipFile(partial, "w") as archive:
            for name in sorted(files):
                content = files[name]
                about = zipfile.ZipInfo(name, _DATE)
                about.compress_type, about.create_system, about.external_attr = zipfile.ZIP_DEFLATED, 3, 0o100644 << 16
                archive.writestr(about, content if isinstance(content, bytes) else regular.content(content))
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; choose another file with --to") from None


@contextmanager
def opened(path: Path, limits: Largest | None = None) -> Iterator[Path]:
    """A context with the folder of results of an archive, unpacked into a temporary folder and removed afterwards."""
    parent = Path(tempfile.gettempdir())
    with HeldFolder(parent, _PREFIX) as folder:
        try:
            unpack(path, Path(folder), limits or Largest())
        except OSError as error:
            raise UserError(f"cannot unpack {path} into {parent}: {error.strerror or error}") from None
        yield Path(folder) / RESULTS


def unpack(path: Path, folder: Path, limits: Largest) -> None:
    """Unpack an archive into an empty folder, or raise an error that says what is wrong with it."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = _checked(path, archive.infolist(), folder, limits)
            digests = _digests(path, archive, limits)
            left = limits.size
            for entry in entries:
                left -= _unpacked(path, archive, entry, folder, left, digests)
    except UserError:
        raise
    except OSError as error:
        if error.errno != errno.EINVAL:  # of a seek to where a damaged directory points
            raise
        raise UserError(f"{path} is damaged or no archive of rankbench: it points outside of itself") from None
    except _DAMAGE as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{path} is damaged or no archive of rankbench: {said}") from None
    _check_content(path, folder)


def _checked(path: Path, found: list[zipfile.ZipInfo], folder: Path, limits: Largest) -> list[zipfile.ZipInfo]:
    """The entries that are files, after all entries have been checked."""
    if len(found) > limits.files:
        raise UserError(f"{path} holds {len(found)} files: an archive may hold at most {limits.files}")
    seen: set[str] = set()
    for entry in found:
        if problem := _problem(entry, seen):
            raise UserError(f"{path} holds {printable_name(entry)}: {problem}; nothing was unpacked")
        seen.add(entry.filename.casefold())
    declared = sum(entry.file_size for entry in found)
    if declared > limits.size:
        raise UserError(f"{path} would unpack to {declared} bytes: an archive may have at most {limits.size}")
    if declared > max(_SMALL, _RATIO * path.stat().st_size):
        raise UserError(
            f"{path} would unpack to {declared} bytes, more than {_RATIO} times its own size: results do not"
        )
    if declared > (free := shutil.disk_usage(folder).free):
        raise UserError(f"{path} would unpack to {declared} bytes, and {folder.parent} has {free} left: make room")
    return [entry for entry in found if not entry.is_dir()]


def _problem(entry: zipfile.ZipInfo, seen: set[str]) -> str:
    """What is wrong with an entry of an archive, or an empty text."""
    name, kind = entry.orig_filename, stat.S_IFMT(entry.external_attr >> 16)
    if not entry.filename:
        return "it has no name"
    parts = name.removesuffix("/").split("/")
    odd = any(part in ("", ".") or part.endswith((".", " ")) or _DEVICE.fullmatch(part) for part in parts)
    expected = stat.S_IFDIR if entry.is_dir() else stat.S_IFREG
    problems = {
        "its path climbs out of the archive": name.startswith("/") or ".." in parts,
        "its name has letters that no plain path has": name != entry.filename or not _LETTERS.fullmatch(name),
        "its path is not plain": odd or len(name) > _LONGEST,
        "it is a link or a device, not a file": kind not in (0, expected),
        "it is there twice": name.casefold() in seen,
        "it is encrypted": bool(entry.flag_bits & 1),
        "it is compressed in a way that is not used here": entry.compress_type not in _COMPRESSIONS,
    }
    return next((problem for problem, found in problems.items() if found), "")


def printable_name(entry: zipfile.ZipInfo) -> str:
    """An entry's name, safe to be printed."""
    return ascii(entry.orig_filename[:100])


def _digests(path: Path, archive: zipfile.ZipFile, limits: Largest) -> Mapping[str, str]:
    """The SHA-256 that the metadata declare for each file, by its name in the archive."""
    try:
        with archive.open(METADATA) as file:
            text = file.read(limits.size)
        graph = json.loads(text)["@graph"]
        digests = {str(one["@id"]): str(one["sha256"]) for one in graph if "sha256" in one}
    except (KeyError, TypeError, ValueError, RecursionError):
        raise UserError(f"{path} is no archive of rankbench: it has no {METADATA} that can be read") from None
    names = {entry.filename for entry in archive.infolist() if not entry.is_dir()} - _UNDESCRIBED
    if apart := sorted(names ^ {unquote(name) for name in digests}):
        where = "undescribed" if apart[0] in names else "missing"
        raise UserError(f"{path} is not complete or was changed: {apart[0]!a} is {where}")
    return {unquote(name): digest for name, digest in digests.items()}


def _unpacked(
    path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path, left: int, digests: Mapping[str, str]
) -> int:
    """Unpack one file; returns its size, after checking its size and SHA-256."""
    target = folder / entry.filename
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(entry) as source, target.open("xb") as file:
        size, digest = _poured(source, file, min(left, entry.file_size))
    if size != entry.file_size:
        raise UserError(f"{path} declares {entry.file_size} bytes for {printable_name(entry)}, and there are others")
    if entry.filename not in _UNDESCRIBED and digest != digests[entry.filename]:
        raise UserError(f"{path} was changed: the SHA-256 of {printable_name(entry)} is not the one in its metadata")
    return size


def _poured(source: IO[bytes], file: IO[bytes], most: int) -> tuple[int, str]:
    """Copy at most so many bytes and one chunk more; returns how many there were, and their SHA-256."""
    size, digest = 0, hashlib.sha256()
    while size <= most and (chunk := source.read(_CHUNK)):
        size += len(chunk)
        digest.update(chunk)
        file.write(chunk)
    return size, digest.hexdigest()


def _check_content(path: Path, folder: Path) -> None:
    """Raise an error unless there is one experiment, with classes that may be loaded and arrays that may be read."""
    plans = sorted((folder / RESULTS).glob("*/plans/*.json"))
    if len(plans) != 1:
        raise UserError(f"{path} is no archive of rankbench: it holds {len(plans)} plans, not one")
    homes: set[str] = set()
    for file in sorted((folder / RESULTS).rglob("*.json")):
        try:
            homes.update(_homes(parsed(file.read_text(encoding="utf-8"))))
        except (Unreadable, UnicodeDecodeError, RecursionError):
            raise UserError(f"{path} holds {file.name}, which cannot be read") from None
    for home in sorted(homes):
        known = is_from_file(home) or home.startswith(f"{JUDGED}:")
        if not known and not any(kind.offers(home) for kind in _KINDS):
            raise UserError(f"{path} names the class {home[:100]!a}, which rankbench does not have: not opened")
    for file in sorted((folder / RESULTS).rglob("*.npz")):
        if not _is_plain(file):
            raise UserError(f"{path} holds {file.name}, whose arrays are damaged, or would be larger than the file")


def _homes(value: object) -> Iterator[str]:
    """All locations of classes in a JSON value, and names of the user's own metrics that come without a location."""
    if isinstance(value, dict):
        if "home" in value:
            yield str(value["home"])
        elif is_from_file(label := str(value.get("label", ""))) and not value.get("source"):
            yield label.replace(".py:", " ")  # it would be looked for by its name alone, whatever its content
        for part in value.values():
            yield from _homes(part)
    elif isinstance(value, tuple):
        for part in value:
            yield from _homes(part)


def _is_plain(file: Path) -> bool:
    """Whether an npz file holds arrays as they are, so that they take as much memory as the file has bytes."""
    try:
        with zipfile.ZipFile(file) as arrays:
            found = arrays.infolist()
    except _DAMAGE:
        return False
    size = sum(one.file_size for one in found)
    return all(one.compress_type == zipfile.ZIP_STORED for one in found) and size <= file.stat().st_size
