"""Claims let several drivers share one results folder: a driver claims a cell before it runs it.

    FOLDER/<key>.claim                  who runs the cell with this key
    FOLDER/.<id>.driver                 a driver that is at work; touching it tells the file server's time
    FOLDER/.<token>.card                a claim that is being written
    FOLDER/.<key>.<token>.<n>.permit    the right to remove the claim that has this token
    FOLDER/.<id>.grave                  a folder that stood in a claim's place and is being removed

A driver touches its claims all the time. One that nobody has touched for longer than the lease is stale, and so is
at once one whose process has ended on this machine; the next driver that wants the cell removes it.

A claim makes it unlikely that a cell is run twice, not impossible: no driver can know that it is about to be
stopped for longer than the lease. Nothing but time is lost then, for results are written whole.
"""

import errno
import json
import os
import platform
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import count
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import psutil

from rankbench.errors import UserError

_ATTEMPTS = 10  # looks at a claim that changes under our eyes before we leave it to others
_LONGEST = 1 << 16  # bytes; a card has a few hundred
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV, errno.EINVAL}
_NO_FILE = {errno.ELOOP, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP}
_HELPERS = (".driver", ".card", ".permit", ".grave")


@dataclass(frozen=True)
class Holder:
    """The driver that holds a claim; host `unknown` and pid 0 where the claim's file cannot be read."""

    host: str
    pid: int
    since: str  # ISO time by the clock of the driver's machine: for people, never compared


@dataclass(frozen=True)
class _Card:
    """What a file says about the driver that wrote it."""

    token: str  # random: no two claims have the same, even if one driver makes both
    host: str
    pid: int
    started: str  # tells the process from a later one with the same pid
    boot: str
    namespace: str  # of the pid: containers on one machine count theirs apart
    lease: float  # how long the driver may be silent; others may have been started with another
    since: str


@dataclass(frozen=True)
class _Found:
    """A file as we found it; a damaged one has no card, and its inode and age for a token."""

    card: _Card | None
    token: str
    touched: int  # nanoseconds, by the file server's clock


class Claims:
    """The claims of one driver on cells in a shared folder; a context manager that keeps them alive.

    A key becomes part of a file name: it is a cell's content hash. All methods may be called from several threads,
    but only in the process that entered; in one that was forked from it, nothing is ever released.
    """

    def __init__(self, folder: Path, lease: float = 60.0) -> None:
        self._folder = folder
        self._me = _describe(lease)
        self._driver = folder / f".{self._me.token}.driver"
        self._pid: int | None = None  # of the process that entered
        self._held: dict[str, str] = {}  # key -> token
        self._lost: frozenset[str] = frozenset()
        self._books = threading.Lock()  # over _held and _lost; never kept while the file server is asked
        self._clearing = threading.Lock()  # all threads of a driver look like one to other drivers
        self._stop = threading.Event()
        self._heart = threading.Thread()

    def __enter__(self) -> Self:
        """Make the folder, remove what dead drivers left in it, and start the heartbeat."""
        if self._pid == os.getpid():
            raise RuntimeError("these claims have been entered already")
        self._me = _describe(self._me.lease)  # the process may be another than the one that made this object
        self._driver = self._folder / f".{self._me.token}.driver"
        self._held, self._lost, self._stop = {}, frozenset(), threading.Event()
        with self._explained():
            self._now()
            self._sweep()
        self._pid = os.getpid()
        self._heart = threading.Thread(target=self._keep_alive, name="claims", daemon=True)
        self._heart.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the heartbeat, release what is still ours, and leave no file behind."""
        if self._pid != os.getpid():
            return
        self._stop.set()
        self._heart.join()
        for key in list(self._held):
            with suppress(UserError):  # whatever ended the run matters more; the claim dies with the process
                self.release(key)
        self._pid = None
        with suppress(OSError):
            self._driver.unlink(missing_ok=True)
            self._folder.rmdir()  # fails where others still have files in it

    @property
    def lost(self) -> frozenset[str]:
        """The keys whose claims others took from us: this driver was silent for longer than its lease."""
        return self._lost

    def take(self, key: str) -> bool:
        """Claim a key; True: it is ours from now on, or was already.

        False: another driver has it, or is just removing a stale claim on it; ask again later. Whoever gets True
        should look once more whether the result is there: the holder before may have finished the cell.
        """
        self._check_entered()
        path = self._path(key)
        with self._explained():
            for _ in range(_ATTEMPTS):
                found, stale = self._judge(path)
                if found is None:
                    done = self._make(key)
                elif found.token == self._held.get(key):
                    done = _touch(path, found.token)
                elif stale:
                    done = False
                    self._clear(key, found.token, only_stale=True)
                else:
                    return False
                if done:
                    return True
        return False

    def release(self, key: str) -> None:
        """Give a claim back; nothing happens where it is not ours, or not any more."""
        if self._pid != os.getpid():
            return
        with self._books:
            token = self._held.pop(key, None)
        if token is not None:
            with self._explained():
                for _ in range(_ATTEMPTS):  # others may be looking whether it is stale
                    if self._clear(key, token, only_stale=False):
                        return
                    if not _touch(self._path(key), token):
                        break
            self._note_loss(key)

    def holder(self, key: str) -> Holder | None:
        """Who holds a key now; None where nobody does, or only a driver that has been silent for too long."""
        self._check_entered()
        with self._explained():
            found, stale = self._judge(self._path(key))
        if found is None or stale:
            return None
        if found.card:
            return Holder(found.card.host, found.card.pid, found.card.since)
        return Holder("unknown", 0, datetime.fromtimestamp(found.touched / 1e9, UTC).isoformat(timespec="seconds"))

    def _check_entered(self) -> None:
        """Claims without a heartbeat would soon be stale, so there are none."""
        if self._pid != os.getpid():
            raise RuntimeError("claims can be used only inside their `with` and in the process that entered it")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what the file system refuses into one line that says what to do."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            raise UserError(f"cannot write to {self._folder}: {reason}; choose another folder with --out") from None

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.claim"

    # The clock and the heartbeat

    def _now(self) -> int:
        """The file server's time in nanoseconds: all ages are told by its clock, whatever the machines' clocks say."""
        try:
            handle = os.open(self._driver, os.O_RDONLY)
        except FileNotFoundError:  # the first time, or others took us for dead
            self._sign_in()
            handle = os.open(self._driver, os.O_RDONLY)
        try:
            os.utime(handle)
            return os.fstat(handle).st_mtime_ns
        finally:
            os.close(handle)

    def _sign_in(self) -> None:
        """Make the folder and the driver's own file in it."""
        for attempt in count(1):
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                _create(self._driver, self._me)
                return
            except FileNotFoundError:  # another driver ended at this moment and removed the empty folder
                if attempt == _ATTEMPTS:
                    raise

    def _keep_alive(self) -> None:
        """Touch everything of ours four times in a lease, until told to stop."""
        while not self._stop.wait(self._me.lease / 4):
            with suppress(OSError):  # the file server may be back at the next beat
                self._now()
            with self._books:
                held = dict(self._held)
            for key, token in held.items():
                with suppress(OSError):
                    if not _touch(self._path(key), token):
                        self._note_loss(key, token)

    def _note_loss(self, key: str, token: str | None = None) -> None:
        """Remember that a claim was taken from us, unless it has been released or made anew since (another token)."""
        with self._books:
            if self._held.get(key) == token:
                self._held.pop(key, None)
                self._lost |= {key}

    # Making a claim, judging it, removing it

    def _make(self, key: str) -> bool:
        """Write a new claim and give it its name; False where another was faster."""
        card = replace(self._me, token=uuid4().hex, since=_iso_now())
        draft, path = self._folder / f".{card.token}.card", self._path(key)
        try:
            _create(draft, card)
            _appear(draft, path, card)
        except FileNotFoundError:  # this process stood still for so long that others cleared the draft away
            return False
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
        # What the file counts, not what the server answered: over a network the answer «it exists» may belong to a
        # request that was sent twice. And a process that stood still may have made a claim that is stale already.
        if not _touch(path, card.token):
            return False
        with self._books:
            self._held[key] = card.token
            self._lost -= {key}
        return True

    def _judge(self, path: Path) -> tuple[_Found | None, bool]:
        """A file as it is now, and whether it is stale.

        A time stamp that lies in the future by more than the lease is as wrong as one in the past: the server's clock
        was set back, and a driver that lives would have touched its claim since.
        """
        now = self._now()  # before we look: however long that takes, nothing seems older than it is
        found = _look(path)
        if found is None:
            return None, False
        lease = found.card.lease if found.card else self._me.lease
        aged = abs(now - found.touched) > lease * 1e9
        return found, aged or (found.card is not None and _has_ended(found.card, self._me))

    def _clear(self, key: str, token: str, only_stale: bool) -> bool:
        """Remove the claim that has this token and no other; True if it was us who removed it.

        Between a look at a file and its removal another driver could have removed it and made its own. So whoever
        removes a claim, even its holder, first makes a file that is named after the claim's token: its permit. While
        the permit is there nobody else removes that claim, and as nobody overwrites one either, what we see is what
        we remove. Once the claim is gone its token never comes again, so the permit may go.
        """
        path, removed = self._path(key), False
        with self._clearing:
            permits = self._permits(key, token)
            spent = permits[-1:]  # while the claim is there those of dead drivers stay: their numbers are used up
            try:
                if permits:
                    found, stale = self._judge(path)
                    there = found is not None and found.token == token
                    if there and (stale or not only_stale):
                        _remove(path)
                        removed = True
                    if removed or not there:
                        spent = permits
            finally:
                for permit in spent:
                    with suppress(OSError):  # the next driver that opens the folder removes it
                        permit.unlink(missing_ok=True)
        return removed

    def _permits(self, key: str, token: str) -> list[Path]:
        """The permits to remove a claim, the last of them ours; none where another driver at work has it.

        The permit of a driver that died is not removed but outnumbered: to remove it safely would take a permit.
        """
        self._now()  # makes the driver's file anew if it was cleared away
        permits: list[Path] = []
        while True:
            permit = self._folder / f".{key}.{token}.{len(permits)}.permit"
            permits.append(permit)
            if _appear(self._driver, permit, self._me):
                return permits
            found, stale = self._judge(permit)
            if found and found.token == self._me.token:
                return permits
            if found is None or not stale:
                return []

    def _sweep(self) -> None:
        """Remove what drivers left that died: stale claims, and helper files that nobody touches any more."""
        for name in os.listdir(self._folder):
            path = self._folder / name
            with suppress(OSError):  # another driver may be sweeping as well
                found, stale = self._judge(path) if name.endswith((".claim", *_HELPERS)) else (None, False)
                if found is None or not stale:
                    continue
                if name.endswith(".claim"):
                    self._clear(name.removesuffix(".claim"), found.token, only_stale=True)
                elif not self._counts(name):
                    _remove(path)

    def _counts(self, name: str) -> bool:
        """Whether a file is a permit for a claim that is still there, so that its number is used up."""
        parts = name.removeprefix(".").rsplit(".", 3)
        if parts[-1] != "permit" or len(parts) < 4:
            return False
        claim = _look(self._path(parts[0]))
        return claim is not None and claim.token == parts[1]


def _describe(lease: float) -> _Card:
    """A card of this process."""
    pid = os.getpid()
    return _Card(
        token=uuid4().hex,
        host=platform.node(),
        pid=pid,
        started=_started(pid),
        boot=_text("/proc/sys/kernel/random/boot_id"),
        namespace=_pid_namespace(),
        lease=float(lease),
        since=_iso_now(),
    )


def _iso_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _text(path: str) -> str:
    """What a file of the system says, nothing where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process started, in ticks since the machine did; `ended` for a zombie, nothing where that is unknown.

    psutil's time of creation is a time of day and moves when the clock is set; it serves where there is no /proc.
    """
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()  # a program's name may contain anything but this
    if len(fields) > 19:
        return "ended" if fields[0] in "ZX" else fields[19]
    if Path("/proc/self/stat").exists():
        return ""
    with suppress(psutil.Error):
        return f"{psutil.Process(pid).create_time():.1f}"
    return ""


def _has_ended(card: _Card, me: _Card) -> bool:
    """Whether a card's process has certainly ended; False where that cannot be known from here."""
    here = card.boot and (card.host, card.boot, card.namespace) == (me.host, me.boot, me.namespace)
    if not here:
        return False
    return not psutil.pid_exists(card.pid) or _started(card.pid) not in ("", card.started)


def _create(path: Path, card: _Card) -> bool:
    """Write a new file with a card; False where there is one already."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(asdict(card)).encode())
        os.utime(path)  # by the server's clock; while it was written the stamp may have come from this machine's
    except OSError:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise
    return True


def _appear(source: Path, path: Path, card: _Card) -> bool:
    """Let a file appear all at once, as a second name of a source with this card; False where the name is taken.

    A file system without links has to make do with a file that is empty for a moment: a damaged but new claim.
    """
    try:
        os.link(source, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _create(path, card)
    return True


def _look(path: Path, touch: str = "") -> _Found | None:
    """Open a file, for that makes NFS ask the server how it is now; touch it if it has a certain token.

    None where there is no file. One that is no plain file, or not ours to read, counts as damaged.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            about = os.fstat(handle)
            card = _parse(os.read(handle, _LONGEST)) if stat.S_ISREG(about.st_mode) else None
            if card and card.token == touch:
                os.utime(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ESTALE):  # ESTALE: removed on the server while we had it open
            return None
        if error.errno not in _NO_FILE:
            raise
        try:
            card, about = None, os.lstat(path)
        except FileNotFoundError:
            return None
    return _Found(card, card.token if card else f"{about.st_ino:x}-{about.st_mtime_ns:x}", about.st_mtime_ns)


def _touch(path: Path, token: str) -> bool:
    """Touch a claim if it has this token; False where it has another or is gone."""
    found = _look(path, touch=token)
    return found is not None and found.token == token


def _parse(text: bytes) -> _Card | None:
    """The card in a file, None where it is damaged in any way."""
    try:
        record: dict[str, Any] = json.loads(text)
        card = _Card(**record)
        words = (card.token, card.host, card.started, card.boot, card.namespace, card.since)
        sound = (
            all(type(word) is str for word in words)
            and card.token.isascii()
            and card.token.isalnum()
            and len(card.token) <= 64  # it becomes a part of a file's name
            and type(card.pid) is int
            and 0 < card.pid < 1 << 31
            and type(card.lease) is float
            and isfinite(card.lease)
        )
    except (ValueError, TypeError, RecursionError):
        return None
    return card if sound else None


def _remove(path: Path) -> None:
    """Remove a file, or a folder that stands in its place."""
    if path.is_dir() and not path.is_symlink():
        grave = path.with_name(f".{uuid4().hex}.grave")
        path.rename(grave)
        shutil.rmtree(grave, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
