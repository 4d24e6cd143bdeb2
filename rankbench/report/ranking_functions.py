"""The strongest features of basic ranking functions, as bar charts and as text, from stored results."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rankbench.errors import UserError
from rankbench.harness.records import RankingFunction, Study, Weight

_COLUMNS = 3  # how many functions are drawn by default
_WORDS = 8  # features shown per function and sign


@dataclass(frozen=True)
class Basis:
    """The basic ranking functions of one cell: the first repetition of a solver on a data set that has them."""

    data: str
    solver: str
    functions: tuple[RankingFunction, ...]


def bases(study: Study) -> list[Basis]:
    """The basic functions of every solver that learned some over named features, once per data set and split."""
    found: dict[tuple[str, ...], Basis] = {}
    for entry in study.entries:
        if (result := entry.good) and result.functions:
            place, solver = entry.cell.place, entry.cell.solver.written
            basis = Basis(place.data.written, solver, result.functions)
            found.setdefault((place.data.identity, place.split.identity, solver), basis)
    return list(found.values())


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
        yield "function {}: + {}; - {}".format(number, *sides)


def draw_basis(basis: Basis, columns: Sequence[int], folder: Path, name: str) -> None:
    """Write name.pdf and name.png: a panel per function, positive features above, negative below."""
    import matplotlib  # noqa: PLC0415  slow to import

    from rankbench.report.figures import COLOURS, save, style  # noqa: PLC0415

    functions = chosen(basis, columns)
    with matplotlib.rc_context(style()):
        from matplotlib.figure import Figure  # noqa: PLC0415

        bars: list[list[Weight]] = [[*one.positive[:_WORDS], *reversed(one.negative[:_WORDS])] for _, one in functions]
        size = (3.6 * len(functions), 0.9 + 0.14 * max(6, *map(len, bars)))
        figure = Figure(figsize=size, layout="constrained")
        figure.suptitle(f"{basis.solver} on {basis.data}", fontsize=8)
        axes = figure.subplots(1, len(functions), squeeze=False)[0]
        for axis, (number, _), features in zip(axes, functions, bars, strict=True):
            weights = [one.weight for one in features]
            axis.barh(range(len(features)), weights, color=[COLOURS[weight < 0] for weight in weights])
            axis.set_yticks(range(len(features)), [one.feature for one in features], fontsize=6)
            axis.invert_yaxis()
            axis.set_title(f"function {number}", fontsize=8)
        save(figure, folder, name)
