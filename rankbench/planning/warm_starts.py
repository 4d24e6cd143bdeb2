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

    def before(self, cell: Cell) -> Cell | None:
        """The trial before this one on its path."""
        return self._before.get(cell.key)

    def is_followed(self, cell: Cell) -> bool:
        """Whether another trial starts from this one's model."""
        return cell.key in self._followed

    def start(self, cell: Cell, stored: Mapping[str, Result]) -> tuple[str, Path | None]:
        """The key of the last trial before this one that ended well, and the file of its model; none without it."""
        before = self.before(cell)
        while before and (before.key not in stored or stored[before.key].status != "ok"):
            before = self.before(before)
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
        before = self.before(cell)
        return 0 if before is None else 1 + self._depth(before)

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
