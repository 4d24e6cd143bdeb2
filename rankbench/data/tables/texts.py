"""Columns of texts, of which each is kept once: an array of all would give each the room of the longest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankbench.core.contract import Flags, Int32s, Ints
from rankbench.data.tables.fields import Ids

Column = Any  # of ids: an array of whole numbers, or texts as `Coded`


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of texts: the distinct ones, ascending, each of which occurs, and the number of each row's text."""

    texts: Ids
    codes: Int32s

    @classmethod
    def of(cls, texts: Ids) -> "Coded":
        """The column of these texts, one for each row."""
        import pandas  # noqa: PLC0415  hashing texts is many times faster than sorting them

        codes, distinct = pandas.factorize(texts, sort=True)
        return cls(np.asarray(distinct, texts.dtype if texts.dtype.kind == "U" else np.str_), codes.astype(np.int32))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Any:
        """The text of a row, or the column of some rows."""
        if isinstance(rows, int | np.integer):
            return self.texts[self.codes[rows]]
        codes = self.codes[rows]
        there = np.zeros(len(self.texts), bool)
        there[codes] = True
        return Coded(self.texts[there], (np.cumsum(there, dtype=np.int32) - 1)[codes])

    @property
    def is_filled(self) -> Flags:
        """The rows whose text is not empty."""
        return (self.texts != "")[self.codes]  # type: ignore[no-any-return]

    def tolist(self) -> list[str]:
        """The text of every row."""
        return self.texts[self.codes].tolist()  # type: ignore[no-any-return]


def joined(columns: Sequence[Column]) -> Column:
    """Columns of one kind, one behind the other."""
    if len(columns) == 1:
        return columns[0]
    return united(columns) if isinstance(columns[0], Coded) else np.concatenate(columns)


def united(columns: Sequence[Coded]) -> Coded:
    """The same of texts, which need not be in order within a column."""
    numbers: dict[str, int] = {}
    own = [
        np.array([numbers.setdefault(text, len(numbers)) for text in column.texts.tolist()], np.int32)
        for column in columns
    ]
    texts = np.array(list(numbers), np.str_)
    order = np.argsort(texts)
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    codes = [places[of_texts][column.codes] for of_texts, column in zip(own, columns, strict=True)]
    return Coded(texts[order], np.concatenate(codes))


def equal(one: Column, other: Column) -> Flags:
    """The rows in which two columns hold the same."""
    numbers: Ints = np.asarray(both.codes if isinstance(both := joined([one, other]), Coded) else both)
    same: Flags = numbers[: len(one)] == numbers[len(one) :]
    return same
