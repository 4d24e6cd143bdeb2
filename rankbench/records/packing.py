"""A compact form of a plan's cells for its file: parts that cells share are stored once and referred to by number."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rankbench.core.contract import Determinism
from rankbench.experiments import Budget
from rankbench.names import Named
from rankbench.records.cells import Cell, Measure, Place
from rankbench.records.codec import Unreadable

Thing = TypeVar("Thing", bound=Hashable)


@dataclass(frozen=True)
class Packed:
    """Cells in compact form, with the names, metrics and budgets that they refer to by number."""

    names: tuple[Named, ...]
    measures: tuple[tuple[Measure, ...], ...]
    budgets: tuple[Budget, ...]
    cells: tuple[Any, ...]  # rows: see `_row`


class _Numbers(Generic[Thing]):
    """A numbering of distinct objects in the order of their first appearance."""

    def __init__(self) -> None:
        self.found: dict[Thing, int] = {}

    def of(self, thing: Thing) -> int:
        """The object's number; a new object gets the next number."""
        return self.found.setdefault(thing, len(self.found))


def packed(cells: Iterable[Cell]) -> Packed:
    """The cells in compact form."""
    names, measures, budgets = _Numbers[Named](), _Numbers[tuple[Measure, ...]](), _Numbers[Budget]()
    rows = tuple(_row(cell, names, measures, budgets) for cell in cells)
    return Packed(tuple(names.found), tuple(measures.found), tuple(budgets.found), rows)


def unpacked(found: Packed) -> tuple[Cell, ...]:
    """The cells restored from their compact form; invalid rows are unreadable."""
    places: dict[Place, Place] = {}
    try:
        return tuple(_cell(row, found, places) for row in found.cells)
    except (IndexError, ValueError, TypeError) as error:
        raise Unreadable(f"a cell of the plan cannot be read: {error}") from None


def _row(
    cell: Cell, names: _Numbers[Named], measures: _Numbers[tuple[Measure, ...]], budgets: _Numbers[Budget]
) -> tuple[Any, ...]:
    place = cell.place
    return (
        names.of(place.data),
        names.of(place.split),
        place.repetition,
        None if place.validation is None else names.of(place.validation),
        cell.split_hash,
        cell.seed,
        names.of(cell.solver),
        cell.version,
        cell.determinism.value,
        measures.of(cell.measures),
        budgets.of(cell.budget),
        cell.every,
        cell.objective,
        cell.threads,
        cell.tuned,
        *((cell.rung,) if cell.rung else ()),
    )


def _cell(row: Sequence[Any], found: Packed, places: dict[Place, Place]) -> Cell:
    data, split, repetition, validation, split_hash, seed, solver, version, determinism, measures, budget, *more = row
    every, objective, threads, tuned, *rung = more
    cut_again = None if validation is None else found.names[validation]
    place = Place(found.names[data], found.names[split], repetition, cut_again)
    return Cell(
        place=places.setdefault(place, place),  # cells of one place share one record
        split_hash=split_hash,
        seed=seed,
        solver=found.names[solver],
        version=version,
        determinism=Determinism(determinism),
        measures=found.measures[measures],
        budget=found.budgets[budget],
        every=every,
        objective=objective,
        threads=threads,
        tuned=tuple(tuned),
        rung=int(*rung),
    )
