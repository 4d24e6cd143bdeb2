"""Claims let several drivers share one results folder: a driver claims a cell before it runs the cell.

    FOLDER/<key>.claim                  which driver runs the cell with this key
    FOLDER/.<id>.driver                 a running driver; touching this file reads the file server's time
    FOLDER/.<token>.card                a claim that is being written
    FOLDER/.<key>.<token>.<n>.permit    the right to remove the claim with this token
    FOLDER/.<id>.grave                  a folder that was found in place of a claim and is being removed

A driver touches its claims regularly. A claim is stale if it was not touched for longer than the lease, or if its
process on this machine has ended; the next driver that wants the cell removes a stale claim.

A claim makes it unlikely that a cell is run twice, but not impossible: a driver may be suspended for longer than the
lease. Then only time is lost, because result files are written to a temporary name and renamed.
"""

import os
import threading
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Self
from uuid import uuid4

from rankbench.core.errors import OTHER_FOLDER, UserError, writing_to
from rankbench.records.claim_files import (
    Found,
    appear,
    create,
    describe,
    expire,
    has_ended,
    iso_now,
    look,
    remove,
    touch,
)

_ATTEMPTS = 10  # how often to look at a claim that other drivers keep changing
_HELPERS = (".driver", ".card", ".permit", ".grave")


@dataclass(frozen=True)
class Holder:
    """The driver that holds a claim; host `unknown` and pid 0 if the claim's file cannot be read."""

    host: str
    pid: int
    since: str  # ISO time by the clock of the driver's machine: for display, never compared


class Claims:
    """The claims of one driver on cells in a shared folder; a context manager that keeps them alive.

    A key becomes part of a file name: it is a cell's content hash. All methods may be called from several threads,
    but only in the process that entered the context; a process forked from it releases nothing.
    """

    def __init__(self, folder: Path, lease: float = 60.0) -> None:
        self._folder = folder
        self._me = describe(lease)
        self._driver = folder / f".{self._me.token}.driver"
        self._pid: int | None = None  # of the process that entered
        self._held: dict[str, str] = {}  # key -> token
        self._lost: frozenset[str] = frozenset()
        self._books = threading.Lock()  # guards _held and _lost; never held during file operations
        self._clearing = threading.Lock()  # permits cannot tell the threads of one driver apart
        self._stop = threading.Event()
        self._heart = threading.Thread()

    def __enter__(self) -> Self:
        """Make the folder, remove files of dead drivers, and start the heartbeat."""
        if self._pid == os.getpid():
            raise RuntimeError("these claims have been entered already")
        self._me = describe(self._me.lease)  # this process may be a fork of the one that made this object
        self._driver = self._folder / f".{self._me.token}.driver"
        self._held, self._lost, self._stop = {}, frozenset(), threading.Event()
        with self._explained():
            self._now()
            self._sweep()
        self._pid = os.getpid()
        self._heart = threading.Thread(target=self._keep_alive, name="claims", daemon=True)
        self._heart.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the heartbeat, release this driver's claims, and remove its files."""
        if self._pid != os.getpid():
            return
        self._stop.set()
        self._heart.join()
        for key, token in list(self._held.items()):
            try:
                self.release(key)
            except UserError:  # the disk may be full; an error that ended the run must not be hidden
                with suppress(OSError):
                    expire(self._path(key), token)
        self._pid = None
        with suppress(OSError):
            self._driver.unlink(missing_ok=True)
            self._folder.rmdir()  # fails if other drivers still have files in it

    @property
    def lost(self) -> frozenset[str]:
        """The keys of claims that other drivers removed because this driver did not touch them within its lease."""
        return self._lost

    def take(self, key: str) -> bool:
        """Claim a key; returns True if this driver holds the claim.

        False means that another driver holds it, or is removing a stale claim; try again later. After True, check
        again whether the result exists: the previous holder may have finished the cell.
        """
        self._check_entered()
        path = self._path(key)
        with self._explained():
            for _ in range(_ATTEMPTS):
                found, stale = self._judge(path)
                if found is None:
                    done = self._make(key)
                elif found.token == self._held.get(key):
                    done = touch(path, found.token)
                elif stale:
                    done = False
                    self._clear(key, found.token, only_stale=True)
                else:
                    return False
                if done:
                    return True
        return False

    def release(self, key: str) -> None:
        """Give a claim back; nothing happens if this driver does not hold it."""
        if self._pid != os.getpid():
            return
        with self._books:
            token = self._held.pop(key, None)
        if token is not None:
            try:
                with self._explained():
                    if not self._removed(key, token):
                        self._note_loss(key)
            except UserError:  # the disk may be full; the exit tries again
                with self._books:
                    self._held.setdefault(key, token)
                raise

    def _removed(self, key: str, token: str) -> bool:
        """Remove a claim of this driver; returns False if another driver has removed it."""
        for _ in range(_ATTEMPTS):  # other drivers may be checking whether it is stale
            if self._clear(key, token, only_stale=False):
                return True
            if not touch(self._path(key), token):
                break
        return False

    def holder(self, key: str) -> Holder | None:
        """The driver that holds a key, or None if no driver does or its claim is stale."""
        self._check_entered()
        with self._explained():
            found, stale = self._judge(self._path(key))
        if found is None or stale:
            return None
        if found.card:
            return Holder(found.card.host, found.card.pid, found.card.since)
        return Holder("unknown", 0, datetime.fromtimestamp(found.touched / 1e9, UTC).isoformat(timespec="seconds"))

    def _check_entered(self) -> None:
        """Refuse use outside the context: without the heartbeat a claim would soon be stale."""
        if self._pid != os.getpid():
            raise RuntimeError("claims can be used only inside their `with` and in the process that entered it")

    def _explained(self) -> AbstractContextManager[None]:
        """A context that turns file system errors into one line that says what to do."""
        return writing_to(self._folder, OTHER_FOLDER)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.claim"

    # The clock and the heartbeat

    def _now(self) -> int:
        """The file server's time in nanoseconds; all ages are measured by this clock, not by the machines' clocks."""
        try:
            handle = os.open(self._driver, os.O_RDONLY)
        except FileNotFoundError:  # the first call, or another driver found this one stale
            self._sign_in()
            handle = os.open(self._driver, os.O_RDONLY)
        try:
            os.utime(handle)
            return os.fstat(handle).st_mtime_ns
        finally:
            os.close(handle)

    def _sign_in(self) -> None:
        """Make the folder and this driver's file in it."""
        for attempt in count(1):
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                create(self._driver, self._me)
                return
            except FileNotFoundError:  # another driver ended at this moment and removed the empty folder
                if attempt == _ATTEMPTS:  # pragma: no cover: as often as this no two drivers meet
                    raise

    def _keep_alive(self) -> None:
        """Touch this driver's files four times per lease, until told to stop."""
        while not self._stop.wait(self._me.lease / 4):
            with suppress(OSError):  # the file server may be back at the next heartbeat
                self._now()
            with self._books:
                held = dict(self._held)
            for key, token in held.items():
                with suppress(OSError):
                    if not touch(self._path(key), token):
                        self._note_loss(key, token)

    def _note_loss(self, key: str, token: str | None = None) -> None:
        """Record that a claim was lost, unless it has been released or made again (with another token) since."""
        with self._books:
            if self._held.get(key) == token:
                self._held.pop(key, None)
                self._lost |= {key}

    # Making a claim, judging it, removing it

    def _make(self, key: str) -> bool:
        """Write a new claim and give it its name; False if another driver was faster."""
        card = replace(self._me, token=uuid4().hex, since=iso_now())
        draft, path = self._folder / f".{card.token}.card", self._path(key)
        try:
            create(draft, card)
            appear(draft, path, card)
        except FileNotFoundError:  # this process was suspended so long that another driver removed the draft
            return False
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
        # Trust the file and not the server's answer: over a network the answer "it exists" may belong to a request
        # that was sent twice. And a process that was suspended may have made a claim that is stale already.
        if not touch(path, card.token):
            return False
        with self._books:
            self._held[key] = card.token
            self._lost -= {key}
        return True

    def _judge(self, path: Path) -> tuple[Found | None, bool]:
        """The content of a file, and whether it is stale.

        A time stamp in the future by more than the lease makes a file stale too: then the server's clock was set
        back, and a driver that is alive would have touched its claim since.
        """
        now = self._now()  # read before looking at the file, so that a slow look cannot make the file seem older
        found = look(path)
        if found is None:
            return None, False
        lease = found.card.lease if found.card else self._me.lease
        aged = abs(now - found.touched) > lease * 1e9
        return found, aged or (found.card is not None and has_ended(found.card, self._me))

    def _clear(self, key: str, token: str, only_stale: bool) -> bool:
        """Remove the claim if it has this token; returns True if this driver removed it.

        Between a look at a claim and its removal another driver could remove it and make its own. Therefore every
        driver that removes a claim, even its holder, first makes a file named after the claim's token: the permit.
        While the permit exists no other driver removes that claim, and no driver ever overwrites a claim, so the
        claim that was looked at is the claim that is removed. A token is never used again, so afterwards the permit
        can be removed.
        """
        path, removed = self._path(key), False
        with self._clearing:
            permits = self._permits(key, token)
            spent = permits[-1:]  # permits of dead drivers stay as long as the claim: their numbers are used up
            try:
                if permits:
                    found, stale = self._judge(path) if only_stale else (look(path), True)
                    there = found is not None and found.token == token
                    if there and stale:
                        remove(path)
                        removed = True
                    if removed or not there:
                        spent = permits
            finally:
                for permit in spent:
                    with suppress(OSError):  # the next driver that opens the folder removes it
                        permit.unlink(missing_ok=True)
        return removed

    def _permits(self, key: str, token: str) -> list[Path]:
        """The permits to remove a claim, of which the last is ours; empty if another live driver has a permit.

        The permit of a dead driver is not removed; a permit with the next number replaces it, because removing a
        permit safely would need a permit itself.
        """
        self._now()  # makes the driver's file again if another driver has removed it
        permits: list[Path] = []
        while True:
            permit = self._folder / f".{key}.{token}.{len(permits)}.permit"
            permits.append(permit)
            if appear(self._driver, permit, self._me):
                return permits
            found, stale = self._judge(permit)
            if found and found.token == self._me.token:
                return permits
            if found is None or not stale:
                return []

    def _sweep(self) -> None:
        """Remove the files of dead drivers: stale claims and stale helper files."""
        for name in os.listdir(self._folder):
            path = self._folder / name
            with suppress(OSError):  # another driver may be sweeping as well
                found, stale = self._judge(path) if name.endswith((".claim", *_HELPERS)) else (None, False)
                if found is None or not stale:
                    continue
                if name.endswith(".claim"):
                    self._clear(name.removesuffix(".claim"), found.token, only_stale=True)
                elif not self._counts(name):
                    remove(path)

    def _counts(self, name: str) -> bool:
        """Whether a file is a permit for a claim that still exists; such a permit must stay."""
        parts = name.removeprefix(".").rsplit(".", 3)
        if parts[-1] != "permit" or len(parts) < 4:
            return False
        claim = look(self._path(parts[0]))
        return claim is not None and claim.token == parts[1]
