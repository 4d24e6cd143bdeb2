"""Code shared by all MovieLens data sets: file formats, movie features and licences."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rankbench.data.features import Features, decade, kinds, title_words
from rankbench.data.files import File
from rankbench.data.origins import Download
from rankbench.data.tables import Layout, identified, records

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
