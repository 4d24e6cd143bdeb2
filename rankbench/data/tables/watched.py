"""What pandas does not notice while it reads a file of rows."""

import io
import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np

from rankbench.data.tables.fields import LONGEST_ID
from rankbench.data.tables.layout import UNIT, Layout, letter_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_LATE_CONTROL = re.compile(rb"\xc2[\x80-\x9f]")  # U+0080 to U+009F
_NO_CONTROLS = bytes(byte for byte in range(256) if byte in b"\t\n\r" or (byte >= 32 and byte != 127))
_ZERO, _NINE = b"09"
_BLOCK = 1 << 18  # bytes to look at together


@dataclass(frozen=True)
class Seen:
    """What a file holds that pandas does not notice; only in a user's own file more is looked for than zero bytes."""

    zeros: bool = False  # which end a field silently in pandas before 3.1
    controls: bool = False  # other control characters
    padded: bool = False  # numbers with leading zeros
    quotes: bool = False
    separators: int = 0

    def followed_by(self, later: "Seen") -> "Seen":
        """What is seen in two pieces of a file together."""
        return Seen(
            self.zeros or later.zeros,
            self.controls or later.controls,
            self.padded or later.padded,
            self.quotes or later.quotes,
            self.separators + later.separators,
        )


class Watched(io.RawIOBase):
    """A stream of bytes that records what pandas does not notice while it reads them.

    In a user's own file it ends at the first control character. A separator of two letters becomes a single character,
    the only kind that the C parser accepts.
    """

    def __init__(self, stream: IO[bytes], layout: Layout | None = None) -> None:
        self.stream = stream
        self.layout = layout or Layout()
        self.zeros = self.controls = self.padded = self.quotes = self.long_lines = False
        self.separators = 0
        self._letters = self.layout.separator.encode()
        self._left = b""  # the first letter of a separator of two letters, if a piece ended there
        self._last = b"\n\n"  # the last two bytes, as at the start of a line

    @property
    def seen(self) -> Seen:
        """What was read so far."""
        return Seen(self.zeros, self.controls, self.padded, self.quotes, self.separators)

    def readable(self) -> bool:
        """True: the stream can be read."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read the next bytes into the buffer; returns how many."""
        room = memoryview(buffer)
        piece = self._next(len(room))
        while not piece and self._left:  # one letter alone says nothing yet
            piece = self._next(len(room))
        self.zeros = self.zeros or b"\x00" in piece
        if self.layout.strict and piece:
            self._look(piece)
            piece = b"" if self.controls else piece
        room[: len(piece)] = piece
        return len(piece)

    def _next(self, size: int) -> bytes:
        """The next bytes, at most so many, with each separator as a single character."""
        read = self.stream.read(size - len(self._left))
        if self.layout.strict:
            self.controls = self.controls or has_controls(read, self._last)
        if len(self._letters) == 1:
            return read
        piece, self._left = self._left + read if self._left else read, b""
        if read and piece.endswith(self._letters[:1]) and not piece.endswith(self._letters):
            piece, self._left = piece[:-1], piece[-1:]
        return piece.replace(self._letters, UNIT.encode())

    def _look(self, piece: bytes) -> None:
        """Note what a piece holds; this takes little time beside the parsing."""
        separator = ord(letter_of(self.layout.separator))
        self.quotes = self.quotes or b'"' in piece
        window = self._last + piece
        for start in range(0, len(piece), _BLOCK):
            block = window[start : start + _BLOCK + 2]
            self.separators += int(np.count_nonzero(np.frombuffer(block, np.uint8, offset=2) == separator))
            if self.layout.text_ids:
                self.long_lines = self.long_lines or _has_long_lines(block)
            else:
                self.padded = self.padded or has_leading_zeros(block, separator)
        self._last = window[-2:]


def has_controls(piece: bytes, before: bytes = b"") -> bool:
    """Whether there is a control character, of one byte or in UTF-8 of two, that is no line end and no tab."""
    if piece.translate(None, _NO_CONTROLS):
        return True
    return not piece.isascii() and _LATE_CONTROL.search(before + piece) is not None


def _has_long_lines(block: bytes) -> bool:
    """Whether a line may be longer than the longest id; only then is the length of every id looked at."""
    half = LONGEST_ID // 2
    return any(block.find(b"\n", start, start + half) < 0 for start in range(0, len(block) - half, half))


def has_leading_zeros(block: bytes, separator: int) -> bool:
    """Whether a field begins with a zero that is followed by a digit."""
    letters = np.frombuffer(block, np.uint8)
    for start in (separator, *(letter for letter in b'\n\r"' if letter in block)):
        for offset in (0, 1):  # two letters are compared at a time
            pairs = np.frombuffer(block, "<u2", (len(block) - offset) // 2, offset)
            places = np.flatnonzero(pairs == start + 256 * _ZERO) * 2 + offset + 2
            after = letters[places[places < len(letters)]]
            if ((after >= _ZERO) & (after <= _NINE)).any():
                return True
    return False
