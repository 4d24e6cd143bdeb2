"""MovieLens latest-small: the edition of October 2016, from files or a package, and the edition of September 2018."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np

from rankbench.arrays.npz import Arrays
from rankbench.core.errors import UserError
from rankbench.data.building import Counts, expect, ratings
from rankbench.data.features import kinds
from rankbench.data.files import File, Files, folders
from rankbench.data.origins import Download, Held, Tell
from rankbench.data.parsed import FromFiles
from rankbench.data.sources.movielens import CSV, KINDS, OPEN, Movie, csv_movies, download, features, genres
from rankbench.data.sources.rdatasets import Shipped
from rankbench.data.tables import Rows, read
from rankbench.data.views import Ratings
from rankbench.names import Limits

_NAME = "ml-latest-small"
_COLUMNS = ("userId", "movieId", "rating", "timestamp", "title", "year", "genres")
_UNDATED = {  # movies without a year, whose titles are missing in the package
    108548: "Big Bang Theory, The (2007-)",
    108583: "Fawlty Towers (1975-1979)",
    143410: "Hyena Road",
    151307: "The Lovers and the Despot",
    162376: "Stranger Things",
}


@dataclass(frozen=True)
class Offered:
    """An archive to download from GroupLens; `asked` is the data set's name with settings."""

    asked: str
    archive: Download

    def missing(self) -> str:
        """The command that downloads the archive."""
        return f"rankbench data fetch {self.asked}"

    def held(self) -> list[Held]:
        """No files: the archive is not downloaded yet."""
        return []

    def files(self) -> Files:
        """Raise an error, because the archive is not downloaded yet."""
        raise UserError(f"{self.asked} is not at hand: {self.missing()}")

    def fetch(self, tell: Tell) -> None:
        """Download the archive into the cache."""
        from rankbench.data.fetching import fetch  # noqa: PLC0415  the network is rarely needed

        fetch(self.archive, folders(_NAME)[-1], tell, f"rankbench data import {self.asked} PATH")


@dataclass(frozen=True)
class Edition:
    """The origin of one edition: its files if they are available, else the download or package `elsewhere`.

    The files of all editions have the same names, so an edition is recognised by its first rating.
    """

    counts: Counts
    first: str
    elsewhere: Shipped | Offered
    hashes: tuple[tuple[str, str], ...] = ()
    name: str = _NAME
    licence: str = OPEN
    home: str = "GroupLens, https://grouplens.org/datasets/movielens/latest/"

    @property
    def size(self) -> str:
        """Users, items and rows, in words."""
        return str(self.counts)

    def missing(self) -> str | None:
        """The command that gets the data, or None if it is available."""
        return None if self._complete() else self.elsewhere.missing()

    def held(self) -> list[Held]:
        """This edition's files with their published hashes, or those of `elsewhere`."""
        published = dict(self.hashes)
        own = [Held(path, published.get(path.name)) for path in self._own().paths]
        return own if self._complete() else self.elsewhere.held()

    def fetch(self, tell: Tell) -> None:
        """Download the edition if it is missing."""
        if not self._complete():
            self.elsewhere.fetch(tell)

    def files(self) -> Files:
        """This edition's files, or those of `elsewhere`."""
        return self._own() if self._complete() else self.elsewhere.files()

    def _complete(self) -> bool:
        own = self._own()
        return own.has("ratings.csv") and own.has("movies.csv")

    def _own(self) -> Files:
        """The files in the data set's folders that belong to this edition."""
        paths = Files.of(_NAME).paths
        return Files(_NAME, tuple(path for path in paths if _first_rating(path, paths) == self.first))


_EDITIONS = {
    "2016": Edition(
        Counts(100_004, 671, 9_066),
        "1,31,2.5,1260759144",
        Shipped("dslabs", "movielens", str(Counts(100_004, 671, 9_066)), OPEN, "GroupLens, by way of R's dslabs"),
        (
            ("ratings.csv", "b4239649fbf90ebf405c56c3ae1d929d9e7c86fc1a3a80cbef1c884df593ef73"),
            ("movies.csv", "43d1736d3c688eb5b7856473c36d86a1c345676cab256c91720c1f6984d263b5"),
            ("tags.csv", "ba8789ec2e7894bcb29a1762b2f9fb34bad7f288be6b4d8388e86af2138d430e"),
            ("links.csv", "43a1bd034acb25dc59149eee2999f5e6817113e334853fbe6e36998972b10706"),
        ),
    ),
    "2018": Edition(
        Counts(100_836, 610, 9_724),
        "1,1,4.0,964982703",
        Offered(
            f"{_NAME}[edition=2018]",
            download(f"{_NAME}.zip", "696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436"),
        ),
        ((f"{_NAME}.zip", "696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436"),),
    ),
}


@dataclass(frozen=True)
class MovieLensLatestSmall(FromFiles):
    """671 users, 9,066 rated movies, 100,004 ratings from 0.5 to 5; in 2018: 610, 9,724 and 100,836.

    With `least` above 1, movies with fewer ratings are left out. `features` joins any of genres, titles
    and decades by +.
    """

    least: Annotated[int, Limits(low=1)] = 1
    edition: Literal["2016", "2018"] = "2016"
    features: str = "genres+decades"
    title: ClassVar = "MovieLens latest-small"
    version: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        kinds(self.features, KINDS)

    @property
    def origin(self) -> Edition:
        """The origin of this edition."""
        return _EDITIONS[self.edition]

    def _parse(self, files: Files) -> Ratings:
        whole = self._from_files(files) if files.has("ratings.csv") else self._from_package(files)
        expect(whole, self.origin.counts, _NAME)
        return _often_rated(whole, self.least)

    def _from_files(self, files: Files) -> Ratings:
        movies = csv_movies(files.find("movies.csv"))
        return ratings(read(files.find("ratings.csv"), CSV), features(self.features, movies))

    def _from_package(self, files: Files) -> Ratings:
        assert isinstance(self.origin.elsewhere, Shipped)
        table = self.origin.elsewhere.columns(_COLUMNS)
        times = table["timestamp"].astype(np.int64)
        rows = Rows(File(files.paths[0]), CSV, (table["userId"], table["movieId"]), table["rating"], times=times)
        return ratings(rows, features(self.features, _movies(table)))


def _first_rating(path: Path, paths: tuple[Path, ...]) -> str | None:
    """The first row of the `ratings.csv` in an archive, or of the `ratings.csv` beside a loose file."""
    source = path if path.suffix == ".zip" else path.with_name("ratings.csv")
    files = Files(_NAME, (source,) if source in paths else ())
    if not files.has("ratings.csv"):
        return None
    with files.find("ratings.csv").open() as stream:
        stream.readline()  # the header
        return stream.readline().decode("latin-1").strip()


def _movies(table: Arrays) -> Iterator[Movie]:
    """The movies of the package's table, which repeats a movie for each of its ratings."""
    movies, rows = np.unique(table["movieId"], return_index=True)
    titles, years, listed = (table[column][rows] for column in ("title", "year", "genres"))
    for movie, title, year, text in zip(movies.tolist(), titles, years, listed, strict=True):
        dated = f"{title} ({year:.0f})" if title else _UNDATED.get(movie, "")
        yield Movie(movie, dated, genres(str(text)))


def _often_rated(view: Ratings, least: int) -> Ratings:
    """The ratings of items with at least `least` ratings; all users and feature columns are kept."""
    counts = np.bincount(view.items, minlength=view.n_items)
    kept, chosen = counts[view.items] >= least, np.flatnonzero(counts >= least)
    if len(chosen) == 0:
        raise UserError(f"{_NAME}: least={least} leaves no movie: the most rated one has {counts.max()} ratings")
    return Ratings.from_triples(
        view.users[kept],
        np.searchsorted(chosen, view.items[kept]),
        view.values[kept],
        view.n_users,
        len(chosen),
        None if view.item_features is None else view.item_features[chosen],
        times=None if view.times is None else view.times[kept],
        feature_names=view.feature_names,
        user_ids=view.user_ids,
        item_ids=view.item_ids[chosen],
    )
