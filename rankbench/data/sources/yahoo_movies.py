"""Yahoo! Movies (Yahoo! Webscope R4, 2003), read from a user's own copy; Yahoo! gives it out on application."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rankbench.core.errors import UserError
from rankbench.data.building import Counts, Repeats, numbered, ratings
from rankbench.data.features import Features, title_words
from rankbench.data.files import Files
from rankbench.data.parsed import FromFiles
from rankbench.data.publications import Publication
from rankbench.data.tables import Rows, identified, read, records
from rankbench.data.tables.layout import Layout
from rankbench.data.views import Ratings

_TRAIN = "ydata-ymovies-user-movie-ratings-train-v1_0.txt"
_TEST = "ydata-ymovies-user-movie-ratings-test-v1_0.txt"
_CONTENT = "ydata-ymovies-movie-content-descr-v1_0.txt"
_COUNTS = {_TRAIN: Counts(211_231, 7_642, 11_915), _TEST: Counts(10_136, 2_309, 2_380)}
_LAYOUTS = {
    "13": Layout(separator="\t", fields=(0, 1, 2), scale=(1, 13), step=1),
    "5": Layout(separator="\t", fields=(0, 1, 3), scale=(1, 5), step=1),
}
_NOTHING = r"\N"  # marks an unknown field


@dataclass(frozen=True)
class YahooMovies(FromFiles):
    """7,642 users and 11,915 movies: 211,231 ratings to train on, 10,136 later ones to test on (fold 1).

    `scale` selects the original grades, from 1 for F to 13 for A+, or those that Yahoo! converted, from 1 to 5.
    The features are the words of title and synopsis, as in Cheng and others (2018), who count 106,954 items
    because they include movies without ratings. A movie that a user rated in both files keeps the later rating,
    that of the test file. `repeats` decides about a pair that occurs twice in one file.
    """

    scale: Literal["13", "5"] = "13"
    features: Literal["words", "none"] = "words"
    repeats: Repeats = "error"
    title: ClassVar = "Yahoo! Movies"
    version: ClassVar[int] = 1

    @property
    def origin(self) -> Publication:
        """The origin: the files that these settings need."""
        names = (_TRAIN, _TEST, *((_CONTENT,) if self.features == "words" else ()))
        return Publication(
            name="yahoo-movies",
            size="7,642 users, 11,915 items, 211,231 + 10,136 ratings",
            licence="Yahoo! Webscope agreement: approved non-commercial research, no redistribution",
            home="Yahoo! Research, Webscope R4: ydata-ymovies-user-movie-ratings-content-v1_0",
            needs=tuple((name,) for name in names),
            how="apply for data set R4 of Yahoo! Webscope and unpack what you receive",
        )

    def _parse(self, files: Files) -> Ratings:
        train, test = (_published(read(files.find(name), _LAYOUTS[self.scale]), name) for name in _COUNTS)
        ratings(train, repeats=self.repeats)
        ratings(test, repeats=self.repeats)
        _check_known(train, test)
        both, folds = train.followed_by(test)
        return ratings(both, self._features(files), repeats="last", folds=folds)

    def _features(self, files: Files) -> Features | None:
        """The words of each movie, from lines of id, title, synopsis and more fields."""
        if self.features == "none":
            return None
        file = files.find(_CONTENT)
        words: dict[int, list[str]] = {}
        for movie, fields in identified(records(file, "\t", 3, encoding="latin-1"), file):
            words[movie] = [word for text in fields[1:3] if text != _NOTHING for word in title_words(text)]
        return Features({"words": words})


def _published(rows: Rows, name: str) -> Rows:
    """The rows, or an error if their number is not the published one."""
    users, movies = (len(numbered(column)[0]) for column in rows.ids)
    if (found := Counts(len(rows.ids[0]), users, movies)) != _COUNTS[name]:
        raise UserError(f"{rows.file} holds {found} where {_COUNTS[name]} were published: the file is cut or changed")
    return rows


def _check_known(train: Rows, test: Rows) -> None:
    """Raise an error unless all users and items of the test file are in the training file, as published."""
    for name, known, tested in zip(train.layout.names, train.ids, test.ids, strict=False):
        if not (there := np.isin(tested, known)).all():
            row = int(np.argmin(there))
            test.complain(row, f"{name} {tested[row]} is not in {train.file}: the files are of different editions")
