"""Data sets and splits: the views that solvers learn from, the splits, generators and real data sets."""

from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np

from rankbench.core.errors import UserError
from rankbench.core.streams import stream
from rankbench.core.texts import error_text
from rankbench.data.origins import Generated, Origin
from rankbench.data.parsed import FromFiles
from rankbench.data.views import View
from rankbench.names import Named, Registry
from rankbench.names.user_files import is_file, own_path

COLUMNAR = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}  # how files in columns end, and the kinds of data sets that they are


class _DataSets(Registry):
    """The names of data sets, which tells whoever names a file without its kind how to write it."""

    def absent(self, name: str) -> UserError:
        """The error for a name that the registry does not have."""
        path = own_path(name)
        if not is_file(path):
            return super().absent(name)
        kind = COLUMNAR.get(Path(path.name.removesuffix(".gz")).suffix.lower())
        written = f"{kind}:{name}" if kind else f"csv:{name}, or pairs:{name} if it has a better and a worse item"
        return UserError(f"{name!r} is a file, and here its name needs its kind before it", remedy=f"write {written}")


DATASETS = _DataSets(
    "data set",
    {
        "btl": "rankbench.data.synthetic:BTL",
        "low-rank": "rankbench.data.synthetic:LowRank",
        "feature-low-rank": "rankbench.data.synthetic:FeatureLowRank",
        "monotone": "rankbench.data.synthetic:Monotone",
        "partial-orders": "rankbench.data.synthetic:PartialOrders",
        "magnitudes": "rankbench.data.synthetic:Magnitudes",
        "arena": "rankbench.data.synthetic.arena:Arena",
        "lookalike:": "rankbench.data.synthetic:Lookalike",
        "ml-100k": "rankbench.data.sources.ml_100k:MovieLens100K",
        "ml-1m": "rankbench.data.sources.ml_1m:MovieLens1M",
        "ml-10m": "rankbench.data.sources.ml_10m:MovieLens10M",
        "ml-20m": "rankbench.data.sources.ml_20m:MovieLens20M",
        "ml-latest-small": "rankbench.data.sources.ml_latest_small:MovieLensLatestSmall",
        "hetrec2011-ml-2k": "rankbench.data.sources.hetrec2011_ml_2k:HetRecMovieLens2K",
        "jester": "rankbench.data.sources.jester:Jester",
        "book-crossing": "rankbench.data.sources.book_crossing:BookCrossing",
        "netflix": "rankbench.data.sources.netflix:Netflix",
        "yahoo-movies": "rankbench.data.sources.yahoo_movies:YahooMovies",
        "neurosynth": "rankbench.data.sources.neurosynth:Neurosynth",
        "neuroquery": "rankbench.data.sources.neuroquery:NeuroQuery",
        "sushi": "rankbench.data.sources.sushi:Sushi",
        "llmfao": "rankbench.data.sources.llmfao:LLMFAO",
        "insteval": "rankbench.data.sources.insteval:InstEval",
        "csv:": "rankbench.data.sources.csv_ratings:OwnRatings",
        "parquet:": "rankbench.data.sources.columnar_ratings:OwnColumns",
        "arrow:": "rankbench.data.sources.columnar_ratings:OwnColumns",
        "json:": "rankbench.data.sources.columnar_ratings:OwnColumns",
        "pairs:": "rankbench.data.sources.csv_pairs:OwnPairs",
        "votes:": "rankbench.leaderboards.sources.own_votes:OwnVotes",
        "preflib:": "rankbench.leaderboards.sources.own_votes:OwnVotes",
    },
    "rankbench.datasets",
    "rankbench list datasets",
    needs=("version", "origin", "view"),
)


class Source(Protocol):
    """A data set: a frozen dataclass of settings that makes a view (ratings or comparisons)."""

    version: ClassVar[int]

    @property
    def origin(self) -> Origin:
        """Where the data comes from, its licence, and whether it is available."""
        ...

    def view(self, rng: np.random.Generator) -> View:
        """The data; only generators draw from `rng`."""
        ...


def load(name: str | Named, seed: int = 0, repetition: int = 0) -> View:
    """Load the data set of this name, `rankbench.load("low-rank[users=500]")`; equal settings give equal bytes.

    Generated data is drawn anew for each repetition.
    """
    written, source = (name, DATASETS.make(name)) if isinstance(name, str) else (name.written, name.record)
    try:
        if isinstance(source, FromFiles):  # nothing is drawn by its name, for which its files would be hashed
            return source.view()  # type: ignore[no-any-return]
        named = DATASETS.resolve(name) if isinstance(name, str) else name
        return source.view(generator(named, seed, repetition))  # type: ignore[no-any-return]
    except UserError:
        raise
    except Exception as error:  # a user's own data set may raise anything
        problem = f"data set {written!r} cannot be read: {error_text(error)}"
        raise UserError(problem) from error


def generator(named: Named, seed: int = 0, repetition: int = 0) -> np.random.Generator:
    """The random numbers that a data set is drawn with."""
    anew = (repetition,) if repetition and drawn_anew(named) else ()
    return stream(seed, "data", named.identity, named.record.version, *anew)


def drawn_anew(named: Named) -> bool:
    """Whether each repetition has data of its own, because the data set is generated."""
    return isinstance(named.record.origin, Generated)
