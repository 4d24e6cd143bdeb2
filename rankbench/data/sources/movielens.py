"""MovieLens 1M, 10M and 20M (GroupLens, 2003 to 2015), and what all MovieLens data sets share."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from rankbench.data.building import Counts, expect, ratings
from rankbench.data.features import Features, decade, kinds, title_words
from rankbench.data.files import File, Files
from rankbench.data.origins import Download
from rankbench.data.parsed import FromFiles
from rankbench.data.publications import Publication
from rankbench.data.tables import identified, read, records
from rankbench.data.tables.layout import Layout
from rankbench.data.views import Ratings

KINDS = ("genres", "titles", "decades")
CLOSED = "GroupLens: research, non-commercial; no redistribution without permission"
OPEN = "GroupLens: research, non-commercial; redistribution under the same terms"
CSV = Layout(header=1, scale=(0.5, 5), step=0.5, time=3)  # ratings.csv of all data sets since 2015


@dataclass(frozen=True)
class Movie:
    """A movie with its title, which ends with the year in brackets, and its genres."""

    id: int
    title: str
    genres: list[str]


@dataclass(frozen=True)
class MovieLens(FromFiles):
    """A data set with a file of ratings and one of movies; what differs are facts of the classes that inherit this."""

    features: str = "genres"
    version: ClassVar[int] = 2
    origin: ClassVar[Publication]
    counts: ClassVar[Counts]
    layout: ClassVar[Layout] = CSV
    files: ClassVar[tuple[str, ...]] = ("ratings.csv",)  # of ratings; the first that is at hand is read
    encoding: ClassVar[str] = "utf-8"  # of movies.dat, where there is no movies.csv

    def __post_init__(self) -> None:
        super().__post_init__()
        kinds(self.features, KINDS)

    def _parse(self, files: Files) -> Ratings:
        rows = read(files.find(*self.files), self.layout)
        view = ratings(rows, features(self.features, self._movies(files)))
        expect(view, self.counts, self.origin.name)
        return view

    def _movies(self, files: Files) -> Iterator[Movie]:
        if self.layout is CSV:
            return csv_movies(files.find("movies.csv"))
        return dat_movies(files.find("movies.dat"), self.encoding)


def download(name: str, sha256: str) -> Download:
    """The download of the archive with this name from GroupLens."""
    return Download(name, (f"https://files.grouplens.org/datasets/movielens/{name}",), sha256)


def dat_movies(file: File, encoding: str) -> Iterator[Movie]:
    """The movies of a `movies.dat`: id::title::genre|genre."""
    for movie, fields in identified(records(file, "::", 3, encoding), file):
        yield Movie(movie, fields[1], genres(fields[2]))


def csv_movies(file: File) -> Iterator[Movie]:
    """The movies of a `movies.csv`: id,title,genre|genre, titles with a comma in quotes."""
    for movie, fields in identified(records(file, ",", 3, header=1, quoted=True), file):
        yield Movie(movie, fields[1], genres(fields[2]))


def genres(text: str) -> list[str]:
    """The genres in a text, separated by bars; empty if no genres are listed."""
    return [] if text in ("", "(no genres listed)") else text.split("|")


def features(asked: str, movies: Iterable[Movie]) -> Features | None:
    """The requested features of the movies; for `none` the movies are not read."""
    chosen = kinds(asked, KINDS)
    words: dict[str, dict[int, list[str]]] = {kind: {} for kind in chosen}
    for movie in movies if chosen else ():
        for kind in chosen:
            words[kind][movie.id] = _words(movie, kind)
    return Features(words) if chosen else None


def _words(movie: Movie, kind: str) -> list[str]:
    """The movie's features of one kind."""
    if kind == "genres":
        return movie.genres
    return title_words(movie.title) if kind == "titles" else decade(movie.title)


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
