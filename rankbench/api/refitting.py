"""The best solver of a comparison trained again on all rows, for use: the file of its model, and what it knows."""

import shlex
from pathlib import Path

from rankbench.core.errors import UserError
from rankbench.core.leftovers import remove_left_behind
from rankbench.core.streams import stream
from rankbench.data.splits import Split
from rankbench.data.splits.drawn import Binary
from rankbench.data.views import View
from rankbench.execution.retraining import best_of
from rankbench.execution.training import trained
from rankbench.fitted import Fitted, save
from rankbench.records.cells import Cell
from rankbench.records.studies import Study


def refitted(study: Study, view: View) -> tuple[Cell, Fitted]:
    """The best solver with the settings of its first repetition, trained on all rows of the data, and its cell.

    Where the split draws comparisons from the rows that train, they are drawn from all rows.
    """
    cell = best_of(study.groups, study.measures[0], {}).cell
    solver, split = cell.solver.record, cell.place.split.record
    train, seen = view, None
    if isinstance(split, Binary):
        train, seen = split.whole(view, stream(cell.seed, "all rows", cell.place.split.identity))
    part = Split(train, train, seen).train_for(solver)
    return cell, Fitted.of(trained(solver, part, cell.budget, cell.seed, 1), part, seen, solver)


def kept_model(study: Study, view: View, path: Path) -> str:
    """Write the model of the best solver trained on all rows to a file; returns a line about it or why not."""
    try:
        cell, model = refitted(study, view)
        remove_left_behind(path.parent, "*~.partial")
        save(model, path)
    except UserError as error:
        return f"no model is kept: {error}"
    except OSError as error:
        return f"no model is kept: cannot write {path}: {error.strerror or error}"
    use = f"{shlex.join(['rankbench', 'recommend', str(path)])} leaves out what users have in these rows"
    return f"model: {path}: {cell.solver_text}, trained on all {len(view):,} rows; {use}"
