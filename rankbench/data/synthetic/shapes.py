"""The published shapes of data sets that cannot be downloaded: sizes, skew and rating levels, with their sources.

Sizes and the most active user are published figures. `activity` is the centre and the spread of the
normal distribution of the logarithm of a user's number of ratings, above `least`; `popularity` is s and q of
the Zipf-Mandelbrot weights (rank + q)^-s by which items are drawn. Both are fitted:

- ml-10m: the spread at which the share P of the most active users who give the share 1 - P of the ratings
  is 0.285 (KONECT prints 0.281 by a rule under which ML-1M has 0.296; counted as here, ML-1M has 0.301);
  the centre at which the mean is right. The median then comes out at 70. s and q at which the expected
  Gini index of the items is 0.805 (LensKit's data pages) and the most rated item has 34,864
  ratings (KONECT). ml-20m: the same spread; Gini 0.903 and 67,310 ratings.
- netflix: the spread at which 16,419 users have fewer than ten ratings; 232,944 ratings of the most rated
  item and a Gini index of 0.792 over all users and items (KONECT).
- hetrec2011-ml-2k, yahoo-movies: nothing is published. The spread (0.95) gives the same sum of squares of the
  users' numbers of ratings, which is proportional to the number of pairs, as ML-1M. s and q are those of ml-10m,
  of which the first is a part; the second has about as many rated items as ml-10m.
- jester: the spread at which P is 0.385 (KONECT); s and q fitted to the numbers of ratings of the 100 jokes in
  part 1 of 3, which is available (root mean square error 750 of 25,000).
- book-crossing: 2,502 ratings of the most rated book, and P = 0.264 over the books (KONECT). No spread gives the
  users' P = 0.144, for most have one rating; 3.5 comes near (0.186).
- neurosynth: every voxel ranks every term.

The levels of ml-10m, ml-20m, netflix and book-crossing are the counts that are commonly reported; they add up
to the published number of ratings (book-crossing's to 1,149,780, repeated pairs included). Those of
hetrec2011-ml-2k are ml-10m's; of yahoo-movies only the range 1 to 13 is published. Jester's quantiles are those of
part 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

Name = Literal[
    "book-crossing", "hetrec2011-ml-2k", "jester", "ml-10m", "ml-20m", "netflix", "neurosynth", "yahoo-movies"
]


@dataclass(frozen=True)
class Shape:
    """The known shape of a data set: its sizes, the skew of users and items, and the distribution of ratings."""

    users: int  # users with ratings
    items: int  # listed items; equal to `rated` unless the data set has features
    rated: int
    ratings: int
    least: int  # smallest number of ratings of a user
    most: int  # largest number of ratings of a user
    activity: tuple[float, float]
    popularity: tuple[float, float]
    levels: Mapping[float, int] | None = None  # how often each was given; only the proportions count
    quantiles: tuple[float, ...] | None = None  # of continuous ratings, evenly spaced from least to greatest
    features: int = 0
    per_item: float = 0.0  # mean number of features of an item

    def smaller(self, ratings: int) -> "Shape":
        """The same shape with fewer ratings: fewer users, each as active as before."""
        if ratings == self.ratings:
            return self
        users = max(1, round(self.users * ratings / self.ratings), -(-ratings // self.most))
        return replace(self, users=users, ratings=ratings, least=min(self.least, ratings // users))


def _levels(lowest: float, step: float, *counts: int) -> dict[float, int]:
    """Evenly spaced rating levels, with how often each was given."""
    return {lowest + index * step: count for index, count in enumerate(counts)}


_ML_10M_POPULARITY = (1.697, 97.1)
_ML_10M_LEVELS = _levels(
    0.5, 0.5,
    94_988, 384_180, 118_278, 790_306, 370_178, 2_356_676, 879_764, 2_875_850, 585_022, 1_544_812,
)  # fmt: skip
_ML_20M_LEVELS = _levels(
    0.5, 0.5,
    239_125, 680_732, 279_252, 1_430_997, 883_398, 4_291_193, 2_200_156, 5_561_926, 1_534_824, 2_898_660,
)  # fmt: skip
_NETFLIX_LEVELS = _levels(1.0, 1.0, 4_617_990, 10_132_080, 28_811_247, 33_750_958, 23_168_232)
_BOOK_CROSSING_LEVELS = _levels(
    0.0, 1.0,
    716_109, 1_770, 2_759, 5_996, 8_904, 50_974, 36_924, 76_457, 103_736, 67_541, 78_610,
)  # fmt: skip
_JESTER_QUANTILES = (
    -9.95, -8.74, -7.14, -5.68, -4.22, -2.96, -1.7, -0.68, -0.05, 0.73, 1.5,
    2.23, 2.91, 3.59, 4.32, 5.1, 5.87, 6.7, 7.57, 8.54, 10.0,
)  # fmt: skip

SHAPES: dict[str, Shape] = {
    "ml-10m": Shape(  # 71,567 users are published, 69,878 have ratings; of 10,681 movies 10,677 have
        users=69_878,
        items=10_677,
        rated=10_677,
        ratings=10_000_054,
        least=20,
        most=7_359,
        activity=(3.785, 1.33),
        popularity=_ML_10M_POPULARITY,
        levels=_ML_10M_LEVELS,
    ),
    "ml-20m": Shape(  # features: Cheng's Table 3; in the mean two genres and 17 of the set's 465,564 tags
        users=138_493,
        items=27_278,
        rated=26_744,
        ratings=20_000_263,
        least=20,
        most=9_254,
        activity=(3.797, 1.33),
        popularity=(1.843, 121.6),
        levels=_ML_20M_LEVELS,
        features=15_603,
        per_item=19.0,
    ),
    "netflix": Shape(
        users=480_189,
        items=17_770,
        rated=17_770,
        ratings=100_480_507,
        least=1,
        most=17_653,
        activity=(4.55, 1.26),
        popularity=(2.178, 219.9),
        levels=_NETFLIX_LEVELS,
    ),
    "hetrec2011-ml-2k": Shape(  # Cheng's Table 3 has 2,133 users; features: in the mean two genres and a country
        users=2_113,
        items=10_197,
        rated=10_109,
        ratings=855_598,
        least=20,
        most=10_109,
        activity=(5.55, 0.95),
        popularity=_ML_10M_POPULARITY,
        levels=_ML_10M_LEVELS,
        features=173,
        per_item=3.0,
    ),
    "yahoo-movies": Shape(  # Cheng's Table 3; ratings and rated movies by the set's own readme; 60 words are a guess
        users=7_642,
        items=106_954,
        rated=11_915,
        ratings=211_231,
        least=10,
        most=11_915,
        activity=(2.423, 0.95),
        popularity=_ML_10M_POPULARITY,
        levels=_levels(1.0, 1.0, *[1] * 13),
        features=194_697,
        per_item=60.0,
    ),
    "jester": Shape(  # all three parts; Cortes has 73,496 users and 4.1M ratings
        users=73_421,
        items=100,
        rated=100,
        ratings=4_136_360,
        least=15,
        most=100,
        activity=(3.76, 0.91),
        popularity=(14.0, 80.0),
        quantiles=_JESTER_QUANTILES,
    ),
    "book-crossing": Shape(  # KONECT, without repeats; Cortes has the 278,858 members and 271,379 books listed
        users=105_278,
        items=340_523,
        rated=340_523,
        ratings=1_149_739,
        least=1,
        most=13_601,
        activity=(-8.232, 3.5),
        popularity=(1.094, 37.6),
        levels=_BOOK_CROSSING_LEVELS,
    ),
    "neurosynth": Shape(  # Gunasekar: 3,169 terms ranked for each of 1,231 voxels
        users=1_231,
        items=3_169,
        rated=3_169,
        ratings=1_231 * 3_169,
        least=3_169,
        most=3_169,
        activity=(8.0, 1.0),
        popularity=(1.0, 1.0),
    ),
}
