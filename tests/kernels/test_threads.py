"""Invalid numbers of threads are refused by every public function, and by every kernel."""

import re
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from solvers.contract import ratings
from threadpoolctl import threadpool_info, threadpool_limits

import rankbench
from rankbench.core.contract import FoldsIn
from rankbench.core.errors import UserError
from rankbench.core.streams import stream
from rankbench.data.views import Comparisons, offer
from rankbench.execution.training import fit
from rankbench.kernels.methods import als, fold_in
from rankbench.kernels.metrics import evaluation as metrics
from rankbench.kernels.metrics.codes import Code
from rankbench.kernels.models import gram, scoring, stumps
from rankbench.kernels.shared.rows import SparseRows
from rankbench.kernels.solvers import frsvm, mprank
from rankbench.methods.isotonic import Blocks, OrderGraphs
from rankbench.metrics import METRICS, evaluate, per_user
from rankbench.metrics.rows import KernelRow, requested
from rankbench.models import Factors
from rankbench.names import checked_threads
from rankbench.records.cells import Selection
from rankbench.solvers import SOLVERS
from rankbench.solvers.mprank import MPRank, left_out

REFUSED = [0, -1, 1.5, True, 10**9, 1025, "2", None, np.int64(0), np.bool_(True), np.float64(2), 2**70]
every_refused = pytest.mark.parametrize("threads", REFUSED, ids=repr)
KERNELS = sorted((Path(rankbench.__file__).parents[1] / "pyx").rglob("*.pyx"))


def refuses(threads):
    """What must be raised: one line that says what was given and what may be."""
    return pytest.raises(UserError, match=rf"^threads={re.escape(repr(threads))} is not valid; give .* from 1 to 1024$")


@every_refused
def test_what_is_no_number_of_threads_is_refused(threads):
    with refuses(threads):
        checked_threads(threads)


@pytest.mark.parametrize("threads", [1, 2, 1024, np.int32(3), np.uint8(4), np.int64(5)])
def test_any_integer_from_1_to_1024_is_a_number_of_threads(threads):
    assert checked_threads(threads) == threads
    assert type(checked_threads(threads)) is int


# ---- the doors ----


@pytest.mark.one_in(7)
@every_refused
@pytest.mark.parametrize("name", SOLVERS.entries)
def test_every_solver_refuses_it_before_it_does_anything(name, threads):
    solver = SOLVERS.make(name)
    with refuses(threads):
        next(solver.steps(offer(solver, ratings()), stream(0), threads))
    with refuses(threads):
        fit(solver, ratings(), threads=threads)


@pytest.mark.parametrize("name", ["altsvm", "mf", "rankboost", "ranksvm-joint", "rmc"])
def test_solvers_take_an_integer_of_numpy(name):
    solver = SOLVERS.make(name)
    assert list(islice(solver.steps(offer(solver, ratings()), stream(0), np.int32(2)), 2))


class _Careless:
    """A solver of a user's own, which hands on whatever it gets."""

    learns_from, needs_features = Comparisons, False

    def steps(self, train, rng, threads=1):
        raise AssertionError("it was asked")
        yield


@every_refused
def test_a_users_own_solver_is_not_asked(threads):
    with refuses(threads):
        fit(_Careless(), ratings(), threads=threads)


@pytest.mark.one_in(7)
@every_refused
@pytest.mark.parametrize("name", [*METRICS, "ndcg@10", "recall@5[candidates=catalogue]"])
def test_every_metric_refuses_it(name, threads):
    test = ratings().comparisons() if name in ("log-loss", "brier") else ratings()
    model = Factors(np.ones((test.n_users, 2)), np.ones((test.n_items, 2)))
    for measure in (evaluate, per_user):
        with refuses(threads):
            measure(model, test, [name], threads=threads, train=ratings())


@every_refused
def test_all_other_doors_refuse_it(threads):
    blocks, x = Blocks.of(np.array([0, 2]), np.array([1.0, 2.0])), np.zeros(2)
    orders = OrderGraphs.of(np.array([0, 2]), np.array([0, 1]), np.array([0]), np.array([1]))
    for project in (blocks.project, blocks.way, orders.project):
        with refuses(threads):
            project(x, threads=threads)
    with refuses(threads):
        left_out(MPRank(), ratings(), np.ones(1), threads)


@pytest.mark.parametrize("threads", [0, -1, 1025, 10**9])
def test_what_is_selected_refuses_it_before_anything_runs(threads):
    with pytest.raises(UserError, match=f"threads={threads} is out of range: must be at least 1 and at most 1024"):
        Selection(threads=threads)


# ---- the kernels, should anybody reach them past the doors ----


def _ridge(threads):
    out = np.zeros((2, 3))
    vectors = np.random.default_rng(0).standard_normal((4, 3))
    rows = SparseRows(indptr=np.array([0, 2, 4]), columns=np.arange(4, dtype=np.int32), values=np.arange(4.0))
    als.ridge(rows=rows, vectors=vectors, penalties=als.Ridge(each=np.ones(3), power=0.5), out=out, threads=threads)
    return out


def _products(threads):
    out = np.zeros((3, 200))
    rows, columns = np.random.default_rng(0).standard_normal((3, 5)), np.random.default_rng(1).random((200, 5))
    chosen = np.arange(3, dtype=np.int32)
    scoring.products(rows=rows, chosen=chosen, columns=columns, out=out, threads=threads)
    return out


def _gram(threads):
    matrix = gram.linear(features=np.random.default_rng(0).standard_normal((300, 4)), threads=threads)
    gram.gaussian(products=matrix, width=1.0, threads=threads)
    return matrix


def _ndcg(threads):
    view = ratings()
    scores = np.random.default_rng(0).random(len(view))
    rated = metrics.RatedScores(indptr=view.indptr, truth=view.values, scores=scores)
    return metrics.per_user(test=rated, requests=requested([KernelRow(Code.NDCG, 5)], 500), threads=threads)


def _stumps(threads):
    out = np.zeros((2, 3))
    cuts = np.zeros((2, 1))
    features = np.zeros((2, 1), np.int32)
    made = stumps.Stumps(values=np.eye(3), features=features, cuts=cuts, weights=cuts + 1, offsets=np.zeros(2))
    stumps.score_all(stumps=made, rows=np.arange(2, dtype=np.int32), out=out, threads=threads)
    return out


@pytest.mark.parametrize("kernel", [_ridge, _products, _gram, _ndcg, _stumps])
def test_a_kernel_gives_the_same_bytes_with_two_threads(kernel):
    assert kernel(2).tobytes() == kernel(1).tobytes()


@pytest.mark.parametrize("kernel", [_ridge, _products, _gram, _ndcg, _stumps])
@pytest.mark.parametrize("threads", [0, -1, -(2**31), 1025, 10**9])
def test_a_kernel_refuses_what_is_no_number_of_threads(kernel, threads):
    with pytest.raises(ValueError, match=f"^threads={threads} is out of range: must be at least 1 and at most 1024$"):
        kernel(threads)


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_every_kernel_counts_its_threads_before_anything_else(path):
    text = path.read_text()
    for signature, doc, first in re.findall(
        r'^def (\w+\(.*?\))(?: -> [^\n]*)?:\n(    """.*?"""\n)(.*?)\n', text, re.S | re.M
    ):
        if "int threads" in signature:
            assert first == "    threads = team(threads)", signature.partition("(")[0]
            assert doc
    assert set(re.findall(r"num_threads=([^)\s]*?)\)", text)) <= {"threads"}


# ---- kernels whose threads call BLAS ----

CALL_BLAS = {
    fold_in: {"pairs", "rivals", "choices"},
    frsvm: {"dense_times", "transposed_times"},
    gram: {"linear"},
    mprank: {"path"},
}
USE_BLAS = (
    ("frsvm[rank=2]", {"dense_times", "transposed_times", "pairs"}),
    ("mprank[form=primal,choose=C-per-user]", {"path"}),
    ("mprank[form=dual,choose=C-for-all]", {"path", "linear"}),
    ("mprank[kernel=gaussian]", {"linear"}),
    ("bpr[rank=2]", {"rivals"}),
    ("sgd[rank=2]", {"pairs"}),
    ("softmax[rank=2]", {"choices"}),
)


def test_these_are_all_kernels_that_call_blas():
    importers = {path.stem for path in KERNELS if "shared.blas cimport" in path.read_text()}
    assert importers == {module.__name__.rpartition(".")[2] for module in CALL_BLAS}


@pytest.mark.parametrize(("name", "expected"), USE_BLAS)
def test_a_kernel_that_calls_blas_finds_it_on_one_thread_without_a_run_too(name, expected, monkeypatch):
    found = {}

    def watched(kernel, function):
        def call(**arguments):
            found.setdefault(kernel, set()).update(
                pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"
            )
            return function(**arguments)

        return call

    for module, kernels in CALL_BLAS.items():
        for kernel in kernels:
            monkeypatch.setattr(module, kernel, watched(kernel, getattr(module, kernel)))
    solver = SOLVERS.make(name)
    with threadpool_limits(limits=2, user_api="blas"):
        *_, last = islice(solver.steps(offer(solver, ratings()), stream(0), 2), 3)
        if isinstance(solver, FoldsIn):
            with suppress(UserError):  # not with these settings
                solver.fold_in(last.model, ratings(), 2)
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {2}
    assert found == {kernel: {1} for kernel in expected}
