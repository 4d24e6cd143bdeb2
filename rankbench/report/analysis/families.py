"""Families of solvers: many solvers in a few groups that belong together, for figures with a panel for each."""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from typing import Any

from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.experiments.costs import Rivals
from rankbench.names import Named
from rankbench.names.registry import class_at
from rankbench.names.user_files import is_from_file
from rankbench.records.cells import RUN
from rankbench.report.render.labels import class_title, setting_name

_LARGE = 8  # a family by what is learned from of more members is divided
_FEW = 6  # a family of more members is divided by the setting in which they differ

Family = tuple[str, list[Named]]


def split_by_family(solvers: Sequence[Named]) -> list[Family]:
    """The solvers in families with titles: those of one name, large ones by the setting varied, and the rest."""
    by_name: dict[str, list[Named]] = {}
    for solver in solvers:
        by_name.setdefault(solver.name, []).append(solver)
    large = [members for members in by_name.values() if len(members) > 1]
    rest = [members[0] for members in by_name.values() if len(members) == 1]
    families = [family for members in large for family in _by_setting(members)]
    if len(rest) == 1 and families:
        title, members = families[0]
        return [(f"{title}, {class_title(rest[0])}", [*members, *rest]), *families[1:]]
    return [*families, *([("other solvers", rest)] if rest else [])]


def split_by_rivals(solvers: Sequence[Named], rivals: Sequence[Rivals]) -> list[Family]:
    """The solvers in families of those that an experiment names as rivals, directly or by way of others."""
    parts = [[solver] for solver in solvers]
    for pair in rivals:
        patterns = (pair.ours, pair.peer)
        met = [part for part in parts if any(solver.fits(pattern) for solver in part for pattern in patterns)]
        if len(met) > 1:
            joined = sorted((solver for part in met for solver in part), key=solvers.index)
            parts = sorted(
                [*(part for part in parts if part not in met), joined], key=lambda part: solvers.index(part[0])
            )
    titles = ((class_title(part[0]) + (" and its rivals" if len(part) > 1 else ""), part) for part in parts)
    return list(titles)


def split_by_input(solvers: Sequence[Named]) -> list[Family]:
    """The solvers in families by what they learn from, with those of other packages and of the user apart.

    A large family is divided into parts of about the same size.
    """
    found: dict[str, list[Named]] = {}
    for solver in solvers:
        found.setdefault(_input(solver), []).append(solver)
    return [part for family in found.items() for part in _in_parts(*family)]


def _in_parts(title: str, members: list[Named]) -> list[Family]:
    """A family, in numbered parts if it has too many members for one panel."""
    count = ceil(len(members) / _LARGE)
    ends = [round(part * len(members) / count) for part in range(count + 1)]
    parts = [members[first:end] for first, end in pairwise(ends)]
    return [(f"{title} {number}" if count > 1 else title, part) for number, part in enumerate(parts, 1)]


def _input(solver: Named) -> str:
    """What a solver learns from; a class in a user's own file is not asked, since a report does not run its code."""
    if is_from_file(solver.home):
        return "own files"
    if solver.name.startswith(RUN):
        return "runs"
    if ".peers." in solver.home:
        return "other packages"
    try:
        cls: Any = class_at(solver.home)
        learns_from = cls.learns_from if isinstance(cls.learns_from, tuple) else (cls.learns_from,)
    except (ImportError, UserError):  # of a plug-in that is no longer installed
        return "others"
    if cls.needs_features:
        return "features"
    return "ratings" if Ratings in learns_from else "comparisons"


def _by_setting(members: list[Named]) -> list[Family]:
    """Solvers of one name; if there are many, a family for each setting that is varied, with the one varied from."""
    title = class_title(members[0])
    if len(members) <= _FEW:
        return [(title, members)]
    centre = min(members, key=lambda one: sum(len(_differing(one, other)) for other in members))
    varied: dict[str, list[Named]] = {}
    for other in members:
        if keys := _differing(centre, other):
            varied.setdefault(" and ".join(setting_name(key) for key in keys), []).append(other)
    return [(f"{title}, {what}", [centre, *others]) for what, others in varied.items()]


def _differing(one: Named, other: Named) -> list[str]:
    """The settings in which two solvers differ, in their order."""
    values = dict(other.settings)
    return [key for key, value in one.settings if values.get(key) != value]
