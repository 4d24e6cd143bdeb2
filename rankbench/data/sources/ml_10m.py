"""MovieLens 10M (GroupLens, 2009)."""

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

_COUNTS = Counts(10_000_054, 69_878, 10_677)  # of 71,567 user ids and 10,681 listed movies
_RATINGS = Layout(separator="::", scale=(0.5, 5), step=0.5, time=3)


@dataclass(frozen=True)
class MovieLens10M(Checked):
    """69,878 users, 10,677 rated movies, 10,000,054 ratings from 0.5 to 5.

    `features` joins any of genres, titles and decades by +.
    """

    features: str = "genres"
    title: ClassVar = "MovieLens 10M"
    version: ClassVar[int] = 2
    origin: ClassVar[Publication] = Publication(
        name="ml-10m",
        size=str(_COUNTS),
        licence=CLOSED,
        home="GroupLens, https://grouplens.org/datasets/movielens/10m/",
        needs=(("ratings.dat",), ("movies.dat",)),
        downloads=(download("ml-10m.zip", "813c411ccb6122564edfe752e7f80c4dcc5aa25fa94c93622f6877a7ba252862"),),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        kinds(self.features, KINDS)

    def view(self, rng: np.random.Generator) -> Ratings:
        """All ratings, users and movies numbered in the order of their published ids."""
        return parsed(self, self.version, self.origin.files(), self._parse)

    def _parse(self, files: Files) -> Ratings:
        movies = dat_movies(files.find("movies.dat"), "utf-8")
        view = ratings(read(files.find("ratings.dat"), _RATINGS), features(self.features, movies))
        expect(view, _COUNTS, "ml-10m")
        return view
