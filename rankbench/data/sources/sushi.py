"""Sushi preferences (Kamishima, KDD 2003): people in Japan order and rate kinds of sushi."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rankbench.core.contract import Floats, Ints
from rankbench.core.errors import UserError
from rankbench.data.building import Counts, expect
from rankbench.data.files import File, Files
from rankbench.data.origins import Download
from rankbench.data.parsed import FromFiles
from rankbench.data.publications import Publication
from rankbench.data.tables import records
from rankbench.data.views import Ratings

_PEOPLE, _KINDS, _LENGTH = 5_000, 100, 10
_COUNTS = {
    "a": Counts(50_000, _PEOPLE, 10),
    "b": Counts(50_000, _PEOPLE, _KINDS),
    "scores": Counts(50_000, _PEOPLE, _KINDS),
}
_ORDERS = {"a": "sushi3a.5000.10.order", "b": "sushi3b.5000.10.order"}
_SCORES = ("sushi3b.5000.10.score", "sushi3b.5000.10.score.gz")
_ITEMS = "sushi3.idata"
_KINDS_OF_A = (0, 1, 2, 3, 4, 6, 7, 8, 26, 29)  # set A numbers its ten kinds by itself: their ids in set B
_MINOR_GROUPS = 12
_NUMBERS = ("maki or not", "seafood or not", "heaviness", "how often eaten", "price", "how often sold")
_NOT_RATED = -1


@dataclass(frozen=True)
class Sushi(FromFiles):
    """5,000 people order ten kinds of sushi: the same ten (part a), or ten of a hundred (part b); or rate those.

    In an order the best kind has the rating 10 and the last one 1; scores go from 0 to 4. Ids of kinds are those of set
    B, also in part a; people are numbered from 1 in the order of the rows, which is that of all parts. The features are
    the kind's style, group, heaviness, price, and how often it is eaten and sold.
    """

    part: Literal["a", "b", "scores"] = "b"
    features: Literal["items", "none"] = "items"
    version: ClassVar[int] = 1

    @property
    def origin(self) -> Publication:
        """The origin: the files of this part."""
        votes = _SCORES if self.part == "scores" else (_ORDERS[self.part],)
        return Publication(
            name="sushi",
            spec="sushi" if self.part == "b" else f"sushi[part={self.part}]",
            size=str(_COUNTS[self.part]),
            licence="research, no redistribution; cite Kamishima, KDD 2003",
            home="T. Kamishima, https://www.kamishima.net/sushi/",
            needs=(votes, (_ITEMS,)),
            downloads=(Download("sushi3-2016.zip", ("https://www.kamishima.net/asset/sushi3-2016.zip",)),),
            hashes={
                _ORDERS["a"]: "c56da325c0f58f9a38bafc650ed699b48dd2fb9f6ad64ba61ffc288d1ae4cc24",
                _ORDERS["b"]: "a241c87331e4eabea5841aae0c8a982453cccd01b0a0f3b6a4e9cfabcdab563b",
                _SCORES[0]: "f11fe3299b5cc099d70d36ae202f417f96be65454ad79d47d841f7b1efed4c6a",
            },
        )

    def _parse(self, files: Files) -> Ratings:
        people, kinds, values = self._scores(files) if self.part == "scores" else self._orders(files)
        ids, items = np.unique(kinds, return_inverse=True)
        matrix, names = _features(files.find(_ITEMS)) if self.features == "items" else (None, None)
        view = Ratings.from_triples(
            people, items, values, _PEOPLE, len(ids), None if matrix is None else matrix[ids],
            user_ids=np.arange(1, _PEOPLE + 1), item_ids=ids, feature_names=names,
        )  # fmt: skip
        expect(view, _COUNTS[self.part], f"sushi[part={self.part}]")
        return view

    def _orders(self, files: Files) -> tuple[Ints, Ints, Floats]:
        """The person, the kind and the rating of each place in an order."""
        file = files.find(_ORDERS[self.part])
        orders = np.array([order for _, order in _rows(file, 2 + _LENGTH, skip=2, header=1)])
        _check_people(file, len(orders))
        kinds = np.array(_KINDS_OF_A)[orders] if self.part == "a" else orders
        people = np.repeat(np.arange(len(orders)), _LENGTH)
        return people, kinds.ravel(), np.tile(np.arange(_LENGTH, 0, -1.0), len(orders))

    def _scores(self, files: Files) -> tuple[Ints, Ints, Floats]:
        """The person, the kind and the score of each rating."""
        file = files.find(*_SCORES)
        table = np.array([row for _, row in _rows(file, _KINDS)])
        _check_people(file, len(table))
        people, kinds = np.nonzero(table != _NOT_RATED)
        return people, kinds, table[people, kinds].astype(float)


def _check_people(file: File, found: int) -> None:
    if found != _PEOPLE:
        raise UserError(f"{file}: {found:,} people, not {_PEOPLE:,}")


def _rows(file: File, size: int, skip: int = 0, header: int = 0) -> Iterator[tuple[int, list[int]]]:
    """The rows of a table of whole numbers, without the first `skip` of each; a person's kinds must be different."""
    highest = _KINDS - 1 if skip else 4
    for number, fields in records(file, " ", size, header=header):
        texts = [field for field in fields if field.strip()]
        try:
            row = [int(text) for text in texts[skip:]]
        except ValueError:
            raise UserError(f"{file}, line {number}: a field is no whole number") from None
        if len(texts) != size or not all(_NOT_RATED <= value <= highest for value in row):
            raise UserError(f"{file}, line {number}: not {size} numbers up to {highest}")
        if skip and len(set(row)) < len(row):
            raise UserError(f"{file}, line {number}: a kind stands twice in the order")
        yield number, row


def _features(file: File) -> tuple[Floats, list[str]]:
    """The features of all kinds, and their names: six numbers, and a column for each minor group."""
    found = np.zeros((_KINDS, len(_NUMBERS) + _MINOR_GROUPS))
    seen = 0
    for number, fields in records(file, "\t", 1):
        if not fields[0].strip().isdigit():
            continue  # some copies have a heading
        try:
            kind, style, major, minor = (int(fields[place]) for place in (0, 2, 3, 4))
            found[kind, : len(_NUMBERS)] = [style, major, *map(float, fields[5:9])]
            found[kind, len(_NUMBERS) + minor] = 1
        except (ValueError, IndexError):
            raise UserError(f"{file}, line {number}: not a kind of sushi with its seven features") from None
        seen += 1
    if seen != _KINDS:
        raise UserError(f"{file}: {seen} kinds of sushi, not {_KINDS}")
    return found, [*_NUMBERS, *(f"minor group {group}" for group in range(_MINOR_GROUPS))]
