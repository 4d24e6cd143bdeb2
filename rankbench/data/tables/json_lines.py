"""Reading a file with a record of JSON on each line, of which only the fields in use are made."""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rankbench.arrays.mapped import Pile
from rankbench.core.errors import UserError
from rankbench.data.files import File

_LONGEST = 1 << 24  # bytes of a line, and about as many are looked at at a time
_WRONG = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)  # what is raised for a line that is no record
_SHOWN = 200  # characters of an error of pyarrow that are shown

Batches = Iterator[Sequence[Any]]  # pyarrow's arrays of some columns, batch by batch


def is_json(path: Path, start: bytes) -> bool:
    """Whether a file that begins like this holds a record of JSON on each line; an error if it is one list of them."""
    first = start.removeprefix(BOM_UTF8).lstrip()
    if first.startswith(b"["):
        lines = f"pandas.read_json({path.name!r}).to_json('rows.jsonl', orient='records', lines=True)"
        raise UserError("holds a list in JSON", remedy=f"write a record on each line, in Python by {lines}")
    return first.startswith(b"{")


def names_in(file: File) -> tuple[str, ...]:
    """The names of the fields in the first record."""
    first = next((line for piece in _lines_of(file) for line in piece), b"{}")
    return tuple(_record_of(msgspec.json.Decoder(dict), first, 1))


def columns_in(file: File, names: Sequence[str]) -> Batches:
    """The values of these fields, piece by piece; null where a record does not have one."""
    rename = {f"column{number}": name for number, name in enumerate(names)}
    fields: list[Any] = [(column, Any, None) for column in rename]
    decoder = msgspec.json.Decoder(msgspec.defstruct("Record", fields, rename=rename))
    row = 1
    for piece in _lines_of(file):
        records = _records_of(decoder, piece, row)
        yield [_array([getattr(record, key) for record in records], name) for key, name in rename.items()]
        row += len(records)


def read_once(read: Callable[[Sequence[int]], Batches], columns: Sequence[int]) -> Callable[[Sequence[int]], Batches]:
    """A function that reads some of these columns again and again, from arrays that are kept in a file if large."""
    from pyarrow import BufferOutputStream, ipc, py_buffer, record_batch  # noqa: PLC0415  an optional package

    pile, ends = Pile(np.uint8), [0]
    for arrays in read(columns):
        batch = record_batch(arrays, [str(column) for column in columns])
        sink = BufferOutputStream()
        with ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        piece = np.frombuffer(sink.getvalue(), np.uint8)
        pile.add(piece)
        ends.append(ends[-1] + len(piece))
    kept = pile.array()

    def again(asked: Sequence[int]) -> Batches:
        for start, end in pairwise(ends):
            batch = ipc.open_stream(py_buffer(kept[start:end])).read_next_batch()
            yield [batch.column(str(column)) for column in asked]

    return again


def _array(values: list[Any], name: str) -> Any:
    """The values of a field, which must be of one kind."""
    from pyarrow import ArrowException, array  # noqa: PLC0415  an optional package

    try:
        return array(values)
    except (ArrowException, TypeError, OverflowError) as error:
        reason = " ".join(str(error).split())[:_SHOWN]
        raise UserError(f"the values of {name!r} are not all of one kind: {reason}") from None


def _lines_of(file: File) -> Iterator[list[bytes]]:
    """The lines of a file that are not blank, piece by piece."""
    rest = b""
    with file.open() as stream:
        while piece := stream.read(_LONGEST):
            *lines, rest = (rest + piece).split(b"\n")
            if len(rest) > _LONGEST:
                raise UserError(f"a line is longer than {_LONGEST:,} bytes")
            yield [line for line in lines if line.strip()]
    yield [rest] if rest.strip() else []


def _records_of(decoder: msgspec.json.Decoder[Any], lines: list[bytes], first: int) -> list[Any]:
    """The records on these lines, of which the first has this number."""
    try:
        records = decoder.decode_lines(b"\n".join(lines))
    except _WRONG:
        records = []
    if len(records) == len(lines):
        return records
    return [_record_of(decoder, line, row) for row, line in enumerate(lines, first)]  # an error says which line it is


def _record_of(decoder: msgspec.json.Decoder[Any], line: bytes, row: int) -> Any:
    """The record on a line; an error that names the row if there is none."""
    try:
        return decoder.decode(line.removeprefix(BOM_UTF8) if row == 1 else line)
    except _WRONG as error:
        raise UserError(f"row {row}: {error}", remedy="write a record of JSON on each line") from None
