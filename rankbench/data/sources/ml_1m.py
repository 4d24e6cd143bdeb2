"""MovieLens 1M (GroupLens, 2003): as published, or without time stamps."""

from dataclasses import dataclass
from typing import ClassVar

from rankbench.data.building import Counts
from rankbench.data.publications import Publication
from rankbench.data.sources.movielens import CLOSED, MovieLens, download
from rankbench.data.tables.layout import Layout


@dataclass(frozen=True)
class MovieLens1M(MovieLens):
    """6,040 users, 3,706 rated movies, 1,000,209 ratings from 1 to 5.

    `features` joins any of genres, titles and decades by +.
    """

    title: ClassVar = "MovieLens 1M"
    counts: ClassVar[Counts] = Counts(1_000_209, 6_040, 3_706)
    layout: ClassVar[Layout] = Layout(separator="::", scale=(1, 5), step=1, time=3)
    files: ClassVar[tuple[str, ...]] = ("ratings.dat", "ratings_no_timestamp.dat.gz")  # with ::time, or without
    encoding: ClassVar[str] = "latin-1"
    origin: ClassVar[Publication] = Publication(
        name="ml-1m",
        size=str(counts),
        licence=CLOSED,
        home="GroupLens, https://grouplens.org/datasets/movielens/1m/",
        needs=(files, ("movies.dat",)),
        downloads=(download("ml-1m.zip", "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20"),),
        hashes={
            "ratings_no_timestamp.dat.gz": "0b42fb8501fc37cddf414985f35a59ac7d4ecc121b86f629d7e0514062ec6bb0",
            "movies.dat": "0140fc2356357c1a851d0f52e893a1e4d3696df632c4141cea8d5bc3d621f0b9",
            "users.dat": "1dc3a95300cb19f7c10e027daf29b8cdf1d908dab65b5edfb45950aa389a10a3",
        },
    )
