"""Tests of the protocol in `rankbench.contract`, which the test class of every solver inherits."""

import json
import pickle
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, fields, replace
from itertools import islice, zip_longest
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from solvers.promises import DESCENDS, ENDS, GAP, LEARNS, PROMISES, Promise

from rankbench import models
from rankbench.arrays import fingerprint
from rankbench.contract import DECLARATIONS, Determinism, Floats, Ints, Model, Solver, Step
from rankbench.data.views import Comparisons, Ratings, View, offer
from rankbench.distributed.in_process import InProcess
from rankbench.errors import UserError
from rankbench.harness.threads import single_threaded_blas
from rankbench.names import Limits, build, changed_settings, settings_of, show
from rankbench.solvers import SOLVERS
from rankbench.streams import stream

STEPS = 5
MANY = 40  # steps after which a solver that ends by itself has ended
USERS, ITEMS, FEATURES = 72, 150, 5


class SolverContract:
    """What every solver promises; a subclass names its `solver`, and `promises.py` has what else that one promises."""

    solver: ClassVar[Any]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each value that a setting must refuse."""
        if "refused" in metafunc.fixturenames:
            cases = list(refused_values(type(metafunc.cls.solver)))
            metafunc.parametrize("refused", cases, ids=[f"{name}={value}" for name, value in cases])

    @property
    def promises(self) -> Promise:
        """What this solver promises beyond the contract."""
        return PROMISES[type(self).__name__]

    @pytest.fixture
    def train(self) -> View:
        """What the harness would hand over."""
        return offer(self.solver, ratings())

    @pytest.fixture
    def name(self) -> str:
        """What the command line calls the solver."""
        cls = type(self.solver)
        return next(name for name, home in SOLVERS.entries.items() if home == f"{cls.__module__}:{cls.__name__}")

    # the same again

    def test_the_same_seed_twice_gives_the_same_bytes(self, train):
        assert course(self.solver, train) == course(self.solver, train)

    def test_threads_change_no_more_than_declared(self, train):
        for threads in (1, 2, 3, 8):
            if self.solver.determinism is Determinism.EXACT:
                assert course(self.solver, train, threads) == course(self.solver, train, 1)
            elif self.solver.determinism is Determinism.FIXED_THREADS:
                assert course(self.solver, train, threads) == course(self.solver, train, threads)
            else:
                assert_scores_what_it_must(self.solver, train, threads)

    def test_looking_at_a_step_changes_nothing(self, train):
        assert course(self.solver, train) == course(self.solver, train, look=True)

    def test_two_runs_side_by_side_do_not_meet(self, train):
        with single_threaded_blas():
            runs = [islice(self.solver.steps(train, stream(seed)), STEPS) for seed in (0, 1)]
            prints = [[print_of(step.model, train) for step in pair if step] for pair in zip_longest(*runs)]
        assert [pair[0] for pair in prints] == course(self.solver, train, seed=0)
        assert [pair[-1] for pair in prints] == course(self.solver, train, seed=1)

    def test_a_run_leaves_the_settings_as_they_were(self, train):
        before = dict(vars(self.solver))
        course(self.solver, train)
        assert vars(self.solver) == before

    # what it is given

    def test_features_are_withheld_unless_declared(self):
        bare = replace(ratings(), item_features=None)
        if self.solver.needs_features:
            with pytest.raises(UserError, match="features"):
                offer(self.solver, bare)
        else:
            offered = offer(self.solver, ratings())
            assert offered.item_features is None
            assert course(self.solver, offered) == course(self.solver, offer(self.solver, bare))

    def test_only_declared_kinds_of_data_are_offered(self):
        assert isinstance(offer(self.solver, ratings()), accepted(self.solver))
        if Comparisons in accepted(self.solver):
            assert isinstance(offer(self.solver, ratings().comparisons()), Comparisons)
        else:
            with pytest.raises(UserError, match="comparisons"):
                offer(self.solver, ratings().comparisons())

    def test_its_steps_are_annotated_with_the_kinds_of_data_it_declares(self):
        hint = get_type_hints(type(self.solver).steps)["train"]
        assert set(get_args(hint) or (hint,)) == set(accepted(self.solver))

    def test_it_works_with_each_kind_of_data_it_declares(self):
        for kind in accepted(self.solver):
            view = ratings() if kind is Ratings else ratings().comparisons()
            assert_scores_what_it_must(self.solver, offer(self.solver, view))

    def test_the_training_view_is_not_written_to(self, train):
        before = fingerprint(train)
        course(self.solver, train)
        assert fingerprint(train) == before
        assert not any(array.flags.writeable for array in vars(train).values() if isinstance(array, np.ndarray))

    # what it makes of it

    def test_every_step_scores_users_and_items_with_training_data(self, train):
        assert_scores_what_it_must(self.solver, train)

    @pytest.mark.parametrize("edge", ["empty", "one-user", "one-item", "one-comparison", "all-tied"])
    def test_it_works_at_the_edge(self, edge):
        view = offer(self.solver, EDGES[edge]())
        assert_scores_what_it_must(self.solver, view)
        assert_scores_what_it_must(self.solver, view, threads=3)
        assert course(self.solver, view) == course(self.solver, view, look=True)

    def test_a_score_depends_on_its_pair_alone(self, train):
        users, items = all_pairs(train)
        shuffled = np.random.default_rng(0).permutation(len(users))[:100]
        for step in run(self.solver, train):
            whole = step.model.score(users, items)
            part = step.model.score(users[shuffled].astype(np.int64), items[shuffled].astype(np.int64))
            one = step.model.score(users[shuffled[:1]], items[shuffled[:1]])
            np.testing.assert_allclose(part, whole[shuffled], rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(one, part[:1], rtol=1e-12, atol=1e-14)
            assert len(step.model.score(users[:0], items[:0])) == 0

    def test_it_orders_what_it_was_trained_on_better_than_chance(self, train):
        if LEARNS not in self.promises:
            pytest.skip("promises.py has no promise that it learns")
        pairs = ratings().comparisons()
        with single_threaded_blas():
            for step in run(self.solver, train, steps=20):
                model = step.model
            ahead = model.score(pairs.users, pairs.better) - model.score(pairs.users, pairs.worse)
        assert np.mean(ahead > 0) > 0.6

    def test_the_objective_never_rises_where_that_is_promised(self, train):
        if DESCENDS not in self.promises:
            pytest.skip("promises.py has no promise that its objective never rises")
        objectives = np.array([step.objective() for step in run(self.solver, train, MANY)])
        assert len(objectives) > 1
        assert (np.diff(objectives) <= 1e-12 * np.abs(objectives[:-1])).all()

    def test_the_gap_bounds_the_distance_to_the_best_objective(self, train):
        steps = list(run(self.solver, train, MANY))
        assert [step.gap is not None for step in steps] == [GAP in self.promises] * len(steps)
        if GAP in self.promises:
            objectives, gaps = np.array([(step.objective(), step.gap()) for step in steps]).T
            rounding = 1e-10 * np.abs(objectives)
            assert (gaps >= -rounding).all()
            assert (objectives - objectives.min() <= gaps + rounding).all()

    def test_it_ends_where_that_is_promised_and_its_last_model_stays(self, train):
        with single_threaded_blas():
            steps = self.solver.steps(train, stream(0))
            prints = [(step.model, print_of(step.model, train)) for step in islice(steps, MANY)]
            assert (next(steps, None) is None) == (ENDS in self.promises)
            model, print_when_it_came = prints[-1]
            if ENDS in self.promises:
                assert print_of(model, train) == print_when_it_came

    def test_a_model_survives_being_saved(self, train, tmp_path):
        for step in run(self.solver, train):
            models.save(step.model, tmp_path / "model.npz")
            loaded = models.load(tmp_path / "model.npz")
            assert scores(loaded, train).tobytes() == scores(step.model, train).tobytes()

    def test_it_is_silent(self, train, capfd):
        course(self.solver, train, look=True)
        assert capfd.readouterr() == ("", "")

    # what it is called

    def test_it_is_built_by_name(self, name):
        solver = SOLVERS.make(name)
        assert type(solver) is type(self.solver)
        assert all(hasattr(solver, declaration) for declaration in DECLARATIONS)

    def test_its_settings_survive_the_command_line(self, name):
        assert SOLVERS.make(show(name, settings_of(self.solver))) == self.solver
        assert SOLVERS.make(show(name, changed_settings(self.solver))) == self.solver

    def test_its_settings_survive_a_toml_file(self, name):
        settings = {key: value for key, value in settings_of(self.solver).items() if value is not None}
        toml = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
        assert build(type(self.solver), tomllib.loads(toml), name) == self.solver

    def test_it_survives_being_pickled(self):
        assert pickle.loads(pickle.dumps(self.solver)) == self.solver

    def test_it_is_frozen(self):
        for name in settings_of(self.solver):
            with pytest.raises(FrozenInstanceError):
                setattr(self.solver, name, None)

    def test_a_bad_setting_is_named(self, name, refused):
        setting, value = refused
        with pytest.raises(UserError, match=f"{type(self.solver).__name__}: (unknown value of )?{setting}"):
            replace(self.solver, **{setting: value})
        with pytest.raises(UserError, match=f"{name}: (unknown value of )?{setting}"):
            SOLVERS.make(f"{name}[{setting}={value}]")

    def test_an_unknown_setting_is_named(self, name):
        with pytest.raises(UserError, match="no_such_setting"):
            SOLVERS.make(f"{name}[no_such_setting=1]")


class InParts:
    """What a solver with its users in two parts promises beside; put before `SolverContract`."""

    @pytest.mark.parametrize("edge", ["empty", "one-comparison", "all-tied"])
    def test_it_works_at_the_edge(self, edge):
        SolverContract.test_it_works_at_the_edge(self, edge)

    def test_one_user_cannot_be_cut_in_two(self):
        with pytest.raises(UserError, match="partitions=2 is above the number of users, 1"):
            list(run(self.solver, offer(self.solver, EDGES["one-user"]())))

    def test_on_an_executor_the_models_score_alike_and_have_the_same_hash(self, train):
        with single_threaded_blas():
            plain = [(fingerprint(s.model), s.objective(), scores(s.model, train)) for s in run(self.solver, train)]
            steps = islice(self.solver.steps_on(InProcess(), train, stream(0)), STEPS)
            for step, (digest, objective, expected) in zip(steps, plain, strict=True):
                model = step.model
                assert (model.digest(), step.objective()) == (digest, objective)
                assert scores(model, train).tobytes() == expected.tobytes()
                whole = model.score_all(np.arange(train.n_users)).ravel()
                np.testing.assert_allclose(whole, expected, rtol=1e-12, atol=1e-14)

    def test_a_scattered_model_is_gathered_to_be_saved(self, train, tmp_path):
        with single_threaded_blas():
            step = next(self.solver.steps_on(InProcess(), train, stream(0)))
            models.save(step.model, tmp_path / "model.npz")
            assert fingerprint(models.load(tmp_path / "model.npz")) == step.model.digest()

    def test_a_user_or_item_that_is_not_there_is_named(self, train):
        with single_threaded_blas():
            model = next(self.solver.steps_on(InProcess(), train, stream(0))).model
            for users, items in (([train.n_users], [0]), ([0], [train.n_items]), ([-1], [0])):
                with pytest.raises(UserError, match="is out of range: ids run from 0 to"):
                    model.score(np.array(users), np.array(items))
            assert len(model.score(np.array([], np.int32), np.array([], np.int32))) == 0


def run(solver: Solver, train: View, steps: int = STEPS, threads: int = 1, seed: int = 0) -> Iterator[Step]:
    """The first steps."""
    return islice(solver.steps(train, stream(seed), threads), steps)


def course(solver: Solver, train: View, threads: int = 1, seed: int = 0, look: bool = False) -> list[str]:
    """A fingerprint of everything that a model holds and says, after each of the first steps."""
    prints = []
    with single_threaded_blas():
        for step in run(solver, train, STEPS, threads, seed):
            prints.append(print_of(step.model, train))
            if look:
                assert all(np.isfinite(ask()) for ask in (step.objective, step.gap) if ask)
    assert prints, "a solver yields at least one step"
    return prints


def print_of(model: Model, view: View) -> str:
    """A fingerprint of a model's arrays and of its scores of all pairs."""
    return fingerprint(model, models.ItemScores(scores(model, view)))


def scores(model: Model, view: View) -> Floats:
    """The scores of all pairs of users and items."""
    return model.score(*all_pairs(view))


def all_pairs(view: View) -> tuple[Ints, Ints]:
    """Every user with every item."""
    users, items = np.indices((view.n_users, view.n_items), np.int32)
    return users.ravel(), items.ravel()


def assert_scores_what_it_must(solver: Solver, train: View, threads: int = 1) -> None:
    """At each step a number where user and item are in some comparison, elsewhere a number or NaN."""
    pairs = train if isinstance(train, Comparisons) else train.comparisons()
    known_user, known_item = np.zeros(train.n_users, bool), np.zeros(train.n_items, bool)
    known_user[pairs.users] = known_item[pairs.better] = known_item[pairs.worse] = True
    with single_threaded_blas():
        shown = [scores(step.model, train) for step in run(solver, train, STEPS, threads)]
    assert shown, "a solver yields at least one step"
    for table in shown:
        assert (table.dtype, table.shape) == (np.float64, (train.n_users * train.n_items,))
        assert not np.isinf(table).any()
        assert np.isfinite(table[np.outer(known_user, known_item).ravel()]).all()


def accepted(solver: Solver) -> tuple[type, ...]:
    """The kinds of data that the solver declares."""
    return solver.learns_from if isinstance(solver.learns_from, tuple) else (solver.learns_from,)


def refused_values(cls: type) -> Iterator[tuple[str, Any]]:
    """For each setting, the values next to its range and of the wrong type."""
    hints = get_type_hints(cls, include_extras=True)
    for field in fields(cls):
        hint = _without_none(hints[field.name])
        plain, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        not_finite = [float(text) for text in ("nan", "inf", "-inf")]
        values = {int: ["many", 1.5], float: ["much", *not_finite], bool: ["perhaps"]}.get(plain, [])
        if get_origin(plain) is Literal:
            values = ["no-such-value"]
        for limits in (note for note in notes if isinstance(note, Limits)):
            outside = (_below(limits.low), limits.above, _above(limits.high), limits.below)
            values = values + [value for value in outside if value is not None]
        yield from ((field.name, value) for value in values)


def _without_none(hint: Any) -> Any:
    """X out of `X | None`."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    return next(kind for kind in get_args(hint) if kind is not NoneType)


def _below(limit: float | None) -> float | None:
    return None if limit is None else limit - max(1, abs(limit))


def _above(limit: float | None) -> float | None:
    return None if limit is None else limit + max(1, abs(limit))


def ratings() -> Ratings:
    """Tied ratings that features explain, the first and last user and item without any.

    User 1 has a single rating, user 2 rates all alike; the others have about 20 each.
    """
    rng = np.random.default_rng(7)
    features = rng.standard_normal((ITEMS, FEATURES))
    slopes = rng.standard_normal(FEATURES) + 0.5 * rng.standard_normal((USERS, FEATURES))
    values = np.round(slopes @ features.T)
    values[2] = 3.0
    rated = rng.random((USERS, ITEMS)) < rng.uniform(0.05, 0.25, (USERS, 1))
    rated[[0, 1, -1]] = rated[:, [0, -1]] = False
    rated[1, 5] = True
    users, items = np.nonzero(rated)
    return Ratings.from_triples(users, items, values[rated], USERS, ITEMS, features)


def _few(users: list[int], items: list[int], values: list[float], n_users: int, n_items: int) -> Ratings:
    features = np.random.default_rng(3).standard_normal((n_items, 2))
    return Ratings.from_triples(np.array(users, int), np.array(items, int), values, n_users, n_items, features)


EDGES: dict[str, Callable[[], Ratings]] = {
    "empty": lambda: _few([], [], [], 3, 4),
    "one-user": lambda: _few([0] * 6, [0, 1, 2, 3, 4, 6], [1, 2, 3, 3, 5, 4], 1, 8),
    "one-item": lambda: _few([0, 1, 2], [0, 0, 0], [1, 2, 3], 3, 1),
    "one-comparison": lambda: _few([1, 1], [0, 2], [2, 1], 3, 4),
    "all-tied": lambda: _few([0, 0, 1, 1], [0, 1, 1, 2], [3, 3, 3, 3], 2, 3),
}
