"""MovieLens 1M (2003), 10M (2009) and 20M (2015) of GroupLens: three editions that differ in facts alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.data.building import Counts, expect, ratings
from rankbench.data.features import kinds
from rankbench.data.files import Files
from rankbench.data.parsed import parsed
from rankbench.data.publications import Publication
from rankbench.data.sources.movielens import CLOSED, CSV, KINDS, csv_movies, dat_movies, download, features
from rankbench.data.tables import Layout, read
from rankbench.data.views import Ratings
from rankbench.names import Checked


@dataclass(frozen=True)
class Edition(Checked):
    """What all three do: read ratings and movies, and compare their numbers with the published ones."""

    features: str = "genres"
    version: ClassVar[int] = 2
    counts: ClassVar[Counts]
    layout: ClassVar[Layout]
    encoding: ClassVar[str]  # of movies.dat; empty where there is a movies.csv
    origin: ClassVar[Publication]

    def __post_init__(self) -> None:
        super().__post_init__()
        kinds(self.features, KINDS)

    def view(self, rng: np.random.Generator) -> Ratings:
        """All ratings, users and movies numbered in the order of their published ids."""
        return parsed(self, self.version, self.origin.files(), self._parse)

    def _parse(self, files: Files) -> Ratings:
        of_ratings, of_movies = self.origin.needs
        file = files.find(*of_movies)
        movies = dat_movies(file, self.encoding) if self.encoding else csv_movies(file)
        view = ratings(read(files.find(*of_ratings), self.layout), features(self.features, movies))
        expect(view, self.counts, self.origin.name)
        return view


def _published(
    name: str, counts: Counts, ratings: tuple[str, ...], movies: str, archive: str, hashes: Mapping[str, str]
) -> Publication:
    """Where an edition comes from, with the SHA-256 of its archive and of single files."""
    return Publication(
        name=name,
        size=str(counts),
        licence=CLOSED,
        home=f"GroupLens, https://grouplens.org/datasets/movielens/{name.removeprefix('ml-')}/",
        needs=(ratings, (movies,)),
        downloads=(download(f"{name}.zip", archive),),
        hashes=hashes,
    )


@dataclass(frozen=True)
class MovieLens1M(Edition):
    """6,040 users, 3,706 rated movies, 1,000,209 ratings from 1 to 5.

    `features` joins any of genres, titles and decades by +.
    """

    title: ClassVar = "MovieLens 1M"
    counts: ClassVar = Counts(1_000_209, 6_040, 3_706)
    layout: ClassVar = Layout(separator="::", scale=(1, 5), step=1, time=3)
    encoding: ClassVar = "latin-1"
    origin: ClassVar = _published(
        "ml-1m",
        counts,
        ("ratings.dat", "ratings_no_timestamp.dat.gz"),  # user::movie::rating, then ::time or nothing
        "movies.dat",
        "a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
        {
            "ratings_no_timestamp.dat.gz": "0b42fb8501fc37cddf414985f35a59ac7d4ecc121b86f629d7e0514062ec6bb0",
            "movies.dat": "0140fc2356357c1a851d0f52e893a1e4d3696df632c4141cea8d5bc3d621f0b9",
            "users.dat": "1dc3a95300cb19f7c10e027daf29b8cdf1d908dab65b5edfb45950aa389a10a3",
        },
    )


@dataclass(frozen=True)
class MovieLens10M(Edition):
    """69,878 users, 10,677 rated movies, 10,000,054 ratings from 0.5 to 5.

    `features` joins any of genres, titles and decades by +.
    """

    title: ClassVar = "MovieLens 10M"
    counts: ClassVar = Counts(10_000_054, 69_878, 10_677)  # of 71,567 user ids and 10,681 listed movies
    layout: ClassVar = Layout(separator="::", scale=(0.5, 5), step=0.5, time=3)
    encoding: ClassVar = "utf-8"
    origin: ClassVar = _published(
        "ml-10m",
        counts,
        ("ratings.dat",),
        "movies.dat",
        "813c411ccb6122564edfe752e7f80c4dcc5aa25fa94c93622f6877a7ba252862",
        {},
    )


@dataclass(frozen=True)
class MovieLens20M(Edition):
    """138,493 users, 26,744 rated movies, 20,000,263 ratings from 0.5 to 5.

    `features` joins any of genres, titles and decades by +.
    """

    title: ClassVar = "MovieLens 20M"
    counts: ClassVar = Counts(20_000_263, 138_493, 26_744)  # of 27,278 listed movies
    layout: ClassVar = CSV
    encoding: ClassVar = ""
    origin: ClassVar = _published(
        "ml-20m",
        counts,
        ("ratings.csv",),
        "movies.csv",
        "96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
        {},
    )
