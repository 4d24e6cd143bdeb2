"""Checks of the models that a solver makes: shapes, direction and speed of `score`, objective, gap, saving."""

import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter

import numpy as np

from rankbench import models
from rankbench.checks.findings import Finding, failed, not_applicable, passed
from rankbench.checks.material import STEPS, Subject, all_pairs, print_of, run, scores
from rankbench.core.amounts import amount
from rankbench.core.blas import one_blas_thread
from rankbench.core.contract import Floats, Ints, Model, Step
from rankbench.core.streams import stream

_MANY = 40  # steps after which a training is left
_PAIRS = 10_000  # scored to measure the speed
_ROUNDS = 8  # in which each is timed once
_SLOW = 0.8  # of the time of a Python loop: more is too slow
_ROUNDING = 1e-12  # of the largest score: a difference below it is a rounding error
_WRONG_WAY = 0.4  # the share of training pairs in the right order below which scores are taken for upside down


def steps_of(subject: Subject) -> Finding:
    """Whether `steps` is a generator of `Step`s with models that can score."""
    name, made = "steps", subject.solver.steps(subject.train, stream(0), 1)
    if not hasattr(made, "__next__"):
        problem = f"`steps` returns a {type(made).__name__}"
        return failed(name, problem, "make it a generator: `yield Step(model)` after every pass")
    for step in islice(made, STEPS):
        if not isinstance(step, Step):
            return failed(name, f"`steps` yields a {type(step).__name__}", "yield Step(model)")
        if not callable(getattr(step.model, "score", None)):
            problem = f"the model is a {type(step.model).__name__} without `score`"
            return failed(name, problem, "yield a model with score(users, items), such as rankbench.Factors")
    return passed(name, "a generator of steps with models")


def shapes(subject: Subject) -> Finding:
    """Whether a score depends on its pair alone, for many pairs, one and none, and ids of 32 and 64 bits."""
    name = "shapes"
    users, items = all_pairs(subject.train)
    chosen = np.random.default_rng(0).permutation(len(users))[:100]
    with one_blas_thread():
        for step in run(subject.solver, subject.train):
            whole = step.model.score(users, items)
            part = step.model.score(users[chosen].astype(np.int64), items[chosen].astype(np.int64))
            if not _alike(part, whole[chosen]):
                remedy = "let `score` look at users[i] and items[i] alone"
                return failed(name, "a pair's score depends on which other pairs are scored with it", remedy)
            if not _alike(step.model.score(users[chosen[:1]], items[chosen[:1]]), part[:1]):
                return failed(name, "a pair alone has another score", "let `score` look at users[i] and items[i] alone")
            if len(step.model.score(users[:0], items[:0])):
                return failed(name, "no pairs have scores", "return an empty array for empty `users` and `items`")
    return passed(name, "many pairs, one pair and none")


def direction(subject: Subject) -> Finding:
    """Whether higher scores mean better items, and not worse ones."""
    pairs = subject.ratings.comparisons()
    model = _last(subject, 20)
    ahead = model.score(pairs.users, pairs.better) - model.score(pairs.users, pairs.worse)
    share = float(np.mean((ahead > 0) + 0.5 * (ahead == 0)))
    seen = f"{share:.0%} of the training pairs are in the right order"
    if share < _WRONG_WAY:
        return failed("direction", seen, "a higher score means a better item: turn the sign around")
    return passed("direction", seen)


def ties(subject: Subject) -> Finding:
    """Whether items that nothing tells apart score the same, and do not differ by rounding errors alone.

    Nothing tells items apart for a user who rated all of them alike, or none; nor items without ratings. A model
    may still order them, by features or by what others like, but then their scores differ by more.
    """
    name, ratings = "ties", subject.ratings
    pairs = ratings.comparisons()
    unordered, unrated = np.ones(ratings.n_users, bool), np.ones(ratings.n_items, bool)
    unordered[pairs.users], unrated[ratings.items] = False, False
    with one_blas_thread():
        for step in run(subject.solver, subject.train):
            table = scores(step.model, subject.train).reshape(ratings.n_users, ratings.n_items)
            small = _ROUNDING * np.nanmax(np.abs(table), initial=0.0)
            if _nearly_equal(table[unordered], small):
                remedy = "set the vectors of users without an order to zero where their optimum is zero"
                return failed(name, "rounding errors order the items of a user who prefers none", remedy)
            if _nearly_equal(table[:, unrated], small):
                remedy = "set the vectors of unrated items to zero where their optimum is zero"
                return failed(name, "rounding errors order items without ratings", remedy)
    return passed(name, "no items are ordered by rounding errors")


def objective(subject: Subject) -> Finding:
    """Whether objective and gap, if there are any, are finite numbers, and the gap bounds the distance to the best."""
    name = "objective"
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):  # a training that diverges is found below
        found = [
            (step.objective() if step.objective else None, step.gap() if step.gap else None)
            for step in run(subject.solver, subject.train, _MANY)
        ]
    values = [value for value, _ in found if value is not None]
    gaps = [(value, gap) for value, gap in found if value is not None and gap is not None]
    if not values:
        return not_applicable(name, "no step has one")
    if not np.isfinite([*values, *(gap for _, gap in gaps)]).all():
        return failed(name, "it is not finite", "take a smaller step or a stronger penalty, or compute it in float64")
    rounding = 1e-10 * max(map(abs, values))
    if any(value - min(values) > gap + rounding for value, gap in gaps):
        problem = "a gap is smaller than the distance to the best objective"
        return failed(name, problem, "a gap is an upper bound on objective - optimum: return none if you have no bound")
    return passed(name, f"from {values[0]:.6g} to {values[-1]:.6g} in {amount(len(values), 'step')}")


def last_model(subject: Subject) -> Finding:
    """Whether the last model stays as it was when it was yielded, for a solver that ends by itself."""
    name, train = "last model", subject.train
    with one_blas_thread():
        steps = subject.solver.steps(train, stream(0))
        model, told = None, ""
        for step in islice(steps, _MANY):
            model, told = step.model, print_of(step.model, train)
        if model is None or next(steps, None) is not None:
            return not_applicable(name, f"it does not end within {_MANY} steps")
        if print_of(model, train) != told:
            return failed(
                name, "the last model changes after it was yielded", "yield a copy of what you go on to change"
            )
    return passed(name, "stays as it was when the training ended")


def saving(subject: Subject) -> Finding:
    """Whether models can be saved and score the same after they were loaded."""
    name = "saving"
    with one_blas_thread(), tempfile.TemporaryDirectory() as folder:
        for step in run(subject.solver, subject.train):
            if models.MODELS.get(type(step.model).__name__) is not type(step.model):
                known = ", ".join(models.MODELS)
                return not_applicable(name, f"a {type(step.model).__name__} cannot be saved, only {known}")
            path = Path(folder) / "model.npz"
            models.save(step.model, path)
            told = scores(step.model, subject.train)
            if scores(models.load(path), subject.train).tobytes() != told.tobytes():
                return failed(name, "a loaded model scores otherwise", "keep float64 arrays in the model")
    return passed(name, "a loaded model scores the same")


def speed_of_score(subject: Subject) -> Finding:
    """Whether `score` takes clearly less time than a Python loop over the pairs, measured in turns."""
    train = subject.train
    rng = np.random.default_rng(0)
    users, items = (rng.integers(size, size=_PAIRS).astype(np.int32) for size in (train.n_users, train.n_items))
    timed = (_last(subject, 2), _Loop(rng.random((train.n_users, 10)), rng.random((train.n_items, 10))))
    rounds = [[_seconds(one, users, items) for one in timed] for _ in range(_ROUNDS)]
    own, loop = map(min, zip(*rounds, strict=True))
    seen = f"{_PAIRS / own:,.0f} pairs a second, where a Python loop over factors of rank 10 has {_PAIRS / loop:,.0f}"
    if own > _SLOW * loop:
        return failed("speed of score", seen, "score arrays with NumPy or a kernel: no Python loop over pairs")
    return passed("speed of score", seen)


@dataclass(frozen=True)
class _Loop:
    """Factors that score by a Python loop over the pairs."""

    users: Floats
    items: Floats

    def score(self, users: Ints, items: Ints) -> Floats:
        """The inner product of each pair."""
        return np.array([self.users[user] @ self.items[item] for user, item in zip(users, items, strict=True)])


def _nearly_equal(table: Floats, small: float) -> bool:
    """Whether two scores of a row differ, but by less than this."""
    gaps = np.diff(np.sort(table, axis=1), axis=1)
    return bool(((gaps > 0) & (gaps < small)).any())


def _last(subject: Subject, steps: int) -> Model:
    """The model after some steps."""
    with one_blas_thread():
        for step in run(subject.solver, subject.train, steps):
            model = step.model
    return model


def _seconds(model: Model | _Loop, users: Ints, items: Ints) -> float:
    started = perf_counter()
    model.score(users, items)
    return perf_counter() - started


def _alike(one: Floats, other: Floats) -> bool:
    """Whether two vectors of scores are the same to rounding."""
    return np.shape(one) == np.shape(other) and bool(np.allclose(one, other, rtol=1e-12, atol=1e-14, equal_nan=True))
