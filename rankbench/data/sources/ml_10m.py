"""MovieLens 10M (GroupLens, 2009)."""

from dataclasses import dataclass
from typing import ClassVar

from rankbench.data.building import Counts
from rankbench.data.publications import Publication
from rankbench.data.sources.movielens import CLOSED, MovieLens, download
from rankbench.data.tables.layout import Layout


@dataclass(frozen=True)
class MovieLens10M(MovieLens):
    """69,878 users, 10,677 rated movies, 10,000,054 ratings from 0.5 to 5.

    `features` joins any of genres, titles and decades by +.
    """

    title: ClassVar = "MovieLens 10M"
    counts: ClassVar[Counts] = Counts(10_000_054, 69_878, 10_677)  # of 71,567 user ids and 10,681 listed movies
    layout: ClassVar[Layout] = Layout(separator="::", scale=(0.5, 5), step=0.5, time=3)
    files: ClassVar[tuple[str, ...]] = ("ratings.dat",)
    origin: ClassVar[Publication] = Publication(
        name="ml-10m",
        size=str(counts),
        licence=CLOSED,
        home="GroupLens, https://grouplens.org/datasets/movielens/10m/",
        needs=(files, ("movies.dat",)),
        downloads=(download("ml-10m.zip", "813c411ccb6122564edfe752e7f80c4dcc5aa25fa94c93622f6877a7ba252862"),),
    )
