"""The files of claims: what stands in them, and how they appear, are read, touched and removed in one step each."""

import errno
import json
import os
import platform
import shutil
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from uuid import uuid4

import psutil

from rankbench.core import system
from rankbench.records.codec import revived

_LONGEST = 1 << 16  # bytes; a card has a few hundred
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV, errno.EINVAL}
_NO_FILE = {errno.ELOOP, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP}


@dataclass(frozen=True)
class Card:
    """The content of a claim or helper file: the driver that wrote it."""

    token: str  # random: no two claims have the same, even if one driver makes both
    host: str
    pid: int
    started: str  # tells the process from a later one with the same pid
    boot: str
    namespace: str  # pid namespace: containers on one machine number their processes separately
    lease: float  # seconds after which the file is stale; it may differ between drivers
    since: str


@dataclass(frozen=True)
class Found:
    """A file as it was found; for a damaged file the card is None and the token is made of inode and time stamp."""

    card: Card | None
    token: str
    touched: int  # nanoseconds, by the file server's clock


def describe(lease: float) -> Card:
    """A card that describes this process."""
    pid = os.getpid()
    return Card(
        token=uuid4().hex,
        host=platform.node(),
        pid=pid,
        started=system.started(pid),
        boot=system.boot_id(),
        namespace=system.pid_namespace(),
        lease=float(lease),
        since=iso_now(),
    )


def iso_now() -> str:
    """The time, for display."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def has_ended(card: Card, me: Card) -> bool:
    """Whether a card's process has certainly ended; False if that cannot be known on this machine."""
    here = card.boot and (card.host, card.boot, card.namespace) == (me.host, me.boot, me.namespace)
    if not here:
        return False
    return not psutil.pid_exists(card.pid) or system.started(card.pid) not in ("", card.started)


def create(path: Path, card: Card) -> bool:
    """Write a new file with a card; False if the file exists already."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(asdict(card)).encode())
        os.utime(path)  # stamps it by the server's clock; writing may have stamped it by this machine's clock
    except OSError:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise
    return True


def appear(source: Path, path: Path, card: Card) -> bool:
    """Make a file in one atomic step, as a hard link to a source with this card; False if the name is taken.

    On a file system without hard links the file is written directly, and is empty for a moment: then it looks like a
    damaged but fresh claim.
    """
    try:
        os.link(source, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return create(path, card)
    return True


def look(path: Path, touch: str = "", times: tuple[int, int] | None = None) -> Found | None:
    """Read a file by opening it, because that makes NFS ask the server; touch the file if it has the token `touch`.

    Touched, it has the server's time, or `times` if they are given. None if there is no file. A path that is no plain
    file, or may not be read, counts as damaged.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            about = os.fstat(handle)
            card = _parse(os.read(handle, _LONGEST)) if stat.S_ISREG(about.st_mode) else None
            if card and card.token == touch:
                os.utime(handle, times)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ESTALE):  # ESTALE: removed on the server while we had it open
            return None
        if error.errno not in _NO_FILE:
            raise
        try:
            card, about = None, os.lstat(path)
        except FileNotFoundError:  # pragma: no cover: it was removed between two looks at it
            return None
    return Found(card, card.token if card else f"{about.st_ino:x}-{about.st_mtime_ns:x}", about.st_mtime_ns)


def touch(path: Path, token: str) -> bool:
    """Touch a claim if it has this token; False if it has another token or is gone."""
    found = look(path, touch=token)
    return found is not None and found.token == token


def expire(path: Path, token: str) -> None:
    """Make a claim with this token stale, which needs no room on the disk."""
    look(path, touch=token, times=(0, 0))


def _parse(text: bytes) -> Card | None:
    """The card in a file's content, or None if the content is damaged."""
    try:
        card = revived(Card, json.loads(text))
    except (ValueError, RecursionError):
        return None
    names_files = card.token.isascii() and card.token.isalnum() and len(card.token) <= 64
    return card if names_files and 0 < card.pid < 1 << 31 and isfinite(card.lease) else None


def remove(path: Path) -> None:
    """Remove a file, or a folder of the same name."""
    if path.is_dir() and not path.is_symlink():
        grave = path.with_name(f".{uuid4().hex}.grave")
        path.rename(grave)
        shutil.rmtree(grave, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
