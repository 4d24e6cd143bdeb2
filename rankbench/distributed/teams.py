"""A team of processes that hold the parts of a training set, and the driver's executor over them.

Member w of W has the parts from P w / W to P (w + 1) / W. Messages go along a binomial tree of the members: member 0
hears from the driver, and member w from the member whose number is w without its lowest bit. So the members below a
member have the numbers, and the parts, that follow its own.
"""

import pickle
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from time import thread_time
from typing import Any, Literal

import psutil

from rankbench.core.contract import Sums
from rankbench.core.texts import error_text
from rankbench.distributed.channels import (
    Address,
    Blob,
    Channel,
    PeerGone,
    accepted,
    connected_to,
    listening_at,
    read,
    written,
)
from rankbench.distributed.trees import PartialSums


class PartsLost(Exception):
    """A process of the team went away, and the parts that it held with it."""


@dataclass(frozen=True)
class Entrance:
    """How a driver reaches a team."""

    address: Address  # of member 0
    key: bytes
    members: int
    memory: int | None = None  # the most resident bytes that a member may have


@dataclass(frozen=True)
class Cost:
    """What calls have cost a team: bytes that its connections carried, seconds of work, and memory.

    The seconds are CPU time of the thread that calls the parts' functions, so other processes do not lengthen them.
    """

    sent: int = 0
    seconds: float = 0.0  # of the member that worked longest
    memory: int = 0  # resident bytes of the member that has most

    def beside(self, other: "Cost") -> "Cost":
        """The cost of what two members did at the same time."""
        longest, most = max(self.seconds, other.seconds), max(self.memory, other.memory)
        return Cost(self.sent + other.sent, longest, most)

    def then(self, other: "Cost") -> "Cost":
        """The cost of two calls, one after the other."""
        most = max(self.memory, other.memory)
        return Cost(self.sent + other.sent, self.seconds + other.seconds, most)


@dataclass(frozen=True)
class _Heading:
    """What a call asks for, and of how many blobs what it sends consists."""

    kind: Literal["place", "total", "ask"]
    parts: int
    shared: int
    own: Mapping[int, int]  # by part


@dataclass(frozen=True)
class _Call:
    """A call on its way through the tree; what it sends stays in blobs, so that it can be passed on as it came."""

    heading: _Heading
    shared: Sequence[Blob]
    own: Mapping[int, Sequence[Blob]]

    @classmethod
    def of(cls, blobs: Sequence[Blob]) -> "_Call":
        """The call of a message."""
        heading: _Heading = read(blobs[:1])
        end = 1 + heading.shared
        own = {}
        for part, count in heading.own.items():
            own[part] = blobs[end : end + count]
            end += count
        return cls(heading, blobs[1 : 1 + heading.shared], own)

    @classmethod
    def made(cls, kind: Literal["place", "total", "ask"], parts: int, shared: Any, own: Mapping[int, Any]) -> "_Call":
        """A call with this content."""
        common, each = written(shared), {part: written(mine) for part, mine in own.items()}
        counts = {part: len(blobs) for part, blobs in each.items()}
        return cls(_Heading(kind, parts, len(common), counts), common, each)

    def sent_to(self, channel: Channel, parts: range) -> int:
        """Send what concerns these parts; returns the number of bytes."""
        own = {part: blobs for part, blobs in self.own.items() if part in parts}
        counts = {part: len(blobs) for part, blobs in own.items()}
        heading = _Heading(self.heading.kind, self.heading.parts, self.heading.shared, counts)
        mine = [blob for blobs in own.values() for blob in blobs]
        return channel.send([*written(heading), *self.shared, *mine], stays=heading.kind == "place")


@dataclass(frozen=True)
class _Answer:
    """What the parts of a member, and of all below it, returned; or the exception that one of them raised."""

    sums: Mapping[tuple[int, int], Sums]
    answers: Mapping[int, Any]
    cost: Cost
    error: BaseException | None = None


class Member:
    """One process of a team: it holds a range of the parts, works on them, and passes calls and answers on."""

    def __init__(self, host: str, key: bytes) -> None:
        self._listener, self._key = listening_at(host), key
        self._channels: list[Channel] = []
        self._held: dict[int, Any] = {}
        self._below: dict[int, Channel] = {}
        self._number, self._members, self._closed = 0, 1, False

    @property
    def address(self) -> Address:
        """Where it listens for the member above it, or the driver."""
        host, port = self._listener.getsockname()[:2]
        return host, port

    def serve(self, number: int, addresses: Sequence[Address]) -> None:
        """Answer calls until the connection to a neighbour ends; then the parts are gone."""
        self._number, self._members = number, len(addresses)
        try:
            above = self._kept(accepted(self._listener, self._key))
            self._below = {
                child: self._kept(connected_to(addresses[child], self._key)) for child in below(number, len(addresses))
            }
            while True:
                call = _Call.of(above.receive())
                above.send(written(self._answered(call)))
        except PeerGone:
            pass
        finally:
            self.close()
            self._held.clear()

    def close(self) -> None:
        """Close all connections, which ends `serve` in another thread."""
        self._closed = True
        _shut(self._listener)
        for channel in self._channels:
            channel.close()

    def _kept(self, channel: Channel) -> Channel:
        self._channels.append(channel)
        if self._closed:
            raise PeerGone
        return channel

    def _answered(self, call: _Call) -> _Answer:
        """Pass a call on, work on the own parts, and put all answers together."""
        sent = 0
        for child, channel in reversed(self._below.items()):  # the one with most members below it first
            sent += call.sent_to(channel, parts_below(child, self._number, self._members, call.heading.parts))
        started = thread_time()
        sums, answers, error = self._worked(call)
        seconds, memory = thread_time() - started, psutil.Process().memory_info().rss
        cost = Cost(sent, seconds, memory)
        for channel in self._below.values():
            blobs = channel.receive()
            answer: _Answer = read(blobs)
            cost = cost.beside(answer.cost).beside(Cost(sum(map(len, blobs))))
            error = error or answer.error
            sums.join(answer.sums)
            answers |= answer.answers
        return _Answer({} if error else sums.nodes, {} if error else answers, cost, error)

    def _worked(self, call: _Call) -> tuple[PartialSums, dict[int, Any], BaseException | None]:
        """What the own parts give; or the exception that one raised."""
        sums, answers = PartialSums(call.heading.parts), dict[int, Any]()
        own = parts_of_member(self._number, self._members, call.heading.parts)
        try:
            function, *shared = read(call.shared)
            if call.heading.kind == "total":
                for part in own:
                    sums.add(part, function(self._held[part], *shared))
            for part in (part for part in own if part in call.own):
                mine = read(call.own[part])
                if call.heading.kind == "place":
                    self._held[part] = function(*mine, *shared)
                else:
                    answers[part] = function(self._held[part], *mine, *shared)
        except Exception as error:
            return sums, answers, _portable(error)
        return sums, answers, None


class Team:
    """An executor over the members of a team; it is used in one thread."""

    def __init__(self, entrance: Entrance) -> None:
        self._parts, self._most, self.cost, self.calls = 0, entrance.memory, Cost(), 0
        with _losses():
            self._channel = connected_to(entrance.address, entrance.key)

    def place(self, make: Callable[..., Any], own: Sequence[tuple[Any, ...]], *shared: Any) -> None:
        """Make every part in the process that is to hold it."""
        self._parts = len(own)
        self._asked(_Call.made("place", self._parts, (make, *shared), dict(enumerate(own))))

    def total(self, work: Callable[..., Sums], *shared: Any) -> Sums:
        """The sum of what the parts return."""
        sums = PartialSums(self._parts)
        sums.join(self._asked(_Call.made("total", self._parts, (work, *shared), {})).sums)
        return sums.total

    def ask(self, work: Callable[..., Any], own: Mapping[int, tuple[Any, ...]], *shared: Any) -> dict[int, Any]:
        """What these parts answer."""
        return dict(self._asked(_Call.made("ask", self._parts, (work, *shared), own)).answers)

    def close(self) -> None:
        """Leave the team, which ends it."""
        self._channel.close()

    def _asked(self, call: _Call) -> _Answer:
        with _losses():
            sent = call.sent_to(self._channel, range(self._parts))
            blobs = self._channel.receive()
        answer: _Answer = read(blobs)
        self.cost = self.cost.then(answer.cost.beside(Cost(sent + sum(map(len, blobs)))))
        self.calls += 1
        if answer.error:
            raise answer.error
        if self._most is not None and answer.cost.memory > self._most:
            raise MemoryError
        return answer


def below(number: int, members: int) -> Iterator[int]:
    """The members right below a member in the tree, with ascending numbers."""
    offset = 1
    while number % (2 * offset) == 0 and number + offset < members:
        yield number + offset
        offset *= 2


def parts_of_member(number: int, members: int, parts: int) -> range:
    """The parts that a member holds."""
    return range(parts * number // members, parts * (number + 1) // members)


def parts_below(child: int, number: int, members: int, parts: int) -> range:
    """The parts that a member's child and all below it hold."""
    end = min(2 * child - number, members)
    return range(parts * child // members, parts * end // members)


def _portable(error: Exception) -> Exception:
    """The exception, or one with its text where it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(error_text(error))
    return error


def _shut(listener: socket.socket) -> None:
    """Close a listening socket, and wake up a thread that waits for a connection to it."""
    with suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@contextmanager
def _losses() -> Iterator[None]:
    """A context in which a closed connection means that parts are lost."""
    try:
        yield
    except PeerGone:
        raise PartsLost("a process that held parts of the users went away") from None
