"""Checks of what a solver declares: its class variables, its settings, and that it can travel to other processes."""

import pickle
from typing import Any

from rankbench.checks.findings import Finding, failed, not_applicable, passed
from rankbench.checks.material import Subject, accepted, course
from rankbench.core.contract import Determinism
from rankbench.core.errors import UserError
from rankbench.core.texts import error_text
from rankbench.data.views import Comparisons, Ratings
from rankbench.names import settings_of


def declarations(subject: Subject) -> Finding:
    """Whether the four class variables are of the right kind, and the class is a frozen dataclass."""
    name, solver = "declarations", subject.solver
    kinds = accepted(solver)
    if not kinds or not set(kinds) <= {Ratings, Comparisons}:
        return failed(name, f"learns_from is {solver.learns_from!r}", "declare Ratings, Comparisons or both in a tuple")
    if not isinstance(solver.needs_features, bool):
        return failed(name, f"needs_features is {solver.needs_features!r}", "declare True or False")
    if not isinstance(solver.determinism, Determinism):
        remedy = "declare Determinism.EXACT, FIXED_THREADS or RACY"
        return failed(name, f"determinism is {solver.determinism!r}", remedy)
    if found := not_kept(solver):
        return found
    kinds_said = " and ".join(kind.__name__ for kind in kinds)
    return passed(name, f"learns from {kinds_said}, {solver.determinism.value}, version {solver.version}")


def pickling(subject: Any) -> Finding:
    """Whether the solver or metric is the same after it was sent to another process."""
    name, record = "pickling", subject.record
    try:
        back = pickle.loads(pickle.dumps(record))
    except Exception as error:  # a user's class may raise anything
        problem = f"cannot be pickled: {error_text(error)}"
        return failed(name, problem, "keep numbers and texts as settings, and make everything else where it is used")
    if back != record:
        return failed(name, "is another one after pickling", "let equal settings make equal records")
    return passed(name, "is the same after pickling")


def settings(subject: Subject) -> Finding:
    """Whether a training leaves the settings as they were."""
    name = "settings"
    before = dict(vars(subject.solver))
    course(subject.solver, subject.train)
    if changed := sorted(key for key, value in vars(subject.solver).items() if before.get(key, ...) is not value):
        remedy = "keep everything of a training in local variables of `steps`"
        return failed(name, f"a training changes {', '.join(changed)} of the solver", remedy)
    return passed(name, "a training leaves them as they were")


def wrong_settings(subject: Any) -> Finding:
    """Whether a setting of the wrong type is refused in one line that names it."""
    name, record = "wrong settings", subject.record
    numbers = [key for key, value in settings_of(record).items() if type(value) in (int, float)]
    if not numbers:
        return not_applicable(name, "it has no setting that is a number")
    for key in numbers:
        try:
            type(record)(**{**settings_of(record), key: "no number"})
            what = "is accepted"
        except UserError:
            continue
        except Exception as error:  # a user's class may raise anything
            what = f"raises {type(error).__name__}"
        remedy = "inherit rankbench.names.Checked, or call rankbench.names.check(self) in __post_init__"
        return failed(name, f"{key}='no number' {what}", remedy)
    return passed(name, f"refused: {', '.join(numbers)}")


def not_kept(record: Any) -> Finding | None:
    """The finding if a record has no version, or can be changed; stored results rely on both."""
    if type(record.version) is not int or record.version < 1:
        remedy = "declare version: ClassVar = 1, and raise it with changes"
        return failed("declarations", f"version is {record.version!r}", remedy)
    parameters: Any = getattr(type(record), "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        return failed("declarations", "the class can be changed", "put @dataclass(frozen=True) above it")
    return None
