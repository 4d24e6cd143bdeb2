"""How often intervals and verdicts err: on generated values, and on the repetitions of each solver against itself."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import numpy as np

from rankbench.core.contract import Floats
from rankbench.records.studies import Study
from rankbench.report.analysis.evidence import limits_of, samples
from rankbench.report.render.labels import metric_labels, solver_labels
from rankbench.report.render.tables import Sheet, csv_text
from rankbench.report.study import cached_by_study
from rankbench.statistics import study as generated
from rankbench.statistics.decisions import WORSE, words
from rankbench.statistics.estimates import difference_of_users

_TEXTS = ("values", "solver", "metric")  # headings of columns without numbers
_TIMES, _TOGETHER = (3, 5), 5  # repetitions of each, and how many equal solvers a group has
_LEGENDS = {
    "coverage": "Percent of intervals that hold the truth: of a mean / of a difference. 95 is right; more is cautious.",
    "groups": "Percent of groups of equal solvers in which any is called worse; at most 5 is right.",
    "equals": "Percent of solvers a margin apart that are called equal; at most 5 is right.",
    "powers": "Percent of rivals found worse that are worse by the difference stated for a power of 80 %.",
    "same-solver": (
        "Each solver is held against itself, in other repetitions of the same data: percent of pairs that are called "
        "different, by users alone and with all that repetitions draw, and percent of groups of five in which any is "
        "called worse. At most 5 is right. All draws come from the repetitions of this run, so that their error is "
        "larger than that of generated values."
    ),
}
TITLES = {
    "coverage": "Generated values: coverage",
    "groups": "Generated values: equal solvers",
    "equals": "Generated values: solvers a margin apart",
    "powers": "Generated values: stated power, with 100 users",
    "same-solver": "Trained models: each solver against itself",
}


def error_sheets(study: Study) -> Iterator[tuple[str, str, Sheet, str]]:
    """The name, the title, the lines and the legend of each table of errors; none of experiments without redraws."""
    for name, (heads, lines) in _found(study).items():
        numeric = tuple(head not in _TEXTS for head in heads)
        yield name, TITLES[name], Sheet(heads, numeric, tuple(map(tuple, lines))), _LEGENDS[name]


def errors_to_csv(name: str, study: Study) -> str:
    """One of these tables as CSV."""
    return csv_text(*_found(study)[name])


@cached_by_study
def _found(study: Study) -> Mapping[str, tuple[tuple[str, ...], list[Sequence[str]]]]:
    """The headings and the lines of each table."""
    redraws, seed = study.experiment.redraws, study.seed
    if not redraws:
        return {}
    times = tuple("1 repetition" if count == 1 else f"{count} repetitions" for count in generated.REPETITIONS)
    kinds = ("users alone", "all that is drawn", "groups")
    own = (f"{count} repetitions, {what}" for count in _TIMES for what in kinds)
    return {
        "coverage": (("values", "users", *times), list(generated.coverage(redraws, seed))),
        "groups": (("solvers", "users", *times[:3]), list(generated.groups(redraws, seed))),
        "equals": (("users", *times), list(generated.equals(redraws, seed))),
        "powers": (("rivals", *times), list(generated.powers(redraws, seed))),
        "same-solver": (("solver", "metric", *own), list(_of_solvers(study))),
    }


def _of_solvers(study: Study) -> Iterator[Sequence[str]]:
    """A line for each solver and metric: how often it is called different from itself."""
    names, labels = solver_labels(study), metric_labels(study)
    for group in study.groups:
        known = samples(study, group)
        for measure in study.measures:
            if measure.label in known:
                values = known[measure.label].values
                found = (_against_itself(study, values, count, limits_of(measure)) for count in _TIMES)
                yield names[group.solver.written], labels[measure.label], *(text for three in found for text in three)


def _against_itself(study: Study, pool: Floats, count: int, limits: tuple[float, float] | None
                    ) -> tuple[str, str, str]:  # fmt: skip
    """Percent of pairs called different by users alone and with all that is drawn, and of groups with a worse one."""
    alone, both, groups = [], [], []
    for redraw in range(study.experiment.redraws):
        rng = np.random.default_rng((study.seed, redraw, count))
        order = rng.permutation(len(pool))
        if len(pool) >= 2 * count:
            pair = pool[order[: 2 * count]].reshape(2, count, -1)
            seen = ~np.isnan(pair).all(axis=1).any(axis=0)
            one, other = np.nanmean(pair[..., seen], axis=1, keepdims=True)
            found = difference_of_users(one, other)
            alone.append(not found.low <= 0 <= found.high)
            both.append(_any_worse(pair, limits))
        if len(pool) >= _TOGETHER * count:
            groups.append(_any_worse(pool[order[: _TOGETHER * count]].reshape(_TOGETHER, count, -1), limits))
    return _percent(alone), _percent(both), _percent(groups)


def _any_worse(values: Floats, limits: tuple[float, float] | None) -> bool:
    return WORSE in words(values, "higher", 0.0, limits)


def _percent(wrong: Sequence[bool]) -> str:
    return f"{100 * fmean(wrong):.1f}" if wrong else ""
