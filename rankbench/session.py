"""One `rankbench run` or `tune`, from names to the exit code, as a person sees it."""

import shlex
import sys
from dataclasses import asdict, replace
from functools import partial

import psutil

from rankbench import experiments
from rankbench.errors import UserError
from rankbench.experiments import Experiment
from rankbench.harness.plan import Cell, Materials, Plan, Selection, plan
from rankbench.harness.run import Conditions, estimate, pending, pending_trials, run, try_out
from rankbench.harness.store import Result, Store
from rankbench.harness.tuning import settled
from rankbench.report.tables import Study, described, sheet
from rankbench.report.trials import best_first, trial_sheet, trials
from rankbench.report.writing import study, write_report
from rankbench.specs import parse
from rankbench.terminal import complain, progress_of, show, show_sheet

OK, CELL_FAILED, INTERRUPTED = 0, 2, 130


def run_all(names: list[str], selection: Selection, conditions: Conditions, report: bool, quiet: bool) -> int:
    """Plan and run every experiment, show its table, write the report; the exit code."""
    chosen = chosen_experiments(names, selection)
    if not quiet:
        _note_threads(max((selection.threads, *(number for own in chosen for number in own.threads))))
    failed = False
    try:
        for experiment in chosen:
            materials = Materials(selection.seed)
            planned = _run(plan(experiment, selection, materials), conditions, materials, quiet)
            failed |= _show(planned, conditions, quiet)
        if report:
            path = write_report(conditions.out)
            if not quiet:
                show(f"report: {path.resolve()}")
    except KeyboardInterrupt:
        _say_how_to_resume(chosen, conditions)
        return INTERRUPTED
    return CELL_FAILED if failed else OK


def tune_one(experiment: Experiment, selection: Selection, conditions: Conditions, quiet: bool) -> int:
    """Run an experiment of one solver, show its trials best first and how to use the winner; the exit code."""
    if not quiet:
        _note_threads(selection.threads)
    materials = Materials(selection.seed)
    planned = plan(experiment, selection, materials)
    if planned.skips:
        raise UserError(described(asdict(planned.skips[0])))
    try:
        planned = _run(planned, conditions, materials, quiet)
    except KeyboardInterrupt:
        _say_how_to_resume([experiment], conditions)
        return INTERRUPTED
    found = _study(planned, conditions)
    show_sheet(f"{experiment.title}: trials, best first", trial_sheet(best_first(trials(found))))
    failed = _show(planned, conditions, quiet)
    for cell in planned.cells:
        show(_using(cell))
    return CELL_FAILED if failed else OK


def preview_all(names: list[str], selection: Selection, conditions: Conditions) -> int:
    """Print every trial and cell, whether it is there already, and an estimate; write nothing."""
    for experiment in chosen_experiments(names, selection):
        store = Store(conditions.out, experiment.name)
        planned = settled(plan(experiment, selection), store)
        trials_to_run = pending_trials(planned, store, conditions)
        cells = (*trials_to_run, *pending(planned, store, conditions))
        keys = {cell.key for cell in cells}
        for cell in (*planned.trials, *planned.cells):
            show(f"{'run ' if cell.key in keys else 'have'} {cell.label}")
        for cell in planned.undecided:
            show(f"run  {cell.label} · with the settings of its best trial")
        _show_skips(planned)
        _show_estimate(planned, (*cells, *planned.undecided), store)
    return OK


def _show_estimate(planned: Plan, cells: tuple[Cell, ...], store: Store) -> None:
    seconds, unknown = estimate(planned, cells, store)
    guess = f"about {seconds:.0f} s by what is stored" if len(cells) > unknown else "no estimate"
    without = f", {unknown} without precedent" if unknown else ""
    total = len(planned.cells) + len(planned.trials) + len(planned.undecided)
    of_them = f" ({len(planned.trials)} of them trials)" if planned.trials else ""
    show(f"{planned.experiment.name}: {len(cells)} of {total} cells{of_them} to run, {guess}{without}")


def chosen_experiments(names: list[str], selection: Selection) -> list[Experiment]:
    """The experiments of these names, all of them for `all`."""
    chosen = experiments.names() if "all" in names else names
    found = [experiments.load(name, selection.full) for name in dict.fromkeys(chosen)]
    if selection.trials and not any(experiment.tune for experiment in found):
        raise UserError(f"--trials={selection.trials}: none of {', '.join(chosen)} tunes anything")
    return found


def _run(planned: Plan, conditions: Conditions, materials: Materials, quiet: bool) -> Plan:
    """Run a plan, its trials first; the same with all that they decided."""
    name = planned.experiment.name
    store = Store(conditions.out, name)
    store.open()
    if planned.searches:
        trials_to_run = pending_trials(planned, store, conditions)
        _say_what_is_there(f"{name} trials", planned.trials, trials_to_run, quiet)
        with progress_of(f"{name} trials", len(trials_to_run), quiet or not trials_to_run) as tell:
            planned = try_out(planned, conditions, tell, materials)
    cells = pending(planned, store, conditions)
    _say_what_is_there(name, planned.cells, cells, quiet)
    with progress_of(name, len(cells), quiet or not cells) as tell:
        return run(planned, conditions, tell, materials)


def _say_what_is_there(name: str, planned: tuple[Cell, ...], to_run: tuple[Cell, ...], quiet: bool) -> None:
    keys = {cell.key for cell in to_run}
    there = [cell for cell in planned if cell.key not in keys]
    if quiet or not there:
        return
    show(f"{name}: {len(there)} of {len(planned)} cells are there (--force runs them again)")
    if files := sorted({cell.solver for cell in there if ".py:" in cell.solver}):
        show(f"note: a change of {', '.join(files)} counts only when its version is raised, or with --force")


def _study(planned: Plan, conditions: Conditions) -> Study:
    """What is stored of this plan's own cells and trials."""
    found = study(conditions.out, planned.experiment.name)
    assert found is not None  # the run has just written it
    keys = {cell.key for cell in (*planned.cells, *planned.trials, *(lost.cell for lost in planned.failures))}
    cells, tried = (
        [(entry, result) for entry, result in part if entry["key"] in keys and result]
        for part in (found.cells, found.trials)
    )
    return replace(found, cells=cells, trials=tried, skips=[])


def _show(planned: Plan, conditions: Conditions, quiet: bool) -> bool:
    """Print the table of this plan's cells, and what went wrong; whether something did."""
    found = _study(planned, conditions)
    if found.cells:
        show_sheet(f"{planned.experiment.name}: {planned.experiment.title}", sheet(found))
    if not quiet:
        _show_skips(planned)
        _note_trials(planned, [result for _, result in found.trials if result])
    store = Store(conditions.out, planned.experiment.name)
    results = [(cell, store.load(cell)) for cell in planned.cells]
    bad = [(cell, result.status, result.reason) for cell, result in results if result and result.status != "ok"]
    bad += [(lost.cell, "failed", lost.reason) for lost in planned.failures]
    for cell, status, reason in bad:
        complain(f"{status}: {cell.label}: {reason} (--retry-failed runs it again)")
    return bool(bad)


def _note_trials(planned: Plan, results: list[Result]) -> None:
    """Say where the trials are shown, and that some of them could not be chosen."""
    if results:
        lost = sum(result.status != "ok" for result in results)
        failed = f", {lost} of which did not end well and cannot be chosen" if lost else ""
        show(f"trials: {len(results)}{failed}; rankbench table {planned.experiment.name} --trials lists them")


def _using(cell: Cell) -> str:
    """How to use a cell's solver: in the nearest experiment that can run it on this data, if there is one."""
    data, solver = cell.texts[0], cell.solver_text
    selection = Selection(solvers=(solver,), data=(data,), repetitions=1)
    for experiment in sorted(map(experiments.load, experiments.names()), key=partial(_distance, cell)):
        try:
            if plan(experiment, selection).skips:
                continue
        except UserError:
            continue  # its split or its metrics do not suit the data
        return f"to use it: {shlex.join(['rankbench', 'run', experiment.name, '-d', data, '-s', solver])}"
    return f"the best: {solver}"


def _distance(cell: Cell, experiment: Experiment) -> tuple[bool, bool, bool]:
    """How far an experiment is from a cell: by its data, by what it measures, and whether it would tune again."""
    name = parse(cell.texts[0]).name
    known = any(parse(text).name == name for text in experiment.data)
    return not known, not set(cell.metrics) & set(experiment.metrics), experiment.tune is not None


def _show_skips(planned: Plan) -> None:
    for skip in planned.skips:
        show(f"skipped {planned.experiment.name}: {described(asdict(skip))}")


def _say_how_to_resume(chosen: list[Experiment], conditions: Conditions) -> None:
    stores = [Store(conditions.out, experiment.name) for experiment in chosen]
    kept = sum(1 for store in stores for _, result in (*store.results(), *store.trials()) if result)
    command = shlex.join(["rankbench", *(word for word in sys.argv[1:] if word != "--force")])
    complain(f"stopped; finished cells kept: {kept}; resume with: {command}")


def _note_threads(threads: int) -> None:
    cores = psutil.cpu_count() or 1
    if threads > cores:
        show(f"note: {threads} threads on {cores} cores; exact results stay the same, times will not improve")
