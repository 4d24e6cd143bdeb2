"""The bytes of a file in pieces of whole lines, which threads parse side by side."""

from collections.abc import Iterator
from typing import IO

MOST = 8  # threads at most, since one thread reads the file for all of them


class Whole(Exception):
    """A file has to be parsed as a whole: pandas would read its pieces otherwise, or a line is longer than a piece."""


def pieces_of(stream: IO[bytes], size: int, rooms: Iterator[bytearray]) -> Iterator[memoryview]:
    """The bytes of a file in pieces of whole lines, of about so many bytes; an exception if a line is longer.

    Each piece lies in the next room, of twice as many bytes, as long as that is not given again.
    """
    rest = b""
    for room in rooms:
        view, length, end = memoryview(room), len(rest), 0
        view[:length] = rest
        while not end and (read := stream.readinto(view[length : length + size])):  # type: ignore[attr-defined]
            end = room.rfind(b"\n", length, length + read) + 1
            length += read
            if not end and length >= size:
                raise Whole
        if length:
            yield view[: end or length]
        if not end:
            return
        rest = bytes(view[end:length])
