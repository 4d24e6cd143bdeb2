"""Metrics: each a record of name, formula, direction and limits; and the evaluation of a model by them.

What holds for all: candidates are the user's own held-out items. Tied scores take the expected value
over all orders of the tie (the rank correlations use their own tie correction, and are 0 for constant
scores), so the order of the input never matters. Items scored NaN («I cannot») are placed together
behind all others, as one tie. Users whose held-out items are all rated the same are left out and
counted. The mean over the remaining users is reported.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from rankbench.contract import Floats, Ints, Model
from rankbench.data.views import Comparisons, View
from rankbench.errors import UserError, unknown
from rankbench.kernels import metrics as kernel
from rankbench.specs import Limits, build, check, parse, show_settings

RULES = (
    "Candidates: the user's own held-out items. Ties in score: expected value over all orders (Kendall and "
    "Spearman: their own tie correction, 0 for constant scores). NaN scores: one tie behind all others. "
    "Users without an ordered pair are left out. Mean over users."
)


@dataclass(frozen=True)
class Metric:
    """What a number in a table means."""

    name: str
    formula: str
    better: Literal["higher", "lower"]
    limits: tuple[float, float]
    code: int  # of the kernel
    cuts: bool = False  # takes @k
    grades: bool = False  # takes relevant=
    k: Annotated[int, Limits(low=1)] | None = None
    relevant: float | None = None
    version: int = 1

    @property
    def label(self) -> str:
        """The name with its cut-off and settings, as `measure` takes it."""
        cut = f"@{self.k}" if self.k else ""
        settings = show_settings({"relevant": self.relevant})
        return f"{self.name}{cut}" + (f"[{settings}]" if settings and self.relevant != _RELEVANT else "")


_RELEVANT = 4.0
_NDCG = "sum_places gain x discount / the same of the best order; discount 1/log2(1 + place), places to min(k, items)"

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "pairwise-error",
            "share of the user's held-out ordered pairs that the scores put in the wrong order, a tie counts 1/2",
            "lower",
            (0, 1),
            kernel.PAIRWISE_ERROR,
        ),
        Metric("ndcg", f"{_NDCG}; gain 2^rating - 1", "higher", (0, 1), kernel.NDCG, cuts=True),
        Metric("ndcg-linear", f"{_NDCG}; gain = rating", "higher", (0, 1), kernel.NDCG_LINEAR, cuts=True),
        Metric(
            "precision",
            "share of relevant items (rating >= relevant, 4 unless said) among the first min(k, items) places",
            "higher",
            (0, 1),
            kernel.PRECISION,
            cuts=True,
            grades=True,
        ),
        Metric("kendall", "Kendall's tau-b of scores and ratings", "higher", (-1, 1), kernel.KENDALL),
        Metric(
            "spearman", "Pearson's correlation of mid-ranks of scores and ratings", "higher", (-1, 1), kernel.SPEARMAN
        ),
    )
}

_NAME = re.compile(r"(?P<base>[^@\[]+)(?:@(?P<k>-?\w+))?")


@dataclass(frozen=True)
class _Options:
    """What may stand in brackets behind a metric's name."""

    relevant: float = _RELEVANT

    def __post_init__(self) -> None:
        check(self)


def metric(text: str) -> Metric:
    """The metric that a name describes: `ndcg@10`, `precision@5[relevant=4]`."""
    spec = parse(text)
    match = _NAME.fullmatch(spec.name)
    base = match["base"] if match else spec.name
    if base not in METRICS:
        raise unknown("metric", base, METRICS, "rankbench list metrics")
    record = METRICS[base]
    if match and match["k"]:
        record = replace(record, k=_cut_off(record, match["k"], text))
    if record.grades:
        return replace(record, relevant=build(_Options, spec.settings, base).relevant)
    if spec.settings:
        raise UserError(f"metric {base!r} takes no settings: {text!r}")
    return record


def _cut_off(record: Metric, text: str, whole: str) -> int:
    if not record.cuts:
        raise UserError(f"metric {record.name!r} takes no cut-off: write {record.name!r}, not {whole!r}")
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"the cut-off in {whole!r} must be a whole number of at least 1")
    return int(text)


def per_user(model: Model, test: View, names: Sequence[str | Metric], threads: int = 1) -> dict[str, Floats]:
    """Each metric's value for each user, NaN for users left out."""
    records = [name if isinstance(name, Metric) else metric(name) for name in names]
    for record in records:
        if reason := unusable(record, test):
            raise UserError(reason)
    if isinstance(test, Comparisons):
        return {record.label: _comparison_errors(model, test) for record in records}
    scores = _scores(model, test.users, test.items)
    values = kernel.per_user(
        test.indptr,
        test.values,
        scores,
        np.array([record.code for record in records], np.int32),
        np.array([min(record.k or 0, np.iinfo(np.int32).max) for record in records], np.int32),
        np.array([record.relevant or 0.0 for record in records]),
        1 / np.log2(2 + np.arange(np.diff(test.indptr).max(initial=0) + 1)),
        threads,
    )
    return {record.label: row for record, row in zip(records, values, strict=True)}


def evaluate(model: Model, test: View, names: Sequence[str | Metric], threads: int = 1) -> dict[str, float]:
    """Each metric's mean over the users that count; NaN where there is none."""
    return {label: mean(values) for label, values in per_user(model, test, names, threads).items()}


def mean(values: Floats) -> float:
    """The mean over users that are not left out."""
    counted = values[~np.isnan(values)]
    return float(counted.mean()) if len(counted) else float("nan")


def unusable(record: Metric, test: View) -> str | None:
    """Why this metric cannot be measured on this held-out part, or None."""
    if isinstance(test, Comparisons):
        if record.code == kernel.PAIRWISE_ERROR:
            return None
        return f"metric {record.name!r} needs held-out ratings, the data holds comparisons (use pairwise-error)"
    if record.code in (kernel.NDCG, kernel.NDCG_LINEAR) and test.values.min(initial=0.0) < 0:
        return f"metric {record.name!r} needs ratings of at least 0, the data goes down to {test.values.min():g}"
    return None


def _comparison_errors(model: Model, test: Comparisons) -> Floats:
    """Per user the share of held-out comparisons put the wrong way round, a tie counts 1/2."""
    users = test.users
    better = _scores(model, users, test.better)
    worse = _scores(model, users, test.worse)
    wrong = (better < worse) + 0.5 * (better == worse)
    counts = np.diff(test.indptr)
    with np.errstate(invalid="ignore"):
        return np.bincount(users, wrong, test.n_users) / np.where(counts, counts, np.nan)


def _scores(model: Model, users: Ints, items: Ints) -> Floats:
    """The model's scores, one for each pair; NaN becomes the lowest score of all."""
    scores = np.asarray(model.score(users, items), np.float64)
    if scores.shape != users.shape:
        found = f"{type(model).__name__} gave scores of shape {scores.shape} for {len(users)} pairs"
        raise UserError(f"{found}: score must give one for each")
    return np.where(np.isnan(scores), -np.inf, scores)
