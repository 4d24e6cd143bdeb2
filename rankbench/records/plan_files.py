"""The form of a plan in its file, where what its cells share is stored once; and joining the plans of several runs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any

from rankbench.core.contract import Determinism
from rankbench.experiments import Budget, Experiment
from rankbench.names import Named
from rankbench.records.cells import SOURCES, Cell, Measure, Place, Profile, Skip
from rankbench.records.codec import Unreadable, revived
from rankbench.records.plans import Failure, Plan

_PLACE = tuple(field.name for field in fields(Place) if field.name != "held")
_COLUMNS = (*_PLACE, *(field.name for field in fields(Cell) if field.name != "place"), "held")
_WHERE = {name: f"place.{name}" for name in (*_PLACE, "held")} | {"determinism": "determinism.value"}  # in a cell
_USUAL = 0, ()  # what the last columns hold where a row lacks them: `rung` and `held`
_TABLES = {  # the columns of a row that are numbers of entries in these tables
    "data": "names", "split": "names", "validation": "names", "solver": "names", "measures": "measures",
    "budget": "budgets",
}  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """Cells in rows, with the names, metrics and budgets that the rows refer to by number."""

    names: tuple[Named, ...]
    measures: tuple[tuple[Measure, ...], ...]
    budgets: tuple[Budget, ...]
    cells: tuple[tuple[Any, ...], ...]  # with a value for each of `_COLUMNS`; the last ones may be lacking


@dataclass(frozen=True)
class PlanFile:
    """A plan in the form of its file."""

    experiment: Experiment
    profile: Profile
    seed: int
    made: str
    measures: tuple[Measure, ...]
    skips: tuple[Skip, ...]
    cells: Rows  # the planned cells, then the trials
    failures: tuple[str, ...]  # one for each planned cell, empty for a cell that can run


def file_of(plan: Plan) -> PlanFile:
    """The form in which a plan is stored."""
    failures = tuple(map(plan.reason, plan.planned))
    about = (plan.experiment, plan.profile, plan.seed, plan.made, plan.measures, plan.skips)
    return PlanFile(*about, cells=_rows(plan.everything), failures=failures)


def plan_of(content: object, like: Plan | None = None) -> Plan:
    """The plan in a file's parsed content; its cells are not made anew if it equals `like`, a plan that is known."""
    found = revived(PlanFile, content)
    if like and found == file_of(replace(like, made=found.made)):
        return replace(like, made=found.made, searches=())
    cells = _cells(found.cells)
    planned = cells[: len(found.failures)]
    known = [cell.is_trial for cell in cells] == [place >= len(found.failures) for place in range(len(cells))]
    if not known or len({cell.slot for cell in cells}) < len(cells):
        raise Unreadable("its cells are not those of a plan, each once, and then its trials")
    failures = tuple(Failure(cell, reason) for cell, reason in zip(planned, found.failures, strict=False) if reason)
    about = (found.experiment, found.profile, found.seed, found.measures)
    return Plan(*about, planned, found.skips, cells[len(planned) :], failures, made=found.made)


def _rows(cells: tuple[Cell, ...]) -> Rows:
    columns: dict[str, list[Any]] = {name: [*map(attrgetter(_WHERE.get(name, name)), cells)] for name in _COLUMNS}
    tables: dict[str, tuple[Any, ...]] = {}
    for table in dict.fromkeys(_TABLES.values()):
        sharing = [name for name, found in _TABLES.items() if found == table]
        objects = {id(entry): entry for row in zip(*map(columns.get, sharing), strict=True) for entry in row}
        tables[table] = tuple(dict.fromkeys(entry for entry in objects.values() if entry is not None))
        numbers = {entry: number for number, entry in enumerate(tables[table])}
        known = {key: numbers.get(entry) for key, entry in objects.items()}  # hashing each cell's names would be slow
        for name in sharing:
            columns[name] = [known[id(entry)] for entry in columns[name]]
    rows = zip(*columns.values(), strict=True)
    return Rows(**tables, cells=tuple(row if row[-1] else row[:-1] for row in rows))


def _cells(rows: Rows) -> tuple[Cell, ...]:
    """The cells of the rows; those of one place share one record."""
    meanings = _meanings(rows)
    places: dict[object, Place] = {}
    try:
        return tuple(_cell(row, meanings, places) for row in rows.cells)
    except (ValueError, TypeError, KeyError) as error:
        raise Unreadable(f"a cell of the plan cannot be read: {error!r}") from None


def _meanings(rows: Rows) -> list[dict[Any, Any] | None]:
    """For each column but `held` what its values stand for; None where they stand for themselves."""
    tables: dict[str, dict[Any, Any]] = {name: dict(enumerate(getattr(rows, table))) for name, table in _TABLES.items()}
    tables["validation"][None] = None
    tables["determinism"] = {kind.value: kind for kind in Determinism}
    return [tables.get(name) for name in _COLUMNS[:-1]]


def _cell(row: tuple[Any, ...], meanings: list[dict[Any, Any] | None], places: dict[object, Place]) -> Cell:
    lacking = len(_COLUMNS) - len(row)
    if not 0 <= lacking <= len(_USUAL):
        raise ValueError(f"{len(row)} values, not {len(_COLUMNS)}")
    values = [*row, *_USUAL[len(_USUAL) - lacking :]]
    held = values.pop()
    where = (*values[: len(_PLACE)], held)
    found = [entry if table is None else table[entry] for entry, table in zip(values, meanings, strict=True)]
    if where not in places:
        if not set(held) <= set(SOURCES):
            raise ValueError(f"held: {held}")
        places[where] = Place(*[*found[: len(_PLACE)], tuple(held)])
    return Cell(places[where], *found[len(_PLACE) :])


def joined(earlier: Plan, plan: Plan) -> Plan:
    """The earlier plan, with the cells of the new one in the slots that both have, and its further cells at the end."""
    editions: dict[str, set[object]] = {}
    for cell in plan.everything:
        editions.setdefault(cell.line, set()).add(cell.edition)

    def current(cell: Cell) -> bool:
        """Whether a cell has the same edition (content of files, solver version) as its repetitions in the new plan."""
        return cell.edition in editions.get(cell.line, {cell.edition})

    def in_slots(before: tuple[Cell, ...], now: tuple[Cell, ...]) -> tuple[Cell, ...]:
        return tuple(filter(current, {cell.slot: cell for cell in (*before, *now)}.values()))

    planned = in_slots(earlier.planned, plan.planned)
    again, left = {cell.slot for cell in plan.planned}, {cell.slot for cell in planned}
    before = (failure for failure in earlier.failures if failure.cell.slot in left - again)
    failures = (*before, *plan.failures)
    skips = tuple(dict.fromkeys((*plan.skips, *_unanswered(earlier.skips, planned))))
    trials = in_slots(earlier.trials, plan.trials)
    return replace(plan, planned=planned, trials=trials, skips=skips, failures=failures)


def without_answered(plan: Plan) -> Plan:
    """The plan without the skips for which another machine had what was missing."""
    return replace(plan, skips=tuple(_unanswered(plan.skips, plan.planned)))


def _unanswered(skips: Iterable[Skip], planned: tuple[Cell, ...]) -> Iterator[Skip]:
    """The skips of data, splits and solvers of which no cell is planned."""
    known = {cell.parts for cell in planned}
    return (skip for skip in skips if not any(map(skip.covers, known)))
