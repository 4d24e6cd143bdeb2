"""The tables of costs that an experiment asks for: exponents of growth, and ratios of rivals' seconds."""

from collections.abc import Callable
from dataclasses import dataclass

from rankbench.records.studies import Study
from rankbench.report.analysis import exponents, rivals
from rankbench.report.render.tables import Sheet


@dataclass(frozen=True)
class CostTable:
    """A table of costs: its name in files, its title, its lines, how to read them, and the same as CSV."""

    name: str
    title: str
    sheet: Sheet
    legend: str
    to_csv: Callable[[Study], str]


def cost_tables(study: Study) -> list[CostTable]:
    """The tables of costs of an experiment; none for most."""
    found = []
    if grown := exponents.exponent_sheet(study):
        found.append(CostTable("exponents", "How cost grows", grown, exponents.LEGEND, exponents.exponents_to_csv))
    if compared := rivals.rival_sheet(study):
        found.append(CostTable("rivals", "Beside other packages", compared, rivals.LEGEND, rivals.rivals_to_csv))
    return found
