"""MovieLens 1M (GroupLens, 2003): as published, or without time stamps."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.data.building import Counts, expect, ratings
from rankbench.data.features import kinds
from rankbench.data.files import Files
from rankbench.data.parsed import parsed
from rankbench.data.publications import Publication
from rankbench.data.sources.movielens import CLOSED, KINDS, dat_movies, download, features
from rankbench.data.tables import Layout, read
from rankbench.data.views import Ratings
from rankbench.names import Checked

_COUNTS = Counts(1_000_209, 6_040, 3_706)
_NAMES = ("ratings.dat", "ratings_no_timestamp.dat.gz")  # user::movie::rating, then ::time or nothing
_RATINGS = Layout(separator="::", scale=(1, 5), step=1, time=3)


@dataclass(frozen=True)
class MovieLens1M(Checked):
    """6,040 users, 3,706 rated movies, 1,000,209 ratings from 1 to 5.

    `features` joins any of genres, titles and decades by +.
    """

    features: str = "genres"
    title: ClassVar = "MovieLens 1M"
    version: ClassVar[int] = 2
    origin: ClassVar[Publication] = Publication(
        name="ml-1m",
        size=str(_COUNTS),
        licence=CLOSED,
        home="GroupLens, https://grouplens.org/datasets/movielens/1m/",
        needs=(_NAMES, ("movies.dat",)),
        downloads=(download("ml-1m.zip", "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20"),),
        hashes={
            "ratings_no_timestamp.dat.gz": "0b42fb8501fc37cddf414985f35a59ac7d4ecc121b86f629d7e0514062ec6bb0",
            "movies.dat": "0140fc2356357c1a851d0f52e893a1e4d3696df632c4141cea8d5bc3d621f0b9",
            "users.dat": "1dc3a95300cb19f7c10e027daf29b8cdf1d908dab65b5edfb45950aa389a10a3",
        },
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        kinds(self.features, KINDS)

    def view(self, rng: np.random.Generator) -> Ratings:
        """All ratings, users and movies numbered in the order of their published ids."""
        return parsed(self, self.version, self.origin.files(), self._parse)

    def _parse(self, files: Files) -> Ratings:
        movies = dat_movies(files.find("movies.dat"), "latin-1")
        view = ratings(read(files.find(*_NAMES), _RATINGS), features(self.features, movies))
        expect(view, _COUNTS, "ml-1m")
        return view
