"""Training and evaluating from Python: names, records, splits and classes work, or one line says what to pass."""

from dataclasses import replace

import numpy as np
import pytest

import rankbench
from rankbench.core.contract import Determinism, Needs, Step
from rankbench.core.errors import UserError
from rankbench.data.splits import cut
from rankbench.data.views import Comparisons, Ratings
from rankbench.execution import training
from rankbench.metrics import metric
from rankbench.models import ItemScores
from rankbench.solvers.sgd import SGD

VIEW = Ratings.from_triples(*np.divmod(np.arange(60), 10), np.tile([1.0, 5, 2, 4, 3], 12), 6, 10)
NAMED = rankbench.Ratings(
    VIEW.indptr, VIEW.items, VIEW.values, 10, user_ids=np.array(list("uvwxyz")), item_ids=np.arange(10) * 3
)
SPLIT = rankbench.split(NAMED, "per-user", test=0.4)


class Counting:
    """A solver that ends after nine steps, with objectives that fall."""

    learns_from = (Ratings, Comparisons)
    needs_features = False
    determinism = Determinism.EXACT
    version = 1

    def steps(self, train, rng, threads=1):
        """Models that say how many came before."""
        for index in range(9):
            yield Step(ItemScores(np.full(train.n_items, float(index))), lambda index=index: 10.0 - index)


def test_a_name_a_record_and_a_split_give_the_same_model():
    by_hand = training.fit(SGD(rank=2), SPLIT.train, steps=3, seed=4)
    for solver, part in (("sgd[rank=2]", SPLIT), (SGD(rank=2), SPLIT.train), ("sgd[rank=2]", SPLIT.train)):
        model = rankbench.fit(solver, part, steps=3, seed=4)
        assert model.model.users.tobytes() == by_hand.users.tobytes()
        assert model.user_ids.tolist() == list("uvwxyz")
        unseen = set(NAMED.item_ids) - set(NAMED.item_ids[SPLIT.train.items[: SPLIT.train.indptr[1]]])
        assert set(model.recommend("u", k=99)["item"]) == unseen


def test_a_model_knows_what_was_seen_where_it_learned_from_comparisons_that_were_drawn():
    split = rankbench.split(NAMED, "binary", C=5, test=0.3)
    for solver in ("sgd[rank=2]", "popularity"):  # one learns from the comparisons, one from the items seen
        model = rankbench.fit(solver, split, steps=1)
        assert model.seen.items.tolist() == split.seen.items.tolist()


def test_one_metric_gives_a_number_and_several_a_dictionary():
    model = rankbench.fit("sgd[rank=2]", SPLIT, steps=2)
    whole = rankbench.evaluate(model, SPLIT.test, ["ndcg@3", "pairwise-error"])
    assert list(whole) == ["ndcg@3", "pairwise-error"]
    assert rankbench.evaluate(model, SPLIT.test, "ndcg@3") == whole["ndcg@3"]
    assert rankbench.evaluate(model, SPLIT, metric("ndcg@3")) == whole["ndcg@3"]
    assert rankbench.evaluate(model.model, SPLIT.test, ("ndcg@3",)) == {"ndcg@3": whole["ndcg@3"]}


def test_a_split_has_the_training_part_that_some_metrics_need():
    model = rankbench.fit("sgd[rank=2]", SPLIT, steps=2)
    name = "ndcg@3[candidates=catalogue]"
    expected = rankbench.evaluate(model, SPLIT.test, name, train=SPLIT.train)
    assert rankbench.evaluate(model, SPLIT, name) == expected
    with pytest.raises(UserError, match=r"needs the training part: pass train=split\.train"):
        rankbench.evaluate(model, SPLIT.test, name)


def test_what_a_split_counts_as_seen_is_no_candidate():
    split = rankbench.split(NAMED, "binary", C=5, test=0.3)
    model, name = rankbench.fit("popularity", split), "recall@2[candidates=catalogue,relevant=any]"
    expected, other = (rankbench.evaluate(model, split.test, name, train=part) for part in (split.seen, split.train))
    assert rankbench.evaluate(model, split, name) == expected != other


def test_a_model_that_has_learned_of_more_items_is_evaluated_on_those_of_the_data():
    features = np.random.default_rng(0).standard_normal((len(NAMED.item_ids) + 2, 3))
    known, new = np.split(features, [len(NAMED.item_ids)])
    parts = rankbench.split(replace(NAMED, item_features=known), "per-user", test=0.3)
    model = rankbench.fit("frsvm[rank=2]", parts, steps=2)
    more = model.with_items(new, [100, 101])
    assert rankbench.evaluate(more, parts, "pairwise-error") == rankbench.evaluate(model, parts, "pairwise-error")


def test_a_callback_is_told_of_each_step_with_the_curve_and_can_end_the_training():
    seen = []
    rankbench.fit(Counting(), VIEW, callback=seen.append)
    assert [one.step for one in seen] == list(range(9))
    assert [point.objective for point in seen[-1].curve] == [10.0 - index for index in range(9)]
    assert [one.model.scores[0] for one in seen] == list(range(9))
    assert seen[3].objective == 7.0 and seen[3].seconds == seen[-1].curve[3].seconds
    model = rankbench.fit(Counting(), VIEW, callback=lambda progress: progress.objective <= 7)
    assert model.model.scores[0] == 3
    model = rankbench.fit(Counting(), VIEW, callback=lambda progress: "true, but not True")
    assert model.model.scores[0] == 8


def test_without_a_callback_the_first_and_the_last_objective_are_computed():
    class Silent(Counting):
        def steps(self, train, rng, threads=1):
            yield Step(ItemScores(np.zeros(train.n_items)), lambda: asked.append(1) or 0.0)

    asked = []
    rankbench.fit(Silent(), VIEW)
    assert asked == [1, 1]  # which tell whether the training diverged; here both are of the only model


def test_progress_shows_the_steps_on_standard_error(capsys):
    rankbench.fit(Counting(), VIEW, steps=5, progress=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Counting" in printed.err and "5/5" in printed.err and "objective 5" in printed.err


def test_rng_is_another_name_of_the_seed_and_may_be_a_generator():
    def users(**how):
        return rankbench.fit("sgd[rank=2]", VIEW, steps=1, **how).model.users.tobytes()

    assert users(rng=3) == users(seed=3) == users(rng=np.int64(3)) != users(seed=4)
    assert users(rng=None) == users() == users(seed=0)
    assert users(rng=np.random.default_rng(1)) == users(rng=np.random.default_rng(1)) != users(rng=1)
    generator = np.random.default_rng(1)
    assert users(rng=generator) != users(rng=generator)
    assert rankbench.split(VIEW, "per-user", rng=5).hash == rankbench.split(VIEW, "per-user", seed=5).hash
    one = rankbench.load("low-rank[users=9]", rng=7)
    assert one.values.tobytes() == rankbench.load("low-rank[users=9]", seed=7).values.tobytes()


def test_the_public_split_is_the_one_of_the_harness():
    from rankbench.data.splits import SPLITS

    named = SPLITS.resolve("per-user[test=0.4]")
    assert rankbench.split(NAMED, "per-user[test=0.4]", seed=2).hash == cut(NAMED, named, 2, 0).hash


class Needy(Counting):
    """A solver that lacks a package."""

    needs = Needs(("no_such_package",), "pip install needed")


MODEL = rankbench.fit("sgd[rank=2]", SPLIT, steps=1)
OTHER = rankbench.Ratings(VIEW.indptr, VIEW.items, VIEW.values, 10, user_ids=np.arange(6), item_ids=np.arange(10))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rankbench.fit(SGD, VIEW), "SGD is a class; pass a record of settings: SGD()"),
        (lambda: rankbench.fit(Needy(), VIEW), "Needy needs a package that is not installed; pip install needed"),
        (lambda: rankbench.fit("sdg", VIEW), "unknown solver 'sdg'; did you mean 'sgd'? (rankbench list solvers)"),
        (lambda: rankbench.fit("sgd[rnk=5]", VIEW), "unknown setting of sgd: 'rnk'; did you mean 'rank'?"),
        (lambda: rankbench.fit(5, VIEW),
         "a int is no solver: it has no learns_from; pass a name such as 'sgd[rank=5]', or a record such as"),
        (lambda: rankbench.fit("sgd", "ml-100k"),
         "train is 'ml-100k'; pass ratings or comparisons: rankbench.load('ml-100k')"),
        (lambda: rankbench.fit("sgd", [1, 2]), "train is a list; pass ratings or comparisons: rankbench.load(table)"),
        (lambda: rankbench.fit("mf", VIEW.comparisons()),
         "MF learns from ratings, the data holds comparisons; pass ratings, or take a solver that learns from"),
        (lambda: rankbench.fit("frsvm", VIEW), "FRSVM needs item features, the data has none; load data that has them"),
        (lambda: rankbench.fit("sgd", VIEW, seed=1, rng=2), "seed and rng say the same thing; give only one of them"),
        (lambda: rankbench.fit("sgd", VIEW, rng="x"),
         "rng='x' is not valid; give a whole number or a numpy.random.Generator"),
        (lambda: rankbench.fit("sgd", VIEW, seed=None), "seed=None is not valid; give a whole number"),
        (lambda: rankbench.fit("sgd", VIEW, seed=1.5), "seed=1.5 is not valid; give a whole number"),
        (lambda: rankbench.fit("sgd", VIEW, steps=-1), "Budget: steps=-1 is out of range: must be at least 0"),
        (lambda: rankbench.split("ml-100k", "per-user"),
         "data is 'ml-100k'; pass ratings or comparisons: rankbench.load('ml-100k')"),
        (lambda: rankbench.split(SPLIT, "per-user"), "data is a split; pass one of its parts: data=split.train"),
        (lambda: rankbench.split(VIEW, 5),
         'the protocol is a int; pass its name: split(data, "n-per-user", n=50)'),
        (lambda: rankbench.evaluate(SPLIT.test, MODEL, "ndcg@3"),
         'the second argument is a Fitted; pass a split or its held-out part: evaluate(model, split, "ndcg@10")'),
        (lambda: rankbench.evaluate("m.npz", SPLIT, "ndcg@3"),
         "the model is 'm.npz'; pass what rankbench.fit or rankbench.load returned"),
        (lambda: rankbench.fit("sgd", SPLIT, callback=5),
         "callback is a int; pass a function of a Progress: callback=print"),
        (lambda: rankbench.evaluate(MODEL, SPLIT, "ndgc@3"), "unknown metric 'ndgc'; did you mean 'ndcg'?"),
        (lambda: rankbench.evaluate(MODEL, SPLIT, [SGD]), "SGD is a class; pass a record: SGD()"),
        (lambda: rankbench.evaluate(MODEL, OTHER, "ndcg@3"),
         "the model and the held-out part have different users; evaluate on a split of the data that the model was"),
    ],
)  # fmt: skip
def test_wrong_use_is_answered_in_one_line_with_the_remedy(call, message):
    with pytest.raises(UserError) as error:
        call()
    assert str(error.value).startswith(message) and "\n" not in str(error.value)
