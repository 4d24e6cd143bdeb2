"""Rows of plain numbers and texts in the bytes of a file; decimals are read to the last bit, and texts are numbered."""

from enum import IntEnum

from rankbench.core.contract import Floats, Int8s, Int64s, Records

LENGTH: int

class Field(IntEnum):
    VALUE = -1
    UNUSED = -2

def read(
    *,
    text: Records,
    fields: Int8s,
    separator: bytes,
    point: bytes,
    numbers: list[Int64s],
    values: Floats,
    text_places: list[Int64s],
) -> tuple[int, int, list[int]]: ...
