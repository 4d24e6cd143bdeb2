"""What `on`, `judge` and `rank` print of a user's own data, and their exit codes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankbench.api.anytime import compared
from rankbench.api.judging import findings, judged
from rankbench.api.refitting import kept_model
from rankbench.api.session import Session
from rankbench.cli.printer import folded, show_folded, show_sheet
from rankbench.cli.process import FAILED, OK
from rankbench.cli.showing.runs import say_how_to_resume
from rankbench.core.amounts import amount
from rankbench.core.errors import UserError
from rankbench.core.lines import complain, in_folder, mention, show
from rankbench.data.splits import SPLITS
from rankbench.leaderboards.leaderboard import ENDINGS, Leaderboard, sheet_of
from rankbench.own_data.auditing import hints
from rankbench.own_data.choosing import Choice
from rankbench.own_data.experiment_file import experiment_of
from rankbench.own_data.users_kept import Kept
from rankbench.planning.materials import Materials
from rankbench.records.cells import Place
from rankbench.report.analysis.strength import weaknesses
from rankbench.report.render.answer import answer, answer_sheet, failures

if TYPE_CHECKING:
    from pandas import DataFrame

_MANY = 1000  # comparisons to ask for next, which take a while; each takes the cube of the items
_LONG = 1e10


def answered(
    session: Session, choice: Choice, materials: Materials, seconds: float | None, report: bool, as_init: str
) -> int:
    """Compare solvers on a user's own data and print which is best, and how to change what was compared.

    Returns the exit code.
    """
    experiment = experiment_of(choice)
    session.note_threads([experiment])
    _say_what_is_compared(session, choice, seconds, materials)
    try:
        done = compared(session, experiment, seconds, materials)
        found = done.study
        show_sheet(f"{choice.data.written}, {choice.protocol.split}", answer_sheet(found))
        show_folded(f"{answer(found)}.")
        for line in (*weaknesses(found), *([done.missing] if done.missing else [])):
            show_folded(f"{line}.")
        for line in failures(found):
            complain(line)
        if found.results:
            path = session.results.out / f"{found.name}.npz"
            session.display.say(folded(kept_model(found, materials.view(choice.data), path)))
        if report:
            session.report()
    except KeyboardInterrupt:
        return say_how_to_resume(session, [experiment])
    session.display.say(f"to change it: {as_init}")
    failed = any(entry.good is None and entry.status != "pending" for entry in found.entries)  # pending: out of time
    return OK if found.entries and not failed and not found.failed_trials else FAILED


def show_judgement(
    session: Session, runs: Sequence[str], truth: str | None, how: Mapping[str, Any], report: bool
) -> int:
    """Judge runs and print what they cover, the table and the answer; returns the exit code."""
    found = judged(session.results, runs, truth, **how)
    for line in found.coverage:
        show_folded(line)
    study = found.study
    show_sheet(study.experiment.title, answer_sheet(study))
    show_folded(f"{answer(study)}.")
    if report:
        session.report()
    next_steps = {"every number": f"rankbench table {study.name} --csv"}
    if len(study.groups) > 1:
        next_steps = {"all pairs": f"rankbench compare {study.name}"} | next_steps
    out = session.results.out
    session.display.say("; ".join(f"{what}: {in_folder(how, out)}" for what, how in next_steps.items()))
    return OK


def show_conventions(runs: Sequence[str], truth: str | None, metric: str, published: str) -> int:
    """Print the conventions under which a run has a published number; returns the exit code."""
    if len(runs) != 1:
        raise UserError("--published is a number of one run", remedy="give that run alone")
    found = findings(runs[0], truth, metric, published)
    if not found[0].fits:
        show_folded(f"no convention gives {published}; the nearest value is {found[0].value:.6f}:")
    for one in found:
        show_folded(f"{one.value:.6f}: {'; '.join(one.names)}")
        show_folded(f"    {one.definition}")
    return OK if found[0].fits else FAILED


def refuse_places(to: Sequence[Path]) -> None:
    """Raise an error for a file that no leaderboard can be written to, before it is made."""
    for path in to:
        if path.suffix not in ENDINGS:
            raise UserError(f"--to {path} has no ending of a leaderboard", remedy=f"known: {', '.join(ENDINGS)}")
        if not path.parent.is_dir():
            raise UserError(f"cannot write to {path}: there is no folder {path.parent}", remedy="choose another file")


def show_leaderboard(
    board: Leaderboard, judges: bool, propose: int, other: Leaderboard | None, to: Sequence[Path]
) -> int:
    """Print a leaderboard and what was asked for beside, and write it to files; returns the exit code."""
    beside = _beside(board, judges, propose, other)  # before anything is printed, as it may not suit the votes
    for name, one in {"": board, **board.categories}.items():
        show_sheet(f"{name}: {one.title}" if name else one.title, one.sheet)
        for line in one.remarks:
            show_folded(f"{line}.")
    for title, found in beside.items():
        show_sheet(title, sheet_of(found))
        if "kendall" in found.attrs:
            show_folded(f"Kendall's tau between the two orders: {found.attrs['kendall']:.2f}.")
        if "may_be_wrong" in found and len(found) < propose:
            show_folded("Nothing else that could be asked would settle the order of two items that is open.")
    for path in to:
        board.save(path)
        show(f"wrote {path}")
    return OK


def _beside(board: Leaderboard, judges: bool, propose: int, other: Leaderboard | None) -> dict[str, "DataFrame"]:
    """What was asked for beside a leaderboard, by title."""
    found = {"Judges": board.judges()} if judges else {}
    scores = {} if other is None else {"The other leaderboard's scores beside these": board.compare(other)}
    if propose > _MANY or propose * float(board.votes.n_items) ** 3 > _LONG:
        mention(f"computing {propose:,} comparisons to ask for next, one after the other")
    if propose:
        found["Comparisons to ask for next"] = board.next(propose)
    return found | scores


def _say_what_is_compared(session: Session, choice: Choice, seconds: float | None, materials: Materials) -> None:
    """Print the data, the split with the users that it leaves out, and the solvers, before they are run."""
    data = choice.data
    view = materials.view(data)
    kept = Kept.by(materials.split(Place(data, SPLITS.resolve(choice.protocol.split), 0)), view)
    tuned = f"{amount(choice.trials, 'trial')} or more of each" if choice.is_tuned else "not tuned"
    time = "without a limit of time" if seconds is None else f"within {seconds:.0f} s (--time)"
    lines = [
        f"data: {choice.facts.text}",
        f"split: {choice.protocol.split}: {choice.protocol.why}",
        f"users: {kept.text}",
        f"solvers: {', '.join(choice.solvers)}; {tuned}, {amount(choice.repetitions, 'repetition')}, {time}",
        *(f"left out: {reason}" for reason in choice.left_out),
        *(f"note: {finding.line}" for finding in hints(data, session.selection.seed, view, choice.protocol.split)),
    ]
    for line in lines:
        session.display.say(folded(line))
