"""Connections between the processes of a team: messages of arrays over a socket, after both ends proved to know a key.

Messages are pickles, which may run any code when they are read. So none is read from a peer before it has shown, by a
keyed hash of a fresh random number, that it knows the team's key. The key comes to the processes by the cluster's own
connections. Messages are not encrypted.
"""

import hmac
import pickle
import secrets
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

from rankbench.arrays.mapped import empty
from rankbench.core.errors import UserError

Address: TypeAlias = tuple[str, int]
Blob: TypeAlias = bytes | bytearray | memoryview

PATIENCE = 60.0  # seconds in which a peer must connect and prove that it knows the key
_NONCE, _PROOF = 32, 32  # bytes of a random number, and of a hash of it
_NUMBER, _COUNT = struct.Struct("!Q"), struct.Struct("!Q?")


class PeerGone(Exception):
    """The other end of a connection went away."""


class Channel:
    """A connection to one other process."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def send(self, blobs: Sequence[Blob], stays: bool = False) -> int:
        """Send a message, and whether its receiver keeps it; returns how many bytes it took."""
        head = _COUNT.pack(len(blobs), stays) + b"".join(_NUMBER.pack(len(blob)) for blob in blobs)
        try:
            for part in (head, *blobs):
                self._socket.sendall(part)
        except OSError as error:
            raise PeerGone from error
        return len(head) + sum(map(len, blobs))

    def receive(self) -> list[Blob]:
        """Wait for a message; of one that stays, large blobs are put into files if there is room for them."""
        count, stays = _COUNT.unpack(self._exactly(_COUNT.size))
        sizes = struct.unpack(f"!{count}Q", self._exactly(count * _NUMBER.size))
        return [self._filled(_room(size, stays)) for size in sizes]

    def close(self) -> None:
        """Close the connection; a thread that waits for a message gets `PeerGone`."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _exactly(self, size: int) -> bytes:
        return bytes(self._filled(memoryview(bytearray(size))))

    def _filled(self, blob: memoryview) -> memoryview:
        """A blob whose bytes have come through the connection."""
        filled = 0
        try:
            while filled < len(blob):
                read = self._socket.recv_into(blob[filled:])
                if not read:
                    raise PeerGone
                filled += read
        except OSError as error:
            raise PeerGone from error
        return blob


def _room(size: int, in_a_file: bool) -> memoryview:
    """Room for a blob: if wanted, and if the disk is not full, in a file if the blob is large."""
    if in_a_file:
        with suppress(UserError):
            return empty(size, np.uint8, share=0).data
    return memoryview(bytearray(size))


def listening_at(host: str) -> socket.socket:
    """A socket that listens on a free port of this host."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, 0), family=family)
    listener.settimeout(PATIENCE)
    return listener


def accepted(listener: socket.socket, key: bytes) -> Channel:
    """The next connection to this socket from a peer that knows the key; others are closed."""
    while True:
        try:
            connected, _ = listener.accept()
        except OSError as error:
            raise PeerGone from error
        if channel := _proved(connected, key, b"listener", b"caller"):
            return channel


def connected_to(address: Address, key: bytes) -> Channel:
    """A connection to the peer that listens at this address."""
    try:
        connected = socket.create_connection(address, timeout=PATIENCE)
    except OSError as error:
        raise PeerGone from error
    if channel := _proved(connected, key, b"caller", b"listener"):
        return channel
    raise PeerGone


def _proved(connected: socket.socket, key: bytes, mine: bytes, theirs: bytes) -> Channel | None:
    """A channel over a connection, if the other end knows the key; else None, and it is closed."""
    connected.settimeout(PATIENCE)
    channel, nonce = Channel(connected), secrets.token_bytes(_NONCE)
    try:
        connected.sendall(nonce)
        connected.sendall(hmac.digest(key, mine + channel._exactly(_NONCE), "sha256"))
        if hmac.compare_digest(channel._exactly(_PROOF), hmac.digest(key, theirs + nonce, "sha256")):
            connected.settimeout(None)
            return channel
    except (OSError, PeerGone):
        pass
    channel.close()
    return None


def written(content: Any) -> list[Blob]:
    """An object as blobs: its pickle, then its arrays as they lie in memory."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(content, protocol=5, buffer_callback=buffers.append)
    return [head, *(buffer.raw() for buffer in buffers)]


def read(blobs: Sequence[Blob]) -> Any:
    """The object of these blobs; its arrays lie in them."""
    return pickle.loads(blobs[0], buffers=blobs[1:])
