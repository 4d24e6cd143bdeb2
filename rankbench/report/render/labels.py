"""Names for people: what solvers, data sets, splits, metrics and axes are called in figures and headings.

The experiment's `[names]` come first. What they leave out gets a name made from the class and from the settings that
tell it from others of its kind: `altsvm[rank=10,lam=3]` beside `altsvm[rank=20,lam=3]` is `AltSVM, rank 10`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from rankbench.core.errors import UserError
from rankbench.data import DATASETS
from rankbench.names import Named, show_value
from rankbench.names.registry import class_at
from rankbench.names.user_files import is_from_file
from rankbench.records.cells import DataSplit, Measure
from rankbench.records.studies import Study

_Naming = Callable[[Named, Iterable[Named]], str]
_SETTINGS = {  # how a setting is said; what is missing here is said as `name value`
    "lam": "λ = {}",
    "C": "C = {}",
    "eps": "ε = {}",
    "n": "n = {}",
    "inner": "{} inner passes",
    "groups": "{} groups",
    "parts": "{} parts",
    "users": "{} users",
    "items": "{} items",
    "per_user": "{} ratings per user",
    "comparisons": "{} comparisons per user",
    "features": "features: {}",
    "kernel": "{} kernel",
    "loss": "{} loss",
    "schedule": "{}",
    "start": "{} start",
    "form": "{} form",
    "terms": "terms of {}",
    "edition": "{} edition",
    "least": "at least {} ratings",
}
_OF_SPLITS = {  # of some splits, a setting has a meaning of its own
    ("n-per-user", "n"): "{} ratings per user",
    ("items-per-task", "n"): "{} items per task",
    ("binary", "C"): "{} comparisons per user",
    ("entries", "train"): "trained on a share of {}",
}
_AXES = {
    "seconds": "training time",
    "per_user": "ratings per user",
    "comparisons": "comparisons per user",
}
_UNITS = {"seconds": "s"}
_METRICS = {  # `{}` is the place of the cut-off, which else comes last
    "ndcg": "NDCG",
    "ndcg-linear": "NDCG{} with linear gains",
    "mrr": "reciprocal rank",
    "map": "average precision",
    "auc": "AUC",
    "kendall": "Kendall's τ",
    "spearman": "Spearman's ρ",
    "msd": "mean squared difference",
    "m1d": "mean absolute difference",
    "cost-hr": "hinge rank cost",
    "cost-mp": "magnitude-preserving cost",
    "cost-hmp": "one-sided magnitude-preserving cost",
    "cost-svr": "ε-insensitive cost",
}
_OF_METRICS = {  # how a metric's setting with a value is said
    ("candidates", "catalogue"): "over the catalogue",
    ("relevant", "-inf"): "any rated item is relevant",
    ("users", "all"): "all users",
    ("users", "relevant"): "users with a relevant item",
    ("users", "ordered"): "users with an order",
    ("pairs", "test"): "held-out pairs",
    ("pairs", "test-train"): "pairs with a training item",
    ("pairs", "both"): "all pairs with a held-out item",
    ("pairs", "train"): "training pairs",
    ("average", "pairs"): "mean over pairs",
    ("average", "users"): "mean over users",
    ("n", "1"): "absolute",
    ("n", "2"): "squared",
    ("part", "train"): "on the training part",
    ("part", "gap"): "held-out less training",
    ("part", "test"): "held-out",
}


def solver_labels(study: Study) -> Mapping[str, str]:
    """The name of each solver of the study, by its text as written; no two solvers share a name."""
    skipped = (skip.solver for skip in study.skips if skip.solver)
    return _labels([*(entry.cell.solver for entry in study.entries), *skipped], study.experiment.names.solvers)


def data_labels(study: Study) -> Mapping[str, str]:
    """The name of each data set of the study, by its text as written."""
    parts = (*(entry.cell.place.data for entry in study.entries), *(skip.data for skip in study.skips))
    return _labels(parts, study.experiment.names.data)


def split_labels(study: Study) -> Mapping[str, str]:
    """The name of each split of the study, by its text as written."""
    splits = (entry.cell.place.split for entry in study.entries)
    return _labels(splits, study.experiment.names.splits, _split_name)


def place_text(study: Study, place: DataSplit) -> str:
    """A data set as the user wrote it, with the split where the study has several: the text of a place on one line."""
    return place.written if study.has_several_splits else place.data.written


def place_columns(study: Study, place: DataSplit) -> tuple[str, ...]:
    """The same as the first columns of a table, which `place_headings` names."""
    return (place.data.written, place.split.written) if study.has_several_splits else (place.data.written,)


def place_headings(study: Study) -> tuple[str, ...]:
    """The headings of the columns that say where a row was measured."""
    return ("data", "split") if study.has_several_splits else ("data",)


def place_label(study: Study, place: DataSplit) -> str:
    """The name for people of a place: that of its data, and that of its split where the study has several."""
    data = data_labels(study)[place.data.written]
    return f"{data}, {split_labels(study)[place.split.written]}" if study.has_several_splits else data


def metric_labels(study: Study) -> Mapping[str, str]:
    """The name of each metric of the study, by its label; no two metrics share a name."""
    given = study.experiment.names.metrics
    return _distinct({one.label: given.get(one.label) or _metric_name(one, study.measures) for one in study.measures})


def metric_axis(study: Study, label: str) -> str:
    """The text beside an axis that shows a metric: its name, its unit if it has one, and which end is better."""
    better = next((one.better for one in study.measures if one.label == label), "higher")
    name = metric_labels(study).get(label, label)
    return f"{_with_unit(name, study.experiment.names.units.get(label, ''))}\n({better} is better)"


def axis_label(study: Study, setting: str) -> str:
    """The text beside an axis that shows a setting, the training time or a number of steps, with its unit."""
    names = study.experiment.names
    name = names.axes.get(setting) or _AXES.get(setting) or setting.replace("_", " ")
    return _with_unit(name, names.units.get(setting) or ("" if setting in names.axes else _UNITS.get(setting, "")))


def setting_label(study: Study, setting: str, value: object) -> str:
    """A setting with its value, for the title of a panel: `rank 2`, `100 users`, with a given name `tasks: 30`."""
    if name := study.experiment.names.axes.get(setting):
        return f"{name}: {show_value(value)}"
    return _said(setting, value)


def setting_name(setting: str) -> str:
    """What a setting is called without a value: `rank`, `λ`, `inner passes`."""
    return _SETTINGS.get(setting, "").replace("{}", "").strip(" =:") or setting.replace("_", " ")


def data_title(text: str) -> str:
    """What the data set of this name is called, with the settings that the name mentions."""
    try:
        named = DATASETS.resolve(text)
    except UserError:  # of a plug-in that is no longer installed
        return text
    return ", ".join([class_title(named), *(_said(key, value) for key, value in named.given)])


def class_title(named: Named) -> str:
    """What a solver, data set or split is called without its settings: the `title` of its class, or the class's name.

    A class in a user's own file is called by its name, since reading results does not run a user's code.
    """
    if named.argument:
        return f"lookalike of {named.argument}" if named.entry == "lookalike:" else Path(named.argument).name
    attribute = named.home.rpartition(":")[2]
    if is_from_file(named.home):
        return attribute
    try:
        return str(getattr(class_at(named.home), "title", attribute))
    except (ImportError, UserError):  # of a plug-in that is no longer installed
        return attribute


def _labels(found: Iterable[Named], given: Mapping[str, str], name: _Naming | None = None) -> Mapping[str, str]:
    """The given or generated name of each, by its text as written."""
    every, make = {one.written: one for one in found}, name or _name
    return _distinct({text: given.get(text) or make(one, every.values()) for text, one in every.items()})


def _distinct(labels: Mapping[str, str]) -> Mapping[str, str]:
    """The labels, with the text itself in place of a label that several share."""
    counts = Counter(labels.values())
    return {text: label if counts[label] == 1 else text for text, label in labels.items()}


def _name(named: Named, others: Iterable[Named]) -> str:
    """The title with the settings that tell it from the others of its name."""
    return ", ".join([class_title(named), *(_said(key, value) for key, value in _telling(named, others).items())])


def _split_name(named: Named, others: Iterable[Named]) -> str:
    """The settings of a split that tell it from the others, or its title if none do."""
    telling = _telling(named, others)
    if len({one.name for one in others}) > 1 or not telling:
        return _name(named, others)
    own = {key: _OF_SPLITS.get((named.name, key)) for key in telling}
    return ", ".join(form.format(telling[key]) if form else _said(key, telling[key]) for key, form in own.items())


def _telling(named: Named, others: Iterable[Named]) -> dict[str, object]:
    """The written settings whose values are not those of all others of the same name."""
    namesakes = [dict(other.given) for other in others if other.name == named.name]
    return {key: value for key, value in named.given if any(other.get(key) != value for other in namesakes)}


def _said(key: str, value: object) -> str:
    """A setting with its value in words."""
    text = show_value(value)
    if text in ("true", "false"):
        return ("" if text == "true" else "not ") + key.replace("_", " ")
    return _SETTINGS[key].format(text) if key in _SETTINGS else f"{key.replace('_', ' ')} {text}"


def _metric_name(measure: Measure, others: Iterable[Measure]) -> str:
    """The title of a metric with the settings that tell it from the others of its name, in brackets."""
    if measure.source:
        return class_title(measure.source)
    record = measure.record
    cut = f"@{record.k}" if record.k else ""
    title = _METRICS.get(record.name, record.name.replace("-", " "))
    name = title.format(cut) if "{}" in title else title + cut
    namesakes = [other.record for other in others if other.source is None]
    like = [other.settings for other in namesakes if (other.name, other.k) == (record.name, record.k)]
    parts = []
    for key in record.takes:
        value = getattr(record.settings, key)
        tells = any(getattr(other, key) != value for other in like) or (key == "part" and value != "test")
        if tells and value is not None:
            parts.append(_OF_METRICS.get((key, show_value(value))) or _said(key, value))
    return f"{name} ({', '.join(parts)})" if parts else name


def _with_unit(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name


def joined(names: Sequence[str]) -> str:
    """Names as a list in words."""
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last


def counted(number: int, what: str, form: str = "") -> str:
    """So many of them: `1 cell`, `2 cells`."""
    return f"{number:{form}} {what}" + ("s" if number != 1 else "")


def capital(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]
