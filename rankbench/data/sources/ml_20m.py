"""MovieLens 20M (GroupLens, 2015)."""

from dataclasses import dataclass
from typing import ClassVar

from rankbench.data.building import Counts
from rankbench.data.publications import Publication
from rankbench.data.sources.movielens import CLOSED, MovieLens, download


@dataclass(frozen=True)
class MovieLens20M(MovieLens):
    """138,493 users, 26,744 rated movies, 20,000,263 ratings from 0.5 to 5.

    `features` joins any of genres, titles and decades by +.
    """

    title: ClassVar = "MovieLens 20M"
    counts: ClassVar[Counts] = Counts(20_000_263, 138_493, 26_744)  # of 27,278 listed movies
    origin: ClassVar[Publication] = Publication(
        name="ml-20m",
        size=str(counts),
        licence=CLOSED,
        home="GroupLens, https://grouplens.org/datasets/movielens/20m/",
        needs=(("ratings.csv",), ("movies.csv",)),
        downloads=(download("ml-20m.zip", "96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3"),),
    )
