"""Every solver has the type `Solver`, which mypy checks in this file."""

from collections.abc import Iterator

import numpy as np

from rankbench.core.contract import Determinism, Solver, Step
from rankbench.data.views import Ratings, mismatch
from rankbench.solvers import SOLVERS
from rankbench.solvers.altsvm import AltSVM
from rankbench.solvers.bpr import BPR
from rankbench.solvers.cofirank import CofiRank
from rankbench.solvers.convex_erm import ConvexERM
from rankbench.solvers.ease import EASE
from rankbench.solvers.fm import FM
from rankbench.solvers.frsvm import FRSVM
from rankbench.solvers.global_ranking import GlobalRanking
from rankbench.solvers.ials import IALS
from rankbench.solvers.imc import IMC
from rankbench.solvers.item_knn import ItemKNN
from rankbench.solvers.lcr import LCR
from rankbench.solvers.mf import MF
from rankbench.solvers.mprank import MPRank
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
from rankbench.solvers.popularity import Popularity
from rankbench.solvers.random_scores import Random
from rankbench.solvers.rankboost import RankBoost
from rankbench.solvers.ranksvm_joint import RankSVMJoint
from rankbench.solvers.ranksvm_nuclear import RankSVMNuclear
from rankbench.solvers.ranksvm_separate import RankSVMSeparate
from rankbench.solvers.ranksvm_var import RankSVMVar
from rankbench.solvers.rmc import RMC
from rankbench.solvers.robirank import RobiRank
from rankbench.solvers.rp3beta import RP3Beta
from rankbench.solvers.sgd import SGD
from rankbench.solvers.slim import SLIM
from rankbench.solvers.smc import SMC
from rankbench.solvers.softmax import Softmax
from rankbench.solvers.sqlrank import SQLRank
from rankbench.solvers.svrank import SVRank

EVERY_SOLVER: tuple[Solver, ...] = (
    AltSVM(),
    BPR(),
    CofiRank(),
    ConvexERM(),
    EASE(),
    FM(),
    FRSVM(),
    GlobalRanking(),
    IALS(),
    IALS(block=3),
    IMC(),
    ItemKNN(),
    RP3Beta(),
    SLIM(),
    Softmax(),
    SQLRank(),
    LCR(),
    MF(),
    MPRank(),
    Popularity(),
    Random(),
    RankBoost(),
    RankSVMJoint(),
    RankSVMNuclear(),
    RankSVMSeparate(),
    RankSVMVar(),
    RMC(),
    RobiRank(),
    SGD(),
    SMC(),
    SVRank(),
    CornacBPR(),
    CornacEASE(),
    CornacMF(),
    ImplicitALS(),
    ImplicitBPR(),
    LensKitMF(),
    LIBLINEAR(),
    LightFM(),
    LightGBMRanker(),
    XGBoostRanker(),
)


class WithoutVersion:
    """All that a solver must have, but for its version."""

    learns_from = Ratings
    needs_features = False
    determinism = Determinism.EXACT

    def steps(self, train: Ratings, rng: np.random.Generator, threads: int = 1) -> Iterator[Step]:
        """Nothing."""
        yield from ()


NO_SOLVER: Solver = WithoutVersion()  # type: ignore[assignment]  # mypy complains should this ever be no error


def test_no_solver_is_left_out() -> None:
    assert {type(solver) for solver in EVERY_SOLVER} == {SOLVERS.find(name) for name in SOLVERS.entries}


def test_each_declares_a_kind_of_data_that_can_be_offered() -> None:
    view = Ratings([0, 2], [0, 1], [1.0, 2.0], 2, item_features=np.eye(2))  # type: ignore[arg-type]
    assert [mismatch(solver, view) for solver in EVERY_SOLVER] == [None] * len(EVERY_SOLVER)
