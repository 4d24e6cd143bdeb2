"""Reading the rows of a file of plain numbers and texts, as programs write them, by a kernel in threads."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import accumulate, chain, pairwise, repeat
from queue import SimpleQueue
from typing import IO, NamedTuple

import numpy as np

from rankbench.arrays.mapped import empty
from rankbench.core.contract import Floats, Int8s, Int64s
from rankbench.core.system import usable_cores
from rankbench.data.files import File
from rankbench.data.tables.fields import Ids
from rankbench.data.tables.layout import Layout
from rankbench.data.tables.pieces import MOST, Whole, pieces_of
from rankbench.data.tables.texts import Coded, Column, united
from rankbench.data.tables.watched import Seen, has_controls
from rankbench.kernels.data.plain_rows import LENGTH, Field, read

_PIECE = 1 << 22  # bytes that a thread reads at a time: with their numbers they fit into a cache
_SLACK = 1.05  # times the rows that are expected from the length of the first ones
_LF = ord("\n")


class _NotPlain(Exception):
    """The file holds something that is for a general parser."""


class _Filled(NamedTuple):
    """What a piece of a file turned out to be."""

    lines: int
    rows: int
    width: int  # fields of each row
    texts: list[Ids]  # of each column of texts the distinct ones, as they come


def plain(file: File, layout: Layout) -> tuple[list[Column], Seen] | None:
    """The columns of a file, and what else it holds; None if it holds no rows, or anything that is not plain."""
    fields = _fields(layout)
    if fields is None:
        return None
    with file.open() as stream, suppress(_NotPlain, Whole):
        return _read(stream, layout, fields, 0 if file.is_packed else file.path.stat().st_size)
    return None


def plain_start(file: File, layout: Layout) -> tuple[int, int]:
    """How many bytes and lines at the start of a file are its header and plain rows, in which nothing can be wrong."""
    size = lines = 0
    fields = _fields(layout)
    if fields is None:
        return 0, 0
    with file.open() as stream, suppress(_NotPlain, Whole):
        for piece in map(bytes, pieces_of(stream, _PIECE, repeat(bytearray(2 * _PIECE)))):
            rows = piece if size else piece[len(_header(piece, layout)) :]
            if not rows.endswith(b"\n"):
                break
            table = _Table(layout, fields, piece.count(b"\n"))
            table.fill(memoryview(rows), *table.take(table.left))
            size, lines = size + len(piece), lines + piece.count(b"\n")
    return size, lines


def _fields(layout: Layout) -> Int8s | None:
    """What the first fields of a row are, as the kernel takes it, times behind ids; None if no such row is plain."""
    whole = [*layout.of_ids, *([] if layout.time is None else [layout.time])]
    kinds = {field: number for number, field in enumerate(whole)}
    if layout.valued:
        kinds[layout.fields[-1]] = Field.VALUE
    several = len(kinds) < len(whole) + layout.valued  # of one field
    if several or layout.escape or layout.times != "digits":
        return None
    return np.array([kinds.get(field, Field.UNUSED) for field in range(max(kinds) + 1)], np.int8)


def _read(stream: IO[bytes], layout: Layout, fields: Int8s, size: int) -> tuple[list[Column], Seen]:
    """The columns of a file of so many bytes, or of 0 if it is packed."""
    threads = min(usable_cores(), MOST)
    rooms: SimpleQueue[bytearray] = SimpleQueue()
    of_piece = min(_PIECE, size) if size else _PIECE
    made = (bytearray(2 * of_piece) for _ in range(threads + 2))  # one more waits, and one is being read
    pieces = pieces_of(stream, of_piece, chain(made, iter(rooms.get, None)))
    first = next(pieces, memoryview(b""))
    head = _header(bytes(first), layout)
    rows = first[len(head) :]
    if not rows:
        raise _NotPlain
    table = _Table(layout, fields, int(_SLACK * size * _lines(rows) / len(rows)))
    with ThreadPoolExecutor(threads) as pool:
        filled = list(_filled(chain([rows], pieces), table, pool, rooms))
    widths = {piece.width for piece in filled}
    if len(widths) > 1 or any(piece.rows < piece.lines for piece in filled[:-1]):  # as blank lines leave gaps
        raise _NotPlain
    total = sum(piece.rows for piece in filled)
    separators = head.count(layout.separator.encode()) + total * (widths.pop() - 1)
    return table.columns(filled), Seen(quotes=b'"' in head, separators=separators)


def _header(text: bytes, layout: Layout) -> bytes:
    """The lines of a text before its first row."""
    end = 0
    for _ in range(layout.header):
        end = text.find(b"\n", end) + 1
        if not end:
            raise _NotPlain
    head = text[:end]
    if b"\r" in head.replace(b"\r\n", b"") or head.count(b'"') % 2 or has_controls(head):
        raise _NotPlain
    return head


def _lines(text: memoryview) -> int:
    """How many line ends a text has."""
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == _LF))


class _Table:
    """The columns of a file, into which pieces are read, the rows of each behind those of the piece before."""

    def __init__(self, layout: Layout, fields: Int8s, rows: int) -> None:
        self.layout, self.fields, self.taken = layout, fields, 0
        self.numbers = [empty(rows, np.int64) for _ in range(int(fields.max()) + 1)]
        self.values = empty(rows, np.float64)

    @property
    def left(self) -> int:
        """The number of rows for which there is room."""
        return len(self.values) - self.taken

    def grow(self, least: int) -> None:
        """Make room for at least so many rows more, while nobody writes to it."""
        rows = self.taken + max(least, self.taken)
        self.numbers, self.values = [self._larger(old, rows) for old in self.numbers], self._larger(self.values, rows)

    def _larger(self, old: Ids, rows: int) -> Ids:
        larger = empty(rows, old.dtype)
        larger[: self.taken] = old[: self.taken]
        return larger

    def take(self, lines: int) -> tuple[list[Int64s], Floats]:
        """The whole numbers and the values of the next rows, a place for each of so many lines."""
        part = slice(self.taken, self.taken + lines)
        self.taken += lines
        return [column[part] for column in self.numbers], self.values[part]

    def fill(self, piece: memoryview, numbers: list[Int64s], values: Floats) -> _Filled:
        """Read a piece into columns with a place for each of its lines."""
        places = [np.empty(len(values), np.int64) for _ in self.layout.of_ids] if self.layout.text_ids else []
        rows, width, counts = read(
            text=np.frombuffer(piece, np.uint8),
            fields=self.fields,
            separator=self.layout.separator.encode(),
            point=self.layout.decimal.encode(),
            numbers=numbers,
            values=values,
            text_places=places,
        )
        if not rows:
            raise _NotPlain
        texts = [_texts(piece, own[:count]) for own, count in zip(places, counts, strict=True)]
        return _Filled(len(values), rows, width, texts)

    def columns(self, filled: Sequence[_Filled]) -> list[Column]:
        """The ids, the values and the times in the rows of these pieces, as far as they are wanted."""
        ends = [0, *accumulate(piece.rows for piece in filled)]
        whole, n_ids = [column[: ends[-1]] for column in self.numbers], len(self.layout.of_ids)
        ids: list[Column] = whole[:n_ids]
        if self.layout.text_ids:
            parts = [slice(start, end) for start, end in pairwise(ends)]
            ids = [
                united([Coded(piece.texts[place], column[part]) for piece, part in zip(filled, parts, strict=True)])
                for place, column in enumerate(whole[:n_ids])
            ]
        return [*ids, *([self.values[: ends[-1]]] if self.layout.valued else []), *whole[n_ids:]]


def _texts(piece: memoryview, places: Int64s) -> Ids:
    """The texts at these places of a piece, given with their lengths."""
    starts, lengths = (places >> LENGTH).tolist(), (places & ((1 << LENGTH) - 1)).tolist()
    text = str(piece, "ascii")
    return np.array([text[start : start + length] for start, length in zip(starts, lengths, strict=True)], np.str_)


def _filled(
    pieces: Iterable[memoryview], table: _Table, pool: ThreadPoolExecutor, rooms: "SimpleQueue[bytearray]"
) -> Iterator[_Filled]:
    """Read pieces side by side into a table; the rooms in which they lie are given back."""
    waiting: deque[Future[_Filled]] = deque()
    for text in pieces:
        piece = text if text[-1] == _LF else memoryview(bytes(text) + b"\n")
        lines = _lines(piece)
        while waiting and (waiting[0].done() or table.left < lines):
            yield waiting.popleft().result()
        if table.left < lines:
            table.grow(lines)
        waiting.append(pool.submit(table.fill, piece, *table.take(lines)))
        waiting[-1].add_done_callback(partial(lambda room, _: rooms.put(room), text.obj))
    yield from (future.result() for future in waiting)
