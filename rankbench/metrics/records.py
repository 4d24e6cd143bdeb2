"""The metrics, each a record of name, definition, direction, limits and settings."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from math import inf
from typing import Annotated, Any, Literal

from rankbench.core.contract import OwnMetric
from rankbench.core.errors import UserError, unknown
from rankbench.kernels.metrics.codes import Code
from rankbench.names import Checked, Limits, Named, Registry, build, changed_settings, parse, show, show_settings

RULES = (
    "Candidates, unless a metric says otherwise: the user's own held-out items. Ties in score: expected value over all "
    "orders (Kendall and Spearman: their own tie correction, 0 for constant scores; misranking: wrong). NaN scores: "
    "one tie behind all others (MSD, M1D and the cost functions: the user is left out). Mean over users; each metric "
    "says who is left out."
)

Better = Literal["higher", "lower"]
Users = Literal["ordered", "relevant", "all"]
OF_COMPARISONS = -1  # the code of a metric on held-out comparisons, which no kernel computes
_OWN = -2  # the code of a custom metric


class ListCode(IntEnum):
    """The codes of metrics of the lists that are recommended, which `lists.py` computes."""

    COVERAGE = -3
    GINI = -4
    NOVELTY = -5
    SIMILARITY = -6


@dataclass(frozen=True)
class Settings(Checked):
    """The settings in brackets after a metric's name; each metric takes some of them."""

    candidates: Literal["rated", "catalogue"] = "rated"
    relevant: Annotated[float, Limits(low=-inf)] = 4.0  # the lowest relevant rating; -inf: all held-out items
    users: Users | None = None  # the users that count; None: the metric's default
    pairs: Literal["test", "test-train", "both", "train"] = "test"
    average: Literal["users", "pairs"] = "users"
    n: Annotated[int, Limits(low=1, high=2)] = 1
    eps: Annotated[float, Limits(low=0)] = 0.1
    part: Literal["test", "train", "gap"] = "test"


@dataclass(frozen=True)
class Metric:
    """A metric: its name, definition, direction, limits and settings."""

    name: str
    definition: str  # with placeholders in braces for settings
    better: Better
    limits: tuple[float, float]
    code: int  # the kernel's code for it
    takes: tuple[str, ...] = ()
    cuts: bool = False  # whether it takes a cut-off @k
    users: Users = "relevant"  # the default of the setting `users` for rated candidates
    k: Annotated[int, Limits(low=1)] | None = None
    settings: Settings = field(default_factory=Settings)
    version: int = 1
    own: OwnMetric | None = None  # the custom metric that computes the values in place of a kernel
    source: Named | None = None  # the name of a custom metric

    @property
    def label(self) -> str:
        """The name with its cut-off and changed settings, as `metric` takes it."""
        if self.own is not None:
            return self.name
        cut = f"@{self.k}" if self.k else ""
        usual = METRICS[self.name].settings
        shown = {name: getattr(self.settings, name) for name in self.takes}
        changed = {name: value for name, value in shown.items() if value != getattr(usual, name)}
        if changed.get("relevant") == -inf:
            changed["relevant"] = "any"
        settings = show_settings(changed)
        return f"{self.name}{cut}" + (f"[{settings}]" if settings else "")

    @property
    def identity(self) -> str:
        """The metric's identity in stored results: its label, or for a custom metric the content of its file."""
        return self.source.identity if self.source else self.label

    @property
    def formula(self) -> str:
        """The full definition, with the settings filled in."""
        if self.own is not None:
            return self.definition
        return "; ".join([self.definition.format_map(_phrases(self)), *_clauses(self)])

    @property
    def choices(self) -> str:
        """The settings that the metric takes, with default values first; empty if there are none."""
        return ", ".join(f"{name}={_CHOICES[name]}" for name in self.takes)

    @property
    def counts(self) -> Users:
        """The users that count, by the setting or the metric's default."""
        return self.settings.users or usual_users(self)

    @property
    def of_training_pairs(self) -> bool:
        """Whether it is about the pairs of the training part, and thus about how well a model fits them."""
        return self.settings.pairs == "train"

    @property
    def whole(self) -> bool:
        """Whether the whole catalogue is ranked: all items without a training rating are candidates."""
        return "candidates" in self.takes and self.settings.candidates == "catalogue"

    @property
    def of_lists(self) -> bool:
        """Whether it is about the list of recommended items, and not about how the held-out ratings are ranked."""
        return self.code in set(ListCode)

    @property
    def needs_train(self) -> bool:
        """Whether the metric needs the training part."""
        with_training = self.settings.pairs != "test" or self.settings.part != "test"
        return with_training or self.whole or self.of_lists or ("users" in self.takes and self.counts == "all")


def usual_users(record: Metric) -> Users:
    """The default of the setting `users`; with the whole catalogue as candidates, the users with a relevant item."""
    return "relevant" if record.whole else record.users


_CHOICES = {
    "candidates": "rated|catalogue",
    "relevant": "4|NUMBER|any",
    "users": "ordered|relevant|all",
    "pairs": "test|test-train|both|train",
    "average": "users|pairs",
    "n": "1|2",
    "eps": "0.1|NUMBER",
    "part": "test|train|gap",
}
_PAIRS = {
    "test": "ordered pairs of held-out items (or held-out comparisons)",
    "test-train": "ordered pairs of a held-out and a training item",
    "both": "ordered pairs with a held-out item, the other held-out or of the training part",
    "train": "ordered pairs of training items (or training comparisons)",
}
_AVERAGES = {
    "users": "left out: users without such a pair",
    "pairs": "over the pairs of all users alike: each user's value is weighted by its pairs, so one may pass 1",
}
_PARTS = {
    "train": "of the training part in place of the held-out items",
    "gap": "and from it the same of the training part is taken away",
}
_LEFT_OUT = {
    "ordered": "left out: users whose held-out items are all rated alike",
    "relevant": "left out: users without {relevant}",
    "all": "users without {relevant} count 0; every user with a training or held-out rating counts",
}


_CATALOGUE = (
    "candidates: all items that the user has no training rating of; those not held out are not relevant and gain 0"
)


def _phrases(record: Metric) -> dict[str, str]:
    """The texts for the placeholders of a definition."""
    settings = record.settings
    ranks = f"the first {record.k} ranks" if record.whole else f"the first min({record.k}, candidates) ranks"
    return {
        "pairs": _PAIRS[settings.pairs],
        "relevant": "any held-out item" if settings.relevant == -inf else f"rating >= {settings.relevant:g}",
        "ranks": ranks if record.k else "all ranks",
        "beyond": f", 0 beyond rank {record.k}" if record.k else "",
        "n": str(settings.n),
        "power": "" if settings.n == 1 else "^2",
        "eps": f"{settings.eps:g}",
    }


def _clauses(record: Metric) -> list[str]:
    """The clauses after the definition: the candidates, the users left out and the kind of mean."""
    clauses = []
    if record.whole:
        clauses.append(_CATALOGUE)
    if record.of_lists:
        clauses.append(_LISTS.format(k=record.k))
    if "users" in record.takes:
        found = "a held-out rating above 0" if "relevant" not in record.takes else "a relevant held-out item"
        clauses.append(_LEFT_OUT[record.counts].format(relevant=found))
        if record.counts == "ordered" and record.users == "relevant":
            clauses[-1] += f", and users without {found}"
    if "average" in record.takes:
        clauses.append(_AVERAGES[record.settings.average])
    if record.settings.part != "test":
        clauses.append(_PARTS[record.settings.part])
    return clauses


_NDCG = (
    "sum over {ranks} of gain x discount / the same of the best order; gain %s, discount 1/log2(1 + rank), ranks "
    "counted from 1"
)
_OF_RANKS = ("candidates", "relevant", "users")
_OF_PAIRS = ("pairs", "average")
_LIST = 10  # the length of a list whose name has no cut-off
_ALL_PAIRS = (
    "mean over all n^2 ordered pairs (i, j) of the user's held-out items, i = j included, of %s, with h the scores "
    "and y the ratings; it depends on the scale of the scores; left out: users with fewer than two held-out items or "
    "one without a finite score"
)
_LISTS = (
    "a user's list: the {k} items with the highest scores among those without a training rating of the user, or all of "
    "these if they are fewer; left out: users without a held-out rating or without such an item"
)
_SHARED_OUT = (
    "a number of all lists together: each user's value is the share in it of the items on the user's list, scaled so "
    "that the mean over users is that number; so an interval takes the other users' lists as given and may pass a limit"
)
_MISORDERED = "where (h_j - h_i)(y_j - y_i) < 0, else 0"
_DIFFERENCE = "|(h_j - h_i) - (y_j - y_i)|"


def _of_pairs(
    name: str, definition: str, better: Better = "lower", average: Literal["users", "pairs"] = "users"
) -> Metric:
    """A metric of the pairs in the right or in the wrong order."""
    return Metric(name, definition, better, (0, 1), Code.PAIRWISE_ERROR, _OF_PAIRS, settings=Settings(average=average))


def _of_ranks(
    name: str, definition: str, code: Code, users: Users = "relevant", takes: tuple[str, ...] = _OF_RANKS
) -> Metric:
    """A metric of the ranks of relevant candidates, or of gains, perhaps up to a cut-off."""
    return Metric(name, definition, "higher", (0, 1), code, takes, True, users)


def _of_list(name: str, definition: str, better: Better, limits: tuple[float, float], code: ListCode) -> Metric:
    """A metric of the lists of recommended items."""
    return Metric(name, definition, better, limits, code, cuts=True, k=_LIST)


def _of_all_pairs(name: str, cost: str, code: Code, *takes: str) -> Metric:
    """The mean of a cost over all pairs."""
    return Metric(name, _ALL_PAIRS % cost, "lower", (0, inf), code, takes)


_RECORDS = (
    _of_pairs("pairwise-error", "share of the user's {pairs} that the scores put in the wrong order, a tie counts 1/2"),
    _of_pairs(
        "pairwise-accuracy",
        "share of the user's {pairs} that the scores put in the right order, a tie counts 1/2",
        better="higher",
    ),
    _of_pairs(
        "comparison-error",
        "share of the {pairs} that the scores put in the wrong order, a tie counts 1/2",
        average="pairs",
    ),
    Metric(
        "log-loss",
        "mean over the user's held-out comparisons of log(1 + e^-d), d the score of the better item less that of the "
        "worse: where they come from a Bradley-Terry-Luce model, its entropy and the Kullback-Leibler divergence from "
        "it; it depends on the scale of the scores; left out: users without a comparison or one without a finite score",
        "lower",
        (0, inf),
        OF_COMPARISONS,
    ),
    Metric(
        "brier",
        "mean over the user's held-out comparisons of (1 - p)^2, p = 1 / (1 + e^-d) the chance that the model gives "
        "the outcome, d the score of the better item less that of the worse: 1/4 if all scores are alike; it depends "
        "on the scale of the scores; left out: users without a comparison or one without a finite score",
        "lower",
        (0, 1),
        OF_COMPARISONS,
    ),
    Metric(
        "misranking",
        "share of the user's ordered pairs of held-out items whose better one is not scored strictly higher: a tie is "
        "wrong (Cortes et al. 2007, eq. 32); left out: users without such a pair",
        "lower",
        (0, 1),
        Code.MISRANKING,
    ),
    _of_ranks("ndcg", _NDCG % "2^rating - 1", Code.NDCG, "ordered", ("candidates", "users")),
    _of_ranks("ndcg-linear", _NDCG % "the rating itself", Code.NDCG_LINEAR, "ordered", ("candidates", "users")),
    _of_ranks(
        "precision",
        "share of {ranks} that hold a relevant candidate ({relevant})",
        Code.PRECISION,
        "ordered",
    ),
    _of_ranks("recall", "share of the user's relevant candidates ({relevant}) that stand on {ranks}", Code.RECALL),
    _of_ranks("mrr", "1 / rank of the first relevant candidate ({relevant}){beyond}", Code.RECIPROCAL_RANK),
    _of_ranks(
        "map",
        "average precision: mean over the user's relevant candidates ({relevant}) of the share of relevant ones up to "
        "and with their ranks{beyond}",
        Code.AVERAGE_PRECISION,
    ),
    Metric(
        "auc",
        "share of the user's pairs of a relevant ({relevant}) and another candidate that the scores put in the right "
        "order, a tie counts 1/2; left out: users without such a pair",
        "higher",
        (0, 1),
        Code.AUC,
        ("candidates", "relevant"),
    ),
    Metric(
        "kendall",
        "Kendall's tau-b of scores and ratings; left out: users whose held-out items are all rated alike",
        "higher",
        (-1, 1),
        Code.KENDALL,
    ),
    Metric(
        "spearman",
        "Pearson's correlation of mid-ranks of scores and ratings; left out: users whose held-out items are all rated "
        "alike",
        "higher",
        (-1, 1),
        Code.SPEARMAN,
    ),
    _of_list(
        "coverage",
        "share of all items of the catalogue that are on at least one user's list (of ties: the expected share); "
        + _SHARED_OUT,
        "higher",
        (0, 1),
        ListCode.COVERAGE,
    ),
    _of_list(
        "gini",
        "Gini coefficient of the items' exposures, sum over the n items of the catalogue of (2 r - n - 1) e / (n x sum "
        "of e), e the (of ties: expected) number of lists that an item is on and r its rank by rising e: 0 if all "
        "items are shown alike, 1 - 1/n if one alone is; " + _SHARED_OUT,
        "lower",
        (0, 1),
        ListCode.GINI,
    ),
    _of_list(
        "novelty",
        "mean self-information of the items on the user's list, -log2 of the share of the users with a training rating "
        "who rated the item in training, in bits; an item that none of them rated counts as rated by one",
        "higher",
        (0, inf),
        ListCode.NOVELTY,
    ),
    _of_list(
        "intra-list-similarity",
        "mean over the pairs of items on the user's list of the cosine of their features, 0 for an item whose features "
        "are all 0; left out: users with fewer than two items on their list",
        "lower",
        (-1, 1),
        ListCode.SIMILARITY,
    ),
    _of_all_pairs("msd", f"{_DIFFERENCE}^2", Code.MAGNITUDE_2),
    _of_all_pairs("m1d", _DIFFERENCE, Code.MAGNITUDE_1),
    _of_all_pairs("cost-hr", f"|h_j - h_i|{{power}} {_MISORDERED}", Code.HINGE_RANK_1, "n", "part"),
    _of_all_pairs("cost-mp", f"{_DIFFERENCE}{{power}}", Code.MAGNITUDE_1, "n", "part"),
    _of_all_pairs("cost-hmp", f"{_DIFFERENCE}{{power}} {_MISORDERED}", Code.ONE_SIDED_1, "n", "part"),
    _of_all_pairs("cost-svr", f"max({_DIFFERENCE} - {{eps}}, 0){{power}}", Code.INSENSITIVE_1, "n", "eps", "part"),
)
METRICS: dict[str, Metric] = {record.name: record for record in _RECORDS}
OWN_METRICS = Registry(
    "metric",
    entries={},
    group="rankbench.metrics",
    remedy="rankbench list metrics",
    needs=("definition", "better", "limits", "version", "of_user"),
)

_NAME = re.compile(r"(?P<base>[^@\[]+)(?:@(?P<k>-?\w+))?")


def metric(text: str) -> Metric:
    """The metric that a name describes: `ndcg@10`, `precision@5[relevant=3,candidates=catalogue]`, `mine.py:Mine`."""
    spec = parse(text)
    match = _NAME.fullmatch(spec.name)
    base = match["base"] if match else spec.name
    if base not in METRICS and (".py:" in spec.name or OWN_METRICS.knows(spec.name)):
        return own_metric(OWN_METRICS.resolve(text))
    if base not in METRICS:
        raise unknown("metric", base, [*METRICS, *OWN_METRICS.names()], "rankbench list metrics")
    record = METRICS[base]
    if match and match["k"]:
        record = replace(record, k=_cut_off(record, match["k"], text))
    if not spec.settings:
        return record
    record = replace(record, settings=_settings(record, spec.settings, text))
    if record.settings.part == "gap":
        record = replace(record, limits=(-inf, inf))
    if record.settings.users == usual_users(record):  # the default, given explicitly
        record = replace(record, settings=replace(record.settings, users=None))
    return record


def own_metric(source: Named) -> Metric:
    """The custom metric of this resolved name."""
    return replace(of_own(source.record, show(source.name, dict(source.given))), source=source)


def of_own(record: OwnMetric, name: str = "") -> Metric:
    """The metric of a custom record, with this name or the name of its class."""
    name = name or show(type(record).__name__, changed_settings(record))
    better = record.better
    if better not in ("higher", "lower"):
        raise UserError(f"metric {name!r} has better={better!r}: it must be 'higher' or 'lower'")
    return Metric(name, record.definition, better, record.limits, code=_OWN, version=record.version, own=record)


def _settings(record: Metric, given: Mapping[str, Any], text: str) -> Settings:
    """The metric's settings, updated with the given ones."""
    if not record.takes:
        raise UserError(f"metric {record.name!r} takes no settings: {text!r}")
    for name in given:
        if name not in record.takes:
            raise unknown(f"setting of {record.name}:", name, record.takes, f"it takes {record.choices}")
    own = {f.name: getattr(record.settings, f.name) for f in fields(Settings)}
    values = {name: "-inf" if (name, value) == ("relevant", "any") else value for name, value in given.items()}
    settings: Settings = build(Settings, {**own, **values}, record.name)
    return settings


def _cut_off(record: Metric, text: str, whole: str) -> int:
    if not record.cuts:
        raise UserError(f"metric {record.name!r} takes no cut-off: write {record.name!r}, not {whole!r}")
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"the cut-off in {whole!r} must be a whole number of at least 1")
    return int(text)
