"""Our speed against other libraries', side by side in one process: `python asv_benchmarks/peers.py`.

Needs the extra `peers`. Baseline and ours take turns, so that a busy machine slows both; every number is
a median with its least and its most, and a ratio is taken within each turn. Above 1 we are faster.
"""

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import numpy as np
import scipy.sparse
from implicit.bpr import BayesianPersonalizedRanking
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from rankbench.contract import Floats, Ints
from rankbench.data.synthetic import LowRank, Magnitudes
from rankbench.data.views import Comparisons, Ratings
from rankbench.experiments import load
from rankbench.harness.plan import Materials, Selection, plan
from rankbench.harness.run import Conditions, run
from rankbench.harness.store import Store
from rankbench.harness.threads import single_threaded_blas
from rankbench.kernels import mprank as mprank_kernel
from rankbench.models import KernelScores
from rankbench.solvers.mprank import MPRank
from rankbench.solvers.sgd import SGD

_C, _WIDTH = 10.0, 1.0
_AGREEMENT = 1e-8

Run = Callable[[], float]  # measures once: updates per second, or fits per second


@dataclass(frozen=True)
class Row:
    """One comparison: what both did in each turn, in a unit of which more is better."""

    what: str
    unit: str
    target: float | None
    peer: list[float]
    ours: list[float]

    @property
    def ratios(self) -> list[float]:
        """Ours over the peer's, turn by turn."""
        return [ours / peer for ours, peer in zip(self.ours, self.peer, strict=True)]


def in_turns(repeats: int, runs: dict[str, Run]) -> dict[str, list[float]]:
    """What each run measures, all of them once per turn; a first turn warms up and is dropped."""
    turns = [{name: run() for name, run in runs.items()} for _ in range(repeats + 1)]
    return {name: [turn[name] for turn in turns[1:]] for name in runs}


def seconds(work: Callable[[], object]) -> float:
    """How long it took, once."""
    start = perf_counter()
    work()
    return perf_counter() - start


def pair_updates(repeats: int) -> Iterator[Row]:
    """`sgd` on one core against implicit's BPR, on data of MovieLens-1M's shape.

    An epoch of BPR draws as many pairs as there are positives (a drawn negative that the user has rated
    too is skipped, at about one in twenty; skips count as updates here, to the peer's favour); ours gets
    as many comparisons. Epochs are timed alone: by its own callback there, around `next` here.
    """
    ratings = LowRank(users=6040, items=3706, per_user=166).view(np.random.default_rng(0))
    comparisons = ratings.comparisons(166, np.random.default_rng(1))
    for rank in (10, 64):
        peers = {
            "implicit BPR": _bpr_epochs(ratings, rank),
            "implicit BPR, negatives not verified": _bpr_epochs(ratings, rank, verify_negative_samples=False),
            "implicit BPR, 64 bits": _bpr_epochs(ratings, rank, dtype=np.float64),
        }
        ours = {f"sgd {loss}": _sgd_passes(comparisons, SGD(rank, loss=loss)) for loss in ("squared-hinge", "logistic")}
        with threadpool_limits(1):
            found = in_turns(repeats, peers | ours)
        for own in ours:
            for peer in peers:
                yield Row(f"rank {rank}: {own} : {peer}", "pair updates/s", 1.0, found[peer], found[own])


def _bpr_epochs(ratings: Ratings, rank: int, **settings: object) -> Run:
    """One more epoch of one model at each call."""
    columns = ratings.items.copy(), ratings.indptr.astype(np.int32)  # implicit wants them writeable
    positives = scipy.sparse.csr_matrix(
        (np.ones(len(ratings), np.float32), *columns), (ratings.n_users, ratings.n_items)
    )
    model = BayesianPersonalizedRanking(
        factors=rank, iterations=1, num_threads=1, random_state=0, use_gpu=False, **settings
    )

    def run() -> float:
        elapsed: list[float] = []
        model.fit(positives, show_progress=False, callback=lambda _epoch, taken, *_rest: elapsed.append(taken))
        return len(ratings) / elapsed[0]

    return run


def _sgd_passes(comparisons: Comparisons, solver: SGD) -> Run:
    """One more pass of one solver at each call."""
    steps = solver.steps(comparisons, np.random.default_rng(0))
    next(steps)
    return lambda: len(comparisons) / seconds(lambda: next(steps))


def closed_forms(repeats: int) -> Iterator[Row]:
    """`mprank` with a Gaussian kernel against a loop over scikit-learn's KernelRidge on centred sub-kernels.

    Once with the kernel between all items given to both, once with each making its own.
    """
    ratings = Magnitudes(users=300, items=1000, per_user=100).view(np.random.default_rng(0))
    gram = _peer_gram(ratings)
    _check_agreement(ratings, gram)
    for threads in (1, 2):
        found = in_turns(repeats, _closed_form_runs(ratings, gram, threads))
        for reading in ("kernel given", "kernel made"):
            what = f"mprank : KernelRidge loop, {reading}, {threads} thread{'s'[: threads - 1]}"
            target = 10.0 if reading == "kernel given" else None
            yield Row(what, "fits/s", target, found[f"loop, {reading}"], found[f"ours, {reading}"])


def _closed_form_runs(ratings: Ratings, gram: Floats, threads: int) -> dict[str, Run]:
    """The loop's threads are its BLAS's, ours are the kernel's own over a BLAS on one thread."""
    return {
        "loop, kernel given": lambda: _rate(threads, lambda: ridge_loop(ratings, gram)),
        "ours, kernel given": lambda: _rate(1, lambda: mprank_given(ratings, gram, threads)),
        "loop, kernel made": lambda: _rate(threads, lambda: ridge_loop(ratings, _peer_gram(ratings))),
        "ours, kernel made": lambda: _rate(1, lambda: mprank_whole(ratings, threads)),
    }


def ridge_loop(ratings: Ratings, gram: Floats) -> Floats:
    """Every user's dual coefficients by scikit-learn, in the order of the ratings."""
    coefficients = np.empty(len(ratings))
    for user in range(ratings.n_users):
        rows = slice(ratings.indptr[user], ratings.indptr[user + 1])
        values = ratings.values[rows]
        ridge = KernelRidge(alpha=len(values) / (2 * _C), kernel="precomputed")
        coefficients[rows] = ridge.fit(_centred(gram, ratings.items[rows]), values - values.mean()).dual_coef_
    return coefficients


def _centred(gram: Floats, items: Ints) -> Floats:
    """The kernel between these items' features less their mean."""
    kernel = gram[np.ix_(items, items)]
    means = kernel.mean(axis=0)
    kernel += means.mean() - means - means[:, None]
    return kernel


def mprank_given(ratings: Ratings, gram: Floats, threads: int) -> KernelScores:
    """Our kernel on a kernel matrix that is there already."""
    coefficients, offsets = np.zeros(len(ratings)), np.empty(ratings.n_users)
    users = np.arange(ratings.n_users, dtype=np.int32)
    rows = ratings.indptr, ratings.items, ratings.values
    mprank_kernel.dual(gram, *rows, users, _C, coefficients, offsets, threads)
    return KernelScores(gram, ratings.indptr, ratings.items, coefficients, offsets)


def mprank_whole(ratings: Ratings, threads: int) -> KernelScores:
    """Our solver from features to model."""
    solver = MPRank(C=_C, kernel="gaussian", width=_WIDTH)
    return next(solver.steps(ratings, np.random.default_rng(0), threads)).model


def _peer_gram(ratings: Ratings) -> Floats:
    return rbf_kernel(ratings.item_features, gamma=1 / (2 * _WIDTH**2))


def _rate(blas_threads: int, work: Callable[[], object]) -> float:
    """Fits per second with BLAS held to so many threads."""
    with threadpool_limits(blas_threads):
        return 1 / seconds(work)


def _check_agreement(ratings: Ratings, gram: Floats) -> None:
    """Stop unless both give the same scores of the items that each user rated."""
    expected = _ridge_scores(ratings, gram)
    with single_threaded_blas():
        models = {"given": mprank_given(ratings, gram, 1), "made": mprank_whole(ratings, 2)}
    for reading, model in models.items():
        difference = np.abs(model.score(ratings.users, ratings.items) - expected).max()
        print(f"mprank : KernelRidge loop, kernel {reading}: largest difference of a score {difference:.1e}")
        if not difference <= _AGREEMENT:
            raise SystemExit(f"the answers differ by more than {_AGREEMENT:g}: their times would mean nothing")


def _ridge_scores(ratings: Ratings, gram: Floats) -> Floats:
    """What scikit-learn's coefficients score, with each user's mean rating put back."""
    coefficients, scores = ridge_loop(ratings, gram), np.empty(len(ratings))
    for user in range(ratings.n_users):
        rows = slice(ratings.indptr[user], ratings.indptr[user + 1])
        scores[rows] = _centred(gram, ratings.items[rows]) @ coefficients[rows] + ratings.values[rows].mean()
    return scores


def harness_cost(repeats: int) -> str:
    """What a cell costs beyond its solver: process, split, evaluation and result file, alone and one by one.

    The process that cells are forked from starts once in a run, for about a third of a second; it is
    started here before the clock.
    """
    experiment = replace(load("cortes2007-unseen"), data=("magnitudes",), repetitions=repeats)
    with tempfile.TemporaryDirectory() as folder:
        for part in ("warm-up", "measured"):
            planned, out = plan(experiment, Selection()), Path(folder, part)
            elapsed = seconds(partial(run, planned, Conditions(out), lambda event: None, Materials(0)))
        store = Store(out, experiment.name)
        results = [store.load(cell) for cell in planned.cells]
    beyond = 1e3 * (elapsed - sum(result.seconds for result in results)) / len(results)
    return f"harness: {beyond:.0f} ms a cell beyond its solver, over {len(results)} cells (target: under 60)"


SECTIONS: tuple[Callable[[int], Iterator[Row]], ...] = (pair_updates, closed_forms)


def show(rows: list[Row]) -> str:
    """A plain table, one line per comparison."""
    width = max(len(row.what) for row in rows)
    head = f"{'ours : peer':{width}}  {'unit':14}  {'peer':>26}  {'ours':>26}  {'ratio':>20}  target"
    lines = (
        f"{row.what:{width}}  {row.unit:14}  {_spread(row.peer):>26}  {_spread(row.ours):>26}  "
        f"{_spread(row.ratios):>20}  {_verdict(row)}"
        for row in rows
    )
    return "\n".join([head, *lines])


def _verdict(row: Row) -> str:
    """Whether the median ratio reaches its target, where it has one."""
    if row.target is None:
        return ""
    return f"{'met' if np.median(row.ratios) >= row.target else 'MISSED'} (>= {row.target:g})"


def _spread(values: list[float]) -> str:
    """median (least..most), in millions where that reads better."""
    scale, letter = (1e6, "M") if np.median(values) >= 1e6 else (1.0, "")
    middle, least, most = (f"{value / scale:.2f}" for value in (np.median(values), min(values), max(values)))
    return f"{middle}{letter} ({least}..{most})"


def save(path: Path, rows: list[Row]) -> None:
    """Every measurement and what it was measured on, as JSON."""
    libraries = ("rankbench", "implicit", "scikit-learn", "numpy", "scipy")
    about = {"machine": platform.machine(), "system": platform.platform(), "cores": os.cpu_count()}
    versions = {"python": platform.python_version()} | {name: version(name) for name in libraries}
    measured = [asdict(row) | {"ratios": row.ratios} for row in rows]
    path.write_text(json.dumps({"about": about, "versions": versions, "rows": measured}, indent=2) + "\n")


def main() -> None:
    """Measure, print, and save where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7, help="turns per comparison, at least 5")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measurement to this file")
    options = parser.parse_args()
    if options.repeats < 5:
        parser.error(f"--repeats {options.repeats} is too few for a median with a spread: at least 5")
    rows = [row for section in SECTIONS for row in section(options.repeats)]
    print(show(rows))
    print(harness_cost(options.repeats))
    if options.json:
        save(options.json, rows)


if __name__ == "__main__":
    main()
