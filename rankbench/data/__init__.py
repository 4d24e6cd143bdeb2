"""Data: the views that solvers learn from, the splits, the generators, and the real sets."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np

from rankbench.data.views import View
from rankbench.errors import UserError
from rankbench.specs import Catalogue, canonical
from rankbench.streams import stream

DATASETS = Catalogue(
    "data set",
    {
        "btl": "rankbench.data.synthetic:BTL",
        "low-rank": "rankbench.data.synthetic:LowRank",
        "magnitudes": "rankbench.data.synthetic:Magnitudes",
        "ml-latest-small": "rankbench.data.sources.ml_latest_small:MovieLensLatestSmall",
        "insteval": "rankbench.data.sources.insteval:InstEval",
    },
    "rankbench.datasets",
    "rankbench list datasets",
    needs=("version", "missing", "provenance", "view"),
)


@dataclass(frozen=True)
class Provenance:
    """Where a data set comes from and under which terms; None of a file for what is generated."""

    origin: str
    licence: str
    size: str
    file: Path | None = None
    sha256: str | None = None


class Source(Protocol):
    """A data set: a frozen record of settings that yields one view."""

    version: ClassVar[int]

    def missing(self) -> str | None:
        """The one command that would get the data, or None where it is at hand."""
        ...

    def provenance(self) -> Provenance:
        """Origin, licence and size, in words; the file and its published hash where there is one."""
        ...

    def view(self, rng: np.random.Generator) -> View:
        """The data; only generators draw from `rng`."""
        ...


def load(name: str, seed: int = 0) -> View:
    """The data set of this name, `rankbench.load("low-rank[users=500]")`; equal settings give equal bytes."""
    source: Source = DATASETS.make(name)
    rng = stream(seed, "data", canonical(name, source), source.version)
    try:
        return source.view(rng)
    except UserError:
        raise
    except Exception as error:  # a source of the user's own may raise anything
        raise UserError(f"data set {name!r} cannot be read: {type(error).__name__}: {error}") from error
