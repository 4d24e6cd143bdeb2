"""Solvers of other packages: the numbers that these give when they are called directly, and one line without them.

They are tested where the packages are installed (`pip install "rankbench[peers]"`, or `"rankbench[lenskit]"`).
"""

import subprocess
import sys
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from solvers.contract import SolverContract, ratings
from threadpoolctl import threadpool_info, threadpool_limits

from rankbench.core.contract import Needs, Solver
from rankbench.core.errors import UserError
from rankbench.core.packages import import_needed, missing
from rankbench.data.views import Comparisons, Ratings, offer
from rankbench.execution.training import fit
from rankbench.methods import peers
from rankbench.metrics import evaluate
from rankbench.solvers import SOLVERS
from rankbench.solvers.ease import EASE
from rankbench.solvers.peers.cornac_bpr import CornacBPR
from rankbench.solvers.peers.cornac_ease import CornacEASE
from rankbench.solvers.peers.cornac_mf import CornacMF
from rankbench.solvers.peers.implicit_als import ImplicitALS
from rankbench.solvers.peers.implicit_bpr import ImplicitBPR
from rankbench.solvers.peers.lenskit_mf import LensKitMF
from rankbench.solvers.peers.liblinear import LIBLINEAR
from rankbench.solvers.peers.lightfm import LightFM
from rankbench.solvers.peers.lightgbm_ranker import LightGBMRanker
from rankbench.solvers.peers.xgboost_ranker import XGBoostRanker
from rankbench.solvers.ranksvm_joint import RankSVMJoint

EVERY_PEER = (
    "cornac-bpr", "cornac-ease", "cornac-mf", "implicit-als", "implicit-bpr",
    "lenskit-mf", "liblinear", "lightfm", "lightgbm", "xgboost",
)  # fmt: skip
PACKAGES = ("cornac", "implicit", "lenskit", "lightfm", "lightgbm", "sklearn", "xgboost")


def installed(solver: Any) -> Any:
    """The solver with its package imported, or the test is skipped."""
    if remedy := missing(solver):
        pytest.skip(f"its package is not installed: {remedy}")
    import_needed(solver, type(solver).__name__)
    return solver


class Peer(SolverContract):
    """The contract of a solver whose package may be missing."""

    @pytest.fixture(autouse=True)
    def package(self) -> None:
        """Skip the test without the package."""
        installed(self.solver)


class TestImplicitALS(Peer):
    solver = ImplicitALS(rank=3)


class TestImplicitBPR(Peer):
    solver = ImplicitBPR(rank=3, least=1.0)


class TestCornacMF(Peer):
    solver = CornacMF(rank=3)


class TestCornacBPR(Peer):
    solver = CornacBPR(rank=3)


class TestCornacEASE(Peer):
    solver = CornacEASE(lam=5.0)


class TestLensKitMF(Peer):
    solver = LensKitMF(rank=3)


class TestLightFM(Peer):
    solver = LightFM(rank=3)


class TestLIBLINEAR(Peer):
    solver = LIBLINEAR(C=0.1)


class TestLIBLINEARInTheDual(Peer):
    solver = LIBLINEAR(C=0.1, loss="hinge", form="dual")


class TestLightGBMRanker(Peer):
    solver = LightGBMRanker(rows=5)


class TestXGBoostRanker(Peer):
    solver = XGBoostRanker(depth=3)


def after(solver: Solver, train: Ratings, steps: int, seed: int = 0) -> Any:
    """The model after so many steps."""
    for step in islice(solver.steps(offer(solver, train), np.random.default_rng(seed)), steps):
        model = step.model
    return model


def test_the_iterations_of_implicit_are_those_of_one_call():
    solver, train = installed(ImplicitALS(rank=3, lam=0.5, alpha=2.0)), ratings()
    from implicit.cpu.als import AlternatingLeastSquares

    theirs = AlternatingLeastSquares(3, 0.5, 2.0, iterations=4, num_threads=1, random_state=np.random.default_rng(0))
    theirs.fit(peers.counts_of(train, "binary", None), show_progress=False)
    ours, known = after(solver, train, 4), np.diff(train.indptr) > 0
    np.testing.assert_array_equal(ours.users[known], theirs.user_factors[known].astype(float))
    assert np.isnan(ours.users[~known]).all()


def test_implicit_has_one_thread_of_blas_for_each_of_its_own(monkeypatch):
    # With more it can be ten times slower, by its own warning, which is not shown.
    solver, train = installed(ImplicitALS(rank=3)), ratings()
    from implicit.cpu.als import AlternatingLeastSquares

    whole, seen = AlternatingLeastSquares.fit, []

    def watched(*given: Any, **named: Any) -> None:
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        whole(*given, **named)

    monkeypatch.setattr(AlternatingLeastSquares, "fit", watched)
    with threadpool_limits(2, "blas"):
        after(solver, train, 1)
    assert set(seen) == {1}


def test_bpr_of_implicit_starts_with_the_iteration_of_one_call_and_goes_on():
    solver, train = installed(ImplicitBPR(rank=3)), ratings()
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    theirs = BayesianPersonalizedRanking(
        3, learning_rate=0.05, regularization=0.01, iterations=1, num_threads=1, random_state=np.random.default_rng(0)
    )
    theirs.fit(peers.counts_of(train, "binary", None), show_progress=False)
    known = np.diff(train.indptr) > 0
    first, second = (after(solver, train, steps).users[known] for steps in (1, 2))
    np.testing.assert_array_equal(first, theirs.user_factors[known].astype(float))
    assert not np.array_equal(first, second)


def test_the_passes_of_cornac_are_those_of_one_call():
    solver, train = installed(CornacMF(rank=3, step=0.02)), ratings()
    from cornac.models import MF

    theirs = MF(k=3, max_iter=4, learning_rate=0.02, seed=peers_seed())
    theirs.fit(peers.cornac_data(train, train.values))
    ours = after(solver, train, 4)
    users, items = np.unique(train.users), np.unique(train.items)
    expected = np.array([theirs.score(int(user))[items] - theirs.u_biases[user] - theirs.global_mean for user in users])
    np.testing.assert_allclose(ours.score_all(users)[:, items], expected, atol=1e-5)


def peers_seed() -> int:
    """The seed that a solver draws from the generator of these tests."""
    return int(np.random.default_rng(0).integers(2**63)) % 2**31


def test_bpr_of_cornac_starts_with_the_pass_of_one_call_and_goes_on():
    solver, train = installed(CornacBPR(rank=3)), ratings()
    from cornac.models import BPR

    theirs = BPR(k=3, max_iter=1, learning_rate=0.05, lambda_reg=0.01, seed=peers_seed())
    theirs.fit(peers.cornac_data(train, np.ones(len(train))))
    items = np.unique(train.items)
    first, second = (after(solver, train, steps).score_all(np.array([5]))[0, items] for steps in (1, 2))
    np.testing.assert_allclose(first, theirs.score(5)[items], atol=1e-6)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("sparse", [False, True])
def test_trees_of_lightgbm_are_those_of_one_call(sparse):
    solver, train = installed(LightGBMRanker(rows=5)), ratings()
    import lightgbm

    features = scipy.sparse.csr_array(train.item_features) if sparse else train.item_features
    view = Ratings(train.indptr, train.items, train.values, train.n_items, features)
    kept = train.where(train.has_order[train.users])
    sizes = np.diff(kept.indptr)
    settings = {"objective": "lambdarank", "min_data_in_leaf": 5, "verbosity": -1, "deterministic": True}
    settings |= {"num_threads": 1, "force_row_wise": True, "feature_pre_filter": False}
    _, levels = np.unique(kept.values, return_inverse=True)
    data = lightgbm.Dataset(train.item_features[kept.items], levels, group=sizes[sizes > 0], params=settings)
    theirs = lightgbm.train(settings, data, num_boost_round=4)
    np.testing.assert_allclose(after(solver, view, 5).scores, theirs.predict(train.item_features), atol=1e-9)


@pytest.mark.parametrize("loss", ["pairwise", "ndcg"])
def test_trees_of_xgboost_are_those_of_one_call(loss):
    solver, train = installed(XGBoostRanker(loss)), ratings()
    import xgboost

    kept = train.where(train.has_order[train.users])
    _, levels = np.unique(kept.values, return_inverse=True)
    data = xgboost.DMatrix(train.item_features[kept.items], levels, qid=kept.users, nthread=1)
    settings = {"objective": f"rank:{loss}", "nthread": 1, "verbosity": 0, "seed": peers_seed()}
    theirs = xgboost.train(settings, data, num_boost_round=4)
    expected = theirs.predict(xgboost.DMatrix(train.item_features), output_margin=True)
    difference = after(solver, train, 5).scores - expected
    np.testing.assert_allclose(difference - difference[0], 0, atol=1e-5)


def test_the_weights_of_cornacs_ease_are_those_of_ours():
    solver, train = installed(CornacEASE(lam=5.0)), ratings()
    ours, theirs = (after(one, train, 1).score(train.users, train.items) for one in (EASE(lam=5.0), solver))
    np.testing.assert_allclose(theirs, ours, atol=1e-9)


def test_liblinear_finds_the_optimum_of_ranksvm_joint():
    solver, train = installed(LIBLINEAR(C=0.1, tolerance=1e-10)), ratings()
    ours, theirs = fit(RankSVMJoint(C=0.1), train, steps=100), fit(solver, train, steps=1)
    items = np.arange(train.n_items)
    scores = [model.score(np.zeros_like(items), items) for model in (ours, theirs)]
    np.testing.assert_allclose(scores[1] - scores[1].mean(), scores[0] - scores[0].mean(), atol=1e-5)


@pytest.mark.parametrize("features", [np.eye(2), scipy.sparse.csr_array(np.eye(2))])
def test_liblinear_takes_a_single_comparison(features):
    solver = installed(LIBLINEAR())
    model = fit(solver, Comparisons.from_triples([0], [1], [0], 1, 2, features), steps=1)
    low, high = model.score(np.zeros(2, int), np.arange(2))
    assert low < high


def test_the_hinge_of_liblinear_needs_the_dual():
    with pytest.raises(UserError, match=r"^LIBLINEAR: loss=hinge has no primal form in LIBLINEAR; add form=dual"):
        LIBLINEAR(loss="hinge")


@pytest.mark.parametrize("loss", ["warp", "bpr"])
def test_the_epochs_of_lightfm_are_those_of_one_call(loss):
    solver, train = installed(LightFM(rank=3, loss=loss)), ratings()
    import lightfm

    theirs = lightfm.LightFM(3, loss=loss, item_alpha=1e-6, user_alpha=1e-6, random_state=peers_seed())
    theirs.fit(peers.counts_of(train, "binary", None).tocoo(), epochs=3, num_threads=1)
    items = np.unique(train.items)
    found = after(solver, train, 3).score(np.full_like(items, 5), items) + theirs.user_biases[5]
    np.testing.assert_allclose(found, theirs.predict(5, items), atol=1e-5)


def test_the_epochs_of_lenskit_predict_what_one_call_does():
    solver, train = installed(LensKitMF(rank=3, lam=0.5, damping=2.0)), ratings()
    from lenskit.als import BiasedMFScorer
    from lenskit.data import ItemList, RecQuery, from_interactions_df
    from lenskit.training import TrainingOptions

    rows = pd.DataFrame({"user_id": train.users, "item_id": train.items, "rating": train.values})
    data = from_interactions_df(rows, users=np.arange(train.n_users), items=np.arange(train.n_items))
    theirs = BiasedMFScorer(embedding_size=3, epochs=3, regularization=0.5, damping=2.0)
    theirs.train(data, TrainingOptions(rng=np.random.default_rng(0)))
    users, items = np.unique(train.users), np.unique(train.items)
    expected = [theirs(RecQuery(user_id=user), ItemList(item_ids=items)).scores() for user in users]
    np.testing.assert_allclose(after(solver, train, 3).score_all(users)[:, items], expected, atol=1e-5)


@pytest.mark.slow
def test_lenskit_gives_the_same_bytes_with_any_number_of_threads():
    installed(LensKitMF())
    program = (
        "import sys, rankbench; from rankbench.arrays.npz import fingerprint\n"
        "train = rankbench.load('low-rank')\n"
        "print(fingerprint(rankbench.fit(rankbench.LensKitMF(), train, steps=3, threads=int(sys.argv[1])).model))\n"
    )  # in processes of their own, as LensKit keeps the number of threads that a process first had
    runs = [subprocess.run([sys.executable, "-c", program, n], capture_output=True, check=True) for n in "128"]
    assert runs[0].stdout.strip() and len({run.stdout for run in runs}) == 1


def test_a_panic_inside_lenskit_is_one_line():
    solver, n = installed(LensKitMF(rank=30, lam=1e-12)), 500
    train = Ratings.from_triples(np.arange(n), np.arange(n) % 40, np.arange(n) % 5.0, n, 40)
    with pytest.raises(UserError, match=r"^LensKitMF: the package gave up: .*; raise the penalty, or scale the rat"):
        fit(solver, train, steps=5)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "liblinear"])
def test_unseen_items_are_ranked_by_their_features(name):
    solver, rng = installed(SOLVERS.make(name)), np.random.default_rng(0)
    features = rng.standard_normal((200, 3))
    users, items = np.divmod(np.flatnonzero(rng.random(80 * 200) < 0.3), 200)
    values = np.clip(np.round(features[items, 0] + np.abs(features[items, 1]) + 3), 1, 5)
    data = Ratings.from_triples(users, items, values, 80, 200, features)
    unseen = data.items >= 150
    found = evaluate(fit(solver, data.where(~unseen), steps=60), data.where(unseen), ["pairwise-error"])
    assert found["pairwise-error"] < 0.15


def test_numbers_that_run_away_inside_a_package_are_one_line():
    solver = installed(ImplicitBPR(rank=3, lam=1e12))
    with pytest.raises(
        UserError, match=r"^ImplicitBPR: the package gave up: NaN .*; scale the ratings, lower the step"
    ):
        fit(solver, ratings())


def test_ratings_of_many_values_become_few_levels_in_their_order():
    values = np.random.default_rng(0).standard_normal(1000)
    levels = peers.levels_of(values)
    assert levels.min() == 0 and levels.max() == 30
    assert (np.diff(levels[np.argsort(values)]) >= 0).all()
    assert peers.levels_of(np.array([0.5, 4.0, 0.5, 2.5])).tolist() == [0, 2, 0, 1]


def test_a_user_with_more_ratings_than_lightgbm_takes_is_named():
    solver = installed(LightGBMRanker())
    n = 10_001
    train = Ratings.from_triples(np.zeros(n, int), np.arange(n), np.arange(n) % 5.0, 1, n, np.ones((n, 1)))
    with pytest.raises(UserError, match="LightGBMRanker: user 0 has 10001 training ratings: LightGBM takes at most 10"):
        fit(solver, train)


@pytest.mark.parametrize("name", EVERY_PEER)
def test_a_missing_package_is_named_with_what_installs_it(name, monkeypatch):
    solver, view = SOLVERS.make(name), ratings()
    for module in [*sys.modules]:
        if module.partition(".")[0] in PACKAGES:
            monkeypatch.delitem(sys.modules, module)
    for package in PACKAGES:
        monkeypatch.setitem(sys.modules, package, None)
    own = {"lightfm": "pip install lightfm-next", "lenskit-mf": 'pip install "rankbench[lenskit]"'}
    remedy = own.get(name, 'pip install "rankbench[peers]"')
    assert missing(solver) == remedy
    with pytest.raises(UserError) as error:
        next(solver.steps(offer(solver, view), np.random.default_rng(0)))
    package = "sklearn" if name == "liblinear" else name.partition("-")[0]
    assert str(error.value) == f"{type(solver).__name__}: needs the package {package}, which is not installed; {remedy}"


def test_every_peer_is_listed():
    homes = SOLVERS.entries.items()
    assert tuple(sorted(name for name, home in homes if home.startswith("rankbench.solvers.peers."))) == EVERY_PEER


def test_packages_that_are_there_are_imported_and_one_that_is_not_is_told_with_the_command(monkeypatch, tmp_path):
    (tmp_path / "there_it_is.py").write_text("found = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    there, absent = _needing("there_it_is"), _needing("json", "no_such_package")
    assert (missing(there), missing(absent)) == (None, "install it") and "there_it_is" not in sys.modules
    import_needed(there, "there")
    assert sys.modules.pop("there_it_is").found
    with pytest.raises(UserError, match="absent needs a package that is not installed; install it"):
        import_needed(absent, "absent")


def test_a_package_that_is_there_and_does_not_load_is_told_with_the_reason(monkeypatch, tmp_path):
    (tmp_path / "broken_one.py").write_text("raise ImportError('libgomp.so.1 is missing')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=r"does not load: libgomp.so.1 is missing; install it"):
        import_needed(_needing("broken_one"), "solver")


def test_a_setting_that_has_this_name_by_chance_says_nothing():
    assert missing(SimpleNamespace(needs=3)) is None and import_needed(SimpleNamespace(needs=3), "solver") is None


def _needing(*modules):
    return SimpleNamespace(needs=Needs(modules, "install it"))
