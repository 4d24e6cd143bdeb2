"""How the numbers of an experiment were made: splits, seed, budget, machines, and who was left out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankbench.experiments import Budget
from rankbench.records.cells import SOURCES
from rankbench.records.studies import Study
from rankbench.report import manifest
from rankbench.report.analysis.costs import at_a_time, elapsed, spelled
from rankbench.report.analysis.evidence import samples
from rankbench.report.render.labels import counted, metric_labels, place_label
from rankbench.report.rows import Row, rows

_OF_TRAINING = ("command", "wall time", "time of all cells", "seed", "budget")  # unknown of runs of other tools
_DIGITS = 12  # of a hash, as many as those of a fingerprint


@dataclass(frozen=True)
class Fact:
    """One fact about how the numbers were made: what it is about, and its lines."""

    name: str
    lines: tuple[str, ...]


def facts(study: Study) -> list[Fact]:
    """What a reader must know to make the numbers of an experiment again; facts without content are left out."""
    table = [row for row in rows(study) if row.metric]
    nobody = ("none",) if any(group.good for group in study.groups) else ()
    found = [
        Fact("command", (_command(study),)),
        Fact("wall time", (_wall_time(study),)),
        Fact("time of all cells", (_time(study),)),
        Fact("seed", (str(study.seed),)),
        Fact("repetitions", (str(_repetitions(study)),)),
        Fact("budget", tuple(dict.fromkeys(_budget(entry.cell.budget) for entry in study.entries))),
        Fact("split hashes", tuple(_splits(study))),
        Fact("held-out pairs", tuple(_pairs(study))),
        Fact("manifest", (_manifest(study),)),
        Fact("machine", tuple(_machines(study))),
        Fact("users left out", tuple(_left_out(study, table)) or nobody),
        Fact("pairs without a score", tuple(_unscored(study, table)) or nobody),
    ]
    unknown = _OF_TRAINING if study.is_judged else ()
    return [fact for fact in found if any(fact.lines) and fact.name not in unknown] if study.entries else []


def _command(study: Study) -> str:
    """The command that makes the numbers again."""
    name, planned, held = Path(study.experiment.source).name or study.name, _repetitions(study), study.plan.held
    options = (
        "--full" if study.profile == "full" else "",
        f"-r {planned}" if planned != study.experiment.repetitions else "",
        f"--seed {study.seed}" if study.seed else "",
        f"--redraw {','.join(source for source in SOURCES if source not in held)}" if held else "",
    )
    return " ".join(filter(None, ("rankbench run", name, *options)))


def _repetitions(study: Study) -> int:
    return len({entry.cell.place.repetition for entry in study.entries})


def _wall_time(study: Study) -> str:
    """The time in which cells ran, and how many at a time."""
    if not study.results:
        return ""
    return f"{spelled(elapsed([study]))} in which cells ran, {at_a_time(study):.1f} at a time on average"


def _time(study: Study) -> str:
    """The wall time of all cells and trials one after the other, with starting processes and evaluation."""
    cells = [result.wall for result in study.results]
    trials = [entry.result.wall for entry in study.trials if entry.result]
    if not cells:
        return ""
    of_trials = f" and {spelled(sum(trials))} for {counted(len(trials), 'trial')}" if trials else ""
    longest = spelled(max(cells + trials))
    return f"{spelled(sum(cells))} for {counted(len(cells), 'cell')}{of_trials}; the longest took {longest}"


def _budget(budget: Budget) -> str:
    """When a solver stops."""
    parts = (
        "" if budget.steps is None else counted(budget.steps, "step"),
        "" if budget.seconds is None else f"{budget.seconds:g} seconds",
        "" if budget.tolerance is None else f"a relative change of the objective of at most {budget.tolerance:g}",
    )
    return " or ".join(filter(None, parts))


def _splits(study: Study) -> Iterator[str]:
    """A line for each data set and split, with the hash of every repetition's parts."""
    found: dict[str, dict[int, str]] = {}
    for group in study.groups:
        hashes = found.setdefault(place_label(study, group.place), {})
        hashes |= {result.cell.place.repetition: result.split[:_DIGITS] for result in group.good if result.split}
    for name, hashes in found.items():
        if hashes:
            yield f"{name}: {', '.join(hashes[repetition] for repetition in sorted(hashes))}"


def _manifest(study: Study) -> str:
    """The name and the SHA-256 of the list of all files that the numbers come from."""
    folder = Path(study.cells).parent
    found = manifest.digest(folder, study.plan)
    return f"{manifest.path_of(folder, study.plan).name}, SHA-256 {found}" if found else ""


def _pairs(study: Study) -> Iterator[str]:
    """A line for each data set and split with the number of pairs that a metric over all pairs is an average of."""
    over_pairs = [one.label for one in study.measures if not one.source and one.record.settings.average == "pairs"]
    found: dict[str, str] = {}
    for group in study.groups:
        known = samples(study, group) if over_pairs else {}
        for sample in (known[label] for label in over_pairs if label in known):
            counted = ~np.isnan(sample.values[0])
            pairs, users = sample.weights[0][counted].sum(), int(counted.sum())
            found.setdefault(place_label(study, group.place), f"{int(pairs):,} of {users:,} users")
    yield from (f"{name}: {count}" for name, count in found.items())


def _machines(study: Study) -> Iterator[str]:
    """A line for each machine, by the digits that tell whether times and numbers can be compared."""
    for fingerprint, basis in dict.fromkeys(
        (result.machine.fingerprint, result.machine.basis) for result in study.results
    ):
        yield f"fingerprint {fingerprint}, basis {basis}"


def _left_out(study: Study, table: Iterable[Row]) -> Iterator[str]:
    """A line for each data set with users whom a metric does not count; it names the metrics if they differ."""
    metrics = metric_labels(study)
    found: dict[str, dict[str, str]] = {}
    for row in table:
        if row.group and row.left_out and row.users is not None:
            by_metric = found.setdefault(place_label(study, row.group.place), {})
            by_metric[metrics[row.metric]] = f"{row.left_out:.0f} of {row.left_out + row.users:.0f}"
    for name, by_metric in found.items():
        counts: dict[str, list[str]] = {}
        for metric, count in by_metric.items():
            counts.setdefault(count, []).append(metric)
        alike = len(counts) == 1 and len(by_metric) == len(metrics)
        told = (count if alike else f"{count} by {', '.join(told)}" for count, told in counts.items())
        yield f"{name}: {'; '.join(told)}"


def _unscored(study: Study, table: Iterable[Row]) -> Iterator[str]:
    """A line for each data set with held-out pairs to which a model gives no score: from the fewest to the most."""
    found: dict[str, list[float]] = {}
    for row in table:
        if row.group and row.unscored:
            found.setdefault(place_label(study, row.group.place), []).append(row.unscored)
    for name, shares in found.items():
        least, most = f"{min(shares):.2%}", f"{max(shares):.2%}"
        yield f"{name}: {most if least == most else f'{least} to {most}, by solver'}"
