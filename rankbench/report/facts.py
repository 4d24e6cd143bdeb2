"""How the numbers of an experiment were made: splits, seed, budget, machines, and who was left out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rankbench.experiments import Budget
from rankbench.harness.records import Group, Study
from rankbench.report.study import groups, several_splits
from rankbench.report.tables import Row, rows

_DIGITS = 12  # of a hash, as many as those of a fingerprint


@dataclass(frozen=True)
class Fact:
    """One fact about how the numbers were made: what it is about, and its lines."""

    name: str
    lines: tuple[str, ...]


def facts(study: Study) -> list[Fact]:
    """What a reader must know to make the numbers of an experiment again; facts without content are left out."""
    table = [row for row in rows(study) if row.metric]
    found = [
        Fact("seed", (str(study.seed),)),
        Fact("repetitions", (_repetitions(study),)),
        Fact("budget", tuple(dict.fromkeys(_budget(entry.cell.budget) for entry in study.entries))),
        Fact("split hashes", tuple(_splits(study))),
        Fact("machine", tuple(_machines(study))),
        Fact("users left out", tuple(_left_out(table)) or ("none",)),
        Fact("pairs without a score", tuple(_unscored(table)) or ("none",)),
    ]
    return [fact for fact in found if any(fact.lines)] if study.entries else []


def _repetitions(study: Study) -> str:
    return str(len({entry.cell.place.repetition for entry in study.entries}))


def _budget(budget: Budget) -> str:
    """When a solver stops."""
    parts = (
        "" if budget.steps is None else f"{budget.steps} steps",
        "" if budget.seconds is None else f"{budget.seconds:g} seconds",
        "" if budget.tolerance is None else f"a relative change of the objective of at most {budget.tolerance:g}",
    )
    return " or ".join(filter(None, parts))


def _splits(study: Study) -> Iterator[str]:
    """A line for each data set and split, with the hash of every repetition's parts."""
    several = several_splits(study)
    found: dict[str, dict[int, str]] = {}
    for group in groups(study):
        hashes = found.setdefault(_place(group, several), {})
        hashes |= {result.cell.place.repetition: result.split[:_DIGITS] for result in group.good if result.split}
    for place, hashes in found.items():
        if hashes:
            yield f"{place}: {', '.join(hashes[repetition] for repetition in sorted(hashes))}"


def _place(group: Group, several: bool) -> str:
    return f"{group.data.written} {group.split.written}" if several else group.data.written


def _machines(study: Study) -> Iterator[str]:
    """A line for each machine, by the digits that tell whether times and numbers can be compared."""
    for fingerprint, basis in dict.fromkeys(
        (result.machine.fingerprint, result.machine.basis) for result in study.results
    ):
        yield f"fingerprint {fingerprint}, basis {basis}"


def _left_out(table: Iterable[Row]) -> Iterator[str]:
    """A line for each metric and data set with users whom the metric does not count."""
    found: dict[str, tuple[float, float]] = {}
    for row in table:
        if row.left_out and row.users is not None:
            place = f"{row.metric} on {row.shown[0]}"
            found[place] = max(found.get(place, (0.0, 0.0)), (row.left_out, row.left_out + row.users))
    for place, (left_out, users) in found.items():
        yield f"{place}: {left_out:.0f} of {users:.0f}"


def _unscored(table: Iterable[Row]) -> Iterator[str]:
    """A line for each solver and data set with held-out pairs to which the model gives no score."""
    found = {f"{row.shown[1]} on {row.shown[0]}": row.unscored for row in table if row.unscored}
    for place, share in found.items():
        yield f"{place}: {share:.2%}"
