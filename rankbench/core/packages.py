"""Optional packages that solvers need: whether they are installed, and their import."""

from importlib import import_module
from importlib.util import find_spec

from rankbench.core.contract import Needs
from rankbench.core.errors import UserError


def needs_of(solver: object) -> Needs | None:
    """What a solver says that it needs; None if nothing, or nothing with these settings."""
    found = getattr(solver, "needs", None)
    return found if isinstance(found, Needs) else None


def missing(solver: object) -> str | None:
    """The command that installs what a solver needs; None if it is there, which is found out without an import."""
    needs = needs_of(solver)
    if needs is None or all(find_spec(module.partition(".")[0]) for module in needs.modules):
        return None
    return needs.install


def import_needed(solver: object, name: str) -> None:
    """Import what a solver needs, so that its import is no part of the training; errors mention the solver's name."""
    needs = needs_of(solver)
    if needs is None:
        return
    try:
        for module in needs.modules:
            import_module(module)
    except ImportError as error:
        why = "is not installed" if missing(solver) else f"does not load: {error}"
        raise UserError(f"{name} needs a package that {why}", remedy=needs.install) from None
