"""SVRank against a QP solver, its own double sum over pairs, and its two forms against each other."""

from dataclasses import replace
from itertools import combinations

import clarabel
import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from solvers.contract import SolverContract

from rankbench.contract import Floats
from rankbench.data.synthetic import Magnitudes
from rankbench.data.views import Ratings
from rankbench.harness.threads import single_threaded_blas
from rankbench.solvers.svrank import SVRank
from rankbench.streams import stream

FORMS = ("pairs", "residuals")


class TestSVRank(SolverContract):
    solver = SVRank(C=20.0)


class TestSVRankOverResiduals(SolverContract):
    solver = SVRank(C=20.0, form="residuals")


class TestSVRankWithGaussianKernel(SolverContract):
    solver = SVRank(C=20.0, kernel="gaussian", width=2.5, eps=0.0)


class TestSVRankWithGaussianKernelOverResiduals(SolverContract):
    solver = SVRank(C=20.0, kernel="gaussian", width=2.5, form="residuals")


def one_user(m: int, features: int = 6, seed: int = 0, levels: bool = False) -> Ratings:
    """One user who rated all items; in whole numbers where levels are asked for, so that ratings tie."""
    view = Magnitudes(users=1, items=m, features=features, per_user=m).view(np.random.default_rng(seed))
    return replace(view, values=np.round(1.5 * view.values)) if levels else view


def last(solver: SVRank, train: Ratings, threads: int = 1):
    """The last step."""
    with single_threaded_blas():
        for step in solver.steps(train, stream(0), threads):
            found = step
    return found


def table(solver: SVRank, train: Ratings, threads: int = 1) -> Floats:
    """The scores, users x items."""
    users, items = np.indices((train.n_users, train.n_items))
    return last(solver, train, threads).model.score(users.ravel(), items.ravel()).reshape(users.shape)


def gram_of(solver: SVRank, x: Floats) -> Floats:
    if solver.kernel == "gaussian":
        return rbf_kernel(x, gamma=1 / (2 * solver.width**2))
    if solver.kernel == "polynomial":
        return polynomial_kernel(x, gamma=1 / solver.width**2, coef0=1, degree=solver.degree)
    return x @ x.T


def best_by_clarabel(solver: SVRank, gram: Floats, y: Floats) -> float:
    """The least value of the primal as it is printed: scores h = K v, a slack for each unordered pair, c = 2C/m^2."""
    m = len(y)
    values, vectors = np.linalg.eigh(gram)
    factor = vectors * np.sqrt(np.maximum(values, 0))
    pairs = np.array(list(combinations(range(m), 2)))
    differences = scipy.sparse.csc_array(factor[pairs[:, 1]] - factor[pairs[:, 0]])
    steps, n = y[pairs[:, 1]] - y[pairs[:, 0]], len(pairs)
    eye = scipy.sparse.eye_array(n, format="csc")
    quadratic = scipy.sparse.block_diag([2 * scipy.sparse.eye_array(m), scipy.sparse.csc_array((n, n))], format="csc")
    linear = np.concatenate([np.zeros(m), np.full(n, 2 * solver.C / m**2)])
    rows = scipy.sparse.block_array([[differences, -eye], [-differences, -eye], [None, -eye]], format="csc")
    bounds = np.concatenate([solver.eps + steps, solver.eps - steps, np.zeros(n)])
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-10
    cones = [clarabel.NonnegativeConeT(3 * n)]
    return clarabel.DefaultSolver(quadratic, linear, rows, bounds, cones, options).solve().obj_val


def pair_objective(solver: SVRank, gram: Floats, y: Floats, h: Floats) -> float:
    """The objective by the double sum, for centred scores h = K v of least norm."""
    m = len(y)
    centre = np.eye(m) - 1 / m
    v = np.linalg.lstsq(centre @ gram @ centre, h - h.mean(), rcond=1e-11)[0]
    r = h - y
    loss = np.maximum(np.abs(r[:, None] - r) - solver.eps, 0).sum()
    return float(v @ centre @ gram @ centre @ v + solver.C / m**2 * loss)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("eps", [0.0, 0.1, 0.7])
@pytest.mark.parametrize(
    ("kernel", "C"), [("linear", 1.0), ("linear", 100.0), ("gaussian", 100.0), ("polynomial", 10.0)]
)
def test_the_objective_is_that_of_a_qp_solver(form, eps, kernel, C):
    train = one_user(40, levels=True)
    solver = SVRank(C=C, eps=eps, kernel=kernel, width=1.5, form=form, tolerance=1e-8)
    step = last(solver, train)
    best = best_by_clarabel(solver, gram_of(solver, train.item_features), train.values)
    assert step.objective() == pytest.approx(best, rel=1e-7)
    assert -1e-12 <= step.gap() <= 1e-8 * step.objective()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", ["linear", "gaussian", "polynomial"])
def test_the_objective_is_the_double_sum_at_the_models_scores(form, kernel):
    train = one_user(30)
    solver = SVRank(C=30.0, eps=0.2, kernel=kernel, width=1.5, form=form)
    for step in solver.steps(train, stream(0)):
        h = step.model.score(np.zeros(30, int), np.arange(30))
        gram = gram_of(solver, train.item_features)
        assert step.objective() == pytest.approx(pair_objective(solver, gram, train.values, h), rel=1e-6)


@pytest.mark.parametrize("eps", [0.0, 0.3])
@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
@pytest.mark.parametrize("levels", [False, True])
def test_both_forms_agree(eps, kernel, levels):
    train = one_user(120, seed=4, levels=levels)
    solver = SVRank(C=50.0, eps=eps, kernel=kernel, tolerance=1e-8)
    pairs, residuals = (last(replace(solver, form=form), train) for form in FORMS)
    assert pairs.objective() == pytest.approx(residuals.objective(), rel=2e-8)
    items = np.arange(120)
    one, other = (step.model.score(0 * items, items) for step in (pairs, residuals))
    np.testing.assert_allclose(one, other, atol=1e-2)
