"""A solver that keeps all rules, and for each check at least one that breaks it."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankbench import Comparisons, Determinism, ItemScores, Ratings, Step
from rankbench.names import check

KEPT: list[Any] = []  # what a broken solver keeps between its trainings


@dataclass(frozen=True)
class Good:
    """The mean rating of each item, drawn to 0."""

    lam: float = 1.0
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1

    def __post_init__(self):
        check(self)

    def steps(self, train, rng, threads=1):
        yield Step(ItemScores(self.means(train)))

    def means(self, train):
        return np.bincount(train.items, train.values, train.n_items) / (
            np.bincount(train.items, minlength=train.n_items) + self.lam
        )


@dataclass(frozen=True)
class Case:
    """A broken solver, the check that it fails, and what the finding must say."""

    solver: type
    check: str
    seen: str
    remedy: str


CASES: dict[str, Case] = {}


def breaks(name: str, seen: str, remedy: str) -> Callable[[type], type]:
    """Note that a solver fails this check."""

    def note(solver: type) -> type:
        CASES[solver.__name__] = Case(solver, name, seen, remedy)
        return solver

    return note


class Scores:
    """A model with a function of users and items as its scores."""

    def __init__(self, score):
        self.score = score


class NeedsFeatures(Good):
    """A solver that needs item features, and whose model is of a class of its own."""

    needs_features: ClassVar = True

    def steps(self, train, rng, threads=1):
        scores = train.item_features @ (train.item_features.T @ self.means(train))
        yield Step(Scores(lambda users, items: scores[items]))


@breaks("declarations", "version is '1'", "declare version: ClassVar = 1")
class TextAsVersion(Good):
    version: ClassVar = "1"


@breaks("declarations", "determinism is 'exact'", "declare Determinism.EXACT")
class TextAsDeterminism(Good):
    determinism: ClassVar = "exact"


@breaks("declarations", "learns_from is <class 'dict'>", "declare Ratings, Comparisons or both")
class LearnsFromOthers(Good):
    learns_from: ClassVar = dict


@breaks("declarations", "needs_features is 0", "declare True or False")
class NumberForFeatures(Good):
    needs_features: ClassVar = 0


@breaks("declarations", "the class can be changed", "put @dataclass(frozen=True) above it")
@dataclass
class NotFrozen:
    learns_from: ClassVar = Ratings
    needs_features: ClassVar = False
    determinism: ClassVar = Determinism.EXACT
    version: ClassVar = 1


@breaks("steps", "`steps` returns a list", "make it a generator")
class ReturnsAList(Good):
    def steps(self, train, rng, threads=1):
        return []


@breaks("steps", "`steps` yields a ItemScores", "yield Step(model)")
class YieldsAModel(Good):
    def steps(self, train, rng, threads=1):
        yield ItemScores(self.means(train))


@breaks("steps", "the model is a int without `score`", "yield a model with score(users, items)")
class ModelWithoutScore(Good):
    def steps(self, train, rng, threads=1):
        yield Step(3)


@breaks("trains", "`steps` yields nothing", "at least once")
class YieldsNothing(Good):
    def steps(self, train, rng, threads=1):
        yield from ()


@breaks("trains", "pairs with training data have the score NaN", "only where the user or the item has no training data")
class ScoresNaN(Good):
    def steps(self, train, rng, threads=1):
        yield Step(ItemScores(self.means(train) * np.nan))


@breaks("trains", "some scores are infinite", "take a smaller step")
class ScoresInfinity(Good):
    def steps(self, train, rng, threads=1):
        yield Step(ItemScores(self.means(train) + np.inf))


@breaks("trains", "`score` returns float64[1]", "one score for each pair")
class OneScore(Good):
    def steps(self, train, rng, threads=1):
        yield Step(Scores(lambda users, items: np.ones(1)))


@breaks("trains", "`score` returns int32", "return a float64 array")
class WholeNumbers(Good):
    def steps(self, train, rng, threads=1):
        yield Step(Scores(lambda users, items: items))


@breaks("trains", "`score` returns a list", "return a float64 array")
class ListOfScores(Good):
    def steps(self, train, rng, threads=1):
        yield Step(Scores(lambda users, items: [0.0] * len(users)))


@breaks("pickling", "cannot be pickled: TypeError: a lambda", "keep numbers and texts as settings")
class NotPickled(Good):
    def __reduce__(self):
        raise TypeError("a lambda")


@breaks("pickling", "is another one after pickling", "let equal settings make equal records")
class NeverEqual(Good):
    def __eq__(self, other):
        return False

    __hash__ = None


@breaks("settings", "a training changes lam of the solver", "local variables of `steps`")
class ChangesItself(Good):
    def steps(self, train, rng, threads=1):
        object.__setattr__(self, "lam", self.lam + 1)
        yield from super().steps(train, rng)


@breaks("wrong settings", "lam='no number' is accepted", "rankbench.names.check(self)")
class ChecksNothing(Good):
    def __post_init__(self):
        pass


@breaks("wrong settings", "lam='no number' raises TypeError", "rankbench.names.check(self)")
class RaisesAnotherError(Good):
    def __post_init__(self):
        self.lam + 1


@breaks("kinds of data", "AttributeError: 'Comparisons' object has no attribute", "mend the line")
class OnlyOneOfItsKinds(Good):
    learns_from: ClassVar = (Ratings, Comparisons)


@breaks("kinds of data", "on Comparisons: at step 0", "only where the user")
class ForgetsOneOfItsKinds(Good):
    learns_from: ClassVar = (Ratings, Comparisons)

    def steps(self, train, rng, threads=1):
        scores = np.zeros(train.n_items) if isinstance(train, Ratings) else np.full(train.n_items, np.nan)
        yield Step(ItemScores(scores))


@breaks("features", "features change the model", "declare needs_features = True")
class KeepsCount(Good):
    def steps(self, train, rng, threads=1):
        KEPT.append(1)
        yield Step(ItemScores(np.arange(train.n_items) * float(len(KEPT))))


@breaks("edges", "IndexError: index 0 is out of bounds", "mend the line")
class NeedsARow(Good):
    def steps(self, train, rng, threads=1):
        train.values[0]
        yield from super().steps(train, rng)


@breaks(
    "edges", "on one user data: at step 0 2 of 6 pairs with training data have the score NaN", "only where the user"
)
class ForgetsItems(Good):
    def steps(self, train, rng, threads=1):
        means = self.means(train)
        means[:2] = np.nan if train.n_users == 1 else 0
        yield Step(ItemScores(means))


@breaks("edges", "on one user data a training does not repeat itself", "draw every random number from `rng`")
class DrawsElsewhereAtEdges(Good):
    def steps(self, train, rng, threads=1):
        noise = np.random.default_rng().random(train.n_items) if train.n_users == 1 else 0
        yield Step(ItemScores(self.means(train) + noise))


@breaks("writing", "ValueError: assignment destination is read-only", "train.values.copy()")
class WritesToItsInput(Good):
    def steps(self, train, rng, threads=1):
        train.values[0] = 3
        yield from super().steps(train, rng)


@breaks("writing", "ValueError: cannot set WRITEABLE flag", "train.values.copy()")
class UnlocksItsInput(Good):
    def steps(self, train, rng, threads=1):
        train.values.setflags(write=True)
        yield from super().steps(train, rng)


@breaks("writing", "a training changes its training data", "copy what you change")
class PutsAnotherArray(Good):
    def steps(self, train, rng, threads=1):
        object.__setattr__(train, "values", train.values + 1)
        yield from super().steps(train, rng)


@breaks("writing", "a training unlocks values of its training data", "copy what you change")
class PutsAnOpenCopy(Good):
    def steps(self, train, rng, threads=1):
        object.__setattr__(train, "values", train.values.copy())
        yield from super().steps(train, rng)


@breaks("same seed", "the same seed gives another model at step 0", "draw every random number from `rng`")
class DrawsElsewhere(Good):
    def steps(self, train, rng, threads=1):
        yield Step(ItemScores(np.random.default_rng().random(train.n_items)))


@breaks("threads", "with 2 threads step 0 is another model than with one", "declare Determinism.FIXED_THREADS")
class DependsOnThreads(Good):
    def steps(self, train, rng, threads=1):
        yield Step(ItemScores(np.full(train.n_items, float(threads))))


@breaks("threads", "with 1 threads step 0 is another model than before", "declare Determinism.RACY")
class NeverRepeats(DrawsElsewhere):
    determinism: ClassVar = Determinism.FIXED_THREADS


@breaks("looking", "asking for objective and gap changes step 1", "draw nothing from `rng`")
class DrawsWhenAsked(Good):
    def steps(self, train, rng, threads=1):
        for _ in range(3):
            yield Step(ItemScores(rng.random(train.n_items)), rng.random)


@breaks("side by side", "two trainings in turns give other models than each alone", "nothing in globals")
class KeepsAGlobal(Good):
    def steps(self, train, rng, threads=1):
        KEPT[:] = [0]
        for _ in range(3):
            KEPT[0] += 1
            yield Step(ItemScores(np.full(train.n_items, float(KEPT[0]))))


@breaks("shapes", "a pair's score depends on which other pairs", "users[i] and items[i] alone")
class ScoresRanks(Good):
    def steps(self, train, rng, threads=1):
        yield Step(Scores(lambda users, items: np.argsort(np.argsort(items, kind="stable")) * 1.0))


@breaks("shapes", "a pair alone has another score", "users[i] and items[i] alone")
class SquashesOne(Good):
    def steps(self, train, rng, threads=1):
        yield Step(Scores(lambda users, items: items.astype(float) if len(items) > 1 else np.array(-1.0)))


@breaks("shapes", "no pairs have scores", "return an empty array")
class NeverEmpty(Good):
    def steps(self, train, rng, threads=1):
        yield Step(Scores(lambda users, items: np.zeros(max(1, len(users)))))


@breaks("direction", "% of the training pairs are in the right order", "turn the sign around")
class UpsideDown(Good):
    def steps(self, train, rng, threads=1):
        yield Step(ItemScores(-self.means(train)))


@breaks("ties", "order the items of a user who prefers none", "where their optimum is zero")
class OrdersByRounding(Good):
    def steps(self, train, rng, threads=1):
        means, ordered = self.means(train), np.diff(train.comparisons().indptr) > 0
        yield Step(Scores(lambda users, items: np.where(ordered[users], means[items], 1e-16 * items)))


@breaks("ties", "order items without ratings", "where their optimum is zero")
class OrdersUnratedByRounding(Good):
    def steps(self, train, rng, threads=1):
        means, ordered = self.means(train), np.diff(train.comparisons().indptr) > 0
        yield Step(Scores(lambda users, items: np.where(ordered[users], means[items] + 1e-15 * items, 0.0)))


@breaks("objective", "it is not finite", "compute it in float64")
class InfiniteObjective(Good):
    def steps(self, train, rng, threads=1):
        yield Step(ItemScores(self.means(train)), lambda: float("inf"))


@breaks("objective", "a gap is smaller than the distance to the best objective", "an upper bound")
class LyingGap(Good):
    def steps(self, train, rng, threads=1):
        for value in (9.0, 1.0):
            yield Step(ItemScores(self.means(train)), lambda value=value: value, lambda: 0.5)


@breaks("last model", "the last model changes after it was yielded", "yield a copy")
class GoesOnAfterTheEnd(Good):
    def steps(self, train, rng, threads=1):
        means = self.means(train)
        yield Step(ItemScores(means))
        means[:] = 7


@breaks("saving", "ValueError: Object arrays cannot be saved", "mend the line")
class ObjectsAsScores(Good):
    def steps(self, train, rng, threads=1):
        yield Step(ItemScores(self.means(train).astype(object)))


@breaks("saving", "a loaded model scores otherwise", "keep float64 arrays in the model")
class ShadowsItsScores(Good):
    def steps(self, train, rng, threads=1):
        model = ItemScores(self.means(train))
        object.__setattr__(model, "score", lambda users, items: items * 1.0)
        yield Step(model)


@breaks("speed of score", "where a Python loop over factors of rank 10 has", "no Python loop over pairs")
class SlowScores(Good):
    def steps(self, train, rng, threads=1):
        yield Step(Scores(lambda users, items: np.array([sum(range(1500)) * 0.0 for _ in users])))


@breaks("imports", "a training imports wsgiref, which counts as training time", "import at the top of the file")
class ImportsLate(Good):
    def steps(self, train, rng, threads=1):
        for name in [name for name in sys.modules if name.startswith("wsgiref")]:
            del sys.modules[name]
        import wsgiref  # noqa: F401

        yield from super().steps(train, rng)


@breaks("budgets", "1 threads stay behind", "in a `finally`")
class LeavesAThread(Good):
    def steps(self, train, rng, threads=1):
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
        yield from super().steps(train, rng)


@breaks("budgets", "1 processes stay behind", "in a `finally`")
class LeavesAProcess(Good):
    def steps(self, train, rng, threads=1):
        KEPT.append(subprocess.Popen(["sleep", "5"]))
        yield from super().steps(train, rng)


@breaks("budgets", "a training that is left after a step goes on", "do not catch GeneratorExit")
class DoesNotLetGo(Good):
    def steps(self, train, rng, threads=1):
        left = False
        while not left:
            try:
                yield Step(ItemScores(self.means(train)))
            except GeneratorExit:
                left = True
                yield Step(ItemScores(self.means(train)))


@breaks("silence", "a training prints 'epoch 1 of 9'", "print nothing")
class Prints(Good):
    def steps(self, train, rng, threads=1):
        os.write(1, b"epoch 1 of 9\n")
        yield from super().steps(train, rng)
