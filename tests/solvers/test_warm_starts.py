"""Solvers that go on from another penalty's model, against their own runs from nothing."""

import numpy as np
import pytest
from solvers.completion import last, some_ratings

from rankbench.core.contract import GoesOn, Step
from rankbench.core.errors import UserError
from rankbench.data.synthetic import PartialOrders
from rankbench.data.views import View
from rankbench.models import Factors, ItemScores
from rankbench.solvers.convex_erm import ConvexERM
from rankbench.solvers.global_ranking import GlobalRanking
from rankbench.solvers.rmc import RMC
from rankbench.solvers.smc import SMC

pytestmark = pytest.mark.slow

CONVEX = {
    "rmc": (RMC(lam=9.0), RMC(lam=6.0)),
    "rmc-share": (RMC(share=0.2), RMC(share=0.1)),
    "smc": (SMC(lam=9.0), SMC(lam=6.0)),
    "smc-centred": (SMC(lam=9.0, centred=True), SMC(lam=6.0, centred=True)),
    "global": (GlobalRanking(lam=10.0), GlobalRanking(lam=1.0)),
    "convex-erm": (ConvexERM(lam=0.3), ConvexERM(lam=0.5)),
    "convex-erm-tighter": (ConvexERM(lam=0.5), ConvexERM(lam=0.3)),
}
OF_RATINGS = {"smc", "smc-centred"}

pytestmark = pytest.mark.usefixtures("as_in_the_harness")


@pytest.fixture(scope="module")
def comparisons() -> View:
    """Comparisons without contradiction, for every solver that learns from them."""
    return PartialOrders(users=60, items=40, per_user=12).view(np.random.default_rng(2))


def warm(solver, model, train, threads=1) -> list[Step]:
    """All steps from this model."""
    return list(solver.steps_from(model, train, np.random.default_rng(1), threads))


@pytest.mark.parametrize("name", CONVEX)
def test_a_warm_start_ends_at_the_optimum_of_a_run_from_nothing(name, comparisons):
    other, solver = CONVEX[name]
    train = some_ratings() if name in OF_RATINGS else comparisons
    cold, start = last(solver, train), last(other, train).model
    end = warm(solver, start, train)[-1]
    assert abs(end.objective() - cold.objective()) <= end.gap() + cold.gap() + 1e-12 * cold.objective()
    assert end.gap() <= max(1.01e-5 * end.objective(), 2 * cold.gap())


@pytest.mark.parametrize("name", CONVEX)
def test_the_first_step_of_a_warm_start_is_its_model(name, comparisons):
    solver, _ = CONVEX[name]
    train = some_ratings() if name in OF_RATINGS else comparisons
    end = last(solver, train)
    first = next(solver.steps_from(end.model, train, np.random.default_rng(1)))
    assert first.objective() == pytest.approx(end.objective(), rel=1e-10)
    pairs = np.arange(train.n_users), np.arange(train.n_users) % train.n_items
    np.testing.assert_allclose(first.model.score(*pairs), end.model.score(*pairs), atol=1e-10)


@pytest.mark.parametrize("name", CONVEX)
def test_a_warm_start_has_the_same_bits_on_any_number_of_threads(name, comparisons):
    other, solver = CONVEX[name]
    train = some_ratings() if name in OF_RATINGS else comparisons
    start = last(other, train).model
    pairs = np.arange(train.n_users), np.arange(train.n_users) % train.n_items
    ends = [warm(solver, start, train, threads)[-1].model.score(*pairs).tobytes() for threads in (1, 3)]
    assert ends[0] == ends[1]


def test_a_warm_start_at_the_optimum_ends_at_the_first_check():
    train, solver = some_ratings(), RMC(lam=6.0)
    assert len(warm(solver, last(solver, train).model, train)) < len(
        list(solver.steps(train, np.random.default_rng(0)))
    )


@pytest.mark.parametrize("name", CONVEX)
def test_these_solvers_go_on_along_a_path_of_penalties(name):
    assert isinstance(CONVEX[name][0], GoesOn)


def test_a_model_that_does_not_fit_is_refused(comparisons):
    few = Factors(np.zeros((3, 2)), np.zeros((4, 2)))
    scores = ItemScores(np.zeros(7))
    for solver, model, problem in (
        (RMC(), few, "RMC: cannot go on from a model of 3 users and 4 items with 60 and 40"),
        (RMC(), scores, "RMC: cannot go on from ItemScores, only from factors"),
        (SMC(), scores, "SMC: cannot go on from ItemScores"),
        (ConvexERM(), few, "ConvexERM: cannot go on from a model of 3 users"),
        (GlobalRanking(), scores, "GlobalRanking: cannot go on from a model of 60 users and 7 items"),
        (GlobalRanking(), few, "GlobalRanking: cannot go on from Factors, only from scores"),
    ):
        train = some_ratings() if isinstance(solver, SMC) else comparisons
        with pytest.raises(UserError, match=problem):
            next(solver.steps_from(model, train, np.random.default_rng(0)))
