"""The strongest features of basic ranking functions, as bar charts and as text, from stored results."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rankbench.core.errors import UserError
from rankbench.core.texts import figure_text
from rankbench.records.results import RankingFunction, Weight
from rankbench.records.studies import Study
from rankbench.report.render.labels import data_labels, solver_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_COLUMNS = 3  # how many functions are drawn by default
_DRAWN = 25  # features drawn per function and sign, as in Figures 2 and 3 of Cheng et al. 2018
_WORDS = 8  # the same in a line of text
_LONG = 24  # letters of a feature's name that are shown


@dataclass(frozen=True)
class Basis:
    """The basic ranking functions of one cell: the first repetition of a solver on a data set that has them."""

    data: str
    solver: str
    functions: tuple[RankingFunction, ...]
    title: str = ""  # solver and data set by their names for people


def bases(study: Study) -> list[Basis]:
    """The basic functions of every solver that learned some over named features, once per data set (its last split)."""
    found: dict[tuple[str, ...], Basis] = {}
    solvers, data = solver_labels(study), data_labels(study)
    for entry in study.entries:
        if (result := entry.good) and result.functions:
            place, solver = entry.cell.place, entry.cell.solver.written
            title = f"{solvers[solver]} on {data[place.data.written]}"
            basis = Basis(place.data.written, solver, result.functions, title)
            found.setdefault((place.data.identity, place.split.identity, solver), basis)
    return list({(data, solver): basis for (data, _, solver), basis in found.items()}.values())


def examples(study: Study) -> list[Basis]:
    """Of each kind of solver the first of its `bases`: those that a report shows, if not of rivals in speed."""
    if study.experiment.rivals:
        return []
    kinds: dict[str, Basis] = {}
    for basis in bases(study):
        kinds.setdefault(basis.solver.partition("[")[0], basis)
    return list(kinds.values())


def chosen(basis: Basis, columns: Sequence[int]) -> list[tuple[int, RankingFunction]]:
    """The functions with these numbers, counted from 1, as (number, function); by default the first few."""
    if unknown := [column for column in columns if not 1 <= column <= len(basis.functions)]:
        raise UserError(f"no column {unknown[0]}: {basis.solver} has stored columns 1 to {len(basis.functions)}")
    wanted = columns or range(1, min(_COLUMNS, len(basis.functions)) + 1)
    return [(column, basis.functions[column - 1]) for column in wanted]


def described(basis: Basis) -> Iterator[str]:
    """A line for each of the first functions: its strongest features with positive and negative weights."""
    for number, function in chosen(basis, ()):
        sides = (", ".join(one.feature for one in side[:_WORDS]) for side in (function.positive, function.negative))
        yield "{}, function {}: + {}; - {}".format(basis.title, number, *sides)


def draw_bases(sheet: Sequence[Basis], columns: Sequence[int], folder: Path, name: str) -> None:
    """Write name.pdf and name.png: a row for each basis, in it a panel for each function with these numbers."""
    from rankbench.report.render.figures.plots import save  # noqa: PLC0415  matplotlib is slow to import

    save(partial(figure_of_bases, sheet, columns), folder, name)


def figure_of_bases(sheet: Sequence[Basis], columns: Sequence[int]) -> "Figure":
    """The figure of several bases below one another, of each the functions with these numbers."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    parts = [chosen(basis, columns) for basis in sheet]
    heights = [_height(functions) for functions in parts]
    width = 3.5 if max(map(len, parts)) == 1 else 7.2
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    rows = figure.subfigures(len(sheet), 1, squeeze=False, height_ratios=heights).ravel()
    for row, basis, functions in zip(rows, sheet, parts, strict=True):
        _draw_functions(row, basis.title, width, functions)
    return figure


def _height(functions: Sequence[tuple[int, RankingFunction]]) -> float:
    """The height of a basis in inches: room for the longest list of features in each of its lines of panels."""
    longest = max(len(one.positive[:_DRAWN]) + len(one.negative[:_DRAWN]) for _, one in functions)
    return 0.35 + -(-len(functions) // _COLUMNS) * (0.65 + 0.14 * max(6, longest))


def _draw_functions(
    figure: "SubFigure", title: str, width: float, functions: Sequence[tuple[int, RankingFunction]]
) -> None:
    """Draw the functions of a basis, three panels side by side: positive features above, negative ones below."""
    from rankbench.report.render.figures.looks import COLOURS  # noqa: PLC0415
    from rankbench.report.render.figures.plots import fill_lines  # noqa: PLC0415
    from rankbench.report.render.figures.ticks import round_ticks  # noqa: PLC0415

    bars: list[list[Weight]] = [[*one.positive[:_DRAWN], *reversed(one.negative[:_DRAWN])] for _, one in functions]
    kind = _common_kind(one.feature for features in bars for one in features)
    across = min(_COLUMNS, len(functions))
    figure.suptitle(fill_lines(figure_text(title), width - 0.3), fontsize=8)
    axes = figure.subplots(-(-len(functions) // across), across, squeeze=False).ravel()
    for axis, (number, _), features in zip(axes, functions, bars, strict=False):
        weights = [one.weight for one in features]
        axis.barh(range(len(features)), weights, color=[COLOURS[weight < 0] for weight in weights])
        axis.set_yticks(range(len(features)), [_feature(one, kind) for one in features], fontsize=6)
        axis.xaxis.set_major_locator(round_ticks(3))
        axis.yaxis.set_label_coords(0, 0.5)  # there is no label, whose place would be looked for among the names
        axis.invert_yaxis()
        axis.set_title(f"function {number}")
        axis.set_xlabel(f"weight of {figure_text(kind.rstrip(':'))}" if kind else "weight")
    for axis in axes[len(functions) :]:
        axis.set_visible(False)


def _feature(weight: Weight, kind: str) -> str:
    """The name of a feature without its kind, cut to the length that fits beside an axis."""
    return figure_text(weight.feature.removeprefix(kind).replace("_", " ")[:_LONG])


def _common_kind(features: Iterable[str]) -> str:
    """The kind that all features are of, as `genres:`; empty if they are of several kinds or of none."""
    kinds = {"".join(feature.partition(":")[:2]) if ":" in feature else "" for feature in features}
    return kinds.pop() if len(kinds) == 1 else ""
