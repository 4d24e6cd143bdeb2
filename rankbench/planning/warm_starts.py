"""Paths of penalties: the trials of a search that differ only in a penalty, each starting from the model before it.

The first trial of a path has the strongest penalty, whose model is the simplest. Only solvers that can go on from a
model (`GoesOn`) have paths. A trial's key does not depend on its start, since its result is the same to the solver's
tolerance. The models are kept in the results folder until all trials have ended, so that an interrupted search gives
the same bits as one that was not.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path

from rankbench.arrays.npz import Arrays, write_npz
from rankbench.core.contract import GoesOn
from rankbench.records.cells import Cell
from rankbench.records.plans import Search
from rankbench.records.results import Result


class Paths:
    """The paths of a plan's trials, and the folder of the models that later trials start from."""

    def __init__(self, searches: Iterable[Search], folder: Path) -> None:
        self._before = {cell.key: before for search in searches for before, cell in _steps(search)}
        self._followed = {before.key for before in self._before.values()}
        self._folder = folder

    def as_started(self, stored: Mapping[str, Result]) -> "Paths":
        """The same, but each stored trial comes after that one of the trials before it from which it started.

        That one need not be the last: others may have been added to the path since, or had not ended well.
        """
        found = Paths((), self._folder)
        for key, before in self._before.items():
            earlier = {"": None} | {cell.key: cell for cell in self._back_from(before)}
            if start := earlier.get(stored[key].start, before) if key in stored else before:
                found._before[key] = start
        found._followed = {before.key for before in found._before.values()}
        return found

    def before(self, cell: Cell) -> Cell | None:
        """The trial before this one on its path."""
        return self._before.get(cell.key)

    def is_followed(self, cell: Cell) -> bool:
        """Whether another trial starts from this one's model."""
        return cell.key in self._followed

    def start(self, cell: Cell, stored: Mapping[str, Result]) -> tuple[str, Path | None]:
        """The key of the last trial before this one that ended well, and the file of its model; none without it."""
        ended_well = (one for one in self._back_from(self.before(cell)) if one.key in stored and
                      stored[one.key].status == "ok")  # fmt: skip
        before = next(ended_well, None)
        if before is None or not (file := self._file(before.key)).exists():
            return "", None
        return before.key, file

    def keep(self, cell: Cell, model: Arrays) -> None:
        """Keep the model of a trial for those that start from it."""
        self._folder.mkdir(exist_ok=True)
        write_npz(self._file(cell.key), model)

    def clear(self) -> None:
        """Remove the models."""
        for key in self._followed:
            self._file(key).unlink(missing_ok=True)

    def ordered(self, cells: Sequence[Cell]) -> tuple[Cell, ...]:
        """The cells with the trials of each split ordered by their places on their paths."""
        found: list[Cell] = []
        for _, together in groupby(cells, lambda cell: cell.place):
            found += sorted(together, key=self._depth)
        return tuple(found)

    def _depth(self, cell: Cell) -> int:
        """How many trials come before this one."""
        return sum(1 for _ in self._back_from(self.before(cell)))

    def _back_from(self, cell: Cell | None) -> Iterator[Cell]:
        """This trial, if it is one, and all before it, the nearest first."""
        while cell is not None:
            yield cell
            cell = self.before(cell)

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.npz"


def _steps(search: Search) -> Iterator[tuple[Cell, Cell]]:
    """Each trial that starts from another one, after that one."""
    solver = search.cell.solver.record
    along = [name for name in solver.path if name in search.cell.tuned] if isinstance(solver, GoesOn) else []
    if len(along) != 1 or search.cell.budget.patience is not None:  # whose steps are counted from the usual start
        return
    (name,) = along
    sign = -1 if solver.path[name] == "falls" else 1

    def others(trial: Cell) -> str:
        return str([setting for setting in trial.solver.settings if setting[0] != name])

    for _, together in groupby(sorted(search.trials, key=others), others):
        yield from pairwise(sorted(together, key=lambda trial: sign * trial.solver.setting(name)))
