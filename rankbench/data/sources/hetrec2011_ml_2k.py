"""HetRec 2011 MovieLens 2K (Cantador, Brusilovsky and Kuflik): users of MovieLens 10M who gave tags, with directors."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from rankbench.core.errors import UserError
from rankbench.data.building import Counts, expect, ratings
from rankbench.data.features import Features, decade, kinds, title_words
from rankbench.data.files import Files
from rankbench.data.origins import Download
from rankbench.data.parsed import FromFiles
from rankbench.data.publications import Publication
from rankbench.data.tables import Rows, identified, read, records
from rankbench.data.tables.layout import Layout
from rankbench.data.views import Ratings

Words = dict[int, list[str]]  # movie id -> words

_COUNTS = {"full": Counts(855_598, 2_113, 10_109), "slice": Counts(10_102, 38, 3_260)}  # 10,197 movies are listed
_RATINGS = Layout(separator="\t", header=1, scale=(0.5, 5), step=0.5)
_WHOLE = ("user_ratedmovies.dat", "user_ratedmovies-timestamps.dat")  # they differ only in the format of times
_PARTS = ("train_user_ratings.dat", "test_user_ratings.dat")
_MOVIES = (("movies.dat",), ("movie_genres.dat",), ("movie_directors.dat",))
_FULL = Publication(
    name="hetrec2011-ml-2k",
    size=str(_COUNTS["full"]),
    licence="GroupLens and HetRec 2011: research, non-commercial",
    home="GroupLens, https://grouplens.org/datasets/hetrec-2011/",
    needs=(_WHOLE, *_MOVIES),
    downloads=(
        Download(
            "hetrec2011-movielens-2k-v2.zip",
            ("https://files.grouplens.org/datasets/hetrec2011/hetrec2011-movielens-2k-v2.zip",),
        ),
    ),
    hashes={
        "movies.dat": "f55b1664fe154ce23289c6d47b9e35d2c7fc4798d059e382c402fb9bf8bc3713",
        "movie_genres.dat": "59d31eb835f653062b9ac8c6b89ba3e986f2325d97d3f201c511f95683afeb6f",
        "movie_directors.dat": "9308c8c373e95035e571f4b443ae77214ae09d92279fd3b7492275b605b31a8b",
        "train_user_ratings.dat": "2386ee09763cd1f2f3d85cfc43c86f3510f471030390f7d4acf86424b6814f3f",
        "test_user_ratings.dat": "40adb88e4ab1c4dd3e7e71bb409336dc46170f239f99b56d9677af328449ecb7",
    },
)
_ORIGINS = {
    "full": _FULL,
    "slice": replace(
        _FULL,
        spec="hetrec2011-ml-2k[edition=slice]",
        size=str(_COUNTS["slice"]),
        needs=((_PARTS[0],), (_PARTS[1],), *_MOVIES),
        downloads=(),
        how=f"a third party's {' and '.join(_PARTS)} beside the published files of movies",
    ),
}


@dataclass(frozen=True)
class HetRecMovieLens2K(FromFiles):
    """2,113 users, 10,109 rated movies, 855,598 ratings from 0.5 to 5; the slice: 38, 3,260 and 10,102.

    `features` joins any of genres, directors, titles and decades by +. The slice is a third party's extract; that
    party's test rows are its only fold.
    """

    edition: Literal["full", "slice"] = "full"
    features: str = "genres+directors"
    title: ClassVar = "HetRec 2011"
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        kinds(self.features, tuple(_WORDS))

    @property
    def origin(self) -> Publication:
        """The origin of this edition."""
        return _ORIGINS[self.edition]

    def _parse(self, files: Files) -> Ratings:
        if remedy := self.origin.missing():
            raise UserError(f"hetrec2011-ml-2k[edition={self.edition}] is not at hand: {remedy}")
        features = item_features(files, self.features)
        if self.edition == "full":
            view = ratings(read(files.find(*_WHOLE), _RATINGS), features)
        else:
            train, test = (read(files.find(name), _RATINGS) for name in _PARTS)
            view = _joined(train, test, features)
        expect(view, _COUNTS[self.edition], f"hetrec2011-ml-2k[edition={self.edition}]")
        return view


def _joined(train: Rows, test: Rows, features: Features | None) -> Ratings:
    """The view of two files without a common (user, item) pair; the rows of the second file are fold 1."""
    for part in (train, test):
        ratings(part)  # raises an error if a pair occurs twice in one file
    known = set(_pairs(train))
    for row, (user, item) in enumerate(_pairs(test)):
        if (user, item) in known:
            test.complain(row, f"user {user}, item {item} is in {train.file} already: keep one of the two rows")
    both, folds = train.followed_by(test)
    return ratings(both, features, folds=folds)


def _pairs(rows: Rows) -> Iterator[tuple[int, int]]:
    users, items = rows.ids
    return zip(users.tolist(), items.tolist(), strict=True)


def item_features(files: Files, asked: str) -> Features | None:
    """The requested features of all listed movies, rated or not; None for `none`."""
    chosen = kinds(asked, tuple(_WORDS))
    return Features({kind: _of_movies(files, *_WORDS[kind]) for kind in chosen}) if chosen else None


def _of_movies(files: Files, name: str, least: int, words: Callable[[list[str]], list[str]]) -> Words:
    """The words of each movie, from the fields of all rows about it; a row has at least so many fields."""
    file = files.find(name)
    found: Words = {}
    for movie, fields in identified(records(file, "\t", least, "latin-1", header=1), file):
        found.setdefault(movie, []).extend(words(fields))
    return found


_WORDS: dict[str, tuple[str, int, Callable[[list[str]], list[str]]]] = {
    "genres": ("movie_genres.dat", 2, lambda fields: [fields[1]]),
    "directors": ("movie_directors.dat", 2, lambda fields: [fields[1]]),  # by their ids, as some have the same name
    "titles": ("movies.dat", 2, lambda fields: title_words(fields[1])),
    "decades": ("movies.dat", 6, lambda fields: decade(f"({fields[5]})")),
}
