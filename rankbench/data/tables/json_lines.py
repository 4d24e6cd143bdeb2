"""Reading a file with a record of JSON on each line, of which only the fields in use are made."""

from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from rankbench.core.errors import UserError
from rankbench.data.files import File

_LONGEST = 1 << 24  # bytes of a line, and about as many are looked at at a time


def names_in(file: File) -> tuple[str, ...]:
    """The names of the fields in the first record."""
    first = next((line for piece in _lines_of(file) for line in piece), b"{}")
    return tuple(_record_of(msgspec.json.Decoder(dict), first, 1))


def columns_in(file: File, names: Sequence[str]) -> Iterator[list[list[Any]]]:
    """The values of these fields, in a list for each of them, piece by piece; None where a record does not have one."""
    rename = {f"column{number}": name for number, name in enumerate(names)}
    fields: list[Any] = [(column, Any, None) for column in rename]
    decoder = msgspec.json.Decoder(msgspec.defstruct("Record", fields, rename=rename))
    row = 1
    for piece in _lines_of(file):
        records = [_record_of(decoder, line, number) for number, line in enumerate(piece, row)]
        yield [[getattr(record, column) for record in records] for column in rename]
        row += len(records)


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


def _record_of(decoder: msgspec.json.Decoder[Any], line: bytes, row: int) -> Any:
    """The record on a line; an error that names the row if there is none."""
    try:
        return decoder.decode(line.removeprefix(BOM_UTF8) if row == 1 else line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"row {row}: {error}", remedy="write a record of JSON on each line") from None
