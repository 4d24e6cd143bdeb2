"""The commands that join, pass on and use stored results: merge, archive and model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankbench.cli.opening import is_archive, stored_in
from rankbench.cli.options import RESULTS, OfFull, OfSeed, Out, option
from rankbench.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rankbench.harness.merging import Merge
    from rankbench.harness.store import ResultsFolder

# Each command imports what it needs when it runs, so that --help and completion stay fast.
# ruff: noqa: PLC0415


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for verb in (merge, archive):
        app.command()(verb)


def merge(
    sources: Annotated[list[Path], typer.Argument(metavar="FROM...", help="Folders of results, or archives.")],
    out: Out = RESULTS,
    dry_run: Annotated[bool, option("--dry-run", None, "Say what would be copied, and write nothing.")] = False,
) -> None:
    """Join the results of several machines in one folder. Exit code 1 if numbers contradict each other.

    Nothing is overwritten: a result that contradicts the folder's is named and left out, and another machine's times
    of a cell are kept beside the folder's own.

    Example: rankbench merge laptop server.zip --out all
    """
    from rankbench.cli.printer import complain, show
    from rankbench.cli.session import results_in
    from rankbench.harness.merging import carry_out, check_apart, survey

    check_apart(out, sources)
    told: list[str] = []

    def warn(text: str) -> None:
        told.append(text)
        complain(text)

    known = [(str(source), _readable(source, warn)) for source in sources]
    merges = survey(results_in(out, untouched=True, warn=warn), known, warn)
    for one in merges:
        if not dry_run:
            carry_out(results_in(out), one, warn)
        show(_summary(one, dry_run))
        for conflict in one.conflicts:
            show(f"conflict: {conflict.file}: {conflict.what} is {conflict.kept} in {out}, {conflict.other} in "
                 f"{conflict.source}")  # fmt: skip
    clashes = len({conflict.file for one in merges for conflict in one.conflicts})
    show(f"{out}: {clashes} conflicts, {len(told)} files left out" + (" (dry run: nothing written)" if dry_run else ""))
    if clashes or told:
        raise typer.Exit(1)


def _readable(source: Path, warn: "Callable[[str], None]") -> "ResultsFolder":
    """The results in a source, which stay as they are; an error if there are none."""
    results = stored_in(source, untouched=True, warn=warn)
    if not source.exists() or not results.names():
        raise UserError(f"{source} holds no results: name folders with results, or archives")
    return results


def _summary(merge: "Merge", dry_run: bool) -> str:
    """One line about what was copied of an experiment, or would be."""
    done = "would be " if dry_run else ""
    parts = [f"{merge.count('new', 'instead')} results {done}added"]
    if beside := merge.count("beside"):
        parts.append(f"{beside} measurements {done}kept beside those of other machines or times")
    if instead := merge.count("instead"):
        parts.append(f"{instead} of them in place of results that did not end well, which {done or 'are '}kept beside")
    parts.append(f"{merge.present} there already")
    return f"{merge.name}: {', '.join(parts)}"


def archive(
    name: Annotated[str, typer.Argument(metavar="EXPERIMENT")],
    to: Annotated[Path | None, option("-o/--output", "FILE", "The new file; by default EXPERIMENT.zip.")] = None,
    licence: Annotated[str, option("--licence", "TEXT", "The licence of the results, in words or as an address.")] = "",
    seed: OfSeed = None,
    full: OfFull = None,
    out: Out = RESULTS,
) -> None:
    """Write a run into one file: plan, splits by name and hash, results, versions, the page and RO-Crate metadata.

    Most verbs take the file in place of a folder: rankbench table FILE, verify FILE, compare FILE FILE.

    Example: rankbench archive park2015-table1 -o park.zip
    """
    from rankbench.cli.looking import stored_study
    from rankbench.cli.printer import show
    from rankbench.cli.session import results_in
    from rankbench.harness.archives import write
    from rankbench.report.crate import NO_LICENCE, files_of, there
    from rankbench.report.study import chosen_plan

    if is_archive(name):
        raise UserError(f"{name} is an archive already: name an experiment")
    study = stored_study(out, name, seed, full)
    store = results_in(out).store(study.name)
    plan = chosen_plan(store.plans(), study.seed, study.profile == "full", study.experiment.source)
    assert plan is not None, "its study was read from it"
    path = to or Path(f"{study.name}.zip")
    files = files_of(store, plan, study, licence or NO_LICENCE)
    write(path, files)
    have, total = there(plan, store)
    show(f"{path}: {have} of {total} results of {study.name} ({study.profile} profile, seed {study.seed}), "
         f"{len(files)} files, {path.stat().st_size / 1e6:.1f} MB")  # fmt: skip
