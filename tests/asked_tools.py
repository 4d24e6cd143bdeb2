"""What other tools say of a run: each function here asks one tool for its metrics, as `judging.tools` writes it."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from drawn_runs import Drawn

Answers = Mapping[str, float]
CUT = 5
Cuts = int | None


@dataclass(frozen=True)
class Asked:
    """How to ask a tool, and on which runs its answer is defined."""

    module: str
    ask: Callable[[Drawn, Cuts], Answers]
    whole: bool = False  # whether it needs a score for each user and item
    tied: frozenset[str] | None = None  # the calls whose answers are defined where scores tie; None: all


def trec_eval(drawn: Drawn, cut: Cuts, users: str = "run") -> Answers:
    """trec_eval, through pytrec_eval; with `users="truth"` as `trec_eval -c`."""
    import pytrec_eval

    names = {"ndcg_cut": "ndcg_cut_K", "P": "P_K", "recall": "recall_K", "map_cut": "map_cut_K", "success": "success_K"}
    whole = ("ndcg", "set_P", "set_recall", "map", "recip_rank")
    measures = [f"{name}.{cut}" for name in names] if cut else whole
    truth = {user: {item: int(one) for item, one in own.items()} for user, own in drawn.nested(drawn.truth).items()}
    found = pytrec_eval.RelevanceEvaluator(truth, set(measures)).evaluate(drawn.nested(drawn.run))
    divisor = len(found) if users == "run" else len(truth)
    calls = {f"{name}_{cut}": call for name, call in names.items()} if cut else {name: name for name in whole}
    return {call: sum(own[name] for own in found.values()) / divisor for name, call in calls.items()}


def trec_eval_c(drawn: Drawn, cut: Cuts) -> Answers:
    """trec_eval -c: users without a list count 0."""
    return trec_eval(drawn, cut, "truth")


def ranx(drawn: Drawn, cut: Cuts, comparable: bool = False) -> Answers:
    """ranx, which refuses a run of other users than the truth's unless it is told to make them comparable."""
    from ranx import Qrels, Run, evaluate

    names = ("ndcg", "ndcg_burges", "precision", "recall", "map", "mrr", "hit_rate")
    run, truth = drawn.nested(drawn.run), drawn.nested(drawn.truth)
    if not comparable:
        run = {user: run.get(user, {"none": 0.0}) for user in truth}
    judged = Qrels({user: {item: int(one) for item, one in own.items()} for user, own in truth.items()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            f"{name}@K" if cut else name: evaluate(
                judged, Run(run), f"{name}@{cut}" if cut else name, make_comparable=comparable
            )
            for name in names
        }


def ranx_comparable(drawn: Drawn, cut: Cuts) -> Answers:
    """ranx with make_comparable=True."""
    return ranx(drawn, cut, comparable=True)


def scikit_learn(drawn: Drawn, cut: Cuts) -> Answers:
    """scikit-learn, one user at a time, with a score below all others for items that the run lacks."""
    from sklearn import metrics

    rows = [(y, s) for y, s in _rows(drawn) if y is not None]
    if cut:
        return {"ndcg_score(k=K)": float(np.mean([metrics.ndcg_score([y], [s], k=cut) for y, s in rows]))}
    hits = [(y >= 1, s) for y, s in rows]
    both = [(y, s) for y, s in hits if 0 < y.sum() < len(y)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {
            "ndcg_score": [metrics.ndcg_score([y], [s]) for y, s in rows],
            "average_precision_score": [metrics.average_precision_score(y, s) for y, s in hits],
            "label_ranking_average_precision_score": [
                metrics.label_ranking_average_precision_score([y], [s]) for y, s in hits
            ],
            "roc_auc_score": [metrics.roc_auc_score(y, s) for y, s in both],
        }
    return {call: float(np.mean(values)) for call, values in found.items()}


def _rows(drawn: Drawn):
    """For each user of both lists the relevances and scores of all their items; None for another user."""
    for relevance, scores in zip(drawn.table(drawn.truth, np.nan), drawn.table(drawn.run, np.nan), strict=True):
        own = ~(np.isnan(relevance) & np.isnan(scores))
        known = not (np.isnan(relevance).all() or np.isnan(scores).all()) and own.sum() > 1
        yield (np.nan_to_num(relevance[own]), np.nan_to_num(scores[own], nan=-1e9)) if known else (None, None)


def lenskit(drawn: Drawn, cut: Cuts) -> Answers:
    """LensKit, given each list in the order of its scores, ties as in the file."""
    from lenskit.data import ItemList, ItemListCollection
    from lenskit.metrics import NDCG, Hit, Precision, Recall, RecipRank, RunAnalysis
    from lenskit.metrics.ranking import AveragePrecision

    run, known, truth = (ItemListCollection(["user_id"]) for _ in range(3))
    for user, own in drawn.nested(drawn.truth).items():
        truth.add(ItemList(item_ids=list(own), rating=list(own.values())), user_id=user)
    for user, own in drawn.nested(drawn.run).items():
        items = ItemList(item_ids=sorted(own, key=lambda item: -own[item]), ordered=True)
        for lists in (run, known) if truth.lookup(user_id=user) else (run,):
            lists.add(items, user_id=user)
    analysis, of_known, at = RunAnalysis(), RunAnalysis(), "(K)" if cut else "()"
    for metric in (NDCG, Precision, Recall, RecipRank, Hit):
        analysis.add_metric(metric(cut), label=f"{metric.__name__}{at}")
    graded = "NDCG(K, gain='rating')" if cut else "NDCG(gain='rating')"
    analysis.add_metric(NDCG(cut, gain="rating"), label=graded)
    of_known.add_metric(
        AveragePrecision(cut), label=f"AveragePrecision{at}"
    )  # it fails for users who are not in the truth
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = analysis.measure(run, truth).list_summary()["mean"].to_dict()
        return found | of_known.measure(known, truth).list_summary()["mean"].to_dict()


def cornac(drawn: Drawn, cut: Cuts) -> Answers:
    """cornac's `ranking_eval` with a model that has the scores of the run."""
    from cornac.data import Dataset
    from cornac.eval_methods.base_method import ranking_eval
    from cornac.metrics import AUC, MAP, MRR, NDCG, HitRatio, Precision, Recall
    from cornac.models import Recommender

    scores = drawn.table(drawn.run, np.nan)
    users, items = ({str(one): one for one in range(size)} for size in scores.shape)
    triples = zip(drawn.truth.owners, drawn.truth.items, drawn.truth.values, strict=True)
    truth = [(str(user), str(item), value) for user, item, value in triples]
    nothing = [(user, item, 0.0) for user, item in zip(users, [*items] * len(users), strict=False)] + [
        ("0", item, 0.0) for item in list(items)[1:]
    ]

    class Given(Recommender):
        """A model with given scores."""

        def score(self, user_idx, item_idx=None):
            return scores[user_idx]

    train = Dataset.build(nothing, global_uid_map=users, global_iid_map=items)
    test = Dataset.build(truth, global_uid_map=users, global_iid_map=items)
    model = Given("given")
    model.fit(train)
    k = cut or -1
    metrics = [NDCG(k), Precision(k), Recall(k), HitRatio(k)] if cut else [NDCG(), Precision(), Recall(), HitRatio()]
    metrics += [] if cut else [MAP(), MRR(), AUC()]
    means, _ = ranking_eval(model, metrics, train, test, exclude_unknowns=False)
    at = "(k=K)" if cut else "()"
    return {f"{type(metric).__name__}{at}": mean for metric, mean in zip(metrics, means, strict=True)}


def implicit(drawn: Drawn, cut: Cuts) -> Answers:
    """implicit's `ranking_metrics_at_k` with a model that has the scores of the run; it always has a cut-off."""
    from implicit.evaluation import ranking_metrics_at_k
    from scipy.sparse import csr_matrix

    if cut is None:
        return {}
    scores = drawn.table(drawn.run, np.nan)

    class Given:
        """A model with given scores."""

        def recommend(self, users, user_items, N=10, **_):
            best = np.argsort(-scores[users], axis=1, kind="stable")[:, :N].astype(np.int32)
            return best, np.take_along_axis(scores[users], best, axis=1)

    truth = drawn.truth
    shape = scores.shape[0], scores.shape[1] + 1  # implicit divides by the number of items that are not in the truth
    test = csr_matrix((truth.values, truth.items, truth.indptr.astype(np.int32)), shape)
    found = ranking_metrics_at_k(Given(), csr_matrix(shape), test, K=cut, show_progress=False)
    names = {"ndcg": "ndcg_at_k", "precision": "precision_at_k", "map": "mean_average_precision_at_k"}
    return {f"{call}(K=K)": found[name] for name, call in names.items()}


def recbole(drawn: Drawn, cut: Cuts) -> Answers:
    """RecBole's collector and metrics, given the scores of all items; GAUC has no cut-off, the others have one."""
    for name, kind in {"float": float, "bool": np.bool_}.items():
        setattr(np, name, kind)  # RecBole 1.2.1 asks NumPy for names that it has no longer
    import torch
    from recbole.evaluator import metrics
    from recbole.evaluator.collector import Collector

    names = ("NDCG", "Precision", "Recall", "MAP", "MRR", "Hit") if cut else ("GAUC",)
    config = {
        "metrics": [name.lower() for name in names],
        "topk": [cut or 1],
        "metric_decimal_place": 17,
        "eval_args": {"mode": {"valid": "full", "test": "full"}},
        "device": "cpu",
    }
    judged = ~np.isnan(drawn.table(drawn.truth, np.nan))
    chosen = judged.any(axis=1)
    scores = torch.tensor(np.hstack([drawn.table(drawn.run, np.nan)[chosen], np.full((chosen.sum(), 1), -np.inf)]))
    collector = Collector(config)
    user, item = (torch.tensor(one) for one in np.nonzero(judged[chosen]))
    collector.eval_batch_collect(scores, None, user, item)
    held = collector.get_data_struct()
    found = [getattr(metrics, name)(config).calculate_metric(held) for name in names]
    return {
        f"{name}@K" if cut else name: float(next(iter(own.values()))) for name, own in zip(names, found, strict=True)
    }


ASKED = {
    "trec_eval": Asked("pytrec_eval", trec_eval),
    "trec_eval -c": Asked("pytrec_eval", trec_eval_c),
    "ranx": Asked("ranx", ranx),
    "ranx make_comparable": Asked("ranx", ranx_comparable),
    "scikit-learn": Asked("sklearn", scikit_learn),
    "LensKit": Asked("lenskit", lenskit),
    "cornac": Asked("cornac", cornac, whole=True, tied=frozenset({"MAP()", "AUC()"})),
    "implicit": Asked("implicit", implicit, whole=True, tied=frozenset()),
    "RecBole": Asked("recbole", recbole, whole=True, tied=frozenset({"GAUC"})),
}
