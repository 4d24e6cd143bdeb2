"""A model with the data's own ids recommends, ranks and scores by them, and comes back from a file with them."""

from dataclasses import dataclass

import numpy as np
import pandas
import pytest
import scipy.sparse
from models.test_models import EVERYBODY, EXAMPLES, FEATURES, OF_ITEMS, USERS, every_model

import rankbench
from rankbench.arrays.npz import fingerprint, read_npz, write_npz
from rankbench.core.errors import UserError
from rankbench.data.views import Ratings
from rankbench.fitted import Fitted, Seen, load, save
from rankbench.fitted.ids import Ids
from rankbench.models import FEATURES as FEATURE_FIELDS
from rankbench.models import Factors, ItemScores
from rankbench.solvers.mf import MF

IDS = np.array([10, 7, 12]), np.array(["a", "c", "b", "e", "d"])
SEEN = Seen(np.array([0, 2, 2, 3]), np.array([1, 4, 0], np.int32), 5)
UTILITIES = np.array([[5.0, 4, 3, 2, 1], [1, 1, 1, 1, 1], [1, np.nan, 7, 2, 7]])


class Table:
    """A model that has one score for each pair, and no `score_all`."""

    def score(self, users, items):
        """The score of each pair."""
        return UTILITIES[users, items]


MODEL = Fitted(Table(), *IDS, SEEN)


@every_model
@pytest.mark.parametrize("ids", [IDS, (IDS[0], None), (None, IDS[1])])
def test_published_ids_come_back_with_the_model(name, ids, tmp_path):
    save(Fitted(EXAMPLES[name], *ids), tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    for before, after in zip(ids, (again.user_ids, again.item_ids), strict=True):
        assert (before is None and after is None) or (before.dtype == after.dtype and before.tolist() == after.tolist())
    assert fingerprint(again.model) == fingerprint(EXAMPLES[name])
    assert again.score(USERS, OF_ITEMS).tobytes() == EXAMPLES[name].score(USERS, OF_ITEMS).tobytes()
    assert again.score_all(EVERYBODY).tobytes() == EXAMPLES[name].score_all(EVERYBODY).tobytes()
    named = (USERS if ids[0] is None else ids[0][USERS], OF_ITEMS if ids[1] is None else ids[1][OF_ITEMS])
    assert again.score_ids(*named).tobytes() == EXAMPLES[name].score(USERS, OF_ITEMS).tobytes()
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        assert not any(file[key].dtype == object for key in file.files)


def test_what_users_have_seen_comes_back_with_the_model(tmp_path):
    rankbench.save(Fitted(EXAMPLES["Factors"], *IDS, SEEN), tmp_path / "model.npz")
    again = rankbench.load(tmp_path / "model.npz")
    assert (again.seen.indptr.tolist(), again.seen.items.tolist(), again.seen.n_items) == ([0, 2, 2, 3], [1, 4, 0], 5)
    assert again.recommend(12, 9)["item"].tolist() == EXAMPLES_BEST[12]


SCORES = EXAMPLES["Factors"].score_all(EVERYBODY)
EXAMPLES_BEST = {12: [IDS[1][item] for item in np.argsort(-SCORES[2], kind="stable") if item != 0]}


def test_files_of_models_without_what_was_seen_stay_readable(tmp_path):
    """Files that older versions wrote have the arrays of the model, and ids if the data had them."""
    save(EXAMPLES["Factors"], tmp_path / "old.npz")
    write_npz(tmp_path / "old.npz", read_npz(tmp_path / "old.npz") | {"ids.users": IDS[0], "ids.items": IDS[1]})
    old = load(tmp_path / "old.npz")
    assert old.seen is None and old.recommend(7, 2, seen=True)["user"].tolist() == [7, 7]
    with pytest.raises(UserError, match="does not know what users have seen; pass seen=True"):
        old.recommend(7)


def test_the_best_items_that_a_user_has_not_seen_are_recommended():
    found = MODEL.recommend(10, k=2)
    assert found.columns.tolist() == ["user", "place", "item", "score"]
    assert found.to_numpy().tolist() == [[10, 1, "a", 5.0], [10, 2, "b", 3.0]]
    assert MODEL.recommend(10, k=2, seen=True)["item"].tolist() == ["a", "c"]


def test_items_of_equal_score_come_in_the_order_of_the_data_and_those_without_a_score_not_at_all():
    assert MODEL.recommend(12, k=9)["item"].tolist() == ["b", "d", "e"]
    assert MODEL.recommend(7, k=2)["item"].tolist() == ["a", "c"]


def test_all_users_are_asked_if_none_is_named_and_blocks_do_not_matter(monkeypatch):
    whole = MODEL.recommend(k=2)
    assert whole["user"].tolist() == [10, 10, 7, 7, 12, 12]
    monkeypatch.setattr("rankbench.fitted.model._BLOCK", 1)
    assert len(list(MODEL.recommend_in_blocks(k=2))) == 3
    pandas.testing.assert_frame_equal(MODEL.recommend(k=2), whole)


def test_only_some_items_can_be_recommended():
    assert MODEL.recommend([12, 10], k=2, items=["d", "e", "a"])["item"].tolist() == ["d", "e", "a", "e"]
    assert MODEL.recommend([], k=2).shape == (0, 4)


@pytest.mark.parametrize("k", [1, 3, 50, 200])
def test_recommendations_are_those_of_a_full_sort(k):
    rng = np.random.default_rng(5)
    users, items = np.divmod(np.flatnonzero(rng.random(40 * 60) < 0.1), 60)
    train = Ratings.from_triples(users, items, np.ones(len(users)), 40, 60)
    model = Factors(rng.integers(-2, 3, (40, 3)).astype(float), rng.integers(-2, 3, (60, 3)).astype(float))
    found = Fitted.of(model, train).recommend(k=k).groupby("user")["item"].apply(list)
    scores = model.score_all(np.arange(40))
    for user in range(40):
        own = set(items[users == user])
        expected = [item for item in sorted(range(60), key=lambda item: (-scores[user, item], item)) if item not in own]
        assert found[user] == expected[:k]


def test_ranking_has_all_items_that_were_asked_for_with_those_without_a_score_last():
    assert MODEL.rank(12)["item"].tolist() == ["b", "d", "e", "a", "c"]
    ranked = MODEL.rank(12, ["c", "d", "a"])
    assert ranked["item"].tolist() == ["d", "a", "c"] and ranked["place"].tolist() == [1, 2, 3]
    assert np.isnan(ranked["score"].iloc[2])


def test_many_items_of_equal_score_are_ranked_in_the_order_of_the_data():
    ranked = Fitted(ItemScores(np.arange(500) % 2.0)).rank(0, range(500))
    assert ranked["item"].tolist() == [*range(1, 500, 2), *range(0, 500, 2)]


def test_one_id_goes_with_several_in_scoring():
    assert MODEL.score_ids(10, ["a", "d"]).tolist() == [5.0, 1.0]
    assert MODEL.score_ids([10, 12], "a").tolist() == [5.0, 1.0]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("asked", [np.int64, np.uint64, object])
def test_large_ids_are_told_apart_in_every_type_of_integer(dtype, asked):
    ids = [2**62, 2**62 + 1, 2**62 + 2, 5]
    known = Ids("user", np.array(ids, dtype))
    assert known.numbers(np.array(ids, asked)).tolist() == [0, 1, 2, 3]
    with pytest.raises(UserError, match=f"user id {2**62 + 3} is unknown"):
        known.numbers(np.array([2**62 + 3], asked))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: MODEL.score_ids([11], ["a"]), "user id 11 is unknown; the 3 ids are like 10"),
        (lambda: MODEL.score_ids([10], ["f"]), "item id 'f' is unknown; the 5 ids are like 'a'"),
        (lambda: MODEL.score_ids([10], [3]), "item id 3 is unknown: the ids are like 'a'"),
        (lambda: MODEL.score_ids([10, 12], ["a", "b", "d"]), "ids do not go together (users: 2, items: 3)"),
        (lambda: MODEL.chances([10, 12], "a", ["a", "b", "d"]), "ids do not go together (users: 2, items: 1, others"),
        (lambda: MODEL.recommend("10"), "user id '10' is unknown: the ids are like 10"),
        (lambda: MODEL.recommend([True, False]), "user id True is unknown: the ids are like 10"),
        (lambda: MODEL.recommend([10, None]), "user id None is unknown: the ids are like 10"),
        (lambda: MODEL.recommend(2**70), "user id 1180591620717411303424 is unknown: the ids are like 10"),
        (lambda: MODEL.recommend([[10]]), "user ids have 2 dimensions; pass one id, or a list of ids"),
        (lambda: MODEL.recommend(10, k=0), "k=0 is not valid; give a whole number of at least 1"),
        (lambda: MODEL.recommend(10, k=2.5), "k=2.5 is not valid; give a whole number of at least 1"),
        (lambda: MODEL.recommend(10, threads=0), "threads=0 is not valid; give a whole number from 1 to 1024"),
        (lambda: MODEL.rank([10, 7]), "rank takes one user, not 2; call it once for each, or use recommend"),
        (lambda: MODEL.why([10, 7], "a"), "why takes one user, not 2; call it once for each"),
        (lambda: Fitted(Table(), seen=SEEN).recommend(3), "user id 3 is out of range: ids run from 0 to 2"),
        (lambda: Fitted(Table(), seen=SEEN).rank(0, [5]), "item id 5 is out of range: ids run from 0 to 4"),
        (lambda: Fitted(Table(), seen=SEEN).rank("x"), "user id x is unknown: the data has no ids but numbers from 0"),
        (lambda: Fitted(EXAMPLES["Factors"]).recommend(seen=True),
         "this model does not know its users; name users: model.recommend([0, 1, 2])"),
        (lambda: Fitted(Table(), np.array(["alice", "bob", "carol"]), seen=SEEN).recommend("alise"),
         "user id 'alise' is unknown; did you mean 'alice'?"),
        (lambda: MODEL.with_items(FEATURES),
         "a Table scores only items of its data, as it knows no features of items; fit a solver whose models keep"),
        (lambda: save(Table(), "m.npz"), "a Table cannot be saved; only models of rankbench can: ItemScores, "),
        (lambda: rankbench.save(MODEL, "model"), "model is no name of a model's file; end it in .npz: model.npz"),
        (lambda: rankbench.recommend(Table(), 10), "a Table knows no ids and nothing seen; pass what rankbench.fit or"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_said_in_one_line(ask, message):
    with pytest.raises(UserError) as error:
        ask()
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("users", "items", "message"),
    [(np.array([1, 1, 2]), IDS[1], "user ids are not distinct"),
     (np.array([1.5, 2, 3]), None, "user ids are float64[3]"),
     (IDS[0][:, None], None, "must be a vector"),
     (np.zeros(0, int), None, "user ids are int64[0]"),
     (np.arange(4), None, "user id 3 is out of range"), (None, np.arange(6), "item id 5 is out of range")],
)  # fmt: skip
def test_ids_that_do_not_fit_are_refused_on_loading(tmp_path, users, items, message):
    save(Fitted(EXAMPLES["Factors"], users, items), tmp_path / "model.npz")
    with pytest.raises(UserError) as error:
        load(tmp_path / "model.npz")
    assert "model.npz holds an invalid model" in str(error.value) and message in str(error.value)


@pytest.mark.parametrize(
    ("seen", "message"),
    [(Seen(np.array([0, 2, 2, 3]), np.array([1, 4, 5], np.int32), 5), "seen.items"),
     (Seen(np.array([0, 2, 1, 3]), np.array([1, 4, 0], np.int32), 5), "seen.indptr decreases"),
     (Seen(np.array([0, 3]), np.array([1, 4, 0], np.int32), 5), "there are 3 user ids for 1 users"),
     (Seen(np.array([0, 1, 2, 3]), np.array([1, 4, 0], np.int32), 6), "there are 5 item ids for 6 items")],
)  # fmt: skip
def test_what_was_seen_is_checked_on_loading(tmp_path, seen, message):
    save(Fitted(EXAMPLES["Factors"], *IDS, seen), tmp_path / "model.npz")
    with pytest.raises(UserError, match=message):
        load(tmp_path / "model.npz")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [("slope", np.array("steep"), "slope holds <U5: it must hold real numbers"),
     ("slope", np.array([1.0, 2.0]), "slope has the shape 2"),
     ("seen.n_items", np.array(4.5), "seen.n_items holds float64: it must hold integers"),
     ("seen.n_items", np.array([5, 5]), "seen.n_items has the shape 2"),
     ("seen.n_items", np.array(6), "item id 5 is out of range: ids run from 0 to 4"),
     ("seen.indptr", np.array(3), "seen.indptr has the shape of a number")],
)  # fmt: skip
def test_numbers_beside_a_model_are_checked_on_loading(tmp_path, name, value, message):
    save(Fitted(EXAMPLES["Factors"], seen=SEEN, slope=2.0), tmp_path / "model.npz")
    write_npz(tmp_path / "model.npz", read_npz(tmp_path / "model.npz") | {name: value})
    with pytest.raises(UserError) as error:
        load(tmp_path / "model.npz")
    assert "model.npz holds an invalid model" in str(error.value) and message in str(error.value)


NEW = np.array([[0.5, 0, -1, 2], [0, 0, 0, 0]])


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, pandas.DataFrame])
@pytest.mark.parametrize(
    "name", [name for name in EXAMPLES if name.split(",")[0] in FEATURE_FIELDS and "precomputed" not in name]
)
def test_new_items_are_scored_by_their_features(name, kind):
    """An item with the features of a known one has its scores, and known items keep theirs."""
    features = np.vstack([NEW, FEATURES[3]])
    model = Fitted(EXAMPLES[name], *IDS, SEEN).with_items(kind(features), ["x", "y", "z"])
    assert model.item_ids.tolist() == ["a", "c", "b", "e", "d", "x", "y", "z"] and model.n_items == 8
    before, after = EXAMPLES[name].score_all(EVERYBODY), model.score_all(EVERYBODY)
    np.testing.assert_allclose(after[:, [0, 1, 2, 3, 4, 7]], before[:, [0, 1, 2, 3, 4, 3]], atol=1e-12)
    assert set(model.recommend(7, 3, items=["x", "y", "z"])["item"]) == {"x", "y", "z"}
    pairs = model.score_ids(7, ["x", "y", "z"])
    np.testing.assert_allclose(pairs, after[1, 5:], atol=1e-12)


@pytest.mark.parametrize(
    ("features", "ids", "message"),
    [(NEW[:, :2], ["x", "y"], "the features have shape [2, 2]; give a row per new item with the 4 features"),
     (NEW, None, "the data's items have ids; pass item_ids, one for each row of the features"),
     (NEW, [1, 2], "item_ids are int64[2] for 2 new items; give one id like 'a' for each row of the features"),
     (NEW, ["x", "a"], "item ids are not distinct"),
     ([["tall"]], ["x"], "the features are no numbers; give a matrix of numbers, a row per new item"),
     (np.full((1, 4), np.nan), ["x"], "the features hold NaN or infinite values; fill or drop them first")],
)  # fmt: skip
def test_new_items_that_do_not_fit_are_refused(features, ids, message):
    with pytest.raises(UserError) as error:
        Fitted(EXAMPLES["UserWeights"], *IDS, SEEN).with_items(features, ids)
    assert message in str(error.value)


def test_without_ids_new_items_go_on_counting():
    model = Fitted(EXAMPLES["UserWeights"], seen=SEEN).with_items(NEW)
    assert model.rank(0)["item"].max() == 6 and 4 not in model.recommend(0, 9)["item"].tolist()
    with pytest.raises(UserError, match="the data's items have no ids; leave item_ids out"):
        Fitted(EXAMPLES["UserWeights"]).with_items(NEW, ["x", "y"])
    with pytest.raises(UserError, match="a KernelExpansion scores only items of its data"):
        Fitted(EXAMPLES["KernelExpansion, precomputed"]).with_items(NEW)


def test_a_file_or_a_model_can_be_asked_for_recommendations(tmp_path):
    model = Fitted(ItemScores(np.arange(5.0)), *IDS, SEEN)
    rankbench.save(model, tmp_path / "m.npz")
    expected = model.recommend(10, 2)
    assert expected["item"].tolist() == ["e", "b"]
    pandas.testing.assert_frame_equal(rankbench.recommend(tmp_path / "m.npz", 10, 2), expected)
    pandas.testing.assert_frame_equal(rankbench.recommend(model, 10, k=2), expected)
    with pytest.raises(UserError, match="cannot write"):
        rankbench.save(model, tmp_path / "nowhere" / "m.npz")


def test_ids_of_a_command_line_are_numbers_where_those_of_the_data_are():
    assert MODEL.users.of_texts(["10", "-7"]).tolist() == [10, -7]
    assert MODEL.items.of_texts(["a", "7"]).tolist() == ["a", "7"]
    for wrong in ("bob", "--5", "", "99999999999999999999"):
        with pytest.raises(UserError, match=f"user id '{wrong}' is unknown: the ids are whole numbers"):
            MODEL.users.of_texts(["10", "-123456789012345678", wrong])


def test_an_id_that_no_file_can_hold_is_refused_when_a_model_is_saved(tmp_path):
    model = Fitted(Factors(np.ones((2, 4)), np.ones((2, 4))), np.array(["a", "b\ud800"]), None, None)
    with pytest.raises(UserError, match=r"user id 'b.ud800' has a lone surrogate, which no file can hold"):
        save(model, tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


# users who were not trained on

TRAIN = Ratings.from_triples(
    np.repeat(np.arange(3), 4), [0, 1, 2, 3, 0, 1, 3, 4, 1, 2, 3, 4], [5.0, 3, 1, 2, 4, 2, 1, 5, 1, 4, 3, 2], 3, 5,
    user_ids=IDS[0], item_ids=IDS[1],
)  # fmt: skip
FOLDING = rankbench.fit("mf[rank=2,lam=0.5,biases=1,centre=none]", TRAIN, steps=6)


WITHOUT_IDS = rankbench.fit("ease", Ratings(TRAIN.indptr, TRAIN.items, TRAIN.values, 5))


def test_ratings_by_their_ids_are_folded_in():
    table = pandas.DataFrame({"user": ["zoe", "zoe", "yan"], "item": ["b", "a", "zzz"], "rating": [5.0, 1, 3]})
    found = FOLDING.fold_in(rankbench.load(table))
    rows = Ratings.from_triples([0, 0], [0, 2], [1.0, 5], 2, 5)
    expected = FOLDING.solver.fold_in(FOLDING.model, rows).score_all(np.arange(2))
    zoe = found.user_ids.tolist().index("zoe")
    assert sorted(found.user_ids.tolist()) == ["yan", "zoe"] and found.item_ids is FOLDING.item_ids
    assert found.score_all(np.array([zoe])).tobytes() == expected[:1].tobytes()
    assert sorted(found.recommend("zoe")["item"]) == ["c", "d", "e"]  # not what zoe rated
    with pytest.warns(UserWarning, match="1 of 1 users without a recommendation"):
        assert found.recommend("yan").empty  # the model knows no item that yan rated
    assert found.fold_in({"a": 1.0}).n_items == 5  # which goes on


def test_one_users_ratings_may_be_a_dictionary():
    found = FOLDING.fold_in({"b": 5, "a": 1.0})
    rows = Ratings.from_triples([0, 0], [0, 2], [1.0, 5], 1, 5)
    assert found.score_all([0]).tobytes() == FOLDING.solver.fold_in(FOLDING.model, rows).score_all([0]).tobytes()
    assert len(found.recommend()) == 3


def test_without_ids_the_numbers_are_the_ids():
    assert len(WITHOUT_IDS.fold_in({0: 5, 3: 1, 77: 2}).recommend()) == 3
    assert (
        len(WITHOUT_IDS.fold_in(Ratings(np.array([0, 2]), np.array([1, 6]), np.ones(2), 7)).recommend(seen=True)) == 5
    )


@pytest.mark.parametrize(
    ("model", "ratings", "message"),
    [
        (FOLDING, {}, "there is no rating; give at least one"),
        (FOLDING, {"a": "good"}, "a rating is no number; give numbers by the item's id"),
        (FOLDING, {"a": np.nan}, "rating 0 is nan: ratings must be finite"),
        (FOLDING, {"zzz": 5.0}, "the model knows no item of these ratings, such as 'zzz'"),
        (FOLDING, {3: 5.0}, "item id 3 is unknown: the ids are like 'a'"),
        (FOLDING, [5.0], "the ratings are a list; pass what rankbench.load returns, or a dictionary"),
        (FOLDING, Ratings(np.array([0, 1]), np.zeros(1, int), np.ones(1), 5), "have no ids of items; give ids like"),
        (WITHOUT_IDS, {"a": 5.0}, "item id 'a' is unknown"),
        (
            MODEL,
            {"a": 5.0},
            "the solver of this model is unknown, or fits no further users; fit a solver with fold_in, such as mf",
        ),
    ],
)
def test_ratings_that_cannot_be_folded_in_are_refused(model, ratings, message):
    with pytest.raises(UserError, match=message):
        model.fold_in(ratings)


@pytest.mark.parametrize("solver", ["popularity", "global[lam=1]"])
def test_a_model_that_scores_all_users_alike_scores_further_ones(solver, tmp_path):
    model = rankbench.fit(solver, TRAIN, steps=2)
    rankbench.save(model, tmp_path / "m.npz")
    for one in (model, rankbench.load(tmp_path / "m.npz")):
        further = one.fold_in({"b": 5, "a": 1.0})
        assert further.score_all([0]).tobytes() == model.score_all([0]).tobytes()
        assert sorted(further.recommend()["item"]) == ["c", "d", "e"]  # not what the user has rated


def test_a_saved_model_folds_in_as_before(tmp_path):
    rankbench.save(FOLDING, tmp_path / "m.npz")
    again = rankbench.load(tmp_path / "m.npz")
    assert again.solver == FOLDING.solver
    assert again.fold_in({"b": 5}).score_all([0]).tobytes() == FOLDING.fold_in({"b": 5}).score_all([0]).tobytes()
    rankbench.save(again.fold_in({"b": 5}), tmp_path / "zoe.npz")
    assert len(rankbench.load(tmp_path / "zoe.npz").recommend()) == 4


@pytest.mark.parametrize("solver", ["smc[share=0.1,centred=true]", "rmc[lam=1]", "robirank[rank=2]", "lcr[rank=2]"])
def test_what_a_solver_took_from_training_is_in_the_file_of_its_model(solver, tmp_path):
    model = rankbench.fit(solver, TRAIN, steps=5)
    rankbench.save(model, tmp_path / "m.npz")
    scores = [
        one.fold_in({"b": 5, "a": 1}).score_all([0]).tobytes() for one in (model, rankbench.load(tmp_path / "m.npz"))
    ]
    assert scores[0] == scores[1]


@dataclass(frozen=True)
class OwnSolver(MF):
    """A solver that no registry knows."""


def test_a_solver_of_ones_own_is_not_saved_with_its_model(tmp_path):
    model = rankbench.fit(OwnSolver(rank=2), TRAIN, steps=2)
    assert len(model.fold_in({"b": 5}).recommend()) == 4
    rankbench.save(model, tmp_path / "m.npz")
    assert rankbench.load(tmp_path / "m.npz").solver is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mine.py:Mine", "holds an invalid model: mine.py:Mine is no solver of rankbench"),
        ("svrank[C=3]", "holds an invalid model: svrank.C=3. fits no further users"),
        ("mf[rank=-3]", "holds an invalid model: mf: rank=-3 is out of range"),
    ],
)
def test_the_solver_in_a_file_is_not_believed(text, message, here):
    (here / "mine.py").write_text("raise SystemExit('this code must not run')\n")
    rankbench.save(FOLDING, "m.npz")
    write_npz(here / "m.npz", read_npz(here / "m.npz") | {"solver": np.array(text)})
    with pytest.raises(UserError, match=message):
        load("m.npz")
