"""The test kit: it runs all checks of a solver or metric in a process of their own, in turn, under a time limit.

A check that hangs, or that ends the process, fails, and the others run in a new process.
"""

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from signal import SIGKILL
from types import MappingProxyType
from typing import Any, Literal

from rankbench.checks import conduct, declared, given, made, measuring, repeated
from rankbench.checks.findings import Finding, failed, not_applicable
from rankbench.checks.material import Subject
from rankbench.core.errors import UserError
from rankbench.core.packages import import_needed, missing
from rankbench.core.system import descendants, kill
from rankbench.core.texts import error_text
from rankbench.execution.isolation import forked, server
from rankbench.names import Named
from rankbench.names.user_lines import own_line

Check = Callable[[Any], Finding]


@dataclass(frozen=True)
class Kit:
    """The checks of solvers, or of metrics: by name, in their order."""

    kind: str
    subject: Callable[[Any], Any]  # what a check gets, from the record
    checks: Mapping[str, Check]
    first: tuple[str, ...]  # the checks that all others need
    hints: Mapping[str, str]  # the remedy for an error whose text has this word
    late: str  # the remedy for a check that takes too long


def _by_name(*checks: Check) -> Mapping[str, Check]:
    return MappingProxyType({one.__name__.replace("steps_of", "steps").replace("_", " "): one for one in checks})


OF_SOLVERS = Kit(
    "solver",
    Subject,
    _by_name(
        declared.declarations,
        made.steps_of,
        given.trains,
        declared.pickling,
        declared.settings,
        declared.wrong_settings,
        given.kinds_of_data,
        given.features,
        given.edges,
        given.writing,
        repeated.same_seed,
        repeated.threads,
        repeated.looking,
        repeated.side_by_side,
        made.shapes,
        made.direction,
        made.ties,
        made.objective,
        made.last_model,
        made.saving,
        made.speed_of_score,
        conduct.imports,
        conduct.budgets,
        conduct.silence,
    ),
    ("declarations", "steps", "trains"),
    MappingProxyType(
        {
            "read-only": "the training data is read-only: copy what you change, as in train.values.copy()",
            "WRITEABLE": "the training data stays locked: copy what you change, as in train.values.copy()",
        }
    ),
    "yield a Step after every short pass; --timeout gives more time",
)
OF_METRICS = Kit(
    "metric",
    measuring.Measured,
    _by_name(
        measuring.declarations,
        measuring.values,
        measuring.limits,
        measuring.definition,
        measuring.direction,
        measuring.order_of_items,
        measuring.ties,
        measuring.constant_scores,
        measuring.missing_scores,
        measuring.writing,
        measuring.repeating,
        measuring.silence,
        declared.pickling,
        declared.wrong_settings,
    ),
    ("declarations", "values"),
    MappingProxyType({"read-only": "the ratings are read-only: copy what you change, as in ratings.copy()"}),
    "use NumPy on whole arrays; --timeout gives more time",
)
_REMEDY = "mend the line; with --pdb a solver is looked at in the debugger"


def kit_for(record: object) -> Kit:
    """The checks that suit a record: those of metrics if it has `of_user`, else those of solvers."""
    return OF_METRICS if hasattr(record, "of_user") else OF_SOLVERS


def checked(named: Named, seconds: float | None) -> Iterator[Finding]:
    """The findings of all checks of a solver or metric, each as it comes; a check may take so many seconds."""
    if remedy := missing(named.record):
        raise UserError(f"{named.written} needs a package that is not installed", remedy=remedy)
    names = list(kit_for(named.record).checks)
    while names:
        done = yield from _in_one_process(named, names, seconds)
        names = names[done:]


def looked(name: str, record: object) -> Finding:
    """The finding of the check of this name; an exception of the solver or metric is a finding too."""
    kit = kit_for(record)
    try:
        return kit.checks[name](kit.subject(record))
    except Exception as error:  # a user's class may raise anything
        text = error_text(error)
        remedy = next((remedy for word, remedy in kit.hints.items() if word in text), _REMEDY)
        return failed(name, text, remedy, own_line(error))


def _in_one_process(named: Named, names: list[str], seconds: float | None) -> Generator[Finding, None, int]:
    """The findings of these checks, in one process; returns how many are done, fewer if the process is gone."""
    context, kit = server(), kit_for(named.record)
    home, away = context.Pipe(duplex=False)
    process = forked(context, _work, (away, named, names))
    away.close()
    try:
        for number, name in enumerate(names, 1):
            found = _received(home, seconds)
            if isinstance(found, str):
                yield failed(name, *_gone(kit)[found])
                return number
            yield found
            if found.bad and name in kit.first:
                yield not_applicable("all others", f"need a {kit.kind} that passes {name!r}")
                break
        else:
            process.join(_LEAVE)
        return len(names)
    finally:
        for pid in (*descendants(process.pid or 0), process.pid or 0):
            kill(pid, SIGKILL)
        process.join()


_LEAVE = 2.0  # seconds in which the process may exit by itself after the last check


def _gone(kit: Kit) -> dict[str, tuple[str, str]]:
    """What is said of a process that has ended, or that is late: what was seen, and the remedy."""
    ended = "never call exit or abort, and check the indices of compiled code"
    return {
        "ended": (f"the {kit.kind} ended the process", ended),
        "late": ("took longer than the time limit", kit.late),
    }


def _received(home: Connection, seconds: float | None) -> Finding | Literal["ended", "late"]:
    """The next finding, or why there is none."""
    try:
        if not home.poll(seconds):
            return "late"
        finding: Finding = home.recv()
        return finding
    except (EOFError, OSError):
        return "ended"


def _work(away: Connection, named: Named, names: list[str]) -> None:
    """Run these checks, and send each finding."""
    _hush()
    record = named.record
    import_needed(record, named.written)
    for name in names:
        away.send(looked(name, record))


def _hush() -> None:
    """Send what is printed nowhere; the check of silence has its own way to see it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)
