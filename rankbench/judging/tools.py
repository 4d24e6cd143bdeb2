"""By which convention each tool evaluates: one use for each function of a tool that computes a metric."""

import re
from dataclasses import dataclass, replace
from typing import Any

from rankbench.core.errors import UserError, unknown
from rankbench.judging.conventions import (
    METRICS,
    Average,
    Candidates,
    Convention,
    Discount,
    Divisor,
    Gain,
    Missing,
    Ties,
    Unknown,
    Without,
    phrases,
)

JUDGE = "rankbench judge"


@dataclass(frozen=True)
class Use:
    """How a tool is asked for a metric, and the convention by which it answers."""

    tool: str
    convention: Convention
    whole: str  # as one writes it there without a cut-off; empty if that cannot be
    at: str  # with the cut-off K; empty if there cannot be one
    open_ties: bool = False  # whether the tool leaves the order of ties open; the order of the file stands for it

    def called(self, cut: int | None) -> str:
        """What the tool is asked for; empty if it does not compute that."""
        return self.whole if cut is None else self.at.replace("K", str(cut))

    def written(self, cut: int | None) -> str:
        """The tool and what it is asked for; empty if it does not compute that."""
        call = self.called(cut)
        return f"{self.tool} {call}" if call else ""


@dataclass(frozen=True)
class Asked:
    """A metric that runs are judged by."""

    label: str
    cut: int | None
    convention: Convention

    @property
    def definition(self) -> str:
        """Its definition in words."""
        cut = "" if self.cut is None else f"the first {self.cut} ranks; "
        return cut + "; ".join(phrases(self.convention))


def metric_and_cut(text: str) -> tuple[str, int | None]:
    """The metric and the cut-off of a name such as `ndcg@10`; the cut-off is None if it has none."""
    name, at, cut = text.partition("@")
    if name not in METRICS:
        raise unknown("metric", name, METRICS, "--metric NAME or NAME@K")
    if at and not re.fullmatch("0*[1-9][0-9]{0,8}", cut):
        raise UserError(f"the cut-off in {text!r} must be a whole number from 1 to 999999999")
    return name, int(cut) if at else None


def uses_of(metric: str, cut: int | None) -> list[Use]:
    """The uses that compute this metric with this cut-off, or without one if it is None."""
    found = [use for use in USES if use.convention.metric == metric and use.written(cut)]
    if not found:
        raise UserError(f"no tool computes {metric} with a cut-off", remedy=f"write {metric!r}")
    return found


@dataclass(frozen=True)
class _Tool:
    """A tool, with what the conventions of its metrics have in common."""

    name: str
    base: Convention
    open_ties: bool = False

    def use(self, metric: str, whole: str, at: str, **changes: Any) -> Use:
        """How it is asked for a metric, and what is changed for it; the usual divisor is k or the relevant items."""
        divisor = Divisor.RELEVANT if metric in ("recall", "map") else Divisor.CUT
        convention = replace(self.base, **{"metric": metric, "divisor": divisor, **changes})
        return Use(self.name, convention, whole, at, self.open_ties and "ties" not in changes)


def _judge() -> list[Use]:
    """`rankbench judge`, unless another tool's convention is asked for; a graded metric counts every relevance."""
    tool = _Tool(JUDGE, Convention("", Ties.EXPECTED, relevant=1.0, missing=Missing.ZERO))
    return [
        tool.use("ndcg", "ndcg", "ndcg@K", relevant=None, gain=Gain.EXPONENTIAL),
        tool.use("ndcg", "ndcg-linear", "ndcg-linear@K", relevant=None),
        *(tool.use(name, name, f"{name}@K") for name in ("precision", "recall", "map", "mrr", "hit-rate")),
        tool.use("auc", "auc", "", candidates=Candidates.BOTH),
    ]


def _own(setting: str, candidates: Candidates, precision: dict[str, Any], ndcg: Without) -> list[Use]:
    """rankbench: the setting `relevant` sets the lowest relevance, which NDCG ignores."""
    tool = _Tool("rankbench", Convention("", Ties.EXPECTED, candidates, relevant=4.0, missing=Missing.TIED))
    return [
        tool.use("ndcg", f"ndcg{setting}", f"ndcg@K{setting}", relevant=None, without=ndcg, gain=Gain.EXPONENTIAL),
        tool.use("ndcg", f"ndcg-linear{setting}", f"ndcg-linear@K{setting}", relevant=None, without=ndcg),
        tool.use("precision", f"precision{setting}", f"precision@K{setting}", **precision),
        *(tool.use(name, f"{name}{setting}", f"{name}@K{setting}") for name in ("recall", "map", "mrr")),
        tool.use("auc", f"auc{setting}", ""),
    ]


def _trec(name: str, missing: Missing) -> list[Use]:
    """trec_eval: `-l` sets the lowest relevance, which NDCG ignores."""
    tool = _Tool(name, Convention("", Ties.TREC, relevant=1.0, without=Without.ZERO, missing=missing))
    return [
        tool.use("ndcg", "ndcg", "ndcg_cut_K", relevant=None),
        tool.use("precision", "set_P", "P_K"),
        tool.use("recall", "set_recall", "recall_K"),
        tool.use("map", "map", "map_cut_K"),
        tool.use("mrr", "recip_rank", ""),
        tool.use("hit-rate", "", "success_K"),
    ]


def _ranx(name: str, ties: Ties) -> list[Use]:
    """ranx: `-l` in a metric's name sets the lowest relevance."""
    tool = _Tool(name, Convention("", ties, relevant=1.0, without=Without.ZERO, missing=Missing.ZERO))
    return [
        tool.use("ndcg", "ndcg", "ndcg@K"),
        tool.use("ndcg", "ndcg_burges", "ndcg_burges@K", gain=Gain.EXPONENTIAL),
        *(tool.use(metric, metric, f"{metric}@K") for metric in ("precision", "recall", "map", "mrr")),
        tool.use("hit-rate", "hit_rate", "hit_rate@K"),
    ]


_RECBOLE = _Tool("RecBole", Convention("", Ties.GIVEN, missing=Missing.ZERO), open_ties=True)
_ELLIOT = _Tool("Elliot", Convention("", Ties.GIVEN, relevant=0.0))
_LENSKIT = _Tool("LensKit", Convention("", Ties.GIVEN, unknown=Unknown.ZERO))
_SKLEARN = _Tool("scikit-learn", Convention("", Ties.EXPECTED, Candidates.BOTH, relevant=1.0))
_CORNAC = _Tool("cornac", Convention("", Ties.GIVEN, relevant=1.0, missing=Missing.ZERO), open_ties=True)
_IMPLICIT = _Tool("implicit", Convention("", Ties.GIVEN, missing=Missing.ZERO), open_ties=True)

USES: tuple[Use, ...] = (
    *_judge(),
    # rankbench with the held-out items as candidates, and with the catalogue, which is then all items of the run
    *_own("", Candidates.TRUTH, {"without": Without.ALIKE, "divisor": Divisor.RETRIEVED}, Without.ALIKE),
    *_own("[candidates=catalogue]", Candidates.BOTH, {}, Without.DROPPED),
    *_trec("trec_eval", Missing.DROPPED),
    *_trec("trec_eval -c", Missing.ZERO),
    *_ranx("ranx", Ties.RANX),
    *_ranx("ranx make_comparable", Ties.RANX_TWICE),
    # RecBole, to which every item of the test part is relevant
    _RECBOLE.use("ndcg", "", "NDCG@K", gain=Gain.BINARY),
    _RECBOLE.use("precision", "", "Precision@K"),
    _RECBOLE.use("recall", "", "Recall@K"),
    _RECBOLE.use("map", "", "MAP@K", divisor=Divisor.RELEVANT_OR_CUT),
    _RECBOLE.use("mrr", "", "MRR@K"),
    _RECBOLE.use("hit-rate", "", "Hit@K"),
    _RECBOLE.use("auc", "GAUC", "", ties=Ties.EXPECTED, average=Average.POSITIVES),
    # Elliot: `relevance_threshold` is 0 by default
    _ELLIOT.use("ndcg", "", "nDCG@K", gain=Gain.SHIFTED),
    _ELLIOT.use("precision", "", "Precision@K"),
    _ELLIOT.use("recall", "", "Recall@K"),
    _ELLIOT.use("map", "", "MAP@K", divisor=Divisor.PLACES),
    _ELLIOT.use("mrr", "", "MRR@K"),
    _ELLIOT.use("hit-rate", "", "HR@K"),
    # LensKit, to which every item of the test part is relevant; its lists come in an order of their own
    _LENSKIT.use("ndcg", "NDCG()", "NDCG(K)", discount=Discount.CLIPPED, gain=Gain.BINARY),
    _LENSKIT.use("precision", "Precision()", "Precision(K)", divisor=Divisor.RETRIEVED),
    _LENSKIT.use("recall", "Recall()", "Recall(K)", divisor=Divisor.RELEVANT_OR_CUT),
    _LENSKIT.use(  # fails for users of whom the truth has nothing
        "map",
        "AveragePrecision()",
        "AveragePrecision(K)",
        divisor=Divisor.RELEVANT_OR_RETRIEVED,
        unknown=Unknown.DROPPED,
    ),
    _LENSKIT.use("mrr", "RecipRank()", "RecipRank(K)"),
    _LENSKIT.use("hit-rate", "Hit()", "Hit(K)"),
    _LENSKIT.use(
        "ndcg", "NDCG(gain='rating')", "NDCG(K, gain='rating')", discount=Discount.CLIPPED, without=Without.ZERO
    ),
    # scikit-learn, given for each user all items of both lists, those without a score below the others
    _SKLEARN.use("ndcg", "ndcg_score", "ndcg_score(k=K)", relevant=None, without=Without.ZERO),
    _SKLEARN.use("map", "average_precision_score", "", ties=Ties.TOGETHER, without=Without.ZERO),
    _SKLEARN.use("map", "label_ranking_average_precision_score", "", ties=Ties.TOGETHER, without=Without.ONE),
    _SKLEARN.use("auc", "roc_auc_score", ""),
    # cornac: `rating_threshold` is 1 by default
    _CORNAC.use("ndcg", "NDCG()", "NDCG(k=K)", gain=Gain.BINARY),
    _CORNAC.use("precision", "Precision()", "Precision(k=K)"),
    _CORNAC.use("recall", "Recall()", "Recall(k=K)"),
    _CORNAC.use("hit-rate", "HitRatio()", "HitRatio(k=K)"),
    _CORNAC.use("map", "MAP()", "", ties=Ties.TOGETHER),
    _CORNAC.use("mrr", "MRR()", ""),
    _CORNAC.use("auc", "AUC()", "", ties=Ties.LAST),
    # implicit, to which every entry of the test matrix is relevant
    _IMPLICIT.use("ndcg", "", "ndcg_at_k(K=K)", gain=Gain.BINARY),
    _IMPLICIT.use("precision", "", "precision_at_k(K=K)", divisor=Divisor.RELEVANT_OR_CUT, average=Average.DIVISORS),
    _IMPLICIT.use("map", "", "mean_average_precision_at_k(K=K)", divisor=Divisor.RELEVANT_OR_CUT),
)
TOOLS = tuple(dict.fromkeys(use.tool for use in USES))


def asked_of(tool: str, text: str, relevant: float | None) -> Asked:
    """A metric by a tool's convention: under the general name, `ndcg@10`, or under the tool's own, `ndcg_cut_10`.

    `relevant` is the lowest relevance that counts, where the convention has one.
    """
    if tool not in TOOLS:
        raise unknown("convention", tool, TOOLS)
    own = [use for use in USES if use.tool == tool]
    cuts = {int(digits) for digits in re.findall("[0-9]{1,9}", text)} - {0}
    found = next(((use, cut) for use in own for cut in (None, *cuts) if use.called(cut) == text), None)
    if found is None:
        name, cut = metric_and_cut(text)
        fitting = [use for use in uses_of(name, cut) if use.tool == tool]
        if not fitting:
            raise UserError(f"{tool} does not compute {text}", remedy=f"it computes {_computed(own)}")
        found = fitting[0], cut
    use, cut = found
    convention = use.convention
    if relevant is not None and convention.relevant is not None:
        convention = replace(convention, relevant=relevant)
    return Asked(text, cut, convention)


def _computed(uses: list[Use]) -> str:
    """The metrics that can be asked for in these ways, in words."""
    whole, cut = (sorted({use.convention.metric for use in uses if use.called(at)}) for at in (None, 10))
    both = [", ".join(whole)] * bool(whole) + [f"{', '.join(cut)} with a cut-off such as @10"] * bool(cut)
    return ", and ".join(both)
