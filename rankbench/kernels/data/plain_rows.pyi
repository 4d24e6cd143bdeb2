"""Rows of plain numbers in the bytes of a text file: whole numbers, and decimals that are read to the last bit."""

from enum import IntEnum

from rankbench.core.contract import Floats, Int8s, Int64s, Records

class Field(IntEnum):
    VALUE = -1
    UNUSED = -2

def read(
    *, text: Records, fields: Int8s, separator: bytes, point: bytes, numbers: list[Int64s], values: Floats
) -> tuple[int, int]: ...
