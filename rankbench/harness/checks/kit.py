"""The test kit: it runs all checks of a solver in a process of their own, one after the other, under a time limit.

A check in which the solver hangs, or that ends the process, fails, and the others run in a new process.
"""

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from multiprocessing.connection import Connection
from signal import SIGKILL
from types import MappingProxyType
from typing import Literal

from rankbench.contract import NeedsMore, Solver
from rankbench.errors import UserError
from rankbench.harness.checks import conduct, declared, given, made, repeated
from rankbench.harness.checks.material import Subject
from rankbench.harness.findings import Finding, failed, not_applicable
from rankbench.harness.isolation import forked, server
from rankbench.harness.own_lines import own_line
from rankbench.harness.system import descendants, kill
from rankbench.names import Named

Check = Callable[[Subject], Finding]

_FIRST = (declared.declarations, made.steps_of, given.trains)  # all others need a solver that passes these
CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        check.__name__.replace("steps_of", "steps").replace("_", " "): check
        for check in (
            *_FIRST,
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
            made.objective,
            made.last_model,
            made.saving,
            made.speed_of_score,
            conduct.imports,
            conduct.budgets,
            conduct.silence,
        )
    }
)
_REMEDIES = {
    "read-only": "the training data is read-only: copy what you change, as in train.values.copy()",
    "WRITEABLE": "the training data stays locked: copy what you change, as in train.values.copy()",
}
_REMEDY = "mend the line; with --pdb it is looked at in the debugger"


def checked(solver: Named, seconds: float | None) -> Iterator[Finding]:
    """The findings of all checks, each as it comes; a check may take so many seconds."""
    if isinstance(solver.record, NeedsMore) and (remedy := solver.record.missing()):
        raise UserError(f"{solver.written} needs a package that is not installed", remedy=remedy)
    names = list(CHECKS)
    while names:
        done = yield from _in_one_process(solver, names, seconds)
        names = names[done:]


def looked(name: str, solver: Solver) -> Finding:
    """The finding of the check of this name; an exception of the solver is a finding too."""
    try:
        return CHECKS[name](Subject(solver))
    except Exception as error:  # a solver may raise anything
        text = f"{type(error).__name__}: {error}"
        remedy = next((remedy for word, remedy in _REMEDIES.items() if word in text), _REMEDY)
        return failed(name, text, remedy, own_line(error))


def _in_one_process(solver: Named, names: list[str], seconds: float | None) -> Generator[Finding, None, int]:
    """The findings of these checks, in one process; returns how many are done, fewer if the process is gone."""
    context = server()
    home, away = context.Pipe(duplex=False)
    process = forked(context, _work, (away, solver, names))
    away.close()
    try:
        for number, name in enumerate(names, 1):
            found = _received(home, seconds)
            if isinstance(found, str):
                yield failed(name, *_GONE[found])
                return number
            yield found
            if found.bad and CHECKS[name] in _FIRST:
                yield not_applicable("all others", f"need a solver that passes {name!r}")
                break
        else:
            process.join(_LEAVE)
        return len(names)
    finally:
        for pid in (*descendants(process.pid or 0), process.pid or 0):
            kill(pid, SIGKILL)
        process.join()


_LEAVE = 2.0  # seconds in which the process may exit by itself after the last check
_GONE = {
    "ended": ("the solver ended the process", "never call exit or abort, and check the indices of compiled code"),
    "late": ("took longer than the time limit", "yield a Step after every short pass; --timeout gives more time"),
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


def _work(away: Connection, solver: Named, names: list[str]) -> None:
    """Run these checks, and send each finding."""
    _hush()
    record = solver.record
    if isinstance(record, NeedsMore):
        record.missing()  # imports the package before anything is looked at
    for name in names:
        away.send(looked(name, record))


def _hush() -> None:
    """Send what the solver prints nowhere; the check of silence has its own way to see it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)
