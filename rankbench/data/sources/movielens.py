"""What all MovieLens data sets share: how they are read, file formats, movie features and licences."""

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
