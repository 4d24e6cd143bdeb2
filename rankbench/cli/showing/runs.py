"""What `run`, `tune` and `verify` print, and their exit codes."""

import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import partial

from rankbench import experiments
from rankbench.api.session import Session, chosen_experiments
from rankbench.cli.printer import show_sheet
from rankbench.cli.process import FAILED, INTERRUPTED, OK
from rankbench.core.errors import Unfinished, UserError
from rankbench.core.lines import complain, in_folder, show
from rankbench.execution.forecast import estimate
from rankbench.execution.run import Run
from rankbench.experiments import Experiment
from rankbench.experiments.durations import reproduced
from rankbench.planning.plan import plan
from rankbench.records.cells import Cell, Selection, skip_lines
from rankbench.records.studies import Study
from rankbench.report.analysis import power
from rankbench.report.analysis.costs import spelled
from rankbench.report.analysis.trials import best_first, trial_sheet, trials
from rankbench.report.analysis.verdicts import Score, added, in_words, score_sheet
from rankbench.report.render.answer import failed_trials
from rankbench.report.shown import shown
from rankbench.report.study import stored_beyond
from rankbench.verification.verify import Verification


def run_all(session: Session, names: Sequence[str], report: bool) -> int:
    """Run every experiment, print its table or how it compares, and write the report; returns the exit code."""
    chosen = chosen_experiments(names, session.selection)
    session.note_threads(chosen)
    if session.conditions.join:
        session.refuse_namesakes(chosen)
    try:
        if len(chosen) > 1 or session.conditions.join:
            good = _run_each(session, chosen)
        else:
            good = _show(session, *session.run(chosen[0]))
        if report and not session.conditions.join:
            session.report()
    except KeyboardInterrupt:
        return say_how_to_resume(session, chosen)
    except Unfinished as error:
        complain(str(error))
        say_how_to_resume(session, chosen)
        return FAILED
    return OK if good else FAILED


def tune_one(session: Session, experiment: Experiment) -> int:
    """Tune one solver, print its trials from best to worst and how to use the best; returns the exit code."""
    session.note_threads([experiment])
    run = session.prepared(experiment)
    if run.plan.skips:
        raise UserError(run.plan.skips[0].text)
    try:
        found = session.execute(run)
    except KeyboardInterrupt:
        return say_how_to_resume(session, [experiment])
    show_sheet(f"{experiment.title}: trials, best first", trial_sheet(best_first(trials(found))))
    good = _show(session, run, found)
    for cell in run.plan.cells:
        show(_using(cell))
    return OK if good else FAILED


def preview_all(session: Session, names: Sequence[str], each_cell: bool) -> int:
    """Print what would run and a time estimate, and write nothing; each cell of one experiment, or of all if asked."""
    chosen = chosen_experiments(names, session.selection)
    in_full = each_cell or len(chosen) == 1
    for experiment in chosen:
        run = session.prepared(experiment, writes=False)
        if in_full:
            _show_cells(run)
        for line in (*_skips(run), *(_differences_that_show(run) if in_full else ())):
            show(line)
        _show_estimate(run)
    return OK


def _show_cells(run: Run) -> None:
    """Print every trial and cell, and whether its result is stored."""
    keys = {cell.key for cell in (*run.pending_trials, *run.pending)}
    for cell in (*run.plan.trials, *run.plan.cells):
        show(f"{'run ' if cell.key in keys else 'have'} {cell.label}")
    for cell in run.plan.undecided:
        show(f"run  {cell.label} · with the settings of its best trial")


def _differences_that_show(run: Run) -> Iterator[str]:
    """Which differences this number of repetitions would show, and more of them."""
    planned = len({cell.place.repetition for cell in run.plan.planned})
    return power.in_words(run.study(), [max(planned, 2) * more for more in (1, 2, 4)])


def show_verification(found: Verification, as_json: bool) -> int:
    """Say what was found of stored results; returns the exit code."""
    show(found.as_json if as_json else "\n".join(found.lines))
    return OK if found.good else FAILED


def _run_each(session: Session, chosen: Sequence[Experiment]) -> bool:
    """Run experiments, print what failed, and how all numbers compare with the published ones; tables are left out."""
    found: list[Score | None] = []
    good = True
    for ran in session.run_each(chosen):
        if ran is None:
            good = False
            continue
        run, study = ran
        try:
            found += [] if session.conditions.join else [shown(run.store, study).score]
        except UserError as error:  # stored values that cannot be read stop none of the others
            session.display.complain(f"{study.name}: {error}")
            good = False
        _show_notes(session, run, study)
        good &= _complain_of_failures(study)
    if scores := added(found):
        show_sheet(in_words(scores), score_sheet(scores))
    return good


def _show(session: Session, run: Run, found: Study) -> bool:
    """Print the table of this plan's cells and all failures; returns whether there were no failures."""
    experiment, about = run.plan.experiment, shown(run.store, found)
    if any(entry.result or entry.failure for entry in found.entries):
        show_sheet(f"{experiment.name}: {experiment.title}", about.sheet)
    for line in about.lines:
        session.display.say(line)
    _show_notes(session, run, found)
    return _complain_of_failures(found)


def _show_notes(session: Session, run: Run, found: Study) -> None:
    """Print what was skipped, tried, imported and left out."""
    for line in (*_skips(run), *_of_trials(run, found), *_of_imports(found), *_of_hidden(run, found)):
        session.display.say(line)


def say_how_to_resume(session: Session, chosen: Sequence[Experiment]) -> int:
    """Print how many results an interrupted run has kept and how to resume it; returns the exit code."""
    kept = sum(1 for experiment in chosen for _ in session.results.store(experiment.name).files())
    complain(f"stopped; finished cells kept: {kept}; resume with: {shlex.join(['rankbench', *_without_rerun()])}")
    return INTERRUPTED


def _without_rerun() -> list[str]:
    """The words of this command without `--rerun all`, with which it would begin again from the start."""
    kept, words = [], iter(sys.argv[1:])
    for word in words:
        name, given, kinds = word.partition("=")
        if name != "--rerun":
            kept.append(word)
            continue
        kinds = kinds if given else next(words, "")
        if "all" not in kinds.split(","):
            kept += [name, kinds]
    return kept


def _show_estimate(run: Run) -> None:
    planned = run.plan
    total = len(planned.cells) + len(planned.trials) + len(planned.undecided)
    of_them = f" ({len(planned.trials)} of them trials)" if planned.trials else ""
    estimates = ", ".join(_estimates(run))
    show(f"{planned.experiment.name}: {len(run.to_run)} of {total} cells{of_them} to run, {estimates}")


def _estimates(run: Run) -> Iterator[str]:
    """How long the pending cells may take, by stored results of their solvers or else by the last reproduction."""
    experiment, to_run = run.plan.experiment, len(run.to_run)
    seconds, unknown = estimate(run)
    took = None if experiment.source or run.plan.profile != "full" else reproduced(experiment.name)
    if to_run > unknown:
        jobs = run.conditions.jobs
        beside = f", {jobs} at a time," if jobs > 1 else ""
        yield f"about {spelled(seconds)}{beside} judging by stored results"
    elif took and (unknown or not run.plan.everything):
        some = spelled(took.of(unknown or took.cells)) + ("" if unknown else f" for all {took.cells}")
        yield f"about {some}, one at a time, judging by the reproduction on {took.processor}"
        return
    else:
        yield "no estimate"
    if unknown:
        yield f"{unknown} of unknown duration"


def _of_trials(run: Run, found: Study) -> Iterator[str]:
    """The number of trials, how many of them failed, and the command that lists them."""
    results = [entry for entry in found.trials if entry.result]
    if results:
        lost = sum(entry.status != "ok" for entry in results)
        failed = f", {lost} of which did not end well and cannot be chosen" if lost else ""
        table = in_folder(f"rankbench table {found.name} --what trials", run.store.folder.parent)
        yield f"trials: {len(results)}{failed}; {table} lists them"


def _of_imports(found: Study) -> Iterator[str]:
    """The packages that solvers imported during training, because importing counts as training time."""
    by_solver: dict[str, dict[str, None]] = {}
    for entry in (*found.entries, *found.trials):
        for module in entry.result.imported if entry.result else ():
            by_solver.setdefault(entry.cell.solver.name, {})[module] = None
    for solver, modules in by_solver.items():
        yield (
            f"note: {solver} imported {', '.join(modules)} during training, which counts as training time: "
            "import at the top of its file"
        )


def _of_hidden(run: Run, found: Study) -> Iterator[str]:
    """How many stored results of the experiment are not part of this run."""
    if count := stored_beyond(run.store, found.plan):
        status = in_folder(f"rankbench status {found.name}", run.store.folder.parent)
        yield f"note: {count} more results of {found.name} are stored but not part of this run: {status}"


def _using(cell: Cell) -> str:
    """A line with the command that runs a cell's solver on this data, in the most similar experiment if any fits."""
    data, solver = cell.place.data.written, cell.solver_text
    selection = Selection(solvers=(solver,), data=(data,), repetitions=1)
    for experiment in sorted(map(experiments.load, experiments.names()), key=partial(_distance, cell)):
        try:
            if plan(experiment, selection).skips:
                continue
        except UserError:
            continue  # the experiment's split or metrics do not suit the data
        return f"to use it: {shlex.join(['rankbench', 'run', experiment.name, '-d', data, '-s', solver])}"
    return f"the best: {solver}"


def _distance(cell: Cell, experiment: Experiment) -> tuple[bool, bool, bool]:
    """How different an experiment is from a cell: other data, other metrics, or tuning; smaller is more similar."""
    known = any(text.partition("[")[0] == cell.place.data.name for text in experiment.data)
    measured = {measure.label for measure in cell.measures}
    return not known, not measured & set(experiment.metrics), experiment.tune is not None


def _skips(run: Run) -> list[str]:
    """What of the plan is skipped, and why."""
    left = skip_lines(skip for skip in run.plan.skips if not skip.failed)
    return [f"skipped {run.plan.experiment.name}: {line}" for line in left]


def _complain_of_failures(found: Study) -> bool:
    """Print every cell, every part of the plan and all trials that failed; returns whether there are none."""
    bad = [entry for entry in found.entries if entry.status not in ("ok", "pending")]
    for entry in bad:
        complain(f"{entry.status}: {entry.cell.label}: {entry.reason} (--rerun failed runs it again)")
    broken = [skip for skip in found.skips if skip.failed]
    for skip in broken:
        complain(f"failed: {found.name}: {skip.text}")
    for line in failed_trials(found):
        complain(f"{line} (--rerun failed runs them again)")
    return not bad and not broken and not found.failed_trials
