"""The tables that an experiment asks for: exponents of growth, ratios of rivals' seconds, how often verdicts err."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from rankbench.records.studies import Study
from rankbench.report.analysis import errors, growth, rivals
from rankbench.report.render.tables import Sheet


@dataclass(frozen=True)
class AskedTable:
    """A table that an experiment asks for: its name in files, title, lines, how to read them, and the same as CSV."""

    name: str
    title: str
    sheet: Sheet
    legend: str
    to_csv: Callable[[Study], str]


def asked_tables(study: Study) -> list[AskedTable]:
    """The tables that an experiment asks for; none for most."""
    found = []
    if grown := growth.exponent_sheet(study):
        found.append(AskedTable("exponents", "How cost grows", grown, growth.LEGEND, growth.exponents_to_csv))
    if compared := rivals.rival_sheet(study):
        found.append(AskedTable("rivals", "Beside other packages", compared, rivals.LEGEND, rivals.rivals_to_csv))
    for name, title, sheet, legend in errors.error_sheets(study):
        found.append(AskedTable(f"errors-{name}", title, sheet, legend, partial(errors.errors_to_csv, name)))
    return found
