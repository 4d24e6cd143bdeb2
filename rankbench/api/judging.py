"""Judging the scores that other tools wrote: `judge({"mine": frame}, truth)`, and which convention gives a number."""

import shlex
from collections.abc import Iterator
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankbench.api.comparing import Answer, results_folder
from rankbench.api.experiments import Names, listed
from rankbench.api.session import Session
from rankbench.core.errors import UserError
from rankbench.core.texts import is_file_name
from rankbench.judging.asking import Asking, asking
from rankbench.judging.gathering import Ids
from rankbench.judging.published import ValueOfRun, conventions_of
from rankbench.judging.runs import Evaluated, Truth, evaluated, pool_of, truth_of
from rankbench.judging.studies import Judged, name_of, stored
from rankbench.judging.tools import JUDGE, Asked, asked_of
from rankbench.records.store import ResultsFolder

if TYPE_CHECKING:
    import pandas

METRICS = ("ndcg@10", "recall@10", "map")


def judge(
    runs: Any,
    truth: Any = None,
    *,
    metric: Names = METRICS,
    convention: str = JUDGE,
    relevant: float | None = None,
    margin: float | None = None,
    name: str = "",
    report: bool = False,
    out: str | Path | None = None,
) -> Answer:
    """Say which of several runs is best: scores or rankings that any tool wrote, with intervals, tests and tiers.

    A run is a file (a TREC run, CSV, Parquet, JSON by user and item, RecBole's `.inter`, a NumPy matrix), a DataFrame
    with user, item and score, a dictionary by user and item, or a matrix of users and items. Users and items are
    compared as texts.

    Parameters
    ----------
    runs : dict, str or list of str
        Runs by name, or paths; a list of runs, or a path such as `model-{seed}.run`, stands for repetitions.
    truth : str, Path, pandas.DataFrame, dict or numpy.ndarray, optional
        What is relevant to whom, in the same forms, also TREC's qrels; without it the first run has a column of that.
    metric : str or list of str
        The metrics, as `rankbench.conventions` names them or as the tool of the convention does; the first decides.
    convention : str
        The tool by whose convention they are evaluated, such as "trec_eval" or "ranx".
    relevant : float, optional
        The lowest relevance that counts as relevant, where the convention has one.
    margin : float, optional
        Runs that differ by less in the first metric are equal; by default a hundredth of the best mean.
    name : str
        The name under which results are stored; by default after the truth.
    report : bool
        Write the report of the folder `out` at the end.
    out : str or Path, optional
        A folder in which results are kept; without it they are removed at the end.

    Returns
    -------
    Answer
        An `Outcome` with the answer in words, `answer`, and what each run covers, `coverage`.
    """
    with results_folder(out, report) as (results, keep):
        found = judged(results, runs, truth, listed(metric), convention, relevant, margin, name)
        keep(found.study)
        if report:
            Session(results).report()
        return found


def judged(
    results: ResultsFolder,
    runs: Any,
    truth: Any,
    metrics: tuple[str, ...],
    convention: str = JUDGE,
    relevant: float | None = None,
    margin: float | None = None,
    name: str = "",
) -> Answer:
    """Judge runs and store what came of it; nothing is stored unless all runs can be judged."""
    for option, value, kind in (("margin", margin, "a number above 0"), ("relevant", relevant, "a number")):
        if value is not None and not isinstance(value, Real):
            raise UserError(f"{option}={value!r} is not valid", remedy=f"give {kind}")
    if margin is not None and not 0 < margin < float("inf"):
        raise UserError(f"margin={margin:g} is out of range: must be above 0")
    if relevant is not None and not isfinite(relevant):
        raise UserError(f"relevant={relevant:g} is out of range: must be a finite number")
    if name and not (isinstance(name, str) and is_file_name(name)):
        raise UserError(
            f"results cannot be stored under the name {name!r:.60}", remedy="take letters, digits and dashes"
        )
    chosen = [asked_of(convention, metric, relevant) for metric in metrics or METRICS]
    if len({one.label for one in chosen}) < len(chosen):
        raise UserError("a metric is asked for twice", remedy="name each once")
    asked, ids = asking(runs, truth), Ids()
    truths = _truths(asked, ids)
    for known in truths.values():
        _check_relevance(known, chosen)
    found = {
        (run, repetition): evaluated(source, truths[repetition], chosen, ids)
        for run, sources in asked.runs.items()
        for repetition, source in sources.items()
    }
    command = _command(asked, metrics, convention, relevant)
    whole = Judged(name or name_of(asked.truth), asked.truth, truths, found, chosen, ids, command, margin)
    return Answer(stored(whole, results), coverage=tuple(_coverage(asked, truths, found, chosen)))


def conventions(run: Any, truth: Any, metric: str, published: str) -> "pandas.DataFrame":
    """The conventions under which a run has a published number, to its printed digits, and the tools they belong to.

    Parameters
    ----------
    run, truth : str, Path, pandas.DataFrame, dict or numpy.ndarray
        A run, and what is relevant to whom, as `judge` takes them.
    metric : str
        The metric with its cut-off, such as "ndcg@10": of ndcg, precision, recall, map, mrr, hit-rate and auc.
    published : str
        The number as it was printed: "0.3817", or "38.17%".

    Returns
    -------
    pandas.DataFrame
        A row for each value that fits, or for the nearest one: `value`, `fits`, `conventions` and `definition`.
    """
    import pandas  # noqa: PLC0415  slow to import

    rows = [
        {"value": one.value, "fits": one.fits, "conventions": one.names, "definition": one.definition}
        for one in findings(run, truth, metric, published)
    ]
    return pandas.DataFrame(rows)


def findings(run: Any, truth: Any, metric: str, published: str) -> list[ValueOfRun]:
    """The values of a run under the conventions that give a published number, or under the nearest one."""
    asked, ids = asking({"the run": run} if not isinstance(run, str | Path) else [run], truth), Ids()
    (sources,) = asked.runs.values()
    if len(sources) > 1:
        raise UserError("a published number is looked for in one run, and the pattern stands for several")
    known = truth_of(asked.truths[0], ids)
    return conventions_of(pool_of(sources[0], known, ids), metric, published)


def _truths(asked: Asking, ids: Ids) -> dict[int, Truth]:
    """The truth of each repetition; one that several share is read once."""
    read: dict[int, Truth] = {}
    for source in asked.truths.values():
        if id(source) not in read:
            read[id(source)] = truth_of(source, ids)
    return {repetition: read[id(source)] for repetition, source in asked.truths.items()}


def _check_relevance(truth: Truth, chosen: list[Asked]) -> None:
    """Raise an error if no item of the truth is relevant by a metric that counts from some relevance on."""
    highest = truth.values.max()
    for one in chosen:
        if one.convention.relevant is not None and not highest >= one.convention.relevant:
            least = f"{one.label} counts items from relevance {one.convention.relevant:g} on"
            raise UserError(
                f"no item of {truth.source.called} is relevant: {least}, and the highest is {highest:g}",
                remedy="name the lowest relevance that counts with relevant (--relevant)",
            )


def _coverage(
    asked: Asking, truths: dict[int, Truth], found: dict[tuple[str, int], Evaluated], chosen: list[Asked]
) -> Iterator[str]:
    """A line for the truth, for the metrics' definition, and for each run."""
    yield f"truth {asked.truth}: {truths[min(truths)].facts}"
    levels = {one.convention.relevant for one in chosen} - {None}
    if levels:
        yield f"an item counts as relevant from relevance {max(one for one in levels if one is not None):g} on"
    for name, sources in asked.runs.items():
        lines = [found[name, repetition].coverage.facts for repetition in sources]
        several = f"repetition 1 of {len(lines)}: " if len(lines) > 1 else ""
        yield f"{name}: {several}{lines[0]}"
        if len(lines) < len(truths):
            yield f"{name} has {len(lines)} of {len(truths)} repetitions"


def _command(asked: Asking, metrics: tuple[str, ...], convention: str, relevant: float | None) -> str:
    """The command that judges the same runs again."""
    options = [option for metric in metrics for option in ("--metric", metric)]
    options += ["--convention", convention] if convention != JUDGE else []
    options += [] if relevant is None else ["--relevant", f"{relevant:g}"]
    return shlex.join(["rankbench", "judge", *asked.words, *options])
