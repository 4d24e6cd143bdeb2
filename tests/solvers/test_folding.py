"""Users who were not trained on: what solvers give them is their exact half step, or their refit alone."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

import rankbench
from rankbench.core.contract import FoldsIn
from rankbench.core.errors import UserError
from rankbench.data.synthetic import BTL, FeatureLowRank, LowRank
from rankbench.data.views import Ratings, offer
from rankbench.methods.isotonic import project_blocks
from rankbench.methods.losses import LOSSES
from rankbench.methods.newcomers import minimum
from rankbench.models import ItemScores
from rankbench.solvers import SOLVERS
from rankbench.solvers.altsvm import AltSVM
from rankbench.solvers.bpr import BPR
from rankbench.solvers.cofirank import CofiRank, Problem
from rankbench.solvers.convex_erm import ConvexERM
from rankbench.solvers.ease import EASE
from rankbench.solvers.fm import FM
from rankbench.solvers.frsvm import FRSVM
from rankbench.solvers.ials import IALS
from rankbench.solvers.imc import IMC
from rankbench.solvers.item_knn import ItemKNN
from rankbench.solvers.lcr import LCR
from rankbench.solvers.mf import MF
from rankbench.solvers.mprank import MPRank
from rankbench.solvers.ranksvm_nuclear import RankSVMNuclear
from rankbench.solvers.ranksvm_separate import RankSVMSeparate
from rankbench.solvers.rmc import RMC
from rankbench.solvers.robirank import RobiRank, wishes_of
from rankbench.solvers.rp3beta import RP3Beta
from rankbench.solvers.sgd import SGD
from rankbench.solvers.slim import SLIM
from rankbench.solvers.smc import SMC
from rankbench.solvers.softmax import Softmax
from rankbench.solvers.sqlrank import SQLRank

FOLDING = (
    MF(rank=3, lam=0.7),
    MF(rank=3, lam=0.7, inner=1),
    MF(rank=3, lam=0.7, centre="none"),
    MF(rank=3, lam=0.7, biases=0.2),
    MF(rank=3, lam=0.7, biases=0.2, centre="none"),
    MF(rank=3, lam=0.1, biases=0.2, power=1.0),
    IALS(rank=3, lam=0.1),
    IALS(rank=3, lam=0.1, power=0.5, least=2.0),
    IMC(rank=3, lam=0.7),
    IMC(rank=3, lam=0.7, centre="none"),
    IMC(rank=3, lam=0.7, centre="fitted"),
    EASE(lam=3.0),
    EASE(lam=3.0, values="centred", least=2.0),
    EASE(lam=3.0, neighbours=4),
    ItemKNN(neighbours=4),
    RP3Beta(neighbours=4),
    SLIM(lam=3.0),
    Softmax(rank=3, lam=0.1),
    ItemKNN(neighbours=4, values="centred"),
    SGD(rank=3, lam=0.7),
    SGD(rank=3, lam=0.7, loss="logistic"),
    AltSVM(rank=3, lam=0.7),
    BPR(rank=3, lam=0.1),
    BPR(rank=3, lam=0.1, loss="squared-hinge"),
    BPR(rank=3, lam=0.1, biases=True, negatives="warp", least=2.0),
    CofiRank(rank=3, lam=0.7),
    CofiRank(rank=3, lam=0.7, loss="ordinal"),
    CofiRank(rank=3, lam=0.7, loss="regression"),
    FM(rank=3, lam=0.7),
    FM(rank=3, lam=0.7, loss="squared-hinge", features="none"),
    FRSVM(rank=2, newton=60, cg=60, forcing=1e-9),
    FRSVM(rank=2, loss="logistic", newton=60, cg=60, forcing=1e-9),
    FRSVM(rank=2, C=0.1, features="none", fallback="mean", newton=60, cg=60, forcing=1e-9),
    SMC(lam=2.0),
    SMC(share=0.2, centred=True),
    RMC(lam=1.0),
    RMC(share=0.1, eps=0.3),
    ConvexERM(lam=0.5),
    ConvexERM(lam=0.5, loss="squared-hinge"),
    RankSVMNuclear(C=0.3),
    RankSVMNuclear(C=0.3, loss="logistic"),
    LCR(rank=2, anchors=3),
    LCR(rank=2, anchors=0),
    RobiRank(rank=3, low=1.0, high=12.0),
    RobiRank(rank=3, among="catalogue"),
    SQLRank(rank=3),
    SQLRank(rank=3, link="identity", least=2.0),
    SQLRank(rank=3, unrated=2),
    MPRank(C=0.3),
    MPRank(C=0.3, choose="C-per-user"),
    RankSVMSeparate(C=0.3),
    RankSVMSeparate(C=0.3, loss="logistic"),
)
EVERY = pytest.mark.parametrize("solver", FOLDING, ids=repr)


@pytest.fixture
def data() -> Ratings:
    """Ratings of items with features; user 13 has none, user 14's are all alike, item 0 has none."""
    view = FeatureLowRank(users=15, items=12, features=5, rank=2, per_user=7).view(np.random.default_rng(1))
    kept = view.where((view.items > 0) & (view.users != 13))
    return replace(kept, values=np.where(kept.users == 14, 2.0, kept.values + 7.0))  # none is below 0


def of_users(view: Ratings, users: list[int]) -> Ratings:
    """The ratings of these users alone, who are numbered anew."""
    rows = [slice(view.indptr[user], view.indptr[user + 1]) for user in users]
    counts = [row.stop - row.start for row in rows]
    pieces = (np.concatenate([column[row] for row in rows]) for column in (view.items, view.values))
    return Ratings(np.concatenate([[0], np.cumsum(counts)]), *pieces, view.n_items)


def model_at(solver, view: Ratings, number: int):
    """The model after so many steps, or the last one before."""
    *_, step = islice(solver.steps(offer(solver, view), np.random.default_rng(0)), number + 1)
    return step.model


def test_all_solvers_that_fold_in_are_tested_here():
    able = {SOLVERS.find(name) for name in SOLVERS.entries if issubclass(SOLVERS.find(name), FoldsIn)}
    assert able == {type(solver) for solver in FOLDING}


OTHERS = tuple(  # no exact half step
    one
    for one in FOLDING
    if isinstance(one, (SLIM, Softmax, BPR, CofiRank, SMC, RMC, RobiRank, SQLRank, LCR, RankSVMSeparate))
    or "inner=1" in repr(one)
    or "fitted" in repr(one)
)
OF_PAIRS = FRSVM | SGD | AltSVM | FM | ConvexERM | RankSVMNuclear
EXACT = [one for one in FOLDING if one not in OTHERS and not isinstance(one, OF_PAIRS)]


@pytest.mark.parametrize("solver", EXACT, ids=repr)
def test_users_of_the_training_part_get_the_scores_of_their_next_half_step(solver, data):
    folded = solver.fold_in(model_at(solver, data, 2), data).score_all(np.arange(data.n_users))
    expected = model_at(solver, data, 3).score_all(np.arange(data.n_users))  # step 2 is a half of items, 3 of users
    np.testing.assert_allclose(folded, expected, rtol=1e-8, atol=1e-10)
    assert np.isnan(folded[:, 0]).all() != isinstance(solver, IMC | MPRank)  # items without a rating have features


@EVERY
def test_a_user_alone_gets_the_bits_that_they_get_among_others(solver, data):
    model = model_at(solver, data, 2)
    among = solver.fold_in(model, data, threads=2).score_all(np.arange(data.n_users))
    for user in (0, 7, 13, 14):
        alone = solver.fold_in(model, of_users(data, [user])).score_all(np.arange(1))
        assert alone[0].tobytes() == among[user].tobytes()


@EVERY
def test_ratings_of_items_that_the_model_does_not_know_change_nothing(solver, data):
    by_features = isinstance(solver, IMC | MPRank | RankSVMSeparate)
    by_features |= isinstance(solver, FRSVM | FM | RankSVMNuclear) and solver.needs_features
    of_all = isinstance(solver, Softmax | BPR) or "catalogue" in repr(solver) or "unrated=2" in repr(solver)
    if by_features or of_all:
        pytest.skip("it knows every item, by its features or as a competitor")
    model, one = model_at(solver, data, 2), of_users(data, [3])
    more = Ratings(np.array([0, len(one) + 1]), np.append(0, one.items), np.append(5.0, one.values), one.n_items)
    fewer, all_of_them = (solver.fold_in(model, view).score_all(np.arange(1)) for view in (one, more))
    assert fewer.tobytes() == all_of_them.tobytes()


def ridge(vectors, values, penalties):
    """The minimiser of |values - vectors x|^2 + sum penalty x^2, by dense normal equations."""
    return np.linalg.solve(vectors.T @ vectors + np.diag(penalties), vectors.T @ values)


@pytest.mark.parametrize("centre", ["user", "none"])
@pytest.mark.parametrize("inner", [None, 1])
def test_mf_solves_the_normal_equations(centre, inner, data):
    one = of_users(data, [3])
    values = one.values - one.values.mean() if centre == "user" else one.values
    solver = MF(rank=3, lam=0.7, centre=centre, inner=inner)
    model = model_at(solver, data, 2)
    expected = ridge(model.items[one.items], values, [0.7] * 3)
    np.testing.assert_allclose(solver.fold_in(model, one).users[0], expected, rtol=1e-10)


def test_imc_with_fitted_constants_solves_for_constant_and_weights_together(data):
    one, solver = of_users(data, [3]), IMC(rank=3, lam=0.7, centre="fitted")
    model = model_at(solver, data, 2)
    vectors = np.column_stack([model.items(one.items), np.ones(len(one))])
    expected = ridge(vectors, one.values, [0.7] * 3 + [0.0])[:3]
    np.testing.assert_allclose(solver.fold_in(model, one).users[0], expected, rtol=1e-8)


@pytest.mark.parametrize("solver", [MF(rank=3, lam=0.7), MF(rank=3, biases=1.0, centre="none"), EASE(), ItemKNN()])
def test_users_without_a_known_rating_are_told_nothing(solver, data):
    empty = Ratings(np.array([0, 0, 1]), np.array([0], np.int32), np.array([4.0]), data.n_items)
    scores = solver.fold_in(model_at(solver, data, 2), empty).score_all(np.arange(2))
    assert (np.isnan(scores) | (scores == 0)).all()


@pytest.mark.parametrize("solver", [one for one in FOLDING if isinstance(one, BPR | Softmax)], ids=repr)
def test_users_without_any_rating_score_nan(solver, data):
    scores = solver.fold_in(model_at(solver, data, 2), data).score_all(np.arange(data.n_users))
    np.testing.assert_array_equal(np.isnan(scores).all(axis=1), np.arange(data.n_users) == 13)


def test_other_models_and_catalogues_are_refused(data):
    solver, wrong = MF(rank=3), ItemScores(np.zeros(data.n_items))
    with pytest.raises(UserError, match="the model is a ItemScores, and the solver makes Factors; fit it again"):
        solver.fold_in(wrong, data)
    model = model_at(solver, data, 2)
    with pytest.raises(UserError, match="the model's vectors have 3 numbers, and the solver's 4"):
        MF(rank=4).fold_in(model, data)
    for one in (solver, IMC(rank=3), EASE(), MPRank()):
        with pytest.raises(UserError, match="the ratings are of 5 items, and the model of 12"):
            one.fold_in(model_at(one, data, 2), Ratings(np.array([0, 0]), np.array([], int), np.array([]), 5))


@pytest.mark.parametrize("solver", [one for one in FOLDING if isinstance(one, OF_PAIRS)], ids=repr)
@pytest.mark.parametrize("listed", [False, True])
def test_solvers_of_pairs_end_where_nothing_falls_any_more_for_any_user(solver, listed, data):
    model = model_at(solver, data, 2)
    view = data.comparisons() if listed else data
    found = solver.fold_in(model, view)
    pairs, loss = data.comparisons(), next(one for one in LOSSES if one.name == solver.loss)
    C = solver.C if hasattr(solver, "C") else 1 / solver.lam
    C = 1 / model.penalties[0] if isinstance(solver, ConvexERM) else C
    by_features = isinstance(solver, FRSVM | RankSVMNuclear) and solver.needs_features
    vectors = np.nan_to_num(model.items(np.arange(12), 1) if by_features else model.items)
    apart = vectors[pairs.better] - vectors[pairs.worse]
    margins = (apart * found.users[pairs.users]).sum(axis=1)
    gradient = found.users.copy()
    np.add.at(gradient, pairs.users, C * loss.slope(margins)[:, None] * apart)
    if isinstance(solver, FM):
        gradient = gradient[:, :-1]  # behind it is the constant 1
    paired = np.diff(pairs.indptr) > 0
    assert np.abs(gradient[paired]).max() < 1e-8 * np.abs(apart).max() * max(1.0, C) * len(pairs)
    without = {FRSVM: 0.0, RankSVMNuclear: 0.0, FM: [0.0, 0.0, 0.0, 1.0]}.get(type(solver), np.nan)
    expected = model.users.mean(axis=0) if getattr(solver, "fallback", "") == "mean" else without
    np.testing.assert_allclose(found.users[~paired], np.broadcast_to(expected, found.users[~paired].shape))


@pytest.mark.parametrize("solver", [one for one in FOLDING if isinstance(one, BPR)], ids=repr)
def test_bpr_ends_where_the_mean_loss_of_all_pairs_falls_no_more(solver, data):
    model, one = model_at(solver, data, 2), of_users(data, [3])
    user, items = solver.fold_in(model, one).users[0], model.items
    positives = one.items[one.values >= (solver.least or -np.inf)]
    pairs = [(j, k) for j in positives for k in range(12) if k not in positives]
    apart = np.array([items[j] - items[k] for j, k in pairs])
    margins = apart @ user
    slopes = -1 / (1 + np.exp(margins)) if solver.loss == "logistic" else -2 * np.maximum(0, 1 - margins)
    gradient = (slopes[:, None] * apart).mean(axis=0)[:3] + solver.lam * user[:3]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-10)
    np.testing.assert_array_equal(user[3:], 1.0)


@pytest.mark.parametrize("loss", ["ndcg", "ordinal", "regression"])
def test_cofirank_ends_at_the_minimum_of_the_users_half(loss, data):
    solver = CofiRank(rank=3, lam=0.7, loss=loss)
    model = model_at(solver, data, 2)
    found, items = np.nan_to_num(solver.fold_in(model, data).users), np.nan_to_num(model.items)
    problem = Problem.of(data, loss, solver.k, solver.lam, 1)

    def objectives(users):
        return problem.losses(users, items)[0] + 0.35 * np.square(users).sum(axis=1)

    rng, least = np.random.default_rng(0), objectives(found)
    for length in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            assert (objectives(found + length * rng.standard_normal(found.shape)) >= least * (1 - 1e-9)).all()


@pytest.mark.parametrize(
    ("solver", "as_comparisons"),
    [
        (SMC(lam=2.0, tolerance=1e-11), False),
        (SMC(share=0.2, centred=True, tolerance=1e-11), False),
        (RMC(lam=1.0, tolerance=1e-11), False),
        (RMC(share=0.1, eps=0.3, tolerance=1e-11), False),
        (RMC(lam=1.0, tolerance=1e-11), True),
        (RMC(lam=1.0, tolerance=1e-11, graphs="as-levels"), True),
        (ConvexERM(lam=0.5), True),
        (ConvexERM(lam=0.5, loss="squared-hinge"), True),
    ],
)
def test_at_the_optimum_under_the_nuclear_norm_each_user_is_at_their_own_minimum(solver, as_comparisons):
    rng = np.random.default_rng(0)
    view = LowRank(users=40, items=25, per_user=10, rank=2).view(rng)
    if as_comparisons:
        view = (pairs := view.comparisons()).where(rng.random(len(pairs)) < 0.4)
    *_, step = islice(solver.steps(view, rng), 1000)
    folded = solver.fold_in(step.model, view)
    assert step.gap() < 1e-7 * step.objective() and len(step.model.penalties) > 1
    np.testing.assert_allclose(folded.users, step.model.users, atol=1e-4 * np.nanmax(np.abs(step.model.users)))
    again = solver.fold_in(folded, view)  # it knows the same of its items
    assert again.users.tobytes() == folded.users.tobytes()


@pytest.mark.parametrize("solver", [one for one in FOLDING if isinstance(one, MPRank | RankSVMSeparate)], ids=repr)
def test_solvers_that_train_each_user_alone_train_further_ones_in_the_same_way(solver, data):
    trained = model_at(solver, data, 1000)
    folded = solver.fold_in(model_at(solver, data, 0), of_users(data, [3, 7]))
    assert folded.score_all(np.arange(2)).tobytes() == trained.score_all(np.array([3, 7])).tobytes()


@pytest.mark.parametrize("settings", [{"kernel": "gaussian"}, {"choose": "C-for-all"}])
def test_what_models_of_mprank_do_not_hold_is_asked_for(settings, data):
    with pytest.raises(UserError, match="MPRank: fold_in needs kernel=linear, and choose=nothing or C-per-user"):
        MPRank(**settings).fold_in(model_at(MPRank(), data, 0), data)


@pytest.mark.parametrize("loss", ["squared-hinge", "logistic"])
def test_at_the_optimum_of_ranksvm_nuclear_each_user_is_at_their_own_minimum(loss, data):
    solver = RankSVMNuclear(C=0.3, loss=loss)
    *_, step = solver.steps(data, np.random.default_rng(0))
    folded = solver.fold_in(step.model, data)
    np.testing.assert_allclose(folded.users, step.model.users, atol=1e-5 * np.abs(step.model.users).max())


@pytest.mark.parametrize("lam", [0.01, 1.0])
@pytest.mark.parametrize("levels", [3, 100])
def test_rmc_ends_where_the_distance_from_the_users_order_and_the_penalty_balance(lam, levels):
    rng = np.random.default_rng(2)
    view = LowRank(users=30, items=40, per_user=20, rank=3).view(rng)
    view = replace(view, values=np.ceil(levels * rng.random(len(view))))
    *_, step = islice(RMC(lam=lam).steps(view, rng), 40)
    found, items, penalties = RMC(lam=lam).fold_in(step.model, view), step.model.items, step.model.penalties
    for user, rows in enumerate(zip(view.indptr, view.indptr[1:], strict=False)):
        own, x = items[view.items[slice(*rows)]], found.users[user]
        away = own @ x - project_blocks(own @ x, view.values[slice(*rows)])
        np.testing.assert_allclose(own.T @ away + penalties * x, 0.0, atol=1e-9 * max(1.0, np.abs(own.T @ away).max()))


@pytest.mark.parametrize("anchors", [0, 4])
def test_at_the_optimum_of_lcr_each_user_is_at_their_own_minimum(anchors):
    rng = np.random.default_rng(0)
    view = BTL(users=30, items=10, comparisons=25).view(rng)
    solver = LCR(rank=2, anchors=anchors, lam=0.3, prior_rank=10)  # so that preliminary factors hold the whole matrix
    *_, step = islice(solver.steps(view, rng), 2000)
    folded = solver.fold_in(step.model, view)
    np.testing.assert_allclose(folded.user_weights, step.model.user_weights, atol=1e-6)
    everyone = np.arange(30)
    np.testing.assert_allclose(folded.score_all(everyone), step.model.score_all(everyone), atol=1e-4)


def robust_loss(scores, values, solver):
    """What RobiRank minimises for one user, from its formula."""
    gains = (2**values - 2**solver.low) / (2**solver.high - 2**solver.low)
    terms = np.log2(1 + 2 ** (scores[None, :] - scores[:, None]))
    np.fill_diagonal(terms, 0.0)
    return gains @ np.log2(1 + terms.sum(axis=1))


def list_loss(scores, values, solver):
    """What SQL-Rank minimises for one user without ties, from its formula."""
    ordered = scores[np.argsort(-values)]
    exponents = 1 / (1 + np.exp(-ordered)) if solver.link == "sigmoid" else ordered
    return sum(np.log(np.exp(exponents[place:]).sum()) - exponents[place] for place in range(len(ordered)))


@pytest.mark.parametrize(
    ("solver", "loss"),
    [
        (RobiRank(rank=3, lam=0.3, low=0.0, high=12.0), robust_loss),
        (RobiRank(rank=3, lam=0.003, low=0.0, high=12.0), robust_loss),
        (SQLRank(rank=3, lam=0.3), list_loss),
        (SQLRank(rank=3, lam=0.001), list_loss),
        (SQLRank(rank=3, lam=0.3, link="identity"), list_loss),
    ],
)
def test_losses_that_are_not_convex_end_at_a_minimum(solver, loss, data):
    model = model_at(solver, data, 5)
    for user in range(12):
        one = of_users(data, [user])
        own, x = model.items[one.items], solver.fold_in(model, one).users[0]

        def objective(x, own=own, values=one.values):
            return loss(own @ x, values, solver) + solver.lam / 2 * x @ x

        gradient = [(objective(x + 1e-5 * e) - objective(x - 1e-5 * e)) / 2e-5 for e in np.eye(3)]
        np.testing.assert_allclose(gradient, 0.0, atol=1e-8)
        rng = np.random.default_rng(user)
        assert all(objective(x + 1e-2 * rng.standard_normal(3)) > objective(x) for _ in range(20))


def test_robirank_among_the_catalogue_ends_at_a_minimum_too(data):
    solver, one = RobiRank(rank=3, lam=0.3, among="catalogue"), of_users(data, [3])
    model = model_at(solver, data, 5)
    items, x = model.items, solver.fold_in(model, one).users[0]

    def objective(x):
        terms = np.log2(1 + 2 ** ((items @ x)[None, :] - (items @ x)[:, None]))
        np.fill_diagonal(terms, 0.0)
        return np.log2(1 + terms.sum(axis=1))[one.items].sum() + 0.15 * x @ x

    gradient = [(objective(x + 1e-5 * e) - objective(x - 1e-5 * e)) / 2e-5 for e in np.eye(3)]
    np.testing.assert_allclose(gradient, 0.0, atol=1e-8)


def test_a_fitted_robirank_keeps_the_gains_of_its_training(data):
    model = rankbench.fit("robirank[rank=3]", data, steps=5)
    assert (model.solver.low, model.solver.high) == (data.values.min(), data.values.max())
    one = of_users(data, [3])
    scores = model.fold_in(one).score_all(np.arange(1))
    assert scores.tobytes() == model.solver.fold_in(model.model, one).score_all(np.arange(1)).tobytes()
    assert scores.tobytes() != RobiRank(rank=3).fold_in(model.model, one).score_all(np.arange(1)).tobytes()


def test_gains_of_robirank_end_at_those_of_training(data):
    values = np.array([0.0, 1.0, 3.0, 5.0, 9.0])
    gains = wishes_of(Ratings(np.array([0, 5]), np.arange(5, dtype=np.int32), values, 5), "rated", 1.0, 5.0).gains
    np.testing.assert_allclose(gains, [6 / 30, 1.0, 1.0])  # ratings of 1 and less gain nothing, and are no wishes
    assert RobiRank().as_trained(data.where(np.zeros(len(data), bool))) == RobiRank()
    of_no_use = RobiRank(among="catalogue", low=1e6)  # above all ratings, which do not count there
    assert of_no_use.as_trained(data) == of_no_use


def test_a_new_user_with_all_items_has_lists_without_unrated_ones(data):
    everything = Ratings(np.array([0, 12]), np.arange(12, dtype=np.int32), np.arange(12.0), 12)
    items, lists = SQLRank(unrated=2)._drawn(everything, 0)
    assert len(items) == 12 and lists.tolist() == [list(range(11, -1, -1))] * len(lists)


def test_lists_of_sqlrank_fall_with_the_ratings_and_have_unrated_items_behind(data):
    view = replace(data, values=np.round(data.values / 3))
    items, lists = SQLRank(unrated=2)._drawn(view, 3)
    values = view.values[view.indptr[3] : view.indptr[4]]
    n = len(values)
    assert (np.diff(values[lists[:, :n]], axis=1) <= 0).all() and (np.sort(lists[:, :n]) == np.arange(n)).all()
    assert lists.shape[1] == 3 * n and not np.isin(items[lists[:, n:]], items[:n]).any()
    assert len(np.unique(lists[:, :n], axis=0)) > 1  # ties are broken anew in each


def test_numbers_that_are_too_large_give_no_vector():
    vectors = np.array([[1e200, 0.0], [0.0, 1.0]])
    order = RMC().completion(Ratings(np.array([0, 2]), np.array([0, 1], np.int32), np.array([2.0, 1.0]), 2), 1)
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isnan(minimum(vectors, order.target.of_user(0))).all()


def test_scores_that_do_not_reach_the_bound_fold_nobody_in(data):
    solver = ConvexERM(lam=1e6, loss="squared-hinge")
    *_, step = islice(solver.steps(data.comparisons(), np.random.default_rng(0)), 60)
    with pytest.raises(UserError, match=r"do not reach the bound on their size.*; train with a smaller lam"):
        solver.fold_in(step.model, data)


def test_a_model_that_does_not_say_what_a_vector_costs_folds_nobody_in(data):
    for solver in (SMC(lam=2.0), RMC(lam=1.0), ConvexERM(lam=0.5)):
        older = replace(model_at(solver, data, 2), penalties=None)
        with pytest.raises(UserError, match="does not say what a user's vector costs, as older ones do not; fit it"):
            solver.fold_in(older, data)
    older = replace(model_at(LCR(rank=2), data, 2), anchors=None)
    with pytest.raises(UserError, match="does not say where its anchors are, as older ones do not; fit it again"):
        LCR(rank=2).fold_in(older, data)


def test_a_new_user_of_cofirank_with_one_rating_ties_all_items(data):
    solver, one = CofiRank(rank=3), Ratings(np.array([0, 1]), np.array([3], np.int32), np.array([4.0]), data.n_items)
    scores = solver.fold_in(model_at(solver, data, 2), one).score_all(np.arange(1))
    assert (scores[:, 1:] == 0).all()


def test_cofirank_refuses_gains_of_ratings_below_those_it_may_have_learned_from(data):
    solver, below = CofiRank(rank=3), replace(data, values=data.values - 7.0)
    with pytest.raises(UserError, match="the lowest rating of the training part, which is not known"):
        solver.fold_in(model_at(solver, below, 2), below)


@pytest.mark.parametrize(
    "solver",
    [
        AltSVM(loss="hinge"),
        AltSVM(loss="smooth-hinge"),
        SGD(loss="hinge"),
        BPR(loss="smooth-hinge"),
        FM(loss="smooth-hinge", features="none"),
    ],
    ids=repr,
)
def test_a_loss_with_little_curvature_folds_nobody_in(data, solver):
    said = r"second derivatives, and those of loss=(smooth-)?hinge are 0 .*; train with loss=squared-hinge$"
    with pytest.raises(UserError, match=said):
        rankbench.fit(solver, data, steps=2).fold_in(of_users(data, [3]))


@pytest.mark.parametrize("name", ["frsvm[rank=2,loss=logistic]", "sgd[rank=2]", "altsvm[rank=2]"])
def test_a_new_users_comparisons_give_what_their_ratings_do(name, data):
    model = rankbench.fit(name, data, steps=5)
    one = of_users(data, [3])
    scores = [model.fold_in(view).score_all(np.arange(1)) for view in (one, one.comparisons())]
    np.testing.assert_allclose(*scores, rtol=1e-9)
    with pytest.raises(UserError, match="learns from ratings, and these are comparisons"):
        rankbench.fit("mf[rank=2]", data, steps=2).fold_in(one.comparisons())
