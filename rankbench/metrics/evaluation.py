"""The evaluation of a model: each metric's value for each user, combined from rows of numbers that the kernels compute.

Rows that several metrics share are computed once, and all rows in one pass over the users.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rankbench.core.contract import Floats, Model, OwnMetric
from rankbench.core.errors import UserError
from rankbench.data.by_item import users_of
from rankbench.data.views import Comparisons, Ratings, View
from rankbench.data.views.layout import blocks
from rankbench.kernels.metrics.codes import Code
from rankbench.metrics.catalogue import whole_catalogue
from rankbench.metrics.lists import of_lists
from rankbench.metrics.records import OF_COMPARISONS, ListCode, Metric, metric, of_own
from rankbench.metrics.reliability import LOSSES, gaps
from rankbench.metrics.rows import KernelRow, rated, scores_of
from rankbench.models import Factors
from rankbench.names import checked_threads

_OVERFLOWING = 1000  # at ratings from here on 2^rating, summed over many items, may overflow
_ERRORS = {"test": Code.PAIRWISE_ERROR, "test-train": Code.TEST_TRAIN_ERROR, "both": Code.BOTH_ERROR}
_SQUARED = {  # of the costs whose differences may be squared
    Code.HINGE_RANK_1: Code.HINGE_RANK_2,
    Code.MAGNITUDE_1: Code.MAGNITUDE_2,
    Code.ONE_SIDED_1: Code.ONE_SIDED_2,
    Code.INSENSITIVE_1: Code.INSENSITIVE_2,
}
_PAIRS = {"test": Code.ORDERED_PAIRS, "test-train": Code.TEST_TRAIN_PAIRS, "both": Code.BOTH_PAIRS}
_ACROSS = ("test-train", "both")  # pairs of a held-out and a training item

MetricName = str | Metric | OwnMetric
KernelRows = Mapping[KernelRow, Floats]


@dataclass(frozen=True, eq=False)
class PerUser:
    """The values of each metric by its label, one for each user, NaN for users left out.

    For an average over pairs the values are scaled so that their plain mean is that average, and `pairs` holds the
    number of pairs of each user.
    """

    values: dict[str, Floats]
    pairs: dict[str, Floats]


def per_user(
    model: Model, test: View, names: Sequence[MetricName], threads: int = 1, train: View | None = None
) -> dict[str, Floats]:
    """Each metric's value for each user, NaN for users left out; for `train` see `measure`."""
    return measure(model, test, names, threads, train).values


def measure(
    model: Model, test: View, names: Sequence[MetricName], threads: int = 1, train: View | None = None
) -> PerUser:
    """Each metric's value for each user, with the numbers of pairs behind averages over pairs.

    `train` is the training part. Metrics over pairs with training items, over the whole catalogue or over all
    users need it. Both items of a training comparison count as seen; if the split has a part `seen`, pass that
    part instead.
    """
    threads = checked_threads(threads)
    records = [_record(name) for name in names]
    for record in records:
        _refuse_unusable(record, test, train)
    fitted = [record for record in records if record.of_training_pairs]
    listed = [record for record in records if record.of_lists and record not in fitted]
    others = [record for record in records if record not in (*fitted, *listed)]
    parts = [
        _compared(model, test, others) if isinstance(test, Comparisons) else _rated(model, test, others, threads, train)
    ]
    if train is not None and fitted:
        parts.append(_on_training_pairs(model, train, fitted, threads))
    if train is not None and listed and isinstance(test, Ratings):
        parts.append(_on_lists(model, test, listed, threads, train))
    values = {label: found for part in parts for label, found in part.values.items()}
    pairs = {label: found for part in parts for label, found in part.pairs.items()}
    return PerUser({record.label: values[record.label] for record in records}, pairs)


def _rated(model: Model, test: Ratings, records: Sequence[Metric], threads: int, train: View | None) -> PerUser:
    """The values of metrics on held-out ratings."""
    counted = [record for record in records if record.own is None]
    rows = list(dict.fromkeys(row for record in counted for row in _rows(record)))
    values = _measured(model, test, rows, threads, train)
    asked = dict.fromkeys(row for record in counted if record.settings.part != "test" for row in _rows(record))
    trained = _measured(model, train, list(asked), threads, None) if asked and isinstance(train, Ratings) else {}
    found = {record.label: _of_part(record, _value(record, values, test, train), trained) for record in counted}
    found |= {record.label: _by_own(record.own, model, test) for record in records if record.own is not None}
    return PerUser(found, {record.label: values[_rows(record)[1]] for record in counted if _over_pairs(record)})


def _on_training_pairs(model: Model, train: View, records: Sequence[Metric], threads: int) -> PerUser:
    """The values of metrics over training pairs: as over held-out pairs, with the training part in their place."""
    plain = {record.label: replace(record, settings=replace(record.settings, pairs="test")) for record in records}
    found = measure(model, train, list(plain.values()), threads)
    return PerUser(
        {label: found.values[record.label] for label, record in plain.items()},
        {label: found.pairs[record.label] for label, record in plain.items() if record.label in found.pairs},
    )


def _on_lists(model: Model, test: Ratings, records: Sequence[Metric], threads: int, train: View) -> PerUser:
    """The values of metrics of the recommended lists."""
    asked = {record.label: (record.code, record.k or 0) for record in records}
    found = of_lists(model, test, list(asked.values()), threads, train)
    return PerUser({label: found[request] for label, request in asked.items()}, {})


def _over_pairs(record: Metric) -> bool:
    """Whether the metric is an average over pairs and not over users."""
    return "pairs" in record.takes and record.settings.average == "pairs"


def _by_own(metric: OwnMetric, model: Model, test: Ratings) -> Floats:
    """The values of a custom metric, one for each user; NaN for users without held-out ratings."""
    scores, values = scores_of(model, test.users, test.items), np.full(test.n_users, np.nan)
    for user in np.flatnonzero(np.diff(test.indptr)):
        own = slice(test.indptr[user], test.indptr[user + 1])
        values[user] = metric.of_user(scores[own], test.values[own])
    return values


def _record(name: MetricName) -> Metric:
    """The metric of this name, or of this custom record."""
    if isinstance(name, str):
        return metric(name)
    return name if isinstance(name, Metric) else of_own(name)


def _of_part(record: Metric, held_out: Floats, trained: KernelRows) -> Floats:
    """The value on the held-out part, on the training part, or their difference, as the setting `part` says."""
    if record.settings.part == "test":
        return held_out
    on_train = np.where(np.isnan(held_out), np.nan, trained[_rows(record)[0]])
    return on_train if record.settings.part == "train" else held_out - on_train


def evaluate(
    model: Model, test: View, names: Sequence[MetricName], threads: int = 1, train: View | None = None
) -> dict[str, float]:
    """Each metric's mean over users that are not left out; NaN if there are none."""
    return {label: mean(values) for label, values in per_user(model, test, names, threads, train).items()}


def mean(values: Floats) -> float:
    """The mean over the values that are not NaN."""
    counted = values[~np.isnan(values)]
    return float(counted.mean()) if len(counted) else float("nan")


def unusable(record: Metric, test: View, train: View | None = None) -> str | None:
    """Why this metric cannot be measured on this held-out part, after this training part, or None."""
    if isinstance(test, Comparisons):
        return _unusable_on_comparisons(record)
    if record.code == OF_COMPARISONS:
        return f"metric {record.name!r} needs held-out comparisons, the data holds ratings (use pairwise-error)"
    if record.code in (Code.NDCG, Code.NDCG_LINEAR):
        return _without_gains(record, test)
    if record.code == ListCode.SIMILARITY:
        return _without_pairs(record, test)
    pairs = record.settings.pairs in _ACROSS
    if isinstance(train, Comparisons) and (pairs or record.settings.part != "test"):
        return f"metric {record.label!r} needs training ratings, the data holds comparisons (use {record.name!r})"
    return None


def valueless(record: Metric, test: View, train: View) -> str | None:
    """Why this metric has no value for any user, whatever the model, or None."""
    if isinstance(test, Comparisons) or test.has_order.any() or record.own is not None:
        return None
    if record.whole and record.counts != "ordered" and record.name != "auc":
        if (test.values >= record.settings.relevant).any():  # so the user with this item has a value
            return None
    nothing = Factors(np.zeros((test.n_users, 1)), np.zeros((test.n_items, 1)))
    if not np.isnan(per_user(nothing, test, [record], train=train)[record.label]).all():
        return None
    other = "recall@10[candidates=catalogue,relevant=any]"
    return f"metric {record.label!r} has no value: no user has two held-out items with different ratings (use {other})"


def _without_gains(record: Metric, test: Ratings) -> str | None:
    """Why these ratings have no gains."""
    if test.values.min(initial=0.0) < 0:
        return f"metric {record.name!r} needs ratings of at least 0, the lowest rating is {test.values.min():g}"
    if record.code == Code.NDCG and (most := test.values.max(initial=0.0)) >= _OVERFLOWING:
        return f"metric {record.name!r} has the gain 2^rating - 1, too large for a rating of {most:g} (use ndcg-linear)"
    return None


def _without_pairs(record: Metric, test: Ratings) -> str | None:
    """Why no list has a pair of items with features."""
    if test.item_features is None:
        return f"metric {record.name!r} needs item features, the data has none"
    return f"metric {record.label!r} needs lists of two items or more (use {record.name}@2)" if record.k == 1 else None


def _unusable_on_comparisons(record: Metric) -> str | None:
    if record.of_lists:
        return f"metric {record.name!r} needs held-out ratings, the data holds comparisons"
    if "pairs" not in record.takes and record.code != OF_COMPARISONS:
        return f"metric {record.name!r} needs held-out ratings, the data holds comparisons (use pairwise-error)"
    if record.settings.pairs in _ACROSS:
        return f"metric {record.label!r} needs held-out ratings, the data holds comparisons (use {record.name!r})"
    return None


def _refuse_unusable(record: Metric, test: View, train: View | None) -> None:
    if reason := unusable(record, test, train):
        raise UserError(reason)
    if not record.needs_train:
        return
    if train is None:
        raise UserError(f"metric {record.label!r} needs the training part: pass train=split.train")
    if (train.n_users, train.n_items) != (test.n_users, test.n_items):
        trained, tested = (f"{part.n_users} users and {part.n_items} items" for part in (train, test))
        raise UserError(f"the training part has {trained}, the held-out part {tested}: both must have the same numbers")


def _rows(record: Metric) -> list[KernelRow]:
    """The kernel rows that the metric needs: its value, and for a metric over pairs their number."""
    settings, code = record.settings, record.code
    threshold = settings.eps if "eps" in record.takes else settings.relevant if "relevant" in record.takes else 0.0
    if "pairs" in record.takes:
        return [KernelRow(_ERRORS[settings.pairs]), KernelRow(_PAIRS[settings.pairs])]
    squared = "n" in record.takes and settings.n == 2
    return [KernelRow(_SQUARED[Code(code)] if squared else code, record.k or 0, threshold, record.whole)]


def _measured(model: Model, test: Ratings, rows: Sequence[KernelRow], threads: int, train: View | None) -> KernelRows:
    """The values of these rows on the held-out part, computed by the kernels."""
    values: dict[KernelRow, Floats] = {}
    if own := [row for row in rows if not row.whole]:
        ratings = train if isinstance(train, Ratings) else None
        values |= zip(own, rated(model, test, own, threads, ratings), strict=True)
    whole = [row for row in rows if row.whole]
    if whole and train is not None:
        values |= zip(whole, whole_catalogue(model, test, whole, threads, train), strict=True)
    return values


def _value(record: Metric, values: KernelRows, test: Ratings, train: View | None) -> Floats:
    """A metric's value for each user, NaN for users left out."""
    value, *pairs = (values[row] for row in _rows(record))
    if pairs:
        return _of_pairs(record, value, pairs[0])
    if "users" not in record.takes:
        return value
    if record.counts == "all" and train is not None:
        present = (np.diff(test.indptr) + np.diff(train.indptr)) > 0  # in the held-out or in the training part
        return np.where(np.isnan(value) & present, 0.0, value)
    if record.counts == "ordered":
        return np.where(test.has_order, value, np.nan)
    if record.counts == "relevant" and "relevant" in record.takes:
        relevant = np.bincount(test.users[test.values >= record.settings.relevant], minlength=test.n_users) > 0
        return np.where(relevant, value, np.nan)
    return value


def _of_pairs(record: Metric, errors: Floats, pairs: Floats) -> Floats:
    """Each user's error or accuracy; for averages over pairs, scaled so that their mean over users is the average."""
    values = 1.0 - errors if record.better == "higher" else errors
    if record.settings.average == "users":
        return values
    counted = ~np.isnan(values)
    weighted: Floats = values * pairs * (counted.sum() / max(1.0, pairs[counted].sum()))
    return weighted


def _compared(model: Model, test: Comparisons, records: Sequence[Metric]) -> PerUser:
    """The values of metrics on held-out comparisons."""
    pairs = np.diff(test.indptr).astype(np.float64)
    found = {record.label: np.full(test.n_users, np.nan) for record in records}
    for users, rows in blocks(test.indptr):
        owners = users_of(test.indptr[users.start : users.stop + 1])
        better, worse = (scores_of(model, owners + users.start, side[rows]) for side in (test.better, test.worse))
        for record in records:
            values = _of_comparisons(record, better, worse)
            sums = np.bincount(owners, values, users.stop - users.start)
            np.divide(sums, pairs[users], out=found[record.label][users], where=pairs[users] > 0)
    for record in records:
        if record.code != OF_COMPARISONS:
            found[record.label] = _of_pairs(record, found[record.label], pairs)
    return PerUser(found, {record.label: pairs for record in records if _over_pairs(record)})


def _of_comparisons(record: Metric, better: Floats, worse: Floats) -> Floats:
    """The loss of each comparison for a metric, or for others 1 where the order is wrong and 1/2 for a tie."""
    if record.code == OF_COMPARISONS:
        return LOSSES[record.name](gaps(better, worse))
    wrong: Floats = (better < worse) + 0.5 * (better == worse)
    return wrong
