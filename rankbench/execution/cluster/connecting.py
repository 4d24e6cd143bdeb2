"""The connection of a driver to the scheduler of a Dask cluster."""

import json
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from time import monotonic, sleep

from distributed import Client, Future, Lock
from distributed.comm import parse_host_port

from rankbench.core.errors import UserError
from rankbench.core.regular import content
from rankbench.execution.cluster.orders import Gone
from rankbench.execution.cluster.waiting import Wait
from rankbench.execution.isolation import Interrupted

CONNECT = 5.0  # seconds to reach the scheduler
_WRITTEN = 1.0  # seconds in which a scheduler may finish writing its file
_LOOK = 0.5  # seconds between two attempts to be the only team
_AGAIN = 0.2  # seconds between two looks at its file


def connected(scheduler: str) -> Client:
    """A client of the scheduler at an address, or of the one that a scheduler file names.

    It is created only where something listens: one that cannot connect leaves a thread behind, and may lock up the
    process when it is collected while another one starts.
    """
    for name in ("distributed", "distributed.client"):  # each has a level of its own
        logging.getLogger(name).setLevel(logging.CRITICAL)  # its connection errors are told in one line
    try:
        address = _address(scheduler)
        host_and_port = parse_host_port(address.rpartition("://")[2])
        socket.create_connection(host_and_port, timeout=CONNECT).close()
        return Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error) or type(error).__name__
        remedy = "start one with: dask scheduler"
        raise UserError(f"no scheduler answers at {scheduler} ({reason})", remedy=remedy) from None


def _address(scheduler: str) -> str:
    """The address of a scheduler that is given by its address or by a scheduler file, which may just be written."""
    if not Path(scheduler).is_file():
        if ":" not in scheduler:
            raise FileNotFoundError("there is no such file")
        return scheduler
    limit = monotonic() + _WRITTEN
    while True:
        try:
            match json.loads(content(scheduler)):
                case {"address": address}:
                    return str(address)
            raise ValueError("it has no address")
        except ValueError:
            if monotonic() > limit:
                raise
            sleep(_AGAIN)


class Contact:
    """The connection of a driver to its scheduler, which is made again if the scheduler went away.

    A scheduler that does not answer is away, too. `workers` is asked again and again by all who wait for something.
    """

    def __init__(self, scheduler: str, away: Wait) -> None:
        self.client = connected(scheduler)
        self._scheduler, self._away = scheduler, away
        self._seen: tuple[float, list[str]] = (-inf, [])  # when it was last asked, and the workers it named
        self._reconnecting = threading.Lock()

    def workers(self, at_most: float) -> list[str] | None:
        """The addresses of the workers that it named in these last seconds; None while it is away."""
        asked, addresses = self._seen
        if addresses and monotonic() - asked < at_most:
            return addresses
        try:
            ask = self.client.scheduler.identity
            addresses = list(self.client.sync(ask, n_workers=-1, callback_timeout=CONNECT)["workers"])
        except Exception:  # Dask raises errors of many kinds where the scheduler went away
            self.renew()
            return None
        self._away.is_over()
        self._seen = monotonic(), addresses
        return addresses

    def forget(self) -> None:
        """Ask for the workers anew, because one of them is gone."""
        self._seen = (-inf, [])

    def renew(self) -> None:
        """Try once to connect to a scheduler that went away, unless the connection stands; an error after the limit."""
        self.forget()
        with self._reconnecting:
            self._away.goes_on()
            if self.client.status == "running":
                return
            with suppress(Exception):
                self.client.close(timeout=0)
            with suppress(UserError):
                self.client = connected(self._scheduler)


def wait_for(futures: list[Future]) -> None:
    """Wait for a moment until all have ended."""
    limit = monotonic() + CONNECT
    for future in futures:
        with suppress(TimeoutError):
            future.exception(timeout=max(0.0, limit - monotonic()))


@contextmanager
def only_team(client: Client, stop: threading.Event) -> Iterator[None]:
    """A context in which no other driver makes a team, so that two never wait for each other's workers."""
    lock = Lock("rankbench-team", scheduler_rpc=client.scheduler, loop=client.loop)
    try:
        while not lock.acquire(timeout=_LOOK):
            if stop.is_set():
                raise Interrupted
    except OSError:
        raise Gone from None
    try:
        yield
    finally:
        with suppress(Exception):  # the scheduler may have gone away, and the lock with it
            lock.release()
