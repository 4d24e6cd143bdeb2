"""Families of solvers: many solvers in a few groups that belong together, for figures with a panel for each."""

from collections.abc import Sequence

from rankbench.names import Named
from rankbench.report.labels import class_title, setting_name

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
