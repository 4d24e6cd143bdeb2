"""MovieLens 20M (GroupLens, 2015)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.data.building import Counts, expect, ratings
from rankbench.data.features import kinds
from rankbench.data.files import Files
from rankbench.data.parsed import parsed
from rankbench.data.publications import Publication
from rankbench.data.sources.movielens import CLOSED, CSV, KINDS, csv_movies, download, features
from rankbench.data.tables import read
from rankbench.data.views import Ratings
from rankbench.names import Checked

_COUNTS = Counts(20_000_263, 138_493, 26_744)  # of 27,278 listed movies


@dataclass(frozen=True)
class MovieLens20M(Checked):
    """138,493 users, 26,744 rated movies, 20,000,263 ratings from 0.5 to 5.

    `features` joins any of genres, titles and decades by +.
    """

    features: str = "genres"
    title: ClassVar = "MovieLens 20M"
    version: ClassVar[int] = 2
    origin: ClassVar[Publication] = Publication(
        name="ml-20m",
        size=str(_COUNTS),
        licence=CLOSED,
        home="GroupLens, https://grouplens.org/datasets/movielens/20m/",
        needs=(("ratings.csv",), ("movies.csv",)),
        downloads=(download("ml-20m.zip", "96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3"),),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        kinds(self.features, KINDS)

    def view(self, rng: np.random.Generator) -> Ratings:
        """All ratings, users and movies numbered in the order of their published ids."""
        return parsed(self, self.version, self.origin.files(), self._parse)

    def _parse(self, files: Files) -> Ratings:
        movies = csv_movies(files.find("movies.csv"))
        view = ratings(read(files.find("ratings.csv"), CSV), features(self.features, movies))
        expect(view, _COUNTS, "ml-20m")
        return view
