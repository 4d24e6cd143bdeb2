"""Whether the chances of a model can be believed: `reliability(model, split)`."""

from dataclasses import astuple, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankbench.core.errors import UserError, writing_to
from rankbench.data.splits import Split
from rankbench.data.views import Comparisons
from rankbench.metrics.reliability import Bin, bins_of, gaps_of, log_losses, squared_errors
from rankbench.report.render.tables import csv_text

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

_FIGURES = (".png", ".pdf", ".svg")
_COLUMNS = [field.name for field in fields(Bin)]


@dataclass(frozen=True, eq=False)
class Reliability:
    """How often the item with the higher score won, by the chance that the model gave it."""

    bins: tuple[Bin, ...]
    log_loss: float  # mean over comparisons
    brier: float
    left_out: int  # comparisons of an item without a score

    @cached_property
    def frame(self) -> "pandas.DataFrame":
        """A row for each bin: its ends, comparisons, mean chance, and share of wins with its 95 % interval."""
        import pandas  # noqa: PLC0415  slow to import

        return pandas.DataFrame([astuple(one) for one in self.bins], columns=_COLUMNS)

    @property
    def error(self) -> float:
        """The expected calibration error: the mean over comparisons of the distance of chance and share in a bin."""
        sizes = np.array([one.comparisons for one in self.bins])
        distances = np.array([abs(one.chance - one.share) for one in self.bins])
        return float(sizes @ distances / sizes.sum())

    def plot(self) -> "Figure":
        """The reliability diagram."""
        from rankbench.report.render.reliability import reliability_figure  # noqa: PLC0415  imports matplotlib

        return reliability_figure(self.bins)

    def save(self, path: str | Path) -> None:
        """Write the table as .csv, or the diagram as .png, .pdf or .svg."""
        place = Path(path)
        if place.suffix not in (".csv", *_FIGURES):
            raise UserError(f"{place} has another ending", remedy=f"known: .csv, {', '.join(_FIGURES)}")
        with writing_to(place, "choose another file"):
            if place.suffix == ".csv":
                place.write_text(csv_text(_COLUMNS, map(astuple, self.bins)), encoding="utf-8")
            else:
                self.plot().savefig(place)

    def __repr__(self) -> str:
        lines = [
            f"{one.low:.2f} to {one.high:.2f}: {one.share:.3f} won, {one.share_low:.3f} to {one.share_high:.3f}, "
            f"where {one.chance:.3f} was given ({one.comparisons:,})"
            for one in self.bins
        ]
        left_out = [f"{self.left_out:,} comparisons of an item without a score are left out"] if self.left_out else []
        whole = f"log loss {self.log_loss:.4f}, Brier score {self.brier:.4f}, calibration error {self.error:.4f}"
        return "\n".join([*lines, whole, *left_out])


def reliability(model: Any, test: Comparisons | Split, *, bins: int = 10) -> Reliability:
    """How often the item with the higher score won, by the chance 1 / (1 + e^-d) that the model gave it.

    Parameters
    ----------
    model : Model
        What `fit` or `load` returned, perhaps `calibrated`, or anything with a method `score`.
    test : Comparisons or Split
        Comparisons that were held out, or a split that has some.
    bins : int
        Into how many bins of equal width the chances from 1/2 to 1 fall.

    Returns
    -------
    Reliability
        With the table as `frame`, `plot()` and `save(path)` for the diagram, and log loss, Brier score and calibration
        error over all comparisons alike.
    """
    part = test.test if isinstance(test, Split) else test
    if not isinstance(part, Comparisons):
        raise UserError(
            f"chances are of comparisons, and these are {type(part).__name__}",
            remedy="pass Comparisons, such as ratings.comparisons()",
        )
    if not isinstance(bins, int) or bins < 1:
        raise UserError(f"bins={bins!r} is not valid", remedy="give a whole number of at least 1")
    gaps = gaps_of(model, part)
    known = gaps[~np.isnan(gaps)]
    if not len(known):
        raise UserError("the model has scores for none of these comparisons", remedy="give others")
    found = tuple(bins_of(gaps, part.users, part.n_users, bins))
    return Reliability(
        found, float(log_losses(known).mean()), float(squared_errors(known).mean()), len(gaps) - len(known)
    )
