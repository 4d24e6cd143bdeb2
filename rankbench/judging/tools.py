"""By which convention each tool evaluates: one use for each function of a tool that computes a metric."""

import re
from dataclasses import dataclass, replace

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


JUDGE = "rankbench judge"
_TREC = Convention("", Ties.TREC, relevant=1.0, without=Without.ZERO)
_RANX = Convention("", Ties.RANX, relevant=1.0, without=Without.ZERO, missing=Missing.ZERO)
_RECBOLE = Convention("", Ties.GIVEN, missing=Missing.ZERO)
_ELLIOT = Convention("", Ties.GIVEN, relevant=0.0)
_LENSKIT = Convention("", Ties.GIVEN, unknown=Unknown.ZERO)
_SKLEARN = Convention("", Ties.EXPECTED, Candidates.BOTH, relevant=1.0)
_CORNAC = Convention("", Ties.GIVEN, relevant=1.0, missing=Missing.ZERO)
_IMPLICIT = Convention("", Ties.GIVEN, missing=Missing.ZERO)
_JUDGE = Convention("", Ties.EXPECTED, relevant=1.0, missing=Missing.ZERO)
_OWN = Convention("", Ties.EXPECTED, Candidates.TRUTH, relevant=4.0, missing=Missing.TIED)


def _conventions(base: Convention) -> dict[str, Convention]:
    """For each metric the convention with these choices; the divisor is the usual one, k or the relevant items."""
    usual = {"recall": Divisor.RELEVANT, "map": Divisor.RELEVANT}
    return {metric: replace(base, metric=metric, divisor=usual.get(metric, Divisor.CUT)) for metric in METRICS}


def _judge() -> list[Use]:
    """`rankbench judge`, unless another tool's convention is asked for; a graded metric counts every relevance."""
    of = _conventions(_JUDGE)
    graded = replace(of["ndcg"], relevant=None)
    found = {
        "ndcg": replace(graded, gain=Gain.EXPONENTIAL),
        "ndcg-linear": graded,
        "precision": of["precision"],
        "recall": of["recall"],
        "map": of["map"],
        "mrr": of["mrr"],
        "hit-rate": of["hit-rate"],
    }
    whole = replace(of["auc"], candidates=Candidates.BOTH)
    return [*(Use(JUDGE, one, name, f"{name}@K") for name, one in found.items()), Use(JUDGE, whole, "auc", "")]


def _trec(tool: str, base: Convention) -> list[Use]:
    """trec_eval: `-l` sets the lowest relevance, which NDCG ignores."""
    of = _conventions(base)
    return [
        Use(tool, replace(of["ndcg"], relevant=None), "ndcg", "ndcg_cut_K"),
        Use(tool, of["precision"], "set_P", "P_K"),
        Use(tool, of["recall"], "set_recall", "recall_K"),
        Use(tool, of["map"], "map", "map_cut_K"),
        Use(tool, of["mrr"], "recip_rank", ""),
        Use(tool, of["hit-rate"], "", "success_K"),
    ]


def _ranx(tool: str, base: Convention) -> list[Use]:
    """ranx: `-l` in a metric's name sets the lowest relevance."""
    of = _conventions(base)
    return [
        Use(tool, of["ndcg"], "ndcg", "ndcg@K"),
        Use(tool, replace(of["ndcg"], gain=Gain.EXPONENTIAL), "ndcg_burges", "ndcg_burges@K"),
        Use(tool, of["precision"], "precision", "precision@K"),
        Use(tool, of["recall"], "recall", "recall@K"),
        Use(tool, of["map"], "map", "map@K"),
        Use(tool, of["mrr"], "mrr", "mrr@K"),
        Use(tool, of["hit-rate"], "hit_rate", "hit_rate@K"),
    ]


def _recbole() -> list[Use]:
    """RecBole, to which every item of the test part is relevant."""
    of = _conventions(_RECBOLE)
    found = {
        "NDCG@K": replace(of["ndcg"], gain=Gain.BINARY),
        "Precision@K": of["precision"],
        "Recall@K": of["recall"],
        "MAP@K": replace(of["map"], divisor=Divisor.RELEVANT_OR_CUT),
        "MRR@K": of["mrr"],
        "Hit@K": of["hit-rate"],
    }
    gauc = replace(of["auc"], ties=Ties.EXPECTED, average=Average.POSITIVES)
    return [
        *(Use("RecBole", convention, "", at, open_ties=True) for at, convention in found.items()),
        Use("RecBole", gauc, "GAUC", ""),
    ]


def _elliot() -> list[Use]:
    """Elliot: `relevance_threshold` is 0 by default."""
    of = _conventions(_ELLIOT)
    found = {
        "nDCG": replace(of["ndcg"], gain=Gain.SHIFTED),
        "Precision": of["precision"],
        "Recall": of["recall"],
        "MAP": replace(of["map"], divisor=Divisor.PLACES),
        "MRR": of["mrr"],
        "HR": of["hit-rate"],
    }
    return [Use("Elliot", convention, "", f"{name}@K") for name, convention in found.items()]


def _lenskit() -> list[Use]:
    """LensKit, to which every item of the test part is relevant; its lists come in an order of their own."""
    of = _conventions(_LENSKIT)
    ndcg = replace(of["ndcg"], discount=Discount.CLIPPED)
    precisions = replace(of["map"], divisor=Divisor.RELEVANT_OR_RETRIEVED, unknown=Unknown.DROPPED)  # fails otherwise
    found = {
        "NDCG": replace(ndcg, gain=Gain.BINARY),
        "Precision": replace(of["precision"], divisor=Divisor.RETRIEVED),
        "Recall": replace(of["recall"], divisor=Divisor.RELEVANT_OR_CUT),
        "AveragePrecision": precisions,
        "RecipRank": of["mrr"],
        "Hit": of["hit-rate"],
    }
    return [
        *(Use("LensKit", convention, f"{name}()", f"{name}(K)") for name, convention in found.items()),
        Use("LensKit", replace(ndcg, without=Without.ZERO), "NDCG(gain='rating')", "NDCG(K, gain='rating')"),
    ]


def _sklearn() -> list[Use]:
    """scikit-learn, given for each user all items of both lists, those without a score below the others."""
    of = _conventions(_SKLEARN)
    together = replace(of["map"], ties=Ties.TOGETHER, without=Without.ZERO)
    ndcg = replace(of["ndcg"], relevant=None, without=Without.ZERO)
    return [
        Use("scikit-learn", ndcg, "ndcg_score", "ndcg_score(k=K)"),
        Use("scikit-learn", together, "average_precision_score", ""),
        Use("scikit-learn", replace(together, without=Without.ONE), "label_ranking_average_precision_score", ""),
        Use("scikit-learn", of["auc"], "roc_auc_score", ""),
    ]


def _cornac() -> list[Use]:
    """cornac: `rating_threshold` is 1 by default."""
    of = _conventions(_CORNAC)
    found = {
        "NDCG": replace(of["ndcg"], gain=Gain.BINARY),
        "Precision": of["precision"],
        "Recall": of["recall"],
        "HitRatio": of["hit-rate"],
    }
    return [
        *(Use("cornac", convention, f"{name}()", f"{name}(k=K)", open_ties=True) for name, convention in found.items()),
        Use("cornac", replace(of["map"], ties=Ties.TOGETHER), "MAP()", ""),
        Use("cornac", of["mrr"], "MRR()", "", open_ties=True),
        Use("cornac", replace(of["auc"], ties=Ties.LAST), "AUC()", ""),
    ]


def _implicit() -> list[Use]:
    """implicit, to which every entry of the test matrix is relevant."""
    of = _conventions(_IMPLICIT)
    precision = replace(of["precision"], divisor=Divisor.RELEVANT_OR_CUT, average=Average.DIVISORS)
    found = {
        "ndcg_at_k": replace(of["ndcg"], gain=Gain.BINARY),
        "precision_at_k": precision,
        "mean_average_precision_at_k": replace(of["map"], divisor=Divisor.RELEVANT_OR_CUT),
    }
    return [Use("implicit", convention, "", f"{name}(K=K)", open_ties=True) for name, convention in found.items()]


def _own(setting: str, base: Convention, precision: Convention, ndcg: Without) -> list[Use]:
    """rankbench: the setting `relevant` sets the lowest relevance, which NDCG ignores."""
    of = _conventions(base)
    found = {
        "ndcg": replace(of["ndcg"], relevant=None, without=ndcg, gain=Gain.EXPONENTIAL),
        "ndcg-linear": replace(of["ndcg"], relevant=None, without=ndcg),
        "precision": precision,
        "recall": of["recall"],
        "map": of["map"],
        "mrr": of["mrr"],
    }
    return [
        *(Use("rankbench", one, f"{name}{setting}", f"{name}@K{setting}") for name, one in found.items()),
        Use("rankbench", of["auc"], f"auc{setting}", ""),
    ]


def _both_own() -> list[Use]:
    """rankbench, with the held-out items as candidates, and with the catalogue, which is then all items of the run."""
    whole = replace(_OWN, candidates=Candidates.BOTH)
    precision = replace(_OWN, metric="precision", without=Without.ALIKE, divisor=Divisor.RETRIEVED)
    return [
        *_own("", _OWN, precision, Without.ALIKE),
        *_own("[candidates=catalogue]", whole, replace(whole, metric="precision"), Without.DROPPED),
    ]


USES: tuple[Use, ...] = (
    *_judge(),
    *_both_own(),
    *_trec("trec_eval", _TREC),
    *_trec("trec_eval -c", replace(_TREC, missing=Missing.ZERO)),
    *_ranx("ranx", _RANX),
    *_ranx("ranx make_comparable", replace(_RANX, ties=Ties.RANX_TWICE)),
    *_recbole(),
    *_elliot(),
    *_lenskit(),
    *_sklearn(),
    *_cornac(),
    *_implicit(),
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
