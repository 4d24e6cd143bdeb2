"""Parsing the rows of a text file: with pandas' C parser, unless all are plain; pieces side by side in threads."""

import csv
import io
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from itertools import repeat
from typing import IO, Any

import numpy as np

from rankbench.core.system import usable_cores
from rankbench.data.files import File
from rankbench.data.tables.cells import MISSING
from rankbench.data.tables.fields import LONGEST_ID
from rankbench.data.tables.layout import Layout, letter_of
from rankbench.data.tables.pieces import MOST, Whole, pieces_of
from rankbench.data.tables.plain import plain
from rankbench.data.tables.texts import Coded, Column, joined
from rankbench.data.tables.times import as_times, settled
from rankbench.data.tables.watched import Seen, Watched

_ROWS = 1 << 16  # rows per chunk with pandas before 3.1, which needs three times the memory without chunks
_BUFFER = 1 << 20  # bytes
_PIECE = 1 << 23  # bytes that a thread parses at a time: of larger ones most is new memory, which takes longer
_BOM = b"\xef\xbb\xbf"  # which pandas leaves out at the start of what it reads

Part = tuple[list[Column], Seen]


class NoRows(ValueError):
    """A file holds no rows."""


def parsed(file: File, layout: Layout) -> Part:
    """The columns of a file, and what pandas does not notice in it; ValueErrors are NoRows, or those of pandas."""
    columns, seen = plain(file, layout) or _parsed(file, layout)
    if layout.time is not None:
        columns[-1] = settled(columns[-1])
    return columns, seen


def _parsed(file: File, layout: Layout) -> Part:
    """The same by pandas' parser, with two readings of times that may be either."""
    threads = min(usable_cores(), MOST)
    with suppress(Whole):
        if threads > 1 and not layout.escape and _is_large(file):
            with file.open() as stream:
                return _together(_side_by_side(stream, layout, threads))
    with file.open() as stream:
        return _together([_part(stream, layout)])


def _is_large(file: File) -> bool:
    """Whether a file has more than one piece, even if it is packed."""
    try:
        return file.path.stat().st_size > _PIECE
    except OSError:  # which is told by whoever reads it
        return False


def _side_by_side(stream: IO[bytes], layout: Layout, threads: int) -> list[Part]:
    """The columns of each piece of a file; so many are parsed at a time, and few wait in memory."""
    parts: list[Part] = []
    waiting: deque[Future[Part]] = deque()
    below = replace(layout, header=0)
    with ThreadPoolExecutor(threads) as pool:
        for number, piece in enumerate(map(bytes, pieces_of(stream, _PIECE, repeat(bytearray(2 * _PIECE))))):
            if (layout.quoted and b'"' in piece) or (number and piece.startswith(_BOM)):
                raise Whole
            if len(waiting) > threads:
                parts.append(waiting.popleft().result())
            waiting.append(pool.submit(_part, io.BytesIO(piece), below if number else layout))
        return parts + [future.result() for future in waiting]


def _part(stream: IO[bytes], layout: Layout) -> Part:
    """The columns of what a stream holds, none if it holds no rows, and what pandas does not notice in it."""
    import pandas  # noqa: PLC0415

    watched = Watched(stream, layout)
    try:
        return [joined(pieces) for pieces in zip(*_frames(watched, layout), strict=True)], watched.seen
    except pandas.errors.EmptyDataError:
        return [], watched.seen


def _together(parts: list[Part]) -> Part:
    """Parts as one; an error if none of them holds rows."""
    seen = reduce(Seen.followed_by, (seen for _, seen in parts), Seen())
    by_column = [list(pieces) for pieces in zip(*(columns for columns, _ in parts if columns), strict=True)]
    if not by_column:
        raise NoRows
    parts.clear()  # each column's pieces go as soon as they are one
    return [joined(by_column.pop(0)) for _ in range(len(by_column))], seen


def _frames(watched: Watched, layout: Layout) -> Iterator[list[Column]]:
    """The columns, chunk by chunk; an error if pandas may have misread a field."""
    import pandas  # noqa: PLC0415

    kinds: dict[int, type] = {index: (object if layout.text_ids else np.int64) for index in layout.of_ids}
    if layout.valued:
        kinds[layout.fields[-1]] = np.float64
    if layout.time is not None:
        kinds[layout.time] = np.int64 if layout.times == "digits" else str
    chosen = [*layout.fields, *([] if layout.time is None else [layout.time])]
    filtered = layout.drop_missing and layout.valued
    missing: Any = {layout.fields[-1]: MISSING} if filtered else None
    with pandas.read_csv(
        io.BufferedReader(watched, _BUFFER),
        sep=letter_of(layout.separator),
        header=None,
        skiprows=layout.header,
        usecols=chosen,
        dtype=kinds,
        encoding=layout.encoding,
        quoting=csv.QUOTE_MINIMAL if layout.quoted else csv.QUOTE_NONE,
        escapechar=layout.escape,
        decimal=layout.decimal,
        na_filter=filtered,
        keep_default_na=False,
        na_values=missing,
        engine="c",
        iterator=True,
        chunksize=_ROWS if _is_old(pandas.__version__) else None,  # None reads all at once
        **to_the_last_bit(pandas.__version__),
    ) as frames:
        for frame in frames:
            if watched.long_lines and any(frame[index].map(len).max() > LONGEST_ID for index in layout.of_ids):
                raise ValueError("an id is too long")  # a column of fixed width would take very much memory
            if not layout.text_ids and any(frame[index].dtype.kind != "i" for index in layout.of_ids):
                raise ValueError("an id is too large")  # pragma: no cover: only pandas before 3.1 does not notice it
            yield [
                Coded.of(frame[index].to_numpy()) if kinds[index] is object
                else as_times(frame[index].to_numpy(), layout.times) if kinds[index] is str
                else frame[index].to_numpy()
                for index in chosen
            ]  # fmt: skip


def to_the_last_bit(version: str) -> dict[str, Any]:
    """The options that make pandas read numbers exactly; from 3.1 on that is the default, and the option warns."""
    return {"float_precision": "round_trip"} if _is_old(version) else {}


def _is_old(version: str) -> bool:
    """Whether a version of pandas is older than 3.1, which needs additional checks."""
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) < (3, 1)
