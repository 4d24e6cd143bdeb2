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
    if type(solver.version) is not int or solver.version < 1:
        return failed(
            name, f"version is {solver.version!r}", "declare version: ClassVar = 1, and raise it with changes"
        )
    if not is_frozen(solver):
        return failed(name, "the class can be changed", "put @dataclass(frozen=True) above it")
    kinds_said = " and ".join(kind.__name__ for kind in kinds)
    return passed(name, f"learns from {kinds_said}, {solver.determinism.value}, version {solver.version}")


def pickling(subject: Subject) -> Finding:
    """Whether the solver is the same after it was sent to another process."""
    return keeps_after_pickling(subject.solver)


def keeps_after_pickling(record: Any) -> Finding:
    """Whether a record is the same after it was sent to another process."""
    name = "pickling"
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


def wrong_settings(subject: Subject) -> Finding:
    """Whether a setting of the wrong type is refused in one line that names it."""
    return refuses_wrong_settings(subject.solver)


def refuses_wrong_settings(record: Any) -> Finding:
    """Whether a record refuses a setting of the wrong type in one line that names it."""
    name = "wrong settings"
    numbers = [key for key, value in settings_of(record).items() if type(value) in (int, float)]
    if not numbers:
        return not_applicable(name, "it has no setting that is a number")
    for key in numbers:
        try:
            type(record)(**{**settings_of(record), key: "no number"})
        except UserError:
            continue
        except Exception as error:  # a user's class may raise anything
            problem = f"{key}='no number' raises {type(error).__name__}"
            return failed(
                name, problem, "inherit rankbench.names.Checked, or call rankbench.names.check(self) in __post_init__"
            )
        return failed(
            name,
            f"{key}='no number' is accepted",
            "inherit rankbench.names.Checked, or call rankbench.names.check(self) in __post_init__",
        )
    return passed(name, f"refused: {', '.join(numbers)}")


def is_frozen(record: Any) -> bool:
    """Whether this is a record of a frozen dataclass."""
    parameters: Any = getattr(type(record), "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)
