"""MovieLens 100K (GroupLens, 1998), with its five published folds."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rankbench.contract import Ints
from rankbench.data.building import Counts, expect, ratings
from rankbench.data.features import Features, decade, kinds, title_words
from rankbench.data.files import Files
from rankbench.data.origins import Download
from rankbench.data.parsed import parsed
from rankbench.data.publications import Publication
from rankbench.data.tables import Layout, Rows, read, records
from rankbench.data.views import Ratings
from rankbench.errors import UserError
from rankbench.specs import check

_COUNTS = Counts(100_000, 943, 1_682)
_RATINGS = Layout(separator="\t", scale=(1, 5))
_FOLDS = {"u": ("u1.test", "u2.test", "u3.test", "u4.test", "u5.test"), "ab": ("ua.test", "ub.test")}
_KINDS = ("genres", "titles", "decades")


@dataclass(frozen=True)
class MovieLens100K:
    """943 users, 1,682 movies, 100,000 ratings from 1 to 5; folds: u1-u5, or the ten-per-user pair ua, ub.

    `features` joins any of genres, titles and decades by +.
    """

    features: str = "genres"
    folds: Literal["u", "ab"] = "u"
    version: ClassVar[int] = 1
    origin: ClassVar[Publication] = Publication(
        name="ml-100k",
        size=str(_COUNTS),
        licence="GroupLens: research only, no redistribution without permission",
        home="GroupLens, https://grouplens.org/datasets/movielens/100k/",
        needs=(("u.data",), ("u.item",), ("u.genre",), *((name,) for names in _FOLDS.values() for name in names)),
        downloads=(
            Download(
                "ml-100k.zip",
                ("https://files.grouplens.org/datasets/movielens/ml-100k.zip",),
                "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
            ),
        ),
        hashes={
            "u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
            "u.item": "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701",
            "u.genre": "9757e0d3e6b298159a80dd48eaf938114690e911e39af97a76949ef1663610bb",
        },
    )

    def __post_init__(self) -> None:
        check(self)
        kinds(self.features, _KINDS)

    def view(self, rng: np.random.Generator) -> Ratings:
        """All ratings, each with the number of the fold that tests on it."""
        return parsed(self, self.version, self.origin.files(), self._parse)

    def _parse(self, files: Files) -> Ratings:
        rows = read(files.find("u.data"), _RATINGS)
        folds = _fold_numbers(rows, [read(files.find(name), _RATINGS) for name in _FOLDS[self.folds]])
        view = ratings(rows, _features(files, self.features), folds=folds)
        expect(view, _COUNTS, "ml-100k")
        return view


def _fold_numbers(rows: Rows, tests: list[Rows]) -> Ints:
    """For every row the fold that tests on it, counted from 1; 0 where none does."""
    keys, numbers = _keys(rows), np.zeros(len(rows.ids[0]), np.int8)
    for number, test in enumerate(tests, start=1):
        found = np.isin(keys, _keys(test))
        if found.sum() != len(test.ids[0]):
            raise UserError(f"{test.file} holds ratings that {rows.file} does not: the files are of different editions")
        numbers[found] = number
    return numbers


def _keys(rows: Rows) -> Ints:
    """One number per (user, item)."""
    users, items = rows.ids
    return users * 10_000 + items


def _features(files: Files, text: str) -> Features | None:
    """What `u.item` says of each movie: id | title | dates | address | a 0/1 column per genre."""
    asked = kinds(text, _KINDS)
    if not asked:
        return None
    genres = [fields[0] for _, fields in records(files.find("u.genre"), "|", 2)]
    words: dict[str, dict[int, list[str]]] = {kind: {} for kind in asked}
    for _, fields in records(files.find("u.item"), "|", 5 + len(genres), encoding="latin-1"):
        found = {
            "genres": [genre for genre, flag in zip(genres, fields[5:], strict=False) if flag == "1"],
            "titles": title_words(fields[1]),
            "decades": decade(fields[1]),
        }
        for kind in asked:
            words[kind][int(fields[0])] = found[kind]
    return Features(words)
