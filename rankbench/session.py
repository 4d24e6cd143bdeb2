"""One `rankbench run`, from the names of experiments to the exit code, as a person sees it."""

import shlex
import sys
from dataclasses import asdict, replace

import psutil

from rankbench import experiments
from rankbench.experiments import Experiment
from rankbench.harness.plan import Cell, Materials, Plan, Selection, plan
from rankbench.harness.run import Conditions, estimate, pending, run
from rankbench.harness.store import Store
from rankbench.report.tables import described, sheet
from rankbench.report.writing import study, write_report
from rankbench.terminal import complain, progress_of, show, show_sheet

OK, CELL_FAILED, INTERRUPTED = 0, 2, 130


def run_all(names: list[str], selection: Selection, conditions: Conditions, report: bool, quiet: bool) -> int:
    """Plan and run every experiment, show its table, write the report; the exit code."""
    chosen = chosen_experiments(names, selection.full)
    if not quiet:
        _note_threads(selection.threads)
    failed = False
    try:
        for experiment in chosen:
            failed |= _run(experiment, selection, conditions, quiet)
        if report:
            path = write_report(conditions.out)
            if not quiet:
                show(f"report: {path.resolve()}")
    except KeyboardInterrupt:
        _say_how_to_resume(chosen, conditions)
        return INTERRUPTED
    return CELL_FAILED if failed else OK


def preview_all(names: list[str], selection: Selection, conditions: Conditions) -> int:
    """Print every cell, whether it is there already, and an estimate; write nothing."""
    for experiment in chosen_experiments(names, selection.full):
        planned = plan(experiment, selection)
        store = Store(conditions.out, experiment.name)
        cells = pending(planned, store, conditions)
        for cell in planned.cells:
            show(f"{'run ' if cell in cells else 'have'} {cell.label}")
        _show_skips(planned)
        seconds, unknown = estimate(planned, cells, store)
        guess = f"about {seconds:.0f} s by what is stored" if len(cells) > unknown else "no estimate"
        without = f", {unknown} without precedent" if unknown else ""
        show(f"{experiment.name}: {len(cells)} of {len(planned.cells)} cells to run, {guess}{without}")
    return OK


def chosen_experiments(names: list[str], full: bool) -> list[Experiment]:
    """The experiments of these names, all of them for `all`."""
    chosen = experiments.names() if "all" in names else names
    return [experiments.load(name, full) for name in dict.fromkeys(chosen)]


def _run(experiment: Experiment, selection: Selection, conditions: Conditions, quiet: bool) -> bool:
    """Run one experiment and show what came of it; whether some cell failed."""
    materials = Materials(selection.seed)
    planned = plan(experiment, selection, materials)
    store = Store(conditions.out, experiment.name)
    store.open()
    cells = pending(planned, store, conditions)
    if len(cells) < len(planned.cells) and not quiet:
        _say_what_is_there(planned, cells)
    with progress_of(experiment.name, len(cells), quiet or not cells) as tell:
        run(planned, conditions, tell, materials)
    return _show(planned, conditions, store, quiet)


def _say_what_is_there(planned: Plan, cells: tuple[Cell, ...]) -> None:
    there = [cell for cell in planned.cells if cell not in cells]
    show(f"{planned.experiment.name}: {len(there)} of {len(planned.cells)} cells are there (--force runs them again)")
    if files := sorted({cell.solver for cell in there if ".py:" in cell.solver}):
        show(f"note: a change of {', '.join(files)} counts only when its version is raised, or with --force")


def _show(planned: Plan, conditions: Conditions, store: Store, quiet: bool) -> bool:
    """Print the table of this plan's cells, and what went wrong; whether something did."""
    keys = {cell.key for cell in planned.cells}
    found = study(conditions.out, planned.experiment.name)
    if found and keys:
        chosen = [(entry, result) for entry, result in found.cells if result and result.key in keys]
        title = f"{planned.experiment.name}: {planned.experiment.title}"
        show_sheet(title, sheet(replace(found, cells=chosen, skips=[])))
    if not quiet:
        _show_skips(planned)
    results = [(cell, store.load(cell)) for cell in planned.cells]
    bad = [(cell, result) for cell, result in results if result and result.status != "ok"]
    for cell, result in bad:
        complain(f"{result.status}: {cell.label}: {result.reason} (--retry-failed runs it again)")
    return bool(bad)


def _show_skips(planned: Plan) -> None:
    for skip in planned.skips:
        show(f"skipped {planned.experiment.name}: {described(asdict(skip))}")


def _say_how_to_resume(chosen: list[Experiment], conditions: Conditions) -> None:
    stored = [result for experiment in chosen for _, result in Store(conditions.out, experiment.name).results()]
    kept = sum(1 for result in stored if result)
    command = shlex.join(["rankbench", *(word for word in sys.argv[1:] if word != "--force")])
    complain(f"stopped; finished cells kept: {kept}; resume with: {command}")


def _note_threads(threads: int) -> None:
    cores = psutil.cpu_count() or 1
    if threads > cores:
        show(f"note: {threads} threads on {cores} cores; results stay the same, times will not improve")
