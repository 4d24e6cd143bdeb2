"""MovieLens 100K (GroupLens, 1998), with its five published folds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rankbench.core.contract import Ints
from rankbench.data.building import Counts, expect, ratings
from rankbench.data.files import Files
from rankbench.data.publications import Publication
from rankbench.data.sources.movielens import CLOSED, Movie, MovieLens, download, features
from rankbench.data.tables import Rows, identified, read, records
from rankbench.data.tables.layout import Layout
from rankbench.data.views import Ratings

_FOLDS = {"u": ("u1.test", "u2.test", "u3.test", "u4.test", "u5.test"), "ab": ("ua.test", "ub.test")}


@dataclass(frozen=True)
class MovieLens100K(MovieLens):
    """943 users, 1,682 movies, 100,000 ratings from 1 to 5; folds u1-u5, or ua and ub with ten test ratings per user.

    `features` joins any of genres, titles and decades by +.
    """

    folds: Literal["u", "ab"] = "u"
    title: ClassVar = "MovieLens 100K"
    counts: ClassVar[Counts] = Counts(100_000, 943, 1_682)
    layout: ClassVar[Layout] = Layout(separator="\t", scale=(1, 5), step=1, time=3)
    origin: ClassVar[Publication] = Publication(
        name="ml-100k",
        size=str(counts),
        licence=CLOSED,
        home="GroupLens, https://grouplens.org/datasets/movielens/100k/",
        needs=(("u.data",), ("u.item",), ("u.genre",), *((name,) for names in _FOLDS.values() for name in names)),
        downloads=(download("ml-100k.zip", "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229"),),
        hashes={
            "u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
            "u.item": "553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701",
            "u.genre": "9757e0d3e6b298159a80dd48eaf938114690e911e39af97a76949ef1663610bb",
        },
    )

    def _parse(self, files: Files) -> Ratings:
        rows = read(files.find("u.data"), self.layout)
        folds = _fold_numbers(rows, [read(files.find(name), self.layout) for name in _FOLDS[self.folds]])
        view = ratings(rows, features(self.features, _movies(files)), folds=folds)
        expect(view, self.counts, self.origin.name)
        return view


def _fold_numbers(rows: Rows, tests: list[Rows]) -> Ints:
    """For every row, the number of the fold in which it is tested, counted from 1; 0 for none."""
    keys, numbers = _keys(rows), np.zeros(len(rows.ids[0]), np.int8)
    for number, test in enumerate(tests, start=1):
        if (strange := ~np.isin(_keys(test), keys)).any():
            row = int(np.argmax(strange))
            pair = f"user {test.ids[0][row]}, item {test.ids[1][row]}"
            test.complain(row, f"{pair} is not in {rows.file}: the files are of different editions")
        numbers[np.isin(keys, _keys(test))] = number
    return numbers


def _keys(rows: Rows) -> Ints:
    """One number per (user, item)."""
    users, items = rows.ids
    keys: Ints = users * 10_000 + items
    return keys


def _movies(files: Files) -> Iterator[Movie]:
    """The movies of `u.item`: id | title | dates | address | a 0/1 column per genre."""
    names = [fields[0] for _, fields in records(files.find("u.genre"), "|", 2)]
    file = files.find("u.item")
    for movie, fields in identified(records(file, "|", 5 + len(names), encoding="latin-1"), file):
        genres = [name for name, flag in zip(names, fields[5:], strict=False) if flag == "1"]
        yield Movie(movie, fields[1], genres)
